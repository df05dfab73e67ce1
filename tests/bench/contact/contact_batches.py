"""Batches of steps of the scenes with contacts, here and in MuJoCo, on one core."""

from __future__ import annotations

from statistics import median
from time import process_time
from typing import Any

import numpy as np

from bench.contact.contact_protocols import CONES
from bench.contact.contact_runs import DT, advance, advance_mujoco, exhaust, ratio
from bench.contact.contact_scene_peers import MujocoScene
from bench.contact.contact_scenes import ContactScene, scenes
from bench.printed_tables import Progress, Table
from bench.rollout import STEPS, rollout_rate, version
from dyn_core.commands.timing import REPEATS
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.errors import DynError

LONG = 2.0  # time after which a scene is not stepped once more [s]
ROWS = 64  # states of a batch: those of as many steps of the run, one after the other
LEGEND = f"""\
Batches: {ROWS} states, those of as many steps of a settled run, take {STEPS} steps with
the joint forces that they had: BatchStep on one thread, the median of up to {REPEATS}
times from the same states, behind a step that is not timed and leaves impulses to start
from; mujoco.rollout on one thread from the states and warm starts of its own run.
unsolved: share of the steps that were not solved to their tolerance; law: the largest
residual of those that were. (behind): below 1."""
HEAD = ("scene", "k/s core", "unsolved", "law", "elliptic k/s", "faster",
        "pyramidal k/s", "faster")  # fmt: skip


def table(progress: Progress) -> Table:
    """Measure all scenes."""
    return [list(HEAD), *(_line(scene, progress) for scene in scenes())]


def _line(scene: ContactScene, progress: Progress) -> list[str]:
    """Measure a scene here and, where it is installed, in MuJoCo."""
    progress(f"batch: {scene.name}")
    try:
        seconds, outcomes = _run_here(scene)
    except DynError as error:
        return [scene.name, str(error), *["-"] * (len(HEAD) - 2)]
    rate = ROWS * STEPS / seconds
    solved = np.array([x.status == STATUSES.index("converged") for x in outcomes])
    law = np.array([x.residual for x in outcomes])[solved].max(initial=0.0)
    cells = [scene.name, f"{rate * 1e-3:.1f}", f"{1 - solved.mean():.1%}", f"{law:.0e}"]
    if not version("mujoco"):
        return [*cells, *["-"] * (len(HEAD) - len(cells))]
    for cone in CONES:
        other = _rate_of_mujoco(scene, cone)
        cells += [f"{other * 1e-3:.1f}", ratio(rate / other)]
    return cells


def _run_here(scene: ContactScene) -> tuple[float, list[Any]]:
    """Return the seconds of STEPS steps of a batch, and their outcomes."""
    simulator, states = scene.simulator(), []
    exhaust(advance(scene, simulator, scene.settle))
    for k in range(scene.settle, scene.settle + ROWS):
        q, qd = simulator.q.copy(), simulator.qd.copy()
        states.append((q, qd, scene.command(k * DT, q, qd)))
        exhaust(advance(scene, simulator, 1, k))
    q, qd, tau = (np.array(x) for x in zip(*states, strict=True))
    contact_model = ContactModel(scene.model, simulator.world)
    batch = BatchStep(contact_model, DT, ROWS, threads=1)

    def steps() -> tuple[float, list[Any]]:
        batch.reset()
        x, v, _ = batch.step(q, qd, tau)
        outcomes, seconds = [], 0.0
        for _ in range(STEPS):
            start = process_time()
            x, v, outcome = batch.step(x, v, tau)
            seconds += process_time() - start
            outcomes.append(outcome)
        return seconds, outcomes

    steps()  # compiles, and makes room for the contacts
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < LONG:
        seconds, outcomes = steps()
        times.append(seconds)
    return median(times), outcomes


def _rate_of_mujoco(scene: ContactScene, cone: str) -> float:
    """Return steps a second of mujoco.rollout."""
    peer = MujocoScene(scene, cone)
    exhaust(advance_mujoco(peer, scene.settle))
    states = []
    for k in range(scene.settle, scene.settle + ROWS):
        data = peer.data
        peer.command(k * DT)
        parts = data.qpos, data.qvel, data.qfrc_applied, data.qacc_warmstart
        states.append([x.copy() for x in parts])
        exhaust(advance_mujoco(peer, 1, k))
    q, v, force, warm = (np.array(x) for x in zip(*states, strict=True))
    return rollout_rate(peer.mj, peer.model, q, v, force, warm)
