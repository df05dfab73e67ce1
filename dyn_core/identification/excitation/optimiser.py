"""Augmented Lagrangian method with L-BFGS for the inner minimisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.identification.excitation.problem import DesignProblem

GROWTH = 3.0  # factor on the penalty weight if the violation has not decreased enough
BETTER = 0.5  # ratio to the previous violation that is enough
KEPT = 1e-3  # scaled violation of a limit that is tolerated


class Optimum(NamedTuple):
    """Result of an optimisation.

    Attributes:
        x: Variables.
        multipliers: Lagrange multipliers of the limits.
        weight: Last penalty weight.
        value: Objective, without limits.
        condition: Condition number.
        excess: Largest scaled violation of a limit.
    """

    x: np.ndarray
    multipliers: np.ndarray
    weight: float
    value: float
    condition: float
    excess: float


def optimised(
    problem: DesignProblem,
    x: np.ndarray,
    rounds: int,
    steps: int,
    before: Optimum | None = None,
) -> Optimum:
    """Minimise the objective of a problem within its limits; return the last iterate.

    The result may still violate limits, see Optimum.excess.

        l <- max(0, l + w e)   after each round

    with multipliers l, penalty weight w and violations e.

    Args:
        problem: Problem to minimise.
        x: Initial variables, (count,).
        rounds: Number of updates of the multipliers.
        steps: Maximum number of L-BFGS steps in each round.
        before: Previous optimum whose multipliers and weight are used; None: none.

    Source: J. Nocedal and S. Wright, Numerical Optimization, 2006, algorithm 17.4, for
    inequalities (17.65); L-BFGS: algorithm 7.5.
    """
    from scipy.optimize import minimize  # not at `import dyn_core`

    first = problem.outcome(x)
    multipliers = np.zeros(len(first.excess)) if before is None else before.multipliers
    weight = 1.0 if before is None else before.weight
    last, value, condition = np.inf, first.value, first.condition
    for _ in range(rounds):
        result = minimize(
            problem.lagrangian, x, args=(multipliers, weight), jac=True,
            method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20},
        )  # fmt: skip
        x = result.x
        value, excess, condition = problem.outcome(x)
        largest = float(excess.max())
        multipliers = np.maximum(0.0, multipliers + weight * excess)
        if largest > KEPT and largest > BETTER * last:
            weight *= GROWTH
        last = largest
    return Optimum(x, multipliers, weight, value, condition, last)
