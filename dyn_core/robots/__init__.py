"""The robots that ship with the package: URDF files with sources in their headers."""

from __future__ import annotations

from pathlib import Path

from dyn_core.errors import ModelError

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Give the names of the shipped robots, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.urdf"))


def path(name: str) -> Path:
    """Give the URDF file of a shipped robot; an unknown name lists the known."""
    if name not in names():
        known = ", ".join(names())
        raise ModelError(f"no shipped robot is called '{name}'; known: {known}", name)
    return _FOLDER / f"{name}.urdf"
