"""HTML representation of a robot for notebooks: a table of its joints."""

from __future__ import annotations

import numpy as np

from dyn_core.model.assembly.tree import Tree
from dyn_core.plots.pages import table
from dyn_core.validation.quoting import html_text

_HEADER = ("joint", "kind", "lower", "upper", "velocity", "effort", "carries")
MOST = 60  # maximum number of joints shown


def html_table(tree: Tree) -> str:
    """Return name, sizes and joints of a robot as HTML; at most MOST joints."""
    rows = [_cells(tree, i) for i in tree.bodies][:MOST]
    more = f"<p>and {tree.nb - MOST} more</p>" if tree.nb > MOST else ""
    return (
        f"<div><b>{html_text(tree.name)}</b>: {tree.nb} moving bodies, nq {tree.nq},"
        f" nv {tree.nv}{table(_HEADER, rows)}{more}</div>"
    )


def _cells(tree: Tree, i: int) -> tuple[str, ...]:
    """Return the cells of a body's joint; empty for limits that do not exist."""
    leader, k = tree.leader[i].body, tree.v_slices[i].start
    kind, limits = tree.joint[i].kind, [""] * 4
    if leader != i:
        kind += f", follows {tree.names[leader]}"
    elif tree.joint[i].nv == 1:
        values = (
            tree.lower[k],
            tree.upper[k],
            tree.velocity_limit[k],
            tree.effort_limit[k] or np.inf,
        )
        limits = [f"{x:.4g}" if np.isfinite(x) else "" for x in values]
    m = tree.I[i].m
    carried = f"{m:.4g} kg" if isinstance(m, (int, float)) else ""
    return (tree.names[i], kind, *limits, carried)
