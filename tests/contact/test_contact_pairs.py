"""Shapes of a robot: from files, with materials, and which pairs of them may touch."""

import itertools
import math
import sys

import numpy as np
import pytest
from placed_shapes import FAR, KINDS, UP, pose_at, random_pose, shape_of
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.contact.collision.halfspaces import HalfSpace, candidate_points
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.contact.collision.manifolds import ShapePose, manifold
from dyn_core.contact.collision.pairs import ContactPairs, body_poses, neighbours
from dyn_core.errors import ModelError, NonFiniteError, ShapeError, UnsupportedError
from dyn_core.model.material import Material
from dyn_core.model.shapes import (
    Cylinder,
    Mesh,
    PairRules,
    PlacedShape,
)
from dyn_core.numbers.scalar import Column
from dyn_core.spatial import Transform, Vector

LINK = """<link name="{}"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1"
 izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>{}</link>"""
JOINT = """<joint name="{0}" type="{3}"><parent link="{1}"/><child link="{2}"/>
<origin xyz="{4}"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="1"
 velocity="1"/></joint>"""


def _collision(shape, xyz="0 0 0", rpy="0 0 0"):
    return (
        f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{shape}</geometry>'
        "</collision>"
    )


def _robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


BALL = _collision('<sphere radius="0.1"/>')
CHAIN = (
    LINK.format("a", _collision('<box size="0.1 0.2 0.3"/>', "1 0 0", "0 0 1") + BALL),
    LINK.format("b", BALL),
    LINK.format("c", _collision('<cylinder radius="0.1" length="0.4"/>')),
    LINK.format(
        "d", BALL + _collision('<mesh filename="package://x/m.stl" scale="1 -1 2"/>')
    ),
    JOINT.format("j1", "a", "b", "revolute", "0 0 1"),
    JOINT.format("j2", "b", "c", "fixed", "0 0.5 0"),
    JOINT.format("j3", "c", "d", "revolute", "0 0 1"),
)


def _free(*shapes, **options):
    """Return a robot of free links, one a shape (a <collision> each, or several)."""
    links = [LINK.format(f"l{k}", shape) for k, shape in enumerate(shapes)]
    joints = [
        JOINT.format(f"f{k}", "floor", f"l{k}", "floating", "0 0 0")
        for k in range(len(shapes))
    ]
    return dyn.load_urdf(_robot('<link name="floor"/>', *links, *joints), **options)


def _placed(model, *poses):
    """Return rotations and positions of all bodies: the base, then those given."""
    poses = (pose_at(0, 0, 0), *poses)
    return np.stack([x.R for x in poses]), np.stack([x.p for x in poses])


def test_shapes_are_read_and_follow_merging_lock_chains_and_order():
    """Link, body, place in the body and number, whatever the robot is made of."""
    model = dyn.load_urdf(_robot(*CHAIN))
    rows = [(s.link, s.body, s.shape.kind, s.number) for s in model.shapes]
    assert rows == [
        ("a", 0, "box", 0),
        ("a", 0, "sphere", 1),
        ("b", 1, "sphere", 0),
        ("c", 1, "cylinder", 0),
        ("d", 2, "sphere", 0),
        ("d", 2, "mesh", 1),
    ]
    box, cylinder, mesh = (model.shapes[k] for k in (0, 3, 5))
    assert box.shape.size == (0.1, 0.2, 0.3)
    assert (cylinder.shape.radius, cylinder.shape.length) == (0.1, 0.4)
    assert (mesh.shape.file, mesh.shape.scale) == (
        "package://x/m.stl",
        (1.0, -1.0, 2.0),
    )
    R, p = box.X.pose
    np.testing.assert_allclose(p, (1, 0, 0))
    np.testing.assert_allclose(R, Rotation.from_rotvec(UP).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(cylinder.X.pose[1], (0, 0.5, 0))
    locked = model.lock({"j3": 0.7})
    moved = next(s for s in locked.shapes if s.link == "d")
    assert moved.body == 1
    np.testing.assert_allclose(moved.X.pose[1], (0, 0.5, 1))
    chain = dyn.load_urdf(_robot(*CHAIN), root="a", tip="b")
    assert {s.link for s in chain.shapes} == {"a", "b"}
    again = model.reorder(["j3", "j1"]).shapes
    assert [x[:2] for x in again] == [x[:2] for x in model.shapes]
    assert dyn.load_urdf(_robot(LINK.format("x", ""))).shapes == ()


def test_world_places_agree_with_forward_kinematics():
    """body_poses is the kinematics that solvers have."""
    model = dyn.load_urdf(_robot(*CHAIN), root_joint="floating")
    q = model.random(np.random.default_rng(0))
    R, p = body_poses(model, q)
    names = ("a", "b", "d")
    poses = dyn.solver("forward_kinematics").build(model, frames=names)(q)
    for name, T in zip(names, poses, strict=True):
        i = model.body_of(name)
        np.testing.assert_allclose(np.asarray(T)[:3, :3], R[i], atol=1e-12)
        np.testing.assert_allclose(np.asarray(T)[:3, 3], p[i], atol=1e-12)
    with pytest.raises(dyn.ShapeError, match=rf"wanted shape \({model.nq},\)"):
        body_poses(model, np.tile(q, (2, 1)))


def test_sidecar_adds_and_replaces_shapes():
    """Capsules come by the sidecar; a list adds, replace takes the place."""
    entry = {
        "type": "capsule",
        "radius": 0.05,
        "length": 0.3,
        "xyz": [0, 0, 1],
        "rpy": [0, 1, 0],
    }
    extras = {
        "collisions": {
            "b": [entry],
            "c": {"replace": []},
            "a": {"add": [{"type": "box", "size": [1, 2, 3]}]},
            "d": {"replace": [entry]},
        }
    }
    model = dyn.load_urdf(_robot(*CHAIN), extras=extras)
    kinds = {}
    for s in model.shapes:
        kinds.setdefault(s.link, []).append(s.shape.kind)
    assert kinds == {
        "a": ["box", "sphere", "box"],
        "b": ["sphere", "capsule"],
        "d": ["capsule"],
    }
    capsule = model.shapes[-1].shape
    assert (capsule.radius, capsule.length) == (0.05, 0.3)
    np.testing.assert_allclose(capsule.X.pose[1], (0, 0, 1))


def test_materials_by_link_and_how_they_combine():
    """mu, torsion, rolling: geometric means; restitution: the larger one."""
    extras = {
        "materials": {
            "default": {"mu": 0.4},
            "l1": {"mu": 0.9, "torsion": 0.01, "restitution": 0.5},
        }
    }
    model = _free(BALL, BALL, extras=extras)
    ice = HalfSpace("ice", material=Material(0.0, restitution=0.2))
    pairs = ContactPairs(model, (HalfSpace("floor2"), ice))
    materials = {
        (c.id.link_a, c.id.link_b): c.material
        for c in pairs.contacts_from_poses(
            *_placed(model, pose_at(0, 0, 0), pose_at(0.1, 0, 0))
        )
    }
    assert materials["l1", "ice"] == Material(0.0, 0.0, 0.0, 0.5)
    both = materials["l0", "l1"]
    assert both == Material(both.mu, 0.0, 0.0, 0.5)
    assert both.mu == pytest.approx(0.6)
    assert materials["l0", "floor2"].mu == 0.4  # no material: the link's
    assert materials["l1", "floor2"].torsion == 0.01


def test_a_surface_without_a_material_has_friction_of_one():
    """The default is mu = 1, no torsion, no rolling, no bounce: links and half-spaces."""
    model = _free(BALL, BALL)
    default = Material(mu=1.0, torsion=0.0, rolling=0.0, restitution=0.0)
    assert Material() == model.material("l0") == default
    pairs = ContactPairs(model, (HalfSpace("ground"),))
    contacts = pairs.contacts_from_poses(
        *_placed(model, pose_at(0, 0, 0), pose_at(0.1, 0, 0))
    )
    assert {c.id.link_b for c in contacts} == {"l1", "ground"}
    assert all(c.material == default for c in contacts)


def test_pair_filters():
    """Neighbours and one body are off; allow, deny and * decide otherwise."""
    parts = [LINK.format(x, BALL) for x in "abcd"]
    joints = [
        JOINT.format(f"j{x}{y}", x, y, "revolute", "0 0 1")
        for x, y in ("ab", "bc", "cd")
    ]

    def tested(**rules):
        extras = {"pairs": rules} if rules else None
        pairs = ContactPairs(dyn.load_urdf(_robot(*parts, *joints), extras=extras))
        return {"".join(pair) for pair in pairs.links}

    ground = {"bground", "cground", "dground"}  # the base is fixed: never tested
    assert tested() == {"ac", "ad", "bd"} | ground
    assert tested(allow=[["a", "b"]]) == {"ab", "ac", "ad", "bd"} | ground
    assert tested(deny=[["a", "c"], ["d", "world"]]) == {"ad", "bd"} | ground - {
        "dground"
    }
    assert tested(deny=[["a", "*"]]) == {"bd"} | ground
    assert tested(deny=[["*", "*"]], allow=[["a", "d"]]) == {"ad"} | ground
    assert tested(deny=[["*", "world"]]) == {"ac", "ad", "bd"}
    assert tested(allow=[["*", "*"]]) == {"ab", "ac", "ad", "bc", "bd", "cd"} | ground
    assert PairRules().decision("a", "b") is None
    fixed = [*joints[:1], JOINT.format("w", "b", "c", "fixed", "0 0 1"), joints[2]]
    pairs = ContactPairs(dyn.load_urdf(_robot(*parts, *fixed)), world=())
    assert {"".join(pair) for pair in pairs.links} == {"ad"}
    assert neighbours(_free(BALL, BALL)) == frozenset()
    driven = dyn.load_urdf(_robot(*parts, *joints)).drive(
        "jbc", lambda t: (None, (t, 0.0, 0.0))
    )
    assert frozenset((1, 3)) in neighbours(driven)


def test_box_on_a_plane_touches_with_four_corners_and_with_eight_when_deep():
    """No corner is missing; gaps are exact on a slope."""
    model = _free(_collision('<box size="1 0.8 0.5"/>'))
    theta = 0.35
    n = np.array((math.sin(theta), 0, math.cos(theta)))
    slope = HalfSpace("slope", (0.0, 0.0, 0.1), tuple(3 * n))
    pairs = ContactPairs(model, (slope,), margin=1e-6)
    R = Rotation.from_euler("y", theta).as_matrix()
    rest = n * 0.25 + (0, 0, 0.1)
    contacts = pairs.contacts_from_poses(*_placed(model, ShapePose(R, rest)))
    assert [c.id.feature for c in contacts] == [0, 1, 2, 3]
    for contact in contacts:
        assert contact.gap == pytest.approx(0.0, abs=1e-15)
        assert (contact.body_a, contact.body_b) == (1, 0)
        np.testing.assert_allclose(contact.normal, n, atol=1e-15)
    deep = pairs.contacts_from_poses(*_placed(model, ShapePose(R, rest - 0.6 * n)))
    assert [c.id.feature for c in deep] == list(range(8))
    np.testing.assert_allclose(sorted(c.gap for c in deep), [-0.6] * 4 + [-0.1] * 4)
    assert (
        pairs.contacts_from_poses(*_placed(model, ShapePose(R, rest + 1e-3 * n))) == []
    )


@pytest.mark.parametrize("kind", (*KINDS, "cylinder"))
def test_half_space_gaps_against_samples_and_text(kind):
    """Least gap = least of the surface's points; candidate_points says the same."""
    rng = np.random.default_rng(4)
    turns = rng.normal(size=(4000, 3))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    round_ = np.linspace(0, 2 * math.pi, 4000)
    for k in range(20):
        shape = shape_of(kind, rng)
        if kind == "box":
            text = f'<box size="{" ".join(map(str, shape.size))}"/>'
            surface = np.sign(turns) * np.array(shape.size) / 2
        elif kind == "cylinder":
            text = f'<cylinder radius="{shape.radius}" length="{shape.length}"/>'
            rim = np.stack([np.cos(round_), np.sin(round_)], 1) * shape.radius
            ends = np.sign(turns[:, 2:]) * shape.length / 2
            surface = np.hstack([rim, ends])
        else:
            text, surface = None, turns * shape.radius
            if kind == "capsule":
                surface = surface + np.sign(turns[:, 2:]) * UP * shape.length / 2
        entry = {"type": kind, "radius": shape.radius} if text is None else None
        if kind == "capsule":
            entry["length"] = shape.length
        offset = "0.1 0.2 -0.3", "0.5 -0.2 1"
        if text is None:
            entry |= {
                key: [float(x) for x in part.split()]
                for key, part in zip(("xyz", "rpy"), offset, strict=True)
            }
            model = _free("", extras={"collisions": {"l0": [entry]}})
        else:
            model = _free(_collision(text, *offset))
        pose = random_pose(rng)
        if k == 0:  # upright
            pose = ShapePose(np.asarray(model.shapes[0].X.E, float), pose.p)
        plane = HalfSpace("plane", tuple(rng.normal(size=3)), tuple(rng.normal(size=3)))
        if k == 0:
            plane = HalfSpace("plane", (0.0, 0.1, 0.2))
        n, origin = np.array(plane.normal), np.array(plane.point)
        contacts = ContactPairs(model, (plane,), margin=FAR).contacts_from_poses(
            *_placed(model, pose)
        )
        R, p = (np.asarray(x, float) for x in model.shapes[0].X.pose)
        world = (surface @ R.T + p) @ pose.R.T + pose.p
        sampled = ((world - origin) @ n).min()
        least = min(c.gap for c in contacts)
        assert least == pytest.approx(sampled, abs=3e-3)
        assert least <= sampled + 1e-12
        points = candidate_points(model.shapes[0], tuple(pose.R.T @ n))
        assert [c.id.feature for c in contacts] == list(range(len(points)))
        for contact, (x, radius) in zip(contacts, points, strict=True):
            gap = n @ (pose.R @ np.asarray(x, float) + pose.p - origin) - radius
            assert contact.gap == pytest.approx(gap, abs=1e-12)
            surface_point = contact.point - n * contact.gap / 2
            assert n @ (surface_point - origin) == pytest.approx(0.0, abs=1e-12)


def test_candidate_points_are_texts():
    """Symbols go through: a column of normals gives a column of deepest points."""
    rng = np.random.default_rng(8)
    X = Transform.of_pose(np.eye(3), (0.1, 0.0, 0.0))
    placed = PlacedShape("l", 1, X, Cylinder(X, 0.2, 0.6), 0)
    normals = rng.normal(size=(5, 3))
    normals[0] = UP
    columns = candidate_points(placed, [Column(c) for c in normals.T])
    for row, n in enumerate(normals):
        single = candidate_points(placed, tuple(n))
        for (x, _), (y, _) in zip(columns, single, strict=True):
            values = [c.values[row] if isinstance(c, Column) else c for c in x]
            np.testing.assert_allclose(values, np.asarray(y, float), atol=1e-15)
    for kind, count in (("sphere", 1), ("capsule", 2), ("box", 8)):
        shape = shape_of(kind, rng)
        points = candidate_points(PlacedShape("l", 1, X, shape, 0))
        assert len(points) == count
        assert all(isinstance(x, Vector) for x, _ in points)
    with pytest.raises(UnsupportedError, match="link 'l'.*normal"):
        candidate_points(placed)


def test_contact_ids_persist_and_name_both_links():
    """Two boxes on a floor: four and four, the same ids after a small motion."""
    box = _collision('<box size="0.4 0.4 0.2"/>')
    model = _free(box, box)
    pairs = ContactPairs(model, margin=1e-3)
    first = pairs.contacts_from_poses(
        *_placed(model, pose_at(0, 0, 0.1), pose_at(0.02, 0.01, 0.3))
    )
    assert [(c.id.link_a, c.id.link_b) for c in first] == (
        [("l0", "ground")] * 4 + [("l0", "l1")] * 4
    )
    assert len({c.id for c in first}) == 8
    last = first[-1]
    assert (last.body_a, last.body_b) == (1, 2)
    np.testing.assert_allclose(last.normal, -UP, atol=1e-14)  # from l1 into l0
    turn = Rotation.from_rotvec((1e-4, -2e-4, 1e-4)).as_matrix()
    moved = pose_at(0, 0, 0.1001, R=turn), pose_at(0.0201, 0.01, 0.3003, R=turn)
    assert [c.id for c in pairs.contacts_from_poses(*_placed(model, *moved))] == [
        c.id for c in first
    ]
    q = [0, 0, 0.1, 0, 0, 0, 1, 0.02, 0.01, 0.3, 0, 0, 0, 1]
    assert [c.id for c in pairs.contacts(q)] == [c.id for c in first]


def test_broad_phase_changes_nothing():
    """Random heaps: all contacts of all pairs are found."""
    rng = np.random.default_rng(9)
    model = _free(*[_collision('<box size="0.5 0.4 0.3"/>')] * 6)
    pairs = ContactPairs(model, world=(), margin=0.05)
    for _ in range(10):
        poses = [random_pose(rng, 0.6) for _ in range(6)]
        identifiers = {c.id for c in pairs.contacts_from_poses(*_placed(model, *poses))}
        box = model.shapes[0].shape
        wanted = {
            (f"l{i}", 0, f"l{j}", 0, t.feature)
            for i, j in itertools.combinations(range(6), 2)
            for t in manifold(box, poses[i], box, poses[j], 0.05)
        }
        assert {tuple(x) for x in identifiers} == wanted
        assert wanted


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('<sphere radius="-1"/>', "link 'x': <collision> 1: <sphere>: size -1.0"),
        ('<box size="1 -2 1"/>', "link 'x': <collision> 1: <box>.*not negative"),
        ('<cylinder radius="nan" length="1"/>', "link 'x'.*<cylinder>"),
        ('<mesh filename="m.stl" scale="1 0 1"/>', "link 'x'.*<mesh>: scale"),
    ],
)
def test_bad_collision_elements_are_refused(shape, message):
    """The error names the link and the element."""
    with pytest.raises(ModelError, match=message) as caught:
        dyn.load_urdf(_robot(LINK.format("x", _collision(shape))), check="error")
    assert caught.value.element == "x"


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"collisions": {"nope": []}}, "no link is called 'nope'; valid: a, b"),
        ({"collisions": {"a": {"add": [], "replace": []}}}, "add or replace"),
        ({"materials": {"q": {"mu": 1}}}, "no link is called 'q'.*default"),
        ({"pairs": {"allow": [["a", "z"]]}}, "no link is called 'z'"),
        ({"pairs": {"deny": [["a", "a"]]}}, "'a' twice"),
        (
            {"pairs": {"deny": [["a", "b"]], "allow": [["b", "a"]]}},
            "a and b are allowed",
        ),
    ],
)
def test_bad_sidecar_entries_are_refused(extras, message):
    """The error says which entry, and what would be valid."""
    with pytest.raises(ModelError, match=message):
        dyn.load_urdf(_robot(*CHAIN), extras=extras)


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "0.5", None, True])
@pytest.mark.parametrize("name", ["mu", "torsion", "rolling", "restitution"])
def test_materials_are_checked_as_those_of_files(name, wrong):
    """A friction that is not a number made a contact without friction, in silence."""
    with pytest.raises(ModelError, match=f"material: {name} is .*; valid: a"):
        Material(**{name: wrong})
    with pytest.raises(
        ModelError, match="material: restitution is 1.5; valid: a number from"
    ):
        Material(restitution=1.5)


def test_bad_worlds_and_positions_are_refused():
    """Half-spaces without direction, taken names, negative margins, NaN, sizes."""
    model = _free(BALL)
    with pytest.raises(ModelError, match="'g': normal .* is zero"):
        HalfSpace("g", normal=(0.0, 0.0, 0.0))
    with pytest.raises(
        ModelError, match="'g': point.1. is nan; valid: a finite number"
    ):
        HalfSpace("g", point=(0.0, math.nan, 0.0))
    with pytest.raises(ModelError, match="'l0': the name is taken"):
        ContactPairs(model, (HalfSpace("l0"),))
    for margin in (-1, math.nan, "0.1", None, True, [0.1]):
        with pytest.raises(ModelError, match="margin is .*; valid: a"):
            ContactPairs(model, margin=margin)
    for groups in ({"g": 5}, {"g": "l0"}, [("l0",)]):
        with pytest.raises(dyn.DynError, match="groups.* is .*; valid: a"):
            ContactPairs(model, groups=groups)
    pairs = ContactPairs(model)
    R, p = _placed(model, pose_at(0, 0, 0))
    with pytest.raises(NonFiniteError, match="p: a body's pose"):
        pairs.contacts_from_poses(R, p * math.nan)
    with pytest.raises(ShapeError, match="R: wanted"):
        pairs.contacts_from_poses(R[:1], p)
    with pytest.raises(ShapeError, match="q: wanted"):
        pairs.contacts(np.zeros(3))


def test_without_the_extra_only_meshes_are_refused(monkeypatch):
    """A cylinder meets a ball and half-spaces without coal; a mesh file needs it."""
    shapes = _collision('<cylinder radius="0.1" length="1"/>'), BALL
    monkeypatch.setitem(sys.modules, "coal", None)
    between = ContactPairs(_free(*shapes), ()).contacts_from_poses(
        *_placed(_free(*shapes), pose_at(0, 0, 0.5), pose_at(0.19, 0, 0.7))
    )
    assert [c.gap for c in between] == [pytest.approx(-0.01)]
    with pytest.raises(UnsupportedError, match=r"dyn_ros\[collision\]"):
        ContactPairs(_free(_collision('<mesh filename="m.stl"/>')))
    denied = _free(*shapes, extras={"pairs": {"deny": [["l0", "l1"]]}})
    pairs = ContactPairs(denied)
    upright = pairs.contacts_from_poses(
        *_placed(denied, pose_at(0, 0, 0.5), pose_at(0, 0, 9))
    )
    assert len(upright) == 5
    lying = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    two = pairs.contacts_from_poses(
        *_placed(denied, pose_at(0, 0, 0.1 - 1e-9, R=lying), pose_at(0, 0, 9))
    )
    assert {8, 9} <= {c.id.feature for c in two}


CUBE = (
    "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    + "f 1 2 3\nf 2 4 3\nf 5 6 7\nf 6 8 7\nf 1 2 5\nf 2 6 5\nf 3 4 7\nf 4 8 7\n"
    "f 1 3 5\nf 3 7 5\nf 2 4 6\nf 4 8 6\n"
)


def test_meshes_and_other_pairs_by_coal(tmp_path):
    """A cube of a file is the box it looks like; a cylinder meets a box."""
    pytest.importorskip("coal", reason="coal is not installed")
    (tmp_path / "cube.obj").write_text(CUBE)
    mesh = _collision('<mesh filename="package://cubes/cube.obj" scale="1 2 3"/>')
    cylinder = _collision('<cylinder radius="0.5" length="2"/>')
    model = _free(mesh, cylinder)
    pairs = ContactPairs(model, margin=0.2, packages={"cubes": tmp_path})
    contacts = pairs.contacts_from_poses(
        *_placed(model, pose_at(0, 0, 2.1), pose_at(0, 0, 1.0))
    )
    on_ground = [c for c in contacts if c.id.link_b == "ground"]
    assert {c.id.link_a for c in on_ground} == {"l1"}
    between = [c for c in contacts if c.id.link_b == "l1"]
    assert len(between) > 3
    for contact in between:
        assert contact.gap == pytest.approx(0.1, abs=1e-12)
        np.testing.assert_allclose(contact.normal, UP, atol=1e-12)
    low = pairs.contacts_from_poses(*_placed(model, pose_at(0, 0, 0), pose_at(9, 0, 9)))
    assert len(low) == 4
    assert {tuple(np.round(c.point, 9)) for c in low} == set(
        itertools.product((0.0, 1.0), (0.0, 2.0), (0.0,))
    )
    with pytest.raises(ModelError, match="link 'l0'.*no mesh.*packages"):
        ContactPairs(model)
    assert isinstance(model.shapes[0].shape, Mesh)


def _globe(folder):
    """Write a mesh of 400 corners on a sphere of 0.3 m; return the corners."""
    k = np.arange(400)
    z, turn = 1 - (2 * k + 1) / 400, np.pi * (3 - np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    corners = np.round(0.3 * np.stack((r * np.cos(turn), r * np.sin(turn), z), 1), 6)
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += [f"f {a} {b} {c}" for a, b, c in ConvexHull(corners).simplices + 1]
    (folder / "globe.obj").write_text("\n".join(lines))
    return corners


FLAT = HeightField(
    heights=((0.0, 0.0), (0.0, 0.0)), cell=(9.0, 9.0), point=(-4.0, -4.0, 0.0)
)


@pytest.mark.parametrize("ground", [HalfSpace(), FLAT], ids=["plane", "field"])
def test_a_mesh_deep_in_the_ground_has_few_contacts(tmp_path, ground):
    """Deep: the lowest corner and the outermost ones; resting: all that are near."""
    pytest.importorskip("coal", reason="coal is not installed")
    corners = _globe(tmp_path)
    model = _free(_collision('<mesh filename="package://globes/globe.obj"/>'))
    pairs = ContactPairs(model, (ground,), 0.01, packages={"globes": tmp_path})
    for z, some in ((-0.5, 9), (-0.05, 9), (0.2, 9), (0.28, 9), (0.292, 400)):
        contacts = pairs.contacts_from_poses(*_placed(model, pose_at(0.1, 0.2, z)))
        gaps = np.array([c.gap for c in contacts])
        near = corners[:, 2] + z <= 0.01
        assert len(gaps) <= some if some == 9 else len(gaps) == near.sum() > 9
        assert gaps.min() == pytest.approx(corners[:, 2].min() + z, abs=1e-7)
        assert len({c.id for c in contacts}) == len(contacts)
        points = np.array([c.point for c in contacts])
        if near.sum() > some:  # they surround the body
            wide = np.ptp(corners[near, :2], axis=0)
            assert (np.ptp(points[:, :2], axis=0) > 0.9 * wide).all()


def test_flat_parts_overlap_where_they_do():
    """A cylinder over a box's edge, and one across another: points by hand."""
    pytest.importorskip("coal")
    model = _free(
        _collision('<box size="1 1 0.2"/>'),
        _collision('<cylinder radius="0.1" length="0.3"/>'),
    )
    over_edge = [0, 0, 0, 0, 0, 0, 1, 0.5, 0, 0.25, 0, 0, 0, 1]
    pairs = ContactPairs(model, (), margin=0.01)
    x = np.array([c.point[:2] for c in pairs.contacts(over_edge)])
    assert x[:, 0].max() == pytest.approx(0.5, abs=1e-6)
    assert x[:, 0].min() == pytest.approx(0.4, abs=1e-6)
    corners = x[np.abs(x[:, 0] - 0.5) < 1e-6]
    np.testing.assert_allclose(np.ptp(corners[:, 1]), 0.2, atol=1e-6)
    half = np.sqrt(0.5)
    lying = [0, 0, 0, 0, 0, 0, 1, 0.45, 0, 0.2, 0, half, 0, half]
    ends = pairs.contacts(lying)
    np.testing.assert_allclose(sorted(c.point[0] for c in ends), [0.3, 0.5], atol=1e-6)
    np.testing.assert_allclose([c.gap for c in ends], 0, atol=1e-6)
