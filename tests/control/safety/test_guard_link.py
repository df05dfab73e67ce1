"""A controller's link to its guard: what stops it, what lets it go on, no other way."""

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

from dyn_core.control import Controller, Rules
from dyn_core.control.safety.guard_link import BEAT, GRACE, Beat, GuardLink, GuardStop
from dyn_core.control.safety.supervision import Supervisor
from dyn_core.testing.models import chain

Q, QD = np.array([0.4, -0.9]), np.array([0.7, -1.1])
TIMEOUT, STALE, STEP = 0.2, 0.1, 0.01
SILENT = "the guard is silent for 0.2 s"


class Arm:
    """A controller under its link, driven as its node does: states, beats, looks.

    Attributes:
        t: Time [s].
        sent: (time, whether it is torque) of each effort.
    """

    def __init__(self, required=False, **rules):
        robot = chain(2)
        rules = {"good_samples": 1, "on_violation": "zero", **rules}
        rules = Rules(state_timeout=STALE, **rules)
        limits = dict.fromkeys(robot.joint_names, 1e3)
        self.controller = Controller(
            robot, kp=100.0, kd=10.0, engine="graph", rules=rules, effort_limits=limits,
            state_bounds=None,  # it is shown what no robot does
        )  # fmt: skip
        self.link = GuardLink(TIMEOUT, required, STALE)
        self.stop = GuardStop(self.controller, self.link, self.send_zero)
        self.controller.observers.append(self.stop)
        self.t, self.sent = 10.0, []

    def send_zero(self):
        """Send zero as the node does."""
        gate = self.controller.safety.gate
        gate.close(lambda: self.sent.append((self.t, False)))

    def activate(self):
        """Activate as the node does; only a person asks for it."""
        self.controller.reset_stop()
        self.controller.begin()
        self.stop.begin(self.t)

    def state(self):
        """Answer a state; return whether it was torque."""
        self.stop.look(self.t)
        tau = self.controller.update(self.t, Q, QD)
        safety = self.controller.safety
        row = self.t, bool(tau is not None and tau.any())
        sent = safety.gate.send(safety.ticket, self.sent.append, row)
        return sent and row[1]

    def go(self, seconds, *guards):
        """Let time pass with states and the beats of guards; return what the last was."""
        end, torque = self.t + seconds, False
        beat = self.t
        while self.t < end - 1e-9:
            self.t += STEP
            if self.t >= beat - 1e-9:
                beat = self.t + BEAT
                for guard in guards:
                    self.stop.hear(self.t, guard.beat())
            torque = self.state()
        return torque


def _until_stopped(arm, cycle):
    """Let cycles of a function pass until the controller is stopped."""
    for _ in range(100):
        if arm.controller.stopped is not None:
            return
        cycle()
    raise AssertionError("it does not stop")


@pytest.fixture
def arm():
    """Return an arm that drives under a guard, and the guard."""
    arm, guard = Arm(), Supervisor()
    arm.activate()
    assert arm.go(0.3, guard)
    return arm, guard


def _reason(arm):
    stop = arm.controller.stopped
    return None if stop is None else stop.reason


def test_a_controller_that_never_heard_a_guard_drives():
    """None is missed, nothing is said."""
    arm = Arm()
    arm.activate()
    assert arm.go(2.0)
    assert arm.link.conditions(arm.t) == []


def test_a_stop_of_the_guard_is_zero_at_once_and_its_reset_ends_it(arm):
    """Between two states; the reason is the guard's."""
    arm, guard = arm
    guard.stop("a person")
    before = arm.t
    arm.stop.hear(arm.t, guard.beat())
    assert arm.sent[-1] == (before, False)
    assert _reason(arm) == (
        "the guard has stopped it (a person); ~/reset of the guard ends that"
    )
    assert not arm.go(1.0, guard)
    guard.reset(arm.t)
    assert arm.go(0.2, guard)


def test_a_new_guard_lifts_no_stop(arm):
    """Its word says nothing of what another process has stopped."""
    arm, guard = arm
    guard.stop("a person")
    arm.go(0.1, guard)
    new = Supervisor()
    assert new.uuid != guard.uuid
    assert not arm.go(1.0, new)
    new.reset(arm.t)  # nothing to end; one more reset, of another process
    assert not arm.go(1.0, new)
    assert [x.key for x in arm.link.conditions(arm.t)] == ["guard is gone"]
    arm.activate()
    assert arm.link.conditions(arm.t) == []
    assert arm.go(0.2, new)


def test_no_activation_lifts_the_stop_of_a_dead_guard_without_another_one(arm):
    """Nor under one that is stopped itself."""
    arm, guard = arm
    guard.stop("a person")
    arm.go(0.1, guard)
    arm.go(1.0)
    arm.activate()
    assert "a person" in _reason(arm)
    assert not arm.go(1.0)
    assert arm.link.fault is None  # its silence is known
    new = Supervisor()
    new.stop("another person")
    arm.go(0.3, new)
    arm.activate()
    assert not arm.go(0.3, new)
    new.reset(arm.t)
    assert not arm.go(0.3, new)
    arm.activate()
    assert arm.go(0.3, new)


def test_a_guard_that_returns_lifts_its_stop_by_a_reset(arm):
    """It was stopped itself; an activation came meanwhile."""
    arm, guard = arm
    guard.stop("a person")
    arm.go(0.1, guard)
    arm.go(1.0)
    arm.activate()
    assert not arm.go(0.3, guard)
    guard.reset(arm.t)
    assert arm.go(0.3, guard)


def test_no_activation_lifts_the_stop_of_a_living_guard(arm):
    """Only its reset does."""
    arm, guard = arm
    guard.stop("a person")
    arm.go(0.1, guard)
    arm.activate()
    assert not arm.go(0.3, guard, Supervisor())
    guard.reset(arm.t)
    arm.go(0.3, guard)
    assert _reason(arm) == SILENT  # the other one has gone


def test_each_of_two_guards_stops_and_each_needs_its_reset(arm):
    """More than one is a warning."""
    arm, first = arm
    second = Supervisor()
    assert arm.go(0.2, first, second)
    (condition,) = arm.link.conditions(arm.t)
    assert condition.message == "2 guards are heard; valid: one"
    first.stop("a")
    second.stop("b")
    assert not arm.go(0.1, first, second)
    first.reset(arm.t)
    assert not arm.go(0.5, first, second)
    second.reset(arm.t)
    assert arm.go(0.2, first, second)


def test_a_beat_that_says_less_than_one_before_counts_for_nothing(arm):
    """Neither as a reset, nor as a sign of life."""
    arm, guard = arm
    guard.stop("a")
    arm.go(0.1, guard)
    guard.reset(arm.t)
    guard.stop("b")
    arm.go(0.1, guard)
    arm.stop.hear(arm.t, Beat(guard.uuid, False, resets=1))
    assert not arm.state()
    older = SimpleNamespace(beat=lambda: Beat(guard.uuid, False, resets=0))
    arm.go(0.5, older)
    assert not arm.link.living(arm.t)


@pytest.mark.parametrize("kind", ["zero", "ramp", "hold"])
def test_a_guard_that_falls_silent_stops_as_on_violation_says(kind):
    """Within its timeout, until an activation, even where its beats return."""
    arm, guard = Arm(on_violation=kind), Supervisor()
    arm.activate()
    arm.go(0.3, guard)
    arm.stop.hear(arm.t, guard.beat())
    silent = arm.t
    _until_stopped(arm, lambda: arm.go(STEP))
    assert TIMEOUT <= arm.t - silent <= TIMEOUT + STEP + 1e-9
    assert (arm.controller.stopped.kind, _reason(arm)) == (kind, SILENT)
    assert arm.go(0.5, guard) == (kind != "zero")
    assert _reason(arm) == SILENT
    arm.activate()
    assert arm.go(0.3, guard)
    assert _reason(arm) is None


def test_the_cycle_that_misses_the_guard_sends_the_stop(arm):
    """Not the effort of the law."""
    arm, guard = arm
    arm.stop.hear(arm.t, guard.beat())
    for _ in range(19):
        arm.t += STEP
        assert arm.controller.update(arm.t, Q, QD).any()
    arm.t += 1.5 * STEP
    assert not arm.controller.update(arm.t, Q, QD).any()
    assert _reason(arm) == SILENT


def test_silence_is_seen_without_states(arm):
    """And answered by zero at once."""
    arm, _ = arm

    def look():
        arm.t += STEP
        arm.stop.look(arm.t)

    _until_stopped(arm, look)
    assert _reason(arm) == SILENT
    assert arm.sent[-1] == (arm.t, False)


def test_silence_makes_a_weaker_stop_stronger(arm):
    """A position that is held is held by torque."""
    arm, guard = Arm(on_estop="hold"), Supervisor()
    arm.activate()
    arm.go(0.3, guard)
    arm.controller.estop(arm.t)
    assert arm.go(0.1, guard)
    assert not arm.go(0.5)
    assert _reason(arm) == SILENT


def test_a_reset_of_the_guard_ends_no_other_stop(arm):
    """A person's, or that of its silence, before or after its own."""
    arm, guard = arm
    arm.controller.estop(arm.t, "a person")
    guard.stop("b")
    arm.go(0.1, guard)
    guard.reset(arm.t)
    assert not arm.go(0.3, guard)
    arm.activate()
    guard.stop("c")
    arm.go(0.1, guard)
    arm.controller.estop(arm.t, "a person")
    guard.reset(arm.t)
    assert not arm.go(0.3, guard)
    arm.activate()
    guard.stop("d")  # it falls silent, returns, and is reset
    arm.go(0.1, guard)
    arm.go(0.5)
    guard.reset(arm.t)
    assert not arm.go(0.3, guard)
    arm.activate()
    assert arm.go(0.3, guard)


def test_a_stronger_stop_replaces_one_that_holds_and_a_reset_does_not_bring_it_back():
    """The guard's is zero; a position that was held before it is not held again."""
    arm, guard = Arm(on_estop="hold"), Supervisor()
    arm.activate()
    arm.go(0.3, guard)
    arm.controller.estop(arm.t)
    assert arm.go(0.1, guard)
    guard.stop("a")
    assert not arm.go(0.1, guard)
    guard.reset(arm.t)
    assert not arm.go(0.3, guard)


def test_an_end_in_good_order_is_no_silence(arm):
    """Without require_guard the controller drives on; with a stop it stays."""
    arm, guard = arm
    arm.stop.hear(arm.t, guard.beat(ends=True))
    assert arm.go(1.0)
    arm.go(0.1, guard)
    guard.stop("the guard ends while torque stands")
    arm.stop.hear(arm.t, guard.beat(ends=True))
    assert not arm.go(1.0)
    assert "has stopped it (the guard ends while torque stands)" in _reason(arm)
    assert arm.link.fault is None


def test_a_required_guard_that_ends_stops_unless_another_one_lives():
    """It is no longer supervised."""
    arm, first, second = Arm(required=True), Supervisor(), Supervisor()
    arm.go(0.1, first, second)
    arm.activate()
    assert arm.go(0.1, first, second)
    arm.stop.hear(arm.t, first.beat(ends=True))
    assert arm.go(0.3, second)
    arm.stop.hear(arm.t, second.beat(ends=True))
    assert not arm.state()
    assert _reason(arm) == "the guard has ended"


def test_a_required_guard_allows_an_activation_when_it_lives_and_is_not_stopped():
    """Else it is refused with a reason, and forced it drives nothing."""
    arm, guard = Arm(required=True), Supervisor()
    assert "no guard is heard; valid: start the node guard" in arm.link.refusal(arm.t)
    arm.activate()
    assert not arm.go(0.3)
    assert _reason(arm) == "no guard is heard"
    assert not arm.go(0.3, guard)
    guard.stop("a person")
    arm.go(0.1, guard)
    refusal = "the guard is stopped: a person; valid: its ~/reset"
    assert arm.link.refusal(arm.t) == refusal
    guard.reset(arm.t)
    arm.go(0.1, guard)
    assert arm.link.refusal(arm.t) is None
    arm.activate()
    assert arm.go(0.3, guard)
    arm.go(0.5)
    assert "no guard is heard" in arm.link.refusal(arm.t)


def test_after_a_pause_of_the_process_zero_is_sent_until_the_guards_next_beat(arm):
    """What was waiting may be older than a stop; silence counts from the pause on."""
    arm, guard = arm
    arm.t += 1.0
    resumed = arm.t
    assert not arm.state()
    for _ in range(3):  # beats of the time in which it stood
        arm.stop.hear(arm.t, guard.beat())
    assert arm.stop.link.waits
    assert not arm.go(BEAT - 2 * STEP)
    arm.t = resumed + BEAT
    arm.stop.hear(arm.t, guard.beat())
    assert arm.go(0.1, guard)
    torques = [t for t, torque in arm.sent if torque and t >= resumed]
    assert torques[0] >= resumed + BEAT


def test_each_pause_is_excused(arm):
    """Once the guard was heard after the one before."""
    arm, guard = arm
    for _ in range(3):
        arm.t += 1.0
        arm.state()
        assert arm.go(0.3, guard)


def test_an_activation_right_after_a_pause_relies_on_the_next_beat(arm):
    """It ends the stop of a dead guard; the living one may have stopped meanwhile."""
    arm, dead = arm
    dead.stop("a person")
    arm.go(0.1, dead)
    guard = Supervisor()
    assert not arm.go(0.5, guard)
    arm.t += 0.25
    arm.activate()
    assert not arm.go(BEAT - STEP)
    assert arm.controller.stopped is None
    guard.stop("another person")
    arm.go(STEP, guard)
    assert "another person" in _reason(arm)
    guard.reset(arm.t)
    assert arm.go(0.2, guard)


def test_a_pause_within_state_timeout_is_none(arm):
    """No guard stops a controller in that time."""
    arm, guard = arm
    arm.t += STALE - STEP
    assert arm.state()
    assert arm.go(0.2, guard)


def test_after_a_pause_silence_counts_once_what_waited_could_be_read(arm):
    """And only once: a process that always stands misses its guard, too."""
    arm, _ = arm
    arm.t += 1.0
    resumed = arm.t
    arm.state()

    def late():
        arm.t += 3 * STEP
        arm.state()

    _until_stopped(arm, late)
    assert GRACE <= arm.t - resumed <= GRACE + 3 * STEP + 1e-9
    assert _reason(arm) == SILENT


def test_while_a_robot_comes_to_rest_before_the_end_no_beat_is_missed():
    """Nobody reads them then; on_shutdown bounds the time."""
    arm, guard = Arm(on_shutdown="ramp"), Supervisor()
    arm.activate()
    arm.go(0.3, guard)
    arm.controller.shut_down(arm.t)
    arm.t += STEP
    for _ in range(50):
        arm.t += STEP
        assert arm.controller.update(arm.t, Q, QD).any()
    assert arm.controller.stopped.cause == "shutdown"


def test_an_effort_timeout_that_is_too_short_is_a_warning(arm):
    """It is compared with the time in which the controller itself answers."""
    arm, guard = arm
    guard.timeout = STALE + 0.015
    arm.go(0.1, guard)
    (condition,) = arm.link.conditions(arm.t)
    assert "valid: more than state_timeout and 15 ms (0.115 s)" in condition.message
    guard.timeout = 0.12
    arm.go(0.1, guard)
    assert arm.link.conditions(arm.t) == []


class Oracle:
    """What the rules say in other words: from what was heard, and when.

    Attributes:
        heard: Time and last beat by uuid, of guards since the last activation.
        owed: Resets that a guard showed at its last stop, until it shows more.
    """

    def __init__(self):
        self.heard, self.owed, self.lost = {}, {}, False

    def hear(self, t, beat):
        """Note a beat."""
        self.heard[beat.uuid] = t, beat
        if beat.stopped:
            self.owed[beat.uuid] = beat.resets
        elif beat.resets > self.owed.get(beat.uuid, math.inf):
            del self.owed[beat.uuid]
        if beat.ends:
            del self.heard[beat.uuid]

    def living(self, t):
        """Return the guards that speak."""
        return {x for x, (heard, _) in self.heard.items() if t - heard < TIMEOUT}

    def activate(self, t):
        """Forget dead guards; what they owe is forgiven under a sound one."""
        living = self.living(t)
        self.heard = {x: self.heard[x] for x in living}
        if living and not living & set(self.owed):
            self.owed, self.lost = {}, False
        self.lost = False

    def forbids(self, t):
        """Return whether the arm must not drive at a time."""
        self.lost |= any(t - heard >= TIMEOUT for heard, _ in self.heard.values())
        return bool(self.owed) or self.lost


@pytest.mark.parametrize("seed", range(8))
def test_random_lives_of_two_guards(seed):
    """An arm drives never where the rules forbid it, and where they allow it."""
    random_ = random.Random(seed)
    arm, oracle, guards = Arm(), Oracle(), [Supervisor()]
    arm.activate()
    drove = forbidden = 0
    for _ in range(1500):
        arm.t += STEP
        for guard in guards:
            if random_.random() < 0.3:
                arm.stop.hear(arm.t, guard.beat())
                oracle.hear(arm.t, guard.beat())
        event = random_.random()
        if guards and event < 0.02:
            random_.choice(guards).stop("a person")
        elif guards and event < 0.08:
            random_.choice(guards).reset(arm.t)
        elif guards and event < 0.085:
            guards.remove(random_.choice(guards))  # killed
        elif guards and event < 0.087:
            last = guards.pop().beat(ends=True)
            arm.stop.hear(arm.t, last)
            oracle.hear(arm.t, last)
        elif len(guards) < 2 and event < 0.11:
            guards.append(Supervisor())
        elif event > 0.97:
            arm.activate()
            oracle.activate(arm.t)
        drives, forbids = arm.state(), oracle.forbids(arm.t)
        assert drives != forbids, (seed, arm.t, _reason(arm))
        drove, forbidden = drove + drives, forbidden + forbids
    assert drove > 100
    assert forbidden > 100
