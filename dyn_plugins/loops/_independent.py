"""Independent coordinates y of a robot with loops: qd = G yd, qdd = G ydd + g.

Not a solver: loop_independent.py and loop_control.py share it.
"""

from typing import Any, NamedTuple

from dyn_core.authoring import Factored, Matrix, Vector
from dyn_core.errors import UnsupportedError
from dyn_plugins.dynamics.hybrid import prescribed_coordinates
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of
from dyn_plugins.loops._rank import RANK, dependence_items, gradient_slopes

WAY_OUT = "other independent joints"


class IndependentMotion(NamedTuple):
    """Motion of a robot with loops as a function of its independent coordinates.

    Attributes:
        y: Indices of the independent coordinates among the nv coordinates, ascending.
        G: Matrix of qd = G yd, nv x ny.
        g: Vector of qdd = G ydd + g, nv.
    """

    y: list[Any]
    G: Matrix
    g: Vector

    def accelerations(self, ydd):
        """Return qdd = G ydd + g, nv, for accelerations ydd, ny."""
        return self.G @ ydd + self.g

    def along(self, tau):
        """Return the generalised forces along y, G.T tau, ny, of joint forces, nv."""
        return self.G.T @ tau


def independent_coordinates(model, independent):
    """Return the indices of the independent coordinates among the nv, ascending.

    Args:
        model: Robot.
        independent: Names of joints, or pairs (joint, index of its coordinate); None:
            the joints with motors and a floating base; without loops all joints.

    Raises:
        UnsupportedError: There are more or fewer of these coordinates than degrees of
            freedom (nv minus the rows of loops). Errors of prescribed_coordinates, as
            for an unknown joint, pass through.
    """
    freedoms = model.nv - sum(loop.rows for loop in model.loops)
    chosen = independent
    if chosen is None:
        free = [model.names[i] for i in model.independent if model.joint[i].unactuated]
        chosen = sorted({*model.active_joints, *free}, key=model.joint_names.index)
        chosen = chosen if model.loops else model.joint_names
    mask = prescribed_coordinates(model, chosen)
    if sum(mask) != freedoms:
        raise UnsupportedError(
            f"independent={list(chosen)}: {sum(mask)} coordinates for {freedoms}"
            f" freedoms (nv {model.nv}, {model.nv - freedoms} rows of loops); valid: as"
            f" many coordinates of {', '.join(model.joint_names)} as freedoms"
        )
    return [k for k, chosen in enumerate(mask) if chosen]


def independent_motion(model, q, qd, independent):
    """Return the IndependentMotion of a state.

        A qdd + bias = 0:  qdd_v = -A_v^-1 (A_y ydd + bias)

    If the other coordinates do not follow from y (A_v without full rank), the Program
    raises SingularError, which names the row.

    Args:
        model: Robot.
        q: Joint positions, nq.
        qd: Joint velocities, nv.
        independent: Names of joints or pairs (joint, index), or None; see
            independent_coordinates, whose UnsupportedError passes through.

    Source: KIM-3.3 (70)-(80), all of y prescribed.
    """
    y = independent_coordinates(model, independent)
    others = [k for k in range(model.nv) if k not in y]
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    G, g = [None] * model.nv, [0.0] * model.nv
    for j, k in enumerate(y):
        G[k] = [float(i == j) for i in range(len(y))]
    if rows:
        A = jacobian_of(model, q, rows)
        A_v = Matrix([row[k] for k in others] for row in A.rows)
        tolerances = [RANK * slope for slope in gradient_slopes(model, q, rows, A)]
        square = Factored(A_v @ A_v.T, tolerances, dependence_items(rows, WAY_OUT))
        columns = [A_v.T @ square.solve([-row[k] for row in A.rows]) for k in y]
        rest = A_v.T @ square.solve([-row.acceleration for row in rows])
        for j, k in enumerate(others):
            G[k], g[k] = [column[j] for column in columns], rest[j]
    return IndependentMotion(y, Matrix(G), Vector(g))
