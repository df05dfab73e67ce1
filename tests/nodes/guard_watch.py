"""Who watches a guard and its controller: efforts by sender, beats, diagnostics."""

import time

from ros_nodes.graphs import EFFORTS

START = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
NAMES = [f"joint{k}" for k in range(1, 8)]


class Watched:
    """A node that records efforts by sender, and what the guard says."""

    def __init__(self, namespace=""):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from std_msgs.msg import Bool, Float64MultiArray

        from ros_nodes.base.node import LATCHED

        self.node = Node("watched", namespace=namespace)
        self.rows, self.stopped, self.said, self.values = [], [], {}, {}
        listen = self.node.create_subscription
        listen(Float64MultiArray, EFFORTS, self._on_effort, 100)
        listen(Bool, "guard/stopped", lambda m: self.stopped.append(m.data), LATCHED)
        listen(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._feeding = None

    def _on_effort(self, message):
        labels = [row.label for row in message.layout.dim]
        self.rows.append((time.monotonic(), labels == ["guard"], any(message.data)))

    def _on_diagnostics(self, message):
        for status in message.status:
            name = status.name.partition(":")[0]
            self.said[name] = status.message
            self.values[name] = {row.key: row.value for row in status.values}

    def of_controller(self):
        """Return (time, whether it is torque) of the controller's efforts."""
        return [(t, torque) for t, guard, torque in self.rows if not guard]

    def of_guard(self):
        """Return the times of the guard's efforts, all of which are zero."""
        assert not any(torque for _, guard, torque in self.rows if guard)
        return [t for t, guard, _ in self.rows if guard]

    def drives(self):
        """Whether the last effort is the controller's, and torque."""
        return bool(self.rows) and self.rows[-1][1:] == (False, True)

    def sender(self):
        """Return a function that publishes an effort as a controller does."""
        from std_msgs.msg import Float64MultiArray

        speaker = self.node.create_publisher(Float64MultiArray, EFFORTS, 1)
        return lambda data: speaker.publish(Float64MultiArray(data=data))

    def feed(self):
        """Publish joint states of a robot at rest."""
        from sensor_msgs.msg import JointState

        speaker = self.node.create_publisher(JointState, "joint_states", 1)

        def publish():
            message = JointState(name=NAMES, position=START, velocity=[0.0] * 7)
            message.header.stamp = self.node.get_clock().now().to_msg()
            speaker.publish(message)

        self._feeding = self.node.create_timer(0.005, publish)

    def pause(self):
        """Publish no more joint states."""
        self.node.destroy_timer(self._feeding)

    def client(self, kind, name):
        """Return a client of a service."""
        return self.node.create_client(kind, name)

    def transition(self, number, until):
        """Request a transition of the controller; return the future of the answer."""
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        client = self.client(ChangeState, "computed_torque/change_state")
        until(client.service_is_ready)
        request = ChangeState.Request(transition=Transition(id=number))
        return client.call_async(request)
