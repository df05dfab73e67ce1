"""Motions as CSV: a line of units, a line of names, a line for each row.

    # units: s,rad,rad,N·m,N·m
    t,q[joint1],q[joint2],tau[joint1],tau[joint2]
    0.0,0.1,0.2,1.5,0.25

Columns may be in any order, and `q.joint1` is read as `q[joint1]`. The line of units is
optional; an unknown unit is an error. Numbers have enough digits to restore the same
bits; an empty cell is a missing number (NaN).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model.coordinates.labels import Coordinates
from dyn_core.recordings.motion import (
    FORCE_UNITS,
    KINDS,
    POSITIONS,
    SUFFIXES,
    VELOCITIES,
    MotionRecord,
    named_coordinates,
)
from dyn_core.recordings.progress import RowProgress
from dyn_core.validation.array_files import csv_table

_LABEL = re.compile(rf"({'|'.join(KINDS)})(?:\[(.*)\]|\.(.*))", re.DOTALL)
_UNITS = "# units:"
_CHUNK = 10_000  # number of rows written at once


def write_csv(record: MotionRecord, file: Path, bar: RowProgress) -> None:
    """Write times and columns of a motion.

    Series, contacts, facts and notes are omitted.

    Args:
        record: Motion.
        file: Path; an existing file is replaced.
        bar: Progress of the rows.

    Raises:
        SettingError: The name of a column has characters that cannot be printed.
    """
    for name in (*record.names("q"), *record.names("qd")):
        if not name.isprintable():
            raise SettingError(f"{file}: CSV has no name like {name!r}", "file")
    labels, units, arrays = ["t"], ["s"], [record.t[:, None]]
    for kind in KINDS:
        array = getattr(record, kind)
        if array is not None:
            labels += [f"{kind}[{name}]" for name in record.names(kind)]
            units += record.units(kind)
            arrays.append(array)
    with file.open("w", newline="", encoding="utf-8") as lines:
        lines.write(f"{_UNITS} {','.join(units)}\n")
        csv.writer(lines, lineterminator="\n").writerow(labels)
        for start in range(0, len(record.t), _CHUNK):
            rows = np.hstack([x[start : start + _CHUNK] for x in arrays]).tolist()
            lines.writelines(
                ",".join("" if x != x else repr(x) for x in row) + "\n" for row in rows
            )
            bar.show(start + len(rows))


def read_csv(file: Path) -> MotionRecord:
    """Return the motion of a CSV file; columns with other labels are ignored.

    Raises:
        ValueError: Times or positions are missing, a column is missing or repeated, or
            a unit is unknown.
        SettingError: The file is not a table of numbers; names row and column.
    """
    units, labels, numbers = csv_table(file)
    columns: dict[str, dict[str, np.ndarray]] = {}
    units_by_name: dict[str, dict[str, str]] = {}
    for k, (label, column) in enumerate(zip(labels, numbers.T, strict=True)):
        match = _LABEL.fullmatch(label)
        if match is None:
            continue
        kind, name = match[1], match[2] if match[2] is not None else match[3]
        if name in columns.setdefault(kind, {}):
            raise ValueError(f"column {label} is there twice")
        columns[kind][name] = column
        if units:
            units_by_name.setdefault(kind, {})[name] = _own_unit(kind, units[k], label)
    missing = [x for x in ("t", "q") if x not in (*columns, *labels)]
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} missing; valid: columns t, q[JOINT], qd[JOINT],"
            f" qdd[JOINT], tau[JOINT]; there are: {', '.join(labels[:12])}"
        )
    return _record(numbers[:, labels.index("t")], columns, units_by_name)


def _record(
    t: np.ndarray,
    columns: dict[str, dict[str, np.ndarray]],
    units: dict[str, dict[str, str]],
) -> MotionRecord:
    """Return the motion of columns, grouped by kind and name.

    Args:
        t: Times, (rows,) [s].
        columns: Columns, (rows,) each, by kind (q, qd, ...) and by name.
        units: Coordinate units by kind and name.

    Raises:
        ValueError: A kind lacks a column that the others have.
    """
    positions = tuple(columns["q"])
    wide = next((tuple(columns[x]) for x in VELOCITIES if x in columns), positions)
    coordinates = named_coordinates(positions)._replace(velocities=wide)
    arrays: dict[str, Any] = {}
    for kind, by_name in columns.items():
        names = coordinates.positions if kind in POSITIONS else coordinates.velocities
        for name in names:
            if name not in by_name:
                raise ValueError(
                    f"column {kind}[{name}] is missing, others of its kind are there"
                )
        arrays[kind] = np.column_stack([by_name[name] for name in names])
    return MotionRecord(_with_units(coordinates, units), t, **arrays)


def _with_units(
    coordinates: Coordinates, units: dict[str, dict[str, str]]
) -> Coordinates:
    """Return coordinates with the units of a file; "rad | m" where it has none.

    `units`: coordinate units by kind and name.
    """
    of_q, unknown = units.get("q", {}), "rad | m"
    of_v = next((units[x] for x in VELOCITIES if x in units), of_q)
    return coordinates._replace(
        position_units=tuple(of_q.get(x, unknown) for x in coordinates.positions),
        velocity_units=tuple(of_v.get(x, unknown) for x in coordinates.velocities),
    )


def _own_unit(kind: str, unit: str, label: str) -> str:
    """Return the coordinate's unit, rad, m or 1, derived from a column's unit.

    Args:
        kind: Kind of the column, such as qd.
        unit: Unit in the file, such as rad/s.
        label: Label of the column, for messages.

    Raises:
        ValueError: The unit is unknown.
    """
    if kind not in SUFFIXES:
        bases = {force: base for base, force in FORCE_UNITS.items()}
        base = (bases | {"N·m | N": "rad | m"}).get(unit, "")
        valid = ", ".join(bases)
    else:
        suffix = SUFFIXES[kind]
        known = {f"{x}{suffix}": x for x in ("rad", "m", "1")}
        known[f"rad{suffix} | m{suffix}"] = "rad | m"
        base, valid = known.get(unit, ""), ", ".join([*known][:-1])
    if not base:
        raise ValueError(f"column {label} has the unit {unit!r}; valid: {valid}")
    return base
