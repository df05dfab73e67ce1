"""Tables of identified parameters, and robots with the parameters of a table."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from dyn_core.errors import ModelError, SettingError
from dyn_core.identification.fitting.sought_robot import with_paths
from dyn_core.identification.identified_files import write_columns
from dyn_core.identification.result import Identification
from dyn_core.identification.selection import number_names
from dyn_core.model import Model
from dyn_core.model.parameter_vector import (
    parameter_names,
    with_linear_parameters,
)
from dyn_core.validation.array_files import csv_rows


def write_table(path: str | os.PathLike[str], result: Identification) -> None:
    """Write the parameters of an identification as CSV, one a row.

    Columns: name, value, prior, standard deviation.

    Raises:
        SettingError: The file does not end with .csv, or cannot be written.
    """
    columns = (result.parameters, result.prior, result.standard_deviations)
    write_columns(Path(path), result.names, columns)


def with_table(model: Model, path: str | os.PathLike[str]) -> Model:
    """Return a robot with the parameters of a CSV table, see write_table.

    If the table has masses of bodies, it must have all inertial parameters of all
    bodies; dry friction with damping, and rotors, then for all joints or none. Else
    parameters that the table lacks keep the robot's values. A delay is ignored.

    Args:
        model: Robot.
        path: File; only names and values are used.

    Raises:
        SettingError: The file cannot be read, or its parameters do not match the
            robot's.
        ModelError: No robot can have the parameters; names the fault.
    """
    values = {row[0]: _value(path, row) for row in csv_rows(Path(path))[1:]}
    if not values:
        raise _no_table(path, "it has no rows")
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


def _value(path: str | os.PathLike[str], row: list[str]) -> float:
    """Return the value in a row of a table; raise a SettingError if it has none."""
    try:
        return float(row[1])
    except (ValueError, IndexError) as error:
        raise _no_table(path, f"{row[0]} has no number") from error


def _no_table(path: str | os.PathLike[str], reason: str) -> SettingError:
    """Return the error for a file that is no table."""
    valid = "rows of name, value"
    message = f"{path}: no table of parameters: {reason}; valid: {valid}"
    return SettingError(message, "parameters")


def _with_names(
    model: Model, path: str | os.PathLike[str], values: dict[str, float]
) -> Model:
    """Return the robot with values of parameter paths; a delay is ignored.

    Args:
        model: Robot.
        path: File, for messages.
        values: Values by name, such as PATH, PATH:part or PATH[k].

    Raises:
        SettingError: The robot has no such parameter.
    """
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
