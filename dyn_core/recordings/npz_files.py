"""Motions as NPZ: all fields of a MotionRecord, without loss of digits.

Arrays t, q, qd, qdd, tau, command, q_ref, with one row a sample; `names`, `positions`,
`velocities` and their units; `facts`, one string of JSON; `contacts.row`, `.point` and
`.force`; all other arrays with one number for each row are series. A file written by
`numpy.savez("run.npz", t=t, q=q, tau=tau)` can be read, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import why_no_json
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import Coordinates, coordinates_of
from dyn_core.recordings.motion import (
    KINDS,
    MotionRecord,
    named_coordinates,
    numbered_coordinates,
)
from dyn_core.validation import shown
from dyn_core.validation.array_files import npz_arrays

_CONTACTS = "contacts."
# Facts whose content is used, with their types.
_FACTS: dict[str, type] = {
    "notes": list, "effort_limit": list, "settings": dict, "counters": dict,
    "versions": dict, "joints": dict,
}  # fmt: skip
_NAMES = ("positions", "velocities", "position_units", "velocity_units")


def write_npz(record: MotionRecord, file: Path) -> None:
    """Write all fields of a motion; an existing file is replaced."""
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
        model: Robot that names the columns if the file has no names; None: they are
            numbered from 1. It selects no columns.

    Raises:
        SettingError: The file cannot be read.
        ShapeError: The arrays do not match each other.
        ValueError: An array is missing or malformed.
    """
    content = npz_arrays(file, "t, q, qd, qdd, tau, names")
    missing = [name for name in ("t", "q") if name not in content]
    if missing:
        valid = ", ".join(("t", *KINDS))
        raise ValueError(f"{' and '.join(missing)} missing; valid: {valid}")
    columns = {kind: content.pop(kind) for kind in KINDS if kind in content}
    if any(array.ndim != 2 for array in columns.values()):
        name = next(k for k, array in columns.items() if array.ndim != 2)
        shape = columns[name].shape
        raise ValueError(f"{name} has shape {shape}; valid: rows x columns")
    facts = _facts(str(content.pop("facts", "{}")))
    t, notes = content.pop("t"), tuple(map(str, facts.pop("notes", ())))
    coordinates = _coordinates(content, columns, model)
    contacts = _contacts(content)
    series = {
        name: array
        for name, array in content.items()
        if array.ndim == 1 and array.dtype.kind in "fiu" and array.shape == t.shape
    }
    return MotionRecord(
        coordinates, t, **columns, series=series, contacts=contacts, facts=facts,
        notes=notes,
    )  # fmt: skip


def _facts(text: str) -> dict[str, Any]:
    """Return the facts in a JSON string; ValueError if malformed or of wrong type."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"facts are no JSON: {why_no_json(error)}") from error
    if not isinstance(facts, dict):
        raise ValueError(f"facts are {shown(facts)}; valid: an object of JSON")
    for name, kind in _FACTS.items():
        if not isinstance(facts.get(name, kind()), kind):
            valid = "a list" if kind is list else "an object of JSON"
            raise ValueError(f"fact {name} is {shown(facts[name])}; valid: {valid}")
    for limit in facts.get("effort_limit", ()):
        if limit is not None and type(limit) not in (int, float):
            valid = "numbers, or null for none"
            raise ValueError(f"fact effort_limit has {shown(limit)}; valid: {valid}")
    return facts


def _contacts(content: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Remove and return the arrays of contacts; empty if there are none.

    Raises ValueError if one of row, point and force is missing or malformed.
    """
    names = [name for name in content if name.startswith(_CONTACTS)]
    contacts = {name.removeprefix(_CONTACTS): content.pop(name) for name in names}
    if not contacts:
        return {}
    count = len(np.atleast_1d(contacts.get("row", ())))
    shapes = {"row": (count,), "point": (count, 3), "force": (count, 3)}
    for name, shape in shapes.items():
        array = contacts.get(name)
        if array is None or array.shape != shape or array.dtype.kind not in "fiu":
            valid = f"numbers of shape {shape}"
            raise ValueError(f"{_CONTACTS}{name} is missing or wrong; valid: {valid}")
    return contacts


def _labels(content: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    """Remove and return an array of names or units; empty if it is missing.

    Raises ValueError if it has more than one axis.
    """
    array = np.atleast_1d(content.pop(name, ()))
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; valid: a list of names")
    return tuple(map(str, array.tolist()))


def _coordinates(
    content: dict[str, np.ndarray],
    columns: dict[str, np.ndarray],
    model: Model | None,
) -> Coordinates:
    """Return names and units of the columns.

    If the file has no names, the model's are used; without a model, numbers from 1.

    Args:
        content: Arrays of the file; arrays of names are removed.
        columns: Arrays of columns by kind.
        model: Robot or None.

    Raises:
        ValueError: The numbers of names and units differ.
    """
    if all(name in content for name in _NAMES):
        parts = Coordinates(*(_labels(content, name) for name in _NAMES))
        if any(len(parts[k]) != len(parts[k + 2]) for k in range(2)):
            raise ValueError("there are not as many units as positions or velocities")
        return parts
    wide = [columns[x].shape[1] for x in ("qd", "qdd", "tau") if x in columns]
    narrow = columns["q"].shape[1]
    if "names" not in content and model is not None:
        return coordinates_of(model)
    names = _labels(content, "names")
    if names:
        return named_coordinates(names)
    return numbered_coordinates(narrow, wide[0] if wide else narrow)
