"""The path of `dyn move`, and its arguments."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dyn_core import cli
from dyn_core.errors import SettingError
from ros_nodes.messages.trajectory_files import message_rows, read_trajectories

tool_path = pytest.importorskip("ros_nodes.moving.tool_path")
commands = pytest.importorskip("ros_nodes.tools.commands")
START = np.array([0.3, -0.2, 0.5, 1.0, 0.0, 0.0, 0.0])
END = np.r_[0.5, 0.1, 0.4, Rotation.from_rotvec([0.4, -0.9, 0.2]).as_quat() * 2.0]


@pytest.mark.parametrize(("speed", "turn"), [(0.1, 5.0), (9.0, 0.5)])
def test_a_path_is_straight_and_bounded(speed, turn):
    """From rest to rest; the bound that needs more time is met, the other held."""
    path = tool_path.ToolPath(START, END, speed, turn)
    times = np.linspace(-0.1, path.duration + 0.1, 4001)
    rows = np.array([path.pose(t) for t in times])
    np.testing.assert_allclose(rows[0], path.start, atol=1e-12)
    assert tool_path.apart(rows[-1], END)[0] < 1e-12
    assert tool_path.apart(rows[-1], path.end)[1] < 1e-7
    way = (rows[:, :3] - START[:3]) @ (END[:3] - START[:3])
    straight = np.outer(way / way[-1], END[:3] - START[:3]) + START[:3]
    np.testing.assert_allclose(rows[:, :3], straight, atol=1e-12)
    step = times[1] - times[0]
    speeds = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1) / step
    turns = np.array(
        [tool_path.apart(x, y)[1] for x, y in zip(rows[:-1], rows[1:], strict=True)]
    )
    largest = speeds.max() / speed, turns.max() / step / turn
    assert max(largest) == pytest.approx(1.0, abs=1e-3)
    assert max(largest) <= 1.0 + 1e-6
    np.testing.assert_allclose(np.linalg.norm(rows[:, 3:], axis=1), 1.0, atol=1e-12)


def test_a_path_to_where_the_tool_is_takes_no_time():
    """Its pose is the same at all times."""
    path = tool_path.ToolPath(START, START, 0.1, 0.5)
    assert path.duration == 0.0
    np.testing.assert_allclose(path.pose(3.0), START, atol=1e-12)


def test_roll_pitch_and_yaw_are_those_of_a_urdf():
    """Fixed axes, x first."""
    wanted = Rotation.from_euler("xyz", [0.3, -0.5, 1.1])
    turn = Rotation.from_quat(commands.of_rpy([0.3, -0.5, 1.1]))
    assert (turn.inv() * wanted).magnitude() < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "0"], "--speed 0; valid: more than 0"),
        (["--turn", "nan"], "--turn nan; valid: more than 0"),
        (["--quaternion", "0", "0", "0", "0"], "a quaternion that is not zero"),
    ],
)
def test_numbers_that_make_no_path_are_refused(arguments, message, capsys):
    """Also without ROS."""
    assert cli.main(["move", "--to", "0.1", "-0.2", "0.3", *arguments]) == 1
    assert message in capsys.readouterr().err
    with pytest.raises(SettingError, match="finite numbers"):
        tool_path.ToolPath(START, np.full(7, np.nan), 1.0, 1.0)


TRAJECTORY = """\
joint_names: [joint1]
points:
- {positions: [0.1], time_from_start: {sec: 1}}
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--joints", "joint1"], "--joints 'joint1'; valid: NAME=VALUE"),
        (["--joints", "joint1=nan"], "--joints joint1=nan; valid: NAME=NUMBER"),
        (
            ["--joints", "joint1=0.1"],
            "--joints needs --duration, in seconds, such as --duration 3",
        ),
        (["--joints", "joint1=0.1", "--duration", "0"], "--duration 0 s; valid: more"),
        (["--joints", "joint1=0.1", "--speed", "1"], "--speed goes with --to"),
        (["--trajectory", "two.yaml"], "two.yaml has 2 trajectories; valid: one"),
        (
            ["--trajectory", "float.yaml"],
            'time_from_start is 2.0; valid: a mapping with sec, nanosec: 2.5 s are {"sec',
        ),
        (["--trajectory", "none.yaml"], "cannot read the trajectory none.yaml"),
        (
            ["--trajectory", "run.npz"],
            "run.npz is a recording, no trajectory; valid: a JointTrajectory as JSON",
        ),
        (["--trajectory", "none.npz"], "cannot read the trajectory none.npz"),
        (
            ["--to", "0", "0", "1", "--duration", "2"],
            "--duration goes with --joints or",
        ),
    ],
)
def test_moves_of_joints_that_mean_nothing_are_refused(
    arguments, message, capsys, tmp_path, monkeypatch
):
    """Also without ROS, before any node is looked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "float.yaml").write_text(TRAJECTORY.replace("{sec: 1}", "2.0"))
    (tmp_path / "run.npz").write_bytes(b"PK\x03\x04\xff")
    (tmp_path / "two.yaml").write_text(f"{TRAJECTORY}---\n{TRAJECTORY}")
    assert cli.main(["move", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_the_trajectory_of_the_page_is_read(tmp_path):
    """The example of docs/control.md."""
    page = (Path(__file__).parents[2] / "docs" / "control.md").read_text("utf-8")
    (content,) = re.findall(r"```json\n(.*?)```", page, re.S)
    (tmp_path / "page.json").write_text(content)
    (message,) = read_trajectories(tmp_path / "page.json")
    assert message_rows(message).times.tolist() == [0.0, 2.5]
