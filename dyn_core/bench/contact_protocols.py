"""Steps with contacts warm and cold, beside both friction cones of MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.bench.contact_runs import (
    EVERY,
    STEPS,
    Run,
    advance,
    advance_mujoco,
    exhaust,
    nothing,
)
from dyn_core.bench.contact_scene_peers import MujocoScene
from dyn_core.bench.contact_scenes import ContactScene, growing, scenes
from dyn_core.bench.rollout import version
from dyn_core.bench.tables import Progress, Table
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
median (mean, 99 %) of advance and of mj_step with each cone; faster: mj_step over
advance, medians / means. law: as above, warm, of steps with the pyramidal cone."""
HEAD = ("scene", "caches", "advance us", "elliptic us", "faster", "pyramidal us",
        "faster", "law")  # fmt: skip


def table(progress: Progress) -> Table:
    """Measure all scenes and short towers; where MuJoCo is missing, ours alone."""
    rows = [list(HEAD)]
    for scene in [*scenes(), *growing()[:3]]:
        for caches in CACHES:
            progress(f"{caches}: {scene.name}")
            try:
                here = run_here(scene, CACHES[caches])
                cells = [here.times(), *beside(scene, here, caches)]
            except DynError as error:
                cells = [str(error), *["-"] * (len(HEAD) - 3)]
            rows.append([scene.name, caches, *cells])
    return rows


def run_here(scene: ContactScene, between: Callable[[], Any]) -> Run:
    """Return the seconds of steps here, once settled."""
    simulator = scene.simulator()
    exhaust(advance(scene, simulator, scene.settle))
    return Run(list(advance(scene, simulator, STEPS, scene.settle, between)))


def beside(scene: ContactScene, here: Run, caches: str) -> list[str]:
    """Return the cells of MuJoCo: times and ratios of each cone, and the law."""
    if not version("mujoco"):
        return ["-"] * (len(HEAD) - 3)
    cells, law = [], 0.0
    for cone in CONES:
        peer, run, law = MujocoScene(scene, cone), Run(), 0.0
        exhaust(advance_mujoco(peer, scene.settle))
        steps = advance_mujoco(peer, STEPS, scene.settle, CACHES[caches])
        for k, seconds in enumerate(steps):
            run.seconds.append(seconds)
            if caches == "warm" and k % EVERY == 0:
                law = max(law, peer.law())
        ratios = run.median / here.median, np.mean(run.seconds) / np.mean(here.seconds)
        cells += [run.times(), "{:.2f} / {:.2f}x".format(*ratios)]
    return [*cells, f"{law:.0e}" if caches == "warm" else ""]
