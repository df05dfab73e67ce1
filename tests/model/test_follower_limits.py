"""Limits of followers (mimic joints) bound their leader, and never take its range."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn

BODY = """<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
 ixy="0" ixz="0" iyz="0"/></inertial>"""


def _joint(name, limits, mimic=""):
    low, high = limits
    limit = f'<limit lower="{low!r}" upper="{high!r}" effort="5" velocity="2"/>'
    return (
        f'<link name="{name}_link">{BODY}</link><joint name="{name}" type="revolute">'
        f'<parent link="base"/><child link="{name}_link"/>{limit}{mimic}</joint>'
    )


def _robot(leader, *followers):
    """Return a leader's range, and (range, multiplier, offset) of each follower."""
    parts = [_joint("leader", leader)]
    for k, (limits, multiplier, offset) in enumerate(followers):
        rule = f'multiplier="{multiplier!r}" offset="{offset!r}"'
        parts.append(_joint(f"f{k}", limits, f'<mimic joint="leader" {rule}/>'))
    return f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>'


def _range(model):
    return float(model.lower[0]), float(model.upper[0])


BOUNDED = {
    "narrower": ((-1.0, 1.0), [((-0.5, 0.25), 1.0, 0.0)], (-0.5, 0.25)),
    "wider": ((-1.0, 1.0), [((-2.0, 3.0), 1.0, 0.0)], (-1.0, 1.0)),
    "reversed": ((-1.0, 1.0), [((-0.5, 0.25), -1.0, 0.0)], (-0.25, 0.5)),
    "geared": ((-1.0, 1.0), [((-0.5, 1.0), 2.0, 0.5)], (-0.5, 0.25)),
    "two": ((-1.0, 1.0), [((0.0, 0.7), 1.0, 0.0), ((-0.6, 0.1), 1.0, 0.0)], (0.0, 0.1)),
    "held still": ((-1.0, 1.0), [((-0.5, 0.5), 0.0, 0.0)], (-1.0, 1.0)),
    "a point of its own": ((0.3, 0.3), [((0.0, 1.0), 1.0, 0.0)], (0.3, 0.3)),
    "a point without sign": ((0.0, -0.0), [((-1.0, 1.0), 1.0, 0.0)], (0.0, 0.0)),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_limits_of_followers_bound_their_leader(case):
    """The leader's range is what leaves every follower within its own."""
    leader, followers, wanted = BOUNDED[case]
    model = dyn.load_urdf(_robot(leader, *followers))
    assert _range(model) == pytest.approx(wanted, abs=1e-15)
    assert model.warnings == ()
    for q in np.linspace(*_range(model), 5):
        for (low, high), multiplier, offset in followers:
            assert low - 1e-15 <= multiplier * q + offset <= high + 1e-15


REFUSED = {
    "Robotiq 2F-85": ((0.0, 0.8), ((0.0, 0.8757), -1.0, 0.0)),
    "PR2": ((0.0, 0.548), ((0.0, 0.548), -1.0, 0.0)),
    "Schunk": ((0.0, 0.9879), ((-0.9879, 0.0), 1.0, 0.0)),
    "reversed": ((0.1, 0.5), ((0.0, 0.8757), -1.0, 0.0)),
    "disjoint": ((0.0, 1.0), ((0.0, 1.0), 1.0, 10.0)),
    "a point by rounding": ((0.0, 0.1 + 0.2), ((0.3, 1.0), 1.0, 0.0)),
    "a follower that is held": ((-1.0, 1.0), ((0.2, 0.2), 1.0, 0.0)),
}


@pytest.mark.parametrize("check", ("error", "warn"))
@pytest.mark.parametrize("case", REFUSED)
def test_a_leader_without_a_range_keeps_its_own(case, check):
    """It loads, says whose limits are left out, and moves."""
    leader, follower = REFUSED[case]
    model = dyn.load_urdf(_robot(leader, follower), check=check)
    assert _range(model) == leader
    (warning,) = model.warnings
    (low, high), _, _ = follower
    for phrase in (
        "'leader'",
        "'f0'",
        f"[{leader[0]:g}, {leader[1]:g}]",
        f"[{low:g}, {high:g}]",
    ):
        assert phrase in warning
    drawn = [model.random(np.random.default_rng(k))[0] for k in range(20)]
    assert leader[0] <= min(drawn) < max(drawn) <= leader[1]
    assert np.isfinite(dyn.solver("aba").build(model)([0.1], [0.0], [1.0])).all()


def test_a_good_follower_bounds_beside_a_bad_one():
    """Only the limits that leave no range are left out, whatever the order."""
    good, bad = ((0.0, 0.4), 1.0, 0.0), ((0.0, 0.8757), -1.0, 0.0)
    for order, name in (((good, bad), "'f1'"), ((bad, good), "'f0'")):
        model = dyn.load_urdf(_robot((0.0, 0.8), *order))
        assert _range(model) == (0.0, 0.4)
        (warning,) = model.warnings
        assert name in warning


def test_followers_that_only_together_leave_no_range():
    """Each alone would bound the leader; together none does, and one warning says so."""
    pair = [((0.0, 0.4), 1.0, 0.0), ((0.6, 1.0), 1.0, 0.0)]
    for followers in (pair, pair[::-1]):
        model = dyn.load_urdf(_robot((0.0, 1.0), *followers))
        assert _range(model) == (0.0, 1.0)
        (warning,) = model.warnings
        for phrase in ("'leader'", "'f0'", "'f1'", "[0, 1]", "[0, 0.4]", "[0.6, 1]"):
            assert phrase in warning


def test_any_limits_leave_a_range():
    """Random leaders and followers: never empty, never reversed, a point only its own."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        leader_range = sorted(rng.normal(size=2).round(2).tolist())
        followers = [
            (sorted(rng.normal(size=2).round(2).tolist()), *rng.normal(size=2).round(1).tolist())
            for _ in range(int(rng.integers(1, 4)))
        ]  # fmt: skip
        model = dyn.load_urdf(_robot(leader_range, *followers))
        low, high = _range(model)
        assert leader_range[0] <= low <= high <= leader_range[1]
        assert low < high or leader_range[0] == leader_range[1]


def test_a_leader_that_keeps_its_range_moves_in_a_simulation():
    """1 N·m for half a second moves it as far as without the follower's limits."""
    bad = _robot((0.0, 0.9879), ((-0.9879, 0.0), 1.0, 0.0))
    free = _robot((0.0, 0.9879), ((-9.0, 9.0), 1.0, 0.0))
    places = []
    for text in (bad, free):
        model = dyn.load_urdf(text, gravity=(0.0, 0.0, 0.0))
        sim = dyn.ContactSimulator(model, {"contacts": False}, period=0.01)
        for k in range(50):
            sim.command(k * 0.01, [1.0])
            sim.advance(k * 0.01)
        places.append(float(sim.q[0]))
    assert places[0] == places[1] > 0.05


def _pr2():
    """Find the PR2 of the package example-robot-data."""
    robot = "cmeel.prefix/share/example-robot-data/robots/pr2_description/urdf/pr2.urdf"
    for place in map(Path, sys.path):
        if (place / robot).exists():
            return place / robot
    pytest.skip("example-robot-data is not installed")


def test_the_pr2_loads():
    """Its two grippers open, and each warning names one of the fingers at fault."""
    model = dyn.load_urdf(_pr2(), check="warn")
    said = [w for w in model.warnings if "follower" in w]
    for side, warning in zip("rl", sorted(said, reverse=True), strict=True):
        leader = f"{side}_gripper_l_finger_joint"
        index = model.v_slice(leader)
        assert (model.lower[index], model.upper[index]) == (0.0, 0.548)
        assert leader in warning
        assert f"{side}_gripper_r_parallel_root_joint" in warning
    assert math.isfinite(model.mass)
