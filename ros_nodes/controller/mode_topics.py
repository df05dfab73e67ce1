"""Topics of the mode of the controller, such as the targets of a tool."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy

from dyn_core.control.safety.health import WARN, WINDOW, Condition
from dyn_core.errors import DynError
from dyn_core.solving.control_mode import ModeTopic
from ros_nodes.base.qos import subscription
from ros_nodes.messages.target_messages import message_type, read_target

QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class ModeTopics:
    """Receives the messages of the mode's topics for a ComputedTorqueNode.

    The constructor subscribes to ~/TOPIC for each topic of the mode, or to the topic
    that its parameter names, as best effort: of a stream the newest message counts. A
    message that the law refuses is counted and logged; /diagnostics warns for a second.
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        self._refused: tuple[float, str] | None = None
        self.subscriptions = {}
        for topic in node.controller.control_mode.topics:
            name = f"~/{topic.name}"
            if topic.parameter:
                name = node.controller.parameters[topic.parameter]
            if name:
                kind, take = message_type(topic.type), self._receiver(topic)
                self.subscriptions[topic.name] = subscription(
                    node, kind, name, take, QOS
                )
        node.conditions.append(self.conditions)

    def _receiver(self, topic: ModeTopic) -> Callable[[Any], None]:
        """Return the callback of a topic, which passes its messages to `receive`."""

        def take(message: Any) -> None:
            self.receive(topic, message)

        return take

    def receive(self, topic: ModeTopic, message: Any) -> None:
        """Pass a message to the controller, or refuse it: it is counted and logged.

        While the node is inactive, a message of a topic ~/TOPIC is refused, and one of
        a topic that a parameter names is ignored.
        """
        node, t = self.node, time.monotonic()
        if not node.active:
            if not topic.parameter:  # a sensor sends in any case
                node.refuse(f"{topic.name} refused", "the controller is not active")
            return
        numbers, frame, stamp = read_target(topic.type, message)
        clock = node.get_clock().now().nanoseconds * 1e-9 or None
        now = node.reference_time(t)
        try:
            node.controller.receive(topic.name, now, numbers, frame, stamp, clock)
        except DynError as error:
            self._refused = t, str(error)
            node.refuse(f"{topic.name} refused", str(error))

    def conditions(self, t: float) -> list[Condition]:
        """Return a warning with the controller's last refusal, for 1 s; else []."""
        if self._refused is None or t - self._refused[0] > WINDOW:
            return []
        return [Condition(WARN, "targets", f"messages refused: {self._refused[1]}")]
