"""What is kept of a step with contacts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.tables import Contacts

COUNTS = 6  # numbers in `integers` of a record before those of the blocks


class FastContacts(NamedTuple):
    """Contacts of a step, and from FastMemory the ways along which they were found."""

    contacts: Contacts
    velocity: np.ndarray
    met: np.ndarray
    met_time: np.ndarray


class StepRecord(NamedTuple):
    """What a report of a step is made from, later and only if somebody reads it.

    Attributes:
        t, h: Start and duration [s].
        status: Of the solver.
        short: Whether overlaps had no room to be corrected.
        forces: Forces on bodies, (nb, 6), if there are any; then the payload, likewise.
        efforts: Joint forces, (nv,), as bytes.
        q_end: Position after the step, if the step corrected it.
        sizes: nq and nv.
        integers, floats: Those of composite_step.StepLog, as bytes.
        fast: Contacts of a step with fast pairs, which depend on velocities.
    """

    t: float
    h: float
    status: str
    short: int
    forces: tuple[np.ndarray, ...]
    efforts: bytes
    q_end: np.ndarray | None
    sizes: tuple[int, int]
    integers: bytes
    floats: bytes
    fast: FastContacts | None = None

    @property
    def iterations(self) -> int:
        """Of the solver."""
        return int(self._numbers[1])

    @property
    def q(self) -> np.ndarray:
        """Position at which the constraints were taken."""
        return self._part(0, self.sizes[0])

    @property
    def qd(self) -> np.ndarray:
        """Velocity at which the constraints were taken."""
        return self._part(*self.sizes)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity after the step along the axes of q."""
        nq, nv = self.sizes
        return self._part(nq + nv, nv)

    @property
    def residuals(self) -> np.ndarray:
        """Of the solver, (5,)."""
        nq, nv = self.sizes
        return self._part(nq + 2 * nv, 5)

    @property
    def impulse(self) -> np.ndarray:
        """Impulses of all rows."""
        nq, nv = self.sizes
        return self._part(nq + 2 * nv + 5, -1)

    @property
    def ids(self) -> np.ndarray:
        """Lasting number of each block."""
        numbers = self._numbers
        return numbers[COUNTS : COUNTS + int(numbers[5])]

    @property
    def starts(self) -> np.ndarray:
        """First row of each block."""
        numbers = self._numbers
        return numbers[COUNTS + int(numbers[5]) :]

    @property
    def tau(self) -> np.ndarray:
        """Joint forces, (nv,) [N·m | N]."""
        return np.frombuffer(self.efforts, float)

    @property
    def with_forces(self) -> bool:
        """Whether forces act on bodies."""
        return bool(self.forces) and self.forces[0].ndim == 2

    @property
    def payload(self) -> tuple[np.ndarray, ...]:
        """What a link carried, as an input of Programs, or nothing."""
        return self.forces[1:] if self.with_forces else self.forces

    @property
    def _numbers(self) -> np.ndarray:
        """`integers` as an array."""
        return np.frombuffer(self.integers, np.int64)

    def _part(self, start: int, count: int) -> np.ndarray:
        """Return a part of `floats` as an array; count -1: to the end."""
        return np.frombuffer(self.floats, float, count, 8 * start)
