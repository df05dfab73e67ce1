"""Search for mesh files, starting from the file of their robot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.model.sources.origin import Origin
from dyn_core.model.sources.packages import SCHEME, Packages


def mesh_file(
    file: str, link: str, origin: Origin, packages: Mapping[str, Any] | None = None
) -> Path:
    """Return the path of a link's mesh; `packages` are folders of packages by name.

    Relative paths start at the folder of the robot's file; if the robot was read from
    text, at the working directory. A package in `packages` is searched nowhere else.
    """
    robot = None if origin.file is None else Path(origin.file)
    if file.startswith(SCHEME):
        name, _, rest = file.removeprefix(SCHEME).lstrip("/").partition("/")
        if packages and name in packages:
            path = Path(packages[name]) / rest
            if os.path.isfile(path):
                return path
            raise _missing(file, link, f"tried {path}, of packages['{name}']")
        search = Packages(tuple(map(Path, origin.package_paths)), robot)
        try:
            path = search.resolve(file)
        except ModelError as error:
            raise _missing(file, link, str(error)) from error
    else:
        path = Path(file.removeprefix("file://"))
        path = path if robot is None else robot.parent / path
    if not os.path.isfile(path):
        raise _missing(file, link, f"tried {path}; relative paths start at its file")
    return path


def _missing(file: str, link: str, reason: str) -> ModelError:
    """Return the ModelError of a missing mesh; `file` is its path or address."""
    return ModelError(
        f"link '{link}': no mesh {file}: {reason}; valid: a file, and packages in"
        " dyn.load(..., package_paths=[FOLDER]), --package-path FOLDER of a command or"
        " World(packages={NAME: FOLDER})",
        link,
    )
