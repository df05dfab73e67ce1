"""Cartesian impedance and operational space: what the tool does under these laws."""

import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.authoring import sin
from dyn_core.errors import QuaternionError
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.spatial.lie import log_transform

LAWS = ["cartesian_impedance", "operational_space"]
K = np.diag([40.0, 50.0, 60.0, 400.0, 500.0, 600.0])
AXES = ["aligned", "local"]


@pytest.fixture(scope="module")
def arm():
    """Return the arm with seven joints."""
    return dyn.load("arm7")


def _built(model, name, *inputs, **options):
    return dyn.solver(name).build(model, frame="tool", inputs=inputs, **options)


@functools.cache
def _kinematics(model):
    return dyn.solver("forward_kinematics").build(model, frames=["tool"])


def _pose(model, q, shift=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    """Return the pose (7,) of the tool, displaced in its own axes."""
    (T,) = _kinematics(model)(q)
    R = Rotation.from_matrix(T[:3, :3])
    return np.r_[T[:3, 3] + R.apply(shift), (R * Rotation.from_rotvec(turn)).as_quat()]


def _terms(model, q, qd, reference="aligned"):
    """Return H, g, J and dJ/dt qd of the tool; the last of its origin."""
    options = {"frame": "tool", "reference": "aligned"}
    H = dyn.solver("crba").build(model)(q)
    g = dyn.solver("gravity").build(model)(q)
    J = dyn.solver("jacobian").build(model, **options)(q)
    bias = dyn.solver("frame_bias_acceleration").build(model, **options)(q, qd)
    if reference == "local":
        turn = np.kron(np.eye(2), _kinematics(model)(q)[0][:3, :3].T)
        J, bias = turn @ J, turn @ bias
    return H, g, J, bias


@pytest.mark.one_of(4)
@pytest.mark.parametrize("reference", AXES)
@pytest.mark.parametrize("name", LAWS)
def test_a_small_displacement_meets_the_stiffness(arm, name, reference):
    """One millimetre and one milliradian aside, the wrench is K times the way."""
    rng = np.random.default_rng(1)
    program = _built(arm, name, reference=reference)
    for _ in range(20):
        q = arm.random(rng)
        way = 1e-3 * rng.uniform(-1, 1, 6)
        pose = _pose(arm, q, shift=way[3:], turn=way[:3])
        _, g, J, _ = _terms(arm, q, np.zeros(7), reference)
        if reference == "aligned":
            R = np.kron(np.eye(2), Rotation.from_quat(pose[3:]).as_matrix())
            way = R @ way
        force = program(q, np.zeros(7), pose, K) - g
        assert np.abs(force - J.T @ K @ way).max() < 0.01 * np.abs(J.T @ K @ way).max()


def test_angular_and_linear_rows_are_not_exchanged(arm):
    """A stiffness in rotations alone pulls at no displacement, and one in lines does."""
    rng = np.random.default_rng(2)
    q = arm.random(rng)
    program = _built(arm, "cartesian_impedance", reference="local")
    pose = _pose(arm, q, shift=(0.1, 0.0, 0.0))
    g = _terms(arm, q, np.zeros(7))[1]
    turns, lines = np.diag([1.0, 1, 1, 0, 0, 0]), np.diag([0.0, 0, 0, 1, 1, 1])
    still = np.zeros(7)
    np.testing.assert_allclose(program(q, still, pose, turns), g, atol=1e-12)
    assert np.abs(program(q, still, pose, lines) - g).max() > 1e-2


@pytest.mark.one_of(2)
@pytest.mark.parametrize("reference", AXES)
def test_operational_space_makes_the_tool_a_mass_on_a_spring(arm, reference):
    """Lambda (a - a_ref) = F: the wrench of outside that balances it is -F."""
    rng = np.random.default_rng(3)
    options = {"reference": reference}
    program = _built(arm, "operational_space", "v_ref", "a_ref", "f_ref", **options)
    fd = dyn.solver("aba").build(arm)
    for _ in range(20):
        q, qd = arm.random(rng), rng.normal(size=7)
        v_ref, a_ref, f_ref = rng.normal(size=(3, 6))
        H, _, J, bias = _terms(arm, q, qd, reference)
        mobility = J @ np.linalg.solve(H, J.T)
        if np.linalg.svd(J, compute_uv=False)[-1] < 0.1:
            continue
        D = np.diag(2 * np.sqrt(np.diag(K) / np.diag(mobility)))
        pose = _pose(arm, q)  # no displacement: no spring
        qdd = fd(q, qd, program(q, qd, pose, K, v_ref, a_ref, f_ref))
        force = D @ (v_ref - J @ qd) + f_ref
        wanted = a_ref + mobility @ force
        assert np.abs(J @ qdd + bias - wanted).max() < 1e-9 * np.abs(wanted).max()


def test_a_moving_reference_is_followed_without_error(arm):
    """On its way with its velocity, the impedance needs no displacement."""
    rng = np.random.default_rng(4)
    program = _built(arm, "cartesian_impedance", "v_ref", "a_ref")
    fd = dyn.solver("aba").build(arm)
    checked = 0
    for _ in range(20):
        q, (v_ref, a_ref) = arm.random(rng), rng.normal(size=(2, 6))
        H, _, J, _ = _terms(arm, q, np.zeros(7))
        if np.linalg.svd(J, compute_uv=False)[-1] < 0.1:
            continue
        over = np.linalg.solve(H, J.T)
        qd = over @ np.linalg.solve(J @ over, v_ref)  # of least kinetic energy
        bias = _terms(arm, q, qd)[3]
        qdd = fd(q, qd, program(q, qd, _pose(arm, q), K, v_ref, a_ref))
        np.testing.assert_allclose(J @ qdd + bias, a_ref, atol=1e-9, rtol=0)
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("reference", AXES)
@pytest.mark.parametrize("name", LAWS)
def test_a_damper_knows_the_velocity_of_driven_places(arm, name, reference):
    """On a base that is moved, a tool at the velocity of the reference is not braked."""
    rng, t = np.random.default_rng(9), 0.3
    driven = arm.drive("joint1", lambda t: (None, (0.5 * sin(3 * t), t * t, 0.0)))
    options = {"frame": "tool", "reference": reference}
    moves = dyn.solver("frame_velocity").build(driven, inputs=["time"], **options)
    law = dyn.solver(name).build(driven, inputs=["v_ref", "damping", "time"], **options)
    q, qd = arm.random(rng), rng.normal(size=7)
    v, D, pose = moves(q, qd, t), 30.0 * np.eye(6), np.r_[np.zeros(6), 1.0]
    free, braked = (law(q, qd, pose, 0 * D, v, x, t) for x in (0 * D, D))
    np.testing.assert_allclose(braked, free, atol=1e-9)
    slower = law(q, qd, pose, 0 * D, v - 0.1, D, t)
    assert np.abs(slower - free).max() > 0.1


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", LAWS)
def test_the_posture_does_not_move_the_tool(arm, name):
    """|J H^-1 N.T tau_0| <= 1e-10 of its scale, away from singular positions."""
    rng = np.random.default_rng(5)
    plain = _built(arm, name)
    program = _built(arm, name, "q_rest", "rest_stiffness", "rest_damping")
    for _ in range(20):
        q, qd = arm.random(rng), rng.normal(size=7)
        H, _, J, _ = _terms(arm, q, qd)
        if np.linalg.svd(J, compute_uv=False)[-1] < 0.1:
            continue
        pose, rest = _pose(arm, q, shift=(0.05, 0, 0)), arm.random(rng)
        gains = rng.uniform(1, 20, (2, 7))
        idle = program(q, qd, pose, K, rest, *gains) - plain(q, qd, pose, K)
        assert np.abs(idle).max() > 1e-3
        scale = np.abs(J @ np.linalg.inv(H)).max() * np.abs(idle).max()
        assert np.abs(J @ np.linalg.solve(H, idle)).max() < 1e-10 * scale


def _error(model, q, pose):
    X = _pose_transform(_pose(model, q))
    return np.array(log_transform(_pose_transform(pose) @ X.inverse))


def _pose_transform(pose):
    R = Rotation.from_quat(pose[3:]).as_matrix()
    return Transform(Matrix(R.T.tolist()), Vector(pose[:3].tolist()))


def _complex_log(E):
    """Return log of a displacement (4, 4) of complex numbers, [angular; linear]."""
    R = E[:3, :3]
    t = np.arccos((np.trace(R) - 1) / 2)
    W = (R - R.T) * t / (2 * np.sin(t))
    over = (
        np.eye(3) - W / 2 + W @ W * (1 / t**2 - (1 + np.cos(t)) / (2 * t * np.sin(t)))
    )
    return np.r_[W[2, 1], W[0, 2], W[1, 0], over @ E[:3, 3]]


@pytest.mark.parametrize("reference", AXES)
@pytest.mark.parametrize("limit", [None, 3.0])
def test_the_spring_is_the_gradient_of_its_energy(arm, reference, limit):
    """tau - g = -dV/dq by complex steps, below and beyond the energy limit."""
    rng = np.random.default_rng(8)
    inputs = () if limit is None else ("energy_limit",)
    program = _built(arm, "cartesian_impedance", *inputs, reference=reference)
    poses = dyn.solver("forward_kinematics").build(arm, frames=["tool"], engine="plain")
    q = arm.random(rng)
    pose = _pose(arm, q, shift=(0.1, -0.1, 0.05), turn=(0.8, -0.5, 0.9))
    root = rng.normal(size=(6, 6))
    gains = 20 * root @ root.T
    target = np.eye(4)
    target[:3, :3] = Rotation.from_quat(pose[3:]).as_matrix()
    target[:3, 3] = pose[:3]
    turn = np.eye(6)
    if reference == "aligned":
        turn = np.kron(np.eye(2), target[:3, :3])

    def energy(x):
        e = turn @ _complex_log(np.linalg.inv(poses(x)[0]) @ target)
        whole = e @ gains @ e / 2
        if limit is None or whole.real < limit:
            return whole
        return limit * (2 * np.sqrt(whole / limit) - 1)

    assert energy(q).real > 3.0
    slopes = [energy(q + 1e-30j * d).imag / 1e-30 for d in np.eye(7)]
    values = () if limit is None else (limit,)
    tau = program(q, np.zeros(7), pose, gains, *values)
    g = _terms(arm, q, np.zeros(7))[1]
    np.testing.assert_allclose(tau - g, np.negative(slopes), rtol=0, atol=1e-10)


def test_energy_of_robot_and_spring_never_grows(arm):
    """From a push at a reference at rest, 2 s at 1 kHz, steps of 0.1 ms between."""
    rng = np.random.default_rng(6)
    q = np.array([0.3, 0.6, -0.2, -1.4, 0.3, 0.8, 0.1])
    pose = _pose(arm, q, shift=(0.05, -0.05, 0.05), turn=(0.2, 0.1, -0.2))
    law = _built(arm, "cartesian_impedance", reference="local")
    energy = dyn.solver("energy").build(arm)

    def total(x, v):
        e = _error(arm, x, pose)
        return energy(x, v)[0] + e @ K @ e / 2

    run = dyn.simulate(
        arm, lambda t, x, v: law(x, v, pose, K), q0=q, qd0=0.3 * rng.normal(size=7),
        period=1e-3, substeps=10, duration=2.0, progress=False,
    )  # fmt: skip
    values = np.array([total(x, v) for x, v in zip(run.q, run.qd, strict=True)])
    assert values[-1] < 0.2 * values[0]
    # The law acts a millisecond later than the state that it saw.
    assert np.diff(values).max() < 1e-6 * values[0]


def test_beyond_its_energy_the_spring_pulls_no_harder(arm):
    """|wrench| in the metric of K stays sqrt(2 E); below E nothing changes."""
    rng = np.random.default_rng(7)
    plain = _built(arm, "cartesian_impedance", reference="local")
    program = _built(arm, "cartesian_impedance", "energy_limit", reference="local")
    q = arm.random(rng)
    _, g, J, _ = _terms(arm, q, np.zeros(7), "local")
    for size, limit in ((0.05, 0.2), (0.2, 0.2), (0.5, 0.2), (0.5, 1e9)):
        pose = _pose(arm, q, shift=(size, 0.0, 0.0))
        full, tau = (
            p(q, np.zeros(7), pose, K, *more) - g
            for p, more in ((plain, ()), (program, (limit,)))
        )
        energy = K[3, 3] * size**2 / 2
        part = min(1.0, np.sqrt(limit / energy))
        np.testing.assert_allclose(tau, part * full, rtol=0, atol=1e-10)
        wrench = np.linalg.lstsq(J.T, tau, rcond=None)[0]
        assert wrench @ np.linalg.solve(K, wrench) / 2 < min(limit, energy) * (1 + 1e-9)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", LAWS)
def test_through_a_singular_position(arm, name):
    """Along a stretching arm torques stay bounded and change without a jump."""
    inputs = ("a_ref", "q_rest", "rest_stiffness")
    program = _built(arm, name, *inputs)
    rest, gains = arm.neutral(), np.full(7, 5.0)
    straight, bent = np.zeros(7), np.array([0.0, 0.4, 0.0, -0.8, 0.0, 0.4, 0.0])
    a_ref = np.array([0.1, 0.2, 0.3, 1.0, 1.0, 1.0])
    taus = []
    steps = np.linspace(-0.2, 0.2, 4001)
    for s in steps:
        q = straight + s * bent
        taus.append(program(q, np.zeros(7), _pose(arm, q), K, a_ref, rest, gains))
    taus = np.array(taus)
    assert np.isfinite(taus).all()
    slope = np.abs(np.diff(taus, axis=0)).max(axis=1)
    assert slope.max() < 0.05 * np.abs(taus).max()
    assert np.abs(taus).max() < 300


def test_a_half_turn_has_a_defined_wrench(arm):
    """Just below and at pi the moment is pi k about the axis; no NaN anywhere."""
    q = np.array([0.3, 0.6, -0.2, -1.4, 0.3, 0.8, 0.1])
    program = _built(arm, "cartesian_impedance", reference="local")
    _, g, J, _ = _terms(arm, q, np.zeros(7), "local")
    for angle in (np.pi - 1e-9, np.pi, np.pi + 1e-9):
        tau = program(q, np.zeros(7), _pose(arm, q, turn=(angle, 0.0, 0.0)), K)
        wrench = np.linalg.lstsq(J.T, tau - g, rcond=None)[0]
        np.testing.assert_allclose(np.abs(wrench[0]), np.pi * K[0, 0], rtol=1e-6)


REFUSED = [
    ({"reference": "world"}, dyn.UnsupportedError, "valid: aligned, local"),
    ({"singularity_threshold": 0.0}, dyn.UnsupportedError, "valid: a number above 0"),
    ({"characteristic_length": "a"}, dyn.UnsupportedError, "valid: a number above 0"),
    ({"frame": "link0"}, dyn.UnsupportedError, "no joint moves link 'link0'"),
    ({"frame": "nose"}, dyn.ModelError, "no link .*'nose'|'nose'"),
    ({"inputs": ("q_rest",)}, dyn.UnsupportedError, "q_rest acts by rest_stiffness"),
    ({"inputs": ("rest_stiffness",)}, dyn.UnsupportedError, "acts by q_rest"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
@pytest.mark.parametrize("name", LAWS)
def test_options_that_mean_nothing(arm, name, options, error, message):
    """Each is refused in words."""
    with pytest.raises(error, match=message):
        dyn.solver(name).build(arm, **{"frame": "tool", **options})


@pytest.mark.parametrize("name", LAWS)
def test_a_quaternion_off_unit_is_refused(arm, name):
    """A reference that was never written is no reference; small errors are scaled."""
    q = arm.random(0)
    program, pose = _built(arm, name), _pose(arm, q)
    for quaternion in (np.zeros(4), 1.01 * pose[3:]):
        with pytest.raises(QuaternionError, match="pose_ref"):
            program(q, np.zeros(7), np.r_[pose[:3], quaternion], K)
    close = program(q, np.zeros(7), np.r_[pose[:3], 1.0005 * pose[3:]], K)
    exact = program(q, np.zeros(7), pose, K)
    np.testing.assert_allclose(close, exact, atol=1e-9)


def test_manipulability_tells_a_stretched_arm(arm):
    """The smallest singular value goes to zero; the product with it."""
    program = dyn.solver("manipulability").build(arm, frame="tool")
    bent = np.array([0.3, 0.6, -0.2, -1.4, 0.3, 0.8, 0.1])
    values, product = program(bent)
    assert np.all(np.diff(values) <= 0)
    assert values[-1] > 0.01
    np.testing.assert_allclose(product, np.prod(values))
    values, product = program(np.zeros(7))
    assert values[-1] < 1e-6
    assert product < 1e-6
