"""Impulses from known velocities: contact dynamics the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.contact.problem import ConstraintProblem
from dyn_core.errors import ModelError


def impulse_of_velocity(problem: ConstraintProblem, velocity: Any) -> np.ndarray:
    """Give the impulses that belong to a velocity after the step, block by block.

        lambda = argmin_K lambda.T R lambda / 2 + lambda.T (sigma + s),
        s = mu |(sigma + R lambda)_T| e_n,   sigma = velocity + bias

    With s the normal row decouples, lambda_n = max(0, -sigma_n / R_n), and the rest is
    the nearest point of its disc: the fixed point in closed form, no G needed.

    Args:
        problem: Soft in all rows (compliance above zero).
        velocity: G lambda + b, (m,) [m/s].

    Returns:
        Impulses, (m,) [N·s].

    Raises:
        ModelError: A row is rigid: velocities do not tell its impulse.

    Source: LCP-21.
    """
    numbers = problem.numbers if not problem.matrix_free else problem._parts(np.eye(0))
    R = problem.compliance
    if (R <= 0).any():
        row = int(np.flatnonzero(R <= 0)[0])
        raise ModelError(
            f"compliance[{row}] of {problem._whose('b', row)} is zero; valid: above"
            " zero, a rigid row's impulse cannot be told from velocities",
            "compliance",
        )
    sigma = np.asarray(velocity, float) + problem.bias
    T = numbers.scale
    y = np.where(T > 0, -sigma / R / np.where(T > 0, T, 1.0), 0.0)
    normal, _ = numbers.places
    n, t = np.maximum(y[normal], 0.0), numbers.tangents(y)
    size, most = np.sqrt((t * t).sum(axis=1)), numbers.coefficients * n
    factor = np.where(size > most, most / np.where(size > 0, size, 1.0), 1.0)
    clipped = np.clip(y, *numbers.bounds)
    return T * numbers.spread(clipped, n, factor[:, None] * t)
