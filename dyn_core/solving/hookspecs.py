"""The hooks that a plugin may implement, and pluggy's markers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dyn_core.problems import Signature
    from dyn_core.problems.system import SystemKind
    from dyn_core.solving.control_mode import ControlMode
    from dyn_core.solving.offers import Law
    from dyn_core.solving.solver import Solver

PROJECT = "dyn_core"
BUILT_IN = ("dyn_plugins", "ros_nodes")  # packages of this distribution
LEFT_OUT = "plugin left out"  # beginning of the warning of a failure
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def dyn_solvers() -> list[Solver]:
    """Offer solvers: return a list of Solver objects with unique names."""
    return []


@hookspec
def dyn_problems() -> Sequence[Signature]:
    """Offer kinds of problem: return a list of Signatures with unique names."""
    return []


@hookspec
def dyn_laws() -> Mapping[Signature, Sequence[Law]]:
    """Offer laws by Signature, for problems of this plugin or of others.

    A law is a function of a case (see SystemKind.case) that yields pairs of arrays
    which must agree; its name states the law. The hook is called when solvers are
    tested: import modules that only laws need inside it.
    """
    return {}


@hookspec
def dyn_systems() -> Sequence[SystemKind]:
    """Offer kinds of System: return a list of SystemKinds with unique names.

    The hook is called when solvers are tested, like dyn_laws.
    """
    return []


@hookspec
def dyn_control_modes() -> Sequence[ControlMode]:
    """Offer modes of the controller: return ControlModes with unique names.

    The hook is called when a controller is made: import modules that only the laws of
    the modes need inside it.
    """
    return []


@hookspec
def dyn_commands(subparsers: Any) -> None:
    """Add subcommands to the `dyn` command.

    Args:
        subparsers: Return value of argparse's add_subparsers, whose add_parser also
            takes `group`, a heading of `dyn --help`, `example`, arguments of a call for
            the command's help, and `module`, a module whose add_NAME(parser) adds the
            arguments when they are needed. Each subcommand sets
            `run=function(arguments) -> int` with set_defaults. If one lacks it, or has
            the name of an existing command, none of this plugin's commands are added.
    """
