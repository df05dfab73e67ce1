"""Pivots of the joint-space inertia: which are too small, and whose they are."""

from __future__ import annotations

from dyn_core.model.tree import Tree
from dyn_core.spatial import Matrix
from dyn_core.spatial.linear import Factored

PIVOT = 1e-13  # a pivot below this part of the inertia along its joint is zero


def pivot_tolerances(tree: Tree) -> tuple[tuple[float, ...], ...]:
    """Return by body: pivots at or below these mean a singular joint.

    That of a leader has a share of each of its followers.
    """
    rows = [[PIVOT * x for x in row] for row in tree.inertia_scale]
    for i in tree.bodies:
        lead, ratio, _ = tree.leader[i]
        if ratio is not None:
            for k, column in enumerate(zip(*ratio.rows, strict=True)):
                pairs = zip(column, tree.inertia_scale[i], strict=True)
                rows[lead][k] += PIVOT * sum(r * r * x for r, x in pairs)
    return tuple(tuple(row) for row in rows)


def joint_factors(tree: Tree, H: Matrix) -> Factored:
    """Factor a joint-space inertia; a singular pivot names its joint."""
    tolerances, names = [0.0] * tree.nv, [""] * tree.nv
    by_body = pivot_tolerances(tree)
    for i in tree.independent:
        columns = tree.v_slices[i]
        tolerances[columns] = by_body[i]
        names[columns] = [f"joint {tree.names[i]}"] * tree.joint[i].nv
    return Factored(H, tolerances, names)
