"""Robots that move a payload under noise: is it what the estimate says it is?

Many robots run at once, each on a motion and with a payload of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from collision_trial import KD, KP, Noise, Sines

from dyn_core.control.payload_estimator import PayloadEstimator, PayloadSettings
from dyn_core.model import Model
from dyn_core.model.payload import Payload
from dyn_core.solving.registry import solver

SUBSTEPS = 2  # of the simulation, in a cycle


@dataclass(frozen=True)
class PayloadTrial:
    """Estimates at some times, of many robots.

    Attributes:
        times: When [s].
        truth: Ten numbers of each payload, (robots, 10).
        ten, deviations: Estimates, (times, robots, 10).
        changes, outliers: Counted until the end, (robots,).
        mismatch: At the end, (robots,).
    """

    times: np.ndarray
    truth: np.ndarray
    ten: np.ndarray
    deviations: np.ndarray
    changes: np.ndarray
    outliers: np.ndarray
    mismatch: np.ndarray

    @property
    def normal(self) -> np.ndarray:
        """Errors by the deviations that are claimed, (times, robots, 10)."""
        return (self.ten - self.truth) / self.deviations

    @property
    def mass_error(self) -> np.ndarray:
        """Relative error of the mass, (times, robots)."""
        return np.abs(self.ten[..., 0] / self.truth[..., 0] - 1)

    @property
    def moment_error(self) -> np.ndarray:
        """Error of the first moments by their length, (times, robots)."""
        miss = np.linalg.norm(self.ten[..., 1:4] - self.truth[..., 1:4], axis=-1)
        return miss / np.linalg.norm(self.truth[..., 1:4], axis=-1)

    def covered(self, deviations: float) -> np.ndarray:
        """Share of errors within so many deviations, (times, 10)."""
        return (np.abs(self.normal) <= deviations).mean(axis=1)


@dataclass(frozen=True)
class Disturbance:
    """What is wrong beside the noise.

    Attributes:
        memory: Time in which the noise of efforts forgets itself [s].
        outliers: Share of cycles with a wrong effort on each joint.
        size: Of these [N·m | N].
        change: Time at which each robot gets the payload of the next one; None: never.
    """

    memory: float = 0.0
    outliers: float = 0.0
    size: float = 50.0
    change: float | None = None


def payload_trial(
    model: Model,
    settings: PayloadSettings,
    payloads: Sequence[Payload],
    *,
    times: Sequence[float] = (2.0,),
    period: float = 2e-3,
    noise: Noise | None = None,
    disturbance: Disturbance | None = None,
    seed: int = 0,
) -> PayloadTrial:
    """Move robots by computed torque that knows nothing of their payloads.

    Friction acts and is known. Velocities, efforts and positions have noise; the
    simulation is of fourth order with half the period.

    Args:
        model: Robot with a fixed base and joints of one coordinate.
        settings: Of the estimate.
        payloads: One a robot.
        times: At which the estimates are kept [s].
        period: Length of a cycle [s].
        noise: What disturbs; Noise() without a choice.
        disturbance: What is wrong beside it.
        seed: Of all that is random.
    """
    world = _Carriers(
        model, settings, payloads, period, noise or Noise(),
        disturbance or Disturbance(), np.random.default_rng(seed),
    )  # fmt: skip
    rows = []
    for time in times:
        while world.t < time - period / 2:
            world.cycle()
        estimate = world.estimator.estimate
        assert estimate is not None
        rows.append((estimate.ten, estimate.deviations))
    ten, deviations = (np.array(part) for part in zip(*rows, strict=True))
    watched, count = world.estimator, len(payloads)
    counted = (watched.changes, watched.outliers, watched.mismatch)
    return PayloadTrial(
        np.array(times),
        world.carried,
        ten,
        deviations,
        *(np.broadcast_to(x, (count,)) for x in counted),
    )


@dataclass
class _Carriers:
    """Robots with payloads under computed torque, with what estimates them."""

    model: Model
    settings: PayloadSettings
    payloads: Sequence[Payload]
    period: float
    noise: Noise
    disturbance: Disturbance
    rng: np.random.Generator
    t: float = 0.0
    drifting: Any = field(default=0.0)

    def __post_init__(self) -> None:
        model, robots = self.model, len(self.payloads)
        self.carried = np.array([payload.parameters for payload in self.payloads])
        self.limit = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
        self.motion = Sines(model, robots, self.rng)
        self.q, self.qd, _ = self.motion.reference(0.0)
        self.law = solver("computed_torque").build(model, joint_friction=True)
        path = f"{self.settings.link}.payload"
        self.plant = solver("rk4").build(model, joint_friction=True, inputs=[path])
        self.estimator = PayloadEstimator(model, self.settings)
        self.seen = self._measured()
        self.estimator.update(0.0, *self.seen, 0 * self.q)

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of encoders, and noisy velocities."""
        step = self.noise.encoder
        speed = self.noise.velocity * self.rng.standard_normal(self.q.shape)
        return np.round(self.q / step) * step, self.qd + speed

    def _effort_error(self) -> np.ndarray:
        """Return the error of each measured effort: noise, and rare outliers."""
        more, wrong = self.rng.standard_normal(self.q.shape), self.disturbance
        a = np.exp(-self.period / wrong.memory) if wrong.memory else 0.0
        first = isinstance(self.drifting, float)
        fresh = more if first else np.sqrt(1 - a * a) * more
        self.drifting = fresh if first else a * self.drifting + fresh
        strange = self.rng.uniform(size=self.q.shape) < wrong.outliers
        spikes = wrong.size * self.rng.standard_normal(self.q.shape)
        return self.noise.effort * self.drifting + strange * spikes

    def cycle(self) -> None:
        """Move by one cycle, and estimate."""
        change = self.disturbance.change
        if change is not None and self.t <= change < self.t + self.period:
            self.carried = np.roll(self.carried, 1, axis=0)
        gains = np.full((2, *self.q.shape), [[[KP]], [[KD]]])
        tau = self.law(*self.seen, *self.motion.reference(self.t), *gains)
        tau = np.clip(tau, -self.limit, self.limit)
        for _ in range(SUBSTEPS):
            dt = self.period / SUBSTEPS
            self.q, self.qd = self.plant(self.q, self.qd, tau, dt, self.carried)
        self.t += self.period
        self.seen = self._measured()
        self.estimator.update(self.t, *self.seen, tau + self._effort_error())
