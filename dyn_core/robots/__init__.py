"""Shipped robots as URDF files, and planar chains as YAML files.

Their headers say where the numbers are from.
"""

from __future__ import annotations

from pathlib import Path

from dyn_core.errors import ModelError, unknown_name

_FOLDER = Path(__file__).parent
CHAIN = ".chain.yaml"


def names() -> list[str]:
    """Return the names of the shipped robots, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.urdf"))


def path(name: str) -> Path:
    """Return the URDF file of a shipped robot; an unknown name is refused."""
    if name not in names():
        raise ModelError(unknown_name("shipped robot", name, names()), name)
    return _FOLDER / f"{name}.urdf"


def root_joint(path: Path | None) -> str:
    """Return how a robot's root is held: of a shipped one as its header says.

    A header says `root_joint="floating"` where the robot is to float; all other files
    have a fixed root.
    """
    if path is None or path.parent != _FOLDER:
        return "fixed"
    header = path.read_text(encoding="utf-8").partition("<robot")[0]
    return "floating" if 'root_joint="floating"' in header else "fixed"


def chains() -> list[str]:
    """Return the names of the shipped planar chains, sorted."""
    return sorted(path.name.removesuffix(CHAIN) for path in _FOLDER.glob(f"*{CHAIN}"))


def chain_path(name: str) -> Path:
    """The YAML file of a shipped planar chain; an unknown name is refused."""
    if name not in chains():
        raise ModelError(unknown_name("shipped chain", name, chains()), name)
    return _FOLDER / f"{name}{CHAIN}"
