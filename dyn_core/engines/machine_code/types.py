"""Types of the subset, read from annotations, and signatures of functions."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any

import numpy as np

from dyn_core.errors import TraceError


@dataclass(frozen=True)
class NumberType:
    """A type of number; `letter` is its 8-byte format in the struct module."""

    name: str
    llvm: str
    letter: str

    def __str__(self) -> str:
        return self.name


INT = NumberType("int", "i64", "q")
FLOAT = NumberType("float", "double", "d")
BOOL = NumberType("bool", "i1", "?7x")
MASK = NumberType("a bool of each lane", "", "")  # only within an expression
_NUMBERS = {int: INT, float: FLOAT, bool: BOOL}


@dataclass(frozen=True)
class ArrayType:
    """An array of ints or floats; `axes` 0 means the address of one element."""

    item: NumberType
    axes: int

    def __str__(self) -> str:
        name = "FloatArray" if self.item is FLOAT else "IntArray"
        return name if self.axes == 1 else f"{name}{self.axes}"


@dataclass(frozen=True)
class RecordType:
    """A NamedTuple of arrays, numbers, records; `fields`: (name, type) in order."""

    python: type
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.python.__name__


@dataclass(frozen=True)
class TupleType:
    """A tuple of numbers, such as a function's result; without items: no result."""

    items: tuple[NumberType, ...]

    def __str__(self) -> str:
        if not self.items:
            return "nothing"
        return f"tuple[{', '.join(map(str, self.items))}]"


Type = NumberType | ArrayType | RecordType | TupleType
NOTHING = TupleType(())
VALID = (
    "int, float, bool, FloatArray, FloatArray2, FloatArray3, IntArray, IntArray2,"
    " IntArray3, classes derived from NamedTuple of these"
)


@dataclass(frozen=True)
class FunctionType:
    """Signature of a function: (name, type) of each argument, type of the result.

    The result is a NumberType, a TupleType of numbers, or NOTHING.
    """

    parameters: tuple[tuple[str, Type], ...]
    result: Type


def size(kind: Type) -> int:
    """Return the number of 8-byte words of an argument in a table of arguments.

    1 for a number, 1 + axes for an array, and the sum over the fields for a record.
    """
    if isinstance(kind, ArrayType):
        return 1 + kind.axes
    if isinstance(kind, RecordType):
        return sum(size(inner) for _, inner in kind.fields)
    return 1


def of_annotation(annotation: Any, where: str) -> Type:
    """Return the type of an annotated argument or field, else raise TraceError.

    The annotation is an object, not text. `where` starts the message.
    """
    if isinstance(annotation, type) and annotation in _NUMBERS:
        return _NUMBERS[annotation]
    if typing.get_origin(annotation) is Annotated:
        base, *marks = typing.get_args(annotation)
        if base is np.ndarray and len(marks) == 2 and marks[0] in (int, float):
            return ArrayType(_NUMBERS[marks[0]], marks[1])
    if isinstance(annotation, type) and hasattr(annotation, "_fields"):
        hints = _hints(annotation, where)
        return RecordType(
            annotation,
            tuple(
                (name, of_annotation(hints.get(name), f"{where}.{name}"))
                for name in annotation._fields
            ),
        )
    shown = getattr(annotation, "__name__", repr(annotation))
    raise TraceError(f"{where}: the type {shown} is not of the subset; valid: {VALID}")


def _of_result(annotation: Any, where: str) -> Type:
    """Return the type of a result from its annotation as an object, not as text."""
    if annotation in (None, NoneType):
        return NOTHING
    if typing.get_origin(annotation) is tuple:
        items = typing.get_args(annotation)
        if items and all(item in _NUMBERS for item in items):
            return TupleType(tuple(_NUMBERS[item] for item in items))
    elif isinstance(annotation, type) and annotation in _NUMBERS:
        return _NUMBERS[annotation]
    raise TraceError(
        f"{where}: what is returned must be None, a number or a tuple of numbers, "
        f"got {annotation}; valid: -> None, -> float, -> tuple[float, int], ..."
    )


def place_of(function: Callable[..., Any]) -> str:
    """Return "FILE:LINE: NAME" of a function; LINE may be that of a decorator."""
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno}: {function.__qualname__}"


def of_function(function: Callable[..., Any]) -> FunctionType:
    """Return the signature of a function, from its annotations, else raise TraceError.

    Refused are default values, *args, **kwargs and keyword-only arguments.
    """
    where = place_of(function)
    code, hints = function.__code__, _hints(function, where)
    if code.co_flags & 0x0C or code.co_kwonlyargcount or function.__defaults__:
        message = "no *args, **kwargs, keyword-only arguments, default values"
        raise TraceError(f"{where}: {message}; valid: plain arguments")
    names = code.co_varnames[: code.co_argcount]
    for name in (*names, "return"):
        if name not in hints:
            what = "what is returned" if name == "return" else f"argument '{name}'"
            raise TraceError(
                f"{where}: {what} has no annotation; valid: {VALID}"
                f"{', None or a tuple of numbers' if name == 'return' else ''}"
            )
    return FunctionType(
        tuple((x, of_annotation(hints[x], f"{where}: '{x}'")) for x in names),
        _of_result(hints["return"], where),
    )


def _hints(thing: Any, where: str) -> dict[str, Any]:
    """Return the annotations of a function or class by name, as objects."""
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except Exception as error:  # an annotation is any expression
        raise TraceError(
            f"{where}: an annotation cannot be evaluated: {error}; valid: names of the"
            " module, not those under TYPE_CHECKING"
        ) from error
