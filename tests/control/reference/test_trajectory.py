"""Trajectories: refused as a whole in words, sampled smoothly, held at the end."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.reference.led_trajectory import starting_from
from dyn_core.control.reference.trajectory import Reference, make_trajectory

JOINTS = ("a", "b")
NOW = Reference(np.array([0.5, -0.5]), np.zeros(2), np.zeros(2))


def _make(**changes):
    settings = {
        "names": ["b", "a"],
        "times": [1.0, 2.0],
        "positions": [[2.0, 1.0], [4.0, 3.0]],
        "velocities": [[0.2, 0.1], [0.0, 0.0]],
        "accelerations": [[0.4, 0.3], [0.0, 0.0]],
    } | changes
    return make_trajectory(JOINTS, **settings)


def test_columns_come_in_our_order():
    """Names may be in any order; the result is in the controller's."""
    trajectory = _make()
    np.testing.assert_array_equal(trajectory.q, [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(trajectory.sample(1.0).qd, [0.1, 0.2])


@pytest.mark.parametrize(
    ("drop", "order"),
    [((), 2), (("accelerations",), 1), (("accelerations", "velocities"), 0)],
)
def test_splines_pass_through_the_points(drop, order):
    """A point is met in all that is given; derivatives are those of the position."""
    trajectory = starting_from(_make(**dict.fromkeys(drop, ())), NOW)
    np.testing.assert_allclose(trajectory.sample(0.0).q, NOW.q)
    for t, row in zip((1.0, 2.0), ([1.0, 2.0], [3.0, 4.0]), strict=True):
        np.testing.assert_allclose(trajectory.sample(t).q, row, atol=1e-12)
    before, after = trajectory.sample(1 - 1e-9), trajectory.sample(1.0)
    for k in range(1, order + 1):
        np.testing.assert_allclose(before[k], after[k], atol=1e-6)
    h = 1e-5
    for t in (0.3, 1.7):
        low, middle, high = (trajectory.sample(t + d) for d in (-h, 0, h))
        np.testing.assert_allclose((high.q - low.q) / (2 * h), middle.qd, atol=1e-8)
        np.testing.assert_allclose((high.qd - low.qd) / (2 * h), middle.qdd, atol=1e-7)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_polynomial_is_met_between_uneven_points(order):
    """Of degree 1, 3 or 5: interpolation is exact, whatever the lengths of the pieces."""
    times = np.array([0.0, 0.5, 2.0, 2.25])
    rng = np.random.default_rng(order)
    motion = [np.polynomial.Polynomial(rng.normal(size=2 * order + 2)) for _ in JOINTS]
    rows = [
        np.array([[p.deriv(k)(t) if k else p(t) for p in motion] for t in times])
        for k in range(3)
    ]
    trajectory = make_trajectory(
        JOINTS, JOINTS, times, *rows[: order + 1], moving_end=True
    )
    for t in (0.0, 0.2, 1.1, 2.0, 2.2):
        reference = trajectory.sample(t)
        for k in range(3):
            exact = [p.deriv(k)(t) if k else p(t) for p in motion]
            np.testing.assert_allclose(reference[k], exact, atol=1e-9)


def test_times_and_limits_are_edges():
    """At the last time the end counts; a point on a limit is inside; one row will do."""
    trajectory = make_trajectory(JOINTS, JOINTS, [1.0], [[1.0, 2.0]])
    assert trajectory.duration == 1.0
    np.testing.assert_array_equal(trajectory.sample(0.5).q, [1.0, 2.0])
    still = _make(upper=np.array([3.0, 4.0]), lower=np.array([1.0, 2.0]))
    assert not still.sample(2.0).qdd.any()
    assert still.sample(1.0).qdd.any()
    at_zero = _make(times=[0.0, 2.0])
    assert starting_from(at_zero, NOW) is at_zero
    with pytest.raises(dyn.TrajectoryError, match="point 0: joint 'b' at 2 is outside"):
        _make(lower=np.array([-9.0, 2.1]))
    with pytest.raises(dyn.TrajectoryError, match="the last point has a velocity"):
        _make(velocities=[[0.0, 0.0], [-1e-6, 0.0]])


def test_the_end_is_held_at_rest():
    """After the last point: its position, no velocity, no acceleration."""
    reference = _make().sample(99.0)
    np.testing.assert_array_equal(reference.q, [3.0, 4.0])
    assert not reference.qd.any()
    assert not reference.qdd.any()


def test_none_jumps():
    """Without interpolation the next point is the reference."""
    trajectory = _make(method="none")
    np.testing.assert_array_equal(trajectory.sample(1.5).q, [3.0, 4.0])
    np.testing.assert_array_equal(trajectory.sample(0.5).q, [1.0, 2.0])
    three = _make(
        times=[1.0, 2.0, 3.0], positions=[[2.0, 1.0], [4.0, 3.0], [6.0, 5.0]],
        velocities=(), accelerations=(), method="none",
    )  # fmt: skip
    np.testing.assert_array_equal(three.sample(1.5).q, [3.0, 4.0])
    np.testing.assert_array_equal(three.sample(2.0).q, [5.0, 6.0])
    _make(
        times=[1.0, 2.0, 3.0], positions=[[2.0, 1.0], [4.0, 3.0], [6.0, 5.0]],
        velocities=[[0.0, 0.0], [0.5, 0.5], [0.0, 0.0]], accelerations=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"names": ["a", "c"]}, "unknown joints c; needs a, b"),
        ({"names": ["a"]}, "missing joints b"),
        ({"names": ["a", "b", "b"]}, "double joints b"),
        ({"times": []}, "no points"),
        ({"times": [2.0, 2.0]}, "times must be finite, >= 0 and increase"),
        ({"times": [-1.0, 2.0]}, "times must be"),
        ({"times": [float("nan"), 2.0]}, "times must be"),
        ({"positions": [[], []]}, "every point needs positions"),
        ({"positions": [[1.0], [2.0]]}, "point 0 has 1 positions; needs 2"),
        (
            {"positions": [[1.0, 2.0], [float("nan"), 0.0]]},
            "point 1: positions are not",
        ),
        ({"velocities": [[0.0, 0.0]]}, "2 times but 1 rows of velocities"),
        ({"velocities": [[0.0, 0.0], [0.0, 1.0]]}, "the last point has a velocity"),
        ({"velocities": ()}, "accelerations without velocities"),
        (
            {"upper": np.array([2.0, 9.0])},
            r"point 1: joint 'a' at 3 is outside .*\[-inf, 2\]",
        ),
        ({"method": "magic"}, "interpolation 'magic'; valid: splines, none"),
    ],
)
def test_bad_trajectories_are_refused_with_a_reason(changes, expected):
    """All or nothing; the error names point and joint."""
    with pytest.raises(dyn.TrajectoryError, match=expected):
        _make(**changes)
