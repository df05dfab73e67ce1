"""Actions of robots: joint targets, or joint forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dyn_core.errors import ModelError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model
from dyn_core.tasks.robot_task import RobotRows
from dyn_core.validation import float_array, known_keywords, shaped_array


def driven_joints(model: Model, joints: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the joints that an action may drive, in the given order.

    They are in model.active_joints (independent coordinates and a motor) and have one
    coordinate; None: all of these, in the order of the model.
    """
    single = [
        name
        for name in model.active_joints
        if model.q_slice(name).stop - model.q_slice(name).start == 1
    ]
    for name in joints or ():
        if name not in single:
            message = f"no joint '{name}' of one coordinate; valid: {', '.join(single)}"
            raise ModelError(message, name)
    return tuple(single if joints is None else joints)


@known_keywords
@dataclass(frozen=True, eq=False)
class JointTargets:
    """Joint forces of a proportional-derivative law about targets.

        tau = kp (home + scale action - q) - kd qd,   clipped to |tau| <= limit

    Attributes:
        nv: Number of velocity coordinates of the robot.
        positions, velocities: Indices of the driven joints in q and in qd.
        home: Targets of the driven joints for a zero action [rad | m].
        kp: Stiffness [N·m/rad | N/m]; kp, kd and scale are one number, or one for each
            driven joint.
        kd: Damping [N·m·s/rad | N·s/m].
        scale: Offset of a target for an action of one [rad | m].
        limit: Maximum force of each driven joint [N·m | N]; inf for none.

    Raises:
        SettingError: The constructor got an unknown keyword.
    """

    nv: int
    positions: np.ndarray
    velocities: np.ndarray
    home: np.ndarray
    kp: np.ndarray | float
    kd: np.ndarray | float
    scale: np.ndarray | float
    limit: np.ndarray

    @classmethod
    def of(
        cls,
        model: Model,
        home: np.ndarray,
        kp: np.ndarray | float,
        kd: np.ndarray | float,
        scale: np.ndarray | float = 1.0,
        joints: Sequence[str] | None = None,
    ) -> JointTargets:
        """Return the law for joints of a robot, with its effort limits.

        Args:
            model: Robot; an effort limit of zero means no limit.
            home: Positions of the whole robot, (nq,) [SI]; only entries of driven
                joints are used.
            kp, kd, scale: Stiffness, damping, and offset of a target for an action of
                one; a number, or one for each driven joint [SI].
            joints: Names in the order of the action; None: all joints of one coordinate
                that have a motor.

        Raises:
            ModelError: A name is unknown, or its joint has several coordinates or no
                motor, or follows another joint.
            ShapeError, NonFiniteError: home, kp, kd or scale has another size, is no
                numbers, or holds NaN or infinity.
            SettingError: kp or kd is negative.
        """
        names = driven_joints(model, joints)
        positions = np.array([model.q_slice(name).start for name in names], int)
        velocities = np.array([model.v_slice(name).start for name in names], int)
        places = shaped_array("home", home, (model.nq,))[positions]
        gain = partial(_of_joints, joints=names, least=0.0)
        return cls(
            model.nv,
            positions,
            velocities,
            _finite("home", places, names),
            gain("kp", kp),
            gain("kd", kd),
            _of_joints("scale", scale, names, -np.inf),
            _limits(model, velocities),
        )

    def __call__(self, rows: RobotRows, action: np.ndarray) -> np.ndarray:
        """Return joint forces, clipped to the limits, (n, nv) [N·m | N].

        They are zero for joints that are not driven.

        Args:
            rows: States of n rows; q and qd are used.
            action: Actions, (n, driven joints), in the order of `positions`.

        Raises:
            ShapeError: There is another number of actions.
        """
        _check_count(action, self.velocities)
        error = self.home + self.scale * action - rows.q[:, self.positions]
        tau = self.kp * error - self.kd * rows.qd[:, self.velocities]
        forces = np.zeros((len(action), self.nv))
        forces[:, self.velocities] = np.clip(tau, -self.limit, self.limit)
        return forces


@known_keywords
@dataclass(frozen=True, eq=False)
class JointTorques:
    """Joint forces proportional to the action: JointTorques.of(model, scale=...).

        tau = scale action,   clipped to |tau| <= limit

    Attributes:
        nv: Number of velocity coordinates of the robot.
        velocities: Indices of the driven joints in qd.
        scale: Force for an action of one; one number, or one for each driven joint [N·m
            | N].
        limit: Maximum force of each driven joint [N·m | N]; inf for none.

    Raises:
        SettingError: The constructor got an unknown keyword.
    """

    nv: int
    velocities: np.ndarray
    scale: np.ndarray | float
    limit: np.ndarray

    @classmethod
    def of(
        cls,
        model: Model,
        scale: np.ndarray | float = 1.0,
        joints: Sequence[str] | None = None,
    ) -> JointTorques:
        """Return the law for joints of a robot, with its effort limits.

        Args:
            model: Robot; an effort limit of zero means no limit.
            scale: Force for an action of one; a number, or one for each driven joint
                [N·m | N].
            joints: Names in the order of the action; None: all joints of one coordinate
                that have a motor.

        Raises:
            ModelError: A name is unknown, or its joint has several coordinates or no
                motor, or follows another joint.
            ShapeError, NonFiniteError: `scale` has another size, is no numbers, or
                holds NaN or infinity.
        """
        names = driven_joints(model, joints)
        velocities = np.array([model.v_slice(name).start for name in names], int)
        factor = _of_joints("scale", scale, names, -np.inf)
        return cls(model.nv, velocities, factor, _limits(model, velocities))

    def __call__(self, rows: RobotRows, action: np.ndarray) -> np.ndarray:
        """Return joint forces, clipped to the limits, (n, nv) [N·m | N].

        They are zero for joints that are not driven.

        Args:
            rows: Not used.
            action: Actions, (n, driven joints), in the order of `velocities`.

        Raises:
            ShapeError: There is another number of actions.
        """
        _check_count(action, self.velocities)
        forces = np.zeros((len(action), self.nv))
        tau = np.clip(self.scale * action, -self.limit, self.limit)
        forces[:, self.velocities] = tau
        return forces


def _check_count(action: np.ndarray, joints: np.ndarray) -> None:
    """Raise ShapeError unless rows of `action` have one number for each of `joints`.

    One action alone would drive all joints.
    """
    if action.shape[1:] != joints.shape:
        wanted = f"one for each driven joint, shape (n, {len(joints)})"
        raise ShapeError("action", wanted, f"shape {action.shape}")


def _of_joints(
    name: str, value: np.ndarray | float, joints: Sequence[str], least: float
) -> np.ndarray:
    """Return one number, shape (), or one for each joint, shape (joints,), as floats.

    Numbers below `least` are refused.
    """
    numbers = float_array(name, value, f"shape () or ({len(joints)},)")
    several = numbers.ndim > 0
    if several:
        numbers = shaped_array(name, numbers, (len(joints),))
    low = np.flatnonzero(_finite(name, numbers, joints) < least)
    if len(low):
        where = f" of {joints[low[0]]}" if several else ""
        message = f"{name}{where} is {numbers.flat[low[0]]:g}; valid: {least:g} or more"
        raise SettingError(message, name)
    return numbers


def _finite(name: str, numbers: np.ndarray, joints: Sequence[str]) -> np.ndarray:
    """Return `numbers`, one or one for each joint, or raise NonFiniteError."""
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        where = f" at joint {joints[bad[0]]}" if numbers.ndim else ""
        raise NonFiniteError(f"{name} is not finite{where}", name)
    return numbers


def _limits(model: Model, velocities: np.ndarray) -> np.ndarray:
    """Return effort limits [N·m | N], (joints,); infinite where the robot's is not > 0.

    `velocities` are indices in qd.
    """
    limit = np.asarray(model.effort_limit, float)[velocities]
    return np.where(limit > 0, limit, np.inf)
