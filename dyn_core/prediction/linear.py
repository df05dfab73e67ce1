"""Linear control and estimation near a position: `lqr` and `kalman`.

Both use the robot linearised at rest, x = (dq, dqd) with dq = difference(q0, q) in the
tangent space, so that quaternions count as three numbers:

    dx/dt = A x + B (tau - tau0),   or   x_next = A x + B (tau - tau0)

with tau0 the holding efforts. With a period the efforts are constant over each period,
and A, B are exact for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import (
    NearAttributes,
    NonFiniteError,
    SettingError,
    ShapeError,
    UnsupportedError,
    unknown_name,
)
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.checks.robots import beyond_limits, check_robot, many_turns
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.passive_forces import without_dry_friction
from dyn_core.prediction.problem import require_tree
from dyn_core.problems import FD_DERIVATIVES, GRAVITY_FORCE
from dyn_core.solving.registry import solver
from dyn_core.validation import (
    float_array,
    is_finite,
    known_keywords,
    one_state,
    state_array,
)
from dyn_core.validation.tables import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dyn_core.model import Model

LONG = 1.0  # a longer period is warned of [s]
NO_EFFORT = 1e-6  # of the largest, or N·m: counts as no effort without a motor
SHARE = 0.3  # joints that take part in a mode have this share of its largest entry
SLOW = 1e-6  # a mode that decays more slowly, of the norm of A, does not decay
RANK = 1e-9  # a mode below this singular value, of the norm of A, is out of reach


@dataclass(frozen=True, repr=False)
class Linear(NearAttributes):
    """The robot linearised at rest at a position.

    Attributes:
        model: Robot.
        q: Position (nq,).
        tau: Holding efforts (nv,), zero where there is no motor [N·m | N].
        motors: Indices in qd of the coordinates with a motor.
        period: Period of the efforts [s]; None: continuous time.
        A: (2 nv, 2 nv).
        B: (2 nv, motors), by the efforts of the motors.
    """

    model: Model
    q: np.ndarray
    tau: np.ndarray
    motors: tuple[int, ...]
    period: float | None
    A: np.ndarray
    B: np.ndarray

    def __repr__(self) -> str:
        every = "continuous time" if self.period is None else f"each {self.period:g} s"
        x, u = self.B.shape
        return (
            f"<{type(self).__name__} of '{self.model.name}': x ({x},), motors {u},"
            f" {every}; attributes: {', '.join(f.name for f in fields(self))}>"
        )

    def state(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """Return x = (dq, dqd), (2 nv,) or (n, 2 nv), of a state or of n states.

        dq is the displacement from the position of the linearisation.

        Raises:
            ShapeError: An array has another shape, or q and qd differ in rows.
        """
        model = self.model
        q = state_array("q", q, model.nq, real=True)
        qd = state_array("qd", qd, model.nv, real=True)
        if q.shape[:-1] != qd.shape[:-1]:
            wanted = f"shape {(*q.shape[:-1], model.nv)}, as q has"
            raise ShapeError("qd", wanted, f"shape {qd.shape}")
        start = self.q if q.ndim == 1 else np.broadcast_to(self.q, q.shape)
        return np.concatenate([model.difference(start, q), qd], -1)


@dataclass(frozen=True, repr=False)
class Regulator(Linear):
    """Linear feedback that holds a position, from `lqr`.

    Attributes:
        K: Gains (motors, 2 nv): tau = tau0 - K x.
        cost: Matrix S of the cost to go x.T S x, (2 nv, 2 nv).
        poles: Eigenvalues of the closed loop, (2 nv,).
    """

    K: np.ndarray
    cost: np.ndarray
    poles: np.ndarray

    def control(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """Return joint forces (nv,) or (n, nv), zero without a motor; not limited.

        Args:
            q, qd: Measured state (nq,), (nv,), or a batch of n states. NaN leads to
                NaN: it is not tested.

        Raises:
            ShapeError: An array has another shape.
        """
        x = self.state(q, qd)
        tau = np.broadcast_to(self.tau, (*x.shape[:-1], len(self.tau))).copy()
        tau[..., list(self.motors)] -= x @ self.K.T
        return tau


@dataclass(frozen=True, repr=False)
class Estimator(Linear):
    """Steady Kalman filter near a position, from `kalman`.

    Attributes:
        rows: Indices in x of what is measured.
        L: Gain (2 nv, rows): x = predicted x + L (measured - predicted).
        covariance: Of the estimated x after a measurement, (2 nv, 2 nv).
        poles: Eigenvalues of the error from step to step, (2 nv,).
    """

    rows: tuple[int, ...]
    L: np.ndarray
    covariance: np.ndarray
    poles: np.ndarray

    def update(
        self,
        state: tuple[ArrayLike, ArrayLike],
        tau: ArrayLike,
        measured: tuple[ArrayLike, ArrayLike] | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimated (q, qd) a period after an estimated state.

        Args:
            state: Estimated q (nq,) and qd (nv,).
            tau: Joint forces (nv,) during the period.
            measured: Measured q (nq,) and qd (nv,) at its end; None: no measurement
                came, the state is predicted. Entries that are not measured are not
                used.

        Raises:
            ShapeError: A state is no pair, or an array has another shape, such as a
                batch.
            NonFiniteError: An entry is not finite, also one that is not used.
        """
        x, tau = self._x("state", state), one_state("tau", tau, self.model.nv)
        _require_finite("tau", tau)
        x = self.A @ x + self.B @ (tau - self.tau)[list(self.motors)]
        if measured is not None:
            rows = list(self.rows)
            x = x + self.L @ (self._x("measured", measured) - x)[rows]
        dq, qd = np.split(x, 2)
        return self.model.integrate(self.q, dq), qd

    def _x(self, name: str, pair: Any) -> np.ndarray:
        """Return x, (2 nv,), of a pair (q, qd) of finite numbers."""
        try:
            q, qd = pair
        except (TypeError, ValueError):
            raise ShapeError(name, "a pair (q, qd)", shown(pair)) from None
        model = self.model
        q, qd = one_state("q", q, model.nq), one_state("qd", qd, model.nv)
        _require_finite(name, q, qd)
        return self.state(q, qd)


def _require_finite(name: str, *arrays: np.ndarray) -> None:
    """Raise NonFiniteError if an input of Estimator.update is not finite."""
    if not all(np.isfinite(x).all() for x in arrays):
        skip = ", or None where nothing was measured" if name == "measured" else ""
        text = f"{name} holds NaN or infinity; valid: finite numbers{skip}"
        raise NonFiniteError(text, name)


@known_keywords
def lqr(
    model: Model,
    q: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    *,
    period: float | None = None,
    motors: Sequence[str] | None = None,
) -> Regulator:
    """Return the linear feedback that holds a position with the least quadratic cost.

        hold = dyn.lqr(model, q, Q=100.0, R=0.01, period=0.001)
        tau = hold.control(q_measured, qd_measured)

    The cost is the integral, or with a period the sum, of

        x.T Q x + u.T R u,   x = (dq, dqd),   u = efforts - holding efforts

    Joint springs and damping act, dry friction does not. A position beyond the limits
    of a joint, or a period above 1 s, is a ModelWarning.

    Args:
        model: Robot without closed loops.
        q: Position to hold, (nq,).
        Q: Weights of x: one number, 2 nv numbers, or a matrix (2 nv, 2 nv), symmetric
            positive semidefinite.
        R: Weights of u: one number, m numbers for the m coordinates with a motor, or a
            matrix (m, m), symmetric positive definite.
        period: Period of the controller [s], over which efforts are constant; None:
            continuous time.
        motors: Names of the joints with a motor; None: Model.active_joints.

    Raises:
        UnsupportedError: Not a robot, or one with closed loops or prescribed joints;
            the position cannot be held, or a mode cannot be stabilised (names the
            joints); or the Riccati equation cannot be solved, as the weights differ too
            much.
        SettingError: A weight is not finite, not symmetric or not positive
            (semi)definite, the period is not a positive number, `motors` is no list or
            names an unknown joint or a joint twice, or Q does not see a mode that does
            not decay by itself.
        ShapeError: `q`, Q or R has another shape.
        NonFiniteError: `q` is not finite.
        QuaternionError: A quaternion in `q` has not the length 1, within 1e-3.
    """
    check_robot(model, "lqr")
    linear, A, B = _linear(model, q, period, motors)
    n, m = linear.B.shape
    weights = _weights("Q", Q, n, definite=False)
    efforts = _weights("R", R, m, definite=True)
    mode = _lost(A, B[:, list(linear.motors)])
    if mode is not None:
        raise UnsupportedError(f"{_joints(model, mode)}: no motor stabilises this mode")
    mode = _lost(A.T, weights)
    if mode is not None:
        raise SettingError(
            f"Q is zero for a motion of {_joints(model, mode)} that does not decay by"
            " itself; valid: weights of it, too",
            "Q",
        )
    S, K, poles = _solved(period, linear.A, linear.B, weights, efforts)
    return Regulator(**vars(linear), K=K, cost=S, poles=poles)


@known_keywords
def kalman(
    model: Model,
    q: ArrayLike,
    measured: Mapping[str, float],
    *,
    period: float,
    effort_noise: float = 1.0,
    motors: Sequence[str] | None = None,
) -> Estimator:
    """Return the steady Kalman filter of a robot that is held near a position.

        seen = {"position": 1e-4, "wrist.velocity": 1e-2}
        observer = dyn.kalman(model, q, seen, period=0.001, effort_noise=0.1)
        estimate = observer.update(estimate, tau, (q_measured, qd_measured))

    Joint springs and damping act, dry friction does not. A position beyond the limits
    of a joint, or a period above 1 s, is a ModelWarning.

    Args:
        model: Robot without closed loops.
        q: Position, (nq,).
        measured: Standard deviation of each sample, by what is measured: "position"
            or "velocity" of all joints, JOINT.position or JOINT.velocity of one
            [rad | m], [rad/s | m/s]; of two for one coordinate, the later one counts.
        period: Period of the measurements [s].
        effort_noise: Standard deviation of the unknown joint forces, constant in each
            period, of all joints [N·m | N].
        motors: Names of the joints with a motor; None: Model.active_joints. Efforts of
            other joints are not used.

    Raises:
        UnsupportedError: Not a robot, or one with closed loops or prescribed joints;
            the position cannot be held, or a mode that does not decay is not measured
            (names the joints); or the Riccati equation cannot be solved, as the
            deviations differ too much.
        SettingError: `measured` is empty or no mapping; it or `motors` has an unknown
            name; `motors` is no list or has a name twice; or a deviation, the period or
            effort_noise is not a positive number.
        ShapeError: `q` has another shape.
        NonFiniteError: `q` is not finite.
        QuaternionError: A quaternion in `q` has not the length 1, within 1e-3.
    """
    check_robot(model, "kalman")
    noise = _positive("effort_noise", effort_noise)
    linear, A, B = _linear(model, q, _positive("period", period), motors)
    deviations = _deviations(model, measured)
    rows, n = sorted(deviations), len(linear.A)
    C, N = np.eye(n)[rows], np.diag([deviations[k] * deviations[k] for k in rows])
    mode = _lost(A.T, C.T)
    if mode is not None:
        raise UnsupportedError(
            f"a motion of {_joints(model, mode)} that does not decay by itself shows in"
            " nothing that is measured; valid: a measured position of it"
        )
    A, forces = _discrete(A, B, period)
    W = noise * noise * (forces @ forces.T)
    P, _, poles = _solved(period, A.T, C.T, W, N)
    L = np.linalg.solve(C @ P @ C.T + N, C @ P).T
    rest = np.eye(n) - L @ C
    return Estimator(**vars(linear), rows=tuple(rows), L=L, covariance=rest @ P,
                     poles=poles)  # fmt: skip


def _linear(
    model: Model, q: ArrayLike, period: float | None, motors: Sequence[str] | None
) -> tuple[Linear, np.ndarray, np.ndarray]:
    """Return the robot linearised at rest at q, then A and B of dx/dt.

    With a period, of constant efforts [s], the first has the A and B of the period. The
    last B (2 nv, nv) is by the forces of all joints, also of those without a motor. Dry
    friction is left out. A position beyond the limits of a joint, or a period above 1
    s, is a ModelWarning. Robots with closed loops or prescribed joints are refused, and
    those where a joint without a motor would need an effort.
    """
    require_tree(model)
    q = one_state("q", q, model.nq)
    if isinstance(motors, str) or not isinstance(motors, (Iterable, type(None))):
        text = f"motors is {shown(motors)}; valid: a list of names of joints"
        raise SettingError(text, "motors")
    joints = [*model.active_joints] if motors is None else [*motors]
    for name in joints:
        if name not in model.joint_names:
            raise SettingError(unknown_name("joint", name, model.joint_names), "motors")
        if joints.count(name) > 1:
            message = f"joint '{name}' is named twice; valid: each joint once"
            raise SettingError(message, "motors")
    doubts = [check(model, "q", q, "q") for check in (beyond_limits, many_turns)]
    if period is not None and _positive("period", period) > LONG:
        doubts.append(
            f"period {period:g} s is long: nothing acts on what happens within it;"
            " valid: seconds, such as 0.001"
        )
    warn_of(model.name, [doubt for doubt in doubts if doubt])
    driven = [k for name in joints for k in _indices(model, name)]
    gravity = solver(GRAVITY_FORCE.name).build
    hold = gravity(model, joint_springs=True, finite=True)(q)
    tau = np.array(hold)
    free = np.setdiff1d(np.arange(model.nv), driven)
    needed = free[np.abs(tau[free]) > NO_EFFORT * max(1.0, np.abs(tau).max())]
    if needed.size:
        names = coordinates_of(model).velocities
        efforts = ", ".join(f"'{names[k]}' {tau[k]:.4g}" for k in needed)
        raise UnsupportedError(
            f"robot '{model.name}' cannot be held at this q: joints without a motor"
            f" would need efforts [N·m | N]: {efforts}"
        )
    tau[free] = 0.0
    derivatives = solver(FD_DERIVATIVES.name).build
    smooth = without_dry_friction(model)
    program = derivatives(smooth, joint_friction=True, joint_springs=True)
    slopes = program(q, np.zeros(model.nv), hold)
    zero, one = np.zeros((model.nv, model.nv)), np.eye(model.nv)
    A = np.block([[zero, one], [slopes.dqdd_dq, slopes.dqdd_dqd]])
    B = np.vstack([zero, slopes.Hinv])
    steps = A, B[:, driven]
    if period is not None:
        steps = _discrete(*steps, _positive("period", period))
    return Linear(model, q, tau, tuple(driven), period, *steps), A, B


def _discrete(
    A: np.ndarray, B: np.ndarray, period: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return A (n, n) and B (n, m) of one period [s], from those of dx/dt = A x + B u.

        x(t + period) = A x(t) + B u

    u is constant within the period.
    """
    from scipy.linalg import expm

    n, m = B.shape
    both = np.zeros((n + m, n + m))
    both[:n, :n], both[:n, n:] = A, B
    both = expm(both * period)
    return both[:n, :n], both[:n, n:]


def _solved(
    period: float | None, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cost to go S, the gains K and the poles of A - B K, of least cost.

    A and B are of continuous time for period None, else of one period. Refused where
    LAPACK has no solution, or one that is not stable, as weights differ by too many
    powers of 10 or overflow.
    """
    from scipy import linalg

    try:
        with np.errstate(all="ignore"):
            if period is None:
                S = linalg.solve_continuous_are(A, B, Q, R)
                K = np.linalg.solve(R, B.T @ S)
            else:
                S = linalg.solve_discrete_are(A, B, Q, R)
                K = np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A)
        poles = np.linalg.eigvals(A - B @ K)
        if not (poles.real if period is None else np.abs(poles) - 1.0).max() < 0.0:
            raise ValueError("its gains are not stable")
    except (np.linalg.LinAlgError, ValueError) as error:
        raise UnsupportedError(
            f"the Riccati equation is not solved: {error}; valid: weights or deviations"
            " that differ less"
        ) from error
    return S, K, poles


def _lost(A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
    """Return w, |w| = 1, of a mode that does not decay and B does not reach, or None.

        w* A = lambda w*,   w* B = 0,   Re lambda >= 0    (Popov, Belevitch, Hautus)

    Re lambda may be below 0 by 1e-6 (SLOW) times the norm of A, at least 1. A and B are
    of continuous time; their transposes ask for what is not seen.
    """
    size = max(1.0, float(np.linalg.norm(A, 2)))
    B = B / max(float(np.linalg.norm(B, 2)), np.finfo(float).tiny)
    for value in np.linalg.eigvals(A):
        if value.real < -SLOW * size:
            continue
        exact = 0.0 if abs(value) < SLOW * size else value
        U, s, _ = np.linalg.svd(np.hstack([A - exact * np.eye(len(A)), B]))
        if s[-1] < RANK * size:
            return np.asarray(U[:, -1])
    return None


def _joints(model: Model, mode: np.ndarray) -> str:
    """Return the quoted names of the coordinates that take part in a mode, with commas.

    They take part if their position or velocity in the mode, (2 nv,), exceeds 0.3
    (SHARE) of the largest.
    """
    size = np.abs(mode.reshape(2, -1)).max(0)
    names = coordinates_of(model).velocities
    taking = [names[k] for k in np.flatnonzero(size > SHARE * size.max())]
    return ", ".join(f"'{name}'" for name in taking)


def _indices(model: Model, joint: str) -> list[int]:
    """Return the indices in qd of a joint's coordinates, or of its leader's."""
    return list(range(model.nv))[model.v_slice(joint)]


def _positive(name: str, value: Any) -> float:
    """Return a finite number above 0; raise SettingError for anything else."""
    if not is_finite(value) or value <= 0:
        raise SettingError(f"{name} is {shown(value)}; valid: a number above 0", name)
    return float(value)


def _weights(name: str, values: ArrayLike, n: int, definite: bool) -> np.ndarray:
    """Return weights, a number, n of the diagonal, or a matrix, as a matrix (n, n).

    It must be symmetric within 1e-12 of its largest entry and positive definite, or
    semidefinite unless `definite`.
    """
    wanted = f"shape (), ({n},) or ({n}, {n})"
    W = float_array(name, values, wanted)
    if W.ndim < 2 and W.shape in ((), (n,)):
        W = np.diag(np.broadcast_to(W, n))
    if W.shape != (n, n):
        raise ShapeError(name, wanted, f"shape {W.shape}")
    kind = "definite" if definite else "semidefinite"
    size = np.abs(W).max(initial=0.0)
    good = np.isfinite(size) and np.allclose(W, W.T, rtol=0, atol=1e-12 * size)
    if good:
        least = np.linalg.eigvalsh(W).min(initial=np.inf)
        good = least > 0 if definite else least >= -1e-12 * size
    if not good:
        valid = f"a symmetric positive {kind} matrix, or its diagonal"
        raise SettingError(f"{name} is not positive {kind}; valid: {valid}", name)
    return np.array(W)


def _deviations(model: Model, measured: Mapping[str, float]) -> dict[int, float]:
    """Return the standard deviation of each measured entry of x, by index in x.

    x is (dq, dqd). The keys of `measured` are "position" or "velocity", of all joints,
    or JOINT.position or JOINT.velocity, of all coordinates of that joint. A later one
    replaces an earlier one of the same coordinate.
    """
    parts = {"position": 0, "velocity": model.nv}
    valid = [*parts, *(f"{j}.{part}" for j in model.joint_names for part in parts)]
    if not isinstance(measured, Mapping) or not measured:
        text = f"measured is {shown(measured)}; valid: a deviation for each of some of"
        raise SettingError(f"{text} {', '.join(valid[:4])}, ...", "measured")
    result = {}
    for name, deviation in measured.items():
        if name not in valid:
            raise SettingError(unknown_name("quantity", name, valid), "measured")
        one, _, part = name.rpartition(".")
        for joint in [one] if one else model.joint_names:
            for k in _indices(model, joint):
                result[parts[part] + k] = _positive(f"measured['{name}']", deviation)
    return result
