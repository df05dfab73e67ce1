"""Accuracy of the steppers at equal CPU time, in scenes with contacts.

`python -m bench.contact.contact_accuracy`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from bench.contact.contact_scenes import (
    ContactScene,
    alone,
    four_bar,
    pushing_arm,
    quadruped,
    towers,
)
from bench.measure import machine
from bench.printed_tables import Table, markdown, print_tables, progress
from dyn_core.contact.rows.step_tables import SCHEMES
from dyn_core.contact.world import World
from dyn_core.simulation import ContactSimulator

STEPPERS = (*SCHEMES, "event_driven")
PERIODS = 8e-3, 4e-3, 2e-3, 1e-3, 5e-4  # steps that are compared [s]
BUDGET = 2e-3  # step of the default stepper whose time all get [s]
FINE = 64  # steps of the reference in one of BUDGET
DURATION, SAMPLE = 0.4, 0.04  # of a run, and times at which it is compared [s]
REPEATS = 5  # runs whose shortest CPU time counts
LEGEND = f"""\
Accuracy: runs of {DURATION:g} s by each stepper, with steps of
{", ".join(f"{h * 1e3:g}" for h in PERIODS)} ms and the default solver. error: largest
distance in coordinates [m | rad] from the reference, every {SAMPLE * 1e3:g} ms. The
reference is moreau_jean with {FINE} steps in {BUDGET * 1e3:g} ms; its column is the
distance of {World.stepper} with as many, of which only a larger error counts. equal
time: error, interpolated in logarithms, at the CPU time of {World.stepper} with
{BUDGET * 1e3:g} ms, the shortest of {REPEATS} runs, commands included; where steps of
{PERIODS[0] * 1e3:g} ms take longer, theirs. order: of the error between steps of 4 and
1 ms. Commands are those of the start of a step, which is
of first order."""


@dataclass
class Start:
    """A scene and the velocity of its first floating body at the start.

    Attributes:
        name: Of the row.
        scene: Bodies, world and drive.
        velocity: Angular and linear, (6,), or nothing.
        height: Added to that of the first floating body [m].
    """

    name: str
    scene: ContactScene
    velocity: Sequence[float] = ()
    height: float = 0.0


def starts() -> list[Start]:
    """Return what is run."""
    body, ball, box = alone("body"), alone("ball"), alone("box")
    return [
        Start("free body spins", body, (0.1, 20.0, 0.1, 0, 0, 0)),
        Start("ball slides, then rolls", ball, (0, 0, 0, 1.0, 0, 0)),
        Start("box slides to rest", box, (0, 0, 0, 1.5, 0.3, 0)),
        Start("box bounces over the floor", box, (3.0, 2.0, 1.0, 1.0, 0, 0), 0.1),
        Start("quadruped lands", quadruped(False), height=0.1),
        Start("quadruped stands", quadruped(False)),
        Start("quadruped trots", quadruped(True)),
        Start("quadruped lands on stiff springs", quadruped(False, 800.0), height=0.1),
        Start("ten boxes", towers(1, 10)),
        Start("four-bar with a foot", four_bar()),
        Start("arm pushes a box", pushing_arm()),
    ]


def run(start: Start, stepper: str, h: float) -> tuple[np.ndarray, float]:
    """Return the positions at the times of comparison, and the CPU seconds of a run."""
    scene, model = start.scene, start.scene.model
    q, qd = scene.start.copy(), np.zeros(model.nv)
    qd[: len(start.velocity)] = start.velocity
    q[2] += start.height
    world = World(half_spaces=scene.half_spaces, stepper=stepper)
    simulator = ContactSimulator(model, world, period=h, q0=q, qd0=qd)
    places, each = [], round(SAMPLE / h)
    seconds = process_time()
    for k in range(round(DURATION / h)):
        t = k * h
        if scene.drive is not None:
            simulator.command(t, scene.command(t, simulator.q, simulator.qd))
        simulator.advance(t)
        if (k + 1) % each == 0:
            places.append(simulator.q.copy())
    return np.array(places), process_time() - seconds


def distance(start: Start, a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest distance of two runs in coordinates [m | rad]."""
    model = start.scene.model
    apart = [model.difference(x, y) for x, y in zip(a, b, strict=True)]
    return float(np.abs(apart).max())


def row(start: Start) -> list[str]:
    """Return the row of a scene."""
    progress(start.name)
    fine = {s: run(start, s, BUDGET / FINE)[0] for s in ("moreau_jean", World.stepper)}
    reference = fine["moreau_jean"]
    errors, seconds = np.zeros((2, len(STEPPERS), len(PERIODS)))
    for j, h in enumerate(PERIODS):
        for i, stepper in enumerate(STEPPERS):
            runs = [run(start, stepper, h) for _ in range(REPEATS)]
            errors[i, j] = max(distance(start, reference, runs[0][0]), 1e-16)
            seconds[i, j] = min(time for _, time in runs)
    budget = np.log(seconds[STEPPERS.index(World.stepper), PERIODS.index(BUDGET)])
    cells = [start.name, f"{distance(start, reference, fine[World.stepper]):.0e}"]
    for i in range(len(STEPPERS)):
        times = np.log(seconds[i])
        equal = np.interp(budget, times, np.log(errors[i]))
        order = np.log(errors[i, 1] / errors[i, 3]) / np.log(4)
        more = np.exp(
            times[0] - budget
        )  # the longest steps need more time than allowed
        slower = f", in {more:.1f}x the time" if more > 1.0 else ""
        cells.append(f"{np.exp(equal):.1e} ({order:.1f}){slower}")
    return cells


def table() -> Table:
    """Measure all scenes."""
    head = ["scene", "reference", *(f"{name}: equal time (order)" for name in STEPPERS)]
    return [head, *map(row, starts())]


if __name__ == "__main__":
    print(machine())
    print_tables(LEGEND, [("error at equal time [m | rad]", table())], markdown)
