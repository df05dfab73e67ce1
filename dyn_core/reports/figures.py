"""Figures of reports: motion, tracking, limits, energy, contacts, times, parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.plots.figures import (
    COLOURS,
    GREY,
    Curve,
    Panel,
    blank_figure,
    draw,
    new_figure,
)
from dyn_core.plots.motions import thinned
from dyn_core.recordings import MotionRecord
from dyn_core.validation.quoting import plot_text

_BINS = 40  # bins of a histogram


def photographs_figure(pixels: np.ndarray) -> Any:
    """Return a figure that is filled by a picture, (height, width, 3) uint8."""
    height, width, _ = pixels.shape
    figure, axis = blank_figure(width, height, flat=True)
    axis.imshow(pixels, aspect="auto", interpolation="none")
    return figure


def tracking_figure(
    record: MotionRecord, error: np.ndarray, largest: int | None = None
) -> Any:
    """Return a figure of position minus reference over time, a curve a coordinate.

    `error` is (rows, nq). `largest` is the number of coordinates, those with the
    largest absolute errors; None: all. At most 4000 rows are drawn.
    """
    rows, names = thinned(len(record.t)), record.names("q")
    order = np.argsort(-np.abs(np.nan_to_num(error)).max(axis=0), kind="stable")
    chosen = sorted(order[:largest])
    curves = [Curve(record.t[rows], error[rows, k], names[k]) for k in chosen]
    left = len(chosen) < len(names)
    remark = f"{len(chosen)} largest of {len(names)}" if left else ""
    panel = Panel("position - reference\n[rad | m]", curves, remark=remark)
    return draw([panel])


def limits_figure(names: Sequence[str], rms: np.ndarray, largest: np.ndarray) -> Any:
    """Return a matplotlib figure with bars of joint forces in percent of their limits.

    It has one row for each joint, the first on top. rms and largest are divided by the
    limit.
    """
    rows = np.arange(len(names))
    figure, axes = new_figure(figsize=(9.0, 1.1 + 0.24 * len(names)))
    axis = axes[0, 0]
    axis.barh(rows, 100 * largest, 0.7, color=COLOURS[5], label="largest")
    axis.barh(rows, 100 * rms, 0.35, color=COLOURS[0], label="root mean square")
    axis.axvline(100, color=COLOURS[1], lw=1.2, ls="--", label="limit")
    axis.set_yticks(rows, [*map(plot_text, names)])
    axis.invert_yaxis()
    axis.set_xlim(0, max(105.0, 105 * float(largest.max(initial=0.0))))
    axis.set_xlabel("joint force, part of its limit [%]")
    axis.grid(axis="y", visible=False)
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
    return figure


def energy_figure(record: MotionRecord) -> Any:
    """Return a figure of the energies, and of the terms that changed them [J].

    The run must have rows and the series of energies; `correction` is optional.
    """
    series, rows = record.series, thinned(len(record.t))
    t, kinetic, potential = record.t, series["kinetic"], series["potential"]
    total = kinetic + potential
    have = [
        ("kinetic", kinetic, COLOURS[0], "-"),
        ("potential", potential, COLOURS[2], "-"),
        ("total", total, COLOURS[6], "--"),
    ]
    changed = [
        ("change of the total", total - total[0], COLOURS[6], "--"),
        ("work of joint forces", series["work"], COLOURS[0], "-"),
        ("- dissipation", -series["dissipation"], COLOURS[1], "-"),
        ("constraints", series["constraints"], COLOURS[3], "-"),
        ("correction", series.get("correction", 0.0 * t), COLOURS[5], "-"),
        ("residual", series["residual"], COLOURS[4], "-"),
    ]
    panels = [
        Panel(
            label,
            [
                Curve(t[rows], y[rows], name, style, colour)
                for name, y, colour, style in curves
                if name not in ("constraints", "correction") or y.any()
            ],
        )
        for label, curves in (("energy [J]", have), ("since the start [J]", changed))
    ]
    return draw(panels)


def contacts_figure(record: MotionRecord) -> Any:
    """Return a figure of contacts over time: number, force, overlap, residual.

    The overlap is -contact_gap [mm], below 0 where bodies are apart. Residuals below
    1e-18 are drawn there, on a logarithmic axis.
    """
    t, series = record.t, record.series
    rows = thinned(len(t))
    residual = np.maximum(series["contact_residual"], 1e-18)
    parts = [
        ("contacts", series["contacts"], COLOURS[0]),
        ("sum of contact\nforces [N]", series["contact_force"], COLOURS[2]),
        ("deepest overlap\n[mm]", -1e3 * series["contact_gap"], COLOURS[1]),
        ("residual of the\ncontact law", residual, COLOURS[3]),
    ]
    figure = draw(
        [Panel(x, [Curve(t[rows], y[rows], colour=colour)]) for x, y, colour in parts]
    )
    _whole_decades(figure.axes[3])
    return figure


def _whole_decades(axis: Any) -> None:
    """Make the vertical axis of data logarithmic, with two labels at least."""
    axis.set_yscale("log")
    low, high = np.log10(axis.dataLim.intervaly)
    axis.set_ylim(10.0 ** np.floor(low), 10.0 ** max(np.ceil(high), np.floor(low) + 1))


def times_figure(times: Mapping[str, np.ndarray]) -> Any:
    """Return a histogram of the wall times [s] of rows by run, without zeros.

    Each run must have a time above 0.
    """
    parts = {name: 1e6 * x[x > 0] for name, x in times.items()}
    low = min(float(x.min()) for x in parts.values())
    high = max(float(x.max()) for x in parts.values())
    bins = np.geomspace(0.9 * low, 1.1 * high, _BINS + 1)
    figure, axes = new_figure(figsize=(9.0, 2.6))
    axis = axes[0, 0]
    for k, (name, x) in enumerate(parts.items()):
        colour = COLOURS[k % len(COLOURS)]
        axis.hist(x, bins, histtype="step", color=colour, lw=1.4, label=plot_text(name))
        axis.axvline(float(np.median(x)), color=colour, lw=0.8, ls=":")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("wall time of a row [µs], dotted: median")
    axis.set_ylabel("rows")
    if len(parts) > 1:
        axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False)
    return figure


def differences_figure(
    t: np.ndarray, parts: Mapping[str, Mapping[str, np.ndarray]]
) -> Any:
    """Return a figure of differences to the first run over time, a panel for each part.

    `parts` has, by label of a panel, then by name of the run, the maximum absolute
    difference of each row. Differences are on a logarithmic axis, without zeros and
    NaN.
    """
    rows, panels = thinned(len(t)), []
    for label, by_run in parts.items():
        curves = [
            Curve(t[rows], np.where(y[rows] > 0, y[rows], np.nan), name)
            for name, y in by_run.items()
        ]
        panels.append(Panel(label, curves))
    figure = draw(panels)
    for axis in figure.axes:
        if any(np.isfinite(line.get_ydata()).any() for line in axis.lines):
            _whole_decades(axis)
        else:
            axis.set_ylim(0, 1)
            axis.annotate(
                "no difference", (0.5, 0.5), xycoords="axes fraction", color=GREY,
                ha="center",
            )  # fmt: skip
    return figure
