"""The payload of a link by the filter of momentum, and how sure it is."""

import numpy as np
import pytest
from collision_trial import Noise
from payload_trial import Disturbance, payload_trial

import dyn_core as dyn
from dyn_core.authoring import sin
from dyn_core.control import (
    Controller,
    Payload,
    PayloadEstimate,
    PayloadEstimator,
    PayloadSettings,
    Rules,
)
from dyn_core.model.payload import PayloadInput
from dyn_core.simulation.contacts import WrenchSensor
from dyn_plugins.estimation.payload_filter import CovarianceFactors

LOAD = Payload(1.2, (0.02, -0.01, 0.09), (0.006, 0.001, -0.0005, 0.008, 0.0, 0.004))
SENSOR = [0.01] * 3 + [0.2] * 3  # noise of a force-torque sensor [N·m; N]


@pytest.fixture(scope="module")
def arm():
    """Return the shipped arm."""
    return dyn.load("arm7")


def _payloads(count, seed=7):
    """Return bodies of 0.5 to 2 kg within 15 cm of the link, five points each."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        mass = rng.uniform(0.5, 2.0)
        com = rng.uniform(-0.05, 0.05, 3) + [0.0, 0.0, 0.1]
        points = 0.05 * rng.normal(size=(5, 3))
        spread = points.T @ points / 5
        I = mass * (np.trace(spread) * np.eye(3) - spread)
        made.append(Payload(mass, com, I[np.triu_indices(3)]))
    return made


# The factors of a covariance


def _random_factors(rng, n):
    factors = CovarianceFactors(
        rng.normal(size=(n, n)).tolist(), rng.uniform(0.5, 2, n).tolist()
    )
    return factors, np.array(factors.matrix(), float)


def test_factors_follow_the_covariance():
    """Noise, a shift and a measurement do to the factors what they do to P."""
    rng = np.random.default_rng(0)
    factors, P = _random_factors(rng, 5)
    U = np.triu(np.array(factors.U), 1) + np.eye(5)
    np.testing.assert_allclose(P, U @ np.diag(factors.D) @ U.T, atol=1e-12)
    unit = np.eye(5)[3]
    noisy = np.array(factors.with_noise(3, 0.7).matrix(), float)
    np.testing.assert_allclose(noisy, P + 0.7 * np.outer(unit, unit), atol=1e-12)
    A = rng.normal(size=(2, 3))
    F = np.eye(5)
    F[:2, 2:] = A
    shifted = factors.shifted(dyn.spatial.Matrix(A.tolist()))
    np.testing.assert_allclose(np.array(shifted.matrix()), F @ P @ F.T, atol=1e-12)
    h = rng.normal(size=5)
    after, gain, variance = factors.measured(h.tolist(), 0.3)
    S = h @ P @ h + 0.3
    assert variance == pytest.approx(S, rel=1e-12)
    np.testing.assert_allclose(np.array(gain), P @ h / S, atol=1e-12)
    expected = P - np.outer(P @ h, P @ h) / S
    np.testing.assert_allclose(np.array(after.matrix()), expected, atol=1e-12)


def test_numbers_that_are_known_stay_known():
    """A variance of zero stays zero, without a division by it."""
    factors = CovarianceFactors.diagonal([0.0, 4.0])
    same = factors.with_noise(1, 0.0).with_noise(0, 0.0)
    np.testing.assert_allclose(np.array(same.matrix()), np.diag([0.0, 4.0]))
    after, gain, _ = factors.measured([1.0, 1.0], 1.0)
    assert gain[0] == 0
    assert after.D[0] == 0
    assert after.D[1] == pytest.approx(0.8)


# The filter


class _BatchLeastSquares:
    """Rows of all cycles together; unknown are the momenta of each and the payload.

    Momenta and rates of unit payloads are those of the momentum observer.
    """

    def __init__(self, arm, speed, effort, prior, cycles):
        loaded = {"engine": "graph", "inputs": ["tool.payload"]}
        self.observer = dyn.solver("momentum_observer").build(
            arm, joint_friction=True, **loaded
        )
        self.inertia = dyn.solver("crba").build(arm, **loaded)
        self.speed, self.effort, self.m, self.k = speed, effort, arm.nv, 0
        self.size = arm.nv * cycles + 10
        self.rows, self.right = [], []
        self.append(1 / prior, {"payload": np.eye(10)}, np.zeros(10))

    def append(self, weights, parts, right):
        """Append rows with some columns, given by cycle or for the payload."""
        rows = np.zeros((len(right), self.size))
        for place, columns in parts.items():
            first = self.size - 10 if place == "payload" else self.m * place
            rows[:, first : first + columns.shape[1]] = columns
        self.rows.append(weights[:, None] * rows)
        self.right.append(weights * right)

    def cycle(self, q, qd, tau, dt, payload):
        """Append a measured momentum, and that it follows from the one before.

        Args:
            payload: Estimate before this cycle, which is part of the noise.
        """
        p, beta, Y, B = self.unit_momenta(q, qd)
        loaded, bare = self.inertia(q, payload), self.inertia(q, np.zeros(10))
        R = (loaded * self.speed**2) @ loaded.T + (bare * self.speed**2) @ bare.T / 16
        W, ones = np.linalg.inv(np.linalg.cholesky(R)), np.ones(self.m)
        self.append(ones, {self.k: W, "payload": -W @ Y}, W @ p)
        if self.k:
            unit, steps = np.eye(self.m), 1 / (dt * self.effort)
            parts = {self.k: unit, self.k - 1: -unit}
            parts["payload"] = -dt * (B + self.last[1]) / 2
            self.append(steps, parts, dt * (tau + (beta + self.last[0]) / 2))
        self.last, self.k = (beta, B), self.k + 1

    def unit_momenta(self, q, qd):
        """Return momentum and rate without payload, and for each number of one."""
        none = np.zeros(self.m)
        state = q, qd, none, 1e-3, none, none, none, none
        p, beta = self.observer(*state, np.zeros(10))[1:]
        each = [self.observer(*state, e)[1:] for e in np.eye(10)]
        Y, B = ([x[k] - (p, beta)[k] for x in each] for k in range(2))
        return p, beta, np.transpose(Y), np.transpose(B)

    def solution(self):
        """Return the payload and its covariance."""
        A = np.vstack(self.rows)
        A = A[:, np.abs(A).sum(axis=0) > 0]  # cycles to come
        x = np.linalg.lstsq(A, np.concatenate(self.right), rcond=None)[0]
        triangle = np.linalg.qr(A, mode="r")
        return x[-10:], np.linalg.inv(triangle.T @ triangle)[-10:, -10:]


def test_the_filter_is_batch_least_squares_on_the_same_rows(arm):
    """Estimate and covariance, to 1e-9, of noises that differ by joint."""
    speed, effort = 1e-3 * np.arange(1, 8), np.linspace(0.1, 0.4, 7)
    prior = np.array([5, 1, 1, 1, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    program = dyn.solver("payload_filter").build(
        arm, frame="tool", engine="graph", gate=1e9, alarm=1e9, joint_friction=True
    )
    rng, payload = np.random.default_rng(0), np.zeros(10)
    memory = np.zeros(program.inputs[-1].shape)
    batch = _BatchLeastSquares(arm, speed, effort, prior, 12)
    for k in range(12):
        state = rng.uniform(-1, 1, 7), rng.normal(size=7), 5 * rng.normal(size=7)
        dt = rng.uniform(5e-4, 2e-3) * (k > 0)
        batch.cycle(*state, dt, payload)
        payload, covariance, _, used, _, memory = program(
            *state, dt, speed, effort, prior, np.zeros(10), memory
        )
        assert used == (k > 0)
    wanted, expected = batch.solution()
    np.testing.assert_allclose(payload, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-9)
    assert np.abs(payload).max() > 1
    assert (np.sqrt(np.diag(covariance)) < 0.2 * prior).all()


def test_numbers_without_a_prior_deviation_are_kept(arm):
    """Of a point mass no inertia is estimated: it stays zero, with no deviation."""
    program = dyn.solver("payload_filter").build(arm, frame="tool", engine="graph")
    rng, memory = np.random.default_rng(3), np.zeros(program.inputs[-1].shape)
    prior = np.array([1.0] * 4 + [0.0] * 6)
    more = np.full(7, 1e-3), np.full(7, 0.1), prior, np.zeros(10)
    for k in range(4):
        state = rng.uniform(-1, 1, 7), rng.normal(size=7), rng.normal(size=7), 0.01 * k
        result = program(*state, *more, memory)
        memory = result.memory_next
    assert not result.payload[4:].any()
    assert not result.covariance[4:].any()
    assert np.isfinite(memory).all()
    assert (np.diag(result.covariance)[:4] > 0).all()


def test_a_link_that_nothing_moves_is_refused(arm):
    """The message lists the links that a payload of shows."""
    with pytest.raises(dyn.UnsupportedError, match=r"nothing moves link 'link0'.*tool"):
        dyn.solver("payload_filter").build(arm, frame="link0")


# What it says of itself


def _shares(trial, which=slice(None)):
    """Return the shares of errors within one and within two deviations, at the end."""
    return trial.covered(1.0)[-1][which].mean(), trial.covered(2.0)[-1][which].mean()


def test_deviations_are_honest(arm):
    """300 arms: 68 % and 95 % of the errors within one and two deviations.

    So it is for inertia alone, and with half a second of motion; nothing is taken for
    another payload. Mass is right to 2 %, the median of first moments to 5 %.
    """
    trial = payload_trial(
        arm, PayloadSettings("tool"), _payloads(300), times=(0.5, 2.0)
    )
    for k in range(2):
        within = trial.covered(1.0)[k], trial.covered(2.0)[k]
        for part in (slice(None), slice(4, 10)):
            assert 0.63 < within[0][part].mean() < 0.73
            assert 0.93 < within[1][part].mean() < 0.975
        spread = trial.normal[k].std(axis=0)
        assert (np.abs(spread - 1) < 0.15).all(), spread
        assert (np.abs(trial.normal[k].mean(axis=0)) < 0.35).all()
    assert trial.mismatch.mean() == pytest.approx(1.0, abs=0.03)
    assert not trial.changes.any()
    assert trial.mass_error[-1].max() < 0.02
    assert np.median(trial.moment_error[-1]) < 0.02
    assert np.quantile(trial.moment_error[-1], 0.95) < 0.05


@pytest.mark.full
def test_errors_of_efforts_with_a_memory_are_honest_if_said(arm):
    """Errors that last for 10 ms: five times as many are within as without saying so."""
    wrong = Disturbance(memory=0.01)
    said = PayloadSettings("tool", effort_memory=0.01)
    one, two = _shares(payload_trial(arm, said, _payloads(150), disturbance=wrong))
    assert 0.63 < one < 0.75
    assert 0.93 < two < 0.985
    unsaid = payload_trial(
        arm, PayloadSettings("tool"), _payloads(150), disturbance=wrong
    )
    assert _shares(unsaid)[1] < 0.9
    assert unsaid.mismatch.mean() > 2  # which says that something is wrong


def test_outliers_are_left_out(arm):
    """Efforts of 50 N·m for a cycle, twice a second on each joint: as if not there."""
    wrong = Disturbance(outliers=0.002)
    trial = payload_trial(
        arm, PayloadSettings("tool"), _payloads(150), disturbance=wrong
    )
    one, two = _shares(trial)
    assert trial.outliers.mean() > 5
    assert 0.62 < one < 0.74
    assert 0.92 < two < 0.98
    assert trial.mass_error[-1].max() < 0.02
    assert (trial.changes > 0).mean() < 0.1


def test_another_payload_is_noticed(arm):
    """Within 0.2 s its mass is known, and within another second its deviations hold."""
    wrong = Disturbance(change=1.0)
    trial = payload_trial(
        arm, PayloadSettings("tool"), _payloads(150), disturbance=wrong,
        times=(0.98, 1.3, 2.0),
    )  # fmt: skip
    assert (trial.changes >= 1).all()
    assert np.median(trial.mass_error[0]) > 0.2
    assert np.quantile(trial.mass_error[1], 0.9) < 0.05
    one, two = _shares(trial)
    assert 0.61 < one < 0.74
    assert 0.91 < two < 0.98


def test_noise_that_is_worse_than_said_widens_the_deviations(arm):
    """A third more noise than said: mismatch 1.7, and the deviations grow with it."""
    worse = Noise(velocity=1.3e-3, effort=0.26)
    trial = payload_trial(arm, PayloadSettings("tool"), _payloads(150), noise=worse)
    assert trial.mismatch.mean() == pytest.approx(1.69, abs=0.1)
    one, two = _shares(trial)
    assert 0.60 < one < 0.74
    assert 0.90 < two < 0.98


# The estimator


def _estimate():
    rng = np.random.default_rng(2)
    A = 0.01 * rng.normal(size=(10, 10))
    return PayloadEstimate(LOAD.parameters, A @ A.T, 0.0)


def test_centre_and_inertia_have_the_deviations_of_first_order():
    """Those of draws of the ten numbers; the payload is that of before."""
    estimate, rng = _estimate(), np.random.default_rng(3)
    np.testing.assert_allclose(estimate.com, LOAD.com, atol=1e-12)
    np.testing.assert_allclose(estimate.inertia, LOAD.inertia, atol=1e-12)
    assert estimate.payload() == LOAD or estimate.possible
    small = estimate.covariance * 1e-4
    drawn = rng.multivariate_normal(estimate.ten, small, 20_000)
    many = PayloadEstimate(drawn, small, 0.0)
    tight = PayloadEstimate(estimate.ten, small, 0.0)
    np.testing.assert_allclose(many.com.std(axis=0), tight.com_deviations, rtol=0.03)
    np.testing.assert_allclose(
        many.inertia.std(axis=0), tight.inertia_deviations, rtol=0.03
    )
    assert tight.deviations[0] == pytest.approx(np.sqrt(small[0, 0]))


def test_numbers_of_no_body_are_said_so():
    """A negative mass or moment of inertia is no payload to attach."""
    ten = LOAD.parameters
    assert PayloadEstimate(ten, np.eye(10), 0.0).possible
    light = PayloadEstimate(np.array([-0.1, *ten[1:]]), np.eye(10), 0.0)
    assert not light.possible
    assert np.isnan(light.com).all()
    with pytest.raises(dyn.SettingError, match=r"mass -0\.1 kg; valid: above 0"):
        light.payload()
    flat = ten.copy()
    flat[4] -= 0.05
    with pytest.raises(dyn.SettingError, match="principal moments"):
        PayloadEstimate(flat, np.eye(10), 0.0).payload()


def test_a_period_takes_the_mean_of_its_efforts(arm):
    """Cycles of other lengths within it weigh by their time; gaps begin anew."""
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1, 1, (2, 7)), rng.normal(size=(2, 7))
    tau, steps = rng.normal(size=(3, 7)), [0.002, 0.012, 0.006]
    fine = PayloadEstimator(arm, PayloadSettings("tool"), "graph")
    coarse = PayloadEstimator(arm, PayloadSettings("tool"), "graph")
    for each in (fine, coarse):
        each.effort_noise = np.full(7, 0.2)
        first = each.update(1.0, q[0], qd[0], tau[0])
        assert not first.ten.any()
    t = 1.0
    for effort, step in zip(tau, steps, strict=True):
        t += step
        got = fine.update(t, q[1], qd[1], effort)
    mean = (np.array(steps)[:, None] * tau).sum(axis=0) / 0.02
    coarse.effort_noise = np.full(7, 0.2 * np.sqrt(np.square(steps).sum()) / 0.02)
    wanted = coarse.update(1.02, q[1], qd[1], mean)
    np.testing.assert_allclose(got.ten, wanted.ten, rtol=1e-9)
    np.testing.assert_allclose(got.covariance, wanted.covariance, rtol=1e-9, atol=1e-12)
    assert (fine.cycles, got.time) == (2, t)
    for late in (1.1, 0.5):  # a gap, and a clock that goes back
        after = fine.update(late, q[0], qd[0], 100 * tau[0])
        np.testing.assert_array_equal(after.ten, got.ten)
    assert fine.outliers == 0
    fine.forget()
    assert fine.estimate is None
    assert not fine.update(2.0, q[0], qd[0], tau[0]).ten.any()


def test_an_observer_of_the_controller_estimates_and_never_stops(arm):
    """The efforts are those that are sent; a resting arm shows the moment of weight."""
    arm = arm.without_friction()
    estimator = PayloadEstimator(
        arm, PayloadSettings("tool", effort_noise=0.01), "graph"
    )
    controller = Controller(
        arm, engine="graph", rules=Rules(good_samples=1), observers=[estimator]
    )
    plant = dyn.solver("rk4").build(
        arm, engine="graph", joint_friction=True, inputs=["tool.payload"]
    )
    q, qd = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]), np.zeros(7)
    for k in range(150):
        tau = controller.update(0.002 * k, q, qd)
        q, qd = plant(q, qd, tau, 0.002, LOAD.parameters)
    assert controller.stopped is None
    weight = dyn.solver("gravity").build(arm, engine="graph", inputs=["tool.payload"])
    shown, truth = (
        weight(q, x) - weight(q, np.zeros(10))
        for x in (estimator.estimate.ten, LOAD.parameters)
    )
    np.testing.assert_allclose(shown, truth, atol=0.05)
    assert np.abs(truth).max() > 3
    before = estimator.estimate
    controller.reset()
    assert estimator.estimate is before


@pytest.fixture(scope="module")
def sensed(arm):
    """Return noisy times, states and readings at the flange of an arm with LOAD.

    The sensor is that of the simulator, ContactSimulator.wrench.
    """
    sensor = WrenchSensor(arm, "flange", PayloadInput("tool"), "graph")
    middle, dt = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]), 0.002
    rate, rng, rows = np.arange(3.0, 6.5, 0.5), np.random.default_rng(0), []

    def motion(t):
        s, c = 0.4 * np.sin(rate * t), 0.4 * np.cos(rate * t)
        return middle + s, rate * c, -rate * rate * s

    for t in dt * np.arange(1000):
        before = (*motion(t - dt / 2), np.zeros((7, 6)))
        reading = sensor.read(before, [LOAD.parameters]) + rng.normal(size=6) * SENSOR
        q, qd, _ = motion(t)
        rows.append((t, q, qd + 1e-3 * rng.normal(size=7), reading))
    return rows


def _from_sensor(arm, rows, change=lambda reading: reading):
    settings = PayloadSettings("tool", effort_noise=SENSOR, sensor="flange")
    estimator = PayloadEstimator(arm, settings, "graph")
    for t, q, qd, reading in rows:
        estimator.update(t, q, qd, change(reading))
    return estimator


def _errors(estimate):
    """Return errors of mass, centre and inertia, by what is allowed."""
    mass, com, inertia = LOAD.mass, np.array(LOAD.com), np.array(LOAD.inertia)
    return np.abs([
        (estimate.mass / mass - 1) / 5e-3,
        *(estimate.com - com) / 5e-4,
        *(estimate.inertia - inertia) / 3e-3,
    ])  # fmt: skip


def test_a_force_torque_sensor_shows_the_payload(arm, sensed):
    """Mass to 0.5 %, its centre to 0.5 mm, as its deviations say."""
    estimator = _from_sensor(arm, sensed)
    assert _errors(estimator.estimate).max() < 1
    assert abs(estimator.estimate.mass - LOAD.mass) < 1e-3  # as estimation.md says
    assert np.linalg.norm(estimator.estimate.com - LOAD.com) < 2e-4
    normal = (estimator.estimate.ten - LOAD.parameters) / estimator.estimate.deviations
    assert np.abs(normal[:4]).max() < 4.0
    assert (estimator.outliers, estimator.changes) == (0, 0)


def test_a_sensor_moves_with_driven_places(arm):
    """The velocity of its link is that of its pose, also where time moves the base."""
    driven = arm.drive("joint1", lambda t: (None, (0.5 * sin(3 * t), t * t, 0.0)))
    settings = PayloadSettings("tool", sensor="flange")
    link = PayloadEstimator(driven, settings, "graph")._sensed
    rng, t, h = np.random.default_rng(0), 0.3, 1e-6
    q, qd = arm.random(rng), rng.normal(size=7)
    before, after = (link.state(q + s * qd, qd, 1e-3, t + s)[0] for s in (-h, h))
    _, v, _ = link.state(q, qd, 1e-3, t)
    moved = link.model.difference(before, after) / (2 * h)
    np.testing.assert_allclose(v, moved, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: -r,
        lambda r: np.r_[r[3:], r[:3]],
        lambda r: np.r_[-r[:3], r[3:]],
        lambda r: r[[1, 0, 2, 4, 3, 5]],
    ],
    ids=["sign", "moment and force", "sign of the moment", "axes"],
)
def test_a_wrong_convention_of_the_sensor_shows_another_payload(arm, sensed, change):
    """With a wrong sign of the moment alone, forces still show mass and centre."""
    estimate = _from_sensor(arm, sensed, change).estimate
    assert not _errors(estimate).max() < 5


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [1e7, 1e200, 1e308])
def test_a_reading_of_any_size_is_one_outlier(arm, sensed, size):
    """Its square may be infinite; mismatch and deviations stay finite."""
    rows = [*sensed[:300]]
    rows[200] = (*rows[200][:3], np.full(6, size))
    estimator = _from_sensor(arm, rows)
    assert (estimator.outliers, estimator.changes) == (1, 0)
    assert 0 < estimator.mismatch < 4
    assert np.isfinite(estimator.estimate.deviations).all()


def test_a_sensor_sees_all_that_hangs_on_it_and_nothing_else(arm):
    """A link that stands, one with joints behind it, and a payload in front of it."""
    locked = arm.lock({"joint7": 0.4})
    at_wrist = PayloadEstimator(locked, PayloadSettings("tool", sensor="link6"))
    assert at_wrist.program.model.frame_names == ("link6", "link7", "flange", "tool")
    assert at_wrist.program.model.nv == 6  # the locked joint stays locked
    forced = arm.with_forces(lambda model, q, qd: [-0.1 * x for x in qd])
    of_forced = PayloadEstimator(forced, PayloadSettings("tool", sensor="flange"))
    assert of_forced.program.model.build.forces == ()  # not of its six coordinates
    for link, sensor, kind, match in (
        ("tool", "link0", dyn.UnsupportedError, "no joint moves link 'link0'"),
        ("tool", "link6", dyn.UnsupportedError, "'joint7' moves behind 'link6'"),
        ("link7", "flange", dyn.ModelError, "link7"),
        ("tool", "hand", dyn.ModelError, "no link is called 'hand'"),
    ):
        with pytest.raises(kind, match=match):
            PayloadEstimator(arm, PayloadSettings(link, sensor=sensor))


def test_the_place_of_a_driven_joint_is_known():
    """A pendulum whose pivot shakes: the payload explains its forces, at any time."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    name, link = model.joint_names[0], "link2"
    model = model.drive(name, lambda t: (None, (0.0, sin(5.0 * t) * 0.1, 0.0)))
    model = model.without_friction()
    paths = {"engine": "graph", "inputs": ["time", f"{link}.payload"]}
    plant = dyn.solver("rk4").build(model, **paths)
    settings = {"velocity_noise": 1e-4, "effort_noise": 1e-2, "period": 2e-3}
    estimator = PayloadEstimator(model, PayloadSettings(link, **settings), "graph")
    q, qd, load = np.array([0.3, 0.5]), np.zeros(2), LOAD.parameters
    estimator.update(0.0, q, qd, qd)
    for k in range(500):
        t = 0.002 * k
        tau = np.array([3.0 * np.sin(7 * t), np.sin(11 * t)])
        q, qd = plant(q, qd, tau, 0.002, t, load)
        estimate = estimator.update(t + 0.002, q, qd, tau)
    rnea = dyn.solver("rnea").build(model, **paths)
    state = [0.2, -0.4], [1.0, 2.0], [2.0, -1.0], 0.13
    expected = rnea(*state, load)
    np.testing.assert_allclose(rnea(*state, estimate.ten), expected, atol=0.02)
    assert np.abs(expected - rnea(*state, np.zeros(10))).max() > 5
    assert not estimator.changes


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"velocity_noise": 0.0}, "velocity_noise must be above zero"),
        ({"effort_noise": [0.1, 0.2]}, "a number, or 7"),
        ({"effort_noise": -1.0}, ">= 0"),
        ({"largest_mass": 0.0}, "largest_mass"),
        ({"reach": float("nan")}, "reach"),
        ({"drift": -1.0}, "drift"),
        ({"period": 0.0}, "period"),
        ({"effort_memory": -1.0}, "effort_memory"),
        (
            {"estimator": "rnea"},
            "'rnea' solves inverse_dynamics, not payload_est.*payload_filter",
        ),
    ],
)
def test_settings_are_refused_in_words(arm, settings, match):
    """Each says what is wrong and what would be valid."""
    with pytest.raises(dyn.DynError, match=match):
        PayloadEstimator(arm, PayloadSettings("tool", **settings), "graph")


def test_noises_are_refused_at_once_and_other_objects_are_named(arm):
    """A wrong noise was refused only where the estimator was built."""
    for noise in ({"velocity_noise": -1}, {"velocity_noise": [0.0]},
                  {"effort_noise": -1.0}, {"effort_noise": "x"},
                  {"velocity_noise": None}):  # fmt: skip
        (name,) = noise
        with pytest.raises(dyn.SettingError, match=f"^{name} "):
            PayloadSettings("tool", **noise)
    with pytest.raises(dyn.SettingError, match=r"'tool'; valid: PayloadSettings\("):
        PayloadEstimator(arm, "tool")
    with pytest.raises(dyn.UnsupportedError, match="not for 'arm7'"):
        PayloadEstimator("arm7", PayloadSettings("tool"))
