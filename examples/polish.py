"""Polish a plane: a tool is pressed with 10 N while it moves sideways.

The controller in mode `cartesian` has masses that are 5 % too small and does not know the
joint friction. The tool comes down from 5 mm above a plane of 50 N/mm, and then draws
circles. A force-torque sensor at the flange has an offset, noise, and a delay of a cycle.
The example prints the errors of the force with and without the sensor, and draws both.

    python examples/polish.py [PICTURE.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from _pictures import draw_forces

import dyn_core as dyn
from dyn_core.control import Controller, Rules

CYCLE, STEPS, END = 1e-3, 4, 8.0  # period [s], steps of the simulation in it, end [s]
PRESS, START, MOVES = 10.0, 0.5, 3.0  # force [N]; it begins, the tool moves [s]
STIFFNESS, DAMPING, FRICTION, GAP = 5e4, 100.0, 0.2, 0.005  # N/m, N·s/m, 1, m
Q = np.array([0.0, 0.1, 0.0, -2.2, 0.0, 2.3, 0.8])
SETTINGS = {
    "cartesian.frame": "tool",
    "cartesian.sensor_link": "flange",
    "cartesian.stiffness": [40.0] * 3 + [800.0] * 3,
    "cartesian.wrench_gain": [0.0] * 5 + [0.5],
    "cartesian.wrench_integral": 60.0,
}
PRESSING = {"cartesian.stiffness": [40.0] * 3 + [800.0, 800.0, 0.0]}


class Cell:
    """An arm above a plane, and its sensor; moved by torques, cycle by cycle."""

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
        I, (R, arm) = self.arm.frame("tool").inertia, (T[1][:3, :3], self.place - T[1][:3, 3])
        com = T[0][:3, :3] @ np.array([*I.h]) / I.m
        load = I.m * (np.array([0.0, 0.0, -9.81]) - a[3:] - np.cross(a[:3], com))
        moment = np.cross(arm, self.force) + np.cross(arm + com, load)
        self.reading = np.concatenate([R.T @ moment, R.T @ (self.force + load)])


def polish(arm, settings=None, sensor=True, change=lambda t, reading: reading, end=END):
    """Return the controller, and times, forces and heights, one row a cycle.

    `change` may change what the sensor sends at a time; for None it sends nothing.
    """
    rng, cell, rows = np.random.default_rng(0), Cell(arm), []
    masses = {f"{x}.mass": arm.frame(x).inertia.m / 1.05 for x in arm.frame_names[1:]}
    known = {name: [m] for name, m in masses.items() if m}
    controller = Controller(
        arm.with_values(known), mode="cartesian", rules=Rules(good_samples=1),
        parameters={**SETTINGS, **(settings or {})}, bounds=None, state_bounds=None,
    )  # fmt: skip
    for t in CYCLE * np.arange(round(end / CYCLE)):
        reading = change(t, cell.reading + 0.1 * rng.normal(size=6) + 0.5)
        if sensor and reading is not None:
            controller.receive("sensor_wrench", t, reading)
        if abs(t - START) < CYCLE / 2:  # no spring where the wrench acts
            controller.set_parameters(PRESSING)
        if t > START:
            controller.receive("target_wrench", t, [0, 0, 0, 0, 0, -PRESS])
        if t > MOVES:
            v = 0.08 * np.cos(2 * (t - MOVES)), 0.08 * np.sin(2 * (t - MOVES))
            controller.receive("target_twist", t, [0, 0, 0, *v, 0])
        cell.advance(controller.update(t, cell.q, cell.qd))
        rows.append((t, cell.force[2], *cell.place))
    return controller, np.array(rows)


def figures(rows):
    """Return the overshoot at touch, and the largest error of the force in motion."""
    t, force = rows[:, 0], rows[:, 1]
    means = force[t > MOVES + 1.0 - 1e-9].reshape(-1, 100).mean(axis=1)  # of 0.1 s
    return force[t < MOVES].max() / PRESS - 1, abs(means / PRESS - 1).max()


def main(picture):
    """Polish, print and draw; return the figures with and without the sensor."""
    curves, results = {}, []
    for name, sensor in (("with sensor", True), ("without sensor", False)):
        _, rows = polish(dyn.load("arm7"), sensor=sensor)
        curves[name], result = rows[:, :2].T, figures(rows)
        results.append(result)
        print(f"{name}: overshoot {result[0]:.1%}, error in motion {result[1]:.1%}")
    print(f"drawn in {draw_forces(curves, picture)}")
    return results


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("polish.png"))
