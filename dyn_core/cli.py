"""The `dyn` command. All but its version is in dyn_core/commands/main.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from dyn_core.commands.version import version_line

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return the exit status: 0 good, 1 failed, 2 wrong usage.

    Args:
        argv: Arguments without the program's name; None: sys.argv.

    Returns:
        The exit status, also 130 after Ctrl-C.

    Raises:
        SystemExit: argparse printed help or a usage error.
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
