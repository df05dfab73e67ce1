"""Motions, joint states and commands in ROS 2 bags, by rosbags; without ROS.

Positions, velocities and joint forces are the messages of /joint_states, and are
restored bit by bit; times are stamps in whole nanoseconds that begin at one second.
Accelerations, which a JointState lacks, are the points of /joint_accelerations
(trajectory_msgs/JointTrajectory, one point a message).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import (
    DynError,
    SettingError,
    UnsupportedError,
    one_line,
    unknown_name,
    why_unread,
)
from dyn_core.recordings.motion import MotionRecord, refuse_not_finite
from dyn_core.recordings.progress import RowProgress
from dyn_core.validation.file_names import file_kind

_FIRST = 1.0  # stamp of the first row, since zero means none [s]
_LAST = 2**31 - 1  # limit of stamps, whose seconds are an int32 [s]
ACCELERATIONS = "/joint_accelerations"
POINTS = "trajectory_msgs/msg/JointTrajectory"


def read_bag(
    path: Path, joint_states: str = "", commands: str = "", joints: Sequence[str] = ()
) -> MotionRecord:
    """Return the motion in a bag, with accelerations if each row has them.

    Args:
        joint_states: Topic of the joint states; empty: joint_states, or the only
            JointState topic.
        commands: Topic of the commands; empty: the only Float64MultiArray topic called
            commands, if there is one.
        joints: Names of the required joints, in the order of the columns and of the
            commands; empty: the joints of the first message.

    Rows are in the order of arrival; times are stamps, or times of arrival if a stamp
    is missing, less that of the first row. Messages in which a joint is missing or
    repeated are left out with a note, as are accelerations that do not match the joint
    states, and all commands if one has another size than the joints.
    """
    with opened(path) as bag:
        record = joint_motion(bag, joint_states, commands, joints)
        if ACCELERATIONS not in bag.topics(POINTS):
            return record
        messages = [message for _, message in bag.messages(POINTS, ACCELERATIONS)]
    try:
        return replace(record, qdd=_accelerations(messages, record))
    except ValueError as error:
        notes = f"{ACCELERATIONS} is left out: {error}"
        return replace(record, notes=(*record.notes, notes))


def _accelerations(messages: Sequence[Any], record: MotionRecord) -> np.ndarray:
    """Return the accelerations of a record's rows and joints, (rows, joints).

    The messages are one JointTrajectory for each row, in order; their stamps are not
    compared. ValueError: they do not fit the record.
    """
    if len(messages) != len(record.t):
        raise ValueError(f"{len(messages)} messages for {len(record.t)} joint states")
    rows = []
    for number, message in enumerate(messages, 1):
        names = list(message.joint_names)
        missing = [name for name in record.names("qd") if name not in names]
        if missing:
            raise ValueError(f"message {number} lacks joint {missing[0]}")
        sizes = [len(point.accelerations) for point in message.points]
        if sizes != [len(names)]:
            listed = ", ".join(map(str, sizes)) or "no point"
            raise ValueError(
                f"message {number} has {listed} accelerations for {len(names)} joints;"
                " valid: one point with one for each"
            )
        order = [names.index(name) for name in record.names("qd")]
        rows.append(np.asarray(message.points[0].accelerations, float)[order])
    return np.array(rows).reshape(len(rows), -1)


def check_joints(record: MotionRecord, path: Path) -> None:
    """Check that each joint of a motion has one coordinate, as a JointState requires.

    The names of the columns decide: no two are JOINT.0 and JOINT.1, and velocities have
    the names of positions.
    """
    names = record.names("q")
    wide = [x.removesuffix(".0") for x in names if x.endswith(".0")]
    wide = [x for x in wide if f"{x}.1" in names]
    if wide or names != record.names("qd"):
        raise UnsupportedError(
            f"{path}: joint states of ROS have one coordinate for each joint;"
            f" {', '.join(wide) or 'some joint'} has more; valid: .npz, .csv"
        )


def write_bag(record: MotionRecord, path: Path, bar: RowProgress) -> None:
    """Write t, q, qd, qdd and tau of a motion as one MCAP file, or as a bag folder.

    `path` is NAME.mcap, replaced if it exists, or a folder, empty if it exists. A time
    over 1 s before the first, or over 68 years after it, is refused. After any error no
    new file is left behind, and an existing NAME.mcap is unchanged.
    """
    check_joints(record, path)
    refuse_not_finite("t", record.t[:, None], [""])
    stamps = record.t - record.t[:1] + _FIRST
    for k in np.flatnonzero((stamps < 0) | (stamps >= _LAST)):
        raise SettingError(
            f"row {k + 1}: t = {record.t[k]:.9g} s; valid: at most {_FIRST:g} s before"
            " row 1, and 68 years after it",
            "t",
        )
    library = rosbags()
    # In the same folder, so that the finished bag appears by one rename.
    work = Path(tempfile.mkdtemp(prefix=".dyn_bag_", dir=path.parent))
    folder = work / path.stem
    try:
        kind = library.rosbag2.StoragePlugin.MCAP
        with library.rosbag2.Writer(folder, version=9, storage_plugin=kind) as writer:
            _write(library.typesys, writer, record, bar)
        if path.suffix == ".mcap":
            (folder / f"{folder.name}.mcap").replace(path)
        else:
            folder.replace(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(library: Any, writer: Any, record: MotionRecord, bar: RowProgress) -> None:
    """Write the messages of all rows to an open bag.

    Times begin at 1 s with the first row. Each row is a JointState in /joint_states,
    with empty velocities or efforts if the motion has none, and a JointTrajectory in
    /joint_accelerations if the motion has accelerations. All else is not written. Times
    are not checked here.
    """
    store = library.get_typestore(library.Stores.ROS2_JAZZY)
    types = store.types
    names, none = list(record.names("q")), np.zeros(0)
    states = writer.add_connection("/joint_states", STATES, typestore=store)
    points = None
    if record.qdd is not None:
        points = writer.add_connection(ACCELERATIONS, POINTS, typestore=store)
    duration = types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    for k, t in enumerate(record.t - record.t[0] if len(record.t) else ()):
        nanoseconds = round(1e9 * (float(t) + _FIRST))
        second, rest = divmod(nanoseconds, 10**9)
        stamp = types["builtin_interfaces/msg/Time"](sec=second, nanosec=rest)
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
        # Copies, because rosbags writes no row of an array whose columns were sorted.
        q, qd, tau = (
            none if x is None else x[k].copy()
            for x in (record.q, record.qd, record.tau)
        )
        message = types[STATES](header, names, q, qd, tau)
        data = store.serialize_cdr(message, STATES)
        writer.write(states, nanoseconds, data)
        bar.show(k + 1)
        if points is not None and record.qdd is not None:
            point = types["trajectory_msgs/msg/JointTrajectoryPoint"](
                none, none, record.qdd[k].copy(), none, duration
            )
            message = types[POINTS](header, names, [point])
            writer.write(points, nanoseconds, store.serialize_cdr(message, POINTS))


STATES = "sensor_msgs/msg/JointState"
ARRAY = "std_msgs/msg/Float64MultiArray"
BAGS = (".mcap", ".db3", ".bag")
TABLES = (".npz", ".csv")  # files of a recording that are no bags


def rosbags() -> Any:
    """Return the package rosbags, with the modules that are used here imported."""
    try:
        import rosbags.highlevel
        import rosbags.rosbag2
        import rosbags.typesys
    except ImportError as error:
        raise UnsupportedError(
            f"bags need the library rosbags ({error}): pip install 'dyn_ros[bags]'"
        ) from error
    return rosbags


@contextmanager
def opened(file: Path) -> Iterator[Bag]:
    """Open a bag as a context manager that returns a Bag and closes it at the end.

    Errors inside the `with` block that are no DynError become a SettingError.
    """
    _check_place(file)
    library = rosbags()
    try:
        with library.highlevel.AnyReader([file]) as reader:
            yield Bag(reader, str(file))
    except DynError:
        raise
    except OSError as error:
        raise SettingError(f"{file}: {why_unread(error)}", "file") from error
    except Exception as error:  # rosbags raises many types on damaged files
        spoken = type(error).__module__.partition(".")[0] in ("rosbags", "sqlite3")
        reason = " ".join(str(error).split()) if spoken else "it is damaged"
        message = one_line(f"{file}: no bag that can be read: {reason}")
        raise SettingError(message, "file") from error


def _check_place(file: Path) -> None:
    """Check that a path may be a bag; the content is not read.

    It must be an existing folder with a metadata.yaml, or an existing file with the
    extension .mcap, .db3 or .bag, in lower case.
    """
    kind = file_kind(file)
    if not kind:
        raise SettingError(f"{file}: no such file or folder", "file")
    if kind == "folder" and file_kind(file / "metadata.yaml") != "file":
        raise SettingError(f"{file}: no bag: there is no metadata.yaml in it", "file")
    if kind == "file" and file.suffix not in BAGS:
        arrays = "; an array becomes one by np.savez('run.npz', t=t, q=q, qd=qd)"
        more = arrays if file.suffix == ".npy" else ""
        valid = ", ".join((*BAGS, *TABLES))
        raise SettingError(
            f"{file}: no recording; valid: a folder of a bag, {valid}{more}", "file"
        )


class Bag(NamedTuple):
    """An open bag: AnyReader of rosbags, and the path for messages."""

    reader: Any
    path: str

    def topics(self, kind: str) -> list[str]:
        """Return the sorted topics with the message type `kind`."""
        return sorted({c.topic for c in self.reader.connections if c.msgtype == kind})

    def messages(self, kind: str, topic: str) -> Iterator[tuple[float, Any]]:
        """Yield arrival time since the epoch [s] and message, in order of arrival.

        `topic` is the full name. An error comes with the first message, not by the
        call.
        """
        if topic not in self.topics(kind):  # rosbags would yield all messages
            message = unknown_name(f"topic of {kind}", topic, self.topics(kind))
            raise SettingError(f"{self.path}: {message}", "topic")
        every = self.reader.connections
        chosen = [c for c in every if (c.msgtype, c.topic) == (kind, topic)]
        for connection, stamp, data in self.reader.messages(chosen):
            yield 1e-9 * stamp, self.reader.deserialize(data, connection.msgtype)

    def chosen(self, kind: str, topic: str, usual: str, what: str) -> str:
        """Return the full name of the requested topic or the default one; "" if none.

        The default is the only topic of this type whose last component is `usual`.
        `topic` may lack the leading slash; empty: the default.
        """
        topics = self.topics(kind)
        if topic:
            full = topic if topic in topics else f"/{topic}"
            if full not in topics:
                message = unknown_name(f"topic of {what}", topic, topics)
                raise SettingError(f"{self.path}: {message}", "topic")
            return full
        named = [x for x in topics if x.rpartition("/")[2] == usual]
        return named[0] if len(named) == 1 else ""


def joint_motion(
    bag: Bag, joint_states: str, commands: str, joints: Sequence[str]
) -> MotionRecord:
    """Return the joints' motion in an open bag, as read_bag, without accelerations."""
    topic = bag.chosen(STATES, joint_states, "joint_states", "joint states")
    if not topic:
        topics = bag.topics(STATES)
        if len(topics) != 1:
            listed = ", ".join(topics) or "none"
            raise SettingError(
                f"{bag.path}: which joint states? give --joint-states; there are:"
                f" {listed}",
                "topic",
            )
        topic = topics[0]
    states = _States(joints)
    for arrival, message in bag.messages(STATES, topic):
        states.add(arrival, message)
    if not states.rows:
        needed = f" that has {', '.join(joints)}" if joints else ""
        raise SettingError(f"{bag.path}: {topic} has no message{needed}", "topic")
    chosen = bag.chosen(ARRAY, commands, "commands", "commands")
    command, notes = _commands(bag, chosen, states, joints) if chosen else (None, ())
    return states.motion(topic, command, notes)


class _States:
    """Collects joint states with columns in the order of given joints.

    Without given joints, the names of the first message are used. `rows` has position,
    velocity and effort of each message, (3, joints), `arrivals` its time of arrival
    since the epoch [s], `stamps` its stamp [s], NaN for none. `left_out` counts
    messages in which a joint is missing or repeated.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.names = tuple(joints)
        self.rows: list[np.ndarray] = []
        self.arrivals: list[float] = []
        self.stamps: list[float] = []
        self.left_out = 0
        self._orders: Mapping[tuple[str, ...], Any] = {}

    def add(self, arrival: float, message: Any) -> None:
        """Add a JointState message that arrived at a time since the epoch [s].

        A message in which a required joint is missing or repeated is only counted in
        `left_out`; if none are required, the joints of the first message are, even if
        it repeats one. A field of another size than the names is stored as NaN.
        """
        names = tuple(message.name)
        self.names = self.names or names
        if names not in self._orders:
            missing = any(names.count(joint) != 1 for joint in self.names)
            order = None if missing else [names.index(joint) for joint in self.names]
            self._orders = {**self._orders, names: order}
        order = self._orders[names]
        if order is None:
            self.left_out += 1
            return
        columns = [message.position, message.velocity, message.effort]
        self.rows.append(np.array([_field(x, len(names))[order] for x in columns]))
        self.arrivals.append(arrival)
        self.stamps.append(_seconds(message.header.stamp))

    def motion(
        self, topic: str, command: np.ndarray | None, more: Sequence[str] = ()
    ) -> MotionRecord:
        """Return the motion of all messages that were added; without one: ValueError.

        Times are stamps, or arrival times if any stamp is missing, minus the first
        time, in the order of arrival. Velocities or joint forces without any finite
        number are None; positions may have NaN. Left out messages and missing stamps
        are notes behind those of `more`. `command` is (rows, joints).
        """
        notes = list(more)
        if self.left_out:
            count = self.left_out + len(self.rows)
            notes.append(f"{self.left_out} of {count} messages of {topic} lack a joint")
        times = np.array(self.stamps)
        if not np.isfinite(times).all():
            notes.append("messages without a stamp: times are those of arrival")
            times = np.array(self.arrivals)
        q, qd, tau = np.array(self.rows).transpose(1, 0, 2)
        return MotionRecord.of_joints(
            self.names, times - times[0], q, qd=_or_none(qd), tau=_or_none(tau),
            command=command, notes=tuple(notes),
        )  # fmt: skip


def _seconds(stamp: Any) -> float:
    """Return the stamp of a header [s]; NaN for a zero stamp, which means none."""
    return stamp.sec + 1e-9 * stamp.nanosec if stamp.sec or stamp.nanosec else np.nan


def _field(values: Any, n: int) -> np.ndarray:
    """Return a field of a joint state, (n,); all NaN if empty or of wrong size."""
    array = np.asarray(values, float)
    return array if array.shape == (n,) else np.full(n, np.nan)


def _or_none(array: np.ndarray) -> np.ndarray | None:
    """Return an array, or None if it has no finite number."""
    return array if np.isfinite(array).any() else None


def _commands(
    bag: Bag, topic: str, states: _States, joints: Sequence[str]
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the last command at or before each joint state, and notes.

    Commands are (rows, joints), NaN before the first one. They are None if there is no
    message, or, with a note, if any message has another size. Float64MultiArray has
    neither names nor a stamp: its order is taken to be that of `states`, without a
    note, and arrival times are compared. Of `joints`, which `states` requires, only the
    number is used.
    """
    width = len(joints or states.names)
    pairs = [(t, np.asarray(m.data, float)) for t, m in bag.messages(ARRAY, topic)]
    if not pairs:
        return None, ()
    wrong = [len(data) for _, data in pairs if data.shape != (width,)]
    if wrong:
        what = (
            f"{len(wrong)} of {len(pairs)} messages of {topic} have not {width} numbers"
        )
        return None, (f"{what} ({wrong[0]}): commands are left out",)
    times = np.array([t for t, _ in pairs])
    rows = np.vstack([np.full(width, np.nan), *(data for _, data in pairs)])
    return rows[np.searchsorted(times, states.arrivals, side="right")], ()
