"""Kinds of problem of optimal control: costs of one knot, and whole plans.

A plan has N knots and N + 1 states: joint forces act from knot to knot. The state is
x = (q, qd); its displacement dx = (dq, dqd) has nx = 2 nv coordinates.
"""

from dyn_core.problems.ports import (
    FORCE,
    POSITION,
    VELOCITY,
    dt,
    plain_tau,
    q,
    q_next,
    qd,
    qd_next,
)
from dyn_core.problems.signatures import PASSIVE, Signature
from dyn_core.problems.signatures import port_row as P

PLAN = "control_problem"  # `kind` of the Systems of OPTIMAL_CONTROL

# fmt: off
settings = P("settings", "ns", "SI",
    "weights and targets of the costs, one cost after another")
value = P("value", "", "1", "sum of weight residual² / 2 of all costs")
l_x = P("l_x", "nx", "SI", "gradient of the value by a displacement of the state")
l_u = P("l_u", "nv", "SI", "gradient by the joint forces")
l_xx = P("l_xx", "nx nx", "SI", "Gauss-Newton Hessian by the state")
l_ux = P("l_ux", "nv nx", "SI", "Gauss-Newton Hessian by joint forces and state")
l_uu = P("l_uu", "nv nv", "SI", "Gauss-Newton Hessian by the joint forces")
KNOT_COST = Signature("knot_cost", (q, qd, plain_tau, settings), (value,),
    meaning="value of the costs at one knot of a plan")
KNOT_COST_DERIVATIVES = Signature("knot_cost_derivatives",
    (q, qd, plain_tau, settings), (value, l_x, l_u, l_xx, l_ux, l_uu),
    meaning="value of the costs at one knot of a plan and its derivatives")

KNOT_POLICY = Signature("knot_policy",
    (q, qd,
     P("q_plan", "nq", POSITION, "planned positions", "position", optional=True),
     P("qd_plan", "nv", VELOCITY, "planned velocities", optional=True),
     P("tau_plan", "nv", FORCE, "planned joint forces"),
     P("k", "nv", FORCE, "change of the joint forces by a full step", optional=True),
     P("K", "nv nx", "SI", "feedback by the displacement from the plan", optional=True),
     P("lower", "nv", FORCE, "least joint forces"),
     P("upper", "nv", FORCE, "largest joint forces"),
     P("gap", "nx", "SI", "gap at the end of the step, which a full step closes",
        optional=True),
     P("length", "", "1", "length of the step, 1 for a full one", optional=True),
     settings, dt),
    (q_next, qd_next, plain_tau, value),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="step of a plan under its feedback, and the costs at its knot")
q_start = P("q", "nq", POSITION, "joint positions at the start")
qd_start = P("qd", "nv", VELOCITY, "joint velocities at the start")
q_guess = P("q_guess", "states nq", POSITION, "first guess of the positions")
qd_guess = P("qd_guess", "states nv", VELOCITY, "first guess of the velocities")
tau_guess = P("tau_guess", "knots nv", FORCE, "first guess of the joint forces")
q_plan = P("q_plan", "states nq", POSITION, "planned positions")
qd_plan = P("qd_plan", "states nv", VELOCITY, "planned velocities")
tau_plan = P("tau_plan", "knots nv", FORCE, "planned joint forces")
gains = P("gains", "knots nv nx", "SI",
    "feedback K: joint forces tau_plan + K dx at a displacement dx from the plan")
residuals = P("residuals", "3", "SI",
    "largest gap between knots, projected gradient by joint forces, limit violation")
iterations = P("iterations", "", "1", "number of iterations")
reason = P("reason", "", "1",
    "0 converged, 1 max_iterations, 2 infeasible: limit, 3 diverged: cost, 4 stalled")
OPTIMAL_CONTROL = Signature("optimal_control",
    (q_start, qd_start, q_guess, qd_guess, tau_guess),
    (q_plan, qd_plan, tau_plan, gains, value, residuals, iterations, reason),
    system=PLAN,
    meaning="joint forces and motion of least cost (MPC), and the feedback around them")
