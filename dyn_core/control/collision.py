"""External joint forces without a sensor, and collisions detected from them.

The solver `momentum_observer` turns velocity noise into noise of its estimate r, which
grows with its gain K. A second low-pass filter with the rate K removes most of it. A
constant external force w that begins at t = 0 appears after k cycles of length dt as

    e = w (1 - a^k (1 + k (1 - a))),   a = 1 / (1 + K dt)

For K = 130/s, a momentum noise of 0.004 kg·m²/s from the velocities and an effort noise
of 0.2 N·m, the ratio of e to its standard deviation is, after ten cycles of 1 ms, 0.97
of the optimum over all linear filters. For r alone the ratio is 0.55 of that optimum
with the best gain, 11/s, and 0.37 with 130/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.law_programs import checked_gains
from dyn_core.errors import ModelError, SettingError, unknown_name, warn
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.payload import PayloadInput
from dyn_core.problems import MOMENTUM_OBSERVER
from dyn_core.solving.registry import solver, solver_of
from dyn_core.validation import (
    Kind,
    Quantity,
    Whole,
    check_object,
    float_array,
    known_keywords,
)

COARSE = 10.0  # gain times cycle above which the filters are asked about


@known_keywords
@dataclass(frozen=True)
class CollisionSettings:
    """Thresholds of collision detection, and the observer of external joint forces.

    Attributes:
        thresholds: External joint force above which a joint has a collision: one
            number, one number a joint, or a mapping from joint name to number; joints
            that the mapping omits are not watched [N·m | N].
        gain: Rate K of the observer and of the low-pass filter behind it, > 0 [1/s].
        release: Fraction of its threshold, in [0, 1], to which a joint's external force
            must fall before another collision of this joint is reported.
        observer: Solver of MOMENTUM_OBSERVER, by name or as object.

    Raises:
        SettingError: gain or release is outside its range. The thresholds are checked
            by CollisionDetector.
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
        joint: Name; if several collisions begin at once, the joint with the largest
            ratio of force to threshold.
        effort: External joint force [N·m | N].
        threshold: Threshold of this joint [N·m | N].
        time: Time of the cycle in which the collision began [s].
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
    """External joint forces of one robot or a batch, estimated cycle by cycle.

    For a batch, every array has one row per robot.

    Attributes:
        gain: Rate K of the observer and of the low-pass filter behind it [1/s].
        time: Time of the last update [s]; None before the first.
        r: Output of the observer, which lags the external force by 1/K, (nv,)
            [N·m | N].
        effort: r after a second low-pass filter of rate K, with less noise, (nv,)
            [N·m | N].
    """

    def __init__(
        self,
        model: Model,
        gain: float,
        observer: Any = "momentum_observer",
        engine: str | None = None,
        carried: PayloadInput | None = None,
    ) -> None:
        """Build the Program of the observer.

        Args:
            model: Robot; its joint friction and joint springs are part of the model and
                do not count as external forces.
            gain: Rate K, above 0, which is not checked [1/s].
            observer: Solver of MOMENTUM_OBSERVER, by name or as object.
            engine: Engine of the Program; None: the default.
            carried: Payload that may change at run time; None: no payload.

        Raises:
            SolverNotFound: No solver has the name `observer`.
            SignatureError: The observer solves another problem. Errors of its build
                pass through.
        """
        check_robot(model, type(self).__name__)
        self.carried = carried or PayloadInput()
        self.gain, self.driven = float(gain), bool(model.driven)
        self._gains = np.full(model.nv, self.gain)
        self.program = solver_of(observer, MOMENTUM_OBSERVER).build(
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
        """Set all estimates to zero and `time` to None, as before the first update."""
        self.time: float | None = None
        self.r = self.effort = self._zero
        self._momentum = self._rate = self._zero
        self._carried: tuple[Any, ...] | None = None

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> np.ndarray:
        """Return `effort`, the external joint forces, filtered, (nv,); zeros at first.

        In a cycle after a payload was attached, an equal one too, or while one is
        blended in, the previous estimate is returned: the two momenta belong to
        different models and cannot be compared, and only `time` is updated. Else r and
        effort are, too.

        Args:
            t: Time [s], also of driven joints; a time before the previous one restarts
                the observer; at an equal one `effort` stays.
            q, qd: Joint position, (nq,), and velocity, (nv,), at this time.
            tau: Joint forces applied since the previous cycle, (nv,) [N·m | N]. Numbers
                are not checked: estimates that are NaN once stay NaN until `restart`.

        Raises:
            ShapeError: q, qd or tau has another shape.
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
    """Compares external joint forces with thresholds and names the joint.

    Args:
        model: Robot with joints of one coordinate.
        settings: Thresholds and observer.
        engine: Engine of the Program; None: the default.
        carried: Payload that may change at run time; None: no payload.

    Attributes:
        settings: Settings as given.
        external: Estimator of the external joint forces.
        thresholds: Threshold of each joint, (nv,); infinite where a joint is not
            watched.
        touched: Joints in collision, bool, (nv,): beyond their threshold, or beyond it
            before and not released since.

    Raises:
        SettingError: A joint has several coordinates, a threshold is invalid, or
            `settings` are no CollisionSettings.
        SolverNotFound: No solver has the name settings.observer.
        SignatureError: The observer solves another problem.
    """

    def __init__(
        self,
        model: Model,
        settings: CollisionSettings,
        engine: str | None = None,
        carried: PayloadInput | None = None,
    ) -> None:
        check_robot(model, type(self).__name__)
        check_object("settings", settings, CollisionSettings)
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
        """Reset estimated forces and collision flags; the effort sent becomes zero."""
        self.external.restart()
        self.touched = np.zeros(len(self.names), bool)
        self._sent = np.zeros(len(self.names))

    @property
    def effort(self) -> np.ndarray:
        """External joint forces after the last cycle, (nv,) [N·m | N].

        Zeros before the second one.
        """
        return self.external.effort

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> Collision | None:
        """Return the collision that begins in this cycle, or None.

        If it begins at several joints, that of the joint with the largest ratio of
        force to threshold; joints whose earlier collision lasts do not count. An
        external force that is NaN counts as a collision. The estimates and `touched`
        are updated.

        Args:
            t: Time [s]; a time before the previous one restarts the estimates.
            q, qd: Joint position and velocity at this time, (nv,).
            tau: Joint forces applied since the previous cycle, (nv,) [N·m | N].

        Raises:
            ShapeError: q, qd or tau has another shape.
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
        """Return the message of a collision that begins in this cycle, or None.

        As `update`, but tau is the effort of the coming cycle: it is stored, and
        compared with the motion at the next call. The first call compares with zero
        effort.

        Args:
            t: Time [s].
            q, qd: Joint position and velocity at this time, (nv,).
            tau: Effort applied from this time on, (nv,) [N·m | N]; its shape is checked
                by the next call.

        Raises:
            ShapeError: q, qd or the previous tau has another shape.
        """
        sent, self._sent = self._sent, np.array(tau, float)
        collision = self.update(t, q, qd, sent)
        return None if collision is None else str(collision)

    def replace(self, tau: np.ndarray) -> None:
        """Replace the effort of the last `observe` by the effort applied instead.

        Args:
            tau: Effort applied instead, such as a stop's, (nv,) [N·m | N].
        """
        self._sent = np.array(tau, float)


def still_touched(
    excess: np.ndarray, touched: np.ndarray, release: float
) -> np.ndarray:
    """Return which joints are in collision, bool, (nv,).

    Their `excess`, external force over threshold, is above 1, or above `release` if
    they were touched before, or NaN.
    """
    return ~(excess <= np.where(touched, release, 1.0))


def threshold_values(names: tuple[str, ...], wanted: Any) -> np.ndarray:
    """Return the thresholds of the n joints, (n,); infinite for joints without one.

    `wanted` is one number, also in a list, for all joints, one number a joint, or a
    mapping from joint name to number. SettingError: one is not above 0 (infinity is).
    """
    if isinstance(wanted, Mapping):
        for joint in wanted:
            if joint not in names:
                message = unknown_name("joint", joint, names)
                raise SettingError(f"collision.thresholds: {message}", "thresholds")
        wanted = [wanted.get(name, math.inf) for name in names]
    try:
        numbers = float_array("thresholds", wanted, f"shape ({len(names)},)")
        values = np.broadcast_to(numbers, (len(names),)).copy()
    except (TypeError, ValueError, OverflowError) as error:
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
        gain: Rate K [1/s].
        dt: Length of a cycle [s].
        momentum: Standard deviation of H qd in each cycle; for joint i the norm of row
            i of H times the velocity noise [kg·m²/s | kg·m/s].
        effort: Standard deviation of the joint forces in each cycle [N·m | N].

    Returns:
        Standard deviation [N·m | N], of the shape to which momentum and effort, numbers
        or arrays, broadcast.
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
    """Return collision thresholds by joint name that noise alone almost never exceeds.

        threshold = sigmas deviation,   momentum noise = max over q of |row of H| noise

    With sigmas = 6 the probability of a false alarm is 2e-9 per cycle and joint, at
    most 0.05 in an hour at 1 kHz with seven joints; with sigmas = 7 it is 6e-5. Errors
    of the Model, such as friction or an unknown payload, must be added to the result.

    Args:
        model: Robot with joints of one coordinate.
        gain: Rate K of the observer, above 0 [1/s].
        dt: Length of a cycle, above 0 [s].
        velocity_noise: Standard deviation of the joint velocities, (nv,) or one number
            [rad/s | m/s].
        effort_noise: Standard deviation of the joint forces, (nv,) or one number
            [N·m | N].
        sigmas: Ratio of threshold to standard deviation, above 0.
        samples: Number of random positions at which H is evaluated, 1 or more; fixed
            seed. They are uniform within two finite limits, else as of Model.random.

    A DynWarning asks about a gain for which cycles are so long that nothing is
    filtered, such as with a rate in place of `dt`.

    Raises:
        SettingError: A noise is negative, not finite or of the wrong size, or another
            number is out of range.
        UnsupportedError: `model` is no robot.
    """
    check_robot(model, "noise_thresholds")
    above: Kind = Quantity(0.0, above=True)
    for name, value, kind in (
        ("gain", gain, above),
        ("dt", dt, above),
        ("sigmas", sigmas, above),
        ("samples", samples, Whole(1)),
    ):
        try:
            kind.read(name, value)
        except ModelError as error:
            raise SettingError(str(error), name) from error
    noise = checked_gains("velocity_noise", velocity_noise, model.nv)
    effort = checked_gains("effort_noise", effort_noise, model.nv)
    if gain * dt > COARSE:
        warn(
            f"noise_thresholds: dt {dt:g} s is long for a gain of {gain:g}/s, which"
            f" filters nothing from {COARSE:g} / gain on; is it a period? valid:"
            " seconds, such as 0.001"
        )
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
