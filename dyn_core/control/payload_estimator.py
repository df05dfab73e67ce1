"""The payload of a link, estimated from motion and effort while the robot moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.law_programs import checked_gains
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.payload import Payload
from dyn_core.problems import PAYLOAD_ESTIMATION
from dyn_core.solving.registry import solver
from dyn_core.validation import Quantity, known_keywords

# Places of Ixx, Ixy, Iyy, Ixz, Iyz, Izz, and where Payload has them.
_PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_AS_PAYLOAD = [0, 1, 3, 2, 4, 5]
LONGEST = 2.5  # periods between two states beyond which the second begins anew
EARLY = 1e-6  # share of a period by which a state may be early


@known_keywords
@dataclass(frozen=True)
class PayloadSettings:
    """How a payload is estimated.

    Attributes:
        link: Link that carries it.
        velocity_noise: Standard deviation of velocities, (nv,) or one number, above
            zero [rad/s | m/s].
        effort_noise: That of joint forces, with what the Model has wrong about them
            (friction), (nv,) or one number [N·m | N].
        effort_memory: Time in which errors of joint forces forget themselves; 0: those
            of two cycles are independent [s].
        largest_mass, reach: Standard deviation of the mass before the first cycle
            [kg], and of the payload's extent around the link's origin [m].
        drift: By how much of these deviations a payload changes in a second.
        period: Time between two states that are compared; all efforts between them
            count [s].
        estimator: Solver of PAYLOAD_ESTIMATION with the option `frame`, by name or as
            object.
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

    def __post_init__(self) -> None:
        above, any_size = Quantity(0.0, above=True), Quantity(0.0)
        kinds = {"largest_mass": above, "reach": above, "drift": any_size}
        kinds |= {"effort_memory": any_size, "period": above}
        for name, kind in kinds.items():
            try:
                kind.read(f"payload: {name}", getattr(self, name))
            except ValueError as error:
                raise SettingError(str(error), name) from error

    @property
    def prior(self) -> np.ndarray:
        """Standard deviations before the first cycle, (10,)."""
        mass, reach = self.largest_mass, self.reach
        return mass * np.array([1.0, *[reach] * 3, *[reach**2] * 6])


@dataclass(frozen=True)
class PayloadEstimate:
    """A payload with its uncertainty, or many: arrays then have a row each.

    Attributes:
        ten: m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin, (10,).
        covariance: Of these, (10, 10).
        time: Of the last state [s].
    """

    ten: np.ndarray
    covariance: np.ndarray
    time: float

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the ten numbers, (10,)."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    @property
    def mass(self) -> np.ndarray:
        """Mass; noise may make it negative, see `possible` [kg]."""
        return self.ten[..., 0]

    @property
    def moments(self) -> np.ndarray:
        """First moments m c, (3,) [kg·m]."""
        return self.ten[..., 1:4]

    @property
    def com(self) -> np.ndarray:
        """Centre of mass in the frame of the link, (3,); NaN without a mass [m]."""
        return self._centred()[0][..., :3]

    @property
    def inertia(self) -> np.ndarray:
        """Inertia about the centre of mass, xx xy xz yy yz zz, (6,) [kg·m²]."""
        return self._centred()[0][..., 3:]

    @property
    def com_deviations(self) -> np.ndarray:
        """Standard deviations of the centre of mass, (3,) [m]."""
        return self._centred_deviations()[..., :3]

    @property
    def inertia_deviations(self) -> np.ndarray:
        """Standard deviations of the inertia about the centre of mass, (6,) [kg·m²]."""
        return self._centred_deviations()[..., 3:]

    @property
    def possible(self) -> bool:
        """Whether a body has these numbers: its mass and moments are not negative."""
        try:
            self.payload()
        except SettingError:
            return False
        return True

    def payload(self) -> Payload:
        """Return the estimate as what a controller can attach.

        Raises:
            SettingError: No body has such a mass and inertia; says which is wrong.
        """
        if not self.mass > 0:
            raise SettingError(f"payload: mass {self.mass:g} kg; valid: above 0", "ten")
        return Payload(float(self.mass), self.com.tolist(), self.inertia.tolist())

    def _centred(self) -> tuple[np.ndarray, np.ndarray]:
        """Return c and Ic, (9,), and their derivatives by the ten numbers, (9, 10).

        c = h / m,   Ic = I - (h.h 1 - h h.T) / m
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
        """Return the deviations of c and Ic, (9,), to first order."""
        A = self._centred()[1]
        return np.sqrt(np.einsum("...ij,...jk,...ik->...i", A, self.covariance, A))


class PayloadEstimator:
    """Estimates the payload of a link from cycle to cycle, of one robot or of many.

    Of many, all arrays have a row a robot. As one of `Controller.observers` it sees
    the efforts that are sent, and never stops the robot.

    Attributes:
        settings: What was asked for.
        estimate: The last one; None before the first state.
        cycles, outliers: Number of periods since the start, and of those left out.
        changes: Number of times that it was noticed to be another payload.
        mismatch: Mean square of the prediction errors by their deviations: above 1,
            noise or Model are worse than said; the deviations of the estimate are then
            larger by its square root.
    """

    def __init__(
        self, model: Model, settings: PayloadSettings, engine: str | None = None
    ) -> None:
        """Build the Program.

        Args:
            model: Robot without the payload.
            settings: What is asked for.
            engine: Engine of the Program.
        """
        self.settings, nv = settings, model.nv
        self.velocity_noise = checked_gains(
            "velocity_noise", settings.velocity_noise, nv
        )
        if not (self.velocity_noise > 0).all():
            raise SettingError("velocity_noise must be above zero", "velocity_noise")
        self.effort_noise = checked_gains("effort_noise", settings.effort_noise, nv)
        self.driven = bool(model.driven)
        made = solver(settings.estimator, PAYLOAD_ESTIMATION)
        if made.signature != PAYLOAD_ESTIMATION:
            raise SettingError(
                f"{made.name} solves {made.signature.name}; valid: a solver of"
                " payload_estimation, such as payload_filter",
                "estimator",
            )
        self.program = made.build(
            model,
            frame=settings.link,
            joint_friction=True,
            joint_springs=True,
            engine=engine,
            inputs=["time"] if self.driven else [],
        )
        self.program.prepare()
        self._nothing = np.zeros(self._size("memory"))
        self._sent = np.zeros(nv)
        self.forget()

    def _size(self, name: str) -> Any:
        return next(port.shape for port in self.program.inputs if port.name == name)

    def forget(self) -> None:
        """Forget the payload."""
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
        """Let the next state not continue the last one; the payload is kept.

        Such as where something else than the efforts holds the robot.
        """
        self.time: float | None = None

    @property
    def mismatch(self) -> Any:
        """Mean square of the prediction errors by their deviations; 1 at first."""
        return np.where(self._count > 0, self._squares / np.maximum(self._count, 1), 1)

    def update(self, t: float, q: Any, qd: Any, tau: Any) -> PayloadEstimate:
        """Return the estimate after another state; it changes once in a period.

        Where the time goes back, or by more than 2.5 periods, the state does not
        continue the last one.

        Args:
            t: Time [s].
            q, qd: State at this time.
            tau: Joint forces since the cycle before [N·m | N].
        """
        step = math.inf if self.time is None else t - self.time
        self.time = t
        if not 0.0 <= step <= LONGEST * self.settings.period or self.estimate is None:
            return self._compare(t, q, qd, np.zeros(np.shape(qd)), 0.0)
        self._impulse = self._impulse + step * np.asarray(tau, float)
        self._steps.append(step)
        dt = t - self._compared
        if dt < (1 - EARLY) * self.settings.period:
            return self.estimate
        return self._compare(t, q, qd, self._impulse / dt, dt)

    def _compare(
        self, t: float, q: Any, qd: Any, tau: np.ndarray, dt: float
    ) -> PayloadEstimate:
        """Estimate from the mean joint forces of a time dt; 0: begin the momentum."""
        prior = self.settings.prior
        ten, covariance, square, used, changed, self._memory = self.program(
            q, qd, tau, dt, self.velocity_noise, self._effort_noise(dt), prior,
            self.settings.drift * prior, self._memory, *((t,) if self.driven else ()),
        )  # fmt: skip
        self._compared, self._impulse, self._steps = t, np.zeros(1), []
        self.cycles += 1
        new, counts = np.asarray(changed) > 0, np.asarray(used) > 0
        self.changes = self.changes + new
        self.outliers = self.outliers + (~counts & ~new if dt else 0 * new)
        self._squares = self._squares + counts * np.asarray(square)
        self._count = self._count + counts
        worse = np.maximum(self.mismatch, 1.0)[..., None, None]
        self.estimate = PayloadEstimate(ten, covariance * worse, t)
        return self.estimate

    def _effort_noise(self, dt: float) -> np.ndarray:
        """Return the deviations of mean joint forces.

        The mean of n independent errors has 1/n of their variance; of errors with a
        memory (1 + a) / (1 - a) times as much, a = exp(-step / effort_memory).
        """
        if not dt:
            return self.effort_noise
        share = math.sqrt(sum(x * x for x in self._steps)) / dt
        if self.settings.effort_memory:
            a = math.exp(-dt / len(self._steps) / self.settings.effort_memory)
            share *= math.sqrt((1 + a) / max(1 - a, 1e-12))
        return self.effort_noise * share

    def observe(self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> None:
        """Take a state, and the effort from now on; see dyn_core.control.observers.

        Args:
            t: Time [s].
            q, qd: State at this time, (nv,).
            tau: Effort from now on, (nv,) [N·m | N].
        """
        self.update(t, q, qd, self._sent)
        self._sent = np.array(tau, float)
