"""Contact geometry: manifolds of all pairs of shapes, their gaps and features."""

import itertools
import math

import numpy as np
import pytest
from placed_shapes import FAR, HERE, KINDS, UP, pose_at, random_pose, shape_of
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from dyn_core.contact.collision.detection.rounded import along_segment, between_segments
from dyn_core.contact.collision.manifolds import ShapePose, manifold
from dyn_core.model.shapes import (
    Box,
    Capsule,
    Sphere,
)


def _core(shape, pose):
    """Return the columns that span a shape about its centre, and the radius about them."""
    if isinstance(shape, Box):
        return pose.R * (np.array(shape.size) / 2), 0.0
    if isinstance(shape, Capsule):
        return pose.R[:, 2:] * (shape.length / 2), shape.radius
    return np.zeros((3, 0)), shape.radius


def _qp(a, pose_a, b, pose_b):
    """Distance of two cores by least squares within bounds (a QP), less the radii."""
    (A, r_a), (B, r_b) = _core(a, pose_a), _core(b, pose_b)
    M, d = np.hstack([A, -B]), pose_b.p - pose_a.p
    if not M.shape[1]:
        return np.linalg.norm(d) - r_a - r_b, np.linalg.norm(d)
    x = lsq_linear(M, d, bounds=(-1, 1), method="bvls", tol=1e-15).x
    return np.linalg.norm(M @ x - d) - r_a - r_b, np.linalg.norm(M @ x - d)


def _inside(shape, pose, x, slack=0.0):
    """Whether a point lies in a shape that is `slack` larger."""
    y = pose.R.T @ (x - pose.p)
    if isinstance(shape, Box):
        return bool((np.abs(y) <= np.array(shape.size) / 2 + slack).all())
    z = shape.length / 2 if isinstance(shape, Capsule) else 0.0
    y = y - np.array((0, 0, np.clip(y[2], -z, z)))
    return bool(np.linalg.norm(y) <= shape.radius + slack)


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join
)
def test_random_pairs_are_exact_symmetric_and_on_both_surfaces(kinds):
    """Least gap = distance by a QP to 1e-9; a<->b only turns the normal."""
    rng = np.random.default_rng([KINDS.index(kind) for kind in kinds])
    apart = 0
    for _ in range(120):
        a, b = (shape_of(kind, rng) for kind in kinds)
        pose_a, pose_b = random_pose(rng), random_pose(rng)
        contacts = manifold(a, pose_a, b, pose_b, FAR)
        wanted, core = _qp(a, pose_a, b, pose_b)
        gap = min(touch.gap for touch in contacts)
        if core > 1e-6:
            apart += 1
            assert gap == pytest.approx(wanted, abs=1e-9)
        else:
            assert gap <= 1e-9
        for touch in contacts:
            assert np.linalg.norm(touch.normal) == pytest.approx(1.0, abs=1e-12)
            x_a = touch.point + touch.normal * touch.gap / 2
            x_b = touch.point - touch.normal * touch.gap / 2
            if core > 1e-6:
                assert _inside(a, pose_a, x_a, 1e-8)
                assert _inside(b, pose_b, x_b, 1e-8)
        back = manifold(b, pose_b, a, pose_a, FAR)
        assert len(back) == len(contacts)
        for touch in contacts:
            assert (
                min(
                    np.abs(touch.point - other.point).max()
                    + np.abs(touch.normal + other.normal).max()
                    + abs(touch.gap - other.gap)
                    for other in back
                )
                < 1e-8
            )
    assert apart > 40


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join
)
def test_depth_separates(kinds):
    """Moved by its depth along the normal, a is free of b; by 0.9 of it, nowhere."""
    rng = np.random.default_rng(7)
    seen = 0
    while seen < 12:
        a, b = (shape_of(kind, rng) for kind in kinds)
        pose_a, pose_b = random_pose(rng, 0.5), random_pose(rng, 0.5)
        touch = min(manifold(a, pose_a, b, pose_b), key=lambda t: t.gap, default=None)
        if touch is None or touch.gap > -0.05:
            continue
        if kinds == ("capsule", "capsule") and _qp(a, pose_a, b, pose_b)[1] < 1e-6:
            continue  # crossing axes: see the docstring of capsules
        seen += 1
        free = ShapePose(pose_a.R, pose_a.p - touch.normal * touch.gap)
        assert _qp(a, free, b, pose_b)[0] >= -1e-9
        for way in rng.normal(size=(40, 3)):
            step = way / np.linalg.norm(way) * -touch.gap * 0.9
            assert manifold(a, ShapePose(pose_a.R, pose_a.p + step), b, pose_b)


@pytest.mark.parametrize(
    "kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join
)
def test_gap_is_continuous_through_touching(kinds):
    """Moved together along the normal, the gap falls steadily and passes zero."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        a, b = (shape_of(kind, rng) for kind in kinds)
        pose_a, pose_b = random_pose(rng), random_pose(rng)
        first = min(manifold(a, pose_a, b, pose_b, FAR), key=lambda t: t.gap)
        if first.gap < 1e-3:
            continue
        steps = np.linspace(0.0, first.gap * 1.02, 52)
        gaps = [
            min(
                touch.gap
                for touch in manifold(
                    a, ShapePose(pose_a.R, pose_a.p - first.normal * s), b, pose_b, FAR
                )
            )
            for s in steps
        ]
        np.testing.assert_allclose(gaps[:50], first.gap - steps[:50], atol=1e-9)
        assert abs(gaps[50]) < 1e-9  # gap = 0: touching
        assert 1.06 * (first.gap - steps[51]) < gaps[51] < 1e-9  # the least way out


def test_gap_rate_is_the_normal_velocity():
    """d gap/dt = n . (v_a - v_b) at the closest point of every pair."""
    rng, h, checked = np.random.default_rng(5), 1e-6, 0
    for kinds in itertools.product(KINDS, repeat=2):
        for _ in range(15):
            a, b = (shape_of(kind, rng) for kind in kinds)
            pose_a, pose_b = random_pose(rng), random_pose(rng)
            v, w = rng.normal(size=(2, 2, 3))

            def moved(pose, k, t, v=v, w=w):
                turn = Rotation.from_rotvec(w[k] * t).as_matrix()
                return ShapePose(turn @ pose.R, pose.p + v[k] * t)

            now, later = (
                {
                    t.feature: t
                    for t in manifold(
                        a, moved(pose_a, 0, s), b, moved(pose_b, 1, s), FAR
                    )
                }
                for s in (-h, h)
            )
            least = min(manifold(a, pose_a, b, pose_b, FAR), key=lambda t: t.gap)
            if least.feature not in now.keys() & later.keys():
                continue
            v_a = v[0] + np.cross(w[0], least.point - pose_a.p)
            v_b = v[1] + np.cross(w[1], least.point - pose_b.p)
            rate = (later[least.feature].gap - now[least.feature].gap) / (2 * h)
            assert rate == pytest.approx(least.normal @ (v_a - v_b), abs=2e-4)
            checked += 1
    assert checked > 100


def test_closest_points_of_segments_against_samples():
    """No sampled pair of points is closer; parallel and empty segments too."""
    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, 60)
    for k in range(60):
        a, b, c, d = rng.uniform(-1, 1, (4, 3))
        if k % 3 == 0:
            d = c + (b - a) * rng.uniform(-1, 1)
        if k % 10 == 0:
            b = a
        points = np.array(between_segments(*a, *b, *c, *d))
        x, y = points[:3], points[3:]
        one, two = a + t[:, None] * (b - a), c + t[:, None] * (d - c)
        sampled = np.linalg.norm(one[:, None] - two[None], axis=-1).min()
        distance = np.linalg.norm(x - y)
        assert distance <= sampled + 1e-12
        assert sampled - distance < 0.1
        for p, start, end in ((x, a, b), (y, c, d)):
            foot = start + along_segment(*p, *start, *end) * (end - start)
            assert np.linalg.norm(p - foot) < 1e-12


def test_stacked_boxes_touch_at_four_points():
    """Small on large, equal, turned (8), shifted; also when a little apart or tilted."""
    small, large = Box(HERE, (0.5, 0.4, 0.3)), Box(HERE, (2.0, 2.0, 1.0))
    contacts = manifold(small, pose_at(0.1, 0.2, 0.65), large, pose_at(0, 0, 0))
    assert {t.feature for t in contacts} == {("a", k) for k in range(4)}
    for touch in contacts:
        np.testing.assert_allclose(touch.normal, UP, atol=1e-15)
        assert touch.gap == pytest.approx(0.0, abs=1e-15)
        assert touch.point[2] == pytest.approx(0.5)
    for z in (1.0 - 1e-3, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.0 + 1e-3):
        for dx in (0.0, 1e-17, 1e-9, 0.3):
            assert (
                len(manifold(large, pose_at(dx, 0, z), large, pose_at(0, 0, 0), 0.01))
                == 4
            )
    turned = Rotation.from_rotvec(UP * math.pi / 4).as_matrix()
    eight = manifold(large, pose_at(0, 0, 0.99, R=turned), large, pose_at(0, 0, 0))
    assert len({t.feature for t in eight}) == len(eight) == 8
    np.testing.assert_allclose([t.gap for t in eight], -0.01, atol=1e-14)
    tilt = Rotation.from_rotvec((0.01, 0.005, 0)).as_matrix()
    four = manifold(small, pose_at(0, 0, 0.652, R=tilt), large, pose_at(0, 0, 0), 0.02)
    assert {t.feature for t in four} == {("a", k) for k in range(4)}
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) * np.array(
        small.size
    )
    low = np.sort((corners / 2 @ tilt.T)[:, 2])[:4] + 0.652 - 0.5
    np.testing.assert_allclose(sorted(t.gap for t in four), low, atol=1e-4)


def test_edges_touch_at_one_point_and_parallel_edges_at_two():
    """Crossed edges of two boxes: one contact at the crossing."""
    box = Box(HERE, (1.0, 1.0, 1.0))
    x = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    y = Rotation.from_euler("y", 45, degrees=True).as_matrix()
    for gap in (1e-3, 0.0, -1e-3):
        (touch,) = manifold(
            box,
            pose_at(0, 0, math.sqrt(2) + gap, R=x),
            box,
            pose_at(0, 0, 0, R=y),
            0.01,
        )
        assert touch.feature[0] == "edges"
        assert touch.gap == pytest.approx(gap, abs=1e-12)
        np.testing.assert_allclose(touch.normal, UP, atol=1e-12)
        np.testing.assert_allclose(
            touch.point, (0, 0, math.sqrt(0.5) + gap / 2), atol=1e-12
        )
    high = pose_at(0.2, 0, math.sqrt(2) + 1e-3, R=x)
    two = manifold(box, high, box, pose_at(0, 0, 0, R=x), 0.01)
    assert sorted(t.point[0] for t in two) == pytest.approx([-0.3, 0.5])


def test_capsules_touch_at_two_points_when_parallel():
    """Overlap of the axes; crossed ones once; nearly parallel ones stay steady."""
    a, b = Capsule(HERE, 0.1, 1.0), Capsule(HERE, 0.2, 0.6)
    two = manifold(a, pose_at(0.3, 0, 0.1), b, pose_at(0, 0, 0))
    assert {t.feature for t in two} == {("b", 0), ("b", 1)}
    assert sorted(t.point[2] for t in two) == pytest.approx([-0.3, 0.3])
    np.testing.assert_allclose([t.gap for t in two], 0.0, atol=1e-15)
    for x in (0.0, 5.0):
        assert len(manifold(a, pose_at(x + 0.2, 0, 0), a, pose_at(x, 0, 0), 1e-9)) == 2
    assert len(manifold(a, pose_at(0, 0, 1.1), a, pose_at(0, 0, 0), 0.2)) == 1
    cross = Rotation.from_euler("x", 30, degrees=True).as_matrix()
    assert len(manifold(a, pose_at(0.2, 0, 0, R=cross), b, pose_at(0, 0, 0), 1.0)) == 1
    for angle in (1e-12, 1e-7, 1e-4):
        R = Rotation.from_euler("y", angle).as_matrix()
        near = manifold(a, pose_at(0.3, 0, 0.1, R=R), b, pose_at(0, 0, 0), 0.01)
        assert {t.feature for t in near} == {("b", 0), ("b", 1)}


def test_capsule_on_box_and_sphere_inside_box():
    """A lying capsule touches twice; a sphere's centre inside leaves by the near face."""
    box = Box(HERE, (2.0, 1.0, 0.5))
    lying = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    two = manifold(
        Capsule(HERE, 0.1, 0.8), pose_at(0.9, 0, 0.34, R=lying), box, pose_at(0, 0, 0)
    )
    assert {t.feature for t in two} == {("end", 0), ("end", 1)}
    assert sorted(t.point[0] for t in two) == pytest.approx(
        [0.5, 1.0]
    )  # cut at the rim
    np.testing.assert_allclose([t.gap for t in two], -0.01, atol=1e-15)
    (touch,) = manifold(
        Sphere(HERE, 0.1), pose_at(0.1, 0.45, 0.1), box, pose_at(0, 0, 0)
    )
    np.testing.assert_allclose(touch.normal, (0, 1, 0))
    assert touch.gap == pytest.approx(-0.15)
    (touch,) = manifold(
        Sphere(HERE, 0.2), pose_at(0, 0, 0), Sphere(HERE, 0.3), pose_at(0, 0, 0)
    )
    assert touch.gap == pytest.approx(-0.5)


def test_features_persist_under_small_motion():
    """The ids of a resting stack do not change while it trembles."""
    rng = np.random.default_rng(11)
    a, b = Box(HERE, (0.5, 0.4, 0.3)), Box(HERE, (1.0, 1.0, 0.4))
    flush = Box(HERE, (0.5, 0.5, 0.5))
    for one, two, z in ((a, b, 0.35), (flush, flush, 0.5)):
        names = None
        for size in (0.0, 1e-14, 1e-10, 1e-8):
            for _ in range(10):
                turn = Rotation.from_rotvec(rng.normal(size=3) * size).as_matrix()
                pose = ShapePose(turn, np.array((0, 0, z)) + rng.normal(size=3) * size)
                features = {
                    t.feature for t in manifold(one, pose, two, pose_at(0, 0, 0), 1e-3)
                }
                assert names is None or features == names
                names = features
        assert len(names) == 4


def _coal_distance(coal, a, pose_a, b, pose_b):
    """Return coal's signed distance of two shapes, and its normal from b to a."""
    makes = {
        "sphere": lambda x: coal.Sphere(x.radius),
        "box": lambda x: coal.Box(*x.size),
        "capsule": lambda x: coal.Capsule(x.radius, x.length),
        "cylinder": lambda x: coal.Cylinder(x.radius, x.length),
    }
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    shapes = [makes[x.kind](x) for x in (a, b)]
    places = [coal.Transform3s(pose.R, pose.p) for pose in (pose_a, pose_b)]
    gap = coal.distance(shapes[0], places[0], shapes[1], places[1], request, result)
    return float(gap), -np.array(result.normal, float)


def test_own_distances_agree_with_coal():
    """Every own pair against coal's GJK and EPA."""
    coal = pytest.importorskip("coal", reason="coal is not installed")
    rng = np.random.default_rng(6)
    for kinds in itertools.combinations_with_replacement(KINDS, 2):
        for _ in range(25):
            a, b = (shape_of(kind, rng) for kind in kinds)
            pose_a, pose_b = random_pose(rng), random_pose(rng)
            gap, normal = _coal_distance(coal, a, pose_a, b, pose_b)
            ours = min(manifold(a, pose_a, b, pose_b, FAR), key=lambda t: t.gap)
            if ours.gap > 1e-3:
                assert gap == pytest.approx(ours.gap, abs=2e-6)
                np.testing.assert_allclose(normal, ours.normal, atol=1e-2)
            elif kinds != ("capsule", "capsule"):
                assert gap == pytest.approx(ours.gap, rel=0.06, abs=1e-5)
