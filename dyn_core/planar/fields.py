"""Numbers of a chain as users give them: checked, filled up, named when bad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.errors import ModelError


def numbers(name: str, values: Any, size: int | None = None) -> tuple[float, ...]:
    """Give finite floats; zeros if none are given."""
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


def limits(name: str, values: Any, n: int, none: float) -> tuple[float, ...]:
    """Give limits of n angles, `none` where there is none."""
    found = [float(x) for x in filled(name, values, n, none)]
    for i, x in enumerate(found):
        if np.isnan(x):
            raise ModelError(f"{name}[{i}] is not a number", f"{name}[{i}]")
        if np.isfinite(x) and i == n - 1:
            raise ModelError(
                f"{name}[{i}]: the last joint has no angle", f"{name}[{i}]"
            )
    return tuple(found)


def filled(name: str, values: Any, n: int, default: Any) -> list[Any]:
    """Give n values: a sequence of n, a mapping of some, or the default."""
    if values is None or (not isinstance(values, Mapping) and len(values) == 0):
        return [default] * n
    if isinstance(values, Mapping):
        found = [default] * n
        for key, value in values.items():
            if not isinstance(key, int) or not 0 <= key < n:
                raise ModelError(
                    f"{name}: joint {key!r} is not one of 0..{n - 1}", name
                )
            found[key] = value
        return found
    if len(values) != n:
        raise ModelError(f"{name}: {n} values wanted, got {len(values)}", name)
    return list(values)


def pairs(name: str, values: Any, n: int) -> list[tuple[float, float]]:
    """Give n pairs of numbers, zeros where none are given."""
    return [
        pair(f"{name}[{i}]", row)
        for i, row in enumerate(filled(name, values, n, (0.0, 0.0)))
    ]


def pair(name: str, row: Any) -> tuple[float, float]:
    """Give two finite numbers."""
    x, y = numbers(name, row, 2)
    return x, y


def flags(values: Any, n: int) -> tuple[bool, ...]:
    """Give n booleans from booleans, or from the numbers of those that are true."""
    given = list(values)
    if len(given) == n and all(isinstance(x, (bool, np.bool_)) for x in given):
        return tuple(bool(x) for x in given)
    for x in given:
        if not isinstance(x, (int, np.integer)) or not 0 <= x < n:
            raise ModelError(f"active: joint {x!r} is not one of 0..{n - 1}", "active")
    return tuple(i in given for i in range(n))
