"""Derivatives of the rows of loops by a robot's state, q and qd.

Not a solver: the derivatives of constrained dynamics share it. A loop depends on the
pose of B in A alone, so its kinematics starts at the last common ancestor of both ends.
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
    join_columns,
    join_force,
    join_slopes,
    skew,
    slope_of,
    split_q,
    split_v,
    variables,
    with_slopes,
)
from dyn_plugins.derivatives.first_derivatives import subspace_rates
from dyn_plugins.loops._loop_rows import rows_in_time, slopes_by_pose

_UNITS = [Motion.of(float(i == j) for j in range(6)) for i in range(6)]


class RowSlopes(NamedTuple):
    """One row of a loop in a motion, and its derivatives; lists have nv entries.

    Attributes:
        f, rate, acceleration: Residual, and its derivatives by time.
        gradient: Row of A: derivative of f by a displacement of q, of the rate by qd,
            and of the acceleration by qdd.
        rate_by_q, acceleration_by_q: By a displacement of q, at constant qd and qdd.
        full_squares: For each coordinate, the square that its gradient would have if
            the joint moved B in the direction of the row's slope.
    """

    f: Any
    rate: Any
    acceleration: Any
    gradient: list[Any]
    rate_by_q: list[Any]
    acceleration_by_q: list[Any]
    acceleration_by_qd: list[Any]
    full_squares: list[Any]


class _End(NamedTuple):
    """Motion of a loop's end relative to the common ancestor, A's coordinates.

    v, a: velocity and acceleration. J: nv Motions, velocity per qd of each coordinate.
    P, Q, R: derivatives, likewise, seen from the end itself: dv = P, da = Q - v x P by
    q; dv = J, da = R - v x J by qd.
    """

    v: Motion
    a: Motion
    J: list
    P: list
    Q: list
    R: list


def slopes_of_loops(model, q, qd, qdd):
    """Return the LoopSlopes or CouplingSlopes of model.loops in a motion, a list."""
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    return [
        (CouplingSlopes if hasattr(loop, "joints") else LoopSlopes)(model, loop, parts)
        for loop in model.loops
    ]


class LoopSlopes:
    """Derivatives of the rows of a loop between links, and stiffness of its forces.

        dh = J_B - J_A,   drel = P_B - P_A + dh x v_B
        dacc = (a_B)' - (a_A)' - P_A x rel - v_A x drel + dh x a_B

    with rel and acc the velocity and acceleration of B against A, in A's coordinates,
    and (a)' = Q - v x P of each end (J, P, Q: see _End).

    Args:
        model: Robot.
        loop: Loop.
        parts: The motion: joint positions, velocities and accelerations, each a list of
            Vectors by body (split_q, split_v, split_v).

    Attributes:
        rows: List of RowSlopes.
        R, p: Pose of B in A: rotation from B to A, and origin.
        rel, acc: As above, Motions.
        moved: Indices of the coordinates that move B against A, ascending.
        h, drel, dacc, dacc_qd: Lists of nv Motions: by displacements of q, the
            displacement of B against A and the changes of rel and acc; by qd, the
            change of acc.
        reach: B's velocity relative to the base per qd of each coordinate, nv Motions.
        forces, changes: See _rows.

    Source: KIM-3.0 (54), (55), differentiated; kinematics as in S. Singh, R. Russell
    and P. Wensing, 2022.
    """

    def __init__(self, model, loop, parts):
        self.loop, self.nv = loop, model.nv
        (i, X_A), (j, X_B) = (
            _local(model, *end) for end in ((loop.a, loop.A), (loop.b, loop.B))
        )
        up_i, up_j = _ancestors(model, i), _ancestors(model, j)
        common = [k for k in up_i if k in up_j]
        way_A, way_B = up_i[len(common) :], up_j[len(common) :]
        A, B = (_outward(model, way, parts) for way in (way_A, way_B))
        to_A = X_A @ A.X
        pose = X_B @ B.X @ to_A.inverse
        self.R, self.p = pose.E.T, pose.r
        ends = [_end(model, way, to_A) for way in (A, B)]
        self.reach = _reach(model, common, parts, to_A, ends[1].J)
        self.moved = sorted({*_coordinates(model, way_A), *_coordinates(model, way_B)})
        self._differ(*ends)
        self.rows = self._rows()

    def _differ(self, A, B):
        """Set rel, acc, and their derivatives h, drel, dacc, dacc_qd by coordinate."""
        self.rel = B.v - A.v
        self.acc = B.a - A.a - cross(A.v, self.rel)
        still = [Motion.zero()] * self.nv
        self.h, self.drel, self.dacc, self.dacc_qd = (list(still) for _ in range(4))
        for k in self.moved:
            h = B.J[k] - A.J[k]
            drel = B.P[k] - A.P[k] + cross(h, B.v)
            by_q = B.Q[k] - cross(B.v, B.P[k]) + cross(h, B.a)
            by_q = by_q - (A.Q[k] - cross(A.v, A.P[k])) - cross(A.P[k], self.rel)
            by_qd = B.R[k] - cross(B.v, B.J[k]) - (A.R[k] - cross(A.v, A.J[k]))
            self.h[k], self.drel[k] = h, drel
            self.dacc[k] = by_q - cross(A.v, drel)
            self.dacc_qd[k] = by_qd - cross(A.J[k], self.rel) - cross(A.v, h)

    def _rows(self):
        """Return a list of RowSlopes; set self.forces and self.changes.

        forces: Force on B per multiplier, for each row. changes: For each of six unit
        displacements of B, the derivatives of these forces. Both in A's coordinates.
        """
        R, p, rel = self.R, self.p, self.rel
        rows = rows_in_time(self.loop, R, p, rel, self.acc)
        self.forces, lengths = self._forces(R, p)
        places = [_displaced(R, p, e) for e in _UNITS]
        changes = [self._forces(*place)[0] for place in places]
        self.changes = [[slope_of(f) for f in forces] for forces in changes]
        moved = [rows_in_time(self.loop, *place, rel, self.acc) for place in places]
        by_pose = [[derivatives(derivatives(x, TIME)[2])[1] for x in y] for y in moved]
        return [
            self._row(
                derivatives(x, TIME),
                self.forces[k],
                [change[k] for change in self.changes],
                Force.of(y[k] for y in by_pose),
                lengths[k],
            )
            for k, x in enumerate(rows)
        ]

    def _row(self, residuals, force, changes, by_pose, lengths):
        """Return the RowSlopes of a row from its derivatives by the pose of B in A.

        residuals: f, rate and acceleration; force: on B per multiplier, A's
        coordinates; changes: its derivatives by six unit displacements of B; by_pose:
        that of the acceleration; lengths: squared norms of slopes by rotations, by
        translations.
        """
        rate_by_pose = Force.of(change @ self.rel for change in changes)
        by_rel = _weighted(changes, self.rel) + rate_by_pose
        lines = [[0.0] * self.nv for _ in range(5)]
        for k in self.moved:
            h, drel = self.h[k], self.drel[k]
            shift = h.lin + cross3(h.ang, self.p)
            entries = (
                force @ h,
                rate_by_pose @ h + force @ drel,
                by_pose @ h + by_rel @ drel + force @ self.dacc[k],
                by_rel @ h + force @ self.dacc_qd[k],
                lengths[0] * (h.ang @ h.ang) + lengths[1] * (shift @ shift),
            )
            for line, x in zip(lines, entries, strict=True):
                line[k] = x
        return RowSlopes(*residuals, *lines)

    def _forces(self, R, p):
        """Return, by row, the force on B per multiplier, A's coordinates, and lengths.

        Lengths are pairs of squared norms of the row's slopes: by rotations, by
        translations.
        """
        slopes = slopes_by_pose(self.loop, R, p)
        forces, lengths = [], []
        for k in range(self.loop.rows):
            along = [slope[k] for slope in slopes]
            turn, shift = Vector(along[:3]), Vector(along[3:])
            forces.append(Force(turn + cross3(p, shift), shift))
            lengths.append((turn @ turn, shift @ shift))
        return forces, lengths

    def stiffness(self, model, multipliers):
        """Return the stiffness: one part of the derivative of A.T lambda by q.

            J.T (dF/dh) J - J_B.T (J x* F)

        lambda is constant. The other part is not included: the derivative of the same
        forces if they were fixed to their bodies.

        Args:
            model: Robot.
            multipliers: Multipliers of this loop's rows.

        Returns:
            Matrix, nv x nv; row: joint force, column: displacement of q.
        """
        force = _weighted(self.forces, multipliers)
        changes = [_weighted(change, multipliers) for change in self.changes]
        columns = []
        for k in range(self.nv):
            if k not in self.moved:
                columns.append([0.0] * self.nv)
                continue
            push = _weighted(changes, self.h[k])
            turned = cross(self.h[k], force)
            pairs = zip(self.h, self.reach, strict=True)
            columns.append([push @ h - turned @ J for h, J in pairs])
        return Matrix(zip(*columns, strict=True))


class CouplingSlopes:
    """RowSlopes of a coupling of joints; `parts` are q, qd and qdd, each by body."""

    def __init__(self, model, loop, parts):
        self.loop = loop
        self.bodies = [model.body_of_joint(name) for name in loop.joints]
        self.x, xd, xdd = ([part[i][0] for i in self.bodies] for part in parts)
        n, rows = range(len(self.bodies)), range(loop.rows)

        def result(x, xd):
            triples = zip(x, xd, xdd, strict=True)
            return loop.function(*(Taylor(*triple, TIME) for triple in triples))

        by_x = [result(_varied(self.x, k), xd) for k in n]
        by_xd = [result(self.x, _varied(xd, k)) for k in n]
        values = [derivatives(y, TIME) for y in result(self.x, xd)]

        def joined(results, row, order):
            slopes = [derivatives(derivatives(y[row], TIME)[order])[1] for y in results]
            return list(_joined(model, self.bodies, slopes))

        self.rows = [
            RowSlopes(
                *values[k],
                joined(by_x, k, 0),
                joined(by_x, k, 1),
                joined(by_x, k, 2),
                joined(by_xd, k, 2),
                [x * x for x in joined(by_x, k, 0)],
            )
            for k in rows
        ]

    def stiffness(self, model, multipliers):
        """Return the whole derivative of A.T lambda by q at constant lambda."""
        blocks = {}
        for column, j in enumerate(self.bodies):
            moved = _varied(self.x, column)
            for row, i in enumerate(self.bodies):
                results = self.loop.function(*variables(moved, row))
                pull = 0.0
                for y, x in zip(results, multipliers, strict=True):
                    pull = pull + derivatives(derivatives(y, COORDINATE)[1])[1] * x
                blocks[i, j] = blocks.get((i, j), Matrix.zeros(1, 1)) + Matrix([[pull]])
        return join_slopes(model, blocks)


class _Way(NamedTuple):
    """Motion along a chain of bodies, relative to a root at rest.

    X leads from the root to the last body; v, a are the latter's, in its coordinates.
    columns: by body, the transform from the root, and S with its three rates.
    """

    X: Transform
    v: Motion
    a: Motion
    columns: dict


def _outward(model, way, parts):
    """Return the _Way of `way`: bodies outward from a root at rest, without it."""
    q, qd, qdd = parts
    X, v, a, columns = Transform.identity(), Motion.zero(), Motion.zero(), {}
    for i in way:
        joint = model.joint[i]
        S, vJ, cJ = joint.S(q[i]), joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        up = joint.X(q[i]) @ model.Xtree[i]
        X, v_p, a_p = up @ X, up @ v, up @ a
        v, a = v_p + vJ, a_p + S @ qdd[i] + cJ + cross(v_p, vJ)
        dS = joint.S_slopes(q[i]) if joint.series is None else ()
        rates = subspace_rates(joint, S, dS, v_p, a_p, (q[i], qd[i], qdd[i]))
        columns[i] = X, (S, *rates)
    return _Way(X, v, a, columns)


def _end(model, way, to_A):
    """Return the _End of a _Way; to_A leads from its root to A's coordinates."""
    by_kind = [{}, {}, {}, {}]
    for i, (X, subspaces) in way.columns.items():
        to_i = to_A @ X.inverse
        for parts, subspace in zip(by_kind, subspaces, strict=True):
            parts[i] = to_i @ subspace
    to_end = to_A @ way.X.inverse
    columns = (_columns(model, parts) for parts in by_kind)
    return _End(to_end @ way.v, to_end @ way.a, *columns)


def _reach(model, common, parts, to_A, J_B):
    """Return B's velocity per qd of each coordinate, nv Motions, with common ancestors.

    It is relative to the base, J_B to the last of `common`, from which to_A leads; all
    in A's coordinates, zero for coordinates that do not move B. Without common
    ancestors it is J_B itself.
    """
    X, below = to_A, {}
    for i in reversed(common):
        joint = model.joint[i]
        below[i] = X @ joint.S(parts[0][i])
        X = X @ (joint.X(parts[0][i]) @ model.Xtree[i])
    pairs = zip(_columns(model, below), J_B, strict=True)
    return [a + b for a, b in pairs] if common else J_B


def _columns(model, parts):
    """Return a list of nv Motions, one for each coordinate; zero where no body moves.

    parts: Dict from a body to the MotionSubspace of its joint.
    """
    rows = join_columns(model, parts).rows
    return [Motion.of(column) for column in zip(*rows, strict=True)]


def _local(model, link, place):
    """Return the body of a loop's end, and the transform from it to the loop's frame.

    place: Transform from the link (None: the base, body 0) to the loop's frame.
    """
    if link is None:
        return 0, place
    frame = model.frame(link)
    return frame.body, place @ frame.X


def _ancestors(model, i):
    """Return body i and its ancestors, a list from the base, without it, to i."""
    bodies = []
    while i:
        bodies.insert(0, i)
        i = model.parent[i]
    return bodies


def _coordinates(model, bodies):
    """Yield the indices in qd of the joints of `bodies`, a leader's for a follower."""
    for i in bodies:
        yield from range(*model.v_slices[i].indices(model.nv))


def _displaced(R, p, h):
    """Return rotation and origin of a pose R, p with its derivative by a displacement.

    h: Displacement, a Motion in the coordinates of A, about A's origin.
    """
    W = skew(h.ang)
    pairs = zip(R.rows, (W @ R).rows, strict=True)
    return Matrix(with_slopes(*pair) for pair in pairs), with_slopes(p, W @ p + h.lin)


def _weighted(forces, weights):
    """Return the sum of `forces`, each times its number in `weights`, as a Force."""
    result = Force.zero()
    for f, x in zip(forces, weights, strict=True):
        result = result + f * x
    return result


def _varied(values, k):
    """Return AD numbers of the values, in which the k-th has slope 1, others 0."""
    return list(with_slopes(values, [float(j == k) for j in range(len(values))]))


def _joined(model, bodies, slopes):
    """Return the joint forces, nv, of a force along each joint of `bodies`, summed."""
    pulls = [Vector.zeros(joint.nv) for joint in model.joint]
    for i, x in zip(bodies, slopes, strict=True):
        pulls[i] = pulls[i] + Vector((x,))
    return join_force(model, pulls)
