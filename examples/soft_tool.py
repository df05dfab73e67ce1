"""A soft tool: it holds against a push, passes a singular position, follows a target.

python examples/soft_tool.py [FOLDER OF THE FILMS]  # docs/task_space.md has the laws
"""

import sys
from pathlib import Path

import numpy as np

import dyn_core as dyn
from dyn_core.kinematics import InverseKinematics
from dyn_core.spatial.conventions.common import quaternion
from dyn_core.view.film import write_film
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene

DT = 5e-4  # [s]
K = np.diag([60.0, 60.0, 60.0, 800.0, 800.0, 800.0])  # [N·m/rad; N/m]
BENT = np.array([0.0, -0.4, 0.0, -1.9, 0.0, 1.5, 0.8])
# With joint3 locked at 0: two axes of the wrist are one here.
ALIGNED = np.array([-2.392, 0.152, -1.716, -2.35, 3.341, 1.832])
WAY = np.array([-0.17, 0.74, 0.65])  # there the tool can move along it
PUSH = np.array([0.0, 0.0, 0.0, 0.0, 16.0, 0.0])  # [N·m; N]


def act(model, law, target, q, push=None, step=None, end=4.0):
    """Return times, q, joint forces, and p - p_ref of the tool, one row a step.

    `target(t)` returns pose (7,), v (6,) and a (6,), `push(t)` a wrench on the tool.
    The motion starts at rest at q, to which idle motions return.
    """
    n = model.nv
    rest = {"q_rest": q, "rest_stiffness": np.full(n, 4.0), "rest_damping": np.ones(n)}
    inputs = ["v_ref", "a_ref", *rest]
    program = dyn.solver(law).build(model, frame="tool", inputs=inputs)
    poses = dyn.solver("forward_kinematics").build(model, frames=["tool"])
    jacobian = dyn.solver("jacobian").build(model, frame="tool", reference="aligned")
    euler, qd, rows = dyn.solver("semi_implicit_euler").build(model), np.zeros(n), []
    step = step or (lambda *state: euler(*state, DT)[:2])
    for t in DT * np.arange(round(end / DT)):
        pose, v, a = target(t)
        tau = program(q, qd, pose, K, v, a, *rest.values())
        rows.append((t, q, tau, poses(q)[0][:3, 3] - pose[:3]))
        q, qd = step(q, qd, tau if push is None else tau + jacobian(q).T @ push(t))
    return [np.array(x) for x in zip(*rows, strict=True)]


def pose(model, q):
    """Return the pose of the tool, (7,): x y z, quaternion x y z w."""
    T = dyn.solver("forward_kinematics").build(model, frames=["tool"])(q)[0]
    return np.r_[T[:3, 3], quaternion(T[:3, :3])]


def moving(start, place):
    """Return the target whose place [m] is start + place(t), by small differences."""

    def target(t, h=1e-4):
        x, y, z = (place(t + k * h) for k in (-1, 0, 1))
        rates = (z - x) / (2 * h), (x - 2 * y + z) / h**2
        return np.r_[start[:3] + y, start[3:]], *(np.r_[np.zeros(3), r] for r in rates)

    return target


def scenes():
    """Return model and arguments of `act` by name."""
    arm = dyn.load("arm7")
    wrist = arm.lock({"joint3": 0.0})
    bent, aligned = pose(arm, BENT), pose(wrist, ALIGNED)
    reach, q = InverseKinematics(wrist, "tool"), ALIGNED
    for part in np.linspace(0.0, 0.12, 25):
        q = reach(np.r_[aligned[:3] - part * WAY, aligned[3:]], near=q).q
    line = moving(aligned, lambda t: (0.12 - 0.24 * np.cos(np.pi * t / 8) ** 2) * WAY)
    angle = lambda t: np.pi * t - np.sin(np.pi * t)  # noqa: E731  # from rest to rest
    circle = moving(
        bent, lambda t: 0.1 * np.array([0, 1 - np.cos(angle(t)), np.sin(angle(t))])
    )
    holding = (arm, "cartesian_impedance", moving(bent, lambda _: np.zeros(3)), BENT)
    return {
        "hold_against_a_push": (*holding, lambda t: PUSH * (0.5 < t < 3.0)),
        "pass_a_singularity": (wrist, "operational_space", line, q),
        "follow_a_target": (arm, "operational_space", circle, BENT),
    }


def main(folder):
    """Run, print and film each scene."""
    print("compiled, simulated and drawn: some 20 s a scene", flush=True)
    for name, (model, *more) in scenes().items():
        t, q, tau, error = act(model, *more)
        far, rate = 1e3 * np.abs(error).max(), np.abs(np.diff(tau, axis=0)).max() / DT
        print(f"{name}: {far:.2f} mm off, |dtau/dt| <= {rate:.0f} N·m/s")
        film = Replay(RobotScene(model), t[::20], q[::20])
        write_film(film, folder / f"{name}.gif", fps=12)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
