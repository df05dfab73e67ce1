"""Loops whose multipliers or motors are not unique: least-norm answers, by NumPy.

A rank is the number of singular values above `tolerance` times the largest. Least
norms mix N and N·m; `weight` scales joint forces or multipliers before they are summed.
"""

from functools import lru_cache

import numpy as np

from dyn_core import solver
from dyn_core.authoring import NumpySolver, Vector, hookimpl, resistance
from dyn_core.errors import InfeasibleError, UnsupportedError
from dyn_core.problems import (
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_plugins.dynamics.hybrid import prescribed_coordinates
from dyn_plugins.loops.loops import inverse_sizes


@lru_cache(maxsize=64)
def _program(model, name, forced):
    """Build a solver of the open tree, once for a robot."""
    robot = model if name == "loop_constraints" else model.without_loops()
    return solver(name).build(robot, **({"inputs": ["f_ext"]} if forced else {}))


def _solve(model, name, f_ext, *state):
    """Call a solver of the open tree."""
    forced = f_ext is not None and name in ("bias", "rnea")
    return _program(model, name, forced)(*state, *([f_ext] if forced else []))


def _passive(model, q, qd):
    """Return the joint forces of friction and springs, where they were asked for."""
    forces = resistance(model, Vector(q.tolist()), Vector(qd.tolist()))
    return np.array(list(forces), float)


class MinNormForward(NumpySolver):
    """Forward dynamics with loops whose rows may depend on each other.

    qdd is unique all the same; lambda is the one of least norm.

        lambda = -(A H^-1 A.T)^+ (A qdd_r + dA/dt qd + 2 alpha A qd + beta² f)

    Source: KIM-3.0 (redundant rows), KIM-3.2.
    """

    name = "loop_forward_least"
    signature = LOOP_FORWARD_DYNAMICS
    source = "KIM-3.0, KIM-3.2"
    options = {"alpha": 0.0, "beta": 0.0, "tolerance": 1e-9}

    def sizes(self, model, options):
        """Return the number of rows."""
        return {"m": sum(loop.rows for loop in model.loops)}

    def solve(self, model, q, qd, tau, f_ext, alpha, beta, tolerance):
        """Return the motion and multipliers of one state.

        Inputs and outputs: those of LOOP_FORWARD_DYNAMICS.

        Args:
            alpha, beta: Baumgarte's rates [1/s].
            tolerance: Of the rank, relative.
        """
        f, A, bias = _solve(model, "loop_constraints", f_ext, q, qd)
        H = _solve(model, "crba", f_ext, q)
        C = _solve(model, "bias", f_ext, q, qd) + _passive(model, q, qd)
        free = np.linalg.solve(H, tau - C)
        G = A @ np.linalg.solve(H, A.T)
        wanted = -(A @ free + bias + 2 * alpha * (A @ qd) + beta**2 * f)
        x = np.linalg.pinv(G, rcond=tolerance, hermitian=True) @ wanted
        residual = float(np.abs(G @ x - wanted).max(initial=0.0))
        if residual > 1e-6 * max(1.0, float(np.abs(wanted).max(initial=0.0))):
            raise InfeasibleError(
                f"the loops ask for accelerations that differ by {residual:.2g}",
                residual=residual,
            )
        return free + np.linalg.solve(H, A.T @ x), x, f, A @ qd


class MinNormInverse(NumpySolver):
    """Inverse dynamics with loops and any number of motors.

    More rows than passive coordinates leave a choice: least joint forces ("torque") or
    least multipliers ("force"). Fewer have an answer only for some motions.

        lambda = (A_p.T)^+ (tau_pr - tau_p) + N s,   tau_a = tau_ar - A_a.T lambda

    Source: KIM-3.1 (63)-(66).
    """

    name = "loop_inverse_least"
    signature = LOOP_INVERSE_DYNAMICS
    source = "KIM-3.1"
    options = {
        "active": (),
        "objective": "torque",
        "tolerance": 1e-9,
        "slack": 1e-6,
        "weight": None,
    }

    def sizes(self, model, options):
        """Return the numbers of active and passive coordinates, and of rows."""
        _objective(self.name, options["objective"])
        return inverse_sizes(model, options)

    def solve(
        self,
        model,
        q,
        qd,
        qdd,
        tau_p,
        f_ext,
        active,
        objective,
        tolerance,
        slack,
        weight,
    ):
        """Return tau_a and lambda of one state.

        The motion must fulfil the constraints. Inputs and outputs: those of
        LOOP_INVERSE_DYNAMICS.

        Args:
            active: Names of the joints that have motors.
            objective: torque or force.
            tolerance: Of ranks, relative.
            slack: How far the passive coordinates may be from balance [N·m | N].
            weight: Scales of the active joint forces (objective torque) or of the
                multipliers (objective force) in the norm; None for ones.
        """
        motor = np.array(prescribed_coordinates(model, active), bool)
        _, A, _ = _solve(model, "loop_constraints", f_ext, q, qd)
        open_tau = _solve(model, "rnea", f_ext, q, qd, qdd) + _passive(model, q, qd)
        A_a, A_p = A[:, motor], A[:, ~motor]
        missing = open_tau[~motor] - tau_p
        scale = np.ones(len(A) if objective == "force" else int(motor.sum()))
        scale = scale if weight is None else np.asarray(weight, float)
        inner = scale if objective == "force" else np.ones(len(A))
        x = (np.linalg.pinv(A_p.T / inner, rcond=tolerance) @ missing) / inner
        residual = float(np.abs(A_p.T @ x - missing).max(initial=0.0))
        if residual > slack:
            raise InfeasibleError(
                f"the active joints {', '.join(map(str, active))} leave the passive"
                f" ones {residual:.3g} off balance; make more active, or use"
                " loop_hybrid_dynamics",
                residual=residual,
            )
        if objective == "torque":
            N = _null(A_p.T, tolerance)
            left = open_tau[motor] - A_a.T @ x
            W = scale[:, None] * (A_a.T @ N)
            x = x + N @ (np.linalg.pinv(W, rcond=tolerance) @ (scale * left))
        return open_tau[motor] - A_a.T @ x, x


class MinNormHybrid(NumpySolver):
    """Hybrid dynamics with loops whose rows are more than the free coordinates, too.

    The given accelerations must fit the loops. tau_u is then not unique: least joint
    forces ("torque") or least multipliers ("force").

        H_vv qdd_v - A_v.T lambda = tau_v - C_v - H_vu qdd_u
        A_v qdd_v = -A_u qdd_u - dA/dt qd

    Source: KIM-3.3 (m > n_v), by the formulas of KIM-3.1.
    """

    name = "loop_hybrid_least"
    signature = LOOP_HYBRID_DYNAMICS
    source = "KIM-3.3, KIM-3.1"
    options = {
        "prescribed": (),
        "objective": "torque",
        "tolerance": 1e-9,
        "slack": 1e-6,
    }

    def sizes(self, model, options):
        """Return the numbers of given and other coordinates, and of rows."""
        _objective(self.name, options["objective"])
        nu = sum(prescribed_coordinates(model, options["prescribed"]))
        rows = sum(loop.rows for loop in model.loops)
        return {"nu": nu, "nf": model.nv - nu, "m": rows}

    def solve(
        self, model, q, qd, qdd_u, tau_v, f_ext, prescribed, objective, tolerance, slack
    ):
        """Return tau_u, qdd_v and lambda of one state.

        The state must fulfil the constraints. Inputs and outputs: those of
        LOOP_HYBRID_DYNAMICS.

        Args:
            prescribed: As hybrid takes them.
            objective: torque or force.
            tolerance: Of ranks, relative.
            slack: How far the accelerations may be from fitting [m/s² | rad/s²].
        """
        rigid = np.array(prescribed_coordinates(model, prescribed), bool)
        _, A, bias = _solve(model, "loop_constraints", f_ext, q, qd)
        H = _solve(model, "crba", f_ext, q)
        C = _solve(model, "bias", f_ext, q, qd) + _passive(model, q, qd)
        A_v, n = A[:, ~rigid], int((~rigid).sum())
        K = np.block(
            [[H[np.ix_(~rigid, ~rigid)], -A_v.T], [A_v, np.zeros((len(A),) * 2)]]
        )
        right = np.concatenate(
            [
                tau_v - C[~rigid] - H[np.ix_(~rigid, rigid)] @ qdd_u,
                -bias - A[:, rigid] @ qdd_u,
            ]
        )
        solution = np.linalg.pinv(K, rcond=tolerance) @ right
        residual = float(np.abs(K @ solution - right).max(initial=0.0))
        if residual > slack:
            raise InfeasibleError(
                f"the accelerations of {', '.join(map(str, prescribed))} do not fit the"
                f" loops: {residual:.3g} off; prescribe fewer",
                residual=residual,
            )
        qdd = np.zeros(len(rigid))
        qdd[rigid], qdd[~rigid] = qdd_u, solution[:n]
        x, open_tau = solution[n:], (H @ qdd + C)[rigid]
        if objective == "torque":
            N = _null(A_v.T, tolerance)
            W = A[:, rigid].T @ N
            left = open_tau - A[:, rigid].T @ x
            x = x + N @ (np.linalg.pinv(W, rcond=tolerance) @ left)
        return open_tau - A[:, rigid].T @ x, solution[:n], x


def _objective(name, objective):
    """Refuse an objective that has no meaning."""
    if objective not in ("torque", "force"):
        raise UnsupportedError(f"{name}: objective {objective!r}; valid: torque, force")


def _null(M, tolerance):
    """Return an orthonormal basis of the null space, as columns."""
    if not M.shape[0]:
        return np.eye(M.shape[1])
    _, sizes, Vt = np.linalg.svd(M)
    rank = int((sizes > tolerance * sizes.max(initial=0.0)).sum())
    return Vt[rank:].T


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [MinNormForward(), MinNormInverse(), MinNormHybrid()]
