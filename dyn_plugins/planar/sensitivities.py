"""How planar chains answer forces and torques, and torques for wanted accelerations."""

import numpy as np

from dyn_core import solver
from dyn_core.authoring import Matrix, NumpySolver, TracedSolver, Vector, hookimpl
from dyn_core.planar.problems import (
    CHAIN_FORCE_JACOBIAN,
    CHAIN_TORQUE_RESPONSE,
    CHAIN_TORQUES,
)
from dyn_plugins._options import NUMBERED, WINDOW
from dyn_plugins.planar._passes import (
    ZERO,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)


def _answers(model, x, kind, s, active):
    """Return a function from forces on the joints to accelerations that they add."""
    r, L, _ = links(model, rows_of(x))
    modes = modes_of(model, kind, s, None, active, None)
    none = [ZERO] * model.n
    modes = modes._replace(a_w=none, alpha_w=[0.0] * model.n)
    joints = pass_back(model, r, L, modes)
    e = [0.0] * (model.n - 1)

    def answer(F):
        return pass_forward(model, r, L, modes, joints, F, e)

    return answer, L


def chain_force_jacobian(model, x, kind, s, active, joint):
    """Return how each joint's acceleration answers a force on each joint.

        J_ij = d a_i / d F_j,   J_ji = J_ij.T

    One pass back, then two passes forward for each joint with a unit force: O(n) for
    one joint, O(n²) for all pairs.

    Inputs and outputs: those of CHAIN_FORCE_JACOBIAN. The option joint is the number of
    the joint that is pushed, None for each; other blocks are 0.

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
    """Return how joint accelerations answer torques at the joints.

        S_ij = d alpha_i / d tau_j,   S = S.T

    Inputs and outputs: those of CHAIN_TORQUE_RESPONSE; row and column of the last joint
    are zero.

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
    """Return the torques for prescribed accelerations of active joints, in one pass.

        alpha_i(F with torques tau) = alpha_w,i of active joints,  tau = 0 elsewhere

    Inputs and outputs: those of CHAIN_TORQUES. Errors of the link lengths decay in the
    time window [s], or stay without one.

    Source: WAW-8.3, WAW-9.2.
    """
    x, v = rows_of(x), rows_of(v)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, x, v, r, size, window)
    return Vector(pass_forward(model, r, L, modes, joints, rows_of(F), e)[2])


class ChainTorquesDense(NumpySolver):
    """Torques for wanted accelerations from the matrix of torque responses.

    S tau = alpha_w - alpha,   S = d alpha / d tau
    """

    name = "chain_torques_dense"
    signature = CHAIN_TORQUES
    source = "WAW-8.3"
    options = {"window": None}
    valid = WINDOW

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w, window):
        """Solve one state; where S is singular, by least squares of least norm.

        Inputs and outputs: those of CHAIN_TORQUES.
        """
        constraints, n = model.constraints, model.n
        on = np.array(constraints.active if active is None else active, bool)
        wanted = np.array(constraints.alpha_w if alpha_w is None else alpha_w, float)
        state = {"kind": kind, "s": s, "a_w": a_w, "active": np.zeros(n)}
        inputs = {key: value for key, value in state.items() if value is not None}
        free = solver("chain_recursion").build(
            model, inputs=tuple(inputs), engine="plain", window=window
        )
        alpha = free(x, v, F, **inputs).alpha
        inputs.pop("a_w", None)
        S = solver("chain_torque_response").build(
            model, inputs=tuple(inputs), engine="plain"
        )(x, **inputs)
        tau = np.zeros(n)
        block = S[np.ix_(on, on)]
        tau[on] = np.linalg.lstsq(block, (wanted - alpha)[on], rcond=1e-10)[0]
        return tau


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            "chain_force_jacobian",
            CHAIN_FORCE_JACOBIAN,
            chain_force_jacobian,
            options={"joint": None},
            valid={"joint": NUMBERED},
            by_joint=False,
        ),
        TracedSolver(
            "chain_torque_response",
            CHAIN_TORQUE_RESPONSE,
            chain_torque_response,
            by_joint=False,
        ),
        TracedSolver(
            "chain_torques",
            CHAIN_TORQUES,
            chain_torques,
            options={"window": None},
            valid=WINDOW,
            by_joint=False,
        ),
        ChainTorquesDense(),
    ]
