"""Times from a joint state to the effort that answers it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RECENT = 2000  # latest times, counted beside all
LONGEST = 5_000  # microseconds with a count each; longer ones count as this long


class RoundTrips:
    """Keeps the last times, and counts all by whole microseconds.

    Attributes:
        recent: The last ones, in any order [s].
        count: Number of times.
        counts: Number of times by microseconds.
        longest: The longest [s].
    """

    def __init__(self) -> None:
        self.recent = np.full(RECENT, np.nan)
        self.count = 0
        self.counts = np.zeros(LONGEST + 1, int)
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Take a time [s]."""
        self.recent[self.count % RECENT] = seconds
        self.count += 1
        self.counts[min(int(seconds * 1e6), LONGEST)] += 1
        self.longest = max(self.longest, seconds)

    def percentile(self, p: float) -> float:
        """Return a percentile of all times, to the microsecond [s]; NaN of none."""
        return float(self._percentiles([p])[0]) * 1e-6

    def _percentiles(self, p: Sequence[float]) -> np.ndarray:
        """Return percentiles of all times [us]."""
        sums = np.cumsum(self.counts)
        if not sums[-1]:
            return np.full(len(p), np.nan)
        return np.searchsorted(sums, np.array(p) / 100 * sums[-1]).astype(float)

    def values(self) -> dict[str, str]:
        """Return the lines of /diagnostics: of the last times, and of all."""
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
