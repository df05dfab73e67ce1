"""A quadruped that holds a pose, by the simulator and by one kernel."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import dyn_core as dyn

KP, KD, PUSH = 200.0, 2.5, 40.0  # of the legs; sideways on the trunk for 0.1 s [N]


def stand() -> tuple[dyn.Model, np.ndarray]:
    """Return the quadruped, and a pose with its feet on the ground."""
    surface = {"materials": {"default": {"mu": 0.7}}}
    model = dyn.load("quadruped", extras=surface)  # floating, as its file says
    q = model.neutral()
    for name in model.joint_names:
        if name.endswith("_hip_joint"):
            q[model.q_slice(name)] = 0.7
        if name.endswith("_knee"):
            q[model.q_slice(name)] = -1.4
    return model, dyn.World().on_ground(model, q)


class QuadrupedRun(NamedTuple):
    """A simulation of the quadruped.

    Attributes:
        height: Height of the trunk by step [m].
        force: Force on each foot, world, (steps, 4, 3) [N].
        speed: Lateral speed of the centre of mass at the end [m/s].
        seconds: Computing time of a step [s].
    """

    height: np.ndarray
    force: np.ndarray
    speed: float
    seconds: float


def simulated(
    model: dyn.Model, pose: np.ndarray, t: np.ndarray, push: Any
) -> QuadrupedRun:
    """Simulate the quadruped by ContactSimulator: any world, any solver."""
    period = t[1] - t[0]
    settings = {"period": period, "q0": pose, "joint_friction": False}
    sim = dyn.ContactSimulator(model, {}, **settings)
    feet = [placed.link for placed in model.shapes]
    height, force = np.zeros(len(t)), np.zeros((len(t), 4, 3))
    started = perf_counter()
    for k, now in enumerate(t):
        sim.f_ext = np.zeros((model.nb, 6))
        sim.f_ext[0, 4] = PUSH * push[k]
        sim.command(now, pose_torques(pose, sim.q, sim.qd))
        sim.advance(now)
        height[k] = sim.q[2]
        for c in sim.report.contacts:
            force[k, feet.index(c.link_a)] = c.force
    seconds = (perf_counter() - started) / len(t)
    return QuadrupedRun(height, force, sideways(model, sim.q, sim.qd), seconds)


def stepped(
    model: dyn.Model, pose: np.ndarray, t: np.ndarray, push: Any
) -> QuadrupedRun:
    """Simulate the quadruped by contact_euler, one kernel for feet on half-spaces.

    Joint friction is off, which is the default of Programs.
    """
    period, step = t[1] - t[0], dyn.solver("contact_euler").build(model)
    q, qd, warm = pose, np.zeros(model.nv), np.zeros(12)
    height, force = np.zeros(len(t)), np.zeros((len(t), 4, 3))
    step.prepare()
    started = perf_counter()
    for k in range(len(t)):
        tau = pose_torques(pose, q, qd)
        tau[4] = PUSH * push[k]  # what moves the root joint is a force on the trunk
        q, qd, warm, *_ = step(q, qd, tau, period, warm)
        height[k] = q[2]
        force[k] = warm.reshape(4, 3)[:, [1, 2, 0]] / period
    seconds = (perf_counter() - started) / len(t)
    return QuadrupedRun(height, force, sideways(model, q, qd), seconds)


def sideways(model: dyn.Model, q: np.ndarray, qd: np.ndarray) -> float:
    """Return the speed of the centre of mass along the world's y [m/s]."""
    momentum = dyn.solver("momentum").build(model)(q, qd)
    return float(np.asarray(momentum[0])[4]) / model.mass


def pose_torques(pose: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return the torques that hold the legs of a floating robot in a pose."""
    tau = np.zeros(len(qd))
    tau[6:] = KP * (pose[7:] - q[7:]) - KD * qd[6:]
    return tau
