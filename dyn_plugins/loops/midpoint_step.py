"""Time step of second order, projected on closed loops.

An inertia that is singular, also with the loops, raises SingularError when the Program
runs.
"""

from dyn_core.authoring import Vector, hookimpl, with_parameters
from dyn_core.problems import STEP
from dyn_core.validation import Whole
from dyn_plugins.loops._least import DEPENDENT, DRIFTING
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops.loop_step import (
    EITHER,
    PROJECTED,
    ProjectedStep,
    projection,
)
from dyn_plugins.steps.integration import stop_force, time_after


def projected_midpoint(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, rounds, dependent,
    tolerance,
):  # fmt: skip
    """Return the state one step of the midpoint rule later, back on closed loops.

        u = dt/2 qd,   v = qd + dt/2 FD(q, qd)
        q <- q (+) dt dexp^-1(u) v,   qd <- qd + dt FD(q (+) u, v)
        q <- q (+) -H^-1 A.T G^-1 f, some rounds;   qd <- qd - H^-1 A.T G^-1 A qd

    Of second order. Positions are corrected with H, A and G = A H^-1 A.T of the first
    round, velocities with H, A and G of the final position, so that both residuals
    vanish up to rounding. Rows in velocities (rolling) have no residual f: positions
    are corrected without slip. Driven frames have their poses of the middle of the step
    for the second acceleration, and of its end for the corrections. A robot without
    loops is not corrected. tolerance without least_norm raises UnsupportedError when
    the Program is built.

    Inputs and outputs: those of STEP; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.
        rounds: Number of corrections of the positions, at least 1, else
            UnsupportedError when built; each multiplies the residual by about the first
            residual.
        dependent: Treatment of rows that depend on each other: refuse: SingularError;
            least_norm: G^+ in place of G^-1, and least_norm as an option of the default
            in the slot forward_dynamics; None: as that option of the solver in the
            slot, refuse if it has none.
        tolerance: Relative tolerance of the rank with least_norm; see aba_loops.

    Source: KIM-2.5, KIM-3.0 (projection to the manifold, redundant rows); E. Hairer et
    al., Geometric Numerical Integration, section IV.4 (projection keeps the order).
    """

    def acceleration(q, qd, time):
        push = tau + stop_force(model, q, qd)[0] if limit_stops else tau
        return forward_dynamics(q, qd, push, f_ext[1:], **time)

    half = dt * 0.5
    u, v = qd * half, qd + acceleration(q, qd, {}) * half
    a = acceleration(model.integrate(q, u), v, time_after(model, half))
    q, qd = model.integrate(q, model.tangent_rate(u, v) * dt), qd + a * dt
    q = model.normalize(q)
    if not model.loops:
        return q, qd
    model = with_parameters(model, time_after(model, dt))
    still = Vector.zeros(model.nv)
    rows = rows_of(model, q, qd, still)
    correct = projection(model, dependent, tolerance)
    correction = correct(model, q, rows)
    for _ in range(rounds):
        shift = correction([-row.f for row in rows])
        q = model.normalize(model.integrate(q, shift))
        rows = rows_of(model, q, qd, still)
    return q, qd + correct(model, q, rows)([-row.rate for row in rows])


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        ProjectedStep(
            "projected_midpoint",
            STEP,
            projected_midpoint,
            options={
                "limit_stops": False,
                "rounds": 2,
                "dependent": None,
                "tolerance": DRIFTING,
            },
            valid={**DEPENDENT, "rounds": Whole(1), "dependent": EITHER},
            **PROJECTED,
        )
    ]
