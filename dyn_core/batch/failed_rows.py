"""Rows of a batch whose status is not 0, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Run = tuple[int, int, str]  # first row, row behind the last, reason


@dataclass(frozen=True)
class FailedRows:
    """The rows of a batch that failed, and why; their results are NaN.

    len() is the number of failed rows.

    Attributes:
        count: Number of rows of the batch.
        runs: Runs of adjacent rows that failed for one reason, in ascending order:
            first row, row behind the last, reason.
    """

    count: int
    runs: tuple[Run, ...]

    @property
    def rows(self) -> np.ndarray:
        """Indices of the failed rows, (len(self),), int64, ascending."""
        parts = [np.arange(first, last) for first, last, _ in self.runs]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @property
    def mask(self) -> np.ndarray:
        """Boolean array (count,): True for the failed rows."""
        mask = np.zeros(self.count, bool)
        for first, last, _ in self.runs:
            mask[first:last] = True
        return mask

    @property
    def reasons(self) -> dict[str, int]:
        """Number of failed rows by reason, "ErrorType: message", in order of rows."""
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
    """Return ascending rows as Runs of adjacent ones with the same reason."""
    return joined((row, row + 1, why) for row, why in zip(rows, reasons, strict=True))


def joined(runs: Iterable[Run]) -> list[Run]:
    """Return ascending Runs as a list, with adjacent ones of the same reason merged."""
    result: list[Run] = []
    for first, last, why in runs:
        if result and result[-1][1] == first and result[-1][2] == why:
            result[-1] = (result[-1][0], last, why)
        else:
            result.append((first, last, why))
    return result
