"""The libraries of the extra `cluster`, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dyn_core.errors import UnsupportedError

EXTRA = 'pip install "dyn_ros[cluster]"'


def library(name: str, purpose: str) -> Any:
    """Return the module `name`, of a library of the extra `cluster`.

    Args:
        name: Module name.
        purpose: Feature that needs it, the start of the error message.

    Raises:
        UnsupportedError: It cannot be imported; says how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        top = name.split(".")[0]
        raise UnsupportedError(f"{purpose} needs {top} ({error}): {EXTRA}") from error


def made_by(value: Any, name: str) -> bool:
    """Return whether a value's own class is from a library, without importing it."""
    return type(value).__module__.split(".")[0] == name
