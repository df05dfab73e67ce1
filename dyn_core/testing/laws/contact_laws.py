"""Laws of contact solvers and contact steps: each yields pairs that must agree.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. A contact solver's case is a
LayoutTrial: its model is a ConstraintLayout.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.contact import ConstraintLayout, law_residuals
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.rows.structure import structure
from dyn_core.contact.stepping.integration import gyroscopic_change, turning
from dyn_core.engines import Program
from dyn_core.model import parameter_paths
from dyn_core.model.coordinates import advance, rate_in_initial_axes
from dyn_core.model.material import Material
from dyn_core.model.shapes import Sphere
from dyn_core.problems import Signature
from dyn_core.solving.registry import default_registry
from dyn_core.solving.registry import solver as find
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.lie import exp3
from dyn_core.testing.case import Case, Pairs, SystemCase, derivative
from dyn_core.testing.laws.loop_laws import with_rod
from dyn_core.testing.laws.step_laws import complex_change

LAW = 1e-5  # largest residual of the law for the status converged
STEP = 5e-3  # length of a step whose derivatives are compared [s]
ALIKE = 1e-4  # weight of comparisons between two solutions of one solver


def sample_layout(seed: int, size: int, friction: bool = True) -> ConstraintLayout:
    """Return a random layout of a few blocks; with friction, the first is a contact."""
    rng = np.random.default_rng(seed)
    kinds_known = ["bilateral", "unilateral", "box"]
    if friction:
        kinds_known.append("contact")
    parts = [str(rng.choice(kinds_known)) for _ in range(max(1, size - 1))]
    return ConstraintLayout.of(*(["contact"] if friction else []), *parts)


@dataclass
class LayoutTrial(SystemCase):
    """One solver on one layout and engine, with one random problem.

    `model` has m rows and k friction coefficients; `inputs` by Port: G (m, m), b, lo,
    hi, compliance (zero), warm (zero) (m,) and mu (k,).
    """

    inputs: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = self._draw()

    def _draw(self) -> dict[str, np.ndarray]:
        m, k = self.model.m, self.model.k
        J = self.rng.normal(size=(m, m + 3))
        bound = self.rng.uniform(0.1, 1.0, m)
        return {
            "G": J @ J.T / (m + 3),
            "b": self.rng.normal(size=m),
            "mu": self.rng.uniform(0.1, 1.0, k),
            "lo": -bound,
            "hi": bound,
            "compliance": np.zeros(m),
            "warm": np.zeros(m),
        }

    def arguments(self, program: Program) -> list[np.ndarray]:
        """Return the inputs of a new random problem, in the order of the Ports."""
        drawn = self._draw()
        return [drawn[port.name] for port in program.inputs]

    def solve(self, **changed: Any) -> Any:
        """Return the outputs for `inputs`, some replaced by those in `changed`."""
        return self.program()(**{**self.inputs, **changed})


def velocities_are_answers(case: LayoutTrial) -> Pairs:
    """velocity = G impulse + b;  residuals[:4] equal law_residuals"""
    result, inputs = case.solve(), case.inputs
    yield result.velocity, inputs["G"] @ result.impulse + inputs["b"]
    again = law_residuals(
        case.model,
        result.impulse.tolist(),
        result.velocity.tolist(),
        inputs["mu"].tolist(),
        inputs["lo"].tolist(),
        inputs["hi"].tolist(),
        np.diag(inputs["G"]).tolist(),
        float(abs(inputs["b"]).max()),
    )
    yield result.residuals[:4], np.array(again)[:4]


def converged_means_solved(case: LayoutTrial) -> Pairs:
    """Status 0 means that the residual of the solver's law is at most 1e-5

    Four random problems replace case.inputs.
    """
    for _ in range(4):
        case.inputs = case._draw()
        result = case.solve()
        yield float(result.status != 0 or result.residuals[4] <= LAW), 1.0


def impulses_take_energy(case: LayoutTrial) -> Pairs:
    """impulse . (velocity + b) <= 1e-5 if the status is 0, as lo < 0 < hi"""
    result = case.solve()
    if result.status == 0:
        gained = result.impulse @ (result.velocity + case.inputs["b"])
        yield float(gained <= LAW), 1.0
    yield 0.0, 0.0


def problems_scale(case: LayoutTrial) -> Pairs:
    """(G, c b, c lo, c hi) gives c times the velocity, for c = 3"""
    one = case.solve()
    inputs = {key: 3.0 * case.inputs[key] for key in ("b", "lo", "hi")}
    three = case.solve(**inputs)
    good = float(one.status == 0 and three.status == 0)
    yield good * ALIKE * three.velocity, good * ALIKE * 3.0 * one.velocity


def what_holds_needs_no_impulse(case: LayoutTrial) -> Pairs:
    """b inside all laws:  impulse = 0, compared with weight 1e-5"""
    b = np.zeros(case.model.m)
    for block in case.model.blocks:
        if block.kind in ("unilateral", "contact"):
            b[block.start] = 1.0
            if block.kind == "unilateral":
                b[list(block.all)] = 1.0
    result = case.solve(b=b)
    yield LAW * result.impulse, 0 * result.impulse


def with_ball(case: Case) -> tuple[Case, dict[str, Any]]:
    """Return a copy of the case with a smooth ball at its last link, and step options.

    The ball, without friction, is the only shape. It overlaps by 0.1 mm at case.q with
    the options' floor, so that a step has a contact, from rest, too. rng is shared.
    """
    model = case.model
    ball = Sphere(Transform.identity(), 0.05)
    description = model.build.description
    links = tuple(
        replace(link, collisions=(ball,) if link.name == case.frame else ())
        for link in description.links
    )
    changed = replace(description, links=links, materials={"default": Material(mu=0.0)})
    robot = replace(model, build=replace(model.build, description=changed))
    frames = case.other("forward_kinematics", frames=[case.frame])
    height = float(frames(case.q)[0][2, 3])
    result = object.__new__(Case)
    result.__dict__.update(case.__dict__)
    result.model = robot
    floor = HalfSpace("floor", (0.0, 0.0, height - 0.05 + 1e-4))
    return result, {"world": (floor,), "erp": 1.0}


def far_contacts_do_nothing(case: Case) -> Pairs:
    """Far above the floor:  qd_next = qd + dt FD(q, qd, tau) + gyroscopic change

    The sum is in the axes at the start, qd_next in those at the end of the step;
    moreau_jean has FD and the axes at the midpoint.
    """
    case, _ = with_ball(case)
    far = (HalfSpace("floor", (0.0, 0.0, -1e4)),)
    program = case.program(world=far)
    warm = np.zeros(sum(p.size for p in program.inputs if p.name == "warm"))
    result = program(case.q, case.qd, case.qdd, 1e-3, warm)
    full, half = 1e-3, 5e-4
    midpoint = case.solver.name.endswith("moreau_jean")
    q, qd = _advanced(case, case.q, case.qd, half) if midpoint else (case.q, case.qd)
    qdd = case.other("aba")(q, qd, case.qdd)
    model, rate = case.model, Vector(qd)
    u = rate + rate_in_initial_axes(model, rate, Vector(qdd)) * full
    state = case.other("crba")(q), qd, case.qdd - case.other("bias")(q, qd)
    change = gyroscopic_change(model, *state, full, 0.5 if midpoint else 1.0)
    u = u + Vector(change.tolist())
    q_next, qd_next = _advanced(case, q, u, half if midpoint else full)
    yield result.qd_next, qd_next
    yield result.q_next, q_next
    yield result.impulse, 0 * result.impulse


def _advanced(case: Case, q: Any, u: Any, dt: float) -> tuple[Any, Any]:
    """Return q (nq,) and qd (nv,) after dt [s], moving at velocity u (nv,).

    u is in the axes of the start, qd in those of the new position.
    """
    result = advance(case.model, Vector(map(float, q)), Vector(map(float, u)), dt)
    return np.array(list(result[0])), np.array(list(result[1]))


def _initial_axes(case: Case, qd: np.ndarray, dt: float) -> np.ndarray:
    """Return qd with linear velocities in the axes at the start of a step dt [s]."""
    u = qd.copy()
    for i in case.model.independent:
        if case.model.joint[i].kind == "floating":
            start = case.model.v_slices[i].start
            duration = np.array(exp3(Vector(dt * qd[start : start + 3])).rows, float)
            u[start + 3 : start + 6] = duration @ qd[start + 3 : start + 6]
    return u


def contact_steps_obey_newton(case: Case) -> Pairs:
    """A smooth contact pushes along its gap:  H (qd_next - qd_free) = J_n.T lambda

    The step starts at rest; qd_free is its end with the floor far away, both velocities
    in the axes at the start. J_n is the gap's derivative, lambda >= 0 the normal
    impulse; friction impulses are zero, and a gap that touches does not become
    negative. The pair is (0, 0) without contacts, or if no joint moves the ball off the
    floor.
    """
    case, choices = with_ball(case)
    dt, program = 5e-3, case.program(**choices)
    if not program.outputs[2].size:
        yield 0.0, 0.0
        return
    still = 0 * case.qd  # no motion in the half step of moreau_jean
    far = (HalfSpace("floor", (0.0, 0.0, -1e4)),)
    free = case.program(world=far)(case.q, still, case.qdd, dt, np.zeros(3)).qd_next
    result = program(case.q, still, case.qdd, dt, np.zeros(3))
    duration = dt / 2 if case.solver.name.endswith("moreau_jean") else dt
    free, u = (_initial_axes(case, x, duration) for x in (free, result.qd_next))
    H = case.other("crba")(case.q)

    def gap(u: np.ndarray) -> float:
        q = case.model.integrate(case.q, u)
        return float(program(q, still, case.qdd, dt, np.zeros(3)).gap[0])

    J = np.array(
        [
            (8 * (gap(h) - gap(-h)) - (gap(2 * h) - gap(-2 * h))) / 12e-3
            for h in 1e-3 * np.eye(case.model.nv)
        ]
    )
    if np.abs(J).max() < 1e-3:  # no coordinate moves the ball off the floor
        yield 0.0, 0.0
        return
    normal = result.impulse[0]
    yield 1e-3 * H @ (u - free), 1e-3 * J * normal
    yield result.impulse[1:], np.zeros(2)
    speed = J @ u
    touching = case.solver.name == "contact_euler" or result.gap[0] <= 0
    predicted = result.gap[0] / dt if touching else 0.0
    yield float(normal >= 0 and (not touching or speed + predicted >= -LAW)), 1.0


def contact_steps_move_as_complex_steps_say(case: Case) -> Pairs:
    """step(x + i eps dx) = x_next + i eps (A dx + B dtau + dx_dp dp), near and far

    p are gravity and the last link's com; of x_next qd_next is compared. Near the floor
    not_differentiable may be true: then nothing more is compared. Far from the floor it
    must be false, and dx_dmu zero.
    """
    case, near = with_ball(case)
    far = {"world": (HalfSpace("floor", (0.0, 0.0, -1e4)),)}
    paths = ["gravity", f"{case.frame}.com"]
    for choices in (near, far):
        program = case.program(paths=paths, **choices)
        warm = np.zeros(next(p.size for p in program.inputs if p.name == "warm"))
        state = case.q, case.qd, case.qdd
        result, more = program(*state, STEP, warm), (np.array(STEP), warm)
        if result.not_differentiable:  # where no joint moves the ball off the floor
            yield float(choices is near), 1.0
            continue
        changes = case.rng.normal(size=(3, case.model.nv))
        along = result.A @ changes[:2].ravel() + result.B @ changes[2]
        step = _step_of(case, choices)
        yield result.qd_next, step(*state, *more)[1]
        yield _scaled(along, complex_change(case.model, step, state, changes, more))
        start = 0
        for path in paths:
            value = parameter_paths.value(case.model, path)
            change = case.rng.normal(size=len(value))
            along = result.dx_dp[:, start : start + len(value)] @ change
            start += len(value)
            step = _step_of(case, {**choices, "inputs": [path]})
            last = *more, value + 1e-30j * change
            expected = complex_change(case.model, step, state, 0 * changes, last)
            yield _scaled(along, expected)
        if choices is far:
            yield result.dx_dmu, 0 * result.dx_dmu


def _step_of(case: Case, choices: dict[str, Any]) -> Callable[..., Any]:
    """Return a function of the step that a solver differentiates: (q_next, qd_next)."""
    name = case.solver.name.removesuffix("_derivatives")
    known = default_registry().names(kinds.CONTACT_STEP)
    step = find(name if name in known else "contact_euler")
    program = case.build(step, engine="plain", **choices)
    return lambda *inputs: program(*inputs)[:2]


def _scaled(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays, both divided by max(1, largest absolute value in right)."""
    scale = max(1.0, float(np.abs(right).max(initial=0.0)))
    return left / scale, right / scale


SOLVER_LAWS: tuple[Callable[..., Pairs], ...] = (
    velocities_are_answers,
    converged_means_solved,
    impulses_take_energy,
    problems_scale,
    what_holds_needs_no_impulse,
)


def factors_are_those_of_inertia(case: Case) -> Pairs:
    """L.T L = H without joint friction, with L from the packed output `factor`

    It holds the inverses of L's diagonal, then its entries (k, i) as in `above`.
    """
    tables, n = structure(case.model), case.model.nv
    packed = case.program()(case.q, case.qd, case.qdd, STEP).factor
    L = np.zeros((n, n))
    for k in range(n):
        L[k, tables.coordinate[k]] = 1 / packed[k]
        start, stop = tables.above_start[k : k + 2]
        L[k, tables.coordinate[tables.above[start:stop]]] = packed[n + start : n + stop]
    yield L.T @ L, case.other("crba")(case.q)


def columns_are_body_jacobians(case: Case) -> Pairs:
    """v_i = sum of the columns on the path of body i times qd, with v_i = J_i qd"""
    tables = structure(case.model)
    terms = case.program()(case.q, case.qd, case.qdd, STEP)
    poses, J = case.other("body_jacobians")(case.q)
    coordinate = tables.coordinate[tables.column_place]
    for i in case.model.bodies:
        path = tables.path[tables.path_start[i] : tables.path_start[i + 1]]
        yield terms.columns[path].T @ case.qd[coordinate[path]], J[i - 1] @ case.qd
        yield terms.poses[i, :9].reshape(3, 3), poses[i - 1, :3, :3]
        yield terms.poses[i, 9:], poses[i - 1, :3, 3]


def free_steps_are_forward_dynamics(case: Case) -> Pairs:
    """free = qd + dt (FD(q, qd, tau) + w x v) + gyroscopic change,  w x v: `turning`"""
    free = case.program()(case.q, case.qd, case.qdd, STEP).free
    qdd = case.other("aba")(case.q, case.qd, case.qdd)
    H, C = case.other("crba")(case.q), case.other("bias")(case.q, case.qd)
    change = gyroscopic_change(case.model, H, case.qd, case.qdd - C, STEP)
    yield (free - case.qd - change) / STEP, qdd + turning(case.model, case.qd)


def rows_are_rates_of_gaps(case: Case) -> Pairs:
    """rows qd = d gaps/dt;  the last rows and gaps are A and f of loop_constraints"""
    for robot in (case, with_rod(case)):
        program = robot.program()

        def gaps(t: float, robot: Case = robot, program: Any = program) -> np.ndarray:
            q = robot.model.integrate(robot.q, t * robot.qd)
            return np.asarray(program(q, robot.qd, robot.qdd, STEP).gaps)

        terms = program(robot.q, robot.qd, robot.qdd, STEP)
        yield terms.rows @ robot.qd, derivative(gaps)
    f, A, _ = robot.other("loop_constraints")(robot.q, robot.qd)
    yield terms.rows[-len(f) :], A
    yield terms.gaps[-len(f) :], f


def moved_states_come_back(case: Case) -> Pairs:
    """From q_next, -qd_next the step leads back to q, -qd; dt = 0 moves nothing"""
    program = case.program()
    there = program(case.q, case.qd, STEP)
    back = program(there.q_next, -there.qd_next, STEP)
    yield case.model.difference(case.q, back.q_next), np.zeros(case.model.nv)
    yield back.qd_next, -case.qd
    still = program(case.q, case.qd, 0.0)
    yield case.model.difference(case.q, still.q_next), np.zeros(case.model.nv)
    yield still.qd_next, case.qd


def corrections_leave_velocities(case: Case) -> Pairs:
    """R_next u_next = R u  of joints with quaternions,  q_next = q (+) dt (u + c)

    u is the velocity before the move; c, `correction`, changes the position only.
    """
    correction = np.random.default_rng(1).normal(size=case.model.nv)
    program = case.program(inputs=["correction"])
    there = program(case.q, case.qd, STEP, correction)
    along = case.program()(case.q, case.qd + correction, STEP)
    yield there.q_next, along.q_next
    before, after = (case.q, case.qd), (there.q_next, there.qd_next)
    for i in case.model.independent:
        joint, q, v = (
            case.model.joint[i], case.model.q_slices[i], case.model.v_slices[i],
        )  # fmt: skip
        if not joint.quaternions(Vector(case.q[q].tolist())):
            yield after[1][v], before[1][v]
            continue
        turned = [
            np.array(joint.X(Vector(x[q].tolist())).E.rows).T @ u[v].reshape(-1, 3).T
            for x, u in (before, after)
        ]
        yield turned[1], turned[0]


def term_slopes_are_those_of_terms(case: Case) -> Pairs:
    """inertia (dfree - dchange) = by_q dq + by_qd dqd + dt dtau,  dv_i of columns

    dchange is what change_q, change_qd and change_tau describe, dv_i the change of a
    body's velocity with q, by `rates` at `free` and by `rates_before` at qd.
    """
    terms, tables = case.other("contact_terms"), structure(case.model)
    coordinate = tables.coordinate[tables.column_place]
    dq, dqd, dtau = case.rng.normal(size=(3, case.model.nv))

    def along(t: float) -> Any:
        state = case.model.integrate(case.q, t * dq), case.qd + t * dqd
        return terms(*state, case.qdd + t * dtau, STEP)

    now, still = along(0.0), np.zeros((case.model.nb, 6))
    slopes = case.program()(case.q, case.qd, case.qdd, now.free, STEP, still)
    yield slopes.inertia, case.other("crba")(case.q)
    change = derivative(lambda t: along(t).free)
    change -= slopes.change_q @ dq + slopes.change_qd @ dqd + slopes.change_tau @ dtau
    yield slopes.inertia @ change, slopes.by_q @ dq + slopes.by_qd @ dqd + STEP * dtau
    columns = derivative(lambda t: along(t).columns)
    for u, rates in ((now.free, slopes.rates), (case.qd, slopes.rates_before)):
        for i in case.model.bodies:
            path = tables.path[tables.path_start[i] : tables.path_start[i + 1]]
            S, places = now.columns[path], coordinate[path]
            w, v = np.split(S.T @ u[places], 2)
            turned = np.cross(S[:, :3], w)
            carried = np.cross(S[:, :3], v) + np.cross(S[:, 3:], w)
            rows = np.hstack([turned, carried]) + rates[path]
            yield rows.T @ dq[places], columns[path].T @ u[places]


def moved_slopes_are_those_of_moved_states(case: Case) -> Pairs:
    """dx_next = by_q dq + by_u du + by_correction dc,  by differences"""
    moved = case.other("moved_state", inputs=["correction"])
    state = case.q, case.qd, STEP, case.qdd
    start, slopes = moved(*state), case.program()(*state)
    changes = case.rng.normal(size=(3, case.model.nv))
    dq, du, dc = changes

    def end(t: float) -> np.ndarray:
        q = case.model.integrate(case.q, t * dq)
        there = moved(q, case.qd + t * du, STEP, case.qdd + t * dc)
        shift = case.model.difference(start.q_next, there.q_next)
        return np.concatenate([shift, there.qd_next])

    parts = zip(slopes, changes, strict=True)
    yield sum(M @ x for M, x in parts), derivative(end)


LAWS: dict[Signature, tuple[Callable[..., Pairs], ...]] = {
    kinds.CONTACT_SOLVE: SOLVER_LAWS,
    kinds.CONTACT_STEP: (far_contacts_do_nothing, contact_steps_obey_newton),
    kinds.CONTACT_TERMS: (
        factors_are_those_of_inertia,
        columns_are_body_jacobians,
        free_steps_are_forward_dynamics,
        rows_are_rates_of_gaps,
    ),
    kinds.CONTACT_TERM_SLOPES: (term_slopes_are_those_of_terms,),
    kinds.MOVED_STATE_SLOPES: (moved_slopes_are_those_of_moved_states,),
    kinds.MOVED_STATE: (moved_states_come_back, corrections_leave_velocities),
    kinds.CONTACT_STEP_DERIVATIVES: (contact_steps_move_as_complex_steps_say,),
}
