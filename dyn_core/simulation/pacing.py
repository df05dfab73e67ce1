"""Pacing of a simulation: due periods of simulated time against wall time."""

from __future__ import annotations

from collections import deque

MARKS = 10  # number of measurements in a window


class Pace:
    """Counts due, missed and lost periods of a simulation against wall time.

    A cycle that comes late has missed the periods before it. They are caught up in this
    cycle and the next ones, up to `most`; periods beyond it are lost, and simulated
    time lags behind for good. `missed` counts both, `debt` what is due and not yet
    simulated, `cycles` calls of `owed`. Ratios are averaged over `window` [s].
    """

    def __init__(self, period: float, most: int, window: float = 2.0) -> None:
        """Start with all counts zero.

        Args:
            period: Period of simulated time [s].
            most: Maximum number of periods to catch up.
            window: Duration for real_time_factor and missed_share [s].
        """
        self.period, self.most, self.window = period, most, window
        self.cycles = self.missed = self.lost = self.debt = self._moved = 0
        self.restart()

    def restart(self) -> None:
        """Forget debt and measurements, as after a pause; counts remain."""
        self.debt = 0
        self._next: float | None = None
        self._marks: deque[tuple[float, int, int, int]] = deque(maxlen=MARKS + 1)

    def owed(self, now: float) -> int:
        """Count a cycle; return the number of periods due, from 1 to 1 + `most`.

        The caller simulates up to this number of periods, and calls `moved` after each;
        due periods beyond it are lost. `now` is monotonic [s].
        """
        expected = now if self._next is None else min(self._next, now)
        late = int((now - expected) / self.period)
        self._next = expected + (1 + late) * self.period
        self.cycles += 1
        self.missed += late
        self.debt += 1 + late
        lost = max(self.debt - 1 - self.most, 0)
        self.debt -= lost
        self.lost += lost
        if not self._marks or now - self._marks[-1][0] >= self.window / MARKS:
            self._marks.append((now, self._moved, self.missed, self.cycles))
        return self.debt

    def moved(self) -> None:
        """Count one simulated period: `debt` decreases by one."""
        self.debt -= 1
        self._moved += 1

    @property
    def real_time_factor(self) -> float | None:
        """Ratio of simulated to wall time in the last `window` [s]; None at first."""
        if len(self._marks) < 3:
            return None
        (t0, moved0, *_), (t1, moved1, *_) = self._marks[0], self._marks[-1]
        return (moved1 - moved0) * self.period / (t1 - t0)

    @property
    def missed_share(self) -> float:
        """Fraction of due cycles missed in about the last `window` [s]; 0 at first."""
        if len(self._marks) < 3:
            return 0.0
        (_, _, missed0, cycles0), (_, _, missed1, cycles1) = (
            self._marks[0],
            self._marks[-1],
        )
        missed = missed1 - missed0
        return missed / (missed + cycles1 - cycles0)
