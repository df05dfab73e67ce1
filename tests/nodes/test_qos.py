"""Quality of service by parameters: what is given acts, or is said to have no effect."""

import pytest

pytestmark = pytest.mark.ros


@pytest.fixture
def make(ros):
    """Return a function that configures a node of a class with parameters."""
    from rclpy.parameter import Parameter

    made = []

    def node(kind, **values):
        settings = {"robot_description_file": "two_link", "engine": "graph", **values}
        if kind.__name__ != "GuardNode":
            settings["autostart"] = False
        overrides = [Parameter(k, value=v) for k, v in settings.items()]
        made.append(kind(parameter_overrides=overrides))
        if hasattr(made[-1], "trigger_configure"):
            made[-1].trigger_configure()
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


def _classes():
    from ros_nodes.computed_torque_node import ComputedTorqueNode
    from ros_nodes.simulator_node import SimulatorNode

    return {"controller": ComputedTorqueNode, "simulator": SimulatorNode}


TOPICS = [  # node, topic, kind, what it is without parameters: depth, reliability
    ("controller", "/joint_states", "subscription", (1, "best_effort")),
    ("controller", "/computed_torque/joint_trajectory", "subscription", (10, "reliable")),
    ("controller", "/computed_torque/commands", "publisher", (1, "reliable")),
    ("controller", "/computed_torque/reference", "publisher", (1, "reliable")),
    ("controller", "/computed_torque/error", "publisher", (1, "reliable")),
    ("simulator", "/joint_states", "publisher", (10, "reliable")),
    ("simulator", "/effort_controller/commands", "subscription", (1, "best_effort")),
    ("simulator", "/joint_commands", "subscription", (1, "best_effort")),
]  # fmt: skip


def _quality(node, topic, kind):
    """Return depth and reliability, as the topic's endpoint and the graph have them."""
    ask = f"get_{kind}s_info_by_topic"
    name = node.get_name()
    (info,) = (x for x in getattr(node, ask)(topic) if x.node_name == name)
    (entity,) = (x for x in getattr(node, f"{kind}s") if x.topic_name == topic)
    return entity.qos_profile.depth, info.qos_profile.reliability.name.lower()


@pytest.mark.parametrize(("which", "topic", "kind", "before"), TOPICS)
def test_overrides_act(make, capfd, which, topic, kind, before):
    """Depth and reliability of each data topic, of that one node alone."""
    head = f"qos_overrides.{topic}.{kind}"
    other = "best_effort" if before[1] == "reliable" else "reliable"
    wish = {f"{head}.depth": 50, f"{head}.reliability": other}
    node = make(_classes()[which], **wish)
    assert node.failure is None
    assert _quality(node, topic, kind) == (50, other)
    assert "without effect" not in capfd.readouterr().err
    for name, value in wish.items():
        assert node.get_parameter(name).value == value
    node.trigger_cleanup()
    node.trigger_configure()
    assert _quality(node, topic, kind) == (50, other)
    node.destroy_node()
    assert _quality(make(_classes()[which]), topic, kind) == before


@pytest.mark.parametrize(
    ("policy", "value", "message"),
    [
        ("reliability", "sure", "is 'sure'; valid: reliable, best_effort"),
        ("depth", 0, "is 0; valid: a whole number, 1 to 1000"),
        ("depth", "x", "is 'x'; valid: a whole number"),
        ("history", "keep_all", "is 'keep_all'; valid: keep_last"),
    ],
)
def test_overrides_that_are_none_are_refused(make, policy, value, message):
    """In a sentence, when the node is configured."""
    name = f"qos_overrides./joint_states.subscription.{policy}"
    node = make(_classes()["controller"], **{name: value})
    assert f"{name} {message}" in node.failure


@pytest.mark.parametrize(
    "name",
    [
        "qos_overrides./joint_states.subscription.durability",
        "qos_overrides./joint_states.publisher.depth",
        "qos_overrides.joint_states.subscription.depth",
        "qos_overrides./joint_state.subscription.reliabilty",
    ],
)
def test_overrides_without_effect_are_named(make, capfd, name):
    """With those that have one; a file of several nodes may hold them."""
    node = make(_classes()["controller"], **{name: 5})
    assert node.failure is None
    said = capfd.readouterr().err
    valid = "/joint_states.subscription.{history,depth,reliability}"
    assert f"without effect here: {name}; valid: qos_overrides." in said
    assert f"qos_overrides.{valid}" in said


def test_a_guard_names_overrides_without_effect(make, capfd):
    """Its topics are not to be changed."""
    from rclpy.parameter import Parameter

    from ros_nodes.guard_node import GuardNode

    name = "qos_overrides./effort_controller/commands.subscription.depth"
    node = GuardNode(parameter_overrides=[Parameter(name, value=1)])
    try:
        assert f"without effect here: {name}; valid: none" in capfd.readouterr().err
    finally:
        node.destroy_node()


def test_a_best_effort_trajectory_is_heard_where_asked(make, until):
    """And then no warning says that it is not."""
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from trajectory_msgs.msg import JointTrajectory

    topic = "/computed_torque/joint_trajectory"
    name = f"qos_overrides.{topic}.subscription.reliability"
    node = make(_classes()["controller"], **{name: "best_effort"})
    node.trigger_activate()
    unsure = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    sender = node.create_publisher(JointTrajectory, topic, unsure)
    until(lambda: node.get_publishers_info_by_topic(topic), node)
    keys = [condition.key for condition in node.report.conditions(1e9)]
    assert not [key for key in keys if "unheard" in key]

    def heard():
        sender.publish(JointTrajectory())
        return node.counters["trajectory refused"]

    until(heard, node)
