"""Bias force: what a motion without acceleration takes."""

from dyn_core import BIAS_FORCE, TextSolver, Vector, hookimpl
from dyn_plugins.rnea import rnea


def bias(model, q, qd, f_ext):
    """Give the joint forces of a motion without acceleration.

        C(q, qd) = ID(q, qd, 0)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Bias force C, nv [N·m | N]: Coriolis, centrifugal and gravity, minus f_ext.

    Source: RBDA, section 6.1; RBD5-3.6.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    return rnea(model, q, qd, still, f_ext)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("bias", BIAS_FORCE, bias, regrouped=True)]
