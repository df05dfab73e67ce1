"""The node `simulator`: effort commands in, joint states out."""

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
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

import dyn_core as dyn
from dyn_core.simulate import Simulator
from ros_nodes import _runtime
from ros_nodes._node import ERROR, OK, WARN, RobotNode
from ros_nodes.conversions import JointWriter, placed_joints
from ros_nodes.parameters import simulator_specs

COMMANDS = "effort_controller/commands"


class SimulatorNode(RobotNode):
    """Simulates a robot at a fixed rate; see dyn_core.simulate for its rules."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("simulator", simulator_specs(), **kwargs)
        self.robot: Any = None  # a Simulator once configured

    def build(self) -> None:
        """Build the robot, the step, publishers, services and the timer."""
        model = self.load(root_joint=self.value("root_joint"))
        self.period = 1.0 / self.value("update_rate")
        self.robot = Simulator(
            model,
            period=self.period,
            step=self.value("step.plugin_name"),
            forward_dynamics=self.value("forward_dynamics.plugin_name"),
            substeps=self.value("substeps"),
            command_timeout=self.value("command_timeout"),
            prescribed=self._prescribed(model),
            joint_friction=self.value("joint_friction"),
            joint_springs=self.value("joint_springs"),
            limit_stops=self.value("limit_stops"),
            engine=self.value("engine") or None,
            q0=self._initial(model),
        )
        self.robot.counters = self.counters
        self.writer = JointWriter(model)
        names = self.value("joints") or [
            n for n in model.joint_names if len(self._at(model, n)) == 1
        ]
        self.joints = list(names)
        self.at = np.array([self._at(model, n)[0] for n in names], int)
        self.placed = bool(placed_joints(model, self.robot.q, self.robot.qd))
        self._communicate()
        self.model = model
        self.message = JointState(name=self.writer.names)
        self.message.header.frame_id = self.value("frame_id")
        self.round_trips: deque[float] = deque(maxlen=2000)
        self.cycles = self.missed = self.answered = 0
        self.published: float | None = None
        self.simulated = 0.0

    @staticmethod
    def _at(model: dyn.Model, name: str) -> range:
        at = model.v_slice(name)
        return range(at.start, at.stop)

    def _initial(self, model: dyn.Model) -> np.ndarray | None:
        """Give the start of the listed joints, or None for the simulator's own."""
        given = self.value("initial_positions")
        single = [n for n in model.joint_names if len(self._at(model, n)) == 1]
        names = self.value("joints") or single
        if len(given) != len(names):
            if list(given) == [0.0]:
                return None
            raise dyn.SettingError(
                f"initial_positions has {len(given)} numbers for {len(names)} joints:"
                f" {', '.join(names)}",
                "initial_positions",
            )
        q = model.neutral()
        for name, x in zip(names, given, strict=True):
            q[model.q_slice(name)] = x
        return q

    def _prescribed(self, model: dyn.Model) -> tuple[str, ...]:
        """Give the joints that follow accelerations; unknown ones are refused."""
        names = [name for name in self.value("prescribed.joints") if name]
        for name in names:
            if name not in model.joint_names:
                raise dyn.SettingError(
                    f"prescribed.joints: '{name}' must be one of"
                    f" {', '.join(model.joint_names)}",
                    "prescribed.joints",
                )
        return tuple(names)

    def _on_accelerations(self, message: Float64MultiArray) -> None:
        """Take accelerations of the prescribed joints."""
        if not self.active or self.robot is None:
            return
        try:
            self.robot.accelerate(time.monotonic(), np.asarray(message.data, float))
        except dyn.DynError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def _communicate(self) -> None:
        keep, deep = self.keep, QoSProfile(depth=10)
        self.states = keep(self.create_publisher(JointState, "joint_states", deep))
        if self.placed:
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
        if self.robot.prescribed:
            keep(
                self.create_subscription(
                    Float64MultiArray, "~/accelerations", self._on_accelerations, latest
                )
            )
        keep(self.create_service(Trigger, "~/reset", self._on_reset))
        keep(self.create_service(SetBool, "~/pause", self._on_pause))
        keep(self.create_timer(self.period, self._cycle))

    def activated(self) -> None:
        """Start the clock of missed cycles."""
        self.due = time.monotonic() + self.period

    def _on_command(self, message: Float64MultiArray) -> None:
        """Take an effort command; the first one after a state closes its round trip."""
        if not self.active or self.robot is None:
            return
        now = time.monotonic()
        data = np.asarray(message.data, float)
        if data.shape != self.at.shape:
            wanted = ", ".join(self.joints)
            self.refuse("command of wrong size", f"{data.size} efforts for {wanted}")
            return
        tau = np.zeros(self.robot.model.nv)
        tau[self.at] = data
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
        """Move by one period and publish."""
        if not self.active or self.robot is None:
            return
        now = time.monotonic()
        late = int((now - self.due) / self.period)
        if late > 0:
            self.missed += late
        self.due += self.period * (1 + max(late, 0))
        self.cycles += 1
        try:
            self.robot.advance(now)
        except dyn.DynError as error:
            self.get_logger().error(
                f"step failed, paused at the last good state: {error}"
            )
            self.diagnose()
        self.simulated += 0.0 if self.robot.paused else self.period
        self._publish()

    def _publish(self) -> None:
        """Publish the state, and simulated time where asked for."""
        robot, message = self.robot, self.message
        joints = self.writer.write(robot.q, robot.qd, robot.effort)
        stamp = self.get_clock().now().to_msg()
        if self.value_of_clock:
            stamp.sec = int(self.simulated)
            stamp.nanosec = int((self.simulated - int(self.simulated)) * 1e9)
            self.clock.publish(Clock(clock=stamp))
        message.header.stamp = stamp
        message.position, message.velocity = joints.position, joints.velocity
        message.effort = joints.effort
        self.published = time.monotonic()
        self.states.publish(message)
        if self.placed:
            self.poses.publish(self._placed(stamp))

    @property
    def value_of_clock(self) -> bool:
        """Whether /clock is published."""
        return hasattr(self, "clock") and self.clock in self._parts

    def _placed(self, stamp: Any) -> MultiDOFJointState:
        """Make the message of joints with several coordinates."""
        message = MultiDOFJointState()
        message.header.stamp = stamp
        message.header.frame_id = self.value("frame_id")
        for joint in placed_joints(self.model, self.robot.q, self.robot.qd):
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
        """Go back to the start."""
        self.robot.reset()
        response.success, response.message = True, "back at the start"
        return response

    def _on_pause(self, request: Any, response: Any) -> Any:
        """Pause, or go on."""
        self.robot.paused = request.data
        response.success = True
        response.message = "paused" if request.data else "running"
        return response

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Give level, message and values for /diagnostics."""
        robot = self.robot
        level, message = OK, "running"
        if self.counters["step failed"]:
            level, message = ERROR, "a step failed: paused at the last good state"
        elif robot.paused:
            level, message = WARN, "paused"
        elif robot.stale(time.monotonic()):
            level, message = WARN, "no effort command: effort is zero"
        trips = np.array(self.round_trips) if self.round_trips else np.array([np.nan])
        return (
            level,
            message,
            {
                "step": self.value("step.plugin_name"),
                "forward dynamics": self.value("forward_dynamics.plugin_name"),
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
