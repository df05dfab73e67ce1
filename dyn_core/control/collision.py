"""External joint forces without a sensor, and collisions that they show.

The solver `momentum_observer` turns the noise of velocities into noise of its r, the
more the larger its gain K. A second lag of the same rate takes most of it away: a force
w that begins at t = 0 shows after k cycles of length dt as

    e = w (1 - a^k (1 + k (1 - a))),   a = 1 / (1 + K dt)

With K = 130/s, velocities that make 0.004 kg·m²/s of noise and efforts that make
0.2 N·m, e by its deviation is, after ten cycles of 1 ms, 0.97 of what any linear filter
can reach; that of r is 0.55 of it with the best gain, 11/s, and 0.37 with 130/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.law_programs import checked_gains
from dyn_core.errors import SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.model.payload import PayloadInput
from dyn_core.solving.registry import solver
from dyn_core.validation import Quantity, known_keywords


@known_keywords
@dataclass(frozen=True)
class CollisionSettings:
    """When external joint forces count as a collision.

    Attributes:
        thresholds: External force of a joint that is a collision: one number, one a
            joint, or numbers by the joint's name; others are not watched [N·m | N].
        gain: Rate K of the observer, and of the lag behind it [1/s].
        release: Part of its threshold that a joint's force falls below before it can
            be another collision.
        observer: Solver of MOMENTUM_OBSERVER, by name or as object.
    """

    thresholds: Any
    gain: float = 130.0
    release: float = 0.5
    observer: Any = "momentum_observer"

    def __post_init__(self) -> None:
        gain, release = Quantity(0.0, above=True), Quantity(0.0, 1.0)
        for name, kind in (("gain", gain), ("release", release)):
            try:
                kind.read(f"collision.{name}", getattr(self, name))
            except ValueError as error:
                raise SettingError(str(error), f"collision.{name}") from error


@dataclass(frozen=True)
class Collision:
    """An external joint force beyond its threshold.

    Attributes:
        joint: Name; of several joints the one that exceeds its threshold most.
        effort, threshold: External force and what is allowed [N·m | N].
        time: When [s].
    """

    joint: str
    effort: float
    threshold: float
    time: float

    def __str__(self) -> str:
        return (
            f"collision: the external effort of joint '{self.joint}' is"
            f" {self.effort:.6g}, its threshold {self.threshold:.6g} [N·m | N]"
        )


class ExternalEffort:
    """External joint forces of a robot, or of many at once, from cycle to cycle.

    Of many, all arrays have a row a robot.

    Attributes:
        gain: Rate K of the observer and of the lag behind it [1/s].
        r: What the observer says, which lags by 1/K, (nv,) [N·m | N].
        effort: r after another lag of 1/K: less noise.
    """

    def __init__(
        self,
        model: Model,
        gain: float,
        observer: Any = "momentum_observer",
        engine: str | None = None,
        carried: PayloadInput | None = None,
    ) -> None:
        """Build the Program.

        Args:
            model: Robot; the friction and springs that it knows are no external forces.
            gain: Rate K [1/s].
            observer: Solver of MOMENTUM_OBSERVER, by name or as object.
            engine: Engine of the Program.
            carried: A payload that may change; None: none.
        """
        self.carried = carried or PayloadInput()
        self.gain, self.driven = float(gain), bool(model.driven)
        self._gains = np.full(model.nv, self.gain)
        made = observer if hasattr(observer, "build") else solver(observer)
        self.program = made.build(
            model,
            joint_friction=True,
            joint_springs=True,
            engine=engine,
            inputs=[*(["time"] if self.driven else []), *self.carried.paths],
        )
        self.program.prepare()
        self._zero = np.zeros(model.nv)
        self.restart()

    def restart(self) -> None:
        """Begin anew, at zero."""
        self.time: float | None = None
        self.r = self.effort = self._zero
        self._momentum = self._rate = self._zero
        self._carried: tuple[Any, ...] | None = None

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> np.ndarray:
        """Return the external joint forces; zero in the first cycle.

        Where the payload is another one than in the cycle before, they stay as they
        were: the momentum of before was that of another robot.

        Args:
            t: Time; one that goes back restarts [s].
            q, qd: State at this time.
            tau: Joint forces since the cycle before.
        """
        if self.time is not None and t < self.time:
            self.restart()
        dt = 0.0 if self.time is None else t - self.time
        last = self._gains, self.r, self._momentum, self._rate
        more = (*((t,) if self.driven else ()), *self.carried.values)
        r, self._momentum, self._rate = self.program(q, qd, tau, dt, *last, *more)
        if self.time is None:
            self.r = self.effort = np.zeros_like(r)
        same = self._carried is self.carried.values
        self.time, self._carried = t, self.carried.values
        if not same:
            return self.effort
        lag = self.gain * dt / (1 + self.gain * dt)
        self.r, self.effort = r, self.effort + lag * (r - self.effort)
        return self.effort


@known_keywords
class CollisionDetector:
    """Compares external joint forces with thresholds, and names the joint.

    Attributes:
        settings: What was asked for.
        external: External joint forces, see ExternalEffort.
        thresholds: By joint, (nv,); infinite where nothing is watched.
        touched: Joints that are beyond their threshold, or were and have not been
            released since, (nv,).
    """

    def __init__(
        self,
        model: Model,
        settings: CollisionSettings,
        engine: str | None = None,
        carried: PayloadInput | None = None,
    ) -> None:
        self.settings, self.names = settings, tuple(model.joint_names)
        if model.nv != len(self.names):
            raise SettingError(
                "collisions are named by joint: each has one coordinate", "collision"
            )
        self.thresholds = threshold_values(self.names, settings.thresholds)
        observer = settings.gain, settings.observer
        self.external = ExternalEffort(model, *observer, engine, carried)
        self.restart()

    def restart(self) -> None:
        """Forget forces and contacts."""
        self.external.restart()
        self.touched = np.zeros(len(self.names), bool)
        self._sent = np.zeros(len(self.names))

    @property
    def effort(self) -> np.ndarray:
        """External joint forces after the last cycle, (nv,) [N·m | N]."""
        return self.external.effort

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> Collision | None:
        """Return a collision in the cycle in which it begins, else None.

        Args:
            t: Time [s].
            q, qd: State at this time, (nv,).
            tau: Joint forces since the cycle before, (nv,) [N·m | N].
        """
        effort = self.external.update(t, q, qd, tau)
        excess = np.abs(effort) / self.thresholds
        before, release = self.touched, self.settings.release
        self.touched = still_touched(excess, before, release)
        new = self.touched & ~before
        if not new.any():
            return None
        k = int(np.argmax(np.where(new, np.nan_to_num(excess, nan=np.inf), -1.0)))
        threshold = float(self.thresholds[k])
        return Collision(self.names[k], float(effort[k]), threshold, t)

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Return a sentence in the cycle in which a collision begins, else None.

        Args:
            t: Time [s].
            q, qd: State at this time, (nv,).
            tau: Effort from now on, (nv,) [N·m | N].
        """
        sent, self._sent = self._sent, np.array(tau, float)
        collision = self.update(t, q, qd, sent)
        return None if collision is None else str(collision)

    def replace(self, tau: np.ndarray) -> None:
        """Note that another effort than the observed one acts from now on.

        Args:
            tau: That of a stop, (nv,) [N·m | N].
        """
        self._sent = np.array(tau, float)


def still_touched(
    excess: np.ndarray, touched: np.ndarray, release: float
) -> np.ndarray:
    """Return which joints are touched: beyond 1, or not yet below the release.

    Args:
        excess: External force by threshold; NaN counts as beyond.
        touched: Which were touched in the cycle before.
        release: Part of the threshold below which a joint is released.
    """
    return ~(excess <= np.where(touched, release, 1.0))


def threshold_values(names: tuple[str, ...], wanted: Any) -> np.ndarray:
    """Return a threshold of each joint; infinite for those that none is given for."""
    if isinstance(wanted, Mapping):
        for joint in wanted:
            if joint not in names:
                message = unknown_name("joint", joint, names)
                raise SettingError(f"collision.thresholds: {message}", "thresholds")
        wanted = [wanted.get(name, math.inf) for name in names]
    try:
        values = np.broadcast_to(np.asarray(wanted, float), (len(names),)).copy()
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"collision.thresholds are {wanted!r}; valid: a number, {len(names)}, or"
            " numbers by joint",
            "thresholds",
        ) from error
    if not (values > 0).all():
        raise SettingError(
            f"collision.thresholds are {values.tolist()}; valid: > 0", "thresholds"
        )
    return values


def deviation(gain: float, dt: float, momentum: Any, effort: Any) -> Any:
    """Return the standard deviation of ExternalEffort.effort under white noise.

        variance = 2 (1 - a)³ / ((1 + a)³ dt²) momentum²
                   + (1 + a²) (1 - a) / (1 + a)³ effort²,   a = 1 / (1 + K dt)

    Args:
        gain: K [1/s].
        dt: Length of a cycle [s].
        momentum: Standard deviation of H qd in each cycle: that of row i of H times the
            velocities' noise [kg·m²/s | kg·m/s].
        effort: Standard deviation of the joint forces in each cycle [N·m | N].
    """
    a = 1 / (1 + gain * dt)
    of_momentum = 2 * ((1 - a) / (1 + a)) ** 3 / dt**2 * np.square(momentum)
    of_effort = (1 + a * a) * (1 - a) / (1 + a) ** 3 * np.square(effort)
    return np.sqrt(of_momentum + of_effort)


def noise_thresholds(
    model: Model,
    gain: float,
    dt: float,
    velocity_noise: Any,
    effort_noise: Any,
    sigmas: float = 6.0,
    samples: int = 500,
) -> dict[str, float]:
    """Return thresholds by joint that noise alone exceeds about never.

        threshold = sigmas deviation,   momentum noise = max over q of |row of H| noise

    With 6 the chance is 2e-9 a cycle and joint: at most 0.05 in an hour of 1 kHz and
    seven joints, with 7 it is 6e-5. What the Model does not know (friction, a payload)
    comes on top.

    Args:
        model: Robot with joints of one coordinate.
        gain, dt: K [1/s] and the length of a cycle [s].
        velocity_noise: Standard deviation of velocities, (nv,) or one number.
        effort_noise: That of joint forces, (nv,) or one number.
        sigmas: Threshold by deviation.
        samples: Number of positions, within the limits of the joints.
    """
    noise = checked_gains("velocity_noise", velocity_noise, model.nv)
    effort = checked_gains("effort_noise", effort_noise, model.nv)
    rng = np.random.default_rng(0)
    q = np.array([model.random(rng) for _ in range(samples)])
    inside = np.isfinite(model.lower) & np.isfinite(model.upper)
    drawn = rng.uniform(size=q.shape)
    low, high = (np.where(inside, x, 0.0) for x in (model.lower, model.upper))
    q = np.where(inside, low + drawn * (high - low), q)
    H = solver("crba").build(model, engine="graph")(q)
    momentum = np.sqrt(((H * noise) ** 2).sum(axis=-1)).max(axis=0)
    bounds = sigmas * deviation(gain, dt, momentum, effort)
    return dict(zip(model.joint_names, bounds.tolist(), strict=True))
