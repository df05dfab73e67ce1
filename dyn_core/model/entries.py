"""Entries of the sidecar: known keys and finite numbers, refused in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dyn_core.errors import ModelError


def only_keys(where: str, data: Any, keys: tuple[str, ...]) -> None:
    """Refuse keys that mean nothing, and what is no mapping."""
    if not isinstance(data, Mapping):
        raise ModelError(
            f"{where}: needs a mapping with {', '.join(keys)}, got {data!r}"
        )
    unknown = [str(key) for key in data if key not in keys]
    if unknown:
        raise ModelError(
            f"{where}: unknown key {', '.join(unknown)}; valid: {', '.join(keys)}"
        )


def finite(what: str, value: Any) -> float:
    """Give a finite float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{what}: needs a number, got {value!r}")
    if not math.isfinite(value):
        raise ModelError(f"{what}: {value} is not finite")
    return float(value)


def finites(where: str, value: Any, length: int = 3) -> Any:
    """Give some finite numbers."""
    if not isinstance(value, (list, tuple)) or len(value) != length:
        raise ModelError(f"{where} needs {length} numbers, got {value!r}")
    return tuple(finite(where, x) for x in value)
