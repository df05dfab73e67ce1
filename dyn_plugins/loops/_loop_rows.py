"""Constraint rows of loops in a state: residuals, rates, and constraint forces.

Not a solver: the algorithms of loops.py share it. m is the number of the rows of all
loops.
"""

from typing import Any, NamedTuple

from dyn_core.authoring import (
    COORDINATE,
    TIME,
    Force,
    Matrix,
    Motion,
    Taylor,
    Transform,
    Vector,
    cross,
    cross3,
    derivatives,
    join_force,
    resistance,
    skew,
    split_q,
    split_v,
    variables,
)
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.kinematics.body_motion import outward


class Pushes(NamedTuple):
    """Pairs (body, force in its axes or along its joint) of a unit multiplier."""

    body_forces: list[Any]
    joint_forces: list[Any]


class LoopRow:
    """One constraint row in a state.

    Attributes:
        name: Name of the loop and index of the row, for errors.
        body_forces: Pairs (body, force in its coordinates) of a unit multiplier; the
            base is left out.
        joint_forces: Pairs (body, joint force) of a unit multiplier.
        f, rate, acceleration: Residual and its derivatives by time; the residual of a
            row in velocities is zero.
        slopes: Derivatives of f by rotations (3) and translations (3) of B against A,
            about B's origin, A's axes, whether the joints can make them or not; empty
            for couplings.
        units: For each slope, the body_forces of a unit couple or force along it.

    Source: KIM-3.0.
    """

    def __init__(self, name, body_forces, joint_forces, residuals, slopes=(), units=()):
        self.name, (self.f, self.rate, self.acceleration) = name, residuals
        self.body_forces, self.joint_forces = body_forces, joint_forces
        self.slopes, self.units = slopes, units


def rows_of(model, q, qd, qdd):
    """Return a list of m LoopRows, one for each row of each loop; [] without loops.

        f = 0,   df/dt = A qd,   d²f/dt² = A qdd + (dA/dt) qd

    They hold residual, rate and acceleration of the row; driven frames add their motion
    to both derivatives. The order is that of model.loops, row by row in each loop.

    Args:
        model: Robot.
        q: Joint positions, nq.
        qd: Joint velocities, nv.
        qdd: Joint accelerations, nv.

    Source: KIM-3.0; derivatives of the loop's function by Taylor numbers.
    """
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    X, _, v, a = outward(model, *parts, Motion.zero())
    X_0 = [Transform.identity()]
    for i in model.bodies:
        X_0.append(X[i] @ X_0[model.parent[i]])
    rows = []
    for loop in model.loops:
        if hasattr(loop, "joints"):
            rows += _coupling_rows(model, loop, parts)
        else:
            rows += _loop_rows(model, loop, X_0, v, a)
    return rows


def open_forces(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion of the open tree, nv [N·m | N].

    They include the friction and springs that act, and the weight. f_ext is by body
    with the base, body coordinates [N·m; N]; None: zero.
    """
    forces = [Force.zero()] * (model.nb + 1) if f_ext is None else f_ext
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    return join_force(model, rnea(model, *motion, forces)) + resistance(model, q, qd)


def wanted_of(rows, a, b):
    """Return -(acceleration + 2 a rate + b² f) of rows, by Baumgarte's equation."""
    return Vector(
        -(row.acceleration + row.rate * (2.0 * a) + row.f * (b * b)) for row in rows
    )


def _loop_rows(model, loop, X_0, v, a):
    """Return the LoopRows of a loop between links; v, a by body, body coordinates."""
    (i, X_A), (j, X_B) = (
        _end(model, X_0, *end) for end in ((loop.a, loop.A), (loop.b, loop.B))
    )
    to_A = {k: X_A @ X_0[k].inverse for k in {i, j}}
    pose = X_B @ X_A.inverse
    R, p = pose.E.T, pose.r
    v_A, rel = to_A[i] @ v[i], to_A[j] @ v[j] - to_A[i] @ v[i]
    second = to_A[j] @ a[j] - to_A[i] @ a[i] - cross(v_A, rel)

    def pushes(force):
        ends = ((j, force), (i, -force))
        return [(body, to_A[body].T @ push) for body, push in ends if body]

    moved = rows_in_time(loop, R, p, rel, second)
    slopes = slopes_by_pose(loop, R, p)
    units = [pushes(force) for force in _unit_forces(p)]
    rows = []
    for k, x in enumerate(moved):
        along = [slope[k] for slope in slopes]
        turn, shift = Vector(along[:3]), Vector(along[3:])
        force = Force(turn + cross3(p, shift), shift)
        name = f"loop {loop.name}, row {k}"
        residuals = derivatives(x, TIME)
        rows.append(LoopRow(name, pushes(force), [], residuals, along, units))
    return rows


def rows_in_time(loop, R, p, rel, second):
    """Return a list of a loop's rows, Taylor numbers of time: f, rate, acceleration.

        f = 0,   rate = D (w; v),   acceleration = D (w'; v') + D' (w; v)

    for the rows D in velocities, which come last, with f = 0; w, v is the velocity of B
    against A, at B's origin, A's axes. R, p is the pose of B in A; `rel` and its rate
    `second` are Motions in A's coordinates about A's origin.

    Source: KIM-3.0; A(q) qd = 0 without f.
    """
    moving = relative_motion(R, p, rel, second)
    rows = list(loop.function(*moving))
    if not loop.velocity_rows:
        return rows
    motion = [derivatives(x, TIME) for x in moving[1]]
    first = Vector((*rel.ang, *(x[1] for x in motion)))
    then = Vector((*second.ang, *(x[2] for x in motion)))
    for row in loop.directions(*moving):
        D, rate = zip(*(derivatives(x, TIME)[:2] for x in row), strict=True)
        change = Vector(D) @ then + Vector(rate) @ first
        rows.append(Taylor(0.0, Vector(D) @ first, change, TIME))
    return rows


_AXES = [Vector(float(i == j) for j in range(3)) for i in range(3)]


def slopes_by_pose(loop, R, p):
    """Return the derivatives of a loop's rows by rotations and translations of B.

    Six lists: rotations about B's origin and translations, A's axes. Rows in velocities
    come last, with their directions D. R, p is the pose of B in A.
    """
    still, zero = Matrix.zeros(3, 3), Vector.zeros(3)
    moving = [_with_rates(R, p, (skew(e) @ R, still), (zero, zero)) for e in _AXES]
    moving += [_with_rates(R, p, (still, still), (e, zero)) for e in _AXES]
    slopes = [[derivatives(x, TIME)[1] for x in loop.function(*y)] for y in moving]
    if not loop.velocity_rows:
        return slopes
    directions = loop.directions(R, p)
    return [[*x, *(row[k] for row in directions)] for k, x in enumerate(slopes)]


def _unit_forces(p):
    """Return a list: three unit couples, three unit forces at p, A's axes."""
    zero = Vector.zeros(3)
    couples = [Force(e, zero) for e in _AXES]
    return couples + [Force(cross3(p, e), e) for e in _AXES]


def _end(model, X_0, link, place):
    """Return the body of a loop's end, and the transform from the base to its frame.

    place: Transform from the link (None: the base, body 0) to the loop's frame.
    """
    if link is None:
        return 0, place
    frame = model.frame(link)
    return frame.body, place @ frame.X @ X_0[frame.body]


def relative_motion(R, p, rate, second):
    """Return a pose R, p of B in A as Taylor numbers of time, a Matrix and a Vector.

    rate, second: Velocity of B and its rate, in A's coordinates about A's origin.
    """
    W = skew(rate.ang)
    R1, p1 = W @ R, rate.lin + cross3(rate.ang, p)
    R2 = skew(second.ang) @ R + W @ R1
    p2 = second.lin + cross3(second.ang, p) + cross3(rate.ang, p1)
    return _with_rates(R, p, (R1, R2), (p1, p2))


def _with_rates(R, p, R_rates, p_rates):
    """Return R and p as Taylor numbers of time, with first and second derivatives."""
    (R1, R2), (p1, p2), n = R_rates, p_rates, range(3)
    turned = Matrix([Taylor(R[i, j], R1[i, j], R2[i, j], TIME) for j in n] for i in n)
    return turned, Vector(Taylor(p[k], p1[k], p2[k], TIME) for k in n)


def _coupling_rows(model, loop, parts):
    """Return the LoopRows of a coupling of joints of one coordinate, one by value.

    parts: positions, velocities and accelerations, each a list by body.
    """
    bodies = [model.body_of_joint(name) for name in loop.joints]
    moving = [Taylor(*(part[i][0] for part in parts), TIME) for i in bodies]
    slopes = []
    for k in range(len(bodies)):
        varied = variables([x.x for x in moving], k)
        slopes.append([derivatives(y, COORDINATE)[1] for y in loop.function(*varied)])
    rows = []
    for k, y in enumerate(loop.function(*moving)):
        pulls = [(i, slope[k]) for i, slope in zip(bodies, slopes, strict=True)]
        name = f"loop {loop.name}, row {k}"
        rows.append(LoopRow(name, [], pulls, derivatives(y, TIME)))
    return rows


def jacobian_of(model, q, rows):
    """Return A, m x nv, from the forces of LoopRows or Pushes; 0 x 0 for no rows.

    Source: KIM-3.0.
    """
    parts = split_q(model, q)
    lines = []
    for row in rows:
        pulls = [Vector.zeros(joint.nv) for joint in model.joint]
        forces = [Force.zero()] * (model.nb + 1)
        for i, f in row.body_forces:
            forces[i] = forces[i] + f
        for i, y in row.joint_forces:
            pulls[i] = pulls[i] + Vector((y,))
        for i in reversed(model.bodies):
            joint, p = model.joint[i], model.parent[i]
            pulls[i] = pulls[i] + joint.S(parts[i]).T @ forces[i]
            forces[p] = forces[p] + (joint.X(parts[i]) @ model.Xtree[i]).T @ forces[i]
        lines.append(join_force(model, pulls))
    return Matrix(lines)
