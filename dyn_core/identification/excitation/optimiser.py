"""An augmented Lagrangian: limits by multipliers, steps by a quasi-Newton method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.identification.excitation.problem import DesignProblem

GROWTH = 3.0  # of the weight, where limits are not kept better than before
BETTER = 0.5  # part of the excess before that counts as better
KEPT = 1e-3  # excess of a limit, in its unit, that counts as kept


class Optimum(NamedTuple):
    """Result of an optimisation.

    Attributes:
        x: Free numbers.
        multipliers: Of the limits.
        weight: Last one of their squares.
        value: Of the objective, without limits.
        condition: Condition number.
        excess: Largest excess of a limit, in its unit.
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
    """Return a motion of small condition number that keeps its limits, nearly.

        l <- max(0, l + w e)   after each round

    Args:
        problem: What is minimised.
        x: Free numbers to start from.
        rounds: Of multipliers.
        steps: Of the quasi-Newton method in each round, at most.
        before: An optimum to go on from, with its multipliers.

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
