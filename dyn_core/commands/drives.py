"""The source of joint forces in `dyn sim`: a control law, or a recorded file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control.controller import Controller
from dyn_core.control.reference.trajectory import make_trajectory
from dyn_core.control.rules import Rules
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.recordings import MotionRecord, read_motion
from dyn_core.recordings.slopes import with_slopes
from dyn_core.solving.registry import solver

LAWS = ("none", "gravity", "computed_torque")
GAINS = (400.0, 40.0)
UNLIMITED = 1e9  # limit of motors without one in the robot's file [N·m | N]


class Drive(NamedTuple):
    """A controller for `simulate`, with settings that suit it.

    Attributes:
        controller: Function or object, or None for no force.
        meaning: Its name in a report.
        begin: Starts a trajectory at a time [s], or None.
        q0, qd0: Initial state, from the first row of its file, or None.
        duration: Duration of its file plus one period [s]; 0 without a file.
    """

    controller: Any
    meaning: str
    begin: Callable[[float], None] | None = None
    q0: np.ndarray | None = None
    qd0: np.ndarray | None = None
    duration: float = 0.0


def drive_of(model: Model, arguments: argparse.Namespace) -> Drive:
    """Return the Drive that the options of `dyn sim` ask for.

    Raises:
        SettingError: Options have no effect in combination, or a file is not valid.
        NonFiniteError: A time, position or joint force of the file of --torques is not
            finite.
    """
    law = arguments.controller
    if arguments.torques is not None and law != "none":
        raise SettingError(
            f"--torques and --controller {law} both give the joint forces; valid: one"
            " of them",
            "torques",
        )
    for option in ("reference", "gains"):
        if getattr(arguments, option) is not None and law != "computed_torque":
            raise SettingError(
                f"--{option} changes nothing with --controller {law}; valid:"
                " --controller computed_torque",
                option,
            )
    if arguments.torques is not None:
        motion = read_motion(arguments.torques, model).checked(["q", "tau"])
        return recorded_forces(motion, arguments.torques, arguments.period)
    if law == "gravity":
        return Drive(_weight(model, arguments), "gravity compensation")
    if law == "computed_torque":
        return _computed_torque(model, arguments)
    return Drive(None, "no joint forces")


def recorded_forces(motion: MotionRecord, name: str, period: float) -> Drive:
    """Return a Drive that applies the joint forces of each row until the next one.

    The forces of the first and of the last row continue before and after the motion.
    The Drive also has q and qd of the first row as initial state, and the duration of
    the motion plus one period.

    Args:
        motion: Motion with joint forces; its times are shifted to start at zero.
        name: Name of its file, for messages.
        period: Period of the run [s]; each row is applied a thousandth of it early.

    Raises:
        SettingError: The motion has no row or no joint forces, or q or qd of its first
            row is not finite.
    """
    if not len(motion.t):
        raise SettingError(f"{name}: the motion has no row", "torques")
    # A row counts a thousandth of a period early: rounding must not delay it by one.
    times, tau = motion.t - motion.t[0] - 1e-3 * period, motion.column("tau")

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.asarray(tau[max(int(np.searchsorted(times, t, "right")) - 1, 0)])

    qd0 = None if motion.qd is None else motion.qd[0]
    whole = float(motion.t[-1] - motion.t[0]) + period
    if not np.isfinite(motion.q[0]).all() or (qd0 is not None and
                                              not np.isfinite(qd0).all()):  # fmt: skip
        raise SettingError(f"{name}: row 1 is no state to start from", "torques")
    meaning = f"joint forces of {name}"
    return Drive(law, meaning, None, motion.q[0], qd0, whole)


def _weight(model: Model, arguments: argparse.Namespace) -> Any:
    """Return the law of gravity compensation.

    Raises SettingError for a floating base.
    """
    kinds = {model.joint_kind(name) for name in model.joint_names}
    if "floating" in kinds:
        raise SettingError(
            "--controller gravity: the robot floats, its motors do not carry it;"
            " valid: none, or --root-joint fixed",
            "controller",
        )
    program = solver("gravity_compensation").build(
        model,
        joint_springs=True,
        inputs=["time"] if model.driven else [],
        engine=arguments.engine,
    )
    still = np.zeros(model.nv)

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.asarray(program(q, qd, still, *((t,) if model.driven else ())))

    return law


def _computed_torque(model: Model, arguments: argparse.Namespace) -> Drive:
    """Return the Drive of a controller that follows a motion, or stays at the start.

    With a motion, the Drive has its first q and qd as initial state, and its duration
    plus one period. Raises SettingError if the motion is not valid.
    """
    kp, kd = arguments.gains or GAINS
    meaning = f"computed torque, kp {kp:g} 1/s², kd {kd:g} 1/s"
    controller = Controller(
        model,
        kp,
        kd,
        engine=arguments.engine,
        effort_limits=dict.fromkeys(_without_limit(model), UNLIMITED),
        rules=Rules(good_samples=1),  # simulated states need no time to settle
    )
    if arguments.reference is None:
        return Drive(controller, f"{meaning}, at the start")
    motion = read_motion(arguments.reference, model)
    motion = with_slopes(model, motion)
    qd, qdd = motion.column("qd"), motion.column("qdd")
    trajectory = make_trajectory(
        model.joint_names, model.joint_names, motion.t - motion.t[0], motion.q, qd, qdd,
        lower=model.lower, upper=model.upper, moving_end=True,
    )  # fmt: skip
    return Drive(
        controller,
        f"{meaning}, along {arguments.reference}",
        lambda t: controller.follow(trajectory, t),
        motion.q[0],
        qd[0],
        float(motion.t[-1] - motion.t[0]) + arguments.period,
    )


def _without_limit(model: Model) -> list[str]:
    """Return the names of the joints without an effort limit in the robot's file."""
    return [x for x in model.joint_names if not model.effort_limit[model.v_slice(x)][0]]
