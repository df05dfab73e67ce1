"""A process that loads a processor or sends large messages, for `dyn check-node`.

python -m ros_nodes.tools.neighbours KIND [JOINT=POSITION ...]
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ros_nodes.base.node import LATCHED
from ros_nodes.tools.live import connect

TRAJECTORIES = "computed_torque/joint_trajectory"
POINTS = 100_000
STEP = 10**6  # time between two points [ns]
PATIENCE = 10.0  # longest wait for the controller [s]
LASTING = 2.0  # duration of a flood, and of a load [s]
GARBAGE = "<robot name='x'>" + "\U0001f9e8<" * 6_000_000  # 30 MB


def trajectory(places: dict[str, str]) -> JointTrajectory:
    """Return a trajectory of POINTS points at one position, at STEP, 2 STEP, ... [ns].

    These are 100 000 points, a millisecond apart; they have positions alone.

    Args:
        places: Position as a string, by joint name [rad | m].

    Raises:
        ValueError: A position is not a number.
    """
    still = array("d", map(float, places.values()))
    message = JointTrajectory(joint_names=list(places))
    for k in range(1, POINTS + 1):
        seconds, rest = divmod(k * STEP, 10**9)
        point = JointTrajectoryPoint(positions=still)
        point.time_from_start = Duration(sec=seconds, nanosec=rest)
        message.points.append(point)
    return message


def _send(topic: str, message: Any, qos: Any, seconds: float = 0.0) -> None:
    """Send a message once a subscriber exists, then each millisecond for `seconds`.

    Without a subscriber it is sent after PATIENCE (10 s).
    """
    with connect(PATIENCE) as live:
        sender = live.node.create_publisher(type(message), topic, qos)
        live.until(lambda: sender.get_subscription_count() > 0, PATIENCE)
        sender.publish(message)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sender.publish(message)
            live.spin(1e-3)
        live.until(lambda: False, 1.0)  # else messages in flight would be lost


def _load(_: Any) -> None:
    """Load a processor for LASTING seconds (2 s); the argument is ignored."""
    end = time.monotonic() + LASTING
    while time.monotonic() < end:
        pass


def _noise() -> DiagnosticArray:
    """Return a diagnostics message with 20 statuses."""
    status = [DiagnosticStatus(name=f"other: {k}", message="ok") for k in range(20)]
    return DiagnosticArray(status=status)


KINDS: dict[str, Callable[[dict[str, str]], object]] = {
    "trajectory": lambda places: _send(TRAJECTORIES, trajectory(places), 1),
    "description": lambda _: _send("robot_description", String(data=GARBAGE), LATCHED),
    "diagnostics": lambda _: _send("/diagnostics", _noise(), 10, LASTING),
    "load": _load,
}


def main(arguments: Sequence[str]) -> int:
    """Run one of KINDS to its end, some seconds; return 0.

    All but "load" run at the lowest priority.

    Args:
        arguments: Key of KINDS; for "trajectory" then JOINT=POSITION for each joint
            [rad | m].

    Raises:
        KeyError: There is no such kind.
        ValueError: There is no argument, a word is not JOINT=POSITION, or a position is
            not a number.
        DynError: ROS 2 does not start.
    """
    kind, *places = arguments
    if kind != "load":
        os.nice(19)  # the test is of the controller, not of a busy machine
    KINDS[kind](dict(pair.split("=") for pair in places))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
