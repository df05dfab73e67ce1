"""A prepared step as matrices: Y, L, the constraint problem, and its solution.

Solvers of a ConstraintProblem are called from the machine code of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dyn_core.contact.problem.layout import layout_of
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solving import solve
from dyn_core.contact.rows.step_tables import StepArrays
from dyn_core.contact.rows.structure import Structure
from dyn_core.contact.solvers.solver_calls import RAISED
from dyn_core.contact.solvers.solver_memory import ITERATIONS, LAW
from dyn_core.contact.world import World
from dyn_core.engines.machine_code import PythonKernel
from dyn_core.errors import NonFiniteError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.registry import solver_of

Task = Callable[[int, int], int]


def sparse_rows(step: StepArrays, blocks: int, m: int) -> np.ndarray:
    """Return Y = J L^-1 of a prepared problem as a full matrix, (m, nv): G = Y Y.T.

    Columns are in the order of elimination, see Structure; L is of inertia_factor.
    """
    rows, Y = step.rows, np.zeros((m, len(step.work.free)))
    for k in range(blocks):
        first, n = rows.support_start[k], rows.support_count[k]
        start, count, begin = rows.start[k], rows.count[k], rows.y_start[k]
        values = rows.y[begin : begin + count * n].reshape(count, n)
        Y[start : start + count, rows.support[first : first + n]] = values
    return Y


def inertia_factor(step: StepArrays, tables: Structure) -> np.ndarray:
    """Return L of a prepared problem as a full matrix, (nv, nv).

        H + dt B = L.T L

    dt is the time of the prepared terms, 0 for an impact, and B the slopes of joint
    friction. Rows are in the order of elimination, columns by coordinate.
    """
    packed, n = step.terms.factor[0], tables.nv
    L = np.diag(1 / packed[:n])
    for k in range(n):
        start, stop = tables.above_start[k : k + 2]
        L[k, tables.above[start:stop]] = packed[n + start : n + stop]
    by_coordinate = np.zeros((n, n))
    by_coordinate[:, tables.coordinate] = L
    return by_coordinate


def problem_of(
    step: StepArrays, blocks: int, m: int, matrix: bool = True
) -> ConstraintProblem:
    """Return a problem, copied, with bias in b; G is a function without `matrix`."""
    rows, Y = step.rows, sparse_rows(step, blocks, m)
    layout = layout_of(rows.kind[:blocks].tobytes(), rows.count[:blocks].tobytes())
    copies = (x[:m].copy() for x in (rows.b, rows.lo, rows.hi, rows.compliance))
    b, lo, hi, compliance = copies
    mu, ids = rows.mu[:blocks][layout.in_use], tuple(step.blocks.id[:blocks].tolist())
    rest = b, mu, lo, hi, compliance, ids
    if matrix:
        return ConstraintProblem.of_arrays(layout, Y @ Y.T, *rest)
    diagonal = np.einsum("ij,ij->i", Y, Y)
    return ConstraintProblem.of_arrays(layout, lambda x: Y @ (Y.T @ x), *rest, diagonal)


def keep_blocks(step: StepArrays, chosen: np.ndarray) -> tuple[int, int]:
    """Keep only the chosen blocks of a prepared problem; return blocks and rows."""
    rows, facts, kept = step.rows, step.blocks, np.flatnonzero(chosen)
    starts, counts = rows.start[kept], rows.count[kept]
    ranges = [np.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]
    old = np.concatenate([np.zeros(0, int), *ranges])
    by_block = (rows.kind, rows.count, rows.support_start, rows.support_count,
                rows.y_start, rows.mu, *facts[:-1])  # fmt: skip
    by_row = rows.b, rows.lo, rows.hi, rows.compliance, rows.impulse, facts.bias
    for array in by_block:
        array[: len(kept)] = array[kept]
    for array in by_row:
        array[: len(old)] = array[old]
    rows.start[: len(kept)] = np.cumsum(counts) - counts
    return len(kept), len(old)


class MatrixSolver:
    """A solver of ConstraintProblems, called for the problem in prepared arrays."""

    def __init__(self, world: World, step: StepArrays, report: np.ndarray) -> None:
        """Look up the solver of a world.

        Args:
            world: World with its solver and options.
            step: Arrays of the problem.
            report: Array whose entries LAW and ITERATIONS `solve` writes.

        Raises:
            SolverNotFound: No solver has the name world.solver.
            SignatureError: The solver solves another kind of problem.
        """
        self._solver = solver_of(world.solver, CONTACT_SOLVE)
        self._options = world.solver_options
        self._step, self._report = step, report

    def solve(self, blocks: int, m: int) -> int:
        """Solve the prepared problem; return the index of its status in STATUSES.

        The impulses of the rows are the warm start, then the solution; NonFiniteError
        if they are not finite. The entries LAW and ITERATIONS of the report are
        written.
        """
        rows = self._step.rows
        problem, warm = problem_of(self._step, blocks, m), rows.impulse[:m].copy()
        solution = solve(problem, self._solver, warm, **self._options)
        if not np.isfinite(solution.impulses).all():
            raise NonFiniteError(
                f"contacts: {self._solver.name} returned impulses that are not finite",
                "impulse",
            )
        rows.impulse[:m] = solution.impulses
        self._report[LAW] = solution.law
        self._report[ITERATIONS] = solution.iterations
        return STATUSES.index(solution.status)


class PythonTasks:
    """Python functions that machine code calls at `kernel` while this exists."""

    def __init__(self, tasks: Mapping[int, Task]) -> None:
        """Create the address of the functions.

        Args:
            tasks: By IMPACT and PROBLEM, functions of the numbers of blocks and rows
                that return a status.
        """
        self._tasks = tasks
        self._error: BaseException | None = None
        self._function = PythonKernel(self._run)
        self.kernel = self._function.kernel

    def _run(self, task: int, blocks: int, m: int) -> int:
        """Return the status of a task; RAISED after an exception, which is stored.

        Every exception is stored, KeyboardInterrupt too, in place of an earlier one;
        raise_error raises it later.
        """
        try:
            return self._tasks[task](blocks, m)
        except BaseException as error:
            self._error = error
            return RAISED

    def raise_error(self) -> None:
        """Raise the stored exception of the last failed task, if any, and delete it."""
        error, self._error = self._error, None
        if error is not None:
            raise error
