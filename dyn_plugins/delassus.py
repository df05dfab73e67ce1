"""Responses of constraint rows: Delassus matrices and operational-space inertia.

G = J H^-1 J.T without H: see response.py
"""

from dyn_core import (
    CONSTRAINT_JACOBIAN,
    DELASSUS,
    OPERATIONAL_INERTIA,
    POINT_DELASSUS,
    Factored,
    Force,
    Matrix,
    TextSolver,
    UnsupportedError,
    Vector,
    cross3,
    hookimpl,
)
from dyn_plugins.aba import articulated
from dyn_plugins.kinematics import to_reference, transforms
from dyn_plugins.response import felt_above, joint_row, joints, meet, merged


def _row_forces(model, q, W, rows):
    """Give for each row what it pushes: pairs (body, force in body coordinates)."""
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
    """Give the Delassus matrix of constraint rows, without H.

        G = J H^-1 J.T

    A row k of links moves at W_k . (v_link - v_other), all in base coordinates about
    the base's origin: W_k is the unit force that acts on the link, and in reverse on
    the other one. A row of a joint is the joint's velocity.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        W: Directions, m x 6, [moment; force], base coordinates.
        rows: Pairs (link, other link or None for the base), one for each of the m rows.
        joint_rows: Names of joints of one coordinate whose rows come after them.

    Returns:
        G, symmetric, m and the number of joint rows on each side.

    Source: TAZZ-6.5; LCP-3.
    """
    X, S = joints(model, q)
    felt, _ = articulated(model, X, S)
    found = [
        merged(felt_above(model, felt, i, f) for i, f in push)
        for push in _row_forces(model, q, W, rows)
    ]
    for name in joint_rows:
        found.append(joint_row(model, felt, _single(model, name)))
    return meet(felt, found)


def point_delassus(model, q, points):
    """Give the Delassus matrix of points that are held: three rows each, without H.

        G = J H^-1 J.T,   J qd = velocities of the points, base axes

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        points: Pairs (link, point in the link's frame [m]).

    Returns:
        G, symmetric, three rows and columns (x, y, z) for each point [1/kg].

    Source: TAZZ-6.5; LCP-3.
    """
    X, S = joints(model, q)
    felt, _ = articulated(model, X, S)
    X_0, found = transforms(model, q), []
    for link, point in points:
        frame = model.frame(link)
        E = (frame.X @ X_0[frame.body]).E
        for axis in E.T.rows:
            e = Vector(axis)
            force = frame.X.T @ Force(cross3(Vector(map(float, point)), e), e)
            found.append(felt_above(model, felt, frame.body, force))
    return meet(felt, found)


def _single(model, name):
    """Give the body of a joint of one coordinate."""
    i = model.body_of_joint(name)
    if model.joint[i].nv != 1:
        raise UnsupportedError(
            f"joint row '{name}': the joint is {model.joint[i].kind}; rows of joints"
            " take those of one coordinate"
        )
    return i


def constraint_jacobian(model, q, W, rows, joint_rows):
    """Give the Jacobian of constraint rows.

        sigma = J qd,   sigma_k = W_k . (v_link - v_other)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        W: Directions, m x 6, [moment; force], base coordinates.
        rows: Pairs (link, other link or None for the base), one for each of the m rows.
        joint_rows: Names of joints of one coordinate whose rows come after them.

    Returns:
        J, (m and joint rows) x nv.

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
    """Add what joint i has to a row over the independent coordinates."""
    ratio, at = model.leader[i].ratio, model.v_slices[i].start
    led = values if ratio is None else ratio.T @ values
    for k, x in enumerate(led):
        line[at + k] = line[at + k] + x


_PARTS = {"full": range(6), "angular": range(3), "linear": range(3, 6)}


def operational_inertia(model, q, frame, reference, part, damping):
    """Give the inertia that a frame shows to forces: the operational-space inertia.

        Lambda = (J H^-1 J.T + damping)^-1

    Without damping a frame that cannot move in some direction is a SingularError.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        frame: Name of the link.
        reference: Axes and point: local, world or aligned.
        part: full, angular or linear: which rows of the Jacobian J.
        damping: Added to the diagonal before inversion [1/(kg·m²) | 1/kg].

    Returns:
        Lambda, symmetric positive definite, 6 x 6 or 3 x 3, [angular; linear].

    Source: TAZZ-6.2 (its inverse is -Theta); O. Khatib 1987.
    """
    if part not in _PARTS:
        raise UnsupportedError(f"part {part!r}; valid: {', '.join(_PARTS)}")
    X, S = joints(model, q)
    felt, _ = articulated(model, X, S)
    target = model.frame(frame)
    X_frame = target.X @ transforms(model, q)[target.body]
    X_out = to_reference(X_frame, reference)
    unit = Matrix.identity(6).rows
    forces = [target.X.T @ (X_out.T @ Force.of(unit[k])) for k in _PARTS[part]]
    found = [felt_above(model, felt, target.body, f) for f in forces]
    n = range(len(found))
    inverse = meet(felt, found) + Matrix.diagonal([damping] * len(found))
    items = [f"frame {frame}, direction {k}" for k in _PARTS[part]]
    return Factored(inverse, [inverse[k, k] * 1e-12 for k in n], items).inverse()


def _row_count(model, options):
    return {"m": len(options["rows"]), "mj": _all_rows(options)}


def _all_rows(options):
    return len(options["rows"]) + len(options["joint_rows"])


def _point_rows(model, options):
    return {"m": 3 * len(options["points"])}


def _part_size(model, options):
    return {"k": len(_PARTS.get(options["part"], ()))}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    table = {"options": {"rows": (), "joint_rows": ()}, "sizes": _row_count}
    return [
        TextSolver("delassus", DELASSUS, delassus, regrouped=True, **table),
        TextSolver(
            "point_delassus",
            POINT_DELASSUS,
            point_delassus,
            options={"points": ()},
            sizes=_point_rows,
            regrouped=True,
        ),
        TextSolver(
            "constraint_jacobian", CONSTRAINT_JACOBIAN, constraint_jacobian, **table
        ),
        TextSolver(
            "operational_inertia",
            OPERATIONAL_INERTIA,
            operational_inertia,
            options={
                "frame": "",
                "reference": "local",
                "part": "full",
                "damping": 0.0,
            },
            sizes=_part_size,
            regrouped=True,
        ),
    ]
