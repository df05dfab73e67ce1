"""Topics on the motion of the controller: reference, error and external efforts."""

from __future__ import annotations

from typing import Any

from sensor_msgs.msg import JointState

from ros_nodes.base.qos import publisher


class MotionTopics:
    """Publishes ~/reference, ~/error and, with a collision detector, ~/external_torque.

    Each is a JointState of all controlled joints: position and velocity of the
    reference; as position, the error reference - position [rad | m], as in the feedback
    of goals; as effort, the estimated external efforts [N·m | N].
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        self.references = self._publisher("~/reference")
        self.errors = self._publisher("~/error")
        self.messages = self._message(), self._message(), self._message()
        self.externals = None
        if node.controller.detector is not None:
            self.externals = self._publisher("~/external_torque")
        node.every_idle(1.0 / node.value("publish_rate"), self.publish)

    def _publisher(self, topic: str) -> Any:
        return publisher(self.node, JointState, topic, 1)

    def _message(self) -> JointState:
        """Return a JointState with the names of the controlled joints."""
        return JointState(name=list(self.node.controller.model.joint_names))

    def publish(self) -> None:
        """Publish all topics; does nothing while inactive or before the first state."""
        node, controller = self.node, self.node.controller
        if not node.active or controller.reference is None:
            return
        reference, error, external = self.messages
        stamp = node.get_clock().now().to_msg()
        for message in self.messages:
            message.header.stamp = stamp
        reference.position = controller.reference.q.tolist()
        reference.velocity = controller.reference.qd.tolist()
        self.references.publish(reference)
        error.position = controller.error.tolist()
        self.errors.publish(error)
        if self.externals is not None:
            external.effort = controller.detector.effort.tolist()
            self.externals.publish(external)
