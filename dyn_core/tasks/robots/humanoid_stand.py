"""The task of standing upright, for a humanoid of this project's own design.

Arrays have n rows, one for each environment; link 0 of RobotRows is the torso. In the
stance it is 1.07 m high, hip and ankle pitch and the elbow are at -0.3 rad, the knee is
at 0.6 rad, and all other joints are at zero.
"""

from __future__ import annotations

import numpy as np

from dyn_core.model import load_urdf
from dyn_core.tasks.joint_commands import JointTargets
from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start

MAX_STEPS = 500
SOLES = tuple((x, y) for x in (-0.07, 0.13) for y in (-0.04, 0.04))  # of a foot [m]
SOLE_RADIUS, SOLE_DEPTH = 0.01, -0.05  # of the balls below the ankle [m]
SWEEPS = 40  # maximum iterations of the contact solver in a step
BEND = 0.3  # of the knees in the stance [rad]
HIP_DEPTH, LEG = 0.25, 0.4  # hips below the torso, thigh and shank [m]
STAND = HIP_DEPTH + 2 * LEG * np.cos(BEND) - SOLE_DEPTH + SOLE_RADIUS
FALLEN = 0.75 * STAND  # height of the torso that ends an episode [m]


def _link(name: str, mass: float, size: tuple[float, ...], down: float = 0.0) -> str:
    """Return URDF of a link with the inertia of a uniform box, without the end tag.

    The caller must append "</link>". `size` are edges along x, y, z [m], `down` is the
    depth of the box's centre below the joint [m].
    """
    x, y, z = (s * s for s in size)
    inertia = [mass / 12 * s for s in (y + z, x + z, x + y)]
    return (
        f'<link name="{name}"><inertial><origin xyz="0 0 {-down}"/>'
        f'<mass value="{mass}"/><inertia ixx="{inertia[0]:.6g}" iyy="{inertia[1]:.6g}"'
        f' izz="{inertia[2]:.6g}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def _joint(
    link: str,
    parent: str,
    xyz: tuple[float, ...],
    axis: str,
    limits: tuple[float, float, float],
) -> str:
    """Return the URDF element of the revolute joint above a link, named LINK_joint.

    `xyz` is in the parent link [m], `axis` is text "x y z"; limits are minimum and
    maximum angle [rad], maximum effort [N·m].
    """
    least, most, effort = limits
    return (
        f'<joint name="{link}_joint" type="revolute"><parent link="{parent}"/>'
        f'<child link="{link}"/><origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}"/>'
        f'<axis xyz="{axis}"/><limit lower="{least}" upper="{most}" effort="{effort}"'
        ' velocity="12"/><dynamics damping="0.5" friction="0"/></joint>'
    )


def humanoid_urdf() -> str:
    """Return the URDF of a humanoid of 42 kg, 16 revolute joints, 1.5 m, as text.

    Its root is meant to float: load it with root_joint="floating". Each leg has hip
    roll, hip pitch, knee, ankle pitch and ankle roll; each arm has shoulder pitch,
    shoulder roll and elbow. In this order come the joints of the left side, then those
    of the right. A foot touches with four balls; other links have no shapes.
    All numbers are ours.
    """
    parts = [_link("torso", 18.0, (0.2, 0.3, 0.5)) + "</link>"]
    balls = "".join(
        f'<collision><origin xyz="{x} {y} {SOLE_DEPTH}"/><geometry>'
        f'<sphere radius="{SOLE_RADIUS}"/></geometry></collision>'
        for x, y in SOLES
    )
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for name, mass, size, down, rest, parent, xyz, axis, limits in (
            ("pelvis", 1.0, (0.1, 0.1, 0.1), 0.0, "", "torso",
             (0.0, 0.1 * sign, -HIP_DEPTH), "1 0 0", (-0.7, 0.7, 150.0)),
            ("thigh", 4.0, (0.12, 0.12, LEG), LEG / 2, "", f"{side}_pelvis",
             (0.0, 0.0, 0.0), "0 1 0", (-2.0, 1.0, 150.0)),
            ("shank", 2.5, (0.1, 0.1, LEG), LEG / 2, "", f"{side}_thigh",
             (0.0, 0.0, -LEG), "0 1 0", (0.0, 2.4, 150.0)),
            ("ankle", 0.5, (0.08, 0.08, 0.08), 0.0, "", f"{side}_shank",
             (0.0, 0.0, -LEG), "0 1 0", (-1.0, 1.0, 80.0)),
            ("foot", 1.0, (0.2, 0.1, 0.06), 0.02, balls, f"{side}_ankle",
             (0.0, 0.0, 0.0), "1 0 0", (-0.5, 0.5, 80.0)),
            ("shoulder", 0.5, (0.1, 0.1, 0.1), 0.0, "", "torso",
             (0.0, 0.2 * sign, 0.2), "0 1 0", (-3.0, 3.0, 40.0)),
            ("upper_arm", 1.5, (0.08, 0.08, 0.28), 0.14, "", f"{side}_shoulder",
             (0.0, 0.0, 0.0), "1 0 0", (-1.5, 1.5, 40.0)),
            ("forearm", 1.0, (0.07, 0.07, 0.28), 0.14, "", f"{side}_upper_arm",
             (0.0, 0.0, -0.28), "0 1 0", (-2.2, 0.0, 40.0)),
        ):  # fmt: skip
            link = f"{side}_{name}"
            parts.append(_link(link, mass, size, down) + rest + "</link>")
            parts.append(_joint(link, parent, xyz, axis, limits))
    return f'<robot name="humanoid">{"".join(parts)}</robot>'


# By side: pelvis, thigh, shank, ankle, foot; shoulder, upper arm, forearm.
_SIDE = (0.0, -BEND, 2 * BEND, -BEND, 0.0, 0.0, 0.0, -0.3)
STANCE = np.array([0.0, 0.0, STAND, 0.0, 0.0, 0.0, 1.0, *_SIDE * 2])
KP = np.array([300.0, 300.0, 300.0, 200.0, 100.0, 40.0, 40.0, 40.0] * 2)
KD = np.array([12.0, 12.0, 10.0, 4.0, 2.0, 2.0, 2.0, 1.0] * 2)


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 23), qd (rows, 22) near the stance, and a memory of no columns.

    Joint angles have errors within 0.02 rad; the torso has its place in the stance and
    a horizontal velocity within 0.1 m/s in x and in y. All errors are uniform, all
    other velocities zero.
    """
    q, qd = np.tile(STANCE, (rows, 1)), np.zeros((rows, 22))
    q[:, 7:] += rng.uniform(-0.02, 0.02, (rows, 16))
    qd[:, 3:5] = rng.uniform(-0.1, 0.1, (rows, 2))
    return q, qd, np.zeros((rows, 0))


def observe(rows: RobotRows) -> np.ndarray:
    """Return the observations, (n, 58).

    In this order: height of the torso minus the stance's [m], the world's vertical in
    its axes (3), its angular and linear velocity in them (6) [rad/s, m/s], joint angles
    minus the stance's (16) [rad], their rates / 10 (16) [rad/s], the last action (16).
    """
    return np.concatenate(
        [
            rows.q[:, 2:3] - STAND,
            rows.axes(0)[:, 2, :],
            rows.qd[:, :6],
            rows.q[:, 7:] - STANCE[7:],
            0.1 * rows.qd[:, 6:],
            rows.action,
        ],
        axis=1,
    )


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return 1 - |z - stance| - 2 (1 - u_z) - 0.1 |v|² - 0.01 sum a² by row, (n,).

    z is the height of the torso, u its vertical axis, v its linear velocity.

    Args:
        before: Not used.
        action: Clipped actions a, (n, 16).
        after: Rows after the step.
    """
    low = np.abs(after.q[:, 2] - STAND)
    tilt = 1.0 - after.axes(0)[:, 2, 2]
    moving = (after.qd[:, 3:6] ** 2).sum(axis=1)
    return 1.0 - low - 2.0 * tilt - 0.1 * moving - 0.01 * (action**2).sum(axis=1)


def fallen(after: RobotRows) -> np.ndarray:
    """Return by row whether the torso is below FALLEN or tilted by over 60°, (n,).

    FALLEN is 0.75 of the torso's height in the stance.
    """
    lost: np.ndarray = (after.q[:, 2] < FALLEN) | (after.axes(0)[:, 2, 2] < 0.5)
    return lost


def humanoid_stand() -> RobotTask:
    """Build the task: stand upright on two feet.

    Action: offsets of sixteen joint targets from the stance, 0.5 rad times an action in
    [-1, 1]. Observation (58): height of the torso minus the stance's [m], the world's
    vertical in the torso's axes (3), its angular and linear velocity in them (6)
    [rad/s, m/s], joint angles minus the stance's (16) [rad], their rates / 10 (16)
    [rad/s], the last action (16). Reward, of the state after the step with the height z
    [m], the torso's vertical axis u and its velocity v [m/s]:

        1 - |z - stance| - 2 (1 - u_z) - 0.1 |v|² - 0.01 sum a²

    An episode ends when the torso is below 0.75 of its height in the stance or tilted
    by more than 60 degrees.
    """
    model = load_urdf(humanoid_urdf(), root_joint="floating")
    return RobotTask(
        name="humanoid_stand",
        model=model,
        initial=initial,
        control=JointTargets.of(model, STANCE, KP, KD, 0.5),
        observe=observe,
        reward=reward,
        action_bounds=((-1.0, 1.0),) * 16,
        over=fallen,
        links=tuple(model.frame_names),
        stepping="floor",
        options={"solver_options": {"max_iterations": SWEEPS}},
        max_steps=MAX_STEPS,
    )
