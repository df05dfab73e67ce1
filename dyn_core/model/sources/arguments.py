"""Arguments of commands that take a robot: what dyn.load takes, as options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dyn_core.errors import SettingError
from dyn_core.model.model import Model
from dyn_core.model.sources.loading import load, read_robot
from dyn_core.model.sources.locate import locate
from dyn_core.model.sources.packages import package_folders
from dyn_core.model.urdf_xml.source import Source

ROBOT = (
    "path of a URDF, xacro or MJCF file, name of a robot (shipped, of"
    " example-robot-data or robot_descriptions), or package://PKG/FILE"
)
READING = ("package_paths", "xacro_arguments")  # parameters of the nodes
_PAIR = re.compile(r"([^=]*?):?=(.*)", re.DOTALL)


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the robot of a command, and how it is read."""
    parser.add_argument("robot", help=ROBOT)
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add how a robot is read: its root joint, its sidecar, packages, xacro."""
    parser.add_argument(
        "--root-joint",
        choices=("fixed", "floating"),
        help="how its root link is held (default: as the source says)",
    )
    parser.add_argument("--extras", help="sidecar YAML file of the robot")
    add_search(parser)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add where packages are searched, and arguments of xacro."""
    parser.add_argument(
        "--package-path",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a package, or a folder of packages, for package:// and $(find PKG)",
    )
    parser.add_argument(
        "--xacro-argument",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of an <xacro:arg>",
    )


def named_values(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Return what a list of NAME=VALUE says; NAME:=VALUE will do.

    Raises:
        SettingError: An entry is of another form, or a name is there twice.
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
    """Return what NAME=NUMBER entries of an option say.

    Raises:
        SettingError: An entry is of another form, or a name is there twice.
    """
    values = {}
    for name, text in named_values(typed or (), f"--{option}").items():
        try:
            values[name] = float(text)
        except ValueError as error:
            raise SettingError(
                f"--{option} {name}={text}; valid: NAME=NUMBER", option
            ) from error
    return values


def robot_settings(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the parameters of nodes that say the same as add_search, if any do."""
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    paths = [str(folder) for folder in package_folders(arguments.package_path)]
    lists = paths, [f"{name}={value}" for name, value in pairs.items()]
    return {k: values for k, values in zip(READING, lists, strict=True) if values}


def load_with(
    settings: Mapping[str, Sequence[str]], source: Source, **options: Any
) -> Model:
    """Return the robot that parameters of nodes say how to read.

    Args:
        settings: Values of READING; what is missing is empty.
        source: What dyn.load takes.
        options: Of dyn.load, besides.
    """
    paths, pairs = (settings.get(name, ()) for name in READING)
    values = named_values(pairs, READING[1])
    return load(source, package_paths=paths, xacro_arguments=values or None, **options)


def urdf_with(settings: Mapping[str, Sequence[str]], source: Source) -> str:
    """Return the URDF that load_with reads, xacro expanded; empty for MJCF.

    Args:
        settings: Values of READING; what is missing is empty.
        source: What dyn.load takes.
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
        arguments: Of add_robot, or of add_search alone.
        robot: Its source, for commands without add_robot.
        options: Of dyn.load, besides.
    """
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    choices: dict[str, Any] = {
        "root_joint": getattr(arguments, "root_joint", None),
        "extras": getattr(arguments, "extras", None),
        "package_paths": arguments.package_path,
        "xacro_arguments": pairs or None,
    }
    source = arguments.robot if robot is None else robot
    return load(source, **{**choices, **options})
