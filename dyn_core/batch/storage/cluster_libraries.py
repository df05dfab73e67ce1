"""The libraries of the extra `cluster`, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dyn_core.errors import UnsupportedError

EXTRA = 'pip install "dyn_ros[cluster]"'


def library(name: str, purpose: str) -> Any:
    """Return a module of Dask or zarr.

    Raises:
        UnsupportedError: It is not installed; says how.
    """
    try:
        return import_module(name)
    except ImportError as error:
        top = name.split(".")[0]
        raise UnsupportedError(f"{purpose} needs {top} ({error}): {EXTRA}") from error


def made_by(value: Any, name: str) -> bool:
    """Return whether a value is of a library, without importing that."""
    return type(value).__module__.split(".")[0] == name
