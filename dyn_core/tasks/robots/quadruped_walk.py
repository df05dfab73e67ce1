"""The task of walking forward, for the quadruped."""

from __future__ import annotations

import numpy as np

from dyn_core.tasks.robot_task import RobotRows, RobotTask
from dyn_core.tasks.robots import quadruped

MAX_STEPS = 500
RHYTHM = 2.0  # frequency of the clock in the observation [Hz]


def observe(rows: RobotRows) -> np.ndarray:
    """Return the quadruped's observation, then sine and cosine of a clock, (n, 48).

    The phase of the clock is 2 pi RHYTHM times the time in the episode.
    """
    angle = 2 * np.pi * RHYTHM * rows.time
    clock = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return np.concatenate([quadruped.observe(rows), clock], axis=1)


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return the reward of a step, (n,), as defined in quadruped_walk.

    Args:
        before: Not used.
        action: Clipped actions, (n, 12).
        after: Rows after the step.
    """
    speed = quadruped.velocity(after)
    forward = np.minimum(speed[:, 0], 1.0) - np.abs(speed[:, 1])
    effort = 0.01 * (action**2).sum(axis=1)
    return 0.5 + forward - 0.1 * np.abs(after.qd[:, 2]) - effort


def quadruped_walk() -> RobotTask:
    """Build the task: walk along the world's x axis at up to 1 m/s.

    Action and end are as in `quadruped`. The observation is as in `quadruped`, and sine
    and cosine of a clock of 2 Hz. Reward, of the velocity v [m/s] of the trunk after
    the step in the world and its angular velocity w [rad/s] about the trunk's own z
    axis:

        0.5 + min(v_x, 1) - |v_y| - 0.1 |w_z| - 0.01 sum a²
    """
    return quadruped.quadruped(
        "quadruped_walk", observe=observe, reward=reward, max_steps=MAX_STEPS
    )
