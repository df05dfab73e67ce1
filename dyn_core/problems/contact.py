"""Kinds of problem of contacts and constraints: the impulses of one step.

A bound `lo` or `hi` beyond 1e300 in magnitude counts as no bound. The entries of
`residuals` are named by RESIDUALS in contact/problem/residuals.py; `status` is an index
into STATUSES of that file.
"""

from dyn_core.problems.derivatives import STEP_DERIVATIVES
from dyn_core.problems.ports import (
    INERTIA,
    VELOCITY,
    WRENCH,
    dt,
    f_ext,
    q,
    q_next,
    qd,
    qd_next,
    tau,
)
from dyn_core.problems.signatures import DYNAMICS, PASSIVE, Signature
from dyn_core.problems.signatures import port_row as P

LAYOUT = "constraint_layout"

# fmt: off
G = P("G", "m m", "(m/s)/(N·s)", "Delassus matrix: velocity of each row per impulse")
b = P("b", "m", "m/s", "velocity of each row without impulses")
mu = P("mu", "k", "1 | m", "friction coefficients")
lo = P("lo", "m", "N·s", "lower bound of each impulse")
hi = P("hi", "m", "N·s", "upper bound of each impulse")
compliance = P("compliance", "m", "(m/s)/(N·s)",
    "softness of each row, added to the diagonal of G")
warm = P("warm", "m", "N·s", "impulses of the step before, a warm start")
impulse = P("impulse", "m", "N·s", "impulse of each constraint row")
velocity = P("velocity", "m", "m/s", "velocity of each row after the step")
residuals = P("residuals", "5", "N·s, m/s, J, J, 1", "largest violation of each law:"
    " primal, dual, complementarity, dissipation, law of friction")
iterations = P("iterations", "", "1", "number of iterations")
status = P("status", "", "index into STATUSES", "whether the solver converged")

gap = P("gap", "c", "m", "signed distance of each contact")
dx_dmu = P("dx_dmu", "nx c", "SI",
    "derivative of the state after the step by friction coefficients")
dx_dgap = P("dx_dgap", "nx c", "SI",
    "derivative of it by a shift of each contact's half-space, away")
modes = P("modes", "c", "-", "0 separate, 1 stick, 2 slip")
not_differentiable = P("not_differentiable", "", "-", "1 at boundaries of modes,"
    " dependent slip, not converged; 2 at gap 0, with the slope of one side; else 0")

poses = P("poses", "poses 12", "-; m",
    "rotation to the world and origin of each body, the world's first")
columns = P("columns", "nc 6", "-; m",
    "velocity of each body's joint per coordinate, [angular; linear]")
factor = P("factor", "nl", "kg^1/2·m | kg^1/2",
    "factor of the inertia: inverse diagonal, entries below")
free = P("free", "nv", VELOCITY, "velocity after a free step")
rows = P("rows", "nr nv", "SI", "derivatives of `gaps` by the positions")
gaps = P("gaps", "nr", "m | rad",
    "gaps of limits of balls, then errors of loops and couplings")

u = P("u", "nv", VELOCITY, "velocity in the axes of q", "velocity")
correction = P("correction", "nv", VELOCITY,
    "velocity that moves the position alone", "velocity", optional=True)
required_correction = P("correction", "nv", VELOCITY, "as in moved_state", "velocity")
u_after = P("u", "nv", VELOCITY, "velocity after the step", "velocity")
pushes = P("pushes", "nb 6", WRENCH,
    "mean force of the contacts on each body, as f_ext", "wrenches")
inertia = P("inertia", "nv nv", INERTIA, "inertia with joint friction")
by_q = P("by_q", "nv nv", "SI", "momentum of the step by the position")
by_qd = P("by_qd", "nv nv", "SI", "momentum of the step by the velocity before it")
change_by = tuple(
    P(f"change_{x}", "nv nv", "SI", f"gyroscopic change of the velocity by {x}")
    for x in ("q", "qd", "tau"))
rates = P("rates", "nc 6", "1/s; m/s",
    "change of velocities with each column's coordinate, at u")
rates_before = P("rates_before", "nc 6", "1/s; m/s", "likewise at qd")
state_by = tuple(
    P(f"by_{x}", "nx nv", "SI", f"change of the state by {x}")
    for x in ("q", "u", "correction"))

CONTACT_SOLVE = Signature("contact_solve",
    (G, b, mu, lo, hi, compliance, warm),
    (impulse, velocity, residuals, iterations, status), system=LAYOUT,
    meaning="impulses of contacts, joint limits and friction in one step")
CONTACT_STEP = Signature("contact_step",
    (q, qd, tau, dt, warm, f_ext),
    (q_next, qd_next, impulse, gap, residuals, iterations, status),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="state after a step in time with contacts")
CONTACT_STEP_DERIVATIVES = Signature("contact_step_derivatives",
    CONTACT_STEP.inputs,
    (*STEP_DERIVATIVES.outputs, dx_dmu, dx_dgap, impulse, gap, modes, status,
     not_differentiable),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="state after a step with contacts and its derivatives, nx = 2 nv")
CONTACT_TERMS = Signature("contact_terms",
    (q, qd, tau, dt, f_ext), (poses, columns, factor, free, rows, gaps),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="what a step with contacts needs of the dynamics")
MOVED_STATE = Signature("moved_state", (q, u, dt, correction), (q_next, qd_next),
    ignores=DYNAMICS, meaning="position and velocity after a time at a velocity")
CONTACT_TERM_SLOPES = Signature("contact_term_slopes",
    (q, qd, tau, u_after, dt, pushes, f_ext),
    (inertia, by_q, by_qd, *change_by, rates, rates_before),
    passive=PASSIVE, of_trees=True,
    meaning="derivatives of what a step with contacts needs of the dynamics")
MOVED_STATE_SLOPES = Signature("moved_state_slopes",
    (q, u, dt, required_correction), state_by, ignores=DYNAMICS,
    meaning="derivatives of the state after a time at a velocity")
