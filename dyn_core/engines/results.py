"""Named tuples of arrays, the results of calls with several outputs.

Type checkers do not know the names of the fields, since Ports are data. They take each
field of Results for an array, and accept Results as any named tuple that a caller
annotates.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dyn_core.sharing import once

if TYPE_CHECKING:
    import typing_extensions

    Built = typing_extensions.TypeVar("Built", covariant=True, default=Any)
    Value = typing_extensions.TypeVar("Value", covariant=True, default=np.ndarray)

    class Results(tuple[Value, ...], Any):
        """Several outputs, by index and by name."""

        def __getattr__(self, name: str) -> Value: ...

else:
    Built = TypeVar("Built", covariant=True)

    class Results(tuple):
        """Several outputs, by index and by name: arrays, and floats for single numbers.

        Type checkers see Results[Any] where a number is among them.
        """

        __slots__ = ()


@once
def result_type(names: tuple[str, ...]) -> Any:
    """Return the named tuple class for these names; equal names give the same class.

    Its objects can be pickled. ValueError: A name is invalid, such as link3.mass.
    """
    base: Any = namedtuple("Result", list(names))  # type: ignore[misc]

    def reduce(self: Any) -> tuple[Any, ...]:
        return make_result, (names, tuple(self))

    return type("Result", (base, Results), {"__slots__": (), "__reduce__": reduce})


def make_result(names: tuple[str, ...], values: Sequence[Any]) -> Any:
    """Return several outputs as a named tuple; names as of result_type."""
    return result_type(names)(*values)
