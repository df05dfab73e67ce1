"""Terms of a robot's dynamics in a step with contacts, as one traced algorithm."""

from dyn_core.authoring import (
    MotionSubspace,
    TracedSolver,
    Vector,
    ball_limit_rows,
    columns_of,
    coordinate_pivots,
    friction_slope_matrix,
    gyroscopic_change,
    hookimpl,
    limited_balls,
    logical_not,
    rate_in_initial_axes,
    require,
    split_q,
    sqrt,
    structure,
)
from dyn_core.errors import SingularError
from dyn_core.problems import BIAS_FORCE, CONTACT_TERMS, MASS_MATRIX
from dyn_plugins._options import REMAINING
from dyn_plugins.kinematics.kinematics import transforms
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of


def contact_terms(
    model, q, qd, tau, dt, f_ext, ball_limits, remaining, bias, mass_matrix
):
    """Return geometry, the factor of inertia, the free velocity, and rows of loops.

        v_i = sum of columns on the path of body i times qd,   H + dt B = L.T L,
        free = qd + dt ((L.T L)^-1 (tau - C) + w x v) + gyroscopic change,
        d gaps/dt = rows qd

    with C of the bias force, B the slope of joint friction, which acts at the end of
    the step, and w x v of floating bodies, whose velocities after the step are along
    the axes before it. v_i also has the motion of joints driven by time. L is lower
    triangular in the order of elimination of Structure, and has its zeros.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        dt: Step [s].
        f_ext: Force on each body, body coordinates, nb + 1; entry 0, the base's, is not
            read [N·m; N].
        ball_limits: Whether the limits of ball joints have rows.
        remaining: Fraction of the step that follows q, 0 to 1; 0.5 in a midpoint
            scheme.
        bias, mass_matrix: Slots of BIAS_FORCE and MASS_MATRIX, for C and H.

    Returns:
        Poses, (nb + 1) x 12, the world's first: rotation to the world row by row, and
        origin; columns, nc x 6, body by body with followers, along the world's axes,
        [angular; linear] of the point at the world's origin;
        in one list the inverse diagonal of L, then its entries below row by row;
        the velocity after a step without constraints, nv; rows, nr x nv, and gaps, nr,
        of the limits of ball joints (swing, lower and upper twist, if limited), and
        then of the loops.

    Raises:
        SingularError: A pivot of H + dt B is too small; names its joint. Or, with
            ball_limits, the swing of a limited ball joint is pi.

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
    free = free + gyroscopic_change(model, H, qd, rhs, dt, remaining)
    below = [L[k][i] for k in range(model.nv) for i in tables.places_above(k)]
    poses, columns = _geometry(model, q)
    limits = _ball_limits(model, q) if ball_limits else []
    loops = rows_of(model, q, qd, Vector.zeros(model.nv))
    A = jacobian_of(model, q, loops).rows
    rows = [*(row for row, _ in limits), *A]
    gaps = [*(gap for _, gap in limits), *(row.f for row in loops)]
    return poses, columns, [*over, *below], free, rows, gaps


def _ball_limits(model, q):
    """Return pairs (row, gap) of all finite limits of ball joints, joint by joint.

    Of a joint swing, lower twist, upper twist; row: slope of the gap by the velocity,
    nv; the gap is negative beyond the limit [rad].
    """
    limits = []
    for i in limited_balls(model):
        for _, part, gap in ball_limit_rows(model, i, q[model.q_slices[i]]):
            row = [0.0] * model.nv
            row[model.v_slices[i]] = part
            limits.append((row, gap))
    return limits


def _geometry(model, q):
    """Return the poses of all bodies, (nb + 1) x 12, and all motion columns, nc x 6.

    Poses, the world's first: rotation to the world, row by row, and origin; columns, in
    the order of columns_of: [angular; linear] of the point at the world's origin.
    """
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
    """Return L of A = L.T L, dicts column -> entry below the diagonal, and 1 / L_kk.

    A is in the order of elimination; its lower triangle is overwritten. A pivot not
    above its joint's tolerance is a SingularError in the running Program; NaN passes.
    """
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
    """Return x of L.T L x = b, nv numbers in the order of elimination, like b."""
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


def _sizes(model, options):
    """Return the sizes of the Ports, a mapping from name to number.

    "nr": rows of loops and, with the option ball_limits, of finite limits of ball
    joints. "nc": nv or more, as a follower has columns of its own. "nl": entries of the
    factor, with its diagonal.
    """
    tables = structure(model)
    balls = limited_balls(model) if options["ball_limits"] else ()
    limits = [(model.ball_limits[i][0], *model.ball_limits[i][1]) for i in balls]
    stops = sum(abs(stop) < float("inf") for parts in limits for stop in parts)
    return {
        "nr": stops + sum(loop.rows for loop in model.loops),
        "poses": model.nb + 1,
        "nc": len(tables.column_place),
        "nl": tables.entries,
    }


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "contact_terms",
            CONTACT_TERMS,
            contact_terms,
            options={"ball_limits": True, "remaining": 1.0},
            valid=REMAINING,
            slots={"bias": BIAS_FORCE, "mass_matrix": MASS_MATRIX},
            fills={"bias": "bias", "mass_matrix": "crba"},
            sizes=_sizes,
            by_joint=False,
        )
    ]
