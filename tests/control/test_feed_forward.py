"""Efforts of trajectories by inverse dynamics: in Python, for files and on topics."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import cli
from dyn_core.control import make_trajectory
from dyn_core.control.feed_forward import FeedForward, with_points
from ros_nodes.messages.trajectory_files import read_trajectories


@pytest.fixture(scope="module")
def arm(shipped):
    """Return an arm of two joints."""
    return shipped["two_link"]


def _rows(order, seed=0, points=4):
    """Return times and rows of a trajectory, of an interpolation of an order."""
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.2, 0.6, points))
    return times, *(random.normal(size=(points, 2)) for _ in range(order))


def _sides(trajectory, names, t, h=1e-10):
    """Return position, velocity and acceleration just before and just after a time."""
    whole = make_trajectory(
        names, names, trajectory.times, trajectory.q,
        () if trajectory.qd is None else trajectory.qd,
        () if trajectory.qdd is None else trajectory.qdd, moving_end=True,
    )  # fmt: skip
    return whole.sample(t - h), whole.sample(t + h)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_efforts_are_inverse_dynamics_of_the_interpolation(arm, order):
    """At each point, with friction; the mean where two pieces meet."""
    names = arm.joint_names
    feed = FeedForward(arm, engine="graph")
    times, *rows = _rows(order)
    made = feed.trajectory(names, times, *rows)
    rnea = dyn.solver("rnea").build(
        arm, engine="graph", joint_friction=True, joint_springs=True
    )
    if order == 3:
        assert np.abs(made.effort - rnea(*rows)).max() < 1e-12
    for k in range(1, len(times) - 1):
        left, right = _sides(made, names, times[k])
        mean = [(x + y) / 2 for x, y in zip(left, right, strict=True)]
        assert np.allclose(made.effort[k], rnea(*mean), atol=1e-4)
    first = _sides(made, names, times[0])[1]
    last = _sides(made, names, times[-1])[0]
    assert np.allclose(made.effort[[0, -1]], [rnea(*first), rnea(*last)], atol=1e-4)
    assert np.array_equal(made.q, rows[0])


def test_the_polynomials_give_the_accelerations(arm):
    """Cubic: 6 d / T^2 - (4 v0 + 2 v1) / T at the first point, to the last digit."""
    times, q, qd = _rows(2, seed=1, points=2)
    made = FeedForward(arm, engine="graph").trajectory(arm.joint_names, times, q, qd)
    rnea = dyn.solver("rnea").build(
        arm, engine="graph", joint_friction=True, joint_springs=True
    )
    T, d = times[1] - times[0], q[1] - q[0]
    first = 6 * d / T**2 - (4 * qd[0] + 2 * qd[1]) / T
    last = -6 * d / T**2 + (2 * qd[0] + 4 * qd[1]) / T
    expected = rnea(q, qd, np.array([first, last]))
    assert np.abs(made.effort - expected).max() < 1e-12


def test_columns_are_in_the_order_of_the_trajectory(arm):
    """As a message has them."""
    feed = FeedForward(arm, engine="graph")
    times, *rows = _rows(3)
    straight = feed.trajectory(arm.joint_names, times, *rows)
    turned = feed.trajectory(
        arm.joint_names[::-1], times, *(row[:, ::-1] for row in rows)
    )
    assert np.array_equal(turned.effort, straight.effort[:, ::-1])
    assert np.array_equal(turned.q, rows[0][:, ::-1])


def test_joints_that_are_not_there_are_held(arm):
    """At a position that must be source_message."""
    first, second = arm.joint_names
    times, q, qd, qdd = _rows(3)
    feed = FeedForward(arm, {second: 0.3}, engine="graph", joint_friction=False)
    made = feed.trajectory([first], times, q[:, :1], qd[:, :1], qdd[:, :1])
    still = np.zeros(len(times))
    rnea = dyn.solver("rnea").build(arm, engine="graph", joint_springs=True)
    expected = rnea(
        np.column_stack([q[:, 0], still + 0.3]), np.column_stack([qd[:, 0], still]),
        np.column_stack([qdd[:, 0], still]),
    )  # fmt: skip
    assert np.abs(made.effort[:, 0] - expected[:, 0]).max() < 1e-12
    assert made.effort.shape == (len(times), 1)
    with pytest.raises(dyn.TrajectoryError, match=f"joints {first} are missing"):
        feed.trajectory([second], times, q[:, :1])
    with pytest.raises(dyn.SettingError, match="no joint is called 'wrist'"):
        FeedForward(arm, {"wrist": 0.0})
    with pytest.raises(dyn.TrajectoryError, match="unknown joints wrist"):
        feed.trajectory([first, "wrist"], times, q)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_added_points_lie_on_the_same_motion(arm, order):
    """The interpolation of more points is that of the few."""
    times, *rows = _rows(order)
    names = arm.joint_names
    few = make_trajectory(names, names, times, *rows, moving_end=True)
    many = with_points(few, 0.05)
    assert np.diff(many.times).max() <= 0.05 + 1e-12
    assert np.isin(times, many.times).all()
    for t in np.linspace(times[0], times[-1], 57)[1:-1]:
        for x, y in zip(few.sample(t), many.sample(t), strict=True):
            assert np.allclose(x, y, atol=1e-8)
    loaded = replace(few, effort=np.random.default_rng(2).normal(size=few.q.shape))
    for t in np.linspace(0.0, few.times[-1], 31):
        effort = with_points(loaded, 0.05).sample_effort(t)
        assert effort == pytest.approx(loaded.sample_effort(t), abs=1e-12)
    same = with_points(few, 1e3)
    assert np.array_equal(same.q, few.q)
    with pytest.raises(dyn.TrajectoryError, match="valid: at most 100000"):
        with_points(few, 1e-6)


def test_a_robot_without_single_joints_is_refused():
    """Joints of one coordinate each, as for the controller."""
    with pytest.raises(dyn.SettingError, match="drives joints of one coordinate"):
        FeedForward(dyn.load_urdf(dyn.robots.path("every_joint")))


MESSAGE = """\
header:
  stamp: {sec: 12, nanosec: 5}
  frame_id: ''
joint_names:
- JOINTS
points:
- positions: [0.1, 0.2]
  velocities: [0.0, 0.0]
  accelerations: []
  effort: []
  time_from_start:
    sec: 0
    nanosec: 0
- positions: [0.5, -0.2]
  velocities: [0.0, 0.0]
  accelerations: []
  effort: []
  time_from_start: {sec: 1, nanosec: 500000000}
---
"""


def _file(arm, folder, name="in.yaml", old="", new=""):
    content = MESSAGE.replace("- JOINTS", "\n".join(f"- {x}" for x in arm.joint_names))
    assert old in content
    path = folder / name
    path.write_text(content.replace(old, new))
    return str(path)


def test_the_command_writes_a_file(arm, tmp_path):
    """What came, with efforts; a file it wrote can be read again, as YAML and JSON."""
    source = _file(arm, tmp_path)
    out = tmp_path / "out.yaml"
    command = ["feed-forward", source, "--robot", "two_link", "-o", str(out)]
    assert cli.main(command) == 0
    source_message = read_trajectories(source)[0]
    made = yaml.safe_load(out.read_text())
    assert made["header"] == source_message["header"]
    assert made["joint_names"] == list(arm.joint_names)
    feed = FeedForward(arm)
    rows = [
        [p[k] for p in source_message["points"]] for k in ("positions", "velocities")
    ]
    expected = feed.trajectory(arm.joint_names, [0.0, 1.5], *rows).effort
    got = np.array([point["effort"] for point in made["points"]])
    assert np.abs(got - expected).max() < 1e-12
    for old, new in zip(source_message["points"], made["points"], strict=True):
        assert new["positions"] == list(old["positions"])
        assert new["time_from_start"] == dict(old["time_from_start"])
    again = tmp_path / "again.json"
    command = ["feed-forward", str(out), "--robot", "two_link", "-o", str(again)]
    assert cli.main(command) == 0
    assert json.loads(again.read_text()) == made
    command = ["feed-forward", str(again), "--robot", "two_link", "-o", str(out)]
    assert cli.main([*command, "--period", "0.1"]) == 0
    assert len(yaml.safe_load(out.read_text())["points"]) == 16


def test_the_command_adds_friction_unless_it_is_left_out(arm, tmp_path):
    """A damper of 100 N·m·s/rad needs effort in the direction of the motion."""
    extras, out = tmp_path / "extras.yaml", tmp_path / "out.yaml"
    extras.write_text("joints: {joint1: {damping: 100.0}}\n")
    command = ["feed-forward", _file(arm, tmp_path), "--robot", "two_link"]
    command += ["--extras", str(extras), "--period", "0.1", "-o", str(out)]
    efforts = []
    for option in ([], ["--no-friction"]):
        assert cli.main([*command, *option]) == 0
        points = yaml.safe_load(out.read_text())["points"]
        efforts.append(np.array([point["effort"] for point in points]))
    velocities = np.array([point["velocities"] for point in points])
    expected = velocities * [100.0, 0.0]
    assert expected.max() > 10.0
    # The friction that the robot has besides is below 0.2 N·m.
    assert np.abs(efforts[0] - efforts[1] - expected).max() < 0.2


def test_the_command_prints_and_warns(arm, tmp_path, capsys):
    """Several messages; an effort over its limit is named on stderr."""
    path = tmp_path / "fast.yaml"
    content = (
        open(_file(arm, tmp_path)).read().replace("{sec: 1, nano", "{sec: 0, nano")
    )
    path.write_text(content.replace("500000000", "20000000") + content)
    assert cli.main(["feed-forward", str(path), "--robot", "two_link"]) == 0
    printed = capsys.readouterr()
    assert len(list(yaml.safe_load_all(printed.out))) == 2
    assert "its effort limit is" in printed.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("joint_names", "joint_name", "did you mean 'joint_names'"),
        ("[0.1, 0.2]", "[0.1, .nan]", r"points\[0\]: positions\[1\] is nan"),
        ("[0.1, 0.2]", "[0.1]", "point 1 has 2 positions; needs 1|has 1 positions"),
        ("{sec: 1, nanosec: 500000000}", "{}", "times must be finite"),
        ("- joint1\n", "- elbow\n", "missing"),
        ("points:", "points: 3\nmore:", "no key|points"),
        ("positions: [0.5, -0.2]", "positions: [0.5, -0.2", "not YAML"),
    ],
)
def test_files_that_are_no_trajectory_are_refused(
    arm, tmp_path, capsys, old, new, message
):
    """In one sentence, status 1."""
    import re

    path = _file(arm, tmp_path, "bad.yaml", old, new)
    assert cli.main(["feed-forward", path, "--robot", "two_link"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line


def test_mistakes_of_the_command(arm, tmp_path, capsys):
    """Each in a sentence."""
    source = _file(arm, tmp_path)
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    empty = tmp_path / "empty.yaml"
    empty.write_text("---\n")
    nothing = tmp_path / "nothing.yaml"
    for path, more, message in (
        (source, ["--hold", "joint1=far"], "--hold joint1=far; valid: NAME=NUMBER"),
        (source, ["--period", "-1"], "--period is -1.0; valid"),
        (source, ["--inverse-dynamics", "aba"], "aba"),
        (str(bad), [], "not JSON"),
        (str(empty), [], "valid: a mapping"),
        (str(nothing), [], "cannot read the trajectory"),
    ):
        assert cli.main(["feed-forward", path, "--robot", "two_link", *more]) == 1
        assert message in capsys.readouterr().err
