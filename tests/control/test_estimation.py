"""External joint forces by the momentum observer, and collisions that they show."""

import math
import warnings

import numpy as np
import pytest
from collision_trial import Noise, collision_trial

import dyn_core as dyn
from dyn_core.control import (
    CollisionDetector,
    CollisionSettings,
    Controller,
    ExternalEffort,
    Payload,
    PayloadInput,
    Rules,
    noise_thresholds,
)
from dyn_core.control.collision import deviation
from dyn_core.control.law_programs import weightless
from dyn_core.errors import DynWarning
from dyn_core.testing.case import derivative

DT = 1e-3
RAIL = """<robot name="rail"><link name="base"/><link name="cart"><inertial>
<mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/>
<axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="99" velocity="9"/>
<dynamics friction="0.7" damping="3"/></joint></robot>"""


@pytest.fixture(scope="module")
def planar():
    """Return an arm of three joints without friction."""
    return dyn.load("planar3").without_friction()


@pytest.fixture(scope="module")
def rail():
    """Return a cart of 2 kg on a rail with friction."""
    return dyn.load_urdf(RAIL)


def _motion(model, count):
    """Return times, positions, velocities and accelerations of a smooth motion."""
    t = DT * np.arange(count)[:, None]
    k = 1 + np.arange(model.nv)
    q, rate = np.sin(k * t + k), k * np.cos(k * t + k)
    return t[:, 0], q, rate, -(k**2) * np.sin(k * t + k)


def _efforts(model, count, f_ext=None, **choices):
    """Return the joint forces of that motion at the middle of each step before a row.

    Args:
        f_ext: Force on the last body, body coordinates.
        choices: Of the build.
    """
    t = DT * (np.arange(count)[:, None] - 0.5)
    k = 1 + np.arange(model.nv)
    q, rate = np.sin(k * t + k), k * np.cos(k * t + k)
    inverse = dyn.solver("rnea").build(
        model, engine="graph", inputs=["f_ext"], **choices
    )
    forces = np.zeros((count, model.nb, 6))
    if f_ext is not None:
        forces[:, -1] = f_ext
    return inverse(q, rate, -(k**2) * np.sin(k * t + k), forces)


def _observed(model, gain, q, qd, tau):
    """Return r and the effort after each cycle."""
    external, rows = ExternalEffort(model, gain, engine="graph"), []
    for k in range(len(q)):
        effort = external.update(k * DT, q[k], qd[k], tau[k])
        rows.append((external.r, effort))
    return np.swapaxes(rows, 0, 1)


# The solver


def test_the_rate_of_momentum_is_lagranges(planar):
    """beta = d(T - V)/dq where qd is the rate of q."""
    q, qd = np.array([0.3, -0.8, 1.2]), np.array([1.0, -2.0, 0.5])
    energy = dyn.solver("energy").build(planar, engine="graph")
    program = dyn.solver("momentum_observer").build(planar, engine="graph")
    zero = np.zeros(3)

    def lagrangian(position):
        kinetic, potential = energy(position, qd)
        return kinetic - potential

    slopes = [derivative(lambda t, e=e: lagrangian(q + t * e)) for e in np.eye(3)]
    beta = program(q, qd, zero, DT, *[zero] * 4).beta_next
    np.testing.assert_allclose(beta, slopes, atol=1e-9)
    assert np.abs(beta).max() > 1


def test_r_is_the_integral_of_the_source(planar):
    """r = K (p - p_0 - sum of dt (tau + mean of beta + r)), for unequal steps."""
    program = dyn.solver("momentum_observer").build(planar, engine="graph")
    rng, gain = np.random.default_rng(1), np.array([20.0, 50.0, 300.0])
    r, p, beta = np.zeros(3), *program(*[np.zeros(3)] * 3, 0.0, *[np.zeros(3)] * 4)[1:]
    start, integral = p, np.zeros(3)
    for _ in range(20):
        q, qd, tau = rng.normal(size=(3, 3))
        dt, before = rng.uniform(0.0, 0.02), beta
        r, p, beta = program(q, qd, tau, dt, gain, r, p, beta)
        integral += dt * (tau + (before + beta) / 2 + r)
        np.testing.assert_allclose(r, gain * (p - start - integral), rtol=1e-9)


@pytest.mark.parametrize("gain", [30.0, 200.0, 3000.0])
def test_a_constant_force_shows_with_the_lag_of_the_gain(planar, gain):
    """r = w (1 - (1 + K dt)^-k): exp(-K t) for small steps, and stable for any gain."""
    force, count = np.array([1.5, -0.7, 0.2]), 60
    _, q, qd, _ = _motion(planar, count)
    r, effort = _observed(planar, gain, q, qd, _efforts(planar, count) - force)
    a, k = 1 / (1 + gain * DT), np.arange(count)[:, None]
    np.testing.assert_allclose(r, force * (1 - a**k), atol=1e-3)
    np.testing.assert_allclose(
        effort, force * (1 - a**k * (1 + k * (1 - a))), atol=1e-3
    )


def test_r_becomes_the_force_at_the_tool(planar):
    """r follows J.T f within W / K + W dt / 2, where that changes by W a second.

    The effort, behind a second lag, is late by two of them.
    """
    count, gain, f = 400, 100.0, np.array([0.0, 2.0, 0.0, 3.0, 0.0, -4.0])
    _, q, qd, _ = _motion(planar, count)
    r, effort = _observed(planar, gain, q, qd, _efforts(planar, count, f))
    inverse = dyn.solver("rnea").build(planar, engine="graph", inputs=["f_ext"])
    forces = np.zeros((count, planar.nb, 6))
    forces[:, -1] = f
    zero = np.zeros(q.shape)
    wanted = inverse(q, zero, zero, 0 * forces) - inverse(q, zero, zero, forces)
    rate = np.abs(np.diff(wanted, axis=0)).max(axis=0) / DT
    late, settled = rate / gain + rate * DT / 2 + 1e-3, slice(150, None)
    assert (np.abs(r - wanted)[settled] <= late).all()
    assert (np.abs(effort - wanted)[settled] <= 2 * late).all()
    assert np.abs(wanted[settled]).max() > 5 * late.max()


def test_known_friction_is_no_external_force(rail):
    """What the Model knows of friction is not seen; without it all of it is."""
    count = 80
    _, q, qd, _ = _motion(rail, count)
    tau = _efforts(rail, count, joint_friction=True)
    assert np.abs(_observed(rail, 100.0, q, qd, tau)[0]).max() < 0.02
    smooth = rail.without_friction()
    r, _ = _observed(smooth, 100.0, q, qd, tau)
    friction = -0.7 * np.tanh(qd[-1] / 0.01) - 3 * qd[-1]
    np.testing.assert_allclose(r[-1], friction, atol=0.1)


def test_many_robots_are_observed_at_once(planar):
    """Rows of a batch are the single robots; a restart and a clock set back begin anew."""
    _, q, qd, _ = _motion(planar, 6)
    tau = _efforts(planar, 6) + 1
    many = ExternalEffort(planar, 100.0, engine="graph")
    one = ExternalEffort(planar, 100.0, engine="graph")
    for k in range(3):
        rows = many.update(k * DT, q[k : k + 3], qd[k : k + 3], tau[k : k + 3])
        alone = one.update(k * DT, q[k], qd[k], tau[k])
        np.testing.assert_array_equal(rows[0], alone)
    assert np.abs(rows).min() > 0
    assert not one.update(0.0, q[0], qd[0], tau[0]).any()
    one.update(DT, q[1], qd[1], tau[1])
    assert one.effort.any()
    one.restart()
    assert not one.effort.any()
    assert not one.update(2 * DT, q[2], qd[2], tau[2]).any()


def test_a_payload_is_part_of_the_robot(planar):
    """Attached in motion it makes no jump; not known it shows with its weight."""
    link, body = planar.frame_names[-1], Payload(1.5, (0.1, 0.0, 0.0))
    _, q, qd, qdd = _motion(planar, 120)
    inverse = dyn.solver("rnea").build(
        planar, engine="graph", inputs=[f"{link}.payload"]
    )
    middle = [(x[1:] + x[:-1]) / 2 for x in (q, qd, qdd)]
    rows = np.zeros((len(q), 10))
    rows[60:] = body.parameters
    tau = inverse(*middle, rows[1:])
    carried = PayloadInput(link)
    known = ExternalEffort(planar, 130.0, engine="graph", carried=carried)
    blind = ExternalEffort(planar, 130.0, engine="graph")
    largest = 0.0
    for k in range(120):
        if k == 59:
            carried.attach(body)
        sent = tau[max(k - 1, 0)]
        largest = max(largest, np.abs(known.update(k * DT, q[k], qd[k], sent)).max())
        blind.update(k * DT, q[k], qd[k], sent)
    assert largest < 0.02
    assert np.abs(blind.effort).max() > 2


# Noise


def test_the_deviation_is_that_of_the_impulse_responses(rail):
    """variance = sum of squares of the response to an error of one velocity, effort.

    Whatever the signs of errors, r is wrong by 2 K e at most, and by that of the effort.
    """
    count, gain = 400, 130.0
    smooth, zero = rail.without_friction(), np.zeros((count, 1))
    once = zero.copy()
    once[1] = 1.0
    for qd, tau, noise in ((once, zero, (2.0, 0.0)), (zero, once, (0.0, 1.0))):
        r, effort = _observed(smooth, gain, zero, qd, tau)
        assert np.abs(r).sum() <= (2 * gain * 2.0 if qd.any() else 1.0) + 1e-9
        expected = math.sqrt((effort**2).sum())
        assert deviation(gain, DT, *noise) == pytest.approx(expected, rel=1e-9)


def test_two_lags_are_nearly_the_best_filter():
    """0.97 of the best linear filter after ten cycles; the observer alone 0.55, 0.37."""
    momentum, effort, n, long = 4e-3, 0.2, 10, 400
    S = np.eye(long) * (2 * momentum**2 + (effort * DT) ** 2)
    S -= momentum**2 * (np.eye(long, k=1) + np.eye(long, k=-1))
    step = np.where(np.arange(long) >= long - n, DT, 0.0)
    best = math.sqrt(step @ np.linalg.solve(S, step))

    def alone(gain):
        a = 1 / (1 + gain * DT)
        noise = 2 * ((1 - a) / DT * momentum) ** 2 + (1 - a) * effort**2
        return (1 - a**n) / math.sqrt(noise / (1 + a))

    a = 1 / (1 + 130 * DT)
    two = (1 - a**n * (1 + n * (1 - a))) / deviation(130.0, DT, momentum, effort)
    assert two / best == pytest.approx(0.975, abs=0.006)
    assert alone(130.0) / best == pytest.approx(0.37, abs=0.01)
    gains = np.arange(1.0, 400.0)
    ratios = [alone(gain) / best for gain in gains]
    assert max(ratios) == pytest.approx(0.55, abs=0.01)
    assert gains[int(np.argmax(ratios))] == 11


def test_thresholds_grow_with_what_makes_noise(planar):
    """They scale with the deviations, and with inertia from the tool to the base."""
    made = noise_thresholds(planar, 130.0, DT, 1e-3, 0.2)
    assert list(made) == list(planar.joint_names)
    twice = noise_thresholds(planar, 130.0, DT, 2e-3, 0.4, sigmas=6.0)
    np.testing.assert_allclose(list(twice.values()), [2 * x for x in made.values()])
    assert list(made.values()) == sorted(made.values(), reverse=True)
    with pytest.raises(dyn.SettingError, match="effort_noise"):
        noise_thresholds(planar, 130.0, DT, 1e-3, -1.0)


# Collisions


def _detector(model, **settings):
    return CollisionDetector(model, CollisionSettings(**settings), "graph")


def _push(detector, q, qd, tau, extra, k):
    """Run cycles k with an unknown force; return the sentences."""
    rows = [detector.observe(i * DT, q[i], qd[i], tau[i + 1] - extra) for i in k]
    return [row for row in rows if row is not None]


def test_a_collision_is_named_once_until_it_is_released(planar):
    """The joint, its effort and the threshold; again only after a release."""
    _, q, qd, _ = _motion(planar, 201)
    tau, push = _efforts(planar, 201), np.array([0.0, 1.0, 0.0])
    name = planar.joint_names[1]
    detector = _detector(planar, thresholds={name: 0.5})
    assert _push(detector, q, qd, tau, 0 * push, range(50)) == []
    (sentence,) = _push(detector, q, qd, tau, push, range(50, 90))
    assert f"joint '{name}'" in sentence
    assert "threshold 0.5" in sentence
    assert detector.touched.tolist() == [False, True, False]
    np.testing.assert_allclose(detector.effort, push, atol=0.05)
    # Between release and threshold nothing changes; below it the joint is free again.
    assert _push(detector, q, qd, tau, 0.4 * push, range(90, 130)) == []
    assert detector.touched.any()
    assert _push(detector, q, qd, tau, 0 * push, range(130, 170)) == []
    assert not detector.touched.any()
    (sentence,) = _push(detector, q, qd, tau, -push, range(170, 200))
    assert "is -0.5" in sentence
    detector.restart()
    assert not detector.touched.any()
    assert not detector.effort.any()


def test_an_observer_of_another_problem_is_refused(planar):
    """Inverse dynamics takes as many inputs, and its numbers are no external forces."""
    for observer in ("rnea", dyn.solver("rnea")):
        with pytest.raises(dyn.SignatureError, match="valid: momentum_observer"):
            _detector(planar, thresholds=1.0, observer=observer)


@pytest.mark.parametrize("wrong", ["1", ["1", "1", "1"], None, [0.0, 1.0, 1.0]])
def test_thresholds_that_are_no_numbers_are_refused(planar, wrong):
    """Text is no number, also where NumPy reads one."""
    with pytest.raises(dyn.SettingError, match="collision.thresholds are .*; valid"):
        _detector(planar, thresholds=wrong)


def test_the_joint_beyond_its_threshold_most_is_named(planar):
    """Of several in one cycle; those without a threshold are not watched."""
    first, second, third = planar.joint_names
    detector = _detector(planar, thresholds={second: 0.5, third: 0.2}, gain=1e6)
    zero, tau = (
        np.zeros(3),
        -dyn.solver("gravity").build(planar, engine="graph")(np.zeros(3)),
    )
    detector.update(0.0, zero, zero, zero)
    collision = detector.update(DT, zero, zero, -np.array([9.0, 0.8, 0.6]) - tau)
    assert (collision.joint, collision.threshold, collision.time) == (third, 0.2, DT)
    assert collision.effort == pytest.approx(0.6, rel=0.01)


def test_a_state_that_is_not_a_number_is_a_collision(planar):
    """An estimate that is NaN is beyond every threshold, infinite ones too."""
    detector = _detector(planar, thresholds={planar.joint_names[0]: 1.0})
    detector.update(0.0, np.zeros(3), np.zeros(3), np.zeros(3))
    collision = detector.update(DT, np.zeros(3), np.full(3, np.nan), np.zeros(3))
    assert math.isnan(collision.effort)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"thresholds": {"elbo": 1.0}}, "elbo"),
        ({"thresholds": [1.0, 2.0]}, "valid: a number, 3, or"),
        ({"thresholds": 0.0}, "valid: > 0"),
        ({"thresholds": float("nan")}, "valid: > 0"),
        ({"thresholds": "high"}, "'high'"),
        ({"thresholds": 1.0, "gain": 0.0}, "collision.gain"),
        ({"thresholds": 1.0, "gain": float("inf")}, "collision.gain"),
        ({"thresholds": 1.0, "release": 1.5}, "collision.release"),
    ],
)
def test_settings_are_refused_in_words(planar, settings, match):
    """Each says what is wrong and what would be valid."""
    with pytest.raises(dyn.SettingError, match=match):
        _detector(planar, **settings)


@pytest.mark.parametrize(
    "settings",
    [{"gain": -130.0}, {"dt": -1e-3}, {"dt": 0.0}, {"sigmas": -1.0}, {"samples": 0}],
)
def test_noise_thresholds_are_of_numbers_in_range(planar, settings):
    """They were NaN, with a warning of NumPy."""
    (name,) = settings
    usual = {"gain": 130.0, "dt": DT, "velocity_noise": 1e-3, "effort_noise": 0.2}
    with pytest.raises(dyn.SettingError, match=f"^{name} is .*; valid: "):
        noise_thresholds(planar, **{**usual, **settings})


@pytest.mark.parametrize("dt", [1000.0, 1.0])
def test_a_rate_in_place_of_a_period_is_asked_about(planar, dt):
    """Or milliseconds: the thresholds were those of filters that filter nothing."""
    with pytest.warns(DynWarning, match=f"dt {dt:g} s is long .*valid: seconds"):
        noise_thresholds(planar, 130.0, dt, 1e-3, 0.2)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        for usual in (1e-3, 0.02):
            noise_thresholds(planar, 130.0, usual, 1e-3, 0.2)
    assert not issued


def test_other_objects_than_settings_and_robots_are_named(planar):
    """They were errors of Python from the inside."""
    with pytest.raises(dyn.SettingError, match=r"8.0; valid: CollisionSettings\("):
        CollisionDetector(planar, 8.0)
    for make in (
        lambda: CollisionDetector("arm7", CollisionSettings(8.0)),
        lambda: ExternalEffort("arm7", 130.0),
        lambda: noise_thresholds("arm7", 130.0, DT, 1e-3, 0.2),
        lambda: weightless("arm7"),
    ):
        with pytest.raises(
            dyn.UnsupportedError, match="is for a Model, not for 'arm7'"
        ):
            make()


# The requirement: a push of 5 N within 10 ms, nothing else in an hour


GAIN = 130.0


def _thresholds(arm):
    return noise_thresholds(arm, GAIN, DT, Noise().velocity, Noise().effort)


def test_pushes_are_noticed_within_ten_milliseconds():
    """5 N at the tool that are 2 N·m on some joint; the motion alone is no collision."""
    arm = dyn.load("arm7")
    settings = CollisionSettings(_thresholds(arm), gain=GAIN)
    trial = collision_trial(arm, settings, robots=250, duration=0.1, push=5.0)
    assert trial.false_alarms == 0
    assert trial.cycles == 25_000
    assert len(trial.delays) >= 200
    assert trial.efforts.min() >= 2.0
    assert trial.delays.max() <= 0.010 + 1e-9, str(trial)
    assert np.median(trial.delays) <= 0.007 + 1e-9
    assert "pushes noticed" in str(trial)
    # The trial can fail: a third of a threshold is noise, the fourfold is late.
    low = {joint: x / 3 for joint, x in settings.thresholds.items()}
    loud = collision_trial(arm, CollisionSettings(low, gain=GAIN), duration=0.1)
    assert loud.false_alarms > 0
    high = {joint: x * 4 for joint, x in settings.thresholds.items()}
    settings = CollisionSettings(high, gain=GAIN)
    deaf = collision_trial(arm, settings, duration=0.01, push=5.0)
    assert deaf.delays.max() > 0.010


@pytest.mark.full
def test_an_hour_without_a_false_alarm():
    """600 robots for 6 s each: 3.6 million cycles, then a push each. Half a minute."""
    arm = dyn.load("arm7")
    settings = CollisionSettings(_thresholds(arm), gain=GAIN)
    trial = collision_trial(arm, settings, robots=600, duration=6.0, push=5.0, seed=1)
    assert trial.cycles == 3_600_000
    assert trial.false_alarms == 0
    assert len(trial.delays) >= 500
    assert trial.delays.max() <= 0.010 + 1e-9, str(trial)


# In the controller


PUSH = np.array([0.0, 3.0, 0.0, 20.0, 0.0, 20.0])  # on the last body, in the plane


def _closed_loop(controller, cycles, f=0.0, start=0, state=None):
    """Run until a stop; return the last cycle, its effort, and the state."""
    model, nothing = controller.model, np.zeros((controller.model.nb, 6))
    plant = dyn.solver("semi_implicit_euler").build(
        model, engine="graph", inputs=["f_ext"], joint_friction=True
    )
    q, qd = state or (np.array([0.5, -1.0, 0.8]), np.zeros(3))
    nothing[-1] = f
    for k in range(start, start + cycles):
        tau = controller.update(k * DT, q, qd)
        if controller.stopped is not None:
            break
        q, qd = plant(q, qd, tau, DT, nothing)
    return k, tau, (q, qd)


def _controlled(model, kind, **settings):
    rules = Rules(on_collision=kind, good_samples=1)
    settings = {"collision": CollisionSettings(0.8), **settings}
    made = Controller(model, engine="graph", rules=rules, **settings)
    k, _, state = _closed_loop(made, 60)
    assert made.stopped is None
    assert np.abs(made.detector.effort).max() < 0.1
    return made, k + 1, state


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_a_collision_stops_as_the_rules_say(kind):
    """In its cycle: no effort, the weight, or the position; until it is reset."""
    model = dyn.load("planar3")
    controller, k, state = _controlled(model, kind)
    last, tau, (q, qd) = _closed_loop(controller, 20, PUSH, k, state)
    stop = controller.stopped
    assert (stop.cause, stop.kind) == ("collision", kind)
    assert "external effort of joint 'joint" in stop.reason
    assert last - k <= 10
    assert controller.counters["stopped: collision"] == 1
    weight = dyn.solver("gravity").build(model, engine="graph")(q)
    assert np.abs(weight).max() > 1
    if kind == "zero":
        assert not tau.any()
    else:
        np.testing.assert_allclose(tau, weight, atol=3.0)
    assert controller.reference.q == pytest.approx(q, abs=0.05)
    for extra in range(1, 5):
        controller.update((last + extra) * DT, q, 0 * qd)
    assert controller.stopped is stop
    controller.reset_stop()
    assert not controller.detector.effort.any()
    _closed_loop(controller, 60, start=last + 5, state=(q, 0 * qd))
    assert controller.stopped is None


def test_time_is_that_of_stamps(planar):
    """Receipts that come late change nothing in the estimate."""
    efforts = []
    for late in (0.0, 9e-4):
        controller = _controlled(planar, "zero", collision=CollisionSettings(1e3))[0]
        controller.begin()
        for k in range(40):
            q = np.array([0.5, -1.0, 0.8]) + 0.09 * k * DT
            t = k * DT + late * (k % 2)
            controller.update(t, q, np.full(3, 0.09), stamp=50.0 + k * DT)
        efforts.append(controller.detector.effort)
    np.testing.assert_allclose(*efforts, rtol=1e-9)
    assert np.abs(efforts[0]).max() > 0.1


def test_brakes_are_no_collision(planar):
    """Disabled, a robot is carried by its brakes; enabled again nothing is left of it."""
    controller, k, state = _controlled(planar, "zero")
    controller.enabled = False
    for extra in range(50):
        controller.update((k + extra) * DT, *state)
    assert controller.stopped is None
    controller.reset()
    controller.enabled = True
    _closed_loop(controller, 50, start=k + 50, state=state)
    assert controller.stopped is None


def test_what_fails_to_watch_stops(planar):
    """An observer of a plugin that raises is no reason to go on."""
    controller, k, state = _controlled(planar, "zero")

    def fail(*args):
        raise ZeroDivisionError("no mass")

    controller.detector.external.program = fail
    tau = controller.update(k * DT, *state)
    assert not tau.any()
    assert controller.stopped.reason == "CollisionDetector fails: no mass"
