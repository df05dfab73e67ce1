"""Simulation without ROS: a robot that takes torques, and recorded runs."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.consistency import close_loops
from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model
from dyn_core.registry import solver, solvers
from dyn_core.signature import ENERGY


@dataclass
class Simulator:
    """A robot in one process: takes joint forces, moves by a STEP solver.

    Attributes:
        model: Robot.
        period: Time that `advance` covers [s].
        step, forward_dynamics: Solvers, by name or as objects.
        substeps: Steps in a period.
        command_timeout: Age at which a command counts as stale: then zero [s].
        q0, qd0: Start; None for neutral within the limits, at rest.
        prescribed: Joints that follow given accelerations instead of forces, see
            `accelerate`; the step is then hybrid_euler.
        joint_friction, joint_springs, limit_stops: Whether they act.
        engine: Engine of the Program.
        counters: What was refused or late, by name.
    """

    model: Model
    period: float = 0.002
    step: Any = "semi_implicit_euler"
    forward_dynamics: Any = "aba"
    substeps: int = 1
    command_timeout: float = 0.1
    q0: Any = None
    qd0: Any = None
    prescribed: tuple[str, ...] = ()
    joint_friction: bool = True
    joint_springs: bool = True
    limit_stops: bool = True
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name in ("period", "command_timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingError(f"{name} must be > 0 and finite, got {value}", name)
        if self.substeps < 1:
            raise SettingError("substeps must be >= 1", "substeps")
        self.prescribed = tuple(self.prescribed)
        if self.prescribed and self.step != "semi_implicit_euler":
            raise SettingError(
                f"step '{self.step}' takes no given accelerations; with prescribed"
                " joints it must be semi_implicit_euler (hybrid_euler is its form)",
                "step",
            )
        kind: Any = {"forward_dynamics": self.forward_dynamics}
        if self.prescribed:
            kind = {"prescribed": self.prescribed}
        self.program = solver("hybrid_euler" if self.prescribed else self.step).build(
            self.model,
            **kind,
            joint_friction=self.joint_friction,
            joint_springs=self.joint_springs,
            limit_stops=self.limit_stops,
            engine=self.engine,
            finite=True,
        )
        self.program.prepare()
        self.q0 = self._start(self.q0)
        nv = self.model.nv
        self.qd0 = np.zeros(nv) if self.qd0 is None else np.asarray(self.qd0, float)
        if self.qd0.shape != (nv,) or not np.isfinite(self.qd0).all():
            raise SettingError(f"qd0 needs {nv} finite numbers, got {self.qd0}", "qd0")
        self.limit = np.where(
            self.model.effort_limit > 0, self.model.effort_limit, np.inf
        )
        self.paused = False
        self.reset()

    def _start(self, q0: Any) -> np.ndarray:
        """Check the start, or make one: neutral, in the limits; loops closed."""
        model = self.model
        if q0 is not None:
            q = np.asarray(q0, float)
            if q.shape != (model.nq,) or not np.isfinite(q).all():
                raise SettingError(f"q0 needs {model.nq} finite numbers, got {q}", "q0")
            q = model.normalize(q)
            return close_loops(model, q) if model.loops else q
        q = model.neutral()
        for i in model.independent:
            if model.joint[i].nv == 1:
                at, v = model.q_slices[i], model.v_slices[i]
                q[at] = np.clip(q[at], model.lower[v], model.upper[v])
        return close_loops(model, q, tries=20) if model.loops else q

    def reset(self) -> None:
        """Go back to the start; commands are forgotten, the time goes on."""
        self.q, self.qd = self.q0.copy(), self.qd0.copy()
        self.tau = np.zeros(self.model.nv)
        self.taken = self.tau
        self.commanded: float | None = None
        slices = [self.model.v_slice(name) for name in self.prescribed]
        self.qdd_u = np.zeros(sum(at.stop - at.start for at in slices))
        self.accelerated: float | None = None

    def command(self, t: float, tau: Any) -> None:
        """Take joint forces (nv,) at the time t; bad ones raise and change nothing."""
        tau = np.asarray(tau, float)
        if tau.shape != (self.model.nv,):
            self.counters["command of wrong size"] += 1
            raise ShapeError(
                "command", f"shape ({self.model.nv},)", f"shape {tau.shape}"
            )
        if not np.isfinite(tau).all():
            self.counters["command not finite"] += 1
            raise NonFiniteError("command is not finite", "command")
        limited = np.clip(tau, -self.limit, self.limit)
        if not np.array_equal(limited, tau):
            self.counters["command limited"] += 1
        self.tau, self.commanded = limited, t

    def accelerate(self, t: float, qdd: Any) -> None:
        """Take accelerations of the prescribed joints, in the order of coordinates.

        Bad ones raise and change nothing; without new ones for the command timeout the
        joints go on at their velocity.
        """
        qdd = np.asarray(qdd, float)
        if qdd.shape != self.qdd_u.shape:
            self.counters["acceleration of wrong size"] += 1
            wanted = f"shape {self.qdd_u.shape} for {', '.join(self.prescribed)}"
            raise ShapeError("accelerations", wanted, f"shape {qdd.shape}")
        if not np.isfinite(qdd).all():
            self.counters["acceleration not finite"] += 1
            raise NonFiniteError("acceleration is not finite", "accelerations")
        self.qdd_u, self.accelerated = qdd.copy(), t

    @property
    def effort(self) -> np.ndarray:
        """Joint forces: commanded ones, and those that given accelerations take."""
        return self.taken if self.prescribed else self.tau

    def stale(self, t: float) -> bool:
        """Whether there is no command young enough at t."""
        return self.commanded is None or t - self.commanded > self.command_timeout

    def advance(self, t: float) -> None:
        """Move by one period from the time t.

        Raises:
            DynError: The step failed; the last good state is kept and it pauses.
        """
        if self.paused:
            return
        if self.stale(t) and self.commanded is not None:
            self.counters["command stale"] += 1
            self.tau, self.commanded = np.zeros(self.model.nv), None
        given = self.accelerated
        if given is not None and t - given > self.command_timeout:
            self.counters["acceleration stale"] += 1
            self.qdd_u, self.accelerated = np.zeros_like(self.qdd_u), None
        q, qd, dt = self.q, self.qd, self.period / self.substeps
        try:
            for _ in range(self.substeps):
                if self.prescribed:
                    q, qd, self.taken = self.program(q, qd, self.qdd_u, self.tau, dt)
                else:
                    q, qd = self.program(q, qd, self.tau, dt)
        except DynError:
            self.paused = True
            self.counters["step failed"] += 1
            raise
        self.q, self.qd = q, qd


@dataclass(frozen=True)
class Recording:
    """A run: one row a period.

    Attributes:
        t: Times [s].
        q, qd, tau: States and joint forces.
        q_ref: References, or NaN where there was none.
        energy: Kinetic plus potential energy [J].
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    q_ref: np.ndarray
    energy: np.ndarray


def simulate(
    model: Model,
    controller: Any = None,
    *,
    duration: float = 1.0,
    begin: Callable[[float], None] | None = None,
    progress: bool = True,
    **settings: Any,
) -> Recording:
    """Run a robot under a controller and record it.

    Args:
        model: Robot.
        controller: Something with update(t, q, qd) -> tau or None; None for no force.
        duration: Simulated time [s].
        begin: Called once with the time of the second period, to start a trajectory.
        progress: Whether a line of progress is shown on runs longer than two seconds.
        settings: For the Simulator.
    """
    robot = Simulator(model, **settings)
    count = round(duration / robot.period)
    rows = _Rows(model, count)
    bar = _Progress(duration, progress)
    for k in range(count):
        t = k * robot.period
        if k == 1 and begin is not None:
            begin(t)
        tau = None if controller is None else controller.update(t, robot.q, robot.qd)
        if tau is not None:
            robot.command(t, tau)
        rows.put(k, t, robot, getattr(controller, "reference", None))
        robot.advance(t)
        bar.show(t)
    bar.end()
    return rows.recording()


class _Rows:
    """Arrays that fill up."""

    def __init__(self, model: Model, count: int) -> None:
        self.t = np.arange(count, dtype=float)
        self.q, self.q_ref = np.full((2, count, model.nq), np.nan)
        self.qd, self.tau = np.full((2, count, model.nv), np.nan)
        name = solvers(ENERGY)[0]
        self.program = solver(name).build(model)

    def put(self, k: int, t: float, robot: Simulator, reference: Any) -> None:
        """Fill row k."""
        self.t[k], self.q[k], self.qd[k], self.tau[k] = t, robot.q, robot.qd, robot.tau
        if reference is not None:
            self.q_ref[k] = reference.q

    def recording(self) -> Recording:
        """Give the run, energies computed at once."""
        energy = np.zeros(0)
        if len(self.t):
            kinetic, potential = self.program(self.q, self.qd)
            energy = kinetic + potential
        return Recording(self.t, self.q, self.qd, self.tau, self.q_ref, energy)


class _Progress:
    """A line of progress on the terminal, for long runs only."""

    def __init__(self, duration: float, wanted: bool) -> None:
        self.duration, self.wanted = duration, wanted and sys.stderr.isatty()
        self.begun = self.shown = time.monotonic()

    def show(self, t: float) -> None:
        """Show how far it is, twice a second, after two seconds."""
        now = time.monotonic()
        if self.wanted and now - self.begun > 2 and now - self.shown > 0.5:
            self.shown = now
            print(f"\r{t:8.2f} of {self.duration:.2f} s", end="", file=sys.stderr)

    def end(self) -> None:
        """Close the line."""
        if self.shown > self.begun:
            print(file=sys.stderr)
