"""The task of moving an arm's hand to a goal; no contacts.

RobotRows have n rows, one for each environment. HOME is (0, -0.4, 0, -2, 0, 1.6, 0)
rad; goals are from NEAR, (0.35, -0.35, 0.2) m, to FAR, (0.65, 0.35, 0.7) m.
"""

from __future__ import annotations

import numpy as np

from dyn_core.model import load_urdf
from dyn_core.robots import path
from dyn_core.tasks.joint_commands import JointTargets
from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start

MAX_STEPS = 150
HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.0])
KP = np.array([400.0, 400.0, 300.0, 300.0, 60.0, 60.0, 20.0])
KD = np.array([40.0, 40.0, 30.0, 30.0, 4.0, 4.0, 0.5])
NEAR, FAR = (0.35, -0.35, 0.2), (0.65, 0.35, 0.7)  # box of goals [m]


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 7) near HOME, zero qd (rows, 7), and goals, (rows, 3) [m].

    Angles are uniform within 0.1 rad of HOME. The memory holds the goals, world
    positions uniform in the box from NEAR to FAR.
    """
    q = HOME + rng.uniform(-0.1, 0.1, (rows, 7))
    return q, np.zeros((rows, 7)), rng.uniform(NEAR, FAR, (rows, 3))


def way(rows: RobotRows) -> np.ndarray:
    """Return the world vector from hand (last link's origin) to goal, (n, 3) [m]."""
    return rows.memory - rows.place(-1)


def observe(rows: RobotRows) -> np.ndarray:
    """Return q (7), qd (7), world vector from hand to goal (3), together (n, 17)."""
    return np.concatenate([rows.q, rows.qd, way(rows)], axis=1)


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return exp(-(d / 0.05 m)²) - d - 0.01 sum a² by row, (n,); d: hand to goal [m].

    Args:
        before: Not used.
        action: Clipped actions a, (n, 7).
        after: Rows after the step, in which d is taken.
    """
    distance = np.linalg.norm(way(after), axis=1)
    return np.exp(-((distance / 0.05) ** 2)) - distance - 0.01 * (action**2).sum(axis=1)


def reach() -> RobotTask:
    """Build the task: move the hand of the shipped arm7 to a goal.

    Action: offsets of seven joint targets from HOME, 1 rad times an action in [-1, 1].
    Observation (17): q (7) [rad], qd (7) [rad/s], vector from the hand to the goal (3)
    [m] in world axes. Reward, with d the distance of hand and goal after the step:

        exp(-(d / 0.05 m)²) - d - 0.01 sum a²

    No state ends an episode. Goals are uniform in the box from NEAR, (0.35, -0.35, 0.2)
    m, to FAR, (0.65, 0.35, 0.7) m; HOME is (0, -0.4, 0, -2, 0, 1.6, 0) rad.
    """
    model = load_urdf(path("arm7"))
    return RobotTask(
        name="reach",
        model=model,
        initial=initial,
        control=JointTargets.of(model, HOME, KP, KD),
        observe=observe,
        reward=reward,
        action_bounds=((-1.0, 1.0),) * 7,
        links=tuple(model.frame_names),
        max_steps=MAX_STEPS,
    )
