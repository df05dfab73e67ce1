"""Random algorithms over every operation, to compare engines with each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.numbers import scalar
from dyn_core.numbers.operations import OPERATIONS

ALGEBRA = ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor")
CONDITIONS = ("lt", "le", "eq", "where")
SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e300,
           -1e-310, 5e-324, 2.0**52 + 0.5, 1e16)  # fmt: skip
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
