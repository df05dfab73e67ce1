"""Dynamics of the states of a block: Programs that are tied to its memory."""

from __future__ import annotations

import numpy as np

from dyn_core.contact.stepping.step_memory import StepSetup
from dyn_core.contact.stepping.step_tables import StepArrays
from dyn_core.engines.machine_code import TiedBatch

WHOLE = 8  # memory of a block has rows for a multiple of it


class BlockPrograms:
    """The Programs of a step, tied to the memory of a block."""

    def __init__(self, setup: StepSetup, step: StepArrays, size: int) -> None:
        """Tie them.

        Args:
            setup: Robot, world and Programs.
            step: Memory; its terms, qd_next and correction are
                used.
            size: Most rows of a block.
        """
        model, terms, rest = setup.of.model, step.terms, np.array(setup.remaining)
        self._setup, self._terms = setup, terms
        self._q, self._qd = terms.q, terms.qd
        self._middle: TiedBatch | None = None
        if setup.at_middle:
            self._q, self._qd = np.zeros_like(terms.q), np.zeros_like(terms.qd)
            start = self._q, self._qd, np.array(setup.h - setup.remaining)
            self._middle = TiedBatch(setup.moved, start, (terms.q, terms.qd))
        self._tau = np.zeros((size, model.nv))
        self._f_ext = np.zeros((size, model.nb, 6))
        self._payload = tuple(map(np.copy, setup.of.carried.values))
        self._calls: dict[bool, TiedBatch] = {}
        self._ends = np.zeros_like(terms.q), np.zeros_like(terms.qd)
        motion = terms.q, step.qd_next, rest, step.correction
        self._end = TiedBatch(setup.moved_apart, motion, self._ends)

    def begin(
        self,
        n: int,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> None:
        """Fill the terms of n states; see BatchStep.step."""
        inputs = [(self._q, q), (self._qd, qd), (self._tau, tau)]
        if f_ext is not None:
            inputs.append((self._f_ext, f_ext))
        for to, source in inputs:
            to[:n] = source
            to[n : n + -n % WHOLE] = source[0]
        for mine, now in zip(self._payload, self._setup.of.carried.values, strict=True):
            mine[...] = now
        if self._middle is not None:
            self._middle(n)
        with_forces = f_ext is not None
        call = self._calls.get(with_forces)
        if call is None:
            forces = (self._f_ext,) * with_forces
            values = (self._terms.q, self._terms.qd, self._tau, np.array(self._setup.h))
            program = self._setup.terms(with_forces)
            call = TiedBatch(
                program, (*values, *forces, *self._payload), self._terms[2:]
            )
            self._calls[with_forces] = call
        call(n)

    def end(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities of n states after the step."""
        self._end(n)
        return self._ends[0][:n], self._ends[1][:n]
