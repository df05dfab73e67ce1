"""Random configurations of plugins: a solver, its options and those of every build."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import yaml

from dyn_core.sharing import once
from dyn_core.solving.build_options import BuildOptions
from dyn_core.solving.registry import solver, solvers
from fuzz.draws import Draws
from fuzz.fuzz_file import FuzzFile
from fuzz.mutations import change_bytes
from fuzz.yaml_files import change_data

LINKS = ("base", "link1", "link2", "tip")


@once
def _solvers() -> tuple[str, ...]:
    """Return the names of solvers, those with options four times."""
    names = solvers()
    return tuple(x for x in names for _ in range(4 if _options(x) else 1))


def _options(name: str) -> dict[str, Any]:
    """Return the options of a solver, with their defaults."""
    return dict(getattr(solver(name), "options", {}))


def draw_options(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a configuration as a mapping or as YAML."""
    name = draws.choice(_solvers())
    options = _options(name)
    common = [field.name for field in fields(BuildOptions)]
    chosen: dict[str, Any] = {}
    for key, default in options.items():
        if draws.chance(0.5) or key in ("frame", "frames"):
            chosen[key] = _value(draws, key, default)
    while draws.chance(0.3):
        key = draws.choice((*common, *options))
        chosen[key] = draws.odd_value((*LINKS, *solvers()[:9]))
    if draws.chance(0.05):
        chosen[draws.odd_name((*options, *common))] = 1
    if draws.chance(0.05):
        name = draws.odd_name(_solvers())
    data: Any = {"solver": name, "options": chosen}
    if draws.chance(0.1):
        data = change_data(draws, data, LINKS)
    return _as_text(draws, replace(file, content=data, source="mapping"))


def _value(draws: Draws, key: str, default: Any) -> Any:
    """Return a value of an option, most often of the type of its default."""
    if draws.chance(0.15):
        return draws.odd_value(LINKS)
    if key in ("frame", "link", "tip"):
        return draws.choice(LINKS)
    if isinstance(default, bool):
        return draws.chance(0.5)
    if isinstance(default, int):
        return draws.choice((default, 1, 2, 0, -1))
    if isinstance(default, float):
        return draws.choice((default, 0.5, 0.0, -1.0, 1e-300, 1e300))
    if isinstance(default, str):
        return draws.choice((default, *LINKS))
    return default


def _as_text(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Return the configuration as YAML, some of it with changed bytes."""
    if draws.chance(0.5):
        return file
    try:
        content = yaml.safe_dump(file.content, allow_unicode=True).encode("utf-8")
    except (yaml.YAMLError, ValueError):  # what only a mapping can have
        return file
    if draws.chance(0.3):
        content = change_bytes(draws, content)
    return replace(file, content=content, source="text")
