"""A quadruped stands and is pushed.

python examples/contacts/quadruped.py [folder of the plot]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from figures import Figure, G, Part, label, show
from quadruped_runs import PUSH, simulated, stand, stepped


def quadruped(short: bool = False) -> Part:
    """A quadruped stands under PD control and is pushed; also by the compiled step."""
    model, pose = stand()
    period, start, duration = 0.002, 0.2 if short else 0.8, 0.4 if short else 2.0
    t = period * np.arange(round(duration / period))
    push = (t >= start - 1e-9) & (t < start + 0.1 - 1e-9)
    sim, euler = (run(model, pose, t, push) for run in (simulated, stepped))
    before, weight = int(push.argmax()) - 1, model.mass * G
    impulse = period * sim.force.sum(axis=(0, 1))[1] + 0.1 * PUSH
    figures = [
        Figure("before the push: force on the feet, weight [N]",
               sim.force[before, :, 2].sum(), weight),
        Figure("at the end: force on the feet, weight [N]",
               sim.force[-1, :, 2].sum(), weight),
        Figure("    lateral impulse, momentum [N·s]", impulse, model.mass * sim.speed),
        Figure("    height; expected: that of contact_euler [m]",
               sim.height[-1], euler.height[-1]),
        Figure("    largest difference of both on the way [m]",
               abs(sim.height - euler.height).max(), 0.0),
        Figure("a step of the simulator [ms]", 1e3 * sim.seconds),
        Figure("a step of contact_euler [ms]", 1e3 * euler.seconds),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(1, 2)
        for k, placed in enumerate(model.shapes):
            top.plot(t, sim.force[:, k, 2], label=placed.link)
        top.plot(t, sim.force[:, :, 2].sum(axis=1), color="0.6", lw=0.8, label="all")
        top.axhline(weight, color="k", ls="--", lw=0.8, label="weight")
        bottom.plot(t, sim.height, label="simulator")
        bottom.plot(t, euler.height, "k--", lw=0.8, label="contact_euler")
        for ax in (top, bottom):
            ax.axvspan(start, start + 0.1, color="0.9")
        label(top, "vertical force, push in grey [N]")
        label(bottom, "height of the trunk [m]")

    return Part(figures, draw)


if __name__ == "__main__":
    show(quadruped, *sys.argv[1:2])
