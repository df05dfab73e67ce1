"""Kinematics by classical accelerations: worked case, exact differences, algebra."""

from fractions import Fraction

import numpy as np
import pytest

from dyn_core.authoring import Motion, Transform, Vector, cross
from dyn_core.engines.graph.trace import trace
from dyn_core.errors import NonFiniteError, ShapeError
from dyn_core.spatial import (
    Force,
    Matrix,
    Pose,
    coriolis_term,
    cross3,
    pair_transforms,
    pair_velocity,
    propagate_acceleration,
    propagate_velocity,
    velocity_product,
)
from dyn_core.spatial import conventions as to
from dyn_core.spatial.lie import exp3

UNIT = np.eye(3)


def _turn(r, p, y):
    R = np.eye(3)
    for axis, angle in ((2, y), (1, p), (0, r)):
        R = R @ np.asarray(exp3(Vector((angle * UNIT[axis]).tolist())), float)
    return R


def _motion(t_order):
    return Motion.of(to.swap_blocks(t_order).tolist())


def _array(x):
    return np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)


def _near(got, wanted, tol=1e-10):
    np.testing.assert_allclose(_array(got), _array(wanted), rtol=tol, atol=0.1 * tol)


def _random(rng):
    R = np.asarray(exp3(Vector(rng.normal(size=3).tolist())), float)
    return Pose(rng.normal(size=3), R)


def _any(rng):
    return Motion.of(rng.normal(size=6).tolist())


A = Pose((0.4, -0.1, 0.7), _turn(0.3, -0.2, 0.5))
AB = Pose((0.2, 0.3, -0.5), _turn(-0.4, 0.6, 0.1))
V_A = _motion((0.1, -0.2, 0.3, 0.4, 0.5, -0.6))
V_AB = _motion((0.05, -0.15, 0.25, 0.7, -0.8, 0.9))
A_A = _motion((1, -2, 3, 0.5, -0.25, 0.75))
A_AB = _motion((0.11, 0.22, -0.33, -0.4, 0.3, 0.2))


def test_worked_case_pose_and_transform():
    """K1: r_b, R_b, X."""
    b = A * AB
    _near(b.r, [0.43159787125, 0.412213774557, 0.358476027655])
    _near(b.R, [[0.678381527387, -0.715048214766, 0.168832916992],
                [0.650437566467, 0.691358471731, 0.314570239685],
                [-0.341656955775, -0.103583368, 0.934099036743]])  # fmt: skip
    turn = [[0.821212374587, 0.0823960743167, -0.564642473395],
            [-0.310736307148, 0.894507940613, -0.321400827006],
            [0.478595009632, 0.439393253382, 0.760184441855]]  # fmt: skip
    shift = [[-0.12819470486, -0.297677692615, -0.229884497513],
             [0.350833722204, 0.219648318975, 0.272122480267],
             [0.447751959247, -0.391334393187, -0.0556998522131]]  # fmt: skip
    wanted = np.block(
        [[np.array(turn), np.array(shift)], [np.zeros((3, 3)), np.array(turn)]]
    )
    _near(to.tazz_transform(AB.transform), wanted)


def test_worked_case_velocity_and_acceleration():
    """K1: V_b, C_ab, A_b, in T order."""
    V = propagate_velocity(AB, V_A, V_AB)
    _near(to.swap_blocks(_array(V)), [
        -0.278396159934, -0.449574519931, 0.352956554215, 0.709222047733,
        -0.706582568149, 0.622691867137])  # fmt: skip
    C = coriolis_term(V_A.ang, AB.r, V_AB.lin, V_AB.ang)
    _near(to.swap_blocks(_array(C)), [0.128, -0.226, -0.103, -0.03, -0.78, -0.67])
    got = propagate_acceleration(AB, V_A, A_A, V_AB, A_AB)
    _near(to.swap_blocks(_array(got)), [
        -0.760154136956, -2.67951375849, 1.94240590664, -0.160764160581,
        -0.76473456971, -0.0744037805754])  # fmt: skip


def _cayley(c):
    """Return a rotation by rational numbers: (1 + [c]) (1 - [c])^-1."""
    x, y, z = c
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], object)
    cc = x * x + y * y + z * z
    one, outer = (
        np.array([[int(i == j) for j in range(3)] for i in range(3)], object),
        np.outer(c, c),
    )
    return ((1 - cc) * one + 2 * outer + 2 * W) / (1 + cc)


def _path(numbers):
    """Return t -> Pose with polynomials of rational numbers."""
    p, c = numbers

    def pose(t):
        r = [x + t * y + t * t * z for x, y, z in p]
        return Pose(
            r, _cayley(np.array([x + t * y + t * t * z for x, y, z in c], object))
        )

    return pose


def _rates(path, h=Fraction(1, 10**12)):
    """Return pose, (w; r'), (alpha; r'') at 0 by exact central differences."""
    back, here, on = path(-h), path(Fraction(0)), path(h)
    r = [np.array(list(x.r), object) for x in (back, here, on)]
    R = [np.array(x.R.rows, object) for x in (back, here, on)]
    v, a = (r[2] - r[0]) / (2 * h), (r[2] - 2 * r[1] + r[0]) / (h * h)
    Rd, Rdd = (R[2] - R[0]) / (2 * h), (R[2] - 2 * R[1] + R[0]) / (h * h)
    w, alpha = (_unskew(x @ R[1].T) for x in (Rd, Rdd))
    pose = Pose(r[1].astype(float), R[1].astype(float))
    return (
        pose,
        Motion(w, v.astype(float).tolist()),
        Motion(alpha, a.astype(float).tolist()),
    )


def _unskew(M):
    M = (M - M.T) / 2
    return [float(M[2, 1]), float(M[0, 2]), float(M[1, 0])]


@pytest.mark.parametrize("seed", range(5))
def test_differences_of_a_path(seed):
    """Inertial rates of b by exact rational differences of the composed pose."""
    rng = np.random.default_rng(seed)
    rational = [[[Fraction(int(k), 50) for k in row] for row in part]
                for part in rng.integers(-40, 41, size=(4, 3, 3))]  # fmt: skip
    a, ab = _path(rational[:2]), _path(rational[2:])
    pose_a, V_a, A_a = _rates(a)
    pose_ab, V_ab, A_ab = _rates(ab)
    pose_b, V_b, A_b = _rates(lambda t: a(t) * ab(t))
    inertial = {"frame": "inertial", "R_a": pose_a.R}
    _near(propagate_velocity(pose_ab, V_a, V_ab, **inertial), V_b, 1e-12)
    got = propagate_acceleration(pose_ab, V_a, A_a, V_ab, A_ab, **inertial)
    _near(got, A_b, 1e-12)
    to_a, to_b = (Transform(pose.R.T, Vector.zeros(3)) for pose in (pose_a, pose_b))
    V_here, A_here = to_a @ V_a, to_a @ A_a
    _near(propagate_velocity(pose_ab, V_here, V_ab), to_b @ V_b, 1e-12)
    got = propagate_acceleration(pose_ab, V_here, A_here, V_ab, A_ab)
    _near(got, to_b @ A_b, 1e-12)


def test_as_printed_the_inertial_form_is_wrong():
    """Erratum E1: with the angular acceleration for the velocity it disagrees."""
    inertial = {"frame": "inertial", "R_a": A.R}
    turn = Transform(A.R, Vector.zeros(3))
    V, acc = turn @ V_A, turn @ A_A
    right = propagate_acceleration(AB, V, acc, V_AB, A_AB, **inertial)
    as_printed = coriolis_term(acc.ang, A.R @ AB.r, A.R @ V_AB.lin, A.R @ V_AB.ang)
    good = coriolis_term(V.ang, A.R @ AB.r, A.R @ V_AB.lin, A.R @ V_AB.ang)
    assert np.abs(_array(good - as_printed)).max() > 0.1
    back = (A * AB).turn @ right
    _near(back, propagate_acceleration(AB, V_A, A_A, V_AB, A_AB), 1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_group_axioms(seed):
    """Identity, inverse, associativity; X reverses the order of poses."""
    rng = np.random.default_rng(seed)
    P, Q, S = (_random(rng) for _ in range(3))
    one = Pose.identity()
    for got, wanted in (
        (P * one, P), (one * P, P), (P * P.inverse(), one), (P.inverse() * P, one),
        ((P * Q) * S, P * (Q * S)), (P.inverse().inverse(), P),
        ((P * Q).inverse(), Q.inverse() * P.inverse()), (Pose.of_transform(P.transform), P),
    ):  # fmt: skip
        np.testing.assert_allclose(list(got.r), list(wanted.r), atol=1e-13)
        np.testing.assert_allclose(_array(got.R), _array(wanted.R), atol=1e-13)
    X_P, X_Q = _array(P.transform), _array(Q.transform)
    np.testing.assert_allclose(_array((P * Q).transform), X_Q @ X_P, atol=1e-13)
    np.testing.assert_allclose(
        _array(P.inverse().transform) @ X_P, np.eye(6), atol=1e-13
    )
    np.testing.assert_allclose(
        _array(P.transform.inverse), _array(P.inverse().transform), atol=1e-13
    )
    T = [to.tazz_transform(x.transform) for x in (P, Q, P * Q)]
    np.testing.assert_allclose(T[2], T[1] @ T[0], atol=1e-13)
    V, F = _any(rng), Force.of(rng.normal(size=6).tolist())
    assert abs((P.transform @ F) @ (P.transform @ V) - F @ V) < 1e-13
    t_order = to.tazz_force_transform(P.transform) @ to.tazz_force(list(F))
    _near(to.from_tazz_force(t_order), list(P.transform.T @ F), 1e-13)


def test_nothing_to_add():
    """C = 0 where w_a = 0; its linear part is 0 where b rests at a's origin."""
    zero, x = Vector.zeros(3), Vector((0.3, -0.7, 0.2))
    assert not _array(coriolis_term(zero, x, x, x)).any()
    assert not any(coriolis_term(x, zero, zero, x).lin)


@pytest.mark.parametrize("seed", range(5))
def test_equivalent_to_spatial_acceleration(seed):
    """a_b = X a_a + X(R, 0) (rates of V_ab) + v_b x (relative velocity), RBDA's way."""
    rng = np.random.default_rng(seed)
    pose, V_a, a_a, V_ab, A_ab = (_random(rng), *(_any(rng) for _ in range(4)))
    V_b = propagate_velocity(pose, V_a, V_ab)
    across = pose.turn @ V_ab
    relative = pose.turn @ (A_ab - Motion(Vector.zeros(3), cross3(V_ab.ang, V_ab.lin)))
    a_b = pose.transform @ a_a + relative + cross(V_b, across)
    A_a = Motion.of(to.classical_from_spatial(_array(a_a), _array(V_a)).tolist())
    A_b = propagate_acceleration(pose, V_a, A_a, V_ab, A_ab)
    _near(to.classical_from_spatial(_array(a_b), _array(V_b)), A_b, 1e-12)


def _pair(rng):
    socket, joint, plug = (_random(rng) for _ in range(3))
    V_p, V_jj, Jdot_qd = (_any(rng) for _ in range(3))
    return socket, joint, plug, V_p, V_jj, Jdot_qd


@pytest.mark.parametrize("seed", range(5))
def test_pair_is_four_steps(seed):
    """Across a joint: p -> j -> j' -> c, one propagation for each step."""
    socket, joint, plug, V_p, V_jj, A_jj = _pair(np.random.default_rng(seed))
    rng, zero = np.random.default_rng(seed + 100), Motion.zero()
    A_p = _any(rng)
    V_j = propagate_velocity(socket, V_p, zero)
    V_plug = propagate_velocity(joint, V_j, V_jj)
    V_c = propagate_velocity(plug.inverse(), V_plug, zero)
    _near(pair_velocity(socket, joint, plug, V_p, V_jj), V_c, 1e-12)
    A_j = propagate_acceleration(socket, V_p, A_p, zero, zero)
    A_plug = propagate_acceleration(joint, V_j, A_j, V_jj, A_jj)
    A_c = propagate_acceleration(plug.inverse(), V_plug, A_plug, zero, zero)
    C = velocity_product(
        V_p.ang, socket, joint, V_jj.lin, V_jj.ang, plug, V_c.ang, A_jj
    )
    _near(pair_transforms(socket, joint, plug).X_cp @ A_p + C, A_c, 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_velocity_product_is_rbda_s(seed):
    """C_pc = P c + k_c - X k_p with c = v_c x S qd + (rate of S) qd."""
    socket, joint, plug, V_p, V_jj, Jdot_qd = _pair(np.random.default_rng(seed))
    X_cp, rot = pair_transforms(socket, joint, plug)
    V_c = pair_velocity(socket, joint, plug, V_p, V_jj)
    C = velocity_product(
        V_p.ang, socket, joint, V_jj.lin, V_jj.ang, plug, V_c.ang, Jdot_qd
    )
    turning = Motion(V_jj.ang, Vector.zeros(3))
    c = cross(V_c, rot @ V_jj) + rot @ (Jdot_qd - cross(turning, V_jj))
    six = to.tazz_velocity_product(_array(c), _array(V_c), X_cp, _array(V_p))
    _near(six, to.swap_blocks(_array(C)), 1e-12)
    V = [to.tazz_velocity(_array(x)) for x in (V_c, V_p)]
    back = to.from_tazz_velocity_product(six, V[0], to.tazz_transform(X_cp), V[1])
    _near(back, _array(c), 1e-12)


def test_velocity_product_at_rest_is_zero():
    """No velocities: nothing to add."""
    socket, joint, plug, *_ = _pair(np.random.default_rng(0))
    z = Vector.zeros(3)
    assert not _array(
        velocity_product(z, socket, joint, z, z, plug, z, Motion.zero())
    ).any()


def test_bad_poses():
    """Not finite, not a rotation, a reflection, wrong sizes; mended on request."""
    R = _turn(0.1, 0.2, 0.3)
    with pytest.raises(NonFiniteError):
        Pose((0.0, np.nan, 0.0), R)
    with pytest.raises(NonFiniteError):
        Pose((0.0, 0.0, 0.0), R * np.inf, normalize=True)
    for wrong in (R * 1.0001, -R, np.zeros((3, 3))):
        with pytest.raises(ValueError, match="not a rotation"):
            Pose((0, 0, 0), wrong)
    with pytest.raises(ValueError, match="not a rotation"):
        Pose((0, 0, 0), -R, normalize=True)
    with pytest.raises(ShapeError):
        Pose((0, 0), R)
    with pytest.raises(ShapeError):
        Pose((0, 0, 0), R[:2])
    for r, wrong in (
        ((0, 0, 0), R.ravel()), ((0, 0, 0), 1.0), ((0, 0, 0), None), ((0, 0, 0), [R] * 3),
        (1.0, R), (None, R), (R, R), ("abc", R),
    ):  # fmt: skip
        with pytest.raises(
            ShapeError, match=r"pose: wanted r \(3\) and R \(3, 3\), got"
        ):
            Pose(r, wrong)
    Pose((0, 0, 0), R + 1e-10)
    Pose((0, 0, 0), np.diag([1 + 0.25e-8, 1.0, 1.0]))  # R.T R is 0.5e-8 from 1
    with pytest.raises(ValueError, match="not a rotation"):
        Pose((0, 0, 0), np.diag([1 + 0.75e-8, 1.0, 1.0]))
    bent = R + 1e-3 * np.arange(9).reshape(3, 3)
    mended = Pose((0, 0, 0), bent, normalize=True).R
    np.testing.assert_allclose(_array(mended.T @ mended), np.eye(3), atol=1e-14)
    assert np.abs(_array(mended) - bent).max() < 1e-2
    Pose((0, 0, 0), np.eye(3, dtype=np.float32))
    Pose(np.zeros(3, int), np.eye(3, dtype=int))


def test_frames_by_name():
    """Unknown axes, and R_a where it has no use, are refused."""
    with pytest.raises(ValueError, match="local or inertial"):
        propagate_velocity(AB, V_A, V_AB, frame="world")
    with pytest.raises(ValueError, match="R_a"):
        propagate_velocity(AB, V_A, V_AB, frame="inertial")
    with pytest.raises(ValueError, match="R_a"):
        propagate_acceleration(AB, V_A, A_A, V_AB, A_AB, R_a=A.R)


def test_texts_can_be_traced():
    """The same numbers by a Graph."""

    def algorithm(x):
        pose = Pose(x[:3], [x[3:6], x[6:9], x[9:12]])
        V_a, A_a, V_ab, A_ab = (Motion.of(x[k : k + 6]) for k in (12, 18, 24, 30))
        R_a = (pose * pose.inverse()).R
        inertial = propagate_acceleration(pose, V_a, A_a, V_ab, A_ab, "inertial", R_a)
        V = propagate_velocity(pose, V_a, V_ab)
        C = velocity_product(
            V_a.ang, pose, pose, V_ab.lin, V_ab.ang, pose.inverse(), V.ang, A_ab
        )
        return [*propagate_acceleration(pose, V_a, A_a, V_ab, A_ab), *inertial, *V, *C]

    x = [*AB.r, *_array(AB.R).ravel(), *V_A, *A_A, *V_AB, *A_AB]
    x = [float(value) for value in x]
    graph = trace(algorithm, len(x))
    np.testing.assert_allclose(graph.run(x)[0], algorithm(x), rtol=1e-13, atol=1e-14)
    assert isinstance(AB.R, Matrix)
