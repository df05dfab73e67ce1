"""Pseudo-inertia: ten inertial parameters as a matrix, positive for physical bodies.

    J = [[P, h], [h.T, m]],   P = tr(I)/2 - I,   h = m c

The ten are m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin, in this order.
J has the second moments of mass of (x, 1). Some mass distribution has these ten
parameters if and only if J is positive definite (semidefinite with masses on a plane or
a line).

Source: P. Wensing, S. Kim and J.-J. Slotine, Linear Matrix Inequalities for Physically
Consistent Inertial Parameter Identification, IEEE RA-L 3 (2017).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def _basis() -> np.ndarray:
    """Return dJ/d(m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz), (10, 4, 4)."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for k in range(3):
        basis[1 + k, k, 3] = basis[1 + k, 3, k] = 1.0
    for number, k in ((4, 0), (6, 1), (9, 2)):
        basis[number, :3, :3] = 0.5 * np.eye(3)
        basis[number, k, k] = -0.5
    for number, (i, j) in ((5, (0, 1)), (7, (0, 2)), (8, (1, 2))):
        basis[number, i, j] = basis[number, j, i] = -1.0
    return basis


BASIS = _basis()
# Inverse of the linear map: the ten parameters from the entries of J, (10, 16).
_BACK = np.linalg.pinv(BASIS.reshape(10, 16).T)


def pseudo_inertia(ten: ArrayLike) -> np.ndarray:
    """Return J (..., 4, 4) of m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin."""
    return np.tensordot(np.asarray(ten, float), BASIS, axes=1)


def parameters_of_pseudo(J: ArrayLike) -> np.ndarray:
    """Return parameters (..., 10) of J (..., 4, 4): inverse of `pseudo_inertia`."""
    J = np.asarray(J, float)
    return J.reshape(*J.shape[:-2], 16) @ _BACK.T


def least_eigenvalue(ten: ArrayLike) -> float:
    """Return the smallest eigenvalue of J of one body's ten parameters, (10,).

    It is positive for a physical body whose mass is not all on a plane or a line, zero
    up to rounding if it is, and negative if no mass distribution has the parameters.
    """
    return float(np.linalg.eigvalsh(pseudo_inertia(ten))[0])


def is_consistent(ten: ArrayLike, slack: float = 0.0) -> bool:
    """Return whether some mass distribution has ten parameters, (10,), or all are 0.

    The smallest eigenvalue of J must be at least -slack times the largest absolute
    entry of J. With slack 0, rounding may exclude masses on a plane or a line.
    """
    J = pseudo_inertia(ten)
    return bool(np.linalg.eigvalsh(J)[0] >= -slack * max(np.abs(J).max(), 1e-300))
