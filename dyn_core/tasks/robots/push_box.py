"""An arm pushes a box over the floor to a goal: contacts between bodies.

Arrays have n rows, one for each environment; RobotRows has the links of LINKS:
shoulder, elbow, tip, box. NEAR is (0.35, -0.2) m, FAR (0.5, 0.2) m.
"""

from __future__ import annotations

import numpy as np

from dyn_core.model import load_urdf
from dyn_core.tasks.joint_commands import JointTorques
from dyn_core.tasks.robot_task import RobotRows, RobotTask, Start

MAX_STEPS = 200
SIDE = 0.1  # of the box [m]
LINKS = ("shoulder", "elbow", "tip", "box")
NEAR, FAR = (0.35, -0.2), (0.5, 0.2)  # region of the box and of its goal [m]

SCENE = f"""<robot name="push_box">
  <link name="floor"/>
  <link name="shoulder"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.001" iyy="0.008" izz="0.008" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="elbow"><inertial><origin xyz="0.15 0 0"/><mass value="0.8"/>
    <inertia ixx="0.001" iyy="0.006" izz="0.006" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="tip"><inertial><mass value="0.2"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <link name="box"><inertial><mass value="0.5"/><inertia ixx="{0.5 * SIDE**2 / 6}"
    iyy="{0.5 * SIDE**2 / 6}" izz="{0.5 * SIDE**2 / 6}" ixy="0" ixz="0" iyz="0"/>
    </inertial><collision><geometry><box size="{SIDE} {SIDE} {SIDE}"/></geometry>
    </collision></link>
  <joint name="shoulder_joint" type="revolute"><parent link="floor"/>
    <child link="shoulder"/><origin xyz="0 0 0.05"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" effort="5" velocity="10"/>
    <dynamics damping="0.3"/></joint>
  <joint name="elbow_joint" type="revolute"><parent link="shoulder"/>
    <child link="elbow"/><origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2.6" upper="2.6" effort="3" velocity="10"/>
    <dynamics damping="0.3"/></joint>
  <joint name="tip_joint" type="fixed"><parent link="elbow"/><child link="tip"/>
    <origin xyz="0.3 0 0"/></joint>
  <joint name="box_joint" type="floating"><parent link="floor"/><child link="box"/>
  </joint>
</robot>"""


def initial(rng: np.random.Generator, rows: int) -> Start:
    """Draw q (rows, 9), zero qd (rows, 8), and goals as memory, (rows, 2) [m].

    q has two angles, then the pose of the box (x, y, z, qx, qy, qz, qw). The arm is
    bent aside, its angles uniform within 0.05 rad of -1.9 and 1.2. The box stands on
    the floor, its axes along the world's; x, y of the box and of the goal are uniform
    in the rectangle from NEAR to FAR.
    """
    q = np.zeros((rows, 9))
    q[:, :2] = [-1.9, 1.2] + rng.uniform(-0.05, 0.05, (rows, 2))
    q[:, 2:4] = rng.uniform(NEAR, FAR, (rows, 2))
    q[:, 4], q[:, 8] = SIDE / 2, 1.0
    return q, np.zeros((rows, 8)), rng.uniform(NEAR, FAR, (rows, 2))


def observe(rows: RobotRows) -> np.ndarray:
    """Return the observations, (n, 17).

    q (2) [rad] and qd (2) [rad/s] of the arm, then in x and y of the world: tip (2)
    [m], box (2) [m] and the box's x axis (2); linear velocity of the box in the world's
    axes (3) [m/s]; vectors from box to goal (2) and from tip to box (2) [m].
    """
    tip, box = rows.place(2)[:, :2], rows.place(3)[:, :2]
    heading = rows.axes(3)[:, :2, 0]
    speed = np.einsum("nij,nj->ni", rows.axes(3), rows.qd[:, 5:8])
    parts = [rows.q[:, :2], rows.qd[:, :2], tip, box, heading]
    parts += [speed, rows.memory - box, box - tip]
    return np.concatenate(parts, axis=1)


def reward(before: RobotRows, action: np.ndarray, after: RobotRows) -> np.ndarray:
    """Return -|goal - box| - 0.2 |box - tip| - 0.001 sum a² in x and y, by row, (n,).

    Args:
        before: Not used.
        action: Clipped actions a, (n, 2).
        after: Rows after the step.
    """
    box, tip = after.place(3)[:, :2], after.place(2)[:, :2]
    missing = np.linalg.norm(after.memory - box, axis=1)
    apart = np.linalg.norm(box - tip, axis=1)
    return -missing - 0.2 * apart - 0.001 * (action**2).sum(axis=1)


def push_box() -> RobotTask:
    """Build the task: push a box of 0.5 kg to a goal on the floor, by a planar arm.

    Action: torques of shoulder and elbow, 5 and 3 N·m times an action in [-1, 1].
    Observation (17): q (2) [rad] and qd (2) [rad/s] of the arm, x and y of the tip,
    then of the box (4) [m], x and y of the box's x axis (2), linear velocity of the box
    in the world (3) [m/s], vectors from the box to the goal, then from the tip to the
    box, in x and y (4) [m]. Reward, of the positions in x and y after the step:

        -|goal - box| - 0.2 |box - tip| - 0.001 sum a²

    No state ends an episode. Goals are uniform in the rectangle from NEAR, (0.35, -0.2)
    m, to FAR, (0.5, 0.2) m.
    """
    model = load_urdf(SCENE)
    scale = np.array([5.0, 3.0])
    return RobotTask(
        name="push_box",
        model=model,
        initial=initial,
        control=JointTorques.of(model, scale, ["shoulder_joint", "elbow_joint"]),
        observe=observe,
        reward=reward,
        action_bounds=((-1.0, 1.0),) * 2,
        links=LINKS,
        stepping="bodies",
        dt=0.004,
        substeps=5,
        max_steps=MAX_STEPS,
    )
