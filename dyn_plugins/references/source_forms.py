"""Planar chains by the source's own formulas, one function a case, by NumPy.

They are compared with the one algorithm for all cases. Part I has no active joints,
Part II no joints on a line, neither has links with mass: such chains are refused. The
rules are in _source_cases.py.
"""

import numpy as np

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.errors import UnsupportedError
from dyn_core.planar import LINE
from dyn_core.planar.problems import (
    CHAIN_ACCELERATIONS,
    CHAIN_FORCE_JACOBIAN,
    CHAIN_TORQUE_RESPONSE,
)
from dyn_plugins.references._source_cases import first_torque, part1, part2, take


class _OfCases(NumpySolver):
    """A solver by the source's cases; it refuses chains without a case.

    Attributes:
        left_out: Constraint without a case: "active" or "line".
    """

    reference = True
    left_out = "active"

    def refusal(self, model):
        """Return why the source has no case for a chain, or None."""
        constraints = model.constraints
        return self.gap(model, constraints.kind, constraints.active)

    def gap(self, model, kind, active):
        """Return why no case covers a link or joint, or None.

        Args:
            model: Planar chain.
            kind: FREE, LINE or GUIDED of each joint.
            active: Nonzero for angles with a prescribed acceleration.
        """
        heavy = np.array([model.link_masses, model.link_inertias]).any(axis=0)
        for i in np.flatnonzero(heavy):
            name = model.joint_names[i]
            return (
                f"link {i} from joint '{name}' has mass; valid: links without,"
                " chain_recursion"
            )
        refused, what = np.array(active, bool), "active"
        if self.left_out == "line":
            refused, what = np.array(kind) == LINE, "on a line"
        for i in np.flatnonzero(refused):
            name = model.joint_names[i]
            return f"joint {i} ('{name}') is {what}; valid: others, chain_recursion"
        return None

    def refuse(self, model, c):
        """Raise UnsupportedError if the constraints of a Chain c have no case."""
        reason = self.gap(model, c.kind, c.active)
        if reason is not None:
            raise UnsupportedError(f"{self.name}: {reason}")


def _outputs(c, a, F_d, tau, steps):
    """Return the outputs of CHAIN_ACCELERATIONS.

    Args:
        c: Chain.
        a, F_d, tau: Accelerations, link forces and torques, by joint.
        steps: Results of part1 or part2.

    Source: WAW-2.1 (alpha), WAW-5.4 (reactions).
    """
    n = len(c.m)
    links = (c.L * np.diff(a, axis=0)).sum(axis=1)
    alpha = np.append(np.diff(links, prepend=0.0), 0.0)
    onward = np.vstack([F_d[1:], np.zeros(2)])
    reaction = c.m[:, None] * a - (c.F + F_d - onward)
    dropped = np.zeros((n, 2))
    for i, step in enumerate(steps[:-1]):
        dropped[i, 0], dropped[i + 1, 1] = step.dropped
    dropped[0, 1] = float(bool(c.active[0]) and tau[0] == 0.0)
    return a, F_d, tau, alpha, reaction, dropped


class Part1(_OfCases):
    """Accelerations of a chain without active joints, by the cases of Part I.

        a_i = A_i F^d_i + b_i,  F^d_{i+1} = C_i F^d_i + d_i

    Source: WAW-5.1 to WAW-5.4 (free), WAW-6.1, 6.2 (guided), WAW-6.4 (line), WAW-6.3,
        6.5 (last).
    """

    name = "chain_part1"
    signature = CHAIN_ACCELERATIONS
    source = "WAW-5.4, WAW-6.1 to WAW-6.5"

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w):
        """Return the accelerations of one state.

        Constraints that are None are the chain's; those without a case raise
        UnsupportedError.

        Inputs and outputs: those of CHAIN_ACCELERATIONS.
        """
        c = take(model, x, v, F, kind, s, a_w, active, alpha_w)
        self.refuse(model, c)
        steps = part1(c)
        F_d, a = [np.zeros(2)], []
        for step in steps:
            a.append(step.A @ F_d[-1] + step.b)
            F_d.append(step.C @ F_d[-1] + step.d)
        return _outputs(c, np.array(a), np.array(F_d[:-1]), np.zeros(model.n), steps)


class Part2(_OfCases):
    """Accelerations of a chain with active joints, by the sixteen cases of Part II.

        a_i = A_i F + b^w_i tau + b_i,          alpha_i = p_i.F + q^w_i tau + q_i
        F_{i+1} = C_i F + d^w_i tau + d_i,      tau_{i+1} = g_i.F + h^w_i tau + h_i

    Source: WAW-9.1 to WAW-9.4, WAW-10.1, WAW-11.1 to WAW-11.6.
    """

    name = "chain_part2"
    left_out = "line"
    signature = CHAIN_ACCELERATIONS
    source = "WAW-9.4, WAW-10.1, WAW-11.1 to WAW-11.6"

    def solve(self, model, x, v, F, kind, s, a_w, active, alpha_w):
        """Return the accelerations of one state.

        Constraints that are None are the chain's; those without a case raise
        UnsupportedError.

        Inputs and outputs: those of CHAIN_ACCELERATIONS.
        """
        c = take(model, x, v, F, kind, s, a_w, active, alpha_w)
        self.refuse(model, c)
        steps = part2(c)
        F_d, tau, a = [np.zeros(2)], [first_torque(c, steps[0])], []
        for step in steps:
            f, t = F_d[-1], tau[-1]
            a.append(step.A @ f + step.bw * t + step.b)
            F_d.append(step.C @ f + step.dw * t + step.d)
            tau.append(step.g @ f + step.hw * t + step.h)
        return _outputs(c, np.array(a), np.array(F_d[:-1]), np.array(tau[:-1]), steps)


class ForceJacobianSource(_OfCases):
    """Accelerations by forces, by the source's backward propagation along the chain.

        da_i/dF_j = da_i/dd_j C_j + da_i/db_j A_j
        da_i/db_k = [k = i] + da_i/dd_{k-1} D_{k-1} + da_i/db_{k-1} C_{k-1}.T

    The source has A_i wrong in the start, and no transpose here.

    Source: WAW-8.1, with slips E4 and E5 corrected.
    """

    name = "chain_force_jacobian_source"
    signature = CHAIN_FORCE_JACOBIAN
    source = "WAW-8.1"

    def solve(self, model, x, kind, s, active):
        """Return the Jacobian of one state.

        Constraints that are None are the chain's; those without a case raise
        UnsupportedError.

        Inputs and outputs: those of CHAIN_FORCE_JACOBIAN.
        """
        return _jacobian(self, model, x, kind, s, active)[1]


class TorqueResponseSource(_OfCases):
    """Accelerations of angles by torques, from the Jacobian of forces.

        S_ij = sum over p = i-1..i+1, q = j-1..j+1 of lambda_ip . da_p/dF_q lambda_jq

    Source: WAW-8.2, with slip E6 corrected.
    """

    name = "chain_torque_response_source"
    signature = CHAIN_TORQUE_RESPONSE
    source = "WAW-8.2"

    def solve(self, model, x, kind, s, active):
        """Return the responses of one state.

        Constraints that are None are the chain's; those without a case raise
        UnsupportedError.

        Inputs and outputs: those of CHAIN_TORQUE_RESPONSE.
        """
        c, J = _jacobian(self, model, x, kind, s, active)
        S = np.zeros((model.n, model.n))
        for i in range(model.n - 1):
            for j in range(model.n - 1):
                S[i, j] = sum(
                    left @ J[p, q] @ right
                    for p, left in _lambdas(c, i)
                    for q, right in _lambdas(c, j)
                )
        return S


def _jacobian(solver, model, x, kind, s, active):
    """Return the Chain and da_i/dF_j, (n, n, 2, 2) (WAW-8.1)."""
    c = take(model, x, 0 * x, 0 * x, kind, s, None, active)
    solver.refuse(model, c)
    n, steps = model.n, part1(c)
    J = np.zeros((n, n, 2, 2))
    for i in range(n):
        by_F = np.zeros((n + 1, 2, 2))  # da_i/dF^d_k; da_i/dd_k is entry k + 1
        by_F[i] = steps[i].A
        for k in reversed(range(1, i)):
            by_F[k] = by_F[k + 1] @ steps[k].C
        by_b = np.eye(2) * (i == 0)
        for k, step in enumerate(steps):
            J[i, k] = by_F[k + 1] @ step.C + by_b @ step.A
            by_b = by_F[k + 1] @ step.D + by_b @ step.C.T + np.eye(2) * (i == k + 1)
    return c, J


def _lambdas(c, i):
    """Return pairs (joint, factor): alpha_i = sum of factor . a_joint (WAW-2.1)."""
    if i == 0:
        return [(0, -c.L[0]), (1, c.L[0])]
    L_before, L = c.L[i - 1], c.L[i]
    return [(i - 1, L_before), (i, -(L_before + L)), (i + 1, L)]


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [Part1(), Part2(), ForceJacobianSource(), TorqueResponseSource()]
