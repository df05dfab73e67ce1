"""Plots by matplotlib, which is imported when one is drawn (extra `plot`)."""

from dyn_core.plots.figures import Curve, Panel, check_plot, draw, new_figure, save
from dyn_core.plots.motions import plot_motion

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "Curve",
    "Panel",
    "check_plot",
    "draw",
    "new_figure",
    "plot_motion",
    "save",
]
