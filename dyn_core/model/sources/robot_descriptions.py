"""Robots of the package robot_descriptions that are in its cache.

A module of that package downloads its robot when it is imported. Here nothing is
downloaded: the module is executed with its download function replaced by a look-up in
the cache.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from dyn_core.errors import ModelError

TITLE = "robot_descriptions"
SUFFIX = "_description"
_CACHE = "~/.cache/robot_descriptions"
_COMMIT = re.compile("[0-9a-f]{40}")


class CachedRobot(NamedTuple):
    """A robot in the cache; its package:// addresses start at `package_paths`."""

    file: Path
    package_paths: tuple[Path, ...]
    xacro_arguments: Mapping[str, str]


def home() -> Path | None:
    """Return the folder of the package robot_descriptions; None if not installed."""
    spec = importlib.util.find_spec(TITLE)
    folders = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(folders))) if folders else None


def names() -> list[str]:
    """Return the names of all robots of robot_descriptions, also of uncached ones.

    Names end with _description and are sorted. The list is empty if the package is not
    installed.
    """
    folder = home()
    modules = [] if folder is None else folder.glob(f"*{SUFFIX}.py")
    return sorted(path.stem for path in modules if not path.stem.startswith("_"))


def robot(name: str) -> CachedRobot:
    """Return a robot by its name in `names`.

    Its file is the first that the robot's module names of a URDF, xacro and MJCF.
    Its package_paths are the folder of the package and its parent, then the repository
    and its parent; its xacro_arguments are the module's XACRO_ARGS, as text.

    Raises:
        ModelError: The package is not installed, the name is unknown, or the robot is
            not in the cache, its module fails, or it names no robot file.
    """
    try:
        values = _run(name)
    except ModelError:
        raise
    except Exception as error:  # code of others
        raise ModelError(f"robot '{name}' of {TITLE}: {error}", name) from error
    keys = ("URDF_PATH", "XACRO_PATH", "MJCF_PATH")
    file = next((values[key] for key in keys if key in values), None)
    if file is None:
        raise ModelError(
            f"robot '{name}' of {TITLE} has no URDF, xacro or MJCF file", name
        )
    package = Path(values.get("PACKAGE_PATH", Path(file).parent))
    folders = [package, package.parent]
    if "REPOSITORY_PATH" in values:
        repository = Path(values["REPOSITORY_PATH"])
        folders += [repository, repository.parent]
    arguments = {str(k): str(v) for k, v in values.get("XACRO_ARGS", {}).items()}
    return CachedRobot(Path(file), tuple(dict.fromkeys(folders)), arguments)


def _run(name: str) -> dict[str, Any]:
    """Return the globals of a module, executed without its download.

    ModelError if the package is not installed or the robot not in the cache, OSError
    if there is no module; other errors of the module pass through.
    """
    folder = home()
    if folder is None:
        raise ModelError(f"{TITLE} is not installed; pip install {TITLE}", name)

    def cached(repository: str, commit: str | None = None) -> str:
        """Return the cached folder of a repository, in place of clone_to_cache."""
        return str(_cached(name, repository, commit))

    def importing(
        module: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        """Return __import__'s module; for _cache one that has only clone_to_cache."""
        if (level, module) in ((1, "_cache"), (0, f"{TITLE}._cache")):
            return SimpleNamespace(clone_to_cache=cached)
        return builtins.__import__(module, globals, locals, fromlist, level)

    path = folder / f"{name}.py"
    space: dict[str, Any] = {
        "__name__": f"{TITLE}.{name}",
        "__package__": TITLE,
        "__file__": str(path),
        "__builtins__": {**vars(builtins), "__import__": importing},
    }
    exec(compile(path.read_bytes(), str(path), "exec"), space)
    return space


def _cached(name: str, repository: str, commit: str | None) -> Path:
    """Return the folder of a repository in the cache; nothing is downloaded.

    `repository` is a key of the package's REPOSITORIES; without commit, the one there
    is wanted. Only a commit that is a hash of 40 digits is compared, a tag is not.
    """
    known = importlib.import_module(f"{TITLE}._repositories").REPOSITORIES[repository]
    cache = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", _CACHE)).expanduser()
    place = known.cache_path if commit is None else f"{known.cache_path}-{commit}"
    folder = cache / place / (known.cache_path if commit is not None else "")
    wanted = known.commit if commit is None else commit
    try:
        head = (folder / ".git" / "HEAD").read_text(encoding="utf-8").strip()
    except OSError:
        head = ""
    hashed = _COMMIT.fullmatch(str(wanted)) is not None
    if not head or (hashed and head != wanted):
        what = "another version of it is there" if head else f"no {folder}"
        raise ModelError(
            f"robot '{name}' of {TITLE} is not in its cache ({what}), and nothing is"
            f' downloaded here; download it once: python -c "import {TITLE}.{name}"',
            name,
        )
    return folder
