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
    """Add the positional argument `robot`, and options of how to read it."""
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

    VALUE may be empty, and may have further "=". Other forms and repeated names are
    refused; `where` is the option's name for the error.
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
    """Return the finite numbers of NAME=NUMBER entries by name; empty for None."""
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

    `name` is q0 or qd0. JOINT=VALUE is typed for some joints, JOINT.0=VALUE for one of
    several coordinates, or all numbers in order [SI]. Other joints are neutral, or at
    rest; a follower sets its leader, and is refused off its rule.
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
    """Return (R, p) of a position [m] and --rpy [rad]; refuse more than a turn."""
    most = max(rpy, key=abs)
    if abs(most) > 2 * math.pi:
        message = f"is --rpy in degrees? {most:g} rad is more than a turn"
        right = " ".join(f"{math.radians(x):.6g}" for x in rpy)
        raise SettingError(f"{message}; valid: radians, such as --rpy {right}", "rpy")
    return origin(xyz, rpy).pose


def robot_settings(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return --package-path and --xacro-argument as parameters of nodes, by name.

    They are package_paths, absolute folders, and xacro_arguments, NAME=VALUE each;
    empty ones are omitted.
    """
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    paths = [str(folder) for folder in package_folders(arguments.package_path)]
    lists = paths, [f"{name}={value}" for name, value in pairs.items()]
    return {k: values for k, values in zip(READING, lists, strict=True) if values}


def load_with(
    settings: Mapping[str, Sequence[str]], source: Source, **options: Any
) -> Model:
    """Return the robot of a source, read with the parameters READING of a node."""
    paths, pairs = (settings.get(name, ()) for name in READING)
    values = named_values(pairs, READING[1])
    return load(source, package_paths=paths, xacro_arguments=values or None, **options)


def urdf_with(settings: Mapping[str, Sequence[str]], source: Source) -> str:
    """Return the URDF text of a source; empty for an MJCF.

    `settings` are those of load_with. xacro is expanded in files *.xacro, and in any
    other source if there are xacro arguments.
    """
    paths, pairs = (settings.get(name, ()) for name in READING)
    values = named_values(pairs, READING[1])
    text, _, origin = read_robot(locate(source, paths), values or None)
    return "" if origin.kind == "mjcf" else text


def load_robot(
    arguments: argparse.Namespace, robot: str | None = None, **options: Any
) -> Model:
    """Return the robot of a command; `options` of dyn.load override the arguments."""
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
    """Add the argument --option NAME=VALUE, which may be repeated."""
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help=meaning
    )


def read_options(arguments: argparse.Namespace, solver: Any = None) -> dict[str, Any]:
    """Return the values of --option by name: bools, numbers, text, or lists of those.

    A text with a comma, or that begins with a bracket, is a list. One value is a list
    of one where the default of the solver's option is a tuple, and for the option
    `wrap`. Names are not checked. Without a solver the options are those of a whole
    controller.
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
