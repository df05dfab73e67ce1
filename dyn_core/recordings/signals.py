"""Columns over time: interpolated, without full turns, through a low-pass filter."""

from __future__ import annotations

from numbers import Real

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.validation import is_finite

ORDER = 4  # order of the Butterworth filter, applied forward and backward
NYQUIST = 0.4  # highest valid cut-off frequency, fraction of the sampling rate


def interpolated(t: np.ndarray, columns: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Return columns (rows, n) at other times, linear between and constant beyond.

    The times t of the rows must increase, which is not checked.
    """
    return np.column_stack([np.interp(samples, t, column) for column in columns.T])


def without_turns(model: Model, name: str, column: np.ndarray) -> np.ndarray:
    """Return positions of a joint, (rows,), without full turns if it is continuous.

    Differences between consecutive finite positions become at most half a turn. The
    column of any other joint is returned itself.
    """
    if model.joint_kind(name) != "continuous":
        return column
    whole, good = column.copy(), np.isfinite(column)
    whole[good] = np.unwrap(column[good])
    return whole


def checked_cutoff(cutoff: float, rate: float) -> float:
    """Return a filter's cut-off frequency [Hz]; refuse more than NYQUIST times rate."""
    if not isinstance(cutoff, Real) or not 0 < cutoff <= NYQUIST * rate:
        shown = f"{cutoff:g} Hz" if isinstance(cutoff, Real) else f"is {cutoff!r}"
        raise SettingError(
            f"cutoff {shown}; valid: more than 0, at most {NYQUIST * rate:.4g} Hz"
            f" with {rate:.4g} samples a second",
            "cutoff",
        )
    return float(cutoff)


def check_delay(seconds: float) -> None:
    """Raise a SettingError unless a delay [s] is a finite number."""
    if not is_finite(seconds):
        raise SettingError(f"delay {seconds!r}; valid: a number [s]", "seconds")


def low_pass(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return columns filtered forward and backward, without phase shift, (samples, n).

    It is a Butterworth filter of order ORDER; a NaN makes its whole column NaN. `rate`
    and `cutoff` (below half the rate) are in Hz.
    """
    from scipy.signal import butter, sosfiltfilt  # not at `import dyn_core`

    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    # Three periods of the cut-off frequency, for the filter's transient.
    padding = min(len(x) - 1, int(3 * rate / cutoff) + 10)
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=padding))
