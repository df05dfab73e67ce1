"""Plots of evaluations of a robot's model."""

from __future__ import annotations

from typing import Any

from dyn_core.identification import Evaluation
from dyn_core.plots.figures import COLOURS, GREY, Curve, Panel, draw
from dyn_core.plots.motions import thinned


def evaluation_figure(evaluation: Evaluation) -> Any:
    """Return a figure of measured and computed joint forces and residuals, by joint."""
    motion, model = evaluation.motion, evaluation.model
    rows = thinned(len(motion.t))
    panels = []
    for j, name in enumerate(evaluation.names):
        unit = "N" if model.joint_kind(name) == "prismatic" else "N·m"
        curves = [
            Curve(motion.t[rows], y[rows, j], label, style, colour)
            for label, y, style, colour in (
                ("measured", motion.tau, "-", COLOURS[0]),
                ("model", evaluation.tau, "--", COLOURS[1]),
                ("residual", evaluation.residual, "-", GREY),
            )
        ]
        panels.append(Panel(f"{name} [{unit}]", curves))
    return draw(panels, f"{model.name}: joint forces")
