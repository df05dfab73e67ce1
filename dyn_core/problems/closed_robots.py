"""Kinds of problem of robots with loops: bearing forces, independent coordinates."""

from dyn_core.problems.dynamics import JOINT_REACTIONS
from dyn_core.problems.joint_ports import (
    FORCE,
    INERTIA,
    WRENCH,
    f_ext,
    lambda_,
    plain_tau,
    q,
    qd,
    qdd,
)
from dyn_core.problems.ports import PASSIVE, Signature
from dyn_core.problems.ports import port_row as P

# fmt: off
f_loop = P("f_loop", "nl 6", WRENCH,
    "force of each loop on link b, [moment; force], at B in A's axes", "forces")
H_y = P("H_y", "ny ny", INERTIA, "inertia matrix of the independent coordinates")
G = P("G", "nv ny", "SI", "joint velocities per independent velocity: qd = G yd")
C_y = P("C_y", "ny", FORCE,
    "forces along y of the motion without acceleration of y")
g_y = P("g_y", "ny", FORCE, "forces along y that balance gravity")

LOOP_REACTIONS = Signature("loop_reactions",
    (q, qd, plain_tau, f_ext), (qdd, *JOINT_REACTIONS.outputs, f_loop, lambda_),
    passive=PASSIVE,
    meaning="forces through all joints and loops of a robot under joint forces")
INDEPENDENT_INERTIA = Signature("independent_inertia", (q,), (H_y, G),
    ignores=("gravity",),
    meaning="inertia of a robot with loops in its independent coordinates y")
INDEPENDENT_BIAS = Signature("independent_bias", (q, qd, f_ext), (C_y,),
    passive=PASSIVE,
    meaning="bias force of a robot with loops in its independent coordinates y")
INDEPENDENT_GRAVITY = Signature("independent_gravity", (q,), (g_y,),
    passive=("joint_springs",), ignores=("armature", "inertia"),
    meaning="weight of a robot with loops in its independent coordinates y")
