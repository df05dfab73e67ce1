"""States of joints in parts: which belong together, and who publishes them."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.states.state_parts import (
    MEMORY,
    NONE,
    PART,
    WHOLE,
    PartMerger,
    Sources,
)

JOINTS = ("a", "b", "c")


def _part(position, velocity=(), effort=()):
    return {"position": position, "velocity": velocity, "effort": effort}


def test_parts_make_a_state():
    """In the order of the joints, as old as the oldest part, other joints ignored."""
    merger = PartMerger(JOINTS, 0.1)
    assert merger.add(5.0, ["c", "g"], _part([3.0, 9.0], [0.3, 9.0]), 1.00) is None
    merged = merger.add(5.002, ["b", "a"], _part([2.0, 1.0], [0.2, 0.1]), 1.001)
    assert (merged.t, merged.stamp) == (5.0, 1.0)
    np.testing.assert_array_equal(merged.fields["position"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(merged.fields["velocity"], [0.1, 0.2, 0.3])
    assert "effort" not in merged.fields


def test_no_part_is_used_twice():
    """Where one publisher dies, nothing is merged; a whole state is complete alone."""
    merger = PartMerger(JOINTS, 0.1)
    merger.add(0.0, ["a"], _part([1.0]), 0.0)
    assert merger.add(0.001, ["b", "c"], _part([2.0, 3.0]), 0.001) is not None
    for k in range(1, 40):
        assert merger.add(0.002 * k, ["a"], _part([1.0]), 0.002 * k) is None
    whole = merger.add(0.08, JOINTS, _part([1.0, 2.0, 3.0]), 0.08)
    np.testing.assert_array_equal(whole.fields["position"], [1.0, 2.0, 3.0])
    assert merger.add(0.081, ["b", "c"], _part([2.0, 3.0]), 0.081) is None


def test_the_newest_part_of_a_joint_counts():
    """Of a fast and a slow publisher, at the rate of the slow one."""
    merger, stamps = PartMerger(JOINTS, 0.1), []
    for k in range(100):
        t = 0.001 * k
        for names, every in ((["a", "b"], 1), (["c"], 10)):
            if k % every:
                continue
            merged = merger.add(t, names, _part([float(k)] * len(names)), t)
            if merged is not None:
                stamps.append(merged.stamp)
                assert np.ptp(merged.fields["position"]) <= 1
    assert len(stamps) == 10
    assert (np.diff(stamps) > 0).all()


@pytest.mark.parametrize(
    ("times", "stamps", "message"),
    [
        ((0.0, 0.1), (1.0, 1.0), "they came 0.1 s apart"),
        ((0.0, 0.01), (1.0, 1.1), "their stamps differ by 0.1 s"),
        ((0.0, 0.01), (2.0, 1.0), "their stamps differ by 1 s"),
        ((0.0, 0.01), (1.0, None), "one has a stamp, another none"),
        ((0.0, 0.01), (None, 1.0), "one has a stamp, another none"),
        ((0.0, 0.2), (None, None), "they came 0.2 s apart"),
    ],
)
def test_parts_of_other_times_are_dropped(times, stamps, message):
    """The earlier one, in words; the later one goes on."""
    merger = PartMerger(("a", "b"), 0.1)
    merger.add(times[0], ["a"], _part([1.0]), stamps[0])
    expected = rf"{message} \(joint 'a'\); valid: less than 0.1 s \(state_timeout\)"
    with pytest.raises(dyn.SettingError, match=expected):
        merger.add(times[1], ["b"], _part([2.0]), stamps[1])
    merged = merger.add(times[1], ["a"], _part([3.0]), stamps[1])
    np.testing.assert_array_equal(merged.fields["position"], [3.0, 2.0])
    assert (merged.t, merged.stamp) == (times[1], stamps[1])


def test_parts_without_stamps_merge_by_receipt():
    """And the merged state has none."""
    merger = PartMerger(("a", "b"), 0.1)
    merger.add(0.0, ["a"], _part([1.0], [0.1]), None)
    merged = merger.add(0.09, ["b"], _part([2.0]), None)
    assert (merged.t, merged.stamp) == (0.0, None)
    assert list(merged.fields) == ["position"]


def test_parts_that_are_none_change_nothing():
    """A joint twice, or fields of another size."""
    merger = PartMerger(("a", "b"), 0.1)
    merger.add(0.0, ["a"], _part([1.0]), 0.0)
    for names, part, message in (
        (["b", "b"], _part([1.0, 2.0]), "joint 'b': .*got there more than once"),
        (["b"], _part([1.0, 2.0]), "position: wanted 1 numbers, .* got 2"),
        (["b"], _part([1.0], [1.0, 2.0]), "velocity: wanted 1 numbers"),
    ):
        with pytest.raises(dyn.ShapeError, match=message):
            merger.add(0.01, names, part, 0.01)
    assert merger.add(0.02, ["b"], _part([2.0]), 0.02) is not None


def test_publishers_of_other_joints_are_no_robots():
    """A gripper is none, parts are one, two of all the joints are two."""
    for names, publishers, robots in (
        ([JOINTS], 1, 1),
        ([JOINTS, ("g",)], 2, 1),
        ([JOINTS, ("g",)], 3, 2),
        ([JOINTS], 2, 2),
        ([("a",), ("b", "c")], 2, 1),
        ([("a",), ("b", "c"), ("g",)], 3, 1),
        ([("a",), JOINTS], 2, 2),
        ([("a",), ("b", "c")], 4, 3),
        ([], 0, 0),
    ):
        sources = Sources(JOINTS)
        for one in names:
            sources.sort(0.0, one)
        assert sources.robots(0.5, publishers) == robots, (names, publishers)
    sources = Sources(JOINTS)
    shares = [sources.sort(0.0, x) for x in (("g",), ("a", "g"), (*JOINTS, "g"), ())]
    assert shares == [NONE, PART, WHOLE, NONE]
    assert sources.recent(MEMORY, NONE) == [("g",), ()]
    assert sources.robots(1.1 * MEMORY, 2) == 2  # the gripper is gone
