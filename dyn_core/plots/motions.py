"""Plots of motions: positions, velocities, joint forces with limits, energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.plots.figures import Curve, Panel, draw

LABELS = {
    "q": "position\n[rad | m]",
    "qd": "velocity\n[rad/s | m/s]",
    "qdd": "acceleration\n[rad/s² | m/s²]",
    "tau": "joint force\n[N·m | N]",
    "command": "command\n[N·m | N]",
}
MOST_POINTS = 4000  # maximum points of a curve


def plot_motion(
    t: np.ndarray,
    columns: Mapping[str, np.ndarray | None],
    names: Mapping[str, Sequence[str]],
    limits: np.ndarray | None = None,
    energy: np.ndarray | None = None,
    title: str = "",
) -> Any:
    """Return a figure of a motion, with a panel for each column that is not None.

    At most MOST_POINTS rows are drawn.

    Args:
        t: Times [s].
        columns: By key of LABELS, arrays (rows, coordinates) [SI]; `q_ref` is drawn
            thin and dashed beside `q`. Keys may be missing.
        names: Names of the coordinates by the same keys.
        limits: Maximum joint force of each coordinate [N·m | N]; infinity: no limit;
            None: no limits.
        energy: Total energy of each row [J]; None or empty: no such panel.
        title: Title of the figure; empty: none.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    panels = []
    rows = thinned(len(t))
    for key, label in LABELS.items():
        array = columns.get(key)
        if array is None or not array.shape[1]:
            continue
        curves = [
            Curve(t[rows], column[rows], name)
            for name, column in zip(names[key], array.T, strict=True)
        ]
        reference, remark = columns.get("q_ref"), ""
        if key == "q" and reference is not None and np.isfinite(reference).any():
            remark = "thin, dashed: reference"
            curves += [
                Curve(t[rows], column[rows], style="--", colour="#555555", width=0.6)
                for column in reference.T
            ]
        bounds = limits if key == "tau" and limits is not None else ()
        panels.append(Panel(label, curves, tuple(bounds), remark))
    if energy is not None and len(energy):
        curve = Curve(t[rows], energy[rows], "kinetic + potential", colour="#000000")
        panels.append(Panel("energy [J]", [curve]))
    return draw(panels, title)


def thinned(count: int) -> slice:
    """Return a slice that selects every k-th of `count` rows, at most MOST_POINTS."""
    return slice(None, None, max(1, -(-count // MOST_POINTS)))
