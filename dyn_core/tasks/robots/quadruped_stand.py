"""The task of standing in place under pushes, for the quadruped."""

from __future__ import annotations

import numpy as np

from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start
from dyn_core.tasks.robots import quadruped

MAX_STEPS = 500  # 10 s
FORCE = 20.0  # of a push [N]
PERIOD, LENGTH = 2.0, 0.5  # from push to push, and of each [s]
PUSHES = 5


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw stances, and as memory the directions of the pushes, (rows, 5) [rad].

    Directions are angles from x about the vertical.
    """
    q, qd, _ = quadruped.initial(rng, rows)
    return q, qd, rng.uniform(-np.pi, np.pi, (rows, PUSHES))


def push(rows: RobotRows) -> np.ndarray:
    """Return the push as joint forces, (n, 18) [N], in the trunk's axes.

    It acts at the trunk's origin; zero between pushes.
    """
    number, since = np.divmod(rows.time, PERIOD)
    place = np.clip(number.astype(int), 0, PUSHES - 1)
    angle = rows.memory[np.arange(len(place)), place]
    strength = FORCE * ((since >= 0.5) & (since < 0.5 + LENGTH))
    world = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    # Rotate the push into the trunk's axes by the inverse quaternion.
    x, y, z, w = rows.q[:, 3:7].T
    axis, half = np.stack([-x, -y, -z], axis=1), w[:, None]
    turned = 2 * np.cross(axis, world)
    inside = world + half * turned + np.cross(axis, turned)
    forces = np.zeros_like(rows.qd)
    forces[:, 3:6] = strength[:, None] * inside
    return forces


def observe(rows: RobotRows) -> np.ndarray:
    """Return the quadruped's observation and its position on the floor, (n, 48)."""
    return np.concatenate([quadruped.observe(rows), rows.q[:, :2]], axis=1)


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return the reward of a step, (n,); see quadruped_stand."""
    away = (after.q[:, :2] ** 2).sum(axis=1)
    tilt = 1.0 - quadruped.up(after)[:, 2]
    moving = (quadruped.velocity(after) ** 2).sum(axis=1)
    effort = 0.01 * (action**2).sum(axis=1)
    return np.exp(-100.0 * away) - 10.0 * tilt - 0.5 * moving - effort


def quadruped_stand() -> RobotTask:
    """Return the task: stand still under pushes of 20 N in random directions.

    A push acts at the trunk's origin, horizontally, for 0.5 s; one starts every 2 s,
    the first after 0.5 s. Action and end are as in `quadruped`. The observation is as
    in `quadruped`, and the position x, y of the trunk [m]. Reward, after the step, of
    the position p, the trunk's vertical axis z and its velocity v:

        exp(-100 |p|²) - 10 (1 - z_z) - 0.5 |v|² - 0.01 sum a²
    """
    return quadruped.quadruped(
        "quadruped_stand",
        initial=initial,
        outside=push,
        observe=observe,
        reward=reward,
        max_steps=MAX_STEPS,
    )
