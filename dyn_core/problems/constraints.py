"""Kinds of problem of constraints: responses to forces, Delassus matrices, loops.

For robots with loops: bearing forces and independent coordinates, too.
"""

from dyn_core.problems.dynamics import HYBRID_DYNAMICS, JOINT_REACTIONS
from dyn_core.problems.ports import (
    BODY_ACCELERATION,
    FORCE,
    INERTIA,
    INVERSE_INERTIA,
    VELOCITY,
    WRENCH,
    f_ext,
    lambda_,
    plain_tau,
    q,
    qd,
    qdd,
    tau,
)
from dyn_core.problems.signatures import DYNAMICS, PASSIVE, Signature
from dyn_core.problems.signatures import port_row as P

# fmt: off
f_loop = P("f_loop", "nl 6", WRENCH,
    "force of each loop on link b, [moment; force], at B in A's axes", "forces")
H_y = P("H_y", "ny ny", INERTIA, "inertia matrix of the independent coordinates")
G_y = P("G", "nv ny", "SI", "joint velocities per independent velocity: qd = G yd")
C_y = P("C_y", "ny", FORCE,
    "forces along y of the motion without acceleration of y")
g_y = P("g_y", "ny", FORCE, "forces along y that balance gravity")

LOOP_REACTIONS = Signature("loop_reactions",
    (q, qd, plain_tau, f_ext), (qdd, *JOINT_REACTIONS.outputs, f_loop, lambda_),
    passive=PASSIVE,
    meaning="forces through all joints and loops of a robot under joint forces")
INDEPENDENT_INERTIA = Signature("independent_inertia", (q,), (H_y, G_y),
    ignores=("gravity",),
    meaning="inertia of a robot with loops in its independent coordinates y")
INDEPENDENT_BIAS = Signature("independent_bias", (q, qd, f_ext), (C_y,),
    passive=PASSIVE,
    meaning="bias force of a robot with loops in its independent coordinates y")
INDEPENDENT_GRAVITY = Signature("independent_gravity", (q,), (g_y,),
    passive=("joint_springs",), ignores=("armature", "inertia"),
    meaning="weight of a robot with loops in its independent coordinates y")


# fmt: off
change_of_f_ext = P("f_ext", "nb 6", WRENCH, "change of each body's external force,"
    " [moment; force] in body coordinates: H qdd = tau + J.T f_ext", "wrenches")
change_of_a = P("a", "nb 6", BODY_ACCELERATION,
    "change of each body's acceleration, [angular; linear]", "motions")
omega = P("omega", "nb 6 6", INVERSE_INERTIA,
    "acceleration of each body per force on it, body coordinates")
cross_omega = P("omega", "6 6", INVERSE_INERTIA,
    "acceleration of one frame per force on the other")

W = P("W", "m 6", "-; m",
    "direction of each constraint row, [moment; force], base coordinates")
G = P("G", "mj mj", INVERSE_INERTIA, "Delassus matrix J H^-1 J.T of rows and joints")
J = P("J", "mj nv", "-; m", "velocity of each constraint row per joint velocity")
point_G = P("G", "m m", "1/kg",
    "Delassus matrix J H^-1 J.T, three rows for each point")
point_velocity = P("velocity", "m", "m/s", "of each point after it, base axes")
qd_after = P("qd_next", "nv", VELOCITY, "velocities after it", "velocity")
point_impulse = P("impulse", "m", "N·s", "impulse at each point, base axes")
Lambda = P("Lambda", "k k", INERTIA, "operational-space inertia matrix")

f = P("f", "m", "m | rad", "position error of each row")
A = P("A", "m nv", "SI", "derivative of f by the positions")
bias = P("bias", "m", "m/s² | rad/s²",
    "acceleration of the rows at qdd = 0: dA/dt qd")
rate = P("rate", "m", "m/s | rad/s", "velocity error A qd of each constraint row")
tau_p = P("tau_p", "np", FORCE, "forces of the passive coordinates")
tau_a = P("tau_a", "na", FORCE, "forces of the active coordinates")

RESPONSE = Signature("response", (q, tau, change_of_f_ext), (qdd, change_of_a),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="changes of acceleration that changes of force cause")
SELF_RESPONSES = Signature("self_responses", (q,), (omega,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="acceleration of each body per unit force on it")
CROSS_RESPONSE = Signature("cross_response", (q,), (cross_omega,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="acceleration of one frame per unit force on another")
DELASSUS = Signature("delassus", (q, W), (G,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="Delassus matrix of constraint rows")
POINT_DELASSUS = Signature("point_delassus", (q,), (point_G,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="Delassus matrix of points of links")
POINT_IMPULSE = Signature("point_impulse",
    (q, qd, point_velocity), (qd_after, point_impulse),
    of_trees=True, ignores=("gravity",),
    meaning="impact that gives points of links a velocity")
CONSTRAINT_JACOBIAN = Signature("constraint_jacobian", (q, W), (J,),
    ignores=DYNAMICS, meaning="Jacobian of constraint rows")
OPERATIONAL_INERTIA = Signature("operational_inertia", (q,), (Lambda,),
    of_trees=True, divides_by_inertia=True, ignores=("gravity",),
    meaning="inertia of a frame against forces on it")

LOOP_CONSTRAINTS = Signature("loop_constraints", (q, qd), (f, A, bias),
    ignores=DYNAMICS,
    meaning="position errors of loop-closure constraints and their derivatives")
LOOP_FORWARD_DYNAMICS = Signature("loop_forward_dynamics",
    (q, qd, plain_tau, f_ext), (qdd, lambda_, f, rate),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="forward dynamics of a robot with loops, and its constraint forces")
LOOP_HYBRID_DYNAMICS = Signature("loop_hybrid_dynamics",
    HYBRID_DYNAMICS.inputs, (*HYBRID_DYNAMICS.outputs, lambda_),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="hybrid dynamics of a robot with loops")
LOOP_INVERSE_DYNAMICS = Signature("loop_inverse_dynamics",
    (q, qd, qdd, tau_p, f_ext), (tau_a, lambda_), passive=PASSIVE,
    meaning="forces of active joints that produce a motion of a robot with loops")
