"""Engines: ways to run a text. Each makes Programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyn_core.engines.base import Program
from dyn_core.engines.plain import PlainProgram
from dyn_core.engines.traced import GraphProgram

Text = Callable[[Sequence[Any]], Sequence[Any]]
DEFAULT_ENGINE = "graph"
ENGINES: dict[str, Callable[..., Program]] = {
    "plain": PlainProgram,
    "graph": GraphProgram,
}

__all__ = ["DEFAULT_ENGINE", "ENGINES", "GraphProgram", "PlainProgram", "Program"]
