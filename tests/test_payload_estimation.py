"""The payload of a link by the filter of momentum, and how sure it is."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import (
    Controller,
    Payload,
    PayloadEstimate,
    PayloadEstimator,
    PayloadSettings,
    Rules,
)
from dyn_core.testing.collision_trial import Noise
from dyn_core.testing.payload_trial import Disturbance, payload_trial
from dyn_plugins.estimation._covariance_factors import CovarianceFactors

LOAD = Payload(1.2, (0.02, -0.01, 0.09), (0.006, 0.001, -0.0005, 0.008, 0.0, 0.004))


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


def _least_squares(arm, choices, cycles):
    """Return states for the filter, and rows of all least squares up to each of them.

    Unknown are the momenta of each cycle and the payload. Momenta and rates of unit
    payloads are those of the momentum observer.
    """
    rng, m = np.random.default_rng(0), arm.nv
    observer = dyn.solver("momentum_observer").build(
        arm, engine="graph", inputs=["tool.payload"], joint_friction=True
    )
    inertia = dyn.solver("crba").build(arm, engine="graph", inputs=["tool.payload"])
    none, last = np.zeros(m), None
    speed, effort, prior = choices

    def parts(q, qd):
        p, beta = observer(q, qd, none, 1e-3, *[none] * 4, np.zeros(10))[1:]
        made = [observer(q, qd, none, 1e-3, *[none] * 4, e)[1:] for e in np.eye(10)]
        Y = np.array([x.p_next - p if hasattr(x, "p_next") else x[0] - p for x in made])
        B = np.array([x[1] - beta for x in made])
        return p, beta, Y.T, B.T

    size = m * cycles + 10
    rows, right = [np.zeros((10, size))], [np.zeros(10)]
    rows[0][:, -10:] = np.diag(1 / prior)
    for k in range(cycles):
        q, qd, tau = rng.uniform(-1, 1, m), rng.normal(size=m), 5 * rng.normal(size=m)
        dt = rng.uniform(5e-4, 2e-3) * (k > 0)
        p, beta, Y, B = parts(q, qd)
        payload = yield (q, qd, tau, dt), None
        loaded, bare = inertia(q, payload), inertia(q, np.zeros(10))
        R = (loaded * speed**2) @ loaded.T + (bare * speed**2) @ bare.T / 16
        W = np.linalg.inv(np.linalg.cholesky(R))
        row = np.zeros((m, size))
        row[:, m * k : m * (k + 1)], row[:, -10:] = W, -W @ Y
        rows, right = [*rows, row], [*right, W @ p]
        if k:
            row = np.zeros((m, size))
            row[:, m * k : m * (k + 1)] = np.eye(m)
            row[:, m * (k - 1) : m * k] = -np.eye(m)
            row[:, -10:] = -dt * (B + last[1]) / 2
            weight = 1 / (dt * effort)
            rows.append(row * weight[:, None])
            right.append(weight * dt * (tau + (beta + last[0]) / 2))
        last = beta, B
        yield None, (np.vstack(rows), np.concatenate(right))


def test_the_filter_is_batch_least_squares_on_the_same_rows(arm):
    """Estimate and covariance, to 1e-9, of noises that differ by joint."""
    speed, effort = 1e-3 * np.arange(1, 8), np.linspace(0.1, 0.4, 7)
    prior = np.array([5, 1, 1, 1, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    program = dyn.solver("payload_filter").build(
        arm, frame="tool", engine="graph", gate=1e9, alarm=1e9, joint_friction=True
    )
    memory, payload = np.zeros(program.inputs[-1].shape), np.zeros(10)
    reference = _least_squares(arm, (speed, effort, prior), 12)
    more = speed, effort, prior, np.zeros(10)
    for state, _ in reference:
        before = payload
        payload, covariance, _, used, _, memory = program(*state, *more, memory)
        _, (rows, right) = reference.send(before)
        shown = np.abs(rows).sum(axis=0) > 0
        wanted = np.linalg.lstsq(rows[:, shown], right, rcond=None)[0][-10:]
        assert used == (state[3] > 0)
    np.testing.assert_allclose(payload, wanted, rtol=1e-9, atol=1e-9)
    triangle = np.linalg.qr(rows[:, shown], mode="r")
    expected = np.linalg.inv(triangle.T @ triangle)[-10:, -10:]
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
            "rnea solves inverse_dynamics; valid: .*payload_filter",
        ),
    ],
)
def test_settings_are_refused_in_words(arm, settings, match):
    """Each says what is wrong and what would be valid."""
    with pytest.raises(dyn.SettingError, match=match):
        PayloadEstimator(arm, PayloadSettings("tool", **settings), "graph")
