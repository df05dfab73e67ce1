"""Plots of motions: positions, velocities, joint forces with limits, energy."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.plots.figures import COLOURS, STYLES, Curve, Panel, draw

LABELS = {
    "q": "position\n[rad | m]",
    "qd": "velocity\n[rad/s | m/s]",
    "qdd": "acceleration\n[rad/s² | m/s²]",
    "tau": "joint force\n[N·m | N]",
    "command": "command\n[N·m | N]",
}
FORCES = ("tau", "command")
MOST_POINTS = 4000  # maximum points of a curve


def plot_motion(
    t: np.ndarray,
    columns: Mapping[str, np.ndarray | None],
    names: Mapping[str, Sequence[str]],
    limits: Mapping[str, np.ndarray] | None = None,
    energy: np.ndarray | None = None,
    title: str = "",
    largest: int | None = None,
) -> Any:
    """Return a figure of a motion, with a panel for each column that is not None.

    At most 4000 (MOST_POINTS) rows are drawn. A coordinate has one colour and line
    style in all panels. Joints of several coordinates, such as a floating base, have
    panels of their own, and none for joint forces that are always zero.

    Args:
        t: Times, (rows,) [s].
        columns: By key of LABELS (q, qd, qdd, tau, command), arrays (rows, coordinates)
            [SI]; `q_ref` is drawn thin and dashed beside `q`, without `q` not at all.
            Keys may be missing.
        names: Names of the coordinates by the same keys, but q_ref.
        limits: By key of LABELS, (coordinates,) limits of the absolute values, or
            (coordinates, 2), lower and upper; infinite: none. None: no limits.
        energy: Total energy, (rows,) [J]; None or empty: no such panel.
        title: Title of the figure; empty: none.
        largest: Maximum number of coordinates in a panel: those that change most in
            position, and those with the largest absolute values of other columns; NaN
            counts as zero. None: all.

    Raises:
        UnsupportedError: matplotlib is not installed.
        SettingError: There is no row.
        ValueError: An array has another number of rows than t.
    """
    if not len(t):
        raise SettingError("a motion without rows cannot be drawn", "t")
    panels = []
    rows = thinned(len(t))
    there = [key for key in LABELS if columns.get(key) is not None]
    listed = dict.fromkeys(name for key in there for name in names[key])
    looks = {
        name: _look(k)
        for several in (True, False)
        for k, name in enumerate(x for x in listed if _is_one_of(x, listed) == several)
    }
    for key in there:
        array, reference = columns[key], columns.get("q_ref")
        assert array is not None
        for several in (True, False):
            chosen = [
                k for k, name in enumerate(names[key])
                if _is_one_of(name, listed) == several
                and not (several and key in FORCES and not array[:, k].any())
            ]  # fmt: skip
            if not chosen:
                continue
            whole, chosen = len(chosen), _largest(key, array, chosen, largest)
            curves = [
                Curve(t[rows], array[rows, k], name, *looks[name])
                for k in chosen for name in [names[key][k]]
            ]  # fmt: skip
            remarks = [f"{len(chosen)} largest of {whole}"] * (len(chosen) < whole)
            if key == "q" and reference is not None and np.isfinite(reference).any():
                remarks.append("thin, dashed: reference")
                curves += [
                    Curve(t[rows], reference[rows, k], "", "--", "#555555", 0.6)
                    for k in chosen
                ]
            bounds = limits[key][chosen] if limits and key in limits else ()
            panels.append(Panel(LABELS[key], curves, bounds, ", ".join(remarks)))
    if energy is not None and len(energy):
        curve = Curve(t[rows], energy[rows], "kinetic + potential", colour="#000000")
        panels.append(Panel("energy [J]", [curve]))
    return draw(panels, title)


def _largest(
    key: str, array: np.ndarray, chosen: list[int], count: int | None
) -> list[int]:
    """Return the `count` of the `chosen` columns that are largest, in their order.

    Largest is by maximum minus minimum for q, else by absolute values; NaN is zero.
    """
    known = np.nan_to_num(array[:, chosen])
    size = np.ptp(known, axis=0) if key == "q" else np.abs(known).max(axis=0)
    return [chosen[k] for k in sorted(np.argsort(-size, kind="stable")[:count])]


def _is_one_of(name: str, names: Container[str]) -> bool:
    """Return whether a name JOINT.K is of a joint with both JOINT.0 and JOINT.1."""
    joint, _, k = name.rpartition(".")  # a joint may be called "arm.1"
    return k.isdigit() and f"{joint}.0" in names and f"{joint}.1" in names


def _look(k: int) -> tuple[str, str]:
    """Return the line style and the colour of coordinate k, 0 or more; both repeat."""
    return STYLES[k // len(COLOURS) % len(STYLES)], COLOURS[k % len(COLOURS)]


def thinned(count: int) -> slice:
    """Return a slice of every k-th of `count` rows, at most 4000, from the first on."""
    return slice(None, None, max(1, -(-count // MOST_POINTS)))
