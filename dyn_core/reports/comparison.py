"""Differences between runs: of solvers, steps, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.plots.pages import ReportSection, folded, note, picture, table
from dyn_core.recordings import MotionRecord
from dyn_core.recordings.signals import interpolated
from dyn_core.reports import figures
from dyn_core.reports.sections import times_section
from dyn_core.validation.tables import shown

KINDS = {
    "q": "position [rad | m]",
    "qd": "velocity [rad/s | m/s]",
    "qdd": "acceleration [rad/s² | m/s²]",
    "tau": "joint force [N·m | N]",
}


class Difference(NamedTuple):
    """The difference of a column between two runs, over their common times.

    All numbers are in the SI unit of the column.

    Attributes:
        kind: q, qd, qdd or tau.
        name: Name of the coordinate.
        largest, rms: Maximum absolute value and root mean square of second minus first
            run.
        time: Time of the maximum [s].
        size: Maximum absolute value of the column in the first run.
    """

    kind: str
    name: str
    largest: float
    rms: float
    time: float
    size: float


class _Pair(NamedTuple):
    """Two runs on common times; the second was interpolated if `resampled`.

    `parts` has by kind: names, columns of the first run, second minus first run.
    """

    t: np.ndarray
    parts: dict[str, tuple[tuple[str, ...], np.ndarray, np.ndarray]]
    resampled: bool


def differences(first: MotionRecord, second: MotionRecord) -> list[Difference]:
    """Return the difference of each column that both runs have.

    They are ordered by kind (q, qd, qdd, tau), then as the coordinates of `first`.
    Times of the first run outside the second are left out. Full turns are not removed;
    a NaN makes the differences of its column NaN. A Difference has kind and name of the
    column, `largest` absolute value and `rms` of second less first, the `time` of the
    largest [s], and `size`, the largest absolute value in the first run.

    Args:
        first: Reference run.
        second: Compared run; it is interpolated at the times of the first.

    Raises:
        SettingError: A run has no rows, or they have no times or columns in common.
    """
    pair, result = _paired(first, second), []
    for kind, (names, columns, difference) in pair.parts.items():
        for k, name in enumerate(names):
            size = np.abs(difference[:, k])
            worst = int(size.argmax())
            result.append(
                Difference(
                    kind,
                    name,
                    float(size[worst]),
                    float(np.sqrt((size**2).mean())),
                    float(pair.t[worst]),
                    float(np.abs(columns[:, k]).max()),
                )  # fmt: skip
            )
    return result


def _paired(first: MotionRecord, second: MotionRecord) -> _Pair:
    """Return two runs on the times of the first that lie within the second.

    The second is interpolated unless it has the same times; full turns are not removed.
    """
    if not len(first.t) or not len(second.t):
        raise SettingError("a run without rows cannot be compared", "report")
    same = len(first.t) == len(second.t) and bool((first.t == second.t).all())
    rows = (first.t >= second.t[0]) & (first.t <= second.t[-1])
    if not rows.any():
        raise SettingError("the runs have no times in common", "report")
    t, parts = first.t[rows], {}
    for kind in KINDS:
        a, b = getattr(first, kind), getattr(second, kind)
        there = second.names(kind)
        names = tuple(x for x in first.names(kind) if x in there)
        if a is None or b is None or not names:
            continue
        mine = a[rows][:, [first.names(kind).index(x) for x in names]]
        other = b[:, [there.index(x) for x in names]]
        if not same:
            other = interpolated(second.t, other, t)
        parts[kind] = names, mine, other - mine
    if not parts:
        raise SettingError(
            f"the runs have no columns in common: the first has {_few(first)}, the"
            f" second {_few(second)}; valid: runs of robots with joints of equal names",
            "report",
        )
    return _Pair(t, parts, not same)


def _few(record: MotionRecord) -> str:
    """Return the first three names of a run's position columns, for a message."""
    names = record.names("q")
    return ", ".join(map(shown, names[:3])) + (", ..." if len(names) > 3 else "")


def comparison_sections(
    records: Sequence[MotionRecord], names: Sequence[str]
) -> Iterator[ReportSection]:
    """Yield the sections that compare runs with the first one; names must differ."""
    yield _settings(records, names)
    pairs = {
        name: _paired(records[0], record)
        for name, record in zip(names[1:], records[1:], strict=True)
    }
    yield _differences(names[0], records, pairs)
    times = {
        name: record.series["cycle_time"]
        for name, record in zip(names, records, strict=True)
        if (record.series.get("cycle_time", np.zeros(1)) > 0).any()
    }
    if times:
        yield times_section(times)


def _settings(records: Sequence[MotionRecord], names: Sequence[str]) -> ReportSection:
    """Return the section of settings and starts, a table with a column for each run.

    Rows that are equal for all runs are in a second table, and equal starts left out.
    """
    columns = [_facts(record) for record in records]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows: list[list[str]] = []
    same: list[list[str]] = []
    for key in keys:
        values = [column.get(key, "-") for column in columns]
        (same if len(set(values)) == 1 else rows).append([key, *values])
    for kind in ("q", "qd"):
        for name in records[0].names(kind):
            values = [_start(record, kind, name) for record in records]
            if len(set(values)) > 1:
                rows.append([f"start of {kind}[{name}]", *values])
    content = table(("differs", *names), rows) if rows else note("No setting differs.")
    if same:
        content += table(("the same in all", ""), [row[:2] for row in same])
    hashes = {str(record.facts.get("model_hash")) for record in records}
    if len(hashes) > 1:
        content += note("The runs are not of the same model.")
    return ReportSection(
        "What is compared", "What differs between the runs, and what does not.", content
    )


def _start(record: MotionRecord, kind: str, name: str) -> str:
    """Return an entry of q or qd in the first row as text; "-" if there is none."""
    columns, names = getattr(record, kind), record.names(kind)
    if columns is None or not len(columns) or name not in names:
        return "-"
    return repr(float(columns[0, names.index(name)]))


def _facts(record: MotionRecord) -> dict[str, str]:
    """Return the facts to compare, as text by title; missing ones are left out."""
    facts = record.facts
    rows = {"robot": facts.get("robot"), "hash of the model": facts.get("model_hash")}
    rows |= facts.get("settings", {})
    rows["rows"] = len(record.t)
    residual = record.series.get("residual")
    if residual is not None and len(residual):
        rows["largest residual of energy [J]"] = f"{np.abs(residual).max():.3g}"
    rows |= facts.get("versions", {})
    return {key: str(value) for key, value in rows.items() if value is not None}


def _differences(
    first: str, records: Sequence[MotionRecord], pairs: dict[str, _Pair]
) -> ReportSection:
    """Return the section with a figure and tables of the differences, in SI units.

    The figure has only runs that share all times of the first run. `pairs` has a _Pair
    for each other run, in the order of `records`.
    """
    content, panels = "", {}
    for kind, label in KINDS.items():
        by_run = {
            name: np.abs(pair.parts[kind][2]).max(axis=1)
            for name, pair in pairs.items()
            if kind in pair.parts and len(pair.t) == len(records[0].t)
        }
        if by_run:
            panels[label] = by_run
    if panels:
        content += picture(
            lambda: figures.differences_figure(records[0].t, panels),
            "differences over time",
        )
    rows: list[list[object]] = []
    every: list[list[object]] = []
    for (name, pair), other in zip(pairs.items(), records[1:], strict=True):
        if pair.resampled:
            content += note(f"{name} is interpolated at the times of {first}.")
        columns = differences(records[0], other)
        for kind, label in KINDS.items():
            of_kind = [x for x in columns if x.kind == kind]
            if of_kind:
                worst = max(of_kind, key=lambda x: x.largest)
                rms = float(np.sqrt(np.mean([x.rms**2 for x in of_kind])))
                size = max(x.size for x in of_kind)
                rows.append([name, label, worst.largest, rms, worst.name, worst.time,
                             size])  # fmt: skip
        every += [
            [name, f"{x.kind}[{x.name}]", x.largest, x.rms, x.time, x.size]
            for x in columns
        ]
    biggest = f"largest in {first}"
    header = ("run", "kind", "largest", "rms", "largest of", "at t [s]", biggest)
    content += table(header, rows)
    labels = ("run", "column", "largest", "rms", "at t [s]", biggest)
    return ReportSection(
        "Differences",
        f"Each run minus {first}: the largest difference of all joints over time, then"
        " by column; SI units.",
        content + folded("Every column", table(labels, every)),
    )
