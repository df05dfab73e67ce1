"""Pivots of the joint-space inertia: tolerances, names, and the factorisation."""

from __future__ import annotations

from collections import Counter

from dyn_core.model.assembly.tree import Tree
from dyn_core.spatial import Matrix
from dyn_core.spatial.block_factors import BlockFactored
from dyn_core.spatial.linear import Factored

MANY = 10  # number of coordinates from which H is factored by blocks
LONG = 8  # maximum number of coordinates in a block


def pivot_tolerances(tree: Tree) -> tuple[tuple[float, ...], ...]:
    """Return by body and coordinate the largest pivot that means a singular joint.

    It is tree.pivot * inertia_scale, plus for each follower ratio² times its own such
    product, at the coordinates of the leader. Entry 0 has no meaning.
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
    """Return two lists in the order of qd, nv: pivot tolerances, and names for errors.

    The name of a coordinate is "joint NAME".
    """
    tolerances, names = [0.0] * tree.nv, [""] * tree.nv
    by_body = pivot_tolerances(tree)
    for i in tree.independent:
        columns = tree.v_slices[i]
        tolerances[columns] = by_body[i]
        names[columns] = [f"joint {tree.names[i]}"] * tree.joint[i].nv
    return tolerances, names


def joint_factors(tree: Tree, H: Matrix) -> Factored | BlockFactored:
    """Return the factors of a joint-space inertia H (nv, nv), symmetric (not checked).

    They are Factored for fewer than MANY (10) coordinates, else BlockFactored. Raises
    SingularError with the name of the joint if a pivot is at or below its tolerance;
    with traced numbers the Program raises it. NaN is no error: it gives NaN.
    """
    tolerances, names = coordinate_pivots(tree)
    if tree.nv < MANY:
        return Factored(H, tolerances, names)
    return BlockFactored(H, tolerances, names, _branch_blocks(tree))


def _branch_blocks(tree: Tree) -> list[list[int]]:
    """Return blocks of indices in qd that are factored together, parents first.

    Each is a piece of a branch without side branches, with at most LONG (8) coordinates
    unless a single joint has more.
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
    """Return the nearest ancestor of body i that has own coordinates, or 0."""
    p = tree.parent[i]
    while p and p not in moving:
        p = tree.parent[p]
    return p
