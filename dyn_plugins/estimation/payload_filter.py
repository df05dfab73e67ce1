"""Estimation of a link's payload, by a Kalman filter of the generalized momentum.

A payload changes the momentum, its rate and the inertia of a robot. The state between
two cycles holds the covariance as factors, P = U D U.T with U unit upper triangular and
D diagonal: so it stays symmetric and is never negative, despite rounding. The ten
parameters of a payload are those of RigidInertia.parameters, in the link's frame: m,
m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin. n is the number of
velocity coordinates that move the link.

Source: G. Bierman, Factorization Methods for Discrete Sequential Estimation, Academic
Press, 1977.
"""

from dataclasses import dataclass
from typing import Any

from dyn_core.authoring import (
    Factored,
    Matrix,
    Motion,
    MotionSubspace,
    Required,
    RigidInertia,
    TracedSolver,
    Vector,
    cross,
    hookimpl,
    join_columns,
    join_matrix,
    logical_and,
    logical_not,
    maximum,
    slope_of,
    split_q,
    split_v,
    sqrt,
    total,
    where,
    with_slopes,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import PAYLOAD_ESTIMATION
from dyn_core.validation import Quantity
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.estimation.momentum_observer import momentum_and_rate

TEN = 10  # numbers of a payload, in the order of RigidInertia.parameters
UNITS = tuple(RigidInertia.of_parameters(row) for row in Matrix.identity(TEN).rows)
MOST = 2.0  # maximum mean square of one cycle's errors in the trend
LEAST = 1 / 16  # weight of the noise without payload in R, see _momentum_noise


class CovarianceFactors:
    """Factors U, D of a covariance U D U.T; each method returns new ones.

    U: Rows, read only above the diagonal, which counts as ones; D: diagonal numbers.
    """

    def __init__(self, U, D):
        self.U, self.D = U, D

    @classmethod
    def diagonal(cls, D):
        """Return the factors of a diagonal covariance with the variances D."""
        return cls([[0.0] * len(D) for _ in D], list(D))

    @classmethod
    def joined(cls, first, cross, second):
        """Return the factors of two groups: U = [[U_first, cross], [0, U_second]]."""
        nothing = [0.0] * len(first.D)
        top = [[*row, *more] for row, more in zip(first.U, cross, strict=True)]
        below = [[*nothing, *row] for row in second.U]
        return cls(top + below, first.D + second.D)

    def last(self, n):
        """Return the factors of the last n variables alone, n at least 1."""
        return CovarianceFactors([row[-n:] for row in self.U[-n:]], self.D[-n:])

    def either(self, condition, other):
        """Return new factors: these where `condition` holds, else `other`."""
        size = len(self.D)
        U = [[0.0] * size for _ in self.D]
        for i in range(size):
            for j in range(i + 1, size):
                U[i][j] = where(condition, self.U[i][j], other.U[i][j])
        pairs = zip(self.D, other.D, strict=True)
        return CovarianceFactors(U, [where(condition, a, b) for a, b in pairs])

    def shifted(self, A):
        """Return the factors of (x + A y, y), where y are the last variables."""
        rest, (size, _) = self.last(A.shape[1]), A.shape
        U = [list(row) for row in self.U]
        for i, row in enumerate(rest.onto(A)):
            for j, x in enumerate(row, size):
                U[i][j] = U[i][j] + x
        return CovarianceFactors(U, self.D)

    def onto(self, A):
        """Return the rows of A U, for a Matrix A with one column for each variable."""
        columns = range(len(self.D))
        return [
            [total([*(a[k] * self.U[k][j] for k in range(j)), a[j]]) for j in columns]
            for a in A.rows
        ]

    def wandered(self, first, deviations):
        """Return the factors with independent noise on variables from `first` on."""
        factors = self
        for j, x in enumerate(deviations, first):
            factors = factors.with_noise(j, x * x)
        return factors

    def with_noise(self, j, variance):
        """Return the factors after `variance` is added to the variance of variable j.

        Source: W. Agee and R. Turner, Triangular Decomposition of a Positive Definite
        Matrix Plus a Symmetric Dyad, White Sands Missile Range TR-38, 1972.
        """
        U, D = [list(row) for row in self.U], list(self.D)
        a = [0.0] * j + [1.0]
        for k in reversed(range(j + 1)):
            scaled = variance * a[k]
            D[k] = self.D[k] + scaled * a[k]
            if k == 0:
                break
            over = where(D[k] > 0, 1.0 / where(D[k] > 0, D[k], 1.0), 0.0)
            for i in range(k):
                a[i] = a[i] - a[k] * self.U[i][k]
                U[i][k] = self.U[i][k] + scaled * over * a[i]
            variance = variance * (self.D[k] * over)
        return CovarianceFactors(U, D)

    def measured(self, h, variance):
        """Return the factors after a scalar measurement h.T x + noise of `variance`.

        Also return the Kalman gain, which multiplies the innovation (measured minus
        predicted), and the variance of the innovation.
        """
        size = len(self.D)
        U, D = [list(row) for row in self.U], list(self.D)
        gain, alpha = [0.0] * size, variance
        for j in range(size):
            f = total([*(self.U[i][j] * h[i] for i in range(j)), h[j]])
            v = self.D[j] * f
            before, alpha = alpha, alpha + f * v
            D[j] = self.D[j] * (before / alpha)
            slope = -f / before
            for i in range(j):
                U[i][j] = self.U[i][j] + gain[i] * slope
                gain[i] = gain[i] + self.U[i][j] * v
            gain[j] = v
        return CovarianceFactors(U, D), Vector(x / alpha for x in gain), alpha

    def matrix(self):
        """Return the covariance U D U.T as a Matrix."""
        size = range(len(self.D))
        full = [[self.U[i][j] if j > i else float(i == j) for j in size] for i in size]
        P = [[0.0] * len(size) for _ in size]
        for i in size:
            for j in range(i, len(size)):
                terms = (full[i][k] * self.D[k] * full[j][k] for k in size[j:])
                P[i][j] = P[j][i] = total(terms)
        return Matrix(P)


def _carriers(model, frame):
    """Return the bodies from the base, without it, to the body of the link `frame`."""
    bodies, i = [], model.frame(frame).body
    while i > 0:
        bodies.insert(0, i)
        i = model.parent[i]
    return bodies


def way_to(model, frame):
    """Return a list of the velocity coordinates that move link `frame`, ascending."""
    slices = (range(model.nv)[model.v_slices[i]] for i in _carriers(model, frame))
    return sorted({k for indices in slices for k in indices})


def known_carrier(model, frame):
    """Raise UnsupportedError if no joint moves the link `frame`; no model: no check."""
    if model is not None and not way_to(model, frame):
        moved = [name for name in model.frame_names if way_to(model, name)]
        raise UnsupportedError(
            f"nothing moves link '{frame}', so that no payload of it shows; valid:"
            f" {', '.join(moved)}"
        )


class CarriedLink:
    """A link, its Jacobian, and the momentum of a unit payload on it.

        p = J.T h,   beta = J.T w + (v_j x J_j + dS_j).T h,   h = I v,   w = I a_grav

    way: Indices of the n velocity coordinates that move the link, ascending. J has n
    columns in link coordinates. Y and B, (n, 10), are derivatives by the payload's ten
    inertial parameters of p and of beta, the rate of p without joint forces.
    """

    def __init__(self, model, q, qd, frame):
        """Compute Jacobian and regressors, from the base to the link.

        Args:
            model: Robot.
            q, qd: Joint positions and velocities, nq and nv.
            frame: Name of the link.

        Raises:
            ModelError: There is no such link.

        Source: as momentum_observer, for a body that the link carries.
        """
        position, velocity = split_q(model, q), split_v(model, qd)
        v, g, J, rates = Motion.zero(), model.a_grav, {}, {}
        for i in _carriers(model, frame):
            joint, speed = model.joint[i], velocity[i]
            moving = with_slopes(position[i], joint.position_rate(position[i], speed))
            X = joint.X(position[i]) @ model.Xtree[i]
            v, g = X @ v + joint.vJ(position[i], speed), X @ g
            J, rates = _moved(X, J), _moved(X, rates)
            J[i] = joint.S(position[i])
            rates[i] = cross(v, J[i]) + slope_of(joint.S(moving))
        X, self.way = model.frame(frame).X, way_to(model, frame)
        self.J = self._columns(model, _moved(X, J))
        slopes = self._columns(model, _moved(X, rates))
        h, w = [I @ (X @ v) for I in UNITS], [I @ (X @ g) for I in UNITS]
        self.Y = Matrix([axis @ x for x in h] for axis in self.J)
        self.B = Matrix(
            [axis @ y + slope @ x for x, y in zip(h, w, strict=True)]
            for axis, slope in zip(self.J, slopes, strict=True)
        )

    def _columns(self, model, by_joint):
        """Return a MotionSubspace of the n coordinates that move the link.

        by_joint: Dict from the body of a joint to a motion subspace.
        """
        columns = tuple(zip(*join_columns(model, by_joint).rows, strict=True))
        return MotionSubspace(Motion.of(columns[k]) for k in self.way)

    def inertia(self, ten):
        """Return the payload's joint-space inertia, (n, n), from its ten parameters."""
        return self.J.T @ (RigidInertia.of_parameters(ten) @ self.J)


def _moved(X, columns):
    """Return a dict like `columns`, of motion subspaces by joint, transformed by X."""
    return {j: X @ axes for j, axes in columns.items()}


@dataclass
class Memory:
    """State of the payload estimate; n coordinates move the link.

    Attributes:
        started: Positive after the first cycle, zero before.
        P: Momentum of robot and payload, n.
        payload: Ten inertial parameters.
        factors: Factors of the covariance of P and payload, n + 10 variables.
        beta: Robot's rate of momentum without joint forces at the previous state, n.
        B: The same by the ten parameters, (n, 10).
        trend: Mean of the normalized prediction errors, n.
    """

    started: Any
    P: Any
    payload: Any
    factors: Any
    beta: Any
    B: Any
    trend: Any

    @classmethod
    def of(cls, numbers, n, prior):
        """Return the Memory whose numbers `Memory.numbers` has written.

        Before the first cycle payload and trend are zeros, and the payload's covariance
        is diagonal, of `prior`.

        Args:
            numbers: The Port `memory`, memory_size(n) numbers; all zeros are an
                estimate that has not started.
            n: Number of coordinates that move the link.
            prior: Standard deviations of the payload before the first cycle, 10.
        """
        rest, whole = list(numbers), n + TEN

        def take(count):
            taken = Vector(rest[:count])
            del rest[:count]
            return taken

        started = rest.pop(0)
        P, payload, root, above = take(n), take(TEN), take(whole), take(_pairs(whole))
        beta, B, trend = take(n), take(n * TEN), take(n)
        known = started > 0
        D = [x * x for x in root]
        D[n:] = [where(known, d, x * x) for d, x in zip(D[n:], prior, strict=True)]
        U = [[0.0] * whole for _ in D]
        for (i, j), x in zip(_places(whole), above, strict=True):
            U[i][j] = x if i < n else where(known, x, 0.0)
        return cls(
            started,
            P,
            Vector(where(known, x, 0.0) for x in payload),
            CovarianceFactors(U, D),
            beta,
            Matrix(B[TEN * k : TEN * (k + 1)] for k in range(n)),
            Vector(where(known, x, 0.0) for x in trend),
        )

    def numbers(self):
        """Return the state as one list, memory_size(n) long, which Memory.of reads.

        Instead of the numbers D of the factors it has their square roots.
        """
        factors = self.factors
        return [
            self.started,
            *self.P,
            *self.payload,
            # Roots of D, so that every number is valid input: Memory.of squares them.
            *(sqrt(d) for d in factors.D),
            *(factors.U[i][j] for i, j in _places(len(factors.D))),
            *self.beta,
            *(x for row in self.B.rows for x in row),
            *self.trend,
        ]


def memory_size(n):
    """Return the length of Memory.numbers for n coordinates."""
    whole = n + TEN
    return 1 + n + TEN + whole + _pairs(whole) + n + n * TEN + n


def _pairs(n):
    return n * (n - 1) // 2


def _places(n):
    """Return the indices (i, j) above the diagonal of an (n, n) matrix, row by row."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def payload_filter(
    model, q, qd, tau, dt, velocity_noise, effort_noise, prior, drift, memory,
    frame, gate, alarm, window,
):  # fmt: skip
    """Return a link's payload and its covariance after one cycle of a Kalman filter.

        P = H qd + Y pi,   dP/dt = tau + beta + B pi

    P is the momentum of robot and payload, H qd and beta the robot's own (see
    momentum_observer), Y and B their derivatives by the ten numbers pi of the payload.
    P and pi are estimated together: errors of tau are process noise of P, and each
    cycle measures

        H qd = P - Y pi + (H + H_pi) e,   e the error of qd

    No acceleration is needed. If the errors of tau and qd are white, so are the
    prediction errors, and the covariance is valid. Errors of the Model's friction and
    springs count as errors of tau.

    The error of qd is in Y, too. It biases pi towards smaller inertia if it contributes
    more to a prediction error than the error of tau: choose cycles so long that
    effort_noise dt is not much less than H velocity_noise.

    A cycle whose prediction errors exceed `gate`, an outlier of tau or qd, leaves pi
    unchanged and restarts P, and so does the first cycle, and one with dt of 0 or less.
    If the mean of the errors, with weights exp(-t / window), exceeds `alarm`, the
    payload has changed: its deviations are reset to `prior`, pi itself stays. A
    velocity_noise that makes the momentum's noise singular, such as 0, raises
    SingularError when the Program runs. A user's force function that does not return nv
    numbers raises ModelError.

    Inputs and outputs: those of PAYLOAD_ESTIMATION. tau, dt [s]: joint forces and time
    since the cycle before. Noises (nv), prior (10, before the first cycle) and drift
    (10, of a random walk after a second; it grows with the square root of time) are
    standard deviations. memory: the last result of the cycle before; zeros at first.
    The results are pi; its covariance, 10 x 10; the mean square of the normalized
    prediction errors, 0 without a prediction (first cycle, dt <= 0); 1 if the cycle has
    updated pi, else 0; 1 if the payload has changed, else 0; and the next `memory`. Of
    tau and effort_noise only coordinates that move the link are used, of velocity_noise
    all.

    Args:
        frame: Name of the link that carries the payload; one that no joint moves raises
            UnsupportedError when the Program is built, an unknown one ModelError.
        gate, alarm: Thresholds, as a number of standard deviations of a normal variable
            that is above it with the same probability, one-sided.
        window: Time constant of the mean of the prediction errors [s]. All three are
            above 0, else UnsupportedError when built.

    Source: R. Kalman, A New Approach to Linear Filtering and Prediction Problems, J.
    Basic Engineering 82 (1960), by the factors of G. Bierman (1977); momentum: A. De
    Luca and R. Mattone, ICRA 2003; regressor: C. Atkeson, C. An and J. Hollerbach, IJRR
    5 (1986).
    """
    way = way_to(model, frame)
    n = len(way)
    link, last = CarriedLink(model, q, qd, frame), Memory.of(memory, n, prior)
    p, beta = (Vector(x[k] for k in way) for x in momentum_and_rate(model, q, qd))
    noise = _momentum_noise(model, q, link, last.payload, velocity_noise)

    B, pi = (last.B + link.B) * (dt * 0.5), last.payload
    known = Vector(tau[k] for k in way) + (last.beta + beta) * 0.5
    P = last.P + known * dt + B @ pi
    before = last.factors.wandered(n, drift * sqrt(maximum(dt, 0.0)))
    state = before.shifted(B).wandered(0, [effort_noise[k] * dt for k in way])
    state, change, errors = _corrected(state, noise, link.Y, p - P + link.Y @ pi)

    follows = logical_and(last.started > 0, dt > 0)
    square = total(e * e for e in errors)
    trend, alarmed = _trend(last.trend, errors, dt, window, alarm)
    changed = logical_and(follows, alarmed)
    fits = logical_and(square <= _limit(n, gate), logical_not(changed))
    used = logical_and(follows, fits)

    fresh = CovarianceFactors.diagonal([x * x for x in prior])
    anew = _measured_anew(fresh.either(changed, before.last(TEN)), noise, link.Y)
    pi = pi + Vector(where(used, x, 0.0) for x in change[n:])
    P = _either(used, P + change[:n], p + link.Y @ pi)
    trend = _either(changed, Vector.zeros(n), _either(follows, trend, last.trend))
    factors = state.either(used, anew)
    following = Memory(1.0, P, pi, factors, beta, link.B, trend)
    mismatch = where(follows, square / max(n, 1), 0.0)
    flags = (where(x, 1.0, 0.0) for x in (used, changed))
    covariance = factors.last(TEN).matrix()
    return pi, covariance, mismatch, *flags, following.numbers()


def _either(condition, a, b):
    """Return Vector a where `condition` holds, else Vector b."""
    return a.map_with(lambda x, y: where(condition, x, y), b)


def _momentum_noise(model, q, link, pi, velocity_noise):
    """Return the covariance R of the measured momentum, (n, n), a Factored.

        R = G S G.T + H S H.T / 16,   G = H + H_pi,   S = diag(velocity_noise²)

    H and H_pi are the rows of the mass matrices of robot and payload for the n
    coordinates of link.way, (n, nv). The second term keeps R positive for an estimate
    pi that is not physical: in the first cycles H_pi may cancel H.
    """
    H, carried = join_matrix(model, crba(model, split_q(model, q))), link.inertia(pi)
    bare = [list(H.rows[k]) for k in link.way]
    loaded = [list(row) for row in bare]
    for i, row in enumerate(loaded):
        for j, k in enumerate(link.way):
            row[k] = row[k] + carried[i, j]
    G, H = ([Vector(row) * velocity_noise for row in rows] for rows in (loaded, bare))
    n = range(len(bare))
    R = Matrix([G[i] @ G[j] + H[i] @ H[j] * LEAST for j in n] for i in n)
    return Factored(R, [0.0] * len(n), ["velocity_noise of each joint"] * len(n))


def _corrected(state, noise, Y, error):
    """Return the estimate updated with the robot's own momentum, row after row.

        p = P - Y pi + noise

    P: momentum of robot and payload; p: the robot's own, measured; pi: payload; state:
    factors of the covariance of (P, pi); error: p minus the predicted one. Results:
    factors; change of (P, pi), n + 10; errors of rows decorrelated by the factors of
    the noise, divided by their standard deviations.
    """
    n = len(error)
    units = [[float(i == j) for i in range(n)] for j in range(n)]
    columns = [noise.halves(x)[0] for x in (*units, *Y.T.rows, error)]
    change, errors = Vector.zeros(n + TEN), []
    for i in range(n):
        *h, measured = (column[i] for column in columns)
        h = Vector([*h[:n], *(-x for x in h[n:])])
        state, gain, variance = state.measured(h, 1.0 / noise.over_D[i])
        left = measured - h @ change
        change = change + gain * left
        errors.append(left / sqrt(variance))
    return state, change, errors


def _measured_anew(payload, noise, Y):
    """Return the factors of (P, pi) if P is known from the last measurement alone.

        P = p + Y pi + noise

    P: momentum of robot and payload; p: the robot's own, measured; pi: payload.
    """
    n = len(noise.over_D)
    U = [[noise.L[j][i] if j > i else 0.0 for j in range(n)] for i in range(n)]
    momentum = CovarianceFactors(U, [1.0 / x for x in noise.over_D])
    return CovarianceFactors.joined(momentum, payload.onto(Y), payload)


def _trend(last, errors, dt, window, alarm):
    """Return the mean of the prediction errors, n, and whether it exceeds `alarm`.

    With weights a^k, a = window / (window + dt), the mean of white errors of variance
    one has the variance (1 - a) / (1 + a) = dt / (2 window + dt). Errors whose mean
    square is above 2 are scaled down to it. alarm: in standard deviations of a normal
    variable.
    """
    n, share = len(errors), dt / (window + dt)
    square = total(e * e for e in errors)
    # Large errors are scaled down, so that one outlier does not look like a new
    # payload.
    size = sqrt(MOST * n / maximum(square, MOST * n))
    trend = last * (1.0 - share) + Vector(errors) * (share * size)
    rare = _limit(n, alarm) * dt
    return trend, trend @ trend * (2.0 * window + dt) > rare


def _limit(n, deviations):
    """Return the chi-square quantile of a normal quantile's probability, approximately.

    Source: E. Wilson and M. Hilferty, The Distribution of Chi-Square, PNAS 17 (1931).
    """
    if not n:
        return 0.0
    cube_root = 1 - 2 / (9 * n) + deviations * (2 / (9 * n)) ** 0.5
    return n * cube_root**3


def _sizes(model, options):
    """Return the sizes of the Ports: {"nm": length of the filter's memory}."""
    return {"nm": memory_size(len(way_to(model, options["frame"])))}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    positive = Quantity(0.0, above=True)
    return [
        TracedSolver(
            "payload_filter",
            PAYLOAD_ESTIMATION,
            payload_filter,
            options={
                "frame": Required("the name of the link that carries the payload"),
                "gate": 5.0,
                "alarm": 6.0,
                "window": 0.1,
            },
            valid={
                "frame": known_carrier,
                "gate": positive,
                "alarm": positive,
                "window": positive,
            },
            sizes=_sizes,
            by_joint=False,
            regrouped=True,
            default=True,
        )
    ]
