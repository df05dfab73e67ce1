"""Sends a trajectory of 100 000 points, from a process of its own.

    python -m ros_nodes.tools.long_trajectory JOINT=POSITION ...

All points are at one place; for `dyn check-node`.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Sequence

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ros_nodes.tools.live import connect

TOPIC = "computed_torque/joint_trajectory"
POINTS = 100_000
STEP = 10**6  # between two points [ns]
PATIENCE = 10.0  # for the controller [s]


def main(arguments: Sequence[str]) -> int:
    """Send the trajectory; return 0 once the controller has it."""
    os.nice(19)  # what is tested is the controller, not a machine that is busy
    places = dict(pair.split("=") for pair in arguments)
    still = array("d", map(float, places.values()))
    message = JointTrajectory(joint_names=list(places))
    for k in range(1, POINTS + 1):
        seconds, rest = divmod(k * STEP, 10**9)
        point = JointTrajectoryPoint(positions=still)
        point.time_from_start = Duration(sec=seconds, nanosec=rest)
        message.points.append(point)
    with connect(PATIENCE) as live:
        sender = live.node.create_publisher(JointTrajectory, TOPIC, 1)
        if not live.until(lambda: sender.get_subscription_count() > 0, PATIENCE):
            return 1
        sender.publish(message)
        live.until(lambda: False, 1.0)  # what is in flight would be lost
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
