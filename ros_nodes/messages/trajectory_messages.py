"""Serialized JointTrajectory messages, read into arrays.

Converted to Python objects, a message takes 20 us per point, during which no other
thread runs. Here all points are read together, in numpy. FIELDS are the positions,
velocities, accelerations and efforts of a point, in this order; each has n numbers, or
none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from dyn_core.control.reference.trajectory import point_rows
from dyn_core.errors import TrajectoryError
from ros_nodes.conversions import TrajectoryArrays

# Byte order of CDR by its first two bytes.
ENCODINGS = {b"\x00\x00": ">", b"\x00\x01": "<"}
FIELDS = ("positions", "velocities", "accelerations", "efforts")


class WireTrajectory(NamedTuple):
    """A trajectory (arguments of make_trajectory) and its start.

    `stamp` [s] is None if it is zero; `efforts` (points, n) [N·m | N], or (points, 0).
    """

    stamp: float | None
    arrays: TrajectoryArrays
    efforts: np.ndarray


class _CdrReader:
    """Reads numbers from CDR data at an advancing position, `place`.

    Alignment counts from the end of the encapsulation header of four bytes. All reading
    methods raise a TrajectoryError if the data is cut off.
    """

    def __init__(self, data: bytes) -> None:
        order = ENCODINGS.get(bytes(data[:2]))
        if order is None:
            raise TrajectoryError("the message is not in plain CDR")
        self.order, self.data, self.place = order, memoryview(data)[4:], 0

    def align(self, size: int) -> None:
        """Advance to the next multiple of `size` bytes, if not at one already."""
        self.place += -self.place % size

    def need(self, size: int) -> None:
        """Raise a TrajectoryError if fewer than `size` bytes follow."""
        if self.place + size > len(self.data):
            raise TrajectoryError("the message is cut off")

    def whole(self, kind: str = "I") -> int:
        """Read an integer of four bytes, aligned to four: "I" unsigned, "i" signed."""
        self.align(4)
        self.need(4)
        (value,) = struct.unpack_from(self.order + kind, self.data, self.place)
        self.place += 4
        return value

    def string(self) -> str:
        """Read a string without its final NUL; invalid UTF-8 is replaced."""
        size = self.whole()
        self.need(size)
        value = bytes(self.data[self.place : self.place + max(size - 1, 0)])
        self.place += size
        return value.decode("utf-8", "replace")

    def doubles(self) -> np.ndarray:
        """Read and return a sequence of float64 numbers, as a view of the data."""
        count = self.whole()
        if not count:
            return np.zeros(0)
        self.align(8)
        self.need(8 * count)
        values = np.frombuffer(self.data, self.order + "f8", count, self.place)
        self.place += 8 * count
        return values

    def point(self) -> tuple[list[np.ndarray], float]:
        """Read and return a point: one array for each of FIELDS, and its time [s]."""
        rows = [self.doubles() for _ in FIELDS]
        return rows, self.whole("i") + 1e-9 * self.whole()


def read_trajectory(data: bytes, most: int) -> WireTrajectory:
    """Return a serialized JointTrajectory (CDR) of at most `most` points as arrays.

    A field without numbers in any point has the shape (points, 0). Names, times and
    values are not checked further.
    """
    reader = _CdrReader(data)
    stamp = reader.whole("i") + 1e-9 * reader.whole()
    reader.string()  # frame_id
    names = [reader.string() for _ in range(_bounded(reader, 4))]
    count = reader.whole()
    if count > most:
        raise TrajectoryError(
            f"{count} points; valid: at most {most} (max_trajectory_points)"
        )
    (*fields, efforts), times = _points(reader, count)
    arrays = TrajectoryArrays(names, times, *fields)
    return WireTrajectory(stamp or None, arrays, efforts)


def _bounded(reader: _CdrReader, size: int) -> int:
    """Read a number of items, of `size` bytes or more; refuse more than can follow."""
    count = reader.whole()
    reader.need(size * count)
    return count


def _points(reader: _CdrReader, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the fields of all points, (points, n or 0) each, and their times [s].

    The reader's position is undefined afterwards.
    """
    start = reader.place
    if count > 2:
        together = _alike(reader, count)
        if together is not None:
            return together
    reader.place = start
    points = [reader.point() for _ in range(count)]
    fields = [
        point_rows(name, [rows[k] for rows, _ in points])
        for k, name in enumerate(FIELDS)
    ]
    return fields, np.array([time for _, time in points], float)


def _alike(
    reader: _CdrReader, count: int
) -> tuple[list[np.ndarray], np.ndarray] | None:
    """Read all points at once if they have equal sizes; else return None.

    From the second point on such points lie at equal distances. None also if the data
    is too short or the points are not aligned alike: then they must be read one by one.
    `count` is 3 or more. The reader's position is undefined afterwards.
    """
    first_rows, first_time = reader.point()
    reader.align(4)
    start = reader.place
    rows, _ = reader.point()
    length = reader.place - start
    # Only with a stride that is a multiple of 8 all points have the same padding.
    if length % 8 or [len(x) for x in rows] != [len(x) for x in first_rows]:
        return None
    if start + length * (count - 1) > len(reader.data):
        return None
    block = np.frombuffer(reader.data, np.uint8, length * (count - 1), start)
    block = block.reshape(count - 1, length)
    fields, place = [], 0
    for first, row in zip(first_rows, rows, strict=True):
        sizes = block[:, place : place + 4].copy().view(reader.order + "u4")
        if (sizes != len(row)).any():
            return None
        place += 4
        if not len(row):
            fields.append(np.zeros((count, 0)))
            continue
        place += -(start + place) % 8
        end = place + 8 * len(row)
        values = block[:, place:end].copy().view(reader.order + "f8")
        fields.append(np.concatenate([first[None], values]))
        place = end
    seconds = block[:, place : place + 4].copy().view(reader.order + "i4")[:, 0]
    nanos = block[:, place + 4 : place + 8].copy().view(reader.order + "u4")[:, 0]
    times = np.concatenate([[first_time], seconds + 1e-9 * nanos])
    return [np.asarray(x, float) for x in fields], times
