"""A test stand for the controller's node: it starts nodes, feeds them and listens."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dyn_core.errors import DynError
from ros_nodes.graphs import COMPUTED_TORQUE, EFFORTS, GUARD, SIMULATOR, ros_arguments
from ros_nodes.processes import Process
from ros_nodes.tools import long_trajectory
from ros_nodes.tools.faults import (
    ALONE,
    APPLIED,
    CLOCK,
    COMMANDS,
    HOLDING,
    INACTIVE,
    MOVING,
    PAIR,
    PERIOD,
    Fault,
)
from ros_nodes.tools.live import Live

PATIENCE = 30.0  # for efforts to flow, and for answers [s]
FLOWING = 20  # efforts that show that they do
WAY, TIME = 0.05, 30.0  # of a slow trajectory [rad | m, s]
SENT = 5  # times that it is sent
OUTSET = 1e4  # of simulated time [s]
CONTROL, ROBOT = COMPUTED_TORQUE.executable, SIMULATOR.executable
WATCHER = GUARD.executable


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
            stamps [s]; times that each is sent; share that is lost.
        seen: Efforts by COMMANDS or APPLIED.
        said: Level and message of the diagnostics by node.
        values: Those of the controller's diagnostics.
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
            "on": False, "age": 0.0, "pace": PERIOD, "times": 1, "lost": 0.0,
        }  # fmt: skip
        self.feed: dict[str, Any] = dict(self.normal)
        self.seen: dict[str, list[SeenEffort]] = {COMMANDS: [], APPLIED: []}
        self.said: dict[str, tuple[int, str]] = {}
        self.values: dict[str, str] = {}
        self.processes: dict[str, Process] = {}
        self.mode = self.doing = ""
        self._stamp, self._simulated = 0.0, OUTSET
        self._more: list[Any] = []
        self._waited: dict[str, int] = {}
        node = live.node
        self._transition = node.create_client(ChangeState, f"{CONTROL}/change_state")
        self._estop = node.create_client(Trigger, f"{CONTROL}/estop")
        self._clock = node.create_publisher(Clock, "/clock", 1)
        self._leader = node.create_publisher(JointTrajectory, long_trajectory.TOPIC, 1)
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
            if who == CONTROL:
                self.values = {row.key: row.value for row in status.values}

    def _send(self) -> None:
        """Send a joint state, if the test stand is to send them."""
        feed = self.feed
        if self.mode == CLOCK and feed["pace"]:
            self._simulated += feed["pace"]
            clock = Time(nanoseconds=int(1e9 * self._simulated)).to_msg()
            self._clock.publish(Clock(clock=clock))
        if not feed["on"] or self._sender is None:
            return
        if self.mode == CLOCK:
            self._stamp = self._simulated
        elif feed["pace"] == PERIOD:
            self._stamp = self.live.node.get_clock().now().nanoseconds * 1e-9
        else:
            self._stamp += feed["pace"]
        stamp = Time(nanoseconds=int(1e9 * (self._stamp - feed["age"]))).to_msg()
        if self.rng.random() < feed["lost"]:
            return
        message = JointState(name=feed["names"])
        message.position, message.velocity = list(feed["q"]), list(feed["qd"])
        message.header.stamp = stamp
        for _ in range(feed["times"]):
            self._sender.publish(message)

    # ---- modes

    def ensure(self, fault: Fault) -> None:
        """Start what a fault needs, and wait until the controller is in its state.

        Raises:
            DynError: It does not come there.
        """
        self.restore()
        mode = fault.mode
        if mode != self.mode and not {mode, self.mode} <= {ALONE, PAIR}:
            self.end(CONTROL)
        elif mode not in (ALONE, PAIR, CLOCK):
            self.end(CONTROL)  # its solver has failed
        if WATCHER in self.processes:
            self.end(WATCHER)  # its stop is latched
            self.end(CONTROL)
        self.mode = mode
        if mode == PAIR:
            self._destroy_sender()
            self.end(ROBOT)  # its robot has fallen
            self._start(ROBOT)
        else:
            self.end(ROBOT)
            if self._sender is None:
                node = self.live.node
                self._sender = node.create_publisher(JointState, "joint_states", 1)
            self.feed = {**self.normal, "on": True}
        if self._start(CONTROL):
            self.doing = HOLDING
        elif self.doing != fault.state or fault.state == MOVING:
            self._hold()
        self._reach(fault.state)
        if fault.guard:
            self._start(WATCHER)
            self._await(lambda: "torque stands" in self._last_said(WATCHER), "no guard")
            self._await(lambda: self.values.get("guards heard") == "1", "no beat")

    def _hold(self) -> None:
        """Have a controller that runs hold: what was before is forgotten."""
        if self.doing == HOLDING:
            return
        if self.doing == INACTIVE:  # a stop of that time outlasts this activation
            self._change(Transition.TRANSITION_ACTIVATE)
        self._change(Transition.TRANSITION_DEACTIVATE)
        self._change(Transition.TRANSITION_ACTIVATE)
        self.doing = HOLDING

    def _reach(self, state: str) -> None:
        """Lead a controller that holds, or is in a state already, to the state."""
        if self.doing == state == INACTIVE:
            return
        for kind in (COMMANDS, APPLIED) if self.mode == PAIR else (COMMANDS,):
            self._await(partial(self.flowing, kind), "no effort", kind)
        if state == INACTIVE:
            self._change(Transition.TRANSITION_DEACTIVATE)
        elif state == MOVING:
            self._move()
        self.doing = state

    def _move(self) -> None:
        """Send a slow trajectory until it is followed: the first one may be lost.

        One is refused while an arm that fell moves into a stop: it holds again first.
        """
        places = np.array(self.normal["q"]) - WAY
        point = JointTrajectoryPoint(positions=places.tolist())
        point.time_from_start.sec = int(TIME)
        message = JointTrajectory(joint_names=list(self.names), points=[point])
        self._await(lambda: self._leader.get_subscription_count() > 0, "no subscriber")
        before = len(self.log())

        def followed() -> bool:
            return any("following a" in line for line in self.log()[before:])

        for _ in range(SENT):
            self._leader.publish(message)
            if self.live.until(followed, PATIENCE / SENT):
                return
            if any("trajectory refused" in line for line in self.log()[before:]):
                before = len(self.log())
                self._change(Transition.TRANSITION_DEACTIVATE)
                self._change(Transition.TRANSITION_ACTIVATE)
        raise DynError(f"no trajectory is followed: {self.log()[-1]}")

    def _change(self, transition: int) -> None:
        """Have the controller change its state."""
        request = ChangeState.Request(transition=Transition(id=transition))
        self._await(self._transition.service_is_ready, "no service of transitions")
        future = self._transition.call_async(request)
        self._await(future.done, f"no answer to transition {transition}")
        if not future.result().success:
            raise DynError(f"transition {transition} failed: {self.log()[-1]}")

    def _await(self, done: Callable[[], Any], what: str, kind: str = "") -> None:
        """Wait until something holds, for efforts from now on."""
        if kind:
            self.seen[kind].clear()
        if not self.live.until(done, PATIENCE):
            outputs = [x.lines[-1] for x in self.processes.values() if x.lines]
            raise DynError(f"{what} within {PATIENCE:g} s: {'; '.join(outputs)}")

    def flowing(self, kind: str) -> bool:
        """Return whether the last efforts are not zero."""
        last = self.seen[kind][-FLOWING:]
        return len(last) == FLOWING and all(x.values.any() for x in last)

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

    def _start(self, name: str) -> bool:
        """Start a node if it does not run; return whether it was started."""
        process = self.processes.get(name)
        if process is not None and process.popen.poll() is None:
            return False
        entries = {CONTROL: COMPUTED_TORQUE, ROBOT: SIMULATOR, WATCHER: GUARD}
        entry, more = entries[name], []
        if name == CONTROL and self.mode == CLOCK:
            more = ["-p", "use_sim_time:=true"]
        elif name == CONTROL and self.mode not in (ALONE, PAIR):
            entry = replace(entry, module="ros_nodes.tools.faulty_controller")
            more = ["-p", f"inverse_dynamics.plugin_name:=fails_by_{self.mode}"]
        arguments = [*ros_arguments(entry, self.params), *more]
        self.processes[name] = Process(entry, arguments, os.environ, show=False)
        return True

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

    # ---- what is seen

    def begin(self) -> float:
        """Forget what was seen and said; return the time [s]."""
        self.said.clear()
        self._waited = self._waits()
        for seen in self.seen.values():
            seen.clear()
        return time.monotonic()

    def _waits(self) -> dict[str, int]:
        """Return for how long each thread has waited for a processor so far [ns]."""
        waits = {}
        numbers = [os.getpid(), *(x.popen.pid for x in self.processes.values())]
        for number in numbers:
            for path in glob.glob(f"/proc/{number}/task/*/schedstat"):
                with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
                    waits[path] = int(file.read().split()[1])
        return waits

    def longest_pause(self) -> float:
        """Return the longest time that a thread has waited for a processor [s].

        Since `begin`, of the threads of all processes here; 0 where the system does not
        say it.
        """
        before, now = self._waited, self._waits()
        waited = (ns - before.get(path, 0) for path, ns in now.items())
        return 1e-9 * max(waited, default=0)

    def log(self) -> list[str]:
        """Return what the controller has printed so far."""
        return self.processes[CONTROL].lines

    def watch(self, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
        """Listen for a time, or until something holds."""
        self.live.until(done, seconds)

    def _last_said(self, name: str) -> str:
        return self.said.get(name, (0, ""))[1]

    def worst_said(self) -> str:
        """Return the most serious diagnostics of the nodes."""
        said: Mapping[str, tuple[int, str]] = self.said
        if not said:
            return "-"
        who = max(said, key=lambda name: said[name][0] % 3 if said[name][0] else 0)
        return f"{who}: {said[who][1]}"
