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
    """Draw q (rows, 19), zero qd, and as memory directions of pushes, (rows, 5) [rad].

    q is drawn near the stance as in the module quadruped. A direction is the angle of a
    push from the world's x axis about the vertical, uniform in ±pi.
    """
    q, qd, _ = quadruped.initial(rng, rows)
    return q, qd, rng.uniform(-np.pi, np.pi, (rows, PUSHES))


def push(rows: RobotRows) -> np.ndarray:
    """Return the push on each robot as generalized forces, (n, 18) [N].

    Columns 3 to 5 are the force of 20 N at the trunk's origin, in the trunk's axes; all
    others, and rows between pushes, are zero. Pushes act from 0.5 to 1 s of every
    period of 2 s; push k has the direction memory[:, k], later ones the last direction.
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
    """Return the quadruped's observation (46), then x, y of its trunk [m], (n, 48)."""
    return np.concatenate([quadruped.observe(rows), rows.q[:, :2]], axis=1)


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return the reward of a step, (n,), as defined in quadruped_stand.

    Args:
        before: Not used.
        action: Clipped actions, (n, 12).
        after: Rows after the step.
    """
    away = (after.q[:, :2] ** 2).sum(axis=1)
    tilt = 1.0 - quadruped.up(after)[:, 2]
    moving = (quadruped.velocity(after) ** 2).sum(axis=1)
    effort = 0.01 * (action**2).sum(axis=1)
    return np.exp(-100.0 * away) - 10.0 * tilt - 0.5 * moving - effort


def quadruped_stand() -> RobotTask:
    """Build the task: stand still under pushes of 20 N in random directions.

    A push acts at the trunk's origin, horizontally, for 0.5 s; one starts every 2 s,
    the first after 0.5 s. Action and end are as in `quadruped`. The observation is as
    in `quadruped`, and the position x, y of the trunk [m]. Reward, of the state after
    the step with the horizontal position p [m], the trunk's vertical axis u and its
    velocity v [m/s]:

        exp(-100 |p|²) - 10 (1 - u_z) - 0.5 |v|² - 0.01 sum a²
    """
    return quadruped.quadruped(
        "quadruped_stand",
        initial=initial,
        outside=push,
        observe=observe,
        reward=reward,
        max_steps=MAX_STEPS,
    )
