"""Bias force: the joint forces of a motion without acceleration."""

from dyn_core.authoring import TracedSolver, Vector, hookimpl
from dyn_core.problems import BIAS_FORCE
from dyn_plugins.dynamics.rnea import rnea


def bias(model, q, qd, f_ext):
    """Return the joint forces of a motion without acceleration.

        C(q, qd) = ID(q, qd, 0)

    Inputs and outputs: those of BIAS_FORCE.

    Source: RBDA, section 6.1; RBD5-3.6.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    return rnea(model, q, qd, still, f_ext)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TracedSolver("bias", BIAS_FORCE, bias, regrouped=True, default=True)]
