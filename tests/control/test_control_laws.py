"""Impedance, the integral of the error, and efforts that a trajectory adds."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules, ShadowSettings, make_trajectory
from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.reference.following import TrajectoryFollower

JOINTS = ("shoulder", "elbow")
Q = np.array([0.4, -0.9])


@pytest.fixture(scope="module")
def two():
    """Return an arm of two joints, the first two of the shipped arm."""
    lock = {f"joint{k}": 0.0 for k in range(3, 8)}
    return dyn.load_urdf(dyn.robots.path("arm7"), lock=lock)


def _controller(model, **settings):
    rules = Rules(good_samples=1, **settings.pop("rules", {}))
    free = {"state_bounds": None, "effort_slew": 1e12}  # states may be any
    return Controller(model, engine="graph", rules=rules, **free | settings)


def _settled(model, controller, load, seconds=2.0):
    """Return where a robot comes to rest under a constant joint force."""
    dt, q, qd = 0.004, Q.copy(), np.zeros(2)
    move = dyn.solver("aba").build(model, engine="graph", joint_friction=True)
    for k in range(round(seconds / dt)):
        tau = controller.update(dt * k, q, qd)
        qd = qd + dt * move(q, qd, tau + load)
        q = q + dt * qd
    assert np.abs(qd).max() < 1e-3
    return q


def test_the_stiffness_that_is_seen_is_the_one_set(two):
    """A load divided by the displacement is the stiffness of each joint, within 1 %."""
    stiffness, load = np.array([300.0, 120.0]), np.array([6.0, -9.0])
    damping = np.array([60.0, 30.0])
    controller = _controller(two, mode="impedance", kp=stiffness, kd=damping)
    q = _settled(two, controller, load)
    np.testing.assert_allclose(load / (q - Q), stiffness, rtol=0.01)
    assert not controller.counters


def test_the_impedance_does_not_depend_on_the_inertia(two):
    """The effort of an error is stiffness times error, that of a velocity damping."""
    controller = _controller(two, mode="impedance", kp=[300.0, 120.0], kd=[10.0, 4.0])
    for k in range(2):
        controller.update(0.01 * k, Q, 0 * Q)
    H_free = dyn.solver("rnea").build(two, engine="graph")
    qd = np.array([0.3, -0.2])
    tau = controller.update(0.02, Q + 0.05, qd)
    spring = -np.array([300.0, 120.0]) * 0.05 - np.array([10.0, 4.0]) * qd
    np.testing.assert_allclose(tau, H_free(Q + 0.05, qd, 0 * qd) + spring, atol=1e-9)


def test_an_impedance_brakes_with_a_gain_of_its_own(two):
    """A damping in N·m·s/rad is no gain before the inertia."""
    controller = _controller(two, mode="impedance", kp=300.0, kd=4.0,
                             rules={"on_stale": "ramp"})  # fmt: skip
    controller.update(0.0, Q, [0.1, 0.0])
    plain = dyn.solver("rnea").build(two, engine="graph")
    expected = plain(Q, [0.0, 0.0], [-2.0, 0.0])
    np.testing.assert_allclose(controller.watch(0.2), expected, atol=1e-9)


@pytest.mark.parametrize("mode", ["computed_torque", "impedance"])
def test_the_integral_takes_a_constant_load(two, mode):
    """The error goes to zero; without an integral it stays."""
    load = np.array([4.0, -3.0])
    gains = {"kp": 100.0, "kd": 20.0}
    if mode == "impedance":
        gains = {"kp": 300.0, "kd": 60.0}
    ki, limit = 3 * gains["kp"], 100.0
    without = _settled(two, _controller(two, mode=mode, **gains), load)
    controller = _controller(two, mode=mode, **gains, ki=ki, integral_limit=limit)
    q = _settled(two, controller, load, 4.0)
    assert np.abs(without - Q).min() > 5e-3
    assert np.abs(q - Q).max() < 5e-4
    if mode == "impedance":
        np.testing.assert_allclose(controller.integral.part, -load, rtol=0.05)


def test_the_integral_is_clamped_and_restarts(two):
    """Its part stays in its limit; a reset, silence and disabling begin anew."""
    controller = _controller(two, kp=90.0, ki=1e3, integral_limit=[0.5, 2.0])

    def run(t):
        controller.update(t, Q, 0 * Q)
        controller.update(t + 0.05, Q - 0.02, 0 * Q)
        controller.update(t + 0.10, Q - 0.02, 0 * Q)
        return controller.integral.part

    np.testing.assert_allclose(run(0.0), [0.5, 2.0])
    controller.reset()
    assert not controller.integral.part.any()
    np.testing.assert_allclose(run(1.0), [0.5, 2.0])
    controller.update(6.0, Q - 0.02, 0 * Q)
    assert not controller.integral.part.any()
    np.testing.assert_allclose(run(7.0), [0.5, 2.0])
    controller.enabled = False
    controller.update(7.15, Q, 0 * Q)
    assert not controller.integral.part.any()


def test_a_saturated_joint_does_not_wind_up(two):
    """Only in the direction in which it is at its limit; the other joint goes on."""
    limits = {"joint1": 2.0, "joint2": 80.0}
    controller = _controller(
        two, kp=20.0, ki=10.0, integral_limit=9.0, effort_limits=limits
    )
    controller.update(0.0, Q, 0 * Q)
    controller.update(0.01, Q - 0.3, 0 * Q)
    assert controller.counters["torque limited"] == 1
    np.testing.assert_allclose(controller.integral.part, [0.03, 0.03])
    controller.update(0.02, Q - 0.3, 0 * Q)
    np.testing.assert_allclose(controller.integral.part, [0.03, 0.06])
    controller.update(0.03, Q + 0.1, 0 * Q)
    np.testing.assert_allclose(controller.integral.part, [0.02, 0.05])


@pytest.mark.parametrize("pace", [0.2, 1.0, 3.0])
def test_the_integral_runs_by_the_clock_of_the_robot(two, pace):
    """A simulation that is slower or faster than time has the same robot."""
    controller = _controller(two, ki=10.0, integral_limit=9.0)
    for k in range(4):
        controller.update(0.01 * k / pace, Q - 0.03 * (k > 0), 0 * Q, now=0.01 * k)
    np.testing.assert_allclose(controller.integral.part, [0.009, 0.009])


def test_the_integral_rests_during_a_stop(two):
    """A position that is held keeps what carried it."""
    controller = _controller(two, ki=10.0, integral_limit=9.0,
                             rules={"on_estop": "hold"})  # fmt: skip
    controller.update(0.0, Q, 0 * Q)
    controller.update(0.01, Q - 0.3, 0 * Q)
    controller.estop(0.015)
    controller.update(0.02, Q - 0.3, 0 * Q)
    np.testing.assert_allclose(controller.integral.part, [0.03, 0.03])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"ki": 1.0}, "ki without a limit winds up; set integral_limit"),
        ({"ki": -1.0, "integral_limit": 1.0}, "ki must be finite and >= 0"),
        ({"ki": [1.0] * 3, "integral_limit": 1.0}, "ki is .*; valid: a number, or 2"),
        ({"integral_limit": np.nan}, "integral_limit must be finite"),
        ({"kp": "stiff"}, "kp is 'stiff'; valid: a number, or 2"),
    ],
)
def test_bad_gains_are_refused(two, settings, expected):
    """In a sentence."""
    with pytest.raises(dyn.SettingError, match=expected):
        _controller(two, **settings)


# Efforts of trajectories


def _follower():
    free = np.full(2, np.inf)
    made = TrajectoryFollower(
        JointLimits(JOINTS, -free, free, free), Rules(), np.zeros(2, bool)
    )
    made.rest(np.zeros(2))
    return made


def test_efforts_of_a_trajectory_are_interpolated():
    """Linear between points, the last one is kept; columns as the names say."""
    path = make_trajectory(
        JOINTS, JOINTS[::-1], [1, 2], np.zeros((2, 2)), effort=[[1.0, 2.0], [3.0, 6.0]]
    )
    for t, expected in (
        (0.0, [2.0, 1.0]), (1.0, [2.0, 1.0]), (1.25, [3.0, 1.5]), (2.0, [6.0, 3.0]),
        (9.0, [6.0, 3.0]),
    ):  # fmt: skip
        np.testing.assert_allclose(path.sample_effort(t), expected)
    one = make_trajectory(JOINTS, JOINTS, [1], np.zeros((1, 2)), effort=[[1.0, 2.0]])
    np.testing.assert_allclose(one.sample_effort(0.5), [1.0, 2.0])
    with pytest.raises(dyn.TrajectoryError, match="point 0: efforts are not finite"):
        make_trajectory(JOINTS, JOINTS, [1], np.zeros((1, 2)), effort=[[np.nan, 0.0]])


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_efforts_fade_in_and_out(delay):
    """From none, to the next trajectory, and at a stop: no jump."""
    follower = _follower()
    still = np.zeros((2, 2))
    first = make_trajectory(JOINTS, JOINTS, [0, 1], still, effort=still + 5.0)
    follower.follow(first, 0.0, 0.0, None)
    rows = []
    for k in range(600):
        t = 0.002 * k
        if k == 300:
            second = make_trajectory(JOINTS, JOINTS, [0, 9], still, effort=still - 5.0)
            follower.follow(second, t + delay, t, None)
        if k == 450:
            follower.stop(t)
        follower.advance(t)
        rows.append(follower.effort)
    rows = np.array(rows)
    assert np.abs(np.diff(rows, axis=0)).max() < 0.11
    np.testing.assert_allclose(rows[[0, 250, 440, -1], 0], [0, 5, -5, 0], atol=1e-9)


@pytest.mark.parametrize("feed_forward", [True, False])
def test_the_controller_adds_the_effort_when_asked(two, feed_forward):
    """To the law's, and to the shadow's."""
    controller = _controller(
        two, feed_forward=feed_forward, shadow=ShadowSettings("rnea_spatial")
    )
    weight = controller.update(0.0, Q, 0 * Q)
    rows = [Q, Q]
    path = controller.make_trajectory(
        two.joint_names, [0, 1], rows, effort=np.full((2, 2), 3.0)
    )
    controller.follow(path, 0.0)
    for t in np.arange(0.05, 0.31, 0.05):
        tau = controller.update(t, Q, 0 * Q)
    added = 3.0 if feed_forward else 0.0
    np.testing.assert_allclose(tau, weight + added, atol=1e-9)
    assert controller.stopped is None
