"""The argument --option of commands: options of a solver, as typed."""

from __future__ import annotations

import argparse
from typing import Any

from dyn_core.model.sources.arguments import named_values


def add_options(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the argument --option NAME=VALUE, which may be repeated.

    Args:
        parser: Parser of the command.
        meaning: Its help text.
    """
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help=meaning
    )


def read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of --option by name: bools, numbers, text, or lists of those.

    Args:
        arguments: Parsed arguments of a command that called add_options.

    Raises:
        SettingError: An entry is not NAME=VALUE, or a name occurs twice.
    """
    pairs = named_values(arguments.option, "--option")
    return {name: _read(text) for name, text in pairs.items()}


def _read(text: str) -> Any:
    """Return the value of an option: a bool, int, float or text, or a list of those.

    Text with a comma, or that begins with a bracket, is a list; only "true" and "false"
    are bools.
    """
    if text[:1] == "[" or "," in text:
        return [_read(x) for part in text.strip("[]").split(",") if (x := part.strip())]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
