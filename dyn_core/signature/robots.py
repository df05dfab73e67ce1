"""Kinds of problem of robots: data, not classes."""

from dyn_core.signature.ports import Port, Signature

_q = Port("q", ("nq",), "rad | m", "position")
_qd = Port("qd", ("nv",), "rad/s | m/s", "velocity")
_qdd = Port("qdd", ("nv",), "rad/s² | m/s²", "velocity")
_tau = Port("tau", ("nv",), "N·m | N", "joint_force")
_f_ext = Port("f_ext", ("nb", 6), "N·m; N", "wrenches", optional=True)

INVERSE_DYNAMICS = Signature(
    "inverse_dynamics",
    (_q, _qd, _qdd, _f_ext),
    (_tau,),
    friction_at="qd",
    of_trees=True,
)
FORWARD_DYNAMICS = Signature(
    "forward_dynamics",
    (_q, _qd, _tau, _f_ext),
    (_qdd,),
    friction_at="qd",
    of_trees=True,
)
MASS_MATRIX = Signature(
    "mass_matrix", (_q,), (Port("H", ("nv", "nv"), "kg·m² | kg", "joint_matrix"),)
)
BIAS_FORCE = Signature(
    "bias_force",
    (_q, _qd, _f_ext),
    (Port("C", ("nv",), "N·m | N", "joint_force"),),
    friction_at="qd",
)
GRAVITY_FORCE = Signature(
    "gravity_force", (_q,), (Port("g", ("nv",), "N·m | N", "joint_force"),)
)
CORIOLIS_FORCE = Signature(
    "coriolis_force", (_q, _qd), (Port("c", ("nv",), "N·m | N", "joint_force"),)
)
INERTIAL_FORCE = Signature("inertial_force", (_q, _qdd), (_tau,))
FORWARD_KINEMATICS = Signature(
    "forward_kinematics", (_q,), (Port("poses", ("nf", 4, 4), "-; m", "poses"),)
)
JACOBIAN = Signature("jacobian", (_q,), (Port("J", (6, "nv"), "-; m", "jacobian"),))
FRAME_VELOCITY = Signature(
    "frame_velocity", (_q, _qd), (Port("v", (6,), "rad/s; m/s", "motion"),)
)
FRAME_BIAS_ACCELERATION = Signature(
    "frame_bias_acceleration",
    (_q, _qd),
    (Port("a", (6,), "rad/s²; m/s²", "motion"),),
)
ENERGY = Signature(
    "energy",
    (_q, _qd),
    (Port("kinetic", (), "J"), Port("potential", (), "J")),
)
MOMENTUM = Signature(
    "momentum",
    (_q, _qd),
    (Port("h", (6,), "N·m·s; N·s", "force"), Port("com", (3,), "m")),
)
STEP = Signature(
    "step",
    (_q, _qd, _tau, Port("dt", (), "s"), _f_ext),
    (
        Port("q_next", ("nq",), "rad | m", "position"),
        Port("qd_next", ("nv",), "rad/s | m/s", "velocity"),
    ),
)
ID_DERIVATIVES = Signature(
    "id_derivatives",
    (_q, _qd, _qdd, _f_ext),
    (
        Port("dtau_dq", ("nv", "nv"), "SI", "joint_stiffness"),
        Port("dtau_dqd", ("nv", "nv"), "SI", "joint_damping"),
        Port("H", ("nv", "nv"), "kg·m² | kg", "joint_matrix"),
    ),
    friction_at="qd",
    of_trees=True,
)
FD_DERIVATIVES = Signature(
    "fd_derivatives",
    (_q, _qd, _tau, _f_ext),
    (
        _qdd,
        Port("dqdd_dq", ("nv", "nv"), "SI"),
        Port("dqdd_dqd", ("nv", "nv"), "SI"),
        Port("Hinv", ("nv", "nv"), "1/(kg·m²) | 1/kg", "symmetric"),
    ),
)
MASS_MATRIX_INVERSE = Signature(
    "mass_matrix_inverse",
    (_q,),
    (Port("Hinv", ("nv", "nv"), "1/(kg·m²) | 1/kg", "symmetric"),),
)
_gains = (Port("kp", ("nv",), "1/s²"), Port("kd", ("nv",), "1/s"))
TRACKING_CONTROL = Signature(
    "tracking_control",
    (
        _q,
        _qd,
        Port("q_ref", ("nq",), "rad | m", "position"),
        Port("qd_ref", ("nv",), "rad/s | m/s", "velocity"),
        Port("qdd_ref", ("nv",), "rad/s² | m/s²", "velocity"),
        *_gains,
    ),
    (_tau,),
    friction_at="qd_ref",
)
GRAVITY_CONTROL = Signature("gravity_control", (_q, _qd, _gains[1]), (_tau,))

RESPONSE = Signature(
    "response",
    (_q, _tau, Port("f_ext", ("nb", 6), "N·m; N", "wrenches")),
    (_qdd, Port("a", ("nb", 6), "rad/s²; m/s²", "motions")),
    of_trees=True,
)
SELF_RESPONSES = Signature(
    "self_responses",
    (_q,),
    (Port("omega", ("nb", 6, 6), "1/(kg·m²) | 1/kg"),),
    of_trees=True,
)
CROSS_RESPONSE = Signature(
    "cross_response", (_q,), (Port("omega", (6, 6), "1/(kg·m²) | 1/kg"),), of_trees=True
)
_rows = Port("W", ("m", 6), "-; m")
DELASSUS = Signature(
    "delassus",
    (_q, _rows),
    (Port("G", ("mj", "mj"), "1/(kg·m²) | 1/kg"),),
    of_trees=True,
)
POINT_DELASSUS = Signature(
    "point_delassus", (_q,), (Port("G", ("m", "m"), "1/kg"),), of_trees=True
)
CONSTRAINT_JACOBIAN = Signature(
    "constraint_jacobian", (_q, _rows), (Port("J", ("mj", "nv"), "-; m"),)
)
OPERATIONAL_INERTIA = Signature(
    "operational_inertia",
    (_q,),
    (Port("Lambda", ("k", "k"), "kg·m² | kg"),),
    of_trees=True,
)

_motions = Port("A", ("nb", 6), "rad/s²; m/s²", "motions")
BODY_MOTION = Signature(
    "body_motion",
    (_q, _qd, _qdd),
    (
        Port("v", ("nb", 6), "rad/s; m/s", "motions"),
        Port("a", ("nb", 6), "rad/s²; m/s²", "motions"),
    ),
)
BODY_JACOBIANS = Signature(
    "body_jacobians",
    (_q,),
    (
        Port("poses", ("nb", 4, 4), "-; m", "poses"),
        Port("J", ("nb", 6, "nv"), "-; m"),
    ),
)
JOINT_REACTIONS = Signature(
    "joint_reactions",
    (_q, _qd, _qdd, _f_ext),
    (
        Port("f", ("nb", 6), "N·m; N", "forces"),
        Port("f_net", ("nb", 6), "N·m; N", "forces"),
    ),
    of_trees=True,
)
ARTICULATED_BODIES = Signature(
    "articulated_bodies",
    (_q, _qd, _tau, _f_ext),
    (
        _qdd,
        _motions,
        Port("F", ("nb", 6), "N·m; N", "forces"),
        Port("Ihat", ("nb", 6, 6), "kg·m² | kg"),
        Port("Zhat", ("nb", 6), "N·m; N", "forces"),
    ),
    friction_at="qd",
    of_trees=True,
)

HYBRID_DYNAMICS = Signature(
    "hybrid_dynamics",
    (
        _q,
        _qd,
        Port("qdd_u", ("nu",), "rad/s² | m/s²"),
        Port("tau_v", ("nf",), "N·m | N"),
        _f_ext,
    ),
    (Port("tau_u", ("nu",), "N·m | N"), Port("qdd_v", ("nf",), "rad/s² | m/s²")),
    of_trees=True,
)
HYBRID_DYNAMICS_MASKED = Signature(
    "hybrid_dynamics_masked",
    (
        _q,
        _qd,
        Port("mask", ("nv",), "1 | 0"),
        _qdd,
        Port("tau", ("nv",), "N·m | N"),
        _f_ext,
    ),
    (Port("tau", ("nv",), "N·m | N"), _qdd),
    of_trees=True,
)

_dq = Port("dq", ("nv",), "rad | m")
_dqd = Port("dqd", ("nv",), "rad/s | m/s")
_dqdd = Port("dqdd", ("nv",), "rad/s² | m/s²")
_free_tau, _dtau = (Port(name, ("nv",), "N·m | N") for name in ("tau", "dtau"))
_free_qdd = Port("qdd", ("nv",), "rad/s² | m/s²")
_f_ext_and_seeds = (
    _f_ext,
    Port("df_ext", ("nb", 6), "N·m; N", "wrenches", optional=True),
    Port("dp", ("np",), "SI", optional=True),
)
ID_DIRECTIONAL = Signature(
    "id_directional",
    (_q, _qd, _free_qdd, _dq, _dqd, _dqdd, *_f_ext_and_seeds),
    (_free_tau, _dtau),
    of_trees=True,
)
FD_DIRECTIONAL = Signature(
    "fd_directional",
    (_q, _qd, _free_tau, _dq, _dqd, _dtau, *_f_ext_and_seeds),
    (_free_qdd, _dqdd),
    of_trees=True,
)
HD_DIRECTIONAL = Signature(
    "hd_directional",
    (
        _q,
        _qd,
        Port("qdd_u", ("nu",), "rad/s² | m/s²"),
        Port("tau_v", ("nf",), "N·m | N"),
        _dq,
        _dqd,
        Port("dqdd_u", ("nu",), "rad/s² | m/s²"),
        Port("dtau_v", ("nf",), "N·m | N"),
        *_f_ext_and_seeds,
    ),
    (
        *HYBRID_DYNAMICS.outputs,
        Port("dtau_u", ("nu",), "N·m | N"),
        Port("dqdd_v", ("nf",), "rad/s² | m/s²"),
    ),
    of_trees=True,
)
HD_DERIVATIVES = Signature(
    "hd_derivatives",
    HYBRID_DYNAMICS.inputs,
    (
        *HYBRID_DYNAMICS.outputs,
        Port("dtau_u_dq", ("nu", "nv"), "SI"),
        Port("dtau_u_dqd", ("nu", "nv"), "SI"),
        Port("dtau_u_dqdd_u", ("nu", "nu"), "kg·m² | kg"),
        Port("dtau_u_dtau_v", ("nu", "nf"), "1"),
        Port("dqdd_v_dq", ("nf", "nv"), "SI"),
        Port("dqdd_v_dqd", ("nf", "nv"), "SI"),
        Port("dqdd_v_dqdd_u", ("nf", "nu"), "1"),
        Port("dqdd_v_dtau_v", ("nf", "nf"), "1/(kg·m²) | 1/kg"),
    ),
    of_trees=True,
)
PARAMETER_JACOBIAN = Signature(
    "parameter_jacobian",
    (_q, _qd, _free_qdd, _f_ext),
    (_free_tau, Port("dtau_dp", ("nv", "np"), "SI")),
    of_trees=True,
)
FD_PARAMETER_JACOBIAN = Signature(
    "fd_parameter_jacobian",
    (_q, _qd, _free_tau, _f_ext),
    (_free_qdd, Port("dqdd_dp", ("nv", "np"), "SI")),
    of_trees=True,
)

HYBRID_STEP = Signature(
    "hybrid_step",
    (
        _q,
        _qd,
        Port("qdd_u", ("nu",), "rad/s² | m/s²"),
        Port("tau", ("nv",), "N·m | N"),
        Port("dt", (), "s"),
        _f_ext,
    ),
    (*STEP.outputs, Port("taken", ("nv",), "N·m | N")),
    of_trees=True,
)
_multipliers = Port("lambda_", ("m",), "N | N·m")
LOOP_CONSTRAINTS = Signature(
    "loop_constraints",
    (_q, _qd),
    (
        Port("f", ("m",), "m | rad"),
        Port("A", ("m", "nv")),
        Port("bias", ("m",), "m/s² | rad/s²"),
    ),
)
LOOP_FORWARD_DYNAMICS = Signature(
    "loop_forward_dynamics",
    (_q, _qd, Port("tau", ("nv",), "N·m | N"), _f_ext),
    (
        _qdd,
        _multipliers,
        Port("f", ("m",), "m | rad"),
        Port("rate", ("m",), "m/s | rad/s"),
    ),
)
LOOP_HYBRID_DYNAMICS = Signature(
    "loop_hybrid_dynamics",
    HYBRID_DYNAMICS.inputs,
    (*HYBRID_DYNAMICS.outputs, _multipliers),
)
LOOP_INVERSE_DYNAMICS = Signature(
    "loop_inverse_dynamics",
    (_q, _qd, _qdd, Port("tau_p", ("np",), "N·m | N"), _f_ext),
    (Port("tau_a", ("na",), "N·m | N"), _multipliers),
)

REGRESSOR = Signature(
    "regressor", (_q, _qd, _qdd), (Port("Y", ("nv", "np"), "SI"),), of_trees=True
)
ENERGY_REGRESSOR = Signature(
    "energy_regressor", (_q, _qd), (Port("Y", (2, "np"), "SI"),)
)
