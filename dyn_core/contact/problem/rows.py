"""A constraint problem as plain arrays, whose matrix is a product of sparse rows.

A problem has m rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.problem.layout import KINDS
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.projections import HUGE
from dyn_core.engines.machine_code import FloatArray, FloatArray2, IntArray

BILATERAL, PRESCRIBED, UNILATERAL, CONTACT, BOX = range(len(KINDS))


class Rows(NamedTuple):
    """Problem for the impulses of all rows of one step; G is never formed.

        G = Y Y.T,   u = Y (Y.T impulse) + b + compliance impulse,
        and the law of each block between its rows of impulse and of u

    Row i of block k has support_count[k] values of Y, from
    y_start[k] + (i - start[k]) support_count[k] on. With H = L.T L and the Jacobian J
    of the rows, Y = J L^-1, and z = Y.T impulse = L dqd for the change dqd of
    velocities. Blocks whose supports are disjoint have zero entries in G.

    Arrays may be longer than their content; functions that read them have the numbers
    of blocks and coordinates as arguments.

    Attributes:
        kind: Index of each block's kind in layout.KINDS, (blocks,).
        start, count: First row of each block, and number of rows, (blocks,).
        support_start, support_count: First index in `support`, and number of entries,
            of each block, (blocks,).
        support: Coordinates of z that a block changes, ascending within the block.
        y_start: First index of the values of a block in y, (blocks,).
        y: Values of Y, row by row, without its zeros outside of the support.
        b: Free velocity plus bias of the rows, (rows,) [m/s | rad/s].
        lo, hi: Bounds of the impulses of boxes, (rows,) [N·s | N·m·s].
        compliance: Diagonal of R, (rows,) [(m/s)/(N·s)].
        mu: Coefficients of sliding, torsion and rolling, (blocks, 3) [1 | m].
        impulse: Warm start, then solution, (rows,) [N·s | N·m·s].
        rest: Lower bound of the scale of velocities, for problems at rest, (1,) [m/s].

    Source: LCP-1, LCP-3, LCP-16.
    """

    kind: IntArray
    start: IntArray
    count: IntArray  # type: ignore[assignment]
    support_start: IntArray
    support_count: IntArray
    support: IntArray
    y_start: IntArray
    y: FloatArray
    b: FloatArray
    lo: FloatArray
    hi: FloatArray
    compliance: FloatArray
    mu: FloatArray2
    impulse: FloatArray
    rest: FloatArray


def allocate_rows(blocks: int, rows: int, support: int, y: int) -> Rows:
    """Return Rows of zeros; `support` and `y` count the entries of all blocks."""
    kind, start, count, support_start, support_count, y_start = (
        np.zeros(blocks, np.int64) for _ in range(6)
    )
    b, lo, hi, compliance, impulse = (np.zeros(rows) for _ in range(5))
    return Rows(
        kind,
        start,
        count,
        support_start,
        support_count,
        np.zeros(support, np.int64),
        y_start,
        np.zeros(y),
        b,
        lo,
        hi,
        compliance,
        np.zeros((blocks, 3)),
        impulse,
        np.zeros(1),
    )


def rows_of(
    problem: ConstraintProblem, start: np.ndarray | float = 0.0
) -> tuple[Rows, int]:
    """Return a ConstraintProblem as Rows, and the number of coordinates of z.

        G = Y Y.T, from eigenvalues, separately for each group of coupled blocks

    The number of coordinates is the sum of the groups' ranks. b of the Rows contains
    the bias, bounds beyond 1e300 are infinite, and `rest` is 0.

    Args:
        problem: Problem; of a function G the matrix is computed.
        start: Initial impulses, (m,), or one for all.

    Raises:
        ValueError: `start` has another shape.
        numpy.linalg.LinAlgError: G is not finite.
    """
    blocks, G = problem.layout.blocks, problem.matrix
    m, count = problem.m, len(blocks)
    owner = np.repeat(np.arange(count), [block.rows for block in blocks])
    island = _islands(G, owner, count)
    support: list[int] = []
    starts, counts, y_starts = [], [], []
    values: list[float] = []
    factors: dict[int, tuple[np.ndarray, int, np.ndarray]] = {}
    nv = 0
    for k, block in enumerate(blocks):
        if island[k] not in factors:
            rows = np.flatnonzero(island[owner] == island[k])
            Y = _root(G[np.ix_(rows, rows)])
            factors[island[k]] = rows, nv, Y
            nv += Y.shape[1]
        rows, first, Y = factors[island[k]]
        starts.append(len(support))
        counts.append(Y.shape[1])
        y_starts.append(len(values))
        support += range(first, first + Y.shape[1])
        values += Y[np.searchsorted(rows, list(block.all))].ravel().tolist()
    mu = np.zeros((count, 3))
    for k, block in enumerate(blocks):
        mu[k, : block.count] = problem.mu[block.first : block.first + block.count]
    names = [KINDS.index(block.kind) for block in blocks]
    integers = [
        np.array(x, np.int64)
        for x in (
            names,
            [b.start for b in blocks],
            [b.rows for b in blocks],
            starts,
            counts,
            support,
            y_starts,
        )
    ]
    floats = [np.array(values, float)]
    floats += [np.array(x, float) for x in (problem.offset, problem.lo, problem.hi)]
    lo, hi = floats[2], floats[3]
    lo[lo < -HUGE], hi[hi > HUGE] = -np.inf, np.inf
    compliance = np.array(problem.compliance, float)
    warm = np.array(np.broadcast_to(start, (m,)), float)
    rest = np.zeros(1)
    return Rows(*integers, *floats, compliance, mu, warm, rest), nv  # type: ignore[call-arg]


def _islands(G: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
    """Return the island of each block, (count,): the smallest index among its blocks.

    Blocks are in one island if entries of G that are not zero connect them. `owner` is
    the block of each row.
    """
    island = np.arange(count)
    i, j = np.nonzero(G)
    pairs = np.unique(np.sort([owner[i], owner[j]], axis=0), axis=1)
    for a, b in pairs.T if len(i) else ():
        low, high = sorted((island[a], island[b]))
        island[island == high] = low
    return island


def _root(G: np.ndarray) -> np.ndarray:
    """Return Y, (m, rank), with G = Y Y.T, from eigenvalues of the scaled G (m, m).

    G is scaled to a unit diagonal, so that the rank does not depend on units.
    Eigenvalues up to 1e-15 m times the largest are dropped, and all negative ones.
    """
    response = np.diag(G)
    unit = np.sqrt(np.where(response > 0, response, 1.0))
    values, vectors = np.linalg.eigh((G + G.T) / 2 / unit[:, None] / unit)
    # Smaller eigenvalues are rounding errors; 1e-300 drops all of a zero matrix.
    keep = values > 1e-15 * max(values.max(initial=0.0), 1e-300) * len(G)
    return unit[:, None] * vectors[:, keep] * np.sqrt(values[keep])
