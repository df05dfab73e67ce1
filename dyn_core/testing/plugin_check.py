"""The command `dyn check-plugin`: solvers against the laws of their problems."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from dyn_core import robots
from dyn_core.engines import ENGINES
from dyn_core.errors import PluginError, UnsupportedError, unknown_name
from dyn_core.model import Model
from dyn_core.model.sources.arguments import ROBOT, add_search, load_robot
from dyn_core.solving.offers import shown
from dyn_core.solving.registry import default_registry, normalized
from dyn_core.solving.solver import Solver
from dyn_core.testing import conformance


def add_check_plugin(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn check-plugin`; `run` becomes its function."""
    parser.add_argument("name", help="a solver, or a distribution or module")
    parser.add_argument("--engine", default="graph", help="default: %(default)s")
    parser.add_argument(
        "--robot", action="append", help=f"{ROBOT} (default: all shipped robots)"
    )
    add_search(parser)
    parser.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> int:
    """Test solvers against the laws of their problems; return 1 for a failure."""
    registry = default_registry()
    names = registry.names(references=True)
    asked = arguments.name.removesuffix(".py")
    owners = {asked, normalized(asked)}
    origins = {n: registry.solver(n).origin for n in names}
    wanted = [n for n in names if n == arguments.name] or [
        n for n, origin in origins.items() if not owners.isdisjoint(_owners(origin))
    ]
    if not wanted and asked != arguments.name:  # a file of a package
        files = {n: Path(_file(origin)).name for n, origin in origins.items()}
        wanted = [n for n in names if files[n] == Path(arguments.name).name]
    if not wanted:
        failures = [
            str(f) for f in registry.failures if any(x in str(f) for x in owners)
        ]
        if failures:
            raise PluginError("; ".join(failures))
        if asked != arguments.name:
            raise PluginError(
                f"no installed plugin has the file {arguments.name}; valid: a solver, a"
                " distribution or a module, after `pip install -e .` in its folder,"
                " with an entry point of the group dyn_core in its pyproject.toml"
            )
        registry.solver(arguments.name)
    if asked != arguments.name and os.path.isfile(arguments.name):
        _check_file(arguments.name, [origins[n] for n in wanted])
    if arguments.engine not in ENGINES:
        raise UnsupportedError(unknown_name("engine", arguments.engine, ENGINES))
    models = [
        load_robot(arguments, robot) for robot in arguments.robot or robots.names()
    ]
    systems = {registry.solver(name).signature.system for name in wanted}
    if arguments.robot and "robot" not in systems:
        raise UnsupportedError(
            f"--robot changes nothing: {', '.join(wanted)} is for {', '.join(systems)}"
        )
    bad = 0
    for name in wanted:
        for line in _tested(registry.solver(name), models, arguments.engine):
            print(line, flush=True)
            bad += line.startswith("  FAIL")
    count = f"{len(wanted)} solver{'s' * (len(wanted) != 1)}"
    print(f"{count}, {len(models)} robot{'s' * (len(models) != 1)}: {bad} laws broken")
    return 1 if bad else 0


def _check_file(name: str, origins: Iterable[str]) -> None:
    """Refuse a file that has other content than an installed plugin: PluginError."""
    for origin in origins:
        loaded = _file(origin)
        same = Path(name).name != Path(loaded or name).name  # of another module's file
        if not same and loaded and Path(loaded).read_bytes() != Path(name).read_bytes():
            raise PluginError(
                f"{name} is not what is installed, which is {loaded}; valid:"
                f" `pip install -e .` in the folder of {name}, or dyn check-plugin"
                f" {_owners(origin)[1]} for the installed one"
            )


def _file(origin: str) -> str:
    """Return the file of the module of an origin, "" where it has none."""
    return getattr(sys.modules.get(_owners(origin)[1]), "__file__", None) or ""


def _tested(solver: Solver, models: list[Model], engine: str) -> Iterator[str]:
    """Yield the lines of a solver's conformance report; errors become FAIL lines."""
    try:
        yield from conformance.report(solver, models, engine)
    except (Exception, SystemExit) as error:
        if isinstance(error, PluginError) and error.plugin is None:
            raise  # the problem itself, or one of its laws, is missing
        reason = f"{type(error).__name__}: {' '.join(shown(error, str).split())}"
        yield f"  FAIL {solver.name} [{solver.origin}]: {reason}"


def _owners(origin: str) -> tuple[str, ...]:
    """Return (distribution, module, package) of an origin "distribution (module)"."""
    distribution, _, module = origin.rstrip(")").partition(" (")
    return distribution, module, module.partition(".")[0]
