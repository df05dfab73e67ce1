"""Tasks of the quadruped: walk forward, and stand in place under pushes.

Arrays have n rows, one for each environment; link 0 of RobotRows is the trunk. In the
stance the joints of each leg are at 0, 0.72 and -1.44 rad.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model import load_urdf
from dyn_core.robots import path
from dyn_core.tasks.joint_commands import JointTargets
from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start

MAX_STEPS = 500  # 10 s
HIP, KNEE = 0.72, -1.44  # of each leg, feet below the hips [rad]
HEIGHT = 2 * 0.21 * np.cos(HIP) + 0.02  # of the trunk in that stance [m]
LEGS = ("front_left", "front_right", "hind_left", "hind_right")
LINKS = ("trunk",) + tuple(
    f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "shank", "foot")
)
FLOATING = 6  # velocity coordinates of the trunk
STANCE = np.array([0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0, *(0.0, HIP, KNEE) * len(LEGS)])
RHYTHM = 2.0  # frequency of the clock in the observation [Hz]
FORCE = 20.0  # of a push [N]
PERIOD, LENGTH = 2.0, 0.5  # from push to push, and of each [s]
PUSHES = 5


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 19), zero qd (rows, 18), and a memory of no columns.

    Joint angles are uniform within 0.05 rad of the stance, the trunk is 1 cm higher.
    """
    q = np.tile(STANCE, (rows, 1))
    q[:, 7:] += rng.uniform(-0.05, 0.05, (rows, 12))
    q[:, 2] += 0.01
    return q, np.zeros((rows, 18)), np.zeros((rows, 0))


def up(rows: RobotRows) -> np.ndarray:
    """Return the world's vertical axis in the trunk's axes, (n, 3)."""
    return rows.axes(0)[:, 2, :]


def velocity(rows: RobotRows) -> np.ndarray:
    """Return the velocity of the trunk's origin in world axes, (n, 3) [m/s]."""
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
    """Return by row whether the trunk is below 0.18 m or tilted by over 60°, (n,)."""
    lost: np.ndarray = (after.q[:, 2] < 0.18) | (up(after)[:, 2] < 0.5)
    return lost


def quadruped(name: str, **parts: Any) -> RobotTask:
    """Build a task of the shipped quadruped on a floor.

    Action: offsets of twelve joint targets from the stance, in the model's order, leg
    by leg as in LEGS, 0.4 rad times an action in [-1, 1], followed with kp = 40
    N·m/rad, kd = 1 N·m·s/rad within the effort limits. An episode ends when the trunk
    is below 0.18 m or tilted by more than 60 degrees.

    Args:
        name: Name of the task.
        parts: Attributes of RobotTask; they replace or complete the common ones.
            `reward` has no common value and must be among them, `model` must not.

    Raises:
        ModelError: An attribute is invalid.
        SettingError: An attribute is unknown, or no function where one is needed.
        TypeError: `reward` is missing, or `model` is given.
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


def observe_walk(rows: RobotRows) -> np.ndarray:
    """Return the observation of walking, (n, 48): `observe`, then a clock.

    It is the sine, then the cosine, of 2 pi times 2 Hz (RHYTHM) times the time.
    """
    angle = 2 * np.pi * RHYTHM * rows.time
    clock = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return np.concatenate([observe(rows), clock], axis=1)


def reward_walk(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return 0.5 + min(v_x, 1) - |v_y| - 0.1 |w_z| - 0.01 sum a² by row, (n,).

    v is the trunk's velocity in the world, w_z its rate about its own z axis, a the
    clipped actions, (n, 12).
    """
    speed = velocity(after)
    forward = np.minimum(speed[:, 0], 1.0) - np.abs(speed[:, 1])
    effort = 0.01 * (action**2).sum(axis=1)
    return 0.5 + forward - 0.1 * np.abs(after.qd[:, 2]) - effort


def quadruped_walk() -> RobotTask:
    """Build the task: walk along the world's x axis at up to 1 m/s.

    Action: offsets of twelve joint targets from the stance, 0.4 rad times an action in
    [-1, 1]. An episode ends when the trunk is below 0.18 m or tilted by more than 60
    degrees.

    Observation (48): height of the trunk minus the stance's [m], the world's vertical
    in the trunk's axes (3), its angular and linear velocity in them (6) [rad/s, m/s],
    joint angles minus the stance's (12) [rad], their rates / 10 (12) [rad/s], the last
    action (12), sine and cosine of a clock of 2 Hz.

    Reward, of the velocity v [m/s] of the trunk after the step in the world and its
    angular velocity w_z [rad/s] about the trunk's own z axis:

        0.5 + min(v_x, 1) - |v_y| - 0.1 |w_z| - 0.01 sum a²
    """
    return quadruped(
        "quadruped_walk", observe=observe_walk, reward=reward_walk, max_steps=MAX_STEPS
    )


def initial_stand(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 19), zero qd, and as memory directions of pushes, (rows, 5) [rad].

    Joint angles are uniform within 0.05 rad of the stance, the trunk is 1 cm higher. A
    direction is the angle of a push from the world's x axis about the vertical, uniform
    in ±pi.
    """
    q, qd, _ = initial(rng, rows)
    return q, qd, rng.uniform(-np.pi, np.pi, (rows, PUSHES))


def push(rows: RobotRows) -> np.ndarray:
    """Return the push on each robot as generalized forces, (n, 18) [N].

    Columns 3 to 5 are the force of 20 N at the trunk's origin, in the trunk's axes; all
    others, and rows between pushes, are zero. Pushes act from 0.5 to 1 s of every
    period of 2 s; push k has the direction memory[:, k], later ones the last direction.
    `memory` is that of initial_stand, (n, 5): angles from the world's x axis about the
    vertical [rad].
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


def observe_stand(rows: RobotRows) -> np.ndarray:
    """Return the observation of standing, (n, 48): `observe`, then trunk x, y [m]."""
    return np.concatenate([observe(rows), rows.q[:, :2]], axis=1)


def reward_stand(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return exp(-100 |p|²) - 10 (1 - u_z) - 0.5 |v|² - 0.01 sum a² by row, (n,).

    p is the trunk's horizontal position, u its vertical axis, v its linear velocity,
    all in the world, a the clipped actions, (n, 12).
    """
    away = (after.q[:, :2] ** 2).sum(axis=1)
    tilt = 1.0 - up(after)[:, 2]
    moving = (velocity(after) ** 2).sum(axis=1)
    effort = 0.01 * (action**2).sum(axis=1)
    return np.exp(-100.0 * away) - 10.0 * tilt - 0.5 * moving - effort


def quadruped_stand() -> RobotTask:
    """Build the task: stand still under pushes of 20 N in random directions.

    A push acts at the trunk's origin, horizontally, for 0.5 s; one starts every 2 s,
    the first after 0.5 s. Action: offsets of twelve joint targets from the stance, 0.4
    rad times an action in [-1, 1]. An episode ends when the trunk is below 0.18 m or
    tilted by more than 60 degrees.

    Observation (48): height of the trunk minus the stance's [m], the world's vertical
    in the trunk's axes (3), its angular and linear velocity in them (6) [rad/s, m/s],
    joint angles minus the stance's (12) [rad], their rates / 10 (12) [rad/s], the last
    action (12), x and y of the trunk's origin [m].

    Reward, of the state after the step with the horizontal position p [m], the trunk's
    vertical axis u and its velocity v [m/s]:

        exp(-100 |p|²) - 10 (1 - u_z) - 0.5 |v|² - 0.01 sum a²
    """
    return quadruped(
        "quadruped_stand",
        initial=initial_stand,
        outside=push,
        observe=observe_stand,
        reward=reward_stand,
        max_steps=MAX_STEPS,
    )
