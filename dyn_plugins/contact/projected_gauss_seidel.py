"""Contacts by projected Gauss-Seidel, block by block in a rolled loop.

m is the number of rows of a layout, k that of its friction coefficients.
"""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    absolute,
    hookimpl,
    loop,
    maximum,
    minimum,
    sqrt,
    total,
    where,
)
from dyn_core.contact import (
    CONVERGED,
    MAX_ITERATIONS,
    SOLVED,
    disc_projection,
    law_residuals,
    row_projection,
    weights,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.validation import is_finite, shown
from dyn_plugins._options import ITERATION


def projected_gauss_seidel(
    layout,
    G,
    b,
    mu,
    lo,
    hi,
    compliance,
    warm,
    max_iterations,
    tolerance,
    relaxation,
):
    """Return impulses by sweeps over the blocks, until they no longer change.

        lambda_n <- max(0, lambda_n - u_n / A_nn),   A = G + R,  u = A lambda + b
        lambda_T <- disc of mu lambda_n (lambda_T - u_T / |A_TT|)

    Exact: round cones (torsion, rolling and tangents share one ellipsoid), boxes row by
    row, free rows unbounded. Convergence is slow for large mass ratios. If the impulses
    are not unique (G singular), the result depends on the start. The sweeps stop when
    the estimated error (last change over one minus its ratio to the previous change) is
    below the tolerance. The status is CONVERGED if, besides, the residual of the law is
    at most 1e-6.

    Args:
        layout: Blocks.
        G, b: Delassus matrix and free velocity, (m, m), m.
        mu: Friction coefficients, k.
        lo, hi: Bounds of boxes, m.
        compliance: Diagonal of R, m.
        warm: Initial impulses, m.
        max_iterations: Largest number of sweeps.
        tolerance: Tolerance of the estimated error, relative to the largest impulse.
        relaxation: Factor of each step, in (0, 2), else UnsupportedError when built.

    Returns:
        impulse, m; velocity G impulse + b, m; residuals, 5 (primal, dual,
        complementarity, dissipation, law); number of sweeps; status: CONVERGED or
        MAX_ITERATIONS.

    Source: LCP-9.
    """
    rows = range(layout.m)
    A = [[G[i, j] + compliance[i] if i == j else G[i, j] for j in rows] for i in rows]
    diagonal = [A[i][i] for i in rows]
    rates = _rates(layout, A, mu, relaxation)

    def sweep(state):
        x = list(state[: layout.m])
        for block in layout.blocks:
            _update(block, x, A, b, mu, lo, hi, rates)
        moved = largest(y - z for y, z in zip(x, state, strict=False))
        ratio = moved / where(state[-2] > 0.0, state[-2], 1.0)
        # A ratio below one keeps the estimate of the error finite.
        error = moved / (1.0 - minimum(ratio, 1.0 - 1e-6))
        return *x, state[-3] + 1.0, moved, where(moved > 0.0, error, 0.0)

    def not_converged(state):
        return state[-1] > tolerance * largest(state[: layout.m])

    first = [*_start(layout, warm, lo, hi), 0.0, 1e-300, 1e300]
    state = loop(first, sweep, not_converged, max_iterations)
    x, count = state[: layout.m], state[-3]
    status = where(not_converged(state), MAX_ITERATIONS, CONVERGED)
    velocity = [total(G[i, j] * x[j] for j in rows) + b[i] for i in rows]
    u = [velocity[i] + compliance[i] * x[i] for i in rows]
    quality = law_residuals(layout, x, u, mu, lo, hi, diagonal, largest(b))
    status = where(quality[4] <= SOLVED, status, MAX_ITERATIONS)
    return Vector(x), Vector(velocity), Vector(quality), count, status


def _between(layout, relaxation):
    """Refuse a `relaxation` outside (0, 2), with which sweeps cannot converge."""
    if not is_finite(relaxation) or not 0 < relaxation < 2:
        raise UnsupportedError(
            f"projected_gauss_seidel: relaxation {shown(relaxation)}; valid: between 0"
            " and 2"
        )


def _rates(layout, A, mu, relaxation):
    """Return a list, m: step of each row's impulse per velocity, times the relaxation.

    It is 1 / A_ii; both of two tangents have one over the largest eigenvalue of their
    block of A, without weights. More tangents, in an ellipsoid, have one over the row
    sum of |A| with friction weights, a bound with which the iteration does not diverge.
    Values <= 0 of A_ii, of the eigenvalue or of the sum count as 1.
    """
    rates = [relaxation / where(A[i][i] > 0.0, A[i][i], 1.0) for i in range(layout.m)]
    for block in layout.contacts:
        _, w = weights(block, mu)
        t = block.tangent
        if len(t) == 2:
            p, q, r = A[t[0]][t[0]], A[t[0]][t[1]], A[t[1]][t[1]]
            size = (p + r) / 2.0 + sqrt((p - r) * (p - r) / 4.0 + q * q)
            rates[t[0]] = rates[t[1]] = relaxation / where(size > 0.0, size, 1.0)
        elif len(t) > 2:
            for wi, i in zip(w, t, strict=True):
                size = total(
                    wi * wj * absolute(A[i][j]) for wj, j in zip(w, t, strict=True)
                )
                rates[i] = relaxation / where(size > 0.0, size, 1.0)
    return rates


def _start(layout, warm, lo, hi):
    """Return a copy of the impulses `warm`, with boxes alone clipped to lo and hi."""
    x = list(warm)
    for block in layout.blocks:
        for i in block.all:
            if block.kind == "box":
                x[i] = row_projection(block.kind, x[i], lo[i], hi[i])
    return x


def _update(block, x, A, b, mu, lo, hi, rates):
    """Update the impulses x of a block by its law, in place.

    Rows follow each other, each with the new impulses of the rows before. Of a contact,
    the normal row comes first, then all tangents at once, projected to its friction.
    """
    for i in block.all if block.kind != "contact" else [block.start]:
        step = x[i] - rates[i] * (row_times(A[i], x) + b[i])
        x[i] = row_projection(block.kind, step, lo[i], hi[i])
    if block.kind != "contact" or block.rows == 1:
        return
    c, w = weights(block, mu)
    t = block.tangent
    u = [row_times(A[i], x) + b[i] for i in t]
    y = [
        where(wi > 0.0, x[i] / where(wi > 0.0, wi, 1.0), 0.0) - rates[i] * wi * v
        for wi, i, v in zip(w, t, u, strict=True)
    ]
    near = disc_projection(c * x[block.start], y, [rates[i] for i in t])
    for i, z, wi in zip(t, near, w, strict=True):
        x[i] = wi * z


def row_times(row, x):
    """Return the dot product of two sequences of numbers of equal length."""
    return total(a * y for a, y in zip(row, x, strict=True))


def largest(values):
    """Return the largest magnitude of the values; 0.0 if there are none."""
    magnitude = 0.0
    for value in values:
        magnitude = maximum(magnitude, absolute(value))
    return magnitude


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    options = {"max_iterations": 1000, "tolerance": 1e-9, "relaxation": 1.0}
    return [
        TracedSolver(
            "projected_gauss_seidel",
            CONTACT_SOLVE,
            projected_gauss_seidel,
            options=options,
            valid={**ITERATION, "relaxation": _between},
        )
    ]
