"""Checked measurements, as rows of a least-squares problem.

Joint forces and their derivatives by parameter paths are rows of the same problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import (
    IdentificationError,
    NonFiniteError,
    SettingError,
    ShapeError,
    unknown_name,
)
from dyn_core.identification.regressor_rank import regressor_of
from dyn_core.identification.selection import Unknowns
from dyn_core.model import Model, parameter_paths
from dyn_core.solving.registry import solver
from dyn_core.validation import float_array, shaped_array

AT_ONCE = 4096  # samples in one call, so that the results fit into memory
_ACTS = {"joint_friction": True, "joint_springs": True}
Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(eq=False)
class PathForces:
    """tau = ID(q, qd, qdd; p) and dtau/dp, by compiled parameter derivatives.

    Payloads act linearly: their columns do not change. Parameters of joints and springs
    are inputs of one Program; for other paths a Program is built at each p
    (`built_anew`). Each row averages `average` samples of `motion`, q, qd, qdd.
    """

    unknowns: Unknowns
    motion: Motion
    average: int = 1

    def __post_init__(self) -> None:
        model, paths = self.unknowns.model, self.unknowns.paths
        kinds = {path: parameter_paths.kind_of(model, path) for path in paths}
        self._inputs = [
            path for path, kind in kinds.items() if kind.owner in ("joint", "spring")
        ]
        self.built_anew = any(
            kind.owner not in ("joint", "spring") and kind.name != "payload"
            or kind.name in ("origin", "plug")
            for kind in kinds.values()
        )  # fmt: skip
        if self.built_anew:
            self._inputs = []
        self._program: Any = None
        self._payloads = [x for x in paths if kinds[x].name == "payload"]

    @property
    def linear(self) -> bool:
        """Whether all paths are linear: payload, damping, dry friction, armature."""
        kinds = {path.rpartition(".")[2] for path in self.unknowns.paths}
        return kinds <= {
            "payload", "damping", "friction", "friction_asymmetry", "armature",
        }  # fmt: skip

    def at_numbers(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the model's tau (rows, nv) and its derivatives by parameters of paths.

        Joint friction and springs act. The derivatives, (rows, nv, chosen), are by the
        sought numbers of the paths, in their order. Of z, the values of all parameters,
        those of a layout are ignored: tau is computed with the robot's own. If
        `built_anew`, values that are not finite raise ModelError, an axis without
        direction SingularError.
        """
        unknowns = self.unknowns
        values = unknowns.path_values(z)
        model = unknowns.model
        if not unknowns.paths:
            program = self._once(lambda: solver("rnea").build(model, **_ACTS))
            tau = self.averaged(lambda *motion: np.asarray(program(*motion)))
            return tau, np.zeros((*tau.shape, 0))
        if self.built_anew:
            model = model.with_values({k: x.tolist() for k, x in values.items()})
        program = self._once(
            lambda: solver("parameter_jacobian").build(
                model, paths=list(unknowns.paths), inputs=self._inputs, **_ACTS
            )
        )
        numbers = [values[path] for path in self._inputs]
        fixed = [float(x[0]) if len(x) == 1 else x for x in numbers]

        def both(*motion: np.ndarray) -> np.ndarray:
            tau, slopes = program(*motion, *fixed)
            return np.concatenate([np.asarray(tau)[..., None], slopes], axis=2)

        rows = self.averaged(both)
        tau, slopes = rows[..., 0], rows[..., 1:]
        if not self.built_anew:
            tau = tau + self._of_payloads(slopes, values)
        return tau, slopes[..., list(unknowns.chosen)]

    def averaged(self, function: Callable[..., np.ndarray]) -> np.ndarray:
        """Return function(q, qd, qdd), averaged as by the function `averaged`."""
        return averaged(function, self.motion, self.average)

    def _once(self, build: Callable[[], Any]) -> Any:
        """Return the Program of `build()`, which is cached unless `built_anew`."""
        if self._program is None or self.built_anew:
            self._program = build()
        return self._program

    def _of_payloads(
        self, slopes: np.ndarray, values: dict[str, np.ndarray]
    ) -> np.ndarray:
        """Return the joint forces of payloads, (rows, nv), which the Program has not.

        It is linear in them. `slopes` are derivatives by the numbers of `values`, in
        order.
        """
        total, first = np.zeros(slopes.shape[:2]), 0
        for path, numbers in values.items():
            last = first + len(numbers)
            if path in self._payloads:
                total += slopes[..., first:last] @ numbers
            first = last
        return total


def averaged(
    function: Callable[..., np.ndarray], arrays: tuple[np.ndarray, ...], average: int
) -> np.ndarray:
    """Return function(*arrays), averaged over consecutive samples, (rows, ...).

    A call of `function` gets about AT_ONCE (4096) samples. An incomplete last group is
    left out; the only group is then not averaged.
    """
    count = len(arrays[0]) // average * average
    pieces = []
    step = max(AT_ONCE // average, 1) * average
    for first in range(0, count, step):
        part = [x[first : min(first + step, count)] for x in arrays]
        rows = function(*part)
        pieces.append(rows.reshape(-1, average, *rows.shape[1:]).mean(axis=1)
                      if average > 1 else rows)  # fmt: skip
    return np.concatenate(pieces) if pieces else function(*arrays)


NOISE_FLOOR = 1e-6  # smallest noise of a joint, fraction of its largest force
MOST_NAMED = 6
HUBER = 1.345  # deviations beyond which residuals count less, Huber's choice
MOST_ALIKE = 0.98  # upper limit of the correlation of consecutive rows
CHANCE = 3.0  # standard deviations of chance below which a correlation is ignored
IDLE = 0.05  # share of rows without forces that is asked about
ALIKE = 0.9  # cosine above which forces are multiples of each other
FOREIGN = 100.0  # factor between forces above which they are in different units
GEARED = 20.0  # the same, where all joints with enough of a force have one factor
ENOUGH = 0.25  # least such force of a joint, fraction of that of the strongest
ONE = 1.5  # ratio of the joints' factors up to which they are one
FEWEST = 64  # minimum number of means for estimating a correlation
NORMAL = 1.4826  # standard deviation by median absolute value, normal distribution


def absent_forces(tau: np.ndarray, t: np.ndarray | None = None) -> str:
    """Return a question on rows in which all joint forces are exactly 0, or "".

    It is asked if these are more than 5 % (IDLE) of the rows, but not all.
    """
    idle = ~tau.any(axis=1)
    share = float(idle.mean()) if len(tau) else 0.0
    if not IDLE < share < 1.0:
        return ""
    first = "" if t is None else f", first at t = {t[idle.argmax()]:.4g} s"
    asked = "had the robot stopped, or was it not driven"
    return f"tau is 0 in {100 * share:.2g} % of the rows{first}: {asked}?"


def doubtful_forces(measured: np.ndarray, predicted: np.ndarray) -> str:
    """Return a question on the sign or the unit of measured joint forces, or "".

    It is asked if measured and predicted ones, (rows, nv) [N·m | N], differ by a factor
    that is negative or beyond 1 / 100 to 100, and by little else: the cosine between
    them is above 0.9. So are factors beyond 1 / 20 to 20, such as of motors before the
    gear, where that holds for each joint with large forces, and their factors agree.
    """
    product, square = float(np.vdot(measured, predicted)), float((predicted**2).sum())
    length = np.sqrt(square * float((measured**2).sum()))
    if not length > 0 or abs(product) < ALIKE * length:
        return ""
    factor = product / square
    if factor < 0:
        asked = "has tau the other sign? it"
    elif not 1 / FOREIGN < factor < FOREIGN:
        asked = "is tau in N·m? it"
    elif not 1 / GEARED < factor < GEARED and _one_factor(measured, predicted):
        motors = " behind the gears, not of the motors" if factor < 1 else ""
        asked = f"is tau in N·m{motors}? it"
    else:
        return ""
    return f"{asked} is {factor:.3g} times what this robot needs for this motion"


def _one_factor(measured: np.ndarray, predicted: np.ndarray) -> bool:
    """Return whether the joints with large forces are one multiple of the predicted.

    Each has a cosine above 0.9, so that noise and friction do not make a factor.

    Args:
        measured, predicted: Joint forces, (rows, nv), not all zero [N·m | N].
    """
    squares = (predicted**2).sum(axis=0)
    large = squares >= ENOUGH**2 * squares.max()
    products = (measured * predicted).sum(axis=0)[large]
    lengths = np.sqrt(squares * (measured**2).sum(axis=0))[large]
    if not (products > ALIKE * lengths).all():
        return False
    factors = products / squares[large]
    return bool(factors.max() <= ONE * factors.min())


@dataclass(eq=False)
class Measurements:
    """Checked measurements, which can be linearised about parameters z.

        tau = ID(q, qd, qdd; p) + Y (pi - pi0) - delay dtau/dt

    z has the n parameters of `unknowns`, (n,), in their order. If a Program is built
    for each z, methods with it raise ModelError for values of paths that are not
    finite, and SingularError for an axis without direction.

    Attributes:
        forces: ID and its derivatives by parameter paths.
        Y: Regressor of the layout, (rows, nv, linear).
        tau: Measured joint forces, (rows, nv).
        rate: Their time derivative, (rows, nv); None: no delay is identified.
        robust: Whether large residuals count less.
        noise: Standard deviation of each coordinate's rows, (nv,).
        trust: Weight of each row, (rows, nv), 1 unless it is an outlier.
    """

    unknowns: Unknowns
    forces: PathForces
    Y: np.ndarray
    tau: np.ndarray
    rate: np.ndarray | None
    robust: bool
    noise: np.ndarray = field(init=False)
    trust: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.noise = np.ones(self.tau.shape[1])
        self.trust = np.ones(self.tau.shape)
        self._known: tuple[np.ndarray, np.ndarray] | None = None
        self._key = np.zeros(0)
        self._factors: list[np.ndarray] | None = None

    @classmethod
    def of(
        cls,
        unknowns: Unknowns,
        arrays: list[np.ndarray],
        rate: np.ndarray | None,
        average: int,
        robust: bool,
    ) -> Measurements:
        """Return the measurements of checked arrays; noise and trust are 1.

        The arrays are q (samples, nq), then qd, qdd and tau, (samples, nv); `rate` is
        the time derivative of tau, or None. Rows are as of `averaged`.
        """
        motion, layout = (arrays[0], arrays[1], arrays[2]), unknowns.layout
        tau = averaged(lambda x: x, (arrays[3],), average)
        Y = np.zeros((*tau.shape, 0))
        if layout is not None:
            program = regressor_of(layout)
            Y = averaged(lambda *m: np.asarray(program(*m)), motion, average)
        slope = None if rate is None else averaged(lambda x: x, (rate,), average)
        return cls(
            unknowns, PathForces(unknowns, motion, average), Y, tau, slope, robust
        )

    def rows(self, chosen: np.ndarray) -> Measurements:
        """Return rows by index; noise and Program are shared, trust is copied."""
        n, forces = self.forces.average, self.forces
        samples = (chosen[:, None] * n + np.arange(n)).ravel()
        q, qd, qdd = (x[samples] for x in forces.motion)
        part = replace(
            self,
            forces=replace(forces, motion=(q, qd, qdd)),
            Y=self.Y[chosen],
            tau=self.tau[chosen],
            rate=None if self.rate is None else self.rate[chosen],
        )
        part.forces._program = forces._program
        part.noise, part.trust = self.noise, self.trust[chosen]
        return part

    def torques(self, z: np.ndarray) -> np.ndarray:
        """Return joint forces (rows, nv) for z; a delay shifts them to first order."""
        tau, layout, m = (
            self._of_paths(z)[0],
            self.unknowns.layout,
            self.unknowns.linear,
        )
        if layout is not None:
            tau = tau + self.Y @ (z[:m] - layout.values)
        return tau if self.rate is None else tau - self.rate * z[-1]

    def _of_paths(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ID, (rows, nv), and its derivatives by paths, (rows, nv, chosen).

        ID are joint forces with the paths of z and the robot's own values of the
        layout. They are cached: without paths for good, else until an entry of z after
        those of the layout changes. Computing them discards the cached factorisation.
        """
        key = z[self.unknowns.linear :]
        old = self.unknowns.paths and not np.array_equal(self._key, key)
        if self._known is None or old:
            self._known, self._key = self.forces.at_numbers(z), key.copy()
            self._factors = None
        return self._known

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return measured minus predicted joint forces, (rows, nv) [N·m | N]."""
        return self.tau - self.torques(z)

    def linearized(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted rows A (few, n) and right sides b (few,), linearised about z.

        The least-squares solution of A z' = b is that of all measured rows, divided by
        the noise and weighted by trust. The rows of the coordinates follow each other;
        each coordinate's rows are reduced by QR factorisation.
        """
        blocks = self._factored(z)
        rows = np.concatenate([x / s for x, s in zip(blocks, self.noise, strict=True)])
        return rows[:, :-1], rows[:, -1]

    def reduced(self, z: np.ndarray) -> list[int]:
        """Return the number of rows of each coordinate in linearized(z), nv numbers."""
        return [len(x) for x in self._factored(z)]

    def slowness(self, z: np.ndarray) -> np.ndarray:
        """Return the number of rows that count as one observation, (nv,), 1 or more.

            m mean(mean_m²) / mean(left²) (1 + r_m) / (1 - r_m),   the largest of all m

        left are the residuals at z times sqrt(trust), mean_m are means of m = 1, 2, 4,
        ... consecutive ones, as long as there are 64, and r_m is the correlation of
        neighbouring means: slow components show in long means, even below noise. Values
        that chance explains are ignored.
        """
        left = self.residual(z) * np.sqrt(self.trust)
        square, slowness = _mean_square(left), np.ones(left.shape[1])
        count, m = len(left), 1
        while count >= 1:
            means = left[: count * m].reshape(count, m, -1).mean(axis=1)
            part = _mean_square(means)
            both = (means[1:] * means[:-1]).sum(axis=0) / count
            r = np.clip(both / np.where(part > 0, part, 1.0), 0.0, MOST_ALIKE)
            r[r < CHANCE / np.sqrt(count)] = 0.0
            grown = m * part / np.where(square > 0, square, 1.0)
            grown[grown < 1 + CHANCE * np.sqrt(2 / count)] = 1.0
            slowness = np.maximum(slowness, grown * (1 + r) / (1 - r))
            m *= 2
            count = len(left) // m if len(left) // m >= FEWEST else 0
        return slowness

    def _factored(self, z: np.ndarray) -> list[np.ndarray]:
        """Return for each coordinate few rows, (few, n + 1), with the same squares.

        The last column holds the right sides, for the parameters and not their changes.
        The rows are multiplied by sqrt(trust) and not divided by the noise. They are
        cached until the trust changes or, with paths, an entry of z after those of the
        layout.
        """
        _, slopes = self._of_paths(z)
        if self._factors is not None:
            return self._factors
        columns = [self.Y, slopes]
        if self.rate is not None:
            columns.append(-self.rate[..., None])
        J, left = np.concatenate(columns, axis=2), self.residual(z)
        weight = np.sqrt(self.trust)
        self._factors = [
            _few(
                np.column_stack([J[:, j], left[:, j] + J[:, j] @ z])
                * weight[:, j, None]
            )
            for j in range(left.shape[1])
        ]
        return self._factors

    def cost(self, z: np.ndarray) -> float:
        """Return the sum of (residual / noise)², or of Huber's function if `robust`."""
        sizes = np.abs(self.residual(z)) / self.noise
        if self.robust:
            far = HUBER * (2 * sizes - HUBER)
            return float(np.where(sizes > HUBER, far, sizes**2).sum())
        return float((sizes**2).sum())

    def rms(self, z: np.ndarray, fitted: float = 0.0) -> np.ndarray:
        """Return the root mean square of the residual, unweighted, (nv,) [N·m | N].

        `fitted` parameters per coordinate are subtracted from the number of rows.
        """
        left = self.residual(z)
        count = max(len(left) - fitted, 1.0)
        return np.asarray(np.sqrt((left * left).sum(axis=0) / count))

    def measure_noise(self, z: np.ndarray, fitted: float) -> None:
        """Set self.noise from the residual at z: its rms, or its median if robust.

        It is at least 1e-6 (NOISE_FLOOR) times the coordinate's largest force, 1 if it
        would be zero. The median is scaled as for normally distributed noise.
        """
        if self.robust:
            noise = NORMAL * np.median(np.abs(self.residual(z)), axis=0)
        else:
            noise = self.rms(z, fitted)
        floor = NOISE_FLOOR * np.abs(self.tau).max(axis=0, initial=0.0)
        self.noise = np.maximum(noise, floor)
        self.noise[self.noise == 0.0] = 1.0

    def measure_trust(self, z: np.ndarray) -> None:
        """Set self.trust from the residual at z, if robust; otherwise do nothing.

        It is 1 up to HUBER = 1.345 times the noise, and HUBER noise / |residual|
        beyond. The cached factorisation is discarded.
        """
        if self.robust:
            sizes = np.abs(self.residual(z)) / self.noise
            self.trust = HUBER / np.maximum(sizes, HUBER)
            self._factors = None


def _mean_square(x: np.ndarray) -> np.ndarray:
    """Return the mean square of each column, (n,), for x: (rows, n)."""
    return np.asarray((x * x).mean(axis=0))


def _few(rows: np.ndarray) -> np.ndarray:
    """Return rows R with R.T R = rows.T rows, at most one for each non-zero column.

    The other columns remain zero, so R need not be triangular.
    """
    used = rows.any(axis=0)
    part = rows[:, used]
    if len(part) > part.shape[1]:
        part = np.asarray(np.linalg.qr(part, mode="r"))
    few = np.zeros((len(part), rows.shape[1]))
    few[:, used] = part
    return few


def checked(model: Model, measured: Mapping[str, ArrayLike]) -> list[np.ndarray]:
    """Return the measurements as arrays of floats, in the order of `measured`.

    An array of floats is not copied.

    Args:
        model: Robot.
        measured: Mapping from name to array, (samples, nq) for q, else (samples, nv).

    Raises:
        ShapeError: An array has a wrong shape, another number of samples than the
            first, or is no numbers.
        NonFiniteError: An array holds NaN or infinity; names the samples.
    """
    arrays: list[np.ndarray] = []
    for name, values in measured.items():
        width = model.nq if name == "q" else model.nv
        array = float_array(name, values, f"shape (samples, {width})")
        if array.ndim != 2 or array.shape[1] != width:
            raise ShapeError(name, f"shape (samples, {width})", f"shape {array.shape}")
        if arrays and len(array) != len(arrays[0]):
            wanted = f"{len(arrays[0])} samples as q has"
            raise ShapeError(name, wanted, f"{len(array)} samples")
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            rows = ", ".join(map(str, bad[:MOST_NAMED]))
            raise NonFiniteError(
                f"{name} holds NaN or infinity in {len(bad)} samples ({rows}"
                f"{', ...' if len(bad) > MOST_NAMED else ''}); leave them out",
                name,
                bad.tolist(),
            )
        arrays.append(array)
    return arrays


def checked_weights(model: Model, weight: Any) -> np.ndarray:
    """Return the weight of each coordinate, (nv,): one over its noise.

    A mapping from joint name has one number, or one for each coordinate; the weight of
    other joints is 1. An array (nv,) of floats is not copied. Weights must be finite
    and above 0.
    """
    if isinstance(weight, Mapping):
        array = np.ones(model.nv)
        for name, value in weight.items():
            if name not in model.joint_names:
                message = unknown_name("joint", str(name), model.joint_names)
                raise SettingError(f"weight: {message}", "weight")
            place, label = model.v_slice(name), f"weight of {name}"
            shape, wanted = array[place].shape, f"shape () or {array[place].shape}"
            numbers = float_array(label, value, wanted)
            if numbers.shape not in ((), shape):
                raise ShapeError(label, wanted, f"shape {numbers.shape}")
            array[place] = numbers
    else:
        array = shaped_array("weight", weight, (model.nv,))
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise IdentificationError(
            f"weight must be > 0 and finite for each coordinate, got {array.tolist()}:"
            " give one over the standard deviation of the noise [1/(N·m) | 1/N]"
        )
    return array


def check_count(model: Model, rows: int, rank: int) -> None:
    """Refuse too few samples, of nv rows each: not more rows than base parameters."""
    least = rank // max(model.nv, 1) + 1
    if rows < least:
        raise ShapeError(
            "tau",
            f"at least {least} samples ({rank} base parameters, {model.nv} rows each;"
            " ten times as many are good)",
            f"{rows} samples",
        )
