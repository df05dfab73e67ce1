"""Arguments of commands: the arguments of dyn.load, and options of a solver."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, SettingError
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.frames import origin
from dyn_core.model.model import Model
from dyn_core.model.sources.loading import load, read_robot
from dyn_core.model.sources.locate import locate
from dyn_core.model.sources.packages import package_folders
from dyn_core.model.urdf_xml.xml_text import Source
from dyn_core.validation.array_files import cell_number

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

ROBOT = (
    "path of a URDF, xacro or MJCF file, name of a robot (shipped, of"
    " example-robot-data or robot_descriptions), or package://PKG/FILE"
)
READING = ("package_paths", "xacro_arguments")  # names of parameters of nodes
_PAIR = re.compile(r"([^=]*?):?=(.*)", re.DOTALL)


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument `robot`, and options of how to read it.

    They are --root-joint, --extras, --package-path and --xacro-argument.
    """
    parser.add_argument("robot", help=ROBOT)
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add --root-joint, --extras, --package-path and --xacro-argument to `parser`."""
    parser.add_argument(
        "--root-joint", choices=("fixed", "floating"),
        help="how its root link is held (default: as the source says)",
    )  # fmt: skip
    parser.add_argument("--extras", help="sidecar YAML file, or quadruped_stand")
    add_search(parser)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options --package-path and --xacro-argument, which may be repeated."""
    parser.add_argument(
        "--package-path", action="append", default=[], metavar="FOLDER",
        help="a package, or a folder of packages, for package:// and $(find PKG)",
    )  # fmt: skip
    parser.add_argument(
        "--xacro-argument", action="append", default=[], metavar="NAME=VALUE",
        help="value of an <xacro:arg>",
    )  # fmt: skip


def add_lock(parser: argparse.ArgumentParser) -> None:
    """Add the option --lock JOINT=POSITION, which may be repeated, for load_robot."""
    parser.add_argument(
        "--lock", action="append", metavar="JOINT=POSITION",
        help="a joint that does not move, or was not measured: where it stands [rad |"
        " m]",
    )  # fmt: skip


def named_values(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Return the values of NAME=VALUE entries (or NAME:=VALUE) by name.

    VALUE may be empty, and may have further "=".

    Args:
        pairs: Entries.
        where: Name of the option, for the error message.

    Raises:
        SettingError: An entry has another form, or a name occurs twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        parts = _PAIR.fullmatch(pair)
        if parts is None or not parts[1] or parts[1] in values:
            raise SettingError(
                f"{where} {pair!r}; valid: NAME=VALUE, each name once", where
            )
        values[parts[1]] = parts[2]
    return values


def named_numbers(option: str, typed: Iterable[str] | None) -> dict[str, float]:
    """Return the numbers of NAME=NUMBER entries by name; empty for None.

    Args:
        option: Name of the option without dashes, for the error message.
        typed: Entries, or None.

    Raises:
        SettingError: An entry has another form, a name occurs twice, or a number is not
            finite.
    """
    values = {}
    for name, text in named_values(typed or (), f"--{option}").items():
        try:
            values[name] = cell_number(text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            raise SettingError(
                f"--{option} {name}={text}; valid: NAME=NUMBER, a finite one", option
            )
    return values


def start_of(model: Model, name: str, typed: Sequence[str] | None) -> Any:
    """Return typed initial positions (nq,) or velocities (nv,); None for None.

    Joints that are not typed are neutral, or at rest; a follower that is typed sets its
    leader. Quaternions are not normalised.

    Args:
        model: Robot.
        name: "q0" or "qd0".
        typed: JOINT=VALUE for some joints, JOINT.0=VALUE for a coordinate of a joint of
            several, or all numbers in order [SI]; None: nothing was typed.

    Raises:
        SettingError: A joint is unknown or has several coordinates without an index, an
            entry occurs twice, a number is missing, surplus or not finite, or a
            follower is off its rule.
    """
    if typed is None:
        return None
    coordinates = coordinates_of(model)
    labels = coordinates.positions if name == "q0" else coordinates.velocities
    if all("=" in entry for entry in typed):
        values = named_numbers(name, typed)
        parts = {k: values.pop(k) for k in labels if k in values and "." in k}
        by_name = model.position if name == "q0" else model.velocity
        try:
            start = by_name(values)
        except ModelError as error:
            several = ", ".join(x for x in labels if "." in x)
            more = f"; also COORDINATE=VALUE of {several}" if several else ""
            valid = [f"{x}=VALUE" for x in labels if x.rpartition(".")[0] in values]
            said = f"it has several coordinates; valid: {', '.join(valid)}"
            text = f"--{name} {' '.join(typed)}: {said if valid else f'{error}{more}'}"
            raise SettingError(text, name) from error
        for label, value in parts.items():
            start[labels.index(label)] = value
        return start
    try:
        numbers = np.array([cell_number(entry) for entry in typed])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) != len(labels) or not np.isfinite(numbers).all():
        raise SettingError(
            f"--{name} {' '.join(typed)}; valid: JOINT=VALUE, or {len(labels)} finite"
            f" numbers for {', '.join(labels)}",
            name,
        )
    return numbers


def typed_pose(xyz: Sequence[float], rpy: Sequence[float]) -> tuple[Any, Any]:
    """Return (R, p) of a typed position [m] and --rpy [rad]: Matrix (3, 3), Vector.

    Raises SettingError if an angle is more than a turn: it is in degrees.
    """
    most = max(rpy, key=abs)
    if abs(most) > 2 * math.pi:
        message = f"is --rpy in degrees? {most:g} rad is more than a turn"
        right = " ".join(f"{math.radians(x):.6g}" for x in rpy)
        raise SettingError(f"{message}; valid: radians, such as --rpy {right}", "rpy")
    return origin(xyz, rpy).pose


def robot_settings(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return --package-path and --xacro-argument as parameters of nodes, by name.

    They are package_paths, a list of absolute folders, and xacro_arguments, a list of
    NAME=VALUE; empty ones are omitted.

    Raises:
        SettingError: An xacro argument has not the form NAME=VALUE or occurs twice.
        ModelError: A package path is no folder.
    """
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    paths = [str(folder) for folder in package_folders(arguments.package_path)]
    lists = paths, [f"{name}={value}" for name, value in pairs.items()]
    return {k: values for k, values in zip(READING, lists, strict=True) if values}


def load_with(
    settings: Mapping[str, Sequence[str]], source: Source, **options: Any
) -> Model:
    """Return the robot of a source, read with the parameters of a node.

    Args:
        settings: Values of the parameters READING: package_paths and xacro_arguments
            (NAME=VALUE each); missing ones are empty.
        source: Source as for dyn.load.
        options: Further keywords of dyn.load.

    Raises:
        SettingError: An xacro argument has not the form NAME=VALUE or occurs twice, or
            a keyword is unknown.
        ModelError: There is no such robot, or it or an argument is not valid.
        UnsupportedError: An MJCF without mujoco installed, or with one too old.
    """
    paths, pairs = (settings.get(name, ()) for name in READING)
    values = named_values(pairs, READING[1])
    return load(source, package_paths=paths, xacro_arguments=values or None, **options)


def urdf_with(settings: Mapping[str, Sequence[str]], source: Source) -> str:
    """Return the URDF text of a source; empty for an MJCF.

    xacro is expanded in files *.xacro, and in any other source if there are xacro
    arguments.

    Args:
        settings: Values of package_paths and xacro_arguments (NAME=VALUE each);
            missing ones are empty.
        source: Source as for dyn.load.

    Raises:
        SettingError: An xacro argument has not the form NAME=VALUE, or occurs twice.
        ModelError: The source cannot be read or expanded, or there are xacro arguments
            and nothing to expand.
    """
    paths, pairs = (settings.get(name, ()) for name in READING)
    values = named_values(pairs, READING[1])
    text, _, origin = read_robot(locate(source, paths), values or None)
    return "" if origin.kind == "mjcf" else text


def load_robot(
    arguments: argparse.Namespace, robot: str | None = None, **options: Any
) -> Model:
    """Return the robot of a command.

    Args:
        arguments: Parsed options: package_path and xacro_argument; root_joint, extras,
            lock and, unless `robot` is given, robot.
        robot: Source of the robot, for commands without add_robot.
        options: Further keywords of dyn.load; they override the arguments.

    Raises:
        SettingError: An xacro argument has not the form NAME=VALUE or occurs twice, a
            position of --lock is no finite number, or a keyword is unknown.
        ModelError: There is no such robot, or it or an argument is not valid.
        UnsupportedError: An MJCF without mujoco installed, or with one too old.
    """
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    choices: dict[str, Any] = {
        "root_joint": getattr(arguments, "root_joint", None),
        "extras": getattr(arguments, "extras", None),
        "lock": named_numbers("lock", getattr(arguments, "lock", None)),
        "package_paths": arguments.package_path,
        "xacro_arguments": pairs or None,
    }
    source = arguments.robot if robot is None else robot
    return load(source, **{**choices, **options})


def add_options(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the argument --option NAME=VALUE, which may be repeated.

    Args:
        parser: Parser of the command.
        meaning: Its help text.
    """
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help=meaning
    )


def read_options(arguments: argparse.Namespace, solver: Any = None) -> dict[str, Any]:
    """Return the values of --option by name: bools, numbers, text, or lists of those.

    A text with a comma, or that begins with a bracket, is a list. One value is a list
    of one where the default of the option is a tuple, and for the option `wrap`. Names
    are not checked.

    Args:
        arguments: Parsed arguments of a command that called add_options.
        solver: Solver with these options; None: a whole controller.

    Raises:
        SettingError: An entry is not NAME=VALUE, or a name occurs twice.
    """
    pairs = named_values(arguments.option, "--option")
    values = {name: _read(text) for name, text in pairs.items()}
    defaults = {"wrap": (), **getattr(solver, "options", {})}
    for name, value in values.items():
        if isinstance(defaults.get(name), tuple) and not isinstance(value, list):
            values[name] = [value]
    return values


def _read(text: str) -> Any:
    """Return the value of an option: a bool, int, float or text, or a list of those.

    Text with a comma, or that begins with a bracket, is a list, in which empty entries
    are left out; "true", "false", "True" and "False" are bools.
    """
    if text[:1] == "[" or "," in text:
        return [_read(x) for part in text.strip("[]").split(",") if (x := part.strip())]
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            cell_number(text)  # refuses 1_0
            return kind(text)
    return text
