"""Ports and units shared by many Signatures of robots."""

from dyn_core.problems.ports import Port

POSITION, VELOCITY, ACCELERATION = "rad | m", "rad/s | m/s", "rad/s² | m/s²"
FORCE, WRENCH = "N·m | N", "N·m; N"
INERTIA, INVERSE_INERTIA = "kg·m² | kg", "1/(kg·m²) | 1/kg"
BODY_VELOCITY, BODY_ACCELERATION = "rad/s; m/s", "rad/s²; m/s²"

q = Port("q", ("nq",), POSITION, "position", meaning="joint positions")
qd = Port("qd", ("nv",), VELOCITY, "velocity", meaning="joint velocities")
qdd = Port("qdd", ("nv",), ACCELERATION, "velocity", meaning="joint accelerations")
tau = Port("tau", ("nv",), FORCE, "joint_force", meaning="joint forces")
plain_qdd = Port("qdd", ("nv",), ACCELERATION, meaning=qdd.meaning)
plain_tau = Port("tau", ("nv",), FORCE, meaning=tau.meaning)
f_ext = Port(
    "f_ext",
    ("nb", 6),
    WRENCH,
    "wrenches",
    optional=True,
    meaning="force from outside on each body, [moment; force] in body coordinates:"
    " H qdd + C = tau + J.T f_ext",
)
dt = Port("dt", (), "s", meaning="length of the step")
q_next = Port(
    "q_next", ("nq",), POSITION, "position", meaning="joint positions after the step"
)
qd_next = Port(
    "qd_next", ("nv",), VELOCITY, "velocity", meaning="joint velocities after the step"
)
qdd_u = Port(
    "qdd_u",
    ("nu",),
    ACCELERATION,
    meaning="accelerations of the prescribed coordinates",
)
tau_v = Port("tau_v", ("nf",), FORCE, meaning="joint forces of the free coordinates")
