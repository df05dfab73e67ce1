"""Random meshes: STL, OBJ and COLLADA, valid, odd or with changed bytes."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from fuzz.draws import Draws
from fuzz.fuzz_file import FuzzFile
from fuzz.mutations import change_bytes

Faces = list[tuple[int, int, int]]
_FACES: Faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
_SPECIAL = (
    b"\xff\xff\xff\xff", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\xff\xff\x7f\x7f",
    b"\x01\x00\x00\x00", b"\x00\x00\x80\xff",
)  # fmt: skip
_DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="{unit}"/><up_axis>{axis}_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="{size}">{numbers}</float_array>
<technique_common><accessor source="#pa" count="{count}" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="{faces}"><input semantic="VERTEX" source="#v" offset="0"/>
<p>{indices}</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node>{place}
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
"""


def draw_mesh(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a mesh of a link."""
    style = draws.choices(("valid", "odd", "bytes"), (15, 45, 40))[0]
    kind = draws.choice(("binary.stl", "ascii.stl", ".obj", ".dae"))
    rng = np.random.default_rng(draws.randrange(2**32))
    corners, faces = rng.normal(size=(4, 3)), list(_FACES)
    if style == "odd":
        corners, faces = _odd(draws, corners, faces)
    content = _WRITTEN[kind](draws, corners, faces)
    if style == "odd" and kind == "binary.stl" and draws.chance(0.7):
        start = 84 + 2 * draws.randrange(max(1, (len(content) - 84) // 2))
        content = content[:start] + draws.choice(_SPECIAL) + content[start + 4 :]
    if style == "bytes":
        content = change_bytes(draws, content)
    suffix = kind[-4:] if draws.chance(0.97) else draws.choice((".ply", ".STL", ".x"))
    valid = style == "valid" and suffix == kind[-4:]
    return replace(file, content=content, suffix=suffix, valid=valid)


def _odd(draws: Draws, corners: np.ndarray, faces: Faces) -> tuple[np.ndarray, Faces]:
    """Return corners and faces of a mesh that is flat, far, tiny, open or wrong."""
    what = draws.randrange(7)
    k = draws.randrange(4)
    if what == 0:
        corners[k] = corners[(k + 1) % 4]
    elif what == 1:
        corners[:, k % 3] *= draws.choice((0.0, 1e-12, 1e-30))
    elif what == 2:
        corners *= 10.0 ** draws.choice((-300, -40, -20, 8, 12, 30, 38, 200))
    elif what == 3:
        corners[k, k % 3] = draws.choice((np.nan, np.inf, -np.inf, 3.4e38, 1e9))
    elif what == 4:
        faces = faces[: draws.randrange(4)]
    elif what == 5:
        faces[k] = (k, k, draws.choice((-9, -1, 4, 10**9)))
    else:
        corners = np.vstack([corners, corners[0] + 1e-9])
    return corners, faces


def _binary_stl(draws: Draws, corners: np.ndarray, faces: Faces) -> bytes:
    count = len(faces)
    if len(faces) != len(_FACES) and draws.chance(0.3):
        count = draws.choice((0, 1, 2**31, 2**32 - 1))
    content = draws.choice((b"\0", b"solid ")).ljust(80, b" ") + struct.pack(
        "<I", count
    )
    with np.errstate(over="ignore"):
        single = corners.astype("<f4")
    for face in faces:
        rows = [single[k % len(single)].tobytes() for k in face]
        content += bytes(12) + b"".join(rows) + bytes(2)
    return content


def _ascii_stl(draws: Draws, corners: np.ndarray, faces: Faces) -> bytes:
    lines = ["solid mesh"]
    for face in faces:
        lines += ["facet normal 0 0 1", "outer loop"]
        for k in face:
            x, y, z = corners[k % len(corners)].tolist()
            lines.append(f"vertex {x!r} {y!r} {z!r}")
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid mesh", ""]).encode()


def _obj(draws: Draws, corners: np.ndarray, faces: Faces) -> bytes:
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in corners.tolist()]
    form = draws.choice(("{0}", "{0}//{0}", "{0}/1", "{0}/1/1"))
    lines += ["f " + " ".join(form.format(k + 1) for k in face) for face in faces]
    return "\n".join(
        [draws.choice(("", "o x", "mtllib gone.mtl")), *lines, ""]
    ).encode()


def _dae(draws: Draws, corners: np.ndarray, faces: Faces) -> bytes:
    matrix = " ".join(map(repr, np.eye(4).ravel().tolist()))
    text = _DAE.format(
        unit=draws.choice(("1", "0.001", "0.0254")),
        axis=draws.choice("XYZ"),
        size=corners.size,
        count=len(corners),
        numbers=" ".join(map(repr, corners.ravel().tolist())),
        faces=len(faces),
        indices=" ".join(str(k) for face in faces for k in face),
        place=draws.choice(("", f"<matrix>{matrix}</matrix>")),
    )
    return text.encode()


_WRITTEN = {
    "binary.stl": _binary_stl, "ascii.stl": _ascii_stl, ".obj": _obj, ".dae": _dae,
}  # fmt: skip
