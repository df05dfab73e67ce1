"""The command `dyn bench`: its benchmarks are in a clone's tests, not in the wheel."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import dyn_core
from dyn_core.errors import UnsupportedError


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn bench`, and its function as `run`.

    Without a clone `run` raises UnsupportedError; with one, its tests are in sys.path.
    """
    tests = _tests()
    if tests is None:
        # Options are arguments like others: each gets the same answer.
        parser.prefix_chars = "\0"
        parser.add_argument("options", nargs="*")
        parser.set_defaults(run=_refuse)
        return
    if str(tests) not in sys.path:
        sys.path.insert(0, str(tests))
    importlib.import_module("bench.bench_command").add(parser)


def _tests() -> Path | None:
    """Return the folder of tests with the benchmarks, or None if there is none.

    It is `tests` of the clone from which the library is imported, else the variable
    TESTS of a module `bench` that is already loaded. The working folder does not count:
    every command would run code in its tests/bench.
    """
    folder = Path(dyn_core.__file__).parents[1] / "tests"
    if (folder / "bench" / "bench_command.py").is_file():
        return folder
    return getattr(sys.modules.get("bench"), "TESTS", None)


def _refuse(arguments: argparse.Namespace) -> int:
    """Raise UnsupportedError always: without a clone there are no benchmarks."""
    raise UnsupportedError(
        "`dyn bench` measures with programs of the folder tests/bench, which no wheel"
        " has; valid: `pip install -e .` in a clone of the repository"
    )
