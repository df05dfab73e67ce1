"""What is shown of robots: parts, poses, sliders."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.simulation import loop_report
from dyn_core.view import solids
from dyn_core.view.robot_parts import RobotParts, pose_of, principal
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import COLLISION, INERTIA

ROOT = Path(__file__).parents[2]
PRIMITIVES = """
<robot name="shapes">
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base">
    <visual><origin xyz="0 0 0.5"/><geometry><box size="1 2 3"/></geometry>
      <material name="blue"/></visual>
    <collision><geometry><sphere radius="0.4"/></geometry></collision>
  </link>
  <link name="arm">
    <inertial><origin xyz="0.1 0 0"/><mass value="2"/>
      <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><cylinder radius="0.1" length="0.6"/></geometry>
      <material name="red"><color rgba="1 0 0 0.5"/></material></visual>
    <visual><geometry><sphere radius="0.2"/></geometry></visual>
  </link>
  <link name="tip">
    <visual><origin xyz="0 0 0.3" rpy="0 1.5707963267948966 0"/>
      <geometry><capsule radius="0.05" length="0.2"/></geometry>
      <material name="blue"/></visual>
  </link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0 2"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="1"/></joint>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tip"/>
    <origin xyz="0.5 0 0"/></joint>
</robot>
"""


def _box(triangles):
    return triangles.vertices.min(axis=0), triangles.vertices.max(axis=0)


def _volume(triangles):
    """Volume inside a surface: positive if its triangles show outwards."""
    a, b, c = (triangles.vertices[triangles.faces[:, k]] for k in range(3))
    return float(np.einsum("ni,ni->", a, np.cross(b, c))) / 6


@pytest.mark.parametrize(
    "surface, volume",
    [
        (solids.box((1, 2, 3)), 6.0),
        (solids.ball(0.5, 96), 4 / 3 * np.pi * 0.125),
        (solids.ellipsoid((0.5, 1.0, 0.25)), 4 / 3 * np.pi * 0.125),
        (solids.cylinder(0.5, 2.0, 96), 0.5 * np.pi),
        (solids.capsule(0.5, 2.0, 96), 0.5 * np.pi + 4 / 3 * np.pi * 0.125),
        (solids.cone(0.5, 3.0, 96), 0.25 * np.pi),
        (solids.box((1, 2, 3)).scaled((-1.0, 2.0, 1.0)), 12.0),
        (solids.arrow((1, 2, 3), (4, 2, -1), 0.01), None),
    ],
)
def test_surfaces_are_closed_and_show_outwards(surface, volume):
    """Every edge belongs to two triangles in opposite directions; the volume is that of the solid."""
    places = np.unique(np.round(surface.vertices, 9), axis=0, return_inverse=True)[
        1
    ].reshape(-1)
    faces = places[surface.faces]
    edges = {}
    for a, b, c in faces:
        for edge in ((a, b), (b, c), (c, a)):
            edges[edge] = edges.get(edge, 0) + 1
    assert all(edges.get((b, a)) == n for (a, b), n in edges.items())
    if volume is None:
        assert _volume(surface) > 0
    else:
        assert _volume(surface) == pytest.approx(volume, rel=0.04)


@pytest.mark.parametrize("end", [(4.0, 2.0, -1.0), (1.0, 2.02, 3.0)])
def test_an_arrow_goes_from_its_start_to_its_end(end):
    """Around the line between them: from one point to the other, as wide as its head."""
    start = np.array([1.0, 2.0, 3.0])
    way = np.subtract(end, start)
    length = np.linalg.norm(way)
    vertices = solids.arrow(start, end, 0.01).vertices - start
    along = vertices @ way / length
    beside = np.linalg.norm(vertices - np.outer(along, way / length), axis=1)
    assert (along.min(), along.max()) == pytest.approx((0.0, length))
    assert beside.max() == pytest.approx(0.022)


def test_visual_elements_become_parts():
    """Each visual of a link, merged links' as well, is a surface of its body where the file has it."""
    model = dyn.load(PRIMITIVES)
    scene = RobotScene(model)
    parts = {part.name: part for part in scene.parts()}
    assert set(parts) == {
        "visual/base/0",
        "visual/arm/0",
        "visual/arm/1",
        "visual/tip/0",
    }
    low, high = _box(parts["visual/base/0"].triangles)
    assert low == pytest.approx((-0.5, -1.0, -1.0))
    assert high == pytest.approx((0.5, 1.0, 2.0))
    assert parts["visual/base/0"].body == 0
    low, high = _box(parts["visual/tip/0"].triangles)
    assert high - low == pytest.approx((0.3, 0.1, 0.1), abs=1e-9)
    assert (high + low) / 2 == pytest.approx((0.5, 0.0, 0.3), abs=1e-9)
    assert parts["visual/tip/0"].body == parts["visual/arm/0"].body == 1
    assert parts["visual/base/0"].color == parts["visual/tip/0"].color == (0, 0, 255)
    assert parts["visual/arm/0"].color == (255, 0, 0)
    assert parts["visual/arm/0"].opacity == 0.5
    assert [part.name for part in scene.parts(COLLISION)] == ["collision/base/0"]


def test_the_least_extent_of_a_body_is_a_part_of_its_largest():
    """A rod without thickness: 1e-6 of the square of its length."""
    thin = 'ixx="1e-9" iyy="0.03" izz="0.03"'
    rod = PRIMITIVES.replace('ixx="0.02" iyy="0.03" izz="0.04"', thin)
    _, sums = principal(dyn.load(rod, check="warn"), 1)
    assert sums.max() == pytest.approx(0.015)
    assert sums.min() == pytest.approx(1e-6 * sums.max())


def test_inertia_ellipsoids_have_the_bodys_inertia():
    """An even ellipsoid of the shown axes has mass and inertia of the body."""
    model = dyn.load(PRIMITIVES)
    (part,) = RobotScene(model).parts(INERTIA)
    pose, sums = principal(model, 1)
    axes2 = 5 * sums  # half axes squared of the ellipsoid with these mean squares
    m = 2.0
    moments = m / 5 * (axes2.sum() - axes2)
    turned = pose[:3, :3] @ np.diag(moments) @ pose[:3, :3].T
    assert turned == pytest.approx(np.diag((0.02, 0.03, 0.04)), abs=1e-12)
    middle = (
        part.triangles.vertices.max(axis=0) + part.triangles.vertices.min(axis=0)
    ) / 2
    assert middle == pytest.approx((0.1, 0, 0), abs=1e-9)
    half = np.ptp(part.triangles.vertices, axis=0) / 2
    assert np.sort(half) == pytest.approx(np.sort(np.sqrt(axes2)), rel=0.02)


OFF_CENTRE = """
<mujoco model="off_centre"><worldbody>
  <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" pos="0.1 0.2 0.3"/>
    <geom type="box" size="0.1 0.2 0.3" mass="1"/>
    <body name="tool" pos="0.5 0 0" euler="10 20 30">
      <joint name="ball" type="ball" pos="-0.1 0.05 0.02"/>
      <geom name="fist" type="sphere" size="0.1" pos="0 0 0.2" mass="1"/>
    </body>
  </body>
</worldbody></mujoco>
"""


def test_a_joint_beside_its_links_origin_turns_the_body_about_itself():
    """An MJCF joint lies where it likes in its link: link and body have frames of their own.

    The point of the link where the joint lies stays; the shapes move with their links,
    by a formula and by the solver forward_kinematics.
    """
    model = dyn.load(OFF_CENTRE)
    scene = RobotScene(model)
    program = dyn.solver("forward_kinematics").build(
        model, frames=["arm", "tool"], engine="plain"
    )
    joint = np.array((0.1, 0.2, 0.3))
    for angle in (0.0, 0.4, -1.1):
        q = scene.start()
        q[0], q[1:] = angle, np.array((0.2, -0.4, 0.1, 0.9)) / np.sqrt(1.02)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        arm, tool = np.asarray(program(q))
        assert arm[:3, :3] == pytest.approx(turn, abs=1e-12)
        assert arm[:3, 3] == pytest.approx(joint + (0, 0, 1) - turn @ joint, abs=1e-12)
        poses = scene.poses(q)
        middles = {
            part.name.split("/")[1]: part.triangles.moved(
                poses[part.body]
            ).vertices.mean(axis=0)
            for part in scene.parts(COLLISION)
        }
        assert middles["arm"] == pytest.approx(arm[:3, 3], abs=1e-9)
        fist = tool @ (0, 0, 0.2, 1)
        assert middles["tool"] == pytest.approx(fist[:3], abs=1e-9)


@pytest.mark.parametrize("name", [*robots.names(), OFF_CENTRE])
def test_bodies_move_by_forward_kinematics(name):
    """Poses of all bodies are those of the solver forward_kinematics, also in batches."""
    model = dyn.load(name)
    scene = RobotScene(model)
    links = {frame.body: link for link, frame in model.frames.items() if frame.body}
    program = dyn.solver("forward_kinematics").build(
        model, frames=list(links.values()), engine="plain"
    )
    q = np.array([model.random(seed) for seed in range(3)])
    poses = scene.poses(q)
    assert poses.shape == (3, model.nb + 1, 4, 4)
    for row, several in zip(q, poses, strict=True):
        for (body, link), frame in zip(links.items(), program(row), strict=True):
            assert several[body] @ pose_of(model.frame(link).X) == pytest.approx(
                np.asarray(frame), abs=1e-12
            )
    assert scene.poses(q[0]) == pytest.approx(poses[0], abs=0)
    assert poses[:, 0] == pytest.approx(np.tile(np.eye(4), (3, 1, 1)), abs=0)


@pytest.mark.parametrize("name", robots.names())
def test_sliders_give_the_position(name):
    """Moving the sliders of every joint kind and reading them again agree, within the limits."""
    scene = RobotScene(dyn.load(name))
    model = scene.model
    assert scene.state(scene.values(scene.start())) == pytest.approx(
        scene.start(), abs=1e-12
    )
    rng = np.random.default_rng(1)
    values = [rng.uniform(x.low, x.high) for x in scene.sliders]
    q = scene.state(values)
    model.require_position(q)
    back = scene.state(scene.values(q))
    assert scene.poses(back) == pytest.approx(scene.poses(q), abs=1e-9)
    for i in model.independent:
        if model.joint[i].nv == 1:
            (x,), v = q[model.q_slices[i]], model.v_slices[i]
            assert model.lower[v][0] <= x <= model.upper[v][0]


def test_one_slider_moves_what_it_carries_alone():
    """The slider of an arm's joint 4 moves bodies 4 to 7 and no other."""
    scene = RobotScene(dyn.load("arm7"))
    values = scene.values(scene.start())
    before = scene.poses(scene.state(values))
    values[3] += 0.3
    after = scene.poses(scene.state(values, 3))
    moved = [i for i in range(8) if np.abs(after[i] - before[i]).max() > 1e-9]
    assert moved == [4, 5, 6, 7]


MIMIC = """
<robot name="gripper"><link name="base"/><link name="left"/><link name="right"/>
  <joint name="a" type="prismatic"><parent link="base"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="5" velocity="1"/></joint>
  <joint name="b" type="prismatic"><parent link="base"/><child link="right"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" effort="5" velocity="1"/><mimic joint="a"/></joint>
</robot>
"""


@pytest.mark.filterwarnings("ignore::dyn_core.errors.ModelWarning")
def test_followers_have_no_slider_and_move_along():
    scene = RobotScene(dyn.load(MIMIC))
    assert [(x.name, x.low, x.high, x.unit) for x in scene.sliders] == [
        ("a", 0.0, 0.04, "m")
    ]
    poses = scene.poses(scene.state([0.03]))
    assert poses[1, 1, 3] == pytest.approx(0.03)
    assert poses[2, 1, 3] == pytest.approx(-0.03)


def test_closed_loops_stay_closed():
    """A slider of a four-bar moves the others with it."""
    model = dyn.load(ROOT / "examples" / "four_bar" / "four_bar.urdf")
    scene = RobotScene(model)
    values = scene.values(scene.start())
    values[0] += 0.2
    q = scene.state(values, 0)
    residual = loop_report(model, q)
    assert np.abs(q - scene.start()).min() > 1e-3
    assert residual.gap < 1e-8
    assert scene.values(q)[0] == pytest.approx(values[0])


def test_a_floating_robot_stands_on_the_ground():
    """The lowest corner of a robot with a floating base is at height zero at first."""
    scene = RobotScene(dyn.load("quadruped"))
    poses = scene.poses(scene.start())
    lowest = min(
        part.triangles.moved(poses[part.body]).vertices[:, 2].min()
        for part in scene.parts()
    )
    assert lowest == pytest.approx(0.0, abs=1e-9)
    assert scene.camera(poses[None]).floor == 0.0


def test_the_camera_sees_parts_beside_one_without_corners():
    """A mesh file may have no triangle; only if no part has corners it sees a cube."""
    scene = RobotScene(dyn.load(PRIMITIVES))
    poses, parts = scene.poses(scene.start())[None], scene.parts()
    void = solids.Triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
    empty = replace(parts[0], name="empty", triangles=void)
    whole, beside = scene.camera(poses), scene.camera(poses, (empty, *parts))
    np.testing.assert_array_equal(beside.target, whole.target)
    assert beside.size == whole.size > 2
    assert scene.camera(poses, [empty]).size == pytest.approx(np.sqrt(3))


def test_robots_without_shapes_are_rods_and_joints():
    """arm7 has no shapes: a joint and something long for each body."""
    model = dyn.load("arm7")
    parts = RobotParts(model).visual()
    assert {part.body for part in parts} == set(range(8))
    assert sum(part.name.startswith("joint/") for part in parts) == 7
    assert all(np.isfinite(part.triangles.vertices).all() for part in parts)


def test_small_shapes_are_shown_beside_rods_wherever_they_are():
    """A box of 2 cm far from its link's origin counted as one of 3 m."""
    box = '<collision><origin xyz="2.9 0 0"/><geometry><box size=".02 .02 .02"/>'
    links = "".join(
        f'<link name="l{k}">{box * (k == 1)}{"</geometry></collision>" * (k == 1)}</link>'
        for k in range(4)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/>'
        f'<child link="l{k}"/><origin xyz="1 0 0"/></joint>'
        for k in range(1, 4)
    )
    robot = dyn.load(f'<robot name="r">{links}{joints}</robot>')
    assert "collision/l1/0" in {part.name for part in RobotParts(robot).visual()}


def test_links_that_nothing_draws_are_named_beside_links_that_are_drawn():
    """A link with mass and no visual was invisible without a word; a frame may be."""
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
    body += 'ixz="0" iyz="0"/></inertial>'
    seen = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
    links = "".join(
        f'<link name="l{k}">{body * (k < 3)}{seen * (k < 2)}</link>' for k in range(4)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/>'
        f'<child link="l{k}"/></joint>'
        for k in range(1, 4)
    )
    parts = RobotParts(dyn.load(f'<robot name="r">{links}{joints}</robot>'))
    assert {part.body for part in parts.visual()} == {0, 1}
    assert [x.split(";")[0] for x in parts.notes] == ["not drawn, without <visual>: l2"]


def test_a_missing_mesh_is_noted_and_something_stands_for_it():
    """The collision shape, else a ball; never a failure."""
    text = PRIMITIVES.replace(
        '<box size="1 2 3"/>', '<mesh filename="package://nowhere/base.stl"/>'
    ).replace('<capsule radius="0.05" length="0.2"/>', '<mesh filename="gone.obj"/>')
    pytest.importorskip("trimesh", reason="trimesh is not installed (extra view)")
    scene = RobotScene(dyn.load(text))
    parts = {part.name: part for part in scene.parts()}
    assert "collision/base/0" in parts
    assert "marker/tip" in parts
    assert any("nowhere" in note and "base" in note for note in scene.notes)
    assert any("gone.obj" in note and "tip" in note for note in scene.notes)


def test_meshes_of_files_have_scale_and_place(tmp_path):
    """An STL and an OBJ, in a package, as big as the file says."""
    trimesh = pytest.importorskip(
        "trimesh", reason="trimesh is not installed (extra view)"
    )
    package = tmp_path / "thing"
    package.mkdir()
    (package / "package.xml").write_text("<package><name>thing</name></package>")
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    box.export(package / "box.stl")
    box.export(package / "box.obj")
    elements = "".join(
        f'<visual><origin xyz="0 0 {k}"/><geometry><mesh filename="{file}" scale="2 1 -1"/></geometry></visual>'
        for k, file in enumerate(("package://thing/box.stl", "thing/box.obj"))
    )
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="base">{elements}</link></robot>')
    scene = RobotScene(dyn.load(path, package_paths=[tmp_path]))
    assert scene.notes == []
    for k, part in enumerate(scene.parts()):
        low, high = _box(part.triangles)
        assert high - low == pytest.approx((2.0, 2.0, 3.0))
        assert (high + low) / 2 == pytest.approx((0, 0, k))
        assert _volume(part.triangles) == pytest.approx(12.0)


COLLADA = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="millimeter" meter="0.001"/><up_axis>Z_UP</up_axis></asset>
  <library_effects><effect id="paint"><profile_COMMON><technique sid="common"><lambert>
    <diffuse><color>1 0.5 0 1</color></diffuse>
  </lambert></technique></profile_COMMON></effect></library_effects>
  <library_materials><material id="orange"><instance_effect url="#paint"/></material>
  </library_materials>
  <library_geometries><geometry id="wedge"><mesh>
    <source id="corners"><float_array id="numbers" count="12">
      0 0 0  300 0 0  0 200 0  0 0 100</float_array>
      <technique_common><accessor source="#numbers" count="4" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/>
        <param name="Z" type="float"/></accessor></technique_common></source>
    <vertices id="places"><input semantic="POSITION" source="#corners"/></vertices>
    <triangles count="4" material="outside">
      <input semantic="VERTEX" source="#places" offset="0"/>
      <p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="all"><node id="part">
    <translate>0 0 50</translate>
    <instance_geometry url="#wedge"><bind_material><technique_common>
      <instance_material symbol="outside" target="#orange"/>
    </technique_common></bind_material></instance_geometry>
  </node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#all"/></scene>
</COLLADA>
"""


def test_a_collada_file_has_unit_colour_and_place(tmp_path):
    """Corners in millimetres, moved by a node of the file, then by the URDF; orange."""
    for library in ("trimesh", "collada"):
        pytest.importorskip(library, reason=f"{library} is not installed (extra view)")
    (tmp_path / "wedge.dae").write_text(COLLADA)
    path = tmp_path / "robot.urdf"
    mesh = '<origin xyz="1 0 0"/><geometry><mesh filename="wedge.dae"/></geometry>'
    path.write_text(
        f'<robot name="r"><link name="base"><visual>{mesh}</visual></link></robot>'
    )
    scene = RobotScene(dyn.load(path))
    (part,) = scene.parts()
    assert scene.notes == []
    low, high = _box(part.triangles)
    assert low == pytest.approx((1.0, 0.0, 0.05))
    assert high == pytest.approx((1.3, 0.2, 0.15))
    assert _volume(part.triangles) == pytest.approx(0.3 * 0.2 * 0.1 / 6)
    assert part.color == pytest.approx((255, 127, 0), abs=1)


def test_a_broken_mesh_is_noted(tmp_path):
    pytest.importorskip("trimesh", reason="trimesh is not installed (extra view)")
    (tmp_path / "bad.stl").write_bytes(b"solid nothing\n\x00\xff" * 7)
    path = tmp_path / "robot.urdf"
    mesh = '<visual><geometry><mesh filename="bad.stl"/></geometry></visual>'
    path.write_text(f'<robot name="r"><link name="base">{mesh}</link></robot>')
    scene = RobotScene(dyn.load(path))
    assert [part.name for part in scene.parts()] == ["marker/base"]
    assert "bad.stl" in scene.notes[0]


def test_the_centre_of_mass_is_that_of_the_solver():
    model = dyn.load("quadruped")
    scene = RobotScene(model)
    q = model.random(3)
    expected = np.asarray(
        dyn.solver("centre_of_mass").build(model, engine="plain")(
            q, np.zeros(18), np.zeros(18)
        )[0]
    )
    assert scene.mass_centre(scene.poses(q)) == pytest.approx(expected, abs=1e-12)
