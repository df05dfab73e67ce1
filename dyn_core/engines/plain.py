"""The engine `plain`: the algorithm runs on Python numbers.

It is the reference and works on every machine. This file also defines the numbers other
than floats that it runs on: complex ones (derivative checks) and counting ones
(operation counts).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dyn_core.engines.base import Function
from dyn_core.engines.row_program import RowProgram
from dyn_core.errors import SingularError, TraceError, UnsupportedError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.scalar import Number


class _Computing(Number):
    """A number that is computed immediately: loops and requirements run as written."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def truth(self) -> bool:
        """Return the truth of a condition."""
        return bool(self.value)

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result of an operation; run a loop; check a requirement.

        Operands of "loop" are state, body, cond, maximum of rounds; of "require"
        condition, error class, item. A condition gives a bool, "loop" the last state,
        "require" None, or an error of the class given. ZeroDivisionError: a Complex
        divides by zero, or is atan2 of two zeros.
        """
        if op == "require":
            condition, error, item = operands
            if not condition:
                raise error(item)
            return None
        if op == "loop":
            state, body, cond, rounds = operands
            for _ in range(rounds):
                if not cond(state):
                    break
                state = tuple(body(state))
            return state
        if op not in OPERATIONS:
            raise UnsupportedError(f"{type(self).__name__} numbers cannot do '{op}'")
        values = [x.value if isinstance(x, _Computing) else x for x in operands]
        return self._compute(op, values)

    def _compute(self, op: str, values: Sequence[Any]) -> Any:
        """Return the result of an operation of OPERATIONS on plain values.

        It is a number of this class, or a bool for a condition. Subclasses implement
        it.
        """
        raise NotImplementedError


class Complex(_Computing):
    """A complex number whose imaginary part carries a derivative."""

    __slots__ = ()

    def _compute(self, op: str, values: Sequence[Any]) -> Any:
        operation = OPERATIONS[op]
        if operation.on_complex is None:
            raise UnsupportedError(f"'{op}' has no complex meaning")
        result = operation.on_complex(*values)
        return result if operation.boolean else Complex(result)


class Counting(_Computing):
    """A float that counts the arithmetic operations done with it.

    Class attributes:
        counter: Number of operations by category: add, mul, div, sqrt, trig. All
            executed operations count, those with zeros too; operations on constants of
            the robot alone do not. The counter is shared by the process: count in one
            thread at a time (solving/operation_counts.py).

    Source: RBD5-1.1 (cost of an algorithm).
    """

    __slots__ = ()
    counter: Counter[str] = Counter()

    def _compute(self, op: str, values: Sequence[Any]) -> Any:
        operation = OPERATIONS[op]
        if operation.counts is not None:
            self.counter[operation.counts] += 1
        result = operation.on_float(*values)
        return result if operation.boolean else type(self)(result)


class PlainProgram(RowProgram):
    """An algorithm on Python numbers, row by row; non-finite numbers are errors.

    Args:
        function: Algorithm as a function of the flat inputs that returns the flat
            outputs.
        parts: Keyword arguments of Program; `finite` is replaced by True.
    """

    engine = "plain"

    def __init__(self, function: Function, **parts: Any) -> None:
        super().__init__(**{**parts, "finite": True})
        self.function = function

    def solve_row(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Return the flat outputs for the flat inputs of one state.

        Raises:
            RequireError: A position is invalid, or a requirement does not hold;
                SingularError also for a division by zero.
        """
        self.require_positions(numbers)
        return self._outputs(numbers)

    def _outputs(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Return the flat outputs for flat inputs, floats or Complex numbers.

        SingularError: the algorithm divides by zero.
        """
        try:
            return self.function(numbers)
        except (ZeroDivisionError, TraceError) as error:
            # named_errors converts it, as for a constant of an algorithm
            if isinstance(error.__cause__ or error, ZeroDivisionError):
                raise SingularError(str(error)) from error
            raise

    def run_complex(self, numbers: Sequence[complex]) -> Sequence[Any]:
        """Return the flat outputs of one state for flat complex inputs.

        Outputs that do not depend on an input are floats. The comparisons < and <=, and
        abs, decide by the real parts.

        Raises:
            UnsupportedError: An operation has no complex form, such as the call of a
                NumpySolver in a slot.
            SingularError: The algorithm divides by zero.
            RequireError: A requirement of the algorithm does not hold. Positions are
                checked only if the user built with finite=True.
            TraceError: A function fails for a number, such as log of 0.
        """
        flat = self._outputs([Complex(x) for x in numbers])
        return [x.value if isinstance(x, Complex) else x for x in flat]
