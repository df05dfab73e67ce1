"""The state after a time at a velocity that contacts gave."""

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
        correction: Velocity that moves the position alone, nv [rad/s | m/s];
            None: there is none.

    Returns:
        q_next, and u along the axes of q_next: those of floating bodies have turned.

    Source: LCP-4.
    """
    way = None if correction is None else u + correction
    return advance(model, q, u, dt, way)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TracedSolver("moved_state", MOVED_STATE, moved_state, by_joint=False)]
