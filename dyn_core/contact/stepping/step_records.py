"""Compact records of steps with contacts, from which reports are made on demand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.detection_arrays import Contacts

COUNTS = 6  # integers of a record before the ids and first rows of the blocks


class FastContacts(NamedTuple):
    """Contacts of a step with fast pairs, and copies of FastMemory that led to them."""

    contacts: Contacts
    velocity: np.ndarray
    met: np.ndarray
    met_time: np.ndarray


class StepRecord(NamedTuple):
    """Data from which the report of a step is made when it is read.

    Attributes:
        t, h: Start and duration [s].
        status: One of residuals.STATUSES.
        short: 1 if overlaps could not be corrected completely, else 0.
        forces: Forces on bodies, (nb, 6), if there are any; then inputs of a payload.
        efforts: Joint forces, (nv,), as bytes.
        q_end: Position after the step if the step corrected it; else None.
        sizes: nq and nv.
        integers, floats: Arrays of composite_step.StepLog, as bytes.

    The arrays of the properties are read-only views.
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
        """Number of iterations of the solver."""
        return int(self._numbers[1])

    @property
    def q(self) -> np.ndarray:
        """Position at which the constraints were evaluated, (nq,)."""
        return self._part(0, self.sizes[0])

    @property
    def qd(self) -> np.ndarray:
        """Velocity before the step, along the axes of the velocity at q, (nv,)."""
        return self._part(*self.sizes)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity after the step, along the axes of the velocity at q, (nv,)."""
        nq, nv = self.sizes
        return self._part(nq + nv, nv)

    @property
    def residuals(self) -> np.ndarray:
        """Residuals of the solver, in the order of Residuals, (5,)."""
        nq, nv = self.sizes
        return self._part(nq + 2 * nv, 5)

    @property
    def impulse(self) -> np.ndarray:
        """Impulses of all rows, with impacts before the step, (m,) [N·s | N·m·s]."""
        nq, nv = self.sizes
        return self._part(nq + 2 * nv + 5, -1)

    @property
    def ids(self) -> np.ndarray:
        """Number of each block's constraint, equal in all steps; < 0: no contact."""
        numbers = self._numbers
        return numbers[COUNTS : COUNTS + int(numbers[5])]

    @property
    def starts(self) -> np.ndarray:
        """First row of each block in `impulse`, (blocks,)."""
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
        """Ten parameters of a payload, in one array (10,); empty without one."""
        return self.forces[1:] if self.with_forces else self.forces

    @property
    def _numbers(self) -> np.ndarray:
        """`integers` as an array."""
        return np.frombuffer(self.integers, np.int64)

    def _part(self, start: int, count: int) -> np.ndarray:
        """Return a read-only view of `count` numbers of `floats`, or with -1 of all."""
        return np.frombuffer(self.floats, float, count, 8 * start)
