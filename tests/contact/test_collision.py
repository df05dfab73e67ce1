"""Collision detection of all kinds of shapes: machine code, hulls, height fields."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.contact.collision.detection.all_pairs import (
    find_contacts,
    place_shapes,
)
from dyn_core.contact.collision.detection.detection_arrays import (
    allocate_contacts,
    allocate_work,
    relate,
)
from dyn_core.contact.collision.detection.distance import closest_points
from dyn_core.contact.collision.detection.near_pairs import MANY
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.contact.collision.manifolds import ShapePose, manifold
from dyn_core.contact.collision.shape_tables import (
    ShapeTable,
    frame_rows,
    hull_faces,
    pair_table,
)
from dyn_core.engines.machine_code import compiled
from dyn_core.model.material import Material
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from dyn_core.spatial import Transform

HERE = Transform.identity()
UP = np.array((0.0, 0.0, 1.0))
IN_PLACE = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
HULL = Mesh(HERE, "no file")
KINDS = ("sphere", "capsule", "box", "cylinder", "hull")
FAR = 100.0


def _shape(kind, rng):
    """Return a shape and the vertices of its hull, if it is one."""
    if kind == "sphere":
        return Sphere(HERE, rng.uniform(0.1, 0.6)), None
    if kind == "box":
        return Box(HERE, tuple(rng.uniform(0.2, 2.0, 3))), None
    if kind == "hull":
        points = rng.normal(size=(rng.integers(5, 30), 3)) * rng.uniform(0.1, 0.8, 3)
        return HULL, points[ConvexHull(points).vertices]
    made = Capsule if kind == "capsule" else Cylinder
    return made(HERE, rng.uniform(0.1, 0.6), rng.uniform(0.2, 2.0)), None


def _pose(rng, size=1.5):
    R = Rotation.random(random_state=rng).as_matrix()
    return ShapePose(R, rng.uniform(-size, size, 3))


def _place(*xyz, R=None):
    return ShapePose(np.eye(3) if R is None else R, np.array(xyz, float))


def _cube(size=1.0):
    return np.array(list(itertools.product((-size / 2, size / 2), repeat=3)))


def _terrain(rng, count=9):
    """Return a rough height field and a function of its exact signed distance."""
    return HeightField(rng.uniform(-0.2, 0.2, (count, count)), (0.3, 0.4))


def _tables(shapes, poses, world=()):
    """Return tables of shapes, each on its own body, tested with all others."""
    table = ShapeTable()
    for k, (shape, hull) in enumerate(shapes):
        table.add_shape(shape, k + 1, IN_PLACE, hull)
    for surface in world:
        table.add_world(surface)
    number = len(shapes)
    tested = {
        (k, number + j): Material() for j in range(len(world)) for k in range(number)
    }
    tested |= {pair: Material() for pair in itertools.combinations(range(number), 2)}
    rows = [IN_PLACE[None], frame_rows([x.R for x in poses], [x.p for x in poses])]
    return table.shapes(), pair_table(tested), np.concatenate(rows)


def _scene(rng, count=3):
    shapes = [_shape(kind, rng) for kind in KINDS for _ in range(count)]
    return _tables(
        shapes, [_pose(rng) for _ in shapes], [dyn.HalfSpace(), _terrain(rng)]
    )


def test_machine_code_has_the_bits_of_python():
    """Every array is equal, for all kinds of pairs; and indices stay within bounds."""
    rng = np.random.default_rng(0)
    shapes, pairs, poses = _scene(rng, 2)
    results = []
    checked = compiled(find_contacts, checked=True)
    for run in (find_contacts, compiled(find_contacts), checked):
        arrays = allocate_contacts(2000)
        with np.errstate(all="ignore"):
            number = run(
                shapes,
                pairs,
                poses,
                0.1,
                arrays,
                allocate_work(len(shapes[0]), len(pairs[0])),
            )
        results.append((number, arrays))
    number, wanted = results[0]
    assert number > 50
    for other, arrays in results[1:]:
        assert other == number
        for name in arrays._fields:
            np.testing.assert_array_equal(getattr(arrays, name), getattr(wanted, name))


def test_a_distance_beyond_the_reach_is_infinite():
    """But for rounding; one within it has the same bits, whatever the reach is."""
    rng, find, apart = np.random.default_rng(3), compiled(closest_points), 0
    shapes, pairs, poses = _scene(rng, 2)
    work = allocate_work(len(shapes.kind), len(pairs.first))
    place_shapes(shapes, poses, work)
    for a, b in itertools.permutations(range(2 * len(KINDS)), 2):
        relate(work.frames[a], work.frames[b], work.relative[0])
        far = find(shapes, a, b, work, math.inf)
        if far[0] > 0:
            apart += 1
            assert find(shapes, a, b, work, far[0] * (1 - 1e-6))[0] == math.inf
            assert find(shapes, a, b, work, far[0] * (1 + 1e-6)) == far
    assert apart > 30


def test_too_small_arrays_say_how_many_are_needed():
    """A negative number, nothing written beyond, and the same contacts afterwards."""
    shapes, pairs, poses = _scene(np.random.default_rng(1))
    work, find = allocate_work(len(shapes[0]), len(pairs[0])), compiled(find_contacts)
    small = allocate_contacts(3)
    needed = -find(shapes, pairs, poses, 0.1, small, work)
    enough = allocate_contacts(needed)
    assert needed > 3
    assert find(shapes, pairs, poses, 0.1, enough, work) == needed
    np.testing.assert_array_equal(small.gap, enough.gap[:3])
    np.testing.assert_array_equal(small.id, enough.id[:3])
    assert len(set(enough.id.tolist())) == needed


@pytest.mark.parametrize("each", [2, 4])
def test_boxes_about_shapes_lose_no_contact(each):
    """All pairs at once find what each pair alone finds."""
    rng = np.random.default_rng(2)
    shapes = [_shape(kind, rng) for kind in KINDS for _ in range(each)]
    size = 1.2 * each ** (1 / 3)
    for stretched in ((1, 1, 1), (9, 1, 1), (1, 1, 9)):
        poses = [_pose(rng, size) for _ in shapes]
        poses = [ShapePose(x.R, x.p * stretched) for x in poses]
        shape_table, pairs, rows = _tables(shapes, poses)
        arrays = allocate_contacts(4000)
        work = allocate_work(len(shapes), len(pairs.first))
        find = compiled(find_contacts)
        alone = [
            contact.gap
            for a, b in itertools.combinations(range(len(shapes)), 2)
            for contact in manifold(
                shapes[a][0], poses[a], shapes[b][0], poses[b], 0.05,
                (shapes[a][1], shapes[b][1]),
            )
        ]  # fmt: skip
        number = find(shape_table, pairs, rows, 0.05, arrays, work)
        assert number == len(alone) > 0
        np.testing.assert_array_equal(arrays.gap[:number], alone)


@pytest.mark.parametrize("stretched", [(1, 1, 1), (9, 1, 1), (1, 1, 9)])
def test_a_sweep_finds_what_single_tests_find(stretched):
    """Many pairs, half-spaces and fields too, some left out: same contacts and order."""
    rng = np.random.default_rng(3)
    shapes = [_shape(kind, rng) for kind in KINDS for _ in range(13)]
    poses = [_pose(rng, 3.0) for _ in shapes]
    world = [dyn.HalfSpace(), _terrain(rng)]
    find, number = compiled(find_contacts), len(shapes) + 2
    sweep_work = allocate_work(number, 4000)
    for _ in range(2):  # again, with the order of before
        poses = [ShapePose(x.R, x.p * stretched + rng.normal(size=3)) for x in poses]
        shape_table, pairs, rows = _tables(shapes, poses, world)
        both = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        kept = [pair for k, pair in enumerate(both) if k % 9]
        assert len(kept) > MANY + 2 * number
        alone: list[float] = []
        for start in range(0, len(kept), 500):
            few = pair_table(dict.fromkeys(kept[start : start + 500], Material()))
            arrays, work = allocate_contacts(4000), allocate_work(number, 500)
            count = find(shape_table, few, rows, 0.05, arrays, work)
            alone += arrays.gap[:count].tolist()
        tested = pair_table(dict.fromkeys(kept, Material()))
        arrays = allocate_contacts(4000)
        count = find(shape_table, tested, rows, 0.05, arrays, sweep_work)
        assert count > 20
        assert arrays.gap[:count].tolist() == alone
        assert (np.diff(arrays.pair[:count]) >= 0).all()


def _coal_distance(a, hull_a, pose_a, b, hull_b, pose_b):
    """Return coal's signed distance, and its normal from b to a."""
    import coal

    def geometry(shape, hull):
        if hull is not None:
            points = coal.StdVec_Vec3s()
            for point in hull:
                points.append(point)
            return coal.Convex.convexHull(points, True, "Qt")
        if isinstance(shape, Sphere):
            return coal.Sphere(shape.radius)
        if isinstance(shape, Box):
            return coal.Box(*shape.size)
        made = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
        return made(shape.radius, shape.length)

    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    places = [coal.Transform3s(pose.R, pose.p) for pose in (pose_a, pose_b)]
    pair = geometry(a, hull_a), places[0], geometry(b, hull_b), places[1]
    gap = coal.distance(*pair, request, result)
    return gap, -np.array(result.normal)


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, KINDS[3:])), ids="-".join
)
def test_cylinders_and_hulls_agree_with_coal(kinds):
    """Gaps to 1e-8, normals; no depth is larger than coal's, which may miss the least."""
    pytest.importorskip("coal", reason="coal is not installed")
    rng = np.random.default_rng([KINDS.index(kind) for kind in kinds])
    apart, deep = 0, 0
    for trial in range(60):
        (a, hull_a), (b, hull_b) = (_shape(kind, rng) for kind in kinds)
        pose_a, pose_b = (_pose(rng, (0.6, 1.5)[trial % 2]) for _ in range(2))
        contacts = manifold(a, pose_a, b, pose_b, FAR, (hull_a, hull_b))
        gap, normal = _coal_distance(a, hull_a, pose_a, b, hull_b, pose_b)
        least = min(contacts, key=lambda contact: contact.gap)
        if gap > 1e-3:
            apart += 1
            assert least.gap == pytest.approx(gap, abs=1e-8)
            np.testing.assert_allclose(least.normal, normal, atol=1e-3)
        elif gap < -1e-3:
            deep += 1
            assert gap - 1e-8 < least.gap < 0.0
            if "cylinder" not in kinds:
                assert least.gap == pytest.approx(gap, abs=1e-8)
    assert apart > 10 and deep > 10


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, KINDS[3:])), ids="-".join
)
def test_the_depth_of_cylinders_and_hulls_separates(kinds):
    """Moved by its depth a is free of b; by 0.9 of it, in no direction."""
    rng = np.random.default_rng([KINDS.index(kind) for kind in kinds])
    seen = 0
    while seen < 8:
        (a, hull_a), (b, hull_b) = (_shape(kind, rng) for kind in kinds)
        hulls, pose_a, pose_b = (hull_a, hull_b), _pose(rng, 0.4), _pose(rng, 0.4)
        deep = min(
            manifold(a, pose_a, b, pose_b, 0.0, hulls),
            key=lambda contact: contact.gap,
            default=None,
        )
        if deep is None or deep.gap > -0.02:
            continue
        seen += 1
        free = ShapePose(pose_a.R, pose_a.p - deep.normal * deep.gap)
        least = min(c.gap for c in manifold(a, free, b, pose_b, FAR, hulls))
        assert least == pytest.approx(0.0, abs=1e-8)
        for way in rng.normal(size=(20, 3)):
            step = way / np.linalg.norm(way) * -deep.gap * 0.9
            moved = ShapePose(pose_a.R, pose_a.p + step)
            assert manifold(a, moved, b, pose_b, 0.0, hulls)


def _farthest(shape, hull, pose, n):
    """Return the largest n . x over a shape."""
    along, centre = pose.R.T @ n, pose.p @ n
    if hull is not None:
        return (hull @ along).max() + centre
    if isinstance(shape, Sphere):
        return shape.radius + centre
    if isinstance(shape, Box):
        return np.abs(along) @ np.array(shape.size) / 2 + centre
    end = abs(along[2]) * shape.length / 2 + centre
    flat = isinstance(shape, Cylinder)
    return end + shape.radius * (np.hypot(*along[:2]) if flat else 1.0)


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join
)
def test_the_gap_is_the_separation_along_the_normal(kinds):
    """Also of shapes that nearly touch, of parallel and of tiny and huge ones."""
    rng = np.random.default_rng(8)
    for trial in range(24):
        scale = 10.0 ** rng.uniform(-3, 3)
        pairs = [_scaled(*_shape(kind, rng), scale) for kind in kinds]
        poses = [_pose(rng, 1.5 * scale) for _ in pairs]
        if trial % 2:
            turns = rng.integers(0, 4, (2, 3)) * 90
            R = Rotation.from_euler("xyz", turns, degrees=True).as_matrix()
            poses = [ShapePose(R[k], poses[k].p) for k in (0, 1)]
        (a, hull_a), (b, hull_b) = pairs
        for gap in (None, 1e-5, 1e-8, 0.0, -1e-8, -1e-5):
            contacts = manifold(a, poses[0], b, poses[1], FAR * scale, (hull_a, hull_b))
            least = min(contacts, key=lambda contact: contact.gap)
            n = least.normal
            if gap is not None or least.gap > 0.0:
                apart = -_farthest(a, hull_a, poses[0], -n)
                apart -= _farthest(b, hull_b, poses[1], n)
                assert apart == pytest.approx(least.gap, abs=1e-6 * scale)
            if gap is None and least.gap <= 0.0:
                break  # deep: another test
            step = n * (least.gap - (gap or 0.0) * scale)
            poses[0] = ShapePose(poses[0].R, poses[0].p - step)


def _scaled(shape, hull, scale):
    if hull is not None:
        return shape, hull * scale
    if isinstance(shape, Box):
        return Box(HERE, tuple(scale * x for x in shape.size)), None
    if isinstance(shape, Sphere):
        return Sphere(HERE, scale * shape.radius), None
    return type(shape)(HERE, scale * shape.radius, scale * shape.length), None


@pytest.mark.parametrize("decimals", [9, 1])
def test_faces_of_a_hull_cover_it(decimals):
    """Counterclockwise about their normals; their areas sum up to that of Qhull."""
    from scipy.spatial import ConvexHull

    rng = np.random.default_rng(6)
    points = np.round(rng.normal(size=(120, 3)), decimals)
    faces, loops = hull_faces(points)
    area = 0.0
    for (*n, offset), loop in zip(faces, loops, strict=True):
        corners = points[loop]
        assert corners @ n == pytest.approx(offset, abs=1e-6)
        arms = corners - corners[0]
        doubled = np.cross(arms[1:-1], arms[2:]) @ n
        assert (doubled > -1e-12).all()
        area += doubled.sum() / 2
    assert area == pytest.approx(ConvexHull(points).area, rel=1e-9)
    assert len(loops) < 2 * len(points) - 4 or decimals == 9  # some are joined


def test_a_hull_of_eight_corners_is_a_box():
    """Same gaps, normals, and four points on a face; eight when turned."""
    rng = np.random.default_rng(4)
    cube = Box(HERE, (1.0, 1.0, 1.0))
    faces, loops = hull_faces(_cube())
    assert len(faces) == 6 and {len(loop) for loop in loops} == {4}
    for _ in range(40):
        other, hull = _shape(KINDS[rng.integers(3)], rng)
        pose, place = _pose(rng), _pose(rng)
        gaps = [
            min(c.gap for c in manifold(other, pose, b, place, FAR, (hull, points)))
            for b, points in ((cube, None), (HULL, _cube()))
        ]
        assert gaps[1] == pytest.approx(gaps[0], abs=1e-9) or gaps[0] < 0.0
    for turn, wanted in ((0.0, 4), (math.pi / 4, 8)):
        R = Rotation.from_rotvec(UP * turn).as_matrix()
        for z in (0.999, 1.0 + 1e-9, 1.001):
            contacts = manifold(
                HULL,
                _place(0.1, 0.0, z, R=R),
                HULL,
                _place(0, 0, 0),
                0.01,
                (_cube(), _cube()),
            )
            assert len(contacts) == len({c.feature for c in contacts}) == wanted
            for contact in contacts:
                assert contact.gap == pytest.approx(z - 1.0, abs=1e-9)
                np.testing.assert_allclose(contact.normal, UP, atol=1e-9)


def test_every_corner_of_a_face_has_its_own_feature():
    """A large hull on a small one, and below it: the small one's corners touch."""
    for sides in (3, 4, 5, 8):
        angles = np.arange(sides) * 2 * math.pi / sides
        rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        prism = np.array([(*xy, z) for z in (-0.5, 0.5) for xy in rim])
        for big, small in itertools.permutations((3.0, 1.0)):
            contacts = manifold(
                HULL, _place(0, 0, (big + small) / 2), HULL, _place(0, 0, 0), 1e-3,
                (prism * big, prism * small),
            )  # fmt: skip
            assert len({c.feature for c in contacts}) == sides
            xy = sorted(tuple(np.round(c.point[:2], 9)) for c in contacts)
            assert xy == sorted(tuple(np.round(row, 9)) for row in rim + 0.0)


def test_cylinders_stand_and_lie_on_faces():
    """Upright: the rim; lying: two ends; on each other along a line: two points."""
    cylinder, ground = Cylinder(HERE, 0.3, 1.0), Box(HERE, (4.0, 4.0, 1.0))
    for hull in (None, _cube() * (4, 4, 1)):
        floor = ground if hull is None else HULL
        stand = manifold(
            cylinder, _place(0, 0, 1.0), floor, _place(0, 0, 0), 1e-3, (None, hull)
        )
        assert len(stand) == 16
        np.testing.assert_allclose([c.gap for c in stand], 0.0, atol=1e-9)
        radii = [np.hypot(*c.point[:2]) for c in stand]
        np.testing.assert_allclose(radii, 0.3, atol=1e-9)
        lying = Rotation.from_euler("y", 90, degrees=True).as_matrix()
        lie = manifold(
            cylinder,
            _place(0, 0, 0.8, R=lying),
            floor,
            _place(0, 0, 0),
            1e-3,
            (None, hull),
        )
        assert sorted(c.point[0] for c in lie) == pytest.approx([-0.5, 0.5])
    two = manifold(cylinder, _place(0.6, 0, 0.4), cylinder, _place(0, 0, 0), 1e-3)
    assert sorted(c.point[2] for c in two) == pytest.approx([-0.1, 0.5])
    capsule = Capsule(HERE, 0.2, 0.6)
    two = manifold(capsule, _place(0.5, 0, 0.0), cylinder, _place(0, 0, 0), 1e-3)
    assert sorted(c.point[2] for c in two) == pytest.approx([-0.3, 0.3])
    tilt = Rotation.from_euler("x", 0.1).as_matrix()
    tilted = manifold(
        cylinder, _place(0, 0, 1.02, R=tilt), ground, _place(0, 0, 0), 0.1
    )
    lowest = 1.02 - 0.5 * math.cos(0.1) - 0.3 * math.sin(0.1) - 0.5
    assert min(c.gap for c in tilted) == pytest.approx(lowest, abs=1e-9)


def test_features_of_cylinders_and_hulls_last():
    """The ids of resting shapes do not change while they tremble."""
    rng = np.random.default_rng(6)
    hexagon = Rotation.from_rotvec(UP * math.pi / 3)
    rim = np.array([(hexagon**k).apply((0.4, 0, 0)) for k in range(6)])
    prism = np.concatenate([rim - 0.2 * UP, rim + 0.2 * UP])
    shapes = (
        (HULL, prism, 0.2),
        (Cylinder(HERE, 0.3, 0.4), None, 0.2),
        (HULL, _cube(), 0.5),
    )
    floor = Box(HERE, (3.0, 3.0, 1.0))
    for shape, hull, half in shapes:
        names = None
        for size in (0.0, 1e-12, 1e-8, 1e-5):
            for _ in range(10):
                turn = Rotation.from_rotvec(rng.normal(size=3) * size).as_matrix()
                pose = ShapePose(turn, UP * (0.5 + half) + rng.normal(size=3) * size)
                contacts = manifold(
                    shape, pose, floor, _place(0, 0, 0), 1e-3, (hull, None)
                )
                features = {c.feature for c in contacts} - {"closest"}
                assert names is None or features == names
                names = features
        assert len(names) >= 4


DEGENERATE = (
    (Sphere(HERE, 0.0), None),
    (Capsule(HERE, 0.1, 0.0), None),
    (Box(HERE, (1.0, 1.0, 0.0)), None),
    (Box(HERE, (0.0, 0.0, 0.0)), None),
    (Cylinder(HERE, 0.3, 0.0), None),
    (Cylinder(HERE, 0.0, 1.0), None),
    (HULL, np.zeros((1, 3))),
    (HULL, np.array(((0.0, 0, 0), (1, 0, 0)))),
    (HULL, np.array(((0.0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)))),
    (Box(HERE, (1.0, 1.0, 1.0)), None),
    (HULL, _cube()),
)


def test_degenerate_shapes_give_numbers():
    """Points, discs, flat hulls, shapes at one place: unit normals, no NaN."""
    places = (
        _place(0, 0, 0),
        _place(0.1, 0, 0),
        _place(0, 0, 0.5),
        _place(0.3, 0.2, 0.1),
    )
    turned = _place(0, 0, 0, R=Rotation.from_euler("y", 90, degrees=True).as_matrix())
    for (a, hull_a), (b, hull_b) in itertools.product(DEGENERATE, repeat=2):
        for pose in (*places, turned):
            contacts = manifold(a, pose, b, _place(0, 0, 0), FAR, (hull_a, hull_b))
            assert contacts
            for contact in contacts:
                assert np.isfinite([contact.gap, *contact.point]).all()
                assert np.linalg.norm(contact.normal) == pytest.approx(1.0, abs=1e-9)
