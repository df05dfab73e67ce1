"""A planar chain with impacts and limits, and one without a consistent set of modes.

The example prints its events, beside formulas where there are any, and plots (extra
`plot`) the fall, heights with hits marked, energy with losses, and the mode cycle.

    python examples/planar_chain.py [folder of the plot] [scheme]
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from _chain_events import draw, energy_of, print_fall, print_modes

from dyn_core import ChainModel, make_chain
from dyn_core.planar import ChainSimulator

HEIGHT = 0.5  # of the lowest joint at the start [m]
DT = 1e-3  # [s]
PULL = ((0.0, 0.0), (0.0, 0.0), (56.0, 49.0))  # on the chain whose modes cycle [N]
PLACES = ((0.0, 0.0), (0.47, 0.78), (-0.1, 0.32))  # of its joints [m]


class Fall(NamedTuple):
    """A run of the chain that falls; one row a step."""

    sim: ChainSimulator
    t: np.ndarray  # [s]
    x: np.ndarray  # places of the joints, (rows, n, 2) [m]
    energy: np.ndarray  # kinetic and potential [J]
    lost: np.ndarray  # in hits so far [J]


def falling_chain() -> ChainModel:
    """Return a chain of five joints over the ground, two angles with limits."""
    limits = {"lower": {2: -1.0, 3: -1.2}, "upper": {2: 1.0, 3: 0.4}}
    lengths, masses = [0.5, 0.4, 0.4, 0.3], [0.5, 0.4, 0.4, 0.3, 0.3]
    return make_chain(lengths, masses, **limits, ground=[{}], name="falling")


def fall(seconds: float = 1.5, dt: float = DT, scheme: str = "rk4") -> Fall:
    """Let the chain fall from rest, by a scheme: rk4, semi_implicit or quantum.

    Source: WAW-12.12.
    """
    chain = falling_chain()
    settings = {"x0": (0.0, HEIGHT), "dt": dt, "scheme": scheme}
    sim = ChainSimulator.at_angles(chain, [0.4, 0.9, -0.5, -0.7], **settings)
    rows = []
    for _ in range(round(seconds / dt)):
        rows.append((sim.t, sim.x, energy_of(chain, sim.x, sim.v), sim.lost))
        sim.step()
    t, x, energy, lost = (np.array(column) for column in zip(*rows, strict=True))
    return Fall(sim, t, x, energy, lost)


def cycle_modes(mode: str, steps: int = 40) -> ChainSimulator:
    """Simulate a chain without a consistent set of active constraints, if it sticks.

    Without constraints it falls; with the ground active its angle exceeds the limit;
    with both the ground would have to pull; with the limit alone the limit would.

    Source: WAW-12.8.
    """
    d = np.diff(PLACES, axis=0)
    lengths = np.linalg.norm(d, axis=1)
    angle = np.arctan2(d[0, 0] * d[1, 1] - d[0, 1] * d[1, 0], d[0] @ d[1])
    parts = {"upper": {1: angle}, "ground": [{"joints": (0,), "mode": mode}]}
    chain = make_chain(lengths, [0.4, 6.7, 0.7], **parts, name="cycling")
    sim = ChainSimulator(chain, PLACES, dt=DT, halve_above=None)
    for _ in range(steps):
        sim.step(forces=PULL)
    return sim


def main(folder: Any = ".", scheme: str = "rk4", seconds: float = 1.5) -> Fall:
    """Simulate both chains, print events, draw."""
    started = perf_counter()
    run = fall(seconds, scheme=scheme)
    print(f"a chain falls: {len(run.t)} steps in {perf_counter() - started:.2f} s")
    print_fall(run, HEIGHT)
    sims = {mode: cycle_modes(mode) for mode in ("stick", "slide")}
    print_modes(sims)
    path = Path(folder) / "planar_chain.png"
    try:
        draw(run, sims, HEIGHT, path)
    except ImportError:
        print("no plot: matplotlib is not installed; pip install '.[plot]'")
    else:
        print(f"{perf_counter() - started:.1f} s, plot: {path}")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:3])
