"""Engines: ways to run a text. Each makes Programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyn_core.engines import native
from dyn_core.engines.base import Program
from dyn_core.engines.compiled import NativeProgram, build
from dyn_core.engines.plain import PlainProgram
from dyn_core.engines.traced import GraphProgram

Text = Callable[[Sequence[Any]], Sequence[Any]]
ENGINES: dict[str, Callable[..., Program]] = {
    "plain": PlainProgram,
    "graph": GraphProgram,
    "native": build,
}


def available() -> list[str]:
    """Give the names of the engines that work here."""
    return [name for name in ENGINES if name != "native" or not native.missing()]


def default_engine() -> str:
    """Give the fastest engine that works here; warn once if it is not native."""
    if native.missing():
        native.warn_missing()
    return available()[-1]


__all__ = [
    "ENGINES",
    "GraphProgram",
    "NativeProgram",
    "PlainProgram",
    "Program",
    "available",
    "default_engine",
]
