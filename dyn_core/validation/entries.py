"""Entries of files and arguments: known keys, known names and finite numbers.

What is not valid is a ModelError that says where it stands and what would be valid.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError


def known_keys(where: str, data: object, keys: Collection[str]) -> None:
    """Check that data is a mapping and has no other keys than these.

    Args:
        where: What errors call it.
        data: Value of the entry.
        keys: Those that are valid.
    """
    if not isinstance(data, Mapping):
        raise ModelError(
            f"{where}: needs a mapping with {', '.join(keys)}, got {data!r}"
        )
    unknown = [str(key) for key in data if key not in keys]
    if unknown:
        raise ModelError(
            f"{where}: unknown key {', '.join(unknown)}; valid: {', '.join(keys)}"
        )


def known_name(where: str, kind: str, name: object, names: Collection[str]) -> str:
    """Return a name that is one of these.

    Args:
        where: What errors call the entry.
        kind: What has the name, such as joint or link.
        name: Value of the entry.
        names: Those that are valid.
    """
    if name not in names:
        raise ModelError(
            f"{where}: no {kind} is called '{name}'; {kind}s are: {', '.join(names)}",
            str(name),
        )
    return str(name)


def finite_number(where: str, value: object) -> float:
    """Return a finite float; booleans and strings are no numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{where}: needs a number, got {value!r}")
    if not math.isfinite(value):
        raise ModelError(f"{where}: {value} is not finite")
    return float(value)


def finite_numbers(where: str, value: object, length: int = 3) -> tuple[float, ...]:
    """Return `length` finite floats of a list or tuple."""
    if not isinstance(value, (list, tuple)) or len(value) != length:
        raise ModelError(f"{where} needs {length} numbers, got {value!r}")
    return tuple(finite_number(where, x) for x in value)


def number_or_numbers(where: str, value: object) -> float | tuple[float, ...]:
    """Return a finite float, or those of a list or tuple."""
    if isinstance(value, (list, tuple)):
        return tuple(finite_number(where, x) for x in value)
    return finite_number(where, value)


def finite_array(
    name: str, values: ArrayLike, size: int | None = None
) -> tuple[float, ...]:
    """Return finite floats of a list or an array; a single number stands for all.

    Args:
        name: What errors call it; an element is called name[i].
        values: Numbers; none stand for zeros where the size is known.
        size: How many there must be; None: any number of them.
    """
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: numbers wanted, got {values!r}", name) from error
    if size is not None and array.size == 0:
        array = np.zeros(max(size, 0))
    if array.ndim == 0 and size is not None:
        array = np.full(size, float(array))
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = "a list" if size is None else f"{size} numbers"
        raise ModelError(f"{name}: {wanted} wanted, got shape {array.shape}", name)
    for i, x in enumerate(array):
        if not np.isfinite(x):
            raise ModelError(f"{name}[{i}] is not finite: {x}", f"{name}[{i}]")
    return tuple(array.tolist())
