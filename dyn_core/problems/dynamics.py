"""Kinds of problem of a robot's dynamics: motion, steps, control laws, estimation."""

from dyn_core.problems.ports import (
    ACCELERATION,
    BODY_ACCELERATION,
    BODY_VELOCITY,
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
from dyn_core.problems.signatures import OF_INERTIA, PASSIVE, REST, Signature
from dyn_core.problems.signatures import port_row as P

MOMENTUM_UNIT = "kg·m²/s | kg·m/s"
TEN = "kg; kg·m; kg·m²"  # the ten inertial parameters of a body

# fmt: off
tau_before = P("tau", "nv", FORCE, "joint forces since the cycle before")
dt_before = P("dt", "", "s", "time since the cycle before")
gain = P("gain", "nv", "1/s", "rate at which r follows")
r = P("r", "nv", FORCE, "r_next of the cycle before; zero at first")
p = P("p", "nv", MOMENTUM_UNIT, "p_next of the cycle before")
beta = P("beta", "nv", FORCE, "beta_next of the cycle before")
r_next = P("r_next", "nv", FORCE, "external joint forces, signed as tau")
p_next = P("p_next", "nv", MOMENTUM_UNIT, "generalized momentum H qd")
beta_next = P("beta_next", "nv", FORCE,
    "rate of p without joint forces and external ones")

dt_or_0 = P("dt", "", "s",
    "time since the cycle before; 0: this one does not continue it")
velocity_noise = P("velocity_noise", "nv", VELOCITY,
    "standard deviation of each qd, above zero")
effort_noise = P("effort_noise", "nv", FORCE, "standard deviation of each tau")
prior = P("prior", "10", TEN,
    "standard deviation of the payload before the first cycle")
drift = P("drift", "10", f"({TEN})/√s", "standard deviation of its change in a second")
memory = P("memory", "nm", "-", "memory_next of the cycle before; 0 at first")
payload = P("payload", "10", TEN,
    "m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin")
covariance = P("covariance", "10 10", f"({TEN})²", "of the payload")
mismatch = P("mismatch", "", "1",
    "mean square of the prediction errors by their deviations")
used = P("used", "", "1 | 0", "0: the cycle is an outlier, or the first")
changed = P("changed", "", "1 | 0",
    "1: it is another payload; its deviations are those of before")
memory_next = P("memory_next", "nm", "-", "what the next cycle needs")

MOMENTUM_OBSERVER = Signature("momentum_observer",
    (q, qd, tau_before, dt_before, gain, r, p, beta), (r_next, p_next, beta_next),
    passive=PASSIVE, of_trees=True,
    meaning="external joint forces, from the generalized momentum")
PAYLOAD_ESTIMATION = Signature("payload_estimation",
    (q, qd, tau_before, dt_or_0, velocity_noise, effort_noise, prior, drift,
        memory),
    (payload, covariance, mismatch, used, changed, memory_next),
    passive=PASSIVE, of_trees=True,
    meaning="mass, first moments and inertia of what a link carries")


# fmt: off
H = P("H", "nv nv", INERTIA, "joint-space inertia matrix", "joint_matrix")
Hinv = P("Hinv", "nv nv", INVERSE_INERTIA,
    "inverse of the joint-space inertia matrix", "symmetric")
C = P("C", "nv", FORCE, "joint forces of the motion without acceleration",
    "joint_force")
c = P("c", "nv", FORCE, "Coriolis and centrifugal joint forces", "joint_force")
Cm = P("Cm", "nv nv", "kg·m²/s | kg/s",
    "Coriolis matrix: Cm qd are the Coriolis and centrifugal forces", "joint_slopes")
g = P("g", "nv", FORCE, "joint forces that balance gravity", "joint_force")

q_ref = P("q_ref", "nq", POSITION, "reference positions", "position")
qd_ref = P("qd_ref", "nv", VELOCITY, "reference velocities", "velocity")
qdd_ref = P("qdd_ref", "nv", ACCELERATION, "reference accelerations", "velocity")
kp = P("kp", "nv", "1/s²", "gain of the position error, a number a joint (no matrix)")
kd = P("kd", "nv", "1/s", "gain of the velocity error, a number a joint (no matrix)")
stiffness = P("stiffness", "nv", "N·m/rad | N/m",
    "joint force by displacement from the reference, a number a joint (no matrix)")
damping = P("damping", "nv", "N·m·s/rad | N·s/m",
    "joint force by relative velocity, a number a joint (no matrix)")

TOOL_STIFFNESS, TOOL_DAMPING = "N·m/rad; N/m", "N·m·s/rad; N·s/m"
pose_ref = P("pose_ref", "7", "m; -",
    "reference pose of the frame in the base: position, quaternion x, y, z, w")
tool_stiffness = P("stiffness", "6 6", TOOL_STIFFNESS,
    "symmetric, wrench by displacement from the reference, [angular; linear]")
v_ref = P("v_ref", "6", BODY_VELOCITY,
    "reference velocity of the frame, [angular; linear]", optional=True)
a_ref = P("a_ref", "6", BODY_ACCELERATION,
    "its rate, linear: acceleration of the frame's origin", optional=True)
f_ref = P("f_ref", "6", WRENCH,
    "wrench that acts on the frame besides, [moment; force]", optional=True)
ratio = P("ratio", "6", "1", "damping ratio of each axis; 1 in Programs without it"
    " and without damping", optional=True)
tool_damping = P("damping", "6 6", TOOL_DAMPING,
    "symmetric, wrench by relative velocity; added to that of ratio", optional=True)
spring_energy = P("energy_limit", "", "J",
    "energy of the spring, above zero, beyond which its wrench does not grow",
    optional=True)
q_rest = P("q_rest", "nq", POSITION, "posture to which idle motions return",
    "position", optional=True)
rest_stiffness = P("rest_stiffness", "nv", "N·m/rad | N/m",
    "joint force by displacement from q_rest", optional=True)
rest_damping = P("rest_damping", "nv", "N·m·s/rad | N·s/m",
    "joint force by velocity of idle motions", optional=True)

tau_u = P("tau_u", "nu", FORCE, "forces of the prescribed coordinates")
qdd_v = P("qdd_v", "nf", ACCELERATION, "accelerations of the free coordinates")
mask = P("mask", "nv", "1 | 0", "1 prescribes qdd, 0 tau")
taken = P("taken", "nv", FORCE, "joint forces that act in the step")

f = P("f", "nb 6", WRENCH, "force on each body through its joint, [moment; force]",
    "forces")
f_net = P("f_net", "nb 6", WRENCH,
    "net force on each body, [moment; force], body coordinates", "forces")
A = P("A", "nb 6", BODY_ACCELERATION,
    "acceleration of each body, [angular; linear]", "motions")
F = P("F", "nb 6", WRENCH, "force through each joint, [moment; force]", "forces")
Ihat = P("Ihat", "nb 6 6", INERTIA, "articulated-body inertias")
Zhat = P("Zhat", "nb 6", WRENCH, "articulated-body bias forces", "forces")
Y = P("Y", "nv np", "SI", "joint forces per inertial and friction parameter")
energy_Y = P("Y", "2 np", "SI", "kinetic and potential energy per inertial parameter")

INVERSE_DYNAMICS = Signature("inverse_dynamics", (q, qd, qdd, f_ext), (tau,),
    friction_at="qd", of_trees=True,
    meaning="joint forces that produce a motion")
FORWARD_DYNAMICS = Signature("forward_dynamics", (q, qd, tau, f_ext), (qdd,),
    friction_at="qd", of_trees=True, divides_by_inertia=True,
    meaning="joint accelerations that joint forces cause")
MASS_MATRIX = Signature("mass_matrix", (q,), (H,), ignores=("gravity",),
    meaning="joint-space inertia matrix")
MASS_MATRIX_INVERSE = Signature("mass_matrix_inverse", (q,), (Hinv,),
    divides_by_inertia=True, ignores=("gravity",),
    meaning="inverse of the joint-space inertia matrix")
BIAS_FORCE = Signature("bias_force", (q, qd, f_ext), (C,), friction_at="qd",
    meaning="joint forces at zero acceleration: Coriolis, centrifugal, gravity,"
            " less J.T f_ext")
GRAVITY_FORCE = Signature("gravity_force", (q,), (g,),
    friction_at=REST, passive=("joint_springs",), ignores=("armature", "inertia"),
    meaning="joint forces that hold the robot still against gravity, and its springs")
CORIOLIS_FORCE = Signature("coriolis_force", (q, qd), (c,), ignores=("gravity",),
    meaning="Coriolis and centrifugal joint forces, without gravity")
CORIOLIS_MATRIX = Signature("coriolis_matrix", (q, qd), (Cm,),
    ignores=("gravity", "armature"),
    meaning="Coriolis matrix Cm, with dH/dt - 2 Cm skew-symmetric")
INERTIAL_FORCE = Signature("inertial_force", (q, qdd), (tau,), ignores=("gravity",),
    meaning="joint forces H qdd that accelerate the robot from rest, without gravity")
STEP = Signature("step", (q, qd, tau, dt, f_ext), (q_next, qd_next),
    passive=PASSIVE, divides_by_inertia=True,
    meaning="state after a step in time under constant joint forces")

TRACKING_CONTROL = Signature("tracking_control",
    (q, qd, q_ref, qd_ref, qdd_ref, kp, kd), (tau,), friction_at="qd_ref",
    meaning="joint forces that follow a reference motion")
IMPEDANCE_CONTROL = Signature("impedance_control",
    (q, qd, q_ref, qd_ref, qdd_ref, stiffness, damping), (tau,), friction_at="qd_ref",
    meaning="joint forces of springs and dampers between robot and reference motion")
GRAVITY_CONTROL = Signature("gravity_control", (q, qd, kd), (tau,),
    passive=("joint_springs",),
    meaning="joint forces that balance gravity and damp the motion")

CARTESIAN_CONTROL = Signature("cartesian_control",
    (q, qd, pose_ref, tool_stiffness, v_ref, a_ref, f_ref, ratio, tool_damping,
        spring_energy, q_rest, rest_stiffness, rest_damping), (tau,),
    passive=("joint_springs",), of_trees=True,
    meaning="joint forces that hold a frame at a pose, as if by springs and dampers")

HYBRID_DYNAMICS = Signature("hybrid_dynamics",
    (q, qd, qdd_u, tau_v, f_ext), (tau_u, qdd_v),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="forces of joints with prescribed accelerations, accelerations of the rest")
HYBRID_DYNAMICS_MASKED = Signature("hybrid_dynamics_masked",
    (q, qd, mask, qdd, plain_tau, f_ext), (plain_tau, qdd),
    passive=PASSIVE, of_trees=True,
    meaning="hybrid dynamics by a mask that may change with every call")
HYBRID_STEP = Signature("hybrid_step",
    (q, qd, qdd_u, plain_tau, dt, f_ext), (q_next, qd_next, taken),
    passive=PASSIVE, of_trees=True, divides_by_inertia=True,
    meaning="state after a step in time in which some joints follow accelerations")

JOINT_REACTIONS = Signature("joint_reactions", (q, qd, qdd, f_ext), (f, f_net),
    of_trees=True,
    meaning="force through each joint, and the net force on each body")
ARTICULATED_BODIES = Signature("articulated_bodies",
    (q, qd, tau, f_ext), (qdd, A, F, Ihat, Zhat),
    friction_at="qd", of_trees=True, divides_by_inertia=True,
    meaning="forward dynamics with the articulated-body quantities on the way")
REGRESSOR = Signature("regressor", (q, qd, qdd), (Y,),
    of_trees=True, ignores=OF_INERTIA,
    meaning="matrix that joint forces are linear in: tau = Y parameters")
ENERGY_REGRESSOR = Signature("energy_regressor", (q, qd), (energy_Y,),
    ignores=OF_INERTIA,
    meaning="matrix that energies are linear in: [kinetic; potential] = Y parameters")
