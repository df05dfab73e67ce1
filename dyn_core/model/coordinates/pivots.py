"""Pivots of the joint-space inertia: which are too small, and whose they are."""

from __future__ import annotations

from collections import Counter

from dyn_core.model.assembly.tree import Tree
from dyn_core.spatial import Matrix
from dyn_core.spatial.block_factors import BlockFactored
from dyn_core.spatial.linear import Factored

MANY = 10  # coordinates from which factors are made by blocks
LONG = 8  # coordinates of a block at most, where a branch has more


def pivot_tolerances(tree: Tree) -> tuple[tuple[float, ...], ...]:
    """Return by body: pivots at or below these mean a singular joint.

    That of a leader has a share of each of its followers.
    """
    rows = [[tree.pivot * x for x in row] for row in tree.inertia_scale]
    for i in tree.bodies:
        lead, ratio, _ = tree.leader[i]
        if ratio is not None:
            for k, column in enumerate(zip(*ratio.rows, strict=True)):
                pairs = zip(column, tree.inertia_scale[i], strict=True)
                rows[lead][k] += tree.pivot * sum(r * r * x for r, x in pairs)
    return tuple(tuple(row) for row in rows)


def coordinate_pivots(tree: Tree) -> tuple[list[float], list[str]]:
    """Return by coordinate the tolerance of its pivot, and the joint to name."""
    tolerances, names = [0.0] * tree.nv, [""] * tree.nv
    by_body = pivot_tolerances(tree)
    for i in tree.independent:
        columns = tree.v_slices[i]
        tolerances[columns] = by_body[i]
        names[columns] = [f"joint {tree.names[i]}"] * tree.joint[i].nv
    return tolerances, names


def joint_factors(tree: Tree, H: Matrix) -> Factored | BlockFactored:
    """Factor a joint-space inertia; a singular pivot names its joint."""
    tolerances, names = coordinate_pivots(tree)
    if tree.nv < MANY:
        return Factored(H, tolerances, names)
    return BlockFactored(H, tolerances, names, _branch_blocks(tree))


def _branch_blocks(tree: Tree) -> list[list[int]]:
    """Return the coordinates of each piece of a branch, parents first.

    A branch goes from joint to joint as long as nothing else is carried; it is cut
    where it is longer than LONG.
    """
    columns = [range(tree.nv)[part] for part in tree.v_slices]
    moving = sorted(i for i in tree.independent if columns[i])  # parents first
    above = {i: _moving_parent(tree, i, set(moving)) for i in moving}
    carried = Counter(above.values())
    blocks: dict[int, list[int]] = {0: []}  # by body, the block that it is in
    for i in moving:
        rows, p = list(columns[i]), above[i]
        same = p and carried[p] == 1 and len(blocks[p]) + len(rows) <= LONG
        blocks[i] = blocks[p] if same else []
        blocks[i] += rows
    unique = {id(block): block for block in blocks.values() if block}
    return list(unique.values())


def _moving_parent(tree: Tree, i: int, moving: set[int]) -> int:
    """Return the next body towards the base with coordinates of its own, or 0."""
    p = tree.parent[i]
    while p and p not in moving:
        p = tree.parent[p]
    return p
