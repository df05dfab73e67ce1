"""Collision shapes, materials and pairs of links, read from URDF and the sidecar.

collisions:                                     # lengths in m, placements in the link
  foot: [{type: sphere, radius: 0.02, xyz: [0, 0, -0.2]}]            # besides URDF's
  shin: {replace: [{type: capsule, radius: 0.02, length: 0.2, rpy: [0, 1.57, 0]}]}
  trunk: {add: [{type: box, size: [0.4, 0.2, 0.1]}]}  # the same as a list
  # cylinder: radius, length; a capsule's length is without its caps; both are about z;
  # replace: [] leaves a link without shapes
pairs:                                          # links, `*`: any, `world`: half-spaces
  allow: [[shin, thigh]]                        # neighbours are off unless allowed
  deny: [[trunk, "*"], [hand, world]]           # named pairs go before those with *
materials:                                      # by link; default: all other links
  default: {mu: 0.8, restitution: 0.0}
  foot: {mu: 1.2, torsion: 0.005, rolling: 0.001}               # torsion, rolling [m]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.model.description import Description
from dyn_core.model.description_builder import DescriptionBuilder
from dyn_core.model.frames import PLACE, Frame, origin
from dyn_core.model.material import RANGES, Material
from dyn_core.model.shapes import (
    ANY,
    WORLD,
    PairRules,
    PlacedShape,
)
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    ListOf,
    Name,
    Quantity,
    Table,
    Tagged,
    known_name,
)

Entry = Mapping[str, Any]  # checked by a Table
_SIZES = {
    "radius": Field("radius", Quantity(0.0),
        "of the ball or the round side", "m", REQUIRED),
    "length": Field("length", Quantity(0.0), "along z, of the cylinder", "m", REQUIRED),
    "size": Field("size", ListOf(Quantity(0.0), 3), "sides", "m", REQUIRED),
}  # fmt: skip
_KEYS = {
    "sphere": ("radius",),
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}
SHAPE = Tagged(
    "type",
    {
        kind: Table(
            Field("type", Name(), "shape", "", REQUIRED),
            *(_SIZES[key] for key in keys),
            *PLACE,
        )
        for kind, keys in _KEYS.items()
    },
)
MATERIAL = Table(
    Field("mu", RANGES["mu"], "Coulomb's coefficient of friction", "", 1.0),
    Field("torsion", RANGES["torsion"],
        "friction torque about the normal by its force", "m", 0.0),
    Field("rolling", RANGES["rolling"], "the same about the tangents", "m", 0.0),
    Field("restitution", RANGES["restitution"],
        "normal speed after by that before an impact", "", 0.0),
    make=Material,
)  # fmt: skip
_SHAPES = Table(
    Field("add", ListOf(SHAPE), "shapes besides the URDF's"),
    Field("replace", ListOf(SHAPE), "shapes instead of the URDF's"),
)
_LINKS = ListOf(ListOf(Name(), 2))
_PAIRS = Table(
    Field("allow", _LINKS, "pairs of links that meet; neighbours do not else"),
    Field("deny", _LINKS, "pairs that do not; `*` is any link, `world` the ground"),
)
FIELDS = (
    Field("collisions", ByName(Either((ListOf(SHAPE), _SHAPES)), "link"),
        "shapes that touch; a list is the same as add"),
    Field("pairs", _PAIRS, "which links meet; named pairs go before those with `*`"),
    Field("materials", ByName(MATERIAL, "link or default"),
        "surfaces; default is that of all other links"),
)  # fmt: skip


def place_shapes(
    frames: Mapping[str, Frame], description: Description
) -> tuple[PlacedShape, ...]:
    """Return the collision shapes of all links, with body and placement in it.

    They are in the order of `frames`, and within a link in that of its description.
    """
    links = {link.name: link for link in description.links if link.collisions}
    return tuple(
        PlacedShape(name, frame.body, shape.X @ frame.X, shape, k)
        for name, frame in frames.items()
        if name in links
        for k, shape in enumerate(links[name].collisions)
    )


def add_to(builder: DescriptionBuilder, data: Entry, source: str) -> None:
    """Add a sidecar's collisions, pairs and materials to a robot.

    A rule for a pair, and the material of a link, replace earlier ones. After a
    ModelError, what was added before stays in `builder`.
    """
    names = builder.link_names
    for name, entry in data.get("collisions", {}).items():
        link = known_name(f"{source}: collisions", "link", name, names)
        _add_shapes(f"{source}: collisions: {link}", builder, link, entry)
    for name in data.get("materials", ()):
        known_name(f"{source}: materials", "link", name, [*names, "default"])
    builder.materials |= data.get("materials", {})
    rules = data.get("pairs", {})
    builder.pairs = _pair_rules(f"{source}: pairs", rules, builder.pairs, names)


def _pair_rules(
    where: str, rules: Entry, before: PairRules, names: list[str]
) -> PairRules:
    """Return the pair rules with the sidecar's rules, which override earlier ones."""
    allow, deny = (
        _pairs(f"{where}: {key}", rules.get(key, ()), names)
        for key in ("allow", "deny")
    )
    both = allow & deny
    if both:
        pair = " and ".join(sorted(next(iter(both))))
        raise ModelError(f"{where}: {pair} are allowed and denied; choose one")
    return PairRules((before.allow - deny) | allow, (before.deny - allow) | deny)


def _add_shapes(where: str, builder: DescriptionBuilder, link: str, entry: Any) -> None:
    """Add the shapes of an entry to a link of the builder, or replace its shapes.

    The entry is a list of shapes to be added, or a mapping with `add` or `replace`.
    """
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            raise ModelError(f"{where}: needs add or replace, one of them", link)
        if "replace" in entry:
            builder.shapes[link] = ()
        entry = next(iter(entry.values()))
    for k, x in enumerate(entry):
        keys = _KEYS[x["type"]]
        size = x["size"] if "size" in keys else tuple(x[key] for key in keys)
        X = origin(x["xyz"], x["rpy"])
        builder.shape(f"{where}[{k}]", link, x["type"], size, X)


def _pairs(
    where: str, pairs: Sequence[Sequence[str]], names: list[str]
) -> frozenset[frozenset[str]]:
    """Return pairs of names (or `*`, `world`) as sets; (`*`, `*`) becomes one name.

    A pair of a link with itself is refused.
    """
    for pair in pairs:
        a, b = (known_name(where, "link", x, [*names, ANY, WORLD]) for x in pair)
        if a == b != ANY:
            raise ModelError(f"{where}: '{a}' twice; a link does not meet itself")
    return frozenset(map(frozenset, pairs))
