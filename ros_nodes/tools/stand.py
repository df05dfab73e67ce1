"""A test stand for the controller's node: it starts nodes, feeds them and listens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from dyn_core.errors import DynError
from ros_nodes.graphs import COMPUTED_TORQUE, EFFORTS, SIMULATOR, ros_arguments
from ros_nodes.processes import Process
from ros_nodes.tools.faults import ALONE, APPLIED, COMMANDS, PAIR
from ros_nodes.tools.live import Live

PERIOD = 0.004  # of the joint states that are sent [s]
PATIENCE = 30.0  # for efforts to flow [s]
FLOWING = 20  # efforts that show that they do
CONTROL, ROBOT = COMPUTED_TORQUE.executable, SIMULATOR.executable


class SeenEffort(NamedTuple):
    """An effort that was seen.

    Attributes:
        t: When [s].
        values: By joint [N·m | N].
    """

    t: float
    values: np.ndarray


class NodeStand:
    """Nodes under test.

    Attributes:
        names: Joints.
        joint: Number of the joint at which faults are.
        rng: Of the seed.
        feed: What the joint states are like: names, q, qd; on; age and pace of the
            stamps [s]; times that each is sent.
        seen: Efforts by COMMANDS or APPLIED.
        said: Level and message of the diagnostics by node.
    """

    def __init__(
        self,
        live: Live,
        names: tuple[str, ...],
        q: np.ndarray,
        params: str,
        seed: int,
    ) -> None:
        self.live, self.names, self.params = live, names, params
        self.rng = np.random.default_rng(seed)
        self.joint = int(self.rng.integers(len(names)))
        self.normal: dict[str, Any] = {
            "names": list(names), "q": q, "qd": np.full(len(names), 0.02),
            "on": False, "age": 0.0, "pace": PERIOD, "times": 1,
        }  # fmt: skip
        self.feed: dict[str, Any] = dict(self.normal)
        self.seen: dict[str, list[SeenEffort]] = {COMMANDS: [], APPLIED: []}
        self.said: dict[str, tuple[int, str]] = {}
        self.processes: dict[str, Process] = {}
        self.mode = ""
        self._stamp = 0.0
        self._sent: list[float] = []
        self._more: list[Any] = []
        node = live.node
        node.create_subscription(Float64MultiArray, EFFORTS, self._on_command, 10)
        node.create_subscription(JointState, "joint_states", self._on_state, 10)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_said, 10)
        self._sender: Any = None
        node.create_timer(PERIOD, self._send)

    # ---- what comes and goes

    def _on_command(self, message: Float64MultiArray) -> None:
        efforts = np.array(message.data)
        self.seen[COMMANDS].append(SeenEffort(time.monotonic(), efforts))

    def _on_state(self, message: JointState) -> None:
        efforts = np.array(message.effort)
        if efforts.size:  # of the simulator
            self.seen[APPLIED].append(SeenEffort(time.monotonic(), efforts))

    def _on_said(self, message: DiagnosticArray) -> None:
        for status in message.status:
            who = status.name.partition(":")[0].rpartition("/")[2]
            self.said[who] = status.level[0], status.message

    def _send(self) -> None:
        """Send a joint state, if the test stand is to send them."""
        feed = self.feed
        if not feed["on"] or self._sender is None:
            return
        now = self.live.node.get_clock().now().nanoseconds * 1e-9
        if feed["pace"] == PERIOD:
            self._stamp = now
        else:
            self._stamp += feed["pace"]
        stamp = Time(nanoseconds=int(1e9 * (self._stamp - feed["age"]))).to_msg()
        message = JointState(name=feed["names"])
        message.position, message.velocity = list(feed["q"]), list(feed["qd"])
        message.header.stamp = stamp
        self._sent.append(time.monotonic())
        for _ in range(feed["times"]):
            self._sender.publish(message)

    # ---- modes

    def ensure(self, mode: str) -> None:
        """Start what a mode needs, and wait until efforts flow.

        Raises:
            DynError: They do not.
        """
        self.restore()
        if mode != self.mode and not {mode, self.mode} <= {ALONE, PAIR}:
            self.end(CONTROL)
        self.mode = mode
        if mode == PAIR:
            self._destroy_sender()
            self._start(ROBOT)
        else:
            self.end(ROBOT)
            if self._sender is None:
                node = self.live.node
                self._sender = node.create_publisher(JointState, "joint_states", 1)
            self.feed = {**self.normal, "on": True}
        self._start(CONTROL)
        for kind in (COMMANDS, APPLIED) if mode == PAIR else (COMMANDS,):
            if not self.flows(kind, PATIENCE):
                outputs = [x.lines[-1] for x in self.processes.values() if x.lines]
                raise DynError(f"no effort within {PATIENCE:g} s: {'; '.join(outputs)}")

    def flows(self, kind: str, patience: float) -> bool:
        """Return whether efforts that are not zero come within a time."""
        self.seen[kind].clear()

        def enough() -> bool:
            last = self.seen[kind][-FLOWING:]
            return len(last) == FLOWING and all(x.values.any() for x in last)

        return self.live.until(enough, patience)

    def restore(self) -> None:
        """Undo what a fault left behind; processes that ended stay so."""
        for resource in self._more:
            resource()
        self._more = []
        for process in self.processes.values():
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
        self.feed = {**self.normal, "on": self._sender is not None}

    def _destroy_sender(self) -> None:
        if self._sender is not None:
            self.live.node.destroy_publisher(self._sender)
            self._sender = None

    def _start(self, name: str) -> None:
        """Start a node if it does not run."""
        process = self.processes.get(name)
        if process is not None and process.popen.poll() is None:
            return
        entry = SIMULATOR if name == ROBOT else COMPUTED_TORQUE
        more: list[str] = []
        if name == CONTROL and self.mode not in (ALONE, PAIR):
            entry = replace(entry, module="ros_nodes.tools.faulty_controller")
            more = ["-p", f"inverse_dynamics.plugin_name:=fails_by_{self.mode}"]
        arguments = [*ros_arguments(entry, self.params), *more]
        self.processes[name] = Process(entry, arguments, os.environ, show=False)

    def end(self, name: str) -> None:
        """End a node if it runs."""
        process = self.processes.pop(name, None)
        if process is not None:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
            process.end()

    def close(self) -> None:
        """End all nodes."""
        self.restore()
        for name in list(self.processes):
            self.end(name)

    # ---- faults

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal to the process of a node."""
        self.processes[name].popen.send_signal(number)

    def fail_solver(self) -> None:
        """Let the solver of the controller fail from now on."""
        self.send_signal(CONTROL, signal.SIGUSR1)

    def second_source(self) -> None:
        """Send other joint states, too, between those that are right."""
        node = self.live.node
        sender = node.create_publisher(JointState, "joint_states", 1)

        def send() -> None:
            message = JointState(name=list(self.names))
            message.position = [x + 1.0 for x in self.normal["q"]]
            message.velocity = list(self.normal["qd"])
            message.header.stamp = node.get_clock().now().to_msg()
            sender.publish(message)

        timer = node.create_timer(PERIOD, send)
        self._more += [
            lambda: node.destroy_timer(timer),
            lambda: node.destroy_publisher(sender),
        ]

    def wrong_transitions(self) -> None:
        """Ask for transitions that an active node does not have."""
        node = self.live.node
        client = node.create_client(ChangeState, f"{CONTROL}/change_state")
        self._more.append(lambda: node.destroy_client(client))
        self.live.until(client.service_is_ready, 5.0)
        for number in (1, 2, 3, 77):
            transition = Transition(id=number)
            client.call_async(ChangeState.Request(transition=transition))

    def long_trajectory(self) -> None:
        """Have another process send a trajectory of 100 000 points."""
        pairs = zip(self.names, self.normal["q"].tolist(), strict=True)
        places = [f"{name}={position!r}" for name, position in pairs]
        command = [sys.executable, "-m", "ros_nodes.tools.long_trajectory", *places]
        process = subprocess.Popen(command)
        self._more.append(process.wait)

    def begin(self) -> float:
        """Forget what was seen and said; return the time [s]."""
        self.said.clear()
        self._sent.clear()
        for seen in self.seen.values():
            seen.clear()
        return time.monotonic()

    def longest_pause(self, since: float) -> float:
        """Return the longest time without a joint state [s]."""
        applied = [x.t for x in self.seen[APPLIED]]
        times = applied if self.mode == PAIR else self._sent
        return float(np.diff([since, *times, time.monotonic()]).max())

    def log(self) -> list[str]:
        """Return what the controller has printed so far."""
        return self.processes[CONTROL].lines

    def watch(self, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
        """Listen for a time, or until something holds."""
        self.live.until(done, seconds)

    def worst_said(self) -> str:
        """Return the most serious diagnostics of the nodes."""
        said: Mapping[str, tuple[int, str]] = self.said
        if not said:
            return "-"
        who = max(said, key=lambda name: said[name][0] % 3 if said[name][0] else 0)
        return f"{who}: {said[who][1]}"
