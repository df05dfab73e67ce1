"""Test stand of the controller's node: starts nodes, sends states, records efforts."""

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
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dyn_core.errors import DynError
from ros_nodes.graphs import COMPUTED_TORQUE, EFFORTS, GUARD, SIMULATOR, ros_arguments
from ros_nodes.processes import Process
from ros_nodes.tools.faults import (
    APPLIED,
    CLOCK,
    COMMANDS,
    HOLDING,
    INACTIVE,
    MOVING,
    PAIR,
    PERIOD,
    UNGUARDED,
    Fault,
)
from ros_nodes.tools.lifecycle import state
from ros_nodes.tools.live import ASKED, Live
from ros_nodes.tools.neighbours import TRAJECTORIES

PATIENCE = 30.0  # longest wait for efforts and responses [s]
FLOWING = 20  # number of efforts, none zero, after which they flow
WAY, TIME = 0.05, 30.0  # displacement and duration of a slow trajectory [rad | m, s]
SENT = 5  # number of attempts to send it
OUTSET = 1e4  # first simulated time [s]
LEVELS = ("OK", "WARN", "ERROR", "STALE")
# Label of the state after a transition, by the id of the transition.
GOALS = {
    Transition.TRANSITION_ACTIVATE: "active",
    Transition.TRANSITION_DEACTIVATE: "inactive",
}
CONTROL, ROBOT = COMPUTED_TORQUE.executable, SIMULATOR.executable
WATCHER = GUARD.executable


class SeenEffort(NamedTuple):
    """A received effort, `values` (n,) [N·m | N], and its time `t`, monotonic [s]."""

    t: float
    values: np.ndarray


class NodeStand:
    """The nodes under test, and a node that sends joint states to them.

    Attributes:
        joint: Index of the joint with faults.
        normal: The feed without faults.
        feed: Properties of the sent joint states: names, q, qd; on: whether states are
            sent; alter: function of q, qd and the state's index that returns the
            numbers to send; age and pace (step) of the stamps [s]; stamped: whether
            there are stamps; times: copies of each state; lost: function of the index,
            whether the state is lost; burst: number of states sent at once; jitter:
            largest delay [s].
        last: Last effort before `begin`, (n,) [N·m | N]; zero before the first.
        seen: Received efforts: COMMANDS, sent to the robot; APPLIED, which act on it.
        said: Level and message of the last diagnostics by node.
        mode, solver, unguarded: As the present fault needs them: its mode; the failure
            of the solver, else empty; whether the controller waits for a guard.
        doing: HOLDING, MOVING, INACTIVE, or another word after a fault.
    """

    def __init__(
        self,
        live: Live,
        names: tuple[str, ...],
        q: np.ndarray,
        params: str,
        seed: int,
    ) -> None:
        """Create publishers, subscriptions and the timer on the node of `live`.

        No node is started, and no states are sent yet. The normal feed has the
        positions q and velocities of 0.02 rad/s or m/s. The joint with faults is chosen
        at random.

        Args:
            live: Connection to the nodes.
            names: Names of the n joints.
            q: Positions of the robot, (n,) [rad | m].
            params: Parameter file of the nodes.
            seed: Seed of the random number generator.
        """
        self.live, self.names, self.params = live, names, params
        self.rng = np.random.default_rng(seed)
        self.joint = int(self.rng.integers(len(names)))
        self.normal: dict[str, Any] = {
            "names": list(names), "q": q, "qd": np.full(len(names), 0.02),
            "on": False, "age": 0.0, "pace": PERIOD, "stamped": True, "times": 1,
            "alter": lambda q, qd, k: (q, qd), "lost": lambda k: False, "burst": 1,
            "jitter": 0.0,
        }  # fmt: skip
        self.feed: dict[str, Any] = dict(self.normal)
        self.seen: dict[str, list[SeenEffort]] = {COMMANDS: [], APPLIED: []}
        self.said: dict[str, tuple[int, str]] = {}
        self.last = np.zeros(len(names))
        self.processes: dict[str, Process] = {}
        self.mode = self.solver = self.doing = ""
        self.unguarded, self.restored = False, 0
        self._stamp, self._simulated = 0.0, OUTSET
        self._count, self._late = 0, list[JointState]()
        self._more: list[Any] = []
        self._waited: dict[str, int] = {}
        node = live.node
        self._transition = node.create_client(ChangeState, f"{CONTROL}/change_state")
        self._clock = node.create_publisher(Clock, "/clock", 1)
        self._leader = node.create_publisher(JointTrajectory, TRAJECTORIES, 1)
        node.create_subscription(Float64MultiArray, EFFORTS, self._on_command, 10)
        node.create_subscription(JointState, "joint_states", self._on_state, 10)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_said, 10)
        self._sender: Any = None
        node.create_timer(PERIOD, self._send)

    # ---- messages

    def _on_command(self, message: Float64MultiArray) -> None:
        """Record the efforts of a message in seen[COMMANDS], whoever sent it."""
        efforts = np.array(message.data)
        self.seen[COMMANDS].append(SeenEffort(time.monotonic(), efforts))

    def _on_state(self, message: JointState) -> None:
        """Record the efforts of a message, if it has some, in seen[APPLIED]."""
        efforts = np.array(message.effort)
        if efforts.size:  # the stand itself sends states without efforts
            self.seen[APPLIED].append(SeenEffort(time.monotonic(), efforts))

    def _on_said(self, message: DiagnosticArray) -> None:
        """Record level and message in `said`, by node name without namespace."""
        for status in message.status:
            who = status.name.partition(":")[0].rpartition("/")[2]
            self.said[who] = status.level[0], status.message

    def _send(self) -> None:
        """Publish /clock in mode CLOCK, and joint states if the feed is on.

        With pace 0 simulated time stands. The stamp of a state is simulated time in
        mode CLOCK, else the present time, or with another pace than PERIOD the last
        stamp plus the pace; the feed's age is subtracted. With jitter, the method
        sleeps.
        """
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
        count, self._count = self._count, self._count + 1
        if feed["lost"](count):
            return
        q, qd = feed["alter"](np.asarray(feed["q"]), np.asarray(feed["qd"]), count)
        message = JointState(name=feed["names"], position=q, velocity=qd)
        if feed["stamped"]:
            message.header.stamp = stamp
        self._late += [message] * feed["times"]
        if len(self._late) < feed["burst"]:
            return
        if feed["jitter"]:
            time.sleep(self.rng.uniform(0.0, feed["jitter"]))
        for message in self._late:
            self._sender.publish(message)
        self._late.clear()

    # ---- modes

    def ensure(self, fault: Fault) -> None:
        """Start the nodes that a fault needs, and bring the controller to its state.

        The previous fault is undone. Nodes that the fault cannot use start anew.
        """
        self.restore()
        mode, before = fault.mode, self.mode
        if mode != before and CLOCK in (mode, before):
            self.end(CONTROL)
        if fault.solver or self.solver:
            self.end(CONTROL)  # its solver has failed
        if WATCHER in self.processes:
            self.end(WATCHER)  # its stop is latched
            self.end(CONTROL)
        unguarded = fault.state == UNGUARDED
        if unguarded or self.unguarded:
            self.end(CONTROL)
        self.mode, self.solver, self.unguarded = mode, fault.solver, unguarded
        if mode == PAIR:
            self._destroy_sender()
            self.end(ROBOT)
            if self.doing != INACTIVE:  # it may have stopped as the arm fell
                self.doing = "fallen"
        else:
            self.end(ROBOT)
            if self._sender is None:
                node = self.live.node
                self._sender = node.create_publisher(JointState, "joint_states", 1)
            self.feed = {**self.normal, "on": True}
        if unguarded:
            self._start(CONTROL)
            said = "waiting for the guard"
            self._await(lambda: said in self._last_said(CONTROL), "no wait")
            return
        if self._start(CONTROL):
            self.doing = HOLDING
        elif self.doing != fault.state or fault.state == MOVING:
            self._hold()
        if mode == PAIR:  # controller first: a fast falling arm is stopped
            self._await(lambda: any(": active " in x for x in self.log()), "not active")
            self._start(ROBOT)
        self._reach(fault.state)
        if fault.guard:
            self._start(WATCHER)
            self._await(lambda: "torque stands" in self._last_said(WATCHER), "no guard")

    def _hold(self) -> None:
        """Make a running controller hold: a new activation clears earlier stops."""
        if self.doing == HOLDING:
            return
        if self.doing == INACTIVE:  # a stop while inactive outlasts this activation
            self._change(Transition.TRANSITION_ACTIVATE)
        self._change(Transition.TRANSITION_DEACTIVATE)
        self._change(Transition.TRANSITION_ACTIVATE)
        self.doing = HOLDING

    def _reach(self, state: str) -> None:
        """Bring a controller to HOLDING, MOVING or INACTIVE, and set `doing`.

        It must hold, or be in the state already; for MOVING a trajectory is sent again.
        """
        if self.doing == state == INACTIVE:
            return
        self._drive()
        if state == INACTIVE:
            self._change(Transition.TRANSITION_DEACTIVATE)
        elif state == MOVING:
            self._move()
        self.doing = state

    def _drive(self) -> None:
        """Wait until efforts flow; in mode PAIR, of the control law, not of a stop.

        A simulated arm falls until its efforts arrive; if that takes long, it is too
        fast for the envelope of the controller, which is then activated again.
        """
        for _ in range(SENT):
            for kind in (COMMANDS, APPLIED) if self.mode == PAIR else (COMMANDS,):
                self._await(partial(self.flowing, kind), "no effort", kind)
            if self.mode != PAIR:
                return
            self.said.pop(CONTROL, None)
            self._await(lambda: CONTROL in self.said, "no diagnostics")
            said = self._last_said(CONTROL).split("; ")
            if not any(x.startswith("stopped") for x in said):
                return
            self._change(Transition.TRANSITION_DEACTIVATE)
            self._change(Transition.TRANSITION_ACTIVATE)
        raise DynError(f"the controller stops: {self._last_said(CONTROL)}")

    def _move(self) -> None:
        """Send a slow trajectory until it is followed: the first one may be lost.

        It is refused while an arm that fell moves into a stop; the controller is then
        activated again.
        """
        self._await(lambda: self._leader.get_subscription_count() > 0, "no subscriber")
        before = len(self.log())

        def followed() -> bool:
            return any("following a" in line for line in self.log()[before:])

        for _ in range(SENT):
            self.lead()
            if self.live.until(followed, PATIENCE / SENT):
                return
            if any("trajectory refused" in line for line in self.log()[before:]):
                before = len(self.log())
                self._change(Transition.TRANSITION_DEACTIVATE)
                self._change(Transition.TRANSITION_ACTIVATE)
        raise DynError(f"no trajectory is followed: {self.log()[-1]}")

    def lead(
        self, names: list[str] | None = None, way: float = -WAY, stamp: int = 0
    ) -> None:
        """Send a slow trajectory with one point, to be reached in TIME (30) seconds.

        Of `names` (at most n; None: all), name k gets the position of the robot's joint
        k. `way` is the displacement of each joint from its position in `normal`
        [rad | m], `stamp` the header's stamp [s]; 0: start now.
        """
        places = np.array(self.normal["q"]) + way
        positions = places[: len(names)] if names else places
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.sec = int(TIME)
        message = JointTrajectory(joint_names=names or list(self.names), points=[point])
        message.header.stamp.sec = stamp
        self._leader.publish(message)

    def _change(self, transition: int) -> None:
        """Request a transition of the controller by its id, and wait for the response.

        A response may be lost: a node that has not yet discovered its client drops it.
        The state then tells whether the transition was made; if not, it is requested
        again.
        """
        request = ChangeState.Request(transition=Transition(id=transition))
        for _ in range(ASKED):
            self._await(self._transition.service_is_ready, "no service of transitions")
            future = self._transition.call_async(request)
            if self.live.until(future.done, PATIENCE / ASKED):
                if not future.result().success:
                    raise DynError(f"transition {transition} failed: {self.log()[-1]}")
                return
            self._transition.remove_pending_request(future)
            if state(self.live, CONTROL).label == GOALS[transition]:
                return
        raise DynError(
            f"no answer to transition {transition} within {PATIENCE:g} s:"
            f" {self.worst_said()}; {self.log()[-1]}"
        )

    def _await(self, done: Callable[[], Any], what: str, kind: str = "") -> None:
        """Wait until `done`, at most PATIENCE; first clear the efforts of `kind`."""
        if kind:
            self.seen[kind].clear()
        if not self.live.until(done, PATIENCE):
            outputs = [x.lines[-1] for x in self.processes.values() if x.lines]
            said = f"{self.worst_said()}; {'; '.join(outputs)}"
            raise DynError(f"{what} within {PATIENCE:g} s: {said}")

    def flowing(self, kind: str) -> bool:
        """Return whether the last FLOWING (20) efforts of a kind exist, none zero."""
        last = self.seen[kind][-FLOWING:]
        return len(last) == FLOWING and all(x.values.any() for x in last)

    def restore(self) -> None:
        """Undo the effects of a fault; processes that have ended are not restarted.

        Suspended processes continue; the end of a neighbour is waited for.
        """
        self.restored += 1
        for resource in self._more:
            resource()
        self._more = []
        for process in self.processes.values():
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
        self.feed = {**self.normal, "on": self._sender is not None}
        self._late.clear()

    def _destroy_sender(self) -> None:
        """Destroy the publisher of joint states, if there is one."""
        if self._sender is not None:
            self.live.node.destroy_publisher(self._sender)
            self._sender = None

    def _start(self, name: str) -> bool:
        """Start a node if it is not running; return whether it was started."""
        process = self.processes.get(name)
        if process is not None and process.popen.poll() is None:
            return False
        entries = {CONTROL: COMPUTED_TORQUE, ROBOT: SIMULATOR, WATCHER: GUARD}
        entry, more = entries[name], []
        if name == CONTROL and self.mode == CLOCK:
            more = ["-p", "use_sim_time:=true"]
        elif name == CONTROL and self.solver:
            entry = replace(entry, module="ros_nodes.tools.faulty_controller")
            more = ["-p", f"inverse_dynamics.plugin_name:=fails_by_{self.solver}"]
        if name == CONTROL and self.unguarded:
            more = ["-p", "require_guard:=true"]
        self.said.pop(name, None)
        arguments = [*ros_arguments(entry, self.params), *more]
        self.processes[name] = Process(entry, arguments, os.environ, show=False)
        return True

    def end(self, name: str) -> None:
        """End a node if it runs, also if it is suspended, and forget its process."""
        process = self.processes.pop(name, None)
        if process is not None:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
            process.end()

    def end_all(self) -> None:
        """Undo the effects of a fault, see `restore`, and end all nodes.

        Mode, solver and `unguarded` stay, and hold for nodes that are started later.
        """
        self.restore()
        for name in list(self.processes):
            self.end(name)

    # ---- observations

    def begin(self) -> float:
        """Clear recorded efforts and diagnostics; return the time, monotonic [s].

        The last command is stored in `last`; the index of states begins at 0 again.
        """
        self.said.clear()
        self._count = 0
        for effort in self.seen[COMMANDS][-1:]:
            self.last = effort.values
        self._waited = self._waits()
        for seen in self.seen.values():
            seen.clear()
        return time.monotonic()

    def _waits(self) -> dict[str, int]:
        """Return how long each thread has waited for a processor so far [ns]."""
        waits = {}
        numbers = [os.getpid(), *(x.popen.pid for x in self.processes.values())]
        for number in numbers:
            for path in glob.glob(f"/proc/{number}/task/*/schedstat"):
                with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
                    waits[path] = int(file.read().split()[1])
        return waits

    def longest_pause(self) -> float:
        """Return the largest total time that a thread has waited for a processor [s].

        It counts from `begin`, over all processes; 0 if the system does not report it.
        """
        before, now = self._waited, self._waits()
        waited = (ns - before.get(path, 0) for path, ns in now.items())
        return 1e-9 * max(waited, default=0)

    def log(self) -> list[str]:
        """Return the lines that the controller has printed so far; the list grows."""
        return self.processes[CONTROL].lines

    def watch(self, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
        """Receive messages for a time [s], or until a condition holds."""
        self.live.until(done, seconds)

    def _last_said(self, name: str) -> str:
        """Return the last diagnostics message of a node; empty if there is none."""
        return self.said.get(name, (0, ""))[1]

    def worst_said(self) -> str:
        """Return the most serious of the last diagnostics of all nodes.

        The form is "NODE LEVEL: message", or "-"; ERROR precedes WARN, then others.
        """
        said: Mapping[str, tuple[int, str]] = self.said
        if not said:
            return "-"
        who = max(said, key=lambda name: said[name][0] % 3 if said[name][0] else 0)
        level, message = said[who]
        return f"{who} {LEVELS[level]}: {message}"
