"""Figures of curves over time: common style, accessible colours, limits, units."""

from __future__ import annotations

import base64
import importlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.validation import shown, writing
from dyn_core.validation.file_names import check_file_name
from dyn_core.validation.quoting import plot_text

# Okabe and Ito's colours, which differ for any sight, without the yellow that
# is too light for lines; beyond seven curves the line style changes.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
STYLES = ("-", "--", "-.", ":")
GREY = "#767676"
DPI = 100  # pixels per inch of pictures and films
NO_PICTURES = "matplotlib is not installed (pip install 'dyn_ros[plot]')"
_LOOK: Any = {
    "axes.formatter.useoffset": False,  # differences would look like values
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
_WIDTH, _HEIGHT = 9.0, 2.1  # width of a figure, height of one of its rows [inch]
_NEAR = 0.3  # distance from which a limit is drawn, part of the range of both limits
_LEAST = 1e-6  # smallest range of an axis, part of its values: hides rounding errors
_LINE = 0.19  # height of a legend row [inch]
_LETTERS = 118  # characters in a legend row


class Curve(NamedTuple):
    """A curve of a plot.

    Attributes:
        t, y: Coordinates of its points along the horizontal and vertical axis, arrays
            of one length.
        label: Name in the legend; empty: it is not listed.
        style: Line style of matplotlib; empty: the default for its position in the
            panel.
        colour: Colour of matplotlib; None: the one of COLOURS for its position.
        width: Line width [pt].
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
        curves: Curves.
        limits: Limit of the absolute value of each curve, or its (lower, upper) limits,
            in the unit of y; infinity or no entry: none. A limit is drawn if the curve
            comes closer to it than 30 % of the range between both: a thin line in the
            curve's colour, or in grey if several curves share the limit.
        remark: Short text above the panel.
    """

    label: str
    curves: Sequence[Curve]
    limits: Any = ()
    remark: str = ""


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def new_figure(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """Return a figure without a window, and its axes as an array (rows, columns).

    Args:
        rows, columns: Numbers of axes.
        options: Options of matplotlib's `Figure.subplots`, and `figsize`, width and
            height [inch]; without it 9 and 0.9 + 2.1 rows.

    Raises:
        UnsupportedError: matplotlib is not installed; says how to install it.
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


def blank_figure(width: int, height: int, flat: bool) -> tuple[Any, Any]:
    """Return (figure, axes), without a window: a hidden Axes that fills the figure.

    `width` and `height` are in pixels; `flat` axes are two-dimensional, others
    three-dimensional.
    """
    figure, axes = new_figure(
        figsize=(width / DPI, height / DPI),
        subplot_kw={"projection": "rectilinear" if flat else "3d"},
    )
    figure.set_layout_engine("none")
    figure.set_dpi(DPI)
    axis = axes[0, 0]
    axis.set_position((0, 0, 1, 1))
    axis.set_axis_off()
    return figure, axis


def pixels(figure: Any) -> np.ndarray:
    """Draw a figure of matplotlib and return its picture, (height, width, 3) uint8.

    It is RGB with the top row first, a copy.
    """
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba(), np.uint8)[..., :3].copy()


def film_writer(path: str | os.PathLike[str], fps: float) -> Any:
    """Return matplotlib's MovieWriter for a film, .gif or .mp4; nothing is written yet.

    Args:
        path: File of the film; only its suffix is used, in any case.
        fps: Pictures per second.

    Raises:
        SettingError: The file is of another kind.
        UnsupportedError: matplotlib is not installed, or .mp4 is wanted, and ffmpeg is
            not.
    """
    new_figure()  # raises without matplotlib
    from matplotlib import animation

    kind = Path(path).suffix.lower()
    if kind == ".gif":
        return animation.PillowWriter(fps=fps)  # type: ignore[arg-type]
    if kind != ".mp4":
        raise SettingError(
            f"'{path}': no videos of this kind; valid: .gif, .mp4", "path"
        )
    if not animation.FFMpegWriter.isAvailable():
        raise UnsupportedError(f"'{path}': .mp4 needs ffmpeg on the PATH; valid: .gif")
    return animation.FFMpegWriter(fps=fps)  # type: ignore[arg-type]


def draw(panels: Sequence[Panel], title: str = "", across: str = "time [s]") -> Any:
    """Return a figure of panels below one another with a common horizontal axis.

    Panels whose curves have the same labels share the first one's legend. Without
    panels the figure has empty axes.

    Args:
        panels: Panels from top to bottom.
        title: Title of the figure; empty: none.
        across: Label of the horizontal axis.

    Raises:
        UnsupportedError: matplotlib is not installed.
        ValueError: t and y of a curve differ in length, or a limit has three numbers.
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
    """Write a title above a figure, in place and literally; nothing if it is empty."""
    if title:
        figure.suptitle(
            plot_text(title), x=0.01, ha="left", fontsize=11, fontweight="bold"
        )


def _columns(labels: Sequence[str]) -> int:
    """Return the number of legend columns that fit in one row, at least 1."""
    return max(1, min(len(labels), int(_LETTERS / (max(map(len, labels)) + 6))))


def _draw_panel(axis: Any, panel: Panel) -> None:
    """Draw curves, the limits that they approach, and a remark above the axes.

    Limit k belongs to curve k: a number x stands for the pair (-x, x). It is drawn if
    the curve comes closer to it than 0.3 times the pair's range, finite and > 0. The
    axis spans at least 1e-6 times its largest value. The remark is the panel's, then
    that limits are drawn or, if none is, the least absolute limit, unless the last one
    is a pair.
    """
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
        if k >= len(panel.limits):
            continue
        paired = np.ndim(panel.limits[k]) > 0
        limits = np.multiply(panel.limits[k], 1.0 if paired else (-1.0, 1.0))
        distance = _NEAR * (limits[1] - limits[0])
        for level, sign in zip(limits.tolist(), (-1, 1), strict=True):
            if 0 < distance < np.inf:
                by_limit.setdefault(level, []).append(colour)
                if (sign * (finite - level) >= -distance).any():
                    near.add(level)
    for level in sorted(near):
        colour = by_limit[level][0] if len(by_limit[level]) == 1 else GREY
        axis.axhline(level, color=colour, lw=0.9, ls=(0, (1, 2)))
    axis.set_ylabel(plot_text(panel.label))
    axis.yaxis.get_offset_text().set_ha("right")  # beside the legend, not below it
    axis.margins(x=0.01)
    low, high = axis.get_ylim()
    widening = (_LEAST * max(abs(low), abs(high)) - (high - low)) / 2
    if widening > 0.0:
        axis.set_ylim(low - widening, high + widening)
    said = [panel.remark] if panel.remark else []
    if near:
        said.append("dotted: limits that are near")
    elif by_limit and not paired:
        said.append(f"limits from ±{min(map(abs, by_limit)):g} on")
    axis.annotate(
        plot_text(", ".join(said)), (1.0, 1.0), xycoords="axes fraction", ha="right",
        va="bottom", fontsize=8, color=GREY,
    )  # fmt: skip


def check_plot(path: str) -> None:
    """Check the path of a plot, before time is spent on its content.

    Args:
        path: File of the plot.

    Raises:
        UnsupportedError: matplotlib is not installed.
        SettingError: `path` is no path, its extension is missing or not one of
            matplotlib's, which are in lower case (.PNG is refused), its folder does not
            exist, or it is a folder.
    """
    if not isinstance(path, str | os.PathLike):
        raise SettingError(f"plot {shown(path)}; valid: the name of a file", "plot")
    figure, _ = new_figure()
    kinds = sorted(figure.canvas.get_supported_filetypes())
    check_file_name(path, [f".{kind}" for kind in kinds], "plot", "plot")


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, replacing it; without an extension .png is added."""
    try:
        with writing(path, "plot"):
            figure.savefig(path, dpi=110)
    except SettingError:
        raise
    except ValueError as error:  # matplotlib does not support the file type
        raise SettingError(f"plot {path}: {error}", "plot") from error


def save(figure: Any, path: str) -> None:
    """Write a figure to a file, an existing one is replaced, and print `path`.

    Args:
        figure: Figure of matplotlib.
        path: File; its extension decides the format, without one .png is added to the
            file, but not to the printed path.

    Raises:
        SettingError: The file cannot be written, or matplotlib does not support its
            type.
    """
    save_figure(figure, path)
    print(f"plot: {path}")


def data_uri(figure: Any) -> str:
    """Return a figure as an SVG in a data URI, the text for an <img src>.

    The figure is drawn once; `savefig` would draw it a second time for its layout.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    content, canvas, dpi = io.BytesIO(), figure.canvas, figure.dpi
    with rc_context(_LOOK):
        FigureCanvasSVG(figure).print_svg(content, metadata={"Date": None})
    figure.set_canvas(canvas)
    figure.dpi = dpi
    coded = base64.b64encode(content.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{coded}"
