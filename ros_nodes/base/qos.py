"""Publishers and subscriptions that obey the QoS parameters qos_overrides.*.

Their names are qos_overrides.TOPIC.ENTITY.POLICY: TOPIC is the resolved name, ENTITY is
publisher or subscription, POLICY is history, depth or reliability.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from dyn_core.errors import ModelError, SettingError, one_line
from dyn_core.validation import Kind, Name, Whole, shown
from ros_nodes.parameters import QOS, likeness

# Longest wait for the arrival of last messages [s]. A busy subscriber may acknowledge
# late; the wait must end before LastResort takes a node for hanging.
DELIVERY = 1.0
# Unbounded queues would answer old states, or apply old efforts, one by one.
POLICIES: dict[str, Kind] = {
    "history": Name(("keep_last",)),
    "depth": Whole(1, 1000),
    "reliability": Name(("reliable", "best_effort")),
}


def publisher(node: Any, kind: Any, topic: str, qos: QoSProfile | int) -> Any:
    """Return a publisher that is destroyed at clean-up.

    Args:
        node: A RobotNode.
        kind: Message type.
        topic: Name of the topic.
        qos: Default quality of service; parameters qos_overrides.TOPIC.publisher.*
            override it.

    Raises:
        SettingError: An override, or the name of the topic, is not valid.
    """
    settings = _settings(node, topic, "publisher", qos)
    return node.keep(node.create_publisher(kind, topic, **settings))


def subscription(
    node: Any,
    kind: Any,
    topic: str,
    take: Callable[[Any], None],
    qos: QoSProfile | int,
    **choices: Any,
) -> Any:
    """Return a subscription that is destroyed at clean-up.

    Args:
        node: A RobotNode.
        kind: Message type.
        topic: Name of the topic.
        take: Callback; called with each message until clean-up. Its exceptions are
            logged and counted.
        qos: Default quality of service; parameters qos_overrides.TOPIC.subscription.*
            override it.
        choices: Further arguments of create_subscription.

    Raises:
        SettingError: An override, or the name of the topic, is not valid.
    """
    settings = _settings(node, topic, "subscription", qos)
    listen = node.create_subscription
    return node.keep(listen(kind, topic, take, **settings, **choices))


def _settings(
    node: Any, topic: str, entity: str, qos: QoSProfile | int
) -> dict[str, Any]:
    """Return the QoS arguments of rclpy for a topic, after a check of its overrides.

    `topic` is not yet resolved; `entity` is "publisher" or "subscription".
    """
    try:
        head = f"{QOS}{node.resolve_topic_name(topic)}.{entity}."
    except RuntimeError as error:  # RCLError, whose module is private
        raise SettingError(
            f"{shown(topic)} is no name of a topic; valid: letters, digits, _ and /,"
            " such as /arm/wrench or ~/wrench",
            topic,
        ) from error
    overrides = node._parameter_overrides
    for policy, valid in POLICIES.items():
        name = head + policy
        if name in overrides:
            try:
                valid.read(name, overrides[name].value)
            except ModelError as error:
                raise SettingError(str(error), name) from error
    if isinstance(qos, QoSProfile):
        qos = copy.copy(qos)  # rclpy writes the overrides into it
    return {
        "qos_profile": qos,
        "qos_overriding_options": QoSOverridingOptions.with_default_policies(),
    }


def wait_until_acknowledged(node: Any, publishers: Sequence[Any]) -> None:
    """Wait until reliable subscribers have the messages of publishers.

    A message in flight when its publisher is destroyed may be lost. The wait takes
    DELIVERY (1 s) at most, for all together; a missing acknowledgement is logged.
    """
    end = time.monotonic() + DELIVERY
    for publisher in publishers:
        rest = max(end - time.monotonic(), 0.0)
        if not publisher.wait_for_all_acked(Duration(seconds=rest)):
            node.get_logger().warning(
                f"no acknowledgement of the last message on {publisher.topic_name}"
                f" within {DELIVERY:g} s: it may be lost"
            )


def warn_of_idle(node: Any) -> None:
    """Log start-up QoS overrides that match no topic; call it once all topics exist."""
    idle = [name for name in node._undeclared() if name.startswith(QOS)]
    if not idle:
        return
    ends = "{" + ",".join(POLICIES) + "}"
    heads = {name.rpartition(".")[0] for name in node._parameters if QOS in name}
    # The nearest first: a long list is cut.
    near = sorted(heads, key=lambda head: (-likeness(idle[0], head), head))
    valid = ", ".join(f"{head}.{ends}" for head in near) or "none"
    node.get_logger().warning(
        one_line(f"without effect here: {', '.join(idle)}; valid: {valid}")
    )
