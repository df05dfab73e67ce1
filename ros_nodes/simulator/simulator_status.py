"""Warnings of the simulator node and their log, and its times of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.simulation.pacing import Pace

Log = Callable[[str], None]
RECENT = 2000  # number of last times that are stored
LONGEST = 5_000  # size of the histogram [us]; longer times count as this


def pace_warnings(pace: Pace, slowest: float, share: float) -> dict[str, str]:
    """Return the warnings on a simulation's pace: a sentence by kind; may be empty.

    `slowest` is a real-time factor, `share` that of missed cycles, 0 to 1.
    """
    warnings, factor = {}, pace.real_time_factor
    if factor is not None and factor < slowest:
        warnings["lag of simulated time"] = (
            f"simulated time lags: real-time factor {factor:.2f}"
        )
    if pace.missed_share > share:
        warnings["missed cycles"] = f"{pace.missed_share:.0%} of the cycles are missed"
    return warnings


def pace_values(pace: Pace) -> dict[str, Any]:
    """Return the real-time factor and counts of cycles by name, for /diagnostics."""
    factor = pace.real_time_factor
    return {
        "real-time factor": "unknown" if factor is None else f"{factor:.3f}",
        "cycles": pace.cycles,
        "missed cycles": pace.missed,
        "lost periods": pace.lost,
    }


class Notices:
    """Logs a line when a warning begins, and one when it ends."""

    def __init__(self, warn: Log, tell: Log) -> None:
        """Create without warnings.

        Args:
            warn: Logs the sentence of a warning that begins.
            tell: Logs the end of a warning.
        """
        self._warn, self._tell = warn, tell
        self._present: frozenset[str] = frozenset()

    def update(self, warnings: Mapping[str, str]) -> None:
        """Log the warnings, sentences by kind, that have begun or ended.

        Only kinds are compared with the last call: numbers in a sentence may change.
        """
        for kind, sentence in warnings.items():
            if kind not in self._present:
                self._warn(sentence)
        for kind in sorted(self._present - warnings.keys()):
            self._tell(f"over: {kind}")
        self._present = frozenset(warnings)


class RoundTrips:
    """Stores the last round-trip times, and a histogram of all in whole microseconds.

    Attributes:
        recent: Ring buffer of the last RECENT times [s]; NaN where still empty.
        count: Number of all times.
        counts: Number of times by whole microseconds, rounded down; the last entry,
            LONGEST, includes longer ones.
        longest: The longest time [s]; 0 without times.
    """

    def __init__(self) -> None:
        self.recent = np.full(RECENT, np.nan)
        self.count = 0
        self.counts = np.zeros(LONGEST + 1, int)
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Add a round-trip time [s]."""
        self.recent[self.count % RECENT] = seconds
        self.count += 1
        self.counts[min(int(seconds * 1e6), LONGEST)] += 1
        self.longest = max(self.longest, seconds)

    def percentile(self, p: float) -> float:
        """Return a percentile of all times [s], p in %; NaN without times.

        Times are rounded down to whole microseconds, and cut at LONGEST (5 ms).
        """
        return float(self._percentiles([p])[0]) * 1e-6

    def _percentiles(self, p: Sequence[float]) -> np.ndarray:
        """Return percentiles `p`, in (0, 100], of all times [us]; NaN without times."""
        sums = np.cumsum(self.counts)
        if not sums[-1]:
            return np.full(len(p), np.nan)
        return np.searchsorted(sums, np.array(p) / 100 * sums[-1]).astype(float)

    def values(self) -> dict[str, str]:
        """Return percentiles of the last and of all times by name, for /diagnostics."""
        recent = np.sort(self.recent[: max(self.count, 1)])
        last = [1e6 * recent[-(-p * len(recent) // 100) - 1] for p in (50, 99)]
        every = self._percentiles([50, 99, 99.9])
        return {
            "round trip p50 [us]": f"{last[0]:.0f}",
            "round trip p99 [us]": f"{last[1]:.0f}",
            "all round trips p50, p99, p99.9 [us]": ", ".join(
                f"{x:.0f}" for x in every
            ),
            "longest round trip [us]": f"{self.longest * 1e6:.0f}",
        }
