"""Collision shapes, materials and pairs of links, read from URDF and the sidecar.

collisions:                                     # lengths in m, places in the link
  foot: [{type: sphere, radius: 0.02, xyz: [0, 0, -0.2]}]            # besides URDF's
  shin: {replace: [{type: capsule, radius: 0.02, length: 0.2, rpy: [0, 1.57, 0]}]}
  trunk: {add: [{type: box, size: [0.4, 0.2, 0.1]}]}  # the same as a list
  # cylinder: radius, length; a capsule's length is that of its cylinder, about z;
  # replace: [] leaves a link without shapes
pairs:                                          # links, `*`: any, `world`: half-spaces
  allow: [[shin, thigh]]                        # neighbours are off unless allowed
  deny: [[trunk, "*"], [hand, world]]           # named pairs go before those with *
materials:                                      # by link; default: of all others
  default: {mu: 0.8, restitution: 0.0}
  foot: {mu: 1.2, torsion: 0.005, rolling: 0.001}               # torsion, rolling [m]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.model.description import Description, Geometry
from dyn_core.model.frames import Frame, origin
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
from dyn_core.validation import finite_number, finite_numbers, known_keys, known_name

Entry = Mapping[str, Any]  # of a file: any value until it is checked
KEYS = ("collisions", "pairs", "materials")
_SIZES = {
    "sphere": ("radius",),
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}
_ROUND: dict[str, Callable[..., Shape]] = {
    "sphere": Sphere,
    "cylinder": Cylinder,
    "capsule": Capsule,
}
_MATERIAL = ("mu", "torsion", "rolling", "restitution")


def from_geometry(link: str, geometry: Sequence[Geometry]) -> tuple[Shape, ...]:
    """Return the shapes a link touches with, of its <collision> elements; checked."""
    collisions = [item for item in geometry if item.role == "collision"]
    return tuple(
        _shape(
            f"link '{link}': <collision> {k}: <{item.shape}>",
            link,
            item.shape,
            item.size,
            Transform.of_pose(*item.pose),
            item.mesh,
        )
        for k, item in enumerate(collisions, 1)
    )


def place_shapes(
    frames: Mapping[str, Frame], description: Description
) -> tuple[PlacedShape, ...]:
    """Return the shapes of all links that have a frame, with body and placement."""
    links = {link.name: link for link in description.links if link.collisions}
    return tuple(
        PlacedShape(name, frame.body, shape.X @ frame.X, shape, k)
        for name, frame in frames.items()
        if name in links
        for k, shape in enumerate(links[name].collisions)
    )


def apply(description: Description, data: Entry, source: str) -> Description:
    """Return the Description with a sidecar's collisions, pairs and materials."""
    if not any(data.get(key) for key in KEYS):
        return description
    names = [link.name for link in description.links]
    shapes = {link.name: link.collisions for link in description.links}
    for name, entry in _section(data, source, "collisions").items():
        link = known_name(f"{source}: collisions", "link", name, names)
        shapes[link] = _link(source, link, entry, shapes[link])
    materials = dict(description.materials)
    for name, entry in _section(data, source, "materials").items():
        link = known_name(f"{source}: materials", "link", name, [*names, "default"])
        materials[link] = _material(f"{source}: material of '{link}'", link, entry)
    rules = _section(data, source, "pairs")
    return replace(
        description,
        links=tuple(
            replace(link, collisions=shapes[link.name]) for link in description.links
        ),
        materials=materials,
        pairs=_pair_rules(f"{source}: pairs", rules, description.pairs, names),
    )


def _section(data: Entry, source: str, key: str) -> Entry:
    """Return a mapping of the file, empty where it is not there."""
    section = data.get(key) or {}
    if not isinstance(section, Mapping):
        raise ModelError(f"{source}: {key} needs a mapping, got {section!r}")
    return section


def _pair_rules(
    where: str, rules: Entry, before: PairRules, names: list[str]
) -> PairRules:
    """Return the rules of the file, which go before those there were."""
    known_keys(where, rules, ("allow", "deny"))
    allow, deny = (
        _pairs(where, key, rules.get(key), names) for key in ("allow", "deny")
    )
    both = allow & deny
    if both:
        pair = " and ".join(sorted(next(iter(both))))
        raise ModelError(f"{where}: {pair} are allowed and denied; choose one")
    return PairRules((before.allow - deny) | allow, (before.deny - allow) | deny)


def _link(
    source: str, link: str, entry: Entry | Sequence[Entry], before: tuple[Shape, ...]
) -> tuple[Shape, ...]:
    """Return a link's shapes with those of its entry added or in their place."""
    where = f"{source}: collisions of link '{link}'"
    if isinstance(entry, Mapping):
        known_keys(where, entry, ("add", "replace"))
        if len(entry) != 1:
            raise ModelError(f"{where}: needs add or replace, one of them", link)
        if "replace" in entry:
            before = ()
        entry = next(iter(entry.values()))
    if not isinstance(entry, (list, tuple)):
        raise ModelError(f"{where}: needs a list of shapes, got {entry!r}", link)
    return (
        *before,
        *(_entry(f"{where}: shape {k}", link, x) for k, x in enumerate(entry, 1)),
    )


def _entry(where: str, link: str, entry: Entry) -> Shape:
    """Return the shape of an entry."""
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind not in _SIZES:
        valid = ", ".join(_SIZES)
        got = repr(entry) if kind is None else f"unknown type '{kind}'"
        raise ModelError(f"{where}: {got}; valid types: {valid}", link)
    known_keys(f"{where}: {kind}", entry, ("type", *_SIZES[kind], "xyz", "rpy"))
    size: tuple[float, ...]
    if kind == "box":
        size = finite_numbers(f"{where}: box: size", entry.get("size"))
    else:
        size = tuple(
            finite_number(f"{where}: {kind}: {key}", entry.get(key))
            for key in _SIZES[kind]
        )
    placement = [
        finite_numbers(f"{where}: {kind}: {key}", entry.get(key, (0.0, 0.0, 0.0)))
        for key in ("xyz", "rpy")
    ]
    return _shape(f"{where}: {kind}", link, kind, size, origin(*placement), None)


def _shape(
    where: str,
    link: str,
    kind: str,
    size: tuple[float, ...],
    X: Transform,
    mesh: str | None,
) -> Shape:
    """Return a shape, its sizes and its placement checked."""
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


def _material(where: str, link: str, entry: Entry) -> Material:
    """Return the material of an entry."""
    known_keys(where, entry, _MATERIAL)
    values = {
        key: finite_number(f"{where}: {key}", value) for key, value in entry.items()
    }
    for key, value in values.items():
        if value < 0.0 or (key == "restitution" and value > 1.0):
            valid = "0 to 1" if key == "restitution" else "0 or more"
            raise ModelError(f"{where}: {key} {value}; valid: {valid}", link)
    return Material(**values)


def _pairs(
    where: str, key: str, entries: object, names: list[str]
) -> frozenset[frozenset[str]]:
    """Return pairs of links, checked."""
    rows = entries or []
    if not isinstance(rows, (list, tuple)):
        raise ModelError(
            f"{where}: {key}: needs a list of pairs of links, got {entries!r}"
        )
    pairs = set()
    for entry in rows:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise ModelError(f"{where}: {key}: needs pairs of two links, got {entry!r}")
        a, b = (known_name(where, "link", x, [*names, ANY, WORLD]) for x in entry)
        if a == b != ANY:
            raise ModelError(
                f"{where}: {key}: '{a}' twice; a link does not meet itself"
            )
        pairs.add(frozenset((a, b)))
    return frozenset(pairs)
