"""Laws of plans and of the costs of their knots, and random problems.

A law takes a case: a solver under test, its robot or problem, and a random generator.
It is a generator of pairs (left, right) of arrays that must agree; errors of the builds
and calls of Programs pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.prediction import cost
from dyn_core.prediction.problem import ControlProblem
from dyn_core.prediction.rollouts import POLICY_FEEDBACK
from dyn_core.problems import (
    KNOT_COST,
    KNOT_COST_DERIVATIVES,
    KNOT_POLICY,
    OPTIMAL_CONTROL,
)
from dyn_core.problems.prediction import PLAN
from dyn_core.problems.system import SystemKind
from dyn_core.solving.registry import solver as find
from dyn_core.testing.case import Case, Pairs, SystemCase, derivative
from dyn_core.testing.models import random_model


def _state(case: Case) -> tuple[np.ndarray, ...]:
    """Return the random inputs of a case's Program, in the order of its ports."""
    return tuple(case.arguments(case.program()))


def costs_are_not_negative(case: Case) -> Pairs:
    """value >= 0 for weights >= 0"""
    *state, settings = _state(case)
    yield float(case.program()(*state, np.abs(settings)) >= 0.0), 1.0


def cost_slopes_are_those_of_costs(case: Case) -> Pairs:
    """d value = l_x . dx + l_u . dtau;  the Hessian is symmetric"""
    q, qd, tau, settings = _state(case)
    value, nv = case.other("knot_cost"), case.model.nv
    dq, dqd, dtau = case.rng.normal(size=(3, nv))

    def along(t: float) -> Any:
        moved = case.model.integrate(q, t * dq)
        return np.array([value(moved, qd + t * dqd, tau + t * dtau, settings)])

    result = case.program()(q, qd, tau, settings)
    slope = result.l_x @ np.concatenate([dq, dqd]) + result.l_u @ dtau
    yield np.array([slope]), derivative(along)
    yield result.l_xx, result.l_xx.T
    yield result.l_uu, result.l_uu.T


def policies_are_steps(case: Case) -> Pairs:
    """x_next = step(x, tau) (+) (length - 1) gap,  lower <= tau <= upper"""
    program = case.program(inputs=POLICY_FEEDBACK)
    names = [port.name for port in program.inputs]
    inputs = dict(zip(names, case.arguments(program), strict=True))
    inputs["lower"], inputs["upper"] = np.sort([inputs["lower"], inputs["upper"]], 0)
    result, nv = program(*inputs.values()), case.model.nv
    yield np.clip(result.tau, inputs["lower"], inputs["upper"]), result.tau
    step = case.other("semi_implicit_euler")
    q, qd = step(inputs["q"], inputs["qd"], result.tau, inputs["dt"])
    back = (inputs["length"] - 1.0) * inputs["gap"]
    yield case.model.integrate(q, back[:nv]), result.q_next
    yield qd + back[nv:], result.qd_next


class PlanCase(SystemCase):
    """A solver of OPTIMAL_CONTROL on a random problem, at a random start."""

    def arguments(self, program: Any) -> list[np.ndarray]:
        """Return q, qd, and a guess of q, qd and tau of the plan: five arrays.

        The guess is (N + 1, nq), (N + 1, nv) and (N, nv). Each call has another random
        start; the guess rests there without joint forces.
        """
        model, N = self.model.model, self.model.knots
        q, qd = model.random(self.rng), 0.1 * self.rng.normal(size=model.nv)
        guess = np.tile(q, (N + 1, 1)), np.zeros((N + 1, model.nv))
        return [q, qd, *guess, np.zeros((N, model.nv))]


def plans_obey_the_step(case: PlanCase) -> Pairs:
    """x[0] = start,  x[k+1] = step(x[k], tau[k]),  tau within its bounds"""
    problem = case.model
    q, qd, *guess = case.arguments(None)
    plan = case.program()(q, qd, *guess)
    yield plan.q_plan[0], q
    yield plan.qd_plan[0], qd
    step = find("semi_implicit_euler").build(problem.model, engine="graph")
    for k in range(problem.knots):
        ends = step(plan.q_plan[k], plan.qd_plan[k], plan.tau_plan[k], problem.dt)
        yield plan.q_plan[k + 1], ends[0]
        yield plan.qd_plan[k + 1], ends[1]
    bounds = problem.bounds
    yield np.clip(plan.tau_plan, bounds.tau_lower, bounds.tau_upper), plan.tau_plan


def random_problem(seed: int, size: int = 3, **restriction: Any) -> ControlProblem:
    """Return the problem of a short plan of a random robot towards rest.

    It has 4 knots in 0.1 s, and no limits of position and velocity. `size` is the
    number of joints; `restriction` is not used.
    """
    robot = random_model(seed, size=size, kinds=("revolute", "prismatic"))
    costs = [cost.posture(when="always"), cost.velocity(), cost.effort()]
    return ControlProblem(robot, costs, 0.1, 4, limits=False)


LAWS = {
    KNOT_COST: (costs_are_not_negative,),
    KNOT_COST_DERIVATIVES: (cost_slopes_are_those_of_costs,),
    KNOT_POLICY: (policies_are_steps,),
    OPTIMAL_CONTROL: (plans_obey_the_step,),
}
SYSTEMS = (SystemKind(PLAN, PlanCase, random_problem),)
