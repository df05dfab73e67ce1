"""Measured motion by joint name, and its files: NPZ and CSV.

NPZ: arrays t (samples), q, qd, tau and command (samples x joints), and names; t and q
are required. The names of the arrays agree with a Recording of dyn.simulate. CSV: the
columns t, q.NAME, qd.NAME, tau.NAME, command.NAME, in any order. q[NAME] is accepted,
too, and lines that begin with # are ignored, as `dyn sim` writes them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import SettingError, ShapeError, one_line, unknown_name
from dyn_core.model import Model
from dyn_core.validation import float_array
from dyn_core.validation.array_files import csv_table, npz_arrays

COLUMNS = ("q", "qd", "tau", "command")
FILES = (".npz", ".csv")
_BRACKETS = re.compile(r"^(\w+)\[(.*)\]$")


@dataclass(frozen=True, eq=False)
class JointRecord:
    """Samples of joints; NaN where a sample lacks a number.

    Attributes:
        names: Joint of each column; empty: the joints of the robot, in its order.
        t: Times, (samples,) [s].
        q: Positions, (samples, joints) [rad | m].
        qd: Velocities [rad/s | m/s]; None if not measured.
        tau: Measured joint forces [N·m | N]; None if not measured.
        command: Commanded joint forces [N·m | N]; None if unknown.
        notes: Sentences on doubtful properties of the samples.

    Raises:
        ShapeError: The arrays do not match each other, or are no numbers.
    """

    names: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None = None
    tau: np.ndarray | None = None
    command: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        samples = _array("t", self.t, 1)
        object.__setattr__(self, "t", samples)
        joints = len(self.names) or _array("q", self.q, 2).shape[1]
        wanted = (len(samples), joints)
        for name in COLUMNS:
            value = getattr(self, name)
            if value is None and name != "q":
                continue
            array = _array(name, value, 2)
            if array.shape != wanted:
                raise ShapeError(name, f"shape {wanted}", f"shape {array.shape}")
            object.__setattr__(self, name, array)

    def without_delay(self, seconds: float) -> JointRecord:
        """Return the record with joint forces shifted to earlier times.

        Both tau and command are shifted. They are interpolated linearly, and constant
        beyond the ends.

        Args:
            seconds: Delay of the joint forces relative to the positions, as in
                `Identification.delay` [s].

        Raises:
            SettingError: The delay is not finite.
        """
        if not np.isfinite(seconds):
            raise SettingError(f"delay {seconds!r}; valid: a number [s]", "seconds")
        moved = {
            name: np.column_stack(
                [np.interp(self.t + seconds, self.t, column) for column in array.T]
            )
            for name in ("tau", "command")
            if (array := getattr(self, name)) is not None
        }
        return replace(self, **moved)  # type: ignore[arg-type]

    def of(self, model: Model) -> JointRecord:
        """Return the columns of a robot's joints, in its order.

        Other columns are left out. A record without names gets the robot's.

        Raises:
            SettingError: A joint of the robot has no column, or more than one.
            ShapeError: The record has no names, and another number of columns.
        """
        joints = model.joint_names
        if not self.names:
            if self.q.shape[1] != len(joints):
                raise ShapeError(
                    "q", f"{len(joints)} columns as '{model.name}' has joints",
                    str(self.q.shape[1]),
                )  # fmt: skip
            return replace(self, names=joints)
        for joint in joints:
            count = self.names.count(joint)
            if count == 1:
                continue
            missing = unknown_name("joint", joint, self.names)
            fault = (
                f"joint '{joint}' is there {count} times; valid: once"
                if count
                else f"{missing}; joints of the robot that were not measured must be"
                " locked"
            )
            raise SettingError(f"the recording, robot '{model.name}': {fault}", joint)
        order = [self.names.index(joint) for joint in joints]
        columns: dict[str, Any] = {
            name: None if value is None else value[:, order]
            for name in COLUMNS
            for value in (getattr(self, name),)
        }
        return replace(self, names=joints, **columns)


def read_record(path: str | os.PathLike[str]) -> JointRecord:
    """Return the record of an NPZ or CSV file.

    Raises:
        SettingError: The file cannot be read, or t, q or a column is missing.
        ShapeError: Arrays do not match each other, or hold no numbers.
    """
    file = Path(path)
    if file.suffix not in FILES:
        raise SettingError(f"{path}: no recording; valid: {', '.join(FILES)}", "file")
    try:
        columns = _of_npz(file) if file.suffix == ".npz" else _of_csv(file)
    except SettingError:
        raise  # names the file
    except ValueError as error:
        kind = file.suffix[1:].upper()
        message = one_line(f"{path}: no {kind} that can be read: {error}")
        raise SettingError(message, "file") from error
    missing = [name for name in ("t", "q") if name not in columns]
    if missing:
        raise SettingError(
            f"{path}: {' and '.join(missing)} missing; valid: t, {', '.join(COLUMNS)}",
            "file",
        )
    return JointRecord(**columns)


def _of_npz(file: Path) -> dict[str, Any]:
    """Return the fields of a record from an NPZ file; other arrays are ignored."""
    columns = npz_arrays(file, "t, q, qd, tau, names", ("t", *COLUMNS, "names"))
    names = np.atleast_1d(columns.pop("names", ())).tolist()
    return {"names": tuple(map(str, names)), **columns}


def _of_csv(file: Path) -> dict[str, Any]:
    """Return the fields of a record from a CSV file; other columns are ignored.

    Raises ValueError if a joint lacks a column of a kind that other joints have.
    """
    _, labels, numbers = csv_table(file)
    header = [_BRACKETS.sub(r"\1.\2", label) for label in labels]
    by_label = dict(zip(header, numbers.T, strict=True))
    names = tuple(x.removeprefix("q.") for x in header if x.startswith("q."))
    columns: dict[str, Any] = {"names": names}
    if "t" in by_label:
        columns["t"] = by_label["t"]
    for kind in COLUMNS:
        labels = [f"{kind}.{name}" for name in names]
        present = [label for label in labels if label in by_label]
        if present and present != labels:
            (first, *_) = [label for label in labels if label not in by_label]
            raise ValueError(f"column {first} is missing, others of its kind are there")
        if present:
            columns[kind] = np.column_stack([by_label[label] for label in labels])
    return columns


def _array(name: str, values: ArrayLike | None, dimensions: int) -> np.ndarray:
    """Return an array of floats with one or two axes.

    Args:
        name: Name of the array, for messages.
        values: Numbers.
        dimensions: Required number of axes, 1 or 2.

    Raises:
        ShapeError: The number of axes is different, or the values are no numbers.
    """
    wanted = "shape (samples,)" if dimensions == 1 else "shape (samples, joints)"
    array = float_array(name, values, wanted)
    if array.ndim != dimensions:
        raise ShapeError(name, wanted, f"shape {array.shape}")
    return array
