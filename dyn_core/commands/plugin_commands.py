"""Commands of plugins that are not shipped, checked before `dyn` has them."""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial

import pluggy

from dyn_core.errors import PluginError
from dyn_core.solving.hookspecs import BUILT_IN, LEFT_OUT
from dyn_core.solving.offers import isolated, shown
from dyn_core.solving.registry import default_registry


def add_plugin_commands(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands of plugins; print a line on stderr for each that fails.

    Shipped ones are in `subparsers` already. Earlier failures are among the lines.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", LEFT_OUT, RuntimeWarning)
        registry = default_registry()
        for hook in registry.commands():
            who = hook.plugin_name
            if any(f"({package}" in who for package in BUILT_IN):
                continue
            try:
                with isolated(who, "dyn_commands failed"):
                    _add_commands(subparsers, hook)
            except PluginError as error:
                registry.report(error)
    for failure in registry.failures:
        print(f"dyn: warning: {LEFT_OUT}: {failure}", file=sys.stderr)


def _add_commands(
    subparsers: argparse._SubParsersAction, hook: pluggy.HookImpl
) -> None:
    """Add all subcommands of a plugin, or none if one of them is not valid.

    PluginError: a name is in use, a group is no str, or a command has no action.
    """
    apart = subparsers._parser_class("dyn")
    added = apart.add_subparsers()
    hook.function(*[added] * len(hook.argnames))
    who = hook.plugin_name
    for name, command in added.choices.items():
        command.set_defaults(plugin_error=partial(_error, who))
        if name in subparsers.choices:
            raise PluginError(f"{who} adds a command '{name}'; there is one", who)
        if not isinstance(command.group, str):
            group = shown(command.group)
            raise PluginError(
                f"{who} adds a command '{name}' with the group {group}; valid: a str",
                who,
            )
        if not _runs(command.complete()):
            raise PluginError(
                f"{who} adds a command '{name}' without an action;"
                " valid: set_defaults(run=function)",
                who,
            )
    apart.format_help()  # raises here, not in `dyn --help`
    subparsers.choices.update(added.choices)
    subparsers._choices_actions += added._choices_actions


def _error(who: str, name: str, error: Exception) -> PluginError:
    """Return the PluginError of a plugin's command that fails with `error`."""
    reason = f"{type(error).__name__}: {shown(error, str)}"
    return PluginError(f"{who}: '{name}' failed: {reason}", who)


def _runs(command: argparse.ArgumentParser) -> bool:
    """Return whether a subcommand has a function to run, or each of its verbs has one.

    In the second case a verb must be required; verbs may have verbs in turn.
    """
    if callable(command.get_default("run")):
        return True
    below = [x for x in command._actions if isinstance(x, argparse._SubParsersAction)]
    return bool(below) and all(
        x.required and all(map(_runs, x.choices.values())) for x in below
    )
