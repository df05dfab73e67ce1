"""Arguments of machine code: tables of addresses, dimensions and numbers; lanes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    NumberType,
    RecordType,
    Type,
)
from dyn_core.errors import ShapeError

_LINE = 64  # bytes of a cache line, and of the widest vector

_DTYPES = np.dtype(np.int64), np.dtype(np.float64)


def number(kind: NumberType, value: Any, name: str) -> int | float | bool:
    """Return a number as a Python int, float or bool, else a ShapeError.

    FLOAT accepts an int (OverflowError: too large), INT 64 bits, BOOL alone a bool.
    """
    fits: Any = {
        INT: (int, np.integer),
        FLOAT: (float, int, np.floating, np.integer),
        BOOL: (bool, np.bool_),
    }[kind]
    if not isinstance(value, fits) or (kind is not BOOL and isinstance(value, bool)):
        raise ShapeError(name, str(kind), type(value).__name__)
    if kind is FLOAT:
        return float(value)
    if kind is BOOL:
        return bool(value)
    if not -(2**63) <= value < 2**63:
        raise ShapeError(name, "an int of 64 bits", str(value))
    return int(value)


def table(
    kind: Type, value: Any, name: str, lanes: int
) -> Iterator[tuple[bytes, list[Any]]]:
    """Yield the packed words of an argument, with the arrays they point to.

    Each item is (bytes, arrays): address and dimensions (without lanes) of an array,
    and a list of that array; or a number of 8 bytes, and an empty list.

    Args:
        kind: Type of the argument; a record yields the items of its fields, in order.
        value: Record, array or number.
        name: Name for messages.
        lanes: Required length of an additional last axis of float arrays; 0: no such
            axis. Int arrays and numbers have none.

    Raises:
        ShapeError: A value has another type, dtype, number of axes, number of lanes or
            memory layout, an array is read-only, or an int exceeds 64 bits.
        OverflowError: An int is too large for a float.
    """
    if isinstance(kind, RecordType):
        if not isinstance(value, kind.python):
            raise ShapeError(name, f"a {kind}", type(value).__name__)
        for inner, field in kind.fields:
            yield from table(field, getattr(value, inner), f"{name}.{inner}", lanes)
    elif isinstance(kind, ArrayType):
        _check_array(kind, value, name, lanes if kind.item is FLOAT else 0)
        address, shape = value.__array_interface__["data"][0], value.shape
        yield struct.pack(f"={1 + kind.axes}q", address, *shape[: kind.axes]), [value]
    else:
        assert isinstance(kind, NumberType)
        code = "d" if kind is FLOAT else "q"
        yield struct.pack(f"={code}", number(kind, value, name)), []


def _check_array(kind: ArrayType, value: Any, name: str, lanes: int) -> None:
    """Check that `value` is a C-contiguous, aligned, writeable array of a type.

    `lanes` is the required length of an additional last axis; 0: none.
    """
    dtype = _DTYPES[kind.item is FLOAT]
    behind = (lanes,) if lanes else ()
    if not isinstance(value, np.ndarray):
        raise ShapeError(name, _wanted(kind, lanes), type(value).__name__)
    fits = value.ndim == kind.axes + len(behind) and value.shape[kind.axes :] == behind
    if value.dtype != dtype or not fits:
        what = f"{value.dtype} of shape {value.shape}"
        raise ShapeError(name, _wanted(kind, lanes), what)
    flags = value.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        faults = {"strides": flags.c_contiguous, "odd addresses": flags.aligned,
                  "read-only memory": flags.writeable}  # fmt: skip
        fault = ", ".join(x for x, fine in faults.items() if not fine)
        raise ShapeError(name, _wanted(kind, lanes), f"one with {fault}")


def _wanted(kind: ArrayType, lanes: int) -> str:
    """Return the description of a valid array; `lanes`: length of a last axis, or 0."""
    dtype = _DTYPES[kind.item is FLOAT]
    more = f", behind them {lanes} lanes" if lanes else ""
    return f"{kind}: a {dtype} array of {kind.axes} axes, contiguous, writeable{more}"


def refuse_overlap(arrays: list[Any], name: str) -> None:
    """Raise a ShapeError if an int array shares memory with a float array.

    LLVM may assume that they do not, see lanes.py; arrays of one dtype may.
    """
    spans = sorted(
        (array.__array_interface__["data"][0], array.nbytes, array.dtype.kind)
        for array in arrays
    )
    ends = {"f": 0, "i": 0}
    for start, length, kind in spans:
        if length and ends["i" if kind == "f" else "f"] > start:
            raise ShapeError(name, "whole and real numbers apart", "one memory of both")
        ends[kind] = max(ends[kind], start + length)


def in_lanes(value: Any, lanes: int, known: dict[int, tuple[Any, Any]]) -> Any:
    """Return a copy of a record, with equal lanes as new last axis of its float arrays.

    The copies of float arrays are float64 and start at a cache line. Other arrays are
    copied without lanes; numbers are returned as they are.

    Args:
        value: Record (nested ones are copied too), array or number.
        lanes: Number of lanes.
        known: By id, each array and its copy, extended here: an array that occurs
            twice, in this or an earlier call, has one copy.
    """
    if isinstance(value, tuple):
        parts = [in_lanes(part, lanes, known) for part in value]
        return value._make(parts)  # type: ignore[attr-defined]
    if not isinstance(value, np.ndarray):
        return value
    if id(value) not in known:
        if value.dtype.kind == "f":
            wide = _aligned((*value.shape, lanes))
            wide[...] = value[..., None]
        else:
            wide = value.copy()
        known[id(value)] = value, wide
    return known[id(value)][1]


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Return a float64 array of zeros that starts at a cache line (64 bytes)."""
    size = int(np.prod(shape))
    room = np.zeros(size + _LINE // 8)
    first = -room.ctypes.data % _LINE // 8
    return room[first : first + size].reshape(shape)
