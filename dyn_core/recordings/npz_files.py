"""Motions as NPZ: everything that a MotionRecord holds, to the last bit.

Arrays t, q, qd, qdd, tau, command, q_ref, with one row a sample; `names`, `positions`,
`velocities` and their units; `facts`, one string of JSON; `contacts.row`, `.point` and
`.force`; all others with a number for each row are series. What
`numpy.savez("run.npz", t=t, q=q, tau=tau)` writes is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.model.coordinates.labels import Coordinates, coordinates_of
from dyn_core.recordings.motion import KINDS, MotionRecord, named_coordinates

_CONTACTS = "contacts."
_NAMES = ("positions", "velocities", "position_units", "velocity_units")


def write_npz(record: MotionRecord, file: Path) -> None:
    """Write a motion with all that is known of it."""
    arrays: dict[str, Any] = {"t": record.t, "names": np.array(record.names("qd"))}
    for kind in KINDS:
        if getattr(record, kind) is not None:
            arrays[kind] = getattr(record, kind)
    for name, labels in zip(_NAMES, record.coordinates, strict=True):
        arrays[name] = np.array(labels)
    arrays |= {_CONTACTS + name: array for name, array in record.contacts.items()}
    facts = {**record.facts, "notes": list(record.notes)}
    arrays["facts"] = np.array(json.dumps(facts, ensure_ascii=False))
    with file.open("wb") as output:
        np.savez(output, **{**arrays, **record.series})


def read_npz(file: Path, model: Model | None = None) -> MotionRecord:
    """Return the motion of an NPZ file.

    Args:
        file: Path.
        model: Robot whose order the columns have where the file has no names.

    Raises:
        ValueError: It holds one array, or t or q is missing.
    """
    arrays = np.load(file, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        raise ValueError("it holds one array; valid: t, q, qd, qdd, tau, names")
    with arrays:
        content = {name: arrays[name] for name in arrays.files}
    missing = [name for name in ("t", "q") if name not in content]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing; valid: {', '.join(KINDS)}")
    columns = {kind: content.pop(kind) for kind in KINDS if kind in content}
    if any(array.ndim != 2 for array in columns.values()):
        name = next(k for k, array in columns.items() if array.ndim != 2)
        shape = columns[name].shape
        raise ValueError(f"{name} has shape {shape}; valid: rows x columns")
    facts = json.loads(str(content.pop("facts", "{}")))
    t, notes = content.pop("t"), tuple(map(str, facts.pop("notes", ())))
    coordinates = _coordinates(content, columns, model)
    contacts = {
        name.removeprefix(_CONTACTS): content.pop(name)
        for name in list(content)
        if name.startswith(_CONTACTS)
    }
    series = {
        name: array
        for name, array in content.items()
        if array.ndim == 1 and array.dtype.kind in "fiu" and len(array) == len(t)
    }
    return MotionRecord(
        coordinates, t, **columns, series=series, contacts=contacts, facts=facts,
        notes=notes,
    )  # fmt: skip


def _coordinates(
    content: dict[str, np.ndarray],
    columns: dict[str, np.ndarray],
    model: Model | None,
) -> Coordinates:
    """Return the names of the columns; those of the robot where a file has none."""
    if all(name in content for name in _NAMES):
        parts = [tuple(map(str, content.pop(name).tolist())) for name in _NAMES]
        return Coordinates(*parts)
    wide = [columns[x].shape[1] for x in ("qd", "qdd", "tau") if x in columns]
    narrow = columns["q"].shape[1]
    if "names" not in content and model is not None:
        return coordinates_of(model)
    names = tuple(map(str, np.atleast_1d(content.pop("names", ())).tolist()))
    positions = named_coordinates(names or [str(k + 1) for k in range(narrow)])
    others = names or [str(k + 1) for k in range(wide[0] if wide else narrow)]
    velocities = named_coordinates(others)
    return Coordinates(
        positions.positions, velocities.velocities,
        positions.position_units, velocities.velocity_units,
    )  # fmt: skip
