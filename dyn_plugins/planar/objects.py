"""Planar objects by their closed equations: accelerations, energy, time steps."""

from dyn_core.authoring import TracedSolver, Vector, hookimpl
from dyn_core.planar.problems import OBJECT_DYNAMICS, OBJECT_ENERGY, OBJECT_STEP
from dyn_plugins.planar._schemes import euler, rk4, semi_implicit


def object_closed_form(model, q, qd, u):
    """Return the accelerations of a planar object by its own equation.

        qdd = f(q, qd, u),   B(q) qdd + c(q, qd) + h(q) = efforts(qd, u)

    Inputs and outputs: those of OBJECT_DYNAMICS.

    Source: WAW-13.1, WAW-13.2, WAW-13.3, WAW-14.1, WAW-14.2, WAW-14.3.
    """
    return Vector(model.equation(model.parameters, q, qd, u))


def object_energy(model, q, qd):
    """Return the kinetic and the potential energy of a planar object.

        d/dt (T + V) = qd . efforts(qd, u)

    Inputs and outputs: those of OBJECT_ENERGY.

    Source: WAW-H, check (iv).
    """
    return model.energy_of(model.parameters, q, qd)


def object_euler(model, q, qd, u, dt, object_dynamics):
    """Return the state one step later by the explicit Euler scheme.

        q_next = q + dt qd,   qd_next = qd + dt qdd(q, qd, u)

    Inputs and outputs: those of OBJECT_STEP.

    Args:
        object_dynamics: Solver of OBJECT_DYNAMICS.

    Source: WAW-3.1 names other schemes; this is the one of Gymnasium's CartPole-v1.
    """
    return stepped(euler, q, qd, u, dt, object_dynamics)


def object_semi_implicit(model, q, qd, u, dt, object_dynamics):
    """Return the state one step later: velocity first, then position with it.

        qd_next = qd + dt qdd(q, qd, u),   q_next = q + dt qd_next

    Inputs and outputs: those of OBJECT_STEP.

    Args:
        object_dynamics: Solver of OBJECT_DYNAMICS.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    return stepped(semi_implicit, q, qd, u, dt, object_dynamics)


def object_rk4(model, q, qd, u, dt, object_dynamics):
    """Return the state one step later by the classical Runge-Kutta scheme.

        dq/dt = qd,  d qd/dt = qdd(q, qd, u)

    u is constant over the step.

    Inputs and outputs: those of OBJECT_STEP.

    Args:
        object_dynamics: Solver of OBJECT_DYNAMICS.

    Source: WAW-3.1; W. Kutta, 1901.
    """
    return stepped(rk4, q, qd, u, dt, object_dynamics)


def stepped(scheme, q, qd, u, dt, object_dynamics):
    """Return q and qd after one step of a scheme.

    Args:
        scheme: Function of _schemes.py.
        q, qd: Vectors of nq.
        u: Efforts, constant in the step.
        dt: Step [s].
        object_dynamics: Function of q, qd, u that returns qdd.
    """
    (q_next,), (qd_next,) = scheme(
        [q], [qd], dt, lambda q, qd: [object_dynamics(q[0], qd[0], u)]
    )
    return q_next, qd_next


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    steps = (object_euler, object_semi_implicit, object_rk4)
    return [
        TracedSolver(
            "object_closed_form", OBJECT_DYNAMICS, object_closed_form, by_joint=False
        ),
        TracedSolver("object_energy", OBJECT_ENERGY, object_energy, by_joint=False),
        *(
            TracedSolver(
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
