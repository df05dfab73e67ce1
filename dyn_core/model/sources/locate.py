"""Look-up of a robot: from path, name, address or text to its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dyn_core import robots
from dyn_core.errors import ModelError, SettingError, nearest, unknown_name
from dyn_core.model.sources import example_robots, robot_descriptions
from dyn_core.model.sources.packages import (
    SCHEME,
    Folders,
    Packages,
    package_folders,
)
from dyn_core.model.urdf_xml.xml_text import Source
from dyn_core.validation.file_names import file_kind

SHIPPED = "shipped"
_RECORDINGS = (".npz", ".csv", ".mcap", ".db3", ".bag")
_SUFFIXES = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".yaml", ".yml")


@dataclass(frozen=True)
class Located:
    """A robot that was looked up and is not yet read.

    Attributes:
        file: Absolute path; None for text.
        name: Name or address given by the user; empty for a path or text.
        collection: Collection of the name; empty for a path, an address or text.
        paths: Folders searched first for packages: the user's, then the collection's.
        xacro_arguments: Arguments that the collection gives to xacro.
    """

    source: Source
    file: Path | None = None
    name: str = ""
    collection: str = ""
    paths: tuple[Path, ...] = ()
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> Packages:
        """A new search for the packages of the robot, at each access another one."""
        return Packages(self.paths, self.file)


def locate(source: Source, package_paths: Folders = ()) -> Located:
    """Return the file or text of a source, which is not read yet.

    An existing file has priority over a name. Names are searched in the shipped robots,
    then in robot_descriptions, then in example-robot-data.
    """
    paths = package_folders(package_paths)
    if isinstance(source, os.PathLike):
        return _file(source, paths)
    if not isinstance(source, str) or not source.strip() or "<" in source:
        return Located(source, paths=paths)
    if source.startswith(SCHEME):
        file = Packages(paths).resolve(source)
        return Located(file, file, source, "", paths)
    if _is_file(source):
        return _file(source, paths)
    robot = _named(source, paths)
    if robot is not None:
        return robot
    path = Path(source)
    is_path = path.suffix.lower() in _SUFFIXES or path.name != source
    if is_path or os.path.isdir(path):
        return _file(source, paths)
    raise _unknown(source)


def _is_file(source: str | os.PathLike[str]) -> bool:
    """Return whether a path exists and is not a folder; ~ is expanded."""
    path = os.path.expanduser(source)
    return os.path.exists(path) and not os.path.isdir(path)


def _file(source: str | os.PathLike[str], paths: tuple[Path, ...]) -> Located:
    """Return the Located of an existing path; ~ is expanded.

    ModelError if it is missing (with similar files), a folder, recording or HTML page.
    """
    path = Path(os.path.expanduser(source))
    if not _is_file(path):
        fault, valid = "there is no such file", ""
        try:
            kind = file_kind(path)
        except SettingError as error:
            raise ModelError(f"cannot read the URDF file {error}") from error
        if kind == "folder":
            fault = "it is a folder; valid: a file in it, such as robot.urdf"
        elif not path.is_absolute():
            valid = f"; valid: a path from {os.path.abspath('.')}, or an absolute one"
        raise ModelError(
            f"cannot read the URDF file {source}: {fault}{_near(path)}{valid}"
        )
    if path.suffix.lower() in _RECORDINGS:
        valid = "valid: its robot; dyn view and dyn report show the recording"
        raise ModelError(f"{source} is a recording, no robot; {valid}")
    if path.suffix.lower() in (".html", ".htm"):
        raise ModelError(f"{source} is a page, no robot; valid: open it in a browser")
    return Located(path, Path(os.path.abspath(path)), paths=paths)


def _named(name: str, paths: tuple[Path, ...]) -> Located | None:
    """Return the robot of this name; None if no collection has one.

    The user's folders of packages come before those of the collection.
    """
    if name in robots.names():
        file = robots.path(name)
        return Located(file, file, name, SHIPPED, paths)
    if name in robot_descriptions.names():
        robot = robot_descriptions.robot(name)
        folders = (*paths, *robot.package_paths)
        title = robot_descriptions.TITLE
        more = robot.xacro_arguments
        return Located(robot.file, robot.file, name, title, folders, more)
    if name in example_robots.files():
        file = example_robots.file(name)
        folders = (*paths, *example_robots.package_paths())
        return Located(file, file, name, example_robots.TITLE, folders)
    return None


def _unknown(name: str) -> ModelError:
    """Return the ModelError of an unknown name, with the nearest robots and files."""
    if name in robots.chains():
        valid = f"dyn view {name}, dyn up chain, or in Python as docs/planar.md says"
        return ModelError(f"{name!r} is a planar chain, no robot; valid: {valid}", name)
    every = dict.fromkeys(x for names in collections().values() for x in names)
    message = unknown_name("robot", name, every)
    if near := _near(Path(name)):  # my_arm.urd beside my_arm.urdf
        message = f"no robot or file is called '{name}'{near}"
    tried = ", ".join(["a file of this name", *searched()])
    what = f"tried: {tried}; valid, too: a path, {SCHEME}PKG/FILE, XML"
    return ModelError(f"{message}; {what}", name)


def _near(path: Path) -> str:
    """Return a clause for the error message about a path that cannot be read.

    It suggests similar robot files in the path's folder and a shipped robot, or says
    that this folder is missing (also if it cannot be listed); it may be empty.
    """
    if os.path.isdir(path):
        return ""
    try:
        beside = [x.name for x in path.parent.iterdir() if x.suffix in _SUFFIXES]
    except (OSError, ValueError):
        return f", nor a folder {path.parent}"
    near = [repr(x) for x in nearest(path.name, sorted(beside))]
    if path.stem in robots.names():
        near.append(f"{path.stem!r}, the shipped robot")
    return f"; did you mean {' or '.join(near)}?" if near else ""


def collections() -> dict[str, list[str]]:
    """Return the names of robots by the title of their collection.

    Collections are in the order of the search: shipped robots, robot_descriptions,
    example-robot-data. The list is empty for one that is not installed.
    """
    return {
        SHIPPED: robots.names(),
        robot_descriptions.TITLE: robot_descriptions.names(),
        example_robots.TITLE: list(example_robots.files()),
    }


def searched() -> list[str]:
    """Return each collection with its number of robots, or how to install it."""
    (_, shipped), *others = collections().items()
    tried = [f"{len(shipped)} shipped robots"]
    for title, names in others:
        missing = f"{title} (not installed: pip install {title})"
        tried.append(f"{len(names)} of {title}" if names else missing)
    return tried
