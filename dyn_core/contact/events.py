"""Stepping from event to event: gaps close at their own time, impacts have none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.contact.assembly import Assembly, Scene
from dyn_core.contact.holding import Held, Holder
from dyn_core.contact.moving import advanced, moved
from dyn_core.contact.reports import report
from dyn_core.contact.steppers import STEPPERS, Push, Step

CLOSED = 1e-8  # gap below which a contact is closed [m | rad]
DRIFT = 1e-4  # gap up to which a contact that carried stays closed [m | rad]
DRIFTING = 1e-3  # most speed of such a contact [m/s]
RESTING = 1e-6  # speed of opening below which a closed contact stays [m/s]
ON_TIME = 1e-12  # of a root in time, relative to the step
ROOTS = 60  # most steps to a root


def event_driven(
    assembly: Assembly, holder: Holder, t: float, q: Any, qd: Any, push: Push, h: float
) -> Step:
    """Give a step that stops at each impact.

        gap(t*) = 0:  sigma_n+ = -e sigma_n-,   H (qd+ - qd) = J.T Lambda

    Without closed contacts the motion between events is a step of RK4; with closed
    ones a midpoint step that holds them. After World.max_impacts events in one step
    nothing bounces in it any more (counter `zeno`), after twice as many what is left of
    it is one midpoint step with all contacts: the Zeno guard.

    Args:
        assembly: Robot and world.
        holder: Solver.
        t: When the step begins [s].
        q, qd: State, (nq,), (nv,).
        push: What acts on the robot.
        h: Step [s].

    Source: LCP-17.
    """
    left, events, reports = h, 0, []
    model, most = assembly.model, assembly.world.max_impacts
    held: Held | None = None
    while left > 1e-12 * h or held is None:
        scene = assembly.at(q, qd, 0.0, push.f_ext, push.speeds(model, qd, 0.0))
        if _approaching(scene):
            held = _impact(scene, holder, events < most)
            qd = held.velocity
            reports.append(report(held.scene, held.solution, held.impulse, qd, t, 0.0))
        kept = _closed(scene, qd, holder)
        go = _motion(assembly, holder, q, qd, push, kept)
        if events < 2 * most:
            ends = _gaps(scene, kept)
            used, q, qd, held = _until(assembly, go, ends, left, h)
        else:
            everything = {c.id for c in scene.constraints}
            go = _motion(assembly, holder, q, qd, push, everything)
            used, (q, qd, held) = left, go(left)
        events += 1
        holder.counters.update(["zeno"] * (events == most))
        reports.append(
            report(held.scene, held.solution, held.impulse, held.velocity, t, used)
        )
        t, left = t + used, left - used
    holder.keep(scene)
    return Step(q, qd, tuple(reports), held)


Motion = Callable[[float], tuple[np.ndarray, np.ndarray, Held]]


def _until(
    assembly: Assembly,
    go: Motion,
    ends: Mapping[Hashable, float],
    left: float,
    h: float,
) -> tuple[float, np.ndarray, np.ndarray, Held]:
    """Move until a gap closes, or to the end: time used, state, what held it.

    Args:
        assembly: Robot and world.
        go: State after a time.
        ends: By contact: gap at which it closes, if not zero.
        left, h: Time that is left, and the step [s].
    """
    best = go(left)
    below = _least_gap(assembly, best[0], ends)
    if below >= -CLOSED / 10:
        return left, *best
    low, high, x = 0.0, left, left
    above, side = CLOSED, 0  # what has just left is open right after
    for _ in range(ROOTS):
        x = high - below * (high - low) / (below - above)
        if not low < x < high or abs(side) > 3:
            x, side = (low + high) / 2, 0
        best = go(x)
        gap = _least_gap(assembly, best[0], ends)
        if abs(gap) <= CLOSED / 100 or high - low <= ON_TIME * h:
            break
        if gap < 0:
            above = above / 2 if side < 0 else above
            high, below, side = x, gap, min(side, 0) - 1
        else:
            below = below / 2 if side > 0 else below
            low, above, side = x, gap, max(side, 0) + 1
    return x, *best


def _gaps(scene: Scene, kept: set[Hashable]) -> dict[Hashable, float]:
    """Give the gaps at which contacts close: their own of overlaps, endless of kept."""
    ends = {c.id: min(float(c.gap), 0.0) for c in scene.constraints if c.closing}
    return {**ends, **dict.fromkeys(kept, -np.inf)}


def _least_gap(
    assembly: Assembly, q: np.ndarray, ends: Mapping[Hashable, float]
) -> float:
    """Give the least gap of contacts and limits over where they close."""
    scene = assembly.at(q, np.zeros(assembly.model.nv))
    gaps = [float(c.gap) - ends.get(c.id, 0.0) for c in scene.constraints if c.closing]
    return min(gaps, default=np.inf)


def _motion(
    assembly: Assembly,
    holder: Holder,
    q: np.ndarray,
    qd: np.ndarray,
    push: Push,
    kept: set[Hashable],
) -> Motion:
    """Give the motion from a state with some contacts kept closed, by its time."""
    model = assembly.model

    def acceleration(at: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, Scene]:
        scene = assembly.at(at, v, 0.0, push.f_ext)
        scene = scene.only([False] * len(scene.constraints))
        return scene.inverse @ (push.tau - scene.C), scene

    def free(h: float) -> tuple[np.ndarray, np.ndarray, Held]:
        k, scene = acceleration(q, qd)
        v, a = [qd], [k]
        for part in (h / 2, h / 2, h):
            dv, speed = part * v[-1], qd + part * a[-1]
            k, _ = acceleration(moved(model, q, dv), speed)
            v.append(model.tangent_rate(dv, speed))
            a.append(k)
        weights = np.array([1, 2, 2, 1]) / 6
        there, after = h * (weights @ np.array(v)), qd + h * (weights @ np.array(a))
        solution = holder.solve(scene.problem(after, h))
        return moved(model, q, there), after, Held(scene, solution, after, np.zeros(0))

    def constrained(h: float) -> tuple[np.ndarray, np.ndarray, Held]:
        middle, v = advanced(model, q, qd, h / 2)
        scene = assembly.at(middle, v, h, push.f_ext, push.speeds(model, v, h))
        scene = scene.only(lambda c: c.id in kept or not c.closing)
        held = holder.hold(scene, scene.free(push.tau, h), h, "stewart_trinkle", False)
        return *advanced(model, middle, held.velocity, h / 2), held

    start = assembly.at(q, qd, 0.0, push.f_ext, push.speeds(model, qd, 0.0))
    smooth = not kept and all(c.closing for c in start.constraints)
    return free if smooth else constrained


def _impact(scene: Scene, holder: Holder, bouncing: bool) -> Held:
    """Give the velocities after an impact of what is closed; forces have no time."""
    part = scene.only(lambda c: not c.closing or c.gap <= CLOSED)
    part = _with_gaps(part, [0.0 for _ in part.constraints])
    return holder.hold(part, scene.qd, 1e-12, "anitescu_potra", bouncing)


def _with_gaps(scene: Scene, gaps: list[Any]) -> Scene:
    """Give the same with other gaps."""
    pairs = zip(scene.constraints, gaps, strict=True)
    return replace(scene, constraints=tuple(replace(c, gap=g) for c, g in pairs))


def _approaching(scene: Scene) -> bool:
    """Say whether a closed contact closes further."""
    sigma = scene.J @ scene.qd
    return any(
        c.closing and c.gap <= CLOSED and sigma[k] < -RESTING
        for k, c in zip(scene.first, scene.constraints, strict=True)
    )


def _closed(scene: Scene, qd: np.ndarray, holder: Holder) -> set[Hashable]:
    """Give the contacts that stay closed: they do not open, and touch or carried."""
    kept = set()
    for c in scene.constraints:
        carried = float(holder.earlier.get(c.id, (0.0,))[0]) > 0
        speed = float(c.J[0] @ qd)
        drifts = carried and c.closing and c.gap <= DRIFT and abs(speed) <= DRIFTING
        if drifts or (c.closing and c.gap <= CLOSED and speed <= RESTING):
            kept.add(c.id)
    return kept


STEPPERS["event_driven"] = event_driven
