"""Kinds of problem of a robot's kinematics, energy and momentum."""

from dyn_core.problems.joint_ports import (
    BODY_ACCELERATION,
    BODY_VELOCITY,
    q,
    qd,
    qdd,
)
from dyn_core.problems.ports import DYNAMICS, Port, Signature

FORWARD_KINEMATICS = Signature(
    "forward_kinematics",
    (q,),
    (
        Port(
            "poses",
            ("nf", 4, 4),
            "-; m",
            "poses",
            meaning="pose of each frame in the base, homogeneous matrix",
        ),
    ),
    meaning="poses of frames in the base",
    ignores=DYNAMICS,
)
JACOBIAN = Signature(
    "jacobian",
    (q,),
    (
        Port(
            "J",
            (6, "nv"),
            "-; m",
            "jacobian",
            meaning="velocity of the frame per joint velocity, [angular; linear]",
        ),
    ),
    meaning="Jacobian of a frame's velocity",
    ignores=DYNAMICS,
)
FRAME_VELOCITY = Signature(
    "frame_velocity",
    (q, qd),
    (
        Port(
            "v",
            (6,),
            BODY_VELOCITY,
            "motion",
            meaning="velocity of the frame, [angular; linear]",
        ),
    ),
    meaning="velocity of a frame",
    ignores=DYNAMICS,
)
FRAME_BIAS_ACCELERATION = Signature(
    "frame_bias_acceleration",
    (q, qd),
    (
        Port(
            "a",
            (6,),
            BODY_ACCELERATION,
            "motion",
            meaning="acceleration of the frame at qdd = 0, [angular; linear]",
        ),
    ),
    meaning="acceleration of a frame without joint accelerations: dJ/dt qd",
    ignores=DYNAMICS,
)
_energies = (
    Port("kinetic", (), "J", meaning="kinetic energy"),
    Port("potential", (), "J", meaning="potential energy, zero at the base origin"),
)
ENERGY = Signature(
    "energy",
    (q, qd),
    _energies,
    passive=("joint_springs",),
    meaning="kinetic and potential energy of the robot, that of springs if they act",
)
MOMENTUM = Signature(
    "momentum",
    (q, qd),
    (
        Port(
            "h",
            (6,),
            "N·m·s; N·s",
            "force",
            meaning="spatial momentum about the base origin, [angular; linear]",
        ),
        Port("com", (3,), "m", meaning="centre of mass in the base"),
    ),
    meaning="spatial momentum and centre of mass of the robot",
    ignores=("gravity", "armature"),
)
_com = Port("com", (3,), "m", meaning="centre of mass in the base")
CENTROIDAL_MATRIX = Signature(
    "centroidal_matrix",
    (q,),
    (
        Port(
            "A",
            (6, "nv"),
            "kg·m²; kg·m | kg·m; kg",
            meaning="momentum about the centre of mass, base axes, per joint velocity,"
            " [angular; linear]",
        ),
        _com,
    ),
    meaning="matrix that makes the momentum about the centre of mass: h = A qd",
    ignores=("gravity", "armature"),
)
CENTRE_OF_MASS = Signature(
    "centre_of_mass",
    (q, qd, qdd),
    (
        _com,
        Port("velocity", (3,), "m/s", meaning="its velocity, base axes"),
        Port("acceleration", (3,), "m/s²", meaning="its acceleration, base axes"),
    ),
    meaning="position, velocity and acceleration of the centre of mass",
    ignores=("gravity", "armature", "inertia"),
)
ZERO_MOMENT_POINT = Signature(
    "zero_moment_point",
    (q, qd, qdd),
    (
        Port("p", (3,), "m", meaning="the point of the plane, base axes"),
        Port("push", (), "N", meaning="force of the ground along the normal"),
    ),
    meaning="point where the ground's force has no moment but about the normal",
)
BODY_MOTION = Signature(
    "body_motion",
    (q, qd, qdd),
    (
        Port(
            "v",
            ("nb", 6),
            BODY_VELOCITY,
            "motions",
            meaning="velocity of each body, [angular; linear], body coordinates",
        ),
        Port(
            "a",
            ("nb", 6),
            BODY_ACCELERATION,
            "motions",
            meaning="acceleration of each body, [angular; linear], body coordinates",
        ),
    ),
    meaning="velocity and acceleration of every body",
    ignores=DYNAMICS,
)
BODY_JACOBIANS = Signature(
    "body_jacobians",
    (q,),
    (
        Port(
            "poses",
            ("nb", 4, 4),
            "-; m",
            "poses",
            meaning="pose of each body in the base, homogeneous matrix",
        ),
        Port(
            "J",
            ("nb", 6, "nv"),
            "-; m",
            meaning="velocity of each body per joint velocity, [angular; linear]",
        ),
    ),
    meaning="pose of every body, and the Jacobian of its velocity",
    ignores=DYNAMICS,
)
INVERSE_KINEMATICS = Signature(
    "inverse_kinematics",
    (
        q,
        Port("pose", (4, 4), "-; m", meaning="wanted pose of the frame in the base"),
    ),
    (
        Port(
            "q_reached",
            ("nq",),
            q.unit,
            "position",
            meaning="joint positions with the frame there, or nearest to it",
        ),
        Port(
            "error",
            (6,),
            "rad; m",
            "motion",
            meaning="displacement left from the frame to the pose, frame's axes",
        ),
        Port("iterations", (), "1", meaning="number of steps"),
        Port("status", (), "1", meaning="0 if the frame is there, else 1"),
    ),
    of_trees=True,
    meaning="joint positions that bring a frame to a pose",
    ignores=DYNAMICS,
)
