"""Joint subspaces against differences of poses, and what they leave to constraints."""

import numpy as np
import pytest

from dyn_core.authoring import Force, ForceSubspace, Motion
from dyn_core.model.joints import Floating, Prismatic, Revolute, Spherical
from dyn_core.spatial.guide import bodies, geometry

h = 1e-5
PITCH = 0.3


def turn(u, angle):
    """Rotation about a unit vector, by Rodrigues' formula."""
    x, y, z = u
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W


def pose(R=None, p=(0.0, 0.0, 0.0)):
    """Homogeneous matrix."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = (np.eye(3) if R is None else R), p
    return T


X, Y, Z = np.eye(3)


def rpy(q):
    return turn(Z, q[2]) @ turn(Y, q[1]) @ turn(X, q[0])


JOINTS = {  # subspace at q, pose at q, coordinates
    "fixed": (lambda q: geometry.fixed(), lambda q: pose(), 0),
    "revolute": (lambda q: geometry.revolute(), lambda q: pose(turn(Z, q[0])), 1),
    "prismatic": (lambda q: geometry.prismatic(), lambda q: pose(p=q[0] * Z), 1),
    "helical": (
        lambda q: geometry.helical(PITCH),
        lambda q: pose(turn(Z, q[0]), PITCH * q[0] * Z), 1),
    "cylindrical": (
        lambda q: geometry.cylindrical(), lambda q: pose(turn(Z, q[0]), q[1] * Z), 2),
    "universal": (
        geometry.universal, lambda q: pose(turn(X, q[0]) @ turn(Y, q[1])), 2),
    "spherical": (lambda q: geometry.spherical(), lambda q: pose(rpy(q)), 3),
    "planar": (
        lambda q: geometry.planar(), lambda q: pose(turn(Z, q[0]), (q[1], q[2], 0)), 3),
    "free": (lambda q: geometry.free(), lambda q: pose(rpy(q), q[3:]), 6),
}  # fmt: skip
ARE_RATES = ("revolute", "prismatic", "helical", "cylindrical", "universal")


def body_twist(path, t=0.0):
    """Velocity of a pose in its own coordinates, by differences."""
    M = np.linalg.inv(path(t)) @ (path(t + h) - path(t - h)) / (2 * h)
    return np.array([M[2, 1], M[0, 2], M[1, 0], *M[:3, 3]])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", JOINTS)
def test_subspace_is_what_the_poses_do(kind, seed):
    """Each rate of the coordinates gives S times something, and all of S occurs."""
    rng = np.random.default_rng(seed)
    subspace, pose_of, r = JOINTS[kind]
    q = rng.uniform(-1, 1, r)
    S = np.asarray(subspace(q), float)
    assert S.shape == (6, r)
    rows = geometry.constraint_rows(S)
    assert rows.shape == (6 - r, 6)
    twists = []
    for qd in np.eye(r):
        v = body_twist(lambda t, qd=qd: pose_of(q + qd * t))
        np.testing.assert_allclose(rows @ v, 0, atol=1e-9)
        twists.append(v)
        if kind in ARE_RATES:
            np.testing.assert_allclose(v, S @ qd, atol=1e-9)
    assert np.linalg.matrix_rank(np.array(twists).reshape(r, 6), tol=1e-6) == r


@pytest.mark.parametrize("kind", JOINTS)
def test_constraint_forces_do_no_work_along_a_path(kind):
    """f_c . v_rel = 0 at each moment; dim S + dim T = 6; f_c has no joint force."""
    rng = np.random.default_rng(7)
    subspace, pose_of, r = JOINTS[kind]
    start, rate, bend = rng.uniform(-0.5, 0.5, (3, r))

    def q(t):
        return start + rate * t + bend * t * t

    for t in np.linspace(0, 1, 5):
        S = subspace(q(t))
        T = geometry.complement(np.asarray(S, float))
        assert T.shape[1] + r == 6
        assert not T.size or np.linalg.matrix_rank(T) == 6 - r
        f_c = T @ rng.normal(size=6 - r)
        v_rel = body_twist(lambda t: pose_of(q(t)), t)
        assert abs(f_c @ v_rel) < 1e-9
        force = Force.of(f_c.tolist())
        np.testing.assert_allclose(bodies.joint_force(S, force), 0, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_axis_through_a_point(seed):
    """A screw about a line moves particles as its axis says, in world coordinates."""
    rng = np.random.default_rng(seed)
    u, P, pitch, qd = rng.normal(size=3), rng.normal(size=3), rng.normal(), 0.7
    s = geometry.screw_axis(u, P, pitch)
    d = u / np.linalg.norm(u)

    def pose_of(q):
        R = turn(d, q)
        return pose(R, P - R @ P + pitch * q * d)

    rate = (
        (pose_of(0.4 + h * qd) - pose_of(0.4 - h * qd))
        / (2 * h)
        @ np.linalg.inv(pose_of(0.4))
    )
    world = [rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]]
    np.testing.assert_allclose(world, list(s * qd), atol=1e-9)
    np.testing.assert_allclose(
        body_twist(lambda t: pose_of(0.4 + qd * t)), list(s * qd), atol=1e-9
    )
    line = geometry.to_screw(s)
    np.testing.assert_allclose(line.direction, d, atol=1e-14)
    np.testing.assert_allclose(np.cross(line.point - P, d), 0, atol=1e-12)
    assert line.pitch == pytest.approx(pitch, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_acceleration_across_a_universal_joint(seed):
    """v x S qd + ring + S qdd against second differences, in fixed coordinates."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-1, 1, (3, 2))
    v1, pose_of = rng.normal(size=6), JOINTS["universal"][1]
    v1[3:] = 0.0

    def carrier(t):
        return pose(turn(v1[:3] / np.linalg.norm(v1[:3]), np.linalg.norm(v1[:3]) * t))

    def relative(t):
        """v2 - v1 along the axes of the world, about its origin: rotations only."""
        now = q + qd * t + qdd * t * t / 2
        R = (carrier(t) @ pose_of(now))[:3, :3]
        S = np.asarray(geometry.universal(now), float)[:3]
        return R @ S @ (qd + qdd * t)

    rate = (relative(h) - relative(-h)) / (2 * h)
    R = pose_of(q)[:3, :3]
    S = geometry.universal(q)
    v2 = Motion.of([*(R.T @ v1[:3]), 0.0, 0.0, 0.0]) + S @ qd
    ring = geometry.universal_ring(q, qd)
    got = bodies.joint_acceleration(v2, S, qd, qdd, ring)
    np.testing.assert_allclose(R @ list(got.ang), rate, atol=1e-8)
    without = bodies.joint_acceleration(v2, S, qd, qdd)
    assert np.abs(np.array(list(got - without))).max() > 1e-3


def test_same_as_the_joints_of_models():
    """The same numbers as the joint kinds that robots have."""
    for mine, theirs in (
        (geometry.revolute(), Revolute()),
        (geometry.prismatic(), Prismatic()),
        (geometry.spherical(), Spherical()),
        (geometry.free(), Floating()),
    ):
        np.testing.assert_array_equal(
            np.asarray(mine, float), np.asarray(theirs.S(theirs.neutral()), float)
        )


def test_what_is_refused():
    """No direction, no numbers, columns that depend on each other, wrong shapes."""
    with pytest.raises(ValueError, match="needs a direction"):
        geometry.screw_axis((0, 0, 0))
    with pytest.raises(ValueError, match=r"P\[1\] is nan"):
        geometry.screw_axis((0, 0, 1), (0, np.nan, 0))
    with pytest.raises(ValueError, match="pitch is inf"):
        geometry.helical(np.inf)
    with pytest.raises(ValueError, match=r"q: wanted shape \(2,\)"):
        geometry.universal((0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match="rank 1, not 2"):
        geometry.constraint_rows(np.ones((6, 2)))
    with pytest.raises(ValueError, match=r"S: wanted shape"):
        geometry.constraint_rows(np.ones((5, 2)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_product_of_forces_with_a_transpose(count):
    """U U.T is the 6x6 matrix of the columns, zero without columns."""
    columns = np.random.default_rng(0).normal(size=(count, 6))
    U = ForceSubspace(map(Force.of, columns.tolist()))
    got = np.asarray(U @ U.T, float)
    np.testing.assert_allclose(got, columns.T @ columns, atol=1e-13)
    with pytest.raises(TypeError, match="lengths differ"):
        U @ ForceSubspace([*U, Force.zero()]).T
