"""Simulation of a robot with contacts: any shapes, any contact solver, any stepper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.stepping import array_reports
from dyn_core.contact.stepping.array_reports import Reports
from dyn_core.contact.stepping.array_step import MOST_PROVEN, ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.event_step import EventStep, Flight, Forces
from dyn_core.contact.stepping.integration import turning
from dyn_core.contact.stepping.reports import StepReport
from dyn_core.contact.stepping.step_records import StepRecord
from dyn_core.contact.world import World
from dyn_core.errors import (
    SHOWN,
    InfeasibleError,
    NonFiniteError,
    SettingError,
    ShapeError,
    UnsupportedError,
    unknown_name,
)
from dyn_core.model import Model
from dyn_core.model.checks.robots import DEEP
from dyn_core.model.payload import PayloadInput
from dyn_core.simulation.channels import (
    Channels,
    PointForce,
    contact_forces,
    joint_forces,
)
from dyn_core.simulation.robot_plant import RobotPlant
from dyn_core.solving.registry import solver
from dyn_core.validation import known_keywords

UNSOLVED = "contact not converged"  # name of the counter


class StepTaken(NamedTuple):
    """The last step, as input of `reactions`.

    The constraints were evaluated at q and qd; `velocity` is that after the step, along
    the axes at q. `wrenches` returns the contact impulses on each body, (nb, 6), body
    coordinates, row 0 for body 1 [N·m·s; N·s].
    """

    q: np.ndarray
    qd: np.ndarray
    velocity: np.ndarray
    h: float
    wrenches: Callable[[], np.ndarray]


@known_keywords
@dataclass
class ContactSimulator(RobotPlant):
    """A robot in a World, driven by joint forces and advanced by a stepper.

    `command` sets joint forces and `advance` simulates a period, see SimulatedPlant; q,
    qd and other attributes of the robot are described in RobotPlant. A contact problem
    that is not solved to its tolerance is counted and reported. If a problem has no
    solution, or a result is not finite, `advance` raises, restores the state before the
    period and pauses.

    Attributes:
        model: Robot with shapes.
        world: A World, "floor", a YAML file or a mapping of its fields; None: a floor.
            Afterwards a World.
        period: Time that `advance` simulates [s].
        substeps: Number of steps in a period.
        command_timeout: Age from which a command is stale and replaced by zero [s].
        q0, qd0: Initial state; None: neutral within the joint limits, at rest.
        prescribed: Names of joints with prescribed accelerations, which `accelerate`
            sets.
        joint_friction, joint_springs: Whether joint friction and joint springs act.
        engine: Engine of the Programs; None: the default.
        counters: Number of refused, late and not converged events, by name.
        f_ext: External force on each body, body coordinates, (nb, 6), row 0 for body 1
            [N·m; N]; None: none. It may be changed between periods.
        compensates_gravity: Whether the robot compensates the weight of itself and its
            payload, so that commands do not contain it; only for a fixed root without
            loops.
        payload_link: Link to which `attach` attaches a payload; empty: none.
        reports: A StepReport for each step and impact of the last period.
        warnings: Sentences on doubtful properties of the initial state.

    Raises:
        DynError: A setting, the world or the initial state is invalid.

    Source: LCP-4, LCP-15, LCP-19, LCP-20.
    """

    model: Model
    world: Any = None
    period: float = 0.002
    substeps: int = 1
    command_timeout: float = 0.1
    q0: Any = None
    qd0: Any = None
    prescribed: tuple[str, ...] = ()
    joint_friction: bool = True
    joint_springs: bool = True
    engine: str | None = None
    counters: Counter = field(default_factory=Counter)
    f_ext: np.ndarray | None = None
    compensates_gravity: bool = False
    payload_link: str = ""

    def __post_init__(self) -> None:
        self._check_settings()
        self.world: World = World.of(self.world)
        self.contact_model = ContactModel(
            self.model,
            self.world,
            self.joint_friction,
            self.joint_springs,
            self.engine,
            self.carried,
        )
        h = self.period / self.substeps
        self.arrays = ArrayStep(self.contact_model, h, self.prescribed)
        self._events: EventStep | None = None
        if self.world.stepper == "event_driven":
            self.contact_model.prepare()
            self._events = EventStep(self.arrays)
        self._reactions: dict[Any, Any] = {}
        self._sensors: dict[str, WrenchSensor] = {}
        self._prepare()
        self.warnings += self._overlap()
        if self.world.limits:
            self.warnings += self._beyond_limits()
        if self.world.half_spaces or self.world.height_fields:
            self.warnings += self._untouchable()

    def _untouchable(self) -> tuple[str, ...]:
        """Return a tuple with a sentence if contacts are on and no pair is tested."""
        pairs = self.contact_model.pairs
        if pairs is None or pairs.links:
            return ()
        why = "the robot has no shapes; valid: <collision> in its file"
        if self.model.shapes:
            why = (
                "groups and sidecar leave out all pairs of shapes; valid: other groups"
            )
        return (f"no contact is possible: {why}, or World(contacts=False)",)

    def _overlap(self) -> tuple[str, ...]:
        """Return a tuple with one sentence on the overlaps at q0, the deepest first.

        The tuple is empty if no contact overlaps by 0.01 m (DEEP) or more.
        """
        pairs = self.contact_model.pairs
        contacts = [] if pairs is None else pairs.contacts(self.q0)
        deep = sorted((c for c in contacts if c.gap <= -DEEP), key=lambda c: c.gap)
        if not deep:
            return ()
        worst = deep[0]
        how = {
            "erp_cfm": "the first steps push it out as a spring does",
            "none": "nothing pushes it out with the stabilisation none",
        }.get(
            self.world.stabilisation,
            f"it is pushed out at {self.world.push_out_speed:g} m/s at most",
        )
        if not worst.body_b:
            how += "; valid: q0 from World.on_ground(model, q0)"
        met = dict.fromkeys((c.id.link_a, c.id.link_b) for c in deep)
        links = [f"[{a}, {b}]" for a, b in met if {a, b} <= set(self.model.frames)]
        if links:
            how += "; links that always meet: "
            if len(links) > SHOWN:
                how += "World(groups={'robot': model.frame_names}) leaves out all"
                how += f" {len(links)} pairs of the robot with itself, or "
            how += f"pairs: {{deny: [{', '.join(links[:SHOWN])}]}} in the sidecar"
        where = f"{worst.id.link_a}/{worst.id.link_b}"
        return (f"the start overlaps by {-worst.gap:.3g} m at {where}: {how}",)

    def fallen(self) -> tuple[str, ...]:
        """Return a sentence on each link that lies beside and below all height fields.

        The origins of its shapes at the present q count, except of those that are also
        tested with a half-space. The tuple is empty if there is no such link.
        """
        pairs = self.contact_model.pairs
        depths = {} if pairs is None else pairs.fallen(self.q)
        fields = ", ".join(field.name for field in self.world.height_fields)
        return tuple(
            f"link '{link}' has left the grid of {fields} and ends {depth:.3g} m below"
            " its lowest ground: there is no ground beside a grid; valid: a larger"
            " grid, or a half-space below"
            for link, depth in depths.items()
        )

    def unsolved(self) -> tuple[str, ...]:
        """Return a tuple with one sentence on contact problems not solved to tolerance.

        It has their number since the last `reset` and the time of the first, on the
        clock of `advance`. Impacts count too, problems without a solution do not. The
        tuple is empty if there are none.
        """
        if not self._unsolved:
            return ()
        return (
            f"{self._unsolved} steps were not solved to the tolerance of"
            f" {self.world.solver}, first that at t = {self._first_unsolved}: friction"
            " had bounds of its own in them, which adds no energy, but contacts may"
            " slide or stick unlike Coulomb's law; valid: a shorter period, or less"
            f" friction{self._unproven}",
        )

    def reset(self) -> None:
        """Restore the initial state; clear commands, warm-start impulses and reports.

        The count of `unsolved` restarts. `counters`, f_ext, a payload and `braked`
        remain, and so does `paused` unless a failed step has set it.
        """
        super().reset()
        self.arrays.forget()
        if self._events is not None:
            self._events.forget()
        self._taken: list[StepRecord | StepReport] = []
        self._last: StepTaken | StepRecord | None = None
        self._unsolved, self._first_unsolved, self._unproven = 0, "", ""

    def channels(self) -> Channels:
        """Return the channels of a robot, with forces of contacts and joints.

        `forces` has the function contacts, the mean force of each contact in the last
        period (an empty list before the first step), and, only for robots without
        loops, reactions, the forces through the joints (None before the first step).
        `wrench` is a function like the method of this class, which returns None before
        the first step; `faults` describes the last unsolved contact problem, by the key
        "contact not converged"; `free` is True.
        """
        forces: dict[str, Any] = {
            "contacts": lambda: contact_forces(self.reports, self.period)
        }
        if not self.model.loops:
            forces["reactions"] = self._joint_reactions
        return replace(
            super().channels(),
            forces=forces,
            wrench=self._sensed,
            faults={UNSOLVED: self._last_unsolved},
            free=True,
        )

    def _joint_reactions(self) -> list[PointForce] | None:
        """Return the force through each joint in the last step; None before the first.

        Each acts on the joint's body, about the origin and in axes of its link [N·m;
        N].
        """
        if self.last is None:
            return None
        return joint_forces(self.model, self.reactions(coordinates="link"))

    def _sensed(self, link: str) -> np.ndarray | None:
        """Return `wrench` of a link, (6,) [N·m; N], or None before the first step.

        A link without a sensor is refused, also before the first step.
        """
        sensor = self._sensor(link)
        if self.last is None:
            return None
        return sensor.read(self._last_motion("wrench"), self.carried.values)

    def _sensor(self, link: str) -> WrenchSensor:
        """Return the sensor at a link, made at its first use."""
        if link not in self._sensors:
            made = WrenchSensor(self.model, link, self.carried, self.engine)
            self._sensors[link] = made
        return self._sensors[link]

    def _last_unsolved(self) -> str:
        """Return a description of the last unsolved contact problem of the last period.

        If all are solved, the last problem is described, as "contact not solved" too.
        """
        unsolved = [report for report in self.reports if not report.converged]
        report = (unsolved or self.reports)[-1]
        return (
            f"contact not solved: {report.solver}: {report.status} after"
            f" {report.iterations} iterations, residual {report.residuals.law:.2g}"
        )

    def _diagnostic_values(self) -> dict[str, Any]:
        """Return solver, stepper, fault counters and results of the last period.

        Iterations and residuals are the largest of the period, the energy change is its
        sum; status and rank are of the last step. Residuals, energy change and rank are
        texts.
        """
        counters, reports, last = self.counters, self.reports, self.report
        settings = {
            "contact solver": self.world.solver,
            "contact stepper": self.world.stepper,
            UNSOLVED: counters[UNSOLVED],
            "contact not unique": counters["contact not unique"],
            "contacts wedged": counters["contacts wedged"],
        }
        if last is None:
            return settings
        worst = [max(r) for r in zip(*(x.residuals for x in reports), strict=True)]
        shown = zip(last.residuals._fields, worst, strict=True)
        return {
            **settings,
            "contacts now": len(contact_forces(reports, self.period)),
            "contact status": last.status,
            "contact iterations": max(x.iterations for x in reports),
            "contact residuals": ", ".join(f"{name} {x:.2g}" for name, x in shown),
            "contact energy change [J]": f"{sum(x.energy_change for x in reports):.6g}",
            "contact rank": f"{last.rank} of {last.m} rows",
        }

    @property
    def reports(self) -> Reports:
        """Reports of the last period's steps and impacts, in order, made when read."""
        return Reports(self.arrays, self._taken)

    @property
    def program(self) -> Any:
        """The Program of the robot's kinematics; its `engine` is the engine in use."""
        return self.contact_model.kinematics

    @property
    def report(self) -> StepReport | None:
        """Last report of the last period; None before the first step."""
        return self.reports[-1] if self.reports else None

    @property
    def last(self) -> StepTaken | None:
        """The last step, as input of `reactions`; None before the first.

        It has the state q, qd at which the constraints were evaluated, the velocity
        after it, its length h [s], and `wrenches`, a function that returns the contact
        impulses on the bodies, (nb, 6).
        """
        record = self._last
        if not isinstance(record, StepRecord):
            return record
        wrenches = partial(array_reports.wrenches, self.arrays, record)
        return StepTaken(record.q, record.qd, record.velocity, record.h, wrenches)

    def _begin_period(self) -> Any:
        """Return state, reports and last step before a period; begin new reports.

        The impulses of the next warm start are stored for `_return_to`, too.
        """
        (self._events or self.arrays).save_impulses()
        before = super()._begin_period(), self._taken, self._last
        self._taken = []
        return before

    def _return_to(self, state: Any) -> None:
        """Restore state, reports, `last` and the warm start; the counters stay."""
        (self._events or self.arrays).restore_impulses()
        before, self._taken, self._last = state
        super()._return_to(before)

    def _move(
        self, t: float, q: np.ndarray, qd: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd after one step from time t [s]; dt is not used.

        The length of the step is period / substeps. The step's report is added to
        `reports`, its faults to `counters`; `last` is set, and `applied_effort` if
        joints are prescribed or the robot compensates gravity.
        """
        tau = self._acting(t, q) if self.compensates_gravity else self.tau
        arrays = self.arrays
        accelerations = self.qdd_u if self.prescribed else None
        f_ext = None if self.f_ext is None else self._applied_forces()
        if self._events is not None:
            arrays.accelerate(accelerations)
            bodies = () if f_ext is None else (np.array(f_ext, float),)
            carried = self.contact_model.carried.values
            forces = Forces(np.array(tau, float), bodies, carried)
            return self._move_by_events(t, q, qd, forces)
        q, qd, record = arrays.step(t, q, qd, tau, f_ext, accelerations)
        if record.status != "converged" or record.short:
            self._count(arrays, record)
        self._taken.append(record)
        self._last = record
        if self.prescribed:
            self.applied_effort = tau + arrays.prescribed_forces(record)
        return q, qd

    def _move_by_events(
        self, t: float, q: np.ndarray, qd: np.ndarray, forces: Forces
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd after one step of the stepper event_driven from time t [s].

        The reports of flights and impacts are added to `reports`, faults to `counters`;
        `last` becomes the last part of the step. With prescribed joints
        `applied_effort` is set, unless the step ends with a flight.
        """
        assert self._events is not None
        self._events.counters = self.counters
        q, qd, parts = self._events.step(t, q, qd, forces)
        for part in parts:
            if isinstance(part, Flight):
                self._taken.append(part.report)
                continue
            if part.status != "converged":
                self._count(self.arrays, part)
            self._taken.append(part)
        last = parts[-1]
        if isinstance(last, Flight):
            none = partial(np.zeros, (self.model.nb, 6))
            self._last = StepTaken(last.q, last.qd, last.velocity, last.h, none)
            return q, qd
        self._last = last
        if self.prescribed:
            self.applied_effort = forces.tau + self.arrays.prescribed_forces(last)
        return q, qd

    def _count(self, arrays: ArrayStep, record: StepRecord) -> None:
        """Count the faults of a step in `counters`; unsolved steps also for `unsolved`.

        A contact problem without a solution is counted, then an InfeasibleError.
        """
        if record.short:
            self.counters["contacts without room"] += 1
        if record.status == "wedged":
            self.counters["contacts wedged"] += 1
        if record.status in ("max_iterations", "frozen_friction", "no_room"):
            self.counters[UNSOLVED] += 1
            self._unsolved += 1
            if record.status != "frozen_friction" and len(record.impulse) > MOST_PROVEN:
                self._unproven = f"; with more than {MOST_PROVEN} rows it is not known"
                self._unproven += " whether there are impulses that solve them"
            if self._unsolved == 1:
                self._first_unsolved = f"{record.t:.6g} s, of {arrays.names(record)}"
        if record.status == "not_unique":
            self.counters["contact not unique"] += 1
        if record.status in ("infeasible", "ray"):
            self.counters["contact infeasible"] += 1
            raise InfeasibleError(
                f"contacts: {arrays.solver_name} found no impulses ({record.status})"
                f" for {arrays.names(record)}",
                residual=float(record.residuals[4]),
            )

    def _applied_forces(self) -> np.ndarray | None:
        """Return f_ext as an array of finite floats, (nb, 6), or None if it is None."""
        if self.f_ext is None:
            return None
        shape = (self.model.nb, 6)
        try:
            f_ext = np.asarray(self.f_ext, float)
        except (TypeError, ValueError, OverflowError) as error:
            raise ShapeError("f_ext", f"shape {shape}", repr(self.f_ext)) from error
        if f_ext.shape != shape:
            raise ShapeError("f_ext", f"shape {shape}", f"shape {f_ext.shape}")
        if not np.isfinite(f_ext).all():
            row, column = (int(x[0]) for x in np.nonzero(~np.isfinite(f_ext)))
            raise NonFiniteError(
                f"f_ext[{row}, {column}], on the body of joint"
                f" '{self.model.names[row + 1]}', is {f_ext[row, column]}; valid: a"
                " finite number",
                "f_ext",
            )
        return f_ext

    def reactions(self, **options: Any) -> np.ndarray:
        """Return the force through each joint in the last step, (nb, 6) [N·m; N].

            f_i = f_net_i - f_ext_i - contacts_i + sum of the children's

        f_i acts on body i, from its parent; row 0 is for body 1. f_net_i is the body's
        rate of momentum less its weight. Mean acceleration and mean contact forces of
        the last step are used; f_ext has its present value. The Program of each set of
        options is built at its first use.

        Args:
            options: Options of the solver joint_reactions: coordinates ("body" by
                default, socket, link, world), part ("whole" by default, active,
                constraint).

        Raises:
            UnsupportedError: The robot has loops, no step has been made, or an option
                is not valid.
            ShapeError, NonFiniteError: f_ext is invalid.

        Source: LCP-15.
        """
        motion = self._last_motion("reactions")
        if self.model.loops:
            names = ", ".join(loop.name for loop in self.model.loops)
            raise UnsupportedError(
                f"reactions: the robot has loops ({names}), whose forces are not among"
                " those of contacts; valid: the solver joint_reactions_loops"
            )
        key = tuple(sorted(options.items()))
        if key not in self._reactions:
            self._reactions[key] = solver("joint_reactions").build(
                self.model,
                inputs=["f_ext", *self.carried.paths],
                engine=self.engine,
                **options,
            )
            self._reactions[key].prepare()
        program = self._reactions[key]
        return np.asarray(program(*motion, *self.carried.values)[0])

    def wrench(self, link: str) -> np.ndarray:
        """Return what a force-torque sensor at a link reads, (6,) [N·m; N].

        It is contacts plus weight less rate of momentum, [moment; force], of all that
        hangs on the link, about its origin and in its axes, in the last step. f_ext
        counts as behind the sensor.

        Args:
            link: Name of a link that moves.

        Raises:
            UnsupportedError: No step has been made, the robot has loops, or a moving
                joint hangs on a link of the same body in front of the sensor.
            SettingError: No link that moves has this name.
            ShapeError, NonFiniteError: f_ext is invalid.
        """
        sensor, motion = self._sensor(link), self._last_motion("wrench")
        return sensor.read(motion, self.carried.values)

    def _last_motion(self, what: str) -> tuple[np.ndarray, ...]:
        """Return q, qd, mean qdd and forces on the bodies, (nb, 6), of the last step.

        The forces are the mean contact forces plus the present f_ext, body coordinates;
        q and qd are the state at which the constraints were evaluated.
        """
        last = self.last
        if last is None:
            raise UnsupportedError(f"{what}: no step has been made; call advance")
        f_ext = last.wrenches() / last.h
        applied = self._applied_forces()
        if applied is not None:
            f_ext = f_ext + applied
        rate = (last.velocity - last.qd) / last.h - turning(self.model, last.qd)
        return last.q, last.qd, rate, f_ext


class WrenchSensor:
    """A sensor between a link and what carries it: a moving or a fixed joint.

        w = contacts + weight - rate of momentum,   of all that hangs on the link
          = -(force through its joint),             [moment; force]

    about the origin and in the axes of the link. So a tool at rest that presses on a
    floor with 10 N reads 10 N upwards, and its own weight downwards.
    """

    def __init__(
        self, model: Model, link: str, carried: PayloadInput, engine: str | None
    ) -> None:
        self.model, self.link = model, link
        links = tuple(model.frame_names)
        if link not in links or not model.frame(link).body:
            moving = [name for name in links if model.frame(name).body]
            raise SettingError(unknown_name("moving link", link, moving), "link")
        if model.loops:
            names = ", ".join(loop.name for loop in model.loops)
            raise UnsupportedError(f"wrench of {link}: the robot has loops ({names})")
        place = model.frame(link)
        self._body, self._turn = place.body, np.asarray(place.X.force_matrix(), float)
        joints = model.build.description.joints
        behind = {link, *_behind(joints, link)}
        before = [
            name
            for name in links
            if model.frame(name).body == place.body and name not in behind
        ]
        for joint in joints:
            if joint.parent in before and joint.child not in (*before, link):
                raise UnsupportedError(
                    f"wrench of {link}: joint '{joint.name}' hangs on '{joint.parent}',"
                    " in front of the sensor and of the same body"
                )
        nothing = {
            f"{name}.{x}": np.zeros(size)
            for name in before
            for x, size in (("mass", 1), ("com", 3), ("inertia", 6))
        }
        self._counts = not carried.link or carried.link not in before
        self._program = solver("joint_reactions").build(
            model.with_values(nothing) if nothing else model,
            inputs=["f_ext", *carried.paths],
            engine=engine,
        )
        self._program.prepare()

    def read(
        self, motion: Sequence[np.ndarray], payload: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return the wrench, (6,) [N·m; N].

        `motion` is q, qd, qdd, and external forces on the bodies, (nb, 6), in body
        coordinates; those on the body of the link act behind the sensor. `payload` has
        PayloadInput.values: one array (10,), or none without a payload_link.
        """
        if not self._counts:
            payload = [0.0 * np.asarray(x) for x in payload]
        f = np.asarray(self._program(*motion, *payload)[0])[self._body - 1]
        return -self._turn @ f


def _behind(joints: Any, link: str) -> Iterator[str]:
    """Yield the names of the links that hang on a link, directly or through others.

    A link comes before those that hang on it. `joints` is a list, which is searched
    once for each link. A circle of joints is a RecursionError.
    """
    for joint in joints:
        if joint.parent == link:
            yield joint.child
            yield from _behind(joints, joint.child)
