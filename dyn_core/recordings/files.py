"""Files of motions, by file extension: NPZ, CSV, ROS 2 bags.

Arrays t, q, qd, qdd, tau, command, q_ref, with one row a sample; `names`, `positions`,
`velocities` and their units; `facts`, one string of JSON; `contacts.row`, `.point` and
`.force`; all other arrays with one number for each row are series. A file written by
`numpy.savez("run.npz", t=t, q=q, tau=tau)` can be read, too.

    # units: s,rad,rad,N·m,N·m
    t,q[joint1],q[joint2],tau[joint1],tau[joint2]
    0.0,0.1,0.2,1.5,0.25

Columns may be in any order, and `q.joint1` is read as `q[joint1]`. The line of units is
optional; an unknown unit is an error, and times are in s. Numbers have enough digits to
restore the same bits; an empty cell is a missing number (NaN).
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import (
    DynError,
    SettingError,
    ShapeError,
    one_line,
    unknown_name,
    warn,
    why_no_json,
)
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot, in_degrees
from dyn_core.model.coordinates.labels import Coordinates, coordinates_of
from dyn_core.recordings import bags
from dyn_core.recordings.bags import read_bag, write_bag
from dyn_core.recordings.motion import (
    FORCE_UNITS,
    KINDS,
    POSITIONS,
    SUFFIXES,
    VELOCITIES,
    MotionRecord,
    motion_of,
    named_coordinates,
    numbered_coordinates,
    unused_joints,
)
from dyn_core.recordings.progress import RowProgress
from dyn_core.recordings.recording import Recording
from dyn_core.validation import known_keywords, shown, writing
from dyn_core.validation.array_files import csv_table, npz_arrays
from dyn_core.validation.file_names import check_file_name, file_kind

_LABEL = re.compile(rf"({'|'.join(KINDS)})(?:\[(.*)\]|\.(.*))", re.DOTALL)
_FOREIGN = re.compile(r"([^][.]+)(?:\[(.*)\]|\.(.*))", re.DOTALL)
_UNITS = "# units:"
_CHUNK = 10_000  # number of rows written at once


def write_csv(record: MotionRecord, file: Path, bar: RowProgress) -> None:
    """Write times and columns of a motion, below a line of units and one of labels.

    Series, contacts, facts and notes are omitted. After t, columns are in the order q,
    qd, qdd, tau, command, q_ref; NaN becomes an empty cell.
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

    Units are stored with the coordinates, "rad | m" without a line of units; no number
    is converted. A DynWarning names columns WORD[JOINT] of a joint that has positions,
    if WORD is no kind. ValueError: Times or positions are missing, a column is missing
    or repeated, or a unit is unknown.
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
    missing = [x for x in ("t",) if x not in labels]
    missing += [x for x in ("q",) if x not in columns]
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} missing; valid: columns t, q[JOINT], qd[JOINT],"
            f" qdd[JOINT], tau[JOINT]; there are: {', '.join(labels[:12])}"
        )
    first = labels.index("t")
    if units and units[first] != "s":
        raise ValueError(f"column t has the unit {units[first]!r}; valid: s")
    record = _record(numbers[:, first], columns, units_by_name)
    _warn_of_foreign(file, labels, record.names("q"))
    return record


def _warn_of_foreign(file: Path, labels: list[str], joints: tuple[str, ...]) -> None:
    """Issue a DynWarning for each unknown WORD of columns WORD[JOINT] or WORD.JOINT."""
    foreign: dict[str, list[str]] = {}
    for label in labels:
        match = _FOREIGN.fullmatch(label)
        if match and match[1] not in KINDS and (match[2] or match[3]) in joints:
            foreign.setdefault(match[1], []).append(label)
    for word, columns in foreign.items():
        unknown = unknown_name("kind of column", word, KINDS)
        warn(one_line(f"{file}: {unknown}; not read: {', '.join(columns)}"))


def _record(
    t: np.ndarray,
    columns: dict[str, dict[str, np.ndarray]],
    units: dict[str, dict[str, str]],
) -> MotionRecord:
    """Return the motion of columns (rows,), by kind (q, qd, ...; q is needed) and name.

    Positions have the order of the q columns; velocities the order of the first kind of
    qd, qdd, tau and command that is there, else of q. Columns of other kinds with names
    that this kind lacks are left out; columns of this kind that others lack are a
    ValueError.
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
    """Return the coordinates with the units of a file; "rad | m" where it has none.

    Position units are those of q. Velocity units are those of the first kind of qd,
    qdd, tau and command that has units, else of q.
    """
    of_q, unknown = units.get("q", {}), "rad | m"
    of_v = next((units[x] for x in VELOCITIES if x in units), of_q)
    return coordinates._replace(
        position_units=tuple(of_q.get(x, unknown) for x in coordinates.positions),
        velocity_units=tuple(of_v.get(x, unknown) for x in coordinates.velocities),
    )


def _own_unit(kind: str, unit: str, label: str) -> str:
    """Return the coordinate's unit, derived from a column's unit such as rad/s.

    It is rad, m, 1 (not for joint forces), or "rad | m" if the file leaves it open, as
    in "rad/s | m/s". ValueError: a column of this kind cannot have the unit.
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


_CONTACTS = "contacts."
# Facts whose content is used, with their types.
_FACTS: dict[str, type] = {
    "notes": list, "settings": dict, "counters": dict, "versions": dict, "joints": dict,
    "effort_limit": list, "lower_limit": list, "upper_limit": list,
    "robot_files": dict,
}  # fmt: skip
_NPZ_UNITS = ("rad", "m", "1", "rad | m")
_NAMES = ("positions", "velocities", "position_units", "velocity_units")


def write_npz(record: MotionRecord, file: Path) -> None:
    """Write all fields of a motion as NPZ; an existing file is overwritten."""
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

    Other arrays with one number for each row are series, else ignored; a DynWarning
    names those with the shape of joint values. `model` names the columns if the file
    has no names, else they are numbered from 1; it selects none. ValueError: t or q is
    missing, or an array malformed. ShapeError: The arrays do not match each other, or
    not the names.
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
    widths = {array.shape[1] for array in columns.values()}
    for name, array in content.items():
        if array.shape in {(len(t), width) for width in widths if t.ndim}:
            unknown = unknown_name("kind of array", name, KINDS)
            warn(one_line(f"{file}: {unknown}; it is not read"))
    return MotionRecord(
        coordinates, t, **columns, series=series, contacts=contacts, facts=facts,
        notes=notes,
    )  # fmt: skip


def _facts(text: str) -> dict[str, Any]:
    """Return the facts in a JSON string, checked (ValueError), a dict of any names."""
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
    for name in ("effort_limit", "lower_limit", "upper_limit"):
        for limit in facts.get(name, ()):
            if limit is not None and type(limit) not in (int, float):
                valid = "numbers, or null for none"
                raise ValueError(f"fact {name} has {shown(limit)}; valid: {valid}")
    return facts


def _contacts(content: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Remove the arrays of contacts from `content` and return them; {} without any.

    The keys of the result are row (count,), point and force (count, 3), and any other
    name that begins with contacts. in the file. ValueError: one of the three does not
    fit.
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
    """Remove the array `name` from `content`; return its entries as strings, or ()."""
    array = np.atleast_1d(content.pop(name, ()))
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; valid: a list of names")
    return tuple(map(str, array.tolist()))


def _coordinates(
    content: dict[str, np.ndarray],
    columns: dict[str, np.ndarray],
    model: Model | None,
) -> Coordinates:
    """Return names and units of the columns; remove used arrays of names from content.

    They are the arrays `positions`, `velocities` and their units in the file. Without
    these, the names are the array `names`, else those of the model (with its units),
    else numbers from 1; units are then "rad | m". ValueError: the arrays are not valid.
    """
    if all(name in content for name in _NAMES):
        parts = Coordinates(*(_labels(content, name) for name in _NAMES))
        if any(len(parts[k]) != len(parts[k + 2]) for k in range(2)):
            raise ValueError("there are not as many units as positions or velocities")
        for name, units in zip(_NAMES[2:], parts[2:], strict=True):
            unknown = next((x for x in units if x not in _NPZ_UNITS), None)
            if unknown is not None:
                valid = ", ".join(_NPZ_UNITS)
                raise ValueError(f"{name} has {shown(unknown)}; valid: {valid}")
        return parts
    wide = [columns[x].shape[1] for x in ("qd", "qdd", "tau") if x in columns]
    narrow = columns["q"].shape[1]
    if "names" not in content and model is not None:
        return coordinates_of(model)
    names = _labels(content, "names")
    if names:
        return named_coordinates(names)
    return numbered_coordinates(narrow, wide[0] if wide else narrow)


WRITTEN = (*bags.TABLES, ".mcap")


@known_keywords
def read_motion(
    path: str | os.PathLike[str],
    model: Model | None = None,
    joint_states: str = "",
    commands: str = "",
) -> MotionRecord:
    """Return the motion of a file.

    Args:
        path: NPZ or CSV file, or file (.mcap, .db3, .bag) or folder of a bag.
        model: Robot whose columns are required, in its order; other columns are left
            out. A DynWarning names recorded joints that the robot does not move, and a
            joint whose positions look like degrees. None: all columns, without these
            warnings. Columns of a CSV that are of no kind are named in any case.
        joint_states: Topic of a bag; empty: joint_states, or the only JointState topic.
        commands: Topic of a bag; empty: the only Float64MultiArray topic called
            commands, if there is one.

    Raises:
        SettingError: The file cannot be read, its content or extension is not valid, or
            a column is missing or repeated; columns without names, or called 1, 2, ...,
            are not as many as the robot's; or a topic is given for an NPZ or CSV file.
        ShapeError: Arrays of a bag do not match each other.
        UnsupportedError: The file is a bag, and rosbags is not installed; or `model` is
            no robot.
    """
    file = Path(path)
    if model is not None:
        check_robot(model, "read_motion")
    if file.suffix in bags.TABLES and file_kind(file) != "folder":
        if joint_states or commands:
            option = "--joint-states" if joint_states else "--commands"
            message = f"{path}: {option} changes nothing; valid: a bag, with topics"
            raise SettingError(message, "file")
        record = _read(file, model)
    else:
        joints = () if model is None else model.joint_names
        record = read_bag(file, joint_states, commands, joints)
    if model is None:
        return record
    try:
        record = record.named_by(model)
        unused, record = unused_joints(record, model), record.of(model)
    except ShapeError as error:
        raise SettingError(one_line(f"{path}: {error}"), "file") from error
    for doubt in filter(None, (unused, in_degrees(model, "q", record.q))):
        warn(one_line(f"{path}: {doubt}"))
    return record


def is_recording(name: str) -> bool:
    """Return whether a path may be a recorded run: a file, or the folder of a bag.

    The extension .npz, .csv, .mcap, .db3 or .bag in lower case is enough; a folder has
    a metadata.yaml.
    """
    path = Path(name)
    return path.suffix in (*bags.TABLES, *bags.BAGS) or (
        file_kind(path / "metadata.yaml") == "file"
    )


def _read(file: Path, model: Model | None) -> MotionRecord:
    """Return the motion of an .npz or .csv file, with all its columns.

    The model names the columns of an NPZ file without names; it selects none.
    """
    kind = file.suffix[1:].upper()
    try:
        return read_npz(file, model) if kind == "NPZ" else read_csv(file)
    except SettingError:
        raise  # names the file
    except DynError as error:
        raise SettingError(one_line(f"{file}: {error}"), "file") from error
    except ValueError as error:
        message = one_line(f"{file}: no {kind} that can be read: {error}")
        raise SettingError(message, "file") from error


def check_output(path: str, option: str = "out") -> None:
    """Check the name of a file to be written, before its content is computed.

    Extensions are .npz, .csv and .mcap. `option` is the command option for messages,
    without dashes; empty: none.
    """
    check_file_name(path, WRITTEN, option, f"--{option}" if option else "file")
    if Path(path).suffix == ".mcap":
        bags.rosbags()


@known_keywords
def write_motion(
    record: MotionRecord | Recording,
    path: str | os.PathLike[str],
    progress: bool = False,
) -> None:
    """Write a motion; if that fails, no file is left behind or changed.

    NPZ holds everything; CSV times and columns; MCAP joint states and accelerations.

    Args:
        record: Motion, with times that are finite for MCAP; or a Recording, which is
            written as by its `save`, without progress.
        path: Name with the extension .npz, .csv or .mcap; an existing file is replaced.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: The name or folder is invalid, the file cannot be written, CSV
            cannot represent the name of a column, or MCAP a time.
        UnsupportedError: MCAP cannot represent the joints, or rosbags is not installed;
            or `record` is no motion.
        NonFiniteError: A time is not finite, for MCAP.
        TypeError: A fact has no type of JSON, for NPZ.
    """
    if isinstance(record, Recording):
        record.save(path)
        return
    motion_of(record, "write_motion")
    file, bar = Path(path), RowProgress(len(record.t), progress)
    check_output(os.fspath(path), "")
    if file.suffix == ".mcap":
        with writing(file):
            write_bag(record, file, bar)
        bar.end()
        return
    with writing(file):
        descriptor, name = tempfile.mkstemp(prefix=".dyn_", dir=file.parent)
        os.close(descriptor)
        work = Path(name)
        try:
            if file.suffix == ".npz":
                write_npz(record, work)
            else:
                write_csv(record, work, bar)
                bar.end()
            # mkstemp creates files that only their owner can read.
            work.chmod(0o666 & ~_umask())
            work.replace(file)
        finally:
            work.unlink(missing_ok=True)


def _umask() -> int:
    """Return the umask of the process, which is 0 for an instant and restored."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
