"""Reports of runs, one HTML file each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dyn_core.errors import SettingError
from dyn_core.plots.figures import NO_PICTURES, can_draw
from dyn_core.recordings import MotionRecord
from dyn_core.reports.comparison import comparison_sections
from dyn_core.reports.page import ReportSection, page
from dyn_core.reports.sections import run_sections
from dyn_core.validation import known_keywords

SUFFIXES = (".html", ".htm")


def report_page(
    records: Sequence[MotionRecord], names: Sequence[str], title: str = ""
) -> str:
    """Return a report as one self-contained HTML page.

    Pictures need matplotlib; without it the page says so.

    Args:
        records: Runs; several are compared with the first one.
        names: Name of each run.
        title: Heading; empty: the name of the only run, or the names of the robots.

    Raises:
        SettingError: There is no run, or the runs have nothing in common.
    """
    if not records:
        raise SettingError("a report needs a run", "report")
    sections: list[ReportSection] = []
    if len(records) > 1:
        sections += comparison_sections(records, names)
    for record, name in zip(records, names, strict=True):
        parts = list(run_sections(record))
        if len(records) > 1:
            parts[0] = parts[0]._replace(title=name, opens=True)
        sections += parts
    heading = title or (names[0] if len(names) == 1 else f"Runs of {_robots(records)}")
    return page(heading, sections, "Report of dyn_ros; SI units.")


def _robots(records: Sequence[MotionRecord]) -> str:
    names = dict.fromkeys(str(x.facts.get("robot", "a robot")) for x in records)
    return ", ".join(names)


def check_report(path: str, option: str = "report") -> None:
    """Check the path of a report, before time is spent on its content.

    Args:
        path: File of the report.
        option: Name of the option in error messages.

    Raises:
        SettingError: It does not end with .html or .htm, or its folder does not exist.
    """
    if Path(path).suffix not in SUFFIXES:
        raise SettingError(
            f"--{option} {path!r}; valid: a name that ends with {', '.join(SUFFIXES)}",
            option,
        )
    if not Path(path).parent.is_dir():
        raise SettingError(f"--{option} {path!r}; there is no such folder", option)


@known_keywords
def write_report(
    records: Sequence[MotionRecord],
    names: Sequence[str],
    path: str | os.PathLike[str],
    title: str = "",
) -> None:
    """Write a report atomically, and print its name.

    Args:
        records, names: Runs, and a name for each.
        title: Heading; empty: the name of the only run, or the names of the robots.
        path: File that ends with .html or .htm.

    Raises:
        SettingError: The path is not valid, there is no run, or the runs have nothing
            in common.
    """
    check_report(os.fspath(path))
    write_page(path, report_page(records, names, title))


def write_page(path: str | os.PathLike[str], content: str) -> None:
    """Write an HTML page atomically, and print its name.

    An existing file is replaced. A note says if matplotlib is not installed.
    """
    file = Path(path)
    with tempfile.TemporaryDirectory(prefix=".dyn_", dir=file.parent) as folder:
        work = Path(folder) / file.name
        work.write_text(content, encoding="utf-8")
        work.replace(file)
    print(f"report: {path}" + ("" if can_draw() else f" (no pictures: {NO_PICTURES})"))
