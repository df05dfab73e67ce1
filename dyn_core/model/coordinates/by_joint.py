"""Coordinates by joint: splitting q and qd, joining forces and matrices.

A follower's coordinates are made from its leader's here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyn_core.model.assembly.tree import Tree
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Vector

NOTHING = Vector(())
Blocks = Mapping[tuple[int, int], Matrix]  # by pair of bodies


def split_q(tree: Tree, q: Vector) -> list[Vector]:
    """Return by body the position of its joint; followers' from their leaders."""
    parts = [NOTHING]
    for i in tree.bodies:
        _, ratio, offset = tree.leader[i]
        lead_q = q[tree.q_slices[i]]
        parts.append(lead_q if ratio is None else ratio @ lead_q + offset)
    return parts


def split_v(tree: Tree, v: Vector) -> list[Vector]:
    """Return by body the velocity or acceleration of its joint."""
    parts = [NOTHING]
    for i in tree.bodies:
        ratio = tree.leader[i].ratio
        lead_v = v[tree.v_slices[i]]
        parts.append(lead_v if ratio is None else ratio @ lead_v)
    return parts


def join_v(tree: Tree, parts: Sequence[Vector]) -> Vector:
    """Collect what each independent joint has, in coordinate order."""
    return Vector(x for i in tree.independent for x in parts[i])


def join_force(tree: Tree, parts: Sequence[Vector]) -> Vector:
    """Collect joint forces; a follower's adds to its leader's, times ratio.T."""
    sums = [NOTHING, *(parts[i] for i in tree.bodies)]
    for i in tree.bodies:
        lead, ratio, _ = tree.leader[i]
        if ratio is not None:
            sums[lead] = sums[lead] + ratio.T @ sums[i]
    return join_v(tree, sums)


def join_matrix(tree: Tree, blocks: Blocks) -> Matrix:
    """Collect a symmetric matrix from its blocks (i, j), j an ancestor of i or i."""
    nv = tree.nv
    H = [[0.0] * nv for _ in range(nv)]
    for (i, j), block in blocks.items():
        rows, columns = tree.v_slices[i], tree.v_slices[j]
        contracted = _contracted(tree, i, j, block)
        for a, row in enumerate(range(rows.start, rows.stop)):
            for b, column in enumerate(range(columns.start, columns.stop)):
                x = contracted[a, b]
                H[row][column] = H[row][column] + x
                if i != j:
                    H[column][row] = H[column][row] + x
    return Matrix(H)


def join_slopes(tree: Tree, blocks: Blocks) -> Matrix:
    """Collect a matrix that is not symmetric from its blocks (i, j)."""
    nv = tree.nv
    M = [[0.0] * nv for _ in range(nv)]
    for (i, j), block in blocks.items():
        contracted = _contracted(tree, i, j, block)
        for a, row in enumerate(range(*tree.v_slices[i].indices(nv))):
            for b, column in enumerate(range(*tree.v_slices[j].indices(nv))):
                M[row][column] = M[row][column] + contracted[a, b]
    return Matrix(M)


def _contracted(tree: Tree, i: int, j: int, block: Matrix) -> Matrix:
    """Return a block of bodies i and j by their leaders' coordinates."""
    left, right = tree.leader[i].ratio, tree.leader[j].ratio
    block = block if left is None else left.T @ block
    return block if right is None else block @ right


def join_columns(tree: Tree, parts: Mapping[int, MotionSubspace]) -> Matrix:
    """Collect a Jacobian (6, nv) from each joint's columns; absent ones are zero."""
    columns = [Motion.zero()] * tree.nv
    for i, subspace in parts.items():
        ratio = tree.leader[i].ratio
        S = subspace if ratio is None else subspace @ ratio
        for k, column in enumerate(S, tree.v_slices[i].start):
            columns[k] = columns[k] + column
    return Matrix(zip(*columns, strict=True)) if columns else Matrix([[]] * 6)
