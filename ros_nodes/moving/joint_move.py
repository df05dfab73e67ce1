"""`dyn move` by joints: a trajectory or posture to a node, and what becomes of it."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dyn_core.errors import DynError, SettingError, unknown_name
from dyn_core.signals import ENDING, noted_signals
from ros_nodes.messages.trajectory_files import instant, message_rows
from ros_nodes.tools.live import Live, connect
from ros_nodes.tools.param import values
from ros_nodes.tools.parameter_values import value_of

SETTLE = 5.0  # longest rest of the reference after the last point's time [s]
NEAR = 0.01  # distance at which a joint is there [rad | m]
FOLLOWS = "following a trajectory"
TARGETS = "target_posture refused", "target_pose refused"
ENDS = "trajectory "  # refused, aborted, dropped, stopped
WRAPS = "gains.{}.angle_wraparound"
WARNING = 30  # level of the log
AGAIN = 0.1  # period of a target posture, which is not received reliably [s]
# The log is kept for late listeners: no line is lost while they are found.
LOG = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Watch:
    """What a controller publishes: reference, error, and its log.

    Attributes:
        reference, error: Latest messages; None before the first.
        moved: Steady time of the last change of the reference [s].
        answers: Lines of the log about trajectories and targets, since `sent`.
        warning: Phrase with the last other warning of its log, or "".
        turning: Names of the joints that the node shifts by whole turns.
        sent: System time at which the trajectory was sent [s]; infinite before.
    """

    def __init__(self, live: Live, name: str) -> None:
        self.reference: Any = None
        self.error: Any = None
        self.moved, self.sent = time.monotonic(), math.inf
        self.answers: list[str] = []
        self.warning = ""
        self.turning: list[str] = []
        self._logger = name.strip("/").replace("/", ".")
        create, self._live = live.node.create_subscription, live
        self._reference = create(
            JointState, f"{name}/reference", self._on_reference, 10
        )
        self._errors = create(JointState, f"{name}/error", self._on_error, 10)
        create(Log, "/rosout", self._on_log, LOG)

    def _on_reference(self, message: JointState) -> None:
        before, self.reference = self.reference, message
        if before is None or before.position != message.position:
            self.moved = time.monotonic()

    def _on_error(self, message: JointState) -> None:
        self.error = message

    def _on_log(self, line: Log) -> None:
        early = line.stamp.sec + 1e-9 * line.stamp.nanosec < self.sent
        if line.name != self._logger or (early and self.sent < math.inf):
            return
        if not early and line.msg.startswith((FOLLOWS, ENDS, *TARGETS)):
            self.answers.append(line.msg)
        elif line.level >= WARNING:
            self.warning = f"; the node's last warning: {line.msg}"

    def begin(self) -> None:
        """Note that the target is sent now: what the log said before is over."""
        self.sent, self.warning = time.time(), ""

    def compare(self, topic: str, goal: JointState) -> None:
        """Use a goal as the reference, and joint states of a topic for the error.

        `error` is None until a state with all joints of the goal comes; then its
        position is goal - position. The controller's two topics are no longer received.
        """
        self._live.node.destroy_subscription(self._reference)
        self._live.node.destroy_subscription(self._errors)
        self.reference, self.error = goal, None

        def take(state: JointState) -> None:
            q = dict(zip(state.name, state.position, strict=False))
            if all(x in q for x in goal.name):
                away = zip(goal.name, goal.position, strict=True)
                self.error = JointState(position=[x - q[name] for name, x in away])

        self._live.node.create_subscription(JointState, topic, take, 10)

    def refused(self, name: str) -> None:
        """Raise a DynError if `answers` say that a motion is not followed."""
        for said in self.answers:
            if not said.startswith(FOLLOWS):
                raise DynError(f"{name}: {said}")


def run(arguments: argparse.Namespace) -> int:
    """Send a trajectory to a node and wait until it ends; return the exit status.

    In mode predictive a target posture is sent instead, see _to_posture.

    Args:
        arguments: Parsed arguments of `dyn move`: node, timeout [s], and `joints`
            (positions by name) or `message` (a JointTrajectory of trajectory_files,
            whose stamp is ignored; `joints` is then empty). All times of the points
            become later by `duration` [s], which may be None beside `message`: 0.

    Returns:
        0 if the joints arrive; 1 if they do not, or after Ctrl-C, which does not end
        the motion.

    Raises:
        SettingError: The node is not there, or has no such joint; or, in mode
            predictive, `message` is given or a joint is missing in `joints`.
        DynError: It listens to no trajectories, is not active, refuses or aborts the
            trajectory, or does not answer; or ROS 2 does not start.
    """
    with noted_signals(*ENDING) as stop, connect(arguments.timeout) as live:
        name, wait = live.require(arguments.node), arguments.timeout
        watch = Watch(live, name)
        sender = live.node.create_publisher(
            JointTrajectory, f"{name}/joint_trajectory", 1
        )
        what = f"a subscriber of {name}/joint_trajectory"
        if not live.until(sender.get_subscription_count, wait, what):
            raise DynError(
                f"{name} listens to no trajectories; valid: a node computed_torque that"
                " is configured"
            )
        what = f"reference and error of {name}"
        if not live.until(lambda: watch.reference and watch.error, wait, what):
            raise DynError(
                f"{name} publishes no reference; valid: an active node with joint"
                f" states that no stop holds, see dyn diagnostics {name}{watch.warning}"
            )
        known = watch.reference.name
        wraps = {WRAPS.format(x): x for x in known}
        read = {k: value_of(x) for k, x in values(live, name, ["mode", *wraps]).items()}
        watch.turning = [x for k, x in wraps.items() if read[k]]
        predictive = read["mode"] == "predictive"
        if predictive and arguments.message:
            raise SettingError(
                f"{name} is in mode predictive, which follows no trajectory; valid:"
                f" --joints, or a posture on {name}/target_posture",
                "trajectory",
            )
        content = arguments.message or _to_joints(arguments.joints, watch.reference)
        for joint in (*content["joint_names"], *arguments.joints):
            if joint not in known:
                raise SettingError(unknown_name(f"joint of {name}", joint, known))
        if predictive:
            return _to_posture(live, watch, name, arguments, stop)
        message, end = _message(content, arguments.duration or 0.0)
        published = time.monotonic()
        watch.begin()
        sender.publish(message)
        answered = live.until(lambda: watch.answers, wait, f"an answer of {name}")
        if not answered and watch.moved < published:
            raise DynError(
                f"{name} does not answer within {wait:g} s; its log says whether it"
                " follows the trajectory"
            )
        watch.refused(name)
        print(f"{end:.1f} s to the last point", flush=True)
        return _arrival(live, watch, name, content, published + end, stop)


def _to_joints(joints: Mapping[str, float], reference: JointState) -> dict[str, Any]:
    """Return, as of a file, a message of one point; other joints keep `reference`."""
    names, still = list(reference.name), [0.0] * len(reference.name)
    stays = zip(names, reference.position, strict=True)
    point = {
        "positions": [joints.get(x, q) for x, q in stays],
        "velocities": still,
        "accelerations": still,
        "time_from_start": {},
    }
    return {"joint_names": names, "points": [point]}


def _to_posture(
    live: Live, watch: Watch, name: str, arguments: argparse.Namespace, stop: list[int]
) -> int:
    """Send a target posture in mode predictive; return 0 if the joints arrive, else 1.

    Positions of joint_states, in the namespace of the node, are compared from
    `duration` on. A missing joint is refused: its last target is known to the node
    alone.
    """
    known, wait = list(watch.reference.name), arguments.timeout
    missing = [x for x in known if x not in arguments.joints]
    if missing:
        raise SettingError(
            f"--joints lacks {', '.join(missing)}; valid for {name}, in mode"
            f" predictive: all joints, {', '.join(known)}, as on {name}/target_posture",
            "joints",
        )
    goal = [arguments.joints[x] for x in known]
    states = f"{name.rpartition('/')[0]}/joint_states"
    watch.compare(states, JointState(name=known, position=goal))
    if not live.until(lambda: watch.error, wait, f"positions on {states}"):
        raise DynError(f"no positions of all joints on {states} within {wait:g} s")
    topic, message = f"{name}/target_posture", Float64MultiArray(data=goal)
    sender = live.node.create_publisher(Float64MultiArray, topic, 1)
    if not live.until(sender.get_subscription_count, wait, f"a subscriber of {topic}"):
        raise DynError(f"{name} does not listen to {topic}")
    watch.moved = time.monotonic()
    watch.begin()
    for _ in range(3):
        sender.publish(message)
        live.until(lambda: watch.answers or stop, AGAIN)
    print(f"sent to {topic}; plans choose the way and its time", flush=True)
    content = {"joint_names": known, "points": [{"positions": goal}]}
    ends = watch.moved + arguments.duration
    status = _arrival(live, watch, name, content, ends, stop)
    if status and not stop:
        print(
            "plans rest where their costs balance: a larger predictive.posture_weight,"
            " or a smaller pose_weight or effort_weight, is nearer"
        )
    return status


def _message(content: Mapping[str, Any], lead: float) -> tuple[JointTrajectory, float]:
    """Return a JointTrajectory without a stamp, and the time of its last point [s]."""
    names, times, *rows = message_rows(content)
    fields = ("positions", "velocities", "accelerations", "effort")
    message = JointTrajectory(joint_names=list(names))
    for t, *row in zip(times + lead, *rows, strict=True):
        lists = {k: [float(x) for x in v] for k, v in zip(fields, row, strict=True)}
        sec, nanosec = instant(t)
        wait = Duration(sec=sec, nanosec=nanosec)
        message.points.append(JointTrajectoryPoint(time_from_start=wait, **lists))
    return message, float(times[-1] + lead)


def _arrival(
    live: Live,
    watch: Watch,
    name: str,
    content: Mapping[str, Any],
    ends: float,
    stop: list[int],
) -> int:
    """Wait until the joints are at the last point; print it and return 0, else 1.

    They are there within NEAR (0.01 rad or m), once the reference is there within 1e-6,
    but not before `ends`, in steady time [s]. The wait ends SETTLE (5 s) after the
    later of `ends` and the last change of the reference, or at a signal in `stop`.
    """
    joints, goal = content["joint_names"], content["points"][-1]["positions"]
    columns = [list(watch.reference.name).index(x) for x in joints]
    turn = 2 * np.pi * np.isin(joints, watch.turning)

    def away() -> tuple[float, np.ndarray]:
        """Return the largest distance of the reference, and that of each joint."""
        reference = np.array(watch.reference.position)[columns]
        left = goal - reference
        error = np.array(watch.error.position)[columns]  # reference - position
        rest = left + error
        for x in (left, rest):
            x -= turn * np.round(x / (2 * np.pi))
        return np.abs(left).max(), np.abs(rest)

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
        f" {rest[k]:.4f} rad or m from the last point"
    )
    if not there:
        print(
            "stopped, in contact, or replaced by another trajectory; see dyn"
            f" diagnostics {name}{watch.warning}"
        )
    return 0 if there else 1
