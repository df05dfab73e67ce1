"""What goes wrong on the test stand of `dyn check-node`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ros_nodes.tools.faults import COMMANDS, INACTIVE, PERIOD
from ros_nodes.tools.stand import CONTROL, NodeStand

ELSEWHERE = 1.0  # distance of another robot [rad | m]
# Transitions that a node does not have, by whether it is active.
WRONG = {True: (1, 2, 3, 77), False: (1, 4, 77)}


class FaultStand(NodeStand):
    """A test stand on which something can go wrong.

    Attributes:
        sound: Efforts that are right at places where a robot may be.
    """

    sound: list[np.ndarray]

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal to the process of a node."""
        self.processes[name].popen.send_signal(number)

    def fail(self) -> None:
        """Let the solver of the controller, or its executor, fail from now on."""
        self.send_signal(CONTROL, signal.SIGUSR1)

    def estop(self) -> None:
        """Call ~/estop; only an activation ends its stop."""
        self.doing = "stopped" if self.doing != INACTIVE else INACTIVE
        self._estop.call_async(Trigger.Request())

    def move_clock(self, seconds: float) -> None:
        """Set simulated time."""
        self._simulated += seconds

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something after a time, once."""

        def once() -> None:
            timer.cancel()
            act()

        timer = self.live.node.create_timer(seconds, once)
        self._more.append(lambda: self.live.node.destroy_timer(timer))

    def learn_efforts(self) -> None:
        """Note the efforts of the robot that holds, here and in another place."""
        self.sound = []
        for distance in (ELSEWHERE, 0.0):
            q = np.array(self.normal["q"]) + distance
            self.feed = {**self.feed, "q": q}
            self.doing = "led elsewhere"
            self._hold()  # activation: it then rests where it is
            self._await(partial(self.flowing, COMMANDS), "no effort", COMMANDS)
            self.sound.append(self.seen[COMMANDS][-1].values)

    def second_source(self) -> None:
        """Send other joint states, too, between those that are right."""
        node = self.live.node
        sender = node.create_publisher(JointState, "joint_states", 1)

        def send() -> None:
            message = JointState(name=list(self.names))
            message.position = [x + ELSEWHERE for x in self.normal["q"]]
            message.velocity = list(self.normal["qd"])
            message.header.stamp = node.get_clock().now().to_msg()
            sender.publish(message)

        timer = node.create_timer(PERIOD, send)
        self._more += [
            lambda: node.destroy_timer(timer),
            lambda: node.destroy_publisher(sender),
        ]

    def wrong_transitions(self) -> None:
        """Ask for transitions that the controller cannot take now."""
        for number in WRONG[self.doing != INACTIVE]:
            transition = Transition(id=number)
            self._transition.call_async(ChangeState.Request(transition=transition))

    def long_trajectory(self) -> None:
        """Have another process send a trajectory of 100 000 points."""
        pairs = zip(self.names, self.normal["q"].tolist(), strict=True)
        places = [f"{name}={position!r}" for name, position in pairs]
        command = [sys.executable, "-m", "ros_nodes.tools.long_trajectory", *places]
        process = subprocess.Popen(command)
        self._more.append(process.wait)
