"""Reports of runs, one HTML file each."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dyn_core.errors import SettingError
from dyn_core.plots.figures import NO_PICTURES, can_draw
from dyn_core.plots.pages import ReportSection, check_page, page, write_page
from dyn_core.recordings import MotionRecord
from dyn_core.reports.comparison import comparison_sections
from dyn_core.reports.sections import run_sections
from dyn_core.validation import known_keywords


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
    check_page(os.fspath(path))
    write_shown(path, report_page(records, names, title))


def write_shown(path: str | os.PathLike[str], content: str) -> None:
    """Write a report, and print its name and whether matplotlib is missing."""
    write_page(path, content)
    print(f"report: {path}" + ("" if can_draw() else f" (no pictures: {NO_PICTURES})"))
