"""Plots of tables: errors on a logarithmic axis, values with standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.plots.figures import COLOURS, GREY, new_figure, put_title
from dyn_core.validation.quoting import plot_text

_SMALLEST = 1e-18  # position of zero on the logarithmic axis
_ROW = 0.22  # height of a row [inch]
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def plot_errors(
    errors: Mapping[str, Mapping[str, float]],
    allowed: float | None = None,
    title: str = "",
) -> Any:
    """Return a figure of errors: a row for each name, a mark for each column.

    The axis of errors is logarithmic; errors below 1e-18 are drawn there, missing
    columns and NaN not at all. `allowed` is the maximum error that passes, drawn as a
    line.
    """
    names = list(errors)
    columns = list(dict.fromkeys(key for row in errors.values() for key in row))
    figure, axes = new_figure(figsize=(9.0, 1.7 + _ROW * max(len(names), 3)))
    axis = axes[0, 0]
    for k, column in enumerate(columns):
        values = [max(float(errors[name].get(column, np.nan)), _SMALLEST)
                  for name in names]  # fmt: skip
        lift = 0.5 * (k / max(len(columns) - 1, 1) - 0.5)
        axis.plot(
            values, np.arange(len(names)) + lift, MARKS[k % len(MARKS)],
            color=COLOURS[k % len(COLOURS)], label=plot_text(column), ms=5,
        )  # fmt: skip
    axis.set_xscale("log")
    if allowed is not None:
        axis.axvline(allowed, color=GREY, ls="--", lw=1.0, label=f"allowed {allowed:g}")
    _label(axis, names, 9, "error")
    put_title(figure, title)
    return figure


def _label(axis: Any, names: Sequence[str], size: float, across: str) -> None:
    """Write names of rows at y = 0, 1, ... from the top, the label, and the legend."""
    axis.set_yticks(range(len(names)), [*map(plot_text, names)], fontsize=size)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlabel(across)
    axis.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, fontsize=8, frameon=False
    )


def plot_ranges(
    names: Sequence[str],
    values: np.ndarray,
    deviations: np.ndarray,
    before: np.ndarray,
    title: str = "",
) -> Any:
    """Return a figure of values with standard deviations and previous values.

    Arrays are (rows,). Lengths are relative to the larger absolute value of value and
    previous value, at least 1e-12, so that names of any unit share an axis, -2 to 2. A
    deviation larger than both values is drawn faintly; a value of infinite or NaN
    deviation as an open circle without bar.
    """
    scale = np.maximum(np.maximum(np.abs(values), np.abs(before)), 1e-12)  # not 0
    rows = np.arange(len(names))
    figure, axes = new_figure(figsize=(9.0, 1.7 + _ROW * max(len(names), 3)))
    axis = axes[0, 0]
    known = np.isfinite(deviations)
    axis.plot(before / scale, rows, "|", color=GREY, ms=10, mew=2, label="before")
    vague = known & (deviations > scale)
    for chosen, alpha, label in (
        (known & ~vague, 1.0, "identified, ± one standard deviation"),
        (vague, 0.3, "the same, hardly known"),
    ):
        if chosen.any():
            axis.errorbar(
                (values / scale)[chosen], rows[chosen], fmt="o", ms=4, capsize=2,
                xerr=np.minimum(deviations / scale, 5.0)[chosen], color=COLOURS[0],
                label=label, alpha=alpha,
            )  # fmt: skip
    if not known.all():
        axis.plot(
            (values / scale)[~known], rows[~known], "o", ms=4, mfc="none",
            color=COLOURS[1], label="only in combinations with others",
        )  # fmt: skip
    axis.set_xlim(-2.0, 2.0)
    _label(axis, names, 7, "value / larger of the values before and after")
    put_title(figure, title)
    return figure
