"""Sections of a report about one run; without matplotlib, notes replace figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dyn_core.errors import DynError, ModelWarning
from dyn_core.model import load
from dyn_core.plots.figures import COLOURS, can_draw
from dyn_core.plots.pages import (
    ReportSection,
    folded,
    note,
    paragraph,
    picture,
    table,
)
from dyn_core.recordings import MotionRecord
from dyn_core.recordings.runs import named_robot
from dyn_core.reports import figures
from dyn_core.view.film import pictures
from dyn_core.view.replay import of_motion

_CONTACT_SERIES = ("contacts", "contact_residual", "contact_gap", "contact_force")
UNDRIVEN = ("floating", "free_rpy")  # kinds of joints of a free base
LEGEND = len(COLOURS)  # maximum coordinates in a panel that is not folded
AT_LIMIT = 0.999  # ratio to a limit that counts as reached
QUIET = 1e-9  # exchanged energy relative to 1 J + total; less is rounding


def run_sections(record: MotionRecord) -> Iterator[ReportSection]:
    """Yield the sections about a run; those without data are left out."""
    yield facts_section(record)
    if not len(record.t):
        return
    shots = robot_pictures(record)
    if shots is not None:
        yield ReportSection(
            "Robot",
            "At the start, in the middle and at the end of the run.",
            picture(lambda: figures.photographs_figure(shots), "the robot"),
        )
    yield ReportSection(
        "Motion",
        "Positions, velocities and joint forces over time; dotted: limits of positions"
        " and joint forces that they come near.",
        _largest_first(
            record,
            partial(record.plot, energy=np.zeros(0)),
            "positions, velocities, forces",
        ),
    )
    if record.q_ref is not None and np.isfinite(record.q_ref).any():
        yield _tracking(record)
    if record.tau is not None:
        yield _limits(record)
    names = ("kinetic", "potential", "work", "dissipation", "constraints", "residual")
    if all(name in record.series for name in names):
        yield _energy(record)
    if all(name in record.series for name in _CONTACT_SERIES):
        yield _contacts(record)
    times = record.series.get("cycle_time")
    if times is not None and (times > 0).any():
        yield times_section({"this run": times})


def robot_pictures(record: MotionRecord) -> np.ndarray | None:
    """Return pictures of a run at start, half time and end, (height, width, 3) uint8.

    They are beside one another. None if they cannot be made, also if the facts name no
    robot that can be loaded and matches the recorded joints.
    """
    source, root_joint = named_robot(record.facts)
    if not source or not can_draw():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the record has them
        try:
            model = load(source, root_joint=root_joint or None)
            run = of_motion(model, record)
        except DynError:
            return None
        if model.name != record.facts.get("robot"):
            return None
        times = np.linspace(0.0, run.duration, 3)
        return np.concatenate([*pictures(run, times, width=380, height=340)], axis=1)


def facts_section(record: MotionRecord) -> ReportSection:
    """Return the section of robot, rows, settings, counters, versions and notes."""
    facts, rows = record.facts, []
    if "robot" in facts:
        rows.append(["robot", str(facts["robot"])])
        rows.append(["hash of the model", str(facts.get("model_hash", "-"))])
        rows.append(["read from", str(facts.get("read_from") or "-")])
    if len(record.t):
        rows.append(["rows", f"{len(record.t)}, {record.t[0]:g} to {record.t[-1]:g} s"])
    rows += [[key, str(x)] for key, x in facts.get("settings", {}).items()]
    rows += [[key, str(x)] for key, x in facts.get("counters", {}).items()]
    versions = facts.get("versions", {})
    if versions:
        rows.append(["versions", ", ".join(f"{k} {x}" for k, x in versions.items())])
    notes = "".join(note(sentence) for sentence in record.notes)
    return ReportSection(
        "What was run",
        "The robot, its settings and what computed it; runs with the same hash had the"
        " same model.",
        table((), rows) + notes,
    )


def tracking_error(record: MotionRecord) -> np.ndarray:
    """Return positions minus references, (rows, nq) [rad | m].

    Errors of joints that facts["joints"] calls "continuous" are wrapped to [-pi, pi).
    Where a reference is NaN, so is the error.

    Raises:
        SettingError: The run has no references.
    """
    error = record.column("q") - record.column("q_ref")
    kinds = record.facts.get("joints", {})
    for k, name in enumerate(record.names("q")):
        if kinds.get(name) == "continuous":
            error[:, k] = (error[:, k] + np.pi) % (2 * np.pi) - np.pi
    return error


def _tracking(record: MotionRecord) -> ReportSection:
    """Return the section about the tracking error of each coordinate.

    NaN, where there is no reference, is left out; without any there is 0.
    """
    error = tracking_error(record)
    rows = []
    for name, unit, column in zip(
        record.names("q"), record.units("q"), error.T, strict=True
    ):
        size = np.abs(np.nan_to_num(column))
        known = column[np.isfinite(column)]
        worst = int(size.argmax())
        rms = float(np.sqrt((known**2).mean())) if len(known) else 0.0
        bias = float(known.mean()) if len(known) else 0.0
        rows.append([name, unit, rms, float(size[worst]), bias, float(record.t[worst])])
    header = ("joint", "unit", "rms", "largest", "mean", "largest at t [s]")
    return ReportSection(
        "Tracking",
        "How far each joint was from its reference.",
        table(header, rows)
        + _largest_first(
            record,
            partial(figures.tracking_figure, record, error),
            "tracking error over time",
        ),
    )


def _largest_first(
    record: MotionRecord, drawn: Callable[..., Any], meaning: str
) -> str:
    """Return a figure as HTML; of many coordinates the largest, all folded below."""
    if max(len(record.names("q")), len(record.names("tau"))) <= LEGEND:
        return picture(drawn, meaning)
    whole = folded("All joints", picture(drawn, meaning))
    return picture(partial(drawn, largest=LEGEND), f"{meaning}, largest") + whole


def _limits(record: MotionRecord) -> ReportSection:
    """Return the section about joint forces, whose NaN count as 0, and their limits."""
    tau, limits = np.abs(np.nan_to_num(record.column("tau"))), record.effort_limits
    rms = np.sqrt((tau**2).mean(axis=0))
    largest, rows = tau.max(axis=0), []
    names, units = record.names("tau"), record.units("tau")
    undriven = {x for x, kind in record.facts.get("joints", {}).items()
                if kind in UNDRIVEN}  # fmt: skip
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        if not largest[k] and name.rpartition(".")[0] in undriven:
            continue  # no motor drives a floating base
        bounded = bool(np.isfinite(limits[k]))
        reached = float((tau[:, k] >= AT_LIMIT * limits[k]).mean())
        rows.append([
            name, unit, float(rms[k]), float(largest[k]),
            float(limits[k]) if bounded else "none",
            f"{100 * largest[k] / limits[k]:.1f} %" if bounded else "-",
            f"{100 * reached:.1f} %" if bounded else "-",
        ])  # fmt: skip
    header = (
        "joint", "unit", "rms", "largest", "limit", "largest / limit", "time at limit",
    )  # fmt: skip
    content = table(header, rows)
    chosen = np.flatnonzero(np.isfinite(limits))
    if len(chosen) and largest[chosen].any():
        parts = rms[chosen] / limits[chosen], largest[chosen] / limits[chosen]
        bars = [names[k] for k in chosen]
        content += picture(
            lambda: figures.limits_figure(bars, *parts), "parts of the limits"
        )
    return ReportSection(
        "Joint forces and limits",
        "How much of the motors' limits the run used.",
        content,
    )


def energy_sentence(record: MotionRecord) -> str:
    """Return sentences on the energy balance at a run's end and its largest residual.

    The latter is also given in percent of the largest of work, dissipation and range of
    the kinetic energy, unless the robot exchanges no energy. If the facts say that
    limit_stops acted, coordinates that passed their limits are named.
    """
    series = record.series
    total, residual = series["kinetic"] + series["potential"], series["residual"]
    end = {name: float(column[-1]) for name, column in series.items()}
    worst = float(np.abs(residual).max())
    turned = max(float(np.abs(series[k]).max()) for k in ("work", "dissipation"))
    turned = max(turned, float(np.ptp(series["kinetic"])))
    compared = "the robot exchanges no energy"
    if turned > QUIET * (1.0 + float(np.abs(total).max())):
        percent = 100 * worst / turned
        said = f"{percent:.2g}" if percent < 99.5 else f"{percent:.0f}"
        compared = (
            f"{said} % of the largest of work, dissipation and"
            " range of the kinetic energy"
        )
    names = ", ".join(record.beyond_limits)
    inside = names and record.facts.get("limit_stops")  # in a World: constraints
    stops = f" The residual contains the stops at limits of {names}." if inside else ""
    return (
        f"Energy change {total[-1] - total[0]:.6g} J = work {end['work']:.6g} J -"
        f" dissipation {end['dissipation']:.6g} J +"
        f" constraints {end['constraints']:.6g} J +"
        f" correction {end.get('correction', 0.0):.6g} J + residual"
        f" {end['residual']:.3g} J. The largest residual is {worst:.3g} J; {compared}."
        f"{stops}"
    )


def _energy(record: MotionRecord) -> ReportSection:
    """Return the section about the energy balance."""
    series = record.series
    total = series["kinetic"] + series["potential"]
    correction = series.get("correction", np.zeros(1))  # not in files of old releases
    rows = [
        ["kinetic", float(series["kinetic"][0]), float(series["kinetic"][-1])],
        ["potential", float(series["potential"][0]), float(series["potential"][-1])],
        ["total", float(total[0]), float(total[-1])],
        ["work of motors and forces on bodies", 0.0, float(series["work"][-1])],
        ["dissipation of joints", 0.0, float(series["dissipation"][-1])],
        ["work of constraints", 0.0, float(series["constraints"][-1])],
        ["correction of positions", 0.0, float(correction[-1])],
        ["residual", 0.0, float(series["residual"][-1])],
    ]
    return ReportSection(
        "Energy",
        "What the robot has, what came in and what was lost; the residual, what does"
        " not add up, is the error of integration and, in runs without a World, what"
        " stops at joint limits take.",
        table(("energy [J]", "first row", "last row"), rows)
        + paragraph(energy_sentence(record))
        + picture(lambda: figures.energy_figure(record), "energy over time"),
    )


def _contacts(record: MotionRecord) -> ReportSection:
    """Return the section about the contact solver, whose series the run must have."""
    series = record.series
    residual = series["contact_residual"]
    overlap = max(0.0, -float(series["contact_gap"].min()))
    rows = [
        ["most contacts at once", int(series["contacts"].max())],
        ["largest residual of the contact law", float(residual.max())],
        ["median residual", float(np.median(residual))],
        ["deepest overlap [m]", overlap],
        ["largest sum of forces [N]", float(series["contact_force"].max())],
    ]
    return ReportSection(
        "Contacts",
        "How well the steps keep the law of contact: impulses that push, no overlap,"
        " friction within its cone.",
        table(("", "value"), rows)
        + picture(lambda: figures.contacts_figure(record), "contacts over time"),
    )


def times_section(times: dict[str, np.ndarray]) -> ReportSection:
    """Return the section about the wall times [s] of rows by run, without zeros.

    Each run must have a time above 0.
    """
    rows = []
    for name, seconds in times.items():
        x = 1e6 * seconds[seconds > 0]
        median, most = np.percentile(x, (50, 99))
        rows.append([name, float(median), float(most), float(x.max()),
                     float(1e-6 * x.sum())])  # fmt: skip
    header = ("run", "median [µs]", "99 % [µs]", "largest [µs]", "sum [s]")
    return ReportSection(
        "Times",
        "Wall time of each row, controller and steps together, on the machine of the"
        " run; the first rows also load code.",
        table(header, rows)
        + picture(lambda: figures.times_figure(times), "histogram of wall times"),
    )
