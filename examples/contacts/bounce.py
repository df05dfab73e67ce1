"""A ball bounces, another one starts to roll.

python examples/contacts/bounce.py [folder of the plot]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from figures import Figure, G, Part, label, show
from urdf_text import joint, link, robot

import dyn_core as dyn
from dyn_core.simulation.simulator import simulate


def ball(mu: float, restitution: float = 0.0) -> dyn.Model:
    """Return a ball of 1 kg, radius 0.1 m, whose centre has coordinates x, y, z."""
    rows = zip(
        "xyz", ("world", "a", "b"), "abc", ("1 0 0", "0 1 0", "0 0 1"), strict=True
    )
    urdf = robot(
        "ball",
        '<link name="world"/>',
        *(f'<link name="{x}"/>' for x in "abc"),
        *(joint(name, "prismatic", *rest) for name, *rest in rows),
        joint("turn", "floating", "c", "ball"),
        link("ball", 1.0, radius=0.1),
    )
    surface = {"mu": mu, "restitution": restitution}
    turn = {"turn": {"type": "spherical"}}
    return dyn.load_urdf(
        urdf, extras={"joints": turn, "materials": {"default": surface}}
    )


def bounce(short: bool = False) -> Part:
    """A ball bounces, simulated by events; another one starts to roll.

    Source: spec cases C2, C7.
    """
    model = ball(0.2, restitution=0.8)
    q = model.neutral()
    q[2] = 1.1
    world = {"stepper": "event_driven"}
    run = simulate(
        model, world=world, q0=q, duration=2.0 if short else 3.0, period=0.01
    )
    hits = [s.t for row in run.reports for s in row if s.h == 0]
    first, figures = np.sqrt(2 / G), []
    closed = [first * (1 + 2 * sum(0.8**k for k in range(1, n + 1))) for n in range(9)]
    for k in range(3):
        figures.append(Figure(f"ball: impact {k + 1} [s]", hits[k], closed[k]))
    tops = run.q[:, 2] - 0.1 + run.qd[:, 2] ** 2 / (2 * G)
    for k in range(3 if len(hits) > 3 else 2):
        row = np.searchsorted(run.t, hits[k]) + 1
        figures.append(Figure("    apex after it [m]", tops[row], 0.64 ** (k + 1)))
    model = ball(0.2)
    q, qd = model.neutral(), np.zeros(6)
    q[2], qd[0] = 0.1, 3.0
    roll = simulate(model, world={}, q0=q, qd0=qd, duration=1.0, period=0.01)
    slip = [row[0].contacts[0].sliding for row in roll.reports]
    step = int(np.argmax(np.array(slip) < 1e-9))
    lost = roll.energy[0] - roll.energy[-1]
    figures += [
        Figure("rolls from step (0.43687 s / 0.01 s, upwards)", step + 1, 44),
        Figure("    speed [m/s]", roll.qd[-1, 0], 15 / 7),
        Figure("    turning [rad/s]", roll.qd[-1, 4], 150 / 7),
        Figure("    energy lost [J]", lost, 9 / 7),
        Figure(
            "    last impulse of friction [N·s]",
            np.linalg.norm(roll.reports[step][0].contacts[0].impulse[1:]),
            3 - 43 * 0.2 * G * 0.01 - 15 / 7,
        ),
    ]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(run.t, run.q[:, 2] - 0.1)
        for k, begin in enumerate([-first, *closed[:6]]):
            t = np.linspace(begin, begin + 2 * first * 0.8**k)
            t = t[(t >= 0) & (t <= run.t[-1])]
            y = first * 0.8**k * G * (t - begin) - G * (t - begin) ** 2 / 2
            left.plot(t, y, "k--", lw=0.8)
        label(left, "height of a ball that bounces [m]")
        right.plot(roll.t, roll.qd[:, 0], label="speed")
        right.plot(roll.t, 0.1 * roll.qd[:, 4], label="turning times radius")
        t, end = roll.t, 2 * 3 / (7 * 0.2 * G)
        right.plot(t, np.where(t < end, 3 - 0.2 * G * t, 15 / 7), "k--", lw=0.8)
        right.plot(t, np.where(t < end, 0.5 * G * t, 15 / 7), "k--", lw=0.8)
        label(right, "of a ball that slides, then rolls [m/s]")

    return Part(figures, draw)


if __name__ == "__main__":
    show(bounce, *sys.argv[1:2])
