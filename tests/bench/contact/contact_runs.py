"""Runs of scenes with contacts, here and in MuJoCo, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np

from bench.contact.contact_scene_peers import MujocoScene
from bench.contact.contact_scenes import DT, ContactScene, growing, scenes
from bench.printed_tables import Progress, Table
from bench.rollout import version
from dyn_core.contact.stepping.solver_choice import in_machine_code
from dyn_core.errors import DynError
from dyn_core.simulation import ContactSimulator

STEPS = 300  # measured, one after the other
LIMIT = 20.0  # longest that a run settles, and that it is measured [s]
COMPARED, EQUAL = 200, 5e-3  # steps after which poses are compared; what is equal [m]
WARM = 20  # steps before everything: what is compiled, is compiled then
EVERY = 10  # steps between those whose laws and overlaps are computed
LEGEND = f"""\
Runs: each scene settles, then {STEPS} steps of {DT * 1e3:g} ms, one after the
other, are timed by CPU time: median (mean, 99 %) [us]. A run of more than {LIMIT:g}
s ends there; (n) behind a name: n steps are measured. advance:
ContactSimulator.advance with its default settings, the command set before, reports
not read. step: ArrayStep.step in it, in a second run from the same start. contacts:
those with a gap below the margin of 2 cm (with an impulse); of mj_step those with a
gap below zero. law: largest relative residual of the exact law in the run, for
mj_step of its own contacts, forces and velocities in every tenth step; 'failed':
steps that were not solved to their tolerance. mj_step: the same URDF with planes,
from Python, Newton, elliptic cones, Euler with implicit damping, tolerances and
softness as MuJoCo has them, warm starts, the command set before. overlap: deepest
of the run in MuJoCo's collision detection, here / mj_step. apart: largest distance
of a body after {COMPARED * DT:g} s from the same start; '!': more than
{EQUAL * 1e3:g} mm, the runs are not the same. faster: mj_step over advance,
medians; (behind): below 1."""


@dataclass
class Run:
    """Figures of the steps of a run.

    Attributes:
        seconds: Of each step.
        contacts, pressed, iterations: Of each step.
        law, overlap: The largest; NaN where it is not computed.
        failed: Steps that were not solved to their tolerance.
    """

    seconds: list[float] = field(default_factory=list)
    contacts: list[int] = field(default_factory=list)
    pressed: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    law: float = np.nan
    overlap: float = np.nan
    failed: int = 0

    @property
    def median(self) -> float:
        """Median of a step [s]."""
        return float(np.median(self.seconds))

    def times(self) -> str:
        """Return median, mean and 99 % [us]."""
        us = np.array(self.seconds) * 1e6
        shown = np.median(us), us.mean(), np.percentile(us, 99)
        return "{:.0f} ({:.0f}, {:.0f})".format(*shown)


@dataclass
class SceneFigures:
    """What was measured of a scene.

    Attributes:
        scene: The scene.
        here: Of ContactSimulator.advance.
        step: Of ArrayStep.step in it; with contacts and residuals.
        mujoco: Of mj_step, or None.
        apart: Largest distance of a body after COMPARED steps [m], or None.
        settled: Steps before.
        error: What ended the run here; empty if nothing.
    """

    scene: ContactScene
    here: Run
    step: Run
    mujoco: Run | None = None
    apart: float | None = None
    settled: int = 0
    error: str = ""


def ratio(*times: float) -> str:
    """Return how many times as long a peer takes, and where that is behind."""
    shown = " / ".join(f"{x:.2f}" for x in times) + "x"
    return f"{shown} (behind)" if min(times) < 1 else shown


def nothing() -> None:
    """Leave the caches as they are."""


def advance(
    scene: ContactScene,
    simulator: ContactSimulator,
    steps: int,
    first: int = 0,
    between: Callable[[], Any] = nothing,
) -> Iterator[float]:
    """Advance a simulation step by step; yields the seconds of each.

    Args:
        scene: The scene.
        simulator: Of the scene.
        steps: How many.
        first: Number of the first.
        between: Called before each step, after its command; not timed.
    """
    for k in range(first, first + steps):
        t = k * DT
        simulator.command(t, scene.command(t, simulator.q, simulator.qd))
        between()
        start = process_time()
        simulator.advance(t)
        yield process_time() - start


def advance_mujoco(
    peer: MujocoScene,
    steps: int,
    first: int = 0,
    between: Callable[[], Any] = nothing,
) -> Iterator[float]:
    """Make steps of MuJoCo, as `advance` does here; yields the seconds of each."""
    mj_step, model, data = peer.mj.mj_step, peer.model, peer.data
    for k in range(first, first + steps):
        peer.command(k * DT)
        peer.keep()
        between()
        start = process_time()
        mj_step(model, data)
        yield process_time() - start


def distance(scene: ContactScene, steps: int = COMPARED) -> float:
    """Return how far apart a body is here and in MuJoCo after some steps [m]."""
    simulator, peer = scene.simulator(), MujocoScene(scene)
    exhaust(advance(scene, simulator, steps))
    exhaust(advance_mujoco(peer, steps))
    return peer.apart(simulator.q)


def measured(scene: ContactScene, steps: int) -> SceneFigures:
    """Measure steps of a scene here and, where it is installed, in MuJoCo."""
    simulator, here, step = scene.simulator(), Run(), Run()
    if not in_machine_code(simulator.world):
        return SceneFigures(scene, here, step, error="not in machine code alone")
    figures = SceneFigures(scene, here, step)
    peer = MujocoScene(scene) if version("mujoco") else None
    try:
        _count(advance(scene, simulator, WARM))
        simulator.reset()
        figures.settled = settle = _count(advance(scene, simulator, scene.settle))
        here.seconds = _kept(advance(scene, simulator, steps, settle))
        simulator.reset()
        _count(advance(scene, simulator, settle), limit=np.inf)
        _inside(scene, simulator, settle, len(here.seconds), step, peer)
    except DynError as error:
        figures.error = str(error)
        return figures
    if peer is None:
        return figures
    figures.apart = distance(scene)
    figures.mujoco = run = Run(law=0.0, overlap=0.0)
    _count(advance_mujoco(peer, settle))
    for k, seconds in enumerate(advance_mujoco(peer, len(here.seconds), settle)):
        run.seconds.append(seconds)
        run.contacts.append(int(peer.data.ncon))
        run.iterations.append(int(peer.data.solver_niter.max()))
        if k % EVERY == 0:
            run.law = max(run.law, peer.law())
            run.overlap = max(run.overlap, peer.penetration())
    return figures


def _inside(
    scene: ContactScene, simulator: Any, first: int, steps: int, run: Run, peer: Any
) -> None:
    """Measure ArrayStep.step inside of `advance`, and keep what its records say."""
    arrays = simulator.arrays
    step: Callable[..., Any] = arrays.step
    run.law, run.overlap = 0.0, 0.0 if peer else np.nan

    def timed(*inputs: Any) -> Any:
        start = process_time()
        result = step(*inputs)
        run.seconds.append(process_time() - start)
        record = result[2]
        touching = record.ids >= 0
        run.contacts.append(int(touching.sum()))
        normals = record.impulse[record.starts[touching]]
        run.pressed.append(int((normals > 0).sum()))
        run.iterations.append(record.iterations)
        run.law = max(run.law, float(record.residuals[4]))
        run.failed += record.status != "converged"
        return result

    arrays.step = timed
    try:
        for k, _ in enumerate(advance(scene, simulator, steps, first)):
            if peer and k % EVERY == 0:
                run.overlap = max(run.overlap, peer.overlap(simulator.q))
    finally:
        del arrays.step


def exhaust(steps: Iterator[float]) -> None:
    """Make steps."""
    for _ in steps:
        pass


def _count(steps: Iterator[float], limit: float | None = None) -> int:
    """Make steps until they end or take too long; return how many."""
    return len(_kept(steps, limit))


def _kept(steps: Iterator[float], limit: float | None = None) -> list[float]:
    """Return the seconds of steps, until they end or take too long."""
    seconds, total = [], 0.0
    for one in steps:
        seconds.append(one)
        total += one
        if total > (LIMIT if limit is None else limit):
            break
    return seconds


# ------------------------------------------------------------------------- the tables

HEAD = ("scene", "dof", "contacts", "advance us", "step us", "iterations", "law",
        "mj contacts", "mj_step us", "mj iterations", "mj law", "overlap mm",
        "apart mm", "faster")  # fmt: skip


def tables(progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return titles and tables, one after the other as they are measured."""
    peer, all_figures = version("mujoco") or "mujoco is not installed", []
    if not version("mujoco"):
        progress("mujoco is not installed; its columns are left out")
    groups = (
        ("runs of scenes", scenes),
        ("cost by contacts: towers of boxes", growing),
    )
    for title, made in groups:
        figures = []
        for scene in made():
            progress(f"run: {scene.name}")
            figures.append(measured(scene, STEPS))
        all_figures += figures
        yield f"{title} ({peer})", [list(HEAD), *map(line, figures)]
    yield "notes on the runs", [["scene", "note"], *notes(all_figures)]


def line(figures: SceneFigures) -> list[str]:
    """Return the row of a scene."""
    scene, here, step = figures.scene, figures.here, figures.step
    if not step.seconds:
        return [scene.name, f"{scene.model.nv}", *["-"] * (len(HEAD) - 2)]
    short = f" ({len(here.seconds)})" if len(here.seconds) < STEPS else ""
    contacts = f"{np.mean(step.contacts):.0f} ({np.mean(step.pressed):.0f})"
    law = f"{step.law:.0e}" + (f", {step.failed} failed" if step.failed else "")
    cells = [
        scene.name + short, f"{scene.model.nv}", contacts, here.times(), step.times(),
        f"{np.mean(step.iterations):.1f}", law,
    ]  # fmt: skip
    other = figures.mujoco
    if other is None or figures.apart is None:
        return [*cells, *["-"] * (len(HEAD) - len(cells))]
    mark = "!" if figures.apart > EQUAL else ""
    overlap = f"{step.overlap * 1e3:.2f} / {other.overlap * 1e3:.2f}"
    return [
        *cells, f"{np.mean(other.contacts):.0f}", other.times(),
        f"{np.mean(other.iterations):.1f}", f"{other.law:.0e}", overlap,
        f"{figures.apart * 1e3:.1f}{mark}", ratio(other.median / here.median),
    ]  # fmt: skip


def notes(rows: Sequence[SceneFigures]) -> list[list[str]]:
    """Return where MuJoCo is ahead, and what went wrong."""
    table = []
    for row in rows:
        name, other = row.scene.name, row.mujoco
        if row.error:
            table.append([name, f"the run ended: {row.error}"])
            continue
        if row.settled < row.scene.settle:
            settled = f"{row.settled} of {row.scene.settle}"
            table.append([name, f"settled for {settled} steps only, for lack of time"])
        if row.step.failed:
            table.append([name, f"{row.step.failed} steps not solved to the tolerance"])
        if other is not None and other.median < row.here.median:
            ratio = row.here.median / other.median
            table.append([name, f"MuJoCo is ahead, {ratio:.1f}x"])
    return table or [["all", "MuJoCo is ahead in none"]]
