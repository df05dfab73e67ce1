"""Mode cartesian in the node: targets of the tool, driven directly and over DDS."""

import time

import numpy as np
import pytest

from dyn_core.spatial.conventions.common import quaternion

pytestmark = pytest.mark.ros
Q = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]


@pytest.fixture
def make(controller_node):
    """Return a function that makes a node in mode cartesian, and keeps what it says."""

    def keep(node):
        node.said, before = [], node.refuse
        node.refuse = lambda kind, why: (
            node.said.append((kind, why)),
            before(kind, why),
        )

    def node(active=True, **values):
        tool = {"mode": "cartesian", "cartesian__frame": "tool", **values}
        one = controller_node(active, keep, **tool)
        assert one.failure is None
        return one

    return node


def _state(clock=None):
    from sensor_msgs.msg import JointState

    message = JointState(name=NAMES, position=Q, velocity=[0.0] * 7)
    if clock is not None:
        message.header.stamp = clock.now().to_msg()
    return message


def _pose(xyz, w=1.0, frame="tool"):
    from geometry_msgs.msg import PoseStamped

    message = PoseStamped()
    message.header.frame_id = frame
    place = message.pose.position
    place.x, place.y, place.z = (float(x) for x in xyz)
    message.pose.orientation.w = w
    return message


def _topic(node, name):
    topics = node.controller.control_mode.topics
    return next(topic for topic in topics if topic.name == name)


def _give(node, name, message):
    from ros_nodes.controller.mode_topics import ModeTopics

    parts = [x.__self__ for x in node.conditions if hasattr(x, "__self__")]
    topics = next(part for part in parts if isinstance(part, ModeTopics))
    topics.receive(_topic(node, name), message)
    return topics


def test_the_topics_are_those_of_the_mode(make):
    """Four under the node's name; a mode without topics has none."""
    node = make()
    here = {name for name, _ in node.get_topic_names_and_types()}
    assert {f"/computed_torque/{x}" for x in (
        "target_pose", "target_twist", "target_wrench", "target_stiffness")} <= here  # fmt: skip
    other = make(mode="impedance")
    assert not other.controller.control_mode.topics


def test_targets_reach_the_law_and_bad_ones_are_refused_in_words(make):
    """A pose, then a wrong quaternion, frame and jump: a count and a WARN each."""
    from geometry_msgs.msg import WrenchStamped

    node = make()
    node._on_state(_state())
    _give(node, "target_pose", _pose([0, 0, 0.02]))
    law = node.controller.control_law
    before = law.targets.p.copy()
    wrench = WrenchStamped()
    wrench.wrench.force.z, wrench.wrench.torque.x = -3.0, 0.5
    _give(node, "target_wrench", wrench)
    node._on_state(_state())
    np.testing.assert_allclose(law.targets.f, [0.5, 0, 0, 0, 0, -3.0])
    for message, why in (
        (_pose([0, 0, 0], w=1.1), "length 1.1; valid: 1"),
        (_pose([0, 0, 0], frame="camera"), "frame_id: no link is called 'camera'"),
        (_pose([0, 0, 0.5]), "from the reference; valid: at most 0.1"),
        (_pose([float("nan"), 0, 0]), "valid: finite numbers"),
    ):
        topics = _give(node, "target_pose", message)
        assert node.said[-1][0] == "target_pose refused"
        assert why in node.said[-1][1]
        (condition,) = topics.conditions(time.monotonic())
        assert why in condition.message
    assert node.counters["target_pose refused"] == 4
    assert (law.targets.p == before).all()
    assert topics.conditions(time.monotonic() + 2.0) == []


def test_targets_of_an_inactive_node_are_refused(make):
    """Before the activation, and after the deactivation."""
    node = make(active=False)
    node.trigger_configure()
    _give(node, "target_pose", _pose([0, 0, 0]))
    assert node.said[-1] == ("target_pose refused", "the controller is not active")


def test_live_parameters_and_the_swap_of_the_law(make):
    """Stiffness changes at its rate; the solver is swapped in `unconfigured` alone."""
    from rclpy.parameter import Parameter

    def put(name, value):
        (result,) = node.set_parameters([Parameter(name, value=value)])
        return result

    node = make()
    node._on_state(_state())
    assert put("cartesian.stiffness", [5.0] * 3 + [300.0] * 3).successful
    assert node.controller.control_law._goal[5, 5] == 300.0
    assert "6 or 36" in put("cartesian.stiffness", [1.0] * 5).reason
    assert "structure" in put("cartesian.frame", "flange").reason
    refused = put("cartesian_control.plugin_name", "operational_space")
    assert "structure" in refused.reason
    node.trigger_deactivate()
    node.trigger_cleanup()
    assert put("cartesian_control.plugin_name", "operational_space").successful
    node.trigger_configure()
    assert node.failure is None
    assert node.controller.solver_used == "operational_space"
    node.trigger_cleanup()
    assert put("mode", "gravity").successful
    node.trigger_configure()
    assert node.controller.solver_used == "rnea"


def test_what_cannot_be_configured_is_said(make):
    """No frame, and an unknown solver."""
    for values, why in (
        ({"cartesian__frame": ""}, "cartesian.frame is ''; valid: link1"),
        ({"cartesian_control__plugin_name": "cartesian"}, "no solver is called"),
        ({"mode": "cartesian", "on_estop": "hold"}, None),
    ):
        node = make(active=False, **values)
        node.trigger_configure()
        assert (node.failure is None) == (why is None)
        assert why is None or why in node.failure


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_targets_over_dds(make, until, loss):
    """100 Hz of poses and twists, silence, a jump, a wrong frame, a bad quaternion.

    Some messages are lost, and others come up to three periods late, by seed: the
    reference stays within 10 mm of the line on which it is led at 50 mm/s.
    """
    import rclpy
    from geometry_msgs.msg import PoseStamped, TwistStamped
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    node, other = make(), rclpy.create_node("source")
    sent = []
    try:
        states = other.create_publisher(JointState, "joint_states", 10)
        poses = other.create_publisher(PoseStamped, "computed_torque/target_pose", 10)
        twists = other.create_publisher(
            TwistStamped, "computed_torque/target_twist", 10
        )
        keep = lambda message: sent.append(list(message.data))  # noqa: E731
        other.create_subscription(
            Float64MultiArray, "computed_torque/commands", keep, 10
        )
        feed = other.create_timer(
            0.005, lambda: states.publish(_state(other.get_clock()))
        )
        law = node.controller.control_law
        until(lambda: len(sent) > 5 and law.targets.R is not None, node, other)
        until(
            lambda: poses.get_subscription_count() and twists.get_subscription_count()
        )
        start, count = law.targets.p.copy(), 0
        rng, late, off = np.random.default_rng(5), [], []

        def send(*messages):
            late.append(messages)
            if loss and rng.random() < 0.4 and len(late) < 3:
                return
            for pose, twist in late:
                if rng.random() >= loss:
                    poses.publish(pose)
                    twists.publish(twist)
            late.clear()

        def lead():
            nonlocal count
            if count > 10:
                off.append(law.targets.p[1] - start[1] - 0.0005 * count)
            count += 1
            message = _pose(start + [0, 0.0005 * count, 0], frame="")
            x, y, z, w = quaternion(law.targets.R)
            way = message.pose.orientation
            way.x, way.y, way.z, way.w = x, y, z, w
            message.header.stamp = other.get_clock().now().to_msg()
            twist = TwistStamped()
            twist.twist.linear.y = 0.05
            send(message, twist)

        timer = other.create_timer(0.01, lead)
        until(lambda: law.targets.p[1] - start[1] > 0.02, node, other)
        assert law.status == "following targets of the tool"
        assert np.abs(off).max() < 0.01
        other.destroy_timer(timer)
        until(lambda: not law.targets.v.any(), node, other)  # silence
        until(lambda: law.status == "holding the tool", node, other)
        before = law.targets.p.copy()
        for message, why in (
            (_pose([0, 0, 3.0]), "from the reference"),
            (_pose([0, 0, 0], frame="nowhere"), "frame_id"),
            (_pose([0, 0, 0], w=0.5), "quaternion"),
        ):
            poses.publish(message)
            until(lambda why=why: any(why in x[1] for x in node.said), node, other)
        assert (law.targets.p == before).all()
        count = len(sent)
        until(lambda: len(sent) > count + 10, node, other)
        assert np.isfinite(sent).all()
        assert node.controller.stopped is None
        other.destroy_timer(feed)
    finally:
        other.destroy_node()


def test_a_force_torque_sensor_over_dds(make, until):
    """Best effort, tared; NaN refused and told; pressing is corrected; silence told."""
    import rclpy
    from geometry_msgs.msg import WrenchStamped
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState

    node = make(
        cartesian__wrench_topic="/wrist/wrench",
        cartesian__wrench_gain=[0.0] * 5 + [0.5],
        cartesian__target_timeout=1.0,
    )
    other = rclpy.create_node("sensor")
    try:
        states = other.create_publisher(JointState, "joint_states", 10)
        readings = other.create_publisher(
            WrenchStamped, "/wrist/wrench", qos_profile_sensor_data
        )
        targets = other.create_publisher(
            WrenchStamped, "computed_torque/target_wrench", 10
        )
        up, bad = 0.0, False

        def feed():
            states.publish(_state(other.get_clock()))
            message = WrenchStamped()
            message.header.frame_id = "flange"
            message.header.stamp = other.get_clock().now().to_msg()
            # The tool points down, so that z of the flange is about -z of the root.
            message.wrench.force.z = float("nan") if bad else 5.0 - up
            readings.publish(message)
            if up:
                target = WrenchStamped()
                target.wrench.force.z = -10.0
                targets.publish(target)

        def says(key, part):
            seen = node.report.conditions(time.monotonic())
            return any(c.key == key and part in c.message for c in seen)

        timer = other.create_timer(0.005, feed)
        law = node.controller.control_law
        until(lambda: law.wrench.sensor.offset is not None, node, other)
        assert law.wrench.sensor.link == "flange"
        up = 6.0
        until(lambda: law.wrench.integral[5] < -0.5, node, other)
        assert law._force[5] < -10.5
        bad = True
        until(lambda: says("targets", "sensor_wrench is"), node, other)
        assert node.counters["sensor_wrench refused"] > 0
        until(lambda: says("sensor", "silent for"), node, other)
        assert node.controller.stopped is None
        bad = False
        until(lambda: not says("sensor", ""), node, other)
        other.destroy_timer(timer)
    finally:
        other.destroy_node()


def test_a_node_without_wrench_topic_has_no_sensor(make):
    """No subscription; a name that ROS does not allow is refused in configure."""
    node = make()
    here = {name for name, _ in node.get_topic_names_and_types()}
    assert not [name for name in here if "sensor" in name]
    bad = make(active=False, cartesian__wrench_topic="/a b")
    bad.trigger_configure()
    assert "'/a b' is no name of a topic; valid: letters, digits" in bad.failure
