"""External joint forces by an observer of the generalized momentum."""

from dyn_core.authoring import (
    Motion,
    TracedSolver,
    Vector,
    cross,
    hookimpl,
    join_force,
    resistance,
    slope_of,
    split_q,
    split_v,
    with_slopes,
)
from dyn_core.problems import MOMENTUM_OBSERVER


def momentum_and_rate(model, q, qd):
    """Return the generalized momentum, and its rate without joint forces, nv each.

        p = H(q) qd,   beta = C(q, qd).T qd - g(q) - resistance
        p_i = S_i.T h_i,   beta_i = S_i.T (w_i - v_i x* h_i) + (dS_i/dt).T h_i

    C is the Coriolis matrix with dH/dt = C + C.T; h_i and w_i are momentum and weight
    of body i and its descendants, body coordinates. Neither H nor C is formed. With
    joints driven by time, p also has the momentum of their motion. The resistance is
    that of friction, springs and users' force functions, if they act.

    Source: A. De Luca and R. Mattone, Actuator failure detection and isolation using
    generalized momenta, ICRA 2003, by the sweeps of RBDA, Tables 5.1 and 6.2.
    """
    position, velocity = split_q(model, q), split_v(model, qd)
    v, a, h, w, X, S = [Motion.zero()], [model.a_grav], [None], [None], [None], [None]
    for i in model.bodies:
        parent, joint, I = model.parent[i], model.joint[i], model.I[i]
        moving = with_slopes(position[i], joint.position_rate(position[i], velocity[i]))
        X.append(joint.X(position[i]) @ model.Xtree[i])
        S.append((joint.S(position[i]), slope_of(joint.S(moving))))
        v.append(X[i] @ v[parent] + joint.vJ(position[i], velocity[i]))
        a.append(X[i] @ a[parent])
        h.append(I @ v[i])
        w.append(I @ a[i])
    p, beta = [None] * len(h), [None] * len(h)
    for i in reversed(model.bodies):
        parent, (S_i, dS_i) = model.parent[i], S[i]
        p[i] = S_i.T @ h[i] + model.armature[i] * velocity[i]
        beta[i] = S_i.T @ (w[i] - cross(v[i], h[i])) + dS_i.T @ h[i]
        if parent:
            h[parent] = h[parent] + X[i].T @ h[i]
            w[parent] = w[parent] + X[i].T @ w[i]
    taken = resistance(model, q, qd)
    return join_force(model, p), join_force(model, beta) - taken


def momentum_observer(model, q, qd, tau, dt, gain, r, p, beta):
    """Return the external joint forces, estimated from the change of the momentum.

        r = K (p - p_0 - integral of (tau + C.T qd - g + r) dt),   p = H qd
        then  dr/dt = K (J.T f - r)

    No acceleration is needed, and no inverse of H. In discrete time, with the mean of
    C.T qd - g over the step and r at its end,

        r_next = (r + K (p_next - p - dt (tau + (beta + beta_next) / 2))) / (1 + K dt)

    so a constant external force w gives r = w (1 - (1 + K dt)^-k) after k steps, for
    every K dt > 0. Errors of r: the error of tau, after the lag; at most 2 K e for an
    error e of p; dt² |d²beta/dt²| / 12 by the mean over a step; and at most W / K + W
    dt / 2 for an external force that changes by W per second or less.

    The results are r_next, p_next and beta_next, inputs of the next cycle. p_next and
    beta_next do not depend on r, p or beta: start with r = 0 and the p_next and
    beta_next of a first call. Joint friction and springs of the Model, if they act, are
    part of beta; unmodelled ones appear in r. A user's force function that does not
    return nv numbers raises ModelError.

    Inputs and outputs: those of MOMENTUM_OBSERVER; tau: joint forces since the cycle
    before, dt: time since it [s], gain: K, nv [1/s].

    Source: A. De Luca and R. Mattone, ICRA 2003; S. Haddadin, A. De Luca and A.
    Albu-Schaeffer, Robot collisions: a survey on detection, isolation, and
    identification, IEEE T-RO 33 (2017).
    """
    p_next, beta_next = momentum_and_rate(model, q, qd)
    known = tau + (beta + beta_next) * 0.5
    pulled = r + gain * (p_next - p - known * dt)
    lag = Vector(1.0 + K * dt for K in gain)
    return pulled / lag, p_next, beta_next


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "momentum_observer",
            MOMENTUM_OBSERVER,
            momentum_observer,
            by_joint=False,
            regrouped=True,
        )
    ]
