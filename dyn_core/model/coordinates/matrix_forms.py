"""Forms of joint-space matrices: dense, packed triangles, entries that are not zero.

    dense     (nv, nv)
    packed    a symmetric matrix as its lower triangle, row by row; others are dense
    sparse    the entries that the tree does not make zero, row by row; of a symmetric
              matrix those of the lower triangle

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
    """Return rows and columns of the entries that a form keeps, None for all."""
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
    """Return whether a form is dense, or leaves out entries of some kind of matrix."""
    reached = {"packed": _SYMMETRIC, "sparse": (*_SYMMETRIC, *_OF_TREE)}
    return form == "dense" or any(kind in reached[form] for kind in kinds)


def dense(
    tree: Tree, kind: str, places: Places | None, values: ArrayLike
) -> np.ndarray:
    """Return matrices (..., nv, nv) from the entries that a form keeps, (..., n)."""
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
    """Return rows and columns of H that the tree does not make zero, sorted.

    Two coordinates meet where a body that one moves carries a body that the other
    moves, or the other way round.
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
