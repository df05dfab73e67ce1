"""The node `simulator`: subscribes to effort commands, publishes joint states.

The simulated plant is a robot, a robot with contacts, or a planar chain.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Transform, Twist
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

import dyn_core as dyn
from ros_nodes import _runtime
from ros_nodes._node import ERROR, OK, WARN, RobotNode
from ros_nodes.chain_simulation import SimulatedChain
from ros_nodes.contact_simulation import SimulatedContacts
from ros_nodes.simulated import Simulated, SimulatedRobot
from ros_nodes.simulator_parameters import SIMULATOR

COMMANDS = "effort_controller/commands"


class SimulatorNode(RobotNode):
    """Simulates a robot or a planar chain at a fixed rate.

    The plants are in dyn_core.simulation (simulator, contacts, chain).
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("simulator", SIMULATOR, **kwargs)
        self.robot: Any = None  # the plant, once configured

    def build(self) -> None:
        """Build the robot, the step, publishers, services and the timer."""
        self.period = 1.0 / self.value("update_rate")
        kind: Any = SimulatedRobot
        if self.value("chain_file"):
            kind = SimulatedChain
        elif self.value("contact.enabled"):
            kind = SimulatedContacts
        self.simulated: Simulated = kind(self, self.period)
        self.robot, self.writer = self.simulated.robot, self.simulated.writer
        self.joints, self.effort_indices = (
            list(self.simulated.joints),
            self.simulated.effort_indices,
        )
        self.robot.counters = self.counters
        self.has_multi_dof = bool(self.simulated.joint_motions())
        self._communicate()
        self.model = self.simulated.model
        self.message = JointState(name=self.writer.names)
        self.message.header.frame_id = self.value("frame_id")
        self.round_trips: deque[float] = deque(maxlen=2000)
        self.cycles = self.missed = self.answered = 0
        self.published: float | None = None
        self.fault = ""  # reason of the last failed step
        self.elapsed = 0.0  # simulated time, monotonic across resets [s]

    def waits_for_robot(self) -> bool:
        """Whether there is neither a chain nor a robot, and the topic may bring one."""
        return not self.value("chain_file") and super().waits_for_robot()

    def _on_description(self, message: String) -> None:
        """Accept a robot description, unless a chain is simulated."""
        if not self.value("chain_file"):
            super()._on_description(message)

    def _on_accelerations(self, message: Float64MultiArray) -> None:
        """Accept accelerations of the prescribed joints."""
        if not self.active or self.robot is None:
            return
        try:
            self.robot.accelerate(time.monotonic(), np.asarray(message.data, float))
        except dyn.DynError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def _communicate(self) -> None:
        keep, deep = self.keep, QoSProfile(depth=10)
        self.states = keep(self.create_publisher(JointState, "joint_states", deep))
        if self.has_multi_dof:
            self.poses = keep(
                self.create_publisher(
                    MultiDOFJointState, "multi_dof_joint_states", deep
                )
            )
        if self.value("publish_clock"):
            self.clock = keep(self.create_publisher(Clock, "/clock", 1))
        latest = QoSProfile(depth=1)
        keep(
            self.create_subscription(
                Float64MultiArray, COMMANDS, self._on_command, latest
            )
        )
        if self.simulated.accepts_state:
            keep(
                self.create_subscription(JointState, "~/state", self._on_state, latest)
            )
        if getattr(self.robot, "prescribed", ()):
            keep(
                self.create_subscription(
                    Float64MultiArray, "~/accelerations", self._on_accelerations, latest
                )
            )
        keep(self.create_service(Trigger, "~/reset", self._on_reset))
        keep(self.create_service(SetBool, "~/pause", self._on_pause))
        keep(self.create_service(Trigger, "~/step", self._on_step))
        self.every(self.period, self._cycle)

    def activated(self) -> None:
        """Start counting missed cycles."""
        self.due = time.monotonic() + self.period

    def _on_command(self, message: Float64MultiArray) -> None:
        """Accept an effort command; the first one after a state ends its round trip."""
        if not self.active or self.robot is None:
            return
        now = time.monotonic()
        data = np.asarray(message.data, float)
        if data.shape != self.effort_indices.shape:
            names = ", ".join(self.joints)
            self.refuse("command of wrong size", f"{data.size} efforts for {names}")
            return
        tau = np.zeros_like(self.robot.tau)
        tau[self.effort_indices] = data
        try:
            self.robot.command(now, tau)
        except dyn.DynError as error:
            self.counters["command not finite"] -= 1
            self.refuse("command not finite", str(error))
            return
        if self.published is not None:
            self.round_trips.append(now - self.published)
            self.answered += 1
            self.published = None

    def _cycle(self) -> None:
        """Advance by one period and publish."""
        if not self.active or self.robot is None:
            return
        now = time.monotonic()
        late = int((now - self.due) / self.period)
        if late > 0:
            self.missed += late
        self.due += self.period * (1 + max(late, 0))
        self.cycles += 1
        try:
            self._move(now)
        except dyn.DynError as error:
            self.get_logger().error(
                f"step failed, paused at the last good state: {error}"
            )
            self.diagnose()
        self._publish()

    def _move(self, now: float) -> None:
        """Advance by one period, unless paused."""
        try:
            self.robot.advance(now)
        except dyn.DynError as error:
            self.fault = f": {error}"
            raise
        self.elapsed += 0.0 if self.robot.paused else self.period

    def _publish(self) -> None:
        """Publish the state, and simulated time if enabled."""
        robot, message = self.robot, self.message
        joints = self.writer.write(robot.q, robot.qd, robot.effort)
        stamp = self.get_clock().now().to_msg()
        if self.value_of_clock:
            stamp.sec = int(self.elapsed)
            stamp.nanosec = int((self.elapsed - int(self.elapsed)) * 1e9)
            self.clock.publish(Clock(clock=stamp))
        message.header.stamp = stamp
        message.position, message.velocity = joints.position, joints.velocity
        message.effort = joints.effort
        self.published = time.monotonic()
        self.states.publish(message)
        if self.has_multi_dof:
            self.poses.publish(self._joint_motions_message(stamp))
        self.simulated.publish(stamp)

    @property
    def value_of_clock(self) -> bool:
        """Whether /clock is published."""
        return hasattr(self, "clock") and self.clock in self._resources

    def _joint_motions_message(self, stamp: Any) -> MultiDOFJointState:
        """Return the message of joints with several coordinates, or of chain joints."""
        message = MultiDOFJointState()
        message.header.stamp = stamp
        message.header.frame_id = self.value("frame_id")
        for joint in self.simulated.joint_motions():
            message.joint_names.append(joint.name)
            pose, twist = Transform(), Twist()
            t, r = pose.translation, pose.rotation
            t.x, t.y, t.z = joint.translation.tolist()
            r.x, r.y, r.z, r.w = joint.rotation.tolist()
            v, w = twist.linear, twist.angular
            v.x, v.y, v.z = joint.linear.tolist()
            w.x, w.y, w.z = joint.angular.tolist()
            message.transforms.append(pose)
            message.twist.append(twist)
        return message

    def _on_reset(self, _: Any, response: Any) -> Any:
        """Reset to the initial state."""
        self.robot.reset()
        response.success, response.message = True, "back at the start"
        return response

    def _on_pause(self, request: Any, response: Any) -> Any:
        """Pause or resume."""
        self.robot.paused = request.data
        response.success = True
        response.message = "paused" if request.data else "running"
        return response

    def _on_step(self, _: Any, response: Any) -> Any:
        """Advance by one period while paused."""
        response.success = False
        if not (self.active and self.robot.paused):
            need = "pause first (~/pause)" if self.active else "activate first"
            response.message = f"no step: {need}"
            return response
        self.robot.paused = False
        try:
            self._move(time.monotonic())
        except dyn.DynError as error:
            response.message = f"step failed: {error}"
            return response
        finally:
            self.robot.paused = True
        response.success, response.message = True, f"moved by {self.period:g} s"
        return response

    def _on_state(self, message: JointState) -> None:
        """Accept a state while paused; an invalid one is refused."""
        if not self.active or self.robot is None:
            return
        try:
            self.simulated.place(message)
        except dyn.DynError as error:
            self.refuse("state refused", str(error))

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics."""
        robot = self.robot
        if self.counters["step failed"]:
            level = ERROR
            message = f"a step failed: paused at the last good state{self.fault}"
        elif robot.paused:
            level, message = WARN, "paused"
        else:
            warning = self.simulated.warning(time.monotonic())
            level, message = (OK, "running") if warning is None else (WARN, warning)
        trips = np.array(self.round_trips) if self.round_trips else np.array([np.nan])
        return (
            level,
            message,
            {
                **self.simulated.values(),
                "engine": robot.program.engine,
                "rate [Hz]": self.value("update_rate"),
                "cycles": self.cycles,
                "missed cycles": self.missed,
                "answered": self.answered,
                "round trip p50 [us]": f"{np.percentile(trips, 50) * 1e6:.0f}",
                "round trip p99 [us]": f"{np.percentile(trips, 99) * 1e6:.0f}",
            },
        )


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return _runtime.run(SimulatorNode, args)


if __name__ == "__main__":
    sys.exit(main())
