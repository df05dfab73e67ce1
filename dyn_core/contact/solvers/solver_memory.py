"""Room for the work of the contact solvers, their statuses and reports."""

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
FROZEN_FRICTION = STATUSES.index("frozen_friction")  # it has bounds of its own
LAW, ITERATIONS, PENALTY, FACTORISATIONS = 4, 5, 6, 7  # of a report: five residuals
REACHED = 1e-8  # relative tolerance of the law for the status CONVERGED
SOLVED = 1e-6  # of the law of a heap


class Iterates(NamedTuple):
    """Vectors of rows of the splitting, each (rows,), scaled.

    Attributes:
        x, y: Impulses that obey the dynamics, and impulses that obey the laws.
        z: Multiplier; at the end minus the velocity with De Saxce's correction.
        p: Y Y.T x.
        dx, r: Change of x, and the right side of its system.
        s: De Saxce's correction.
        rho: Penalty of each row.
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
    """Slope S of the law of each block, as law_slopes.py has it, each (rows,).

    Attributes:
        diagonal: Its diagonal part.
        tilt, lean: Of the tangents of a cone with its normal.
        left, right: Of the tangents of a cone with each other.
    """

    diagonal: FloatArray
    tilt: FloatArray
    lean: FloatArray
    left: FloatArray
    right: FloatArray


class NewtonWork(NamedTuple):
    """Work of Newton's method, scaled.

    Attributes:
        mode: Mode of each row, of a cone at its first row, (rows,).
        gamma, center: Impulses, and those that the round starts from, (rows,).
        u, du: Y z and its change, (rows,).
        z, dz: Y.T gamma when solved, its change, (nv,).
        right: Right side of the system of dz, (nv,).
        slope_y: Slope of the law times Y, in the places of Y.
        square: Y.T times that, (largest support squared,).
        upper: Upper factor of a matrix that is not symmetric, as envelope.values.
        slopes: Slope of the law.
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
    """Slacks of an interior-point method, scaled.

    Attributes:
        slack: Velocities of a cone; of an interval the multiplier of lo, (rows,).
        other: Multiplier of hi, (rows,).
        slack_step, other_step: Their changes, (rows,).
        missing: What products of a cone's tangents lack, (rows,).
        eta, eta_step: Bound of a cone's tangent speed, its change, (blocks,).
        constant, by_normal: Parts of eta_step, (blocks,).
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
    """Room for the work of every solver.

    Attributes:
        scaled, envelope, system, iterates, newton, interior: Room of its parts.
        best, best_law: Impulses that came nearest to the law, (rows,), and their
            residual of it, (1,).
        block_matrix, block_factor: Matrix of a cone alone, and its factor, six values
            a row, (6 rows,).
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
    """Return room for the solvers of problems no larger than the arrays of `rows`.

    Args:
        rows: Problem, or arrays that are long enough for all problems to come.
        nv: Number of coordinates.
        widest: Most coordinates of a support; nv if None.
        entries: Entries of an envelope; enough for every problem if None. A problem
            that needs more has the status NO_BUFFER.
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
    """Return the status: CONVERGED where the published law holds, else what it was.

    It holds to ten times the tolerance of the method, which stops by its own measure,
    or to REACHED.
    """
    if status == INFEASIBLE:
        return status
    return CONVERGED if report[4] <= max(REACHED, 10.0 * tolerance) else MAX_ITERATIONS
