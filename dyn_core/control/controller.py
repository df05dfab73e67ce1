"""Joint controller without ROS: reference, limits, stale states, counters.

Invalid data never becomes a torque. An invalid sample raises and is counted, the
commanded torque is finite and within the effort limits, and a stale state leads to zero
torque (or, for arms without brakes, to gravity compensation with damping for a bounded
time).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.control.trajectory import Reference, Trajectory
from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model
from dyn_core.solving.registry import solver

MODES = ("computed_torque", "gravity")
ON_STALE = ("zero", "gravity_damping")


@dataclass(frozen=True)
class Rules:
    """Behaviour of a controller with late, invalid or large data.

    Attributes:
        state_timeout: Age at which the last valid state is stale [s].
        max_jump: Change of position in one sample that resets the controller, such as
            the reset of a simulator [rad | m].
        good_samples: Consecutive valid states before torque is enabled.
        on_stale: zero, or gravity_damping for at most stale_time.
        stale_time: Longest duration of gravity_damping [s].
        differentiate: Whether missing velocities are computed from positions.
        filter_time: Time constant of the velocity filter [s].
    """

    state_timeout: float = 0.1
    max_jump: float = 0.5
    good_samples: int = 3
    on_stale: str = "zero"
    stale_time: float = 2.0
    differentiate: bool = False
    filter_time: float = 0.01

    def __post_init__(self) -> None:
        for name in ("state_timeout", "max_jump", "stale_time", "filter_time"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingError(f"{name} must be > 0 and finite, got {value}", name)
        if self.good_samples < 1:
            raise SettingError("good_samples must be >= 1", "good_samples")
        if self.on_stale not in ON_STALE:
            valid = ", ".join(ON_STALE)
            raise SettingError(
                f"on_stale '{self.on_stale}'; valid: {valid}", "on_stale"
            )


@dataclass
class Controller:
    """Computed torque, or gravity compensation, for joints of one coordinate each.

    The order of all arrays is model.joint_names; see Model.reorder.

    Attributes:
        model: Robot.
        kp, kd: Gains before the inertia, (nv,) [1/s²], [1/s].
        mode: computed_torque or gravity.
        inverse_dynamics: Solver of INVERSE_DYNAMICS, by name or as object.
        effort_limits: Effort limits by joint; they replace the model's [N·m | N].
        wrap: Joints whose error is wrapped to [-pi, pi); None for the continuous ones.
        rules: Behaviour with late or bad data.
        engine: Engine of the Programs.
        counters: Number of refused or limited events, by name.
    """

    model: Model
    kp: Any = 100.0
    kd: Any = 20.0
    mode: str = "computed_torque"
    inverse_dynamics: Any = "rnea"
    effort_limits: Mapping[str, float] = field(default_factory=dict)
    wrap: Sequence[str] | None = None
    rules: Rules = field(default_factory=Rules)
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SettingError(f"mode '{self.mode}'; valid: {', '.join(MODES)}", "mode")
        for name in self.model.joint_names:
            if self.model.joint_kind(name) not in (
                "revolute",
                "continuous",
                "prismatic",
            ):
                raise SettingError(
                    f"joint '{name}' is {self.model.joint_kind(name)}; the controller"
                    " drives joints of one coordinate: lock it or leave it out",
                    "joints",
                )
        self.limit = self._limits()
        self.set_gains(self.kp, self.kd)
        choices = {"inverse_dynamics": self.inverse_dynamics, "finite": True}
        choices |= {"engine": self.engine, "joint_springs": True}
        if self.mode == "computed_torque":
            wrap = self.wrap
            if wrap is None:
                kinds = {n: self.model.joint_kind(n) for n in self.model.joint_names}
                wrap = tuple(n for n, kind in kinds.items() if kind == "continuous")
            choices |= {"joint_friction": True}
            law = solver("computed_torque")
            self.law = law.build(self.model, wrap=tuple(wrap), **choices)
            self.law.prepare()
            choices |= {"joint_friction": False}
        self.weight = solver("gravity_compensation").build(self.model, **choices)
        self.weight.prepare()
        self.enabled = True
        self.begin()

    @property
    def engine_used(self) -> str:
        """Engine of the control law."""
        return self.law.engine if self.mode == "computed_torque" else self.weight.engine

    def _limits(self) -> np.ndarray:
        """Return the effort limits; a joint without one is refused."""
        limits = self.model.effort_limit.copy()
        for name, value in self.effort_limits.items():
            if name not in self.model.joint_names:
                valid = ", ".join(self.model.joint_names)
                message = f"effort_limits.{name}: no such joint; valid: {valid}"
                raise SettingError(message, f"effort_limits.{name}")
            limits[self.model.v_slice(name)] = value
        for name, value in zip(self.model.joint_names, limits, strict=True):
            if not (math.isfinite(value) and value > 0):
                raise SettingError(
                    f"joint '{name}' has no effort limit (0 or absent in the model"
                    f" never means unlimited); set effort_limits.{name} > 0",
                    f"effort_limits.{name}",
                )
        return limits

    def set_gains(self, kp: Any, kd: Any) -> None:
        """Set the gains.

        Raises:
            SettingError: A gain is not finite, or negative.
        """
        checked = []
        for name, value in (("kp", kp), ("kd", kd)):
            gains = np.broadcast_to(np.asarray(value, float), (self.model.nv,)).copy()
            if not np.isfinite(gains).all() or (gains < 0).any():
                message = f"{name} must be finite and >= 0, got {gains.tolist()}"
                raise SettingError(message, name)
            checked.append(gains)
        self.kp, self.kd = checked

    def begin(self) -> None:
        """Restart; no torque is computed before the first state."""
        self.seen: float | None = None
        self.reset()

    def reset(self) -> None:
        """Clear state and reference; torque is enabled again after good samples.

        The time of the last state is kept, so that stale states are detected after a
        reset, too.
        """
        self.reference: Reference | None = None
        self.trajectory: Trajectory | None = None
        self.start = 0.0
        self.q: np.ndarray | None = None
        self.qd: np.ndarray | None = None
        self.stamp: float | None = None
        self.good = 0
        self._error_points: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def error(self) -> np.ndarray:
        """Displacement from the position to the reference at the last torque, (nv,)."""
        if self._error_points is None:
            return np.zeros(self.model.nv)
        return self.model.difference(*self._error_points)

    def follow(self, trajectory: Trajectory, t: float) -> None:
        """Follow a trajectory from the time t; it replaces the previous one."""
        if self.reference is None:
            raise SettingError(
                "no state has been received: the trajectory has no start"
            )
        self.trajectory = trajectory.starting_from(self.reference)
        self.start = t

    def update(
        self, t: float, q: Any, qd: Any | None, stamp: float | None = None
    ) -> np.ndarray | None:
        """Return the torque for a state, (nv,) [N·m | N]; None right after a reset.

        Args:
            t: Time of receipt, monotonic [s].
            q, qd: Joint positions and velocities, (nv,); qd may be None.
            stamp: Time stamp of the state [s]; an earlier one resets the controller.

        Raises:
            ShapeError, NonFiniteError: The sample is invalid; it is counted, and the
                last valid one is kept.
        """
        q, qd = self._checked(t, q, qd)
        if stamp is not None and self.stamp is not None and stamp < self.stamp:
            self.counters["time went back"] += 1
            self.reset()
            self.stamp = stamp
            return None
        self.stamp = stamp
        if (
            self.q is not None
            and np.abs(q - self.q).max(initial=0) > self.rules.max_jump
        ):
            self.counters["position jumped"] += 1
            self.reset()
            self.stamp = stamp
        if self.seen is not None and t - self.seen > self.rules.state_timeout:
            self._gap()
        self.q, self.qd, self.seen = q, qd, t
        self.good += 1
        if self.reference is None:
            still = np.zeros(self.model.nv)
            self.reference = Reference(q.copy(), still, still.copy())
        if not self.enabled or self.good < self.rules.good_samples:
            return np.zeros(self.model.nv)
        self._advance(t)
        return self._safe(lambda: self._torque(q, qd))

    def _gap(self) -> None:
        """Restart after a stale state, with the next position as the reference."""
        self.counters["stale"] += 1
        self.good = 0
        self.reference = None
        self.trajectory = None

    def watch(self, t: float) -> np.ndarray | None:
        """Return the torque for a stale state at the time t, else None."""
        if self.seen is None or t - self.seen <= self.rules.state_timeout:
            return None
        self.good = 0
        silence = t - self.seen - self.rules.state_timeout
        damped = self.rules.on_stale == "gravity_damping" and self.enabled
        q, qd = self.q, self.qd
        damped = damped and silence <= self.rules.stale_time
        if damped and q is not None and qd is not None:
            return self._safe(lambda: self.weight(q, qd, self.kd))
        return np.zeros(self.model.nv)

    def final_torque(self) -> np.ndarray:
        """Return the last torque of the controller: zero."""
        return np.zeros(self.model.nv)

    def _checked(
        self, t: float, q: Any, qd: Any | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a checked sample; an invalid one is counted and raises."""
        n = self.model.nv
        q = np.array(q, float)  # a copy: the caller may change its array
        if qd is None:
            qd = self._differentiated(t, q)
        qd = np.array(qd, float)
        for name, x in (("position", q), ("velocity", qd)):
            if x.shape != (n,):
                self.counters[f"{name} of wrong size"] += 1
                raise ShapeError(name, f"shape ({n},)", f"shape {x.shape}")
            if not np.isfinite(x).all():
                self.counters[f"{name} not finite"] += 1
                bad = [
                    joint
                    for joint, value in zip(self.model.joint_names, x, strict=True)
                    if not math.isfinite(value)
                ]
                message = f"{name} of {', '.join(bad)} is not finite"
                raise NonFiniteError(message, name)
        return q, qd

    def _differentiated(self, t: float, q: np.ndarray) -> np.ndarray:
        """Return a filtered velocity from two positions, if the rules allow it."""
        if not self.rules.differentiate:
            self.counters["velocity missing"] += 1
            raise ShapeError("velocity", f"shape ({self.model.nv},)", "nothing")
        if self.q is None or self.qd is None or self.seen is None or t <= self.seen:
            return np.zeros(self.model.nv)
        dt = t - self.seen
        weight_new = dt / (dt + self.rules.filter_time)
        raw = (q - self.q) / dt
        return self.qd + weight_new * (raw - self.qd)

    def _advance(self, t: float) -> None:
        """Advance the reference to the time t."""
        if self.trajectory is not None:
            self.reference = self.trajectory.sample(t - self.start)
            if t - self.start >= self.trajectory.duration:
                self.trajectory = None

    def _torque(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        assert self.reference is not None
        if self.mode == "gravity":
            return self.weight(q, qd, np.zeros(self.model.nv))
        self._error_points = q, self.reference.q
        return self.law(q, qd, *self.reference, self.kp, self.kd)

    def _safe(self, make: Any) -> np.ndarray:
        """Return a finite torque within the limits; zero if it cannot be computed."""
        try:
            tau = make()
        except DynError:
            self.counters["torque not finite"] += 1
            return np.zeros(self.model.nv)
        limited = np.clip(tau, -self.limit, self.limit)
        if not np.array_equal(limited, tau):
            self.counters["torque limited"] += 1
        return limited
