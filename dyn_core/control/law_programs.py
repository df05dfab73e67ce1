"""Gravity compensation of ramps, gains, and the integral of the tracking error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.solving.registry import solver
from dyn_core.validation import float_array

BRAKING = 20.0  # braking gain of a ramp where kd is zero or is a joint damping [1/s]


def check_joints(model: Model) -> None:
    """Raise a SettingError for a joint that the controller cannot drive."""
    for name in model.joint_names:
        if model.joint_kind(name) not in ("revolute", "continuous", "prismatic"):
            raise SettingError(
                f"joint '{name}' is {model.joint_kind(name)}; the controller drives"
                " joints of one coordinate: lock it or leave it out",
                "joints",
            )
        if name not in model.active_joints and not model.loops:
            raise SettingError(
                f"joint '{name}' has no motor (passive in the robot's file); the"
                " controller drives all joints: lock it or leave it out",
                "joints",
            )


def build_weight(model: Model, engine: Any, paths: Sequence[str] = ()) -> Any:
    """Return the prepared Program of gravity compensation with damping.

    Its inputs are q, qd and the damping gain k, (nv,) [1/s], then the time if the model
    has driven joints, then `paths`. Its result is g(q) - H k qd, (nv,) [N·m | N].
    Numbers that are not finite raise NonFiniteError in a call; joint springs act.

    It always uses the default solver, which comes with this project: a ramp stays
    possible when the law's solver, from a plugin, fails or stalls.
    """
    inputs = [*(["time"] if model.driven else []), *paths]
    weight = solver("gravity_compensation").build(
        model, engine=engine, finite=True, joint_springs=True, inputs=inputs
    )
    weight.prepare()
    return weight


def weightless(model: Model) -> Model:
    """Return a copy of a model without gravity, for a robot that bears its weight.

    UnsupportedError if `model` is no robot.
    """
    check_robot(model, "weightless")
    return model.with_values({"gravity": (0.0, 0.0, 0.0)})


def checked_gains(name: str, value: Any, count: int) -> np.ndarray:
    """Return gains >= 0 of all joints, from one, also in a list, or one a joint."""
    try:
        gains = np.broadcast_to(float_array(name, value, "gains"), (count,)).copy()
    except (TypeError, ValueError, OverflowError) as error:
        message = f"{name} is {value!r}; valid: a number, or {count}"
        raise SettingError(message, name) from error
    if not np.isfinite(gains).all() or (gains < 0).any():
        message = f"{name} must be finite and >= 0, got {gains.tolist()}"
        raise SettingError(message, name)
    return gains


@dataclass(eq=False)
class Integral:
    """Integral of the tracking error, with a limit and anti-windup.

        part = clip(integral of gain error dt, -limit, limit)

    `acts`: some gain is not zero. `last` is the time of the last update [s].
    SettingError: a joint has a gain above 0 but no limit.
    """

    gain: np.ndarray
    limit: np.ndarray

    def __post_init__(self) -> None:
        if ((self.gain > 0) & (self.limit <= 0)).any():
            raise SettingError(
                "ki without a limit winds up; set integral_limit > 0", "integral_limit"
            )
        self.acts = bool(self.gain.any())
        self.restart()

    def restart(self) -> None:
        """Reset the integral to zero; the next `advance` only sets the time."""
        self.part = np.zeros(len(self.gain))
        self.last: float | None = None

    def advance(self, t: float, error: np.ndarray, saturated: np.ndarray) -> None:
        """Integrate the error, reference - position, up to the time t.

        The first call after a restart, or with an earlier time, only sets the time.
        `saturated` is the sign of the effort of joints at their limit, else 0: their
        integral does not grow further in this direction.
        """
        if self.last is not None:
            step = self.gain * error * max(t - self.last, 0.0)
            step = np.where(np.sign(step) * saturated > 0, 0.0, step)
            self.part = np.clip(self.part + step, -self.limit, self.limit)
        self.last = t
