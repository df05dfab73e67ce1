"""The guide's arrays, bodies and worked examples: laws, reference values, refusals."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Force, Motion, RigidInertia, Transform, cross
from dyn_core.spatial import MotionSubspace, conventions
from dyn_core.spatial.guide import bodies, geometry, se3
from dyn_core.spatial.guide import two_bodies as two
from dyn_core.testing.models import random_model

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = (
    "clouds", "common", "spaces", "screws", "coordinates", "rules_of_motion", "rules_of_force",
    "rules_of_work", "rules_of_inertia", "moving_frames", "products", "steady_turn", "inertia",
    "equation_of_motion", "flight", "turning_over", "constraints", "questions", "structure", "walk",
)  # fmt: skip


def _turn(axis, angle):
    return se3.exp([*(angle * np.eye(3)[axis]), 0, 0, 0])[:3, :3]


E = (_turn(2, 0.1) @ _turn(1, 0.6) @ _turn(0, -0.4)).T
r = np.array((0.2, 0.3, -0.5))
m = np.array((0.4, 0.5, -0.6, 0.1, -0.2, 0.3))
f = np.array((-0.3, 0.8, 0.1, 1.2, -0.7, 0.5))
v = Motion.of((0.7, -0.8, 0.9, 0.05, -0.15, 0.25))
K3 = bodies.rigid_body(
    2.5,
    (0.1, -0.2, 0.3),
    [[0.05, 0.004, -0.003], [0.004, 0.06, 0.002], [-0.003, 0.002, 0.07]],
)
RULES = (
    "relative_velocity", "forces_add", "reaction", "power", "scaling", "derivative",
    "acceleration", "inertias_add", "momentum", "force", "constraint_force",
)  # fmt: skip


def near(got, wanted, rtol=1e-10, atol=1e-11):
    """Compare numbers, vectors or matrices."""
    got, wanted = (
        np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)
        for x in (got, wanted)
    )
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


@pytest.fixture
def guide(monkeypatch):
    """The scripts of the guide, their names together."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "six_d_vectors"))
    names = {}
    for script in SCRIPTS:
        names |= vars(importlib.import_module(script))
    return SimpleNamespace(**names)


# --- rules of use and stacked spaces


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", RULES)
def test_rule_of_use(guide, name, seed):
    """SV-3.1 to SV-3.11: each rule against particles or differences."""
    scripts = [x for x in guide.SECTIONS if hasattr(x, "RULES")]
    names = {rule.__name__ for script in scripts for rule in script.RULES}
    assert names == {f"rule_{x}" for x in RULES}
    rule = getattr(guide, f"rule_{name}")
    assert rule(np.random.default_rng(seed)) < 1e-7


@pytest.mark.parametrize("seed", range(5))
def test_joint_term_is_a_cross_product(seed):
    """SV-6.4: (ds/dt) qd = v1 x v2, from either body, against differences."""
    rng = np.random.default_rng(seed)
    v1, s = (Motion.of(rng.normal(size=6).tolist()) for _ in range(2))
    qd = rng.normal()
    v2 = v1 + s * qd

    def axis(t):
        T = se3.exp(np.array(list(v2)) * t)
        return Transform.of_pose(T[:3, :3], T[:3, 3]).inverse @ s

    rate = geometry.central_difference(axis, 0.0)
    near(rate * qd, cross(v1, v2), atol=1e-8)
    near(cross(v2, s) * qd, cross(v1, v2))
    for body in (v1, v2):
        near(
            bodies.joint_acceleration(body, MotionSubspace([s]), [qd], [0.0]),
            cross(v1, v2),
        )


@pytest.mark.parametrize("seed", range(3))
def test_stacked_velocities_and_forces(guide, seed):
    """SV-1.5: V = J nu of all links, tau = J.T F, equal power."""
    model = random_model(seed)
    rng = np.random.default_rng(seed)
    q, nu = model.random(rng), rng.normal(size=model.nv)
    J = guide.stacked_jacobian(model, q)
    N = len(model.frame_names)
    assert J.shape == (6 * N, model.nv)
    solver = dyn.solver("frame_velocity")
    V = [
        solver.build(model, engine="plain", frame=name)(q, nu)
        for name in model.frame_names
    ]
    near(J @ nu, np.concatenate(V))
    F = rng.normal(size=6 * N)
    tau = np.zeros(model.nv)
    for k, name in enumerate(model.frame_names):
        J_k = dyn.solver("jacobian").build(model, engine="plain", frame=name)(q)
        tau += J_k.T @ F[6 * k : 6 * k + 6]
    near(J.T @ F, tau)
    near(F @ np.concatenate(V), tau @ nu)


# --- arrays


def test_k1_in_full():
    """The whole transform, m and f in B, the scalar product."""
    X = [[0.821212374587, 0.0823960743167, -0.564642473395, 0, 0, 0],
         [-0.310736307148, 0.894507940613, -0.321400827006, 0, 0, 0],
         [0.478595009632, 0.439393253382, 0.760184441855, 0, 0, 0],
         [-0.12819470486, -0.297677692615, -0.229884497513, 0.821212374587, 0.0823960743167, -0.564642473395],
         [0.350833722204, 0.219648318975, 0.272122480267, -0.310736307148, 0.894507940613, -0.321400827006],
         [0.447751959247, -0.391334393187, -0.0556998522131, 0.478595009632, 0.439393253382, 0.760184441855]]  # fmt: skip
    near(se3.motion_transform(E, r), X)
    near(se3.force_transform(E, r), geometry.dual(X), atol=1e-10)
    near(
        se3.apply_motion(E, r, m),
        [0.70846847103, 0.515799943651, -0.0449760345691, -0.165936749167,
         -0.21951130673, 0.204889681277],
    )  # fmt: skip
    near(
        se3.apply_force(E, r, f),
        [-0.297312610021, 1.17999504543, 1.06734104422, 0.645456360786,
         -1.15973954051, 0.646830955118],
    )  # fmt: skip
    near(se3.apply_motion(E, r, m) @ se3.apply_force(E, r, f), 0.63)


def _batch(n, seed=0):
    rng = np.random.default_rng(seed)
    T = se3.exp(rng.normal(size=(n, 6)))
    E = np.swapaxes(T[:, :3, :3], 1, 2)
    return E, T[:, :3, 3], rng.normal(size=(n, 6)), rng.normal(size=(n, 6))


def test_apply_is_the_matrix():
    """Structured products, their inverses, and the matrices; duality; batches."""
    E, r, m, f = _batch(5)
    X, X_f = se3.motion_transform(E, r), se3.force_transform(E, r)
    near(X_f, np.swapaxes(np.linalg.inv(X), -1, -2))
    near(se3.apply_motion(E, r, m), (X @ m[..., None])[..., 0])
    near(se3.apply_force(E, r, f), (X_f @ f[..., None])[..., 0])
    near(se3.unapply_motion(E, r, se3.apply_motion(E, r, m)), m)
    near(se3.unapply_force(E, r, se3.apply_force(E, r, f)), f)
    power = (se3.apply_motion(E, r, m) * se3.apply_force(E, r, f)).sum(-1)
    near(power, (m * f).sum(-1))
    one = Transform(
        dyn.authoring.Matrix(E[1].tolist()), dyn.authoring.Vector(r[1].tolist())
    )
    near(X[1], one)
    near(se3.apply_motion(E[1], r[1], m)[3], one @ Motion.of(m[3].tolist()))
    near(se3.unapply_force(E[1], r, f[0])[3], se3.unapply_force(E[1], r[3], f[0]))
    composed = X[1] @ X[0]
    near(se3.motion_transform(E[1] @ E[0], r[0] + E[0].T @ r[1]), composed)


def test_cross_products_of_arrays():
    """Batched x and x* are their matrices, and covariant."""
    E, r, v, m = _batch(5)
    near(se3.cross_motions(v, m), (se3.crm(v) @ m[..., None])[..., 0])
    near(se3.cross_forces(v, m), (se3.crf(v) @ m[..., None])[..., 0])
    near(se3.cross_motions(v[0], m)[2], cross(Motion.of(v[0]), Motion.of(m[2])))
    near(se3.cross_forces(v[0], m)[2], cross(Motion.of(v[0]), Force.of(m[2])))
    X = se3.motion_transform(E, r)
    near(se3.crm(se3.apply_motion(E, r, v)), X @ se3.crm(v) @ np.linalg.inv(X))
    near(se3.unskew(se3.skews(r)), r)


def test_poses_and_their_logarithms():
    """SV-11.4: hat, vee, exp, log, Ad, ad; angles to pi; differences of exp."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20, 6))
    near(se3.vee(se3.hat(x)), x)
    x[:, :3] *= (rng.uniform(0, np.pi, 20) / np.linalg.norm(x[:, :3], axis=1))[:, None]
    T = se3.exp(x)
    near(se3.log(T), x, atol=1e-9)
    for axis in (*np.eye(3), (0.6, 0.0, 0.8), (0.6, -0.8, 0.0)):
        half = se3.exp([*(np.pi * np.array(axis)), 0.1, 0.2, 0.3])
        assert np.linalg.norm(se3.log(half)[:3]) == pytest.approx(np.pi)
        near(se3.exp(se3.log(half)), half)
    series, term = np.eye(4), np.eye(4)
    for k in range(1, 40):
        term = term @ se3.hat(x[0]) / k
        series = series + term
    near(T[0], series)
    a, b = se3.hat(x), se3.hat(y)
    near(se3.hat(se3.cross_motions(x, y)), a @ b - b @ a, atol=1e-10)
    Ad = conventions.adjoint(T[0, :3, :3], T[0, :3, 3])
    near(T[0] @ b[0] @ np.linalg.inv(T[0]), se3.hat(Ad @ y[0]), atol=1e-10)
    series, term = np.eye(6), np.eye(6)
    for k in range(1, 60):
        term = term @ se3.crm(x[0]) / k
        series = series + term
    near(Ad, series, atol=1e-9)


def test_empty_batches_and_inputs_kept():
    """(0, 6) gives (0, 6); arrays that cannot be written are read only."""
    none, no_E, no_r = np.zeros((0, 6)), np.zeros((0, 3, 3)), np.zeros((0, 3))
    for function in (
        se3.apply_motion,
        se3.apply_force,
        se3.unapply_motion,
        se3.unapply_force,
    ):
        assert function(no_E, no_r, none).shape == (0, 6)
        assert function(E, r, none).shape == (0, 6)
    assert se3.cross_motions(none, none).shape == (0, 6)
    assert se3.cross_forces(none, none).shape == (0, 6)
    assert se3.crm(none).shape == se3.motion_transform(no_E, no_r).shape == (0, 6, 6)
    assert se3.hat(none).shape == se3.exp(none).shape == (0, 4, 4)
    assert (
        se3.log(np.zeros((0, 4, 4))).shape
        == se3.vee(np.zeros((0, 4, 4))).shape
        == (0, 6)
    )
    assert conventions.classical_from_spatial(none, none).shape == (0, 6)
    inputs = _batch(3)
    kept = [x.copy() for x in inputs]
    for x in inputs:
        x.flags.writeable = False
    E_, r_, m_, f_ = inputs
    for function in (
        se3.apply_motion,
        se3.apply_force,
        se3.unapply_motion,
        se3.unapply_force,
    ):
        function(E_, r_, m_)
    se3.motion_transform(E_, r_), se3.force_transform(E_, r_), se3.crm(m_), se3.crf(f_)
    se3.log(se3.exp(m_)), se3.cross_motions(m_, f_), se3.cross_forces(m_, f_)
    geometry.complement(m_.T)
    for x, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: se3.apply_motion(np.diag((1, 1, -1)), r, m), "E is not a rotation.*det E is -1"),
        (lambda: se3.motion_transform(2 * np.eye(3), r), "E.T E is off by 3"),
        (lambda: se3.force_transform(E, r[:2]), r"r: wanted shape \(..., 3\), got shape \(2,\)"),
        (lambda: se3.apply_force(E, r, f[:5]), r"f: wanted shape \(..., 6\)"),
        (lambda: se3.apply_force(E, r, [*f[:5], np.nan]), r"f\[5\] is nan; must be finite"),
        (lambda: se3.crm([[0, 0, 0, 0, 0, 0], [0, 0, np.inf, 0, 0, 0]]), r"v\[1, 2\] is inf"),
        (lambda: se3.hat("abc"), "x: wanted numbers"),
        (lambda: se3.vee(np.eye(4)), "not in se"),
        (lambda: se3.vee(np.diag((1.0, 1, 1, 0))), "not an antisymmetric"),
        (lambda: se3.log(np.diag((1.0, 1, -1, 1))), "not a rotation"),
        (lambda: se3.log(np.zeros((4, 4)) + np.eye(4) * [1, 1, 1, 2]), "last row"),
        (lambda: geometry.to_screw(Motion.of((np.nan, 0, 0, 0, 0, 0))), r"s\[0\] is nan"),
        (lambda: geometry.dual_basis(np.eye(5)), r"D: wanted shape \(6, 6\)"),
        (lambda: geometry.dual(np.full((6, 6), np.inf)), "must be finite"),
        (lambda: se3.finite("x", None), "x: wanted numbers of shape .*, got None"),
        (lambda: se3.finite("x", ["1.5", "2"], 2), "x: wanted numbers of shape"),
        (lambda: se3.finite("x", [1j, 2], 2), "x: wanted real numbers of shape"),
        (lambda: bodies.point_mass(-1.0), "mass -1.0 is negative; it must be >= 0"),
        (lambda: bodies.point_mass(np.nan), "m is nan"),
        (lambda: bodies.sphere(1.0, -0.1), "lengths must be >= 0"),
        (lambda: bodies.cuboid(1.0, (1, 2)), r"sides: wanted shape"),
        (lambda: bodies.rigid_body(1, (0, 0), np.eye(3)), r"c: wanted shape"),
        (lambda: bodies.rigid_body(1, r, np.diag((1, 1, -0.5))), "not positive definite"),
        (lambda: bodies.rigid_body(1, r, np.diag((1, 1, 2.5))), "triangle inequality"),
        (lambda: bodies.rigid_body(1, r, [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        (lambda: bodies.body_of_matrix(np.diag(np.arange(1.0, 7.0))), "ArticulatedInertia"),
        (lambda: bodies.body_of_matrix(np.eye(5)), r"M: wanted shape"),
        (lambda: bodies.body_of_matrix(np.diag((1.0, 1, 2.5, 1, 1, 1))), "triangle"),
        (lambda: bodies.gravity_force(K3, (0, 0)), r"g: wanted shape"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(call, message):
    """What, where, and what would be valid; always a ValueError of the project's kind."""
    with pytest.raises(ValueError, match=message):
        call()


_TWO = np.stack([np.eye(6)] * 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geometry.screw_axis(np.eye(3)), r"u: wanted shape \(3,\), got shape \(3, 3\)"),
        (lambda: geometry.screw_axis([[1, 0, 0]]), r"u: .*got shape \(1, 3\)"),
        (lambda: geometry.screw_axis((1, 0, 0), np.eye(3)), "P: wanted"),
        (lambda: geometry.helical([0.1, 0.2]), "pitch: wanted a number"),
        (lambda: geometry.shifted(v, np.ones((2, 3))), "r: wanted"),
        (lambda: geometry.shifted(v, np.eye(3)), "r: wanted"),
        (lambda: geometry.dual(_TWO), r"X: wanted shape \(6, 6\), got shape \(2, 6, 6\)"),
        (lambda: geometry.dual_basis(_TWO), "D: wanted"),
        (lambda: geometry.complement(_TWO), r"S: wanted shape \(6, r\)"),
        (lambda: geometry.complement(m), r"S: wanted shape \(6, r\), got shape \(6,\)"),
        (lambda: geometry.complement(1.0), r"S: wanted shape \(6, r\)"),
        (lambda: geometry.complement([[1], [1, 2]]), "S: wanted numbers"),
        (lambda: geometry.universal(np.eye(2)), "q: wanted"),
        (lambda: geometry.universal(0.1), "q: wanted"),
        (lambda: geometry.universal_ring((1, 2), np.eye(2)), "qd: wanted"),
        (lambda: geometry.to_screw(Motion(np.eye(3, 6), np.eye(3, 6))), "s: wanted"),
        (lambda: bodies.force_at_point(np.eye(3), np.eye(3)), "f: wanted"),
        (lambda: bodies.gravity_force(K3, np.eye(3)), "g: wanted"),
        (lambda: bodies.body_of_matrix(_TWO), "M: wanted"),
        (lambda: bodies.rigid_body(1, r, np.ones((2, 3, 3))), "Ic: wanted"),
        (lambda: bodies.point_mass(1, np.eye(3)), "c: wanted"),
        (lambda: bodies.point_mass([[1]]), "m: wanted a number"),
        (lambda: bodies.cuboid(1, (1, 1, 1), np.eye(3)), "c: wanted"),
        (lambda: bodies.cuboid(1, 1.0), "sides: wanted"),
        (lambda: bodies.cuboid((1, 1), (1, 1, 1)), "m: wanted a number"),
        (lambda: bodies.cylinder([1, 2], 1, 1), "m: wanted a number"),
        (lambda: bodies.cylinder(1, (1, 2), 1), "radius and length: wanted"),
        (lambda: bodies.sphere("heavy", 1), "m: wanted"),
        (lambda: bodies.sphere(1, (1, 2)), "radius: wanted a number"),
    ],
)  # fmt: skip
def test_a_function_of_one_value_refuses_batches(call, message):
    """Several axes, points or matrices, also three of them, are a ShapeError."""
    with pytest.raises(dyn.ShapeError, match=message):
        call()


def test_singular_systems_are_linalg_errors():
    """Bases that are none, and bodies that no force can hold."""
    D = np.random.default_rng(0).normal(size=(6, 6))
    D[:, 5] = D[:, :5] @ np.arange(1.0, 6.0)
    with pytest.raises(np.linalg.LinAlgError, match="rank 5 of 6"):
        geometry.dual_basis(D)
    for thin in (RigidInertia.zero(), bodies.point_mass(2.0, (0.3, 0.1, 0.2)),
                 bodies.cylinder(1.0, 0.0, 1.0)):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            bodies.acceleration(thin, v, Force.of(f.tolist()))


# --- bases and derivatives


@pytest.mark.parametrize("seed", range(3))
def test_pluecker_bases(seed):
    """SV-4.1: d_i . e_j; basis vectors are turns and forces about the frame's lines."""
    rng = np.random.default_rng(seed)
    T = se3.exp(rng.normal(size=6))
    R, p = T[:3, :3], T[:3, 3]
    d, e = geometry.pluecker_bases(Transform.of_pose(R, p).inverse)
    near(d.T @ e, np.eye(6))
    for k in range(3):
        u = R[:, k]
        near(d[k], geometry.screw_axis(u, p))
        near(d[k + 3], [0, 0, 0, *u])
        near(e[k], [*u, 0, 0, 0])
        near(e[k + 3], [*np.cross(p, u), *u])
    there = rng.normal(size=6)
    near(
        d @ there.tolist(), Transform.of_pose(R, p).inverse @ Motion.of(there.tolist())
    )


def test_k5_by_differences(guide, monkeypatch):
    """The three rates of K5 at t = 0, the frame's own by central differences."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = E.T, r
    monkeypatch.setattr("moving_frames.K5_POSE", se3.log(T))
    rates = guide.moving_frame(np.zeros(1))
    near(
        rates.components[0],
        [0.311602703992, -0.464548295624, -0.41918531993, 0.600335778127,
         0.603665903699, 0.357308668585], atol=1e-9,
    )  # fmt: skip
    near(
        rates.intrinsic[0],
        [0.127770743816, -0.167668096841, 0.0897888986809, 0.735937839819,
         0.272278965254, 0.240800043609],
    )  # fmt: skip
    near(rates.corrected, rates.intrinsic, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_rate_of_a_transform(seed):
    """SV-5.3: dX/dt = -(v_rel x) X when both frames move."""
    rng = np.random.default_rng(seed)
    A, B, v_A, v_B = rng.normal(size=(4, 6))

    def X(t):
        T = np.linalg.inv(se3.exp(A) @ se3.exp(v_A * t)) @ se3.exp(B) @ se3.exp(v_B * t)
        return np.asarray(Transform.of_pose(T[:3, :3], T[:3, 3]), float)

    now = np.linalg.inv(se3.exp(A)) @ se3.exp(B)
    to_B = Transform.of_pose(now[:3, :3], now[:3, 3])
    v_rel = Motion.of(v_B.tolist()) - to_B @ Motion.of(v_A.tolist())
    near(
        geometry.central_difference(X, 0.0),
        geometry.transform_rate(to_B, v_rel),
        atol=1e-8,
    )


def test_k6_and_the_particles_of_a_turn(guide):
    """Classical acceleration w x (w x d) at any point, (4, 2, 0) at the origin."""
    near(guide.STEADY, [0, 0, 2, 1, -2, 0])
    near(guide.steady_rotation(np.zeros((1, 3)))[0], [4, 2, 0])
    x = np.random.default_rng(0).normal(size=(10, 3))
    away = x - np.array((1.0, 0.5, 0.0))
    near(guide.steady_rotation(x), -4 * away * (1, 1, 0))


# --- inertia and motion


def test_k3_in_full():
    """Inertia in B, its rate, with every entry."""
    B = Transform(
        dyn.authoring.Matrix(E.tolist()), dyn.authoring.Vector(r.tolist())
    ).inverse
    moved = B.T @ K3 @ B
    I_B = [[1.48292357592, -0.961521350665, 0.481573920399, 0, -0.851478564574, -1.68325250299],
           [-0.961521350665, 1.1727589623, 0.575759238343, 0.851478564574, 0, 1.43758313333],
           [0.481573920399, 0.575759238343, 2.02431746178, 1.68325250299, -1.43758313333, 0],
           [0, 0.851478564574, 1.68325250299, 2.5, 0, 0],
           [-0.851478564574, 0, -1.43758313333, 0, 2.5, 0],
           [-1.68325250299, 1.43758313333, 0, 0, 0, 2.5]]  # fmt: skip
    near(moved, I_B)
    X_f = se3.force_transform(E, r)
    near(X_f @ np.asarray(K3, float) @ X_f.T, I_B)
    near(moved.c, E @ (np.array((0.1, -0.2, 0.3)) - r))
    near(moved.Ic, E @ np.asarray(K3.Ic, float) @ E.T)
    rate = [[0.5526, 0.054, -0.055, 0, -0.475, -0.675],
            [0.054, 0.2844, 0.291, 0.475, 0, 0.025],
            [-0.055, 0.291, 0.263, 0.675, -0.025, 0],
            [0, 0.475, 0.675, 0, 0, 0], [-0.475, 0, -0.025, 0, 0, 0],
            [-0.675, 0.025, 0, 0, 0, 0]]  # fmt: skip
    near(bodies.inertia_rate(K3, v), rate)
    near(bodies.momentum(K3, v), [0.1366, -0.0984, -0.0132, -0.025, -0.675, 0.475])
    near(bodies.kinetic_energy(K3, v), 0.190605)


@pytest.mark.parametrize("shape", ["cuboid", "cylinder", "sphere"])
def test_shapes_by_sums_over_cells(shape):
    """SV-7.1: a fine grid of point masses has the same inertia, to the grid."""
    n, c = 60, (0.3, -0.2, 0.1)
    grid = (np.arange(n) + 0.5) / n * 2 - 1
    x = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    if shape == "cuboid":
        got, half = bodies.cuboid(2.0, (0.4, 0.6, 1.0), c), (0.2, 0.3, 0.5)
    elif shape == "cylinder":
        got, half = bodies.cylinder(2.0, 0.3, 1.2, c), (0.3, 0.3, 0.6)
        x = x[(x[:, :2] ** 2).sum(1) <= 1]
    else:
        got, half = bodies.sphere(2.0, 0.5, c), (0.5, 0.5, 0.5)
        x = x[(x**2).sum(1) <= 1]
    x = x * half
    second = 2.0 * x.T @ x / len(x)
    near(got.Ic, np.trace(second) * np.eye(3) - second, rtol=5e-3, atol=1e-3)
    near(got.c, c)
    assert got.m == 2.0
    assert np.linalg.eigvalsh(np.asarray(got, float))[0] > 0


def test_shapes_in_closed_form():
    """Ic of the textbooks; a thin body still obeys the triangle inequality."""
    near(bodies.cuboid(12.0, (1, 2, 3)).Ic, np.diag((13, 10, 5)))
    near(bodies.cylinder(12.0, 2.0, 3.0).Ic, np.diag((21, 21, 24)))
    near(bodies.sphere(5.0, 2.0).Ic, 8 * np.eye(3))
    rod = bodies.cylinder(1.0, 0.0, 1.0)
    near(rod.Ic, np.diag((1, 1, 0)) / 12)
    dumbbell = bodies.point_mass(1.0, (0.5, 0, 0)) + bodies.point_mass(
        3.0, (-0.5, 0, 0)
    )
    near(dumbbell.c, (-0.25, 0, 0))
    near(dumbbell.Ic, np.diag((0, 0.75, 0.75)))
    assert np.linalg.matrix_rank(np.asarray(bodies.point_mass(1.0, r), float)) == 3
    near(bodies.body_of_matrix(np.asarray(K3, float)).parameters, K3.parameters)
    assert bodies.checked(K3) is K3


def test_free_flight_keeps_energy_and_momentum(guide):
    """SV-8.1: drift below 1e-12 in 10 s; the middle axis turns over at 6.06 s."""
    I = bodies.rigid_body(1.0, (0, 0, 0), np.diag((0.1, 0.2, 0.3)))
    start = Motion.of((0.01, 2.0, 0.01, 0, 0, 0))
    flight = guide.free_flight(I, start, 10.0)
    assert max(flight.drifts()) < 1e-12
    assert flight.t[np.argmax(flight.v[:, 1] < 0)] == pytest.approx(6.06)
    assert len(flight.t) == 1001


def test_free_composite_keeps_energy_and_momentum(guide):
    """Two bodies welded together, tumbling and drifting: all six momenta stay."""
    weld = Transform.of_pose(_turn(0, 0.7), (0.4, -0.2, 0.3))
    part = bodies.cuboid(1.5, (0.2, 0.3, 0.4))
    I = K3 + weld.T @ part @ weld
    flight = guide.free_flight(I, v, 2.0)
    assert max(flight.drifts()) < 1e-12
    assert np.abs(flight.v[-1] - flight.v[0]).max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_gravity_both_ways(seed):
    """SV-8.4: weight in the bias, or a base that accelerates; the weight at the CoM."""
    rng = np.random.default_rng(seed)
    g, push = rng.normal(size=3) * 9.81, Force.of(rng.normal(size=6).tolist())
    weight = bodies.gravity_force(K3, g)
    near(weight, [*np.cross((0.1, -0.2, 0.3), 2.5 * g), *(2.5 * g)])
    p = bodies.bias_force(K3, v, weight)
    direct = np.linalg.solve(np.asarray(K3, float), np.array(list(push - p)))
    trick = bodies.acceleration(K3, v, push) + Motion((0, 0, 0), g.tolist())
    near(direct, trick)


# --- the worked examples


def test_k7_by_3d_vectors():
    """A, B, D, the accelerations; C = B.T; symmetric positive definite."""
    got = two.two_body_3d(two.K7)
    A, B, D = got.matrix[:3, :3], got.matrix[:3, 3:], got.matrix[3:, 3:]
    near(A, [[2.79064039409, 0.620689655172, -0.266009852217],
             [0.620689655172, 2.95689655172, 0.23275862069],
             [-0.266009852217, 0.23275862069, 3.40024630542]])  # fmt: skip
    near(B, [[0.204926108374, -0.18842364532, 0.00467980295567],
             [0.570689655172, -0.491379310345, 0.239655172414],
             [0.82684729064, -0.689408866995, 0.283004926108]])  # fmt: skip
    near(D, [[0.840799124247, -0.60223316913, 0.231981390257],
             [-0.60223316913, 0.650418719212, -0.227454844007],
             [0.231981390257, -0.227454844007, 0.232104542967]])  # fmt: skip
    near(got.a1, [0.691636737509, -0.754370441401, 1.15721474496])
    near(got.wd1, [1.90183296785, 2.87119158076, -0.594856265537])
    near(got.alpha, -0.477538175233)


def _rest():
    case = two.K7
    I1, I2 = case.body1.spatial(), case.body2.spatial()
    return I1, I2, case.axis(), case.load()


def test_k7_by_spatial_vectors():
    """The same in eight quantities; the force through the hinge; eigenvalues."""
    I1, I2, s, load = _rest()
    near(s @ (I2 @ s), 0.5075)
    got = two.two_body_spatial(I1, I2, s, load)
    near(got.a1, [1.90183296785, 2.87119158076, -0.594856265537, 0.17688404791,
                  -0.195546968171, 2.20875551598])  # fmt: skip
    near(got.f_J, [0.239511475647, -0.326868837717, -0.338116581418, -0.383273475017,
                   -0.491259117197, 0.685570510072])  # fmt: skip
    near(s @ got.f_J, 0.0)
    near(got.qdd, -0.477538175233)
    near(I1 @ got.a1, load - got.f_J)
    near(np.linalg.eigvalsh(got.IA), [
        0.105595185317, 0.139241578578, 0.721242899902, 2.21801578895, 3.89625651581,
        4.82253938339])  # fmt: skip


def _random_case(seed):
    rng = np.random.default_rng(seed)

    def body():
        cloud = bodies.cuboid(rng.uniform(0.5, 3), rng.uniform(0.2, 1, 3))
        R = se3.exp(rng.normal(size=6))[:3, :3]
        return two.Body(
            cloud.m, rng.normal(size=3), R @ np.asarray(cloud.Ic, float) @ R.T
        )

    d = rng.normal(size=3)
    return two.HingedPair(
        body(), body(), rng.normal(size=3), d / np.linalg.norm(d),
        rng.normal(size=3), rng.normal(size=3),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_both_solutions_are_one(seed):
    """SV-10.3, SV-10.4: congruent and positive definite; the same accelerations."""
    case = _random_case(seed)
    I1, I2, s = case.body1.spatial(), case.body2.spatial(), case.axis()
    plain = two.two_body_3d(case)
    answer = two.two_body_spatial(I1, I2, s, case.load())
    same = two.same_answer(case, answer)
    near(plain.matrix, same.matrix, rtol=1e-9, atol=1e-10)
    near(plain.a1, same.a1, rtol=1e-9, atol=1e-10)
    near(plain.wd1, same.wd1, rtol=1e-9, atol=1e-10)
    near(plain.alpha, same.alpha, rtol=1e-9, atol=1e-10)
    for M in (plain.matrix, answer.IA):
        near(M, M.T)
        assert np.linalg.eigvalsh(M)[0] > 0


def test_k8_moving():
    """The reference values of two moving bodies."""
    I1, I2, s, load = _rest()
    got = two.two_body_moving(I1, I2, s, load, two.K8)
    near(cross(two.K8.v1, two.K8.v1 + s * two.K8.qd), [
        -0.426666666667, 0.0266666666667, 0.186666666667, 0.224, -0.290666666667,
        0.146666666667])  # fmt: skip
    near(got.a1, [0.863607279115, -0.157779963362, -4.14392090307, 1.53236587676,
                  0.540484202847, -8.88291774777])  # fmt: skip
    near(got.qdd, 7.89956321345)
    near(got.a2, [3.07012835026, 5.13526217893, 1.30912123923, 2.28300342433,
                  -2.51502958853, -6.23472273017])  # fmt: skip
    near(got.f_J, [0.355284965197, -0.163000213911, -0.178721772174, -1.04083558757,
                   -0.691172952208, 0.905888973336])  # fmt: skip
    near(s @ got.f_J, two.K8.tau)


@pytest.mark.parametrize("seed", range(5))
def test_elimination_equals_constraint(seed):
    """SV-9.7, SV-10.5: S eliminated, T imposed; at rest it is the first example."""
    rng = np.random.default_rng(seed)
    case = _random_case(seed)
    I1, I2, s, load = (
        case.body1.spatial(), case.body2.spatial(), case.axis(), case.load()
    )  # fmt: skip
    state = two.Moving(Motion.of(rng.normal(size=6).tolist()), *rng.normal(size=2))
    one, other = (
        way(I1, I2, s, load, state) for way in (two.two_body_moving, two.two_body_kkt)
    )
    for name in ("a1", "a2", "qdd", "f_J"):
        near(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-8)
    v2 = state.v1 + s * state.qd
    balance = bodies.equation_of_motion(I2, v2, one.a2) - bodies.gravity_force(
        I2, state.g
    )
    near(balance, one.f_J, atol=1e-9)
    rest = two.Moving(Motion.zero(), 0.0, 0.0, (0.0, 0.0, 0.0))
    near(two.two_body_moving(I1, I2, s, load, rest).a1,
         two.two_body_spatial(I1, I2, s, load).a1)  # fmt: skip


def test_a_hinge_without_axis_or_inertia_is_refused():
    """SV-10.2: s = 0 and s . I2 s <= 0 are ValueErrors."""
    I1, I2, s, load = _rest()
    for axis, body in ((Motion.zero(), I2), (s, RigidInertia.zero())):
        with pytest.raises(ValueError, match="must be positive"):
            two.two_body_spatial(I1, body, axis, load)
        with pytest.raises(ValueError, match="must be positive"):
            two.two_body_moving(I1, body, axis, load, two.K8)
    case = two.K7
    flat = two.HingedPair(case.body1, case.body2, case.P, 0 * case.s, case.f, case.n)
    with pytest.raises(ValueError, match="must be positive"):
        two.two_body_3d(flat)
    with pytest.raises(ValueError, match="needs a direction"):
        flat.axis()
