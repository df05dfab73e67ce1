"""Checks and defaults for the arguments of make_chain.

All functions raise ModelError for invalid values, with the name of the argument and the
index.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.validation import finite_array, known_name, shown


def angle_limits(name: str, values: Any, n: int, none: float) -> tuple[float, ...]:
    """Return the limits of n angles from a list or mapping; `none` where not given.

    Raises ModelError for NaN, and for a finite limit of the last joint, which has no
    angle.
    """
    limits = []
    for i, value in enumerate(by_joint(name, values, n, none)):
        x = float(value) if isinstance(value, Real) else math.nan
        limits.append(x)
        if math.isnan(x):
            message = f"{name}[{i}] is {shown(value)}; valid: a number"
            raise ModelError(message, f"{name}[{i}]")
        if np.isfinite(x) and i == n - 1:
            raise ModelError(
                f"{name}[{i}]: the last joint has no angle", f"{name}[{i}]"
            )
    return tuple(limits)


def constraints_of(kind: Any, n: int, constraints: Any) -> Any:
    """Return the Constraints of n joints.

    Args:
        kind: The class Constraints.
        n: Number of joints.
        constraints: An instance, a mapping of arguments of `of`, or None.

    Raises:
        ModelError: Another type, an unknown key, or what `of` refuses.
    """
    if isinstance(constraints, kind):
        return constraints
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ModelError(
            f"constraints is {constraints!r}; valid: Constraints, or a mapping",
            "constraints",
        )
    keys = list(inspect.signature(kind.of).parameters)[1:]
    for key in constraints or {}:
        known_name("constraints", "key", key, keys)
    return kind.of(n, **(constraints or {}))


def by_joint(name: str, values: Any, n: int, default: Any) -> list[Any]:
    """Return a list of n values.

    Args:
        name: Name of the argument for errors.
        values: A sequence of n, a mapping joint -> value, or None or () for all
            defaults.
        n: Number of joints.
        default: Value of joints without one.

    Raises:
        ModelError: Another type, a sequence of another length, or a key that is not
            0..n-1.
    """
    if values is None:
        return [default] * n
    if not isinstance(values, (Mapping, Sequence, np.ndarray)):
        valid = f"{n} values, or a mapping of joints to values"
        raise ModelError(f"{name} is {shown(values)}; valid: {valid}", name)
    if not isinstance(values, Mapping) and len(values) == 0:
        return [default] * n
    if isinstance(values, Mapping):
        filled = [default] * n
        for key, value in values.items():
            if not isinstance(key, int) or not 0 <= key < n:
                raise ModelError(
                    f"{name}: joint {key!r} is not one of 0..{n - 1}", name
                )
            filled[key] = value
        return filled
    if len(values) != n:
        raise ModelError(f"{name}: {n} values wanted, got {len(values)}", name)
    return list(values)


def pairs_by_joint(name: str, values: Any, n: int) -> list[tuple[float, float]]:
    """Return n pairs of finite numbers, zeros where not given."""
    return [
        finite_pair(f"{name}[{i}]", row)
        for i, row in enumerate(by_joint(name, values, n, (0.0, 0.0)))
    ]


def finite_pair(name: str, row: Any) -> tuple[float, float]:
    """Return two finite numbers as floats; an empty row is (0.0, 0.0)."""
    x, y = finite_array(name, row, 2)
    return x, y


def joint_flags(values: Any, n: int) -> tuple[bool, ...]:
    """Return n booleans from n booleans, or from the indices of the true ones.

    Raises ModelError for an index that is not 0..n-1.
    """
    flags = list(values)
    if len(flags) == n and all(isinstance(x, (bool, np.bool_)) for x in flags):
        return tuple(bool(x) for x in flags)
    for x in flags:
        if not isinstance(x, (int, np.integer)) or not 0 <= x < n:
            raise ModelError(f"active: joint {x!r} is not one of 0..{n - 1}", "active")
    return tuple(i in flags for i in range(n))
