"""The hooks a plugin may implement, and the markers to do it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from dyn_core.solver import Solver

PROJECT = "dyn_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def dyn_solvers() -> list[Solver]:
    """Offer solvers: a list of Solver objects, each with a name of its own."""
    return []


@hookspec
def dyn_commands(subparsers: Any) -> None:
    """Add subcommands to the `dyn` command.

    Args:
        subparsers: What argparse's add_subparsers gives. Each subcommand sets
            `run=function(arguments) -> int` with set_defaults.
    """
