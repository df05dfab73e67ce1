"""Regrouping of inertia: mass on a joint's axis moves to the parent.

A revolute joint moves no point of its axis, and a prismatic joint rotates nothing.
These components of a body's inertia have the same effect on the joints when they belong
to the parent. They are moved there and leave zeros, which save operations in a traced
algorithm. Joint forces, accelerations, H and kinetic energy do not change, potential
energy at most by a constant; mass, centre of mass and forces inside the joints do.

Source: M. Gautier and W. Khalil, Direct calculation of minimum set of inertial
parameters of serial robots, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from dyn_core.model.assembly.tree import Tree
from dyn_core.model.joints import Prismatic, Revolute
from dyn_core.numbers.scalar import Scalar
from dyn_core.spatial import RigidInertia, Symmetric, Vector

AnyTree = TypeVar("AnyTree", bound=Tree)


def regroup(tree: AnyTree) -> AnyTree:
    """Return a copy with inertia moved towards the base where that leaves zeros.

    Only prismatic joints, and revolute joints about a coordinate axis, are regrouped. A
    body with symbols in its inertia or placement, or in the axis of a revolute joint,
    passes none on. Inertia that reaches the base has no effect and is dropped.
    Frames are not changed.
    """
    inertias = list(tree.I)
    for i in reversed(tree.bodies):
        p, joint, I, X = tree.parent[i], tree.joint[i], inertias[i], tree.Xtree[i]
        if not _known(I.m, *I.h, *I.I.entries, *X.r, *X.E.rows[0]):
            continue
        if isinstance(joint, Revolute) and _along_one(joint.axis):
            axis = list(map(abs, joint.axis)).index(1)
            inertias[i], moved = _axis_parts(I, axis)
        elif isinstance(joint, Prismatic):
            inertias[i] = RigidInertia(I.m, I.h, Symmetric([0.0] * 6))
            moved = RigidInertia(0.0, Vector.zeros(3), I.I)
        else:
            continue
        if p > 0:
            inertias[p] = inertias[p] + X.T @ moved @ X
    return replace(tree, I=tuple(inertias))


def _known(*numbers: Scalar) -> bool:
    """Return whether all numbers are ints or floats, not symbols."""
    return all(isinstance(x, (int, float)) for x in numbers)


def _along_one(axis: Sequence[Scalar]) -> bool:
    """Return whether an axis of known numbers is a coordinate axis, or its opposite."""
    return _known(*axis) and sorted(map(abs, axis)) == [0, 0, 1]


def _axis_parts(I: RigidInertia, k: int) -> tuple[RigidInertia, RigidInertia]:
    """Split an inertia about the body's origin into a remainder and a part on axis k.

    The part on the axis has all mass, its moment along the axis, and the second moment
    P_kk = (I_ii + I_jj - I_kk) / 2. The remainder has exactly I_kk = I_ii + I_jj.
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    full = [list(row) for row in I.I.full().rows]
    P = (full[i][i] + full[j][j] - full[k][k]) * 0.5
    full[i][i] -= P
    full[j][j] -= P
    full[k][k] = full[i][i] + full[j][j]
    left = Symmetric((*full[0], *full[1][1:], full[2][2]))
    h = [0.0 if axis == k else x for axis, x in enumerate(I.h)]
    along = [x if axis == k else 0.0 for axis, x in enumerate(I.h)]
    turning = [0.0 if axis == k else P for axis in range(3)]
    moved = Symmetric((turning[0], 0.0, 0.0, turning[1], 0.0, turning[2]))
    return RigidInertia(0.0, Vector(h), left), RigidInertia(I.m, Vector(along), moved)
