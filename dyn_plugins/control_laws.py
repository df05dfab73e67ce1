"""Control laws: computed torque, and gravity compensation."""

import math

from dyn_core import (
    GRAVITY_CONTROL,
    INVERSE_DYNAMICS,
    TRACKING_CONTROL,
    ModelError,
    TextSolver,
    Vector,
    hookimpl,
)
from dyn_core.scalar import floor


def wrapped(angle):
    """Give the angle in [-pi, pi)."""
    return angle - floor((angle + math.pi) / (2 * math.pi)) * (2 * math.pi)


def computed_torque(
    model, q, qd, q_ref, qd_ref, qdd_ref, kp, kd, inverse_dynamics, wrap
):
    """Give the joint forces that make the error die out like a linear system.

        tau = ID(q, qd, qdd_ref + kd (qd_ref - qd) + kp (q_ref (-) q))
        then  e'' + kd e' + kp e = 0,  e = q_ref (-) q

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        q_ref: Wanted positions, nq [rad | m].
        qd_ref: Wanted velocities, nv [rad/s | m/s].
        qdd_ref: Wanted accelerations, nv [rad/s² | m/s²].
        kp: Gains on position errors, nv [1/s²], before the inertia.
        kd: Gains on velocity errors, nv [1/s], before the inertia.
        inverse_dynamics: Slot.
        wrap: Names of joints whose error is wrapped to [-pi, pi).

    Returns:
        Joint forces tau, nv [N·m | N]. Joint friction is compensated at qd_ref.

    Source: KIM-2.1 for ID; M. Spong et al., Robot Modeling and Control, section 8.3.
    """
    e = list(model.difference(q, q_ref))
    for name in wrap:
        if model.joint_kind(name) not in ("revolute", "continuous"):
            raise ModelError(f"wrap: joint '{name}' does not turn about one axis", name)
        at = model.v_slice(name).start
        e[at] = wrapped(e[at])
    return inverse_dynamics(q, qd, qdd_ref + kd * (qd_ref - qd) + kp * Vector(e), None)


def gravity_compensation(model, q, qd, kd, inverse_dynamics):
    """Give the joint forces that carry the weight and damp the motion.

        tau = ID(q, 0, -kd qd)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        kd: Damping gains, nv [1/s], before the inertia; zero for pure compensation.
        inverse_dynamics: Slot.

    Returns:
        Joint forces tau, nv [N·m | N].

    Source: RBD5-3.6 (gravity compensation).
    """
    return inverse_dynamics(q, Vector.zeros(model.nv), -(kd * qd), None)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    common = {
        "slots": {"inverse_dynamics": INVERSE_DYNAMICS},
        "fills": {"inverse_dynamics": "rnea"},
        "by_joint": False,
    }
    return [
        TextSolver(
            "computed_torque",
            TRACKING_CONTROL,
            computed_torque,
            options={"wrap": ()},
            **common,
        ),
        TextSolver(
            "gravity_compensation", GRAVITY_CONTROL, gravity_compensation, **common
        ),
    ]
