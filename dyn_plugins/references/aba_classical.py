"""Forward dynamics by classical accelerations: the T-convention of TAZZ."""

from dyn_core.authoring import TracedSolver, hookimpl
from dyn_core.problems import FORWARD_DYNAMICS
from dyn_plugins.dynamics.articulated_bodies import articulated_bodies


def aba_classical(model, q, qd, tau, f_ext):
    """Return the accelerations that joint forces cause, by classical accelerations.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    A singular joint inertia raises SingularError when the Program runs.

    Inputs and outputs: those of FORWARD_DYNAMICS; q, qd, tau, f_ext and qdd by body,
    the base first; entry 0 of qdd is an empty Vector.

    Source: TAZZ-3.6; see articulated_bodies. Gravity acts as a force here, not as an
    acceleration of the base.
    """
    return articulated_bodies(model, q, qd, tau, f_ext)[0]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("aba_classical", FORWARD_DYNAMICS, aba_classical, reference=True)
    ]
