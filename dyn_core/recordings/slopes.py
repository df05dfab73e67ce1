"""Velocities and accelerations estimated from recorded positions, without delay.

They are derivatives of the quintic spline through the samples, which is symmetric in
time, evaluated at the times of the samples, which may be uneven. The estimate is exact
for polynomials of degree five, and amplifies noise. With a cut-off frequency the
samples are first filtered forward and backward by a Butterworth low-pass filter of
order four, on an even grid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.signals import checked_cutoff, low_pass, without_turns

DEGREE = 5  # degree of the splines


def with_slopes(
    model: Model, record: MotionRecord, cutoff: float | None = None
) -> MotionRecord:
    """Return a motion with velocities and accelerations; given ones are unchanged.

    Accelerations are derivatives of given velocities, else second derivatives of the
    positions. Positions of continuous joints may jump by full turns. Estimation adds a
    note to the result; a note on velocities names accelerations, too, even if they were
    given. A motion with both is returned itself.

    Args:
        model: Robot whose coordinates the motion has, in its order.
        record: Motion with finite positions; not changed.
        cutoff: Cut-off frequency of the low-pass filter [Hz]; None: no filter.

    Raises:
        SettingError: There are fewer than six rows, times do not increase, a joint
            whose
            velocity is needed has several coordinates, or the cut-off frequency is out
            of range or, for a motion with both, has no effect.
        NonFiniteError: A time, velocity or acceleration is not finite; says the row.
    """
    known = [x for x in ("qd", "qdd") if getattr(record, x) is not None]
    record.checked(known)
    if record.qdd is not None and record.qd is not None:
        if cutoff is not None:
            raise SettingError(
                "cutoff changes nothing: the motion has velocities and accelerations",
                "cutoff",
            )
        return record
    if len(record.t) <= DEGREE:
        raise SettingError(
            f"{len(record.t)} rows are too few to estimate"
            f" {'accelerations' if record.qd is not None else 'velocities'}; valid:"
            f" {DEGREE + 1} or more",
            "t",
        )
    how = "no filter" if cutoff is None else f"filtered at {cutoff:g} Hz"
    method = f"derivatives of a spline of degree {DEGREE}, {how}, no shift in time"
    if record.qd is not None:
        qdd = _slope(record.t, record.qd, cutoff, 1)
        notes = (*record.notes, f"accelerations are estimated: {method}")
        return replace(record, qdd=qdd, notes=notes)
    q = _unwrapped(model, record.q)
    qd, qdd = (_slope(record.t, q, cutoff, order) for order in (1, 2))
    notes = (*record.notes, f"velocities and accelerations are estimated: {method}")
    return replace(
        record, qd=qd, qdd=qdd if record.qdd is None else record.qdd, notes=notes
    )


def _unwrapped(model: Model, q: np.ndarray) -> np.ndarray:
    """Return positions with one column for each velocity, (rows, nv).

    Jumps of continuous joints by full turns are removed.

    Args:
        model: Robot.
        q: Positions, (rows, nq).

    Raises:
        SettingError: A joint has several coordinates.
    """
    columns = np.empty((len(q), model.nv))
    for name in model.joint_names:
        place, v = model.q_slice(name), model.v_slice(name)
        if place.stop - place.start != v.stop - v.start or v.stop - v.start != 1:
            raise SettingError(
                f"velocities of joint '{name}', which is {model.joint_kind(name)}, are"
                " not estimated from positions; valid: a motion with columns qd",
                name,
            )
        columns[:, v.start] = without_turns(model, name, q[:, place][:, 0])
    return columns


def _slope(
    t: np.ndarray, x: np.ndarray, cutoff: float | None, order: int
) -> np.ndarray:
    """Return the first or second derivative of the columns at times t, (rows, n).

    It is the derivative of a spline through the rows, or through the filtered rows.

    Args:
        t: Times, increasing, at least six, (rows,) [s].
        x: Columns, (rows, n).
        cutoff: Cut-off frequency of the low-pass filter that is applied to x before
            [Hz]; None: no filter.
        order: Order of the derivative, 1 or 2.

    Raises:
        SettingError: The cut-off frequency is out of range.
    """
    from scipy.interpolate import make_interp_spline  # not at `import dyn_core`

    spline = make_interp_spline(t, x, k=DEGREE, axis=0)
    if cutoff is not None:
        rate = (len(t) - 1) / (t[-1] - t[0])
        even = np.linspace(t[0], t[-1], len(t))
        y = low_pass(spline(even), rate, checked_cutoff(cutoff, rate))
        spline = make_interp_spline(even, y, k=DEGREE, axis=0)
    return np.asarray(spline(t, nu=order))
