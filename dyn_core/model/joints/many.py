"""Transforms and motion subspaces of many joints, computed as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.one_axis import Prismatic, Revolute, turned
from dyn_core.spatial import Vector

Places = Sequence[Vector]  # positions of one joint
OfOneAxis = list[tuple[int, tuple[float, ...], float]]  # row, axis and position


def joint_transforms(
    joints: Sequence[Joint], places: Sequence[Places]
) -> tuple[np.ndarray, np.ndarray]:
    """Return E (n, 3, 3) and r (n, 3) of joint.X for each joint at each position.

    They are equal to `joint.X` to the last bit. Rows are joint by joint, and for each
    joint position by position (Vectors of its nq coordinates).
    """
    pairs = [
        (joint, q)
        for joint, positions in zip(joints, places, strict=True)
        for q in positions
    ]
    E, r = np.zeros((len(pairs), 3, 3)), np.zeros((len(pairs), 3))
    turning, sliding = OfOneAxis(), OfOneAxis()
    for k, (joint, q) in enumerate(pairs):
        if isinstance(joint, Revolute) and type(joint).X is Revolute.X:
            turning.append((k, joint.axis, float(q[0])))
        elif isinstance(joint, Prismatic) and type(joint).X is Prismatic.X:
            sliding.append((k, joint.axis, float(q[0])))
        else:
            X = joint.X(q)
            E[k], r[k] = X.E.rows, X.r.entries
    numbers, axes, _ = _columns(turning)
    sines = [np.array([f(x) for _, _, x in turning]) for f in (math.sin, math.cos)]
    for i, row in enumerate(turned([*axes], *sines).rows):
        for j, entry in enumerate(row):
            E[numbers, i, j] = entry
    numbers, axes, lengths = _columns(sliding)
    E[numbers], r[numbers] = np.eye(3), (axes * lengths).T
    return E, r


def _columns(joints: OfOneAxis) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return rows (in the result), axes (3, n) and positions (n,) of n joints."""
    table = np.array([(*axis, q) for _, axis, q in joints], float).reshape(-1, 4)
    return [k for k, _, _ in joints], table[:, :3].T, table[:, 3]


def motion_rows(joint: Joint, places: Places) -> list[list[tuple[float, ...]]]:
    """Return the nv columns of S, [angular; linear], for each position of a joint."""
    if isinstance(joint, Revolute) and type(joint).S is Revolute.S:
        return [[(*joint.axis, 0.0, 0.0, 0.0)]] * len(places)
    if isinstance(joint, Prismatic) and type(joint).S is Prismatic.S:
        return [[(0.0, 0.0, 0.0, *joint.axis)]] * len(places)
    return [[tuple(column) for column in joint.S(q)] for q in places]
