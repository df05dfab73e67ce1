"""Kinds of problem of a robot's kinematics, energy and momentum."""

from dyn_core.problems.ports import (
    BODY_ACCELERATION,
    BODY_VELOCITY,
    POSITION,
    com,
    q,
    qd,
    qdd,
)
from dyn_core.problems.signatures import DYNAMICS, Signature
from dyn_core.problems.signatures import port_row as P

# fmt: off
frame_poses = P("poses", "nf 4 4", "-; m",
    "pose of each frame in the base, homogeneous matrix", "poses")
frame_J = P("J", "6 nv", "-; m",
    "velocity of the frame per joint velocity, [angular; linear]", "jacobian")
frame_v = P("v", "6", BODY_VELOCITY,
    "velocity of the frame, [angular; linear]", "motion")
frame_a = P("a", "6", BODY_ACCELERATION,
    "acceleration of the frame at qdd = 0, [angular; linear]", "motion")

frame_a_of_qdd = P("a", "6", BODY_ACCELERATION,
    "acceleration of the frame, [angular; linear]", "motion")
singular_values = P("singular_values", "6", "m | 1",
    "singular values of J, the largest first, angular rows times a length")
manipulability = P("manipulability", "", "SI", "their product")

body_poses = P("poses", "nb 4 4", "-; m",
    "pose of each body in the base, homogeneous matrix", "poses")
body_J = P("J", "nb 6 nv", "-; m",
    "velocity of each body per joint velocity, [angular; linear]")
body_v = P("v", "nb 6", BODY_VELOCITY,
    "velocity of each body, [angular; linear], body coordinates", "motions")
body_a = P("a", "nb 6", BODY_ACCELERATION,
    "acceleration of each body, [angular; linear], body coordinates", "motions")

kinetic = P("kinetic", "", "J", "kinetic energy")
potential = P("potential", "", "J", "potential energy, zero at the base origin")
h = P("h", "6", "N·m·s; N·s",
    "spatial momentum about the base origin, [angular; linear]", "force")
A = P("A", "6 nv", "kg·m²; kg·m | kg·m; kg", "momentum about the centre of mass,"
    " base axes, per joint velocity, [angular; linear]")
com_velocity = P("velocity", "3", "m/s", "its velocity, base axes")
com_acceleration = P("acceleration", "3", "m/s²", "its acceleration, base axes")
p = P("p", "3", "m", "the point of the plane, base axes")
push = P("push", "", "N", "force of the ground along the normal")

pose = P("pose", "4 4", "-; m", "wanted pose of the frame in the base")
q_reached = P("q_reached", "nq", POSITION,
    "joint positions with the frame there, or nearest to it", "position")
error = P("error", "6", "rad; m",
    "displacement left from the frame to the pose, frame's axes", "motion")
iterations = P("iterations", "", "1", "number of steps")
status = P("status", "", "1", "0 if the frame is there, else 1")

FORWARD_KINEMATICS = Signature("forward_kinematics", (q,), (frame_poses,),
    ignores=DYNAMICS, meaning="poses of frames in the base")
JACOBIAN = Signature("jacobian", (q,), (frame_J,),
    ignores=DYNAMICS, meaning="Jacobian of a frame's velocity")
FRAME_VELOCITY = Signature("frame_velocity", (q, qd), (frame_v,),
    ignores=DYNAMICS, meaning="velocity of a frame")
FRAME_BIAS_ACCELERATION = Signature("frame_bias_acceleration", (q, qd), (frame_a,),
    ignores=DYNAMICS,
    meaning="acceleration of a frame without joint accelerations: dJ/dt qd")
FRAME_ACCELERATION = Signature("frame_acceleration", (q, qd, qdd), (frame_a_of_qdd,),
    ignores=DYNAMICS, meaning="acceleration of a frame")
MANIPULABILITY = Signature("manipulability", (q,), (singular_values, manipulability),
    ignores=DYNAMICS, meaning="how far a frame is from a singular position")
ENERGY = Signature("energy", (q, qd), (kinetic, potential),
    passive=("joint_springs",),
    meaning="kinetic and potential energy of the robot, that of springs if they act")
MOMENTUM = Signature("momentum", (q, qd), (h, com), ignores=("gravity", "armature"),
    meaning="spatial momentum and centre of mass of the robot")
CENTROIDAL_MATRIX = Signature("centroidal_matrix", (q,), (A, com),
    ignores=("gravity", "armature"),
    meaning="matrix that makes the momentum about the centre of mass: h = A qd")
CENTRE_OF_MASS = Signature("centre_of_mass",
    (q, qd, qdd), (com, com_velocity, com_acceleration),
    ignores=("gravity", "armature", "inertia"),
    meaning="position, velocity and acceleration of the centre of mass")
ZERO_MOMENT_POINT = Signature("zero_moment_point", (q, qd, qdd), (p, push),
    meaning="point where the ground's force has no moment but about the normal")
BODY_MOTION = Signature("body_motion", (q, qd, qdd), (body_v, body_a),
    ignores=DYNAMICS, meaning="velocity and acceleration of every body")
BODY_JACOBIANS = Signature("body_jacobians", (q,), (body_poses, body_J),
    ignores=DYNAMICS, meaning="pose of every body, and the Jacobian of its velocity")
INVERSE_KINEMATICS = Signature("inverse_kinematics",
    (q, pose), (q_reached, error, iterations, status),
    of_trees=True, ignores=DYNAMICS,
    meaning="joint positions that bring a frame to a pose")
