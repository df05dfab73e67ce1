"""Planar objects by their closed equations, and steps of tasks, each in one kernel.

A chain has n joints and n-1 links.
"""

from dyn_core.authoring import (
    Matrix,
    TracedSolver,
    Vector,
    equal,
    hookimpl,
    loop,
    where,
)
from dyn_core.planar import FREE, GUIDED, LINE
from dyn_core.planar.problems import (
    OBJECT_DYNAMICS,
    OBJECT_ENERGY,
    OBJECT_STEP,
    TASK_STEP,
)
from dyn_core.validation import Whole
from dyn_plugins.planar._passes import ZERO, modes_of, rows_of
from dyn_plugins.planar._schemes import euler, rk4, semi_implicit
from dyn_plugins.planar._touching import height, planes_of
from dyn_plugins.planar.steps import chain_fixed_step

PARALLEL = 1e-6  # sine of an angle up to which a line and an edge are parallel
SCHEMES = {"euler": euler, "semi_implicit": semi_implicit, "rk4": rk4}


def object_closed_form(model, q, qd, u):
    """Return the accelerations of a planar object by its own equation.

        qdd = f(q, qd, u),   B(q) qdd + c(q, qd) + h(q) = efforts(qd, u)

    Errors of the object's equation pass through, such as SingularError when the Program
    runs for a B that is not positive definite.

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

    Errors of object_dynamics pass through, such as SingularError.

    Inputs and outputs: those of OBJECT_STEP.

    Args:
        object_dynamics: Solver of OBJECT_DYNAMICS.

    Source: WAW-3.1 names other schemes; this is the one of Gymnasium's CartPole-v1.
    """
    return stepped(euler, q, qd, u, dt, object_dynamics)


def object_semi_implicit(model, q, qd, u, dt, object_dynamics):
    """Return the state one step later: velocity first, then position with it.

        qd_next = qd + dt qdd(q, qd, u),   q_next = q + dt qd_next

    Errors of object_dynamics pass through, such as SingularError.

    Inputs and outputs: those of OBJECT_STEP.

    Args:
        object_dynamics: Solver of OBJECT_DYNAMICS.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    return stepped(semi_implicit, q, qd, u, dt, object_dynamics)


def object_rk4(model, q, qd, u, dt, object_dynamics):
    """Return the state one step later by the classical Runge-Kutta scheme.

        dq/dt = qd,  d qd/dt = qdd(q, qd, u)

    u is constant over the step. Errors of object_dynamics pass through, such as
    SingularError.

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
        object_dynamics: Function of q, qd, u that returns qdd; its errors pass through.
    """
    (q_next,), (qd_next,) = scheme(
        [q], [qd], dt, lambda q, qd: [object_dynamics(q[0], qd[0], u)]
    )
    return q_next, qd_next


def task_step(model, state, action, unroll):
    """Return the next state of a task, observation, reward and terminated.

        after = settle(step^substeps(state, control(a))),   a = saturated(action)
        observation = observe(after),   reward = reward(state, a, after)

    Actions beyond their bounds are clipped. Errors of the integrator, of the object's
    equation and of the task's own functions pass through.

    Inputs and outputs: those of TASK_STEP.

    Args:
        unroll: Largest number of substeps of a chain that are written out one after the
            other; more are a loop. Substeps of an object are always written out,
            because its equations have conditions that are required.

    Source: WAW-15.5, WAW-15.4.
    """
    action = model.saturated(action)
    of_object = model.system.kind == "planar_object"
    step = _object_step if of_object else _chain_step
    efforts = model.control(action)
    if of_object or model.substeps <= unroll:
        after = state
        for _ in range(model.substeps):
            after = step(model, after, efforts)
    else:
        after = loop(
            state,
            lambda now: step(model, Vector(now), efforts),
            lambda now: True,
            model.substeps,
        )
    after = model.settle(Vector(after))
    reward = model.reward(state, action, after)
    return after, Vector(model.observe(after)), reward, model.over(after)


def _object_step(model, state, efforts):
    """Return the state of an object a step model.dt of the integrator later."""
    system, u = model.system, Vector(efforts)
    q, qd = model.parts(state)
    q, qd = stepped(
        SCHEMES[model.scheme], q, qd, u, model.dt,
        lambda q, qd, u: object_closed_form(system, q, qd, u),
    )  # fmt: skip
    return Vector([*q, *qd])


def _chain_step(model, state, efforts):
    """Return the state of a chain one step of the integrator later.

    It is a Vector: the joints' x, y in turn, their velocities, contact and limit.

    After the step of fixed cost, positions are corrected: joints below the ground move
    to its edge, and link lengths are corrected, see _repaired.
    """
    chain = model.system
    x, v, contact, limit = model.parts(state)
    x, v, contact, limit, _ = chain_fixed_step(
        chain, x, v, contact, limit, efforts, model.dt, model.rounds, model.window
    )
    x = _lifted(chain, rows_of(x) if isinstance(x, Matrix) else list(x))
    x = _repaired(chain, x, contact)
    return Vector([*_flat(x), *_flat(v), *contact, *limit])


def _lifted(chain, x):
    """Return a new list of positions, joints below the ground moved to its edge.

    Guided joints stay, and joints on a line move along it, or stay if it is parallel to
    the edge; only half-planes that stop a joint count.
    """
    x = list(x)
    for i in range(chain.n):
        for _, plane in planes_of(chain, i):
            above, up = height(plane, x[i]), Vector(plane.z)
            if chain.constraints.kind[i] == LINE:
                s = chain.constraints.s[i]
                along = Vector((-s[1], s[0]))
                rise = up @ along
                up = along * (1.0 / rise) if abs(rise) > PARALLEL else ZERO
            x[i] = x[i] - up * where(above < 0.0, above, 0.0)
    return x


def _modes(chain, contact):
    """Return the chain's JointModes, changed at joints that touch a half-plane.

    A free joint on a half-plane of mode "slide" is LINE, with its normal as s; others
    are GUIDED. contact: By joint: 0, or the half-plane's number, from 1 on.
    """
    modes = modes_of(chain)
    for i in range(chain.n):
        for k, plane in planes_of(chain, i):
            holds = equal(contact[i], k)
            free = chain.constraints.kind[i] == FREE
            slides = plane.mode == "slide" and free
            modes.kind[i] = where(holds, LINE if slides else GUIDED, modes.kind[i])
            modes.s[i] = where(holds, Vector(plane.z), modes.s[i])
    return modes


def _repaired(chain, x, contact):
    """Return positions with corrected link lengths: two sweeps, weighted by mobility.

    A Newton step for |c|² = l², which needs no square root. The list x is changed in
    place, and returned. Guided joints, also joints that stick to the ground, and joints
    without mass do not move; joints on a line move along it; a link whose joints cannot
    move along it stays as it is.

    Source: WAW-3.2, with all of a link's error at once.
    """
    modes, links = _modes(chain, contact), list(enumerate(chain.lengths))
    for i, length in [*links, *reversed(links[:-1])]:
        c = x[i + 1] - x[i]
        near, far = (_mobile(chain, modes, k, c) for k in (i, i + 1))
        whole = c @ (near + far)
        wrong = (c @ c - length * length) * 0.5
        share = where(whole > 0.0, wrong / where(whole > 0.0, whole, 1.0), 0.0)
        x[i], x[i + 1] = x[i] + near * share, x[i + 1] - far * share
    return x


def _mobile(chain, modes, i, r):
    """Return r/m for joint i [m/kg]; on a line, only the part of r along it counts.

    Zero for guided joints and joints without mass.
    """
    m = chain.masses[i]
    if chain.constraints.kind[i] == GUIDED or m == 0.0:
        return ZERO
    s, kind = modes.s[i], modes.kind[i]
    along = where(equal(kind, LINE), r - s * (s @ r), r)
    return where(equal(kind, GUIDED), ZERO, along) * (1.0 / m)


def _flat(rows):
    """Return the entries of `rows`, Vectors, as one list."""
    return [number for row in rows for number in row]


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
        TracedSolver(
            "task_step",
            TASK_STEP,
            task_step,
            options={"unroll": 2},
            valid={"unroll": Whole()},
            by_joint=False,
        ),
    ]
