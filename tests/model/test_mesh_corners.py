"""Mesh files of any content: checked corners, or one sentence; no library crashes."""

import struct

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.collision.hulls import Hulls
from dyn_core.model.sources import mesh_corners as reader
from dyn_core.model.sources.mesh_corners import check_solid, mesh_corners

TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0.1]])
FACES = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]


def _stl(corners, count=4):
    """Return a binary STL of four triangles."""
    rows = [b"\0" * 12 + np.asarray(corners, "<f4")[list(f)].tobytes() for f in FACES]
    return b"\0" * 80 + struct.pack("<I", count) + b"".join(x + b"\0\0" for x in rows)


def _ascii_stl(corners):
    loops = (
        " ".join(f"vertex {x} {y} {z}" for x, y, z in np.asarray(corners)[list(f)])
        for f in FACES
    )
    facets = "".join(
        f"facet normal 0 0 1\n outer loop\n {x}\n endloop\nendfacet\n" for x in loops
    )
    return f"solid a\n{facets}endsolid a\n".encode()


def _obj(corners):
    rows = "".join(f"v {x} {y} {z}\n" for x, y, z in corners)
    faces = "".join(f"f {a + 1}//1 {b + 1}/2/3 {c - 4}\n" for a, b, c in FACES)
    return f"# unused corner\n{rows}{faces}v 9 9 9\n".encode()


def _dae(corners):
    numbers = " ".join(str(x) for row in corners for x in row)
    indices = " ".join(str(k) for face in FACES for k in face)
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">{numbers}</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>{indices}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
""".encode()


KINDS = {"a.stl": _stl, "b.STL": _ascii_stl, "c.obj": _obj, "d.dae": _dae}


def _sorted(points):
    return sorted(map(tuple, points.tolist()))


@pytest.mark.parametrize("name", KINDS)
def test_corners_of_every_kind_of_file(tmp_path, name):
    """Each corner of a face once, in single precision; others are left out."""
    if name.endswith("dae"):
        pytest.importorskip("coal", reason="coal is not installed (extra collision)")
    (tmp_path / name).write_bytes(KINDS[name](TETRAHEDRON))
    corners = mesh_corners(tmp_path / name)
    assert _sorted(corners) == _sorted(TETRAHEDRON.astype(np.float32).astype(float))
    check_solid(corners)


@pytest.mark.parametrize(
    ("unit", "metres"),
    [
        ('<unit meter="0.001"/>', 0.001),
        ("<unit name='inch' meter = '2.54e-2' />", 0.0254),
        ("<!-- <unit meter='3'/> --><unit name='meter'/>", 1.0),
        ("", 1.0),
    ],
)
@pytest.mark.parametrize("axis", ["Y_UP", "Z_UP"])
def test_a_collada_file_has_one_size_in_contacts_and_pictures(
    tmp_path, unit, metres, axis
):
    """In m by its unit, as in RViz; hull and mesh of contacts were in that unit."""
    for library in ("coal", "trimesh", "collada"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    from dyn_core.view.robot_parts import RobotParts

    text = _dae(TETRAHEDRON).decode().replace('<unit meter="1"/>', unit)
    (tmp_path / "m.dae").write_text(text.replace("Z_UP", axis))
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT.format("m.dae", "m.dae"))
    model = dyn.load(path)
    size = metres * TETRAHEDRON.max(axis=0)
    hull = Hulls(model.source, {})(model.shapes[0].shape, "arm")
    shown = RobotParts(model).visual()[0].triangles.vertices
    for points in (hull.points, hull.mesh.vertices(), shown):
        np.testing.assert_allclose(np.max(points, axis=0), size, rtol=1e-6)


@pytest.mark.parametrize("unit", ["0", "-1", "nan", "inf", "1e400", "x", ""])
def test_a_unit_that_is_no_length_is_refused(tmp_path, unit):
    (tmp_path / "m.dae").write_text(
        _dae(TETRAHEDRON).decode().replace('meter="1"', f'meter="{unit}"')
    )
    with pytest.raises(ValueError, match="its unit is '.*'; valid: metres, above 0"):
        mesh_corners(tmp_path / "m.dae")


def _with(k, x):
    corners = TETRAHEDRON.copy()
    corners[k, 1] = x
    return corners


BAD = {
    "nan.stl": (_stl(_with(2, np.nan)), "a corner is not finite, or farther away"),
    "far.stl": (_stl(_with(2, 1e30)), "a corner is not finite, or farther away"),
    "cut.stl": (_stl(TETRAHEDRON, 5), "it has no faces"),
    "zero.stl": (_stl(TETRAHEDRON, 0), "it has no faces"),
    "huge.stl": (_stl(TETRAHEDRON, 2**32 - 1), "it has no faces"),
    "empty.stl": (b"", "it has no faces"),
    "inf.STL": (_ascii_stl(_with(1, np.inf)), "a corner is not finite"),
    "word.STL": (_ascii_stl(TETRAHEDRON).replace(b"0.1", b"x"), "something else than t"),
    "nan.obj": (_obj(_with(0, np.nan)), "a corner is not finite"),
    "two.obj": (b"v 1 2\nf 1 1 1\n", "a corner has something else than three numbers"),
    "pairs.obj": (b"v 1 2\nv 3 4\nv 5 6\nf 1 2 2\n", "something else than three numbers"),
    "index.obj": (b"v 1 2 3\nf 1 2 1\n", "a face names corner 2 of 1"),
    "zero.obj": (b"v 1 2 3\nf 0 1 1\n", "a face names corner 0 of 1"),
    "word.obj": (b"v 1 2 3\nf a b c\n", "by something else than a number"),
    "points.obj": (b"v 1 2 3\nv 1 2 4\n", "it has no faces"),
    "nan.dae": (_dae(_with(3, np.nan)), ""),
    "text.dae": (b"<COLLADA>", ""),
    "a.nothing": (b"x", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_meshes_are_refused_with_link_and_file(tmp_path, name):
    """A robot with one has a ModelError, in Python; once a NaN ended the process."""
    pytest.importorskip("coal", reason="coal is not installed (extra collision)")
    content, reason = BAD[name]
    (tmp_path / name).write_bytes(content)
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT.format(name, name))
    with pytest.raises(
        dyn.ModelError, match=f"link 'arm': the mesh .*{name}"
    ) as caught:
        dyn.ContactSimulator(dyn.load(path), dyn.World.of(FLOOR))
    assert reason in str(caught.value)
    assert caught.value.element == "arm"


ROBOT = """<robot name="r"><link name="base"/><link name="arm">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}"/></geometry></visual>
<collision><geometry><mesh filename="{}"/></geometry></collision>
</link><joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>
"""
FLOOR = {"half_spaces": [{"name": "floor"}]}
FLAT = {
    "one point": np.zeros((4, 3)) + [1.0, 2.0, 3.0],
    "a line": np.arange(4.0)[:, None] * [1.0, 2.0, 3.0],
    "a plane": _with(3, 0.3) * [1.0, 1.0, 0.0],
    "nearly a plane": TETRAHEDRON * [1.0, 1.0, 1e-9],
}


@pytest.mark.parametrize("kind", FLAT)
def test_meshes_without_volume_are_refused(tmp_path, kind):
    """By contact and by the viewer, which shows the rest of the robot."""
    for name in ("coal", "trimesh"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    from dyn_core.view.robot_parts import RobotParts

    (tmp_path / "m.obj").write_bytes(_obj(FLAT[kind]))
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT.format("m.obj", "m.obj"))
    model = dyn.load(path)
    with pytest.raises(
        dyn.ModelError, match=r"link 'arm': .*m\.obj.* it has no volume"
    ):
        dyn.ContactSimulator(model, dyn.World.of(FLOOR))
    parts = RobotParts(model)
    assert parts.collision() == []
    assert len(parts.notes) == 1
    assert "link 'arm'" in parts.notes[0]
    assert "m.obj" in parts.notes[0]
    assert "it has no volume" in parts.notes[0]


def test_thin_meshes_are_solid():
    """A sheet of a millimetre in a metre, and one of a micrometre."""
    for thickness in (1e-2, 1e-5):
        check_solid(TETRAHEDRON * [1.0, 1.0, thickness])
        check_solid(1e-3 * TETRAHEDRON * [1.0, 1.0, thickness] + 5.0)


def test_sizes_are_checked_before_a_mesh_is_read(tmp_path, monkeypatch):
    """Of the file; a missing one is named by the system's reason."""
    path = tmp_path / "a.stl"
    with pytest.raises(ValueError, match="No such file"):
        mesh_corners(path)
    path.write_bytes(_stl(TETRAHEDRON))
    monkeypatch.setattr(reader, "SIZE", 100)
    with pytest.raises(ValueError, match="larger than 0 MB"):
        mesh_corners(path)


def test_without_coal_other_kinds_say_what_reads_them(tmp_path, monkeypatch):
    """STL and OBJ need nothing."""
    monkeypatch.setitem(__import__("sys").modules, "coal", None)
    (tmp_path / "a.dae").write_bytes(_dae(TETRAHEDRON))
    with pytest.raises(
        ValueError, match=r"dyn_ros\[collision\]'; valid without it: .s"
    ):
        mesh_corners(tmp_path / "a.dae")
