"""HTML reports of runs and identifications, with notes if matplotlib is missing."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.identification import Evaluation, Identification
from dyn_core.identification.result import VAGUE
from dyn_core.plots.figures import (
    COLOURS,
    GREY,
    NO_PICTURES,
    Curve,
    Panel,
    can_draw,
    draw,
)
from dyn_core.plots.motions import thinned
from dyn_core.plots.pages import (
    ReportSection,
    check_page,
    folded,
    note,
    page,
    paragraph,
    picture,
    table,
    write_page,
)
from dyn_core.recordings import MotionRecord, Recording, run_record
from dyn_core.recordings.motion import motion_of
from dyn_core.reports.comparison import comparison_sections
from dyn_core.reports.sections import run_sections
from dyn_core.validation import known_keywords, shown


@known_keywords
def write_identification_report(
    result: Identification,
    path: str | os.PathLike[str],
    before: Evaluation | None = None,
    after: Evaluation | None = None,
    title: str = "",
) -> None:
    """Write the result of an identification as one HTML file, and print its name.

    Pictures need matplotlib; without it the page says so. An existing file is replaced.

    Args:
        result: Result of dyn.identify.
        path: File that ends with .html or .htm.
        before, after: Evaluations of a motion with the previous and the identified
            robot, preferably of a motion that was not fitted; None for both: no
            residuals are shown.
        title: Heading; empty: "Identification of" and the robot's name.

    Raises:
        SettingError: The path is not valid, the file cannot be written, only one of
            before and after is given, their joints differ, or a keyword is unknown.
    """
    check_page(os.fspath(path))
    if (before is None) != (after is None):
        raise SettingError("a report needs before and after, or none of them", "report")
    if before is not None and after is not None and before.names != after.names:
        joints = " and of ".join(", ".join(x.names) for x in (before, after))
        raise SettingError(
            f"evaluations of {joints}; valid: of the same joints", "report"
        )
    name = result.before.name if result.before is not None else "a robot"
    sections = [_facts(result), _numbers(result), _unseen(result)]
    if result.model is not None:
        sections.append(
            ReportSection(
                "Friction",
                "Joint friction over speed, identified and before.",
                picture(result.plot_friction, "joint friction over speed"),
            )
        )
    if before is not None and after is not None:
        sections.append(_residuals(before, after))
    heading = title or f"Identification of '{name}'"
    write_shown(path, page(heading, sections, "Report of dyn_ros; SI units."))


def _facts(result: Identification) -> ReportSection:
    """Return the section about the quality of the fit."""
    rows: list[list[Any]] = [
        ["numbers sought", len(result.names)],
        ["numbers or combinations that show", result.rank],
        ["condition", result.condition],
        ["fit came to its end", "yes" if result.converged else "no"],
    ]
    if result.delay:
        rows.append(["joint forces are late by [ms]", 1e3 * result.delay])
    if result.outliers:
        rows.append(["outliers", f"{100 * result.outliers:.1f} %"])
    if result.validation is not None:
        rows.append(
            ["residual on held-out over fitted motion", result.validation.ratio]
        )
        rows.append(["blocks of time", result.validation.folds])
    reason = "" if result.model is not None else note(f"No robot: {result.reason}")
    return ReportSection(
        "The fit",
        "A residual on held-out motion that is much larger than on fitted motion means"
        " that too much was sought from too little.",
        table((), rows) + reason,
    )


def _numbers(result: Identification) -> ReportSection:
    """Return the section of individually identifiable parameters."""
    known = np.flatnonzero(np.isfinite(result.standard_deviations))
    units = result.units or ("",) * len(result.names)
    rows = [
        [
            result.names[k],
            float(result.parameters[k]),
            float(result.standard_deviations[k]),
            float(result.prior[k]),
            units[k],
            "" if result.standard_deviations[k] <= VAGUE * abs(result.parameters[k])
            else "hardly known",
        ]
        for k in known
    ]  # fmt: skip
    header = ("number", "value", "+-", "before", "unit", "")
    drawn = picture(result.plot, "identified numbers")
    return ReportSection(
        "Numbers",
        "Values with one standard deviation of the noise; before: what they were.",
        drawn + folded("Table", table(header, rows)),
    )


def _unseen(result: Identification) -> ReportSection:
    """Return the section of combinations of parameters, and of those without effect."""
    combined = [
        [result.base.expression(int(k)), float(result.base.values[k]),
         float(result.base_deviations[k])]
        for k in np.flatnonzero(np.count_nonzero(result.base.regrouping, axis=1) > 1)
    ]  # fmt: skip
    unseen = ", ".join(result.unseen) or "none"
    header = ("combination", "value", "+-")
    return ReportSection(
        "What the motion does not show",
        "Of combinations only the value shows; what no joint force depends on stays as"
        " it was.",
        paragraph(f"No joint force depends on: {unseen}.")
        + (folded("Combinations", table(header, combined)) if combined else ""),
    )


def _residuals(before: Evaluation, after: Evaluation) -> ReportSection:
    """Return the section of a motion's residuals with previous and identified robot."""
    rows = [
        [name, float(first), float(last), f"{100 * a:.2f} %", f"{100 * b:.2f} %"]
        for name, first, last, a, b in zip(
            before.names, before.rms, after.rms, before.share, after.share, strict=True
        )
    ]
    header = ("joint", "rms before", "rms after", "of measured before", "after")
    chosen, panels = thinned(len(before.motion.t)), []
    for j, name in enumerate(before.names):
        curves = [
            Curve(x.motion.t[chosen], x.residual[chosen, j], label, "-", colour)
            for label, x, colour in (
                ("before", before, GREY), ("identified", after, COLOURS[0])
            )
        ]  # fmt: skip
        panels.append(Panel(name, curves))

    def figure() -> Any:
        return draw(panels, "measured less computed joint force [N·m | N]")

    return ReportSection(
        "Residuals",
        "What is left of measured joint forces, root mean square and over time.",
        table(header, rows) + picture(figure, "residuals by joint"),
    )


def report_page(
    records: Sequence[MotionRecord | Recording], names: Sequence[str], title: str = ""
) -> str:
    """Return a report as one self-contained HTML page.

    Pictures need matplotlib; without it the page says so.

    Args:
        records: Runs, each a Recording or MotionRecord; several are compared with the
            first one.
        names: Name of each run; one that was there before becomes "NAME (K)" with the
            number K of the run, so that all differ.
        title: Heading; empty: the name of the only run, or the names of the robots.

    Raises:
        SettingError: There is no run, the names are not one for each run, or one of
            several runs has no rows, or no times or columns in common with the first.
        UnsupportedError: A run is neither a Recording nor a MotionRecord.
    """
    if isinstance(records, str) or not isinstance(records, Collection):
        valid = "a list of runs, such as [run]"
        raise SettingError(f"records: {shown(records)}; valid: {valid}", "records")
    count = len(records)
    if not count:
        raise SettingError("a report needs a run", "report")
    motions = [
        run_record(x) if isinstance(x, Recording) else motion_of(x, "a report")
        for x in records
    ]
    few = not isinstance(names, Collection) or len(names) != count
    if few or isinstance(names, str):
        valid = f"a list of {count} names, one a run"
        raise SettingError(f"names: {shown(names)}; valid: {valid}", "names")
    distinct: list[str] = []
    for k, name in enumerate(names, 1):
        while name in distinct:
            name = f"{name} ({k})"
        distinct.append(name)
    sections = list(comparison_sections(motions, distinct)) if count > 1 else []
    for record, name in zip(motions, distinct, strict=True):
        parts = list(run_sections(record))
        if count > 1:
            parts[0] = parts[0]._replace(title=name, opens=True)
        sections += parts
    robots = dict.fromkeys(str(x.facts.get("robot", "a robot")) for x in motions)
    heading = title or (names[0] if count == 1 else f"Runs of {', '.join(robots)}")
    return page(heading, sections, "Report of dyn_ros; SI units.")


@known_keywords
def write_report(
    records: Sequence[MotionRecord | Recording],
    names: Sequence[str],
    path: str | os.PathLike[str],
    title: str = "",
) -> None:
    """Write a report atomically as one HTML file, and print its name.

    An existing file is replaced.

    Args:
        records: Runs, each a Recording or MotionRecord; several are compared with the
            first one.
        names: Name of each run; one that was there before becomes "NAME (K)" with the
            number K of the run, so that all differ.
        path: File that ends with .html or .htm.
        title: Heading; empty: the name of the only run, or the names of the robots.

    Raises:
        SettingError: The path is not valid, the file cannot be written, there is no
            run, the names are not one for each run, one of several runs has no rows,
            the runs have nothing in common, or a keyword is unknown.
        UnsupportedError: A run is neither a Recording nor a MotionRecord.
    """
    check_page(os.fspath(path))
    write_shown(path, report_page(records, names, title))


def write_shown(path: str | os.PathLike[str], content: str) -> None:
    """Write a report, and print its name and whether matplotlib is missing."""
    write_page(path, content)
    print(f"report: {path}" + ("" if can_draw() else f" (no pictures: {NO_PICTURES})"))
