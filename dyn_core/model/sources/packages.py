"""Folders of packages, for package://PKG/FILE and $(find PKG).

They are searched in this order: folders given by the user, parent folders of the
robot's file, AMENT_PREFIX_PATH (share/PKG), ROS_PACKAGE_PATH.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dyn_core.errors import ModelError
from dyn_core.validation import shown

SCHEME = "package://"
DEPTH = 4  # number of folder levels searched below a search path
_NAME = re.compile(r"(?!\.+$)[\w.+-]+")
_IN_MANIFEST = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
_IGNORED = ("AMENT_IGNORE", "COLCON_IGNORE", "CATKIN_IGNORE")
Folders = Sequence[str | os.PathLike[str]] | str | os.PathLike[str]


def package_folders(paths: Folders) -> tuple[Path, ...]:
    """Return the folders of `package_paths`, one or several, as absolute paths.

    ~ is expanded. An entry that is empty or no existing folder is refused.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(several, Sequence) or not all(
        isinstance(path, (str, os.PathLike)) for path in several
    ):
        what = f"package_paths is {shown(paths)}"
        raise ModelError(f"{what}; valid: a folder, or a list of folders")
    folders = []
    for path in several:
        folder = Path(os.path.abspath(os.path.expanduser(path)))
        if not os.path.isdir(folder) or not os.fspath(path):
            what = f"package_paths: {os.fspath(path)!r} is no folder"
            named = "a package is known by its folder's name or package.xml"
            raise ModelError(f"{what}; valid: packages, and folders of them; {named}")
        folders.append(folder)
    return tuple(folders)


class Packages:
    """A search for packages.

    Attributes:
        paths: Folders that are packages or contain packages; searched first.
        file: Absolute path of the robot's file, or None.
        used: Folders of the packages found so far, by name.
    """

    def __init__(self, paths: Sequence[Path] = (), file: Path | None = None) -> None:
        self.paths, self.file = tuple(paths), file
        self.used: dict[str, Path] = {}

    def folder(self, name: str) -> Path:
        """Return the folder of a package; record it in `used` if `name` is not there.

        Raises:
            ModelError: The package is not found, or the name is not valid; names the
                folders searched.
        """
        return self._first(name, "", f"no package is called '{name}'")

    def resolve(self, address: str) -> Path:
        """Return the path of the file or folder of a package:// address.

        It is in the first folder of the package that has it. This folder is recorded in
        `used` if the package's name is not there.

        Raises:
            ModelError: The package or file does not exist, or the name of the package
                is not valid; names the folders searched.
        """
        name, _, rest = address.removeprefix(SCHEME).lstrip("/").partition("/")
        return self._first(name, rest, f"nothing is at {address}") / rest

    def _first(self, name: str, rest: str, fault: str) -> Path:
        """Return the first folder of package `name` that contains the path `rest`.

        It is recorded in `used` if `name` is not there. An empty `rest` is the folder
        itself. ModelError, with a text that starts with `fault`, if there is none.
        """
        if not _NAME.fullmatch(name):
            raise ModelError(f"{fault}: '{name}' is no name of a package")
        for folder in self._candidates(name):
            if os.path.exists(folder / rest):
                self.used.setdefault(name, folder)
                return folder
        named = f"valid: a folder called '{name}', or one whose package.xml says so"
        raise ModelError(f"{fault}; searched: {self.searched()}; {named}", name)

    def _candidates(self, name: str) -> Iterator[Path]:
        """Yield possible folders of a package, in order of priority.

        Some may not exist or be yielded twice.
        """
        for path in self.paths:
            yield from _below(path, name)
        for folder in self.file.parents if self.file is not None else ():
            if _is_package(folder, name):
                yield folder
        for prefix in _environment("AMENT_PREFIX_PATH"):
            yield prefix / "share" / name
        for path in _environment("ROS_PACKAGE_PATH"):
            yield from _below(path, name)

    def searched(self) -> str:
        """Return the places that are searched, as text for errors.

        Empty `paths` are "none"; environment variables have their values or "not set".
        """
        places = [f"package_paths ({', '.join(map(str, self.paths)) or 'none'})"]
        if self.file is not None:
            places.append(f"the folders that {self.file} lies in")
        for variable in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"):
            value = os.environ.get(variable) or "not set"
            places.append(f"{variable} ({value})")
        return ", ".join(places)


def _environment(variable: str) -> list[Path]:
    """Return the folders in an environment variable; empty if it is not set."""
    return [Path(x) for x in os.environ.get(variable, "").split(os.pathsep) if x]


def _below(path: Path, name: str) -> Iterator[Path]:
    """Yield possible folders of a package at or below a search path, path/NAME first.

    The first need not exist; others are packages of this name, up to 4 (DEPTH) levels
    below.
    """
    yield path / name
    if _is_package(path, name):
        yield path
    yield from _crawl(path, name, DEPTH)


def _crawl(path: Path, name: str, depth: int) -> Iterator[Path]:
    """Yield folders of package `name` below a folder, up to `depth` >= 1 levels.

    Only folders with a package.xml count. Skipped are folders that are hidden,
    unreadable, inside packages, or have a file of _IGNORED.
    """
    try:
        # os.path: methods of Path raise in a folder that nobody may search
        below = sorted(x for x in path.iterdir() if os.path.isdir(x))
    except OSError:
        return  # nobody may read it, or it is gone
    for folder in below:
        ignored = any(os.path.exists(folder / x) for x in _IGNORED)
        if folder.name.startswith(".") or ignored:
            continue
        if os.path.isfile(folder / "package.xml"):
            if _is_package(folder, name):
                yield folder
        elif depth > 1:
            yield from _crawl(folder, name, depth - 1)


def _is_package(folder: Path, name: str) -> bool:
    """Return whether the folder's name, or the name in its package.xml, is `name`."""
    if folder.name == name:
        return True
    try:
        text = (folder / "package.xml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    named = _IN_MANIFEST.search(text)
    return named is not None and named[1] == name
