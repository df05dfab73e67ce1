"""Columns over time: interpolated, without full turns, through a low-pass filter."""

from __future__ import annotations

from numbers import Real

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model

ORDER = 4  # order of the Butterworth filter, applied forward and backward
NYQUIST = 0.4  # highest valid cut-off frequency, fraction of the sampling rate


def interpolated(t: np.ndarray, columns: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Return columns at other times, linear between and constant beyond the rows.

    Args:
        t: Times of the rows, increasing, (rows,) [s].
        columns: Columns, (rows, n).
        samples: Wanted times, (samples,) [s].

    Returns:
        Columns, (samples, n).
    """
    return np.column_stack([np.interp(samples, t, column) for column in columns.T])


def without_turns(model: Model, name: str, column: np.ndarray) -> np.ndarray:
    """Return positions of a joint, (rows,), without full turns if it is continuous.

    Jumps by full turns are removed; numbers that are not finite stay.
    """
    if model.joint_kind(name) != "continuous":
        return column
    whole, good = column.copy(), np.isfinite(column)
    whole[good] = np.unwrap(column[good])
    return whole


def checked_cutoff(cutoff: float, rate: float) -> float:
    """Return the cut-off frequency of a low-pass filter [Hz].

    Raises:
        SettingError: It is not above 0, or above NYQUIST times the sampling rate.
    """
    if not isinstance(cutoff, Real) or not 0 < cutoff <= NYQUIST * rate:
        shown = f"{cutoff:g} Hz" if isinstance(cutoff, Real) else f"is {cutoff!r}"
        raise SettingError(
            f"cutoff {shown}; valid: more than 0, at most {NYQUIST * rate:.4g} Hz"
            f" with {rate:.4g} samples a second",
            "cutoff",
        )
    return float(cutoff)


def low_pass(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return columns filtered forward and backward, without phase, (samples, n).

    Args:
        x: Signals on an even grid, (samples, n).
        rate: Sampling rate [Hz].
        cutoff: Cut-off frequency [Hz].
    """
    from scipy.signal import butter, sosfiltfilt  # not at `import dyn_core`

    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    # Three periods of the cut-off frequency, for the filter's transient.
    padding = min(len(x) - 1, int(3 * rate / cutoff) + 10)
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=padding))
