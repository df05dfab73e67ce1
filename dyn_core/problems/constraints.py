"""Kinds of problem of constraints: responses to forces, Delassus matrices, loops."""

from dyn_core.problems.dynamics import HYBRID_DYNAMICS
from dyn_core.problems.joint_ports import (
    BODY_ACCELERATION,
    FORCE,
    INERTIA,
    INVERSE_INERTIA,
    VELOCITY,
    WRENCH,
    f_ext,
    plain_tau,
    q,
    qd,
    qdd,
    tau,
)
from dyn_core.problems.ports import DYNAMICS, PASSIVE, Port, Signature

RESPONSE = Signature(
    "response",
    (
        q,
        tau,
        Port(
            "f_ext",
            ("nb", 6),
            WRENCH,
            "wrenches",
            meaning="change of each body's force, [moment; force], body coordinates",
        ),
    ),
    (
        qdd,
        Port(
            "a",
            ("nb", 6),
            BODY_ACCELERATION,
            "motions",
            meaning="change of each body's acceleration, [angular; linear]",
        ),
    ),
    of_trees=True,
    divides_by_inertia=True,
    meaning="changes of acceleration that changes of force cause",
    ignores=("gravity",),
)
SELF_RESPONSES = Signature(
    "self_responses",
    (q,),
    (
        Port(
            "omega",
            ("nb", 6, 6),
            INVERSE_INERTIA,
            meaning="acceleration of each body per force on it, body coordinates",
        ),
    ),
    of_trees=True,
    divides_by_inertia=True,
    meaning="acceleration of each body per unit force on it",
    ignores=("gravity",),
)
CROSS_RESPONSE = Signature(
    "cross_response",
    (q,),
    (
        Port(
            "omega",
            (6, 6),
            INVERSE_INERTIA,
            meaning="acceleration of one frame per force on the other",
        ),
    ),
    of_trees=True,
    divides_by_inertia=True,
    meaning="acceleration of one frame per unit force on another",
    ignores=("gravity",),
)

_directions = Port(
    "W",
    ("m", 6),
    "-; m",
    meaning="direction of each constraint row, [moment; force], base coordinates",
)
DELASSUS = Signature(
    "delassus",
    (q, _directions),
    (
        Port(
            "G",
            ("mj", "mj"),
            INVERSE_INERTIA,
            meaning="Delassus matrix J H^-1 J.T of rows and joints",
        ),
    ),
    of_trees=True,
    divides_by_inertia=True,
    meaning="Delassus matrix of constraint rows",
    ignores=("gravity",),
)
POINT_DELASSUS = Signature(
    "point_delassus",
    (q,),
    (
        Port(
            "G",
            ("m", "m"),
            "1/kg",
            meaning="Delassus matrix J H^-1 J.T, three rows for each point",
        ),
    ),
    of_trees=True,
    divides_by_inertia=True,
    meaning="Delassus matrix of points of links",
    ignores=("gravity",),
)
POINT_IMPULSE = Signature(
    "point_impulse",
    (
        q,
        qd,
        Port("velocity", ("m",), "m/s", meaning="of each point after it, base axes"),
    ),
    (
        Port("qd_next", ("nv",), VELOCITY, "velocity", meaning="velocities after it"),
        Port("impulse", ("m",), "N·s", meaning="impulse at each point, base axes"),
    ),
    of_trees=True,
    meaning="impact that gives points of links a velocity",
    ignores=("gravity",),
)
CONSTRAINT_JACOBIAN = Signature(
    "constraint_jacobian",
    (q, _directions),
    (
        Port(
            "J",
            ("mj", "nv"),
            "-; m",
            meaning="velocity of each constraint row per joint velocity",
        ),
    ),
    meaning="Jacobian of constraint rows",
    ignores=DYNAMICS,
)
OPERATIONAL_INERTIA = Signature(
    "operational_inertia",
    (q,),
    (Port("Lambda", ("k", "k"), INERTIA, meaning="operational-space inertia matrix"),),
    of_trees=True,
    divides_by_inertia=True,
    meaning="inertia of a frame against forces on it",
    ignores=("gravity",),
)

_multipliers = Port(
    "lambda_", ("m",), "N | N·m", meaning="constraint forces, one for each row"
)
_residual = Port("f", ("m",), "m | rad", meaning="position error of each row")
LOOP_CONSTRAINTS = Signature(
    "loop_constraints",
    (q, qd),
    (
        _residual,
        Port("A", ("m", "nv"), "SI", meaning="derivative of f by the positions"),
        Port(
            "bias",
            ("m",),
            "m/s² | rad/s²",
            meaning="acceleration of the rows at qdd = 0: dA/dt qd",
        ),
    ),
    meaning="position errors of loop-closure constraints and their derivatives",
    ignores=DYNAMICS,
)
LOOP_FORWARD_DYNAMICS = Signature(
    "loop_forward_dynamics",
    (q, qd, plain_tau, f_ext),
    (
        qdd,
        _multipliers,
        _residual,
        Port(
            "rate",
            ("m",),
            "m/s | rad/s",
            meaning="velocity error A qd of each constraint row",
        ),
    ),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="forward dynamics of a robot with loops, and its constraint forces",
)
LOOP_HYBRID_DYNAMICS = Signature(
    "loop_hybrid_dynamics",
    HYBRID_DYNAMICS.inputs,
    (*HYBRID_DYNAMICS.outputs, _multipliers),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="hybrid dynamics of a robot with loops",
)
LOOP_INVERSE_DYNAMICS = Signature(
    "loop_inverse_dynamics",
    (
        q,
        qd,
        qdd,
        Port("tau_p", ("np",), FORCE, meaning="forces of the passive coordinates"),
        f_ext,
    ),
    (
        Port("tau_a", ("na",), FORCE, meaning="forces of the active coordinates"),
        _multipliers,
    ),
    passive=PASSIVE,
    meaning="forces of active joints that produce a motion of a robot with loops",
)
