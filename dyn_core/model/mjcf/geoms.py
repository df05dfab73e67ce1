"""Geoms of an MJCF as collision shapes and materials of links.

Geoms that cannot touch anything (contype and conaffinity 0) are visuals and left out.
"""

from __future__ import annotations

import math
from pathlib import Path

from dyn_core.model.checks.findings import Findings
from dyn_core.model.description_builder import DescriptionBuilder
from dyn_core.model.mjcf.compiled import Compiled
from dyn_core.model.shapes import Material
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.lie import quat_matrix

_NOT_KEPT = "it is left out"


def touching(mjcf: Compiled, geom: int) -> bool:
    """Return whether a geom can touch another one: contype or conaffinity is not 0."""
    return bool(mjcf.model.geom_contype[geom] or mjcf.model.geom_conaffinity[geom])


def add_shapes(mjcf: Compiled, builder: DescriptionBuilder, findings: Findings) -> None:
    """Add the collision shapes of all links.

    Geoms that may touch others but are no shapes of a Model are findings; a plane is
    always one.

    Raises:
        ModelError: A Model has no such shape and the check is strict.
    """
    for geom in range(mjcf.model.ngeom):
        if not touching(mjcf, geom):
            continue
        kind, X = mjcf.kind("geom_type", geom), _placement(mjcf, "geom", geom)
        name = mjcf.element("geom", geom)
        a, b, c = mjcf.model.geom_size[geom].tolist()
        sizes = {
            "sphere": (a,),
            "capsule": (a, 2 * b),
            "cylinder": (a, 2 * b),
            "box": (2 * a, 2 * b, 2 * c),
        }
        where, link = f"geom '{name}'", mjcf.links[mjcf.model.geom_bodyid[geom]]
        if kind in sizes:
            builder.shape(where, link, kind, sizes[kind], X)
        elif kind == "plane":
            findings.note("geom", name, _plane(mjcf, geom, X))
        elif kind == "mesh":
            mesh = _mesh(mjcf, geom, findings)
            if mesh is not None:
                file, scale, moved = mesh
                builder.shape(where, link, kind, scale, moved.inverse @ X, file)
        else:
            what = f"{kind} is no collision shape of a Model"
            findings.doubt("geom", name, what, _NOT_KEPT)


def _placement(mjcf: Compiled, owner: str, number: int) -> Transform:
    """Return the transform from the body's frame to the frame of a geom or mesh.

    `owner` is geom or mesh, `number` its index.
    """
    p, quaternion = mjcf.pose(owner, number)
    return Transform.of_pose(quat_matrix(Vector(quaternion)), Vector(p))


def _plane(mjcf: Compiled, geom: int, X: Transform) -> str:
    """Return the text of a finding about a plane geom.

    X is the transform from its body. On the world it suggests a HalfSpace.
    """
    if mjcf.model.geom_bodyid[geom]:
        return "a plane on a body is no collision shape of a Model; it is left out"
    R, p = X.pose
    normal = tuple(round(float(R[k, 2]), 9) + 0.0 for k in range(3))
    point = tuple(float(x) for x in p)
    return (
        "a plane is part of the World, not of a robot; give it there:"
        f" HalfSpace(point={point}, normal={normal})"
    )


def _mesh(
    mjcf: Compiled, geom: int, findings: Findings
) -> tuple[str, tuple[float, ...], Transform] | None:
    """Return the mesh of a geom; None, with a finding, if it has no readable file.

    Args:
        mjcf: The compiled file.
        geom: Index of the geom.
        findings: Collects the finding.

    Returns:
        Its file, scale factors, and the transform from the axes of the file to its
        centre and principal axes, to which MuJoCo moves meshes.

    Raises:
        ModelError: There is no readable file and the check is strict.
    """
    m, number = mjcf.model, int(mjcf.model.geom_dataid[geom])
    file = _mesh_file(mjcf, number)
    name = mjcf.element("geom", geom)
    problem = ""
    if number in mjcf.turned_meshes:
        problem = "mesh with refpos or refquat is not read"
    elif file is None or file.suffix.lower() not in (".obj", ".stl"):
        kind = "that is in the MJCF itself" if file is None else f"of {file.name}"
        problem = f"mesh {kind} is not read"
    if problem or file is None:
        findings.doubt("geom", name, problem, _NOT_KEPT)
        return None
    folder = Path() if mjcf.path is None else mjcf.path.parent
    below = folder / mjcf.mesh_folder / file  # older versions leave meshdir out
    file = below if below.is_file() else folder / file
    scale = tuple(m.mesh_scale[number].tolist())
    return str(file), scale, _placement(mjcf, "mesh", number)


def _mesh_file(mjcf: Compiled, mesh: int) -> Path | None:
    """Return the path of a mesh file as MuJoCo records it, not resolved.

    None if the vertices are in the MJCF itself.
    """
    start = int(mjcf.model.mesh_pathadr[mesh])
    if start < 0:
        return None
    paths: bytes = mjcf.model.paths
    return Path(paths[start : paths.index(b"\0", start)].decode())


def add_materials(
    mjcf: Compiled, builder: DescriptionBuilder, findings: Findings
) -> None:
    """Add the friction of links that have shapes, or one `default` if all are equal.

    A link whose geoms differ gets the largest coefficients, with a finding.
    """
    by_link: dict[str, list[Material]] = {}
    for geom in range(mjcf.model.ngeom):
        link = mjcf.links[mjcf.model.geom_bodyid[geom]]
        if link in builder.shapes and touching(mjcf, geom):
            by_link.setdefault(link, []).append(_material(mjcf, geom))
    materials = {}
    for name, several in by_link.items():
        materials[name] = Material(
            max(x.mu for x in several),
            max(x.torsion for x in several),
            max(x.rolling for x in several),
        )
        if len(set(several)) > 1:
            what = "its geoms differ in friction; the largest of each is taken"
            findings.note("link", name, what)
    if len(set(materials.values())) == 1:
        materials = {"default": next(iter(materials.values()))}
    builder.materials = materials


def _material(mjcf: Compiled, geom: int) -> Material:
    """Return the friction of a geom; coefficients that its condim ignores are zero."""
    slide, spin, roll = mjcf.model.geom_friction[geom].tolist()
    condim = int(mjcf.model.geom_condim[geom])
    mu, torsion, rolling = (
        x if condim >= least and math.isfinite(x) else 0.0
        for x, least in ((slide, 3), (spin, 4), (roll, 6))
    )
    return Material(mu, torsion, rolling)
