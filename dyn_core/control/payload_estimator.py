"""Payload of a link, estimated from motion and effort while the robot moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.law_programs import checked_gains
from dyn_core.errors import SettingError, ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.payload import Payload
from dyn_core.problems import PAYLOAD_ESTIMATION
from dyn_core.solving.registry import solver, solver_of
from dyn_core.spatial.conventions.common import quaternion
from dyn_core.validation import (
    Quantity,
    check_object,
    float_array,
    known_keywords,
    shown,
)

# Matrix indices of Ixx, Ixy, Iyy, Ixz, Iyz, Izz, and their order in a Payload.
_PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_AS_PAYLOAD = [0, 1, 3, 2, 4, 5]
LONGEST = 2.5  # time between two states, in periods, that interrupts the estimation
EARLY = 1e-6  # fraction of a period by which a state may be early: rounding of times
STEADY = 1e-6  # least deviation of a velocity that no joint moves [rad/s | m/s]


@known_keywords
@dataclass(frozen=True)
class PayloadSettings:
    """Settings of a payload estimator.

    Attributes:
        link: Name of the link that carries the payload.
        velocity_noise: Standard deviation of joint velocities, (nv,) or one number, > 0
            [rad/s | m/s].
        effort_noise: Standard deviation of joint forces, including errors of the Model
            such as friction, (nv,) or one number [N·m | N]; with a sensor, of its
            wrench, [moment; force], (6,) or one number [N·m; N].
        effort_memory: Correlation time of the effort errors; 0: errors of two cycles
            are independent [s].
        largest_mass: Standard deviation of the mass before the first cycle [kg].
        reach: Standard deviation of the payload's extent around the link's origin
            before the first cycle [m].
        drift: Fraction of the prior deviations by which the payload may change in a
            second.
        period: Time between two states that are compared; all efforts between them are
            averaged [s].
        estimator: Solver of PAYLOAD_ESTIMATION with the option `frame`, by name or as
            object.
        sensor: Link of a force-torque sensor that carries `link`, whose wrench takes
            the place of the joint forces, see SensedLink; empty: none.

    Raises:
        SettingError: largest_mass, reach, period or a velocity_noise is not above 0, or
            drift, effort_memory or an effort_noise is negative. PayloadEstimator checks
            the number of noises.
    """

    link: str
    velocity_noise: Any = 1e-3
    effort_noise: Any = 0.2
    effort_memory: float = 0.0
    largest_mass: float = 10.0
    reach: float = 0.3
    drift: float = 0.0
    period: float = 0.02
    estimator: Any = "payload_filter"
    sensor: str = ""

    def __post_init__(self) -> None:
        above, any_size = Quantity(0.0, above=True), Quantity(0.0)
        kinds = {"largest_mass": above, "reach": above, "drift": any_size}
        kinds |= {"effort_memory": any_size, "period": above}
        for name, kind in kinds.items():
            try:
                kind.read(f"payload: {name}", getattr(self, name))
            except ValueError as error:
                raise SettingError(str(error), name) from error
        for name in ("velocity_noise", "effort_noise"):
            _check_noise(name, getattr(self, name))

    @property
    def prior(self) -> np.ndarray:
        """Prior deviations of m, m c and six moments, (10,) [kg; kg·m; kg·m²].

        largest_mass times 1, reach for each of m c, and reach² for each moment.
        """
        mass, reach = self.largest_mass, self.reach
        return mass * np.array([1.0, *[reach] * 3, *[reach**2] * 6])


def _check_noise(name: str, noise: Any) -> None:
    """Raise a SettingError unless noise is finite and > 0 (effort_noise: >= 0)."""
    try:
        numbers = float_array(name, noise, "noises")
    except ShapeError as error:
        message = f"{name} is {shown(noise)}; valid: a number, or one a joint"
        raise SettingError(message, name) from error
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        message = f"{name} must be finite and >= 0, got {numbers.tolist()}"
        raise SettingError(message, name)
    if name == "velocity_noise" and not numbers.all():
        raise SettingError("velocity_noise must be above zero", name)


class SensedLink:
    """The links that a force-torque sensor carries, as a floating robot.

    Gravity and the sensor move it. The sensor's wrench on its link is minus the reading
    (see simulation.contacts.WrenchSensor), so a constant offset counts as payload. The
    one joint of `model` is between world and the sensor's link.
    """

    def __init__(self, robot: Model, link: str, engine: str | None) -> None:
        if not robot.frame(link).body:
            raise UnsupportedError(f"sensor: no joint moves link '{link}'")
        behind, build = {link}, robot.build
        for _ in build.description.joints:
            behind |= {x.child for x in build.description.joints if x.parent in behind}
        names = {x.name for x in build.description.joints if x.child in behind - {link}}
        moving = sorted(names & set(robot.joint_names))
        if moving:
            raise UnsupportedError(
                f"sensor: joint '{moving[0]}' moves behind '{link}'; valid: a link"
                " behind which no joint moves"
            )
        lock = {name: build.lock[name] for name in names & set(build.lock)}
        self.model = robot.rebuilt(
            root=link, root_joint="floating", lock=lock, drives={}, joints={}, forces=()
        )
        more = {"engine": engine, "inputs": ["time"] if robot.driven else []}
        self._poses = solver("forward_kinematics").build(robot, frames=[link], **more)
        # J qd alone lacks the velocity of driven places.
        self._jacobian, self._velocity = (
            solver(name).build(robot, frame=link, reference="local", **more)
            for name in ("jacobian", "frame_velocity")
        )
        for program in (self._poses, self._jacobian, self._velocity):
            program.prepare()

    def state(self, q: Any, qd: Any, noise: Any, *time: float) -> tuple[Any, Any, Any]:
        """Return position (7,) and velocity (6,) of the link, and its deviations (6,).

        The position is x, y, z [m] and quaternion x, y, z, w in the base. The velocity
        is [angular; linear] in the link's axes [rad/s; m/s]; its deviations, from those
        of qd (`noise`), are at least 1e-6.
        """
        T, J = self._poses(q, *time)[..., 0, :, :], self._jacobian(q, *time)
        position = np.concatenate([T[..., :3, 3], quaternion(T[..., :3, :3])], axis=-1)
        squares = ((J * noise) ** 2).sum(axis=-1)
        return position, self._velocity(q, qd, *time), np.sqrt(squares + STEADY**2)


@dataclass(frozen=True)
class PayloadEstimate:
    """Inertial parameters of a payload with their covariance; for a batch one row each.

    Attributes:
        ten: Inertial parameters m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the
            link's origin in the link frame, (10,).
        covariance: Covariance of `ten`, (10, 10).
        time: Time of the last state [s].
    """

    ten: np.ndarray
    covariance: np.ndarray
    time: float

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of `ten`, (10,), in its order."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    @property
    def mass(self) -> np.ndarray:
        """Mass [kg]; noise may make it negative, see `possible`."""
        return self.ten[..., 0]

    @property
    def moments(self) -> np.ndarray:
        """First moments m c in the link frame, (3,) [kg·m]."""
        return self.ten[..., 1:4]

    @property
    def com(self) -> np.ndarray:
        """Centre of mass in the link frame, (3,) [m].

        NaN unless the mass is positive.
        """
        return self._centred()[0][..., :3]

    @property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass: xx xy xz yy yz zz, (6,) [kg·m²].

        In the link frame; NaN unless the mass is positive.
        """
        return self._centred()[0][..., 3:]

    @property
    def com_deviations(self) -> np.ndarray:
        """Standard deviations of the centre of mass, (3,) [m]; NaN as `com`."""
        return self._centred_deviations()[..., :3]

    @property
    def inertia_deviations(self) -> np.ndarray:
        """Standard deviations of `inertia`, (6,) [kg·m²]; NaN as `inertia`."""
        return self._centred_deviations()[..., 3:]

    @property
    def possible(self) -> bool:
        """Whether `payload` accepts the estimate: mass and inertia of a real body.

        Only for one robot, not for a batch.
        """
        try:
            self.payload()
        except SettingError:
            return False
        return True

    def payload(self) -> Payload:
        """Return the estimate of one robot as a Payload that a controller can attach.

        Not for a batch.

        Raises:
            SettingError: The mass is not positive, or no body has this inertia.
        """
        if not self.mass > 0:
            raise SettingError(f"payload: mass {self.mass:g} kg; valid: above 0", "ten")
        return Payload(float(self.mass), self.com.tolist(), self.inertia.tolist())

    def _centred(self) -> tuple[np.ndarray, np.ndarray]:
        """Return c and Ic, (9,), and their derivatives by the ten parameters, (9, 10).

            c = h / m,   Ic = I - (h.h 1 - h h.T) / m

        m, h and I, about the link's origin, are of `ten`; Ic is in the order xx xy xz
        yy yz zz. Values are NaN unless the mass is positive.
        """
        m, h = np.where(self.mass > 0, self.mass, np.nan), self.moments
        values = np.zeros((*m.shape, 9))
        slopes = np.zeros((*m.shape, 9, 10))
        values[..., :3] = c = h / m[..., None]
        for k in range(3):
            slopes[..., k, 0], slopes[..., k, 1 + k] = -c[..., k] / m, 1 / m
        for n, (i, j) in enumerate(_PLACES):
            row = 3 + _AS_PAYLOAD.index(n)
            same = float(i == j)
            shape = (c * c).sum(axis=-1) * same - c[..., i] * c[..., j]
            values[..., row] = self.ten[..., 4 + n] - m * shape
            slopes[..., row, 4 + n], slopes[..., row, 0] = 1.0, shape
            slopes[..., row, 1:4] = -2 * same * c
            slopes[..., row, 1 + i] += c[..., j]
            slopes[..., row, 1 + j] += c[..., i]
        return values, slopes

    def _centred_deviations(self) -> np.ndarray:
        """Return the standard deviations of _centred to first order, (9,)."""
        A = self._centred()[1]
        return np.sqrt(np.einsum("...ij,...jk,...ik->...i", A, self.covariance, A))


class PayloadEstimator:
    """Estimates the payload of a link cycle by cycle, for one robot or a batch.

    For a batch, every array has one row per robot. As one of `Controller.observers` it
    receives the efforts that are sent; it never stops the robot.

    Attributes:
        settings: Settings as given.
        estimate: Last PayloadEstimate; None before the first state.
        cycles: Number of calls of the solver: evaluated periods, and states that began
            one, such as the first.
        outliers: Number of periods that were rejected as outliers; for a batch one
            number per robot, as in `changes` and `mismatch`.
        changes: Number of detected changes of the payload.
        mismatch: Mean square of the normalised prediction errors. Above 1, noise or
            model errors are larger than assumed; the deviations of the estimate are
            then scaled by its square root.
    """

    def __init__(
        self, model: Model, settings: PayloadSettings, engine: str | None = None
    ) -> None:
        """Build the Program of the estimator.

        Args:
            model: Robot without the payload.
            settings: Settings of the estimation.
            engine: Engine of the Program; None: the default.

        Raises:
            SettingError: The number of noises is wrong, or `settings` are no
                PayloadSettings.
            SignatureError: The solver does not solve PAYLOAD_ESTIMATION.
            SolverNotFound: No solver has the name settings.estimator.
            PluginError: Two plugins offer this name.
            ModelError: The robot has no link settings.link or settings.sensor, or the
                sensor's link does not carry settings.link.
            UnsupportedError: No joint moves the link (with a sensor: the sensor's
                link), a joint moves behind the sensor's link, or the solver does not
                support the robot, such as one with loops.
        """
        check_robot(model, type(self).__name__)
        check_object("settings", settings, PayloadSettings)
        self.settings, nv = settings, model.nv
        self.velocity_noise = checked_gains(
            "velocity_noise", settings.velocity_noise, nv
        )
        self.driven, self._sensed = bool(model.driven), None
        if settings.sensor:
            self._sensed = SensedLink(model, settings.sensor, engine)
            model = self._sensed.model
        self.effort_noise = checked_gains(
            "effort_noise", settings.effort_noise, model.nv
        )
        self.program = solver_of(settings.estimator, PAYLOAD_ESTIMATION).build(
            model, frame=settings.link, joint_friction=True, joint_springs=True,
            engine=engine, inputs=["time"] if model.driven else [],
        )  # fmt: skip
        self.program.prepare()
        self._nothing = np.zeros(self._size("memory"))
        self._sent = np.zeros(nv)
        self.forget()

    def _size(self, name: str) -> Any:
        """Return the shape of the Program's input with this name."""
        return next(port.shape for port in self.program.inputs if port.name == name)

    def forget(self) -> None:
        """Discard the estimate, its memory, all counters and the unfinished period.

        `estimate` becomes None, and `mismatch` 1.
        """
        self.estimate: PayloadEstimate | None = None
        self._memory = self._nothing
        self.cycles = 0
        self.outliers: Any = 0
        self.changes: Any = 0
        self._squares: Any = 0.0
        self._count: Any = 0
        self._compared, self._impulse = 0.0, np.zeros(1)
        self._steps: list[float] = []
        self.restart()

    def restart(self) -> None:
        """Interrupt the motion: the next state begins a new period.

        The estimate is retained, and the efforts of the unfinished period are dropped.
        To be called if forces other than the reported efforts, such as brakes, have
        held the robot.
        """
        self.time: float | None = None

    @property
    def mismatch(self) -> Any:
        """Mean square of the normalised prediction errors; 1 before the first."""
        return np.where(self._count > 0, self._squares / np.maximum(self._count, 1), 1)

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> PayloadEstimate:
        """Return the estimate after another state; it changes once in settings.period.

        In between it is the last one. If time goes back, or advances by more than 2.5
        periods, the estimate stays: the state begins a new period, and the efforts of
        the unfinished one are dropped. The first estimate is zero, with the deviations
        settings.prior.

        Args:
            t: Time [s], also of driven joints.
            q, qd: Joint position, (nq,), and velocity, (nv,), at this time.
            tau: Joint forces applied since the previous cycle, (nv,) [N·m | N]; with a
                sensor, its reading since then, [moment; force], in the axes of its link
                (6,). Not read by a call that begins a period without ending one.

        Raises:
            ShapeError: An array has another shape; tested only in the cycle that begins
                or ends a period. ValueError if the sizes of tau within a period differ.
        """
        step = math.inf if self.time is None else t - self.time
        self.time = t
        if not 0.0 <= step <= LONGEST * self.settings.period or self.estimate is None:
            return self._compare(t, q, qd, None, 0.0)
        self._impulse = self._impulse + step * np.asarray(tau, float)
        self._steps.append(step)
        dt = t - self._compared
        if dt < (1 - EARLY) * self.settings.period:
            return self.estimate
        return self._compare(t, q, qd, self._impulse / dt, dt)

    def _compare(
        self, t: float, q: Any, qd: Any, tau: np.ndarray | None, dt: float
    ) -> PayloadEstimate:
        """Run the estimator over one period; store and return the new estimate.

        The memory, counters and `mismatch` are updated, and a new period begins. `tau`
        is the mean joint force, (nv,), or reading of the sensor, [moment; force], (6,).
        With dt 0 it may be None, and nothing is compared: the payload stays, and the
        momentum difference begins anew.
        """
        prior, noise = self.settings.prior, self.velocity_noise
        time = (t,) if self.driven else ()
        if self._sensed:
            q, qd, noise = self._sensed.state(q, qd, noise, *time)
            tau, time = None if tau is None else -tau, ()
        tau = np.zeros(np.shape(qd)) if tau is None else tau
        ten, covariance, square, used, changed, self._memory = self.program(
            q, qd, tau, dt, noise, self._effort_noise(dt), prior,
            self.settings.drift * prior, self._memory, *time,
        )  # fmt: skip
        self._compared, self._impulse, self._steps = t, np.zeros(1), []
        self.cycles += 1
        new, counts = np.asarray(changed) > 0, np.asarray(used) > 0
        self.changes = self.changes + new
        self.outliers = self.outliers + (~counts & ~new if dt else 0 * new)
        # The square of an outlier may be infinite, and 0 * inf is NaN.
        self._squares = self._squares + np.where(counts, square, 0.0)
        self._count = self._count + counts
        worse = np.maximum(self.mismatch, 1.0)[..., None, None]
        self.estimate = PayloadEstimate(ten, covariance * worse, t)
        return self.estimate

    def _effort_noise(self, dt: float) -> np.ndarray:
        """Return the deviations of mean joint forces, (nv,), or of a mean wrench, (6,).

        The mean of n independent errors has 1/n of their variance. Correlated errors
        have (1 + a) / (1 - a) times as much, with a = exp(-step / effort_memory). With
        dt 0 they are those of a single effort.
        """
        if not dt:
            return self.effort_noise
        share = math.sqrt(sum(x * x for x in self._steps)) / dt
        if self.settings.effort_memory:
            a = math.exp(-dt / len(self._steps) / self.settings.effort_memory)
            share *= math.sqrt((1 + a) / max(1 - a, 1e-12))
        return self.effort_noise * share

    def observe(self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> None:
        """Process a state as `update`, with the effort of the previous call.

        The estimate changes once per period; a time that goes back, or a gap above 2.5
        periods, begins a new one. It never stops the robot. That the estimator has no
        sensor is not checked: it would take tau as its reading. See
        dyn_core.control.observers.

        Args:
            t: Time [s].
            q, qd: Joint position and velocity at this time, (nv,).
            tau: Effort applied from this time on, (nv,) [N·m | N].

        Raises:
            ShapeError, ValueError: q, qd or tau has another shape, see `update`.
        """
        self.update(t, q, qd, self._sent)
        self._sent = np.array(tau, float)
