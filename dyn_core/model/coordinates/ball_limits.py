"""Limits on the swing and twist of balls: rows and gaps, of any kind of number."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model.model import Model
from dyn_core.spatial import Vector, swing_twist, swing_twist_rows


def limited_balls(model: Model) -> list[int]:
    """Return the bodies of balls with limits that follow no other."""
    return [i for i in model.ball_limits if model.leader[i].body == i]


def ball_limit_rows(
    model: Model, i: int, q_joint: Vector
) -> list[tuple[str, list[Any], Any]]:
    """Return the limits of a ball's swing and twist, for floats and traced numbers.

    Args:
        model: Robot.
        i: Number of the body that the ball carries.
        q_joint: Position of its joint.

    Returns:
        Of each that there is: its name, its row over the joint's velocity, and its gap.

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
