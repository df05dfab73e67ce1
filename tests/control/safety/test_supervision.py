"""Supervision from outside: what silence counts, what latches, what a reset takes."""

import math

import pytest

import dyn_core as dyn
from dyn_core.control.safety.supervision import GRACE, LATE, REPEAT, Supervisor

TORQUE, ZERO = [3.0, -8.0], [0.0, 0.0]


def _driven(timeout=0.1, until=1.0):
    """Return a supervisor that heard torque each 2 ms, the last time at `until`."""
    supervisor = Supervisor(timeout)
    for k in range(50):
        assert not supervisor.hear(until - 0.002 * (49 - k), TORQUE)
    return supervisor


def test_silence_while_torque_stands_stops_within_the_timeout():
    """Not a moment before, then for good; the reason says how long and how much."""
    supervisor = _driven()
    assert supervisor.wait(1.06) == pytest.approx(0.04)
    assert not supervisor.check(1.0999)
    assert supervisor.check(1.1 + 0.5 * LATE)
    assert supervisor.stopped.startswith("no effort for 0.10")
    assert supervisor.stopped.endswith(
        "the controller hangs or has ended, or the machine is too busy for"
        " effort_timeout (0.1 s)"
    )
    assert "8 N·m" in supervisor.stopped
    assert supervisor.wait(1.11) == REPEAT
    assert supervisor.check(50.0)
    assert supervisor.size == 2


def test_silence_after_zero_is_no_fault():
    """A controller that ended, waits, or never drove may send nothing for ever."""
    supervisor = Supervisor(0.1)
    assert supervisor.wait(0.0) is None
    assert not supervisor.check(100.0)
    supervisor.hear(1.0, TORQUE)
    assert supervisor.stands
    assert not supervisor.hear(1.01, ZERO)
    assert not supervisor.stands
    assert supervisor.wait(1.02) is None
    assert not supervisor.check(100.0)
    supervisor.hear(101.0, TORQUE)
    supervisor.hear(101.05, [])  # an empty command ends nothing
    assert supervisor.check(101.1)
    assert supervisor.size == 2


def test_a_controller_that_resumes_stays_stopped():
    """Each effort is replaced at once; zeros are not, and end nothing."""
    supervisor = _driven()
    assert supervisor.check(1.101)
    assert supervisor.hear(3.0, TORQUE)
    assert not supervisor.hear(3.1, ZERO)
    assert supervisor.hear(3.2, TORQUE)
    assert supervisor.check(3.3)
    assert supervisor.counters == {"stops": 1, "efforts after a stop": 2}


def test_a_reset_waits_for_the_controller_to_send_zero():
    """Else the robot would be driven at once; then supervision begins anew."""
    supervisor = _driven()
    supervisor.reset(1.0)  # nothing to end
    assert supervisor.check(1.101)
    supervisor.hear(2.0, TORQUE)
    with pytest.raises(dyn.SettingError, match=r"sent effort 0.050 s ago; valid: a re"):
        supervisor.reset(2.05)
    assert supervisor.stopped is not None
    supervisor.hear(2.06, ZERO)
    supervisor.reset(2.07)
    assert supervisor.stopped is None
    assert not supervisor.check(9.0)
    assert not supervisor.hear(9.0, TORQUE)
    assert supervisor.check(9.1)


def test_a_reset_is_taken_after_silence():
    """A process that was killed sends no zero."""
    supervisor = _driven()
    assert supervisor.check(1.101)
    supervisor.reset(1.2)
    assert not supervisor.check(9.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_effort_that_is_not_finite_stops_at_once(bad):
    """Whatever stood between controller and topic."""
    supervisor = _driven()
    assert supervisor.hear(1.002, [0.0, bad])
    assert supervisor.stopped == "an effort is not finite"


def test_a_supervisor_that_stood_reads_first_and_stops_then():
    """What it did not read is no silence of the controller; but it waits only once."""
    supervisor = _driven()
    assert not supervisor.check(5.0)
    assert supervisor.wait(5.0) == pytest.approx(GRACE)
    supervisor.hear(5.001, TORQUE)  # what had waited in the queue
    assert not supervisor.check(5.0 + GRACE)
    assert not supervisor.check(6.0)
    assert supervisor.wait(6.0) == pytest.approx(GRACE)
    assert supervisor.check(6.0 + GRACE + 3 * LATE)
    assert "no effort for 1.0" in supervisor.stopped


def test_a_person_stops_and_the_first_reason_stays():
    """Whether torque stands or not."""
    supervisor = Supervisor(0.1)
    supervisor.stop("a person")
    supervisor.stop("another")
    assert supervisor.check(0.0)
    assert supervisor.stopped == "a person"
    assert supervisor.hear(1.0, TORQUE)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan, math.inf])
def test_a_timeout_that_is_none_is_refused(timeout):
    """In words."""
    with pytest.raises(dyn.SettingError, match="timeout .*; valid: more than 0"):
        Supervisor(timeout)
