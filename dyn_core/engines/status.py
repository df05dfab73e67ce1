"""The status of a state, or of each row of a batch: 0, or why there is no result.

    0           the results are valid
    1, 2, ...   the requirement of the algorithm with this number does not hold
    -1          an input is NaN or infinite
    -2          a result is NaN or infinite, and nothing else is wrong

Only Programs built with finite=True have the last two; calls with complex inputs have
-1, too. Where the status is not 0, all results of the state are NaN, and no other row
is affected. All callers of Programs use this table: Python and `map`, the bridges to
JAX, PyTorch and CasADi, and exported code. `Program.failure` returns the error of a
status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.problems import Port

NOT_FINITE_INPUT, NOT_FINITE_RESULT = -1, -2
NOT_FINITE = {
    NOT_FINITE_INPUT: "an input is NaN or infinite",
    NOT_FINITE_RESULT: "a result is NaN or infinite",
}
Status = int | np.ndarray  # of one state, or (rows,) of a batch


def mark_not_finite(
    ports: Sequence[Port], arrays: Sequence[np.ndarray], state: Any, number: int
) -> Any:
    """Return a status with `number` where it is 0 and an array is not finite.

    A number of an array without rows counts for all rows. `state` is not changed.
    """
    for port, array in zip(ports, arrays, strict=True):
        good = np.isfinite(array)
        if good.all():
            continue
        if isinstance(state, np.ndarray):
            fits: Any = False
            if array.ndim > len(port.shape):
                fits = good.reshape(len(array), -1).all(axis=1)
            state = np.where(fits | (state != 0), state, number)
        else:
            state = state or number
    return state


def fill_failed(results: Sequence[np.ndarray], state: Any) -> None:
    """Set results to NaN, in place, in the rows (first axis) whose status is not 0."""
    failed = state != 0 if isinstance(state, np.ndarray) else ... if state else None
    if failed is not None:
        for result in results:
            result[failed] = np.nan
