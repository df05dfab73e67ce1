"""What a step with contacts needs of a robot's dynamics, as one traced algorithm."""

from dyn_core.authoring import (
    MotionSubspace,
    TracedSolver,
    Vector,
    columns_of,
    coordinate_pivots,
    friction_slope_matrix,
    hookimpl,
    logical_not,
    rate_in_initial_axes,
    require,
    split_q,
    sqrt,
    structure,
)
from dyn_core.errors import SingularError
from dyn_core.problems import BIAS_FORCE, CONTACT_TERMS, MASS_MATRIX
from dyn_plugins.kinematics.kinematics import transforms


def contact_terms(model, q, qd, tau, dt, f_ext, bias, mass_matrix):
    """Return poses, columns of motion, the factor of inertia, and the free velocity.

        v_i = sum of columns on the path of body i times qd,
        H + dt B = L.T L,   free = qd + dt ((L.T L)^-1 (tau - C) + w x v)

    with C of the bias force, B the slope of joint friction, which acts at the end of
    the step, and w x v of floating bodies, whose velocities after the step are along
    the axes before it. L is lower triangular in the order of elimination of Structure,
    and has its zeros.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        dt: Step [s].
        f_ext: Force on each body, body coordinates [N·m; N].
        bias, mass_matrix: Slots, of C and H.

    Returns:
        Poses, (nb + 1) x 12, the world's first: rotation to the world row by row, and
        origin; columns, nc x 6, [angular; linear] of the point at the world's origin;
        the inverse diagonal of L, then its entries below row by row; and the velocity
        after a step without constraints, nv.

    Source: LCP-1, LCP-3; RBDA, section 6.5 (L.T L).
    """
    tables = structure(model)
    H, B = mass_matrix(q), friction_slope_matrix(model, qd)
    order = tables.coordinate.tolist()
    A = [[H[a, b] + B[a, b] * dt for b in order] for a in order]
    L, over = _factor(model, tables, A)
    rhs = tau - bias(q, qd, f_ext[1:])
    qdd = _solve(tables, L, over, [rhs[k] for k in order])
    qdd = Vector(dict(zip(order, qdd, strict=True))[k] for k in range(model.nv))
    free = qd + rate_in_initial_axes(model, qd, qdd) * dt
    below = [L[k][i] for k in range(model.nv) for i in tables.places_above(k)]
    poses, columns = _geometry(model, q)
    return poses, columns, [*over, *below], free


def _geometry(model, q):
    """Return the pose of each body, the world's first, and all columns of motion."""
    q = split_q(model, q)
    X_0 = transforms(model, q)
    poses = [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    columns = {}
    for i in model.bodies:
        R, p = X_0[i].pose
        poses.append([*(x for row in R.rows for x in row), *p])
        ratio, to_world = model.leader[i].ratio, X_0[i].inverse
        S = MotionSubspace(to_world @ column for column in model.joint[i].S(q[i]))
        for k, column in enumerate(S if ratio is None else S @ ratio):
            columns[i, k] = [*column.ang, *column.lin]
    return poses, [columns[key] for key in columns_of(model)]


def _factor(model, tables, A):
    """Return L of A = L.T L by place, and one over its diagonal."""
    n = model.nv
    tolerances, names = coordinate_pivots(model)
    L, over = [{} for _ in range(n)], [0.0] * n
    for k in reversed(range(n)):
        place = int(tables.coordinate[k])
        pivot = A[k][k]
        require(logical_not(pivot <= tolerances[place]), SingularError, names[place])
        over[k] = 1.0 / sqrt(pivot)
        above = tables.places_above(k)
        for i in above:
            L[k][i] = A[k][i] * over[k]
        for i in above:
            for j in above:
                if j <= i:
                    A[i][j] = A[i][j] - L[k][i] * L[k][j]
    return L, over


def _solve(tables, L, over, b):
    """Return x of L.T L x = b, by place."""
    x = list(b)
    for k in reversed(range(len(x))):
        x[k] = x[k] * over[k]
        for i in tables.places_above(k):
            x[i] = x[i] - L[k][i] * x[k]
    for k in range(len(x)):
        for i in tables.places_above(k):
            x[k] = x[k] - L[k][i] * x[i]
        x[k] = x[k] * over[k]
    return x


def _sizes(model, _options):
    """Return the numbers of poses, columns and entries of the factor."""
    tables = structure(model)
    return {
        "poses": model.nb + 1,
        "nc": len(tables.column_place),
        "nl": tables.entries,
    }


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            "contact_terms",
            CONTACT_TERMS,
            contact_terms,
            slots={"bias": BIAS_FORCE, "mass_matrix": MASS_MATRIX},
            fills={"bias": "bias", "mass_matrix": "crba"},
            sizes=_sizes,
            by_joint=False,
        )
    ]
