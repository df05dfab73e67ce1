"""Topics of the external wrench that the controller's observer estimates."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Float64MultiArray

from dyn_core.control.external_wrench import ExternalWrench, WrenchEstimate
from dyn_core.control.safety.health import WARN, Condition
from ros_nodes.base.qos import publisher
from ros_nodes.controller.model_topics import labelled_array

LINK = "external_wrench.link"
NAMES = [f"{part}_{axis}" for part in ("moment", "force") for axis in "xyz"]


class ExternalWrenchTopics:
    """Publishes the wrench on external_wrench.link; does nothing without a link.

    ~/external_wrench (WrenchStamped) is what the environment exerts on the link, at its
    origin and in its axes; ~/external_wrench_covariance (Float64MultiArray) its
    covariance, (6, 6), moments before forces. Both at the rate publish_rate while
    somebody listens. Near singular positions /diagnostics warns: a direction that the
    joints do not feel is zero.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.controller = node, node.controller
        self.wrench: ExternalWrench | None = None
        self.last: WrenchEstimate | None = None
        link = node.value(LINK)
        if not link:
            return
        deviations = node.value("external_wrench.deviation")
        self.wrench = ExternalWrench(
            self.controller.model,
            link,
            deviations[0] if len(deviations) == 1 else deviations,
            node.value("external_wrench.singularity_threshold"),
            self.controller.engine,
        )
        self._message = WrenchStamped()
        self._message.header.frame_id = link
        self.publishers = [
            publisher(node, WrenchStamped, "~/external_wrench", 1),
            publisher(node, Float64MultiArray, "~/external_wrench_covariance", 1),
        ]
        node.conditions.append(self.conditions)
        node.every_idle(1.0 / node.value("publish_rate"), self.publish)

    def estimate(self) -> WrenchEstimate | None:
        """Return the estimate at the last state, root axes, kept in `last`; or None."""
        controller = self.controller
        if self.wrench is None or not self.node.active or controller.q is None:
            return None
        time = controller.now if controller.driven else 0.0
        self.last = self.wrench.estimate(controller.q, controller.detector.effort, time)
        return self.last

    def publish(self) -> None:
        """Publish wrench and covariance in the axes of the link, if anyone listens.

        The estimate is made, and stored in `last`, even if nobody listens.
        """
        heard = [one.get_subscription_count() > 0 for one in self.publishers]
        estimate = self.estimate()
        if estimate is None or self.wrench is None or not any(heard):
            return
        turn = self.wrench.turn.T
        w, covariance = turn @ estimate.w, turn @ estimate.covariance @ turn.T
        message, (wrenches, covariances) = self._message, self.publishers
        message.header.stamp = self.node.get_clock().now().to_msg()
        for vector, numbers in (
            (message.wrench.torque, w[:3]),
            (message.wrench.force, w[3:]),
        ):
            vector.x, vector.y, vector.z = (float(x) for x in numbers)
        wrenches.publish(message)
        covariances.publish(labelled_array(covariance, NAMES, NAMES))

    def conditions(self, _: float) -> list[Condition]:
        """Return a warning if the last estimate was near a singular position."""
        if self.last is None or not self.last.weak or not self.node.active:
            return []
        assert self.wrench is not None
        link = self.wrench.link
        return [
            Condition(
                WARN,
                "external wrench",
                f"the joints hardly feel some wrench at '{link}' here: it counts as 0",
            )
        ]
