"""Shapes of links: visuals and collisions, which dynamics does not need.

Invalid shapes are left out with a finding; only a strict check raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Geometry
from dyn_core.model.frames import origin
from dyn_core.model.urdf_xml.attributes import (
    ATTRIBUTES,
    attributes,
    replace_quaternion,
)

SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")
Color = tuple[float, ...]  # red, green, blue, alpha, 0..1


def colors_by_name(materials: Iterable[Element]) -> dict[str, Color]:
    """Return the colours of <material> elements by name: red, green, blue, alpha, 0..1.

    Of equal names the last element counts, even if its colour is not valid: then the
    name is left out. Elements without a name are left out, too.
    """
    named = {x.get("name", ""): _rgba(x) for x in materials}
    return {name: color for name, color in named.items() if name and color}


def read_shapes(
    link: str,
    elements: Iterable[Element],
    findings: Findings,
    colors: Mapping[str, Color] | None = None,
) -> tuple[Geometry, ...]:
    """Return the shapes of a link's <visual> and <collision> elements.

    A single scale of a mesh is repeated for x, y and z in `elements`. `findings`
    collects shapes that are left out; `colors` are those of materials, by name.
    """
    shapes = []
    for element in elements:
        material = element.find("material") if element.tag == "visual" else None
        color = None
        if material is not None:
            color = _rgba(material) or (colors or {}).get(material.get("name", ""))
        try:
            shape = _shape(("link", link), element, findings, color)
        except ModelError as error:
            findings.doubtful(error, f"this <{element.tag}> is left out")
        else:
            shapes += [] if shape is None else [shape]
    return tuple(shapes)


def _rgba(material: Element) -> Color | None:
    """Return the colour of a <material>, clipped to 0..1; None if it has no valid one.

    Without alpha it is 1.
    """
    element = material.find("color")
    try:
        rgba = tuple(
            map(float, ("" if element is None else element.get("rgba", "")).split())
        )
    except ValueError:
        return None
    if len(rgba) not in (3, 4) or not all(map(math.isfinite, rgba)):
        return None
    return tuple(min(1.0, max(0.0, x)) for x in (*rgba, 1.0)[:4])


def _shape(
    owner: tuple[str, str],
    element: Element,
    findings: Findings,
    color: Color | None = None,
) -> Geometry | None:
    """Return the shape of a <visual> or <collision>; None, with a note, if unknown.

    Of several shapes the first known one is taken, with a note. A single scale of a
    mesh is repeated for x, y and z, in `element` itself. A mesh may lack its filename.
    """
    geometry = element.find("geometry")
    inside = [] if geometry is None else list(geometry)
    known = [child for child in inside if child.tag in SHAPES]
    if not known:
        tag = f"<{inside[0].tag}>" if inside else "nothing"
        findings.note(*owner, f"<{element.tag}> with {tag} is left out")
        return None
    shape, kind = known[0], known[0].tag
    if len(inside) > 1:
        what = f"<{element.tag}> has {len(inside)} shapes in one <geometry>"
        findings.note(*owner, f"{what}; <{kind}> is taken")
    if kind == "mesh" and len((shape.get("scale") or "").split()) == 1:
        findings.note(*owner, "one scale of a <mesh> is taken for x, y and z")
        shape.set("scale", " ".join(shape.get("scale", "").split() * 3))
    values = attributes(findings, owner, shape)
    if kind == "mesh":
        values.setdefault("scale", (1.0, 1.0, 1.0))
    sizes = [key for key, count in ATTRIBUTES[kind].items() if count]
    for key in sizes:
        if key not in values:
            raise ModelError(
                f"link '{owner[1]}': <{element.tag}>: <{kind}> has no {key}", owner[1]
            )
    size = tuple(x for key in sizes for x in values[key])
    pose = _pose(owner, element, findings)
    return Geometry(element.tag, kind, size, values.get("filename"), pose, color)


def _pose(owner: tuple[str, str], element: Element, findings: Findings) -> tuple:
    """Return rotation (3, 3) and position (3) [m] of a shape in its link."""
    part = element.find("origin")
    values = {} if part is None else attributes(findings, owner, part)
    replace_quaternion(values, owner)
    zero = (0.0, 0.0, 0.0)
    return origin(values.get("xyz", zero), values.get("rpy", zero)).pose
