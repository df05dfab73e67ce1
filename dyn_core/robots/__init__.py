"""Shipped robots as URDF files with sidecars, and planar chains as YAML files.

The header of each file names the source of its numbers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dyn_core.errors import ModelError, unknown_name

_FOLDER = Path(__file__).parent
CHAIN, SIDECAR = ".chain.yaml", ".dyn.yaml"


def names() -> list[str]:
    """Return the names of the shipped robots (URDF files), sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.urdf"))


def path(name: str) -> Path:
    """Return the path of the URDF file of a shipped robot.

    Raises:
        ModelError: There is no such robot; lists similar names.
    """
    if name not in names():
        raise ModelError(unknown_name("shipped robot", name, names()), name)
    return _FOLDER / f"{name}.urdf"


def about(name: str) -> str:
    """Return the first sentence of the header of a shipped robot or chain, else ""."""
    if name in names():
        header = path(name).read_text(encoding="utf-8").partition("<!--")[2]
    elif name in chains():
        header = chain_path(name).read_text(encoding="utf-8").replace("#", "")
    else:
        return ""
    return " ".join(re.split(r"\.\s", header, maxsplit=1)[0].split())


def root_joint(path: Path | None) -> str:
    """Return how the root of a robot is joined to the world: "fixed" or "floating".

    A shipped URDF file is floating if its header, before <robot>, has
    `root_joint="floating"`. All other files, and None, are fixed.
    """
    if path is None or path.parent != _FOLDER:
        return "fixed"
    header = path.read_text(encoding="utf-8").partition("<robot")[0]
    return "floating" if 'root_joint="floating"' in header else "fixed"


def sidecar(name: Any) -> Any:
    """Return the path of a shipped sidecar, such as "quadruped_stand".

    Anything but such a name is returned unchanged.
    """
    shipped = {x.name.removesuffix(SIDECAR): x for x in _FOLDER.glob(f"*{SIDECAR}")}
    return shipped.get(name, name) if isinstance(name, str) else name


def chains() -> list[str]:
    """Return the names of the shipped planar chains, sorted."""
    return sorted(path.name.removesuffix(CHAIN) for path in _FOLDER.glob(f"*{CHAIN}"))


def chain_path(name: str) -> Path:
    """Return the path of the YAML file of a shipped planar chain.

    Raises:
        ModelError: There is no such chain; lists similar names.
    """
    if name not in chains():
        raise ModelError(unknown_name("shipped chain", name, chains()), name)
    return _FOLDER / f"{name}{CHAIN}"
