"""Rows of a batch whose status is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Run = tuple[int, int, str]  # first row, the one behind the last, why


@dataclass(frozen=True)
class FailedRows:
    """Rows that failed, and why; their results are NaN.

    Attributes:
        count: Rows of the batch.
        runs: Rows beside each other that failed for one reason, in order: the first,
            the one behind the last, and the reason.
    """

    count: int
    runs: tuple[Run, ...]

    @property
    def rows(self) -> np.ndarray:
        """The indices of the rows, in order."""
        parts = [np.arange(first, last) for first, last, _ in self.runs]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @property
    def mask(self) -> np.ndarray:
        """One truth value for each row of the batch: True where it failed."""
        mask = np.zeros(self.count, bool)
        for first, last, _ in self.runs:
            mask[first:last] = True
        return mask

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows failed for each reason."""
        counts: dict[str, int] = {}
        for first, last, why in self.runs:
            counts[why] = counts.get(why, 0) + last - first
        return counts

    def __len__(self) -> int:
        return sum(last - first for first, last, _ in self.runs)

    def __repr__(self) -> str:
        why = "".join(f"; {count} {reason}" for reason, count in self.reasons.items())
        return f"FailedRows({len(self)} of {self.count}{why})"


def runs_of(rows: Sequence[int], reasons: Sequence[str]) -> list[Run]:
    """Return rows, in order, as runs of one reason."""
    return joined((row, row + 1, why) for row, why in zip(rows, reasons, strict=True))


def joined(runs: Iterable[Run]) -> list[Run]:
    """Return runs, in order, those beside each other with one reason made one."""
    result: list[Run] = []
    for first, last, why in runs:
        if result and result[-1][1] == first and result[-1][2] == why:
            result[-1] = (result[-1][0], last, why)
        else:
            result.append((first, last, why))
    return result
