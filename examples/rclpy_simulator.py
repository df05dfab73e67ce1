"""A simulator of one's own in plain rclpy.

Under the controller of dyn_ros, each in a terminal:

    python examples/rclpy_simulator.py
    ros2 run dyn_ros computed_torque --ros-args -p robot_description_file:=arm7 \\
        -r '~/commands:=effort_controller/commands'
"""

import time

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import dyn_core as dyn

START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
PERIOD, STEP = 0.004, 0.001  # of the messages, of the integration [s]
TIMEOUT = 0.1  # age from which a command does not count [s]


class Arm:
    """A robot that moves under efforts; it needs no ROS."""

    def __init__(self, model, q):
        self.model, self.q, self.qd = model, np.array(q, float), np.zeros(model.nv)
        self.step = dyn.solver("semi_implicit_euler").build(
            model, forward_dynamics="aba", joint_friction=True, limit_stops=True
        )

    def advance(self, tau, seconds):
        """Move under constant efforts."""
        limit = self.model.effort_limit
        for _ in range(round(seconds / STEP)):
            self.q, self.qd = self.step(
                self.q, self.qd, np.clip(tau, -limit, limit), STEP
            )


class OwnSimulator(Node):
    """Efforts in, joint_states out."""

    def __init__(self):
        super().__init__("own_simulator")
        self.arm = Arm(dyn.load("arm7"), START)
        self.tau, self.received = np.zeros(self.arm.model.nv), 0.0
        self.states = self.create_publisher(JointState, "joint_states", 10)
        self.create_subscription(
            Float64MultiArray, "effort_controller/commands", self.on_effort, 1
        )
        self.create_timer(PERIOD, self.on_timer)

    def on_effort(self, message):
        """Keep a command, if it is one."""
        tau = np.array(message.data)
        if tau.shape == self.tau.shape and np.isfinite(tau).all():
            self.tau, self.received = tau, time.monotonic()

    def on_timer(self):
        """Move by a period and publish where the arm is."""
        late = time.monotonic() - self.received > TIMEOUT
        self.arm.advance(0 * self.tau if late else self.tau, PERIOD)
        message = JointState(name=list(self.arm.model.joint_names))
        message.header.stamp = self.get_clock().now().to_msg()
        message.position = self.arm.q.tolist()
        message.velocity = self.arm.qd.tolist()
        self.states.publish(message)


def main():
    """Run until Ctrl-C."""
    rclpy.init()
    try:
        rclpy.spin(OwnSimulator())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError:  # rclpy's, where the end comes while it prepares to wait
        if rclpy.ok():
            raise


if __name__ == "__main__":
    main()
