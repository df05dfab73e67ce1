"""The hooks a plugin may implement, and the markers to do it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dyn_core.problems import Signature
    from dyn_core.problems.system import SystemKind
    from dyn_core.solving.offers import Law
    from dyn_core.solving.solver import Solver

PROJECT = "dyn_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def dyn_solvers() -> list[Solver]:
    """Offer solvers: a list of Solver objects, each with a name of its own."""
    return []


@hookspec
def dyn_problems() -> Sequence[Signature]:
    """Offer kinds of problem: a list of Signatures, each with a name of its own."""
    return []


@hookspec
def dyn_laws() -> Mapping[Signature, Sequence[Law]]:
    """Offer laws by Signature, of problems of one's own or of others.

    A law is a function of a case (that of the Signature's kind of System) which yields
    pairs of arrays that must agree; its name says what it states. It is asked for when
    solvers are put to the test, not before: import there what laws alone need.
    """
    return {}


@hookspec
def dyn_systems() -> Sequence[SystemKind]:
    """Offer kinds of System: a list of SystemKinds, each with a name of its own.

    Asked for when solvers are put to the test, like laws.
    """
    return []


@hookspec
def dyn_commands(subparsers: Any) -> None:
    """Add subcommands to the `dyn` command.

    Args:
        subparsers: The object that argparse's add_subparsers returns. Each subcommand
            sets `run=function(arguments) -> int` with set_defaults. Where one lacks it,
            or takes the name of an existing command, none of the plugin's are added.
    """
