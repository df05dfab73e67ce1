"""JointTrajectory messages in files, as `ros2 topic echo` prints them or as JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.control.reference.goal_requests import TrajectoryRows
from dyn_core.control.reference.trajectory import Trajectory
from dyn_core.errors import ModelError, why_no_json, why_unread
from dyn_core.recordings.files import is_recording
from dyn_core.validation import (
    REQUIRED,
    Field,
    ListOf,
    Name,
    Table,
    Whole,
    dump_yaml,
    numbers,
    read_yaml,
    refuse,
)

SIZE = 100_000_000  # largest file [byte]; for YAML the reader has a lower limit
_NANO = 999_999_999


def _instant(name: str, default: Any = None) -> Field:
    """Return the Field of a time, a table with sec and nanosec, both 0 by default."""
    sec = Field("sec", Whole(-(2**31), 2**31 - 1), "whole seconds", "s", 0)
    nanosec = Field("nanosec", Whole(0, _NANO), "the rest", "ns", 0)
    table = Table(sec, nanosec)
    table.valid += ': 2.5 s are {"sec": 2, "nanosec": 500000000}'
    return Field(name, table, "time", "", default)


_ROWS = ("positions", "velocities", "accelerations", "effort")
POINT = Table(
    *(Field(name, numbers(), "one number for each joint") for name in _ROWS),
    _instant("time_from_start", REQUIRED),
)
MESSAGE = Table(
    Field("header", Table(_instant("stamp"), Field("frame_id", Name(), "frame")), ""),
    Field("joint_names", ListOf(Name(), least=1), "joints", "", REQUIRED),
    Field("points", ListOf(POINT, least=1), "points", "", REQUIRED),
)


def read_trajectories(path: str | Path) -> list[dict[str, Any]]:
    """Return the JointTrajectory messages of a file, checked, as mappings.

    The keys are the fields of the message; optional fields that are absent stay absent.
    A file that ends with .json has one message. All other files are YAML, with messages
    separated by lines of `---`; each has at most 1 MB and 20 000 values.
    """
    content = _content(path)
    if str(path).endswith(".json"):
        try:
            documents = [json.loads(content)]
        except (ValueError, RecursionError) as error:
            reason = why_no_json(error)
            raise ModelError(f"{path}: not JSON: {reason}") from error
    else:
        parts = re.split(r"^---[ \t]*$", content, flags=re.MULTILINE)
        texts = [part for part in parts if part.strip()]
        documents = [read_yaml(f"{x}\n", "trajectory", str(path))[0] for x in texts]
    if not documents:
        refuse(str(path), None, MESSAGE.valid)
    return [MESSAGE.read(str(path), document) for document in documents]


def _content(path: str | Path) -> str:
    """Return the content of a UTF-8 file, without a byte-order mark."""
    if os.path.exists(path) and is_recording(str(path)):
        raise ModelError(
            f"{path} is a recording, no trajectory; valid: a JointTrajectory as JSON or"
            " YAML, as dyn excite -o FILE.json writes it"
        )
    try:
        with Path(path).open("rb") as file:
            content = file.read(SIZE + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = why_unread(error)
        raise ModelError(f"cannot read the trajectory {path}: {reason}") from error
    if len(content) > SIZE:
        raise ModelError(f"{path}: larger than {SIZE} bytes; valid: less")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start + 1} is not UTF-8"
        raise ModelError(message) from error


def message_rows(message: Mapping[str, Any]) -> TrajectoryRows:
    """Return the names, times (points,) [s] and rows of a checked message.

    Positions, velocities, accelerations and effort are lists with a row for each point:
    numbers in the order of the names; a point without a field has an empty row.
    """
    points = message["points"]
    stamps = [point["time_from_start"] for point in points]
    rows = ([point.get(name, ()) for point in points] for name in _ROWS)
    times = np.array([x.get("sec", 0) + 1e-9 * x.get("nanosec", 0) for x in stamps])
    return TrajectoryRows(message["joint_names"], times, *rows)


def filled(message: Mapping[str, Any], trajectory: Trajectory) -> dict[str, Any]:
    """Return a new message with the points of a trajectory in place of its own.

    The trajectory's columns are in the order of the names of `message`; its arrays that
    are None become empty lists.
    """
    kinds = zip(
        _ROWS,
        (trajectory.q, trajectory.qd, trajectory.qdd, trajectory.effort),
        strict=True,
    )
    rows = {name: None if x is None else x.tolist() for name, x in kinds}
    points = []
    for k, t in enumerate(trajectory.times.tolist()):
        point: dict[str, Any] = {
            name: [] if x is None else x[k] for name, x in rows.items()
        }
        sec, nanosec = instant(t)
        points.append({**point, "time_from_start": {"sec": sec, "nanosec": nanosec}})
    header = {"header": message["header"]} if "header" in message else {}
    return {**header, "joint_names": list(message["joint_names"]), "points": points}


def instant(t: float) -> tuple[int, int]:
    """Return a time [s] as seconds, rounded down, and nanoseconds, 0 to 999 999 999."""
    return divmod(round(t * 1e9), 10**9)


def written(messages: list[dict[str, Any]], as_json: bool) -> str:
    """Return messages, at least one, as JSON (of one only), or as YAML with `---`."""
    if not as_json:
        dumped = (dump_yaml(x, default_flow_style=None, width=10**6) for x in messages)
        return "---\n".join(dumped)
    if len(messages) > 1:
        what = f"{len(messages)} messages in one JSON file"
        raise ModelError(f"{what}; valid: one, or a file that ends with .yaml")
    return json.dumps(messages[0]) + "\n"
