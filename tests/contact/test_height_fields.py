"""Height fields and groups of a World: contacts, simulation, what is refused."""

import itertools
import warnings

import numpy as np
import pytest
from contact_bodies import box, free_ball, free_box, joint, link, robot, sphere
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.contact.collision.detection.all_pairs import find_contacts
from dyn_core.contact.collision.detection.detection_arrays import (
    FEATURES,
    allocate_contacts,
    allocate_work,
)
from dyn_core.contact.collision.detection.tops import FIRST
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.contact.collision.shape_tables import ShapeTable, hull_faces, pair_table
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import ModelError
from dyn_core.model.material import Material
from dyn_core.model.shapes import Box, Mesh
from dyn_core.spatial import Transform

FLAT = HeightField(np.zeros((21, 21)), (0.5, 0.5), "flat", (-5.0, -5.0, 0.3))

HERE = Transform.identity()
PLACE = np.concatenate([np.eye(3).ravel(), np.zeros(3)])


def _poses(model, *rows):
    """Return the base's rotation and position, and those of bodies, [R, p] each."""
    R = np.stack([np.eye(3), *(row[0] for row in rows)])
    return R, np.stack([np.zeros(3), *(row[1] for row in rows)])


def _contacts(model, surface, R, p, margin=0.05):
    pairs = ContactPairs(model, [surface], margin)
    return pairs.contacts_from_poses(*_poses(model, (R, np.asarray(p, float))))


def _capsule(radius=0.1, length=0.8):
    entry = {"type": "capsule", "radius": radius, "length": length}
    return robot(
        link("rod", 1.0, (0.1, 0.1, 0.1)),
        joint("free", "floating", "base", "rod"),
        collisions={"rod": [entry]},
    )


def _cylinder(radius=0.3, length=0.5, **extras):
    shape = f'<cylinder radius="{radius}" length="{length}"/>'
    return robot(
        link("can", 1.0, (0.005, 0.005, 0.005), shape),
        joint("free", "floating", "base", "can"),
        **extras,
    )


def _triangles(field):
    """Return the corners of all triangles of a field, (count, 3, 3)."""
    z, (a, b) = np.array(field.heights), field.cell
    x, y = np.meshgrid(np.arange(len(z)) * a, np.arange(len(z[0])) * b, indexing="ij")
    P = np.stack([x, y, z], axis=-1) + field.point
    low, side, up, top = P[:-1, :-1], P[1:, :-1], P[:-1, 1:], P[1:, 1:]
    both = np.stack([low, side, top], -2), np.stack([low, top, up], -2)
    return np.concatenate([part.reshape(-1, 3, 3) for part in both])


def _distance(field, x):
    """Return the distance of a point from the surface: a QP for each triangle near."""
    best = np.inf
    for a, b, c in _triangles(field):
        if np.linalg.norm((a + b + c) / 3 - x) > best + 0.5:
            continue
        # x = a + s (b - a) + t (c - a) with s, t >= 0, s + t <= 1, by two boxes.
        for u, v, w in ((a, b - a, c - b), (b, c - b, a - c), (c, a - c, b - a)):
            del w
            edge = np.clip((x - u) @ v / (v @ v), 0, 1)
            best = min(best, np.linalg.norm(u + edge * v - x))
        M = np.stack([b - a, c - a], axis=1)
        s, t = np.linalg.lstsq(M, x - a, rcond=None)[0]
        if s >= 0 and t >= 0 and s + t <= 1:
            best = min(best, np.linalg.norm(a + M @ (s, t) - x))
    return best


def test_a_level_field_is_a_floor():
    """Every shape: same gaps, points and normals as a half-space, same count."""
    rng = np.random.default_rng(0)
    floor = dyn.HalfSpace("flat", (0.0, 0.0, 0.3))
    for model in (free_ball(), free_box(), _capsule(), _cylinder()):
        for _ in range(40):
            R = Rotation.random(random_state=rng).as_matrix()
            p = rng.uniform((-2, -2, 0.2), (2, 2, 0.9))
            wanted = _contacts(model, floor, R, p)
            contacts = _contacts(model, FLAT, R, p)
            assert [c.id.feature[0] for c in contacts] == [c.id.feature for c in wanted]
            for one, two in zip(contacts, wanted, strict=True):
                assert one.gap == pytest.approx(two.gap, abs=1e-12)
                np.testing.assert_allclose(one.point, two.point, atol=1e-12)
                np.testing.assert_allclose(one.normal, two.normal, atol=1e-12)
                assert (one.body_a, one.body_b) == (1, 0)


def test_a_sloping_field_is_a_slope():
    """Heights of a plane: the gap is the distance from the plane."""
    slope = np.array((0.3, -0.2))
    x = np.arange(30) * 0.2
    heights = slope[0] * x[:, None] + slope[1] * x[None]
    field = HeightField(heights, (0.2, 0.2))
    n = np.array((*-slope, 1.0)) / np.sqrt(1 + slope @ slope)
    rng = np.random.default_rng(1)
    for _ in range(40):
        p = rng.uniform((2, 2, 0.0), (4, 4, 0.0))
        p[2] = slope @ p[:2] + rng.uniform(-0.1, 0.14)
        (contact,) = _contacts(free_ball(r=0.1), field, np.eye(3), p)
        assert contact.gap == pytest.approx(n @ p - 0.1, abs=1e-12)
        np.testing.assert_allclose(contact.normal, n, atol=1e-9)


def test_shapes_touch_a_slope_as_a_half_space():
    """Random poses over a field of one plane: the same least gap to 1e-12."""
    rng = np.random.default_rng(8)
    grid = np.arange(31) * 0.2 - 3.0
    for model in (free_ball(), free_box(), _capsule(), _cylinder()):
        for _ in range(40):
            slope = rng.uniform(-0.5, 0.5, 2)
            heights = slope[0] * grid[:, None] + slope[1] * grid
            field = HeightField(heights, (0.2, 0.2), point=(-3.0, -3.0, 0.0))
            plane = dyn.HalfSpace(normal=(*-slope, 1.0))
            R = Rotation.random(random_state=rng).as_matrix()
            p = np.array((*rng.uniform(-1, 1, 2), 0.0))
            p[2] = slope @ p[:2] + rng.uniform(0.05, 0.7)
            wanted = [c.gap for c in _contacts(model, plane, R, p, 1.0)]
            gaps = [c.gap for c in _contacts(model, field, R, p, 1.0)]
            assert min(gaps) == pytest.approx(min(wanted), abs=1e-12)


def test_a_cylinder_rolls_on_a_level_field():
    """A rolling wheel covers the same way as on a half-space, at the same height."""
    model = _cylinder(0.1, 0.2, materials={"default": {"mu": 0.8}})
    q, qd = [0, 0, 0.1, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], [0, 0, -10.0, 1, 0, 0]
    level = HeightField(np.zeros((31, 31)), (0.1, 0.1), point=(-1.5, -1.5, 0.0))
    ways = [
        dyn.simulate(model, world=world, duration=0.5, q0=q, qd0=qd, period=1e-3)
        for world in ({}, {"half_spaces": [], "height_fields": [level]})
    ]
    assert ways[0].q[-1, 0] == pytest.approx(0.5, abs=2e-3)
    np.testing.assert_allclose(ways[1].q[:, :3], ways[0].q[:, :3], atol=1e-6)


def test_a_wheel_touches_both_sides_of_a_groove_and_a_ridge_once():
    """Each side of a groove at the deepest point against it; on a ridge its edge."""
    x = np.abs(np.arange(-4.0, 5.0)) * 0.5
    groove = HeightField(np.tile(x[:, None], (1, 9)), (0.5, 0.5), point=(-2, -2, 0))
    ridge = HeightField(np.tile(-x[:, None], (1, 9)), (0.5, 0.5), point=(-2, -2, 0))
    wheel = _cylinder(0.1, 0.04)
    rolling = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    sides = _contacts(wheel, groove, rolling, (0, 0.1, 0.1 * np.sqrt(2)), 1e-6)
    np.testing.assert_allclose([c.gap for c in sides], 0.0, atol=1e-12)
    normals = {tuple(np.round(c.normal * np.sqrt(2), 9)) for c in sides}
    assert normals == {(1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)}
    for gap in (0.004, 0.0, -0.004):
        over = _contacts(wheel, ridge, rolling, (0.01, 0.1, 0.1 + gap), 0.02)
        wanted = np.hypot(0.01, 0.1 + gap) - 0.1
        if gap >= 0:
            assert min(c.gap for c in over) == pytest.approx(wanted, abs=1e-9)
        else:
            assert min(c.gap for c in over) < -0.002
        assert len({c.id for c in over}) == len(over)


def test_the_side_of_a_cylinder_touches_a_ridge():
    """A log across a ridge touches between its ends, as a capsule does."""
    x = np.abs(np.arange(-4.0, 5.0)) * 0.5
    ridge = HeightField(np.tile(-x[:, None], (1, 9)), (0.5, 0.5), point=(-2, -2, 0))
    lying = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    over = _contacts(_cylinder(0.1, 0.8), ridge, lying, (0.03, 0.1, 0.11))
    (side,) = (c for c in over if c.id.feature[0] == 10)
    assert side.gap == pytest.approx(0.01, abs=1e-12)
    np.testing.assert_allclose(side.point, (0, 0.1, 0.005), atol=1e-12)


def test_distances_from_a_rough_field_are_exact():
    """The least gap of a ball is the distance from the nearest triangle."""
    rng = np.random.default_rng(2)
    field = HeightField(rng.uniform(-0.3, 0.3, (8, 9)), (0.3, 0.4), point=(-1, -1, 0.2))
    model, seen = free_ball(r=0.2), 0
    for _ in range(60):
        p = rng.uniform((-1.1, -1.1, -0.2), (1.2, 2.3, 1.0))
        contacts = _contacts(model, field, np.eye(3), p, 0.1)
        wanted = _distance(field, p)
        if not contacts:
            below = any(c.gap < 0 for c in _contacts(model, field, np.eye(3), p, 10.0))
            assert wanted > 0.3 - 1e-12 and not below
            continue
        seen += 1
        least = min(c.gap for c in contacts) + 0.2
        assert abs(least) == pytest.approx(wanted, abs=1e-12)
        assert len({c.id for c in contacts}) == len(contacts)
    assert seen > 30


def test_grooves_ridges_borders_and_deep_places():
    """Two contacts in a groove, one on a ridge, none beside the grid; deep ones leave."""
    x = np.abs(np.arange(-4.0, 5.0)) * 0.5
    groove = HeightField(np.tile(x[:, None], (1, 9)), (0.5, 0.5), point=(-2, -2, 0))
    ball = free_ball(r=0.1)
    two = _contacts(ball, groove, np.eye(3), (0, 0.1, 0.1 * np.sqrt(2)), 1e-6)
    assert len(two) == 2
    np.testing.assert_allclose([c.gap for c in two], 0.0, atol=1e-12)
    normals = sorted(tuple(np.round(c.normal, 9)) for c in two)
    half = round(np.sqrt(0.5), 9)
    assert normals == [(-half, 0.0, half), (half, 0.0, half)]
    ridge = HeightField(np.tile(-x[:, None], (1, 9)), (0.5, 0.5), point=(-2, -2, 0))
    lying = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    (over,) = _contacts(_capsule(), ridge, lying, (0, 0.1, 0.11))
    assert over.gap == pytest.approx(0.01, abs=1e-12)
    np.testing.assert_allclose(over.point, (0, 0.1, 0.005), atol=1e-12)
    assert _contacts(ball, FLAT, np.eye(3), (5.2, 0, 0.0)) == []
    (edge,) = _contacts(ball, FLAT, np.eye(3), (5.03, 0, 0.34))
    assert edge.gap == pytest.approx(0.05 - 0.1)
    (deep,) = _contacts(ball, FLAT, np.eye(3), (0.1, 0.2, -1.7))
    assert deep.gap == pytest.approx(-2.1)
    np.testing.assert_allclose(deep.normal, (0, 0, 1), atol=1e-12)


def test_tops_between_corners_touch_faces():
    """A peak below a box and a cylinder: gap and normal of the face; ids differ."""
    z = np.zeros((21, 21))
    z[10, 10], z[13, 12] = 0.2, 0.199
    peaks = HeightField(z, (0.1, 0.1), point=(-1.0, -1.0, 0.0))
    cylinder = robot(
        link("can", 1.0, (1, 1, 1), '<cylinder radius="0.6" length="0.4"/>'),
        joint("free", "floating", "base", "can"),
    )
    tilt = Rotation.from_euler("x", 0.01).as_matrix()
    for model, half in ((free_box(half=(0.6, 0.6, 0.2)), 0.2), (cylinder, 0.2)):
        for R in (np.eye(3), tilt):
            down = -R[:, 2]
            p = np.array((0.05, 0.05, 0.2 + half + 0.004))
            tops = [
                c
                for c in _contacts(model, peaks, R, p, 0.02)
                if c.id.feature[0] == "top"
            ]
            assert [c.id.feature[1] for c in tops] == [10 * 21 + 10, 13 * 21 + 12]
            for contact, (i, j) in zip(tops, ((10, 10), (13, 12)), strict=True):
                top = np.array((i * 0.1 - 1, j * 0.1 - 1, z[i, j]))
                gap = (top - p) @ down - half
                assert contact.gap == pytest.approx(gap, abs=1e-12)
                np.testing.assert_allclose(contact.normal, -down, atol=1e-12)
                np.testing.assert_allclose(
                    contact.point, top - down * gap / 2, atol=1e-12
                )
    plate = free_box(half=(0.6, 0.6, 0.01))
    (sunk,) = (
        c
        for c in _contacts(plate, peaks, np.eye(3), (0.05, 0.05, 0.195), 0.0)
        if c.id.feature == ("top", 220)
    )
    assert sunk.gap == pytest.approx(-0.015)  # out by the lower face, not the upper one
    np.testing.assert_allclose(sunk.normal, (0, 0, 1), atol=1e-12)
    beside = _contacts(free_box(half=(0.6, 0.6, 0.2)), peaks, np.eye(3), (0.95, 0, 0.3))
    assert all(c.id.feature != ("top", 220) for c in beside)


@pytest.mark.parametrize("lean", [0.0, 0.3, np.pi / 2])
def test_a_top_on_the_axis_of_a_cylinder_has_a_normal(lean):
    """Nearest to the side: a unit normal across the axis, up where the cylinder leans."""
    z = np.zeros((21, 21))
    z[10, 10] = 0.5
    peak = HeightField(z, (0.1, 0.1), point=(-1.0, -1.0, 0.0))
    R = Rotation.from_euler("y", lean).as_matrix()
    (top,) = (
        c
        for c in _contacts(_cylinder(0.12, 0.6), peak, R, (0.0, 0.0, 0.5), 0.0)
        if c.id.feature == ("top", 10 * 21 + 10)
    )
    assert top.gap == pytest.approx(-0.12)
    normal = np.array(top.normal)
    assert np.linalg.norm(normal) == pytest.approx(1.0)
    assert normal @ R[:, 2] == pytest.approx(0.0, abs=1e-12)
    assert normal[2] == pytest.approx(np.sin(lean))


def test_a_hull_of_eight_corners_touches_tops_as_a_box():
    """Same contacts on a rough field, but for the numbers of the corners."""
    rng = np.random.default_rng(4)
    field = HeightField(rng.uniform(0.0, 0.2, (15, 15)), (0.1, 0.1))
    corners = np.array(list(itertools.product((-0.3, 0.3), (-0.4, 0.4), (-0.1, 0.1))))
    seen = 0
    for _ in range(10):
        R = Rotation.from_rotvec(rng.normal(size=3) * 0.05).as_matrix()
        pose = np.concatenate(
            [R.ravel(), rng.uniform((0.5, 0.5, 0.2), (0.9, 0.9, 0.3))]
        )
        rows = []
        for shape, hull in (
            (Box(HERE, (0.6, 0.8, 0.2)), None),
            (Mesh(HERE, "x"), corners),
        ):
            table = ShapeTable()
            table.add_shape(shape, 1, PLACE, hull)
            table.add_world(field)
            arrays, work = allocate_contacts(100), allocate_work(2, 1)
            tables = table.shapes(), pair_table({(0, 1): Material()})
            poses = np.stack([PLACE, pose])
            number = compiled(find_contacts)(*tables, poses, 0.02, arrays, work)
            tops = arrays.id[:number] >= FIRST
            seen += tops.sum()
            both = np.column_stack([arrays.gap, arrays.point, arrays.normal])[:number]
            rows.append(both[np.lexsort(np.round(both.T, 9))])
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-9)
    assert seen > 20


def test_a_large_hull_has_ids_of_its_own_pair():
    """Hundreds of vertices on a field: distinct ids, and each names the pair."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(600, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    table = ShapeTable()
    for body in (1, 2):
        table.add_shape(Mesh(HERE, "x"), body, PLACE, points)
    table.add_world(FLAT)
    pairs = pair_table({(0, 2): Material(), (1, 2): Material()})
    arrays, work = allocate_contacts(4000), allocate_work(3, 2)
    poses = np.stack([PLACE, PLACE, PLACE])
    poses[1:, 11] = 1.3  # on the ground: deep in it, a hull has few contacts
    number = compiled(find_contacts)(table.shapes(), pairs, poses, 1.0, arrays, work)
    assert number > 400
    assert len(set(arrays.id[:number].tolist())) == number
    assert (arrays.id[:number] // FEATURES == arrays.pair[:number]).all()
    assert len(hull_faces(points)[0]) > 1000


def test_a_ball_comes_to_rest_in_a_hollow_and_a_box_on_a_level_field():
    """Simulated in a World of a height field alone."""
    r = np.arange(-6, 7) * 0.1
    bowl = HeightField(
        0.5 * (r[:, None] ** 2 + r**2), (0.1, 0.1), point=(-0.6, -0.6, 0)
    )
    world = {"half_spaces": [], "height_fields": [bowl]}
    ball = free_ball(r=0.1)
    start = ball.neutral()
    start[:3] = 0.0, 0.0, 0.3
    run = dyn.simulate(ball, world=world, duration=0.6, q0=start)
    assert run.q[-1, 2] == pytest.approx(0.1, abs=2e-3)
    assert np.abs(run.qd[-1]).max() < 1e-2
    start = free_box().neutral()
    start[2] = 0.6
    level = {"half_spaces": [], "height_fields": [FLAT]}
    run = dyn.simulate(free_box(), world=level, duration=0.4, q0=start)
    assert run.q[-1, 2] == pytest.approx(0.55, abs=1e-4)


def test_a_ball_that_leaves_the_grid_is_in_the_warnings():
    """It falls for ever; one on the grid, or with a half-space below, does not."""
    ball = free_ball(r=0.1)
    q, qd = [0.9, 0, 0.1, 0, 0, 0, 1], [0, 0, 0, 2.0, 0, 0]
    small = HeightField(np.zeros((3, 3)), (1.0, 1.0), point=(-1.0, -1.0, 0.0))
    for floor, speed, falls in (
        ([], 1.0, True),
        ([], 0.0, False),
        ([{"point": [0, 0, -0.5]}], 1.0, False),
    ):
        world = {"half_spaces": floor, "height_fields": [small]}
        velocity = speed * np.array(qd)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = dyn.simulate(ball, world=world, duration=0.6, q0=q, qd0=velocity)
        sentences = [x for x in run.warnings if "link 'ball' has left the grid" in x]
        assert bool(sentences) == falls == any("has left" in str(x) for x in caught)
        assert all("m below its lowest ground" in x for x in sentences)


def test_links_of_a_group_do_not_touch_one_another():
    """Within a group nothing is tested, surfaces of the world too; others are."""
    names = "abcd"
    parts = [link(x, 1.0, (0.1, 0.1, 0.1), sphere(0.1)) for x in names]
    joints = [joint(f"j{x}", "floating", "base", x) for x in names]
    model = robot(*parts, *joints)
    everything = {frozenset(p) for p in itertools.combinations("abcd", 2)}
    grounded = {frozenset((x, "ground")) for x in names}

    def tested(**groups):
        world = dyn.World(groups=groups)
        pairs = ContactPairs(model, world.half_spaces, groups=world.groups)
        return {frozenset(pair) for pair in pairs.links}

    assert tested() == everything | grounded
    assert tested(g=["a", "b"]) == everything - {frozenset("ab")} | grounded
    three = {frozenset(p) for p in itertools.combinations("bcd", 2)}
    assert tested(g=["b", "c", "d"]) == everything - three | grounded
    hover = {frozenset(("a", "ground"))}
    assert tested(g=["a", "ground"]) == everything | grounded - hover
    both = tested(one=["a", "b"], two=["c", "d"])
    assert both == everything - {frozenset("ab"), frozenset("cd")} | grounded
    with pytest.raises(ModelError, match="group 'g': 'x' is no link or surface"):
        tested(g=["a", "x"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"heights": [[0, 0]], "cell": [1, 1]}, "at least 2 rows"),
        ({"heights": [[0, 0], [0]], "cell": [1, 1]}, "at least 2 rows"),
        ({"heights": [[0], [0]], "cell": [1, 1]}, "at least 2 rows"),
        ({"heights": [[0, 0], [0, 0]], "cell": [1, 0]}, "two lengths above 0"),
    ],
)
def test_bad_height_fields_are_refused(data, message):
    """Each says what is wrong."""
    with pytest.raises(ModelError, match=message):
        dyn.World.of({"height_fields": [data]})


def test_names_of_surfaces_differ():
    """A height field may not have the name of a half-space or a link."""
    model = robot(
        link("a", 1.0, (1, 1, 1), box(1, 1, 1)), joint("j", "floating", "base", "a")
    )
    for name in ("a", "ground"):
        field = HeightField(np.zeros((2, 2)), (1.0, 1.0), name)
        with pytest.raises(
            ModelError, match=f"height field '{name}': the name is taken"
        ):
            ContactPairs(model, [dyn.HalfSpace(), field])
