"""Robots that move under noise and are pushed: when is it noticed, and what else is.

Many robots run at once, each on a motion of its own: an hour of one is a minute of 60.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.control.collision import (
    CollisionSettings,
    ExternalEffort,
    still_touched,
    threshold_values,
)
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.solving.registry import solver

KP, KD = 400.0, 40.0  # gains of the computed torque [1/s²], [1/s]
SUBSTEPS = 2  # of the simulation, in a cycle
PUSHED = 50  # cycles of a push


@dataclass(frozen=True)
class Noise:
    """Noise of what is measured; white, Gaussian but for the encoders.

    Attributes:
        encoder: Resolution of positions [rad | m].
        velocity, effort: Standard deviation of velocities and joint forces.
    """

    encoder: float = 2 * np.pi / 2**17
    velocity: float = 1e-3
    effort: float = 0.2


@dataclass(frozen=True)
class TrialResult:
    """What happened in a trial.

    Attributes:
        cycles: Number of cycles of all robots before a push.
        false_alarms: Number of collisions that were noticed in them.
        delays: Time from the start of each push to the cycle that notices it; infinite
            where none does [s].
        efforts: Largest joint force of each push [N·m | N].
        joints: Index of the joint that notices each push, -1 for none.
    """

    cycles: int
    false_alarms: int
    delays: np.ndarray
    efforts: np.ndarray
    joints: np.ndarray

    def __str__(self) -> str:
        lines = [f"{self.false_alarms} false alarms in {self.cycles} cycles"]
        if len(self.delays):
            median, most = np.median(self.delays) * 1e3, self.delays.max() * 1e3
            lines.append(
                f"{len(self.delays)} pushes noticed in {median:.3g} ms (median),"
                f" {most:.3g} ms (most)"
            )
        return "; ".join(lines)


class Sines:
    """A smooth motion of each robot: a sine of its own in every joint."""

    def __init__(self, model: Model, robots: int, rng: np.random.Generator) -> None:
        low, high = (np.clip(x, -np.pi, np.pi) for x in (model.lower, model.upper))
        shape = robots, model.nv
        reach = (high - low) / 2 * 0.9
        self.size = reach * rng.uniform(0.1, 0.5, shape)
        self.middle = (low + high) / 2 + (reach - self.size) * rng.uniform(-1, 1, shape)
        top = model.velocity_limit
        fastest = np.where(top > 0, top, 1.0) * 0.9 / self.size
        self.rate = np.minimum(rng.uniform(0.5, 4.0, shape), fastest)
        self.phase = rng.uniform(0, 2 * np.pi, shape)

    def reference(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd and qdd at a time."""
        angle = self.rate * t + self.phase
        s, c = self.size * np.sin(angle), self.size * np.cos(angle)
        return self.middle + s, self.rate * c, -(self.rate**2) * s


class _ToolPushes:
    """A force on a link of each robot, constant in the link's axes.

    Attributes:
        which: Robots that have a direction in which the push is large enough.
        f_ext: Force on each body, (robots, nb, 6).
        efforts: Largest joint force, (robots,).
    """

    def __init__(
        self, model: Model, q: np.ndarray, link: str, force: float, least: float,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        J = solver("jacobian").build(model, frame=link)(q)[:, 3:]
        directions = rng.normal(size=(len(q), 50, 3))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        efforts = np.abs(force * directions @ J).max(axis=-1)
        choice = np.argmax(efforts >= least, axis=-1)  # the first that will do
        rows = np.arange(len(q))
        self.efforts = efforts[rows, choice]
        self.which = self.efforts >= least
        frame = model.frame(link)
        X = np.asarray(frame.X, float)
        wrench = np.zeros((len(q), 6))
        wrench[:, 3:] = force * directions[rows, choice]
        self.f_ext = np.zeros((len(q), model.nb, 6))
        self.f_ext[self.which, frame.body - 1] = (wrench @ X)[self.which]


def collision_trial(
    model: Model,
    settings: CollisionSettings,
    *,
    robots: int = 60,
    duration: float = 1.0,
    push: float | None = None,
    link: str = "tool",
    least: float = 2.0,
    period: float = 1e-3,
    settle: float = 0.1,
    noise: Noise | None = None,
    seed: int = 0,
) -> TrialResult:
    """Move robots by computed torque, push them at last; return what is noticed.

    Controller and observer have positions of encoders, noisy velocities, and efforts
    that differ from the real ones. Friction acts and is known.

    Args:
        model: Robot with a fixed base and joints of one coordinate.
        settings: Thresholds and gain.
        robots: Number of robots, each with a motion of its own.
        duration: Time of each, after it has settled, before a push [s].
        push: Force that begins then, for PUSHED cycles [N]; None: nobody pushes.
        link: Where, in a random direction that is `least` on some joint.
        least: Smallest largest joint force of a push [N·m | N].
        period: Length of a cycle [s].
        settle: Time at the start that does not count [s].
        noise: What disturbs; Noise() without a choice.
        seed: Of all that is random.
    """
    if model.nq != model.nv:
        raise SettingError("a trial needs joints of one coordinate", "model")
    rng = np.random.default_rng(seed)
    world = _MovedRobots(model, settings, robots, period, noise or Noise(), rng)
    for _ in range(round(settle / period)):
        world.cycle()
    cycles, alarms = round(duration / period), 0
    before = world.touched
    for _ in range(cycles):
        touched = world.cycle()
        alarms += int((touched & ~before).any(axis=-1).sum())
        before = touched
    none = np.zeros(0)
    if push is None:
        return TrialResult(cycles * robots, alarms, none, none, none.astype(int))
    pushes = _ToolPushes(model, world.q, link, push, least, rng)
    delays, joints = np.full(robots, np.inf), np.full(robots, -1)
    for k in range(PUSHED):
        touched = world.cycle(pushes.f_ext)
        new = (touched & ~before).any(axis=-1) & np.isinf(delays)
        delays[new] = (k + 1) * period
        joints[new] = np.argmax(world.excess[new], axis=-1)
    which = pushes.which
    return TrialResult(
        cycles * robots, alarms, delays[which], pushes.efforts[which], joints[which]
    )


class _MovedRobots:
    """Many robots under computed torque, with what observes them.

    Attributes:
        q, qd: States, (robots, nv).
        excess: External efforts by threshold, (robots, nv).
        touched: Where these are beyond 1, until they are below `release`.
    """

    def __init__(
        self, model: Model, settings: CollisionSettings, robots: int, period: float,
        noise: Noise, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.noise, self.rng, self.period = noise, rng, period
        self.thresholds = threshold_values(model.joint_names, settings.thresholds)
        self.release = settings.release
        self.limit = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
        self.motion, self.t = Sines(model, robots, rng), 0.0
        self.q, self.qd, _ = self.motion.reference(0.0)
        self.law = solver("computed_torque").build(model, joint_friction=True)
        self.plant = solver("semi_implicit_euler").build(
            model, joint_friction=True, inputs=["f_ext"]
        )
        self.external = ExternalEffort(model, settings.gain, settings.observer)
        self.no_force = np.zeros((robots, model.nb, 6))
        self.touched = np.zeros(self.q.shape, bool)
        self.excess = np.zeros(self.q.shape)
        self.seen = self._measured()
        self.external.update(0.0, *self.seen, 0 * self.q)

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of encoders, and noisy velocities."""
        step = self.noise.encoder
        speed = self.noise.velocity * self.rng.standard_normal(self.q.shape)
        return np.round(self.q / step) * step, self.qd + speed

    def cycle(self, f_ext: np.ndarray | None = None) -> np.ndarray:
        """Move by one cycle; return which joints of which robots are touched then."""
        gains = np.full((2, *self.q.shape), [[[KP]], [[KD]]])
        tau = self.law(*self.seen, *self.motion.reference(self.t), *gains)
        tau = np.clip(tau, -self.limit, self.limit)
        f_ext = self.no_force if f_ext is None else f_ext
        for _ in range(SUBSTEPS):
            dt = self.period / SUBSTEPS
            self.q, self.qd = self.plant(self.q, self.qd, tau, dt, f_ext)
        self.t += self.period
        self.seen = self._measured()
        tau = tau + self.noise.effort * self.rng.standard_normal(tau.shape)
        effort = self.external.update(self.t, *self.seen, tau)
        self.excess = np.abs(effort) / self.thresholds
        self.touched = still_touched(self.excess, self.touched, self.release)
        return self.touched
