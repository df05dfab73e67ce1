"""Checks of a controller that other tests pass by, one fault each."""

import threading

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from dyn_core.control.joint_limits import JointLimits, effort_limits
from dyn_core.control.reference.following import TimedTrajectory, TrajectoryFollower
from dyn_core.testing.models import chain
from ros_nodes.running.watchdog import Watchdog

Q, QD = np.array([0.4, -0.9]), np.array([0.7, -1.1])


def _controller(limit=1e3, rules=None, **settings):
    robot = chain(2)
    return Controller(
        robot, engine="graph", rules=Rules(good_samples=1, **(rules or {})),
        effort_limits=dict.fromkeys(robot.joint_names, limit), **settings,
    )  # fmt: skip


def _follower(limit):
    """Return a follower of two joints within +-limit."""
    ends = -limit * np.ones(2), limit * np.ones(2)
    limits = JointLimits.of_arrays(("a", "b"), *ends, None)
    return TrajectoryFollower(limits, Rules(), np.zeros(2, bool))


def test_what_carries_the_weight_is_within_the_limits():
    """Of a ramp, and of silence; it is counted."""
    rules = {"on_stale": "ramp", "on_estop": "ramp"}
    controller = _controller(limit=1e-3, rules=rules)
    controller.update(0.0, Q, QD)
    controller.counters.clear()
    controller.estop(0.01)
    assert (np.abs(controller.update(0.02, Q, QD)) == 1e-3).all()
    assert (np.abs(controller.watch(0.2)) == 1e-3).all()
    assert controller.counters["torque limited"] == 2


def test_what_holds_a_position_is_within_the_limits():
    """The law's torque, after an emergency stop as before it."""
    controller = _controller(limit=1e-3, rules={"on_estop": "hold"})
    controller.update(0.0, Q, QD)
    controller.estop(0.01)
    assert (np.abs(controller.update(0.02, Q, QD)) == 1e-3).all()
    assert controller.stopped.kind == "hold"


def test_the_last_good_torque_is_a_copy():
    """The caller may use the array of a torque again."""
    controller = _controller()
    tau = controller.update(0.0, Q, QD)
    good = tau.copy()
    tau[:] = 99.0
    controller.law = lambda *inputs: np.full(2, np.nan)
    np.testing.assert_array_equal(controller.update(0.01, Q, QD), good)


def test_velocities_are_copied():
    """The caller may use its array again."""
    controller, qd = _controller(), QD.copy()
    controller.update(0.0, Q, qd)
    qd[:] = 9.0
    np.testing.assert_array_equal(controller.qd, QD)


@pytest.mark.parametrize(
    "name",
    ["state_timeout", "max_jump", "stop_time", "filter_time", "start_tolerance",
     "limit_tolerance", "blend_time", "deceleration"],
)  # fmt: skip
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "1"])
def test_times_and_distances_of_rules_are_positive(name, bad):
    """Zero, less, infinity, no number and no digits are refused by the name."""
    with pytest.raises(dyn.SettingError, match=f"{name} is"):
        Rules(**{"on_stale": "ramp", "differentiate": True, name: bad})


@pytest.mark.parametrize(
    "name, bad",
    [("good_samples", 0), ("good_samples", 1.5), ("last_good_cycles", -1),
     ("max_state_age", -1.0), ("max_state_age", np.nan), ("differentiate", "yes"),
     ("differentiate", 2), ("on_stale", "hold"), ("on_estop", "panic"),
     ("on_shutdown", ""), ("on_violation", "")],
)  # fmt: skip
def test_counts_ages_switches_and_stops_of_rules_are_checked(name, bad):
    """A fraction is no count, a word no switch; without a state nothing is held."""
    with pytest.raises(dyn.SettingError, match=f"{name} is"):
        Rules(**{"last_good_cycles": 5, "on_stale": "ramp", name: bad})


def test_a_watchdog_may_stop_itself():
    """Its own thread is not waited for, and nothing fails."""
    said, ended = [], threading.Event()

    def look(_):
        watchdog.stop()
        ended.set()

    watchdog = Watchdog(1e-3, look, said.append)
    watchdog.start()
    assert ended.wait(20.0)
    watchdog._thread.join(20.0)
    assert not watchdog.alive and not said


def test_what_silence_sends_without_a_state_is_zero():
    """After a reset there is no state that could be carried; nothing is asked for it."""
    controller = _controller(rules={"on_stale": "ramp"})
    controller.update(0.0, Q, QD)
    controller.reset()
    controller.counters.clear()
    assert not controller.watch(0.2).any()
    assert not controller.counters


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_trajectory_beyond_either_limit_is_refused(side):
    """The lower limit as well as the upper one."""
    follower = _follower(1.0)
    path = ["a", "b"], [0.0, 1.0], [[0.0, 0.0], [0.0, 1.1 * side]]
    with pytest.raises(dyn.TrajectoryError, match="joint 'b'"):
        follower.make(np.zeros(2), *path)


def test_what_leaves_its_limits_stops_where_it_is():
    """A joint beyond its limit that moves on has the tolerance alone to brake in."""
    follower = _follower(1.0)
    follower.stop(0.0)
    assert follower.reference is None
    q = np.array([1.1, 0.0])
    follower.take(q, np.array([2.0, 0.0]))
    follower.stop(0.0)
    for t in (0.0, 0.0005, 0.001, 0.0011, 1.0):
        follower.advance(t)
        assert 1.1 <= follower.reference.q[0] <= 1.1 + 1e-3 + 1e-12
        assert follower.reference.q[1] == 0.0
        assert follower.reference.qd.any() == (t < 0.001)


def test_an_effort_has_faded_after_its_time():
    """From then on it is that of the trajectory alone."""
    path = _follower(1.0).make(
        np.zeros(2), ["a", "b"], [0.0, 1.0], [[0.0, 0.0], [0.1, 0.1]]
    )
    timed = TimedTrajectory(path, 0.0, 0.0, 0.1)
    np.testing.assert_allclose(timed.sample_effort(0.05, np.ones(2)), 0.5)
    assert not timed.sample_effort(0.5, np.ones(2)).any()


@pytest.mark.parametrize("bad", [True, np.inf, np.nan, 0.0, -1.0, "9"])
def test_an_effort_limit_is_a_positive_number(bad):
    """Neither a truth, infinity, nor digits."""
    robot = chain(2)
    with pytest.raises(dyn.SettingError, match="valid: > 0 and finite"):
        effort_limits(robot, dict.fromkeys(robot.joint_names, bad))
