"""Plots of recordings; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.identification import Evaluation, JointRecord


class Curve(NamedTuple):
    """A line of a plot.

    Attributes:
        t, y: Points.
        label: What the legend calls it.
        style: Of matplotlib.
    """

    t: np.ndarray
    y: np.ndarray
    label: str
    style: str = "-"


def check_plot(path: str) -> None:
    """Refuse a file of a plot before time is spent on what it shows.

    Raises:
        UnsupportedError: matplotlib is not installed.
        SettingError: No file of this kind can be written there.
    """
    figure, _ = _figure(1)
    kinds = figure.canvas.get_supported_filetypes()
    suffix = Path(path).suffix[1:]
    if suffix not in kinds:
        valid = ", ".join(f".{kind}" for kind in sorted(kinds))
        raise SettingError(
            f"plot {path!r}; valid: a file that ends with {valid}", "plot"
        )
    if not Path(path).parent.is_dir():
        raise SettingError(f"plot {path!r}; there is no such folder", "plot")


def plot_record(record: JointRecord, path: str) -> None:
    """Draw positions, velocities and joint forces of a recording."""
    names = record.names or tuple(f"{k + 1}" for k in range(record.q.shape[1]))
    parts = {
        "position [rad | m]": record.q,
        "velocity [rad/s | m/s]": record.qd,
        "effort [N·m | N]": record.tau,
        "command [N·m | N]": record.command,
    }
    shown = {label: array for label, array in parts.items() if array is not None}
    rows = [
        [
            Curve(record.t, column, name)
            for name, column in zip(names, array.T, strict=True)
        ]
        for array in shown.values()
    ]
    _draw(rows, list(shown), path)


def plot_evaluation(evaluation: Evaluation, path: str) -> None:
    """Draw measured and computed joint forces and residuals, a row for each joint."""
    motion = evaluation.motion
    rows = [
        [
            Curve(motion.t, motion.tau[:, j], "measured"),
            Curve(motion.t, evaluation.tau[:, j], "model", "--"),
            Curve(motion.t, evaluation.residual[:, j], "residual"),
        ]
        for j in range(len(evaluation.names))
    ]
    _draw(rows, [f"{name} [N·m | N]" for name in evaluation.names], path)


def _figure(rows: int) -> tuple[Any, Any]:
    """Return a figure without a window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            f"plots need matplotlib ({error}): pip install 'dyn_ros[plot]'"
        ) from error
    figure = Figure(figsize=(9.0, 1.0 + 2.0 * rows))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]


def _draw(rows: Sequence[Sequence[Curve]], labels: Sequence[str], path: str) -> None:
    """Save rows of curves as a picture."""
    figure, axes = _figure(len(rows))
    for axis, curves, label in zip(axes, rows, labels, strict=True):
        for curve in curves:
            axis.plot(curve.t, curve.y, curve.style, label=curve.label, lw=0.9)
        axis.set_ylabel(label)
    axes[0].legend(fontsize=7, ncol=4)
    axes[-1].set_xlabel("time [s]")
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=100)
    except (OSError, ValueError) as error:
        raise SettingError(f"plot {path}: {error}", "plot") from error
    print(f"plot: {path}")
