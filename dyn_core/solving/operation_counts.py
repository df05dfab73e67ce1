"""Operation counts of algorithms, and their growth with the size of the robot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dyn_core.engines.base import Program
from dyn_core.engines.plain import Counting
from dyn_core.errors import ShapeError, UnsupportedError, unknown_name
from dyn_core.validation import float_array, known_keywords, shown

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
_LAST = 3  # number of last points that determine the slope


class Folding(Counting):
    """A Counting number for which operations with structural zeros and ones are free.

        0 x = 0,  x + 0 = x,  0 - x = -x,  1 x = x,  -1 x = -x,  x / 1 = x,  0 / x = 0

    Plain floats are structural, such as the zeros of a joint axis: they do not depend
    on the state. A zero that results from the state is counted.

    Source: RBD5-1.1.
    """

    __slots__ = ()

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result of an operation, counted as in Counting.

        Operations with a structural zero, one or (in products) -1 are not counted. `op`
        is the name of the operation, such as "add"; operands are Numbers or floats. A
        free operation may return an operand or a float.
        """
        if op in ("add", "sub", "mul", "div"):
            a, b = operands
            free = _FREE[op](a, b)
            if free is not None:
                return free
        return super().apply(op, *operands)


def _is(x: Any, constant: float) -> bool:
    return isinstance(x, (int, float)) and x == constant


def _add(a: Any, b: Any) -> Any:
    if _is(a, 0.0):
        return b
    return a if _is(b, 0.0) else None


def _sub(a: Any, b: Any) -> Any:
    if _is(a, 0.0):
        return -b
    return a if _is(b, 0.0) else None


def _mul(a: Any, b: Any) -> Any:
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    for one, other in ((a, b), (b, a)):
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return -other
    return None


def _div(a: Any, b: Any) -> Any:
    if _is(a, 0.0):
        return 0.0
    return a if _is(b, 1.0) else None


# Each returns the result if a structural zero or one decides it, else None.
_FREE: dict[str, Callable[[Any, Any], Any]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
}
KINDS: dict[str, type[Counting]] = {"literal": Counting, "folded": Folding}


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Yield a fresh counter of the operations of Counting numbers inside the block.

    Its keys are the categories of `count`. Blocks nest: at its end, also by an error, a
    block adds its counts to the outer one. All threads share it: count in one at a
    time.

    Source: RBD5-1.1.
    """
    outer, inner = Counting.counter, Counter[str]()
    Counting.counter = inner
    try:
        yield inner
    finally:
        Counting.counter = outer
        outer.update(inner)


@known_keywords
def count(
    what: Program[Any] | Callable[[Sequence[Any]], Any],
    numbers: Sequence[float],
    how: str = "literal",
) -> Counter[str]:
    """Count the arithmetic operations of a Program's algorithm, or of a function.

    Index arithmetic, comparisons, negation and copies do not count. Errors of the
    algorithm or function pass through.

    Args:
        what: A Program of a TracedSolver, or a function of a list of numbers.
        numbers: Its flat inputs.
        how: literal (every operation executed) or folded (operations with structural
            zeros and ones are free).

    Returns:
        Number of operations by category: add (and sub), mul, div, sqrt, trig (also exp,
            log and tanh); their sum is `.total()`. A category without operations is
            absent.

    Raises:
        UnsupportedError: `how` is unknown, or `what` is a Program of a NumpySolver, or
            no function.
        ShapeError: `numbers` are no list of numbers, or not as many as the Program has
            inputs.

    Source: RBD5-1.1 (cost of an algorithm).
    """
    if not isinstance(how, str) or how not in KINDS:
        raise UnsupportedError(unknown_name("way of counting", how, KINDS))
    function: Any = (
        getattr(what, "function", None) if isinstance(what, Program) else what
    )
    if function is None:
        raise UnsupportedError(
            "operations can be counted for a TracedSolver only, not for a NumpySolver"
        )
    if not callable(function):
        message = f"operations of {shown(what)}; valid: a Program, or a function"
        raise UnsupportedError(message)
    flat = float_array("numbers", numbers, "a flat list")
    size = flat.size
    if isinstance(what, Program):
        size = sum(port.size for port in what.inputs)
    if flat.shape != (size,):
        raise ShapeError("numbers", f"shape ({size},)", f"shape {flat.shape}")
    with counting() as counter:
        function([KINDS[how](x) for x in flat.tolist()])
    return counter


def fit_order(ns: Sequence[float], costs: Sequence[float]) -> float:
    """Return p of cost ~ n^p: the slope of log cost over log n of the last points.

        n, m = g(n) = n^2:   cost ~ n^p = m^(p/2)

    So with other sizes, such as m, the result is another one, here p/2. The slope is
    the least-squares fit of the last three points. Sizes are ascending, three or more.

    Source: RBD5-1.2, RBD5-1.3.
    """
    _check(ns, costs)
    x = [math.log(n) for n in ns[-_LAST:]]
    y = [math.log(c) for c in costs[-_LAST:]]
    x0, y0 = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - x0) * (b - y0) for a, b in zip(x, y, strict=True))
    return slope / sum((a - x0) ** 2 for a in x)


def polynomial_degree(ns: Sequence[int], costs: Sequence[int]) -> int | None:
    """Return the degree of the polynomial through whole-numbered costs, exactly.

    It is the smallest d for which all divided differences of order d + 1 vanish, or
    None. Sizes are ascending, three or more; equal steps are not needed.

    Source: RBD5-1.2.
    """
    _check(ns, costs)
    if any(int(x) != x for x in (*ns, *costs)):
        raise UnsupportedError("the degree is exact for whole sizes and counts only")
    row = [Fraction(int(c)) for c in costs]
    for order in range(1, len(ns)):
        steps = (ns[k + order] - ns[k] for k in range(len(row) - 1))
        row = [
            (b - a) / int(step)
            for (a, b), step in zip(pairwise(row), steps, strict=True)
        ]
        if not any(row):
            return order - 1
    return None


def is_order(
    costs: Mapping[int, float],
    f: Callable[[int], float],
    C_min: float,
    C_max: float,
    n_min: int,
) -> bool:
    """Return whether costs are of the order of f, two-sided, with these constants.

        C_min f(n) <= cost(n) <= C_max f(n)    for all n > n_min

    Source: RBD5-1.2.
    """
    _check(list(costs), list(costs.values()))
    if not 0 < C_min <= C_max:
        raise UnsupportedError(f"needs 0 < C_min <= C_max, got {C_min} and {C_max}")
    tail = [n for n in costs if n > n_min]
    if not tail:
        raise UnsupportedError(f"no cost is given for a size above n_min = {n_min}")
    return all(C_min * f(n) <= costs[n] <= C_max * f(n) for n in tail)


def _check(ns: Sequence[float], costs: Sequence[float]) -> None:
    """Raise UnsupportedError for sizes and costs without an order of growth.

    Valid: three or more ascending sizes and as many costs, all positive and finite.
    """
    if len(ns) != len(costs):
        raise UnsupportedError(f"{len(ns)} sizes and {len(costs)} costs do not match")
    if len(ns) < 3:
        raise UnsupportedError(f"an order needs 3 sizes or more, got {len(ns)}")
    if not all(0 < x < math.inf for x in (*ns, *costs)):
        raise UnsupportedError("sizes and costs must be positive and finite")
    if any(b <= a for a, b in pairwise(ns)):
        raise UnsupportedError("sizes must be ascending")
