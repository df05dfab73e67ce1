"""Kinds of problem of robots with loops: bearing forces, independent coordinates."""

from dyn_core.problems.dynamics import JOINT_REACTIONS
from dyn_core.problems.joint_ports import (
    FORCE,
    INERTIA,
    WRENCH,
    f_ext,
    plain_tau,
    q,
    qd,
    qdd,
)
from dyn_core.problems.ports import PASSIVE, Port, Signature

LOOP_REACTIONS = Signature(
    "loop_reactions",
    (q, qd, plain_tau, f_ext),
    (
        qdd,
        *JOINT_REACTIONS.outputs,
        Port(
            "f_loop",
            ("nl", 6),
            WRENCH,
            "forces",
            meaning="force of each loop on link b, [moment; force], at B in A's axes",
        ),
        Port(
            "lambda_", ("m",), "N | N·m", meaning="constraint forces, one for each row"
        ),
    ),
    passive=PASSIVE,
    meaning="forces through all joints and loops of a robot under joint forces",
)
INDEPENDENT_INERTIA = Signature(
    "independent_inertia",
    (q,),
    (
        Port(
            "H_y",
            ("ny", "ny"),
            INERTIA,
            meaning="inertia matrix of the independent coordinates",
        ),
        Port(
            "G",
            ("nv", "ny"),
            "SI",
            meaning="joint velocities per independent velocity: qd = G yd",
        ),
    ),
    meaning="inertia of a robot with loops in its independent coordinates y",
    ignores=("gravity",),
)
INDEPENDENT_BIAS = Signature(
    "independent_bias",
    (q, qd, f_ext),
    (
        Port(
            "C_y",
            ("ny",),
            FORCE,
            meaning="forces along y of the motion without acceleration of y",
        ),
    ),
    passive=PASSIVE,
    meaning="bias force of a robot with loops in its independent coordinates y",
)
INDEPENDENT_GRAVITY = Signature(
    "independent_gravity",
    (q,),
    (Port("g_y", ("ny",), FORCE, meaning="forces along y that balance gravity"),),
    passive=("joint_springs",),
    meaning="weight of a robot with loops in its independent coordinates y",
    ignores=("armature", "inertia"),
)
