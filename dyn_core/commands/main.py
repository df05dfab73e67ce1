"""Subcommands of `dyn`. Plugins add theirs through the hook dyn_commands."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TextIO

import pluggy

from dyn_core import robots
from dyn_core.commands import (
    bench,
    count,
    excite,
    explain,
    export,
    motions,
    report,
    sim,
)
from dyn_core.commands.version import version_line
from dyn_core.engines import ENGINES
from dyn_core.errors import (
    DynError,
    ModelWarning,
    PluginError,
    UnsupportedError,
    unknown_name,
    why_unread,
)
from dyn_core.kinematics import ik_command as inverse_kinematics
from dyn_core.model import Model
from dyn_core.model.sources.arguments import ROBOT, add_robot, add_search, load_robot
from dyn_core.problems import Signature
from dyn_core.problems import describe as describe_problem
from dyn_core.reports.doctor import command as doctor
from dyn_core.simulation.robot_overview import describe
from dyn_core.solving.help_pages import summary
from dyn_core.solving.offers import isolated, shown
from dyn_core.solving.registry import BUILT_IN, LEFT_OUT, default_registry, normalized
from dyn_core.solving.solver import Solver
from dyn_core.testing import conformance, derivative_check

INTERRUPTED = 130  # exit status after Ctrl-C, as of a shell
_ASCII = {"·": "*", "²": "^2", "³": "^3", "°": " deg", "±": "+-", "µ": "u", "→": "->"}


def run(argv: list[str]) -> int:
    """Run a subcommand; return the exit status.

    It is 0 for success or a closed pipe, 1 for a failure, 2 for an unknown command and
    130 after Ctrl-C; else the one that the command returns. DynError and OSError become
    messages on stderr; other exceptions of commands that are not a plugin's are raised.
    argparse raises SystemExit after help and for other wrong usage.

    Args:
        argv: Arguments after the name of the program; empty prints the help.
    """
    try:
        _show_every_character()  # writes what is still buffered
        try:
            return _run(argv)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # reports a full disk here, not at exit
    except DynError as error:
        return _failed(str(error))
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        place = f"{error.filename}: " if error.filename else "output: "
        return _failed(place + why_unread(error))
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)


def _run(argv: list[str]) -> int:
    """Parse the command line and run its subcommand; return the exit status.

    Raises:
        PluginError: The command of a plugin fails with an unexpected exception.
        DynError, OSError: The command fails.
        SystemExit: argparse has printed help or refused the usage.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", LEFT_OUT, RuntimeWarning)
        whole = parser()
    for failure in default_registry().failures:
        print(f"dyn: warning: {LEFT_OUT}: {failure}", file=sys.stderr)
    commands = _commands(whole)
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        return _failed(unknown_name("command", argv[0], commands), 2)
    verbs = _commands(commands[argv[0]]) if argv and argv[0] in commands else {}
    if verbs and len(argv) > 1 and argv[1][:1] != "-" and argv[1] not in verbs:
        return _failed(unknown_name(f"verb of {argv[0]}", argv[1], verbs), 2)
    arguments = whole.parse_args(argv)
    if not hasattr(arguments, "run"):
        whole.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(arguments.run(arguments) or 0)
    except (DynError, OSError):
        raise
    except Exception as error:
        who = getattr(arguments, "offered_by", None)
        if who is None:
            raise
        reason = f"{type(error).__name__}: {shown(error, str)}"
        raise PluginError(f"{who}: '{argv[0]}' failed: {reason}", who) from error


def _failed(message: str, status: int = 1) -> int:
    """Print an error message to stderr; return `status`."""
    with suppress(OSError):  # stderr may be closed
        print(f"dyn: {message}", file=sys.stderr)
    return status


def _show_every_character() -> None:
    """Let stdout and stderr replace characters that their encoding lacks.

    They become ASCII substitutes. Streams with another error handler than "strict" or
    "backslashreplace" are left alone.
    """

    def ascii_form(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        part = error.object[error.start : error.end]
        return "".join(_ASCII.get(x) or _base(x) for x in part), error.end

    codecs.register_error("dyn_ascii", ascii_form)
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) in ("strict", "backslashreplace"):
            stream.reconfigure(errors="dyn_ascii")  # type: ignore[union-attr]


def _base(letter: str) -> str:
    """Return a letter without its diacritics in ASCII; "?" if it has no ASCII form."""
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(x for x in parts if x.isascii()) or "?"


def _drop_output() -> None:
    """Discard buffered output of stdout: the reader has closed the pipe.

    Its file descriptor is redirected to the null device; without one nothing happens.
    """
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # the stream has no file descriptor, so nothing is flushed at exit


def _commands(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the subcommands of a parser by name; empty if it has none."""
    below = [x for x in whole._actions if isinstance(x, argparse._SubParsersAction)]
    return {name: each for x in below for name, each in x.choices.items()}


def parser() -> argparse.ArgumentParser:
    """Return the parser with all subcommands, including plugin commands.

    The commands of a plugin that fails are left out; the registry records the failure.
    """
    whole = argparse.ArgumentParser(
        "dyn",
        description="Robot dynamics from a robot's file.",
        epilog="dyn help NAME explains a command, a solver or a kind of problem.",
    )
    whole.add_argument("--version", action="version", version=version_line())
    subparsers = whole.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    _own_commands(subparsers)
    registry = default_registry()
    for hook in registry.commands():
        try:
            with isolated(hook.plugin_name, "dyn_commands failed"):
                _add_commands(subparsers, hook)
        except PluginError as error:
            registry.report(error)
    return whole


def _add_commands(
    subparsers: argparse._SubParsersAction, hook: pluggy.HookImpl
) -> None:
    """Add all subcommands of a plugin, or none if one of them is not valid.

    Args:
        subparsers: Subparsers of `dyn`, changed in place.
        hook: The plugin's dyn_commands.

    Raises:
        PluginError: A name is in use, or a command has no action.
        Exception: Errors of the plugin pass through.
    """
    apart = argparse.ArgumentParser("dyn")
    added = apart.add_subparsers()
    hook.function(*[added] * len(hook.argnames))
    who = hook.plugin_name
    for name, command in added.choices.items():
        if not any(f"({package}" in who for package in BUILT_IN):
            command.set_defaults(offered_by=who)
        if name in subparsers.choices:
            raise PluginError(f"{who} adds a command '{name}'; there is one", who)
        if not _runs(command):
            raise PluginError(
                f"{who} adds a command '{name}' without an action;"
                " valid: set_defaults(run=function)",
                who,
            )
    apart.format_help()  # raises here, not in `dyn --help`
    subparsers.choices.update(added.choices)
    subparsers._choices_actions += added._choices_actions


def _runs(command: argparse.ArgumentParser) -> bool:
    """Return whether a subcommand, or each subcommand of it, has a function to run."""
    if callable(command.get_default("run")):
        return True
    below = [x for x in command._actions if isinstance(x, argparse._SubParsersAction)]
    return bool(below) and all(
        x.required and all(map(_runs, x.choices.values())) for x in below
    )


def _own_commands(subparsers: argparse._SubParsersAction) -> None:
    info = subparsers.add_parser("info", help="joints, limits, masses of a robot")
    add_robot(info)
    info.add_argument("--strict", action="store_true", help="refuse a doubtful robot")
    info.set_defaults(run=_info)
    doctor.add(subparsers)
    about = subparsers.add_parser("help", help="explain a command, solver or problem")
    about.add_argument("name", nargs="?", help="a command, a solver, a kind of problem")
    about.set_defaults(run=_help)
    plugins = subparsers.add_parser("plugins", help="solvers, one sentence for each")
    plugins.add_argument("--problem", help="only solvers of this kind of problem")
    plugins.add_argument(
        "--all", action="store_true", help="reference solvers, too; sources of each"
    )
    plugins.set_defaults(run=_plugins)
    bench.add(subparsers)
    explain.add(subparsers)
    count.add(subparsers)
    derivative_check.add(subparsers)
    inverse_kinematics.add(subparsers)
    sim.add(subparsers)
    motions.add(subparsers)
    report.add(subparsers)
    excite.add(subparsers)
    export.add(subparsers)
    check = subparsers.add_parser("check-plugin", help="put a solver through the laws")
    check.add_argument("name", help="a solver, or a distribution or module")
    check.add_argument("--engine", default="graph", help="default: %(default)s")
    check.add_argument(
        "--robot", action="append", help=f"{ROBOT} (default: all shipped robots)"
    )
    add_search(check)
    check.set_defaults(run=_check)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning; a ModelWarning in one line, without file and line number."""
    said = f"dyn: warning: {message}\n"
    if not issubclass(category, ModelWarning):
        said = warnings.formatwarning(message, category, filename, lineno, line)
    print(said, file=file or sys.stderr, end="")


def _info(arguments: argparse.Namespace) -> int:
    check = "error" if arguments.strict else "warn"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # `describe` prints them
        model = load_robot(arguments, check=check)
    for line in describe(model):
        print(line)
    return 0


def _help(arguments: argparse.Namespace) -> int:
    """Print the help page of a command, a solver or a kind of problem; return 0.

    Without a name it is the help of `dyn`. A solver comes before a problem of the same
    name, a problem before a command.

    Raises:
        UnsupportedError: The name is unknown.
    """
    whole, registry, name = parser(), default_registry(), arguments.name
    commands = _commands(whole)
    problems = {problem.name: problem for problem in registry.problems()}
    solvers = registry.names(references=True)
    if name is None:
        whole.print_help()
    elif name in solvers:
        print(registry.solver(name).describe())
    elif name in problems:
        print(describe_problem(problems[name]))
        print("\nSolvers: " + (", ".join(registry.names(name)) or "none"))
        default = registry.default(problems[name])
        if default is not None:
            print(f"Default solver: {default.names()}")
    elif name in commands:
        commands[name].print_help()
    else:
        known = [*solvers, *problems, *commands]
        message = unknown_name("solver, problem or command", name, known)
        raise UnsupportedError(message)
    return 0


def _plugins(arguments: argparse.Namespace) -> int:
    """Print the solvers by problem; return 1 if a plugin failed to load, else 0.

    Raises SignatureError if the problem of --problem is unknown.
    """
    registry = default_registry()
    problems = registry.problems()
    if arguments.problem is not None:
        problems = [registry.problem(arguments.problem)]
    blocks = []
    for problem in problems:
        names = registry.names(problem, references=arguments.all)
        if names:
            blocks.append(_solvers_of(problem, names, arguments.all))
    print("\n\n".join(blocks))
    return 1 if registry.failures else 0


def _solvers_of(problem: Signature, names: Sequence[str], sources: bool) -> str:
    """Return a problem and its solvers as text, with one line for each solver.

    Args:
        problem: Problem.
        names: Names of its solvers, at least one.
        sources: Whether each solver has a second line: its module and literature
            source.
    """
    lines = [f"{problem.name}: {problem.meaning}".rstrip(": ")]
    width = max(map(len, names))
    for name in names:
        solver = default_registry().solver(name)
        foreign = "" if "(dyn_plugins." in solver.origin else f"  [{solver.origin}]"
        mark = " (reference)" if solver.reference else ""
        lines.append(f"    {name.ljust(width)}  {summary(solver)}{mark}{foreign}")
        if sources:
            indent = " " * (width + 6)
            lines.append(f"{indent}{solver.origin}; {solver.source}".rstrip("; "))
    return "\n".join(lines)


def _check(arguments: argparse.Namespace) -> int:
    """Test solvers against the laws of their problems, and print the results.

    Returns:
        1 if a law is broken, else 0.

    Raises:
        PluginError: The plugin of that name failed to load.
        SolverNotFound: There is no such solver or plugin.
        ModelError: A robot is not valid.
        UnsupportedError: The engine is unknown, or --robot has no effect.
    """
    registry = default_registry()
    names = registry.names(references=True)
    owners = {arguments.name, normalized(arguments.name)}
    wanted = [n for n in names if n == arguments.name] or [
        n for n in names if not owners.isdisjoint(_owners(registry.solver(n).origin))
    ]
    if not wanted:
        failures = [
            str(f) for f in registry.failures if any(x in str(f) for x in owners)
        ]
        if failures:
            raise PluginError("; ".join(failures))
        registry.solver(arguments.name)
    if arguments.engine not in ENGINES:
        raise UnsupportedError(unknown_name("engine", arguments.engine, ENGINES))
    asked = arguments.robot or robots.names()
    models = [load_robot(arguments, robot) for robot in asked]
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
    print(f"{len(wanted)} solvers, {len(models)} robots: {bad} laws broken")
    return 1 if bad else 0


def _tested(solver: Solver, models: list[Model], engine: str) -> Iterator[str]:
    """Yield the lines of a solver's conformance report; errors become FAIL lines.

    Args:
        solver: Solver.
        models: Robots that it is tested with.
        engine: Name of the engine.

    Raises:
        PluginError: It names no plugin: the problem of the solver or a law is missing.
    """
    try:
        yield from conformance.report(solver, models, engine)
    except (Exception, SystemExit) as error:
        if isinstance(error, PluginError) and error.plugin is None:
            raise  # the problem itself, or one of its laws, is missing
        reason = f"{type(error).__name__}: {' '.join(shown(error, str).split())}"
        yield f"  FAIL {solver.name} [{solver.origin}]: {reason}"


def _owners(origin: str) -> tuple[str, ...]:
    """Return (distribution, module, package) of an origin "distribution (module)".

    The package is the first component of the module.
    """
    distribution, _, module = origin.rstrip(")").partition(" (")
    return distribution, module, module.partition(".")[0]
