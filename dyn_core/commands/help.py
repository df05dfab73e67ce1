"""The commands `dyn help` and `dyn solvers`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dyn_core.errors import SettingError, UnsupportedError, unknown_name
from dyn_core.problems import Signature
from dyn_core.problems import describe as describe_problem
from dyn_core.solving.help_pages import mentions, summary
from dyn_core.solving.registry import default_registry


def add_help(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn help`, and its function as `run`."""
    what = "a command, a solver, a kind of problem, or words such as: mass matrix, H"
    parser.add_argument("name", nargs="*", help=what)
    parser.set_defaults(run=_help)


def add_solvers(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn solvers`, and its function as `run`."""
    what = "only solvers of this kind of problem"
    parser.add_argument("problem", nargs="?", metavar="PROBLEM", help=what)
    parser.add_argument("--problem", dest="named", help=argparse.SUPPRESS)  # as in 0.1
    parser.add_argument(
        "--all", action="store_true", help="reference solvers, too; sources of each"
    )
    parser.set_defaults(run=_solvers)


def _help(arguments: argparse.Namespace) -> int:
    """Print the help page of a command, a solver or a kind of problem; return 0.

    Without a name it is the help of `dyn`. A solver comes before a problem of the same
    name, a problem before a command. Other words give the problems that mention them.

    Raises:
        UnsupportedError: The name is unknown.
    """
    registry, whole = default_registry(), arguments.parser
    asked = " ".join(arguments.name).split()
    name = "_".join(asked).lower()
    commands = whole.commands()
    problems = {problem.name: problem for problem in registry.problems()}
    solvers = registry.names(references=True)
    if not arguments.name:
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
    elif asked and (pages := mentions(registry, asked)):
        print("\n".join([*pages, "", "dyn help NAME has more of each."]))
    else:
        known = [*solvers, *problems, *commands]
        name = " ".join(asked)
        message = unknown_name("command, problem or solver", name, known)
        others = "names of Pinocchio, MuJoCo and Drake: docs/other_libraries.md"
        raise UnsupportedError(f"{message}; {others}")
    return 0


def _solvers(arguments: argparse.Namespace) -> int:
    """Print the solvers by problem; return 1 if a plugin failed to load, else 0.

    With --all there are reference solvers, too, and the source of each; without it a
    line counts those of the problem that is asked for. Problems
    without solvers are left out; one that is asked for gives an empty line.

    Raises:
        SettingError: The problem is given as PROBLEM and by --problem.
        SignatureError: The problem is unknown.
    """
    if None not in (arguments.problem, arguments.named):
        message = "--problem is now PROBLEM, and both are there; valid: PROBLEM"
        raise SettingError(message, "problem")
    registry = default_registry()
    problems = registry.problems()
    asked = arguments.named if arguments.problem is None else arguments.problem
    if asked is not None:
        problems = [registry.problem(asked)]
    blocks = []
    for problem in problems:
        names = registry.names(problem, references=arguments.all)
        if names:
            blocks.append(_solvers_of(problem, names, arguments.all))
        hidden = len(registry.names(problem, references=True)) - len(names)
        if asked is not None and hidden:
            blocks.append(f"{hidden} reference solvers more: --all")
    print("\n\n".join(blocks))
    return 1 if registry.failures else 0


def _solvers_of(problem: Signature, names: Sequence[str], sources: bool) -> str:
    """Return a problem and its solvers as text, with one line for each solver.

    It has the summary, "(reference)", and the origin if not of dyn_plugins.

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
