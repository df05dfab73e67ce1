"""Event-driven stepping: each impact is located in time and solved on its own.

It uses the same prepared problems as other steps: an impact has the closed blocks, a
motion between impacts the blocks that stay closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import Residuals
from dyn_core.contact.rows.problem_assembly import prepare_step, write_velocity
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    LIMIT,
    PRESCRIBED,
    STEWART_TRINKLE,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.solver_memory import CONVERGED, MAX_ITERATIONS
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.composite_step import solve_state
from dyn_core.contact.stepping.contact_model import error_terms
from dyn_core.contact.stepping.integration import advanced, moved
from dyn_core.contact.stepping.poisson_and_sequential import ImpactLaw
from dyn_core.contact.stepping.position_correction import (
    INCOMPLETE,
    NOTHING,
    correct_positions,
)
from dyn_core.contact.stepping.reports import StepDetails, StepReport, step_energy
from dyn_core.contact.stepping.step_matrices import (
    inertia_factor,
    keep_blocks,
    sparse_rows,
)
from dyn_core.contact.stepping.step_records import StepRecord
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import NonFiniteError

CLOSED = 1e-8  # gap below which a contact is closed [m | rad]
DRIFT = 1e-4  # gap up to which a loaded contact stays closed [m | rad]
DRIFTING = 1e-3  # largest speed of such a contact [m/s]
RESTING = 1e-6  # opening speed below which a contact stays closed [m/s]
INSTANT = 1e-12  # duration of an impact: friction of joints has no time to act [s]
ON_TIME = 1e-12  # accuracy of an event's time, relative to the step
ROOTS = 60  # largest number of iterations for an event's time


class Forces(NamedTuple):
    """Applied forces of a step.

    Attributes:
        tau: Joint forces, (nv,) [N·m | N].
        bodies: Force on each body, body coordinates, (nb, 6) [N·m; N], as the only
            entry; or empty.
        carried: The payload's ten parameters, (10,), as the only entry; empty without
            a payload link.
    """

    tau: np.ndarray
    bodies: tuple[np.ndarray, ...]
    carried: tuple[np.ndarray, ...]


class Near(NamedTuple):
    """Constraints near a state.

    Attributes:
        id: Number of each block's constraint, equal in all steps, (blocks,).
        closing: Whether each is a contact or a limit, (blocks,).
        gap: Gap of each block, (blocks,) [m | rad].
        J: Row of the Jacobian for the first row of each block, (blocks, nv).
    """

    id: np.ndarray
    closing: np.ndarray
    gap: np.ndarray
    J: np.ndarray


class Flight(NamedTuple):
    """A motion without constraints.

    Attributes:
        q, qd, velocity: State at its start, and qd at its end.
        h: Duration [s].
        report: Report of the motion.
    """

    q: np.ndarray
    qd: np.ndarray
    velocity: np.ndarray
    h: float
    report: StepReport


Flow = Callable[[float], tuple[np.ndarray, np.ndarray, StepRecord | Flight]]


class EventStep:
    """The step of a robot in a World that stops at each impact.

        gap(t*) = 0:  sigma_n+ = -e sigma_n-,   H (qd+ - qd) = J.T Lambda

    Without closed contacts the motion between events is one step of RK4, with closed
    contacts a midpoint step that enforces them. Zeno guard: after World.max_impacts
    events in one step restitution is off for its remainder (counter `zeno`), and after
    twice as many the remaining time is one midpoint step with all contacts.

    Attributes:
        arrays: Memory of the problems; it makes reports of records.
        counters: Number of incomplete corrections ("contacts without room"), and of
            steps with too many events ("zeno").

    Source: LCP-17.
    """

    def __init__(self, arrays: ArrayStep) -> None:
        """Store the memory of steps.

        Args:
            arrays: ArrayStep of the robot in its world.
        """
        self.arrays, self.counters = arrays, Counter[str]()
        self._of, self._h = arrays.of, arrays.h
        self._moved = arrays.setup.moved
        self._loads: dict[int, np.ndarray] = {}
        self._saved: dict[int, np.ndarray] = {}
        self._tied: StepArrays | None = None

    def forget(self) -> None:
        """Delete the impulses of earlier steps: the next warm start is zero."""
        self._loads = {}

    def save_impulses(self) -> None:
        """Store the impulses of the next warm start, for `restore_impulses`."""
        self._saved = self._loads.copy()

    def restore_impulses(self) -> None:
        """Make the stored impulses the next warm start; zero if none were stored."""
        self._loads = self._saved.copy()

    def step(
        self, t: float, q: np.ndarray, qd: np.ndarray, forces: Forces
    ) -> tuple[np.ndarray, np.ndarray, list[StepRecord | Flight]]:
        """Return the state after a step of arrays.h [s], and its impacts and motions.

        Prescribed coordinates have the accelerations of `arrays`. `counters` increase,
        and impulses, also those before an error, are stored as the next warm start.

        Args:
            t: Start [s].
            q, qd: State, (nq,), (nv,).
            forces: Applied forces, constant in the step.

        Returns:
            q, qd, and in the order of time the records of impacts and constrained
            motions, and the flights.

        Raises:
            NonFiniteError: The state, or a velocity, is not finite. Errors of Programs
                and of the solver, and LinAlgError of a singular inertia, pass through.
        """
        remaining, events, h = self._h, 0, self._h
        parts: list[StepRecord | Flight] = []
        max_events = self._of.world.max_impacts
        while remaining > 1e-12 * h or not parts:
            near = self._near(q, qd, forces)
            if _approaching(near, qd):
                impact = self._impact(t, q, qd, forces, events < max_events)
                qd = impact.velocity
                parts.append(impact)
            closed = self._closed(near, qd)
            if events < 2 * max_events:
                flow = self._motion(t, q, qd, forces, near, closed)
                elapsed, q, qd, part = self._until(
                    flow, near, closed, remaining, forces
                )
            else:
                flow = self._motion(t, q, qd, forces, near, set(near.id.tolist()))
                elapsed, (q, qd, part) = remaining, flow(remaining)
            events += 1
            self.counters.update(["zeno"] * (events == max_events))
            parts.append(part)
            t, remaining = t + elapsed, remaining - elapsed
        q, qd = self._corrected(q, qd, forces, parts)
        known = set(near.id.tolist())
        self._loads = {k: x for k, x in self._loads.items() if k in known}
        return q, qd, parts

    def _until(
        self,
        flow: Flow,
        near: Near,
        closed: set[int],
        remaining: float,
        forces: Forces,
    ) -> tuple[float, np.ndarray, np.ndarray, StepRecord | Flight]:
        """Advance to a closing gap of a contact or limit, or to the end of the step.

        An event is sought only if a gap is closed at the end: one that closes and opens
        again before is not seen. Its time is found by the Illinois method, with
        bisection where it stalls, in at most 60 iterations. Those in `closed` are no
        events. Returns the elapsed time, `remaining` without an event [s]; q, qd, and
        the record of the motion.
        """
        present = zip(
            near.id[near.closing].tolist(), near.gap[near.closing], strict=True
        )
        closing_gaps = {key: min(float(gap), 0.0) for key, gap in present}
        closing_gaps.update(dict.fromkeys(closed, -np.inf))
        end = flow(remaining)
        gap_high = self._least_gap(end[0], closing_gaps, forces)
        if gap_high >= -CLOSED / 10:
            return remaining, *end
        low, high, x = 0.0, remaining, remaining
        gap_low, side = CLOSED, 0  # a contact that just separated is open
        for _ in range(ROOTS):
            x = high - gap_high * (high - low) / (gap_high - gap_low)
            # Bisection where the secant fails or moves the same side too often.
            if not low < x < high or abs(side) > 3:
                x, side = (low + high) / 2, 0
            end = flow(x)
            gap = self._least_gap(end[0], closing_gaps, forces)
            if abs(gap) <= CLOSED / 100 or high - low <= ON_TIME * self._h:
                break
            if gap < 0:
                gap_low = gap_low / 2 if side < 0 else gap_low
                high, gap_high, side = x, gap, min(side, 0) - 1
            else:
                gap_high = gap_high / 2 if side > 0 else gap_high
                low, gap_low, side = x, gap, max(side, 0) + 1
        return x, *end

    def _least_gap(
        self, q: np.ndarray, closing_gaps: Mapping[int, float], forces: Forces
    ) -> float:
        """Return the smallest gap of contacts and limits minus its closing gap.

        [m | rad], negative after a closing, inf if nothing that may close is near.
        Closing gaps are by number, 0 for others; -inf: never. The problem in the memory
        is overwritten.
        """
        near = self._near(q, np.zeros(self._of.model.nv), forces)
        pairs = zip(near.id[near.closing].tolist(), near.gap[near.closing], strict=True)
        gaps = [float(gap) - closing_gaps.get(key, 0.0) for key, gap in pairs]
        return min(gaps, default=np.inf)

    def _closed(self, near: Near, qd: np.ndarray) -> set[int]:
        """Return the numbers of contacts and limits that stay closed.

        Their gap is at most 1e-8 and does not open faster than 1e-6; or the impulse of
        their first row was above 0 in their last problem, their gap is at most 1e-4,
        and its rate at most 1e-3 in size. Units: m or rad, m/s or rad/s.
        """
        speeds, closed = near.J @ qd, set()
        for k in np.flatnonzero(near.closing):
            key, gap, speed = int(near.id[k]), near.gap[k], speeds[k]
            loaded = float(self._loads.get(key, (0.0,))[0]) > 0
            drifts = loaded and gap <= DRIFT and abs(speed) <= DRIFTING
            if drifts or (gap <= CLOSED and speed <= RESTING):
                closed.add(key)
        return closed

    def _motion(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        forces: Forces,
        near: Near,
        closed: set[int],
    ) -> Flow:
        """Return the flow from a state: elapsed time [s] -> q, qd, record or Flight.

        It is free if `closed` is empty and all near constraints are contacts or limits,
        else constrained.
        """
        if not closed and near.closing.all():
            return partial(self._free_motion, t, q, qd, forces)
        return partial(self._constrained_motion, t, q, qd, forces, closed)

    def _free_motion(
        self, t: float, q: np.ndarray, qd: np.ndarray, forces: Forces, h: float
    ) -> tuple[np.ndarray, np.ndarray, Flight]:
        """Return q and qd after a step h of RK4 without constraints, and the flight."""
        of, model = self._of, self._of.model
        f_ext = forces.bodies[0] if forces.bodies else None

        def acceleration(position: np.ndarray, speed: np.ndarray) -> np.ndarray:
            C = of.bias(position, speed, f_ext, forces.carried)
            return np.linalg.solve(
                of.inertia(position, *forces.carried), forces.tau - C
            )

        v, a = [qd], [acceleration(q, qd)]
        for part in (h / 2, h / 2, h):
            dv, speed = part * v[-1], qd + part * a[-1]
            v.append(model.tangent_rate(dv, speed))
            a.append(acceleration(moved(model, q, dv), speed))
        weights = np.array([1, 2, 2, 1]) / 6
        way, after = h * (weights @ np.array(v)), qd + h * (weights @ np.array(a))
        if not np.isfinite(after).all():
            raise NonFiniteError("contacts: the velocity is not finite", "qd")
        report = self._free_report(t, q, qd, after, forces, h)
        return moved(model, q, way), after, Flight(q, qd, after, h, report)

    def _free_report(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        after: np.ndarray,
        forces: Forces,
        h: float,
    ) -> StepReport:
        """Return the report of a free motion: converged, no residuals."""
        of = self._of
        f_ext = forces.bodies[0] if forces.bodies else None
        acting = forces.tau, f_ext, forces.carried

        def details() -> StepDetails:
            H = of.inertia(q, *forces.carried)
            change = float(after @ H @ after - qd @ H @ qd) / 2
            return StepDetails((), {}, 0.0, change)

        mean_friction = h / 2 * of.slopes(qd)
        energy = partial(step_energy, of, (q, qd), after, h, mean_friction, acting, {})
        zero, name = Residuals(*[0.0] * 5), self.arrays.solver_name
        return StepReport(t, h, STATUSES[0], 0, zero, name, 0, details, energy)

    def _constrained_motion(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        forces: Forces,
        closed: set[int],
        h: float,
    ) -> tuple[np.ndarray, np.ndarray, StepRecord]:
        """Return q and qd after a midpoint step with closed contacts, and its record.

        All constraints that are no contacts or limits act, too.
        """
        middle, v = self._moved(q, qd, h / 2)
        blocks, _ = self._prepared(middle, v, forces, h, h)
        facts = self._arrays.blocks
        stays = np.isin(facts.id[:blocks], list(closed)) | ~_closing(facts, blocks)
        record = self._solved(t, h, forces, *keep_blocks(self._arrays, stays), None)
        q, qd = self._moved(middle, record.velocity, h / 2)
        return q, qd, record

    def _impact(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        forces: Forces,
        bouncing: bool,
    ) -> StepRecord:
        """Return the record of an instantaneous impact at contacts and limits.

        Those with a gap up to 1e-8 m or rad take part, and all other constraints.
        Applied forces do not act. `bouncing` is whether approaches above the threshold
        rebound.
        """
        blocks, _ = self._prepared(q, qd, forces, 0.0, INSTANT)
        rows, facts, world = self._arrays.rows, self._arrays.blocks, self._of.world
        stays = ~_closing(facts, blocks) | (facts.gap[:blocks] <= CLOSED)
        blocks, m = keep_blocks(self._arrays, stays)
        first, closing = rows.start[:blocks], _closing(facts, blocks)
        owner = np.repeat(facts.role[:blocks], rows.count[:blocks])
        gone = np.where(owner == PRESCRIBED, 0.0, facts.bias[:m])  # of gaps and errors
        approach, e = facts.approach[:blocks], facts.restitution[:blocks]
        fast = closing & (e > 0) & (approach < -world.restitution_threshold) & bouncing
        facts.gap[:blocks] = 0.0
        facts.rebound[:blocks] = np.where(fast, -e * approach, 0)
        rows.b[:m] -= gone
        facts.bias[:m] -= gone
        rows.b[first] -= facts.rebound[:blocks]
        facts.bias[first] -= facts.rebound[:blocks]
        rows.compliance[first[fast]] = 0.0
        return self._solved(t, 0.0, forces, blocks, m, self._impacts)

    def _solved(
        self,
        t: float,
        h: float,
        forces: Forces,
        blocks: int,
        m: int,
        impacts: ImpactLaw | None,
    ) -> StepRecord:
        """Solve a prepared problem; return its record, with all impulses.

        The record has the sum of the impulses of `impacts`, which act before the rest,
        and of the problem, and the status of `impacts`; if that is CONVERGED, the
        problem's, with INFEASIBLE for a MAX_ITERATIONS where that is proven. The warm
        start is the last impulse of each constraint in a problem; the new ones, without
        those of `impacts`, are stored. h is 0 for an impact.
        """
        arrays, rows = self._arrays, self._arrays.rows
        for k in range(blocks):
            part = slice(rows.start[k], rows.start[k] + rows.count[k])
            load = self._loads.get(int(arrays.blocks.id[k]), np.zeros(0))
            fits = len(load) == rows.count[k]
            rows.impulse[part] = load if fits else 0.0
        before, total = CONVERGED, np.zeros(m)
        if impacts is not None:
            before = impacts.act(blocks, m)
            total += impacts.impulse[:m]
        status = self._solve(blocks, m)
        self.arrays.room.python.raise_error()
        if status == MAX_ITERATIONS:
            status = self.arrays.proven(blocks, m)
        status = status if before == CONVERGED else before
        loads = np.split(rows.impulse[:m].copy(), rows.start[1:blocks])
        ids, starts = arrays.blocks.id[:blocks].copy(), rows.start[:blocks].copy()
        self._loads.update(zip(ids.tolist(), loads, strict=False))
        total += rows.impulse[:m]
        if not self._end(0, blocks):
            raise NonFiniteError("contacts: the velocity is not finite", "qd")
        report, terms = self.arrays.room.solver.reports[0], arrays.terms
        counts = [status, int(report[5]), 0, 0, m, blocks]
        integers = np.concatenate([counts, ids, starts]).astype(np.int64)
        floats = terms.q[0], terms.qd[0], arrays.qd_next[0], report[:5], total
        return StepRecord(
            t,
            h,
            STATUSES[status],
            0,
            (*forces.bodies, *forces.carried),
            forces.tau.tobytes(),
            None,
            (len(terms.q[0]), len(terms.qd[0])),
            integers.tobytes(),
            np.concatenate(floats).tobytes(),
        )

    def _corrected(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        forces: Forces,
        parts: list[StepRecord | Flight],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd with corrected positions; replace the last entry of `parts`.

        Without the stabilisation split_impulse, or if no correction is needed, q, qd
        and `parts` are unchanged. Otherwise qd is the same velocity along the axes at
        the new q. The last part, if a record, gets the new q as q_end; the energy of a
        flight counts the displacement. An incomplete correction is counted.
        """
        world, model, h = self._of.world, self._of.model, self._h
        if world.stabilisation != "split_impulse":
            return q, qd
        still = np.zeros(model.nv)
        blocks, _ = self._prepared(q, still, forces, 0.0, h, world.erp)
        self._arrays.work.z[:] = 0.0
        result = self._correct(0, blocks)
        if result == NOTHING:
            return q, qd
        self.counters.update(["contacts without room"] * (result == INCOMPLETE))
        correction = self._arrays.correction[0].copy()
        last, uncorrected = parts[-1], q
        q, qd = advanced(model, uncorrected, qd, h, correction)
        if isinstance(last, StepRecord):
            parts[-1] = last._replace(q_end=q.copy())
        else:
            energy = partial(last.report.make_energy, h * correction)
            parts[-1] = last._replace(report=replace(last.report, make_energy=energy))
        return q, qd

    def _near(self, q: np.ndarray, qd: np.ndarray, forces: Forces) -> Near:
        """Return the contacts and limits near a state, and all other constraints.

        The problem in the memory is overwritten.
        """
        blocks, m = self._prepared(q, qd, forces, 0.0, INSTANT)
        step, facts = self._arrays, self._arrays.blocks
        first = step.rows.start[:blocks]
        J = sparse_rows(step, blocks, m)[first]
        return Near(
            facts.id[:blocks].copy(),
            _closing(facts, blocks),
            facts.gap[:blocks].copy(),
            J @ inertia_factor(step, self.arrays.setup.scene.tables),
        )

    def _prepared(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        forces: Forces,
        dt: float,
        duration: float,
        apart: float = 0.0,
    ) -> tuple[int, int]:
        """Prepare the problem of a state; return its numbers of blocks and rows.

        It has all constraints near and no rebound. Forces act in dt, gaps close in
        `duration` [s]; `apart` is the fraction of errors that is corrected in
        positions. The memory grows if there are more contacts.
        """
        for name, what, x in (("q", "position", q), ("qd", "velocity", qd)):
            if not np.isfinite(x).all():
                raise NonFiniteError(f"contacts: the {what} is not finite", name)
        self.arrays.fill_terms(q, qd, forces.tau, dt, forces.bodies, forces.carried)
        touching = -1
        while touching < 0:
            if self._tied is not self.arrays.memory:
                self._tie()
            call = self._prepare(duration, apart)
            touching, blocks, m = call(0)
            if touching < 0:
                self.arrays.make_room(-touching)
        return blocks, m

    def _tie(self) -> None:
        """Bind machine code to the present memory of `arrays`."""
        self._tied = self._arrays = arrays = self.arrays.memory
        setup, world = self.arrays.setup, self._of.world
        self._prepare = lru_cache(maxsize=8)(self._prepare_call)
        self._end: Any = compiled(write_velocity).bind(setup.scene, arrays)
        solver = self.arrays.room.solver
        self._solve: Any = compiled(solve_state).bind(setup.scene, arrays, solver)
        if world.stabilisation == "split_impulse":
            scene = self._scene(self._h, world.erp)
            self._correct: Any = compiled(correct_positions).bind(scene, arrays, solver)
        self._impacts: ImpactLaw | None = None
        if self.arrays.room.solver.choice.impacts:
            scene, impulse = self._scene(INSTANT, 0.0), self.arrays.room.solver.impact
            self._impacts = ImpactLaw(world, scene, arrays, impulse)

    def _prepare_call(self, duration: float, apart: float) -> Callable[..., Any]:
        """Return prepare_step, bound to a scene of `_scene`.

        It takes the index of the state, and returns the numbers of contacts, blocks and
        rows; minus the number of contacts, 0 and 0 if the memory is too small for them.
        """
        return compiled(prepare_step).bind(self._scene(duration, apart), self._arrays)

    def _scene(self, duration: float, apart: float) -> Scene:
        """Return the scene with the rule of a step of some duration, without rebound.

        Errors are corrected through velocities as the world's stabilisation does, and
        the fraction `apart` in positions.
        """
        scene, world = self.arrays.setup.scene, self._of.world
        erp, soft = error_terms(world, duration)
        rule = scene.rule._replace(
            scheme=STEWART_TRINKLE,
            erp=erp,
            compliance=soft,
            threshold=np.inf,
            apart=apart,
            dt=duration,
            remaining=duration,
        )
        return scene._replace(rule=rule)


def _closing(facts: Any, blocks: int) -> np.ndarray:
    """Return the mask of contacts and limits among the blocks, (blocks,) of bool."""
    role: np.ndarray = facts.role[:blocks]
    return (role == CONTACT_ROLE) | (role == LIMIT)


def _approaching(near: Near, qd: np.ndarray) -> bool:
    """Return whether a closed contact or limit closes faster than 1e-6 m/s or rad/s."""
    closed = near.closing & (near.gap <= CLOSED)
    return bool((closed & (near.J @ qd < -RESTING)).any())
