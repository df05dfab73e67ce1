"""Simulation without ROS: a robot driven by joint forces, and recorded runs.

The arguments of `simulate` are checked before the first step.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

import numpy as np

from dyn_core.contact.stepping.reports import StepReport
from dyn_core.errors import NonFiniteError, SettingError, ShapeError, StateError
from dyn_core.model import Model
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.checks.robots import beyond_limits
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.passive_forces import forces_without_potential, with_potentials
from dyn_core.problems import ENERGY, STEP
from dyn_core.recordings.motion import FORCE_UNITS, MotionRecord
from dyn_core.recordings.recording import Recording, RowReports, RunSteps
from dyn_core.recordings.runs import limit_facts
from dyn_core.simulation.contacts import ContactSimulator
from dyn_core.simulation.control_laws import control_law
from dyn_core.simulation.plant import HOW_TO_ADVANCE
from dyn_core.simulation.robot_plant import RobotPlant
from dyn_core.solving.registry import solver, solver_of, solvers
from dyn_core.solving.solver import AUTO, Solver, check_function
from dyn_core.validation import (
    check_keywords,
    is_finite,
    known_keywords,
    shaped_array,
)

MOST_ROWS = 100_000_000  # limit of a run: an hour of computing, and gigabytes
NEITHER = ("model", "world", "counters")  # fields of a simulator that are no settings
ALSO = ("controller", "world", "duration", "begin", "progress")  # keywords of simulate
_OF_WORLD = {  # settings without a world: what takes their place in one
    "step": "stepper", "forward_dynamics": "solver", "limit_stops": "limits",
}  # fmt: skip


def check_settings(kind: Any, names: Collection[str]) -> None:
    """Refuse keywords that are no arguments of `simulate` and no settings of `kind`."""
    valid = [item.name for item in fields(kind) if item.name not in NEITHER]
    for name in names:
        if name in _OF_WORLD and name not in valid:
            raise SettingError(
                f"{name} changes nothing beside a world; valid: {_OF_WORLD[name]}= of"
                " dyn.World",
                name,
            )
    check_keywords("simulate", names, [*valid, *ALSO])


def check_begin(begin: Any, progress: Any, count: int) -> None:
    """Check `begin` and `progress` of `simulate`; `begin` needs two periods or more."""
    if begin is not None:
        check_function("begin", begin, "a function of the time, or None")
    if begin is not None and count < 2:
        raise SettingError(
            f"begin is called with the second period, and the run has {count}; valid:"
            " two periods or more",
            "begin",
        )
    if not isinstance(progress, bool):
        raise SettingError(f"progress is {progress!r}; valid: True, False", "progress")


def row_count(duration: Any, period: float) -> int:
    """Return the number of periods in a duration, rounded, a half to the even number.

    Refused: more than 1e8 (MOST_ROWS), or a positive duration of half a period at most.
    `period` must be above 0, which is not checked.
    """
    if not is_finite(duration) or duration < 0:
        raise SettingError(
            f"duration is {duration!r}; valid: a finite number of seconds, 0 or more",
            "duration",
        )
    count = round(min(float(duration) / period, 10.0 * MOST_ROWS))
    if count > MOST_ROWS:
        raise SettingError(
            f"duration {duration:g} s has more than {MOST_ROWS} periods of"
            f" {period:g} s; valid: a longer period, or several runs",
            "duration",
        )
    if duration > 0 and count == 0:
        raise SettingError(
            f"duration is {duration!r}, less than half a period of {period:g} s; valid:"
            " 0, or a period and more",
            "duration",
        )
    return count


STABLE = 2.785  # rk4 of x' = -k x decays up to this k dt
FALLEN = 0.3  # a free body that falls less is not told of [m]
ROUNDING = 1e-9  # share of the largest effort that counts as none
NO_COMMAND = ("the controller returned no joint forces in the whole run",)


def forward_dynamics_of(step: Any, model: Model, chosen: Any = None) -> Solver | None:
    """Return a step's forward dynamics, `chosen` or default; None without a slot."""
    step = solver_of(step, STEP)
    if "forward_dynamics" not in getattr(step, "slots", {}):
        return None
    taken: Solver = step.filling("forward_dynamics", model, chosen)
    return taken


class _StepName(str):
    """The name of a step, which is no function."""

    def __call__(self, *_: Any, **named: Any) -> NoReturn:
        raise SettingError(
            f"step is the name of a solver, '{self}'; {HOW_TO_ADVANCE}", "step"
        )


@known_keywords
@dataclass
class Simulator(RobotPlant):
    """A robot in one process, driven by joint forces and advanced by a STEP solver.

    `command` sets joint forces and `advance` simulates a period, see SimulatedPlant; q,
    qd and other attributes of the robot are described in RobotPlant. Driven joints
    follow the time given to `advance`.

    Attributes:
        model: Robot.
        period: Time that `advance` simulates [s].
        step: Solver of STEP, by name or as object.
        forward_dynamics: Solver by name or as object; None, "" or "auto": the step's
            default, which closes the loops of a robot. Afterwards the solver that the
            step takes: its name, or a Solver with changed options; None if the step has
            no such slot, or with prescribed joints, where it must be None.
        substeps: Number of steps in a period.
        command_timeout: Age from which a command is stale and replaced by zero [s].
        q0, qd0: Initial state; None: neutral within the joint limits, at rest.
        prescribed: Names of joints with prescribed accelerations instead of forces,
            which `accelerate` sets; the step is then hybrid_euler, with the hybrid
            dynamics of loops where there are some.
        joint_friction, joint_springs, limit_stops: Whether joint friction, joint
            springs and limit stops act.
        engine: Engine of the Program; None: the default.
        counters: Number of refused, limited or late events, by name.
        compensates_gravity: Whether the robot compensates the weight of itself and its
            payload, so that commands do not contain it; only for a fixed root without
            loops.
        payload_link: Link to which `attach` attaches a payload; empty: none.
        program: Program of the step.
        history: List that each step appends its (q, qd, effort) to, with the state
            before the step; None, as at first: not recorded.

    Raises:
        DynError: A setting or the initial state is invalid.
    """

    model: Model
    period: float = 0.002
    step: Any = "semi_implicit_euler"
    forward_dynamics: Any = None
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
    compensates_gravity: bool = False
    payload_link: str = ""

    def __post_init__(self) -> None:
        self._check_settings()
        if self.forward_dynamics in ("", AUTO):
            self.forward_dynamics = None
        if self.prescribed and self.step != "semi_implicit_euler":
            raise SettingError(
                f"step '{self.step}' takes no prescribed accelerations;"
                " valid: semi_implicit_euler (hybrid_euler is its form)",
                "step",
            )
        if self.prescribed and self.forward_dynamics is not None:
            raise SettingError(
                "forward_dynamics changes nothing where accelerations are prescribed:"
                " hybrid dynamics take its place; valid: None",
                "forward_dynamics",
            )
        kind: dict[str, Any] = {}
        if self.prescribed:
            kind["prescribed"] = self.prescribed
        elif self.forward_dynamics is not None:
            kind["forward_dynamics"] = self.forward_dynamics
        step = solver_of(self.step, STEP)
        self.step = _StepName(self.step) if isinstance(self.step, str) else self.step
        self.program = (solver("hybrid_euler") if self.prescribed else step).build(
            self.model, **kind, joint_friction=self.joint_friction,
            joint_springs=self.joint_springs, limit_stops=self.limit_stops,
            engine=self.engine, finite=True, inputs=self._more_inputs,
        )  # fmt: skip
        self.program.prepare()
        if not self.prescribed:
            taken = forward_dynamics_of(step, self.model, self.forward_dynamics)
            plain = taken is not None and not taken.changed_options
            self.forward_dynamics = taken.name if taken and plain else taken
        self.history: list[tuple[np.ndarray, ...]] | None = None
        self._prepare()
        self.warnings += self._beyond_limits() if self.limit_stops else ()
        if self.joint_friction and getattr(step, "name", "") == "rk4":
            self.warnings += self._creeping()

    def _creeping(self) -> tuple[str, ...]:
        """Return a tuple with a sentence on the joint that dry friction holds least.

        It is empty unless the joint may creep: explicit steps let it where the step
        times friction / (friction_speed inertia) exceeds 2.785 (STABLE).
        `inertia_scale` is the largest inertia along the joint in a few positions; that
        which it shows with free neighbours is less.
        """
        model, dt = self.model, self.period / self.substeps
        slope = model.flat("friction") / model.flat("friction_speed")
        for i in model.independent:
            slope[model.v_slices[i]] /= np.maximum(model.inertia_scale[i], 1e-300)
        k = int(np.argmax(slope)) if len(slope) else 0
        if not len(slope) or dt * slope[k] <= STABLE:
            return ()
        name = coordinates_of(model).velocities[k]
        needed = math.ceil(self.substeps * dt * slope[k] / STABLE)
        return (
            f"dry friction may not hold joint {name} at rest in rk4 steps of {dt:g} s:"
            f" it creeps then; valid: substeps={needed} or more, or"
            " step='semi_implicit_euler'",
        )

    def _diagnostic_values(self) -> dict[str, Any]:
        """Return the names of the solvers in use: keys "step" and "forward dynamics".

        With prescribed joints, "step" is the setting `step`.
        """
        solvers = {"step": self.step}
        if self.forward_dynamics is not None:
            solvers["forward dynamics"] = self.forward_dynamics
        return {key: getattr(x, "name", x) for key, x in solvers.items()}

    def _move(
        self, t: float, q: np.ndarray, qd: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q (nq,) and qd (nv,) after one step of length dt [s] from time t [s].

        With a `history`, the q and qd given and the joint forces that act, including
        those of prescribed joints, are appended to it as a tuple. `applied_effort` is
        set to these forces with prescribed joints or compensates_gravity.
        """
        tau, more = self._acting(t, q), self._more(t)
        try:
            if not self.prescribed:
                q_next, qd_next = self.program(q, qd, tau, dt, *more)
            else:
                inputs = q, qd, self.qdd_u, tau, dt, *more
                q_next, qd_next, tau = self.program(*inputs)
                self.applied_effort = tau
        except NonFiniteError as error:
            raise NonFiniteError(
                f"step at t = {t:.6g} s: {error}; is it too long?", error.name
            ) from error
        if self.history is not None:
            self.history.append((q, qd, tau))
        return q_next, qd_next

    def steps(self) -> RunSteps:
        """Return q, qd and effort of all steps in `history`, as RunSteps.

        `history` must be a list, else AssertionError. RunSteps.implicit is None unless
        the step is implicit or joints are prescribed; then it is (nv,) bool, False for
        prescribed coordinates and True for all others.
        """
        assert self.history is not None
        nq, nv = self.model.nq, self.model.nv
        q, qd, effort = (
            np.array([step[k] for step in self.history]).reshape(-1, n)
            for k, n in enumerate((nq, nv, nv))
        )
        implicit = np.ones(nv, bool)
        for name in self.prescribed:
            implicit[self.model.v_slice(name)] = False
        options = getattr(solver(self.step), "options", {})
        acts = self.prescribed or options.get("implicit", False)
        return RunSteps(q, qd, effort, implicit if acts else None)


def simulate(
    model: Model,
    controller: Any = None,
    duration: float = 1.0,
    *,
    world: Any = None,
    begin: Callable[[float], None] | None = None,
    progress: bool = True,
    **settings: Any,
) -> Recording:
    """Simulate a robot under a controller and return the recorded run.

    Doubtful properties of the run are the result's `warnings`; most of them are also
    issued as a ModelWarning.

    Args:
        model: Robot.
        controller: A function or Program (t, q, qd) -> tau, or an object with such a
            method `update`, which may return None to keep the last command; None: zero
            force. It is called once a period, with copies of q and qd. If it has an
            attribute `reference`, a position (nq,) or an object with such a `q`, it is
            recorded as q_ref.
        world: Environment with contacts: a World, "floor", a YAML file or a mapping of
            fields of a World; None: no contacts.
        duration: Simulated time, rounded to whole periods; the run has one row for
            each [s].
        begin: Function called once with the time of the second period [s], for example
            to start a trajectory; the run must have two periods or more.
        progress: Whether to show a progress line on runs longer than two seconds of
            wall time, if standard error is a terminal.
        settings: Settings of the Simulator, or with a world of the ContactSimulator.

    Raises:
        SettingError: An argument is invalid, or the controller function returned None.
        DynError: The world, a setting or a command is invalid, or a step failed.

    Errors of the controller pass through, StateError with the time. After an error
    there is no Recording.
    """
    robot: Any
    check_settings(Simulator if world is None else ContactSimulator, settings)
    law = control_law(controller, model)
    if world is None:
        robot = Simulator(model, **settings)
        robot.history = []
    else:
        robot = ContactSimulator(model, world, **settings)
    count = row_count(duration, robot.period)
    check_begin(begin, progress, count)
    warn_of(model.name, robot.warnings)
    rows = _RunRecorder(model, count, robot.joint_springs)
    bar = _Progress(duration, progress)
    for k in range(count):
        t = k * robot.period
        started = time.perf_counter()
        if k == 1 and begin is not None:
            begin(t)
        try:
            tau = law(t, robot.q.copy(), robot.qd.copy())  # a law may write into them
        except StateError as error:
            message = (
                f"the controller refuses the state at t = {t:g} s: {error}; valid: a"
                " slower reference, other gains, or other state_bounds of a Controller"
            )
            raise StateError(message, error.kind) from error
        if tau is not None:
            try:
                robot.command(t, tau)
            except ShapeError as error:
                name = f"{error.name}, which the controller returned"
                raise ShapeError(name, error.wanted, error.got) from error
        rows.put(k, t, robot, getattr(controller, "reference", None))
        robot.advance(t)
        rows.tau[k] = robot.tau  # zero if the command was too old for this period
        rows.cycle_time[k] = time.perf_counter() - started
        rows.reports.append(getattr(robot, "reports", ()))
        bar.show(t)
    bar.end()
    quiet = NO_COMMAND if controller is not None and not rows.commanded else ()
    dropped = rows.without_effect(robot.prescribed)
    dropped += rows.without_motor(robot.prescribed) + rows.out_of_reach()
    if isinstance(robot, ContactSimulator):
        dropped += robot.fallen() + robot.unsolved()
    else:
        dropped += rows.free_fall(robot.period)
    idle = getattr(controller, "idle", "")  # of a Controller: why it drives no more
    if isinstance(idle, str) and idle:
        dropped += (f"at the end the controller does not drive: {idle}",)
    warn_of(model.name, dropped)
    return rows.recording(robot, robot.warnings + rows.warnings + quiet + dropped)


class _RunRecorder:
    """Buffers for the rows of a run.

    The caller writes `cycle_time`, the wall time of each row (rows,) [s], and appends
    to `reports`. `warnings` are on forces without potential, which the energy lacks.
    """

    def __init__(self, model: Model, count: int, joint_springs: bool) -> None:
        self.model = model
        try:
            self.t, self.cycle_time = np.arange(count, dtype=float), np.zeros(count)
            self.q, self.q_ref = np.full((2, count, model.nq), np.nan)
            self.qd, self.tau = np.full((2, count, model.nv), np.nan)
        except MemoryError as error:
            raise SettingError(
                f"a run of {count} periods needs more memory than there is; valid: a"
                " longer period, or several runs",
                "duration",
            ) from error
        self.reports: list[Sequence[StepReport]] = []
        self.commanded = not count  # whether a command came; true without rows
        name = solvers(ENERGY)[0]
        bare = forces_without_potential(model) if joint_springs else ()
        self.warnings = tuple(
            f"energy is without that of the force '{force}', which has no potential"
            for force in bare
        )
        self.program = solver(name).build(
            with_potentials(model),
            inputs=["time"] if model.driven else [],
            joint_springs=joint_springs,
        )

    def put(self, k: int, t: float, robot: RobotPlant, reference: Any) -> None:
        """Write row k without joint forces: time [s], state, reference position.

        The reference is (nq,), or an object with such a `q`; without one the row of
        `q_ref` remains NaN. `commanded` becomes True if the robot has a command.
        """
        self.commanded = self.commanded or robot.commanded is not None
        self.t[k], self.q[k], self.qd[k] = t, robot.q, robot.qd
        if reference is not None:
            q_ref = getattr(reference, "q", reference)
            self.q_ref[k] = shaped_array("reference", q_ref, (self.model.nq,))

    def without_effect(self, prescribed: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple with a sentence if prescribed joints were commanded forces.

        The tuple is empty if all their commands were zero.
        """
        lost = [
            name for name in prescribed if self.tau[:, self.model.v_slice(name)].any()
        ]
        if not lost:
            return ()
        return (
            f"joint forces of the controller have no effect on {', '.join(lost)}: the"
            " prescribed accelerations are zero here; a loop of accelerate, command"
            " and advance of a Simulator prescribes others",
        )

    def without_motor(self, prescribed: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple with a sentence if joints without a motor got forces.

        Joints with a motor are model.active_joints; `prescribed` ones do not count. The
        tuple is empty if the forces are zero, but for rounding.
        """
        if not len(self.tau):
            return ()
        model, most = self.model, np.abs(self.tau).max(axis=0)
        for name in (*model.active_joints, *prescribed):
            most[model.v_slice(name)] = 0.0
        k = int(np.argmax(most)) if len(most) else 0
        if not most.any() or most[k] <= ROUNDING * max(1.0, np.abs(self.tau).max()):
            return ()
        labels = coordinates_of(model)
        unit = FORCE_UNITS[labels.velocity_units[k]]
        return (
            f"the controller returned {most[k]:.3g} {unit} for {labels.velocities[k]},"
            " which has no motor, and it acted; valid: zeros there, or external forces"
            " for what is no motor's",
        )

    def out_of_reach(self) -> tuple[str, ...]:
        """Return a sentence on references beyond the limits of position; else ()."""
        name, model = "the reference", self.model
        ends = [end.reduce(self.q_ref) for end in (np.fmin, np.fmax) if len(self.t)]
        sentences = [beyond_limits(model, name, q, name) for q in ends]
        return tuple(filter(None, sentences))[:1]

    def free_fall(self, period: float) -> tuple[str, ...]:
        """Return a sentence on each free body that falls like a stone; else ().

        Such a body sinks by more than FALLEN (0.3 m) and by more than 0.8 of the way of
        a free fall from rest. The period is the time between the rows [s].
        """
        g, sentences = np.array([float(x) for x in self.model.a_grav.lin]), []
        least = 0.4 * float(np.linalg.norm(g)) * ((len(self.t) - 1) * period) ** 2
        for i in self.model.independent:
            if self.model.joint[i].kind == "floating" and len(self.t) and g.any():
                place = self.model.q_slices[i].start
                way = self.q[-1, place : place + 3] - self.q[0, place : place + 3]
                fall = float(way @ g) / float(np.linalg.norm(g))
                if fall > max(FALLEN, least):
                    sentences.append(
                        f"joint '{self.model.names[i]}' falls freely, by {fall:.3g} m:"
                        " without a world nothing is below it; valid: world='floor', or"
                        " gravity=[0, 0, 0] of dyn.load"
                    )
        return tuple(sentences)

    def recording(
        self, robot: Simulator | ContactSimulator, warnings: tuple[str, ...]
    ) -> Recording:
        """Return the Recording of all rows, with their total energy [J].

        It is kinetic plus potential energy, the latter with joint springs if they act.
        `robot` is the simulator after the run; `warnings` are all sentences on the run:
        those of this recorder are not added.
        """
        energy = np.zeros(0)
        if len(self.t):
            time = (self.t,) if self.program.model.driven else ()
            kinetic, potential = self.program(self.q, self.qd, *time)
            energy = kinetic + potential
        motion = MotionRecord(
            coordinates_of(self.model), self.t, self.q, self.qd, tau=self.tau,
            q_ref=self.q_ref, facts=limit_facts(self.model), notes=warnings,
        )  # fmt: skip
        reports = RowReports(self.reports if any(self.reports) else ())
        steps = robot.steps() if isinstance(robot, Simulator) else None
        stops = isinstance(robot, Simulator) and robot.limit_stops
        acted = robot.joint_friction, robot.joint_springs, stops
        more = reports, dict(robot.counters), self.cycle_time, steps
        mean = None
        if stops:
            mean = np.diff(self.qd, axis=0, append=robot.qd[None]) / robot.period
        return Recording(motion, self.model, energy, *more, *acted, mean)


class _Progress:
    """Progress line on standard error, if it is a terminal, for long runs only."""

    def __init__(self, duration: float, wanted: bool) -> None:
        self.duration, self.wanted = duration, wanted and sys.stderr.isatty()
        self.start = self.shown = time.monotonic()

    def show(self, t: float) -> None:
        """Show the simulated time t [s] on standard error, if `wanted`.

        It is shown at most twice a second, and only after two seconds of wall time.
        """
        now = time.monotonic()
        if self.wanted and now - self.start > 2 and now - self.shown > 0.5:
            self.shown = now
            print(f"\r{t:8.2f} of {self.duration:.2f} s", end="", file=sys.stderr)

    def end(self) -> None:
        """End the line by a newline on standard error, if one was shown."""
        if self.shown > self.start:
            print(file=sys.stderr)
