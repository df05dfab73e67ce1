"""A computed-torque controller of one's own in plain rclpy.

Beside the simulator of dyn_ros, each in a terminal:

    dyn up simulator
    python examples/rclpy_controller.py

The joints of a robot have friction, of which the equation of motion in a book says
nothing: with joint_friction=False this controller is forty times less accurate.
"""

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import dyn_core as dyn

KP, KD = 400.0, 40.0  # before the inertia [1/s²], [1/s]
HOME = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])  # where it swings [rad]
APPROACH = 3.0  # time of the way there: the arm falls until a controller runs [s]
SWING, RATE = 0.15, 2.0  # of the reference [rad], [rad/s]


class ComputedTorque:
    """tau = ID(q, qd, qdd_ref + KD (qd_ref - qd) + KP (q_ref - q)); needs no ROS."""

    def __init__(self, model, joint_friction=True):
        self.model, self.start = model, None
        rnea = dyn.solver("rnea")
        self.inverse_dynamics = rnea.build(model, joint_friction=joint_friction)
        self.inverse_dynamics.prepare()  # compiled before the first state comes

    def reference(self, t):
        """Return position, velocity and acceleration: the way home, then a swing."""
        t0, q0 = self.start
        s = (t - t0) / APPROACH
        if s < 1:  # a quintic from rest to rest
            way, rate = HOME - q0, s * (1 - s) / APPROACH
            q = q0 + way * s**3 * (10 - 15 * s + 6 * s**2)
            qd = way * 30 * rate**2 * APPROACH
            return q, qd, way * 60 * rate * (1 - 2 * s) / APPROACH
        phase = RATE * (t - t0 - APPROACH)
        q = HOME + SWING * (1 - np.cos(phase))
        return q, SWING * RATE * np.sin(phase), SWING * RATE**2 * np.cos(phase)

    def torque(self, t, q, qd):
        """Return the torque for a state at a time, within the limits."""
        if self.start is None:
            self.start = t, q
        q_ref, qd_ref, qdd_ref = self.reference(t)
        self.error = q_ref - q
        qdd = qdd_ref + KD * (qd_ref - qd) + KP * self.error
        limit = self.model.effort_limit
        return np.clip(self.inverse_dynamics(q, qd, qdd), -limit, limit)


class OwnController(Node):
    """joint_states in, efforts out."""

    def __init__(self):
        super().__init__("own_controller")
        self.law = ComputedTorque(dyn.load("arm7"))
        topic = "effort_controller/commands"
        self.efforts = self.create_publisher(Float64MultiArray, topic, 1)
        self.create_subscription(
            JointState, "joint_states", self.on_state, qos_profile_sensor_data
        )

    def on_state(self, message):
        """Publish the torque for a state; names say which number is which joint's."""
        order = [message.name.index(name) for name in self.law.model.joint_names]
        q = np.array(message.position)[order]
        qd = np.array(message.velocity)[order]
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            return  # no torque of bad data; the simulator stops by itself
        t = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        tau = self.law.torque(t, q, qd)
        self.efforts.publish(Float64MultiArray(data=tau.tolist()))


def main():
    """Run until Ctrl-C."""
    rclpy.init()
    try:
        rclpy.spin(OwnController())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError:  # rclpy's, where the end comes while it prepares to wait
        if rclpy.ok():
            raise


if __name__ == "__main__":
    main()
