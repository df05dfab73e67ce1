"""Zero-phase filtering of measured motion, and accelerations by differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.errors import IdentificationError
from dyn_core.recordings.signals import checked_cutoff, interpolated, low_pass

HIGHEST = 10.0  # default cut-off frequency [Hz]
SHARE = 0.2  # highest default cut-off frequency, fraction of the sampling rate
_MOVED = ("q", "qd", "qdd", "slope")  # signals of the motion, without forces
SIGNALS = ("t", "q", "qd", "qdd", "tau", "unfiltered", "slope")
GAP = 5.0  # number of periods without a sample that divide a recording
TRIM = 2.0  # duration removed at the ends of each part, by 1 / cutoff: transients


@dataclass(frozen=True, eq=False)
class SmoothMotion:
    """A filtered motion on an even time grid, one row a sample.

    Attributes:
        tau: Joint forces, filtered alike, (samples, nv) [N·m | N].
        unfiltered: Joint forces as measured, interpolated on the grid [N·m | N].
        slope: Derivative of the filtered position, which qd should equal [rad/s | m/s].
        rate, cutoff: Sampling rate, and cut-off frequency of the filter [Hz].
        dropped: Number of samples not finite, or not later than the previous one.
        parts: Rows at which a new part begins after a gap.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    unfiltered: np.ndarray
    slope: np.ndarray
    rate: float
    cutoff: float
    dropped: int
    parts: tuple[int, ...]

    @property
    def tau_rate(self) -> np.ndarray:
        """Time derivative (`rate_of`) of the filtered joint forces [N·m/s | N/s]."""
        return self.rate_of(self.tau)

    def rate_of(self, x: np.ndarray) -> np.ndarray:
        """Return the time derivative of signals x on the same grid, (samples, n).

        Within each part these are central differences of order four, of lower order in
        the first and last two rows; a part of one row is a ValueError.
        """
        pieces = np.split(x, list(self.parts))
        return np.concatenate([_derivative(y, self.rate) for y in pieces])

    def earlier(self, seconds: float) -> SmoothMotion:
        """Return the motion at t - seconds together with times and joint forces at t.

        The motion is interpolated by cubic splines; samples whose motion lies outside
        of their part are left out. `seconds` are negative if the joint forces lead.
        """
        from scipy.interpolate import CubicSpline  # not at `import dyn_core`

        if seconds == 0.0:
            return self
        pieces, starts, total = [], [], 0
        for rows in np.split(np.arange(len(self.t)), list(self.parts)):
            t = self.t[rows]
            inside = (t - seconds >= t[0]) & (t - seconds <= t[-1])
            if not inside.any():
                continue
            curves = np.hstack([getattr(self, x)[rows] for x in _MOVED])
            moved = CubicSpline(t, curves)(t[inside] - seconds)
            signals = {x: getattr(self, x)[rows][inside] for x in SIGNALS}
            signals |= dict(
                zip(_MOVED, np.split(moved, len(_MOVED), axis=1), strict=True)
            )
            pieces.append(signals)
            starts.append(total)
            total += len(signals["t"])
        if not pieces:
            raise IdentificationError(
                f"no part of the recording is longer than a delay of {seconds:.3g} s"
            )
        changes: dict[str, Any] = {
            x: np.concatenate([piece[x] for piece in pieces]) for x in SIGNALS
        }
        return replace(self, **changes, parts=tuple(starts[1:]))

    def filtered(self, x: np.ndarray) -> np.ndarray:
        """Return signals x, (samples, n), through the same filter, part by part."""
        pieces = np.split(x, list(self.parts))
        return np.concatenate([low_pass(y, self.rate, self.cutoff) for y in pieces])


def smooth_motion(
    t: np.ndarray,
    q: np.ndarray,
    qd: np.ndarray | None,
    tau: np.ndarray,
    cutoff: float | None = None,
) -> SmoothMotion:
    """Return a measured motion, filtered with zero phase, with accelerations.

    All signals pass the same Butterworth filter, forward and backward, so that all are
    changed alike; derivatives are central differences of order four. Without qd
    velocities are derivatives of q. Times may be uneven; the result is on an even grid
    of their median period. The recording is processed in parts between its gaps, which
    are pauses over 5 periods: 2 / cutoff seconds are removed at both ends of each part,
    and parts that are too short are left out. `cutoff` None is 10 Hz, or 0.2 times the
    sampling rate if that is less.

    Source: M. Gautier, Dynamic identification of robots with power model, ICRA 1997
    (filters of equal phase and accelerations by central differences).
    """
    columns = [q, tau] if qd is None else [q, tau, qd]
    good = _good_rows(t, columns)
    times, rows = t[good], np.hstack(columns)[good]
    if len(times) < 2:
        raise IdentificationError(
            f"{len(times)} of {len(t)} samples are finite and in order of time; two are"
            " too few already"
        )
    period = float(np.median(np.diff(times)))
    rate = 1.0 / period
    wanted = min(HIGHEST, SHARE * rate) if cutoff is None else cutoff
    frequency = checked_cutoff(wanted, rate)
    parts = []
    for part in np.split(np.arange(len(times)), _gaps(times, period)):
        even = np.arange(times[part[0]], times[part[-1]] + 0.5 * period, period)
        cut = int(np.ceil(TRIM * rate / frequency)) + 2
        if len(even) > 2 * cut + 10:
            signals = interpolated(times[part], rows[part], even)
            smooth = _smoothed(even, signals, q.shape[1], rate, frequency)
            parts.append([array[cut:-cut] for array in smooth])
    if not parts:
        least = 2 * TRIM / frequency + 14 * period
        raise IdentificationError(
            f"{len(times)} samples in {times[-1] - times[0]:.3g} s have no part without"
            f" a gap of {least:.3g} s, which a filter of {frequency:g} Hz needs"
        )
    whole = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    dropped = len(t) - len(times)
    starts = np.cumsum([len(part[0]) for part in parts])[:-1].tolist()
    signals_of: dict[str, Any] = dict(zip(SIGNALS, whole, strict=True))
    return SmoothMotion(
        **signals_of, rate=rate, cutoff=frequency, dropped=dropped, parts=tuple(starts)
    )


def _good_rows(t: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    """Return which samples (bool) are finite and later than all finite ones before."""
    good = np.isfinite(t)
    for array in columns:
        good = good & np.isfinite(array).all(axis=1)
    latest = np.maximum.accumulate(np.where(good, t, -np.inf))
    good[1:] &= t[1:] > latest[:-1]
    return good


def _gaps(t: np.ndarray, period: float) -> np.ndarray:
    """Return the first row after each pause over 5 periods (GAP); t are increasing."""
    return np.flatnonzero(np.diff(t) > GAP * period) + 1


def _smoothed(
    t: np.ndarray, signals: np.ndarray, n: int, rate: float, cutoff: float
) -> list[np.ndarray]:
    """Return filtered signals of one part at even times t, in the order of SIGNALS.

    `signals` has q, tau and optionally qd side by side, (samples, 2 n or 3 n).
    """
    filtered = low_pass(signals, rate, cutoff)
    q, tau = filtered[:, :n], filtered[:, n : 2 * n]
    slope = _derivative(q, rate)
    qd = filtered[:, 2 * n :] if filtered.shape[1] > 2 * n else slope
    unfiltered = signals[:, n : 2 * n]
    return [t, q, qd, _derivative(qd, rate), tau, unfiltered, slope]


def _derivative(x: np.ndarray, rate: float) -> np.ndarray:
    """Return the derivative of the rows by central differences of order four.

    The first and last rows are of order one, the rows next to them of order two.
    """
    slope = np.gradient(x, axis=0) * rate
    slope[2:-2] = (x[:-4] - 8 * x[1:-3] + 8 * x[3:-1] - x[4:]) * (rate / 12)
    return slope
