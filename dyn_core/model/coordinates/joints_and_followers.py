"""Coordinates by joint: split q and qd, assemble forces and matrices.

The coordinates of followers are computed from their leaders here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dyn_core.model.assembly.tree import Tree
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Vector

NOTHING = Vector(())
Blocks = Mapping[tuple[int, int], Matrix]  # by (body of rows, body of columns)


def split_q(tree: Tree, q: Vector) -> list[Vector]:
    """Return the position of each joint, by body; a follower's is ratio q + offset.

    `q` has nq entries; entry 0 of the result is empty.
    """
    parts = [NOTHING]
    for i in tree.bodies:
        _, ratio, offset = tree.leader[i]
        lead_q = q[tree.q_slices[i]]
        parts.append(lead_q if ratio is None else ratio @ lead_q + offset)
    return parts


def split_v(tree: Tree, v: Vector) -> list[Vector]:
    """Return each joint's velocity or acceleration by body; a follower's is ratio v.

    `v` has nv entries; entry 0 of the result is empty.
    """
    parts = [NOTHING]
    for i in tree.bodies:
        ratio = tree.leader[i].ratio
        lead_v = v[tree.v_slices[i]]
        parts.append(lead_v if ratio is None else ratio @ lead_v)
    return parts


def join_v(tree: Tree, parts: Sequence[Vector]) -> Vector:
    """Return the parts of the independent joints as one Vector (nv,), in order of qd.

    `parts` is indexed by body; the parts of followers are ignored.
    """
    return Vector(x for i in tree.independent for x in parts[i])


def join_force(tree: Tree, parts: Sequence[Vector]) -> Vector:
    """Return joint forces (nv,) from `parts`, the force of each joint by body.

    The force of a follower, times ratio.T, is added to the force of its leader.
    """
    sums = [NOTHING, *(parts[i] for i in tree.bodies)]
    for i in tree.bodies:
        lead, ratio, _ = tree.leader[i]
        if ratio is not None:
            sums[lead] = sums[lead] + ratio.T @ sums[i]
    return join_v(tree, sums)


def join_matrix(tree: Tree, blocks: Blocks) -> Matrix:
    """Return a symmetric matrix (nv, nv) from blocks of its lower triangle.

    Blocks of followers are contracted by their ratios and added to their leaders'
    blocks.

    Args:
        tree: Robot.
        blocks: By (i, j), where body j is i or an ancestor of i: block of rows of joint
            i and columns of joint j. Absent blocks are zero; block (j, i) is added as
            the transpose.
    """
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
    """Return a matrix (nv, nv), not symmetric in general, from blocks.

    Blocks of followers are contracted by their ratios and added to their leaders'
    blocks.

    Args:
        tree: Robot.
        blocks: By (i, j), any bodies: block of rows of joint i and columns of joint j.
            Absent blocks are zero.
    """
    nv = tree.nv
    M = [[0.0] * nv for _ in range(nv)]
    for (i, j), block in blocks.items():
        contracted = _contracted(tree, i, j, block)
        for a, row in enumerate(range(*tree.v_slices[i].indices(nv))):
            for b, column in enumerate(range(*tree.v_slices[j].indices(nv))):
                M[row][column] = M[row][column] + contracted[a, b]
    return Matrix(M)


def _contracted(tree: Tree, i: int, j: int, block: Matrix) -> Matrix:
    """Return ratio_i.T block ratio_j, in coordinates of the leaders of i and j."""
    left, right = tree.leader[i].ratio, tree.leader[j].ratio
    block = block if left is None else left.T @ block
    return block if right is None else block @ right


def join_columns(tree: Tree, parts: Mapping[int, MotionSubspace]) -> Matrix:
    """Return a Jacobian (6, nv), [angular; linear], from columns by body.

    Columns of followers are multiplied by their ratios and added to their leaders'
    columns.

    Args:
        tree: Robot.
        parts: By body: columns of its joint's coordinates. Columns of other bodies are
            zero.
    """
    columns = [Motion.zero()] * tree.nv
    for i, subspace in parts.items():
        ratio = tree.leader[i].ratio
        S = subspace if ratio is None else subspace @ ratio
        for k, column in enumerate(S, tree.v_slices[i].start):
            columns[k] = columns[k] + column
    return Matrix(zip(*columns, strict=True)) if columns else Matrix([[]] * 6)
