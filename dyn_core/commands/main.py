"""The commands of `dyn`: their table, their parsers, and running one of them.

A command's module is imported when the command is used; plugins add theirs through the
hook dyn_commands.
"""

from __future__ import annotations

import argparse
import codecs
import os
import shlex
import sys
import unicodedata
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NoReturn, TextIO

from dyn_core.commands.version import version_line
from dyn_core.errors import (
    DynError,
    DynWarning,
    ModelWarning,
    SettingError,
    SolverNotFound,
    guesses,
    unknown_name,
    why_unread,
)
from dyn_core.solving.hookspecs import BUILT_IN, PROJECT

INTERRUPTED = 130  # exit status after Ctrl-C, as of a shell
_ASCII = {"·": "*", "²": "^2", "³": "^3", "°": " deg", "±": "+-", "µ": "u", "→": "->"}
_FORMER = r"the \w+ '.*' is now '"  # see errors.renamed
_UNITS = {"S": "seconds", "HZ": "hertz", "M": "metres"}  # by the name of a value
_ROBOTS, _RUNS, _SOLVERS = "robots", "runs and recordings", "solvers"
_CHECKS, _HERE = "measure and check", "this installation"
GROUPS = (_ROBOTS, _RUNS, _SOLVERS, _CHECKS, "ROS 2", _HERE)  # their order in the help
_IN = "dyn_core.commands"
# Group, name, sentence, arguments of an example, module of the function add_NAME.
COMMANDS = (
    (_ROBOTS, "robots", "robots that have a name", "arm", f"{_IN}.robots"),
    (_ROBOTS, "info", "joints, limits, masses of a robot", "arm7",
     "dyn_core.simulation.robot_overview"),
    (_ROBOTS, "doctor", "what is doubtful about a robot, and how to mend it", "arm7",
     "dyn_core.reports.doctor.command"),
    (_ROBOTS, "ik", "joint positions for a pose of a link",
     "arm7 --frame tool --xyz 0.3 0.2 0.6", "dyn_core.kinematics.ik_command"),
    (_RUNS, "sim", "simulate a robot; files and reports",
     "two_link --duration 2 -o run.npz", f"{_IN}.sim"),
    (_RUNS, "id", "joint forces of a recorded motion", "two_link run.npz -o tau.csv",
     f"{_IN}.motions"),
    (_RUNS, "fd", "accelerations of recorded states", "two_link run.npz -o qdd.csv",
     f"{_IN}.motions"),
    (_RUNS, "report", "one HTML file on runs of dyn sim", "run.npz -o report.html",
     f"{_IN}.report"),
    (_RUNS, "excite", "design a motion that shows the parameters of a robot",
     "two_link -o motion.json", f"{_IN}.excite"),
    (_SOLVERS, "solvers", "solvers, one sentence for each", "inverse_dynamics",
     f"{_IN}.help"),
    (_SOLVERS, "help", "explain a command, solver or problem", "rnea", f"{_IN}.help"),
    (_SOLVERS, "export",
     "a solver as machine code or C source, with header and test vector",
     "rnea arm7 out", f"{_IN}.export"),
    (_SOLVERS, "check-plugin", "put a solver through the laws",
     "rnea --robot two_link", "dyn_core.testing.plugin_check"),
    (_CHECKS, "explain", "what a solver costs, and where", "aba arm7",
     f"{_IN}.explain"),
    (_CHECKS, "count", "operations of a solver's algorithm", "rnea arm7",
     f"{_IN}.count"),
    (_CHECKS, "check-derivatives",
     "check the derivatives of a robot by several methods", "two_link",
     "dyn_core.testing.derivative_check"),
    (_CHECKS, "bench", "measure solvers beside their peers, in a clone",
     "--robot two_link --solvers rnea", f"{_IN}.bench"),
    (_HERE, "cache", "compiled code on disk: place, size, removal", "--clear",
     f"{_IN}.cache"),
)  # fmt: skip
ALIASES = {"solvers": ["plugins"]}
WRITTEN = (
    "out",
    "plot",
    "film",
    "html",
    "picture",
)  # options that name a file to be written
OUTPUTS = (*WRITTEN, "output", "report", "screenshot")
NEED_ALL = ("help", "solvers", "plugins")  # commands that show what plugins add


class _UsageError(DynError):
    """A command, verb, argument or choice that does not exist; exit status 2."""


class _Gather(argparse._StoreAction):
    """Action that stores a value; an option of several values may be repeated.

    `--q0 a=1 --q0 b=2` is `--q0 a=1 b=2`: argparse forgets the first one.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the values; those of an option of several come after those before."""
        before: Any = getattr(namespace, self.dest, None)
        if self.nargs in ("+", "*") and before is not self.default:
            values = [*before, *values]
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """Parser of `dyn` or of a command, which adds its arguments when they are needed.

    `group` is its heading in `dyn --help`, `example` the arguments of an example;
    add_NAME(parser) in `module` adds the arguments; others do if that is empty.
    """

    def __init__(
        self,
        *positional: Any,
        group: str = "plugins",
        example: str = "",
        module: str = "",
        **options: Any,
    ) -> None:
        super().__init__(*positional, **options)
        for name in (None, "store"):
            self.register("action", name, _Gather)
        self.group, self.example, self._module = group, example, module

    def complete(self) -> CommandParser:
        """Add the arguments of the command, once; return this parser."""
        module, self._module = self._module, ""
        if module:
            name = self.prog.split()[-1].replace("-", "_")
            getattr(import_module(module), f"add_{name}")(self)
        return self

    def parse_known_args(self, *positional: Any, **options: Any) -> Any:
        """Add the command's arguments if need be, then parse as an ArgumentParser.

        _UsageError: an unknown argument, a value that is no choice, or that is no
        number where one is wanted.
        """
        self.complete()
        values, unknown = super().parse_known_args(*positional, **options)
        name = self.prog.partition(" ")[2] or self.prog
        if unknown:
            valid = [x for x in self._option_string_actions if x.startswith("--")]
            wrong = unknown[0].partition("=")[0]
            said = unknown_name(f"argument of {name}", wrong, valid)
            pairs = [
                option
                for option, action in self._option_string_actions.items()
                if "=" in str(action.metavar) and action.nargs is None
            ]
            if pairs and "=" in unknown[0] and not unknown[0].startswith("-"):
                one = "--lock" if "--lock" in pairs else pairs[0]
                raise _UsageError(
                    f"{unknown[0]} follows no option; valid: {', '.join(pairs)} once"
                    f" for each value, as {one} a=1 {one} b=2"
                )
            guess = guesses(wrong, valid)
            unknown_word = guess == ";" or "did you mean" in guess
            if "--option" in valid and wrong.startswith("--") and unknown_word:
                said += f"; an option of the solver is --option {wrong[2:]}=VALUE"
            raise _UsageError(f"{said}; see {self.prog} --help")
        return values, unknown

    def error(self, message: str) -> NoReturn:
        """End the process with status 2: print the usage and a message."""
        for action in self._actions:
            if action.choices and message.endswith(f"required: {action.metavar}"):
                message += f"; valid: {', '.join(action.choices)}"
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise _UsageError unless a value is a choice of the action, or it has none.

        Choices are those of an option or argument, or the names of commands and verbs.
        """
        if action.choices is None or value in action.choices:
            return
        what, name = str(action.metavar or action.dest), self.prog.partition(" ")[2]
        kind = f"{what.lower()} of {name}" if name else what.lower()
        if action.option_strings:
            kind = f"value of {action.option_strings[0]}"
        more = "" if name else "; dyn help WORDS finds pages and names"
        raise _UsageError(unknown_name(kind, value, action.choices) + more)

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """Return the value of an argument; floats and ints are read as in files.

        A float may be NaN or infinite; 1_0 and 2s are no numbers (_UsageError). Other
        types are read as by ArgumentParser.
        """
        if action.type not in (float, int):
            return super()._get_value(action, text)
        from dyn_core.validation.array_files import cell_number  # imports NumPy

        try:
            number = cell_number(text)
            return number if action.type is float else int(text)
        except ValueError as error:
            name = (*action.option_strings, action.metavar or action.dest)[0]
            kind = "a number" if action.type is float else "a whole number"
            unit = _UNITS.get(str(action.metavar), "")
            valid = f"{kind}{unit and f' of {unit}, without a suffix'}"
            raise _UsageError(f"{name} is {text!r}; valid: {valid}") from error

    def format_help(self) -> str:
        """Return the help page: all arguments, a note on written files, an example."""
        self.complete()
        example = f"\nexample: {self.prog} {self.example}\n" if self.example else ""
        writes = any(action.dest in WRITTEN for action in self._actions)
        note = "\nFiles that are written replace those of the same name.\n"
        return super().format_help() + (note if writes else "") + example

    def commands(self) -> dict[str, CommandParser]:
        """Return the subcommands so far by name and alias; `complete` may add some."""
        return {name: x for one in self._below() for name, x in one.choices.items()}

    def sentences(self) -> dict[str, str]:
        """Return by name, without aliases, the sentence of each subcommand."""
        listed = [x for one in self._below() for x in one._choices_actions]
        return {x.dest: x.help or "" for x in listed}

    def _below(self) -> list[argparse._SubParsersAction]:
        """Return the actions that hold subcommands."""
        return [x for x in self._actions if isinstance(x, argparse._SubParsersAction)]


def run(argv: list[str]) -> int:
    """Run a subcommand; return the exit status.

    It is 0 for success or a closed pipe, 1 for a failure, 2 for a command, verb,
    argument or choice that does not exist, 130 after Ctrl-C; else the one that the
    command returns. DynError, OSError and any Exception of a plugin's command become a
    message on stderr, with status 1; other exceptions are raised, such as SystemExit of
    argparse after help and other wrong usage.

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
        return _failed(str(error), 2 if isinstance(error, _UsageError) else 1)
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

    PluginError: the command of a plugin fails with an unexpected exception.
    """
    whole = parser(argv[0] if argv and argv[0] not in NEED_ALL else "")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        warnings.filterwarnings("default", _FORMER, DeprecationWarning)
        arguments = whole.parse_args(argv)
        if not hasattr(arguments, "run"):
            whole.print_help()
            return 0
        if not hasattr(arguments, "plugin_error"):  # plugins have rules of their own
            _check_outputs(vars(arguments))
        arguments.parser = whole
        try:
            return int(arguments.run(arguments) or 0)
        except SolverNotFound as error:
            other = getattr(arguments, "robot", None)
            if not isinstance(other, str) or other not in error.known:
                raise
            swapped = {other: error.name, error.name: other}
            raise SettingError(
                f"no solver is called '{error.name}', but '{other}' is one: the solver"
                " comes before the robot; valid: dyn"
                f" {shlex.join(swapped.get(x, x) for x in argv)}"
            ) from error
        except (DynError, OSError):
            raise
        except Exception as error:
            if not hasattr(arguments, "plugin_error"):
                raise
            raise arguments.plugin_error(argv[0], error) from error


def _check_outputs(values: dict[str, Any]) -> None:
    """Raise SettingError if a file to be written is one that another argument reads.

    Two paths of one existing file count as the same, and a file in the folder of a bag
    as the bag. Written are the files of OUTPUTS. Read are all other texts among the
    arguments, except the title.
    """
    read: list[str] = []
    for name, value in values.items():
        if name not in (*OUTPUTS, "title"):
            several = value if isinstance(value, list) else [value]
            read += [x for x in several if isinstance(x, str)]
    for option in OUTPUTS:
        if values.get(option):
            from dyn_core.validation.file_names import check_apart  # imports NumPy

            check_apart(values[option], read, option)


def _failed(message: str, status: int = 1) -> int:
    """Print "dyn: MESSAGE" to stderr, unless that raises OSError; return `status`."""
    with suppress(OSError):  # stderr may be closed
        print(f"dyn: {message}", file=sys.stderr)
    return status


def _show_every_character() -> None:
    """Let stdout and stderr replace characters that their encoding lacks.

    They become ASCII, such as "^2" for "²" and "e" for "é", or "?" where there is no
    such form.
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
    """Return a letter in ASCII without diacritics, a ligature as several; else "?"."""
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(x for x in parts if x.isascii()) or "?"


def _drop_output() -> None:
    """Discard what stdout still buffers, so that it raises no second error at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # the stream has no file descriptor, so nothing is flushed at exit


def parser(wanted: str = "") -> CommandParser:
    """Return the parser of `dyn` with its subcommands, or a `wanted` one of the core.

    Plugins are not read if the shipped nodes have the wanted one. Commands of a plugin
    that fails are left out, and a line on stderr says so.
    """
    whole = CommandParser(
        "dyn",
        description="Robot dynamics from a robot's file.",
        epilog="dyn help NAME explains a command, a solver or a kind of problem.",
    )
    rows = [x for x in COMMANDS if wanted == x[1] or wanted in ALIASES.get(x[1], ())]
    if not rows:
        whole.add_argument("--version", action="version", version=version_line())
    subparsers = whole.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    for group, name, sentence, example, module in rows or COMMANDS:
        subparsers.add_parser(
            name, help=sentence, group=group, example=example, module=module,
            aliases=ALIASES.get(name, ()),
        )  # fmt: skip
    plugins = () if rows else entry_points(group=PROJECT)
    shipped = [x for x in plugins if x.value.partition(".")[0] in BUILT_IN]
    for point in shipped:
        getattr(point.load(), "dyn_commands", lambda _: None)(subparsers)
    if len(plugins) > len(shipped) and wanted not in subparsers.choices:
        import_module(f"{_IN}.plugin_commands").add_plugin_commands(subparsers)
    _group(whole, subparsers)
    return whole


def _group(whole: CommandParser, subparsers: argparse._SubParsersAction) -> None:
    """Replace the list of commands in the help by a list for each group.

    The groups of GROUPS come first, then others in the order of their first command.
    The list has to be the last argument group of `whole`, which is changed.
    """
    whole._action_groups.pop()  # the flat list of argparse
    listed: dict[str, list[argparse.Action]] = {name: [] for name in GROUPS}
    for said in subparsers._choices_actions:
        listed.setdefault(subparsers.choices[said.dest].group, []).append(said)
    for name, commands in listed.items():
        whole.add_argument_group(name)._group_actions += commands


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning to `file`, by default stderr; arguments of warnings.showwarning.

    A ModelWarning, DynWarning or DeprecationWarning is one line; another has its place
    in the code.
    """
    said = f"dyn: warning: {message}\n"
    if not issubclass(category, (ModelWarning, DynWarning, DeprecationWarning)):
        said = warnings.formatwarning(message, category, filename, lineno, line)
    print(said, file=file or sys.stderr, end="")
