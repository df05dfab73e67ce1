"""Positions, velocities and Jacobians of frames.

Another `reference` than the three, and `frames` that are no list or tuple, raise
UnsupportedError when a Program is built.
"""

from dyn_core.authoring import (
    Motion,
    MotionSubspace,
    Required,
    TracedSolver,
    Transform,
    Vector,
    cross,
    cross3,
    hookimpl,
    join_columns,
    split_q,
)
from dyn_core.problems import (
    FORWARD_KINEMATICS,
    FRAME_ACCELERATION,
    FRAME_BIAS_ACCELERATION,
    FRAME_VELOCITY,
    JACOBIAN,
)
from dyn_plugins._options import OF_FRAME, known_links


def transforms(model, q):
    """Return the transforms X_i_0 from the base to itself and to each body, a list."""
    X = [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i] @ X[model.parent[i]])
    return X


def to_reference(X_frame, reference):
    """Return the transform from a frame's own coordinates to a reference frame.

    local: The frame's axes at its origin; world: base axes at the base origin; aligned
    (or any other): base axes at the frame's origin.
    """
    if reference == "local":
        return Transform.identity()
    if reference == "world":
        return X_frame.inverse
    return Transform(X_frame.E.T, Vector.zeros(3))


def forward_kinematics(model, q, frames):
    """Return the pose of frames in the base.

        x_base = R x_frame + p,   pose = [[R, p], [0, 1]]

    Inputs and outputs: those of FORWARD_KINEMATICS; q by body, the base first.

    Args:
        frames: Names of links, an unknown one raises ModelError when built; None for
            all, in the order of model.frame_names.

    Source: RBDA, section 4.2; KIM (1)-(4); KIM-1.1.
    """
    X = transforms(model, q)
    poses = []
    for name in model.frame_names if frames is None else frames:
        frame = model.frame(name)
        R, p = (frame.X @ X[frame.body]).pose
        rows = [(*row, x) for row, x in zip(R.rows, p, strict=True)]
        poses.append([*rows, (0.0, 0.0, 0.0, 1.0)])
    return poses


def jacobian(model, q, frame, reference):
    """Return the Jacobian of a frame's velocity: a dict from body to its columns.

        v = J(q) qd   without joints driven by time

    Each body from the base to the frame has the columns of its joint, a MotionSubspace
    (followers too); other bodies have no entry, see join_columns. A frame of the base
    gives an empty dict.

    Inputs and outputs: those of JACOBIAN, but J by body; q by body, the base first.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        reference: Coordinates of v: local, world or aligned (origin of the link, axes
            of the base: LOCAL_WORLD_ALIGNED of Pinocchio).

    Source: RBDA, section 4.4; KIM (37).
    """
    X = transforms(model, q)
    target = model.frame(frame)
    X_frame = target.X @ X[target.body]
    X_out = to_reference(X_frame, reference) @ X_frame
    J, i = {}, target.body
    while i > 0:
        X_frame_i = X_out @ X[i].inverse
        S = model.joint[i].S(q[i])
        J[i] = MotionSubspace(X_frame_i @ column for column in S)
        i = model.parent[i]
    return J


def frame_and_jacobian(model, q, frame):
    """Return the transform from the base to a link, and its Jacobian, aligned, (6, nv).

    Only joints that move the link are visited. Not a solver: laws of the tool share it.
    """
    target, q = model.frame(frame), split_q(model, q)
    way, i = [], target.body
    while i > 0:
        way.append(i)
        i = model.parent[i]
    X = {0: Transform.identity()}
    for i in reversed(way):
        X[i] = model.joint[i].X(q[i]) @ model.Xtree[i] @ X[model.parent[i]]
    X_frame, J = target.X @ X[target.body], {}
    for i in way:
        R, arm, columns = X[i].E.T, X_frame.r - X[i].r, []
        for s in model.joint[i].S(q[i]):
            spin = R @ s.ang
            columns.append(Motion(spin, R @ s.lin + cross3(spin, arm)))
        J[i] = MotionSubspace(columns)
    return X_frame, join_columns(model, J)


def frame_motion(model, q, qd, frame, qdd=None):
    """Return velocity and acceleration of a link, and its transform from the base.

    Both are spatial, in link coordinates, without gravity. Laws of the tool share it.
    """
    X, v, a = [Transform.identity()], [Motion.zero()], [Motion.zero()]
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        X_p = joint.X(q[i]) @ model.Xtree[i]
        vJ, cJ = joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        X.append(X_p @ X[p])
        v.append(X_p @ v[p] + vJ)
        aJ = cJ if qdd is None else cJ + joint.S(q[i]) @ qdd[i]
        a.append(X_p @ a[p] + aJ + cross(v[i], vJ))
    target = model.frame(frame)
    i = target.body
    return target.X @ v[i], target.X @ a[i], target.X @ X[i]


def frame_velocity(model, q, qd, frame, reference):
    """Return the velocity of a frame, [angular; linear].

        v = J(q) qd   and the motion of joints driven by time

    Inputs and outputs: those of FRAME_VELOCITY; q and qd by body, the base first.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        reference: Coordinates of v: local, world or aligned (origin of the link, axes
            of the base: LOCAL_WORLD_ALIGNED of Pinocchio).

    Source: RBDA, section 4.4; KIM (9)-(11); KIM-1.4.
    """
    v, _, X_frame = frame_motion(model, q, qd, frame)
    return to_reference(X_frame, reference) @ v


def frame_bias_acceleration(model, q, qd, frame, reference):
    """Return the acceleration of a frame for qdd = 0, [angular; linear].

        a = J(q) qdd + (dJ/dt) qd,   this is (dJ/dt) qd

    The motion of joints driven by time is included, gravity is not.
    Inputs and outputs: those of FRAME_BIAS_ACCELERATION; q and qd by body, the base
    first. For local and world it is the spatial acceleration; for aligned its linear
    part is the acceleration of the frame's origin.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        reference: Coordinates of a: local, world or aligned.

    Source: RBDA, section 2.10; SV-6.1.
    """
    v, a, X_frame = frame_motion(model, q, qd, frame)
    if reference == "aligned":
        a = of_origin(v, a)
    return to_reference(X_frame, reference) @ a


def of_origin(v, a):
    """Return (dw; dv + w x v), a frame's acceleration with its origin's linear part."""
    return a + cross(Motion(v.ang, Vector.zeros(3)), v)


def frame_acceleration(model, q, qd, qdd, frame, reference):
    """Return the acceleration of a frame, [angular; linear].

        a = J(q) qdd + (dJ/dt) qd

    The motion of joints driven by time is included, gravity is not.
    Inputs and outputs: those of FRAME_ACCELERATION; q, qd and qdd by body, the base
    first. For local and world it is the spatial acceleration; for aligned its linear
    part is the acceleration of the frame's origin.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        reference: Coordinates of a: local, world or aligned.

    Source: RBDA, section 2.10; SV-6.1.
    """
    v, a, X_frame = frame_motion(model, q, qd, frame, qdd)
    if reference == "aligned":
        a = of_origin(v, a)
    return to_reference(X_frame, reference) @ a


def _frame_count(model, options):
    frames = options["frames"]
    return {"nf": len(model.frame_names) if frames is None else len(frames)}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    one = {
        "options": {"frame": Required("the name of a link"), "reference": "local"},
        "valid": OF_FRAME,
    }
    return [
        TracedSolver(
            "forward_kinematics",
            FORWARD_KINEMATICS,
            forward_kinematics,
            options={"frames": None},
            valid={"frames": known_links},
            sizes=_frame_count,
        ),
        TracedSolver("jacobian", JACOBIAN, jacobian, **one),
        TracedSolver("frame_velocity", FRAME_VELOCITY, frame_velocity, **one),
        TracedSolver(
            "frame_bias_acceleration",
            FRAME_BIAS_ACCELERATION,
            frame_bias_acceleration,
            **one,
        ),
        TracedSolver(
            "frame_acceleration", FRAME_ACCELERATION, frame_acceleration, **one
        ),
    ]
