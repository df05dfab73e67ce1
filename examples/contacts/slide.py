"""A box slides down a slope, another one sticks.

python examples/contacts/slide.py [folder of the plot]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from figures import Figure, G, Part, label, show
from urdf_text import link, robot

import dyn_core as dyn
from dyn_core.simulation.simulator import Recording, simulate


def on_slope(degrees: float, mu: float, duration: float) -> tuple[Recording, Any]:
    """Simulate a box of 2 kg, 1 x 0.8 x 0.5 m, on a slope that descends along x."""
    angle = np.radians(degrees)
    model = dyn.load_urdf(
        robot("box", link("box", 2.0, size=(1.0, 0.8, 0.5))),
        root_joint="floating",
        extras={"materials": {"default": {"mu": mu}}},
    )
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    q = model.neutral()
    q[:3], q[3:7] = 0.25 * normal, [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    world = dyn.World(half_spaces=(dyn.HalfSpace("slope", normal=tuple(normal)),))
    run = simulate(model, world=world, q0=q, duration=duration, period=0.01)
    return run, (down, normal)


def slide(short: bool = False) -> Part:
    """A box slides down a slope, another one sticks.

    Source: spec case C1.
    """
    run, (down, normal) = on_slope(35.0, 0.4, 1.01)
    way = (run.q[:, :3] - run.q[0, :3]) @ down
    speed, force = run.qd[:, 3], run.reports[50][0].total_force
    a = G * (np.sin(np.radians(35)) - 0.4 * np.cos(np.radians(35)))
    figures = [
        Figure("35 degrees, mu 0.4: acceleration [m/s²]", speed[100], a),
        Figure("    way after 100 steps of 0.01 s [m]", way[100], a * 1e-4 * 5050),
        Figure("    normal force [N]", force @ normal, 2 * G * np.cos(np.radians(35))),
        Figure("    friction [N]", -force @ down, 0.8 * G * np.cos(np.radians(35))),
    ]
    resting, (down2, normal2) = on_slope(20.0, 0.5, 0.2 if short else 1.01)
    moved = (resting.q[:, :3] - resting.q[0, :3]) @ down2
    N = sum(c.force @ normal2 for c in resting.reports[-1][0].contacts)
    lower = sum(
        c.force @ normal2
        for c in resting.reports[-1][0].contacts
        if (c.point - resting.q[-1, :3]) @ down2 > 0
    )
    total = 2 * G * np.cos(np.radians(20))
    edge = total / 2 + 2 * G * np.sin(np.radians(20)) * 0.25 / 1.0
    figures += [
        Figure("20 degrees, mu 0.5: way [m]", abs(moved).max(), 0.0),
        Figure("    normal force [N]", N, total),
        Figure("    of it at the lower edge [N]", lower, edge),
    ]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(run.t, way, label="35°, mu 0.4")
        left.plot(resting.t, moved, label="20°, mu 0.5")
        left.plot(run.t, a * run.t**2 / 2, "k--", lw=0.8, label="a t² / 2")
        right.plot(run.t, speed, run.t, a * run.t, "k--", lw=1)
        label(left, "way [m]")
        label(right, "speed of the first [m/s]")

    return Part(figures, draw)


if __name__ == "__main__":
    show(slide, *sys.argv[1:2])
