"""Files of motions by the end of their name: NPZ, CSV, bags of ROS 2."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dyn_core.errors import DynError, SettingError, one_line
from dyn_core.model import Model
from dyn_core.recordings import bags
from dyn_core.recordings.bag_files import read_bag, write_bag
from dyn_core.recordings.csv_files import read_csv, write_csv
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.npz_files import read_npz, write_npz
from dyn_core.recordings.progress import RowProgress
from dyn_core.validation import known_keywords

WRITTEN = (".npz", ".csv", ".mcap")


@known_keywords
def read_motion(
    path: str | os.PathLike[str], model: Model | None = None, joint_states: str = ""
) -> MotionRecord:
    """Return the motion of a file.

    Args:
        path: NPZ, CSV, a file or folder of a bag.
        model: Robot whose columns are asked for, in its order; None: all of them.
        joint_states: Topic of a bag; empty: joint_states, or the only one.

    Raises:
        SettingError: It cannot be read, or a column is missing.
        ShapeError: Arrays do not fit each other.
        UnsupportedError: A bag, and rosbags is not installed.
    """
    file = Path(path)
    if file.suffix in (".npz", ".csv") and not file.is_dir():
        if joint_states:
            raise SettingError(
                f"{path}: --joint-states changes nothing; valid: a bag, with topics",
                "file",
            )
        record = _read(file, model)
    else:
        joints = () if model is None else model.joint_names
        record = read_bag(file, joint_states, joints)
    return record if model is None else record.of(model)


def _read(file: Path, model: Model | None) -> MotionRecord:
    """Return the motion of an NPZ or CSV file."""
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
    """Refuse a file to write before time is spent on what goes into it.

    Args:
        path: Name of the file.
        option: Of a command, that has the name; empty: of none.

    Raises:
        SettingError: Its name or folder will not do, or there is such a folder.
        UnsupportedError: A bag, and rosbags is not installed.
    """
    file, name = Path(path), f"--{option} {path!r}" if option else repr(path)
    if file.suffix not in WRITTEN:
        raise SettingError(
            f"{name}; valid: a name that ends with {', '.join(WRITTEN)}",
            option,
        )
    if not file.parent.is_dir() or file.is_dir():
        why = "that is a folder" if file.is_dir() else "there is no such folder"
        raise SettingError(f"{name}; {why}", option)
    if file.suffix == ".mcap":
        bags.rosbags()


@known_keywords
def write_motion(
    record: MotionRecord, path: str | os.PathLike[str], progress: bool = False
) -> None:
    """Write a motion, all of it or, if that fails, nothing.

    NPZ holds everything; CSV times and columns; MCAP joint states and accelerations.

    Args:
        record: Motion.
        path: Ends with .npz, .csv or .mcap; a file that is there is replaced.
        progress: Whether a terminal shows how far it is.

    Raises:
        SettingError: The name or the folder will not do.
        UnsupportedError: The format cannot hold the joints, or rosbags is missing.
    """
    file, bar = Path(path), RowProgress(len(record.t), progress)
    check_output(os.fspath(path), "")
    if file.suffix == ".mcap":
        write_bag(record, file, bar)
        bar.end()
        return
    descriptor, name = tempfile.mkstemp(prefix=".dyn_", dir=file.parent)
    os.close(descriptor)
    work = Path(name)
    try:
        if file.suffix == ".npz":
            write_npz(record, work)
        else:
            write_csv(record, work, bar)
            bar.end()
        work.chmod(0o666 & ~_umask())
        work.replace(file)
    finally:
        work.unlink(missing_ok=True)


def _umask() -> int:
    """Return the permissions that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
