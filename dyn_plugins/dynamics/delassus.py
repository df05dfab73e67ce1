"""Responses of constraint rows: Delassus matrices, operational-space inertia, impulses.

G = J H^-1 J.T without H: see response.py
"""

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Motion,
    Required,
    TracedSolver,
    Vector,
    cross3,
    hookimpl,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    CONSTRAINT_JACOBIAN,
    DELASSUS,
    OPERATIONAL_INERTIA,
    POINT_DELASSUS,
    POINT_IMPULSE,
)
from dyn_core.validation import Name
from dyn_plugins._options import DAMPING, OF_FRAME, known_pairs, known_points
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    add_rows,
    articulated_joints,
    delassus_matrix,
    joint_row,
    joint_transforms,
    propagate_to_base,
)
from dyn_plugins.kinematics.kinematics import to_reference, transforms

RANK = 1e-12  # pivots of G / diagonal entry at or below this are zero


def _row_forces(model, q, W, rows):
    """Return, for each row, a list of pairs (body, force on it in body coordinates).

    Forces on the base are left out. W: [moment; force] of each row, base coordinates
    about the base's origin; rows: pairs (link, other link or None for the base); the
    other link gets the negative force.
    """
    X = transforms(model, q)
    pushes = []
    for (link, other), row in zip(rows, W.rows, strict=True):
        force = Force.of(row)
        ends = [(model.body_of(link), force)]
        if other is not None:
            ends.append((model.body_of(other), -force))
        pushes.append([(i, X[i] @ f) for i, f in ends if i])
    return pushes


def delassus(model, q, W, rows, joint_rows):
    """Return the Delassus matrix of constraint rows, without H.

        G = J H^-1 J.T

    The velocity of a row k of links is W_k . (v_link - v_other), all in base
    coordinates about the base's origin: W_k is the unit force that acts on the link,
    and its negative on the other one. The velocity of a row of a joint is the joint's
    velocity. W is m x 6, [moment; force]. A singular joint inertia raises SingularError
    when the Program runs.

    Inputs and outputs: those of DELASSUS; q by body, the base first.

    Args:
        rows: Pairs (link, other link or None for the base), one for each of the m rows;
            when the Program is built, an unknown link raises ModelError, and a row that
            is no pair UnsupportedError.
        joint_rows: Names of joints of one coordinate whose rows come after them; others
            raise UnsupportedError, and unknown, fixed or locked ones ModelError, by the
            engine native when the Program is built, by plain and graph when called.

    Source: TAZZ-6.5; LCP-3.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    responses = [
        add_rows(propagate_to_base(model, joints, i, f) for i, f in push)
        for push in _row_forces(model, q, W, rows)
    ]
    for name in joint_rows:
        responses.append(joint_row(model, joints, _single(model, name)))
    return delassus_matrix(joints, responses)


def point_delassus(model, q, points):
    """Return the Delassus matrix of points of links, without H: three rows each.

        G = J H^-1 J.T,   J qd = velocities of the points, base axes

    The second holds without joints driven by time. A singular joint inertia raises
    SingularError when the Program runs.

    Inputs and outputs: those of POINT_DELASSUS; q by body, the base first.

    Args:
        points: Pairs (link, point in the link's frame [m]); invalid ones raise
            UnsupportedError or ModelError when the Program is built.

    Source: TAZZ-6.5; LCP-3.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    pushes = point_forces(model, q, points)
    responses = [propagate_to_base(model, joints, i, f) for i, f in pushes]
    return delassus_matrix(joints, responses)


def point_forces(model, q, points):
    """Return unit forces at points of links along the base axes.

    Args:
        model: Robot.
        q: Joint positions, by joint.
        points: Pairs (link, point in the link's frame [m]).

    Returns:
        One flat list of pairs (body, force in body coordinates), three pairs for each
        point: the forces along x, y and z of the base. The body of a link fixed to the
        base is 0.

    Raises:
        ModelError: A link is unknown.
        ValueError: A point has not three numbers.
    """
    X_0, pushes = transforms(model, q), []
    for link, point in points:
        frame = model.frame(link)
        E = (frame.X @ X_0[frame.body]).E
        for axis in E.T.rows:
            e = Vector(axis)
            force = frame.X.T @ Force(cross3(Vector(map(float, point)), e), e)
            pushes.append((frame.body, force))
    return pushes


def _single(model, name):
    """Return the body that a joint carries; refuse all but joints of one coordinate."""
    i = model.body_of_joint(name)
    if model.joint[i].nv != 1:
        raise UnsupportedError(
            f"joint row '{name}': the joint is {model.joint[i].kind}; rows of joints"
            " take those of one coordinate"
        )
    return i


def constraint_jacobian(model, q, W, rows, joint_rows):
    """Return the Jacobian of constraint rows.

        sigma = J qd,   sigma_k = W_k . (v_link - v_other)

    The first holds without joints driven by time. Velocities are in base coordinates
    about the base's origin. The velocity of a row of a joint is the joint's velocity. W
    is m x 6, [moment; force].

    Inputs and outputs: those of CONSTRAINT_JACOBIAN; q by body, the base first.

    Args:
        rows: Pairs (link, other link or None for the base), one for each of the m rows.
        joint_rows: Names of joints of one coordinate whose rows come after them.

    Raises:
        UnsupportedError: A row is no pair, or a joint of joint_rows has not one
            coordinate.
        ModelError: A link is unknown, or a joint unknown, fixed or locked.

    Those of rows come when the Program is built; those of joint_rows as in delassus.

    Source: TAZZ-6.5; LCP-2.
    """
    table = []
    for push in _row_forces(model, q, W, rows):
        line = [0.0] * model.nv
        for body, force in push:
            i, f = body, force
            while i:
                _add_row(model, line, i, model.joint[i].S(q[i]).T @ f)
                f = (model.joint[i].X(q[i]) @ model.Xtree[i]).T @ f
                i = model.parent[i]
        table.append(line)
    for name in joint_rows:
        line = [0.0] * model.nv
        _add_row(model, line, _single(model, name), Vector((1.0,)))
        table.append(line)
    return Matrix(table)


def _add_row(model, line, i, values):
    """Add `values`, a joint force of joint i, to a row over the nv coordinates.

    The force of a follower is added to its leader, times the gear ratio. `line` is
    changed in place.
    """
    ratio, start = model.leader[i].ratio, model.v_slices[i].start
    led = values if ratio is None else ratio.T @ values
    for k, x in enumerate(led):
        line[start + k] = line[start + k] + x


# Rows of [angular; linear].
_PARTS = {"full": range(6), "angular": range(3), "linear": range(3, 6)}


def operational_inertia(model, q, frame, reference, part, damping):
    """Return the operational-space inertia of a frame.

        Lambda = (J H^-1 J.T + damping)^-1

    Without damping a frame that cannot move in some direction raises SingularError when
    the Program runs, with the name of the frame and the number of the direction, 0 to 5
    in [angular; linear]. So does a singular joint inertia, with the name of the joint.

    Inputs and outputs: those of OPERATIONAL_INERTIA; q by body, the base first.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        reference: Axes and point of J: local, world (base axes at the base's origin) or
            aligned (base axes at the frame's origin); others, and those of `part`,
            raise UnsupportedError when built.
        part: Rows of the Jacobian J: full, angular or linear.
        damping: Added to the diagonal before inversion [1/(kg·m²) | 1/kg].

    Returns:
        Lambda, symmetric positive definite, 6 x 6 or 3 x 3, [angular; linear].

    Source: TAZZ-6.2 (its inverse is -Theta); O. Khatib 1987.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    target = model.frame(frame)
    X_frame = target.X @ transforms(model, q)[target.body]
    X_out = to_reference(X_frame, reference)
    unit = Matrix.identity(6).rows
    forces = [target.X.T @ (X_out.T @ Force.of(unit[k])) for k in _PARTS[part]]
    rows = [propagate_to_base(model, joints, target.body, f) for f in forces]
    n = range(len(rows))
    inverse = delassus_matrix(joints, rows) + Matrix.diagonal([damping] * len(rows))
    names = [f"frame {frame}, direction {k}" for k in _PARTS[part]]
    return Factored(inverse, [inverse[k, k] * 1e-12 for k in n], names).inverse()


def point_impulse(model, q, qd, velocity, points, damping):
    """Return the velocity after an impact that gives points a velocity, and impulses.

        H (qd+ - qd) = J.T Lambda,   J qd+ + damping Lambda = velocity

    With joints driven by time, J qd+ also has the points' velocities by their motion.
    `velocity` [m/s] and the impulses Lambda [N·s] are flat, (m,), with three numbers
    for each point in turn, along the base axes. Without damping, linearly dependent
    rows raise SingularError with the point's number, from 0, and link when the Program
    runs. So does a singular joint inertia, with the name of the joint.

    Inputs and outputs: those of POINT_IMPULSE; q, qd and qd_next by body, the base
    first; entry 0 of qd_next is None.

    Args:
        points: Pairs (link, point in the link's frame [m]); invalid ones raise
            UnsupportedError or ModelError when the Program is built.
        damping: Added to the diagonal of J H^-1 J.T [1/kg].

    Source: RBDA, section 11.7 (impulsive dynamics); the sweeps are TAZZ-6.4, TAZZ-6.5.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    pushes = point_forces(model, q, points)
    rows = [propagate_to_base(model, joints, i, f) for i, f in pushes]
    G = delassus_matrix(joints, rows) + Matrix.diagonal([damping] * len(rows))
    names = [f"point {k // 3} ({points[k // 3][0]})" for k in range(len(rows))]
    tolerances = [G[k, k] * RANK for k in range(len(rows))]
    v = _velocities(model, X, q, qd)
    missing = [x - v[i] @ f for x, (i, f) in zip(velocity, pushes, strict=True)]
    impulse = Factored(G, tolerances, names).solve(Vector(missing))
    forces = [Force.zero()] * (model.nb + 1)
    for (i, f), x in zip(pushes, impulse, strict=True):
        forces[i] = forces[i] - f * x
    still = Vector.zeros(model.nv)
    change = accelerations_from_forces(model, joints, still, forces).qdd
    after = [None, *(qd[i] + change[i] for i in model.bodies)]
    return after, impulse


def _velocities(model, X, q, qd):
    """Return the velocities of the base (zero) and each body, body coordinates."""
    v = [Motion.zero()]
    for i in model.bodies:
        v.append(X[i] @ v[model.parent[i]] + model.joint[i].vJ(q[i], qd[i]))
    return v


def _row_count(model, options):
    return {"m": len(options["rows"]), "mj": _all_rows(options)}


def _all_rows(options):
    return len(options["rows"]) + len(options["joint_rows"])


def _point_rows(model, options):
    return {"m": 3 * len(options["points"])}


def _part_size(model, options):
    return {"k": len(_PARTS[options["part"]])}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    table = {"options": {"rows": (), "joint_rows": ()}, "sizes": _row_count}
    table["valid"] = {"rows": known_pairs}
    return [
        TracedSolver("delassus", DELASSUS, delassus, regrouped=True, **table),
        TracedSolver(
            "point_delassus",
            POINT_DELASSUS,
            point_delassus,
            options={"points": ()},
            valid={"points": known_points},
            sizes=_point_rows,
            regrouped=True,
        ),
        TracedSolver(
            "constraint_jacobian", CONSTRAINT_JACOBIAN, constraint_jacobian, **table
        ),
        TracedSolver(
            "operational_inertia",
            OPERATIONAL_INERTIA,
            operational_inertia,
            options={
                "frame": Required("the name of a link"),
                "reference": "local",
                "part": "full",
                "damping": 0.0,
            },
            valid={**OF_FRAME, **DAMPING, "part": Name(tuple(_PARTS))},
            sizes=_part_size,
            regrouped=True,
        ),
        TracedSolver(
            "point_impulse",
            POINT_IMPULSE,
            point_impulse,
            options={"points": (), "damping": 0.0},
            valid={"points": known_points, **DAMPING},
            sizes=_point_rows,
            regrouped=True,
        ),
    ]
