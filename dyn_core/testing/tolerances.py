"""The tolerances of the project, in one table. Errors are scaled: see scaled_error."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCES = {
    "exact": 1e-12,  # the same numbers in another order, or another library's
    "forward": 1e-12,  # H qdd + C - tau, the backward error of forward dynamics
    "law": 1e-9,  # identities with eighth-order differences
    "mujoco": 1e-9,  # regularised and integrated by other formulas
    "reference": 1e-10,  # values printed with 12 to 15 digits
}

# Of Programs that were built with dtype="float32", against float64.
SINGLE_TOLERANCES = {
    "exact": 3e-5,  # a few hundred roundings of 24 bits, less exact where they cancel
    "law": 3e-2,  # differences over 1e-2 of numbers rounded to 24 bits
    "function": 1.0,  # sin, cos and their like [ulp of float32]
}


def scaled_error(result: Any, expected: Any) -> float:
    """Return the largest absolute difference over max(1, largest |expected|).

    The result is infinity for different shapes, and for NaN or infinity in one of the
    arrays; it is 0 for empty arrays.
    """
    a, b = np.asarray(result, float), np.asarray(expected, float)
    if a.shape != b.shape or not np.isfinite([a, b]).all():
        return float("inf")
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    return float(np.abs(a - b).max(initial=0.0)) / scale
