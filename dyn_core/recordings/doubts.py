"""Doubts about a motion: times in ms, velocities that are not slopes of positions.

Each is a sentence for a note or a warning; nothing is refused or changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dyn_core.errors import DynError
from dyn_core.model import Model
from dyn_core.model.description import FRICTION_SPEED
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.signals import without_turns
from dyn_core.recordings.smoothing import SHARE, smooth_motion

STILL = 10 * FRICTION_SPEED  # speed below which a joint does not move [rad/s | m/s]
INCONSISTENT = 0.2  # allowed relative difference of velocity and position's slope
APART = 0.5  # median step from which times may be in another unit [s]
SLOW = 0.02  # speed below which such times are doubtful, of slopes [rad/s | m/s]
AGREE = 100.0  # ratio of recorded velocities to slopes that speaks for such times
WAY = 0.01  # way that a joint has gone, where its speed is doubtful [rad | m]


def doubtful_times(model: Model, record: MotionRecord) -> str:
    """Return "is t in ms? ..." of a motion that is very slow and sparsely sampled.

    That is: the median step is APART or more, some joint of one coordinate changes by
    more than WAY, and none is faster than SLOW, rms, while recorded velocities, if any,
    are AGREE times larger. The unit is ms, µs or ns by the step. Otherwise it is "".
    """
    _, q, qd = _columns(model, record)
    good = np.isfinite(record.t) & np.isfinite(q).all(axis=1)
    t, q = record.t[good], q[good]
    steps = np.diff(t)
    if not len(steps) or not q.shape[1] or steps.min() <= 0:
        return ""
    step = float(np.median(steps))
    if step < APART or np.ptp(q, axis=0).max() < WAY:
        return ""
    speeds = np.diff(q, axis=0) / steps[:, None]
    fastest = float(np.sqrt((speeds * speeds).mean(axis=0)).max())
    if fastest >= SLOW:
        return ""
    if qd is not None and np.sqrt(np.nanmean(qd[good] ** 2)) < AGREE * fastest:
        return ""
    unit = "ms" if step < 1e3 * APART else "µs" if step < 1e6 * APART else "ns"
    return (
        f"is t in {unit}? rows are {step:.4g} s apart, and no joint is faster than"
        f" {fastest:.2g} rad/s (m/s), rms; valid: seconds"
    )


def doubtful_velocities(model: Model, record: MotionRecord) -> list[str]:
    """Return the sentences of `unlike_slopes` of a motion's own velocities.

    Both are filtered as smooth_motion does by default, in a shorter motion as little as
    it can. There are none without velocities, of joints with several coordinates, of
    rows at rest that are APART s apart or more, or where too few rows are finite.
    """
    names, q, qd = _columns(model, record)
    if qd is None or not names or len(record.t) < 2:
        return []
    step = float(np.median(np.diff(record.t)))
    if step >= APART and not qd.any():
        return []  # poses at rest, one after the other
    for cutoff in (None, SHARE / step if step > 0 else None):
        try:
            motion = smooth_motion(record.t, q, qd, np.zeros_like(q), cutoff)
        except DynError:
            continue  # too short for this filter
        return unlike_slopes(names, motion.qd, motion.slope)
    return []


def unlike_slopes(names: Sequence[str], qd: np.ndarray, slope: np.ndarray) -> list[str]:
    """Return a sentence for each joint whose velocity is not its position's slope.

    The rms of the difference is above INCONSISTENT times that of the slope, or of STILL
    if that is more. Both are (rows, n) [rad/s | m/s], filtered alike.
    """
    speed, off = (np.sqrt((x * x).mean(axis=0)) for x in (slope, qd - slope))
    return [
        f"the velocity of '{name}' is not the slope of its position: they differ by"
        f" {e:.3g}, rms"
        for name, v, e in zip(names, speed, off, strict=True)
        if e > INCONSISTENT * max(v, STILL)
    ]


def _columns(
    model: Model, record: MotionRecord
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Return names, positions without full turns and velocities of simple joints.

    These have one coordinate each; the arrays are (rows, n), that of velocities None
    where the motion has none.
    """
    names, q, rates = [], [], []
    for name in model.joint_names:
        place, v = model.q_slice(name), model.v_slice(name)
        if place.stop - place.start == v.stop - v.start == 1:
            names.append(name)
            q.append(without_turns(model, name, record.q[:, place.start]))
            rates.append(v.start)
    rows = len(record.t)
    positions = np.column_stack(q) if q else np.empty((rows, 0))
    return names, positions, None if record.qd is None else record.qd[:, rates]
