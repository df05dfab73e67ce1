"""Engines: methods of running an algorithm; each builds Programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.engines.base import Program
from dyn_core.engines.graph_program import GraphProgram
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.native_program import NativeProgram, build
from dyn_core.engines.plain import PlainProgram
from dyn_core.engines.results import Results

ENGINES: dict[str, Callable[..., Program[Any]]] = {
    "plain": PlainProgram,
    "graph": GraphProgram,
    "native": build,
}


def available() -> list[str]:
    """Return the names of the engines that work on this machine, fastest last.

    Raises:
        SettingError: An environment variable DYN_... has an invalid value.
    """
    return [name for name in ENGINES if name != "native" or not host_machine.missing()]


def default_engine() -> str:
    """Return the name of the fastest engine that works on this machine.

    It is "native". Where machine code is not available, or is turned off by an
    environment variable, it is "graph"; the first such call issues a RuntimeWarning.

    Raises:
        SettingError: An environment variable DYN_... has an invalid value.
    """
    if host_machine.missing():
        host_machine.warn_missing()
    return available()[-1]


__all__ = [
    "ENGINES",
    "GraphProgram",
    "NativeProgram",
    "PlainProgram",
    "Program",
    "Results",
    "available",
    "default_engine",
]
