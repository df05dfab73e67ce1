"""Waypoints and results of the demo, the same with and without ROS."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import dyn_core as dyn

# p [1/s²] and d [1/s]: critically damped, with 20 rad/s.
GAINS = (400.0, 40.0)


@dataclass
class Outcome:
    """Recorded results of a demo run.

    `t` (samples,) [s]; `q`, `q_ref` (samples, n) [rad | m]. `facts` are lines to print,
    by title: rates, latency, solvers. `followed`: whether each motion reached its end.
    """

    names: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    q_ref: np.ndarray
    facts: dict[str, str] = field(default_factory=dict)
    followed: bool = True

    def errors(self) -> np.ndarray:
        """Return the largest tracking error by joint, (n,) [rad | m].

        NaN samples are ignored; the error is NaN for a joint without other samples.
        """
        return np.nanmax(np.abs(self.q - self.q_ref), axis=0)


@dataclass(frozen=True)
class Waypoints:
    """Start and waypoints of a motion, with zero velocity at each.

    `start` (nv,) and `positions` (waypoints, nv) [rad | m]; `times` (waypoints,) [s].
    """

    start: np.ndarray
    times: np.ndarray
    positions: np.ndarray


def range_near_zero(model: dyn.Model, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges of the joints cut to [-most, most], (nv,) each [rad | m].

    A range beyond it is not cut; a missing limit of it is taken 2 from the other one.
    """
    low, high = np.maximum(model.lower, -most), np.minimum(model.upper, most)
    bad = high < low
    lower, upper = model.lower[bad], model.upper[bad]
    low[bad] = np.where(np.isinf(lower), upper - 2.0, lower)
    high[bad] = np.where(np.isinf(upper), lower + 2.0, upper)
    return low, high


def plan_waypoints(model: dyn.Model, duration: float) -> Waypoints:
    """Return a motion of all joints, or of the active ones of a robot with loops.

    It has three waypoints at 30 %, 70 % and 100 % of the duration [s]; the last is the
    start. All joints keep to their limits of position, and all but passive joints to
    those of velocity. InfeasibleError: loops cannot be closed within the limits.
    """
    low, high = range_near_zero(model, 1.5)
    middle, span = (low + high) / 2, np.minimum((high - low) / 4, 0.4)
    sign = np.where(np.arange(model.nv) % 2, -1.0, 1.0)
    times = np.array([0.3, 0.7, 1.0]) * duration
    # A quintic from rest to rest is at most 15/8 times as fast as its mean.
    span = np.minimum(span, model.velocity_limit * 0.4 * duration / 2 / (15 / 8))
    if model.loops:
        return _closed_plan(model, middle, span, times)
    rows = np.array([middle + sign * span, middle - sign * span, middle])
    return Waypoints(middle, times, rows)


def _closed_plan(
    model: dyn.Model, middle: np.ndarray, span: np.ndarray, times: np.ndarray
) -> Waypoints:
    """Return a motion of the active joints whose waypoints close the loops.

    Start and waypoints have the positions of all joints. Until a motion is within the
    limits, `span`, the amplitude of each joint, (nv,) [rad | m], is reduced, then
    `middle` replaced by random positions, the same in each call.
    """
    active, rng = model.active_joints, np.random.default_rng(0)
    motors = [model.v_slice(name).start for name in active]
    moved = np.where(np.isin(np.arange(model.nv), motors), span, 0.0)
    for start in (middle, *(model.random(rng) for _ in range(20))):
        for shrink in (1.0, 0.5, 0.25, 0.1):
            try:
                q = dyn.close_loops(model, start)
                rows = [
                    dyn.close_loops(model, q + sign * shrink * moved, fixed=active)
                    for sign in (1.0, -1.0, 0.0)
                ]
            except dyn.InfeasibleError:
                continue
            if np.all((model.lower <= rows) & (rows <= model.upper)):
                return Waypoints(q, times, np.array(rows))
    raise dyn.InfeasibleError("no motion closes the loops within limits of all joints")
