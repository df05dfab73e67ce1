"""Very many steps with contacts: a quadruped in batches, what fails and what is missed.

`dyn bench --contact --soak 1e6`, and of one kernel: `--soak 1e8 --kernel`
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bench.measure import machine
from bench.printed_tables import Progress, Table, print_tables
from dyn_core import robots
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.stepping.array_batch import BatchStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.model import Model, load_urdf
from dyn_core.solving.registry import solver

ROWS, DT = 1024, 1e-3  # robots that step together; step [s]
STAND = (0.0, 0.7, -1.4) * 4  # abduction, hip and knee of each leg [rad]
STIFF, DAMP = 40.0, 1.0  # of the springs to the stance [N·m/rad], [N·m·s/rad]
PUSH, EVERY = 6.0, 50  # most of random joint forces [N·m], steps between two of them
THROWN, SHARE = 500, 8  # steps after which one in SHARE robots is thrown anew
SHOWN = 10.0  # time between two lines of progress [s]
LEGEND = f"""\
Soak: {ROWS} quadrupeds step together, {DT * 1e3:g} ms a step, by the default solver and
stepper of a World, or by contact_euler, one kernel from state to state. Springs of
{STIFF:g} N·m/rad hold a stance; joint forces of up to {PUSH:g} N·m more are drawn anew
every {EVERY} steps; every {THROWN} steps one robot in {SHARE} is thrown anew, anyhow
turned, some of them into the floor. not finite: robots whose step was not finite,
which must be none; unsolved: steps that miss the solver's tolerance, with the largest
residual of the law among them; without room: steps whose overlaps could not all be
corrected; fastest: of any coordinate. Steps a second by the clock on the wall, drawing
and counting included."""


class Steps(NamedTuple):
    """What is known of one step of all robots, by robot: see BatchStep."""

    failed: np.ndarray
    status: np.ndarray
    residual: np.ndarray
    short: np.ndarray
    iterations: np.ndarray


class KernelStep:
    """Steps by contact_euler: collision, impulses and integration as one kernel."""

    def __init__(self, model: Model, dt: float, rows: int) -> None:
        self.program = solver("contact_euler").build(model, engine="native")
        self.program.prepare(batch=True)
        self.dt, self.warm = dt, np.zeros((rows, *self.program.inputs[-1].shape))

    def step(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Steps]:
        """Return states one step later, and what is known of the step."""
        results = self.program(q, qd, tau, self.dt, self.warm)
        q_next, qd_next, self.warm, _, residuals, iterations, status = results
        failed = ~np.isfinite(residuals).all(axis=1)
        law = np.where(failed, 0.0, residuals[:, -1])
        short = np.zeros_like(failed)  # it does not correct positions by themselves
        status, iterations = status.astype(int), iterations.astype(int)
        return q_next, qd_next, Steps(failed, status, law, short, iterations)

    def reset(self, chosen: np.ndarray) -> None:
        """Forget the impulses of some robots."""
        self.warm[chosen] = 0.0


@dataclass
class Soak:
    """What is known of the steps so far.

    Attributes:
        steps: Of all robots.
        seconds: By the clock on the wall.
        not_finite: Steps without a finite result.
        statuses: Steps by status of the solver, in the order of residuals.STATUSES.
        law: Largest residual of the law of an unsolved step.
        short: Steps whose overlaps had no room to be corrected.
        iterations: Of all steps.
        fastest: Largest entry of a velocity [m/s | rad/s].
    """

    steps: int = 0
    seconds: float = 0.0
    not_finite: int = 0
    statuses: np.ndarray = field(default_factory=lambda: np.zeros(len(STATUSES), int))
    law: float = 0.0
    short: int = 0
    iterations: int = 0
    fastest: float = 0.0

    @property
    def unsolved(self) -> int:
        """Steps that miss the tolerance."""
        return self.steps - int(self.statuses[STATUSES.index("converged")])

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds if self.seconds else 0.0

    def line(self) -> str:
        """Return a line of progress."""
        return (
            f"{self.steps:.3g} steps, {self.rate:.0f}/s: {self.not_finite} not finite,"
            f" {self.unsolved} unsolved (law at most {self.law:.0e}),"
            f" {self.short} without room"
        )


def soaked(
    steps: int, rows: int | None = None, seed: int = 0, kernel: bool = False
) -> Iterator[Soak]:
    """Step quadrupeds; yields what is known after each step of all of them.

    Args:
        steps: Of all robots; the last batch is whole.
        rows: Robots; None: ROWS.
        seed: Of throws and joint forces.
        kernel: Whether contact_euler takes the steps, else BatchStep.
    """
    rng, known, rows = np.random.default_rng(seed), Soak(), rows or ROWS
    model = load_urdf(robots.path("quadruped"), root_joint="floating")
    batch: BatchStep | KernelStep
    if kernel:
        batch = KernelStep(model, DT, rows)
    else:
        batch = BatchStep(ContactModel(model), DT, rows)
    q, qd = thrown(rng, model.neutral(), rows)
    tau, push = np.zeros_like(qd), np.zeros((rows, len(STAND)))
    start, k = time.perf_counter(), 0
    while known.steps < steps:
        if k % EVERY == 0:
            push = rng.uniform(-PUSH, PUSH, push.shape)
        if k % THROWN == THROWN - 1:
            chosen = np.flatnonzero(rng.integers(SHARE, size=rows) == 0)
            q[chosen], qd[chosen] = thrown(rng, model.neutral(), len(chosen))
            batch.reset(chosen)
        tau[:, 6:] = push + STIFF * (np.array(STAND) - q[:, 7:]) - DAMP * qd[:, 6:]
        q, qd, outcome = batch.step(q, qd, tau)
        failed = outcome.failed | ~np.isfinite(qd).all(axis=1)
        failed |= ~np.isfinite(q).all(axis=1)
        if failed.any():
            q[failed], qd[failed] = thrown(rng, model.neutral(), int(failed.sum()))
            batch.reset(failed)
        missed = outcome.status != STATUSES.index("converged")
        known.steps, known.seconds = known.steps + rows, time.perf_counter() - start
        known.not_finite += int(failed.sum())
        solved = outcome.status[outcome.status >= 0]  # others failed before a solution
        known.statuses += np.bincount(solved, minlength=len(STATUSES))
        known.law = max(known.law, outcome.residual[missed].max(initial=0.0))
        known.short += int(outcome.short.sum())
        known.iterations += int(outcome.iterations.sum())
        known.fastest = max(known.fastest, float(np.abs(qd).max()))
        k += 1
        yield known


def thrown(
    rng: np.random.Generator, neutral: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw q and qd of robots in any pose near the floor, some of them in it."""
    q = np.tile(neutral, (rows, 1))
    q[:, 2] = rng.uniform(0.1, 0.6, rows)
    turn = rng.standard_normal((rows, 4))
    turn[rng.random(rows) < 0.5, :2] *= 0.1  # half of them nearly upright
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    q[:, 7:] = np.array(STAND) + rng.uniform(-0.3, 0.3, (rows, len(STAND)))
    return q, 0.5 * rng.standard_normal((rows, 6 + len(STAND)))


def soak(steps: int, progress: Progress, kernel: bool = False) -> Soak:
    """Step quadrupeds, say how it goes, and return what is known in the end."""
    known, shown = Soak(), 0.0
    progress("compiling")
    for known in soaked(steps, kernel=kernel):
        if known.seconds - shown > SHOWN:
            shown = known.seconds
            progress(known.line())
    return known


def run(
    steps: int,
    progress: Progress,
    show: Callable[[Table], list[str]],
    kernel: bool = False,
) -> int:
    """Print a soak; return the status of the command: 1 if a step was not finite."""
    print(machine())
    known = soak(steps, progress, kernel)
    title = "soak of quadrupeds" + ", contact_euler" * kernel
    print_tables(LEGEND, [(title, table(known))], show)
    return int(known.not_finite > 0)


def table(known: Soak) -> Table:
    """Return the table of a soak."""
    by_status = [
        [name, f"{count}"]
        for name, count in zip(STATUSES, known.statuses.tolist(), strict=True)
        if count
    ]
    return [
        ["what", "figure"],
        ["steps", f"{known.steps}"],
        ["steps a second", f"{known.rate:.0f}"],
        ["not finite", f"{known.not_finite}"],
        *by_status,
        ["unsolved", f"{known.unsolved}"],
        ["largest law of the unsolved", f"{known.law:.1e}"],
        ["without room", f"{known.short}"],
        ["iterations a step", f"{known.iterations / max(1, known.steps):.2f}"],
        ["fastest [m/s | rad/s]", f"{known.fastest:.1f}"],
    ]
