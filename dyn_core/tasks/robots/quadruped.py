"""Common functions of the quadruped's tasks: stance, observation, end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model import load_urdf
from dyn_core.robots import path
from dyn_core.tasks.joint_commands import JointTargets
from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start

HIP, KNEE = 0.72, -1.44  # of each leg, feet below the hips [rad]
HEIGHT = 2 * 0.21 * np.cos(HIP) + 0.02  # of the trunk in that stance [m]
LEGS = ("front_left", "front_right", "hind_left", "hind_right")
LINKS = ("trunk",) + tuple(
    f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "shank", "foot")
)
FLOATING = 6  # velocity coordinates of the trunk
STANCE = np.array([0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0, *(0.0, HIP, KNEE) * len(LEGS)])


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 19), zero qd (rows, 18), and a memory of no columns.

    Joint angles are within 0.05 rad of the stance, the trunk is 1 cm higher.
    """
    q = np.tile(STANCE, (rows, 1))
    q[:, 7:] += rng.uniform(-0.05, 0.05, (rows, 12))
    q[:, 2] += 0.01
    return q, np.zeros((rows, 18)), np.zeros((rows, 0))


def up(rows: RobotRows) -> np.ndarray:
    """Return the world's vertical axis in the trunk's axes, (n, 3)."""
    return rows.axes(0)[:, 2, :]


def velocity(rows: RobotRows) -> np.ndarray:
    """Return the velocity of the trunk in the world's axes, (n, 3) [m/s]."""
    moved: np.ndarray = np.einsum("nij,nj->ni", rows.axes(0), rows.qd[:, 3:6])
    return moved


def observe(rows: RobotRows) -> np.ndarray:
    """Return the observations, (n, 46).

    In this order: height of the trunk minus the stance's [m], the world's vertical in
    the trunk's axes (3), angular and linear velocity in them (6) [rad/s, m/s], joint
    angles minus the stance's (12) [rad], their rates / 10 (12) [rad/s], the last action
    (12).
    """
    return np.concatenate(
        [
            rows.q[:, 2:3] - HEIGHT,
            up(rows),
            rows.qd[:, :FLOATING],
            rows.q[:, 7:] - STANCE[7:],
            0.1 * rows.qd[:, FLOATING:],
            rows.action,
        ],
        axis=1,
    )


def fallen(after: RobotRows) -> np.ndarray:
    """Return, for each row, whether the trunk is below 0.18 m or tilted by over 60°."""
    lost: np.ndarray = (after.q[:, 2] < 0.18) | (up(after)[:, 2] < 0.5)
    return lost


def quadruped(name: str, **parts: Any) -> RobotTask:
    """Build a task of the shipped quadruped on a floor.

    Action: offsets of twelve joint targets from the stance, 0.4 rad times an action in
    [-1, 1], followed with kp = 40 N·m/rad, kd = 1 N·m·s/rad within the effort limits.
    An episode ends when the trunk is below 0.18 m or tilted by more than 60 degrees.

    Args:
        name: Name of the task.
        parts: Attributes of RobotTask; they replace or complete the common ones.
            `reward` has no common value and must be among them.

    Raises:
        ModelError: An attribute is invalid.
    """
    model = load_urdf(path("quadruped"), root_joint="floating")
    common: dict[str, Any] = {
        "initial": initial,
        "control": JointTargets.of(model, STANCE, 40.0, 1.0, 0.4),
        "observe": observe,
        "action_bounds": ((-1.0, 1.0),) * 12,
        "over": fallen,
        "links": LINKS,
        "stepping": "floor",
    }
    return RobotTask(name=name, model=model, **(common | parts))
