"""Forms of joint-space matrices: dense, packed triangles, entries that are not zero.

    dense     (nv, nv)
    packed    a symmetric matrix as its lower triangle, row by row; others are dense
    sparse    the entries that the tree does not make zero, row by row; of a symmetric
              matrix those of the lower triangle

Source: RBDA, section 6.4, on which entries of H are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.model.coordinates import on_one_path

FORMS = ("dense", "packed", "sparse")
Places = tuple[tuple[int, ...], tuple[int, ...]]
_SYMMETRIC = ("joint_matrix", "symmetric")
_OF_TREE = ("joint_matrix", "joint_slopes", "joint_stiffness", "joint_damping")


def places(model: Model, kind: str, form: str) -> Places | None:
    """Give rows and columns of the entries that a form keeps, None for all."""
    if form == "sparse" and kind in _OF_TREE:
        pairs = on_one_path(model)
    elif form != "dense" and kind in _SYMMETRIC:
        pairs = [(i, j) for i in range(model.nv) for j in range(model.nv)]
    else:
        return None
    if kind in _SYMMETRIC:
        pairs = [(i, j) for i, j in pairs if j <= i]
    return tuple(i for i, _ in pairs), tuple(j for _, j in pairs)


def dense(model: Model, kind: str, kept: Places | None, values: Any) -> np.ndarray:
    """Give matrices (..., nv, nv) from the entries kept of them, (..., n)."""
    given = np.asarray(values, float)
    if kept is None:
        return given
    matrix = np.zeros((*given.shape[:-1], model.nv, model.nv))
    rows, columns = kept
    matrix[..., rows, columns] = given
    if kind in _SYMMETRIC:
        matrix[..., columns, rows] = given
    return matrix
