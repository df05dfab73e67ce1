"""Limits of a motion: positions, velocities, accelerations, joint forces, distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control import joint_limits
from dyn_core.errors import SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.validation import Quantity

KINDS = ("position", "velocity", "acceleration", "effort")
UNITS = {
    "position": "rad | m",
    "velocity": "rad/s | m/s",
    "acceleration": "rad/s² | m/s²",
    "effort": "N·m | N",
    "distance": "m",
    "mesh distance": "m",
}
TURN = np.pi  # range to both sides of a joint without position limits [rad]


@dataclass(frozen=True)
class BrokenLimit:
    """The worst violation of a limit by a motion.

    Attributes:
        kind: Kind of the limit: position, velocity, acceleration, effort, distance or
            mesh distance.
        name: Joint, or both links of a distance.
        time: Time of the violation [s].
        value: Value at this time with its sign, in the unit of UNITS; may be NaN.
        limit: Violated limit with its sign: the lower limit if the value is below it,
            else the upper one.
    """

    kind: str
    name: str
    time: float
    value: float
    limit: float

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.name} is {self.value:.6g} after {self.time:.3f} s,"
            f" its limit {self.limit:.6g} [{UNITS[self.kind]}]"
        )


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of the joints, (nv,) each; all finite except accelerations.

    Attributes:
        names: Joints.
        lower, upper: Position limits [rad | m].
        velocity, acceleration, effort: Limits of absolute values [rad/s | m/s],
            [rad/s² | m/s²], [N·m | N].
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Middles of the position ranges, (nv,)."""
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> np.ndarray:
        """Half widths of the position ranges, (nv,)."""
        return (self.upper - self.lower) / 2

    def without(self, j: int) -> MotionLimits:
        """Return the limits of all joints except the one with index j, 0 or more."""
        arrays = (
            self.lower, self.upper, self.velocity, self.acceleration, self.effort,
        )  # fmt: skip
        names = self.names[:j] + self.names[j + 1 :]
        return MotionLimits(names, *(np.delete(x, j) for x in arrays))

    def broken(
        self,
        t: np.ndarray,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        tau: np.ndarray,
        slack: float = 1e-9,
    ) -> list[BrokenLimit]:
        """Return the worst violation for each kind and joint; empty if there is none.

        The list is in the order position, velocity, acceleration, effort, then of
        joints. NaN counts as the worst violation, of the upper limit.

        Args:
            t: Times, (samples,) [s].
            q, qd, qdd, tau: Samples, (samples, nv), at least one; ValueError else.
            slack: Tolerance for rounding, times max(1, |value of the motion|).
        """
        bounds = {
            "position": (self.lower, self.upper, q),
            "velocity": (-self.velocity, self.velocity, qd),
            "acceleration": (-self.acceleration, self.acceleration, qdd),
            "effort": (-self.effort, self.effort, tau),
        }
        result = []
        for kind, (low, high, values) in bounds.items():
            excess = np.maximum(low - values, values - high)
            worst = np.argmax(np.where(np.isnan(excess), np.inf, excess), axis=0)
            for j, k in enumerate(worst):
                value = float(values[k, j])
                if not excess[k, j] <= slack * max(1.0, abs(value)):
                    limit = float(low[j] if value < low[j] else high[j])
                    place = self.names[j], float(t[k])
                    result.append(BrokenLimit(kind, *place, value, limit))
        return result


def motion_limits(
    model: Model,
    position_scale: float = 0.95,
    velocity_scale: float = 0.8,
    effort_scale: float = 0.8,
    velocity_limits: Mapping[str, float] | None = None,
    acceleration_limits: Mapping[str, float] | None = None,
    effort_limits: Mapping[str, float] | None = None,
) -> MotionLimits:
    """Return the limits of joints, of one coordinate each, reduced by scale factors.

    Args:
        position_scale: Fraction of the position ranges to use, about their middles,
            above 0 and at most 1. A turning joint that lacks a limit has a range of one
            turn.
        velocity_scale, effort_scale: Fractions of these limits to use, above 0 and at
            most 1; they also reduce limits that are given by joint name.
        velocity_limits, effort_limits: Limits by joint name; they replace the model's
            [rad/s | m/s], [N·m | N].
        acceleration_limits: Limits by joint name, not scaled; joints without one have
            no limit [rad/s² | m/s²].
    """
    for name, value in (
        ("position_scale", position_scale),
        ("velocity_scale", velocity_scale),
        ("effort_scale", effort_scale),
    ):
        _read(name, Quantity(0.0, 1.0, above=True), value)
    lower, upper = _ranges(model)
    middle, half = (lower + upper) / 2, (upper - lower) / 2 * position_scale
    velocity = _replaced(
        model, "velocity_limits", model.velocity_limit, velocity_limits
    )
    for name, value in zip(model.joint_names, velocity, strict=True):
        if not (0 < value < np.inf):
            raise SettingError(
                f"joint '{name}' has no velocity limit; set velocity_limits.{name} > 0",
                f"velocity_limits.{name}",
            )
    free = np.full(model.nv, np.inf)
    acceleration = _replaced(model, "acceleration_limits", free, acceleration_limits)
    return MotionLimits(
        tuple(model.joint_names),
        middle - half,
        middle + half,
        velocity * velocity_scale,
        acceleration,
        joint_limits.effort_limits(model, effort_limits or {}) * effort_scale,
    )


def _ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper position limits, (nv,); refused if a slide has none.

    A turning joint of which one limit or both are missing has the range -pi to pi; if
    its one limit cuts that, the turn that begins at a lower or ends at an upper limit.
    """
    lower, upper = model.lower.copy(), model.upper.copy()
    for k, name in enumerate(model.joint_names):
        if np.isfinite(lower[k]) and np.isfinite(upper[k]):
            if not lower[k] < upper[k]:
                raise SettingError(
                    f"joint '{name}' has the range [{lower[k]:g}, {upper[k]:g}]; valid:"
                    " lower < upper, or lock it",
                    name,
                )
        elif model.joint_kind(name) == "prismatic":
            raise SettingError(
                f"joint '{name}' slides without limits of position; valid: a robot's"
                " file with limits, or lock it",
                name,
            )
        else:
            lower[k] = max(lower[k], min(upper[k] - 2 * TURN, -TURN))
            upper[k] = min(upper[k], lower[k] + 2 * TURN)
    return lower, upper


def _replaced(
    model: Model, name: str, values: np.ndarray, chosen: Mapping[str, float] | None
) -> np.ndarray:
    """Return a copy of limits, (nv,), with those of `chosen` by joint name."""
    result = np.array(values, float)
    if chosen is None:
        return result
    if not isinstance(chosen, Mapping):
        raise SettingError(
            f"{name} is {chosen!r}; valid: a mapping from joint to limit", name
        )
    for joint, value in chosen.items():
        if joint not in model.joint_names:
            message = unknown_name("joint", joint, model.joint_names)
            raise SettingError(f"{name}: {message}", name)
        limit = _read(f"{name}.{joint}", Quantity(0.0, above=True), value)
        result[model.v_slice(joint)] = limit
    return result


def _read(name: str, kind: Quantity, value: Any) -> float:
    """Return `value` as a float; raise a SettingError if it does not satisfy `kind`."""
    try:
        return float(kind.read(name, value))
    except ValueError as error:
        raise SettingError(str(error), name) from error
