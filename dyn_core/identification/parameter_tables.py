"""Identified parameters as files: a table of all, a sidecar of what it can hold."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dyn_core.errors import SettingError, unknown_name, why_unread
from dyn_core.identification.estimation import Identification
from dyn_core.identification.parameter_vector import (
    parameter_names,
    with_linear_parameters,
)
from dyn_core.model import Model

HEADER = ["name", "value", "prior", "standard deviation"]


def write_table(path: str | os.PathLike[str], result: Identification) -> None:
    """Write the parameters of an identification as CSV, one a row."""
    columns = (result.parameters, result.prior, result.standard_deviations)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for name, *row in zip(result.names, *columns, strict=True):
            writer.writerow([name, *(repr(float(x)) for x in row)])


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
    except OSError as error:
        raise SettingError(f"{path}: {why_unread(error)}", "parameters") from error
    except (ValueError, IndexError, csv.Error) as error:
        raise SettingError(
            f"{path}: no table of parameters ({error}); valid: rows of name, value",
            "parameters",
        ) from error
    groups = {
        "friction": any(name.endswith((".damping", ".friction")) for name in values),
        "rotors": any(".armature" in name for name in values),
    }
    names = parameter_names(model, **groups)
    for name in {**values, **dict.fromkeys(names)}:
        if name not in names:
            message = unknown_name(f"parameter of '{model.name}'", name, names)
            raise SettingError(f"{path}: {message}", name)
        if name not in values:
            raise SettingError(f"{path}: the parameter {name} is missing", name)
    return with_linear_parameters(
        model, np.array([values[name] for name in names]), **groups
    )


def joints_sidecar(model: Model) -> dict[str, Any]:
    """Return friction and rotors of a robot's joints, as a sidecar has them."""
    specs = {joint.name: joint for joint in model.build.description.joints}
    joints: dict[str, Any] = {}
    for name in model.joint_names:
        joint = specs.get(name)
        if joint is None:
            continue  # a root joint, which no file has
        mean, more = float(joint.friction), float(joint.friction_asymmetry)
        joints[name] = {
            "damping": float(joint.damping),
            "friction": [mean + more, mean - more] if more else mean,
            "armature": float(joint.armature),
        }
    return {"joints": joints}


def write_sidecar(path: str | os.PathLike[str], model: Model, origin: str) -> None:
    """Write friction and rotors of a robot's joints as a sidecar; it says from what."""
    head = f"# Identified from {origin}; masses and inertias are not in a sidecar.\n"
    content = yaml.safe_dump(joints_sidecar(model), sort_keys=False)
    Path(path).write_text(head + content, encoding="utf-8")
