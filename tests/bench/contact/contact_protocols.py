"""Steps with contacts warm and cold, beside both friction cones of MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.contact.contact_runs import (
    EVERY,
    STEPS,
    Run,
    advance,
    advance_mujoco,
    exhaust,
    nothing,
    ratio,
)
from bench.contact.contact_scene_peers import MujocoScene
from bench.contact.contact_scenes import ContactScene, growing, scenes
from bench.printed_tables import Progress, Table
from bench.rollout import version
from dyn_core.errors import DynError

CONES = ("elliptic", "pyramidal")
OTHER = np.zeros(2**17)  # what another program has, 1 MB
CACHES: dict[str, Callable[[], Any]] = {
    "warm": nothing,
    "cold": lambda: np.add(OTHER, 1.0, out=OTHER),
}
LEGEND = f"""\
Warm and cold: the runs of the scenes once more, {STEPS} steps each. warm: one step
after the other. cold: before each step, not timed, another program reads and writes
{OTHER.nbytes / 1e6:.2g} MB of its own, as a controller in the same process does. us:
median (mean, 99 %) of advance and of mj_step with each cone; law: as above, of every
tenth step; faster: mj_step over advance, medians / means; (behind): one is below 1."""
HEAD = ("scene", "caches", "advance us", "law", "elliptic us", "law", "faster",
        "pyramidal us", "law", "faster")  # fmt: skip


def table(progress: Progress) -> Table:
    """Measure all scenes and short towers; where MuJoCo is missing, ours alone."""
    rows = [list(HEAD)]
    for scene in [*scenes(), *growing()[:3]]:
        for caches in CACHES:
            progress(f"{caches}: {scene.name}")
            try:
                here = run_here(scene, CACHES[caches])
                cells = [*_cells(here), *beside(scene, here, CACHES[caches])]
            except DynError as error:
                cells = [str(error), *["-"] * (len(HEAD) - 3)]
            rows.append([scene.name, caches, *cells])
    return rows


def run_here(scene: ContactScene, between: Callable[[], Any]) -> Run:
    """Return the seconds of steps here, once settled, and their law."""
    simulator = scene.simulator()
    exhaust(advance(scene, simulator, scene.settle))
    steps = advance(scene, simulator, STEPS, scene.settle, between)
    return _run(steps, lambda: simulator.reports[-1].residuals.law)


def beside(scene: ContactScene, here: Run, between: Callable[[], Any]) -> list[str]:
    """Return the cells of MuJoCo: times, law and ratios of each cone."""
    if not version("mujoco"):
        return ["-"] * (len(HEAD) - 4)
    cells = []
    for cone in CONES:
        peer = MujocoScene(scene, cone)
        exhaust(advance_mujoco(peer, scene.settle))
        run = _run(advance_mujoco(peer, STEPS, scene.settle, between), peer.law)
        medians = run.median / here.median
        means = float(np.mean(run.seconds) / np.mean(here.seconds))
        cells += [*_cells(run), ratio(medians, means)]
    return cells


def _run(steps: Iterator[float], law: Callable[[], float]) -> Run:
    """Return the seconds of steps, and the largest residual of every tenth."""
    run = Run(law=0.0)
    for k, seconds in enumerate(steps):
        run.seconds.append(seconds)
        if k % EVERY == 0:
            run.law = max(run.law, law())
    return run


def _cells(run: Run) -> list[str]:
    """Return the times and the law of a run."""
    return [run.times(), f"{run.law:.0e}"]
