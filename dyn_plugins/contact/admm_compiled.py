"""Contacts by ADMM as a traced algorithm: a rolled loop, compiled for a layout.

m is the number of rows of a layout, k that of its friction coefficients.
"""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    hookimpl,
    loop,
    maximum,
    sqrt,
    total,
    where,
)
from dyn_core.contact import (
    CONVERGED,
    MAX_ITERATIONS,
    cone_projection,
    law_residuals,
    next_penalty,
    norm,
    row_projection,
    weights,
)
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.validation import Quantity
from dyn_plugins._options import PENALTY
from dyn_plugins.contact.projected_gauss_seidel import largest

EVERY = 5  # iterations per factorisation and change of rho
SOLVED = 1e-7  # residual of the law up to which the status is always converged


def admm_compiled(
    layout, G, b, mu, lo, hi, compliance, warm, max_iterations, tolerance, rho, proximal
):
    """Return impulses for the exact law of Coulomb by operator splitting.

        x <- (A + rho + eta)^-1 (rho y + eta x - z - b - s)
        y <- Pi_K(x + z / rho),   z <- z + rho (x - y),   s <- mu |z_T| e_n

    The method of `admm`, compiled: A = G + R is scaled to unit diagonal block by block
    and factorised for each rho, every five iterations. Free rows are not eliminated.
    Exact; the status says whether it has converged.

    Args:
        layout: Blocks.
        G, b: Delassus matrix and free velocity, (m, m), m.
        mu: Friction coefficients, k.
        lo, hi: Bounds of boxes, m.
        compliance: Diagonal of R, m.
        warm: Initial impulses, m.
        max_iterations: Largest number of iterations, rounded down to a multiple of 5,
            and 5 at least.
        tolerance: Relative tolerance of the residuals.
        rho, proximal: Initial penalty, and penalty of a change of x; positive.

    Returns:
        impulse, m; velocity G impulse + b, m; residuals, 5 (primal, dual,
        complementarity, dissipation, law); iterations; status: CONVERGED if the
        residual `law` is at most 1e-7 or 10 times the tolerance, whichever is larger;
        else MAX_ITERATIONS.

    Source: LCP-12.
    """
    m, rows = layout.m, range(layout.m)
    A = [[G[i, j] + (compliance[i] if i == j else 0.0) for j in rows] for i in rows]
    unit, T = _scales(layout, A, mu)
    A = [[A[i][j] * T[i] * T[j] for j in rows] for i in rows]
    b_T = [x * t for x, t in zip(b, T, strict=True)]
    size = largest(b_T)
    size = where(size > 0.0, size, 1.0)
    right = [x / size for x in b_T]
    impulse_unit = [u * size for u in unit]

    def nearest(y):
        return _projected(layout, y, mu, lo, hi, impulse_unit)

    def correction(z):
        return _correction(layout, z, mu)

    inverse_scale = [where(t > 0.0, 1.0 / where(t > 0.0, t, 1.0), 0.0) for t in T]
    y = nearest([x * t / size for x, t in zip(warm, inverse_scale, strict=True)])
    z = [-(total(A[i][j] * y[j] for j in rows) + right[i]) for i in rows]
    z = [a - c for a, c in zip(z, correction(z), strict=True)]

    def iterate(state):
        x, y, z = (list(state[k * m : k * m + m]) for k in (0, 1, 2))
        penalty, count = state[3 * m], state[3 * m + 1]
        factors = _factored(A, penalty + proximal)
        before = y
        for _ in range(EVERY):
            s = correction(z)
            load = [
                penalty * y[i] + proximal * x[i] - z[i] - right[i] - s[i] for i in rows
            ]
            x = _solved(factors, load)
            before, y = y, nearest([x[i] + z[i] / penalty for i in rows])
            z = [z[i] + penalty * (x[i] - y[i]) for i in rows]
        primal = largest(x[i] - y[i] for i in rows)
        dual = penalty * largest(y[i] - before[i] for i in rows)
        size_y = maximum(largest(y), 1e-300)
        ratio = sqrt(primal / size_y / maximum(dual, 1e-300))
        after = next_penalty(penalty, ratio)
        residual = maximum(primal / maximum(1.0, 1e-4 * size_y), dual)
        return *x, *y, *z, after, count + float(EVERY), residual

    def not_converged(state):
        return state[-1] > tolerance

    first = [*y, *y, *z, rho, 0.0, 1e300]
    state = loop(first, iterate, not_converged, max(1, max_iterations // EVERY))
    impulse = [t * x * size for t, x in zip(T, state[m : 2 * m], strict=True)]
    velocity = [total(G[i, j] * impulse[j] for j in rows) + b[i] for i in rows]
    u = [v + r * x for v, r, x in zip(velocity, compliance, impulse, strict=True)]
    response = [G[i, i] + compliance[i] for i in rows]
    quality = law_residuals(layout, impulse, u, mu, lo, hi, response, largest(b))
    holds = quality[4] <= max(SOLVED, 10.0 * tolerance)  # NaN: not solved
    status = where(holds, CONVERGED, MAX_ITERATIONS)
    return Vector(impulse), Vector(velocity), Vector(quality), state[-2], status


def _scales(layout, A, mu):
    """Return scales 1 / sqrt(response) of all rows, and T, with friction weights.

    The response is the largest of a contact's rows, or the row's own; <= 0 counts as 1.
    """
    unit, T = [1.0] * layout.m, [1.0] * layout.m
    for block in layout.blocks:
        rows = list(block.all)
        largest_response = A[rows[0]][rows[0]]
        if block.kind == "contact":
            for i in rows[1:]:
                largest_response = maximum(largest_response, A[i][i])
        for i in rows:
            response = largest_response if block.kind == "contact" else A[i][i]
            unit[i] = T[i] = 1.0 / sqrt(where(response > 0.0, response, 1.0))
        for i, w in zip(block.tangent, weights(block, mu)[1], strict=False):
            T[i] = unit[i] * w
    return unit, T


def _projected(layout, y, mu, lo, hi, impulse_unit):
    """Return scaled impulses y projected on the sets of their blocks, a new list.

    Entries of y of tangents are also divided by their friction weights: a contact has a
    circular cone with its largest coefficient. lo, hi [N·s | N·m·s] are divided by
    impulse_unit.
    """
    y = list(y)
    for block in layout.blocks:
        first = block.start
        if block.kind == "contact" and block.rows > 1:
            c, _ = weights(block, mu)
            n, t = cone_projection(c, y[first], [y[i] for i in block.tangent])
            for i, x in zip(block.all, (n, *t), strict=True):
                y[i] = x
            continue
        for i in block.all:
            low, high = (x[i] / impulse_unit[i] for x in (lo, hi))
            y[i] = row_projection(block.kind, y[i], low, high)
    return y


def _correction(layout, z, mu):
    """Return De Saxce's correction: the largest mu times |z_T| on normal rows, else 0.

    Source: LCP-12.
    """
    s = [0.0] * layout.m
    for block in layout.contacts:
        c, _ = weights(block, mu)
        s[block.start] = c * norm([z[i] for i in block.tangent])
    return s


def _factored(A, shift):
    """Return L and 1 / D of A + shift 1 = L D L.T, without pivoting or checks.

    The unit diagonal of L is stored as zeros, like the upper part. A pivot of zero
    gives infinite or NaN factors, on Python floats a ZeroDivisionError.
    """
    n = len(A)
    L, inverse_scale = [[0.0] * n for _ in range(n)], [0.0] * n
    LD = [[0.0] * n for _ in range(n)]
    for j in range(n):
        d = A[j][j] + shift - total(L[j][k] * LD[j][k] for k in range(j))
        inverse_scale[j] = 1.0 / d
        for i in range(j + 1, n):
            LD[i][j] = A[i][j] - total(LD[i][k] * L[j][k] for k in range(j))
            L[i][j] = LD[i][j] * inverse_scale[j]
    return L, inverse_scale


def _solved(factors, right):
    """Return x of L D L.T x = right, a new list; factors: result of _factored."""
    L, inverse_scale = factors
    x, n = list(right), len(right)
    for i in range(n):
        x[i] = x[i] - total(L[i][k] * x[k] for k in range(i))
    x = [value * scale for value, scale in zip(x, inverse_scale, strict=True)]
    for i in reversed(range(n)):
        x[i] = x[i] - total(L[k][i] * x[k] for k in range(i + 1, n))
    return x


@hookimpl
def dyn_solvers():
    """Return a list of the one solver of this file, for the Registry."""
    options = {
        "max_iterations": 2000,
        "tolerance": 1e-10,
        "rho": 1.0,
        "proximal": 1e-6,
    }
    return [
        TracedSolver(
            "admm_compiled",
            CONTACT_SOLVE,
            admm_compiled,
            options=options,
            valid={**PENALTY, "proximal": Quantity(0.0, above=True)},
            by_joint=False,
        )
    ]
