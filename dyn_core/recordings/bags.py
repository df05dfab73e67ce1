"""Recordings of topics as bags of ROS 2, by the library rosbags; without ROS."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from dyn_core.recordings.joint_record import FILES, JointRecord, read_record

STATES = "sensor_msgs/msg/JointState"
ARRAY = "std_msgs/msg/Float64MultiArray"
BAGS = (".mcap", ".db3", ".bag")


def rosbags() -> Any:
    """Return the packages of the library rosbags.

    Raises:
        UnsupportedError: It is not installed; says how.
    """
    try:
        import rosbags.highlevel
        import rosbags.rosbag2
        import rosbags.typesys
    except ImportError as error:
        raise UnsupportedError(
            f"bags need the library rosbags ({error}): pip install 'dyn_ros[bags]'"
        ) from error
    return rosbags


def read(
    path: str | os.PathLike[str],
    joint_states: str = "",
    commands: str = "",
    joints: Sequence[str] = (),
) -> JointRecord:
    """Return the joints of a bag, or of an NPZ or CSV file.

    Args:
        path: A folder of a bag, an MCAP, SQLite or ROS 1 file, or NPZ or CSV.
        joint_states: Topic of the joint states; empty: joint_states, or the only one.
        commands: Topic of the commands; empty: the only Float64MultiArray called
            commands, if there is one.
        joints: Joints that are needed, in the order of the commands; empty: those of
            the first message.

    Raises:
        SettingError: It cannot be read, or has no such topic.
        UnsupportedError: A bag, and rosbags is not installed.
    """
    file = Path(path)
    if file.suffix in FILES and not file.is_dir():
        if joint_states or commands:
            what = "--joint-states and --commands change nothing"
            raise SettingError(f"{path}: {what}; valid: a bag, with topics", "file")
        return read_record(file)
    with opened(file) as bag:
        return _record(bag, joint_states, commands, joints)


@contextmanager
def opened(file: Path) -> Iterator[Bag]:
    """Open a bag; whatever fails inside, for a file of any content, is one error.

    Raises:
        SettingError: It cannot be read.
        UnsupportedError: rosbags is not installed.
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
    except Exception as error:  # of rosbags, for a file of any content
        spoken = type(error).__module__.partition(".")[0] in ("rosbags", "sqlite3")
        reason = " ".join(str(error).split()) if spoken else "it is damaged"
        message = one_line(f"{file}: no bag that can be read: {reason}")
        raise SettingError(message, "file") from error


def _check_place(file: Path) -> None:
    """Refuse what is no bag before anything is opened."""
    if not file.exists():
        raise SettingError(f"{file}: no such file or folder", "file")
    if file.is_dir() and not (file / "metadata.yaml").is_file():
        raise SettingError(f"{file}: no bag: there is no metadata.yaml in it", "file")
    if not file.is_dir() and file.suffix not in BAGS:
        valid = ", ".join((*BAGS, *FILES))
        raise SettingError(
            f"{file}: no recording; valid: a folder of a bag, {valid}", "file"
        )


class Bag(NamedTuple):
    """An open bag."""

    reader: Any
    path: str

    def topics(self, kind: str) -> list[str]:
        """Return the topics of a type."""
        return sorted({c.topic for c in self.reader.connections if c.msgtype == kind})

    def messages(self, kind: str, topic: str) -> Iterator[tuple[float, Any]]:
        """Return time of arrival [s] and message of a topic, in order."""
        every = self.reader.connections
        chosen = [c for c in every if (c.msgtype, c.topic) == (kind, topic)]
        for connection, stamp, data in self.reader.messages(chosen):
            yield 1e-9 * stamp, self.reader.deserialize(data, connection.msgtype)

    def chosen(self, kind: str, topic: str, usual: str, what: str) -> str:
        """Return the topic that is asked for, or the usual one; empty if none is."""
        topics = self.topics(kind)
        if topic:
            full = topic if topic in topics else f"/{topic}"
            if full not in topics:
                message = unknown_name(f"topic of {what}", topic, topics)
                raise SettingError(f"{self.path}: {message}", "topic")
            return full
        named = [x for x in topics if x.rpartition("/")[2] == usual]
        return named[0] if len(named) == 1 else ""


def _record(
    bag: Bag, joint_states: str, commands: str, joints: Sequence[str]
) -> JointRecord:
    """Return the joints of a bag."""
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
    command = _commands(bag, chosen, states, joints) if chosen else None
    return states.record(topic, command)


class _States:
    """Joint states that come in, matched by name."""

    def __init__(self, joints: Sequence[str]) -> None:
        self.names = tuple(joints)
        self.rows: list[np.ndarray] = []
        self.arrivals: list[float] = []
        self.stamps: list[float] = []
        self.left_out = 0
        self._orders: Mapping[tuple[str, ...], Any] = {}

    def add(self, arrival: float, message: Any) -> None:
        """Take a message; one that lacks a joint is left out."""
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

    def record(self, topic: str, command: np.ndarray | None) -> JointRecord:
        """Return what came; times are the stamps, without them those of arrival."""
        notes = []
        if self.left_out:
            count = self.left_out + len(self.rows)
            notes.append(f"{self.left_out} of {count} messages of {topic} lack a joint")
        times = np.array(self.stamps)
        if not np.isfinite(times).all():
            notes.append("messages without a stamp: times are those of arrival")
            times = np.array(self.arrivals)
        q, qd, tau = np.array(self.rows).transpose(1, 0, 2)
        return JointRecord(
            self.names,
            times - times[0],
            q,
            _or_none(qd),
            _or_none(tau),
            command,
            tuple(notes),
        )


def _seconds(stamp: Any) -> float:
    """Return the stamp of a header [s]; NaN where there is none, which is zero."""
    return stamp.sec + 1e-9 * stamp.nanosec if stamp.sec or stamp.nanosec else np.nan


def _field(values: Any, n: int) -> np.ndarray:
    """Return a field of a joint state, NaN where it is empty or of wrong size."""
    array = np.asarray(values, float)
    return array if array.shape == (n,) else np.full(n, np.nan)


def _or_none(array: np.ndarray) -> np.ndarray | None:
    return array if np.isfinite(array).any() else None


def _commands(
    bag: Bag, topic: str, states: _States, joints: Sequence[str]
) -> np.ndarray | None:
    """Return the last command before each joint state; NaN before the first.

    An array has no names and no stamp: its order is that of the joints, its time that
    of arrival. None where it has another size.
    """
    width = len(joints or states.names)
    pairs = [(t, np.asarray(m.data, float)) for t, m in bag.messages(ARRAY, topic)]
    if not pairs or any(data.shape != (width,) for _, data in pairs):
        return None
    times = np.array([t for t, _ in pairs])
    rows = np.vstack([np.full(width, np.nan), *(data for _, data in pairs)])
    return rows[np.searchsorted(times, states.arrivals, side="right")]
