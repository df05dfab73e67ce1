"""Curves of a replay beside its time line, with a mark at the current time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.view import colors
from dyn_core.view.replay import Replay

MOST_POINTS = 500  # maximum points of a curve
MOST_NAMED = 8  # maximum curves of a plot with a legend
STEPS = 100  # steps of the mark from left to right
MARK = "#202020"


class Curves:
    """The plots of a panel, one for each group of curves.

    Args:
        gui: GUI of the viser server.
        replay: Run whose curves are plotted.

    Attributes:
        plots: Handles of the plots.
    """

    def __init__(self, gui: Any, replay: Replay) -> None:
        rows = np.unique(np.linspace(0, len(replay.t) - 1, MOST_POINTS).astype(int))
        self._t = replay.t[rows] - replay.t[0]
        self._step = replay.duration / STEPS
        self._time = 0.0
        self._columns = []
        self.plots = []
        for title, (names, values) in replay.curves.items():
            columns = np.nan_to_num(values[rows].T)
            self._columns.append(columns)
            self.plots.append(
                gui.add_uplot(
                    with_mark(self._t, columns, self._time),
                    (*_series(names), {"label": "now", "stroke": MARK, "width": 1.0}),
                    title=title,
                    scales={"x": {"time": False}},
                    legend={"show": len(names) <= MOST_NAMED},
                    aspect=1.6,
                )
            )

    def mark(self, time: float, all_steps: bool = False) -> None:
        """Move the mark to a time since the start [s].

        Args:
            time: Time of the mark.
            all_steps: Whether small steps are shown, too; each step sends all curves.
        """
        if time == self._time or (
            abs(time - self._time) < self._step and not all_steps
        ):
            return
        self._time = time
        for plot, columns in zip(self.plots, self._columns, strict=True):
            plot.data = with_mark(self._t, columns, time)


def with_mark(
    t: np.ndarray, columns: np.ndarray, time: float
) -> tuple[np.ndarray, ...]:
    """Return times, curves and a last curve with a vertical line at one time.

    The curves are unchanged but for three equal points at the time of the mark.

    Args:
        t: Times, ascending, (n,) [s].
        columns: Curves, (k, n).
        time: Time of the mark [s].
    """
    low, high = float(columns.min()), float(columns.max())
    place = int(np.searchsorted(t, time, side="right"))
    times = np.insert(t, place, [time] * 3)
    curves = [
        np.insert(column, place, [float(np.interp(time, t, column))] * 3)
        for column in columns
    ]
    mark = np.full(len(times), low)
    mark[place + 1] = high
    return times, *curves, mark


def _series(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return labels and colours of the curves for uPlot, beginning with the time."""
    series: list[dict[str, Any]] = [{"label": "t [s]"}]
    for k, name in enumerate(names):
        stroke = colors.CURVES[k % len(colors.CURVES)]
        series.append({"label": name, "stroke": stroke, "width": 1.5})
    return series


__all__ = ["Curves", "with_mark"]
