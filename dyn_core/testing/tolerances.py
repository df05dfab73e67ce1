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


def scaled_error(result: Any, expected: Any) -> float:
    """Return the largest difference over max(1, largest entry); NaN and shapes fail."""
    a, b = np.asarray(result, float), np.asarray(expected, float)
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    return float(np.abs(a - b).max(initial=0.0)) / scale
