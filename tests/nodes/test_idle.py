"""Work that waits for an answer, and the times of answers."""

import numpy as np
import pytest

from ros_nodes.base import idle as idle_module
from ros_nodes.base.idle import IdleWork
from ros_nodes.controller.state_input import REST, ROW, SLOW, StateInput
from ros_nodes.simulator.simulator_status import LONGEST, RECENT, RoundTrips


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only entry is the time."""
    now = [100.0]
    monkeypatch.setattr(idle_module.time, "monotonic", lambda: now[0])
    return now


def test_jobs_wait_for_an_answer_one_at_a_time(clock):
    """While answers come, each job is done behind one, once, in the order of being due."""
    done, idle = [], IdleWork()
    first, second = (lambda: done.append("first")), (lambda: done.append("second"))
    idle.after_answer()
    for job in (first, second, first):
        idle.due(job)
    assert done == []
    idle.after_answer()
    assert done == ["first"]
    idle.after_answer()
    idle.after_answer()
    assert done == ["first", "second"]


def test_without_answers_a_job_is_done_when_it_is_due(clock):
    """Before the first answer, and once there are no more, nothing waits or is lost."""
    done, idle = [], IdleWork()
    job = lambda: done.append(clock[0])  # noqa: E731
    idle.due(job)
    assert done == [100.0]
    idle.after_answer()
    idle.due(job)
    clock[0] += 2 * idle_module.LATE
    idle.due(job)
    assert len(done) == 2 and not idle.waiting


def test_round_trips_of_a_run_and_of_its_end():
    """Percentiles of all times are those of NumPy, to the microsecond."""
    trips, rng = RoundTrips(), np.random.default_rng(4)
    assert np.isnan(trips.percentile(50))
    assert trips.values()["round trip p99 [us]"] == "nan"
    times = rng.gamma(4.0, 1e-4, 3 * RECENT)
    for seconds in times:
        trips.add(float(seconds))
    for p in (50, 99, 99.9):
        expected = np.percentile(times, p, method="inverted_cdf")
        assert abs(trips.percentile(p) - expected) <= 1.01e-6
    recent = np.percentile(times[-RECENT:], 99, method="inverted_cdf") * 1e6
    assert trips.values()["round trip p99 [us]"] == f"{recent:.0f}"
    trips.add(3.0)
    assert trips.longest == 3.0 and trips.counts[LONGEST] == 1


def test_several_slow_answers_in_a_row_leave_time_to_other_callbacks():
    """A single one, which carries other work, does not cost the next state its answer."""
    states, t = StateInput(["joint1"], None), 0.0
    for k in range(3 * ROW):
        slow = (k + 1) % ROW > 0
        states.answered(t, t + (2 if slow else 0.5) * SLOW)
        t += 2 * SLOW
        assert not states.rests(t)
    for _ in range(ROW):
        assert not states.rests(t)
        states.answered(t, t + 20 * SLOW)
        t += 20 * SLOW
    assert states.rests(t)
    assert not states.rests(t + 1.01 * REST * 20 * SLOW)
    states.answered(t, t + 0.5 * SLOW)
    assert not states.rests(t + 0.5 * SLOW)
