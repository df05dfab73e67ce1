"""Inverse kinematics of a frame by Levenberg-Marquardt steps.

Another value of an option than those told, an iteration number below 1 and a tolerance
that is not above 0 raise UnsupportedError when the Program is built.
"""

from dyn_core.authoring import (
    Matrix,
    Required,
    TracedSolver,
    Transform,
    Vector,
    absolute,
    chord3,
    cross3,
    hookimpl,
    log_transform,
    logical_and,
    logical_not,
    logical_or,
    loop,
    maximum,
    minimum,
    require,
    total,
    where,
)
from dyn_core.errors import RotationError, UnsupportedError, unknown_name
from dyn_core.problems import INVERSE_KINEMATICS
from dyn_core.validation import Name, Quantity, Whole, shown
from dyn_plugins._options import known_link
from dyn_plugins.kinematics.kinematics import frame_and_jacobian

DAMPING = 0.1  # of the squared error; from 0.02 to 0.3 a Panda needs as many steps
MORE, LESS = 3.0, 0.7  # factors of damping: after a step without, with a new minimum
LEAST_DAMPING = 1e-12  # keeps the system regular at singular positions
ORTHONORMAL = 1e-6  # tolerance of a target's rotation matrix
ROWS = {"pose": range(6), "orientation": range(3), "position": range(3, 6)}
FAR = 1e300


def inverse_kinematics(model, q, pose, frame, part, fixed, max_iterations, tolerance):
    """Return a position at which a frame has a pose, or is nearest to it.

        dq = J.T (J J.T + lambda)^-1 e,   lambda = c e.e + 1e-12
        e = [2 sin(t/2) n; p_target - p],   (t, n) turns the frame to the target

    Base axes, [angular; linear], rad and m weighted alike. c begins as 0.1, grows after
    a step without a new minimum of e.e, and shrinks towards 0.1 after a step with one.

    A coordinate at its limit that would leave its range stays there (its column of J is
    zero); a step beyond a limit ends on it, and so does a start beyond one. Swing and
    twist limits of ball joints are ignored. The result is the iterate of least e.e,
    from one start only (dyn_core.inverse_kinematics tries several). Joints that do not
    move the frame, and fixed joints, stay, also beyond their limits.

    The results are the position, the error, the number of steps, and the status. The
    error is not e: it is the logarithm of the motion that is left, T(q) exp(error) =
    pose, with all six rows, also those that `part` leaves out. The status is 0 if the
    length of e is at most the tolerance, else 1: not reached within max_iterations.

    A rotation of `pose` that is not orthonormal within 1e-6 raises RotationError when
    the Program runs; NaN passes.

    Inputs and outputs: those of INVERSE_KINEMATICS; q: start, pose: of the frame in the
    base, a 4 x 4 matrix.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        part: Compared quantity: pose, position or orientation.
        fixed: Names of joints that stay where they are; a follower or an unknown joint
            raises UnsupportedError when the Program is built.
        max_iterations: Maximum number of steps.
        tolerance: Length of e up to which the target counts as reached (rad and m).

    Source: T. Sugihara, Solvability-unconcerned inverse kinematics by the
    Levenberg-Marquardt method, IEEE T-RO 27 (2011); limits by an active set.
    """
    target = _target(pose)
    moving = _moving(model, frame, fixed)
    limits = _limits(model, moving)
    nq, rows = model.nq, ROWS[part]

    def step(state):
        now, best = Vector(state[:nq]), Vector(state[nq : 2 * nq])
        count, least, c = state[2 * nq :]
        X, J = frame_and_jacobian(model, now, frame)
        e = [_error(X, target)[r] for r in rows]
        square = _inner(e, e)
        columns = {k: [J[r, k] for r in rows] for k in moving}
        c = where(square <= least, maximum(c * LESS, DAMPING), c * MORE)
        dq = _step(columns, e, now, limits, c * square + LEAST_DAMPING)
        after = model.integrate(now, Vector(dq.get(k, 0.0) for k in range(model.nv)))
        best = where(square < least, now, best)
        least = where(square < least, square, least)
        return *_inside(after, limits), *best, count + 1.0, least, c

    def away(state):
        return state[-2] > tolerance * tolerance

    start = _inside(model.normalize(q), limits)
    first = (*start, *start, -1.0, FAR, DAMPING)
    state = loop(first, step, away, max_iterations + 1)
    reached = Vector(state[nq : 2 * nq])
    X, _ = frame_and_jacobian(model, reached, frame)
    error = log_transform(target @ X.inverse)
    return reached, error, state[2 * nq], where(away(state), 1.0, 0.0)


def _target(pose):
    """Return the Transform from the base to the target pose, a 4 x 4 matrix.

    A rotation that is not orthonormal and right-handed within 1e-6 raises RotationError
    when the Program runs; NaN passes. The last row of the pose is not read.
    """
    rows = [Vector(pose[i, j] for j in range(3)) for i in range(3)]
    skewed = [
        absolute(rows[i] @ rows[j] - float(i == j))
        for i in range(3)
        for j in range(i + 1)
    ]
    mirrored = absolute(cross3(rows[0], rows[1]) @ rows[2] - 1.0)
    good = logical_not(_largest([*skewed, mirrored]) > ORTHONORMAL)  # NaN passes
    require(good, RotationError, "pose")
    return Transform(Matrix(rows).T, Vector(pose[i, 3] for i in range(3)))


def _largest(values):
    """Return the largest magnitude; 0.0 for no values."""
    most = 0.0
    for x in values:
        most = maximum(most, absolute(x))
    return most


def _moving(model, frame, fixed):
    """Return the indices in qd that move a frame, ascending, without joints `fixed`."""
    stay = {model.v_slice(name).start for name in fixed}
    moving, i = set(), model.frame(frame).body
    while i > 0:
        if model.v_slices[i].start not in stay:
            moving.update(range(model.v_slices[i].start, model.v_slices[i].stop))
        i = model.parent[i]
    return sorted(moving)


def _limits(model, moving):
    """Return {coordinate: (index in q, lower, upper)} for the coordinates `moving`.

    Coordinates without limits are left out, and joints with nq != nv. Keys are indices
    in qd; the limits are floats [rad | m], infinite where one of the two is missing.
    """
    limits = {}
    for i in model.independent:
        if model.joint[i].nq != model.joint[i].nv:
            continue
        places = range(model.q_slices[i].start, model.q_slices[i].stop)
        for k, place in enumerate(places, model.v_slices[i].start):
            low, high = float(model.lower[k]), float(model.upper[k])
            if k in moving and (low > -FAR or high < FAR):
                limits[k] = place, low, high
    return limits


def _inside(q, limits):
    """Return q with every limited coordinate clamped to its range of `_limits`."""
    q = list(q)
    for place, low, high in limits.values():
        q[place] = maximum(minimum(q[place], high), low)
    return Vector(q)


def _error(X, target):
    """Return e: rotation 2 sin(t/2) n, 3, and shift, 3, to the target, base axes."""
    turn = chord3(target.E.T @ X.E)
    return *turn, *(target.r - X.r)


def _step(columns, e, q, limits, damping):
    """Return {coordinate: damped least-squares step}, 0 for those held at a limit.

    A coordinate is held if q is at its limit or beyond, and its column times e points
    outward; a step from inside can pass a limit. e: target minus present.
    """
    free = {}
    for k, column in columns.items():
        if k not in limits:
            free[k] = column
            continue
        place, low, high = limits[k]
        downhill = _inner(column, e)
        leaves = logical_or(
            logical_and(q[place] <= low, downhill < 0.0),
            logical_and(q[place] >= high, downhill > 0.0),
        )
        free[k] = [where(leaves, 0.0, x) for x in column]
    if len(free) < len(e):  # the smaller of two equal systems
        A = _damped(list(free.values()), damping)
        values = _solved(A, [_inner(column, e) for column in free.values()])
        return dict(zip(free, values, strict=True))
    A = _damped([[c[r] for c in free.values()] for r in range(len(e))], damping)
    y = _solved(A, e)
    return {k: _inner(column, y) for k, column in free.items()}


def _inner(a, b):
    return total(x * y for x, y in zip(a, b, strict=True))


def _damped(rows, damping):
    """Return the lower triangle of A A.T + damping 1, rows of 1, 2, ... numbers."""
    return [
        [_inner(rows[i], rows[j]) + (damping if i == j else 0.0) for j in range(i + 1)]
        for i in range(len(rows))
    ]


def _solved(A, b):
    """Return x of A x = b by L D L.T; A: lower triangle, positive definite."""
    n, x = len(b), list(b)
    L, LD, over = [[] for _ in b], [[] for _ in b], []
    for i in range(n):
        for j in range(i):
            LD[i].append(A[i][j] - _inner(LD[i], L[j]))
            L[i].append(LD[i][j] * over[j])
        over.append(1.0 / (A[i][i] - _inner(LD[i], L[i])))
        x[i] = x[i] - _inner(L[i], x[:i])
    for i in reversed(range(n)):
        x[i] = x[i] * over[i] - total(L[k][i] * x[k] for k in range(i + 1, n))
    return x


def _known_joints(model, names):
    """Raise UnsupportedError unless `names` is a list or tuple of the robot's joints.

    Followers and fixed joints are no such joints. Without a model the names themselves
    are not checked.
    """
    if not isinstance(names, (list, tuple)):
        raise UnsupportedError(f"{shown(names)} is no list of joints; valid: a list")
    for name in names if model is not None else ():
        if name not in model.joint_names:
            raise UnsupportedError(unknown_name("joint", name, model.joint_names))


@hookimpl
def dyn_solvers():
    """Return a list of the one solver of this file, for the Registry."""
    return [
        TracedSolver(
            "inverse_kinematics",
            INVERSE_KINEMATICS,
            inverse_kinematics,
            options={
                "frame": Required("the name of a link"),
                "part": "pose",
                "fixed": (),
                "max_iterations": 40,
                "tolerance": 1e-10,
            },
            valid={
                "frame": known_link,
                "part": Name(tuple(ROWS)),
                "fixed": _known_joints,
                "max_iterations": Whole(1),
                "tolerance": Quantity(0.0, above=True),
            },
            by_joint=False,
        )
    ]
