"""A planar chain with impacts and limits, and one without a consistent set of modes.

The example prints its events, beside formulas where there are any, and plots (extra
`plot`) the fall, heights with hits marked, energy with losses, and the mode cycle.

    python examples/planar_chain.py [folder of the plot] [scheme]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dyn_core import ChainModel, make_chain
from dyn_core.planar import ChainSimulator

G = 9.81  # [m/s²]
HEIGHT = 0.5  # of the lowest joint at the start [m]
DT = 1e-3  # [s]
SOFT = 1e-3  # [J]
PULL = ((0.0, 0.0), (0.0, 0.0), (56.0, 49.0))  # on the chain whose modes cycle [N]
PLACES = ((0.0, 0.0), (0.47, 0.78), (-0.1, 0.32))  # of its joints [m]


class Fall(NamedTuple):
    """A run of the chain that falls; one row a step.

    Attributes:
        sim: What ran.
        t: [s].
        x: Places of the joints, (rows, n, 2) [m].
        energy: Kinetic and potential [J].
        lost: In hits so far [J].
    """

    sim: ChainSimulator
    t: np.ndarray
    x: np.ndarray
    energy: np.ndarray
    lost: np.ndarray


def falling_chain() -> ChainModel:
    """Return a chain of five joints over the ground, two angles with limits."""
    return make_chain(
        [0.5, 0.4, 0.4, 0.3],
        [0.5, 0.4, 0.4, 0.3, 0.3],
        lower={2: -1.0, 3: -1.2},
        upper={2: 1.0, 3: 0.4},
        ground=[{}],
        name="falling",
    )


def energy_of(chain: ChainModel, x: np.ndarray, v: np.ndarray) -> float:
    """Return kinetic and potential energy of point masses [J]."""
    m = np.array(chain.masses)
    return float(m @ (v * v).sum(axis=1) / 2 + G * m @ x[:, 1])


def fall(seconds: float = 1.5, dt: float = DT, scheme: str = "rk4") -> Fall:
    """Let the chain fall from rest, by a scheme: rk4, semi_implicit or quantum.

    Source: WAW-12.12.
    """
    chain = falling_chain()
    sim = ChainSimulator.at_angles(
        chain, [0.4, 0.9, -0.5, -0.7], x0=(0.0, HEIGHT), dt=dt, scheme=scheme
    )
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
    lengths = np.linalg.norm(np.diff(PLACES, axis=0), axis=1)
    d = np.diff(PLACES, axis=0)
    angle = np.arctan2(d[0, 0] * d[1, 1] - d[0, 1] * d[1, 0], d[0] @ d[1])
    ground = [{"joints": (0,), "mode": mode}]
    chain = make_chain(
        lengths, [0.4, 6.7, 0.7], upper={1: angle}, ground=ground, name="cycling"
    )
    sim = ChainSimulator(chain, PLACES, dt=DT, halve_above=None)
    for _ in range(steps):
        sim.step(forces=PULL)
    return sim


def draw(run: Fall, sims: dict[str, ChainSimulator], path: Path) -> None:
    """Save the plot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), layout="constrained")
    shape, heights, energies, events = axes.ravel()
    for k in range(0, len(run.t), max(1, len(run.t) // 14)):
        shape.plot(*run.x[k].T, "o-", ms=3, color=pyplot.cm.viridis(k / len(run.t)))
    shape.axhline(0, color="k")
    shape.set(title="falling, dark to light", xlabel="x [m]", ylabel="y [m]")
    heights.plot(run.t, run.x[:, :, 1])
    before = run.t[run.t < np.sqrt(2 * HEIGHT / G)]
    heights.plot(before, HEIGHT - G * before**2 / 2, "k--", lw=1, label="free fall")
    for event in run.sim.events:
        if event.loss > SOFT:
            color = "C3" if "ground" in event.message else "C1"
            heights.axvline(event.time, color=color, lw=0.7)
    heights.set(title="heights; red: hits of the ground, orange: of a limit")
    heights.set(xlabel="t [s]", ylabel="y [m]")
    heights.legend()
    energies.plot(run.t, run.energy, label="energy")
    energies.plot(run.t, run.lost, label="lost in hits")
    energies.plot(run.t, run.energy + run.lost, "k--", lw=1, label="both")
    energies.set(title="energy", xlabel="t [s]", ylabel="J")
    energies.legend()
    for row, (mode, sim) in enumerate(sims.items()):
        kinds = ("hit", "release", "mode_cycle", "chatter")
        for event in (e for e in sim.events if e.kind in kinds):
            k = kinds.index(event.kind)
            events.plot(1e3 * event.time, k + 0.2 * row, "|", color=f"C{row}", ms=9)
        events.plot([], [], "|", color=f"C{row}", label=f"joint 0 may {mode}")
    events.set_yticks(range(4), labels=kinds)
    events.set(title="a chain whose modes cycle", xlabel="t [ms]")
    events.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main(folder: Any = ".", scheme: str = "rk4", seconds: float = 1.5) -> Fall:
    """Simulate both chains, print events, draw."""
    started = perf_counter()
    run = fall(seconds, scheme=scheme)
    seconds_used = perf_counter() - started
    hits = [event for event in run.sim.events if event.kind == "hit"]
    print(f"a chain falls: {len(run.t)} steps in {seconds_used:.2f} s")
    closed = np.sqrt(2 * HEIGHT / G)
    print(f"  first hit at {hits[0].time:.9f} s; sqrt(2 h / g) = {closed:.9f} s")
    hard = [e for e in hits if e.loss > SOFT]
    for e in hard:
        print(f"  {e.time:8.5f} s  {e.message:28} loss {e.loss:8.5f} J")
    print(f"  and {len(hits) - len(hard)} hits that lose less than {SOFT} J each")
    both = run.energy + run.lost
    print(f"  energy {both[0]:.6f} J; in the end {run.energy[-1]:.6f} J", end=" ")
    print(f"and {run.lost[-1]:.6f} J lost: {both[-1] - both[0]:+.1e} J by the steps")
    print("  lowest joint:", f"{run.x[:, :, 1].min():.1e} m")
    print("  also:", dict(Counter(e.kind for e in run.sim.events if e.kind != "hit")))
    sims = {mode: cycle_modes(mode) for mode in ("stick", "slide")}
    for mode, sim in sims.items():
        kinds = dict(Counter(event.kind for event in sim.events))
        print(
            f"a chain whose modes cycle, joint 0 may {mode}:"
            f" {kinds or 'nothing happens'}"
        )
        for kind in ("mode_cycle", "chatter"):
            for event in [e for e in sim.events if e.kind == kind][:1]:
                print(f"  {event.time:.4f} s  {kind}: {event.message}")
    path = Path(folder) / "planar_chain.png"
    try:
        draw(run, sims, path)
    except ImportError:
        print("no plot: matplotlib is not installed; pip install 'dyn_ros[plot]'")
    else:
        print(f"{perf_counter() - started:.1f} s, plot: {path}")
    return run


if __name__ == "__main__":
    main(*sys.argv[1:3])
