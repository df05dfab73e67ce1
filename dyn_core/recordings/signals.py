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
    """Return columns at other times, linear between and constant beyond the rows.

    Args:
        t: Times of the rows, increasing, at least one, (rows,) [s].
        columns: Columns, (rows, n), n at least 1.
        samples: Wanted times, (samples,) [s].

    Returns:
        Columns, (samples, n).
    """
    return np.column_stack([np.interp(samples, t, column) for column in columns.T])


def without_turns(model: Model, name: str, column: np.ndarray) -> np.ndarray:
    """Return positions of a joint, (rows,), without full turns if it is continuous.

    Differences between consecutive finite positions become at most half a turn; numbers
    that are not finite stay. The column of any other joint is returned itself.

    Args:
        model: Robot.
        name: Name of the joint.
        column: Positions, (rows,) [rad | m]; not changed.

    Raises:
        ModelError: The robot has no such joint.
    """
    if model.joint_kind(name) != "continuous":
        return column
    whole, good = column.copy(), np.isfinite(column)
    whole[good] = np.unwrap(column[good])
    return whole


def checked_cutoff(cutoff: float, rate: float) -> float:
    """Check the cut-off frequency of a low-pass filter and return it as a float [Hz].

    Args:
        cutoff: Cut-off frequency [Hz].
        rate: Sampling rate [Hz].

    Raises:
        SettingError: The cut-off frequency is not a number above 0 and at most 0.4
            (NYQUIST) times the sampling rate.
    """
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

    The filter is a Butterworth filter of order 4 (ORDER); a NaN makes its whole column
    NaN.

    Args:
        x: Signals on an even grid, (samples, n), at least one sample.
        rate: Sampling rate [Hz].
        cutoff: Cut-off frequency, above 0 and below half the sampling rate [Hz].
    """
    from scipy.signal import butter, sosfiltfilt  # not at `import dyn_core`

    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    # Three periods of the cut-off frequency, for the filter's transient.
    padding = min(len(x) - 1, int(3 * rate / cutoff) + 10)
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=padding))
