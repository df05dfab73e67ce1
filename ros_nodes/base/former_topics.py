"""Topics under the names that they had in the last minor version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from dyn_core.errors import renamed

FORMER: dict[str, str] = {}  # present name of a topic, as in the code -> former name


class FormerTopics(Node):
    """A node whose renamed topics can also be used by their former names.

    A subscription receives on both names; a publisher publishes on both. The first
    message on a former name, or the first subscriber to it, is answered by a warning in
    the log that says the present name.
    """

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Callable[[Any], None],
        qos_profile: Any,
        **choices: Any,
    ) -> Any:
        """Return a subscription; its callback gets messages of the former name, too.

        Only a topic of FORMER has a former name; any other has one subscription, as of
        rclpy.

        Args:
            topic: Name of the topic as in the code, not yet resolved.
            msg_type, callback, qos_profile, choices: As those of rclpy.
        """
        create = super().create_subscription
        made = create(msg_type, topic, callback, qos_profile, **choices)
        if topic in FORMER:
            warn = self._warning(topic)

            def received(message: Any) -> None:
                warn()
                callback(message)

            choices.pop("qos_overriding_options", None)  # parameters have present names
            quality = made.qos_profile
            other = create(msg_type, FORMER[topic], received, quality, **choices)
            self._others[made] = other, super().destroy_subscription
        return made

    def create_publisher(
        self, msg_type: Any, topic: str, qos_profile: Any, **choices: Any
    ) -> Any:
        """Return a publisher; its `publish` also publishes under the former name.

        Only a topic of FORMER has a former name; any other gets the publisher of rclpy.

        Args:
            topic: Name of the topic as in the code, not yet resolved.
            msg_type, qos_profile, choices: As those of rclpy.
        """
        create = super().create_publisher
        made: Any = create(msg_type, topic, qos_profile, **choices)
        if topic in FORMER:
            warn = self._warning(topic)
            choices.pop("qos_overriding_options", None)
            other = create(msg_type, FORMER[topic], made.qos_profile, **choices)
            publish = made.publish

            def publish_both(message: Any) -> None:
                publish(message)
                other.publish(message)
                if other.get_subscription_count():
                    warn()

            made.publish = publish_both
            self._others[made] = other, super().destroy_publisher
        return made

    @property
    def _others(self) -> dict[Any, tuple[Any, Callable[[Any], bool]]]:
        """Endpoint and destructor of the former name, by the endpoint of the present.

        A property, because rclpy creates endpoints in its own constructor.
        """
        others: dict[Any, Any] = self.__dict__.setdefault("_of_former_names", {})
        return others

    def destroy_subscription(self, subscription: Any) -> bool:
        """Destroy a subscription and, if there is one, that of its former name.

        Args:
            subscription: A subscription of this node.

        Returns:
            Whether it was destroyed; False: it is no subscription of this node.
        """
        self._destroy_other(subscription)
        return bool(super().destroy_subscription(subscription))

    def destroy_publisher(self, publisher: Any) -> bool:
        """Destroy a publisher and, if there is one, that of its former name.

        Args:
            publisher: A publisher of this node.

        Returns:
            Whether it was destroyed; False: it is no publisher of this node.
        """
        self._destroy_other(publisher)
        return bool(super().destroy_publisher(publisher))

    def _destroy_other(self, endpoint: Any) -> None:
        """Destroy the endpoint of the former name, if there is one."""
        if endpoint in self._others:
            other, destroy = self._others.pop(endpoint)
            destroy(other)

    def _warning(self, topic: str) -> Callable[[], None]:
        """Return a function whose first call warns in the log; later calls do nothing.

        The warning says that a topic has another name now. topic: The present name, a
        key of FORMER.
        """
        said: list[str] = []

        def warn() -> None:
            if not said:
                said.append(renamed("topic", FORMER[topic], topic))
                self.get_logger().warning(said[0])

        return warn
