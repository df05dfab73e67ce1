"""Trajectories of a topic: converted by the worker, followed by the control thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.qos import ReliabilityPolicy
from trajectory_msgs.msg import JointTrajectory

import dyn_core as dyn
from dyn_core.control import Trajectory
from ros_nodes.base.qos import subscription
from ros_nodes.messages.trajectory_messages import WireTrajectory, read_trajectory

TOPIC = "~/joint_trajectory"


class TrajectoryInput:
    """Receives trajectories for a ComputedTorqueNode; the constructor subscribes.

    The topic is ~/joint_trajectory. The subscription is reliable, unless a parameter
    says otherwise: a long message whose fragments are not sent again would often be
    lost. Best-effort publishers are then not received; Report warns of them.
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        # Raw: creating a long message of Python objects would block every thread.
        take = self.on_message
        heard = subscription(node, JointTrajectory, TOPIC, take, 10, raw=True)
        self.topic_name: str = heard.topic_name
        self.hears_all = heard.qos_profile.reliability != ReliabilityPolicy.RELIABLE

    def on_message(self, message: bytes) -> None:
        """Have a serialized trajectory (CDR) converted in the worker, and follow it.

        It is refused also if a newer one has come, or the controller has stopped.
        """
        node = self.node
        reason = node.goals.service.refusal()
        if reason is not None:
            node.refuse("trajectory refused", reason)
            return
        most, wire = node.value("max_trajectory_points"), []

        def read() -> WireTrajectory:
            wire.append(read_trajectory(message, most))
            return wire[0]

        def follow(made: Trajectory | dyn.DynError) -> None:
            try:
                if isinstance(made, dyn.DynError):
                    raise made
                stamp = wire[0].stamp
                wait = self.follow(made, stamp)
            except dyn.DynError as error:
                node.refuse("trajectory refused", str(error))
                return
            added = ""
            if wire[0].efforts.size and not node.value("feed_forward"):
                added = "; its efforts are not added (feed_forward is false)"
            said = f"following a trajectory of {made.duration:.3f} s"
            if stamp is not None and wait > 0:
                said = (
                    f"a trajectory of {made.duration:.3f} s waits until {stamp:.3f} s"
                    f" of ROS time, {wait:.3f} s from now"
                )
            node.get_logger().info(said + added)

        self.prepare(read, follow)

    def prepare(
        self, read: Callable[[], WireTrajectory], done: Callable[[Any], object]
    ) -> None:
        """Have a trajectory converted and checked in the worker; return at once.

        `read` is called in the worker's thread, `done` later in the executor's with the
        Trajectory, or with a DynError: it is invalid, a newer one has come, or the
        controller was stopped or reset meanwhile. No call once the node is cleaned up.
        """
        node, controller = self.node, self.node.controller
        ticket = controller.safety.gate.ticket()
        settings = {
            "method": node.value("interpolation_method"),
            "moving_end": node.value("allow_nonzero_velocity_at_trajectory_end"),
        }

        def make() -> Trajectory:
            return node.goals.trajectory(read(), **settings)

        def take(made: Any) -> None:
            gate = controller.safety.gate
            if ticket != gate.ticket():
                made = dyn.TrajectoryError(
                    "the controller stopped while it was read; valid: send it again"
                    " once the controller is active"
                )
            done(made)

        def superseded() -> None:
            done(dyn.TrajectoryError("a newer one came while it was read"))

        node.session.submit("trajectory", make, take, superseded)

    def follow(self, trajectory: Trajectory, stamp: float | None) -> float:
        """Follow a trajectory from a time on; return the time until then [s].

        `stamp` is the ROS time of its time zero [s]; None: now. The result is negative
        if it has already begun.
        """
        node, wait = self.node, 0.0
        if stamp is not None:
            wait = stamp - node.get_clock().now().nanoseconds * 1e-9
        left = wait + trajectory.duration
        if left < 0:
            raise dyn.TrajectoryError(f"the trajectory ended {-left:.3f} s ago")
        now = node.reference_time(time.monotonic())
        node.goals.follow(trajectory, now + wait)
        return wait
