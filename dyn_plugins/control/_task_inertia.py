"""Inertia of a tool, regular also at singular positions of the robot.

Not a solver: the laws of the tool share it.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Vector,
    eigen_symmetric,
    maximum,
    total,
)

AXES = range(6)


class TaskInertia:
    """Inertia of a frame, and the joint motions and forces that belong to its axes.

        Lambda = (J H^-1 J.T + S^-1 W S^-1)^-1,   S = diag(l, l, l, 1, 1, 1)
        W = b sum_i (s_0^2 - s_i^2)^2 / s_0^2 u_i u_i.T  over all s_i < s_0
        b = tr(S J H^-1 J.T S) / tr(S J J.T S)

    s_i and u_i are singular values and left singular vectors of S J. W is zero away
    from singular positions, and dampens only the directions in which the frame can
    hardly move; it and its first derivatives are continuous.

    Args:
        J: Jacobian of the frame, Matrix (6, nv).
        factors: Factors of the joint-space inertia H.
        threshold: s_0, of the singular values of S J [m | 1].
        length: l [m].
    """

    def __init__(self, J, factors, threshold, length):
        self.J, self._H = J, factors
        self._S = (length,) * 3 + (1.0,) * 3
        rows = [
            Vector(s * x for x in row) for s, row in zip(self._S, J.rows, strict=True)
        ]
        halves = [factors.halves(row) for row in rows]
        JJ = _symmetric(lambda i, j: rows[i] @ rows[j])
        mobility = _symmetric(lambda i, j: halves[i][0] @ halves[j][1])
        squares, U = eigen_symmetric(JJ)
        scale = total(mobility[i, i] for i in AXES) / total(JJ[i, i] for i in AXES)
        square = threshold * threshold
        weak = [maximum(square - x, 0.0) for x in squares]
        weights = [scale / square * x * x for x in weak]
        damped = _symmetric(
            lambda i, j: (
                mobility[i, j] + total(U[i, k] * weights[k] * U[j, k] for k in AXES)
            )
        )
        self._factors = Factored(damped, [0.0] * 6, ["frame"] * 6)

    def force(self, a):
        """Return Lambda a, the wrench (6,) that accelerates the frame by a, (6,)."""
        scaled = [s * x for s, x in zip(self._S, a, strict=True)]
        x = self._factors.solve(scaled)
        return Vector(s * y for s, y in zip(self._S, x, strict=True))

    def joint_force(self, a):
        """Return J.T Lambda a, (nv,)."""
        return self.J.T @ self.force(a)

    def joint_motion(self, a):
        """Return H^-1 J.T Lambda a, (nv,): the joint motion of least kinetic energy.

        Its motion of the frame is a, away from singular positions.
        """
        return self._H.solve(self.joint_force(a))

    def idle(self, tau):
        """Return (1 - J.T Lambda J H^-1) tau, (nv,), which does not move the frame."""
        return tau - self.joint_force(self.J @ self._H.solve(tau))


def _symmetric(entry):
    """Return the Matrix (6, 6) with the entries entry(i, j), i <= j, on both sides."""
    upper = {(i, j): entry(i, j) for i in AXES for j in AXES if i <= j}
    return Matrix([[upper[min(i, j), max(i, j)] for j in AXES] for i in AXES])
