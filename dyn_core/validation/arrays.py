"""Arrays of states: the right length, as floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ShapeError


def state_array(name: str, values: ArrayLike, length: int) -> np.ndarray:
    """Return an array of floats, (length,) or (batch, length).

    Complex numbers are kept, for differences with a complex step.

    Args:
        name: What errors call it.
        values: Numbers of one state, or of a batch of states.
        length: Length of the last axis.

    Raises:
        ShapeError: The last axis has another length, or there are too many axes.
    """
    array = np.asarray(values)
    if array.ndim not in (1, 2) or array.shape[-1] != length:
        wanted = f"shape ({length},) or (batch, {length})"
        raise ShapeError(name, wanted, f"shape {array.shape}")
    return array if array.dtype.kind == "c" else array.astype(float)
