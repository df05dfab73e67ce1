"""The rules of the 6-D vector guide as laws, and its reference values."""

import itertools

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Force, Motion, RigidInertia, Transform, Vector, cross
from dyn_core.spatial import ArticulatedInertia, Matrix, conventions
from dyn_core.spatial.guide import bodies, geometry, se3
from dyn_core.spatial.lie import (
    dexp3,
    dexp3_inverse,
    exp3,
    quat_exp,
    quat_log,
    quat_matrix,
    tangent_rate,
)

m = Motion.of((0.4, 0.5, -0.6, 0.1, -0.2, 0.3))
f = Force.of((-0.3, 0.8, 0.1, 1.2, -0.7, 0.5))
v = Motion.of((0.7, -0.8, 0.9, 0.05, -0.15, 0.25))
a = Motion.of((0.3, -0.2, 0.1, 1, 2, -1.5))
I = RigidInertia.of(
    2.5, (0.1, -0.2, 0.3),
    ((0.05, 0.004, -0.003), (0.004, 0.06, 0.002), (-0.003, 0.002, 0.07)),
)  # fmt: skip


def _turn(axis, angle):
    return np.asarray(exp3(Vector(angle * np.eye(3)[axis])), float)


K1 = Transform.of_pose(_turn(2, 0.1) @ _turn(1, 0.6) @ _turn(0, -0.4), (0.2, 0.3, -0.5))


def near(got, wanted, tol=1e-10):
    """Compare six numbers or matrices."""
    np.testing.assert_allclose(_array(got), _array(wanted), rtol=tol, atol=0.1 * tol)


def _array(x):
    return np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)


def _random(rng, kind):
    return kind.of(rng.normal(size=6).tolist())


def _pose(rng):
    R = np.asarray(exp3(Vector(rng.normal(size=3).tolist())), float)
    return Transform.of_pose(R, rng.normal(size=3).tolist())


@pytest.mark.parametrize("pair", list(itertools.product((m, f), repeat=2)))
def test_illegal_pairs_are_type_errors(pair):
    """Adding across spaces, products within one, and crossing into the wrong one."""
    x, y = pair
    if type(x) is not type(y):
        for op in ("__add__", "__sub__"):
            with pytest.raises(TypeError):
                getattr(x, op)(y)
        assert x @ y == pytest.approx(y @ x)
    else:
        assert list(x + y) == [2 * u for u in x]
        with pytest.raises(TypeError):
            x @ y
    with pytest.raises(TypeError):
        x * y
    if not isinstance(x, Motion) or not isinstance(y, Motion):
        with pytest.raises(TypeError):
            dyn.authoring.cross_motion(x, y)
    if not isinstance(x, Motion) or not isinstance(y, Force):
        with pytest.raises(TypeError):
            dyn.authoring.cross_force(x, y)


def test_other_mixtures_are_type_errors():
    """Inertias, transforms and vectors do not mix with what they are not."""
    for bad in (
        lambda: I @ f,
        lambda: m + Vector((1.0,) * 6),
        lambda: Vector((1.0,) * 3) + m,
        lambda: Vector((1.0,) * 6) + m,
        lambda: Vector((1.0,) * 6) - f,
        lambda: Vector((1.0,) * 3) + Matrix(((1.0,),) * 3),
        lambda: Vector((1, 2)) * [3],
        lambda: [3] * Vector((1, 2)),
        lambda: Vector((1, 2)) * (3, 4),
        lambda: Vector((1, 2)) / [3, 4],
        lambda: Vector((1, 2)) + 3.0,
        lambda: m * [1],
        lambda: [1] * m,
        lambda: Matrix(((1, 2),)) * [3],
        lambda: Matrix(((1, 2),)) * m,
        lambda: Vector((1, 2)) * "a",
        lambda: K1.T @ m,
        lambda: I + 3,
        lambda: K1.T @ I @ K1.inverse,
        lambda: Motion((1.0, 2.0), (1.0, 2.0, 3.0)),
        lambda: m @ 3.0,
    ):
        with pytest.raises(TypeError):
            bad()


def test_frames_are_checked_where_they_are_named():
    """Labels that differ are refused; no label means no check."""
    here, there = Motion.of(m, "A"), Motion.of(m, "B")
    with pytest.raises(dyn.FrameMismatchError, match="'A' and 'B'"):
        here + there
    with pytest.raises(dyn.FrameMismatchError):
        here @ Force.of(f, "B")
    with pytest.raises(dyn.FrameMismatchError):
        cross(here, there)
    assert (here + m).frame == "A"


def test_k1_transforms():
    """Motion and force in another frame; their product stays 0.63."""
    near(K1 @ m, [0.70846847103, 0.515799943651, -0.0449760345691, -0.165936749167,
                  -0.21951130673, 0.204889681277])  # fmt: skip
    near(K1 @ f, [-0.297312610021, 1.17999504543, 1.06734104422, 0.645456360786,
                  -1.15973954051, 0.646830955118])  # fmt: skip
    near((K1 @ m) @ (K1 @ f), 0.63)
    near(np.asarray(K1)[3], [-0.12819470486, -0.297677692615, -0.229884497513,
                             0.821212374587, 0.0823960743167, -0.564642473395])  # fmt: skip


def test_k2_cross_products():
    """v x m, v x* f, and their duality."""
    near(cross(v, m), [0.03, 0.78, 0.67, -0.095, 0.01, 0.025])
    near(cross(v, f), [-0.7, -0.065, 0.465, 0.23, 0.73, 0.47])
    near(cross(v, m) @ f, 0.5735)
    near(m @ cross(v, f), -0.5735)


def test_k3_inertia():
    """Inertia, momentum, energy, rate, force, bias and weight of one body."""
    near(I, [[0.375, 0.054, -0.078, 0, -0.75, -0.5], [0.054, 0.31, 0.152, 0.75, 0, -0.25],
             [-0.078, 0.152, 0.195, 0.5, 0.25, 0], [0, 0.75, 0.5, 2.5, 0, 0],
             [-0.75, 0, 0.25, 0, 2.5, 0], [-0.5, -0.25, 0, 0, 0, 2.5]])  # fmt: skip
    near(np.linalg.eigvalsh(np.asarray(I)), [
        0.0433728207765, 0.0548493010244, 0.066957856252, 2.5, 2.85668321764,
        2.85813680431])  # fmt: skip
    near(I @ v, [0.1366, -0.0984, -0.0132, -0.025, -0.675, 0.475])
    near(0.5 * (v @ (I @ v)), 0.190605)
    B = K1.inverse
    moved = B.T @ I @ B
    near(np.asarray(moved)[0], [1.48292357592, -0.961521350665, 0.481573920399, 0,
                                -0.851478564574, -1.68325250299])  # fmt: skip
    near(moved, np.asarray(B).T @ np.asarray(I) @ np.asarray(B), 1e-12)
    near(bodies.inertia_rate(I, v)[0], [0.5526, 0.054, -0.055, 0, -0.475, -0.675])
    near(bodies.equation_of_motion(I, v, a),
         [-0.45948, 1.19658, 0.9686, 2.6275, 4.445, -4.3425])  # fmt: skip
    near(bodies.bias_force(I, v), [0.19662, 0.10218, 0.0029, 0.2275, -0.355, -0.4925])
    near(bodies.gravity_force(I, (0, 0, -9.81)), [4.905, 2.4525, 0, 0, 0, -24.525])
    near(bodies.acceleration(I, v, bodies.equation_of_motion(I, v, a)), a)


def test_k5_three_meanings_of_a_derivative():
    """Rates of components in a moving frame and of the vectors themselves."""
    v_A = Motion.of((0.3, -0.5, 0.4, 0.2, 0.1, -0.3))
    m1 = Motion.of((0.2, -0.1, 0.05, 0.6, 0.3, -0.4))
    f1 = Force.of((0.1, 0.2, -0.3, 0.4, -0.5, 0.6))
    own_m, own_f = K1 @ m1, K1 @ f1
    near(own_m, [0.127770743816, -0.167668096841, 0.0897888986809, 0.735937839819,
                 0.272278965254, 0.240800043609])  # fmt: skip
    near(own_f, [0.227623460196, 0.438031023064, 0.249030888048, -0.0514985713604,
                 -0.76438898937, 0.427852042274])  # fmt: skip
    rate_m = own_m - cross(v_A, K1 @ m)
    near(rate_m, [0.311602703992, -0.464548295624, -0.41918531993, 0.600335778127,
                  0.603665903699, 0.357308668585])  # fmt: skip
    near(geometry.derivative_in_frame(rate_m, v_A, K1 @ m), own_m)
    rate_f = own_f - cross(v_A, K1 @ f)
    near(rate_f, [1.51653076712, 1.2001614796, 0.34018222361, -0.191978910006,
                  -0.828522247149, 0.453045724035])  # fmt: skip
    near(geometry.derivative_in_frame(rate_f, v_A, K1 @ f), own_f)


def test_k6_steady_rotation_has_no_acceleration():
    """Spatial acceleration zero, classical acceleration at the origin (4, 2, 0)."""
    steady = [0, 0, 2, 1, -2, 0]
    classical = conventions.classical_from_spatial(np.zeros(6), steady)
    near(classical, [0, 0, 0, 4, 2, 0])
    near(conventions.spatial_from_classical(classical, steady), np.zeros(6))


def test_k8_two_moving_bodies():
    """The two-body articulated-body algorithm by hand, with spatial types."""
    I1 = RigidInertia.of(2, (0.3, -0.1, 0.2), np.diag((0.10, 0.12, 0.08)).tolist())
    I2 = RigidInertia.of(
        1.5,
        (0.9, 0.4, -0.3),
        ((0.05, 0.01, 0), (0.01, 0.06, -0.005), (0, -0.005, 0.04)),
    )
    P, s3 = np.array([0.55, 0.15, 0.05]), np.array([1, 2, 2]) / 3
    s = Motion(s3.tolist(), np.cross(P, s3).tolist())
    C1, force = np.array([0.3, -0.1, 0.2]), np.array([1, -2, 3.0])
    applied = Force((np.cross(C1, force) + [0.4, 0.3, -0.2]).tolist(), force.tolist())
    v1, rate, tau = Motion.of((0.2, -0.3, 0.5, 0.4, 0.1, -0.2)), 0.8, 0.35
    v2 = v1 + s * rate
    g = (0, 0, -9.81)
    p1 = bodies.bias_force(I1, v1, bodies.gravity_force(I1, g))
    p2 = bodies.bias_force(I2, v2, bodies.gravity_force(I2, g))
    c = cross(v1, v2)
    near(c, [-0.426666666667, 0.0266666666667, 0.186666666667, 0.224, -0.290666666667,
             0.146666666667])  # fmt: skip
    U = I2 @ s
    d = s @ U
    I_A = np.asarray(I1) + np.asarray(I2) - np.outer(list(U), list(U)) / d
    p_A = p1 + p2 + I2 @ c + U * ((tau - s @ (I2 @ c + p2)) / d)
    a1 = Motion.of(np.linalg.solve(I_A, list(applied - p_A)))
    near(a1, [0.863607279115, -0.157779963362, -4.14392090307, 1.53236587676,
              0.540484202847, -8.88291774777])  # fmt: skip
    qdd = (tau - s @ (I2 @ (a1 + c) + p2)) / d
    near(qdd, 7.89956321345)
    a2 = a1 + c + s * qdd
    near(a2, [3.07012835026, 5.13526217893, 1.30912123923, 2.28300342433, -2.51502958853,
              -6.23472273017])  # fmt: skip
    near(s @ (I2 @ a2 + p2), tau)


@pytest.mark.parametrize("seed", range(5))
def test_rules_of_use(seed):
    """Invariance, Jacobi, covariance, composition, energy: the rules of section 5."""
    rng = np.random.default_rng(seed)
    x, y, z = (_random(rng, Motion) for _ in range(3))
    w = _random(rng, Force)
    X, Y = _pose(rng), _pose(rng)
    near((X @ x) @ (X @ w), x @ w)
    near(X.inverse @ (X @ x), x)
    near(X.T @ (X @ w), w)
    near((Y @ X) @ x, Y @ (X @ x))
    near(np.asarray(Y @ X), np.asarray(Y) @ np.asarray(X), 1e-12)
    near(X.force_matrix(), geometry.dual(np.asarray(X)), 1e-11)
    near(X @ cross(x, y), cross(X @ x, X @ y))
    near(X @ cross(x, w), cross(X @ x, X @ w))
    near(cross(cross(x, y), z), cross(x, cross(y, z)) - cross(y, cross(x, z)), 1e-9)
    near(cross(x, x), np.zeros(6), 1e-12)
    near(cross(x, y) @ w, -(y @ cross(x, w)))
    near(se3.crm(list(x)) @ list(y), cross(x, y))
    near(se3.crf([list(x)])[0] @ list(w), cross(x, w))
    B = X.inverse
    near((X @ x) @ ((B.T @ I @ B) @ (X @ x)), x @ (I @ x))
    articulated = B.T @ I.articulated() @ B
    near(articulated, B.T @ I @ B, 1e-12)
    near(bodies.inertia_rate(I, x) @ list(x), list(cross(x, I @ x)))
    v2 = x + y * 0.7
    near(cross(v2, y) * 0.7, cross(x, v2))


def test_inertias_add_like_point_clouds():
    """Sum, centre of mass and parallel axes of a cloud of points."""
    rng = np.random.default_rng(0)
    points, masses = rng.normal(size=(8, 3)), rng.uniform(0.1, 1, 8)
    total = RigidInertia.zero()
    for m_k, r in zip(masses, points, strict=True):
        total = total + RigidInertia.of(float(m_k), r.tolist(), (0.0,) * 6)
    c = masses @ points / masses.sum()
    near(total.c, c)
    Ic = sum(k * (d @ d * np.eye(3) - np.outer(d, d)) for k, d in
             zip(masses, points - c, strict=True))  # fmt: skip
    near(total.Ic, Ic)
    near(RigidInertia.of_parameters(total.parameters), total, 1e-14)
    near(RigidInertia.of_matrix(np.asarray(total)), total, 1e-12)
    with pytest.raises(ValueError, match="ArticulatedInertia"):
        RigidInertia.of_matrix(np.diag(np.arange(1.0, 7.0)))
    for wrong in (np.nan, np.inf, -np.inf):  # also where the structure is broken
        for place in ((0, 0), (5, 5), (2, 4)):
            M = np.eye(6)
            M[place] = M[place[::-1]] = wrong
            with pytest.raises(ValueError, match="not the inertia of a rigid body"):
                RigidInertia.of_matrix(M)
            M[0, 5], M[5, 0] = 7.0, 3.0
            with pytest.raises(ValueError, match="not the inertia of a rigid body"):
                RigidInertia.of_matrix(M)
    for shape in ((3, 3), (6, 7), (6,), ()):
        with pytest.raises(ValueError, match="needs a 6x6 matrix"):
            RigidInertia.of_matrix(np.ones(shape))
    for wrong in (
        np.arange(36.0).reshape(6, 6),
        np.diag([np.inf] * 6),
        np.full((6, 6), np.inf),
    ):
        with pytest.raises(
            dyn.DynError, match="symmetric 6x6 matrix of finite numbers"
        ):
            ArticulatedInertia.of_matrix(wrong)
    for kind in (RigidInertia, ArticulatedInertia):
        for wrong in (None, "1", np.eye(6) * 1j):
            with pytest.raises(dyn.ShapeError, match=f"{kind.__name__}: wanted"):
                kind.of_matrix(wrong)


def test_screws():
    """Axis, nearest point, pitch; shifts leave the line; back again."""
    twist = geometry.to_screw(Motion.of((1, 2, 2, 0.3, -0.6, 0.9)))
    near(twist.magnitude, 3)
    near(twist.direction, [1 / 3, 2 / 3, 2 / 3])
    near(twist.point, [0.333333333333, -0.0333333333333, -0.133333333333])
    near(twist.pitch, 0.1)
    wrench = geometry.to_screw(Force.of((0.5, -1, 2, 2, -1, 2)))
    near(wrench.magnitude, 3)
    near(wrench.direction, [2 / 3, -1 / 3, 2 / 3])
    near(wrench.point, [0, -1 / 3, -1 / 6])
    near(wrench.pitch, 2 / 3)
    for s in (m, f, Motion.of((0, 0, 0, 1, 2, 3)), Force.of((1, 2, 3, 0, 0, 0)),
              Motion.zero()):  # fmt: skip
        near(geometry.from_screw(geometry.to_screw(s), type(s)), s, 1e-12)
    shifted = Transform(K1.inverse.E @ K1.E, Vector((0.3, -0.2, 0.7))) @ m
    a_line, b_line = geometry.to_screw(m), geometry.to_screw(shifted)
    near(a_line.pitch, b_line.pitch)
    near(np.cross(b_line.point + [0.3, -0.2, 0.7] - a_line.point, a_line.direction),
         np.zeros(3), 1e-9)  # fmt: skip
    assert geometry.to_screw(Motion.zero()).kind == "zero"
    assert geometry.to_screw(Motion.of((0, 0, 0, 1, 0, 0))).pitch == np.inf


def test_bases_and_complements():
    """Dual bases, constraint forces, and what is refused."""
    rng = np.random.default_rng(1)
    D = rng.normal(size=(6, 6))
    near(D.T @ geometry.dual_basis(D), np.eye(6), 1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        geometry.dual_basis(np.zeros((6, 6)))
    for r in range(1, 6):
        S = rng.normal(size=(6, r))
        T = geometry.complement(S)
        assert T.shape == (6, 6 - r)
        near(T.T @ S, np.zeros((6 - r, r)), 1e-11)
    with pytest.raises(ValueError, match="rank 1, not 2"):
        geometry.complement(np.ones((6, 2)))
    near(se3.unskew(dyn.authoring.skew((1.0, 2.0, 3.0))), [1, 2, 3])
    with pytest.raises(ValueError, match="antisymmetric"):
        se3.unskew(np.eye(3))


def test_free_rotation_keeps_energy_and_momentum():
    """Torque-free body: the value at two seconds, and the invariants."""
    from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble

    body = RigidInertia.of(1.0, (0, 0, 0), np.diag((0.2, 0.3, 0.45)).tolist())
    links = (LinkSpec("base", RigidInertia.zero()), LinkSpec("body", body))
    joints = (JointSpec("ball", "spherical", "base", "body"),)
    model = assemble(Build(Description("top", links, joints), gravity=(0.0, 0.0, 0.0)))
    step = dyn.solver("rk4").build(model)
    q, w = model.neutral(), np.array([1.5, 0.4, -0.8])
    for _ in range(2000):
        q, w = step(q, w, np.zeros(3), 1e-3)
    near(w, [0.967457346915799, -1.27280367775616, -0.500658445886454])
    J = np.array([0.2, 0.3, 0.45])
    near(w @ (J * w), 0.786)
    near((J * w) @ (J * w), 0.234)


def test_exponential_and_logarithm():
    """exp of the reference vector, dexp, their inverses, series and pi."""
    w, lin = Vector((0.4, -0.7, 1.1)), Vector((0.5, 0.3, -0.2))
    R = exp3(w)
    near(np.asarray(R)[0], [0.273847282008857, -0.908945866233156, -0.314364562878865])
    near(
        list(dexp3(w) @ lin), [0.263665711753569, 0.508824897770423, 0.0188283124889714]
    )
    J = np.asarray(dexp3(Vector(-x for x in w)), float)
    near(J[0], [0.741879380038536, 0.427349538941792, 0.365811750221673])
    near(quat_matrix(quat_exp(w)), R, 1e-14)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-9, 1e-5, 0.02, 0.05, 1.0, 3.0, np.pi - 1e-9):
        d = rng.normal(size=3)
        u = Vector((size * d / np.linalg.norm(d)).tolist())
        np.testing.assert_allclose(list(quat_log(quat_exp(u))), list(u), atol=1e-13)
        product = np.asarray(dexp3(u) @ dexp3_inverse(u), float)
        np.testing.assert_allclose(product, np.eye(3), atol=1e-12)


def test_logarithms_of_matrices_undo_exponentials():
    """log3(exp3(w)) = w, and the same for displacements, from nothing to a half turn."""
    from dyn_core.spatial.lie import exp_transform, log3, log_transform

    rng = np.random.default_rng(2)
    for size in (0.0, 1e-9, 5e-6, 9e-6, 2e-5, 1e-3, 1.0, 2.5):
        d = rng.normal(size=3)
        w = size * d / np.linalg.norm(d)
        got = list(log3(exp3(Vector(w.tolist()))))
        np.testing.assert_allclose(got, w, rtol=5e-13, atol=1e-30)
        u = Motion(w.tolist(), rng.normal(size=3).tolist())
        np.testing.assert_allclose(
            list(log_transform(exp_transform(u))), list(u), atol=1e-12
        )


def test_series_meet_the_formulas():
    """No step larger than 1e-14 where the series take over."""
    d = np.array([0.6, 0.0, 0.8])
    for edge in (1e-4, 2e-4, 4e-4, 0.5, 1.0):
        for function in (exp3, dexp3, dexp3_inverse, quat_exp):
            low, high = (
                np.asarray(function(Vector((x * d).tolist())), float)
                for x in (edge * (1 - 1e-15), edge * (1 + 1e-15))
            )
            np.testing.assert_allclose(low, high, rtol=0, atol=1e-14)


def test_tangent_rate_is_the_inverse_of_dexp():
    """T0 exp(u(t)) moves with the body velocity that tangent_rate was given."""
    u, body = Motion.of((0.02, -0.03, 0.01, 0.01, 0.02, -0.02)), v
    rate = tangent_rate(u, body)
    h = 1e-6

    def pose(s):
        x = u + rate * s
        T = np.eye(4)
        T[:3, :3] = np.asarray(exp3(x.ang), float)
        T[:3, 3] = list(dexp3(x.ang) @ x.lin)
        return T

    hat = np.linalg.inv(pose(0)) @ (pose(h) - pose(-h)) / (2 * h)
    got = [hat[2, 1], hat[0, 2], hat[1, 0], *hat[:3, 3]]
    np.testing.assert_allclose(got, list(body), atol=2e-7)


def test_exp_is_the_same_traced():
    """On floats and on a Graph the Lie functions are one text."""
    from dyn_core.engines.graph.trace import trace

    for function in (exp3, dexp3, dexp3_inverse):

        def algorithm(x, function=function):
            return [e for row in function(Vector(x)).rows for e in row]

        graph = trace(algorithm, 3)
        for point in ([0.4, -0.7, 1.1], [1e-6, 0.0, 2e-6], [0.0, 0.0, 0.0]):
            np.testing.assert_allclose(
                graph.run(point)[0], algorithm(point), atol=1e-15
            )
