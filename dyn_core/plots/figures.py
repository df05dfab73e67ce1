"""Figures of curves over time: one look, colours for every eye, limits, units."""

from __future__ import annotations

import base64
import importlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError, why_unread
from dyn_core.validation.quoting import plot_text

# Okabe and Ito's colours, which differ for any sight, without the yellow that
# is too light for lines; beyond seven curves the line style changes.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
STYLES = ("-", "--", "-.", ":")
GREY = "#767676"
NO_PICTURES = "matplotlib is not installed (pip install 'dyn_ros[plot]')"
_LOOK: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "dyn_ros",
}
_WIDTH, _HEIGHT = 9.0, 2.1  # of a figure, and of each row of it [inch]
_NEAR = 0.4  # part of a limit from which on it is drawn
_LINE = 0.19  # height of a line of a legend [inch]
_LETTERS = 118  # in a line of a legend


class Curve(NamedTuple):
    """A line of a plot.

    Attributes:
        t, y: Points.
        label: What the legend calls it; empty: it is not listed.
        style: Of matplotlib.
        colour: None: the next of COLOURS.
        width: Of the line [pt].
    """

    t: np.ndarray
    y: np.ndarray
    label: str = ""
    style: str = ""
    colour: str | None = None
    width: float = 1.2


@dataclass(frozen=True)
class Panel:
    """Curves that share axes.

    Attributes:
        label: Quantity and unit, beside the vertical axis.
        curves: What is drawn.
        limits: By curve: largest size, drawn as two thin lines in its colour;
            infinity or nothing for none; grey where several curves share it.
        remark: What is drawn besides, in a few words.
    """

    label: str
    curves: Sequence[Curve]
    limits: Sequence[float] = ()
    remark: str = ""


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def new_figure(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """Return a figure without a window, and its axes as an array, rows x columns.

    Args:
        rows, columns: Of the axes.
        options: Of matplotlib's `Figure.subplots`; `figsize` [inch].

    Raises:
        UnsupportedError: matplotlib is not installed; says how.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            f"plots need matplotlib ({error}): pip install 'dyn_ros[plot]'"
        ) from error
    size = options.pop("figsize", (_WIDTH, 0.9 + _HEIGHT * rows))
    with rc_context(_LOOK):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def draw(panels: Sequence[Panel], title: str = "", across: str = "time [s]") -> Any:
    """Return a figure of panels below one another over the same axis.

    Args:
        panels: At least one.
        title: Above them; empty for none.
        across: Label of the horizontal axis.
    """
    legends: list[list[str]] = []
    for panel in panels:
        shown = [curve.label for curve in panel.curves if curve.label]
        legends.append([] if shown in legends else shown)
    lines = sum(-(-len(x) // _columns(x)) for x in legends if x)
    height = 0.7 + _HEIGHT * max(len(panels), 1) + _LINE * lines
    figure, axes = new_figure(
        max(len(panels), 1), sharex=True, figsize=(_WIDTH, height)
    )
    column = axes[:, 0]
    for axis, panel, shown in zip(column, panels, legends, strict=False):
        _draw_panel(axis, panel)
        if shown:
            axis.legend(
                loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=_columns(shown),
                borderaxespad=0.2, fontsize=8, frameon=False,
            )  # fmt: skip
    column[-1].set_xlabel(plot_text(across))
    put_title(figure, title)
    return figure


def put_title(figure: Any, title: str) -> None:
    """Write a title above a figure; empty for none."""
    if title:
        figure.suptitle(
            plot_text(title), x=0.01, ha="left", fontsize=11, fontweight="bold"
        )


def _columns(labels: Sequence[str]) -> int:
    """Return how many columns of a legend fit beside one another."""
    return max(1, min(len(labels), int(_LETTERS / (max(map(len, labels)) + 6))))


def _draw_panel(axis: Any, panel: Panel) -> None:
    """Draw curves and the limits near them; say what is drawn besides."""
    by_limit: dict[float, list[str]] = {}
    near: set[float] = set()
    for k, curve in enumerate(panel.curves):
        colour = curve.colour or COLOURS[k % len(COLOURS)]
        style = curve.style or STYLES[k // len(COLOURS) % len(STYLES)]
        axis.plot(
            curve.t, curve.y, style, color=colour, lw=curve.width,
            label=plot_text(curve.label) or None,
        )  # fmt: skip
        finite = curve.y[np.isfinite(curve.y)]
        if k < len(panel.limits) and 0 < panel.limits[k] < np.inf:
            limit = float(panel.limits[k])
            by_limit.setdefault(limit, []).append(colour)
            if np.abs(finite).max(initial=0.0) >= _NEAR * limit:
                near.add(limit)
    for limit in sorted(near):
        colour = by_limit[limit][0] if len(by_limit[limit]) == 1 else GREY
        for level in (-limit, limit):
            axis.axhline(level, color=colour, lw=0.9, ls=(0, (1, 2)))
    axis.set_ylabel(plot_text(panel.label))
    axis.margins(x=0.01)
    said = [panel.remark] if panel.remark else []
    if by_limit:
        far = f"limits from ±{min(by_limit):g} on"
        said.append("dotted: limits that are near" if near else far)
    axis.annotate(
        plot_text(", ".join(said)), (1.0, 1.0), xycoords="axes fraction", ha="right",
        va="bottom", fontsize=8, color=GREY,
    )  # fmt: skip


def check_plot(path: str, option: str = "plot") -> None:
    """Refuse a file of a plot before time is spent on what it shows.

    Raises:
        UnsupportedError: matplotlib is not installed.
        SettingError: No file of this kind can be written there.
    """
    figure, _ = new_figure()
    kinds = figure.canvas.get_supported_filetypes()
    suffix = Path(path).suffix[1:]
    if suffix not in kinds:
        valid = ", ".join(f".{kind}" for kind in sorted(kinds))
        raise SettingError(
            f"{option} {path!r}; valid: a file that ends with {valid}", option
        )
    if not Path(path).parent.is_dir():
        raise SettingError(f"{option} {path!r}; there is no such folder", option)


def save(figure: Any, path: str) -> None:
    """Write a figure as a picture and say so.

    Raises:
        SettingError: The file cannot be written.
    """
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise SettingError(f"plot {path}: {why_unread(error)}", "plot") from error
    except ValueError as error:  # of matplotlib: the kinds of files that it writes
        raise SettingError(f"plot {path}: {error}", "plot") from error
    print(f"plot: {path}")


def data_uri(figure: Any) -> str:
    """Return a figure as an SVG in a data URI, for a page that needs no other file."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context(_LOOK):
        figure.savefig(content, format="svg", metadata={"Date": None})
    coded = base64.b64encode(content.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{coded}"
