"""Responses of planar chains to forces and torques, and torques for given motion.

A chain has n joints and n-1 links. Angle i is that of link i from link i-1, angle 0
that of link 0. If neighbouring joints are at one place, results are not finite; with
Python floats this is a ZeroDivisionError.
"""

import numpy as np

from dyn_core import solver
from dyn_core.authoring import Matrix, NumpySolver, TracedSolver, Vector, hookimpl
from dyn_core.errors import UnsupportedError
from dyn_core.planar import GUIDED, LINE
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

RANK = 1e-9  # minimum singular value of equations of length one


def _answers(model, x, kind, s, active):
    """Return a function of forces on the joints, and the links' normals over lengths.

    The function takes n Vectors [N] and returns the lists of pass_forward. A force of
    zero gives no acceleration: supports and active angles are at rest. Constraints of
    None are the chain's own.
    """
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
    """Return the acceleration of each joint by a force on each joint.

        J_ij = d a_i / d F_j,   J_ji = J_ij.T

    One backward pass, then two forward passes for each joint with a unit force: O(n)
    for one joint, O(n²) for all pairs.

    Inputs and outputs: those of CHAIN_FORCE_JACOBIAN; J is n x n x 2 x 2, by i, j, axis
    of a_i, axis of F_j; constraints of None are the chain's own.

    Args:
        joint: Index of the joint the force acts on, 0 to n-1; other blocks are 0. None:
            all. A larger index is an UnsupportedError, by the engine native when the
            Program is built, by plain and graph when it is called.

    Source: WAW-8.1; reciprocity replaces the source's propagation of d and b.
    """
    answer, _ = _answers(model, x, kind, s, active)
    n = model.n
    if joint is not None and joint >= n:
        raise UnsupportedError(f"joint is {joint}; valid: 0 to {n - 1}, or None")
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
    """Return the accelerations of joint angles by torques at the joints.

        S_ij = d alpha_i / d tau_j,   S = S.T

    Inputs and outputs: those of CHAIN_TORQUE_RESPONSE; row and column of the last joint
    are zero, and constraints of None are the chain's own.

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

    tau is 0, too, where chain_recursion drops the equation of the angle.

    Inputs and outputs: those of CHAIN_TORQUES; constraints of None are the chain's own.

    Args:
        window: Time constant with which errors of the link lengths decay [s], above 0
            (else UnsupportedError); None: they are not corrected.

    Source: WAW-8.3, WAW-9.2.
    """
    x, v = rows_of(x), rows_of(v)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, v, r, size, window)
    return Vector(pass_forward(model, r, L, modes, joints, rows_of(F), e)[2])


class ChainTorquesDense(NumpySolver):
    """Torques for prescribed accelerations from all equations of a chain at once.

        M a = F + C.T lambda,  C a = c:   links, supports, angles; tau: lambda of the
        angles

    Equations that chain_recursion drops are left out. If rows are linearly dependent,
    their forces are the ones with the least sum of squares.
    """

    name = "chain_torques_dense"
    signature = CHAIN_TORQUES
    source = "WAW-8.3, with multipliers in place of the matrix of torque responses"
    options = {"window": None}
    valid = WINDOW

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w, window):
        """Return the torques of one state, (n,), by a singular value decomposition.

        The rank is computed for C with rows of length one. A matrix of torque responses
        has no scale of its own: for a rigid substructure it is round-off alone. A
        constraint argument that is None has the values of the chain. The torque is 0 at
        joints that are not active, or whose equation chain_recursion drops. Where an
        input is not finite, or neighbouring joints are at one place, it is NaN at all
        active joints.

        Inputs and outputs: those of CHAIN_TORQUES.

        Args:
            window: Time constant with which errors of the link lengths decay [s], above
                0 (else UnsupportedError); None: they are not corrected.
        """
        inputs = {
            "kind": kind,
            "s": s,
            "a_w": a_w,
            "active": active,
            "alpha_w": alpha_w,
        }
        inputs = {key: np.array(y, float) for key, y in inputs.items() if y is not None}
        modes = {**vars(model.constraints), **inputs}
        x, v, n = np.array(x, float), np.array(v, float), model.n
        finite = all(np.isfinite(y).all() for y in (x, v, F, *inputs.values()))
        if not finite or not np.diff(x, axis=0).any(axis=1).all():
            return np.where(np.array(modes["active"], float), np.nan, 0.0)
        recursion = solver("chain_recursion").build(
            model, inputs=tuple(inputs), engine="plain", window=window
        )
        kept = 1.0 - np.array(recursion(x, v, F, **inputs).dropped)
        C, c, turned = _equations(model, x, v, modes, kept, window)
        U, sizes, Vt = np.linalg.svd(C)
        rank = int((sizes > RANK).sum())
        fixed, free, U = Vt[:rank], Vt[rank:], U[:, :rank] / sizes[:rank]
        M = np.kron(_masses(model), np.eye(2))
        a = fixed.T @ (U.T @ c)
        load = np.ravel(F)
        a = a + free.T @ np.linalg.solve(free @ M @ free.T, free @ (load - M @ a))
        pull, tau = U @ (fixed @ (M @ a - load)), np.zeros(n)
        for row, (i, size) in turned.items():
            tau[i] = pull[row] / size
        return tau


def _equations(model, x, v, modes, kept, window):
    """Return C, (m, 2 n), and c of C a = c, rows of length one, and the rows of angles.

    These are {row: (its joint, length of the row before scaling)}. Neighbouring joints
    must not be at one place. kept: 0 for dropped equations of links (column 0) and
    angles (column 1), else 1, (n, 2); window: time constant with which errors of the
    links decay [s]; None: they are not corrected.
    """
    n, rows, right, turned = model.n, [], [], {}
    ways = np.diff(x, axis=0)
    size = np.hypot(*ways.T)
    r = ways / size[:, None]
    L = np.column_stack([-r[:, 1], r[:, 0]]) / np.reshape(model.lengths, (-1, 1))
    speeds, directions = [Vector(row) for row in v], [Vector(row) for row in r]
    e = stretch(model, speeds, directions, size, window)

    def equation(parts, value):
        row = np.zeros((n, 2))
        for i, part in parts:
            row[i] += part
        length = np.linalg.norm(row)
        rows.append(np.ravel(row) / length)
        right.append(value / length)
        return length

    for i in np.flatnonzero(kept[:-1, 0]).tolist():
        equation([(i, r[i]), (i + 1, -r[i])], e[i])
    for i in range(n):
        s, a_w = np.array(modes["s"][i]), np.array(modes["a_w"][i])
        along = {LINE: [s], GUIDED: [*np.eye(2)]}.get(modes["kind"][i], [])
        for d in along:
            equation([(i, d)], d @ a_w)
    for i in np.flatnonzero(np.array(modes["active"], float) * kept[:, 1]).tolist():
        parts = [(i, -L[i]), (i + 1, L[i])]
        parts += [(i - 1, L[i - 1]), (i, -L[i - 1])] if i else []
        length = equation(parts, modes["alpha_w"][i])
        turned[len(rows) - 1] = i, length
    return np.reshape(rows, (-1, 2 * n)), np.array(right), turned


def _masses(model):
    """Return the mass matrix of joints and links, (n, n), the same along x and y [kg].

    Source: WAW-13.4.
    """
    M = np.diag(model.masses)
    for i, (start, end, between) in enumerate(model.shares):
        M[i : i + 2, i : i + 2] += [[start, between], [between, end]]
    return M


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
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
