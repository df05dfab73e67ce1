"""The planar walker is dropped, as a chain and as a robot.

python examples/contacts/walker.py [folder of the plot]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from figures import Figure, G, Part, label, show
from walkers import DROP, FOOT, HoldLegs, as_robot, leg_torques

import dyn_core as dyn
from dyn_core.planar import ChainSimulator, from_angles
from dyn_core.planar.chain.chain import make_chain_like
from dyn_core.simulation.simulator import simulate
from dyn_core.tasks.walker import Walker, walker_chain


def walker(short: bool = False) -> Part:
    """The planar walker is dropped, as a chain and as a robot with contacts."""
    chain = walker_chain()
    chain = make_chain_like(
        chain, ground=[{"z0": (0.0, FOOT), "joints": g.joints, "mode": g.mode}
                       for g in chain.ground]
    )  # fmt: skip
    stance, still, none = np.array(Walker.STANCE), np.zeros(7), np.zeros(2)
    low = from_angles(chain, none, none, stance, still).x[:, 1].min()
    start, duration = DROP + FOOT - low, 0.6 if short else 1.2
    planar = ChainSimulator.at_angles(chain, stance, x0=(0, start), dt=1e-3)
    hips, t = [], 1e-3 * np.arange(round(duration / 1e-3))
    for _ in t:
        hips.append(planar.x[Walker.REAR, 1])
        planar.step(leg_torques(planar.theta, planar.omega))
    hits = [event for event in planar.events if event.kind == "hit"]
    model = as_robot(chain)
    q = model.neutral()
    q[1], q[2:] = start, stance
    world = {"half_spaces": [dyn.HalfSpace("floor")], "solver": "lemke"}
    run = simulate(model, HoldLegs(), world=world, q0=q, duration=duration, period=1e-3)
    chains = (from_angles(chain, q[:2], none, q[2:], still).x for q in run.q)
    robots = np.array([x[Walker.REAR, 1] for x in chains])
    force = np.array([row[0].total_force[2] for row in run.reports])
    t_hit, last = np.sqrt(2 * DROP / G), len(t) // 4
    pressed = run.t[int(np.argmax(force > 0))] + 1e-3
    figures = [
        Figure("walker, chain: first hit [s]", hits[0].time, t_hit),
        Figure("    robot: end of the step that hits [s]", pressed, t_hit),
        Figure("hip at the end [m]: robot, expected the chain's", robots[-1], hips[-1]),
        Figure("    largest difference [m]", abs(robots - hips).max()),
        Figure("mean force of the last quarter, weight [N]", force[-last:].mean(),
               sum(chain.masses) * G),
        Figure("energy lost in hits of the chain [J]", planar.lost),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True)
        top.plot(run.t, robots, label="robot with contacts")
        top.plot(t, hips, "--", label="planar chain")
        fall = t[t < t_hit]
        top.plot(fall, robots[0] - G * fall**2 / 2, "k:", label="free fall")
        label(top, "height of the rear hip [m]", None)
        bottom.plot(run.t, force)
        bottom.axhline(sum(chain.masses) * G, color="k", ls="--", lw=0.8)
        bottom.set_ylim(0, 1000)
        label(bottom, "force on the ground [N]")

    return Part(figures, draw)


if __name__ == "__main__":
    show(walker, *sys.argv[1:2])
