"""Silence, observers, listeners, the age of states, and what health is said to be."""

import threading

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from dyn_core.control.controller import AT_REST
from dyn_core.control.safety.health import ERROR, OK, STALE, WARN, Health
from dyn_core.control.states.state_samples import LONGEST_STEP, SEVERAL, StateAge

Q = np.array([0.4, -0.9])


class Stalling(dyn.authoring.NumpySolver):
    """Inverse dynamics that waits, or fails, when it is asked to."""

    name, signature = "stalling", dyn.problems.INVERSE_DYNAMICS

    def __init__(self, model):
        self.exact = dyn.solver("rnea").build(model, engine="graph")
        self.act = lambda: None

    def solve(self, model, q, qd, qdd, f_ext):
        """Return rnea."""
        self.act()
        return self.exact(q, qd, qdd)


@pytest.fixture(scope="module")
def two():
    """Return an arm of two joints, the first two of the shipped arm."""
    lock = {f"joint{k}": 0.0 for k in range(3, 8)}
    return dyn.load_urdf(dyn.robots.path("arm7"), lock=lock)


def _controller(model, rules=None, **settings):
    rules = Rules(**{"good_samples": 1, **(rules or {})})
    free = {"state_bounds": None, "effort_slew": 1e12}  # states may be any
    return Controller(model, engine="graph", rules=rules, **free | settings)


def _feed(controller, cycles, start=0.0, q=Q, **times):
    for k in range(cycles):
        tau = controller.update(start + 0.01 * k, q, 0 * Q, **times)
    return tau


def _path(controller, shift=0.2, seconds=1.0):
    names = controller.model.joint_names
    return controller.make_trajectory(names, [seconds], [Q + shift])


# Silence, from another thread


@pytest.mark.parametrize("on_stale", ["zero", "ramp"])
def test_a_solver_that_stalls_is_answered_meanwhile(two, on_stale):
    """Another thread sends zero, or carries the weight; what the solver brings late is
    not sent. The fault: no state is fresh while the law is at work."""
    stalling = Stalling(two)
    controller = _controller(two, {"on_stale": on_stale}, inverse_dynamics=stalling)
    assert _feed(controller, 3).any()
    sent, inside, go_on = [], threading.Event(), threading.Event()

    def stall():
        inside.set()
        assert go_on.wait(20)

    stalling.act = stall
    results = []

    def control():
        tau = controller.update(0.03, Q, 0 * Q)
        ticket = controller.safety.ticket
        controller.safety.gate.send(ticket, lambda: results.append(tau))

    before = controller.safety.gate.ticket()
    thread = threading.Thread(target=control)
    thread.start()
    assert inside.wait(20)
    assert not controller.guard(0.12, sent.append)
    assert controller.guard(0.14, sent.append)
    assert controller.guard(0.2, sent.append)
    go_on.set()
    thread.join(20)
    assert len(sent) == 2
    assert sent[0].any() == (on_stale == "ramp")
    assert not controller.safety.gate.send(before, sent.append, 1)
    (late,) = results
    assert not late.any()


def test_an_effort_of_before_a_silence_is_not_sent(two):
    """It was computed, and waits to be sent when the watchdog answers."""
    controller, sent = _controller(two), []
    _feed(controller, 3)
    ticket = controller.safety.ticket
    controller.guard(0.5, sent.append)
    assert not controller.safety.gate.send(ticket, sent.append, "late")
    assert controller.safety.gate.discarded == 1
    controller.guard(0.6, sent.append)
    assert len(sent) == 2
    controller.update(1.0, Q, 0 * Q)
    assert not controller.guard(1.05, sent.append)
    assert controller.guard(1.2, sent.append)


def test_a_state_that_comes_meanwhile_goes_first(two, monkeypatch):
    """The watchdog has found silence, and a state comes before it sends."""
    controller, sent = _controller(two), []
    _feed(controller, 3)
    silence = controller.silence

    def slow(t, enabled):
        controller.update(0.5, Q, 0 * Q)
        return np.zeros(2)

    monkeypatch.setattr(silence, "torque", slow)
    assert controller.guard(0.5, sent.append)
    assert sent == []


# Times


def test_trajectories_run_in_their_own_time(two):
    """At half speed the reference moves half as fast; where time stands, so it does."""
    controller = _controller(two)
    _feed(controller, 1, now=0.0)
    controller.follow(_path(controller, seconds=1.0), 0.0)
    for k in range(1, 61):
        controller.update(0.02 * k, Q, 0 * Q, now=0.01 * k)
    half = controller.reference.q
    for k in range(60):
        controller.update(1.2 + 0.02 * k, Q, 0 * Q, now=0.6)
    np.testing.assert_array_equal(controller.reference.q, half)
    np.testing.assert_allclose(half, Q + 0.6 * 0.2, atol=0.02)


@pytest.mark.parametrize(
    ("now", "key"), [(4.9, "time went back"), (6.2 + LONGEST_STEP, "time jumped")]
)
def test_time_that_jumps_is_a_new_start(two, now, key):
    """The trajectory is dropped and heard of; the robot rests where it is."""
    heard = []
    controller = _controller(two, listeners=[lambda path, what: heard.append(what)])
    _feed(controller, 2, now=5.0)
    controller.follow(_path(controller), 5.0)
    controller.update(0.03, Q, 0 * Q, now=5.1)
    controller.update(0.04, Q, 0 * Q, now=now)
    assert controller.counters[key] == 1
    assert controller.trajectory is None
    assert heard == [f"dropped: {key}"]
    controller.update(0.05, Q, 0 * Q, now=now)
    np.testing.assert_array_equal(controller.reference.q, Q)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (100.0, None),
        (99.81, None),
        (100.19, None),
        (90.0, "is 10 s old; valid: at most 0.2 s"),
        (200.0, "is 100 s ahead of the clock"),
        (float("nan"), "ahead of the clock"),
        (None, None),
    ],
)
def test_states_of_another_time_are_refused(stamp, expected):
    """Of the past, such as a recording, and of the future; 0 switches it off."""
    StateAge(0.0).check(stamp, 100.0)
    age = StateAge(0.2)
    age.check(stamp, None)
    if expected is None:
        age.check(stamp, 100.0)
        assert age.unstamped == (stamp is None)
        return
    with pytest.raises(dyn.StateError, match=expected):
        age.check(stamp, 100.0)


@pytest.mark.parametrize("offset", [10.0, -100.0])
def test_a_clock_that_differs_is_named_with_its_size(offset):
    """A constant age is a difference of clocks; one that grows is a backlog."""
    age, lagging = StateAge(0.5), StateAge(0.5)
    for k in range(2 * SEVERAL):
        clock = 1000.0 + 0.01 * k
        with pytest.raises(dyn.StateError) as error:
            age.check(clock - offset, clock)
        with pytest.raises(dyn.StateError) as backlog:
            lagging.check(clock - offset + 0.02 * k, clock)
    assert "the clock of its source differs by that" in str(error.value)
    assert f"{abs(offset):.3f} s" in str(error.value)
    assert "differs" not in str(backlog.value)
    age.check(1001.0, 1001.0)
    with pytest.raises(dyn.StateError) as error:
        age.check(1001.0 - offset, 1001.0)
    assert "differs" not in str(error.value)


# Observers and listeners


class Watcher:
    """An observer that says what it is asked to say."""

    def __init__(self):
        self.rows, self.starts, self.say = [], 0, None

    def restart(self):
        """Count the starts."""
        self.starts += 1

    def observe(self, t, q, qd, tau):
        """Keep what it sees."""
        self.rows.append((t, *q, *tau))
        if self.say == "fail":
            raise ZeroDivisionError("no mass")
        return self.say


def test_an_observer_sees_each_state_with_its_effort(two):
    """Also the zeros; a new start is heard."""
    watcher = Watcher()
    controller = _controller(two, {"good_samples": 2}, observers=[watcher])
    starts = watcher.starts
    sent = [controller.update(0.01 * k, Q, 0 * Q, now=7 + 0.01 * k) for k in range(3)]
    expected = [(7 + 0.01 * k, *Q, *sent[k]) for k in range(3)]
    assert watcher.rows == expected
    controller.update(5.0, Q, 0 * Q)
    assert watcher.starts == starts + 1


@pytest.mark.parametrize("say", ["a collision", "fail"])
@pytest.mark.parametrize("kind", ["zero", "ramp"])
def test_an_observer_stops_in_its_cycle(two, say, kind):
    """Its sentence is the reason; one that fails stops, too."""
    watcher = Watcher()
    controller = _controller(two, {"on_violation": kind}, observers=[watcher])
    assert _feed(controller, 3).any()
    watcher.say = say
    tau = controller.update(0.03, Q, 0 * Q)
    assert tau.any() == (kind == "ramp")
    assert controller.stopped.cause == "violation"
    expected = say if say != "fail" else "Watcher fails: no mass"
    assert controller.stopped.reason == expected
    watcher.say = None
    assert controller.update(0.04, Q, 0 * Q).any() == (kind == "ramp")


def test_listeners_hear_what_became_of_each_trajectory(two):
    """Of the object that was given, once each."""
    heard = []
    controller = _controller(two, listeners=[lambda *end: heard.append(end)])
    _feed(controller, 1)
    first, second, third, fourth = (_path(controller, 0.01, 0.1) for _ in range(4))
    controller.follow(first, 0.0)
    controller.follow(second, 0.0)
    assert heard == [(first, "replaced")]
    for k in range(1, 40):
        controller.update(0.01 * k, Q, 0 * Q)
    assert heard[1:] == [(second, "reached")]
    controller.follow(third, 0.3)
    controller.follow(fourth, 9.0)
    controller.estop(0.4, "pressed")
    assert heard[2:] == [(third, "stopped: pressed"), (fourth, "stopped: pressed")]
    controller.reset_stop()
    assert len(heard) == 4


# A robot that carries its weight


@pytest.mark.parametrize("mode", ["computed_torque", "impedance", "gravity"])
def test_a_robot_may_carry_its_weight_itself(two, mode):
    """Then no effort contains it: neither the law's nor that of a ramp."""
    rules = {"on_stale": "ramp"}
    bare = _controller(two, rules, mode=mode, robot_compensates_gravity=True)
    ours = _controller(two, rules, mode=mode)
    weight = dyn.solver("gravity").build(two, engine="graph")(Q)
    for k, controller in enumerate((bare, ours)):
        np.testing.assert_allclose(_feed(controller, 3), k * weight, atol=1e-9)
        np.testing.assert_allclose(controller.watch(0.5), k * weight, atol=1e-9)
    qd = np.array([0.3, 0.0])
    difference = ours.update(0.04, Q, qd) - bare.update(0.04, Q, qd)
    np.testing.assert_allclose(difference, weight, atol=1e-9)


# Gains of the integral


def test_gains_of_the_integral_change_live(two):
    """What was integrated stays within the new limit; a bad set changes nothing."""
    controller = _controller(two, ki=10.0, integral_limit=9.0)
    controller.update(0.0, Q, 0 * Q)
    controller.update(0.01, Q - 0.3, 0 * Q)
    part = controller.integral.part.copy()
    assert part.any()
    controller.set_gains(50.0, 5.0)
    np.testing.assert_array_equal(controller.integral.part, part)
    with pytest.raises(dyn.SettingError, match="ki without a limit"):
        controller.set_gains(60.0, 6.0, 1.0, 0.0)
    assert controller.kp[0] == 50.0
    controller.set_gains(60.0, 6.0, 1.0, 0.01)
    np.testing.assert_array_equal(controller.integral.part, [0.01, 0.01])


# Health


LIGHT = """<robot name="light"><link name="base"/><link name="rod"><inertial>
<mass value="1"/><inertia ixx="0.03" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="j" type="revolute"><parent link="base"/>
<child link="rod"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="20" velocity="10"/></joint></robot>"""


@pytest.mark.parametrize("hold", [0.03, 0.04, 0.06, 0.065, 0.068, 0.07, 0.08, 0.09])
def test_stalls_at_rest_grow_beyond_the_bound_alone_and_are_warned_of(hold):
    """An effort that is held so long, 2/d = 0.0667 s, and what /diagnostics says first.

    The states came each millisecond before, and the gains were checked for that. Beyond
    the bound the joint swings until the envelope stops it, or until it is where it
    cannot be: a stall of 80 ms carries it from within the envelope beyond its limits.
    """
    controller = Controller(dyn.load_urdf(LIGHT), 300.0, 30.0, engine="plain")
    health = Health(controller, 0.1)
    t, q, qd, warned = 0.0, np.zeros(1), np.zeros(1), None
    while t < 7.0 and controller.stopped is None and abs(q[0]) < 3.2:
        dt = 0.001 if t < 1.0 else hold
        q = q + 1e-3 if t < 1.0 <= t + dt else q
        a = controller.update(t, q, qd, t) / 0.03
        q, qd, t = q + qd * dt + a * dt**2 / 2, qd + a * dt, t + dt
        keys = [c.key for c in health.conditions(t)]
        warned = t if warned is None and "gains" in keys else warned
    assert (warned is not None) == (hold > 1 / 30)
    if hold < 2 / 30:
        assert controller.stopped is None and abs(q[0]) < 1e-3
    else:
        assert abs(q[0]) > 1e-3
        assert warned < min(t - 0.3, 2.0)  # before it ends


def _said(health, t):
    conditions = health.conditions(t)
    return [(c.level, c.key) for c in conditions], health.summary(conditions)[1]


def test_health_says_what_the_controller_does(two):
    """Each state of a life, and none of them tracking where nothing tracks."""
    controller = _controller(two, {"good_samples": 2})
    health = Health(controller, 0.1)
    assert _said(health, 0.0) == ([(STALE, "no state")], "no joint state yet")
    controller.update(0.0, Q, 0 * Q)
    assert _said(health, 0.0)[0] == [(WARN, "waiting")]
    controller.update(0.01, Q, 0 * Q)
    assert _said(health, 0.01) == ([(OK, "ok")], "holding")
    controller.follow(_path(controller), 0.05)
    assert _said(health, 0.01)[1] == "holding, a trajectory starts later"
    controller.update(0.06, Q, 0 * Q)
    assert _said(health, 0.06)[1] == "tracking"
    controller.enabled = False
    assert _said(health, 0.06)[0][0] == (WARN, "disabled")
    controller.enabled = True
    assert _said(health, 9.0)[0][0] == (ERROR, "stale")
    controller.estop(9.0, "pressed")
    said = _said(health, 9.0)
    assert said[0][0] == (ERROR, "stopped")
    ends = "; valid: deactivate and activate the node; in Python reset_stop"
    assert said[1].startswith(f"stopped: pressed{ends}; trajectory stopped: ")
    controller.reset_stop()
    controller.safety.violated(9.0, "too fast")  # and the robot swings on
    began = health.changes(health.conditions(9.0))
    assert f"stopped: too fast{ends}{AT_REST}" in [x.message for x in began]
    controller.reset_stop()
    ended = health.changes(health.conditions(9.0))
    assert "no longer: stopped: too fast" in [x.message for x in ended]
    floating = Controller(two, mode="gravity", engine="graph")
    _feed(floating, 3)
    assert _said(Health(floating, 0.1), 0.02)[1] == "gravity compensation"


def test_a_stop_that_follows_another_at_once_is_told(two):
    """Nobody looked between both: the log said that the robot was active."""
    controller = _controller(two, {})
    health = Health(controller, 0.1)
    _feed(controller, 3)
    controller.estop(0.02, "pressed")
    health.changes(health.conditions(0.02))
    controller.reset_stop()
    controller.safety.violated(0.02, "too fast")
    (began,) = health.changes(health.conditions(0.02))
    assert began.message.startswith("stopped: too fast")
    assert health.changes(health.conditions(0.02)) == []


def _fail(controller, health):
    controller.law = lambda *state: state[0] * np.nan
    _feed(controller, 2, 0.03)
    return "torque not finite: the solver returned"


def _far(controller, health):
    controller.update(0.04, Q + [0.0, 0.15], 0 * Q)
    return "joint 'joint2' is 0.15 from its reference"


def _weak(controller, health):
    controller.safety.limit = np.array([100.0, 1.0])
    _feed(controller, 10, 0.03)
    return "effort at its limit in 100% of the cycles: joint2"


def _jump(controller, health):
    controller.update(0.04, Q + 1.0, 0 * Q)
    return "position jumped: 1 times in 1 s"


def _back(controller, health):
    controller.update(0.04, Q, 0 * Q, stamp=5.0)
    controller.update(0.05, Q, 0 * Q, stamp=4.0)
    return "time went back: 1 times in 1 s"


def _drop(controller, health):
    controller.follow(_path(controller), 0.03)
    controller.update(0.3, Q, 0 * Q)
    return "trajectory dropped: joint state is stale"


@pytest.mark.parametrize(
    ("fault", "level", "key"),
    [
        (_fail, ERROR, "not finite"),
        (_far, WARN, "large error"),
        (_weak, WARN, "saturated"),
        (_jump, WARN, "position jumped"),
        (_back, WARN, "time went back"),
        (_drop, WARN, "dropped"),
    ],
)
def test_health_names_each_fault_and_says_when_it_ends(two, fault, level, key):
    """A level that is not OK, and one line when it begins and one when it ends."""
    controller = _controller(two, {"last_good_cycles": 100})
    health = Health(controller, 0.1)
    _feed(controller, 3)
    assert health.changes(health.conditions(0.02)) == []
    law, limit = controller.law, controller.safety.limit
    expected = fault(controller, health)
    conditions = health.conditions(controller.seen)
    worst, message = health.summary(conditions)
    assert worst == level
    assert expected in message
    (change,) = [c for c in health.changes(conditions) if c.key == key]
    assert expected in change.message
    assert health.changes(health.conditions(controller.seen)) == []
    controller.law, controller.safety.limit = law, limit
    for k in range(1, 330):
        t = 0.3 + 0.04 * k
        controller.update(t, Q if fault is not _jump else Q + 1.0, 0 * Q)
        conditions = health.conditions(t)
        if conditions[0].level == OK:
            break
    (change,) = [c for c in health.changes(conditions) if c.key == key]
    assert change.level == OK
    assert change.message.startswith("no longer: ")
    assert health.summary(conditions) == (OK, "holding")
