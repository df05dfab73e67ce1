"""How planar chains answer forces and torques, and torques for wanted accelerations."""

import numpy as np

from dyn_core import (
    CHAIN_FORCE_JACOBIAN,
    CHAIN_TORQUE_RESPONSE,
    CHAIN_TORQUES,
    ArraySolver,
    Matrix,
    TextSolver,
    Vector,
    hookimpl,
    solver,
)
from dyn_plugins.planar._passes import (
    ZERO,
    Modes,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)


def _answers(model, x, kind, s, active):
    """Give a function from forces on the joints to accelerations that they add."""
    r, L, _ = links(model, rows_of(x))
    modes = modes_of(model, kind, s, None, active, None)
    none = [ZERO] * model.n
    modes = Modes(modes.kind, modes.s, none, modes.active, [0.0] * model.n)
    joints = pass_back(model, r, L, modes)
    e = [0.0] * (model.n - 1)

    def answer(F):
        return pass_forward(model, r, L, modes, joints, F, e)

    return answer, L


def chain_force_jacobian(model, x, kind, s, active, joint):
    """Give how each joint's acceleration answers a force on each joint.

        J_ij = d a_i / d F_j,   J_ji = J_ij.T

    One pass back, then two passes forward for each joint with a unit force: O(n) for
    one joint, O(n²) for all pairs.

    Args:
        model: Planar chain.
        x: Places of the joints, (n, 2) [m].
        kind: 0 free, 1 line, 2 guided, n.
        s: Unit normals of the lines, (n, 2).
        active: Whether the angle's acceleration is given, n.
        joint: Number of the joint that is pushed, None for each; other blocks are 0.

    Returns:
        J, (n, n, 2, 2) [1/kg].

    Source: WAW-8.1; reciprocity stands for the source's propagation of d and b.
    """
    answer, _ = _answers(model, x, kind, s, active)
    n = model.n
    blocks = [[[[0.0, 0.0], [0.0, 0.0]] for _ in range(n)] for _ in range(n)]
    for j in range(n) if joint is None else [joint]:
        for axis in (0, 1):
            F = [ZERO] * n
            F[j] = Vector((1.0 - axis, float(axis)))
            for i, a in enumerate(answer(F)[0]):
                for k in (0, 1):
                    blocks[i][j][k][axis] = a[k]
    return blocks


def chain_torque_response(model, x, kind, s, active):
    """Give how joint accelerations answer torques at the joints.

        S_ij = d alpha_i / d tau_j,   S = S.T

    Args:
        model: Planar chain.
        x: Places of the joints, (n, 2) [m].
        kind: 0 free, 1 line, 2 guided, n.
        s: Unit normals of the lines, (n, 2).
        active: Whether the angle's acceleration is given, n.

    Returns:
        S, (n, n) [1/(kg·m²)]; row and column of the last joint are zero.

    Source: WAW-8.2.
    """
    answer, L = _answers(model, x, kind, s, active)
    columns = []
    for j in range(model.n - 1):
        F = [ZERO] * model.n
        F[j], F[j + 1] = F[j] - L[j], F[j + 1] + L[j]
        if j:
            F[j - 1], F[j] = F[j - 1] + L[j - 1], F[j] - L[j - 1]
        turns = answer(F)[3]
        before = [0.0, *turns[:-1]]
        columns.append([*(b - a for a, b in zip(before, turns, strict=True)), 0.0])
    return Matrix([*columns, [0.0] * model.n]).T


def chain_torques(model, x, v, F, kind, s, a_w, active, alpha_w, window):
    """Give the torques that make active joints accelerate as given, in one pass.

        alpha_i(F with torques tau) = alpha_w,i of active joints,  tau = 0 elsewhere

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        F: Forces on the joints from outside, (n, 2) [N].
        kind: 0 free, 1 line, 2 guided, n.
        s: Unit normals of the lines, (n, 2).
        a_w: Acceleration of guided joints; along s of those on a line, (n, 2) [m/s²].
        active: Whether the angle's acceleration is given, n.
        alpha_w: These accelerations, n [rad/s²].
        window: Time in which errors of the link lengths decay [s], or None.

    Returns:
        tau, n [N·m].

    Source: WAW-8.3, WAW-9.2.
    """
    x, v = rows_of(x), rows_of(v)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, x, v, r, size, window)
    return Vector(pass_forward(model, r, L, modes, joints, rows_of(F), e)[2])


class ChainTorquesDense(ArraySolver):
    """Torques for wanted accelerations from the matrix of torque responses.

    S tau = alpha_w - alpha,   S = d alpha / d tau
    """

    name = "chain_torques_dense"
    signature = CHAIN_TORQUES
    source = "WAW-8.3"
    options = {"window": None}

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w, window):
        """Solve one state; where S is singular, by least squares of least norm.

        Args:
            model: Planar chain.
            x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
            F: Forces on the joints from outside, (n, 2) [N].
            kind: 0 free, 1 line, 2 guided, n.
            s: Unit normals of the lines, (n, 2).
            a_w: Acceleration of guided joints, (n, 2) [m/s²].
            active: Which angles have given accelerations, n.
            alpha_w: These accelerations, n [rad/s²].
            window: Time in which errors of the link lengths decay [s], or None.

        Returns:
            tau, n [N·m].
        """
        own, n = model.constraints, model.n
        on = np.array(own.active if active is None else active, bool)
        wanted = np.array(own.alpha_w if alpha_w is None else alpha_w, float)
        state = {"kind": kind, "s": s, "a_w": a_w, "active": np.zeros(n)}
        given = {key: value for key, value in state.items() if value is not None}
        free = solver("chain_recursion").build(
            model, inputs=tuple(given), engine="plain", window=window
        )
        alpha = free(x, v, F, **given).alpha
        given.pop("a_w", None)
        S = solver("chain_torque_response").build(
            model, inputs=tuple(given), engine="plain"
        )(x, **given)
        tau = np.zeros(n)
        block = S[np.ix_(on, on)]
        tau[on] = np.linalg.lstsq(block, (wanted - alpha)[on], rcond=1e-10)[0]
        return tau


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "chain_force_jacobian",
            CHAIN_FORCE_JACOBIAN,
            chain_force_jacobian,
            options={"joint": None},
            by_joint=False,
        ),
        TextSolver(
            "chain_torque_response",
            CHAIN_TORQUE_RESPONSE,
            chain_torque_response,
            by_joint=False,
        ),
        TextSolver(
            "chain_torques",
            CHAIN_TORQUES,
            chain_torques,
            options={"window": None},
            by_joint=False,
        ),
        ChainTorquesDense(),
    ]
