"""External forces fixed to body, base or point, and the derivatives by their motion.

Not a solver: the options of every solver of derivatives with f_ext.
"""

from dataclasses import dataclass

from dyn_core.authoring import (
    Force,
    ForceSubspace,
    Matrix,
    Motion,
    MotionSubspace,
    TracedSolver,
    Transform,
    Vector,
    cross,
    input_names,
    join_slopes,
    split_q,
)
from dyn_core.errors import UnsupportedError
from dyn_core.validation import shown
from dyn_plugins._options import NAME, POINTS

FIXED = ("body", "base", "point")
OPTIONS = {"f_ext_fixed": None, "f_ext_points": None}
VALID = {"f_ext_fixed": NAME, "f_ext_points": POINTS}


def points_by_body(model, points):
    """Return by body the point of action of its force, body coordinates [m]; or zeros.

    points: {link: point in the link's frame [m]}, or None. A point that has not 3
    numbers, an unknown link, and a second point of one body are refused.
    """
    by_body = [Vector.zeros(3)] * (model.nb + 1)
    taken = set()
    for link, point in (points or {}).items():
        frame = model.frame(link)
        point = tuple(float(x) for x in point)
        if len(point) != 3:
            raise UnsupportedError(
                f"f_ext_points: '{link}' needs a point of 3 numbers, got {point}"
            )
        if frame.body in taken:
            raise UnsupportedError(
                f"f_ext_points: '{link}' is fixed to a link that has a point already;"
                " valid: one for each moving body"
            )
        taken.add(frame.body)
        by_body[frame.body] = frame.X.r + frame.X.E.T @ Vector(point)
    return by_body


@dataclass(frozen=True)
class _Load:
    """Sum f of forces on bodies, about the base's origin, and its change with a motion.

    B: Sum of p f.T - (p . f) 1 over points p of action, for forces constant in base
    axes at p; None for wrenches fixed to the base. Both in base coordinates.
    """

    f: Force
    B: Matrix | None

    def __add__(self, other):
        B = None if self.B is None or other.B is None else self.B + other.B
        return _Load(self.f + other.f, B)

    def seen_from(self, h):
        """Return minus the change of f as a Force, seen from bodies that move by h.

            base: h x* f;   point: h x* f - ((v + w x p) x f; 0) = (w x n - B w; w x f)

        h: Displacement of the bodies, a Motion (w; v) in base coordinates.
        """
        if self.B is None:
            return cross(h, self.f)
        turned = cross(Motion(h.ang, Vector.zeros(3)), self.f)
        return turned - Force(self.B @ h.ang, Vector.zeros(3))


def _load(X, f, fixed, point):
    """Return the _Load, base coordinates, of a force f on a body, in body coordinates.

    X leads from the base to the body. fixed: "base" (constant as a wrench about the
    base's origin) or "point" (constant in base axes at `point`, body coordinates).
    """
    f = X.T @ f
    if fixed == "base":
        return _Load(f, None)
    p, push = X.r + X.E.T @ point, f.lin
    dot = p @ push
    rows = [[p[i] * push[j] for j in range(3)] for i in range(3)]
    for i in range(3):
        rows[i][i] = rows[i][i] - dot
    return _Load(f, Matrix(rows))


def fixed_force_slopes(model, q, f_ext, fixed, points):
    """Return the addition to dtau_dq for forces not fixed to their bodies, by blocks.

        sum_i J_i.T D_i J_i,   D_i h = -df_i for a body that moves by h

    Base coordinates throughout, so that the load of a subtree is a sum. f_ext is by
    body, body coordinates [N·m; N]. The result has blocks (i, j) of joint forces of i
    by displacements of j, for i = j and bodies of which one is an ancestor of the
    other.

    Source: KIM-4.5 (external forces fixed to the base or in direction), assembled.
    """
    if fixed == "body":
        return {}
    X, S, places = [Transform.identity()], [None], points_by_body(model, points)
    loads = [_load(X[0], Force.zero(), fixed, places[0])]
    for i in model.bodies:
        joint = model.joint[i]
        X.append(joint.X(q[i]) @ model.Xtree[i] @ X[model.parent[i]])
        S.append(MotionSubspace(X[i].inverse @ s for s in joint.S(q[i])))
        loads.append(_load(X[i], f_ext[i], fixed, places[i]))
    blocks = {}
    for i in reversed(model.bodies):
        load, j = loads[i], i
        here = ForceSubspace(load.seen_from(s) for s in S[i])
        while j:
            blocks[j, i] = S[j].T @ here
            blocks[i, j] = S[i].T @ ForceSubspace(load.seen_from(s) for s in S[j])
            j = model.parent[j]
        loads[model.parent[i]] = loads[model.parent[i]] + load
    return blocks


def with_fixed_forces(model, dtau_dq, q, f_ext, f_ext_fixed, f_ext_points):
    """Return dtau_dq with the terms of forces that are not fixed to their bodies.

    f_ext_fixed is not None; for "body", `dtau_dq` itself is returned.
    """
    blocks = fixed_force_slopes(
        model, split_q(model, q), f_ext, f_ext_fixed, f_ext_points
    )
    return dtau_dq + join_slopes(model, blocks) if blocks else dtau_dq


class FixedForces(TracedSolver):
    """Solver of derivatives with a choice of where external forces stay fixed.

    The option f_ext_fixed is body, base (as a wrench about the base's origin) or point
    (in the base's axes, at a point of the body: its origin, or a point of the option
    f_ext_points). None takes the value of f_ext_frame, so that derivatives belong to
    the function with the same options.
    """

    def build(self, model, **choices):
        """Return a Program.

        choices: Options of TracedSolver.build, f_ext_fixed and f_ext_points.
        Raises UnsupportedError for f_ext_fixed "base" or "point" without the input
        f_ext, for another f_ext_fixed, for f_ext_points without f_ext_fixed "point" and
        for a point that is invalid for points_by_body, ModelError for f_ext_points of
        another form or an unknown link, and the errors of TracedSolver.build.
        """
        inputs = input_names(self.name, choices.get("inputs", ()))
        if choices.get("f_ext_fixed") in FIXED[1:] and "f_ext" not in inputs:
            raise UnsupportedError(
                f"{self.name}: f_ext_fixed changes nothing without external forces;"
                " valid: inputs=['f_ext'] with it"
            )
        return super().build(model, **choices)

    def _adapter(self, model, common, chosen):
        """Return the adapter; None as f_ext_fixed becomes common.f_ext_frame.

        Invalid values of f_ext_fixed and f_ext_points are refused.
        """
        fixed = chosen.get("f_ext_fixed")
        fixed = common.f_ext_frame if fixed is None else fixed
        if fixed not in FIXED:
            valid = ", ".join(FIXED)
            raise UnsupportedError(
                f"{self.name}: f_ext_fixed {shown(fixed)}; valid: {valid}"
            )
        points = chosen.get("f_ext_points")
        read_points = VALID["f_ext_points"].read
        points_by_body(model, read_points(f"{self.name}: f_ext_points", points))
        if points and fixed != "point":
            raise UnsupportedError(
                f"{self.name}: f_ext_points changes nothing with f_ext_fixed"
                f" {shown(fixed)}; valid: f_ext_fixed='point' with it"
            )
        return super()._adapter(model, common, {**chosen, "f_ext_fixed": fixed})
