"""The command `dyn report`: runs as one HTML file; several runs are compared."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

from dyn_core.errors import DynError, ModelError, ModelWarning, SettingError
from dyn_core.model.sources.loading import load
from dyn_core.model.sources.locate import locate
from dyn_core.plots.pages import check_page
from dyn_core.recordings import MotionRecord, read_motion
from dyn_core.recordings.runs import edited_files, named_robot, warn_of_edits
from dyn_core.reports.screenshot import screenshot
from dyn_core.reports.write import write_report
from dyn_core.validation.file_names import file_kind


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn report`, and its function as `run`."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN",
        help="file of dyn sim (.npz has everything); others are compared with the"
        " first",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--out", default="report.html", metavar="FILE",
        help="default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--title", default="", help="heading of the report")
    parser.add_argument(
        "--screenshot", metavar="FILE",
        help="picture of the report (.png), by Chromium or Chrome",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report, and a picture of it if requested; print their names; return 0.

    Args:
        arguments: `runs` (files, the first one is compared with the others), `out`,
            `title`, and `screenshot` (None: no picture).

    Raises:
        SettingError: A run is the name of a robot, a file cannot be read or written, a
            run has no row, several runs have no times or columns in common, or the
            browser fails.
        ShapeError: Arrays of a bag do not match each other.
        UnsupportedError: A file is a bag, and rosbags is not installed, or a picture
            was requested, and there is no browser or matplotlib.
        OSError: The picture cannot be written.
    """
    check_page(arguments.out, "out")
    for path in arguments.runs:
        _refuse_robot(path, arguments.out)
    records = [read_motion(path) for path in arguments.runs]
    for path, record in zip(arguments.runs, records, strict=True):
        if not len(record.t):
            raise SettingError(f"{path}: the motion has no row", "runs")
        _warn_of_edits(path, record)
    stems = [Path(path).stem for path in arguments.runs]
    alone = len(set(stems)) == len(stems)
    paths = [os.path.abspath(path) for path in arguments.runs]
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    names = stems if alone else [os.path.relpath(path, common) for path in paths]
    write_report(records, names, arguments.out, arguments.title)
    if arguments.screenshot is not None:
        screenshot(arguments.out, arguments.screenshot)
        print(f"picture: {arguments.screenshot}")
    return 0


def _warn_of_edits(path: str, record: MotionRecord) -> None:
    """Issue a DynWarning if the robot of a run was edited since.

    It is read only if one of its files has another content than at the run.
    """
    robot, root_joint = named_robot(record.facts)
    if not robot or not edited_files(record.facts):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the record has them
        try:
            model = load(robot, root_joint=root_joint or None)
        except DynError:
            return  # the report has no pictures of it then
    warn_of_edits(path, record.facts, model)


def _refuse_robot(name: str, out: str) -> None:
    """Raise SettingError if a run is no file, but the name of a robot of dyn.load."""
    try:
        robot = not file_kind(name) and locate(name).file is not None
    except ModelError:
        return  # reading it says what it is
    if robot:
        raise SettingError(
            f"{name} is a robot, not a run; valid: a run of dyn sim (dyn sim {name}"
            f" --report {out}); dyn doctor {name} --html {out} for the robot itself",
            "runs",
        )
