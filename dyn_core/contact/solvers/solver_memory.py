"""Work arrays of the contact solvers, their statuses, and the columns of reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.scaling import Scaled
from dyn_core.contact.solvers.matrices.linear_systems import LinearSystem
from dyn_core.contact.solvers.matrices.skyline import Skyline
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code

CONVERGED, MAX_ITERATIONS, INFEASIBLE, RAY, NOT_UNIQUE = map(
    STATUSES.index, STATUSES[:5]
)
NO_BUFFER = STATUSES.index("no_room")  # work arrays are too small: nothing is solved
WEDGED = STATUSES.index("wedged")
FROZEN_FRICTION = STATUSES.index("frozen_friction")  # friction with fixed bounds
# Columns of a report; columns 0 to 4 are the residuals of residuals.RESIDUALS.
LAW, ITERATIONS, PENALTY, FACTORISATIONS = 4, 5, 6, 7
REACHED = 1e-8  # residual `law` up to which the status is CONVERGED in any case
SOLVED = 1e-6  # largest residual `law` with which a heap counts as solved


class Iterates(NamedTuple):
    """Vectors of the operator splitting, each (rows,), scaled.

    x obeys the dynamics, y the laws; z is the multiplier, when converged minus the
    velocity with De Saxce's correction s, which is non-zero in normal rows of cones. p
    is Y Y.T x; r is the right side of the linear system of dx; rho the penalty of rows.
    """

    x: FloatArray
    y: FloatArray
    z: FloatArray
    p: FloatArray
    dx: FloatArray
    r: FloatArray
    s: FloatArray
    rho: FloatArray


class Slopes(NamedTuple):
    """Slope S = -d impulse / d velocity of each block's law, each array (rows,).

    tilt and lean couple a cone's tangents to its normal, S_Tn = tilt S_nn, S_nT = S_nn
    lean.T; left right.T couples its tangents. See law_slopes.py.
    """

    diagonal: FloatArray
    tilt: FloatArray
    lean: FloatArray
    left: FloatArray
    right: FloatArray


class NewtonWork(NamedTuple):
    """Work arrays of Newton's method, scaled.

    Attributes:
        mode: OPEN, STICK or SLIP of each row; a cone has its mode at its first row.
        gamma, center: Impulses, and the impulses at the start of a round, (rows,).
        u, du: Y z and its change, (rows,).
        z, dz: Y.T gamma at the solution, and its change, (nv,).
        right: Right side of the linear system of dz, (nv,).
        slope_y: S Y, indexed like the values of Y.
        square: Y.T S Y of one support, row by row.
        upper: Upper factor of a matrix that is not symmetric, as envelope.values.
    """

    mode: IntArray
    gamma: FloatArray
    center: FloatArray
    u: FloatArray
    du: FloatArray
    z: FloatArray
    dz: FloatArray
    right: FloatArray
    slope_y: FloatArray
    square: FloatArray
    upper: FloatArray
    slopes: Slopes


class ConeSlacks(NamedTuple):
    """Slack variables of the interior-point method, scaled, and their changes.

    Attributes:
        slack: Velocities of a cone's rows; multipliers of lo of interval rows, (rows,).
        other: Multipliers of hi of interval rows, (rows,).
        missing: Residuals of the tangents' complementarity products in a cone, (rows,).
        eta: Bound of a cone's tangent speed, (blocks,).
        constant, by_normal: Coefficients of eta_step: constant, and times the change of
            the normal impulse, (blocks,).
    """

    slack: FloatArray
    other: FloatArray
    slack_step: FloatArray
    other_step: FloatArray
    missing: FloatArray
    eta: FloatArray
    eta_step: FloatArray
    constant: FloatArray
    by_normal: FloatArray


class SolverWork(NamedTuple):
    """Work arrays of all solvers; one object serves each of them.

    `system` and `iterates` are of admm, also used by other solvers. `best` are the
    impulses with the smallest residual of the law so far, best_law. block_matrix is
    Y Y.T + R of each cone, block_factor its Cholesky factor; six values for each row.
    """

    scaled: Scaled
    envelope: Skyline
    system: LinearSystem
    iterates: Iterates
    newton: NewtonWork
    interior: ConeSlacks
    best: FloatArray
    best_law: FloatArray
    block_matrix: FloatArray
    block_factor: FloatArray


def allocate_solvers(
    rows: Rows, nv: int, widest: int | None = None, entries: int | None = None
) -> SolverWork:
    """Return new work arrays for problems no larger than the arrays of `rows`.

    `widest` is the largest number of coordinates of a support, which solvers do not
    check; None: nv. A solver returns NO_BUFFER for a problem whose envelope needs more
    than `entries`; None: enough for every problem.
    """
    blocks, m, supports = len(rows.kind), len(rows.b), len(rows.support)
    most = max(nv, min(m, 2 * nv))
    entries = most * (most + 1) // 2 if entries is None else entries
    widest = nv if widest is None else widest

    def floats(n: int) -> np.ndarray:
        return np.zeros(n)

    def ints(n: int) -> np.ndarray:
        return np.zeros(n, np.int64)

    by_row = (floats(m) for _ in range(6))
    sizes = ints(blocks), floats(blocks), floats(len(rows.y))
    scaled = Scaled._make((*sizes, *by_row, floats(1)))
    envelope = Skyline(
        ints(blocks),
        ints(nv),
        ints(supports),
        ints(most),
        ints(most + 1),
        ints(nv),
        ints(blocks),
        ints(nv + 1),
        ints(len(rows.y)),
        ints(4 + 2 * blocks + len(rows.y)),
        floats(entries),
        floats(most),
    )
    system = LinearSystem(floats(m), floats(entries), floats(nv), floats(m))
    newton = NewtonWork(
        mode=ints(m),
        gamma=floats(m),
        center=floats(m),
        u=floats(m),
        du=floats(m),
        z=floats(nv),
        dz=floats(nv),
        right=floats(nv),
        slope_y=floats(len(rows.y)),
        square=floats(widest * widest),
        upper=floats(entries),
        slopes=Slopes(*(floats(m) for _ in range(5))),
    )
    iterates = Iterates(*(floats(m) for _ in range(8)))
    interior = ConeSlacks(
        *(floats(m) for _ in range(5)), *(floats(blocks) for _ in range(4))
    )  # type: ignore[call-arg]
    return SolverWork(
        scaled,
        envelope,
        system,
        iterates,
        newton,
        interior,
        floats(m),
        floats(1),
        floats(6 * m),
        floats(6 * m),
    )


@machine_code
def final_status(status: int, report: FloatArray, tolerance: float) -> int:
    """Return CONVERGED (law <= 10 tolerance or 1e-8), MAX_ITERATIONS or INFEASIBLE."""
    # Ten times: each method stops by a measure of its own, not by this residual.
    if status == INFEASIBLE:
        return status
    return CONVERGED if report[4] <= max(REACHED, 10.0 * tolerance) else MAX_ITERATIONS
