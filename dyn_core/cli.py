"""The `dyn` command. All but its version is in dyn_core/commands/main.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from dyn_core.commands.version import version_line

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return the exit status.

    Args:
        argv: Arguments without the program's name; None: sys.argv.

    Returns:
        0 for success or a closed pipe, 1 for a failure, 2 for a command, verb, argument
        or choice that does not exist, 130 after Ctrl-C; else the status that the
        command returns.

    Raises:
        SystemExit: argparse printed help or another usage error.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments == ["--version"]:  # frequent in scripts, hence without imports
        with suppress(OSError):  # a closed pipe or a full disk: `run` says so
            print(version_line(), flush=True)
            return 0
    # The import is deferred, so that --version stays quick.
    return int(import_module("dyn_core.commands.main").run(arguments))


if __name__ == "__main__":
    sys.exit(main())
