"""Condition number of a regressor with columns of unit length, and its gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.identification.regressor_rank import BaseParameters
from dyn_core.model import Model

TINY = 1e-300  # lower bound of squared lengths, against division by zero
FLOOR = 1e-14  # relative size of eigenvalues below which they are rounding errors


class Spread(NamedTuple):
    """Smooth upper bound of a condition number's logarithm, and `slope` by the rows."""

    value: float
    slope: np.ndarray
    condition: float


def condition_number(rows: np.ndarray) -> float:
    """Return the condition number of rows whose columns are scaled to unit length.

        largest / smallest singular value of Y diag(1 / |Y_k|)

    It is infinite if a column or the smallest singular value is zero, and for NaN.
    `rows` is Y, with at least as many rows as columns, which is not checked.
    """
    lengths = np.linalg.norm(rows, axis=0)
    if not (lengths > 0).all():
        return float("inf")
    s = np.linalg.svd(rows / lengths, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")


def weakest_joint(model: Model, base: BaseParameters, rows: np.ndarray) -> str:
    """Return the name of the joint whose parameters are hardest to distinguish.

    It, with bodies that follow it, has the largest share of the right singular vector
    for the smallest singular value of the rows with columns scaled to unit length.
    """
    lengths = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    last = np.linalg.svd(rows / lengths, full_matrices=False)[2][-1]
    parts = dict.fromkeys(model.joint_names, 0.0)
    for k, share in zip(base.independent, last, strict=True):
        end = ":" if k < 10 * model.nb else "."
        name = base.names[k].rpartition(end)[0]
        leader = model.followers.get(name)
        parts[name if leader is None else leader.leader] += float(share) ** 2
    return max(parts, key=lambda name: parts[name])


def conditions_and_levels(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return condition numbers and levels of rows (motions, rows, columns), by motion.

    The first are of columns of unit length, by Gram matrices, and at most about 1e7.
    """
    gram = rows.transpose(0, 2, 1) @ rows
    lengths = np.sqrt(np.maximum(np.einsum("nii->ni", gram), TINY))
    gram /= lengths[:, :, None] * lengths[:, None, :]
    s = np.linalg.eigvalsh(gram)
    conditions = np.sqrt(s[:, -1] / np.maximum(s[:, 0], FLOOR * s[:, -1]))
    return np.asarray(conditions), np.log(lengths).mean(axis=1)


def level(rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean logarithm of the columns' lengths, and its gradient (rows, n).

        level = (1 / n) sum_k log |Y_k|

    |Y_k|² below 1e-300 counts as that; the gradient of a zero column is zero.
    """
    squares = np.maximum((rows * rows).sum(axis=0), TINY)
    return float(np.log(squares).mean()) / 2, rows / squares / len(squares)


def spread(rows: np.ndarray, power: float) -> Spread:
    """Return a smooth measure of the condition number that weights extreme values most.

        value = log(tr G^p tr G^-p) / (2 p),   G = diag(1 / |Y_k|) Y.T Y diag(1 / |Y_k|)

    The value is never below the logarithm of the condition number, at most log(n) / p
    above it, and smooth where singular values cross. Eigenvalues of G below 1e-14 times
    the largest count as that. The result has the value, its gradient, of the shape of
    `rows`, and the condition number.

    Args:
        rows: Y, (rows, n), with the columns Y_k, none of them zero.
        power: p, 1 or more.
    """
    gram = rows.T @ rows
    lengths = np.sqrt(np.maximum(np.diag(gram), TINY))
    s, V = np.linalg.eigh(gram / np.outer(lengths, lengths))
    s = np.maximum(s, FLOOR * s[-1])
    up, down = (s / s[-1]) ** power, (s[0] / s) ** power
    sums = up.sum(), down.sum()
    value = (np.log(sums[0]) + np.log(sums[1])) / (2 * power)
    value += 0.5 * np.log(s[-1] / s[0])
    by_eigenvalue = (up / sums[0] - down / sums[1]) / (2 * s)
    by_gram = (V * by_eigenvalue) @ V.T
    # G has a unit diagonal: remove the component that only lengthens a column.
    unit = rows / lengths
    slope = 2 * (unit @ by_gram)
    slope -= unit * (unit * slope).sum(axis=0)
    return Spread(float(value), slope / lengths, float(np.sqrt(s[-1] / s[0])))
