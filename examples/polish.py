"""Polish a plane: a tool is pressed with 10 N while it moves sideways.

The controller in mode `cartesian` has masses that are 5 % too small and does not know
the joint friction. The tool comes down from 5 mm above a plane of 50 N/mm, and then
draws circles. A force-torque sensor at the flange has an offset, noise, and a delay of
a cycle. The example prints the errors of the force with and without the sensor, draws
both, and makes a film of the arm with the sensor beside the picture.

    python examples/polish.py [PICTURE.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from _plane_and_arm import Cell, draw, film

import dyn_core as dyn
from dyn_core.control import Controller, Rules

END = 8.0  # [s]
PRESS, START, MOVES = 10.0, 0.5, 3.0  # force [N]; it begins, the tool moves [s]
SETTINGS = {
    "cartesian.frame": "tool",
    "cartesian.sensor_link": "flange",
    "cartesian.stiffness": [40.0] * 3 + [800.0] * 3,
    "cartesian.wrench_gain": [0.0] * 5 + [0.5],
    "cartesian.wrench_integral": 60.0,
}
PRESSING = {"cartesian.stiffness": [40.0] * 3 + [800.0, 800.0, 0.0]}


def polish(arm, settings=None, sensor=True, change=None, end=END, cell=Cell):
    """Return the controller, and times, forces, places and q, one row a cycle.

    `change`, (t, reading), returns what the sensor sends at a time, None for nothing.
    `cell` makes the simulated plant of an arm.
    """
    rng, cell, rows = np.random.default_rng(0), cell(arm), []
    masses = {f"{x}.mass": arm.frame(x).inertia.m / 1.05 for x in arm.frame_names[1:]}
    known = {name: [m] for name, m in masses.items() if m}
    controller = Controller(
        arm.with_values(known), mode="cartesian", rules=Rules(good_samples=1),
        parameters={**SETTINGS, **(settings or {})}, bounds=None, state_bounds=None,
    )  # fmt: skip
    for t in cell.cycle * np.arange(round(end / cell.cycle)):
        reading = cell.reading + 0.1 * rng.normal(size=6) + 0.5
        reading = change(t, reading) if change else reading
        if sensor and reading is not None:
            controller.receive("sensor_wrench", t, reading)
        if abs(t - START) < cell.cycle / 2:  # no spring where the wrench acts
            controller.set_parameters(PRESSING)
        if t > START:
            controller.receive("target_wrench", t, [0, 0, 0, 0, 0, -PRESS])
        if t > MOVES:
            v = 0.08 * np.cos(2 * (t - MOVES)), 0.08 * np.sin(2 * (t - MOVES))
            controller.receive("target_twist", t, [0, 0, 0, *v, 0])
        cell.advance(controller.update(t, cell.q, cell.qd))
        rows.append((t, cell.force[2], *cell.place, *cell.q))
    return controller, np.array(rows)


def figures(rows):
    """Return the overshoot at touch, and the largest error of the force in motion."""
    t, force = rows[:, 0], rows[:, 1]
    rows = round(0.1 / (t[1] - t[0]))
    means = force[t > MOVES + 1.0 - 1e-9].reshape(-1, rows).mean(axis=1)  # of 0.1 s
    return force[t < MOVES].max() / PRESS - 1, abs(means / PRESS - 1).max()


def main(picture, end=END):
    """Polish, print and draw; return the figures with and without the sensor."""
    print("law and simulator are compiled, some 10 s the first time", flush=True)
    curves, results, arm = {}, [], dyn.load("arm7")
    for name, sensor in (("with sensor", True), ("without sensor", False)):
        _, rows = polish(arm, sensor=sensor, end=end)
        if sensor:
            film(
                arm, rows[2000::50, 0], rows[2000::50, 5:], picture.with_suffix(".gif")
            )
        curves[name], result = rows[:, :2].T, figures(rows)
        results.append(result)
        print(f"{name}: overshoot {result[0]:.1%}, error in motion {result[1]:.1%}")
    print(f"drawn in {draw(curves, picture)}")
    return results


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("polish.png"))
