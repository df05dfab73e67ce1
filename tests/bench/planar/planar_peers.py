"""Peers of the planar benchmarks: MuJoCo with the same systems, and gymnasium."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from bench.rollout import rollout_rate
from dyn_core.commands.timing import per_call
from dyn_core.planar import ChainModel, ChainState, joint_angles, joint_rates
from dyn_core.tasks import ChainTask, Task

POINT = 0.005  # radius of a point mass in MuJoCo [m]
CHUNK = 64  # states of a rollout
ROD = 1 / 12  # of 1 kg and 1 m, about its middle [kg·m²]
OBJECTS = {
    "classic_cart_pole": f"""
<mujoco><option timestep="0.02" gravity="0 0 -9.8"/><worldbody><body>
  <joint type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body><joint type="hinge" axis="0 1 0"/>
    <inertial pos="0 0 0.5" mass="0.1" diaginertia="{ROD / 10} {ROD / 10} 1e-4"/>
</body></body></worldbody></mujoco>""",
    "classic_pendulum": f"""
<mujoco><option timestep="0.05" gravity="0 0 -10"/><worldbody><body>
  <joint type="hinge" axis="0 1 0"/>
  <inertial pos="0 0 0.5" mass="1" diaginertia="{ROD} {ROD} 1e-3"/>
</body></worldbody></mujoco>""",
    "classic_acrobot": """
<mujoco><option timestep="0.2" gravity="0 0 -9.8" integrator="RK4"/><worldbody><body>
  <joint type="hinge" axis="0 -1 0"/>
  <inertial pos="0.5 0 0" mass="1" diaginertia="1 1 1"/>
  <body pos="1 0 0"><joint type="hinge" axis="0 -1 0"/>
    <inertial pos="0.5 0 0" mass="1" diaginertia="1 1 1"/>
</body></body></worldbody></mujoco>""",
}
"""The objects as MJCF; they lie in the plane (x, z)."""

SINGLE = {
    "classic_cart_pole": ("CartPole-v1", 4),
    "classic_pendulum": ("Pendulum-v1", 2),
    "classic_acrobot": ("Acrobot-v1", 4),
}
"""Ids of gymnasium, and the sizes of their states."""


def chain_mjcf(chain: ChainModel, dt: float) -> str:
    """Return a free chain on the ground as MJCF: point masses, spheres against a plane.

    Limits and rolling resistance are those of the chain; its ground sticks, there
    friction does.
    """
    bodies = close = ""
    point = '<geom type="sphere" size="{}" pos="{} 0 0" mass="{}"/>'
    for i, length in enumerate(chain.lengths):
        offset = chain.lengths[i - 1] if i else 0.0
        limited = i and math.isfinite(chain.lower[i]) and math.isfinite(chain.upper[i])
        bounds = f"{chain.lower[i]:.17g} {chain.upper[i]:.17g}"
        stops = f'limited="true" range="{bounds}"' if limited else ""
        bodies += f'<body pos="{offset} 0 0">'
        if not i:
            bodies += '<joint type="slide" axis="1 0 0"/>'
            bodies += '<joint type="slide" axis="0 0 1"/>'
        bodies += f'<joint axis="0 -1 0" damping="{chain.k_omega[i]}" {stops}/>'
        bodies += point.format(POINT, 0, chain.masses[i])
        if i == chain.n - 2:
            bodies += point.format(POINT, length, chain.masses[-1])
        close += "</body>"
    gx, gy = chain.gravity
    return f"""
<mujoco><compiler angle="radian"/><option timestep="{dt}" gravity="{gx} 0 {gy}"/>
<default><geom contype="0" conaffinity="1" friction="1"/></default><worldbody>
<geom type="plane" size="0 0 1" contype="1" conaffinity="0"/>{bodies}{close}
</worldbody></mujoco>"""


class PlanarMuJoCo:
    """A task's system in MuJoCo.

    Attributes:
        task: Task.
        model, data: MuJoCo's.

    Args:
        task: One of OBJECTS, or a task of a free chain.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.mj = task, import_module("mujoco")
        mjcf = OBJECTS.get(task.name) or chain_mjcf(task.system, task.dt)
        self.model = self.mj.MjModel.from_xml_string(mjcf)
        self.data = self.mj.MjData(self.model)

    def place(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return qpos and qvel (rows, nv) of states of the task (rows, ns)."""
        if not isinstance(self.task, ChainTask):
            half = self.task.ns // 2
            return states[:, :half].copy(), states[:, half:].copy()
        chain = self.task.system
        both = states[:, : 4 * chain.n].reshape(len(states), 2, chain.n, 2)
        state = ChainState(both[:, 0], both[:, 1])
        place = both[:, 0, 0] + [0.0, POINT]
        q = np.concatenate([place, joint_angles(chain, state)], axis=1)
        return q, np.concatenate([both[:, 1, 0], joint_rates(chain, state)], axis=1)

    def forces(self, actions: np.ndarray) -> np.ndarray:
        """Return qfrc_applied (rows, nv) of actions of the task (rows, na)."""
        applied = np.zeros((len(actions), self.model.nv))
        if isinstance(self.task, ChainTask):
            applied[:, 2 + np.array(self.task.motors)] = actions
        elif self.task.name == "classic_acrobot":
            applied[:, 1:] = actions
        else:
            applied[:, :1] = actions
        return applied

    def call(self, states: np.ndarray, actions: np.ndarray, steps: int = 1) -> float:
        """Measure mj_step from Python, a state at a time [s]; steps in a call."""
        inputs = list(zip(*self.place(states), self.forces(actions), strict=True))
        space = {"mj": self.mj, "m": self.model, "d": self.data}
        statement = (
            "d.qpos[:] = q; d.qvel[:] = v; d.qfrc_applied[:] = f;"
            f" mj.mj_step(m, d, {steps})"
        )
        return per_call(statement, inputs, "q, v, f", space)

    def rate(self, states: np.ndarray, actions: np.ndarray) -> float:
        """Measure steps a second of mujoco.rollout on one thread."""
        return rollout_rate(
            self.mj, self.model, *self.place(states), self.forces(actions)
        )


def gymnasium_call(task: str, states: int) -> float:
    """Measure a step of gymnasium's own environment, wrappers left out [s]."""
    gymnasium = import_module("gymnasium")
    name, size = SINGLE[task]
    environment = gymnasium.make(name).unwrapped
    environment.reset(seed=7)
    drawn = np.random.default_rng(7).uniform(-0.05, 0.05, (states, size))
    action: Any = 1 if task != "classic_pendulum" else np.zeros(1, np.float32)
    space = {"e": environment, "a": action}
    return per_call("e.state = s; e.step(a)", [(s,) for s in drawn], "s", space)


def gymnasium_cart_poles(count: int, actions: Sequence[np.ndarray]) -> float:
    """Measure steps a second of gymnasium's own vector of cart-poles."""
    gymnasium = import_module("gymnasium")
    mode = "vector_entry_point"
    many = gymnasium.make_vec("CartPole-v1", count, vectorization_mode=mode)
    return stepped(many, actions, count)


def stepped(
    environments: Any, actions: Sequence[np.ndarray], count: int, **timing: Any
) -> float:
    """Measure steps a second of a vector of environments, some way into episodes."""
    environments.reset(seed=7)
    for k in range(len(actions) * 20):
        environments.step(actions[k % len(actions)])
    inputs = [(a,) for a in actions]
    seconds = per_call("e.step(a)", inputs, "a", {"e": environments}, **timing)
    environments.close()
    return count / seconds
