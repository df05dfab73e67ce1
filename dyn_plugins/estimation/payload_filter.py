"""Estimation of a link's payload, by a Kalman filter of the generalized momentum."""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Required,
    TracedSolver,
    Vector,
    hookimpl,
    join_matrix,
    logical_and,
    logical_not,
    maximum,
    split_q,
    sqrt,
    total,
    where,
)
from dyn_core.problems import PAYLOAD_ESTIMATION
from dyn_core.validation import Quantity
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.estimation._carried_link import (
    TEN,
    CarriedLink,
    known_carrier,
    way_to,
)
from dyn_plugins.estimation._covariance_factors import CovarianceFactors
from dyn_plugins.estimation._payload_memory import Memory, memory_size
from dyn_plugins.estimation.momentum_observer import momentum_and_rate

MOST = 2.0  # maximum mean square of one cycle's errors in the trend
LEAST = 1 / 16  # weight of the noise without payload in R, see _momentum_noise


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
    unchanged and restarts P. If the mean of the errors, with weights exp(-t / window),
    exceeds `alarm`, the payload has changed: its deviations are reset to `prior`.

    Inputs and outputs: those of PAYLOAD_ESTIMATION. Only coordinates that move the link
    are used.

    Args:
        frame: Name of the link that carries the payload.
        gate, alarm: Thresholds, as a number of standard deviations of a normal variable
            with the same probability.
        window: Time constant of the mean of the prediction errors [s].

    Source: R. Kalman, A New Approach to Linear Filtering and Prediction Problems, J.
    Basic Engineering 82 (1960), by the factors of G. Bierman (1977); momentum: A. De
    Luca and R. Mattone, ICRA 2003; regressor: C. Atkeson, C. An and J. Hollerbach,
    IJRR 5 (1986).
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
    """Return the factors of the covariance R of the measured momentum.

        R = G S G.T + H S H.T / 16,   G = H + H_pi,   S = diag(velocity_noise²)

    The second term keeps R positive for an estimate pi that is not physical: in the
    first cycles H_pi may cancel H. A zero pivot is reported as velocity_noise of a
    joint.
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
    """Return the estimate updated with a measured momentum, one row after another.

    The rows are decorrelated by the factors of the noise.

    Args:
        state: Factors of momentum and payload.
        noise: Factors of the covariance of the momentum's noise.
        Y: Momentum by payload, (n, 10).
        error: Measured minus predicted momentum, n.

    Returns:
        Updated factors; the change of momentum and payload, n + 10; the prediction
        errors divided by their standard deviations, n.
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

    Args:
        payload: Factors of the payload's covariance.
        noise: Factors L, D of the covariance of p's noise (Factored).
        Y: Momentum by payload, (n, 10).
    """
    n = len(noise.over_D)
    U = [[noise.L[j][i] if j > i else 0.0 for j in range(n)] for i in range(n)]
    momentum = CovarianceFactors(U, [1.0 / x for x in noise.over_D])
    return CovarianceFactors.joined(momentum, payload.onto(Y), payload)


def _trend(last, errors, dt, window, alarm):
    """Return the mean of the prediction errors, and whether it exceeds `alarm`.

    With weights a^k, a = window / (window + dt), the mean of white errors of variance
    one has the variance (1 - a) / (1 + a) = dt / (2 window + dt).

    Args:
        last: Mean before this cycle, n.
        errors: Normalized prediction errors, n.
        dt: Length of the cycle [s].
        window: Time constant of the mean [s].
        alarm: Threshold in standard deviations of a normal variable.
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
    """Return the chi-square quantile with the probability of a normal quantile.

    Args:
        n: Degrees of freedom; 0 gives 0.0.
        deviations: Normal quantile, in standard deviations.

    Source: E. Wilson and M. Hilferty, The Distribution of Chi-Square, PNAS 17 (1931).
    """
    if not n:
        return 0.0
    cube_root = 1 - 2 / (9 * n) + deviations * (2 / (9 * n)) ** 0.5
    return n * cube_root**3


def _sizes(model, options):
    """Return the sizes of the Ports: {"nm": length of the memory}."""
    return {"nm": memory_size(len(way_to(model, options["frame"])))}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
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
