"""Equations of motion with dependent rows, one state at a time, by NumPy.

Not a solver: the leaves in loop_min_norm.py (NumpySolver) share it.
"""

import numpy as np

from dyn_core.errors import SingularError

PIVOT = 1e-13  # a pivot of H below this part of its diagonal is zero
ROUNDING = 1e-24  # a pivot below this part of the largest inertia is zero
CURVED = 1e-4  # share of a row's curvature above which a rank drops here only


class LeastMultipliers:
    """H qdd - A.T lambda = push, A qdd = wanted, with the lambda of least norm.

        B = A L^-T = U S V.T,   H = L L.T,   missing = wanted - A H^-1 push
        qdd = H^-1 push + L^-T V S^-1 U.T missing,   lambda = U S^-2 U.T missing

    Where H is singular (a body without inertia that loops hold), H + k A.T A takes its
    place, which changes neither qdd nor lambda.

    Args:
        H: Joint-space inertia, nv x nv.
        A: Jacobian of the rows, m x nv.
        model: Robot, whose rows and joints errors name.
        tolerance: Of the rank, relative.
        kept: By coordinate: whether it takes part; None: all do.

    Source: KIM-3.0 (redundant rows), KIM-3.2.
    """

    def __init__(self, H, A, model, tolerance, kept=None):
        self.kept = np.ones(len(H), bool) if kept is None else kept
        self.A, self.names = A[:, self.kept], model.loop_rows
        H, self.k = H[np.ix_(self.kept, self.kept)], 0.0
        self.L = _cholesky(H)
        if self.L is None:
            size = np.abs(self.A).max(initial=0.0) ** 2 or 1.0
            self.k = (np.abs(H).max(initial=0.0) or 1.0) / size
            self.L = _cholesky(H + self.k * self.A.T @ self.A)
        if self.L is None:
            raise SingularError(
                "the inertia of the joints, and no loop holds what has none; valid: a"
                " mass for the links, armature for the joints"
            )
        B = np.linalg.solve(self.L, self.A.T).T
        self.U, sizes, self.Vt = np.linalg.svd(B, full_matrices=True)
        self.rank = int((sizes > tolerance * sizes.max(initial=0.0)).sum())
        self.sizes = sizes[: self.rank]

    def solve(self, push, wanted):
        """Return qdd, lambda, and how far A qdd is from what is wanted."""
        L, U, V = self.L, self.U[:, : self.rank], self.Vt[: self.rank].T
        free = np.linalg.solve(L, push + self.k * self.A.T @ wanted)
        missing = wanted - self.A @ np.linalg.solve(L.T, free)
        share = (U.T @ missing) / self.sizes
        left = float(np.abs(missing - U @ (U.T @ missing)).max(initial=0.0))
        return np.linalg.solve(L.T, free + V @ share), U @ (share / self.sizes), left

    def refuse_dead_points(self, bias_of):
        """Refuse a position where rows become dependent, but not beside it.

            y.T A = 0  and  y.T d²f(t, t) = 0  for y of dependent rows, tangents t

        Rows that depend on each other everywhere keep the second; at a dead point of a
        linkage it fails: another branch of motion begins there.

        Args:
            bias_of: Function of a velocity that returns the bias of the rows.
        """
        dependent, moving = self.U[:, self.rank :], self.Vt[self.rank :].T
        if not dependent.size or not moving.size:
            return
        t = np.zeros(len(self.kept))
        t[self.kept] = np.linalg.solve(
            self.L.T, moving @ np.cos(1.0 + np.arange(moving.shape[1]))
        )
        t /= np.abs(t).max()
        curvature = bias_of(t)
        along = np.abs(dependent.T @ curvature)
        if along.max() > CURVED * np.abs(curvature).max():
            y = dependent[:, int(along.argmax())]
            names = [n for n, x in zip(self.names, y, strict=True) if abs(x) > 1e-6]
            raise SingularError(
                f"{'; '.join(names)}: dependent at this dead point, but not beside it,"
                " so the motion has no unique acceleration; valid: a position beside it"
            )


def _cholesky(H):
    """Return the lower factor of a matrix, or None if it is not positive definite."""
    try:
        L = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return None
    pivots, sizes = np.diag(L) ** 2, np.abs(np.diag(H))
    good = pivots > np.maximum(PIVOT * sizes, ROUNDING * sizes.max(initial=0.0))
    return L if good.all() else None
