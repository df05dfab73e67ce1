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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Description, Geometry
from dyn_core.model.frames import PLACE, Frame, origin
from dyn_core.model.shapes import (
    ANY,
    WORLD,
    Box,
    Capsule,
    Cylinder,
    Material,
    Mesh,
    PairRules,
    PlacedShape,
    Shape,
    Sphere,
)
from dyn_core.spatial import Transform
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
    "radius": Field(
        "radius", Quantity(0.0), "of the ball or the round side", "m", REQUIRED
    ),
    "length": Field("length", Quantity(0.0), "along z, of the cylinder", "m", REQUIRED),
    "size": Field("size", ListOf(Quantity(0.0), 3), "sides", "m", REQUIRED),
}
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
_ROUND: dict[str, Callable[..., Shape]] = {
    "sphere": Sphere,
    "cylinder": Cylinder,
    "capsule": Capsule,
}
MATERIAL = Table(
    Field("mu", Quantity(0.0), "Coulomb's coefficient of friction", "", 1.0),
    Field(
        "torsion",
        Quantity(0.0),
        "friction torque about the normal by its force",
        "m",
        0.0,
    ),
    Field("rolling", Quantity(0.0), "the same about the tangents", "m", 0.0),
    Field(
        "restitution",
        Quantity(0.0, 1.0),
        "normal speed after by that before an impact",
        "",
        0.0,
    ),
    make=Material,
)
_PAIRS = ListOf(ListOf(Name(), 2))
FIELDS = (
    Field(
        "collisions",
        ByName(
            Either(
                (
                    ListOf(SHAPE),
                    Table(
                        Field("add", ListOf(SHAPE), "shapes besides the URDF's"),
                        Field("replace", ListOf(SHAPE), "shapes instead of the URDF's"),
                    ),
                )
            ),
            "link",
        ),
        "shapes that touch; a list is the same as add",
    ),
    Field(
        "pairs",
        Table(
            Field("allow", _PAIRS, "pairs of links that meet; neighbours do not else"),
            Field(
                "deny", _PAIRS, "pairs that do not; `*` is any link, `world` the ground"
            ),
        ),
        "which links meet; named pairs go before those with `*`",
    ),
    Field(
        "materials",
        ByName(MATERIAL, "link or default"),
        "surfaces; default is that of all other links",
    ),
)


def from_geometry(
    link: str, geometry: Sequence[Geometry], findings: Findings
) -> tuple[Shape, ...]:
    """Return the collision shapes of a link from its <collision> elements.

    Invalid shapes are left out with a finding; a ModelError where the check is strict.

    Args:
        link: Name of the link, for messages.
        geometry: Visual and collision geometry; visuals are ignored.
        findings: Collects the findings.
    """
    collisions = [item for item in geometry if item.role == "collision"]
    shapes = []
    for k, item in enumerate(collisions, 1):
        where = f"link '{link}': <collision> {k}: <{item.shape}>"
        X = Transform.of_pose(*item.pose)
        try:
            shapes.append(_shape(where, link, item.shape, item.size, X, item.mesh))
        except ModelError as error:
            findings.doubtful(error, "it is left out")
    return tuple(shapes)


def place_shapes(
    frames: Mapping[str, Frame], description: Description
) -> tuple[PlacedShape, ...]:
    """Return the collision shapes of all links, with body and placement.

    They are in the order of `frames`, link by link.
    """
    links = {link.name: link for link in description.links if link.collisions}
    return tuple(
        PlacedShape(name, frame.body, shape.X @ frame.X, shape, k)
        for name, frame in frames.items()
        if name in links
        for k, shape in enumerate(links[name].collisions)
    )


def apply(description: Description, data: Entry, source: str) -> Description:
    """Return the Description with a sidecar's collisions, pairs and materials added.

    Args:
        description: Robot.
        data: Content of the sidecar, checked by its Table.
        source: Name of the sidecar in messages.

    Raises:
        ModelError: Unknown link, invalid shape, or contradicting pairs.
    """
    names = [link.name for link in description.links]
    shapes = {link.name: link.collisions for link in description.links}
    for name, entry in data.get("collisions", {}).items():
        link = known_name(f"{source}: collisions", "link", name, names)
        shapes[link] = _link(f"{source}: collisions: {link}", link, entry, shapes[link])
    for name in data.get("materials", ()):
        known_name(f"{source}: materials", "link", name, [*names, "default"])
    rules = data.get("pairs", {})
    return replace(
        description,
        links=tuple(
            replace(link, collisions=shapes[link.name]) for link in description.links
        ),
        materials={**description.materials, **data.get("materials", {})},
        pairs=_pair_rules(f"{source}: pairs", rules, description.pairs, names),
    )


def _pair_rules(
    where: str, rules: Entry, before: PairRules, names: list[str]
) -> PairRules:
    """Return the pair rules with the sidecar's rules, which override earlier ones.

    Args:
        where: Name of the section in messages.
        rules: Section `pairs` of the sidecar.
        before: Earlier rules.
        names: Names of all links.

    Raises:
        ModelError: Unknown link, a link paired with itself, or a pair in both lists.
    """
    allow, deny = (
        _pairs(f"{where}: {key}", rules.get(key, ()), names)
        for key in ("allow", "deny")
    )
    both = allow & deny
    if both:
        pair = " and ".join(sorted(next(iter(both))))
        raise ModelError(f"{where}: {pair} are allowed and denied; choose one")
    return PairRules((before.allow - deny) | allow, (before.deny - allow) | deny)


def _link(
    where: str, link: str, entry: Any, before: tuple[Shape, ...]
) -> tuple[Shape, ...]:
    """Return the shapes of a link after an entry that adds to or replaces `before`.

    Raises ModelError unless a mapping has exactly one of add and replace.
    """
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            raise ModelError(f"{where}: needs add or replace, one of them", link)
        before = () if "replace" in entry else before
        entry = next(iter(entry.values()))
    shapes = []
    for k, x in enumerate(entry):
        keys = _KEYS[x["type"]]
        size = x["size"] if "size" in keys else tuple(x[key] for key in keys)
        X = origin(x["xyz"], x["rpy"])
        shapes.append(_shape(f"{where}[{k}]", link, x["type"], size, X, None))
    return (*before, *shapes)


def _shape(
    where: str,
    link: str,
    kind: str,
    size: tuple[float, ...],
    X: Transform,
    mesh: str | None,
) -> Shape:
    """Return a checked shape.

    Args:
        where: Name of the shape in messages.
        link: Name of the link.
        kind: sphere, box, cylinder, capsule or mesh.
        size: Sizes of the kind [m]; scale factors of a mesh.
        X: Transform from the link's frame.
        mesh: File of a mesh, else None.

    Raises:
        ModelError: A number is not finite, a size is negative, or a mesh has no file or
            a scale of 0.
    """
    R, p = X.pose
    if not all(math.isfinite(x) for x in (*p, *(x for row in R.rows for x in row))):
        raise ModelError(f"{where}: its origin holds a number that is not finite", link)
    numbers = ", ".join(map(str, size))
    if kind == "mesh":
        if not mesh:
            raise ModelError(f"{where}: names no file; give filename", link)
        if not all(math.isfinite(x) and x for x in size):
            raise ModelError(
                f"{where}: scale {numbers}; finite factors other than 0 are valid", link
            )
        return Mesh(X, mesh, (size[0], size[1], size[2]))
    if not all(math.isfinite(x) and x >= 0.0 for x in size):
        raise ModelError(
            f"{where}: size {numbers}; finite lengths that are not negative are valid"
            " [m]",
            link,
        )
    if kind == "box":
        return Box(X, (size[0], size[1], size[2]))
    return _ROUND[kind](X, *size)


def _pairs(
    where: str, pairs: Sequence[Sequence[str]], names: list[str]
) -> frozenset[frozenset[str]]:
    """Return pairs of links as sets.

    Args:
        where: Name of the list in messages.
        pairs: Pairs of names, which may be `*` and `world`.
        names: Names of all links.

    Raises:
        ModelError: Unknown link, or a pair of a link with itself.
    """
    for pair in pairs:
        a, b = (known_name(where, "link", x, [*names, ANY, WORLD]) for x in pair)
        if a == b != ANY:
            raise ModelError(f"{where}: '{a}' twice; a link does not meet itself")
    return frozenset(map(frozenset, pairs))
