"""`dyn move` by joints: a JointTrajectory to a node, and what becomes of it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dyn_core.errors import DynError, SettingError, unknown_name
from dyn_core.signals import ENDING, noted_signals
from ros_nodes.messages.trajectory_files import instant, message_rows
from ros_nodes.tools.live import Live, connect

SETTLE = 5.0  # longest rest of the reference after the last point's time [s]
NEAR = 0.01  # distance at which a joint is there [rad | m]
FOLLOWS, REFUSES = "following a trajectory", "trajectory refused"
ABORTS = "trajectory aborted"
# The log is kept for late listeners: no line is lost while they are found.
LOG = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class _Watch:
    """What a controller publishes: reference, error, and its log.

    Attributes:
        reference, error: Latest messages; None before the first.
        moved: Steady time of the last change of the reference [s].
        answers: Lines of the log about trajectories, since `sent`.
        sent: System time at which the trajectory was sent [s]; infinite before.

    Args:
        live: Connection to the nodes.
        name: Full name of the controller.
    """

    def __init__(self, live: Live, name: str) -> None:
        self.reference: Any = None
        self.error: Any = None
        self.moved, self.sent = time.monotonic(), float("inf")
        self.answers: list[str] = []
        self._logger = name.strip("/").replace("/", ".")
        create = live.node.create_subscription
        create(JointState, f"{name}/reference", self._on_reference, 10)
        create(JointState, f"{name}/error", self._on_error, 10)
        create(Log, "/rosout", self._on_log, LOG)

    def _on_reference(self, message: JointState) -> None:
        before, self.reference = self.reference, message
        if before is None or before.position != message.position:
            self.moved = time.monotonic()

    def _on_error(self, message: JointState) -> None:
        self.error = message

    def _on_log(self, line: Log) -> None:
        stamp = line.stamp.sec + 1e-9 * line.stamp.nanosec
        known = line.msg.startswith((FOLLOWS, REFUSES, ABORTS))
        if line.name == self._logger and known and stamp >= self.sent:
            self.answers.append(line.msg)

    def refused(self, name: str) -> None:
        """Raise a DynError if the controller `name` has refused or aborted."""
        for said in self.answers:
            if not said.startswith(FOLLOWS):
                raise DynError(f"{name}: {said}")


def run(arguments: argparse.Namespace) -> int:
    """Send a trajectory to a node and wait until it ends; return the exit status.

    Args:
        arguments: Parsed arguments of `dyn move`, with `joints` (positions by name) or
            `message` (a JointTrajectory of trajectory_files, whose stamp is ignored).
            All times of the points become later by `duration` [s].

    Returns:
        0 if the joints arrive; 1 if they do not, or after Ctrl-C, which does not end
        the motion.

    Raises:
        SettingError: The node is not there, or has no such joint.
        DynError: It listens to no trajectories, is not active, refuses or aborts the
            trajectory, or does not answer; or ROS 2 does not start.
    """
    with noted_signals(*ENDING) as stop, connect(arguments.timeout) as live:
        name, wait = live.require(arguments.node), arguments.timeout
        watch = _Watch(live, name)
        sender = live.node.create_publisher(
            JointTrajectory, f"{name}/joint_trajectory", 1
        )
        if not live.until(sender.get_subscription_count, wait):
            raise DynError(
                f"{name} listens to no trajectories; valid: a node computed_torque that"
                " is configured"
            )
        if not live.until(lambda: watch.reference and watch.error, wait):
            raise DynError(
                f"{name} publishes no reference; valid: an active node with joint"
                f" states, see dyn lifecycle get {name}"
            )
        content = arguments.message or _to_joints(arguments.joints, watch.reference)
        known = watch.reference.name
        for joint in (*content["joint_names"], *arguments.joints):
            if joint not in known:
                raise SettingError(unknown_name(f"joint of {name}", joint, known))
        message, end = _message(content, arguments.duration or 0.0)
        published, watch.sent = time.monotonic(), time.time()
        sender.publish(message)
        if not live.until(lambda: watch.answers, wait) and watch.moved < published:
            raise DynError(
                f"{name} does not answer within {wait:g} s; its log says whether it"
                " follows the trajectory"
            )
        watch.refused(name)
        print(f"{end:.1f} s to the last point", flush=True)
        return _arrival(live, watch, name, content, published + end, stop)


def _to_joints(joints: Mapping[str, float], reference: JointState) -> dict[str, Any]:
    """Return a message, as of a file, of one point at rest at time zero.

    Args:
        joints: Positions of some joints [rad | m]; unknown ones are ignored.
        reference: Reference of the node, where the other joints stay.
    """
    names, still = list(reference.name), [0.0] * len(reference.name)
    stays = zip(names, reference.position, strict=True)
    point = {
        "positions": [joints.get(x, q) for x, q in stays],
        "velocities": still,
        "accelerations": still,
        "time_from_start": {},
    }
    return {"joint_names": names, "points": [point]}


def _message(content: Mapping[str, Any], lead: float) -> tuple[JointTrajectory, float]:
    """Return a JointTrajectory that starts now, and the time of its last point [s].

    Args:
        content: Message of a file.
        lead: Time added to those of its points [s].
    """
    names, times, *rows = message_rows(content)
    fields = ("positions", "velocities", "accelerations", "effort")
    message = JointTrajectory(joint_names=list(names))
    for t, *values in zip(times + lead, *rows, strict=True):
        lists = {k: [float(x) for x in v] for k, v in zip(fields, values, strict=True)}
        sec, nanosec = instant(t)
        wait = Duration(sec=sec, nanosec=nanosec)
        message.points.append(JointTrajectoryPoint(time_from_start=wait, **lists))
    return message, float(times[-1] + lead)


def _arrival(
    live: Live,
    watch: _Watch,
    name: str,
    content: Mapping[str, Any],
    ends: float,
    stop: list[int],
) -> int:
    """Wait until the joints are at the last point; print it and return 0, else 1.

    Args:
        live: Connection whose executor is spun meanwhile.
        watch: What the controller publishes.
        name: Full name of the controller.
        content: Message of a file.
        ends: Steady time of the last point [s].
        stop: Numbers of the signals received so far; the wait ends when there is one.

    Raises:
        DynError: The controller aborts the trajectory.
    """
    joints, goal = content["joint_names"], content["points"][-1]["positions"]
    columns = [list(watch.reference.name).index(x) for x in joints]

    def away() -> tuple[float, np.ndarray]:
        """Return the distance of the reference, and those of the joints, to the end."""
        reference = np.array(watch.reference.position)[columns]
        left = goal - reference
        left -= 2 * np.pi * np.round(left / (2 * np.pi))  # turns of endless joints
        error = np.array(watch.error.position)[columns]  # reference - position
        return np.abs(left).max(), np.abs(left + error)

    while not stop and time.monotonic() < max(ends, watch.moved) + SETTLE:
        live.spin()
        watch.refused(name)
        led, rest = away()
        # A motion may end where it begins: not before its time.
        if time.monotonic() > ends and led < 1e-6 and rest.max() < NEAR:
            break
    if stop:
        print(
            f"interrupted: the motion goes on; dyn lifecycle set {name} deactivate"
            " ends it (on_shutdown)"
        )
        return 1
    led, rest = away()
    there, k = led < 1e-6 and rest.max() < NEAR, int(rest.argmax())
    print(
        f"{'arrived' if there else 'not there'}: joint '{joints[k]}' is the farthest,"
        f" {rest[k]:.4f} from the last point"
    )
    if not there:
        print(
            "stopped, in contact, or replaced by another trajectory; see /diagnostics"
        )
    return 0 if there else 1
