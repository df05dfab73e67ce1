"""Random algorithms over every operation, to compare engines with each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.numbers import scalar
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.problems import Port, Signature
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Vector
from dyn_core.testing.models import chain

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
ALGEBRA = ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor")
CONDITIONS = ("lt", "le", "eq", "where")
SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e300,
           -1e-310, 5e-324, 2.0**52 + 0.5, 1e16)  # fmt: skip
TINY = 5e-324  # smallest positive number
WIDTH = 4  # number of inputs of a random algorithm


def random_algorithm(
    seed: int, size: int = 40, functions: bool = True, everything: bool = False
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a random function of four numbers.

    It takes a sequence of four floats or traced numbers, and returns a list.

    Args:
        seed: Seed of the algorithm.
        size: Number of operations.
        functions: Whether to use sin, exp and similar functions as well as algebra and
            choices.
        everything: True: the function returns the results of all operations, `size`
            numbers; false: the last eight of [*x, 0, 1, -1, 0.5, *results].
    """
    others = [op for op in OPERATIONS if op not in ("and", "or", "not")]
    ops = others if functions else [*ALGEBRA, *CONDITIONS]

    def algorithm(x: Sequence[Any]) -> list[Any]:
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

    return algorithm


def _choice(op: str, a: Any, b: Any, c: Any) -> Any:
    """Return b if (not (a op b) or b < c) and a <= c, else c.

    `op` is "le" for <=, "eq" for equality, any other name for <.
    """
    condition = {"le": lambda: a <= b, "eq": lambda: scalar.equal(a, b)}
    first = condition.get(op, lambda: a < b)()
    other = scalar.logical_or(scalar.logical_not(first), b < c)
    return scalar.where(scalar.logical_and(other, a <= c), b, c)


def flat_program(
    algorithm: Callable[[list[Any]], Sequence[Any]],
    width: int,
    outputs: int,
    **choices: Any,
) -> Any:
    """Return a Program of a function of a list of numbers.

    It takes an array of `width` numbers and returns one of `outputs` numbers. If the
    function returns another number of them, the build raises ShapeError, with the
    engines plain and graph each call.

    Args:
        algorithm: Function of a list of `width` numbers that returns `outputs` numbers.
        width, outputs: Numbers of inputs and outputs.
        choices: Options of build, such as engine.
    """
    ports = (Port("x", (width,)),), (Port("y", (outputs,)),)

    def of_vectors(model: Any, x: Vector) -> Vector:
        return Vector(algorithm(list(x)))

    solver = TracedSolver("flat", Signature("flat", *ports), of_vectors, by_joint=False)
    return solver.build(chain(1), **choices)


def ulps(values: np.ndarray, expected: Any) -> np.ndarray:
    """Return the errors in units in the last place of float64, shaped as `values`.

    0 where both are equal or NaN, NaN where one alone is NaN. Where one alone is
    infinite, the error is infinite or NaN.

    Args:
        values: Results, an array of floats.
        expected: Exact numbers in the same shape; they may have a higher precision than
            float64.
    """
    rounded = np.asarray(expected).astype(float)
    with np.errstate(all="ignore"):
        same = (values == expected) | (np.isnan(values) & np.isnan(rounded))
        space = np.maximum(np.spacing(np.abs(rounded)), TINY)
        return np.where(same, 0.0, np.abs(values - expected) / space)


def newton_root(x: Sequence[Any]) -> list[Any]:
    """Return [square root of x[0], number of iterations], by Newton's method from x[0].

    Iterations end when the root's square has a relative error of at most 1e-12, and
    after 60 iterations. x[0] must be positive, which is not checked; other numbers of x
    are ignored.
    """
    a = x[0]

    def body(state: tuple) -> tuple:
        y, n = state
        return (y + a / y) * 0.5, n + 1.0

    def cond(state: tuple) -> Any:
        y, _ = state
        return scalar.absolute(y * y - a) > 1e-12 * a

    return list(scalar.loop((a, 0.0), body, cond, max=60))


def apply(op: str, *operands: Any) -> Any:
    """Return the result of an operation; it is traced if an operand is a Number.

    Args:
        op: Key of OPERATIONS.
        operands: Floats or Numbers, as many as the operation has.
    """
    number = next((x for x in operands if isinstance(x, scalar.Number)), None)
    if number is not None:
        return number.apply(op, *operands)
    return OPERATIONS[op].on_float(*operands)


def random_rows(seed: int, rows: int) -> np.ndarray:
    """Return random inputs, (rows, 4); equal arguments give equal inputs.

    They are normal numbers times 10^-3 to 10^3. About 15 % are replaced by numbers of
    SPECIAL, which has NaN, infinities and subnormal numbers.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, WIDTH)) * 10.0 ** rng.integers(-3, 4, (rows, WIDTH))
    special = rng.random((rows, WIDTH)) < 0.15
    values[special] = rng.choice(SPECIAL, special.sum())
    return values
