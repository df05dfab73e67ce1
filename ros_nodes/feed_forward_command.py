"""Command `dyn feed-forward`: efforts for trajectories in files, without ROS."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dyn_core.control.feed_forward import FeedForward
from dyn_core.errors import SettingError
from dyn_core.model.sources.arguments import (
    ROBOT,
    add_search,
    load_robot,
    named_values,
)
from ros_nodes.messages.trajectory_files import (
    filled,
    message_rows,
    read_trajectories,
    written,
)


def add(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `feed-forward` to the parsers."""
    parser = subparsers.add_parser(
        "feed-forward", help="fill in the efforts of a trajectory by inverse dynamics"
    )
    parser.add_argument(
        "trajectory",
        help="a JointTrajectory as `ros2 topic echo` prints it, or .json",
    )
    parser.add_argument("--robot", required=True, help=ROBOT)
    add_search(parser)
    parser.add_argument("--extras", help="sidecar YAML file")
    parser.add_argument("-o", "--output", help="file to write (default: print YAML)")
    parser.add_argument(
        "--hold",
        action="append",
        default=[],
        metavar="JOINT=POSITION",
        help="position of a joint that the trajectory lacks",
    )
    parser.add_argument(
        "--period",
        type=float,
        default=0.0,
        help="add points on the same motion, at most so many seconds apart",
    )
    parser.add_argument(
        "--inverse-dynamics", default="auto", help="solver (default: auto)"
    )
    parser.add_argument(
        "--no-friction", action="store_true", help="leave out friction of joints"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute the efforts of each message in a file; write or print the result.

    Returns:
        Exit status 0.

    Raises:
        SettingError: An option is not valid.
        DynError: The file or the robot cannot be read, or a trajectory is not valid.
        OSError: The output file cannot be written.
    """
    if not 0 <= arguments.period < float("inf"):
        message = f"--period is {arguments.period}; valid: 0 or more seconds"
        raise SettingError(message, "--period")
    messages = read_trajectories(arguments.trajectory)
    model = load_robot(arguments, arguments.robot, root_joint="fixed")
    feed = FeedForward(
        model,
        _positions(arguments.hold),
        arguments.inverse_dynamics,
        joint_friction=not arguments.no_friction,
    )
    made = [_with_effort(feed, x, arguments.period) for x in messages]
    out = arguments.output
    content = written(made, out is not None and out.endswith(".json"))
    if out is not None:
        Path(out).write_text(content, encoding="utf-8")
    else:
        sys.stdout.write(content)
    return 0


def _with_effort(feed: FeedForward, message: Any, period: float) -> dict[str, Any]:
    """Return a message with efforts; print a warning for each exceeded effort limit.

    Args:
        feed: Inverse dynamics of the robot.
        message: JointTrajectory as a mapping.
        period: Largest distance of points [s]; 0: no points are added.
    """
    names, times, *rows, _ = message_rows(message)
    made = feed.trajectory(names, times, *rows, period=period)
    assert made.effort is not None
    for line in feed.excess(made.effort, names):
        print(f"warning: {line}", file=sys.stderr)
    return filled(message, made)


def _positions(pairs: list[str]) -> dict[str, float]:
    """Return the positions given by --hold, by joint name.

    Args:
        pairs: Texts JOINT=POSITION.

    Raises:
        SettingError: A text has another form, or its position is no number.
    """
    values = {}
    for name, value in named_values(pairs, "--hold").items():
        try:
            values[name] = float(value)
        except ValueError as error:
            valid = "JOINT=POSITION with a number"
            message = f"--hold {name}={value}; valid: {valid}"
            raise SettingError(message, "--hold") from error
    return values
