"""A topic that was renamed goes on under its former name, with a warning."""

import warnings

import pytest

pytestmark = pytest.mark.ros
SAYS = "topic 'size' is now 'radius'"


@pytest.fixture
def node(ros, monkeypatch):
    """Return a node whose topic `radius` was called `size`."""
    from ros_nodes.base import parameter_node

    monkeypatch.setitem(parameter_node.FORMER, "radius", "size")
    made = parameter_node.TableNode("renamed", [])
    yield made
    made.destroy_node()


def test_a_message_on_the_former_name_is_received(node, ros, capfd):
    """It is received as on the present one; the log says the present name once."""
    import rclpy
    from std_msgs.msg import Float64

    heard = []
    kept = node.create_subscription(Float64, "radius", heard.append, 1)
    other = rclpy.create_node("sender")
    senders = [other.create_publisher(Float64, name, 1) for name in ("size", "radius")]
    for sender, value in (senders[0], 1.0), (senders[1], 2.0), (senders[0], 3.0):
        while not sender.get_subscription_count():
            rclpy.spin_once(node, timeout_sec=0.1)
        sender.publish(Float64(data=value))
        while not heard or heard[-1].data != value:
            rclpy.spin_once(node, timeout_sec=0.1)
    assert [each.data for each in heard] == [1.0, 2.0, 3.0]
    assert capfd.readouterr().err.count(SAYS) == 1
    node.destroy_subscription(kept)
    assert not any(node.count_subscribers(x) for x in ("size", "radius"))
    other.destroy_node()


def test_a_callback_is_guarded_under_both_names(node):
    """Session.keep contains exceptions of either, and closes both."""
    from std_msgs.msg import Float64

    from ros_nodes.base.session import Session

    session = Session(node)
    session.keep(node.create_subscription(Float64, "radius", lambda _: 1 / 0, 1))
    both = [x for x in node.subscriptions if x.topic_name in ("/radius", "/size")]
    for calls in (2, 2):
        for subscription in both:
            subscription.callback(Float64())
        assert node.callbacks.count == calls == sum(node.callbacks.counts.values())
        session.open = False


def test_a_subscriber_to_the_former_name_receives(node, ros, capfd):
    """It receives what the present name publishes; only it makes the log say so."""
    import rclpy
    from std_msgs.msg import Float64

    sender = node.create_publisher(Float64, "radius", 1)
    sender.publish(Float64(data=0.5))
    assert SAYS not in capfd.readouterr().err
    heard, other = [], rclpy.create_node("listener")
    other.create_subscription(Float64, "size", heard.append, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a node goes on
        while not heard:
            sender.publish(Float64(data=1.0))
            rclpy.spin_once(other, timeout_sec=0.1)
    assert heard[0].data == 1.0
    assert capfd.readouterr().err.count(SAYS) == 1
    node.destroy_publisher(sender)
    assert not any(node.count_publishers(x) for x in ("size", "radius"))
    other.destroy_node()


def test_other_topics_have_one_endpoint(node):
    """Topics without a former name are as rclpy makes them."""
    from std_msgs.msg import Float64

    before = len(list(node.subscriptions)), len(list(node.publishers))
    node.create_subscription(Float64, "speed", print, 1)
    node.create_publisher(Float64, "speed", 1)
    assert len(list(node.subscriptions)) == before[0] + 1
    assert len(list(node.publishers)) == before[1] + 1
