"""Files of motions, by file extension: NPZ, CSV, ROS 2 bags."""

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
from dyn_core.validation import known_keywords, writing
from dyn_core.validation.file_names import check_file_name

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
        path: NPZ or CSV file, or file or folder of a bag.
        model: Robot whose columns are required, in its order; None: all columns.
        joint_states: Topic of a bag; empty: joint_states, or the only JointState topic.
        commands: Topic of a bag; empty: the only Float64MultiArray topic called
            commands, if there is one.

    Raises:
        SettingError: The file cannot be read, its content is not valid, or a column is
            missing; or a topic is given for an NPZ or CSV file.
        ShapeError: Arrays of a bag do not match each other.
        UnsupportedError: The file is a bag, and rosbags is not installed.
    """
    file = Path(path)
    if file.suffix in bags.TABLES and not file.is_dir():
        if joint_states or commands:
            option = "--joint-states" if joint_states else "--commands"
            message = f"{path}: {option} changes nothing; valid: a bag, with topics"
            raise SettingError(message, "file")
        record = _read(file, model)
    else:
        joints = () if model is None else model.joint_names
        record = read_bag(file, joint_states, commands, joints)
    return record if model is None else record.of(model)


def is_recording(name: str) -> bool:
    """Return whether a name is a recorded run: a file of its types, or a bag folder.

    A file need not exist; its suffix decides.
    """
    path = Path(name)
    return path.suffix in (*bags.TABLES, *bags.BAGS) or (
        path.is_dir() and (path / "metadata.yaml").is_file()
    )


def _read(file: Path, model: Model | None) -> MotionRecord:
    """Return the motion of a file, with all its columns.

    Args:
        file: Path that ends with .npz or .csv.
        model: Robot that names the columns of an NPZ file without names; None: they are
            numbered from 1. It selects no columns.

    Raises:
        SettingError: The file cannot be read, or its content is not valid.
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

    Args:
        path: Name of the file.
        option: Command option that has the name, for messages; empty: none.

    Raises:
        SettingError: The extension is unknown, the folder is missing, or the path is a
            folder.
        UnsupportedError: The file is a bag, and rosbags is not installed.
    """
    check_file_name(path, WRITTEN, option, f"--{option}" if option else "file")
    if Path(path).suffix == ".mcap":
        bags.rosbags()


@known_keywords
def write_motion(
    record: MotionRecord, path: str | os.PathLike[str], progress: bool = False
) -> None:
    """Write a motion; if that fails, no file is left behind or changed.

    NPZ holds everything; CSV times and columns; MCAP joint states and accelerations.

    Args:
        record: Motion.
        path: Name with the extension .npz, .csv or .mcap; an existing file is replaced.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: The name or folder is invalid, or the file cannot be written.
        UnsupportedError: The format cannot represent the joints, or rosbags is not
            installed.
    """
    file, bar = Path(path), RowProgress(len(record.t), progress)
    check_output(os.fspath(path), "")
    if file.suffix == ".mcap":
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
    """Return the process umask; os.umask can only read it by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
