"""Check for changes of a robot's numbers that a new assembly would lose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.assembly.tree import LIMITS, Tree
from dyn_core.spatial import Vector

_NUMBERS = (
    "I", "armature", "damping", "friction", "friction_asymmetry",
    "friction_speed", "stribeck", "stribeck_speed", "stiffness", "rest", "a_grav",
    "Xtree", "pivot", *LIMITS,
)  # fmt: skip


def refuse_lost_changes(tree: Tree, assembled: Tree) -> None:
    """Refuse a robot whose numbers are not those with which it was assembled.

    `assembled` is the same robot, assembled anew from its Build, with its coordinates
    in the same order. Joints, forces, inertia, placement, gravity, armature, damping,
    friction, springs, limits and `pivot` are compared; a symbol or NaN is refused.
    """
    lost = [x for x in _NUMBERS if _differ(getattr(tree, x), getattr(assembled, x))]
    if tree.joint != assembled.joint:
        lost.append("joint")
    if tree.forces != assembled.forces:
        lost.append("forces")
    if lost:
        raise ModelError(
            f"'{tree.name}' was changed ({', '.join(lost)}), which assembling it anew"
            " would lose; valid: lock, drive, with_joint and with_forces first, then"
            " with_values, without_friction and the like"
        )


def _differ(one: Any, other: Any) -> bool:
    """Return whether the numbers in two nested values differ, or their count.

    Nesting is not compared. True also if a number is NaN or a symbol.
    """
    try:
        return not np.array_equal(list(_flat(one)), list(_flat(other)))
    except TypeError:
        return True


def _flat(value: Any) -> Iterator[float]:
    """Yield all numbers in nested values, without None; TypeError for a symbol."""
    if not isinstance(value, Vector):
        slots = (getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
        value = [getattr(value, x) for names in slots for x in names] or value
    if isinstance(value, (tuple, list, Vector, np.ndarray)):
        for part in value:
            yield from _flat(part)
    elif value is not None:  # no frame, of a Motion
        yield float(value)
