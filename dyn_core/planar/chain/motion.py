"""A planar chain in motion: state, Programs, energies, and what happened."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import NonFiniteError, SettingError, ShapeError, warn
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.geometry import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
)
from dyn_core.planar.chain.modes import Key, Latch, UnilateralConstraints
from dyn_core.solving.registry import solver

MOTION = ("x", "v", "theta", "t", "lost", "steps", "evaluation", "dropped")


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Attributes:
        time: When [s].
        kind: hit, release, mode_cycle (no set of constraints is consistent), chatter
            (released again and again, kept on), step_halved, event_limit or dropped.
        message: What happened, in words.
        joint: Number of the joint, or -1.
        loss: Energy lost [J].
        impulse: Of the constraint [N·s | N·m·s].
    """

    time: float
    kind: str
    message: str
    joint: int = -1
    loss: float = 0.0
    impulse: float = 0.0


class MovingChain:
    """State and reports of a chain that moves; ChainSimulator moves it.

    Attributes:
        chain: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        theta: Angles of the joints but the last, unwrapped, n-1 [rad].
        t: Time [s].
        events: What happened, the latest `keep` of it.
        evaluation: Accelerations, couples and reactions of the last one, or None.
        dropped: What could not be met in the last evaluation, in words.
        lost: Energy lost in impacts so far [J].
    """

    x: np.ndarray
    v: np.ndarray
    theta: np.ndarray
    _tau: np.ndarray
    _extra: Any = None

    def __init__(
        self,
        chain: ChainModel,
        x: Any,
        v: Any = None,
        *,
        dt: float = 1e-3,
        window: float | None = None,
        halve_above: float | None = 1.0,
        engine: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        keep: int = 10_000,
    ) -> None:
        """Begin at a state.

        Args:
            chain: Planar chain.
            x, v: Places and velocities, (n, 2) [m], [m/s]; v None for rest.
            dt: Quantum [s].
            window: Time in which errors of constraints decay [s] (5 dt is good), or
                None: they stay.
            halve_above: Change of velocity by changed accelerations above which a
                quantum is halved [m/s], or None.
            engine: Engine of the Programs.
            on_event: Called with each Event.
            keep: How many events are kept.

        Raises:
            SettingError: dt or window is no good.
        """
        check_times(dt, window)
        self.chain, self.dt, self.window = chain, dt, window
        self.halve_above, self.on_event, self.keep = halve_above, on_event, keep
        modes = ("kind", "s", "a_w", "active", "alpha_w")
        self.program = solver("chain_recursion").build(
            chain, engine=engine, inputs=modes, window=window
        )
        self._forces = solver("chain_forces").build(chain, engine=engine)
        self._impact = solver("chain_impact").build(
            chain, engine=engine, inputs=("kind", "s", "active")
        )
        for program in (self.program, self._forces, self._impact):
            program.prepare()  # nothing compiles while it moves
        borne = sum(chain.weights) * max(1.0, math.hypot(*chain.gravity))
        self._tiny = 1e-12 * max(borne, 1e-3)
        self.events: list[Event] = []
        self.t, self.lost, self.steps = 0.0, 0.0, 0
        self._touched: list[Key] = []
        self.set_state(x, np.zeros_like(np.asarray(x, float)) if v is None else v)

    @classmethod
    def at_angles(
        cls,
        chain: ChainModel,
        theta: Any,
        theta_dot: Any = None,
        x0: Any = (0.0, 0.0),
        v0: Any = (0.0, 0.0),
        **settings: Any,
    ) -> Any:
        """Begin at joint angles and rates, n-1 [rad], [rad/s]."""
        rates = np.zeros(chain.n - 1) if theta_dot is None else theta_dot
        state = from_angles(chain, x0, v0, theta, rates)
        return cls(chain, state.x, state.v, **settings)

    @property
    def state(self) -> ChainState:
        """Places and velocities."""
        return ChainState(self.x.copy(), self.v.copy())

    def set_state(self, x: Any, v: Any, near: Any = None) -> None:
        """Take a state; what holds is forgotten.

        Args:
            x, v: Places and velocities, (n, 2) [m], [m/s].
            near: Angles to which those of the state are near, n-1 [rad]; None: within
                half a turn.
        """
        shape, arrays = (self.chain.n, 2), []
        for name, value in (("x", x), ("v", v)):
            array = np.array(value, float)
            if array.shape != shape:
                raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
            if not np.isfinite(array).all():
                raise NonFiniteError(f"{name} is not finite", name)
            arrays.append(array)
        for i, size in enumerate(np.linalg.norm(np.diff(arrays[0], axis=0), axis=1)):
            if size < 1e-9 * self.chain.lengths[i]:
                raise SettingError(f"x: joints {i} and {i + 1} are at one place", "x")
        self.x, self.v = arrays
        self.theta = joint_angles(self.chain, self.state, near=near)
        self.modes = UnilateralConstraints(self.chain, self.x, self.theta)
        self.latch = Latch(window=5 * self.dt)
        self.evaluation: Any = None
        self.dropped: tuple[str, ...] = ()

    def snapshot(self) -> Any:
        """Return all of the state, for restore: modes, latches and counters too."""
        names = (*MOTION, "modes", "latch", "events")
        return {name: copy.deepcopy(getattr(self, name)) for name in names}

    def restore(self, saved: Any) -> None:
        """Go back to a snapshot."""
        for name, value in saved.items():
            setattr(self, name, copy.deepcopy(value))

    def motion(self) -> Any:
        """Return the state of motion, for `return_to`: without latches and events.

        Quick: nothing is copied but the set of what holds, as no step changes arrays.
        """
        return {name: getattr(self, name) for name in MOTION}, self.modes.snapshot()

    def return_to(self, motion: Any) -> None:
        """Go back to a state of motion."""
        values, modes = motion
        vars(self).update(values)
        self.modes.restore(modes)

    @property
    def omega(self) -> np.ndarray:
        """Rates of the joint angles, n-1 [rad/s]."""
        return joint_rates(self.chain, ChainState(self.x, self.v))

    @property
    def constraint_torques(self) -> np.ndarray:
        """Torques of limits and active joints in the last evaluation, n-1 [N·m].

        Source: WAW-12.5.
        """
        if self.evaluation is None:
            return np.zeros(self.chain.n - 1)
        return np.asarray(self.evaluation.tau_w[:-1])

    @property
    def holding(self) -> tuple[Key, ...]:
        """Limits and ground that hold now."""
        return tuple(sorted(self.modes.on))

    @property
    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy [J]."""
        chain, v = self.chain, self.v
        kinetic = 0.5 * float((np.array(chain.masses) * (v * v).sum(1)).sum())
        for i, (start, end, between) in enumerate(chain.shares):
            kinetic += 0.5 * float(
                start * v[i] @ v[i]
                + end * v[i + 1] @ v[i + 1]
                + 2 * between * v[i] @ v[i + 1]
            )
        pull = np.array(chain.weights)[:, None] * np.array(chain.gravity)
        return kinetic, -float((pull * self.x).sum())

    def _torques(self, tau: Any) -> np.ndarray:
        n = self.chain.n
        torques = np.zeros(0) if tau is None else np.asarray(tau, float)
        if torques.shape not in ((0,), (n - 1,), (n,)):
            raise ShapeError("tau", f"shape ({n - 1},)", f"shape {torques.shape}")
        if not np.isfinite(torques).all():
            raise NonFiniteError("tau is not finite", "tau")
        return np.concatenate([torques, np.zeros(n - len(torques))])

    def _accelerations(self, x: Any, v: Any, theta: Any) -> Any:
        """Evaluate under what holds now; tau_w, alpha and the rest in a named tuple."""
        chain = self.chain
        state = ChainState(x, v)
        F = self._forces(x, v, self._tau)
        if self._extra is not None:
            more = self._extra(self.t, state) if callable(self._extra) else self._extra
            F = F + np.asarray(more, float)
        rates = joint_rates(chain, state)
        modes = self.modes.arrays(x, v, theta, rates, self.window)
        result = self.program(x, v, F, *modes)
        if not np.isfinite(result.a).all():
            bad = int(np.flatnonzero(~np.isfinite(result.a).all(axis=1))[0])
            raise NonFiniteError(
                f"step {self.steps}: the acceleration of joint {bad} is not finite"
                f" (t = {self.t:.6g} s)",
                "a",
            )
        return result

    def _note(self, kind: str, message: str, joint: int = -1, *numbers: float) -> None:
        event = Event(self.t, kind, message, joint, *(float(x) for x in numbers))
        self.events.append(event)
        del self.events[: -self.keep]
        if self.on_event is not None:
            self.on_event(event)

    def _not_met(self, dropped: np.ndarray) -> tuple[str, ...]:
        """Return which equations could not be met; a change is an event."""
        names = [f"length of link {i}" for i in np.flatnonzero(dropped[:, 0])]
        names += [f"angle {i}" for i in np.flatnonzero(dropped[:, 1])]
        if names and tuple(names) != self.dropped:
            self._note("dropped", ", ".join(names))
        return tuple(names)


def check_times(dt: float, window: float | None) -> None:
    """Refuse a step and a window that cannot work.

    Source: WAW-3.1, WAW-12.10.
    """
    if not (math.isfinite(dt) and dt > 0):
        raise SettingError(f"dt must be > 0 and finite, got {dt}", "dt")
    if window is None:
        return
    if not (math.isfinite(window) and window > dt):
        raise SettingError(
            f"window must be > dt = {dt} (5 dt is good), got {window}: errors grow",
            "window",
        )
    if window < 5 * dt:
        message = f"window = {window} is below 5 dt = {5 * dt}: errors will ring"
        warn(message, stacklevel=3)
