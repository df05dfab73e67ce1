"""Numbers that remember how they came about: reverse-mode differentiation.

An algorithm runs on them unchanged; then the derivatives of any weighted sum of its
results by all inputs cost a few times the algorithm, however many inputs there are.
Each operation is turned round by Taylor numbers: what an operand passes on is the
derivative along it, times the weight of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.scalar import Number
from dyn_core.numbers.taylor import DIRECTION, Taylor, derivatives


class Reverse(Number):
    """A number and its place in a Record.

    Its rank is that of a direction: Taylor numbers of coordinates and of time may be
    made of such numbers, those along a direction may not.

    Attributes:
        x: Value, a number of a lower rank.
        record: Where operations are noted.
        place: Number of the operation that it came from.
    """

    __slots__ = ("place", "record", "x")
    rank = DIRECTION

    def __init__(self, x: Any, record: Record, place: int) -> None:
        self.x, self.record, self.place = x, record, place

    def apply(self, op: str, *operands: Any) -> Any:
        """Compute the operation and note it; conditions are those of the values."""
        if op == "require":
            condition, *rest = operands
            return _value(condition).apply(op, _value(condition), *rest)
        if op not in OPERATIONS:
            raise UnsupportedError(
                f"'{op}' has no derivative in reverse; valid: {', '.join(OPERATIONS)}"
            )
        values = tuple(_value(x) for x in operands)
        if OPERATIONS[op].boolean or op == "floor":
            return _computed(op, values)
        places = tuple(x.place if isinstance(x, Reverse) else None for x in operands)
        return self.record.note(op, values, places)


class Record:
    """Operations in the order in which they were computed."""

    def __init__(self) -> None:
        self._operations: list[tuple[str, tuple[Any, ...], tuple[int | None, ...]]] = []

    def variables(self, x: Iterable[Any]) -> list[Reverse]:
        """Return numbers by which results will be differentiated."""
        return [self._new("", (y,), (), y) for y in x]

    def note(
        self, op: str, values: tuple[Any, ...], places: tuple[int | None, ...]
    ) -> Reverse:
        """Return the result of an operation.

        Args:
            op: Its name.
            values: Of its operands.
            places: Of its operands here; None for constants.
        """
        return self._new(op, values, places, _computed(op, values))

    def _new(
        self,
        op: str,
        values: tuple[Any, ...],
        places: tuple[int | None, ...],
        result: Any,
    ) -> Reverse:
        self._operations.append((op, values, places))
        return Reverse(result, self, len(self._operations) - 1)

    def gradient(
        self, results: Iterable[Any], weights: Iterable[Any], by: Sequence[Reverse]
    ) -> list[Any]:
        """Return the derivatives of a weighted sum of results.

            d(sum_i w_i y_i) / dx_k

        Args:
            results: y, numbers that came from the variables, or constants.
            weights: w, numbers of a lower rank.
            by: x, of `variables`.
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
                along[j] = Taylor(values[j], passed[k])
                part = derivatives(_computed(op, along))[1]
                passed[place] = _sum(passed[place], part)
        return [passed[x.place] for x in by]


def _value(x: Any) -> Any:
    return x.x if isinstance(x, Reverse) else x


def _computed(op: str, values: Sequence[Any]) -> Any:
    """Return an operation on numbers; the one of the highest rank computes it."""
    numbers = [x for x in values if isinstance(x, Number)]
    if not numbers:
        return OPERATIONS[op].on_float(*values)
    return max(numbers, key=lambda x: x.rank).apply(op, *values)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _sum(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b
