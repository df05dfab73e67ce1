"""Checks of a robot in motion: inertia along joints, H, weight, tips, loops.

Positions are drawn with a fixed seed within the limits. Programs are interpreted
(engine graph): compiling would take longer than a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dyn_core.errors import DynError
from dyn_core.model import Model
from dyn_core.model.checks.inertias import joints_in_loops
from dyn_core.reports.doctor.report import Met
from dyn_core.simulation.loop_closure import close_loops
from dyn_core.simulation.loop_report import TRIES, loop_report
from dyn_core.solving.registry import solver

ENGINE = "graph"
WORST = 1e7  # maximum condition number of the scaled H [-]
TINY = 1e-5  # mass relative to the robot's that counts as tiny [-]
TINY_MASS = 1e-3  # and maximum mass that counts as tiny [kg]
RANK = 1e-7  # relative tolerance of singular values
MOST_TIPS = 8  # maximum number of tips that are checked
OPEN = 1e-6  # maximum gap of a closed loop [m | rad]


class SampledMotions(NamedTuple):
    """A robot with random positions.

    Attributes:
        model: Robot.
        q: Positions, (samples, nq).
        figures: Measured values as text, by name; the checks add to it.
        notes: Omitted checks, and why; the checks add to it.
    """

    model: Model
    q: np.ndarray
    figures: dict[str, str]
    notes: list[str]


def sampled(model: Model, samples: int, seed: int) -> SampledMotions:
    """Return a robot with random positions within its limits, and no results yet."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(samples)])
    return SampledMotions(model, q.reshape(samples, model.nq), {}, [])


def check_motions(motions: SampledMotions) -> Iterator[Met]:
    """Yield findings on the bodies of a robot, and on its motion at given positions.

    If a check raises a DynError, it yields nothing more, and the reason is appended to
    motions.notes; the other checks continue. Without coordinates only the bodies are
    checked.

    Args:
        motions: Robot with positions; the checks add to its figures and notes.
    """
    model = motions.model
    yield from _bodies(model)
    if model.nv == 0:
        motions.notes.append("nothing moves: no motion was looked at")
        return
    for check in (_inertia_matrix, _weight, _tips, _loops):
        try:
            yield from check(motions)
        except DynError as error:
            what = check.__name__.strip("_").replace("_", " ")
            motions.notes.append(f"{what} was not looked at: {error}")


def _bodies(model: Model) -> Iterator[Met]:
    """Yield joints without inertia along them, and bodies of little or no mass.

    Joints in loops are not reported for their inertia. Needs no positions.
    """
    in_loops = joints_in_loops(model)
    lacking = [name for name in model.without_inertia if name not in in_loops]
    for name in lacking:
        yield Met("no-inertia-along", f"joint '{name}'", "its inertia is 0")
    total = float(model.mass)
    for i in model.bodies:
        m, name = float(model.I[i].m), model.names[i]
        owner = f"body behind joint '{name}'"
        if m == 0.0 and name not in model.without_inertia and total > 0:
            yield Met("massless-body", owner, "mass 0")
        elif 0.0 < m < min(TINY * total, TINY_MASS):
            yield Met("tiny-mass", owner, f"{m:.3g} kg of {total:.4g} kg")


def _inertia_matrix(motions: SampledMotions) -> Iterator[Met]:
    """Yield a finding if H, scaled to a unit diagonal, is nearly singular somewhere.

    Adds the condition numbers to motions.figures, or a note if joints lack inertia.
    """
    model = motions.model
    if model.without_inertia:
        motions.notes.append("H is singular: its condition was not looked at")
        return
    H = solver("crba").build(model, engine=ENGINE)(motions.q)
    diagonal = np.einsum("kii->ki", H)
    if (diagonal <= 0).any():
        k = int(np.argmin(diagonal.min(axis=0)))
        what = f"its entry of the diagonal of H is {diagonal[:, k].min():.3g}"
        yield Met("ill-conditioned", f"joint '{_coordinate(model, k)}'", what)
        return
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(H * scale[:, :, None] * scale[:, None, :])
    conditions = values[:, -1] / np.maximum(values[:, 0], 1e-300)  # may be 0
    worst = int(np.argmax(conditions))
    middle = float(np.median(conditions))
    motions.figures["condition of the scaled H"] = (
        f"median {middle:.3g}, largest {conditions[worst]:.3g}"
    )
    if conditions[worst] > WORST:
        motion = _largest(model, vectors[worst, :, 0])
        what = f"up to {conditions[worst]:.2g}; motion without inertia: {motion}"
        yield Met("ill-conditioned", "", what)


def _largest(model: Model, direction: np.ndarray) -> str:
    """Return the names of the main joints in a direction (nv,), at most four."""
    share = np.abs(direction) / np.abs(direction).max()
    order = [int(k) for k in np.argsort(-share) if share[k] > 0.1][:4]
    return ", ".join(f"'{_coordinate(model, k)}'" for k in order)


def _coordinate(model: Model, k: int) -> str:
    """Return the name of the joint of velocity coordinate k."""
    return next(
        model.names[i]
        for i in model.independent
        if model.v_slices[i].start <= k < model.v_slices[i].stop
    )


def _weight(motions: SampledMotions) -> Iterator[Met]:
    """Yield joints whose effort limit is less than the gravity load somewhere.

    Adds the largest ratio to motions.figures. With loops it only adds a note.
    """
    model = motions.model
    if model.loops:
        motions.notes.append(
            "weight against effort limits: not looked at, loops share the weight"
        )
        return
    tau = np.abs(solver("gravity").build(model, engine=ENGINE)(motions.q))
    limit, loads = np.asarray(model.effort_limit, float), []
    active = set(model.active_joints)
    for i in model.independent:
        k = model.v_slices[i].start
        if model.joint[i].nv != 1 or limit[k] <= 0 or model.names[i] not in active:
            continue
        ratio = tau[:, k] / limit[k]
        loads.append((float(ratio.max()), model.names[i], limit[k]))
        share = float((ratio > 1).mean())
        if share > 0:
            unit = "N" if model.joint[i].kind == "prismatic" else "N·m"
            what = (
                f"{tau[:, k].max():.4g} of {limit[k]:.4g} {unit} ({ratio.max():.0%});"
            )
            fact = f"{what} too weak in {share:.0%} of {len(tau)} positions"
            yield Met("weak-effort", f"joint '{model.names[i]}'", fact)
    if loads:
        most, name, bound = max(loads)
        motions.figures["largest weight by effort limit"] = (
            f"'{name}': {most:.0%} of {bound:.4g}"
        )


def _tips(motions: SampledMotions) -> Iterator[Met]:
    """Yield tips with joint motions that cancel in each of the first 40 positions.

    Adds ratios of singular values to motions.figures, and a note if tips are omitted.
    With loops it only adds a note.
    """
    model = motions.model
    if model.loops:
        motions.notes.append("singular directions of tips: not looked at with loops")
        return
    parents = set(model.parent[1:])
    leaves = [i for i in model.bodies if i not in parents]
    if len(leaves) > MOST_TIPS:
        motions.notes.append(f"tips: the first {MOST_TIPS} of {len(leaves)}")
    q = motions.q[: min(len(motions.q), 40)]
    for body in leaves[:MOST_TIPS]:
        names = [x for x, frame in model.frames.items() if frame.body == body]
        columns = _columns(model, body)
        if not names or len(columns) < 2:
            continue
        J = solver("jacobian").build(model, frame=names[0], engine=ENGINE)(q)
        J = J[:, :, columns]
        length = max(float(np.abs(J[:, 3:]).max()), 1e-9)  # rad become comparable to m
        J = np.concatenate([J[:, :3] * length, J[:, 3:]], axis=1)
        sizes = np.linalg.svd(J, compute_uv=False)
        ratios = sizes[:, -1] / sizes[:, 0]
        motions.figures[f"tip '{names[0]}'"] = (
            f"smallest by largest singular value of J: median {np.median(ratios):.2g},"
            f" smallest {ratios.min():.2g}"
        )
        if len(columns) <= 6 and ratios.max() < RANK:
            null = np.linalg.svd(J[0])[2][-1]
            padded = np.zeros(model.nv)
            padded[columns] = null
            what = f"motions of {_largest(model, padded)} cancel"
            yield Met("idle-motion", f"tip '{names[0]}'", what)


def _columns(model: Model, body: int) -> list[int]:
    """Return the indices of the velocity coordinates that move a body, ascending."""
    columns: set[int] = set()
    while body:
        part = model.v_slices[model.leader[body].body]
        columns |= set(range(part.start, part.stop))
        body = model.parent[body]
    return sorted(columns)


def _loops(motions: SampledMotions) -> Iterator[Met]:
    """Yield findings about loops: open at zero, never closed, or dependent rows.

    Adds rows, rank and mobility to motions.figures, and a note if the gap at zero
    cannot be computed.
    """
    model = motions.model
    if not model.loops:
        return
    q = model.neutral()
    try:
        gap = loop_report(model, q).gap
    except DynError as error:
        gap = float("inf")
        motions.notes.append(f"loops at zero: {error}")
    try:
        closed = loop_report(model, close_loops(model, q, tries=TRIES))
    except DynError as error:
        yield Met("open-loop", "", f"gap {gap:.3g} at zero; {error}")
        return
    motions.figures["loops"] = (
        f"{len(closed.rows)} rows, rank {closed.rank}, mobility {closed.mobility}"
    )
    if gap > OPEN:
        yield Met("loop-gap", "", f"gap {gap:.3g} (m or rad) at model.neutral()")
    for group in closed.dependent:
        yield Met("dependent-rows", "", "; ".join(group))
