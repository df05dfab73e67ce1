"""An arm with a force-torque sensor at its flange, above a stiff plane."""

from __future__ import annotations

import numpy as np
from _pictures import pyplot, save

import dyn_core as dyn
from dyn_core.view.film import write_film
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import Part
from dyn_core.view.solids import box

CYCLE, STEPS = 1e-3, 4  # period of the controller [s], steps of the simulation in it
STIFFNESS, DAMPING, FRICTION, GAP = 5e4, 100.0, 0.2, 0.005  # N/m, N·s/m, 1, m
FPS = 10.0  # pictures of a film per second
Q = np.array([0.0, 0.1, 0.0, -2.2, 0.0, 2.3, 0.8])


class Cell:
    """An arm above a plane, and its sensor; moved by torques, cycle by cycle."""

    cycle = CYCLE

    def __init__(self, arm: dyn.Model) -> None:
        self.arm, self.q, self.qd = arm, Q, np.zeros(7)
        build = {"frame": "tool", "reference": "aligned"}
        self.poses = dyn.solver("forward_kinematics").build(
            arm, frames=["tool", "flange"]
        )
        self.jacobian = dyn.solver("jacobian").build(arm, **build)
        self.acceleration = dyn.solver("frame_acceleration").build(arm, **build)
        self.move = dyn.solver("aba").build(arm, joint_friction=True)
        self.plane = self.poses(Q)[0][2, 3] - GAP
        self.force, self.reading = np.zeros(3), np.zeros(6)
        self.advance(np.zeros(7))

    def advance(self, tau: np.ndarray) -> None:
        """Simulate a cycle; then the sensor has measured."""
        dt = CYCLE / STEPS
        for _ in range(STEPS):
            J, T = self.jacobian(self.q), self.poses(self.q)
            v, depth = (J @ self.qd)[3:], self.plane - T[0][2, 3]
            press = max(STIFFNESS * depth - DAMPING * v[2], 0.0) if depth > 0 else 0.0
            slide = -FRICTION * press * v[:2] / np.sqrt(v[:2] @ v[:2] + 1e-6)
            self.force = np.array([*slide, press])
            qdd = self.move(self.q, self.qd, tau + J[3:].T @ self.force)
            a = self.acceleration(self.q, self.qd, qdd)
            self.qd = self.qd + dt * qdd
            self.q = self.q + dt * self.qd
        self.place = T[0][:3, 3]
        # Weight and inertia of the tool, between sensor and plane, are measured, too.
        I, R = self.arm.frame("tool").inertia, T[1][:3, :3]
        arm, com = self.place - T[1][:3, 3], T[0][:3, :3] @ np.array([*I.h]) / I.m
        load = I.m * (np.array([0.0, 0.0, -9.81]) - a[3:] - np.cross(a[:3], com))
        moment = np.cross(arm, self.force) + np.cross(arm + com, load)
        self.reading = np.concatenate([R.T @ moment, R.T @ (self.force + load)])


def draw(curves, path):
    """Draw forces over time, from times and forces by name."""
    figure, ax = pyplot().subplots(figsize=(9, 3.2))
    for name, (t, force) in curves.items():
        ax.plot(t, force, lw=0.9, label=name)
    ax.set(xlabel="t [s]", ylabel="force on the plane [N]")
    ax.legend(loc="lower right")
    return save(figure, path)


def film(arm, t, q, path):
    """Write a film of an arm and a block whose top is the plane of a Cell."""

    class Scene(RobotScene):
        def _make(self, role):
            top, T = Cell(arm).plane, np.eye(4)
            T[:3, 3] = 0.54, 0.08, top / 2
            block = box((0.3, 0.4, top)).moved(T)
            return [*super()._make(role), Part("plane", 0, block, (150, 160, 170))]

    write_film(Replay(Scene(arm), t, q), path, fps=FPS)
