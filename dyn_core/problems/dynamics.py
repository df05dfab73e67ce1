"""Kinds of problem of a robot's dynamics, steps in time and control laws."""

from dyn_core.problems.joint_ports import (
    ACCELERATION,
    BODY_ACCELERATION,
    FORCE,
    INERTIA,
    INVERSE_INERTIA,
    POSITION,
    VELOCITY,
    WRENCH,
    dt,
    f_ext,
    plain_tau,
    q,
    q_next,
    qd,
    qd_next,
    qdd,
    qdd_u,
    tau,
    tau_v,
)
from dyn_core.problems.ports import OF_INERTIA, PASSIVE, REST, Port, Signature

INVERSE_DYNAMICS = Signature(
    "inverse_dynamics",
    (q, qd, qdd, f_ext),
    (tau,),
    friction_at="qd",
    of_trees=True,
    meaning="joint forces that produce a motion",
)
FORWARD_DYNAMICS = Signature(
    "forward_dynamics",
    (q, qd, tau, f_ext),
    (qdd,),
    friction_at="qd",
    of_trees=True,
    divides_by_inertia=True,
    meaning="joint accelerations that joint forces cause",
)
MASS_MATRIX = Signature(
    "mass_matrix",
    (q,),
    (
        Port(
            "H",
            ("nv", "nv"),
            INERTIA,
            "joint_matrix",
            meaning="joint-space inertia matrix",
        ),
    ),
    meaning="joint-space inertia matrix",
    ignores=("gravity",),
)
MASS_MATRIX_INVERSE = Signature(
    "mass_matrix_inverse",
    (q,),
    (
        Port(
            "Hinv",
            ("nv", "nv"),
            INVERSE_INERTIA,
            "symmetric",
            meaning="inverse of the joint-space inertia matrix",
        ),
    ),
    divides_by_inertia=True,
    meaning="inverse of the joint-space inertia matrix",
    ignores=("gravity",),
)
BIAS_FORCE = Signature(
    "bias_force",
    (q, qd, f_ext),
    (
        Port(
            "C",
            ("nv",),
            FORCE,
            "joint_force",
            meaning="joint forces of the motion without acceleration",
        ),
    ),
    friction_at="qd",
    meaning="joint forces at zero acceleration: Coriolis, centrifugal, gravity, f_ext",
)
GRAVITY_FORCE = Signature(
    "gravity_force",
    (q,),
    (
        Port(
            "g",
            ("nv",),
            FORCE,
            "joint_force",
            meaning="joint forces that balance gravity",
        ),
    ),
    friction_at=REST,
    passive=("joint_springs",),
    meaning="joint forces that hold the robot still against gravity, and its springs",
    ignores=("armature", "inertia"),
)
CORIOLIS_FORCE = Signature(
    "coriolis_force",
    (q, qd),
    (
        Port(
            "c",
            ("nv",),
            FORCE,
            "joint_force",
            meaning="Coriolis and centrifugal joint forces",
        ),
    ),
    meaning="Coriolis and centrifugal joint forces, without gravity",
    ignores=("gravity",),
)
CORIOLIS_MATRIX = Signature(
    "coriolis_matrix",
    (q, qd),
    (
        Port(
            "Cm",
            ("nv", "nv"),
            "kg·m²/s | kg/s",
            "joint_slopes",
            meaning="Coriolis matrix: Cm qd are the Coriolis and centrifugal forces",
        ),
    ),
    meaning="Coriolis matrix Cm, with dH/dt - 2 Cm skew-symmetric",
    ignores=("gravity", "armature"),
)
INERTIAL_FORCE = Signature(
    "inertial_force",
    (q, qdd),
    (tau,),
    meaning="joint forces H qdd that accelerate the robot from rest, without gravity",
    ignores=("gravity",),
)
STEP = Signature(
    "step",
    (q, qd, tau, dt, f_ext),
    (q_next, qd_next),
    passive=PASSIVE,
    divides_by_inertia=True,
    meaning="state after a step in time under constant joint forces",
)

_kd = Port("kd", ("nv",), "1/s", meaning="gain of the velocity error")
TRACKING_CONTROL = Signature(
    "tracking_control",
    (
        q,
        qd,
        Port("q_ref", ("nq",), POSITION, "position", meaning="reference positions"),
        Port("qd_ref", ("nv",), VELOCITY, "velocity", meaning="reference velocities"),
        Port(
            "qdd_ref",
            ("nv",),
            ACCELERATION,
            "velocity",
            meaning="reference accelerations",
        ),
        Port("kp", ("nv",), "1/s²", meaning="gain of the position error"),
        _kd,
    ),
    (tau,),
    friction_at="qd_ref",
    meaning="joint forces that follow a reference motion",
)
IMPEDANCE_CONTROL = Signature(
    "impedance_control",
    (
        *TRACKING_CONTROL.inputs[:5],
        Port(
            "stiffness",
            ("nv",),
            "N·m/rad | N/m",
            meaning="joint force by displacement from the reference",
        ),
        Port(
            "damping",
            ("nv",),
            "N·m·s/rad | N·s/m",
            meaning="joint force by velocity relative to the reference",
        ),
    ),
    (tau,),
    friction_at="qd_ref",
    meaning="joint forces of springs and dampers between robot and reference motion",
)
GRAVITY_CONTROL = Signature(
    "gravity_control",
    (q, qd, _kd),
    (tau,),
    passive=("joint_springs",),
    meaning="joint forces that balance gravity and damp the motion",
)

HYBRID_DYNAMICS = Signature(
    "hybrid_dynamics",
    (q, qd, qdd_u, tau_v, f_ext),
    (
        Port(
            "tau_u",
            ("nu",),
            FORCE,
            meaning="forces of the prescribed coordinates",
        ),
        Port(
            "qdd_v",
            ("nf",),
            ACCELERATION,
            meaning="accelerations of the free coordinates",
        ),
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="forces of joints with prescribed accelerations, accelerations of the rest",
)
HYBRID_DYNAMICS_MASKED = Signature(
    "hybrid_dynamics_masked",
    (
        q,
        qd,
        Port("mask", ("nv",), "1 | 0", meaning="1 prescribes qdd, 0 tau"),
        qdd,
        plain_tau,
        f_ext,
    ),
    (plain_tau, qdd),
    passive=PASSIVE,
    of_trees=True,
    meaning="hybrid dynamics by a mask that may change with every call",
)
HYBRID_STEP = Signature(
    "hybrid_step",
    (q, qd, qdd_u, plain_tau, dt, f_ext),
    (
        q_next,
        qd_next,
        Port("taken", ("nv",), FORCE, meaning="joint forces that act in the step"),
    ),
    passive=PASSIVE,
    of_trees=True,
    divides_by_inertia=True,
    meaning="state after a step in time in which some joints follow accelerations",
)

JOINT_REACTIONS = Signature(
    "joint_reactions",
    (q, qd, qdd, f_ext),
    (
        Port(
            "f",
            ("nb", 6),
            WRENCH,
            "forces",
            meaning="force on each body through its joint, [moment; force]",
        ),
        Port(
            "f_net",
            ("nb", 6),
            WRENCH,
            "forces",
            meaning="net force on each body, [moment; force], body coordinates",
        ),
    ),
    of_trees=True,
    meaning="force through each joint, and the net force on each body",
)
ARTICULATED_BODIES = Signature(
    "articulated_bodies",
    (q, qd, tau, f_ext),
    (
        qdd,
        Port(
            "A",
            ("nb", 6),
            BODY_ACCELERATION,
            "motions",
            meaning="acceleration of each body, [angular; linear]",
        ),
        Port(
            "F",
            ("nb", 6),
            WRENCH,
            "forces",
            meaning="force through each joint, [moment; force]",
        ),
        Port(
            "Ihat",
            ("nb", 6, 6),
            INERTIA,
            meaning="articulated-body inertias",
        ),
        Port(
            "Zhat",
            ("nb", 6),
            WRENCH,
            "forces",
            meaning="articulated-body bias forces",
        ),
    ),
    friction_at="qd",
    of_trees=True,
    divides_by_inertia=True,
    meaning="forward dynamics with the articulated-body quantities on the way",
)

REGRESSOR = Signature(
    "regressor",
    (q, qd, qdd),
    (
        Port(
            "Y",
            ("nv", "np"),
            "SI",
            meaning="joint forces per inertial and friction parameter",
        ),
    ),
    of_trees=True,
    meaning="matrix that joint forces are linear in: tau = Y parameters",
    ignores=OF_INERTIA,
)
ENERGY_REGRESSOR = Signature(
    "energy_regressor",
    (q, qd),
    (
        Port(
            "Y",
            (2, "np"),
            "SI",
            meaning="kinetic and potential energy per inertial parameter",
        ),
    ),
    meaning="matrix that energies are linear in: [kinetic; potential] = Y parameters",
    ignores=OF_INERTIA,
)
