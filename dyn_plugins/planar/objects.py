"""Planar objects by their closed equations: accelerations, energy, steps of time."""

from dyn_core import (
    OBJECT_DYNAMICS,
    OBJECT_ENERGY,
    OBJECT_STEP,
    TextSolver,
    Vector,
    hookimpl,
)


def object_closed_form(model, q, qd, u):
    """Give the accelerations of a planar object by its own equation.

        qdd = f(q, qd, u),   B(q) qdd + c(q, qd) + h(q) = efforts(qd, u)

    Args:
        model: Planar object.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].
        u: Efforts, nu [N·m | N | V].

    Returns:
        Second derivatives qdd, nq [rad/s² | m/s²].

    Source: WAW-13.1, WAW-13.2, WAW-13.3, WAW-14.1, WAW-14.2, WAW-14.3.
    """
    return Vector(model.equation(model.parameters, q, qd, u))


def object_energy(model, q, qd):
    """Give the kinetic and the potential energy of a planar object.

        d/dt (T + V) = qd . efforts(qd, u)

    Args:
        model: Planar object.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].

    Returns:
        T and V [J].

    Source: WAW-H, check (iv).
    """
    return model.energy_of(model.parameters, q, qd)


def object_euler(model, q, qd, u, dt, object_dynamics):
    """Give the state one step later by the explicit scheme of Euler.

        q_next = q + dt qd,   qd_next = qd + dt qdd(q, qd, u)

    Args:
        model: Planar object.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].
        u: Efforts, nu [N·m | N | V], constant over the step.
        dt: Step [s].
        object_dynamics: Slot.

    Returns:
        Next q and qd.

    Source: WAW-3.1 names other schemes; this is the one of Gymnasium's CartPole-v1.
    """
    qdd = object_dynamics(q, qd, u)
    return q + qd * dt, qd + qdd * dt


def object_semi_implicit(model, q, qd, u, dt, object_dynamics):
    """Give the state one step later: velocity first, then position with it.

        qd_next = qd + dt qdd(q, qd, u),   q_next = q + dt qd_next

    Args:
        model: Planar object.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].
        u: Efforts, nu [N·m | N | V], constant over the step.
        dt: Step [s].
        object_dynamics: Slot.

    Returns:
        Next q and qd.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    qd_next = qd + object_dynamics(q, qd, u) * dt
    return q + qd_next * dt, qd_next


def object_rk4(model, q, qd, u, dt, object_dynamics):
    """Give the state one step later by the classical Runge-Kutta scheme.

        q_next = q + dt (qd + 2 v2 + 2 v3 + v4)/6,  qd_next the same of accelerations

    Args:
        model: Planar object.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].
        u: Efforts, nu [N·m | N | V], constant over the step.
        dt: Step [s].
        object_dynamics: Slot.

    Returns:
        Next q and qd.

    Source: WAW-3.1; W. Kutta, 1901.
    """
    half, sixth = dt * 0.5, dt * (1.0 / 6.0)
    a1 = object_dynamics(q, qd, u)
    v2 = qd + a1 * half
    a2 = object_dynamics(q + qd * half, v2, u)
    v3 = qd + a2 * half
    a3 = object_dynamics(q + v2 * half, v3, u)
    v4 = qd + a3 * dt
    a4 = object_dynamics(q + v3 * dt, v4, u)
    q_next = q + (qd + (v2 + v3) * 2.0 + v4) * sixth
    return q_next, qd + (a1 + (a2 + a3) * 2.0 + a4) * sixth


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    steps = (object_euler, object_semi_implicit, object_rk4)
    return [
        TextSolver(
            "object_closed_form", OBJECT_DYNAMICS, object_closed_form, by_joint=False
        ),
        TextSolver("object_energy", OBJECT_ENERGY, object_energy, by_joint=False),
        *(
            TextSolver(
                step.__name__,
                OBJECT_STEP,
                step,
                slots={"object_dynamics": OBJECT_DYNAMICS},
                fills={"object_dynamics": "object_closed_form"},
                by_joint=False,
            )
            for step in steps
        ),
    ]
