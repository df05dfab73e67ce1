"""A planar chain in motion: state, Programs, energies and events.

n is the number of joints of the chain.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dyn_core.errors import (
    ModelError,
    NonFiniteError,
    SettingError,
    ShapeError,
    unknown_name,
)
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.modes import Key, Latch, Stretch, UnilateralConstraints
from dyn_core.planar.chain.schemes import SCHEMES, checked_window
from dyn_core.planar.chain.states import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
)
from dyn_core.solving.registry import solver
from dyn_core.validation import (
    Whole,
    finite_array,
    float_array,
    known_keywords,
    label,
    shaped_array,
    shown,
)

INSIDE = 1e-6  # maximum violation of a bound by a state that is set [m, rad]
MOTION = ("x", "v", "theta", "t", "lost", "steps", "evaluation", "dropped", "taut")


@dataclass(frozen=True)
class Event:
    """An event of a simulation at `time` [s].

    Attributes:
        kind: hit, release, mode_cycle (no set of constraints is consistent), chatter
            (released repeatedly, kept active), step_halved, event_limit, dropped (an
            equation that cannot be met) or taut (links stretched straight between two
            points stop).
        joint: Index of the joint, or -1.
        loss: Energy lost in an impact [J], in its first hit, else 0.
        impulse: Of the constraint [N·s | N·m·s]; 0 if it was released at once, and for
            other kinds.
    """

    time: float
    kind: str
    message: str
    joint: int = -1
    loss: float = 0.0
    impulse: float = 0.0


@known_keywords
class MovingChain:
    """State and reports of a chain that moves; ChainSimulator moves it.

    Attributes:
        chain: Planar chain.
        x, v: Positions and velocities of the joints, (n, 2) [m], [m/s].
        theta: Angles of the joints but the last, unwrapped, n-1 [rad]: of link 0 from
            the x axis, of the others from the previous link.
        t: Time [s].
        steps: Number of steps.
        modes: Unilateral constraints with their active set.
        events: The latest `keep` events.
        evaluation: Outputs of CHAIN_ACCELERATIONS (a, F_d, tau_w, alpha, reaction,
            dropped) in the last evaluation, or None before it.
        dropped: Descriptions of the equations not met in the last evaluation.
        taut: Links stretched straight between guided joints, and so at rest.
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
        scheme: str = "rk4",
        halve_above: float | None = 1.0,
        engine: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        keep: int = 10_000,
        near: Any = None,
    ) -> None:
        """Check the settings, build the Programs and set the state.

        Args:
            chain: Planar chain.
            x, v: Positions and velocities, (n, 2) [m], [m/s]; v None for rest.
            dt: Step [s].
            window: Time constant with which errors of constraints decay [s]; None: 5
                dt, infinite: errors are not corrected. Too short a one is a
                SettingError; one below 5 dt, but for rk4, a DynWarning.
            scheme: Integration scheme between events: rk4, semi_implicit or quantum.
            halve_above: Maximum change of velocity by changed accelerations within a
                step [m/s]: above it the step is halved; None: never.
            engine: Engine of the Programs; None: the default.
            on_event: Called with each Event; None: nothing is called.
            keep: Maximum number of stored events; the latest are stored.
            near: Angles, n-1 [rad]: the state's angles are unwrapped to within pi of
                them. None: by angle, the middle of its limits if both are finite, else
                0.

        Raises:
            SettingError: A setting is invalid, the state is beyond a bound, or two
                neighbouring joints are at one place.
            ModelError, ShapeError, NonFiniteError: The chain or the state is invalid.
            UnsupportedError: The engine is unknown.
        """
        check_settings(chain, dt, window, scheme, halve_above, on_event, keep)
        self.chain, self.dt, self.scheme = chain, dt, scheme
        self.window = checked_window(window, dt, scheme)
        self.halve_above, self.on_event, self.keep = halve_above, on_event, keep
        modes = ("kind", "s", "a_w", "active", "alpha_w")
        self.program = solver("chain_recursion").build(
            chain,
            engine=engine,
            inputs=modes,
            window=self.window if math.isfinite(self.window) else None,
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
        x = self._rows("x", x)
        self.set_state(x, np.zeros_like(x) if v is None else v, near=near)

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
        """Return an instance at joint angles and rates.

        Args:
            chain: Planar chain.
            theta, theta_dot: n-1 [rad], [rad/s]; theta_dot None for rest.
            x0, v0: Position and velocity of joint 0, 2 [m], [m/s].
            settings: Other arguments of the class, without x, v and near.

        Raises:
            ShapeError: Angles or rates do not have n-1 entries, or x0 or v0 not 2.
            SettingError: A setting is invalid or unknown, or the state is beyond a
                bound.
            ModelError, NonFiniteError: The chain, an angle or a rate is invalid.
            UnsupportedError: The engine is unknown.
        """
        rates = np.zeros(chain.n - 1) if theta_dot is None else theta_dot
        state = from_angles(chain, x0, v0, theta, rates)
        return cls(chain, state.x, state.v, near=theta, **settings)

    @property
    def state(self) -> ChainState:
        """Copies of positions and velocities, (n, 2) [m], [m/s]."""
        return ChainState(self.x.copy(), self.v.copy())

    def set_state(self, x: Any, v: Any, near: Any = None) -> None:
        """Set a state that is within all bounds, with no active unilateral constraints.

        Latches, `evaluation`, `dropped` and `taut` are cleared; `t`, `lost`, `steps`
        and `events` stay. Drift of joints on lines and of locked angles is then
        corrected towards this state.

        Args:
            x, v: Positions and velocities, (n, 2) [m], [m/s].
            near: Angles, n-1 [rad]: the state's angles are unwrapped to within pi of
                them. None: by angle, the middle of its limits if both are finite, else
                0.

        Raises:
            DynError: An argument is invalid, two neighbouring joints are at one place,
                or the state is beyond a bound; nothing is changed. Lengths of links
                are not checked.
        """
        x, v = self._rows("x", x).copy(), self._rows("v", v).copy()
        for i, size in enumerate(np.linalg.norm(np.diff(x, axis=0), axis=1)):
            if size < 1e-9 * self.chain.lengths[i]:
                raise SettingError(f"x: joints {i} and {i + 1} are at one place", "x")
        if near is None:
            near = self._middle(joint_angles(self.chain, ChainState(x, v)))
        near = finite_array("near", near, self.chain.n - 1)
        theta = joint_angles(self.chain, ChainState(x, v), near=np.array(near))
        modes = UnilateralConstraints(self.chain, x, theta)
        for key in modes.keys:
            beyond = -modes.gap(key, x, theta)
            if beyond > INSIDE:
                unit = "m inside" if key.rank else "rad beyond"
                where = f"{beyond:.6g} {unit} its bound"
                raise SettingError(f"state: {modes.named(key)} is {where}", "state")
        self.x, self.v, self.theta, self.modes = x, v, theta, modes
        self.latch = Latch(window=5 * self.dt)
        self.evaluation: Any = None
        self.dropped: tuple[str, ...] = ()
        self.taut: tuple[Stretch, ...] = ()

    def _middle(self, theta: np.ndarray) -> np.ndarray:
        """Return reference angles to unwrap: middles of finite limits, else `theta`."""
        lower, upper = np.array(self.chain.lower[:-1]), np.array(self.chain.upper[:-1])
        both = np.isfinite(lower) & np.isfinite(upper)
        middle = np.where(both, lower, 0.0) / 2 + np.where(both, upper, 0.0) / 2
        return np.where(both, middle, theta)

    def _rows(self, name: str, value: Any) -> np.ndarray:
        """Return `value` as an (n, 2) array of finite floats, which may be no copy."""
        array = shaped_array(name, value, (self.chain.n, 2))
        if not np.isfinite(array).all():
            bad = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise NonFiniteError(f"{name} is not finite at joint {bad}", name)
        return array

    def snapshot(self) -> Any:
        """Return a copy of the state for `restore`: a dict of attributes by name.

        It also has the active set, latches, events, `lost` and `steps`.
        """
        names = (*MOTION, "modes", "latch", "events")
        return {name: copy.deepcopy(getattr(self, name)) for name in names}

    def restore(self, saved: Any) -> None:
        """Return to the state of a snapshot, which is copied and may be used again."""
        for name, value in saved.items():
            setattr(self, name, copy.deepcopy(value))

    def motion(self) -> Any:
        """Return the state of motion, for `return_to`: without latches and events.

        The active set and the anchors are copied. Arrays are not copied, because steps
        replace them.
        """
        return {name: getattr(self, name) for name in MOTION}, self.modes.snapshot()

    def return_to(self, motion: Any) -> None:
        """Restore what self.motion() returned; latches and events stay.

        It is x, v, theta, t, lost, steps, evaluation, dropped, taut, the active set and
        the anchors.
        """
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

        They are a view of `evaluation`. Zeros without an evaluation: before the first
        step and after set_state.

        Source: WAW-12.5.
        """
        if self.evaluation is None:
            return np.zeros(self.chain.n - 1)
        return np.asarray(self.evaluation.tau_w[:-1])

    @property
    def holding(self) -> tuple[Key, ...]:
        """Keys of the active limits and ground contacts: limits first, by joint."""
        return tuple(sorted(self.modes.on))

    @property
    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy, in this order, of point masses and links [J].

        The potential energy is zero if all joints are at the origin.
        """
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
        if tau is None:
            return np.zeros(n)
        torques = float_array("tau", tau, f"shape ({n - 1},)")
        if torques.shape not in ((0,), (n - 1,), (n,)):
            raise ShapeError("tau", f"shape ({n - 1},)", f"shape {torques.shape}")
        if not np.isfinite(torques).all():
            raise NonFiniteError("tau is not finite", "tau")
        return np.concatenate([torques, np.zeros(n - len(torques))])

    def _accelerations(self, x: Any, v: Any, theta: Any, since: float = 0.0) -> Any:
        """Return the outputs of CHAIN_ACCELERATIONS; NonFiniteError if not finite.

        Torques and additional forces are those of the current step. x, v are (n, 2),
        theta n-1, unwrapped; `since` is the time of the state minus `t`.
        """
        state = ChainState(x, v)
        F = self._forces(x, v, self._tau)
        if callable(self._extra):
            F = F + self._rows("forces", self._extra(self.t + since, state))
        elif self._extra is not None:
            F = F + self._extra
        rates = joint_rates(self.chain, state)
        modes = self.modes.arrays(x, v, theta, rates, self.window)
        result = self.program(x, v, F, *modes)
        if not np.isfinite(result.a).all():
            bad = int(np.flatnonzero(~np.isfinite(result.a).all(axis=1))[0])
            raise NonFiniteError(
                f"step {self.steps}: the acceleration of joint {bad} is not finite"
                f" (t = {self.t + since:.6g} s)",
                "a",
            )
        return result

    def _note(self, kind: str, message: str, joint: int = -1, *numbers: float) -> None:
        event = Event(self.t, kind, message, joint, *(float(x) for x in numbers))
        self.events.append(event)
        del self.events[: max(0, len(self.events) - self.keep)]
        if self.on_event is not None:
            self.on_event(event)

    def _not_met(self, dropped: np.ndarray) -> tuple[str, ...]:
        """Return descriptions of the dropped equations; changed ones are an event.

        `dropped` (n, 2) is not zero in row i where the equation of the length of link
        i, or of angle i, was dropped. The attribute `dropped` is not changed.
        """
        names = [f"length of link {i}" for i in np.flatnonzero(dropped[:, 0])]
        names += [f"angle {i}" for i in np.flatnonzero(dropped[:, 1])]
        if names and tuple(names) != self.dropped:
            self._note("dropped", ", ".join(names))
        return tuple(names)


def check_settings(
    chain: Any,
    dt: Any,
    window: Any,
    scheme: Any,
    halve_above: Any,
    on_event: Any,
    keep: Any,
) -> None:
    """Check the settings of a moving chain: dt and window [s], halve_above [m/s], ...

    How long the window must be is checked by schemes.checked_window.

    Source: WAW-3.1, WAW-12.10, WAW-12.11.
    """
    if not isinstance(chain, ChainModel):
        raise ModelError(f"chain is {shown(chain)}; valid: a ChainModel", "chain")
    if not (_is_number(dt) and 0 < dt < math.inf):
        raise SettingError(f"dt must be > 0 and finite, got {dt!r}", "dt")
    if not (isinstance(scheme, str) and scheme in SCHEMES):
        raise SettingError(unknown_name("scheme", label(scheme), SCHEMES), "scheme")
    if window is not None and not _is_number(window):
        raise SettingError(
            f"window is {shown(window)}; valid: a time [s], infinity, None", "window"
        )
    if halve_above is not None and not (
        _is_number(halve_above) and 0 < halve_above < math.inf
    ):
        raise SettingError(
            f"halve_above must be > 0 and finite, or None, got {shown(halve_above)}",
            "halve_above",
        )
    if on_event is not None and not callable(on_event):
        what = f"on_event is {shown(on_event)}; valid: a function of an Event, None"
        raise SettingError(what, "on_event")
    if not Whole().takes(keep):
        raise SettingError(f"keep must be >= 0 and whole, got {shown(keep)}", "keep")


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
