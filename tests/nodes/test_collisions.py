"""Collisions in the node: thresholds as parameters, the stop, and ~/external_torque."""

import time

import numpy as np
import pytest

pytestmark = pytest.mark.ros
PATIENCE = 20.0
Q = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]


@pytest.fixture
def make(ros):
    """Return a function that makes a controller with parameters."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    made = []

    def node(**values):
        settings = {"robot_description_file": "arm7", "autostart": False, **values}
        settings["engine"] = "graph"
        overrides = [
            Parameter(k.replace("__", "."), value=v) for k, v in settings.items()
        ]
        made.append(ComputedTorqueNode(parameter_overrides=overrides))
        made[-1].trigger_configure()
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


def _feed(node, q, done):
    """Feed states at rest until something is so."""
    from sensor_msgs.msg import JointState

    names = list(node.controller.model.joint_names)
    message = JointState(name=names, position=q, velocity=[0.0] * 7)
    deadline = time.monotonic() + PATIENCE
    while not done():
        node._on_state(message)
        assert time.monotonic() < deadline


def test_a_threshold_watches_its_joint(make, monkeypatch):
    """A robot that does not yield to its effort is pushed: stop, reason and estimate."""
    node = make(
        collision__thresholds__joint2=5.0,
        collision__gain=200.0,
        on_collision="ramp",
        good_samples=1,
        state_timeout=5.0,
        velocity_mismatch=[1e4],  # it jumps here
    )
    assert node.failure is None or not node.failure
    node.trigger_activate()
    settings = node.controller.detector.settings
    assert (settings.thresholds, settings.gain) == ({"joint2": 5.0}, 200.0)
    sent = []
    monkeypatch.setattr(node.motion_topics.externals, "publish", sent.append)
    begin = time.monotonic()
    _feed(node, Q, lambda: time.monotonic() - begin > 0.05)
    assert node.controller.stopped is None
    moved = list(Q)
    moved[1] -= 0.1
    _feed(node, moved, lambda: node.controller.stopped is not None)
    stop = node.controller.stopped
    assert (stop.cause, stop.kind) == ("collision", "ramp")
    assert "joint 'joint2'" in stop.reason
    assert stop.reason in node.status()[1]
    node.motion_topics.publish()
    (message,) = sent
    assert list(message.name) == list(node.controller.model.joint_names)
    np.testing.assert_array_equal(message.effort, node.controller.detector.effort)
    assert abs(message.effort[1]) >= 5.0
    assert not message.position


def test_the_estimate_is_on_its_topic(make, until):
    """Over DDS: a robot that does not yield to its effort is pushed by as much."""
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    settings = {"collision__thresholds__joint2": 1e4, "velocity_mismatch": [1e4]}
    node, probe, heard = make(**settings), Node("probe"), []
    node.trigger_activate()
    names = list(node.controller.model.joint_names)
    state = JointState(name=names, position=Q, velocity=[0.0] * 7)
    try:
        topic = "computed_torque/external_torque"
        probe.create_subscription(JointState, topic, heard.append, 10)
        speak = probe.create_publisher(JointState, "joint_states", 1)
        probe.create_timer(0.004, lambda: speak.publish(state))
        until(lambda: heard and node.controller.good > 5, probe, node,
              expected="an estimate")  # fmt: skip
        assert list(heard[0].name) == names
        assert len(heard[0].effort) == 7
        state.position[1] -= 0.1
        until(lambda: heard[-1].effort[1] < -5.0, probe, node, expected="a push",
              detail=lambda: f"{heard[-1].effort} {node.status()}")  # fmt: skip
        assert node.controller.stopped is None
        assert heard[-1].header.stamp.sec > 0
        assert not heard[-1].position
    finally:
        probe.destroy_node()


def test_nothing_is_watched_without_a_threshold(make):
    """There is no estimate and no topic; a threshold of no joint is refused."""
    node = make()
    assert node.controller.detector is None
    topics = [name for name, _ in node.get_topic_names_and_types()]
    assert not any("external_torque" in name for name in topics)
    node = make(collision__thresholds__elbow=5.0)
    assert node.controller is None or node.model is None
    assert "collision.thresholds.elbow" in node.failure
