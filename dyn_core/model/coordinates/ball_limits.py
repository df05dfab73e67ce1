"""Swing and twist limits of ball joints as constraint rows, for any kind of number."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model.model import Model
from dyn_core.spatial import Vector, swing_twist, swing_twist_rows


def limited_balls(model: Model) -> list[int]:
    """Return the bodies of ball joints that have limits and follow no other joint.

    They are in ascending order.
    """
    return [i for i in model.ball_limits if model.leader[i].body == i]


def ball_limit_rows(
    model: Model, i: int, q_joint: Vector
) -> list[tuple[str, list[Any], Any]]:
    """Return the limits of a ball joint's swing and twist as rows and gaps.

    Args:
        model: Robot.
        i: Number of the body that the ball joint carries; KeyError if the joint has no
            limits.
        q_joint: Position of the joint, floats or traced numbers.

    Returns:
        For each finite limit: its name (swing, lower twist or upper twist), the row J
            with d gap/dt = J qd_joint, and the gap [rad], negative beyond the limit.
            At swing 0 the row of the swing is zero.

    Raises:
        SingularError: The swing is pi, where the twist is undefined; with traced
            numbers the Program raises it.

    Source: TAZZ-4.7.
    """
    joint = model.joint[i]
    R = joint.X(q_joint).E.T
    item = f"joint {model.names[i]}: twist, where the swing is pi"
    swing, twist = swing_twist(R, item)
    turns = [R @ column.ang for column in joint.S(q_joint)]
    by_swing, by_twist = (
        [Vector(row) @ w for w in turns] for row in swing_twist_rows(R, item).rows
    )
    largest, (low, high) = model.ball_limits[i]
    return [
        (side, [x * sign for x in rate], gap)
        for side, stop, rate, sign, gap in (
            ("swing", largest, by_swing, -1.0, largest - swing),
            ("lower twist", low, by_twist, 1.0, twist - low),
            ("upper twist", high, by_twist, -1.0, high - twist),
        )
        if np.isfinite(stop)
    ]
