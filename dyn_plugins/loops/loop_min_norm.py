"""Loops whose multipliers or motors are not unique: least-norm answers, by NumPy.

A rank is the number of singular values above `tolerance` times the largest: of
A H^-1/2 for motions. Where it drops in this position only (a dead point), no answer is
near those around it, and a SingularError says so. Least norms mix N and N·m; `weight`
scales joint forces or multipliers before they are summed.
"""

from functools import lru_cache

import numpy as np

from dyn_core import solver
from dyn_core.authoring import NumpySolver, Vector, hookimpl, resistance
from dyn_core.errors import InfeasibleError
from dyn_core.problems import (
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_core.validation import Either, Name, Nothing, numbers
from dyn_plugins._options import NUMBER
from dyn_plugins.dynamics.hybrid import prescribed_coordinates
from dyn_plugins.loops._least_multipliers import LeastMultipliers
from dyn_plugins.loops.loops import inverse_sizes

VALID = {
    "objective": Name(("torque", "force")),
    "residual": NUMBER,
}


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


class _LeastNorm(NumpySolver):
    """What the solvers here have in common: they take no parameters, so no time."""

    def refusal(self, model):
        """Why a robot with driven joints is not served; None if it has none."""
        if not model.driven:
            return None
        return (
            f"the place of {', '.join(model.driven)} is driven, and this solver takes"
            f" no time; valid: {self.signature.name} with inputs=['time'], where the"
            " rows do not depend on each other"
        )


class MinNormForward(_LeastNorm):
    """Forward dynamics with loops whose rows may depend on each other.

    qdd is unique all the same; lambda is the one of least norm.

        lambda = -(A H^-1 A.T)^+ (A qdd_r + dA/dt qd + 2 alpha A qd + beta² f)

    with the rank of A H^-1/2.

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
        wanted = -(bias + 2 * alpha * (A @ qd) + beta**2 * f)
        kkt = LeastMultipliers(H, A, model, tolerance)
        kkt.refuse_dead_points(
            lambda t: _solve(model, "loop_constraints", None, q, t)[2]
        )
        qdd, x, residual = kkt.solve(tau - C, wanted)
        if residual > 1e-6 * max(1.0, float(np.abs(wanted).max(initial=0.0))):
            raise InfeasibleError(
                f"the loops ask for accelerations that differ by {residual:.2g}",
                residual=residual,
            )
        return qdd, x, f, A @ qd


class MinNormInverse(_LeastNorm):
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
        "residual": 1e-6,
    }
    valid = {**VALID, "weight": Either((Nothing(), numbers()))}

    def sizes(self, model, options):
        """Return the numbers of active and passive coordinates, and of rows."""
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
        residual,
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
            residual: How far q, qd and qdd may leave a row open [m | rad, and by s,
                s²]; None: not checked.
        """
        motor = np.array(prescribed_coordinates(model, active), bool)
        f, A, bias = _solve(model, "loop_constraints", f_ext, q, qd)
        _refuse_open(model, residual, f, A @ qd, A @ qdd + bias)
        open_tau = _solve(model, "rnea", f_ext, q, qd, qdd) + _passive(model, q, qd)
        A_a, A_p = A[:, motor], A[:, ~motor]
        missing = open_tau[~motor] - tau_p
        scale = np.ones(len(A) if objective == "force" else int(motor.sum()))
        scale = scale if weight is None else np.asarray(weight, float)
        inner = scale if objective == "force" else np.ones(len(A))
        x = (np.linalg.pinv(A_p.T / inner, rcond=tolerance) @ missing) / inner
        off = float(np.abs(A_p.T @ x - missing).max(initial=0.0))
        if off > slack:
            raise InfeasibleError(
                f"the active joints {', '.join(map(str, active))} leave the passive"
                f" ones {off:.3g} off balance; make more active, or use"
                " loop_hybrid_dynamics",
                residual=off,
            )
        if objective == "torque":
            N = _null(A_p.T, tolerance)
            left = open_tau[motor] - A_a.T @ x
            W = scale[:, None] * (A_a.T @ N)
            x = x + N @ (np.linalg.pinv(W, rcond=tolerance) @ (scale * left))
        return open_tau[motor] - A_a.T @ x, x


class MinNormHybrid(_LeastNorm):
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
        "residual": 1e-6,
    }
    valid = VALID

    def sizes(self, model, options):
        """Return the numbers of given and other coordinates, and of rows."""
        nu = sum(prescribed_coordinates(model, options["prescribed"]))
        rows = sum(loop.rows for loop in model.loops)
        return {"nu": nu, "nf": model.nv - nu, "m": rows}

    def solve(
        self,
        model,
        q,
        qd,
        qdd_u,
        tau_v,
        f_ext,
        prescribed,
        objective,
        tolerance,
        slack,
        residual,
    ):
        """Return tau_u, qdd_v and lambda of one state.

        The state must fulfil the constraints. Inputs and outputs: those of
        LOOP_HYBRID_DYNAMICS.

        Args:
            prescribed: As hybrid takes them.
            objective: torque or force.
            tolerance: Of ranks, relative.
            slack: How far the accelerations may be from fitting [m/s² | rad/s²].
            residual: How far q and qd may leave a row open [m | rad, and by s]; None:
                not checked.
        """
        rigid = np.array(prescribed_coordinates(model, prescribed), bool)
        f, A, bias = _solve(model, "loop_constraints", f_ext, q, qd)
        _refuse_open(model, residual, f, A @ qd)
        H = _solve(model, "crba", f_ext, q)
        C = _solve(model, "bias", f_ext, q, qd) + _passive(model, q, qd)
        kkt = LeastMultipliers(H, A, model, tolerance, ~rigid)
        kkt.refuse_dead_points(
            lambda t: _solve(model, "loop_constraints", None, q, t)[2]
        )
        push = tau_v - C[~rigid] - H[np.ix_(~rigid, rigid)] @ qdd_u
        qdd_v, x, off = kkt.solve(push, -bias - A[:, rigid] @ qdd_u)
        if off > slack:
            raise InfeasibleError(
                f"the accelerations of {', '.join(map(str, prescribed))} do not fit the"
                f" loops: {off:.3g} off; prescribe fewer",
                residual=off,
            )
        qdd = np.zeros(len(rigid))
        qdd[rigid], qdd[~rigid] = qdd_u, qdd_v
        open_tau = (H @ qdd + C)[rigid]
        if objective == "torque":
            N = _null(A[:, ~rigid].T, tolerance)
            W = A[:, rigid].T @ N
            left = open_tau - A[:, rigid].T @ x
            x = x + N @ (np.linalg.pinv(W, rcond=tolerance) @ left)
        return open_tau - A[:, rigid].T @ x, qdd_v, x


def _refuse_open(model, limit, *residuals):
    """Refuse a motion that leaves a row of a loop open by more than a limit."""
    if limit is None:
        return
    parts = ("q", "qd", "qdd"), ("", "/s", "/s²")
    for what, per, values in zip(*parts, residuals, strict=False):
        sizes = np.abs(values)
        if not (sizes <= limit).all():
            worst = int(np.argmax(np.where(np.isnan(sizes), np.inf, sizes)))
            raise InfeasibleError(
                f"{model.loop_rows[worst]}: {what} opens it by"
                f" {values[worst]:.3g} m{per} or rad{per}, residual={limit:g} is"
                " allowed; valid: close_loops and close_rates make states that fit,"
                " residual=None skips the check",
                residual=float(sizes[worst]),
            )


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
