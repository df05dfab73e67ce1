"""Ports and units shared by many Signatures of robots."""

from dyn_core.problems.signatures import port_row as P

POSITION, VELOCITY, ACCELERATION = "rad | m", "rad/s | m/s", "rad/s² | m/s²"
FORCE, WRENCH = "N·m | N", "N·m; N"
INERTIA, INVERSE_INERTIA = "kg·m² | kg", "1/(kg·m²) | 1/kg"
BODY_VELOCITY, BODY_ACCELERATION = "rad/s; m/s", "rad/s²; m/s²"

# fmt: off
q = P("q", "nq", POSITION, "joint positions", "position")
qd = P("qd", "nv", VELOCITY, "joint velocities", "velocity")
qdd = P("qdd", "nv", ACCELERATION, "joint accelerations", "velocity")
tau = P("tau", "nv", FORCE, "joint forces", "joint_force")
plain_qdd = P("qdd", "nv", ACCELERATION, qdd.meaning)
plain_tau = P("tau", "nv", FORCE, tau.meaning)
f_ext = P("f_ext", "nb 6", WRENCH,
    "external force on each body, [moment; force] in body coordinates,"
    " signed as tau: H qdd + C = tau + J.T f_ext", "wrenches", optional=True)
dt = P("dt", "", "s", "length of the step")
q_next = P("q_next", "nq", POSITION, "joint positions after the step", "position")
qd_next = P("qd_next", "nv", VELOCITY, "joint velocities after the step", "velocity")
qdd_u = P("qdd_u", "nu", ACCELERATION, "accelerations of the prescribed coordinates")
tau_v = P("tau_v", "nf", FORCE, "joint forces of the free coordinates")
com = P("com", "3", "m", "centre of mass in the base")
lambda_ = P("lambda_", "m", "N | N·m",
    "constraint force of each row: H qdd + C = tau + A.T lambda")
