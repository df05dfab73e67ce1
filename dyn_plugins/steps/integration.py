"""Time steps: semi-implicit Euler, and RK4 on the configuration manifold."""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    advance,
    ball_limit_rows,
    friction_slope,
    hookimpl,
    limited_balls,
    rate_in_initial_axes,
    where,
)
from dyn_core.problems import FORWARD_DYNAMICS, STEP
from dyn_plugins.steps._stages import weighted_stages

STOP_RATE = 100.0  # natural frequency of a limit stop [rad/s]


def stop_force(model, q, qd):
    """Return force, stiffness k, damping d of spring-damper stops at position limits.

        force = -k (q - limit) - d qd beyond a limit, k = D w², d = 2 D w, D = diag H

    D is a typical inertia along the joint (Model.inertia_scale), so that every stop has
    the natural frequency w = 100 rad/s. For a ball joint, the stops act along its swing
    and its twist; D is its largest scale, and k and d are the diagonals of matrices.
    Joints of several coordinates that are not limited balls have no stops, and
    followers none of their own. A swing of pi of a limited ball joint raises
    SingularError when the Program runs. All three are nv, and zero where no stop acts.
    """
    force, stiffness, damping = [0.0] * model.nv, [0.0] * model.nv, [0.0] * model.nv
    for i in model.independent:
        index = model.v_slices[i].start
        if model.joint[i].nv != 1:
            continue
        x, v = q[model.q_slices[i].start], qd[index]
        D = model.inertia_scale[i][0]
        k, d = D * STOP_RATE**2, 2 * D * STOP_RATE
        for limit, sign in ((model.upper[index], 1.0), (model.lower[index], -1.0)):
            if abs(limit) == float("inf"):
                continue
            beyond = (x - float(limit)) * sign > 0
            force[index] -= where(beyond, (x - float(limit)) * k + v * d, 0.0)
            stiffness[index] += where(beyond, k, 0.0)
            damping[index] += where(beyond, d, 0.0)
    for i in limited_balls(model):
        index = model.v_slices[i].start
        for row, push, k, d in _ball_stops(model, i, q, qd):
            for n, x in enumerate(row):
                force[index + n] -= x * push
                stiffness[index + n] += x * x * k
                damping[index + n] += x * x * d
    return Vector(force), Vector(stiffness), Vector(damping)


def _ball_stops(model, i, q, qd):
    """Return (row, push, stiffness, damping) of a ball joint's finite limits.

    They are swing, lower and upper twist; row leads from the joint's velocity to the
    rate of the gap; the others are zero while the gap is open. The joint force of the
    stop is -push times the row [N·m].
    """
    D = max(model.inertia_scale[i])
    k, d = D * STOP_RATE**2, 2 * D * STOP_RATE
    stops = []
    for _, rate, gap in ball_limit_rows(model, i, q[model.q_slices[i]]):
        row, beyond = Vector(rate), gap < 0.0
        push = where(beyond, gap * k + row @ qd[model.v_slices[i]] * d, 0.0)
        stops.append((row, push, where(beyond, k, 0.0), where(beyond, d, 0.0)))
    return stops


def semi_implicit_euler(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
):
    """Return the state one step later: velocity first, then position with it.

        qd_next = qd + dt qdd,   q_next = q (+) dt qd_next

    A floating body moves along a straight line in the step: its velocity is updated in
    the axes of the start, v + dt (v' + w x v), and then expressed in the axes of the
    end.

    With `implicit`, the stiff joint forces are evaluated at the end of the step, to
    first order: their slopes count as inertia, (H + dt B + dt² K) qdd = tau + stops -
    C - dt K qd. B is the damping of the stops that act plus the slope of friction, K
    the stiffness of these stops. Errors of forward_dynamics pass through. With
    limit_stops, a swing of pi of a limited ball joint raises SingularError when the
    Program runs.

    Inputs and outputs: those of STEP; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step.

    Source: KIM-2.5 names no scheme; E. Hairer et al., Geometric Numerical Integration.
    """
    force, rotors = end_of_step(model, q, qd, dt, limit_stops, implicit)
    changed = with_rotors(model, rotors) if implicit else {}
    qdd = forward_dynamics(q, qd, tau + force, f_ext[1:], **changed)
    return advance(model, q, qd + rate_in_initial_axes(model, qd, qdd) * dt, dt)


def end_of_step(model, q, qd, dt, limit_stops, implicit):
    """Return the joint forces and rotor inertias, nv, of stops and implicit friction.

        force = stops - dt K qd,   rotors = dt B + dt² K   with `implicit`
        force = stops,   rotors = 0   without

    K is the stiffness of the stops that act; B is their damping and the slope of
    friction. Without limit_stops, stops and K are zero.
    """
    force = K = B = Vector.zeros(model.nv)
    if implicit:
        B = friction_slope(model, qd)
    if limit_stops:
        force, K, damping = stop_force(model, q, qd)
        B = B + damping
    return (force - K * qd * dt, (B + K * dt) * dt) if implicit else (force, K * 0.0)


def with_rotors(model, rotors):
    """Return {"armature": Model's rotor inertias plus `rotors`}, nv [kg·m² | kg]."""
    armature = Vector(x for i in model.independent for x in model.armature[i])
    return {"armature": armature + rotors}


def time_after(model, delay):
    """Return {"time": (t + delay,)} [s], t the Model's; {} if time drives no joint."""
    return {"time": (model.parameter("time")[0] + delay,)} if model.driven else {}


def rk4(model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops):
    """Return the state one step later by the classical Runge-Kutta scheme.

        du/dt = dexp^-1(u) qd,  dqd/dt = FD(q (+) u, qd, tau),  q_next = q (+) u(dt)

    The displacement u from the start of the step is integrated in the tangent space, so
    that quaternions stay normalized and the order is four for every joint. Joints
    driven by time are evaluated at each stage's time: t, t + dt/2 twice, t + dt. Errors
    of forward_dynamics pass through. With limit_stops, a swing of pi of a limited ball
    joint raises SingularError when the Program runs.

    Joint friction is explicit. The slope of dry friction at rest, friction divided by
    friction_speed, is steep: where dt times slope over inertia exceeds 2.8, a joint at
    rest creeps. Shorten dt, or take semi_implicit_euler, whose friction is implicit.

    Inputs and outputs: those of STEP; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.

    Source: KIM-2.5; H. Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999.
    """

    def rates(before, length):
        u, v = Vector(before[:nv]) * length, qd + Vector(before[nv:]) * length
        q_stage = model.integrate(q, u)
        push = tau + stop_force(model, q_stage, v)[0] if limit_stops else tau
        time = time_after(model, length)
        qdd = forward_dynamics(q_stage, v, push, f_ext[1:], **time)
        return [*model.tangent_rate(u, v), *qdd]

    nv = model.nv
    change = weighted_stages(rates, 2 * nv, dt)
    q_next = model.normalize(model.integrate(q, Vector(change[:nv])))
    return q_next, qd + Vector(change[nv:])


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    common = {
        "slots": {"forward_dynamics": FORWARD_DYNAMICS},
        "fills": {"forward_dynamics": "auto"},
        "by_joint": False,
    }
    return [
        TracedSolver(
            "semi_implicit_euler",
            STEP,
            semi_implicit_euler,
            options={"limit_stops": False, "implicit": True},
            default=True,
            **common,
        ),
        TracedSolver("rk4", STEP, rk4, options={"limit_stops": False}, **common),
    ]
