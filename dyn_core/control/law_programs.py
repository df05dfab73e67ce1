"""Laws of a controller: their Programs, their gains, and the integral of the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.solving.registry import solver

BRAKING = 20.0  # gain of a ramp where kd is zero, or no gain before the inertia [1/s]
LAWS = {"computed_torque": "computed_torque", "impedance": "joint_impedance"}


def check_joints(model: Model) -> None:
    """Refuse a robot with joints of more coordinates than one."""
    for name in model.joint_names:
        if model.joint_kind(name) not in ("revolute", "continuous", "prismatic"):
            raise SettingError(
                f"joint '{name}' is {model.joint_kind(name)}; the controller drives"
                " joints of one coordinate: lock it or leave it out",
                "joints",
            )


def build_law(
    model: Model,
    mode: str,
    wrap: Sequence[str],
    inverse_dynamics: Any,
    engine: Any,
    paths: Sequence[str] = (),
) -> Any:
    """Return the Program of a mode's law, prepared; parameter paths are inputs."""
    choices = _choices(model, inverse_dynamics, engine, paths)
    if mode == "gravity":
        law = solver("gravity_compensation").build(model, **choices)
    else:
        choices |= {"wrap": tuple(wrap), "joint_friction": True}
        law = solver(LAWS[mode]).build(model, **choices)
    law.prepare()
    return law


def build_weight(model: Model, engine: Any, paths: Sequence[str] = ()) -> Any:
    """Return the Program that carries the weight and brakes, prepared.

    Its solver is one of ours whatever the law's is: a ramp stays possible when a plugin
    fails or stalls.
    """
    shipped = "rnea_loops" if model.loops else "rnea"
    choices = _choices(model, shipped, engine, paths)
    weight = solver("gravity_compensation").build(model, **choices)
    weight.prepare()
    return weight


def _choices(
    model: Model, inverse_dynamics: Any, engine: Any, paths: Sequence[str]
) -> dict[str, Any]:
    return {
        "inverse_dynamics": inverse_dynamics,
        "engine": engine,
        "finite": True,
        "joint_springs": True,
        "inputs": [*(["time"] if model.driven else []), *paths],
    }


def weightless(model: Model) -> Model:
    """Return a robot without gravity: one that carries its weight itself."""
    return model.with_values({"gravity": (0.0, 0.0, 0.0)})


def checked_gains(name: str, value: Any, count: int) -> np.ndarray:
    """Return gains of all joints; refuse what is negative or not finite."""
    try:
        gains = np.broadcast_to(np.asarray(value, float), (count,)).copy()
    except (TypeError, ValueError) as error:
        message = f"{name} is {value!r}; valid: a number, or {count}"
        raise SettingError(message, name) from error
    if not np.isfinite(gains).all() or (gains < 0).any():
        message = f"{name} must be finite and >= 0, got {gains.tolist()}"
        raise SettingError(message, name)
    return gains


@dataclass(eq=False)
class Integral:
    """The integral of the tracking error, within a limit.

        part = clip(integral of gain error dt, -limit, limit)

    Attributes:
        gain: Gain of each joint, (nv,).
        limit: Largest part of each joint, (nv,).
        acts: Whether a gain is not zero.
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
        """Begin anew at zero."""
        self.part = np.zeros(len(self.gain))
        self.last: float | None = None

    def advance(self, t: float, error: np.ndarray, saturated: np.ndarray) -> None:
        """Integrate up to a time.

        Args:
            t: Time [s].
            error: Tracking error, (nv,).
            saturated: Sign of the effort of joints at their effort limit, else 0; they
                do not wind up further in that direction.
        """
        if self.last is not None:
            step = self.gain * error * max(t - self.last, 0.0)
            step = np.where(np.sign(step) * saturated > 0, 0.0, step)
            self.part = np.clip(self.part + step, -self.limit, self.limit)
        self.last = t
