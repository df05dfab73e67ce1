"""Checks of the input and output arrays of Programs: shape, dtype, finite numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import NonFiniteError, ShapeError
from dyn_core.problems import Port
from dyn_core.validation import no_array


def as_array(
    port: Port, value: Any, dtype: np.dtype, model: object = None
) -> np.ndarray:
    """Return an input as an array of shape port.shape, or (rows, *port.shape).

    Nothing is copied if `value` already is an array of this dtype; complex values keep
    their type. ShapeError: masked entries, a ragged, not numeric or wrong shape, a
    tensor that NumPy cannot convert, a table with the joints in another order.
    """
    if type(value) is not np.ndarray:
        _check_labels(port, value, model)
    if np.ma.is_masked(value):  # np.asarray would use the numbers under the mask
        raise ShapeError(port.name, "an array without masked entries", "masked ones")
    try:
        array = np.asarray(value)
    except Exception as error:
        if (bridge := _bridge_of(value)) is not None:
            wanted = f"an array, or dyn_core.bridges.{bridge}.function(program)"
            raise ShapeError(port.name, wanted, type(value).__name__) from error
        if not isinstance(error, ValueError):
            raise
        raise ShapeError(port.name, f"shape {port.shape}", "a ragged list") from error
    if array.dtype.kind not in "fiubc":
        wanted = f"numbers of shape {port.shape}"
        raise ShapeError(port.name, wanted, no_array(value))
    if array.dtype.kind != "c":
        array = array.astype(dtype, copy=False)
    dims = len(port.shape)
    if (
        array.ndim not in (dims, dims + 1)
        or array.shape[array.ndim - dims :] != port.shape
    ):
        batch = ", ".join(["batch", *map(str, port.shape)])
        wanted = f"shape {port.shape} or ({batch})"
        raise ShapeError(port.name, wanted, f"shape {array.shape}")
    return array


def _check_labels(port: Port, value: Any, model: object) -> None:
    """Raise ShapeError if pandas labels of a table are the joints in another order."""
    labels = getattr(value, "columns", None)
    labels = getattr(value, "index", None) if labels is None else labels
    if labels is None or callable(labels):  # list.index
        return
    names, labelled = list(getattr(model, "joint_names", ())), list(labels)
    if labelled != names and sorted(map(str, labelled)) == sorted(names):
        wanted = "columns in the order of the joints, table[list(model.joint_names)]"
        raise ShapeError(port.name, wanted, ", ".join(map(str, labelled)))


def _bridge_of(value: Any) -> str | None:
    """Return the library, of jax, torch, casadi, that defines the type of a value."""
    library = type(value).__module__.split(".")[0]
    library = {"jaxlib": "jax"}.get(library, library)
    return library if library in ("jax", "torch", "casadi") else None


def check_out(port: Port, shape: tuple[int, ...], target: Any, dtype: np.dtype) -> None:
    """Raise ShapeError unless `target` is a writeable array of this shape and dtype."""
    wanted = f"a writeable {dtype} array of shape {shape}"
    if not isinstance(target, np.ndarray):
        raise ShapeError(f"out {port.name}", wanted, type(target).__name__)
    if target.shape != shape or target.dtype != dtype:
        got = f"{target.dtype} of shape {target.shape}"
        raise ShapeError(f"out {port.name}", wanted, got)
    if not target.flags.writeable:
        raise ShapeError(f"out {port.name}", wanted, "a read-only array")


def check_finite(
    model: Any,
    arrays: Sequence[np.ndarray],
    ports: Sequence[Port],
    what: str,
    state: Any = 0,
) -> None:
    """Raise NonFiniteError for the first array that contains NaN or infinity.

    Its `name` is the Port, its `rows` those with NaN or infinity, None without batch
    axis. Rows whose status (`state`) is not 0 are not checked. The machine code that
    serves calls has the same rule (python_to_llvm.py).
    """
    for port, array in zip(ports, arrays, strict=True):
        good = np.isfinite(array)
        if good.all():
            continue
        if array.ndim == len(port.shape):
            if np.all(state == 0):
                message = f"{what} {port.name} is not finite"
                raise NonFiniteError(message + _joint(model, port, good), port.name)
            continue
        good = good.reshape(len(array), -1).all(axis=1)
        bad = np.flatnonzero(~good & (np.broadcast_to(state, good.shape) == 0))
        if len(bad):
            message = f"{what} {port.name} is not finite"
            raise NonFiniteError(message, port.name).of_rows(bad.tolist())


def _joint(model: Any, port: Port, good: np.ndarray) -> str:
    """Return " at joint NAME" for the first number of a state that is not good, or "".

    It is "" where no independent joint of a robot has the number.
    """
    slices = {"position": "q_slices", "velocity": "v_slices", "joint_force": "v_slices"}
    if model.kind != "robot" or port.kind not in slices:
        return ""
    first, places = int(np.flatnonzero(~good)[0]), getattr(model, slices[port.kind])
    for i in model.independent:
        if places[i].start <= first < places[i].stop:
            return f" at joint {model.names[i]}"
    return ""
