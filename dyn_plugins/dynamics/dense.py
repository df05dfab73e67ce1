"""Bias force C, and forward dynamics by H and C and a dense solve."""

from dyn_core.authoring import TracedSolver, Vector, hookimpl, joint_factors
from dyn_core.problems import BIAS_FORCE, FORWARD_DYNAMICS, MASS_MATRIX
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.rnea import rnea


def bias(model, q, qd, f_ext):
    """Return the joint forces of a motion without acceleration, gravity included.

        C(q, qd) = ID(q, qd, 0)

    With f_ext the result is C - sum_i J_i(q).T f_ext_i.
    Inputs and outputs: those of BIAS_FORCE; q, qd, f_ext and C by body, the base first;
    entry 0 of C is None.

    Source: RBDA, section 6.1; RBD5-3.6.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    return rnea(model, q, qd, still, f_ext)


def dense(model, q, qd, tau, f_ext, mass_matrix, bias_force):
    """Return the accelerations that joint forces cause, by H qdd = tau - C.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    A singular H raises SingularError when the Program runs.

    Inputs and outputs: those of FORWARD_DYNAMICS; f_ext by body, the base first.

    Args:
        mass_matrix: Solver of MASS_MATRIX for H: mass_matrix(q).
        bias_force: Solver of BIAS_FORCE for C: bias_force(q, qd, f_ext), with f_ext
            without the base's entry.

    Source: RBDA, section 6.1; KIM-2.0 (Table 1). Solved by L.T D L in the order of the
    tree, without pivoting: for a positive definite H it loses no more digits than
    rounding H does (N. Higham, Accuracy and Stability of Numerical Algorithms, section
    10.1).
    """
    push = tau - bias_force(q, qd, f_ext[1:])
    return joint_factors(model, mass_matrix(q)).solve(push)


SOLVER = TracedSolver(
    "dense",
    FORWARD_DYNAMICS,
    dense,
    slots={"mass_matrix": MASS_MATRIX, "bias_force": BIAS_FORCE},
    fills={
        "mass_matrix": TracedSolver("crba", MASS_MATRIX, crba, regrouped=True),
        "bias_force": TracedSolver("bias", BIAS_FORCE, bias, regrouped=True),
    },
    by_joint=False,
)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("bias", BIAS_FORCE, bias, regrouped=True, default=True),
        SOLVER,
    ]
