"""Inverse contact dynamics: impulses from known velocities."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.problem_checks import owner
from dyn_core.contact.problem.projections import near_bounded
from dyn_core.errors import ModelError


def impulse_of_velocity(problem: ConstraintProblem, velocity: Any) -> np.ndarray:
    """Return the impulses for a known velocity after the step, block by block.

        lambda = argmin_K lambda.T R lambda / 2 + lambda.T (sigma + s),
        s = mu |(sigma + R lambda)_T| e_n,   sigma = velocity + bias

    K are the cones and bounds of the blocks, R is the compliance, e_n the unit vector
    of a normal row. With s the normal row decouples, lambda_n = max(0, -sigma_n / R_n),
    and the tangents are projected on their disc: a closed form that does not need G.

    Args:
        problem: Problem with compliance above zero in all rows.
        velocity: G lambda + b, (m,) [m/s], of the problem's m rows.

    Returns:
        Impulses, (m,) [N·s]; zero in tangent rows whose friction coefficient is zero.

    Raises:
        ModelError: A row is rigid, so that its impulse does not follow from velocities.
        ValueError: `velocity` has neither m numbers nor one.

    Source: LCP-21.
    """
    R = problem.compliance
    if (R <= 0).any():
        row = int(np.flatnonzero(R <= 0)[0])
        raise ModelError(
            f"compliance[{row}] of {owner(problem, 'b', row)} is zero; valid: above"
            " zero, the impulse of a rigid row does not follow from velocities",
            "compliance",
        )
    sigma = np.asarray(velocity, float) + problem.bias
    T = problem.scale
    y = np.where(T > 0, -sigma / R / np.where(T > 0, T, 1.0), 0.0)
    impulse = np.clip(y, *problem.bounds)
    blocks = problem.layout.contacts
    for block, c in zip(blocks, problem.coefficients.tolist(), strict=True):
        t, n = list(block.tangent), float(y[block.start])
        bound, size = c * max(n, 0.0), float(np.sqrt(y[t] @ y[t]))
        impulse[block.start], factor = near_bounded(bound, n, size)
        impulse[t] = factor * y[t]
    return np.asarray(T * impulse)
