"""Arrays that users write: of states, of parameters; right length, as floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, ShapeError
from dyn_core.validation.kinds import shown


def float_array(name: str, values: ArrayLike | None, wanted: str) -> np.ndarray:
    """Return an array of floats.

    Args:
        name: What errors call it.
        values: Numbers.
        wanted: What is needed, for the error.

    Raises:
        ShapeError: These are no real numbers, or rows of several lengths.
    """
    if values is None:
        raise ShapeError(name, f"numbers of {wanted}", "None")
    try:
        array = np.asarray(values)
        imaginary = np.iscomplexobj(array) and bool(array.imag.any())
        real = np.asarray(array.real, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(name, f"numbers of {wanted}", shown(values)) from error
    if imaginary:
        raise ShapeError(name, f"real numbers of {wanted}", "complex ones")
    return real


def state_array(name: str, values: ArrayLike, length: int) -> np.ndarray:
    """Return an array of floats, (length,) or (batch, length).

    Complex numbers are kept, for differences with a complex step.

    Args:
        name: What errors call it.
        values: Numbers of one state, or of a batch of states.
        length: Length of the last axis.

    Raises:
        ShapeError: The last axis has another length, there are too many axes, or these
            are no numbers.
    """
    wanted = f"shape ({length},) or (batch, {length})"
    try:
        array = np.asarray(values)
        array = array if array.dtype.kind == "c" else array.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(name, f"numbers of {wanted}", shown(values)) from error
    if array.ndim not in (1, 2) or array.shape[-1] != length:
        raise ShapeError(name, wanted, f"shape {array.shape}")
    return array


def one_state(name: str, values: ArrayLike, length: int) -> np.ndarray:
    """Return an array of floats, (length,), as state_array does; no batch."""
    array = state_array(name, values, length)
    if array.ndim != 1:
        raise ShapeError(name, f"shape ({length},)", f"shape {array.shape}")
    return array


def finite_array(
    name: str, values: ArrayLike, size: int | None = None
) -> tuple[float, ...]:
    """Return finite floats of a list or an array; a single number stands for all.

    Args:
        name: What errors call it; an element is called name[i].
        values: Numbers; none stand for zeros where the size is known.
        size: How many there must be; None: any number of them.
    """
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{name} is {shown(values)}; valid: numbers", name) from error
    if size is not None and array.size == 0:
        array = np.zeros(max(size, 0))
    if array.ndim == 0 and size is not None:
        array = np.full(size, float(array))
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = "a list" if size is None else f"{size} numbers"
        raise ModelError(f"{name}: {wanted} wanted, got shape {array.shape}", name)
    for i, x in enumerate(array):
        if not np.isfinite(x):
            raise ModelError(f"{name}[{i}] is not finite: {x}", f"{name}[{i}]")
    return tuple(array.tolist())
