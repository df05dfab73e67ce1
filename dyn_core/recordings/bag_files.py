"""Motions as ROS 2 bags of sensor_msgs/JointState, by the library rosbags.

Positions, velocities and joint forces are the messages of /joint_states, and are
restored bit by bit; times are stamps in whole nanoseconds that begin at one second.
Accelerations, which a JointState lacks, are the points of /joint_accelerations
(trajectory_msgs/JointTrajectory, one point a message).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.recordings import bags
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.progress import RowProgress

_FIRST = 1.0  # stamp of the first row, since zero means none [s]
ACCELERATIONS = "/joint_accelerations"
POINTS = "trajectory_msgs/msg/JointTrajectory"


def read_bag(
    path: Path, joint_states: str = "", commands: str = "", joints: Sequence[str] = ()
) -> MotionRecord:
    """Return the motion in a bag, with accelerations if each row has them.

    Accelerations that do not match the joint states are left out with a note.

    Args:
        path: File or folder of a bag.
        joint_states: Topic of the joint states; empty: joint_states, or the only
            JointState topic.
        commands: Topic of the commands; empty: the only Float64MultiArray topic called
            commands, if there is one.
        joints: Names of the required joints, in the order of the columns and of the
            commands; empty: the joints of the first message.

    Raises:
        SettingError: The bag cannot be read, has no such topic, or no message with the
            required joints.
        UnsupportedError: rosbags is not installed.
    """
    with bags.opened(path) as bag:
        record = bags.joint_motion(bag, joint_states, commands, joints)
        if ACCELERATIONS not in bag.topics(POINTS):
            return record
        messages = [message for _, message in bag.messages(POINTS, ACCELERATIONS)]
    try:
        return replace(record, qdd=_accelerations(messages, record))
    except ValueError as error:
        notes = f"{ACCELERATIONS} is left out: {error}"
        return replace(record, notes=(*record.notes, notes))


def _accelerations(messages: Sequence[Any], record: MotionRecord) -> np.ndarray:
    """Return the accelerations of a record's rows, (rows, joints).

    Args:
        messages: JointTrajectory messages, one for each row.
        record: Motion whose rows and joints are required.

    Raises:
        ValueError: Their number differs from the rows, or a joint is missing; says
            which.
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
    """Check that each joint has one coordinate, as a JointState requires.

    Raises:
        UnsupportedError: A joint has several; names the valid formats.
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
    """Write a motion as one MCAP file, or as a bag folder.

    Args:
        record: Motion of joints with one coordinate each.
        path: NAME.mcap for one file, replaced if it exists; or a folder, which must not
            exist.
        bar: Progress of the rows.

    Raises:
        UnsupportedError: rosbags is not installed, or a joint has several coordinates.
    """
    check_joints(record, path)
    library = bags.rosbags()
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
    """Write the messages of all rows.

    Args:
        library: rosbags.typesys.
        writer: Open writer of a bag.
        record: Motion.
        bar: Progress of the rows.
    """
    store = library.get_typestore(library.Stores.ROS2_JAZZY)
    types = store.types
    names, none = list(record.names("q")), np.zeros(0)
    states = writer.add_connection("/joint_states", bags.STATES, typestore=store)
    points = None
    if record.qdd is not None:
        points = writer.add_connection(ACCELERATIONS, POINTS, typestore=store)
    duration = types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    for k, t in enumerate(record.t - record.t[0] if len(record.t) else ()):
        nanoseconds = round(1e9 * (float(t) + _FIRST))
        second, rest = divmod(nanoseconds, 10**9)
        stamp = types["builtin_interfaces/msg/Time"](sec=second, nanosec=rest)
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
        qd = none if record.qd is None else record.qd[k]
        tau = none if record.tau is None else record.tau[k]
        message = types[bags.STATES](header, names, record.q[k], qd, tau)
        data = store.serialize_cdr(message, bags.STATES)
        writer.write(states, nanoseconds, data)
        bar.show(k + 1)
        if points is not None and record.qdd is not None:
            point = types["trajectory_msgs/msg/JointTrajectoryPoint"](
                none, none, record.qdd[k], none, duration
            )
            message = types[POINTS](header, names, [point])
            writer.write(points, nanoseconds, store.serialize_cdr(message, POINTS))
