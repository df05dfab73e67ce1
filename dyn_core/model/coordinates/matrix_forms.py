"""Forms of joint-space matrices: dense, packed triangles, structural nonzeros.

    dense     (nv, nv)
    packed    a symmetric matrix as its lower triangle, row by row; others are dense
    sparse    the entries that are not zero by the structure of the tree, row by row; of
        a symmetric matrix only the lower triangle

Source: RBDA, section 6.4, on which entries of H are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.model.assembly.tree import Tree

FORMS = ("dense", "packed", "sparse")
Places = tuple[tuple[int, ...], tuple[int, ...]]
_SYMMETRIC = ("joint_matrix", "symmetric")
_OF_TREE = ("joint_matrix", "joint_slopes", "joint_stiffness", "joint_damping")


def kept_places(tree: Tree, kind: str, form: str) -> Places | None:
    """Return (rows, columns) of a matrix's stored entries, in order; None: all (dense).

    `kind` is that of its Port. joint_matrix and symmetric can be packed; joint_matrix,
    joint_slopes, joint_stiffness and joint_damping can be sparse, symmetric is packed
    instead. A sparse one has places, even if all are stored.
    """
    if form == "sparse" and kind in _OF_TREE:
        pairs = _tree_places(tree)
    elif form != "dense" and kind in _SYMMETRIC:
        pairs = [(i, j) for i in range(tree.nv) for j in range(tree.nv)]
    else:
        return None
    if kind in _SYMMETRIC:
        pairs = [(i, j) for i, j in pairs if j <= i]
    return tuple(i for i, _ in pairs), tuple(j for _, j in pairs)


def changes_some(form: str, kinds: Sequence[str]) -> bool:
    """Return whether a form is dense, or omits entries of at least one of the matrices.

    packed omits entries of the kinds joint_matrix and symmetric; sparse also of
    joint_slopes, joint_stiffness and joint_damping.
    """
    reached = {"packed": _SYMMETRIC, "sparse": (*_SYMMETRIC, *_OF_TREE)}
    return form == "dense" or any(kind in reached[form] for kind in kinds)


def dense(
    tree: Tree, kind: str, places: Places | None, values: ArrayLike
) -> np.ndarray:
    """Return matrices (..., nv, nv) from their stored entries (..., n).

    Other entries are zero; the upper triangle of symmetric kinds mirrors the lower one.

    Args:
        tree: Robot.
        kind: Kind of the matrix as in its Port, which tells whether it is symmetric.
        places: Result of kept_places; None: `values` is returned as floats.
        values: Stored entries in the order of `places`.
    """
    entries = np.asarray(values, float)
    if places is None:
        return entries
    matrix = np.zeros((*entries.shape[:-1], tree.nv, tree.nv))
    rows, columns = places
    matrix[..., rows, columns] = entries
    if kind in _SYMMETRIC:
        matrix[..., columns, rows] = entries
    return matrix


def _tree_places(tree: Tree) -> list[tuple[int, int]]:
    """Return (row, column) of all entries of H that are not zero by structure, sorted.

    H[a, b] is not zero if one of the bodies moved by coordinates a and b carries the
    other. The coordinates of a follower's body are its leader's.
    """
    pairs, nv = set(), tree.nv
    for i in tree.bodies:
        j = i
        while j:
            rows = range(nv)[tree.v_slices[i]]
            columns = range(nv)[tree.v_slices[j]]
            pairs |= {(a, b) for a in rows for b in columns}
            pairs |= {(b, a) for a in rows for b in columns}
            j = tree.parent[j]
    return sorted(pairs)
