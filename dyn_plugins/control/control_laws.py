"""Control laws: computed torque, joint impedance, gravity compensation."""

import math

from dyn_core.authoring import TracedSolver, Vector, floor, hookimpl
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    GRAVITY_CONTROL,
    IMPEDANCE_CONTROL,
    INVERSE_DYNAMICS,
    TRACKING_CONTROL,
)
from dyn_core.validation import shown


def wrapped(angle):
    """Return the angle [rad] plus the multiple of 2 pi that brings it to [-pi, pi)."""
    return angle - floor((angle + math.pi) / (2 * math.pi)) * (2 * math.pi)


def computed_torque(
    model, q, qd, q_ref, qd_ref, qdd_ref, kp, kd, inverse_dynamics, wrap
):
    """Return the joint forces that make the tracking error decay like a linear system.

        tau = ID(q, qd, qdd_ref + kd (qd_ref - qd) + kp (q_ref (-) q))
        then  e'' + kd e' + kp e = 0,  e = q_ref (-) q

    Joint friction, if it acts, is added to the result by the adapter, evaluated at
    qd_ref.

    Inputs and outputs: those of TRACKING_CONTROL, so the result is tau, nv; kp [1/s²]
    and kd [1/s] have a number for each coordinate, nv.

    Args:
        inverse_dynamics: Solver of INVERSE_DYNAMICS.
        wrap: Names of joints (model.endless_joints) whose error is wrapped to
            [-pi, pi); others raise ModelError, and a single string UnsupportedError,
            when the Program is built.

    Source: KIM-2.1 for ID; M. Spong et al., Robot Modeling and Control, section 8.3.
    """
    e = position_error(model, q, q_ref, wrap)
    return inverse_dynamics(q, qd, qdd_ref + kd * (qd_ref - qd) + kp * e, None)


def joint_impedance(
    model,
    q,
    qd,
    q_ref,
    qd_ref,
    qdd_ref,
    stiffness,
    damping,
    inverse_dynamics,
    wrap,
):
    """Return the joint forces of springs and dampers on a gravity-compensated robot.

        tau = ID(q, qd, qdd_ref) + K (q_ref (-) q) + D (qd_ref - qd)
        then  H e'' + D e' + K e = -tau_ext,  e = q_ref (-) q

    The robot's own inertia is left unchanged, so no force measurement is needed. Joint
    friction, if it acts, is added to the result by the adapter, evaluated at qd_ref.

    Inputs and outputs: those of IMPEDANCE_CONTROL, so the result is tau, nv; stiffness
    K and damping D have a number for each coordinate, nv.

    Args:
        inverse_dynamics: Solver of INVERSE_DYNAMICS.
        wrap: Names of joints (model.endless_joints) whose error is wrapped to
            [-pi, pi); others raise ModelError, and a single string UnsupportedError,
            when the Program is built.

    Source: KIM-2.1 for ID; N. Hogan, Impedance Control, J. Dyn. Sys. Meas. Control 107
    (1985), part I.
    """
    e = position_error(model, q, q_ref, wrap)
    spring = stiffness * e + damping * (qd_ref - qd)
    return inverse_dynamics(q, qd, qdd_ref, None) + spring


def position_error(model, q, q_ref, wrap):
    """Return q_ref (-) q, nv; entries of joints named in `wrap` lie in [-pi, pi)."""
    e = list(model.difference(q, q_ref))
    for name in wrap:
        index = model.v_slice(name).start
        e[index] = wrapped(e[index])
    return Vector(e)


def turning_joints(model, names):
    """Check the option `wrap`: a list of model.endless_joints; no model: any list."""
    if isinstance(names, str):
        text = shown(names)
        raise UnsupportedError(f"wrap is {text}; valid: wrap=[{text}], a list")
    for name in names if model is not None else ():
        model.require_endless(name, "wrap")


def gravity_compensation(model, q, qd, kd, inverse_dynamics):
    """Return the joint forces that balance gravity and damp the motion.

        tau = ID(q, 0, -kd qd)

    Springs are balanced, too, if they act; the option joint_friction is an
    UnsupportedError when the Program is built.

    Inputs and outputs: those of GRAVITY_CONTROL, so the result is tau, nv; kd [1/s] has
    a number for each coordinate, nv.

    Args:
        inverse_dynamics: Solver of INVERSE_DYNAMICS.

    Source: RBD5-3.6 (gravity compensation).
    """
    return inverse_dynamics(q, Vector.zeros(model.nv), -(kd * qd), None)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    common = {
        "slots": {"inverse_dynamics": INVERSE_DYNAMICS},
        "fills": {"inverse_dynamics": "auto"},
        "by_joint": False,
        "default": True,
    }
    return [
        TracedSolver(
            "computed_torque",
            TRACKING_CONTROL,
            computed_torque,
            options={"wrap": ()},
            valid={"wrap": turning_joints},
            **common,
        ),
        TracedSolver(
            "joint_impedance",
            IMPEDANCE_CONTROL,
            joint_impedance,
            options={"wrap": ()},
            valid={"wrap": turning_joints},
            **common,
        ),
        TracedSolver(
            "gravity_compensation", GRAVITY_CONTROL, gravity_compensation, **common
        ),
    ]
