"""Stops that meet a second fault: a sensor's error, a law in doubt, another thread."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import (
    Bounds,
    CollisionSettings,
    Controller,
    ExternalEffort,
    GoalTracker,
    JointTolerance,
    Rules,
    ShadowSettings,
    Tolerances,
)

Q = np.array([0.4, -0.9])
STILL = np.zeros(2)


class Doubtful(dyn.authoring.NumpySolver):
    """Inverse dynamics with an error that is added."""

    name, signature = "doubtful", dyn.problems.INVERSE_DYNAMICS

    def __init__(self, model):
        self.exact = dyn.solver("rnea").build(model, engine="graph")
        self.error = STILL

    def solve(self, model, q, qd, qdd, f_ext):
        """Return rnea with the error."""
        return self.exact(q, qd, qdd) + self.error


class Watcher:
    """An observer that says what it is asked to."""

    say = None

    def restart(self):
        """Begin anew."""

    def observe(self, t, q, qd, tau):
        """Return the sentence."""
        return self.say


@pytest.fixture(scope="module")
def two():
    """Return an arm of two joints, whose velocity limits are 2.175 rad/s."""
    lock = {f"joint{k}": 0.0 for k in range(3, 8)}
    return dyn.load_urdf(dyn.robots.path("arm7"), lock=lock)


def _controller(model, rules=None, **settings):
    rules = Rules(**{"good_samples": 1, "on_violation": "zero", **(rules or {})})
    free = {"state_bounds": None, "effort_slew": 1e12}  # states may be any
    settings = {"kp": 400.0, "kd": 40.0, "engine": "graph", **free, **settings}
    return Controller(model, rules=rules, **settings)


def _feed(controller, cycles, start=0.0, q=Q, qd=STILL):
    for k in range(cycles):
        tau = controller.update(start + 0.002 * k, q, qd)
    return tau


def _weight(model):
    return dyn.solver("gravity").build(model, engine="graph")(Q)


# An error of the sensor


@pytest.mark.parametrize(
    ("settings", "speed"),
    [
        ({"bounds": Bounds(kinetic_energy=20.0)}, 200.0),
        ({"collision": CollisionSettings(30.0)}, 50.0),
    ],
)
def test_one_wrong_velocity_does_not_move_the_place_that_is_held(two, settings, speed):
    """It stops, and the robot holds where it is; once it was led to its limit."""
    rules = {"on_violation": "hold", "on_collision": "hold"}
    controller = _controller(two, rules, **settings)
    _feed(controller, 5)
    controller.update(0.01, Q, np.array([speed, 0.0]))
    assert controller.stopped.kind == "hold"
    for k in range(200):
        tau = controller.update(0.012 + 0.002 * k, Q, STILL)
    np.testing.assert_array_equal(controller.reference.q, Q)
    np.testing.assert_allclose(tau, _weight(two), atol=1e-9)


def test_a_wrong_velocity_moves_no_reference(two):
    """A goal is aborted on its way; the robot, which has not moved, holds."""
    controller = _controller(two)
    _feed(controller, 3)
    names = controller.model.joint_names
    made = controller.make_trajectory(names, [1.0], [Q + 0.2])
    tracker = GoalTracker(controller, Tolerances.of(names))
    strict = tracker.tolerances.overridden([JointTolerance(names[0], velocity=1.0)])
    tracker.accept("goal", made, 0.0, strict)
    _feed(controller, 1, 0.01)
    controller.update(0.012, Q, np.array([90.0, 0.0]))
    (outcome,) = tracker.advance(0.012)
    assert "velocity of joint 'joint1'" in outcome.sentence
    _feed(controller, 200, 0.014)
    np.testing.assert_allclose(controller.reference.q, Q, atol=1e-12)


# What nothing can hold


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
@pytest.mark.parametrize("wrong", ["door open", None, math.nan, math.inf])
def test_a_stop_without_its_time_stops_all_the_same(two, wrong, kind):
    """It begins at the last state; its text as a time broke each later cycle."""
    rules = {"on_estop": kind, "on_shutdown": kind}
    rules |= {} if kind == "zero" else {"stop_time": 0.02}
    for name in ("estop", "shut_down"):
        controller = _controller(two, rules)
        with pytest.raises(dyn.SettingError, match=rf"^t is .*; {name}\(t, reason\)"):
            getattr(controller, name)(wrong, "door")
        assert (controller.stopped.since, controller.stopped.kind) == (0.0, kind)
        controller.reset_stop()
        _feed(controller, 5)
        with pytest.raises(
            dyn.SettingError, match=r"^t is .*valid: the time, a number"
        ):
            getattr(controller, name)(wrong, "door")
        assert controller.stopped.since == controller.seen > 0.0
        assert controller.stopped.reason == "door"
        tau = _feed(controller, 1, controller.seen + 1e-3)
        assert np.any(tau) == (kind != "zero")
        tau = _feed(controller, 50, controller.seen + 1e-3)
        assert np.any(tau) == (kind == "hold")


def test_a_law_in_doubt_holds_nothing(two):
    """The shadow checks what holds the position, too: then there is zero."""
    doubtful = Doubtful(two)
    watch = ShadowSettings("rnea", absolute=1e-3)
    settings = {"inverse_dynamics": doubtful, "shadow": watch}
    controller = _controller(two, {"on_violation": "hold"}, **settings)
    assert _feed(controller, 3).any()
    doubtful.error = np.array([0.0, 20.0])
    for k in range(3):
        assert not controller.update(0.01 + 0.002 * k, Q, STILL).any()
    assert controller.stopped.kind == "zero"
    assert "shadow 'rnea'" in controller.stopped.reason
    # With a law that both agree on, another stop holds.
    doubtful.error = STILL
    controller.reset_stop()
    _feed(controller, 3, 0.1)
    controller.safety.violated(0.11, "a test")
    np.testing.assert_allclose(_feed(controller, 2, 0.112), _weight(two), atol=1e-9)


@pytest.mark.parametrize("event", ["violation", "collision", "estop", "shutdown"])
def test_mode_gravity_holds_no_position(two, event):
    """Its law has no position: the rule is refused."""
    rules = {f"on_{event}": "hold"}
    with pytest.raises(dyn.SettingError, match=f"on_{event} is hold: mode gravity"):
        _controller(two, rules, mode="gravity")


@pytest.mark.parametrize("mode", ["computed_torque", "gravity", "impedance"])
def test_a_ramp_brakes_also_where_no_gain_does(two, mode):
    """Without kd the weight alone would let the robot coast until zero effort."""
    controller = _controller(two, {"on_estop": "ramp"}, mode=mode, kp=0.0, kd=0.0)
    _feed(controller, 3)
    controller.estop(0.006)
    qd = np.array([0.7, -0.4])
    braking = controller.update(0.008, Q, qd) - controller.weight(Q, STILL, STILL)
    assert braking @ qd < -1.0


# Checks that fail


def test_an_envelope_that_fails_stops(two, monkeypatch):
    """Else no effort is sent, the last one stands, and states are no silence."""
    controller, sent = _controller(two, bounds=Bounds()), []
    assert _feed(controller, 3).any()

    def fail(*_):
        raise dyn.NonFiniteError("result values is not finite", "values")

    monkeypatch.setattr(controller.safety.envelope, "violation", fail)
    tau = controller.update(0.006, Q, STILL)
    assert controller.safety.gate.send(controller.safety.ticket, sent.append, tau)
    assert not sent[0].any()
    assert "envelope fails: result values is not finite" in controller.stopped.reason


@pytest.mark.parametrize("engine", ["plain", "graph"])
def test_velocities_without_an_energy_stop(two, engine):
    """Its square overflows; each engine says so in its own way."""
    bounds = Bounds(kinetic_energy=20.0)
    controller = _controller(two, bounds=bounds, engine=engine)
    _feed(controller, 3)
    assert not controller.update(0.006, Q, np.full(2, 1e200)).any()
    assert controller.stopped.cause == "violation"


# Silence


@pytest.mark.parametrize("lasts", [False, True])
def test_a_stop_during_the_answer_to_silence_goes_first(two, lasts):
    """The watchdog computes what carries; meanwhile ~/estop sends zero."""
    controller, sent = _controller(two, {"on_stale": "ramp"}), []
    _feed(controller, 3)
    if lasts:
        assert controller.guard(0.2, sent.append)
        assert sent.pop().any()
    carries = controller.safety.weight

    def stopped(q, qd):
        tau = carries(q, qd)
        controller.estop(0.21)
        controller.safety.gate.close(lambda: sent.append(STILL))
        return tau

    controller.safety.weight = stopped
    assert controller.guard(0.21, sent.append)
    assert len(sent) == 1
    ticket = controller.safety.gate.ticket()
    assert controller.guard(0.215, sent.append)
    assert controller.guard(0.22, sent.append)
    assert not np.any(sent)
    assert len(sent) == 3
    # The silence starts once: what was computed before it does not pass.
    passes = controller.safety.gate.send(ticket, list)
    assert passes == lasts


def test_a_ramp_brings_to_rest_what_was_driven(two):
    """A robot that had no torque yet gets none where the states end again."""
    rules = {"on_stale": "ramp", "good_samples": 3}
    controller = _controller(two, rules)
    assert not _feed(controller, 2).any()
    assert not controller.watch(0.2).any()
    controller.reset()
    assert _feed(controller, 3, 0.3).any()
    np.testing.assert_allclose(controller.watch(0.45), _weight(two), atol=1e-9)


# What is sent, and noted


def test_zero_is_sent_in_the_cycle_of_a_stop(two):
    """A state that jumps is answered by zero, also where an observer stops for it."""
    watcher, sent = Watcher(), []
    controller = _controller(two, {"good_samples": 2}, observers=[watcher])
    assert _feed(controller, 3).any()
    watcher.say = "it jumped"
    tau = controller.update(0.006, Q + 0.6, STILL)
    assert controller.safety.gate.send(controller.safety.ticket, sent.append, tau)
    assert not sent[0].any()


@pytest.mark.parametrize("threshold", [5.0, 1e3])
def test_external_efforts_are_of_the_efforts_that_act(two, threshold):
    """After a collision, or the stop of an observer, not of what the stop replaced."""
    watcher = Watcher()
    watched = CollisionSettings(threshold)
    controller = _controller(two, collision=watched, observers=[watcher])
    expected = ExternalEffort(two, watched.gain, engine="graph")
    acting = STILL
    for k in range(6):
        qd = np.array([0.0, 1.0 if k >= 3 else 0.0])
        watcher.say = "a test" if k >= 3 else None
        expected.update(0.002 * k, Q, qd, acting)
        acting = controller.update(0.002 * k, Q, qd)
        np.testing.assert_allclose(controller.detector.effort, expected.effort)
    assert controller.stopped.cause == ("collision" if threshold == 5 else "violation")
    assert not acting.any()
