"""`dyn view --live`: a robot in a browser as its joint states come in."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dyn_core.signals import ENDING, noted_signals
from dyn_core.view.browser.viewer import RATE, Viewer
from dyn_core.view.command import announce, robot_scene
from ros_nodes.live_view.view_follower import JointFollower
from ros_nodes.tools.live import connect

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
CHOSEN = (RANGE, "ROS_LOCALHOST_ONLY", "FASTRTPS_DEFAULT_PROFILES_FILE")


def run(arguments: argparse.Namespace) -> int:
    """Show a robot in a browser as its joint states come, until SIGINT or SIGTERM.

    Args:
        arguments: Parsed arguments of `dyn view`.

    Returns:
        Exit status: 0; 1 if no message with a joint of the robot came.

    Raises:
        DynError: The robot cannot be read, ROS 2 does not start, viser is missing, or
            the port or host is in use or not valid.
    """
    keep_to_this_machine(arguments.network)
    topic = arguments.joint_states or "joint_states"
    scene = robot_scene(arguments, sketched=True)
    follower = JointFollower(scene.model, scene.start())
    quality = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    with (
        noted_signals(*ENDING) as stop,
        Viewer(scene, None, arguments.host, arguments.port, sliders=False) as viewer,
        connect(5.0) as live,
    ):
        live.node.create_subscription(JointState, topic, follower.take, quality)
        announce(viewer, scene)
        print(f"following {topic}", flush=True)
        live.until(
            lambda: stop or follower.count or follower.note,
            math.inf,
            lambda: f"joint states on {topic}; {_senders(live.node)}",
        )
        shown = 0.0
        while not stop:
            live.spin(0.02)
            now = time.monotonic()
            if follower.changed and now - shown > 1.0 / RATE:
                follower.changed, shown = False, now
                shares = follower.shares if viewer.torque_colors else None
                viewer.show_state(follower.q, shares)
            if follower.note:
                print(f"dyn view: warning: {follower.note}", file=sys.stderr)
                follower.note = ""
    print(f"{follower.count} messages of {topic}")
    return 0 if follower.count else 1


def _senders(node: Any) -> str:
    """Return the topics on which nodes send joint states now, or that none do."""
    kind, pairs = "sensor_msgs/msg/JointState", node.get_topic_names_and_types()
    topics = [x for x, kinds in pairs if kind in kinds and node.count_publishers(x)]
    none = "no node that sends some is seen yet, which can take some seconds"
    return f"there are: {', '.join(topics)}" if topics else none


def keep_to_this_machine(network: bool) -> None:
    """Restrict discovery to this machine, unless `network` is true.

    ROS_AUTOMATIC_DISCOVERY_RANGE becomes LOCALHOST in os.environ, unless it,
    ROS_LOCALHOST_ONLY or FASTRTPS_DEFAULT_PROFILES_FILE is already set and not empty.
    Must be called before rclpy is initialized.
    """
    if not network and not any(os.environ.get(name) for name in CHOSEN):
        os.environ[RANGE] = "LOCALHOST"
