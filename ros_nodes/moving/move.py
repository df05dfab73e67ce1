"""The command `dyn move`: a bounded path of a tool to a pose, by target poses."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy

from dyn_core.errors import DynError, SettingError
from dyn_core.signals import ENDING, noted_signals
from ros_nodes.messages.target_messages import read_target
from ros_nodes.moving.joint_move import Watch
from ros_nodes.moving.tool_path import ToolPath, apart
from ros_nodes.tools.live import Live, connect
from ros_nodes.tools.param import values
from ros_nodes.tools.parameter_values import value_of

FRAME, MODE = "model_topics.frame", "mode"
TOOLS = {"cartesian": "cartesian.frame", "predictive": "predictive.frame"}
JUMP = "cartesian.target_jump"
PERIOD = 0.01  # of the targets [s]
SETTLE = 5.0  # longest wait for the tool after the last target [s]
NEAR = 0.01, 0.02  # distance [m] and angle [rad] at which the tool is there
HOLD = "to hold the tool where it is: dyn lifecycle set {} deactivate activate"
_NO_TARGETS = (
    "{} follows no target poses; valid: a node computed_torque in mode cartesian or"
    " predictive that is configured"
)
FAR = 20.0  # longest way: what is farther is in millimetres [m]
QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def run(arguments: argparse.Namespace) -> int:
    """Move the tool of a node to a pose, in mode cartesian or predictive.

    The path begins at the pose on ~/frame_pose, and is sent as ~/target_pose. The node
    holds the last target; Ctrl-C ends the path there.

    Args:
        arguments: Parsed arguments of `dyn move`: node, timeout [s], to (x, y, z in
            the root link [m]), quaternion (x, y, z, w; None: the present one),
            position_only (whether the target turns with the tool), and the largest
            speed [m/s] and turn [rad/s].

    Returns:
        0 if the tool arrives; 1 if it does not, or after Ctrl-C.

    Raises:
        SettingError: The node is not there, or publishes the pose of another link than
            its tool; it has no tool in mode predictive; a speed is too large for its
            target_jump; the target is more than 20 m (FAR) from the tool; or a number
            is not valid.
        DynError: It follows no target poses, publishes no pose of its tool, or does not
            answer; it refuses a target, as after a stop; or ROS 2 does not start.
    """
    with noted_signals(*ENDING) as stop, connect(arguments.timeout) as live:
        name = live.require(arguments.node)
        poses: list[np.ndarray] = []
        live.node.create_subscription(
            PoseStamped, f"{name}/frame_pose", lambda m: poses.append(_numbers(m)), QOS
        )
        targets = live.node.create_publisher(PoseStamped, f"{name}/target_pose", QOS)
        wait, what = arguments.timeout, f"a subscriber of {name}/target_pose"
        if not live.until(targets.get_subscription_count, wait, what):
            raise DynError(_NO_TARGETS.format(name))
        mode, watch = _check(live, name, arguments), Watch(live, name)
        if not live.until(lambda: poses, wait, f"a pose on {name}/frame_pose"):
            raise DynError(
                f"{name} publishes no pose of its tool on {name}/frame_pose; valid: an"
                " active node with joint states, model_topics.rate > 0 and, in mode"
                f" predictive, a link in {FRAME}; see dyn diagnostics"
                f" {name}{watch.warning}"
            )
        goal = np.array(arguments.to, float)
        if (far := float(np.linalg.norm(goal - poses[-1][:3]))) > FAR:
            raise SettingError(
                f"--to is {far:.4g} m from the tool; is it in millimetres? valid: [m],"
                f" at most {FAR:g} m away",
                "to",
            )
        turn = arguments.quaternion or poses[-1][3:]
        path = ToolPath(poses[-1], np.r_[goal, turn], arguments.speed, arguments.turn)
        print(f"{path.duration:.1f} s to {goal.tolist()}", flush=True)
        watch.begin()

        def ended() -> bool:
            """Return whether a signal came; raise DynError if refusals go on."""
            if len(watch.answers) > 1:  # the log has one a second
                _check_answers(watch, name)
            return bool(stop)

        def target(t: float) -> np.ndarray:
            """Return the pose to send at a time on the path, (7,)."""
            x, free = path.pose(t), arguments.position_only
            return np.r_[x[:3], poses[-1][3:]] if free else x

        _send(live, targets.publish, target, path.duration, ended)
        if stop:
            print("interrupted: the node holds the last target")
            return 1
        status = _arrival(live, poses, path, arguments.position_only)
        if status:
            _check_answers(watch, name)
            print(
                "out of reach, in contact, stopped, or too soft; see dyn diagnostics"
                f" {name}"
            )
        if status and mode == "cartesian":
            print(f"the reference stays at the target; {HOLD.format(name)}")
        if status and mode == "predictive":
            print(
                "plans rest where their costs balance: a larger predictive.pose_weight,"
                " or a smaller posture_weight or effort_weight, is nearer"
            )
        return status


def _check(live: Live, name: str, arguments: argparse.Namespace) -> str:
    """Return the node's mode; raise a SettingError if the move does not fit.

    It does not if the node shows another link than its tool, if mode predictive has no
    tool, or if --speed or --turn exceeds target_jump / (2 PERIOD), as one target may be
    lost. There is no bound if target_jump is 0, or in mode predictive.
    """
    asked = (MODE, *TOOLS.values(), FRAME, JUMP)
    read = {k: value_of(x) for k, x in values(live, name, list(asked)).items()}
    mode, frame, jump = read[MODE], read[FRAME], read[JUMP]
    if mode not in TOOLS:  # a recorder may be what subscribes to target poses
        raise DynError(_NO_TARGETS.format(name))
    tool = read[TOOLS[mode]]
    if mode == "predictive":
        jump = 0.0  # plans lead to poses that are far away, too
        if not tool:
            raise SettingError(
                f"{name} plans for joints alone; valid: {TOOLS[mode]} set to a link, or"
                " --joints",
                TOOLS[mode],
            )
    if frame and tool and frame != tool:
        raise SettingError(
            f"{name} publishes the pose of '{frame}', and its tool is '{tool}'; valid:"
            f" {FRAME} empty, or '{tool}'",
            FRAME,
        )
    # A target that is lost makes a step of two.
    largest = (jump or math.inf) / (2 * PERIOD)
    for bound in ("speed", "turn"):
        wanted = getattr(arguments, bound)
        if wanted > largest:
            raise SettingError(
                f"--{bound} {wanted:g}; valid: at most {largest:g}, because {JUMP} of"
                f" {name} is {jump:g}",
                bound,
            )
    return str(mode)


def _check_answers(watch: Watch, name: str) -> None:
    """Raise DynError if a target was refused; with a hint if it was too far away."""
    try:
        watch.refused(name)
    except DynError as error:
        far = " from the reference" in str(error)
        way = f"; or {HOLD.format(name)}" * far
        raise DynError(f"{error}{way}{watch.warning}") from error


def _numbers(message: PoseStamped) -> np.ndarray:
    """Return position and quaternion x, y, z, w of a message, (7,)."""
    return np.array(read_target("geometry_msgs/PoseStamped", message)[0])


def _send(
    live: Live,
    publish: Callable[[PoseStamped], None],
    pose: Callable[[float], np.ndarray],
    duration: float,
    ended: Callable[[], bool],
) -> None:
    """Publish a path, a pose each PERIOD, in steady time, to its end or till `ended`.

    `pose` returns the pose, (7,), at a time on the path [s]. `ended` is also called
    while waiting, and its errors pass through. Frame and stamp of the poses are empty.
    """
    began, t = time.monotonic(), 0.0
    message = PoseStamped()
    while not ended():
        x = pose(t)
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = x[:3].tolist()
        turn.x, turn.y, turn.z, turn.w = x[3:].tolist()
        publish(message)
        if t >= duration:
            return
        t += PERIOD
        while (wait := began + t - time.monotonic()) > 0 and not ended():
            live.spin(wait)
        if wait < -2 * PERIOD:  # after a pause the path goes on where it was
            began -= wait


def _arrival(
    live: Live, poses: list[np.ndarray], path: ToolPath, position_only: bool
) -> int:
    """Wait until the tool is near the end of the path; print where it is.

    Near is 0.01 m and 0.02 rad, or any angle if `position_only`. Returns 0 if it
    arrives within SETTLE (5 s), else 1. A subscription appends to `poses`, position [m]
    and quaternion x, y, z, w.
    """

    def away() -> tuple[float, float]:
        return apart(poses[-1], path.end)

    near = NEAR[0], math.inf if position_only else NEAR[1]
    there = live.until(
        lambda: all(x <= y for x, y in zip(away(), near, strict=True)), SETTLE
    )
    distance, angle = away()
    turned = "" if position_only else f", {angle:.3f} rad"
    print(
        f"{'arrived' if there else 'not there'}: {1e3 * distance:.1f} mm{turned} from"
        " the target"
    )
    if not there and angle > near[1]:
        print("an arm that cannot keep its orientation takes --position-only")
    return 0 if there else 1
