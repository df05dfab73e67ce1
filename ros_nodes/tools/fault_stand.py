"""Faults that the test stand of `dyn check-node` can cause."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from dyn_core import robots
from dyn_core.control.safety.guard_link import Beat
from dyn_core.errors import DynError
from ros_nodes.base.node import LATCHED
from ros_nodes.graphs import EFFORTS
from ros_nodes.messages.guard_messages import TOPIC, beat_message
from ros_nodes.tools.faults import COMMANDS, INACTIVE, PAUSE, PERIOD
from ros_nodes.tools.stand import CONTROL, WATCHER, NodeStand

# Ids of transitions that are not available, by whether the node is active.
WRONG = {True: (1, 2, 3, 77), False: (1, 4, 77)}
ROUNDS = 5  # number of restarts that are requested without waiting
ESTOP, ENABLE = f"{CONTROL}/estop", f"{CONTROL}/enable"
SET, GUARD_ESTOP = f"{CONTROL}/set_parameters", f"{WATCHER}/estop"
SERVICES = {ESTOP: Trigger, ENABLE: SetBool, SET: SetParameters, GUARD_ESTOP: Trigger}
RESTART = (
    Transition.TRANSITION_DEACTIVATE,
    Transition.TRANSITION_CLEANUP,
    Transition.TRANSITION_CONFIGURE,
    Transition.TRANSITION_ACTIVATE,
)


class FaultStand(NodeStand):
    """A test stand that can cause faults.

    Attributes:
        slew: Largest change of each effort in a second, (n,) [N·m/s | N/s]; to be set
            by the caller.
        elsewhere: Positions of another robot, (n,) [rad | m]; to be set by the caller.
        sound: Valid efforts for the positions `elsewhere` and of the robot, in this
            order, (n,) each [N·m | N]; set by learn_efforts.
    """

    slew: np.ndarray
    elsewhere: np.ndarray
    sound: list[np.ndarray]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        make = self.live.node.create_client
        self._clients = {name: make(kind, name) for name, kind in SERVICES.items()}
        self._answers: list[Any] = []

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal to the process of a node, which must have been started."""
        self.processes[name].popen.send_signal(number)

    def fail(self) -> None:
        """Make the faulty solver or executor of the controller fail from now on.

        It must run faulty_controller: the signal, SIGUSR1, ends any other controller.
        """
        self.send_signal(CONTROL, signal.SIGUSR1)

    def move_clock(self, seconds: float) -> None:
        """Move simulated time, published in mode CLOCK, by a step [s], also back."""
        self._simulated += seconds

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Schedule a call of `act` in some seconds; return at once.

        `restore` cancels the call. `act` is called once, while messages are received.
        """

        fault = self.restored

        def once() -> None:
            timer.cancel()
            if fault == self.restored:
                act()

        timer = self.live.node.create_timer(seconds, once)
        self._more.append(lambda: self.live.node.destroy_timer(timer))

    def learn_efforts(self) -> None:
        """Set `sound` to efforts held at `elsewhere`, then at the robot's position."""
        self.sound = []
        for q in (self.elsewhere, self.normal["q"]):
            self.feed = {**self.feed, "q": q}
            self.doing = "led elsewhere"
            self._hold()  # an activation makes it rest at q
            self._await(partial(self.flowing, COMMANDS), "no effort", COMMANDS)
            self.sound.append(self.seen[COMMANDS][-1].values)

    def second_source(self) -> None:
        """Send states at `elsewhere`, too, from a second publisher until `restore`."""
        self._say_states(list(self.names), self.elsewhere, self.normal["qd"])

    def other_joints(self, names: list[str], once: bool = False) -> None:
        """Send zero states of other joints from a second publisher until `restore`.

        With `once`, only one message is sent.
        """
        self._say_states(names, np.zeros(len(names)), np.zeros(len(names)), once)

    def target(
        self, topic: str, *numbers: float, frame: str = "", age: float = 0.0
    ) -> None:
        """Send targets of a tool until `restore`, at the period of the states.

        `topic`, below the controller's name, is target_pose, with 7 numbers: position
        and quaternion x, y, z, w; else target_twist or another with 6: [angular;
        linear]. `frame` is header.frame_id, `age` that of the stamps [s].
        """
        node, kinds = self.live.node, {"target_pose": PoseStamped}
        kinds["target_twist"] = TwistStamped
        kind = kinds.get(topic, WrenchStamped)

        def make() -> Any:
            message = kind()
            message.header.frame_id = frame
            stamp = node.get_clock().now() - Duration(seconds=age)
            message.header.stamp = stamp.to_msg()
            if kind is PoseStamped:
                parts = (message.pose.position, message.pose.orientation)
            elif kind is TwistStamped:
                parts = (message.twist.angular, message.twist.linear)
            else:
                parts = (message.wrench.torque, message.wrench.force)
            names = ["xyz", "xyzw" if kind is PoseStamped else "xyz"]
            places = [
                (p, n) for p, some in zip(parts, names, strict=True) for n in some
            ]
            for (part, name), x in zip(places, numbers, strict=True):
                setattr(part, name, float(x))
            return message

        self._say(kind, f"{CONTROL}/{topic}", make)

    def split_states(self) -> None:
        """Send the first half of the joints from a second publisher until `restore`."""
        feed, half = self.feed, len(self.names) // 2
        self._say_states(feed["names"][:half], feed["q"][:half], feed["qd"][:half])
        rest = {key: feed[key][half:] for key in ("names", "q", "qd")}
        self.feed = {**feed, **rest}

    def second_controller(self) -> None:
        """Send the effort before the fault from a second publisher until `restore`."""
        data = Float64MultiArray(data=self.last)
        self._say(Float64MultiArray, EFFORTS, lambda: data)

    def describe(self) -> None:
        """Publish the description of another robot on robot_description, latched."""
        robot = "arm7" if len(self.names) != 7 else "two_link"
        text = String(data=robots.path(robot).read_text(encoding="utf-8"))
        self._say(String, "robot_description", lambda: text, once=True)

    def _say_states(
        self, names: list[str], q: np.ndarray, qd: np.ndarray, once: bool = False
    ) -> None:
        """Send joint states from another publisher until `restore`, or only once."""

        def make() -> JointState:
            message = JointState(name=names, position=q, velocity=qd)
            message.header.stamp = self.live.node.get_clock().now().to_msg()
            return message

        self._say(JointState, "joint_states", make, once)

    def _say(
        self, kind: Any, topic: str, make: Callable[[], Any], once: bool = False
    ) -> None:
        """Publish messages each PERIOD until `restore`, or only one, latched."""
        node = self.live.node
        sender = node.create_publisher(kind, topic, LATCHED if once else 1)
        fault = self.restored

        def send() -> None:
            if fault == self.restored:  # a destroyed timer may be called once more
                sender.publish(make())
            if once:
                timer.cancel()

        timer = node.create_timer(PERIOD, send)
        self._more += [
            lambda: node.destroy_timer(timer),
            lambda: node.destroy_publisher(sender),
        ]

    def wrong_transitions(self) -> None:
        """Request transitions that the controller's state lacks, without a wait."""
        for number in WRONG[self.doing != INACTIVE]:
            self._ask_change(number)

    def _ask_change(self, number: int) -> Any:
        """Request a transition by its id; return the future of the response."""
        request = ChangeState.Request(transition=Transition(id=number))
        return self._transition.call_async(request)

    def pipelined_transitions(self) -> Callable[[], bool]:
        """Request all transitions of a restart at once, ROUNDS (5) times.

        A round follows the last response of the previous one. The result tells whether
        the last request was answered, and efforts flow or the controller has ended.
        """
        answers: list[Any] = []

        def ask(_: Any = None) -> None:
            """Send a round of requests after the last response, ROUNDS in all."""
            if len(answers) < ROUNDS:
                last = [self._ask_change(number) for number in RESTART][-1]
                answers.append(last)
                last.add_done_callback(ask)

        ask()
        self.doing = "restarted"

        def over() -> bool:
            last = len(answers) == ROUNDS and answers[-1].done()
            return last and self.flowing_again()

        return over

    def flowing_again(self) -> bool:
        """Return whether efforts flow; also True if the controller has ended."""
        running = self.processes[CONTROL].popen.poll() is None
        return self.flowing(COMMANDS) if running else True

    # ---- the guard

    def latched(self, act: Callable[[], object]) -> Callable[[], bool]:
        """Call ~/estop of the guard, and call `act` while its stop is latched.

        `act` is called PAUSE (0.5 s) later; this function returns before. The result
        tells whether it was called and the guard has published diagnostics since.
        """
        self._call(GUARD_ESTOP, Trigger.Request())
        done: list[object] = []

        def later() -> None:
            act()
            done.append(self.said.pop(WATCHER, None))

        self.later(PAUSE, later)
        return lambda: bool(done) and WATCHER in self.said

    def restart_guard(self) -> None:
        """Kill the guard, wait for its end, and start another one without a wait."""
        self.send_signal(WATCHER, signal.SIGKILL)
        self.processes.pop(WATCHER).popen.wait()
        self._start(WATCHER)

    def start_guard(self) -> Callable[[], bool]:
        """Start the guard; return flowing_again, which tells whether efforts flow."""
        self._start(WATCHER)
        return self.flowing_again

    def stray_word(self) -> None:
        """Publish False on the guard's topic ~/stopped until `restore`."""
        word = Bool(data=False)
        self._say(Bool, f"{WATCHER}/stopped", lambda: word)

    def stray_beat(self) -> None:
        """Send beats of another guard, not stopped, until `restore`."""
        beat = beat_message(Beat("another", False, resets=99, timeout=0.2))
        self._say(type(beat), f"{WATCHER}/{TOPIC}", lambda: beat)

    def neighbour(self, kind: str) -> None:
        """Start the process of a key of neighbours.KINDS; `restore` awaits its end."""
        pairs = zip(self.names, self.normal["q"].tolist(), strict=True)
        places = [f"{name}={position!r}" for name, position in pairs]
        command = [sys.executable, "-m", "ros_nodes.tools.neighbours", kind, *places]
        process = subprocess.Popen(command)
        self._more.append(process.wait)

    # ---- services

    def _call(self, name: str, request: Any) -> Any:
        """Call a service of SERVICES; return the future of the response."""
        client = self._clients[name]
        self._await(client.service_is_ready, f"no service {name}")
        return client.call_async(request)

    def slow(self) -> None:
        """Make the solver (fails_by_slow) late; receive messages for 1 s."""
        self.fail()
        self.watch(2 * PAUSE)

    def estop(self) -> None:
        """Call ~/estop without a wait; `doing` is "stopped", unless it is INACTIVE.

        The next activation ends the stop; called while the node is inactive, it lasts
        until the activation after that.
        """
        self.doing = "stopped" if self.doing != INACTIVE else INACTIVE
        self._call(ESTOP, Trigger.Request())

    def enable(self, data: bool) -> None:
        """Call ~/enable, not waiting for the response; `doing` is "enabled by hand"."""
        self.doing = "enabled by hand"
        self._call(ENABLE, SetBool.Request(data=data))

    def set_parameter(self, name: str, *values: float) -> Callable[[], bool]:
        """Set a parameter of the controller to each value in turn, by separate calls.

        The result tells whether one was answered; in a flood others may be lost.
        """
        answers = []
        for value in values:
            parameter = Parameter(name, value=value).to_parameter_msg()
            request = SetParameters.Request(parameters=[parameter])
            answers.append(self._call(SET, request))
        self._answers = answers
        return lambda: any(answer.done() for answer in answers)

    def refused(self, name: str, value: float) -> Callable[[], bool]:
        """Request a value of a controller's parameter that must be refused.

        The result tells whether the answer has come. It raises a DynError if
        the value was accepted; `restore` then ends the controller.
        """
        done = self.set_parameter(name, value)

        def over() -> bool:
            if not done():
                return False
            if self._answers[0].result().results[0].successful:
                # Else the parameter would stay set.
                self._more.append(lambda: self.end(CONTROL))
                raise DynError(f"{name} {value:g} was accepted")
            return True

        return over
