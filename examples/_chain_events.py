"""Events of the planar chain example, printed and drawn."""

from collections import Counter

import numpy as np
from _pictures import pyplot, save

G = 9.81  # [m/s²]
SOFT = 1e-3  # hits that lose less are not shown [J]


def energy_of(chain, x, v):
    """Return kinetic and potential energy of point masses [J]."""
    m = np.array(chain.masses)
    return float(m @ (v * v).sum(axis=1) / 2 + G * m @ x[:, 1])


def print_fall(run, height):
    """Print hits and energy of a fall from a height [m], beside free fall."""
    hits = [event for event in run.sim.events if event.kind == "hit"]
    closed = np.sqrt(2 * height / G)
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


def print_modes(sims):
    """Print the events of the chains whose modes cycle, by what a joint may do."""
    for mode, sim in sims.items():
        kinds = dict(Counter(event.kind for event in sim.events))
        print(
            f"a chain whose modes cycle, joint 0 may {mode}:"
            f" {kinds or 'nothing happens'}"
        )
        for kind in ("mode_cycle", "chatter"):
            for event in [e for e in sim.events if e.kind == kind][:1]:
                print(f"  {event.time:.4f} s  {kind}: {event.message}")


def draw(run, sims, height, path):
    """Save the plot of the fall, its energy, and the events of the modes."""
    plt = pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
    shape, heights, energies, events = axes.ravel()
    for k in range(0, len(run.t), max(1, len(run.t) // 14)):
        shape.plot(*run.x[k].T, "o-", ms=3, color=plt.cm.viridis(k / len(run.t)))
    shape.axhline(0, color="k")
    shape.set(title="falling, dark to light", xlabel="x [m]", ylabel="y [m]")
    heights.plot(run.t, run.x[:, :, 1])
    before = run.t[run.t < np.sqrt(2 * height / G)]
    heights.plot(before, height - G * before**2 / 2, "k--", lw=1, label="free fall")
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
    save(figure, path, dpi=90)
