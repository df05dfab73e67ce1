"""The command `dyn count`: operations of a solver's algorithm, and their growth."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dyn_core.model import Model
from dyn_core.model.sources.arguments import add_robot, load_robot
from dyn_core.solving.operation_counts import count, fit_order, polynomial_degree
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import Solver
from dyn_core.testing.case import Case
from dyn_core.testing.models import chain

OPERATIONS = ("mul", "add", "div", "sqrt", "trig")
SIZES = (2, 4, 8, 16)
_HOW = {
    "literal": "every operation that the algorithm executes",
    "folded": "structural zeros and ones free",
}


def operations(which: Solver, model: Model, how: str = "folded") -> Counter[str]:
    """Return the number of arithmetic operations of a solver for a robot, by category.

    Categories: add (and sub), mul, div, sqrt, trig (also exp, log and tanh); absent
    ones count 0. Negation, comparisons and copies do not count. The state is random,
    with a fixed seed, so the numbers are the same in every call.

    Args:
        which: TracedSolver.
        model: Robot.
        how: "literal", every operation that is executed, or "folded", without
            operations on structural zeros and ones.

    Raises:
        UnsupportedError: The solver is a NumpySolver or does not support the robot, or
            `how` is unknown.

    Source: RBD5-1.1.
    """
    case = Case(which, model, "plain", np.random.default_rng(0))
    program = case.program()
    numbers = np.concatenate([x.ravel() for x in case.arguments(program)])
    return count(program, numbers.tolist(), how)


def growth(which: Solver, how: str, sizes: Sequence[int] = SIZES) -> list[str]:
    """Return a table of counts on chains of revolute joints, and the fitted order.

    `sizes` are three or more numbers of joints, ascending. The last line has the order
    p of total ~ n^p, fitted to the last three, with the degree where the totals are
    exactly a polynomial. Progress is written to stderr.

    Source: RBD5-1.2.
    """
    rows = [["joints", *OPERATIONS, "total"]]
    totals = []
    for n in sizes:
        _say(f"counting {which.name} on a chain of {n} joints")
        counts = operations(which, chain(n), how)
        totals.append(counts.total())
        rows.append([str(n), *_cells(counts)])
    degree = polynomial_degree(sizes, totals)
    exact = "" if degree is None else f"; exactly a polynomial of degree {degree}"
    order = fit_order(sizes, totals)
    return [*_table(rows), f"total ~ n^{order:.2f} at the last sizes{exact}"]


def _cells(counts: Counter[str]) -> list[str]:
    return [str(counts[op]) for op in OPERATIONS] + [str(counts.total())]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def add_count(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn count`, and its function as `run`."""
    parser.add_argument("solver", help="name of a solver (dyn solvers)")
    add_robot(parser)
    parser.add_argument(
        "--literal", action="store_true", help="count zeros and ones of the robot, too"
    )
    parser.add_argument(
        "--order", action="store_true", help="growth on chains of 2 to 16 joints, too"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the counts of a solver, with --order also their growth; return 0.

    Operations on structural zeros and ones count only with --literal. With --order
    progress is written to stderr.

    Raises:
        SolverNotFound: There is no such solver.
        ModelError, SettingError: The robot or an option is not valid.
        UnsupportedError: The solver is not traced or does not support the robot.
    """
    how = "literal" if arguments.literal else "folded"
    which = solver(arguments.solver)
    model = load_robot(arguments)
    counts = operations(which, model, how)
    print(f"{which.name} for {model.name}, {model.nv} dof: {_HOW[how]}")
    print("\n".join(_table([(*OPERATIONS, "total"), _cells(counts)])))
    if arguments.order:
        print(f"on chains of revolute joints: {_HOW[how]}")
        print("\n".join(growth(which, how)))
    return 0
