"""Tables of identified parameters, which robots take up again."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import numpy as np

from dyn_core.errors import ModelError, SettingError, why_unread
from dyn_core.identification.fitting.sought_robot import with_paths
from dyn_core.identification.identified_files import write_columns
from dyn_core.identification.parameter_vector import (
    parameter_names,
    with_linear_parameters,
)
from dyn_core.identification.result import Identification
from dyn_core.identification.selection import number_names
from dyn_core.model import Model


def write_table(path: str | os.PathLike[str], result: Identification) -> None:
    """Write the parameters of an identification as CSV, one a row."""
    columns = (result.parameters, result.prior, result.standard_deviations)
    write_columns(Path(path), result.names, columns)


def with_table(model: Model, path: str | os.PathLike[str]) -> Model:
    """Return a robot with the parameters of such a CSV.

    Raises:
        SettingError: It cannot be read, or its parameters are not those of the robot.
        ModelError: No robot can have them; names it.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
        values = {row[0]: float(row[1]) for row in rows[1:]}
        if not values:
            raise ValueError("it has no rows")
    except OSError as error:
        raise SettingError(f"{path}: {why_unread(error)}", "parameters") from error
    except (ValueError, IndexError, csv.Error) as error:
        raise SettingError(
            f"{path}: no table of parameters ({error}); valid: rows of name, value",
            "parameters",
        ) from error
    joints = [name.rpartition(".")[2].partition("[")[0] for name in values]
    groups = {
        "friction": "damping" in joints and "friction" in joints,
        "rotors": "armature" in joints,
    }
    if not any(name.endswith(":m") and "." not in name for name in values):
        return _with_names(model, path, values)
    names = parameter_names(model, **groups)
    more = {k: v for k, v in values.items() if k not in names}
    values = {k: v for k, v in values.items() if k in names}
    for name in names:
        if name not in values:
            raise SettingError(f"{path}: the parameter {name} is missing", name)
    made = _with_names(model, path, more)
    return with_linear_parameters(
        made, np.array([values[name] for name in names]), **groups
    )


def _with_names(
    model: Model, path: str | os.PathLike[str], values: dict[str, float]
) -> Model:
    """Return the robot with numbers of parameter paths by name; a delay is none."""
    values = {k: v for k, v in values.items() if k != "delay"}
    paths = dict.fromkeys(re.sub(r"(:\w+|\[\d+\])$", "", name) for name in values)
    whole = {}
    for parameter in paths:
        try:
            whole[parameter] = np.array(model.parameter(parameter), float)
        except ModelError as error:
            raise SettingError(f"{path}: {error}", parameter) from error
        for k, name in enumerate(number_names(model, parameter)):
            whole[parameter][k] = values.pop(name, whole[parameter][k])
    if values:
        (name, *_) = values
        raise SettingError(f"{path}: '{model.name}' has no number {name}", name)
    return with_paths(model, whole) if whole else model
