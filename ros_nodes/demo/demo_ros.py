"""Demo over ROS 2: starts the two nodes, sends the trajectory, records."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import dyn_core as dyn
from dyn_core.errors import one_line
from dyn_core.validation import dump_yaml
from ros_nodes.demo.demo_plan import GAINS, Outcome, Waypoints
from ros_nodes.graphs import GRAPHS
from ros_nodes.processes import Process, Processes, private_environment
from ros_nodes.running.runtime import make_executor, spin_once

PATIENCE = 30.0  # longest start-up time of the nodes [s]
REPORTED = 60.0  # period of the status lines of a long run [s]
SETTLING = 3.0  # longest time for the arm to come to rest [s]
TRIES = 5  # largest number of motions to the start
MISSED = 0.05  # share of missed cycles from which the machine is called busy
REACHED = "trajectories reached"  # key in /diagnostics of the controller
AT_START = 1e-3  # largest distance from the start at which the motion begins [rad | m]


def run(model: dyn.Model, waypoints: Waypoints, settings: dict[str, Any]) -> Outcome:
    """Run the two nodes on 127.0.0.1, and return the recorded results.

    os.environ and settings["params"] are changed; rclpy is initialized and shut down.
    The nodes are ended in any case.

    Args:
        model: Robot.
        waypoints: Motion.
        settings: Result of demo_command._settings, with `repeat`, the number of
            motions, and `cpu`, the CPU of both nodes or None.

    Raises:
        DynError: A node ends or does not start, the start of the motion is not reached,
            or the reference does not move. A motion that is not followed to its end
            only makes `followed` of the result False.
        OSError: The system has no /proc.
    """
    environment = private_environment()
    os.environ.update(environment)
    with tempfile.TemporaryDirectory() as folder:
        params = os.path.join(folder, "demo.yaml")
        with open(params, "w", encoding="utf-8") as file:
            file.write(dump_yaml(_parameters(model, waypoints, settings)))
        entries = GRAPHS["demo"].nodes
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        try:
            with Processes(entries, params, environment) as processes:
                node = _DemoNode(model)
                outcome = node.see(processes, waypoints, settings["repeat"])
                outcome.facts["exit statuses"] = str(processes.end())
                return outcome
        finally:
            rclpy.try_shutdown()


def _parameters(
    model: dyn.Model, waypoints: Waypoints, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return a parameter file for both nodes; settings["params"] changes in place."""
    nodes = settings["params"]
    sim, control = nodes["simulator"], nodes["computed_torque"]
    names = list(model.joint_names)
    robot = settings["robot"]
    robot = os.path.abspath(robot) if os.path.isfile(robot) else robot
    for node in (sim, control):
        node |= {"robot_description_file": robot, "joints": list(names)}
        node |= settings["reading"]
        if settings["cpu"] is not None:
            node["cpu_affinity"] = [settings["cpu"]]
    sim |= {
        "root_joint": "fixed",
        "update_rate": settings["rate"],
        "step.plugin_name": settings["step"].name,
        "forward_dynamics.plugin_name": settings["forward_dynamics"]
        .for_model(model)
        .name,
        "initial_positions": [float(x) for x in waypoints.start],
        "diagnostic_updater.period": 0.2,
    }
    control |= {
        "inverse_dynamics.plugin_name": settings["inverse_dynamics"]
        .for_model(model)
        .name,
        "diagnostic_updater.period": 0.2,
        "publish_rate": 100.0,
    }
    for name in names:
        for key, gain in zip(("p", "d"), GAINS, strict=True):
            control.setdefault(f"gains.{name}.{key}", gain)
    return {name: {"ros__parameters": values} for name, values in nodes.items()}


def said(processes: Processes) -> str:
    """Return the last warning or error in the controller's log, for error messages."""
    (lines,) = (p.lines for p in processes.all if p.name == "computed_torque")
    for line in reversed(lines):
        if "[WARN]" in line or "[ERROR]" in line:
            return one_line(line.partition("]: ")[2] or line)
    return "the controller logged no warning"


def followed(reached: int, sent: int, processes: Processes) -> str:
    """Return how many motions were followed, with the last warning if not all were."""
    why = f"; the last warning: {said(processes)}" if reached < sent else ""
    return f"{reached} of {sent} followed to their end{why}"


@dataclass(frozen=True)
class Usage:
    """Resources that a process uses.

    `t`: monotonic [s]; `seconds`: processor time so far [s]; `memory`: resident [byte].
    """

    name: str
    t: float
    seconds: float
    memory: int
    threads: int

    @classmethod
    def of(cls, process: Process) -> Usage:
        """Return the present resource usage of a process, from /proc."""
        with open(f"/proc/{process.popen.pid}/stat", encoding="utf-8") as file:
            # proc(5): the name in brackets, field 2, may contain spaces.
            fields = file.read().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return cls(
            process.name,
            time.monotonic(),
            ticks / os.sysconf("SC_CLK_TCK"),
            int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
            int(fields[17]),
        )

    def compared(self, later: Usage) -> str:
        """Return the use at a later time in words: share of a core, memory, threads."""
        share = (later.seconds - self.seconds) / (later.t - self.t)
        return (
            f"{self.name} {share:.0%} of a core, {later.memory / 1e6:.1f} MB"
            f" ({(later.memory - self.memory) / 1e3:+.0f} kB),"
            f" {later.threads} threads ({later.threads - self.threads:+d})"
        )


def check_running(processes: Processes) -> None:
    """Raise a DynError with its last output if a process has ended."""
    ended = processes.ended()
    if ended:
        last = ended[0].lines[-1] if ended[0].lines else "nothing"
        raise dyn.DynError(f"{ended[0].name} ended by itself; last output: {last}")


def usage_of(processes: Processes) -> list[Usage]:
    """Return the present resource usage of each process."""
    try:
        return [Usage.of(process) for process in processes.all]
    finally:  # a process that has ended has an entry in /proc, or none
        check_running(processes)


class _DemoNode:
    """A node that sends the trajectory and records the topics.

    `rows`: time, monotonic [s], position and reference, (n,) each [rad | m]. `values`:
    last values of /diagnostics of both nodes, by key. `ready`: start-up time of each
    node as a phrase. `ticks`: time, monotonic [s], and the simulator's numbers of
    cycles, missed cycles and answered states.
    """

    def __init__(self, model: dyn.Model) -> None:
        self.model = model
        self.node = Node("dyn_demo")
        self.executor = make_executor()
        self.executor.add_node(self.node)
        self.rows: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.values: dict[str, str] = {}
        self.ready: dict[str, str] = {}
        self.ticks: list[tuple[float, ...]] = []  # see class
        self.reference: np.ndarray | None = None
        create = self.node.create_subscription
        create(JointState, "computed_torque/reference", self._on_reference, 10)
        create(JointState, "computed_torque/error", self._on_error, 10)
        create(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.sender = self.node.create_publisher(
            JointTrajectory, "computed_torque/joint_trajectory", 10
        )

    def _on_reference(self, message: JointState) -> None:
        """Store the reference position in `reference`, in the order of the message."""
        self.reference = np.array(message.position)

    def _on_error(self, message: JointState) -> None:
        """Record a sample; error, reference - position, is of the last reference."""
        if self.reference is None:
            return
        error = np.array(message.position)
        self.rows.append((time.monotonic(), self.reference - error, self.reference))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Store `values`, start-up times in `ready`, and cycle counts in `ticks`."""
        for status in message.status:
            values = {value.key: value.value for value in status.values}
            self.values.update(values)
            if "active after [s]" in values:
                node = status.name.partition(":")[0]
                self.ready[node] = f"{node} {values['active after [s]']} s"
            if "cycles" in values:
                counts = (
                    int(values[k]) for k in ("cycles", "missed cycles", "answered")
                )
                self.ticks.append((time.monotonic(), *counts))

    def see(self, processes: Processes, waypoints: Waypoints, repeat: int) -> Outcome:
        """Wait for the nodes, send the motion, and return the record of all repeats.

        The arm is first moved to the start. A motion that is not followed to its end
        only makes `followed` of the result False.
        """
        self._until(
            lambda: (
                bool(self.rows)
                and self.sender.get_subscription_count() > 0
                and "answered" in self.values
                and int(self.values["answered"]) > 20
            ),
            PATIENCE,
            processes,
            "the nodes did not come up",
        )
        self._rest(0.0, processes)
        self._go_to_start(processes, waypoints.start)
        self.values.pop(REACHED, None)  # it may not count the last motion to the start
        self._until(
            lambda: REACHED in self.values, PATIENCE, processes, "no diagnostics came"
        )
        before = int(self.values[REACHED])
        self.rows.clear()
        self.ticks.clear()
        started = time.monotonic()
        usage = usage_of(processes)
        shown = started
        for k in range(repeat):
            self._move(processes, waypoints)
            if time.monotonic() - shown > REPORTED and k + 1 < repeat:
                shown = time.monotonic()
                print(f"{k + 1} of {repeat} motions: {self._loop()}", flush=True)
        moved = max(np.ptp(np.array([row[2] for row in self.rows]), axis=0))
        if moved < 0.01:
            raise dyn.DynError(f"the trajectory was not followed: {said(processes)}")
        reached = self._reached(before, repeat, processes)
        facts = {
            "run": "two processes over ROS 2 topics on 127.0.0.1",
            "loop": self._loop(),
            "state to effort": f"p50 {self.values['round trip p50 [us]']} us,"
            f" p99 {self.values['round trip p99 [us]']} us at the end;"
            f" p50, p99, p99.9 since the start"
            f" {self.values['all round trips p50, p99, p99.9 [us]']} us",
            "largest effort [of limit]": self.values["largest effort [of limit]"],
            "trajectories": followed(reached, repeat, processes),
            "processes": ", ".join(
                before.compared(later)
                for before, later in zip(usage, usage_of(processes), strict=True)
            ),
            "start to active": ", ".join(self.ready.values()),
            "solvers": ", ".join(
                self.values[k] for k in ("forward dynamics", "step", "inverse dynamics")
            )
            + f"; engine {self.values['engine']}",
        }
        t = np.array([row[0] - started for row in self.rows])
        q, q_ref = (np.array([row[k] for row in self.rows]) for k in (1, 2))
        names, all_followed = self.model.joint_names, reached >= repeat
        return Outcome(names, t, q, q_ref, facts, all_followed)

    def _reached(self, before: int, repeat: int, processes: Processes) -> int:
        """Return how many motions were followed, after up to SETTLING for the last."""
        deadline = time.monotonic() + SETTLING
        self._until(
            lambda: (
                int(self.values[REACHED]) - before >= repeat
                or time.monotonic() > deadline
            ),
            2 * SETTLING, processes, "the clock stopped",
        )  # fmt: skip
        return int(self.values[REACHED]) - before

    def _go_to_start(self, processes: Processes, start: np.ndarray) -> None:
        """Move the arm from where the controller holds it to the start of the motion.

        On a busy machine a trajectory may be dropped, and is sent again. The
        controller's reference must have been received.
        """
        for left in reversed(range(TRIES + 1)):
            assert self.reference is not None
            gap = np.abs(start - self.reference)
            if gap.max() < AT_START:
                return
            if not left:
                break
            # A quintic from rest to rest is at most 15/8 times as fast as its mean.
            fastest = 15 / 8 * float((gap / self.model.velocity_limit.clip(0.01)).max())
            duration = max(2 * fastest, 0.5)
            self._send(np.array([duration]), start[None])
            self._rest(duration + 0.1, processes)
        raise dyn.DynError(f"the start was not reached in {TRIES} motions")

    def _move(self, processes: Processes, waypoints: Waypoints) -> None:
        """Send the motion; samples are added to `rows` until 0.5 s after its end."""
        self._send(waypoints.times, waypoints.positions)
        sent = time.monotonic()
        duration = float(waypoints.times[-1]) + 0.5
        self._until(
            lambda: time.monotonic() - sent > duration,
            duration + 5,
            processes,
            "the clock stopped",
        )

    def _loop(self) -> str:
        """Return rate, missed cycles and answered states of the simulator as text."""
        if len({cycles for _, cycles, *_ in self.ticks}) < 2:
            return "unknown: on this busy machine no two diagnostics came"
        first, last = self.ticks[0], self.ticks[-1]
        span, cycles, missed, answers = (
            b - a for a, b in zip(first, last, strict=True)
        )
        note = ""
        if missed > MISSED * (cycles + missed):
            note = "; this machine is busy: a quiet one does better"
        return (
            f"{cycles / span:.0f} Hz, {missed} of {cycles + missed} cycles missed,"
            f" {100 * answers / cycles:.2f} % of states answered{note}"
        )

    def _rest(self, duration: float, processes: Processes) -> None:
        """Wait until a motion is over, then up to SETTLING (3 s) for the arm to rest.

        On a busy machine late states keep the arm moving by milliradians: the summary
        tells whether the motion was followed.
        """
        over = time.monotonic() + duration
        self._until(
            lambda: (now := time.monotonic()) > over
            and (self._settled() or now > over + SETTLING),
            duration + 2 * SETTLING, processes, "the clock stopped",
        )  # fmt: skip

    def _settled(self) -> bool:
        """Return whether the last 20 samples have errors below 1e-3 rad or m."""
        errors = [np.abs(q - q_ref).max() for _, q, q_ref in self.rows[-20:]]
        return len(errors) == 20 and max(errors) < 1e-3

    def _send(self, times: np.ndarray, positions: np.ndarray) -> None:
        """Send a trajectory that rests at each of the positions, (points, nv)."""
        message = JointTrajectory(joint_names=list(self.model.joint_names))
        still = [0.0] * self.model.nv
        for t, q in zip(times, positions, strict=True):
            point = JointTrajectoryPoint(positions=q.tolist())
            point.velocities = point.accelerations = still
            point.time_from_start = Duration(seconds=float(t)).to_msg()
            message.points.append(point)
        self.sender.publish(message)

    def _until(
        self,
        done: Callable[[], bool],
        patience: float,
        processes: Processes,
        message: str,
    ) -> None:
        """Spin until `done`; DynError after `patience` [s] or the end of a node."""
        deadline = time.monotonic() + patience
        while not done():
            spin_once(self.executor, 0.05)
            check_running(processes)
            if time.monotonic() > deadline:
                raise dyn.DynError(
                    f"{message} within {patience:.0f} s; {self._last_seen()}"
                )

    def _last_seen(self) -> str:
        """Return the last sample, with the joint of the largest error, as a phrase."""
        if not self.rows:
            return "no sample of the tracking error came"
        t, q, reference = self.rows[-1]
        error = q - reference
        k = int(np.abs(error).argmax())
        return (
            f"{len(self.rows)} samples, the last {time.monotonic() - t:.1f} s ago:"
            f" joint '{self.model.joint_names[k]}' {error[k]:.2g} from its reference"
        )
