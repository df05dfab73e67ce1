"""Laws of contact solvers and of steps with contact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core import signature as kinds
from dyn_core.contact import ConstraintLayout, law_residuals
from dyn_core.contact.halfspaces import HalfSpace
from dyn_core.engines import Program
from dyn_core.model.coordinates import advance, start_axes
from dyn_core.model.shapes import Material, Sphere
from dyn_core.signature import Signature
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.lie import exp3
from dyn_core.testing.case import Case, Pairs, SystemCase

LAW = 1e-5  # what a solver that says converged may leave of its laws
ALIKE = 1e-4  # how far two answers of one solver may be apart; weighs the comparison


def sample_layout(seed: int, size: int, friction: bool = True) -> ConstraintLayout:
    """Give a random layout of a few blocks."""
    rng = np.random.default_rng(seed)
    known = ["bilateral", "unilateral", "box"]
    if friction:
        known.append("contact")
    parts = [str(rng.choice(known)) for _ in range(max(1, size - 1))]
    return ConstraintLayout.of(*(["contact"] if friction else []), *parts)


@dataclass
class LayoutTrial(SystemCase):
    """One solver on one layout and engine, with one problem.

    Attributes:
        numbers: Inputs by name.
    """

    numbers: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = self._draw()

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
        """Draw a problem."""
        drawn = self._draw()
        return [drawn[port.name] for port in program.inputs]

    def solve(self, **changed: Any) -> Any:
        """Solve the problem, with some numbers changed."""
        return self.program()(**{**self.numbers, **changed})


def velocities_are_answers(case: LayoutTrial) -> Pairs:
    """velocity = G impulse + b;  residuals are those of law_residuals"""
    found, given = case.solve(), case.numbers
    yield found.velocity, given["G"] @ found.impulse + given["b"]
    again = law_residuals(
        case.model,
        found.impulse.tolist(),
        found.velocity.tolist(),
        given["mu"].tolist(),
        given["lo"].tolist(),
        given["hi"].tolist(),
        np.diag(given["G"]).tolist(),
        float(abs(given["b"]).max()),
    )
    yield found.residuals[:4], np.array(again)[:4]


def converged_means_solved(case: LayoutTrial) -> Pairs:
    """status 0 means that the solver's own law is left by at most 1e-5"""
    for _ in range(4):
        case.numbers = case._draw()
        found = case.solve()
        yield float(found.status != 0 or found.residuals[4] <= LAW), 1.0


def impulses_take_energy(case: LayoutTrial) -> Pairs:
    """impulse . (velocity + b) <= 0 where nothing is driven"""
    found = case.solve()
    if found.status == 0:
        gained = found.impulse @ (found.velocity + case.numbers["b"])
        yield float(gained <= LAW), 1.0
    yield 0.0, 0.0


def problems_scale(case: LayoutTrial) -> Pairs:
    """(G, c b, c lo, c hi) gives c times the velocity"""
    one = case.solve()
    given = {key: 3.0 * case.numbers[key] for key in ("b", "lo", "hi")}
    three = case.solve(**given)
    good = float(one.status == 0 and three.status == 0)
    yield good * ALIKE * three.velocity, good * ALIKE * 3.0 * one.velocity


def what_holds_needs_no_impulse(case: LayoutTrial) -> Pairs:
    """b inside all laws:  impulse = 0"""
    b = np.zeros(case.model.m)
    for block in case.model.blocks:
        if block.kind in ("unilateral", "contact"):
            b[block.start] = 1.0
            if block.kind == "unilateral":
                b[list(block.all)] = 1.0
    found = case.solve(b=b)
    yield LAW * found.impulse, 0 * found.impulse


def shaped(case: Case) -> tuple[Case, dict[str, Any]]:
    """Give the case with a smooth ball at its last link, and the world that it touches.

    The floor is just below the ball: a step of some milliseconds reaches it.
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
    floor = HalfSpace("floor", (0.0, 0.0, height - 0.05 - 1e-3))
    return result, {"world": (floor,), "erp": 1.0}


def far_contacts_do_nothing(case: Case) -> Pairs:
    """far above the floor:  qd_next = qd + dt FD(q, qd, tau)"""
    case, _ = shaped(case)
    far = (HalfSpace("floor", (0.0, 0.0, -1e4)),)
    program = case.program(world=far)
    warm = np.zeros(sum(p.size for p in program.inputs if p.name == "warm"))
    found = program(case.q, case.qd, case.qdd, 1e-3, warm)
    whole, half = 1e-3, 5e-4
    late = case.solver.name.endswith("moreau_jean")
    q, qd = _advanced(case, case.q, case.qd, half) if late else (case.q, case.qd)
    qdd = case.other("aba")(q, qd, case.qdd)
    model, rate = case.model, Vector(qd)
    u = rate + start_axes(model, rate, Vector(qdd)) * whole
    q_next, qd_next = _advanced(case, q, u, half if late else whole)
    yield found.qd_next, qd_next
    yield found.q_next, q_next
    yield found.impulse, 0 * found.impulse


def _advanced(case: Case, q: Any, u: Any, dt: float) -> tuple[Any, Any]:
    """Advance a robot with floats."""
    found = advance(case.model, Vector(map(float, q)), Vector(map(float, u)), dt)
    return np.array(list(found[0])), np.array(list(found[1]))


def _start_axes(case: Case, qd: np.ndarray, dt: float) -> np.ndarray:
    """Give velocities at the end of a step in the axes of its start."""
    u = qd.copy()
    for i in case.model.independent:
        if case.model.joint[i].kind == "floating":
            at = case.model.v_slices[i].start
            turn = np.array(exp3(Vector(dt * qd[at : at + 3])).rows, float)
            u[at + 3 : at + 6] = turn @ qd[at + 3 : at + 6]
    return u


def contact_steps_obey_newton(case: Case) -> Pairs:
    """a smooth contact pushes along its gap:  H (qd_next - qd_free) = J_n.T lambda"""
    case, choices = shaped(case)
    dt, program = 5e-3, case.program(**choices)
    if not program.outputs[2].size:
        yield 0.0, 0.0
        return
    still = 0 * case.qd  # free of Moreau's half step
    far = (HalfSpace("floor", (0.0, 0.0, -1e4)),)
    free = case.program(world=far)(case.q, still, case.qdd, dt, np.zeros(3)).qd_next
    found = program(case.q, still, case.qdd, dt, np.zeros(3))
    turn = dt / 2 if case.solver.name.endswith("moreau_jean") else dt
    free, u = (_start_axes(case, x, turn) for x in (free, found.qd_next))
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
    push = found.impulse[0]
    yield 1e-3 * H @ (u - free), 1e-3 * J * push
    yield found.impulse[1:], np.zeros(2)
    speed = J @ u
    touching = case.solver.name == "contact_euler" or found.gap[0] <= 0
    ahead = found.gap[0] / dt if touching else 0.0
    yield float(push >= 0 and (not touching or speed + ahead >= -LAW)), 1.0


SOLVER_LAWS: tuple[Callable[..., Pairs], ...] = (
    velocities_are_answers,
    converged_means_solved,
    impulses_take_energy,
    problems_scale,
    what_holds_needs_no_impulse,
)
LAWS: dict[Signature, tuple[Callable[..., Pairs], ...]] = {
    kinds.CONTACT_SOLVE: SOLVER_LAWS,
    kinds.CONTACT_STEP: (far_contacts_do_nothing, contact_steps_obey_newton),
}
