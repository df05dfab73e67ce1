"""Settings by joint: one number, one number a joint, or a mapping from joint name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.validation import is_finite, shown

TURN = 2 * math.pi
WRAP = "wrap (angle_wraparound)"  # names of the setting: here, and of the node


def joint_values(model: Model, name: str, value: Any, default: Any) -> np.ndarray:
    """Return a positive number for each joint, (nv,); SettingError for other values.

    `value` is a number, a list of one number a joint, or a mapping from joint name to
    number; None, a None among several, or a joint that the mapping omits stands for the
    default (one number, or one a joint).
    """
    usual = np.broadcast_to(np.asarray(default, float), (model.nv,))
    if isinstance(value, Mapping):
        for joint in value:
            if joint not in model.joint_names:
                message = unknown_name("joint", joint, model.joint_names)
                raise SettingError(f"{name}: {message}", name)
        value = [value.get(joint) for joint in model.joint_names]
    value = np.asarray(value, object)  # of floats, NumPy refuses ragged lists
    value = np.full(model.nv, value) if value.ndim == 0 else value
    if np.shape(value) != (model.nv,):
        raise SettingError(
            f"{name}: {np.shape(value)} numbers; valid: one, or {model.nv}", name
        )
    pairs = zip(value, usual, strict=True)
    return np.array([positive(name, x, other) for x, other in pairs])


def wrapped_joints(model: Model, wrap: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in a setting `wrap`, checked; None: the continuous joints."""
    if wrap is None:
        names, kind = model.endless_joints, model.joint_kind
        return tuple(name for name in names if kind(name) == "continuous")
    if isinstance(wrap, str) or not isinstance(wrap, Iterable):
        valid = f"[{shown(wrap)}], a list"
        raise ModelError(f"wrap is {shown(wrap)}; valid: {valid}", "wrap")
    names = tuple(wrap)
    for name in names:
        model.require_endless(name, WRAP)
    return names


def whole_turns(q: np.ndarray, near: np.ndarray, wrapped: np.ndarray) -> np.ndarray:
    """Return the whole turns that bring q nearest to `near` when added, (n,) [rad].

    A joint without wrapped errors gets 0.0: it goes from `near` to `q` as they are.
    """
    turns = np.round((near - q) / TURN)
    return np.where(wrapped, TURN * turns, 0.0)


def positive(name: str, value: Any, default: Any) -> float:
    """Return `value`, finite and above 0, as a float, or the default if it is None."""
    if value is None:
        return float(default)
    if not is_finite(value) or value <= 0:
        valid = "> 0 and finite, or None"
        raise SettingError(f"{name} is {shown(value)}; valid: {valid}", name)
    return float(value)
