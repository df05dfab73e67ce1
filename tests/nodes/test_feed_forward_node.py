"""The node that fills in efforts, driven directly, without communication."""

from types import SimpleNamespace

import numpy as np
import pytest

from dyn_core.control.feed_forward import FeedForward

pytestmark = pytest.mark.ros


def test_trajectories_go_on_with_efforts(ros, shipped):
    """Or are refused; as the same in Python has them."""
    from rclpy.parameter import Parameter
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from ros_nodes.feed_forward_node import FeedForwardNode

    arm = shipped["two_link"]
    settings = {"robot_description_file": "two_link", "engine": "graph"}
    settings |= {"point_period": 0.25}
    node = FeedForwardNode(
        parameter_overrides=[Parameter(k, value=v) for k, v in settings.items()]
    )
    try:
        assert node.trigger_configure() is not None and node.model.nv == 2
        names = list(arm.joint_names)[::-1]
        message = JointTrajectory(joint_names=names)
        for t, q in ((0, [0.2, 0.1]), (1, [-0.2, 0.5])):
            point = JointTrajectoryPoint(positions=q, velocities=[0.0, 0.0])
            point.time_from_start.sec = t
            message.points.append(point)
        sent = []
        node._on_trajectory(message)
        assert node.counters["trajectory refused"] == 1
        node.trigger_activate()
        node.output = SimpleNamespace(publish=sent.append)
        node._on_trajectory(message)
        (out,) = sent
        assert list(out.joint_names) == names
        assert len(out.points) == 5
        feed = FeedForward(arm, engine="graph")
        rows = [[0.2, 0.1], [-0.2, 0.5]], np.zeros((2, 2))
        expected = feed.trajectory(names, [0.0, 1.0], *rows, period=0.25)
        for k, point in enumerate(out.points):
            assert np.abs(np.array(point.effort) - expected.effort[k]).max() < 1e-12
            assert list(point.positions) == expected.q[k].tolist()
            assert point.time_from_start.nanosec == 250_000_000 * (k % 4)
        level, message, values = node.status()
        assert (message, values["trajectories"]) == ("filling in efforts", 1)
        node._on_trajectory(JointTrajectory(joint_names=["wrist"]))
        assert node.counters["trajectory refused"] == 2
    finally:
        node.destroy_node()
