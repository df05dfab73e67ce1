"""Random texts over every operation: to compare engines with each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core import scalar
from dyn_core.operations import OPERATIONS
from dyn_core.signature import Port, Signature
from dyn_core.solver import TextSolver
from dyn_core.spatial import Vector
from dyn_core.testing.models import chain

ALGEBRA = ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor")
CONDITIONS = ("lt", "le", "eq", "where")
SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e300,
           -1e-310, 5e-324, 2.0**52 + 0.5, 1e16)  # fmt: skip
TINY = 5e-324  # the least positive number
WIDTH = 4  # numbers that a random text takes


def random_text(
    seed: int, size: int = 40, functions: bool = True, everything: bool = False
) -> Callable[[Sequence[Any]], list[Any]]:
    """Give a random function of four numbers.

    Args:
        seed: Of the text.
        size: Number of operations.
        functions: Whether sin, exp and their like occur, besides algebra and choices.
        everything: Whether each value is given, or some at the end.
    """
    others = [op for op in OPERATIONS if op not in ("and", "or", "not")]
    ops = others if functions else [*ALGEBRA, *CONDITIONS]

    def text(x: Sequence[Any]) -> list[Any]:
        rng = np.random.default_rng(seed)
        values = [*x, 0.0, 1.0, -1.0, 0.5]
        for _ in range(size):
            op = ops[rng.integers(len(ops))]
            a, b, c = (values[rng.integers(len(values))] for _ in range(3))
            if op in CONDITIONS:
                values.append(_choice(op, a, b, c))
            else:
                operands = (a, b)[: OPERATIONS[op].arity]
                values.append(apply(op, *operands))
        return values[WIDTH + 4 :] if everything else values[-8:]

    return text


def _choice(op: str, a: Any, b: Any, c: Any) -> Any:
    """Give a choice that uses comparisons and the operations on conditions."""
    condition = {"le": lambda: a <= b, "eq": lambda: scalar.equal(a, b)}
    first = condition.get(op, lambda: a < b)()
    other = scalar.logical_or(scalar.logical_not(first), b < c)
    return scalar.where(scalar.logical_and(other, a <= c), b, c)


def flat_program(
    text: Callable[[list[Any]], Sequence[Any]],
    width: int,
    outputs: int,
    **choices: Any,
) -> Any:
    """Give a Program of a function of flat numbers; any robot does.

    Args:
        text: Takes a list of `width` numbers, gives `outputs` of them.
        width, outputs: How many.
        choices: Of build.
    """
    ports = (Port("x", (width,)),), (Port("y", (outputs,)),)

    def of_vectors(model: Any, x: Vector) -> Vector:
        return Vector(text(list(x)))

    solver = TextSolver("flat", Signature("flat", *ports), of_vectors, by_joint=False)
    return solver.build(chain(1), **choices)


def ulps(given: np.ndarray, wanted: Any) -> np.ndarray:
    """Give the distance in spacings of the wanted number; 0 where both are NaN."""
    rounded = np.asarray(wanted).astype(float)
    with np.errstate(all="ignore"):
        same = (given == wanted) | (np.isnan(given) & np.isnan(rounded))
        space = np.maximum(np.spacing(np.abs(rounded)), TINY)
        return np.where(same, 0.0, np.abs(given - wanted) / space)


def newton_root(x: Sequence[Any]) -> list[Any]:
    """Give the square root of x[0] by Newton's method, and the number of rounds."""
    a = x[0]

    def body(state: tuple) -> tuple:
        y, n = state
        return (y + a / y) * 0.5, n + 1.0

    def cond(state: tuple) -> Any:
        y, _ = state
        return scalar.absolute(y * y - a) > 1e-12 * a

    return list(scalar.loop((a, 0.0), body, cond, max=60))


def apply(op: str, *operands: Any) -> Any:
    """Apply an operation to floats or traced numbers."""
    number = next((x for x in operands if isinstance(x, scalar.Number)), None)
    if number is not None:
        return number.apply(op, *operands)
    return OPERATIONS[op].on_float(*operands)


def random_rows(seed: int, rows: int) -> np.ndarray:
    """Give inputs of random texts: usual numbers, and special values among them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, WIDTH)) * 10.0 ** rng.integers(-3, 4, (rows, WIDTH))
    special = rng.random((rows, WIDTH)) < 0.15
    values[special] = rng.choice(SPECIAL, special.sum())
    return values
