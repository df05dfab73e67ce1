"""What ships with the package: robots as URDF files, planar chains as YAML files.

Their headers say where the numbers are from.
"""

from __future__ import annotations

from pathlib import Path

from dyn_core.errors import ModelError

_FOLDER = Path(__file__).parent
CHAIN = ".chain.yaml"


def names() -> list[str]:
    """Give the names of the shipped robots, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.urdf"))


def path(name: str) -> Path:
    """Give the URDF file of a shipped robot; an unknown name lists the known."""
    if name not in names():
        known = ", ".join(names())
        raise ModelError(f"no shipped robot is called '{name}'; known: {known}", name)
    return _FOLDER / f"{name}.urdf"


def chains() -> list[str]:
    """Give the names of the shipped planar chains, sorted."""
    return sorted(path.name.removesuffix(CHAIN) for path in _FOLDER.glob(f"*{CHAIN}"))


def chain_path(name: str) -> Path:
    """Give the YAML file of a shipped planar chain; an unknown name lists the known."""
    if name not in chains():
        known = ", ".join(chains())
        raise ModelError(f"no shipped chain is called '{name}'; known: {known}", name)
    return _FOLDER / f"{name}{CHAIN}"
