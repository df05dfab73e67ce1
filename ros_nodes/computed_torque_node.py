"""The node `computed_torque`: follows trajectories, publishes effort commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

import dyn_core as dyn
from dyn_core.control.controller import Controller, Rules
from dyn_core.control.trajectory import make_trajectory
from ros_nodes import _runtime
from ros_nodes._node import ERROR, OK, STALE, WARN, RobotNode
from ros_nodes.controller_parameters import CONTROLLER, gain_fields, joint_fields
from ros_nodes.conversions import JointReader, stamp_seconds, trajectory_arrays

LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
DELIVERY = 0.2  # longest wait for the arrival of the last zero [s]


class ComputedTorqueNode(RobotNode):
    """Computed-torque control of a robot, see dyn_core.control.controller."""

    def __init__(self, **kwargs: Any) -> None:
        self.controller: Any = None  # a Controller once configured
        super().__init__("computed_torque", CONTROLLER, **kwargs)

    def build(self) -> None:
        """Build the robot, the controller and the communication."""
        model = self.load()
        names = model.joint_names
        self.declare(gain_fields(names))
        self.declare(joint_fields(names, [model.joint_kind(n) for n in names]))
        limits = {n: self.value(f"effort_limits.{n}") for n in names}
        wrap = [n for n in names if self.value(f"gains.{n}.angle_wraparound")]
        kp, kd = self._gains(names, {})
        self.controller = Controller(
            model,
            kp,
            kd,
            mode=self.value("mode"),
            inverse_dynamics=self.solver("inverse_dynamics"),
            effort_limits={n: x for n, x in limits.items() if x > 0},
            wrap=wrap,
            rules=Rules(
                state_timeout=self.value("state_timeout"),
                max_jump=self.value("max_jump"),
                good_samples=self.value("good_samples"),
                on_stale=self.value("on_stale"),
                stale_time=self.value("stale_time"),
                differentiate=self.value("differentiate_velocity"),
                filter_time=self.value("velocity_filter_time"),
            ),
            engine=self.value("engine") or None,
        )
        self.reader = JointReader(names)
        self.command = Float64MultiArray()
        self.stopped = False
        self.states = 0
        self.longest = 0.0
        self._communicate()
        self.model = model

    def _gains(self, names: Sequence[str], values: dict[str, Any]) -> list[list[float]]:
        """Return kp and kd, with values that are being set."""
        return [
            [
                values.get(f"gains.{n}.{key}", self.value(f"gains.{n}.{key}"))
                for n in names
            ]
            for key in ("p", "d")
        ]

    def _communicate(self) -> None:
        keep = self.keep
        self.efforts = keep(
            self.create_publisher(Float64MultiArray, "~/commands", QoSProfile(depth=1))
        )
        self.references = keep(self.create_publisher(JointState, "~/reference", 1))
        self.errors = keep(self.create_publisher(JointState, "~/error", 1))
        keep(
            self.create_subscription(JointState, "joint_states", self._on_state, LATEST)
        )
        keep(
            self.create_subscription(
                JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10
            )
        )
        keep(self.create_service(SetBool, "~/enable", self._on_enable))
        keep(self.create_service(Trigger, "~/estop", self._on_estop))
        self.every(self.value("state_timeout") / 2, self._check_stale)
        self.every(1.0 / self.value("publish_rate"), self._publish_reference)

    def changed(self, values: dict[str, Any]) -> None:
        """Apply changed gains."""
        if self.controller is not None and any(n.startswith("gains.") for n in values):
            self.controller.set_gains(
                *self._gains(self.controller.model.joint_names, values)
            )

    def activated(self) -> None:
        """Hold the present position; earlier commands and references are cleared."""
        self.controller.begin()

    def _on_state(self, message: JointState) -> None:
        """Publish the effort for a joint state."""
        if not self.active or self.controller is None:
            return
        started = time.monotonic()
        try:
            q, qd = self.reader.read(message)
            stamp = stamp_seconds(message.header.stamp)
            tau = self.controller.update(started, q, qd, stamp)
        except dyn.DynError as error:
            self.refuse("joint state refused", str(error))
            self.diagnose_change()
            return
        self.states += 1
        if tau is not None:
            self._send(tau)
        self.longest = max(self.longest, time.monotonic() - started)

    def _send(self, tau: np.ndarray) -> None:
        """Publish a checked effort."""
        self.command.data = tau.tolist()
        self.efforts.publish(self.command)

    def _check_stale(self) -> None:
        """Publish the effort for a stale joint state."""
        if not self.active or self.controller is None:
            return
        tau = self.controller.watch(time.monotonic())
        if tau is not None:
            self._send(tau)
            self.diagnose_change()

    def _on_trajectory(self, message: JointTrajectory) -> None:
        """Accept a whole trajectory, or refuse it with a reason."""
        if not self.active or self.controller is None:
            self.refuse("trajectory refused", "the controller is not active")
            return
        model = self.controller.model
        try:
            start = stamp_seconds(message.header.stamp)
            wait = 0.0
            if start is not None:
                wait = start - self.get_clock().now().nanoseconds * 1e-9
            trajectory = make_trajectory(
                model.joint_names,
                *trajectory_arrays(message),
                lower=model.lower,
                upper=model.upper,
                method=self.value("interpolation_method"),
                moving_end=self.value("allow_nonzero_velocity_at_trajectory_end"),
            )
            if wait + trajectory.duration < 0:
                raise dyn.TrajectoryError(f"the trajectory ended {-wait:.3f} s ago")
            self.controller.follow(trajectory, time.monotonic() + wait)
        except dyn.DynError as error:
            self.refuse("trajectory refused", str(error))
            return
        self.get_logger().info(f"following a trajectory of {trajectory.duration:.3f} s")

    def _publish_reference(self) -> None:
        """Publish reference and error at publish_rate."""
        controller = self.controller
        if not self.active or controller is None or controller.reference is None:
            return
        reference = JointState(name=list(controller.model.joint_names))
        reference.header.stamp = self.get_clock().now().to_msg()
        reference.position = controller.reference.q.tolist()
        reference.velocity = controller.reference.qd.tolist()
        self.references.publish(reference)
        error = JointState(name=reference.name, header=reference.header)
        error.position = (-controller.error).tolist()
        self.errors.publish(error)

    def _on_enable(self, request: Any, response: Any) -> Any:
        """Enable or disable torque; after ~/estop only a new activation enables it."""
        if self.stopped and request.data:
            response.success = False
            response.message = "stopped by ~/estop: deactivate and activate to continue"
            return response
        if request.data and not self.controller.enabled:
            self.controller.reset()
        self.controller.enabled = request.data
        response.success = True
        response.message = "enabled" if request.data else "disabled: effort is zero"
        return response

    def _on_estop(self, _: Any, response: Any) -> Any:
        """Send zero effort until the next activation."""
        self.stopped, self.controller.enabled = True, False
        self.send_final_command()
        response.success, response.message = True, "stopped: effort is zero"
        return response

    def on_deactivate(self, state: Any) -> Any:
        """Send zero effort, and end an emergency stop."""
        result = super().on_deactivate(state)
        if self.controller is not None:
            self.stopped, self.controller.enabled = False, True
        return result

    def send_final_command(self) -> None:
        """Publish zero effort."""
        if self.model is not None and self.controller is not None:
            self._send(self.controller.final_torque())

    def wait_for_delivery(self) -> None:
        """Wait until reliable subscribers have the zero, or for DELIVERY.

        What is in flight when its publisher is destroyed may be lost.
        """
        if self.model is not None and self.controller is not None:
            self.efforts.wait_for_all_acked(Duration(seconds=DELIVERY))

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics."""
        controller = self.controller
        level, message = OK, "tracking"
        now = time.monotonic()
        if controller.seen is None:
            level, message = STALE, "no joint state yet"
        elif now - controller.seen > controller.rules.state_timeout:
            level, message = ERROR, "joint state is stale"
        elif not controller.enabled:
            level, message = WARN, "disabled: effort is zero"
        elif controller.good < controller.rules.good_samples:
            level, message = WARN, "waiting for good joint states"
        values = {
            "inverse dynamics": self.value("inverse_dynamics.plugin_name"),
            "engine": controller.engine_used,
            "mode": controller.mode,
            "joint states": self.states,
            "longest update [us]": f"{self.longest * 1e6:.0f}",
            "largest error": f"{np.abs(controller.error).max(initial=0.0):.6g}",
        }
        return level, message, values | dict(controller.counters)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return _runtime.run(ComputedTorqueNode, args)


if __name__ == "__main__":
    sys.exit(main())
