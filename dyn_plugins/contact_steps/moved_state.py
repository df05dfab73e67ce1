"""State after moving for a time at the velocity from a contact problem."""

from dyn_core.authoring import TracedSolver, advance, hookimpl
from dyn_core.problems import MOVED_STATE


def moved_state(model, q, u, dt, correction):
    """Return position and velocity after a time at the velocity u.

        q_next = q (+) dt (u + correction)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        u: Velocity along the axes of the start, nv [rad/s | m/s].
        dt: Time [s].
        correction: Velocity that is added for the position alone, nv [rad/s | m/s];
            None: zero.

    Returns:
        q_next, nq, and u along the axes of q_next, nv: the axes of floating bodies have
        rotated.

    Source: LCP-4.
    """
    way = None if correction is None else u + correction
    return advance(model, q, u, dt, way)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [TracedSolver("moved_state", MOVED_STATE, moved_state, by_joint=False)]
