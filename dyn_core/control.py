"""The controller without ROS: reference, limits, stale rules, counters.

Bad data never becomes a torque: a sample that cannot be used raises in words and is
counted, what is sent is finite and within the effort limits, and silence is answered by
zero (or, for arms without brakes, by damped weight for a bounded time).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model
from dyn_core.registry import solver
from dyn_core.trajectory import Reference, Trajectory

MODES = ("computed_torque", "gravity")
ON_STALE = ("zero", "gravity_damping")


@dataclass(frozen=True)
class Rules:
    """How a controller behaves when data is late, bad or too large.

    Attributes:
        state_timeout: Age of the last good state that counts as stale [s].
        max_jump: Change of position between two samples that counts as a new start,
            such as a simulator's reset [rad | m].
        good_samples: Good states in a row before torque flows again.
        on_stale: zero, or gravity_damping for at most stale_time.
        stale_time: Bound on gravity_damping [s].
        differentiate: Whether missing velocities are made from positions.
        filter_time: Time constant of that differentiation [s].
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
        effort_limits: By joint, where the model gives none or others count [N·m | N].
        wrap: Joints whose error is wrapped to [-pi, pi); None for the continuous ones.
        rules: Behaviour with late or bad data.
        engine: Engine of the Programs.
        counters: What was refused or limited, by name.
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
        choices |= {
            "engine": self.engine,
            "joint_friction": True,
            "joint_springs": True,
        }
        if self.mode == "computed_torque":
            wrap = self.wrap
            if wrap is None:
                kinds = {n: self.model.joint_kind(n) for n in self.model.joint_names}
                wrap = tuple(n for n, kind in kinds.items() if kind == "continuous")
            law = solver("computed_torque")
            self.law = law.build(self.model, wrap=tuple(wrap), **choices)
            self.law.prepare()
        choices |= {"joint_friction": False, "joint_springs": False}
        self.weight = solver("gravity_compensation").build(self.model, **choices)
        self.weight.prepare()
        self.enabled = True
        self.reset()

    @property
    def engine_used(self) -> str:
        """Engine of the control law."""
        return self.law.engine if self.mode == "computed_torque" else self.weight.engine

    def _limits(self) -> np.ndarray:
        """Collect effort limits; a joint without one is refused."""
        limits = self.model.effort_limit.copy()
        for name, value in self.effort_limits.items():
            if name not in self.model.joint_names:
                known = ", ".join(self.model.joint_names)
                message = f"effort_limits.{name}: no such joint; joints are {known}"
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
        """Take new gains; all must be finite and >= 0."""
        made = []
        for name, value in (("kp", kp), ("kd", kd)):
            gains = np.broadcast_to(np.asarray(value, float), (self.model.nv,)).copy()
            if not np.isfinite(gains).all() or (gains < 0).any():
                message = f"{name} must be finite and >= 0, got {gains.tolist()}"
                raise SettingError(message, name)
            made.append(gains)
        self.kp, self.kd = made

    def reset(self) -> None:
        """Forget state and reference; torque flows again after good samples."""
        self.reference: Reference | None = None
        self.trajectory: Trajectory | None = None
        self.start = 0.0
        self.q: np.ndarray | None = None
        self.qd: np.ndarray | None = None
        self.seen: float | None = None
        self.stamp: float | None = None
        self.good = 0
        self._at: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def error(self) -> np.ndarray:
        """Displacement from the position to the reference at the last torque, (nv,)."""
        if self._at is None:
            return np.zeros(self.model.nv)
        return self.model.difference(*self._at)

    def follow(self, trajectory: Trajectory, t: float) -> None:
        """Follow a trajectory from the time t; it replaces the one before."""
        if self.reference is None:
            raise SettingError("no state has been seen yet: nothing to start from")
        self.trajectory = trajectory.starting_from(self.reference)
        self.start = t

    def update(
        self, t: float, q: Any, qd: Any | None, stamp: float | None = None
    ) -> np.ndarray | None:
        """Give the torque for a state, (nv,) [N·m | N]; None for none at all.

        Args:
            t: Time of receipt, monotonic [s].
            q, qd: Joint positions and velocities, (nv,); qd may be None.
            stamp: Time of the state by its sender [s]; going back resets.

        Raises:
            ShapeError, NonFiniteError: The sample cannot be used; it is counted and the
                last good one kept.
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
        """Start anew after silence: hold where the robot is when it speaks again."""
        self.counters["stale"] += 1
        self.good = 0
        self.reference = None
        self.trajectory = None

    def watch(self, t: float) -> np.ndarray | None:
        """Give the torque to send where the state is stale at t, else None."""
        if self.seen is None or t - self.seen <= self.rules.state_timeout:
            return None
        self.good = 0
        silence = t - self.seen - self.rules.state_timeout
        damped = self.rules.on_stale == "gravity_damping" and self.enabled
        if damped and silence <= self.rules.stale_time and self.q is not None:
            return self._safe(lambda: self.weight(self.q, self.qd, self.kd))
        return np.zeros(self.model.nv)

    def last_words(self) -> np.ndarray:
        """Give the torque to leave the robot with: zero."""
        return np.zeros(self.model.nv)

    def _checked(
        self, t: float, q: Any, qd: Any | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check a sample; count what is refused."""
        n = self.model.nv
        q = np.array(q, float)  # kept: the caller may use its array again
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
        """Make a velocity from two positions, filtered; refused unless asked for."""
        if not self.rules.differentiate:
            self.counters["velocity missing"] += 1
            raise ShapeError("velocity", f"shape ({self.model.nv},)", "nothing")
        if self.q is None or self.qd is None or self.seen is None or t <= self.seen:
            return np.zeros(self.model.nv)
        dt = t - self.seen
        part = dt / (dt + self.rules.filter_time)
        raw = (q - self.q) / dt
        return self.qd + part * (raw - self.qd)

    def _advance(self, t: float) -> None:
        """Move the reference to the time t."""
        if self.trajectory is not None:
            self.reference = self.trajectory.sample(t - self.start)
            if t - self.start >= self.trajectory.duration:
                self.trajectory = None

    def _torque(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        assert self.reference is not None
        if self.mode == "gravity":
            return self.weight(q, qd, np.zeros(self.model.nv))
        self._at = q, self.reference.q
        return self.law(q, qd, *self.reference, self.kp, self.kd)

    def _safe(self, make: Any) -> np.ndarray:
        """Give a finite torque within the limits; zero where it cannot be had."""
        try:
            tau = make()
        except DynError:
            self.counters["torque not finite"] += 1
            return np.zeros(self.model.nv)
        limited = np.clip(tau, -self.limit, self.limit)
        if not np.array_equal(limited, tau):
            self.counters["torque limited"] += 1
        return limited
