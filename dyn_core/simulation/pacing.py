"""Simulated time beside the wall's: which periods are due, and how well it keeps up."""

from __future__ import annotations

from collections import deque

MARKS = 10  # of a window


class Pace:
    """Counts the periods that are due, and what was missed.

    A cycle that comes late owes the periods it missed. They are caught up, in this
    cycle and the following ones, up to a bound; what is beyond it is lost: simulated
    time then lags for good. After a pause nothing is owed.

    Attributes:
        period: [s].
        most: Periods that may be caught up.
        cycles, missed, lost: Number of cycles, of missed ones, of periods lost.
        debt: Periods that are due and not simulated.
    """

    def __init__(self, period: float, most: int, window: float = 2.0) -> None:
        """Count from the first cycle on.

        Args:
            period: [s].
            most: Periods that may be caught up.
            window: Duration that the ratios are of [s].
        """
        self.period, self.most, self.window = period, most, window
        self.cycles = self.missed = self.lost = self.debt = self._moved = 0
        self.restart()

    def restart(self) -> None:
        """Owe nothing, and forget the ratios; the counts stay."""
        self.debt = 0
        self._next: float | None = None
        self._marks: deque[tuple[float, int, int, int]] = deque(maxlen=MARKS + 1)

    def owed(self, now: float) -> int:
        """Count a cycle; return how many periods it should simulate, 1 or more.

        Args:
            now: Time of the cycle, monotonic [s].
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
        """Count a simulated period."""
        self.debt -= 1
        self._moved += 1

    @property
    def real_time_factor(self) -> float | None:
        """Simulated time by the wall's, in the window; None right after a start."""
        if len(self._marks) < 3:
            return None
        (t0, moved0, *_), (t1, moved1, *_) = self._marks[0], self._marks[-1]
        return (moved1 - moved0) * self.period / (t1 - t0)

    @property
    def missed_share(self) -> float:
        """Missed cycles by due ones, in the window."""
        if len(self._marks) < 3:
            return 0.0
        (_, _, missed0, cycles0), (_, _, missed1, cycles1) = (
            self._marks[0],
            self._marks[-1],
        )
        missed = missed1 - missed0
        return missed / (missed + cycles1 - cycles0)
