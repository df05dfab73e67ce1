"""A planar chain as a simulated robot: takes torques, moves by periods.

n is the number of joints of the chain.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, NonFiniteError
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.moving_chain import Event
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.planar.chain.states import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
)
from dyn_core.simulation.channels import Channels, JointPose, MeasuredJoints
from dyn_core.simulation.plant import SimulatedPlant
from dyn_core.validation import shaped_array

STRETCH = 1e-3  # relative error of a length above which it is violated
TROUBLE = ("mode_cycle", "chatter", "event_limit")
RECENT = 1.0  # duration of a warning of an event in simulated time [s]
# Names of the kinds of events in diagnostics.
KINDS = {
    "hit": "hits", "release": "releases", "mode_cycle": "mode cycles",
    "chatter": "chattering", "step_halved": "halved steps",
    "event_limit": "event limits",
    "dropped": "dropped", "taut": "taut links",
}  # fmt: skip


@dataclass
class ChainRobot(SimulatedPlant):
    """A planar chain that takes joint torques and moves by the event-driven step.

    The first angle is that of link 0 from the x axis, each other one is from the
    previous link.

    Attributes:
        chain: Planar chain.
        period: Time that `advance` covers [s].
        dt: Maximum step [s]; a period is divided into equal steps.
        window: Time constant with which drift of constraints decays [s]; None: 5 dt,
            infinite: drift is not corrected.
        scheme: Integration scheme between events: rk4, semi_implicit or quantum.
        start: Initial state x, v, (n, 2) [m], [m/s]; None: joint 0 at the origin,
            angles zero, at rest.
        q0, qd0: Initial angles and rates, n-1 [rad], [rad/s], in place of the angles
            and rates of `start`; None: as in `start`.
        command_timeout: Age from which a command is stale and replaced by zero [s].
        engine: Engine of the Programs; None: the default.
        counters: Numbers of refused and late commands, by name.
        happened: Numbers of events since the start or reset, by kind.

    Raises:
        ModelError: The chain has no link.
        DynError: Another setting is invalid.

    Source: WAW-12.12, WAW-15.6.
    """

    chain: ChainModel
    period: float = 0.002
    dt: float = 1e-3
    window: float | None = None
    scheme: str = "rk4"
    start: ChainState | None = None
    q0: Any = None
    qd0: Any = None
    command_timeout: float = 0.1
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)
    happened: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.substeps = 1
        self._check_settings("dt")
        chain, still = self.chain, np.zeros(self.chain.n - 1)
        if chain.n < 2:
            raise ModelError(f"chain '{chain.name}' has no link: no joint turns")
        self.substeps = max(1, math.ceil(self.period / self.dt - 1e-9))
        if self.start is None:
            self.start = from_angles(chain, (0.0, 0.0), (0.0, 0.0), still, still)
        self.simulator = ChainSimulator(
            chain,
            *self.start,
            dt=self.period / self.substeps,
            window=5 * self.dt if self.window is None else self.window,
            scheme=self.scheme,
            engine=self.engine,
            on_event=self._on_event,
        )
        if self.q0 is not None or self.qd0 is not None:
            self.place(
                self.q if self.q0 is None else self.q0,
                self.qd if self.qd0 is None else self.qd0,
            )
        self._begin = self.simulator.snapshot()
        self.effort_limit = np.full(chain.n - 1, np.inf)
        self.reset()

    # ---- state

    @property
    def program(self) -> Any:
        """Program of the solver chain_recursion for this chain."""
        return self.simulator.program

    @property
    def q(self) -> np.ndarray:
        """Angles of the joints but the last, unwrapped, n-1 [rad]; not a copy."""
        return self.simulator.theta

    @property
    def qd(self) -> np.ndarray:
        """Rates of the angles q, n-1 [rad/s]."""
        return self.simulator.omega

    @property
    def state(self) -> ChainState:
        """Copies of positions and velocities of all joints; row 0 is the base."""
        return self.simulator.state

    @property
    def t(self) -> float:
        """Simulated time since the start or reset [s]."""
        return self.simulator.t

    @property
    def effort(self) -> np.ndarray:
        """Torques at the joints, n-1 [N·m].

            effort = tau + tau_w

        tau are the commanded torques, tau_w the torques of limits and active joints in
        the last evaluation; zero before it.

        Source: WAW-12.5.
        """
        return self.tau + self.simulator.constraint_torques

    # ---- commands

    def reset(self) -> None:
        """Return to the initial state at time 0; clear commands, events, `happened`.

        `counters` and `braked` remain, and so does `paused` unless a failed step has
        set it.
        """
        super().reset()
        self.simulator.restore(self._begin)
        self.happened.clear()

    def place(self, q: Any, qd: Any = None) -> None:
        """Set angles and rates; joint 0 keeps its position and velocity.

        No limit or ground contact is active afterwards, as after MovingChain.set_state.

        Args:
            q: Angles, n-1 [rad].
            qd: Rates, n-1 [rad/s]; None for zero.

        Raises:
            DynError: They are invalid, or the state is beyond a limit or ground;
                nothing is changed.
        """
        q = self._vector("positions", q)
        qd = np.zeros_like(q) if qd is None else self._vector("velocities", qd)
        x, v = self.state
        self.simulator.set_state(*from_angles(self.chain, x[0], v[0], q, qd), near=q)

    # ---- reports

    def channels(self) -> Channels:
        """Return the channels of a chain, with diagnostics and a warning.

        They are torques and states of all joints but the last, and poses of all
        joints relative to the fixed frame, see chain_poses; angles can be placed. The
        chain also moves without commands (`free`).
        """
        joints = self.chain.joint_names[:-1]
        return Channels(
            joints=joints,
            columns=np.arange(len(joints)),
            measured=MeasuredJoints.of_names(joints),
            poses=lambda: chain_poses(self.chain, self.state),
            values=self._diagnostic_values,
            place=self.place,
            warning=self._warning,
            free=True,
        )

    def _warning(self) -> str | None:
        """Return the unmet equations, else the last recent trouble, as text."""
        if unmet := self.unmet:
            return f"cannot be met: {', '.join(unmet)}"
        trouble = self.trouble_since(self.t - RECENT)
        if trouble:
            last = trouble[-1]
            return f"{KINDS[last.kind]}: {last.message} at {last.time:.3f} s"
        return None

    def _diagnostic_values(self) -> dict[str, Any]:
        """Return the entries of the diagnostics, by their label with the unit."""
        events = self.simulator.events
        last = events[-1] if events else None
        return {
            "simulated time [s]": f"{self.t:.3f}",
            "quantum [s]": f"{self.simulator.dt:g}",
            **{label: self.happened[kind] for kind, label in KINDS.items()},
            "energy lost [J]": f"{self.lost:.6g}",
            "energy [J]": f"{sum(self.energy):.6g}",
            "holds": ", ".join(self.holds) or "nothing",
            "dropped now": ", ".join(self.dropped) or "nothing",
            "last event": (
                f"{last.kind}: {last.message} at {last.time:.3f} s" if last else "none"
            ),
        }

    @property
    def lost(self) -> float:
        """Energy lost in impacts since the start or reset [J]."""
        return self.simulator.lost

    @property
    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy [J]; the latter is 0 with joints at (0, 0)."""
        return self.simulator.energy

    @property
    def dropped(self) -> tuple[str, ...]:
        """Descriptions of the equations that were dropped in the last evaluation."""
        return self.simulator.dropped

    @property
    def unmet(self) -> tuple[str, ...]:
        """The part of `dropped` on angles, and on lengths off by more than 0.1 %.

        () if there is none. The length of a link whose two ends rest on the ground is
        dropped, too, but satisfied by the ground.
        """
        wanted = np.array(self.chain.lengths)
        lengths = np.linalg.norm(np.diff(self.state[0], axis=0), axis=1)
        good = np.flatnonzero(np.abs(lengths - wanted) <= STRETCH * wanted)
        met = {f"length of link {i}" for i in good}
        return tuple(name for name in self.dropped if name not in met)

    @property
    def holds(self) -> tuple[str, ...]:
        """Descriptions of the active limits and ground contacts."""
        return tuple(self.simulator.modes.named(key) for key in self.simulator.holding)

    def events_since(self, t: float) -> list[Event]:
        """Return the stored events later than a simulated time t [s], oldest first."""
        return [event for event in self.simulator.events if event.time > t]

    def trouble_since(self, t: float) -> list[Event]:
        """Return the stored events of trouble later than a simulated time t [s].

        They are those of kind mode_cycle, chatter and event_limit, oldest first.
        """
        return [event for event in self.events_since(t) if event.kind in TROUBLE]

    # ---- machinery

    def _begin_period(self) -> Any:
        """Return the state of motion before a period, for `_return_to`."""
        return self.simulator.motion()

    def _return_to(self, state: Any) -> None:
        """Restore a state that `_begin_period` returned."""
        self.simulator.return_to(state)

    def _step(self, t: float, dt: float) -> None:
        """Move by one step of the simulator, which has its own time and step."""
        self.simulator.step(self.tau)
        self._check_finite()

    def _on_event(self, event: Event) -> None:
        self.happened[event.kind] += 1

    def _vector(self, name: str, values: Any) -> np.ndarray:
        array = shaped_array(name, values, (self.chain.n - 1,))
        if not np.isfinite(array).all():
            bad = self.chain.joint_names[int(np.flatnonzero(~np.isfinite(array))[0])]
            raise NonFiniteError(f"{name}: that of {bad} is not finite", name)
        return array

    def _check_finite(self) -> None:
        """Raise NonFiniteError if the state is not finite; names step and joint."""
        good = np.isfinite(np.hstack(self.state)).all(1)
        if not good.all():
            bad = self.chain.joint_names[int(np.flatnonzero(~good)[0])]
            raise NonFiniteError(
                f"step {self.simulator.steps}: the motion of joint {bad} is not finite"
                f" (t = {self.t:.6g} s)",
                "x",
            )


def chain_poses(chain: ChainModel, state: ChainState) -> list[JointPose]:
    """Return the pose of each joint of a chain, in the axes of the next link.

    Position and orientation are relative to the fixed frame of the chain. The plane's x
    axis is the frame's X axis and its y axis is Z, so that angles are about -Y. The
    last joint has the axes of the last link. Velocities are [angular; linear], 6
    [rad/s; m/s], relative to the fixed frame, in the axes of the link. The chain must
    have a link (not checked).

    Source: WAW-15.2.
    """
    angles = np.cumsum(joint_angles(chain, state)).tolist()
    rates = np.cumsum(joint_rates(chain, state)).tolist()
    poses = []
    for i, name in enumerate(chain.joint_names):
        k = min(i, chain.n - 2)
        c, s = np.cos(angles[k]), np.sin(angles[k])
        (x, y), (vx, vy) = state.x[i].tolist(), state.v[i].tolist()
        rotation = np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
        linear = c * vx + s * vy, 0.0, c * vy - s * vx
        velocity = np.array([0.0, -rates[k], 0.0, *linear])
        poses.append(JointPose(name, rotation, np.array([x, 0.0, y]), velocity))
    return poses
