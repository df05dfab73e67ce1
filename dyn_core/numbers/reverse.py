"""Numbers that record their operations: reverse-mode differentiation.

An algorithm runs on them unchanged. The derivatives of any weighted sum of its results
by all inputs then cost a few times the algorithm, independent of the number of inputs.
The backward sweep uses Taylor numbers: an operand receives the derivative of the
operation along it, times the weight of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.scalar import Number
from dyn_core.numbers.taylor import DIRECTION, Taylor, computed, derivatives

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py


class Reverse(Number):
    """A number `x` and the index `place` of its operation in a Record.

    It has the rank of a direction: Taylor numbers of coordinates and of time may have
    such numbers as components; Taylor numbers along a direction may not. x has a lower
    rank.
    """

    __slots__ = ("place", "record", "x")
    rank = DIRECTION

    def __init__(self, x: Any, record: Record, place: int) -> None:
        self.x, self.record, self.place = x, record, place

    def apply(self, op: str, *operands: Any) -> Any:
        """Record an operation and return its result, a Reverse number.

        Comparisons and floor are evaluated on the values and not recorded: their
        derivative is zero, and their result is no Reverse number. "require" (condition,
        error class, item) passes the value of the condition on to the number of a lower
        rank that it is, and returns None.
        """
        if op == "require":
            condition, *rest = operands
            return _value(condition).apply(op, _value(condition), *rest)
        if op not in OPERATIONS:
            raise UnsupportedError(
                f"'{op}' has no derivative in reverse; valid: {', '.join(OPERATIONS)}"
            )
        values = tuple(_value(x) for x in operands)
        if OPERATIONS[op].boolean or op == "floor":
            return computed(op, *values)
        places = tuple(x.place if isinstance(x, Reverse) else None for x in operands)
        return self.record.note(op, values, places)


class Record:
    """The operations of an algorithm in the order in which they were computed."""

    def __init__(self) -> None:
        self._operations: list[tuple[str, tuple[Any, ...], tuple[int | None, ...]]] = []

    def variables(self, x: Iterable[Any]) -> list[Reverse]:
        """Return the independent variables, Reverse numbers of this record.

        Args:
            x: Values, numbers of a lower rank than Reverse; one variable for each.
        """
        return [self._new("", (y,), (), y) for y in x]

    def note(
        self, op: str, values: tuple[Any, ...], places: tuple[int | None, ...]
    ) -> Reverse:
        """Record an operation and return its result.

        Args:
            op: Name of the operation.
            values: Values of the operands.
            places: Indices of the operands in this record; None for constants.
        """
        return self._new(op, values, places, computed(op, *values))

    def _new(
        self,
        op: str,
        values: tuple[Any, ...],
        places: tuple[int | None, ...],
        result: Any,
    ) -> Reverse:
        """Append an operation; return its result. Constants have the place None."""
        self._operations.append((op, values, places))
        return Reverse(result, self, len(self._operations) - 1)

    def gradient(
        self, results: Iterable[Any], weights: Iterable[Any], by: Sequence[Reverse]
    ) -> list[Any]:
        """Return the derivatives of a weighted sum of results by each variable.

            d(sum_i w_i y_i) / dx_k

        Args:
            results: y, Reverse numbers of this record, or constants, which do not
                contribute.
            weights: w, numbers of a lower rank, as many as results (else ValueError).
            by: x, numbers that `variables` of this record returned.

        Returns:
            One derivative for each entry of `by`; 0.0 where no result depends on it.

        Raises:
            ZeroDivisionError: Values are floats, and a divisor, also in a derivative
                rule (of sqrt at 0), is zero.
        """
        passed: list[Any] = [0.0] * len(self._operations)
        for y, w in zip(results, weights, strict=True):
            if isinstance(y, Reverse):
                passed[y.place] = _sum(passed[y.place], w)
        for k in reversed(range(len(self._operations))):
            op, values, places = self._operations[k]
            if _is_zero(passed[k]):
                continue
            for j, place in enumerate(places):
                if place is None:
                    continue
                along = [*values]
                # With the weight as the derivative of operand j, the result is weight
                # times the derivative along operand j.
                along[j] = Taylor(values[j], passed[k])
                part = derivatives(computed(op, *along))[1]
                passed[place] = _sum(passed[place], part)
        return [passed[x.place] for x in by]


def _value(x: Any) -> Any:
    return x.x if isinstance(x, Reverse) else x


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _sum(a: Any, b: Any) -> Any:
    """Return a + b, without an operation if one of them is the constant 0."""
    return b if _is_zero(a) else a if _is_zero(b) else a + b
