"""Warnings of the simulator node, and log messages when they begin or end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dyn_core.simulation.pacing import Pace

Log = Callable[[str], None]


def pace_warnings(pace: Pace, slowest: float, share: float) -> dict[str, str]:
    """Return the warnings on a simulation's pace: a sentence by kind; may be empty.

    Args:
        pace: The pace.
        slowest: Real-time factor below which there is a warning; an unknown factor
            gives none.
        share: Share of missed cycles, 0 to 1, above which there is a warning.
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
    """Return counts of cycles and the real-time factor by name, for /diagnostics."""
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
        """Log the warnings that have begun or ended since the last call.

        A warning has ended if its kind is missing here. At the first call, all warnings
        begin.

        Args:
            warnings: Sentences by kind; only kinds are compared, since numbers in a
                sentence may change.
        """
        for kind, sentence in warnings.items():
            if kind not in self._present:
                self._warn(sentence)
        for kind in sorted(self._present - warnings.keys()):
            self._tell(f"over: {kind}")
        self._present = frozenset(warnings)
