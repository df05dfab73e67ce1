"""Topics whose quality of service the parameters qos_overrides.* change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from dyn_core.errors import ModelError, SettingError, one_line
from dyn_core.validation import Kind, Name, Whole
from ros_nodes.parameters import QOS

# A queue without an end would answer old states, or apply old efforts, one by one.
POLICIES: dict[str, Kind] = {
    "history": Name(("keep_last",)),
    "depth": Whole(1, 1000),
    "reliability": Name(("reliable", "best_effort")),
}


def publisher(node: Any, kind: Any, topic: str, qos: QoSProfile | int) -> Any:
    """Return a publisher, kept for clean-up, with the quality that parameters give.

    Raises:
        SettingError: A parameter of its quality is not valid.
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
    """Return a subscription, kept for clean-up, with the quality that parameters give.

    Raises:
        SettingError: A parameter of its quality is not valid.
    """
    settings = _settings(node, topic, "subscription", qos)
    listen = node.create_subscription
    return node.keep(listen(kind, topic, take, **settings, **choices))


def _settings(
    node: Any, topic: str, entity: str, qos: QoSProfile | int
) -> dict[str, Any]:
    """Return the arguments of rclpy for a topic; check the parameters that it reads."""
    head = f"{QOS}{node.resolve_topic_name(topic)}.{entity}."
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


def warn_of_idle(node: Any) -> None:
    """Warn of overrides of a configured node that change no topic of it."""
    idle = [name for name in node._undeclared() if name.startswith(QOS)]
    if not idle:
        return
    ends = "{" + ",".join(POLICIES) + "}"
    heads = {name.rpartition(".")[0] for name in node._parameters if QOS in name}
    valid = ", ".join(f"{head}.{ends}" for head in sorted(heads)) or "none"
    node.get_logger().warning(
        one_line(f"without effect here: {', '.join(idle)}; valid: {valid}")
    )
