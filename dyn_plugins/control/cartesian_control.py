"""Control laws of a tool: Cartesian impedance, operational space."""

from dyn_core.authoring import (
    Required,
    TracedSolver,
    Vector,
    hookimpl,
    joint_factors,
    split_q,
    split_v,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    CARTESIAN_CONTROL,
    CORIOLIS_FORCE,
    GRAVITY_FORCE,
    MASS_MATRIX,
)
from dyn_core.validation import Name, Quantity
from dyn_plugins._options import known_link
from dyn_plugins.control._task_inertia import TaskInertia
from dyn_plugins.control._tool import Tool
from dyn_plugins.kinematics.kinematics import frame_motion, of_origin, to_reference

THRESHOLD, LENGTH = 0.02, 0.1  # of singular values; of the angular rows [m]


def cartesian_impedance(
    model,
    q,
    qd,
    pose_ref,
    stiffness,
    v_ref,
    a_ref,
    f_ref,
    ratio,
    damping,
    energy_limit,
    q_rest,
    rest_stiffness,
    rest_damping,
    mass_matrix,
    gravity_force,
    coriolis_force,
    frame,
    reference,
    singularity_threshold,
    characteristic_length,
):
    """Return the joint forces of a spring and dampers between a tool and its reference.

        tau = g + J.T (dlog(e).T K e + D (v_ref - v) + f_ref) + H qdd_r + C(q, qd) qd_r
              + N.T (rest_stiffness (q_rest (-) q) - rest_damping qd)
        e = log(T^-1 T_ref),   D as in Tool.damper,   N.T = 1 - J.T Lambda J H^-1
        qd_r = H^-1 J.T Lambda v_ref,   qdd_r = H^-1 J.T Lambda (a_ref - dJ/dt qd_r)

    The spring is the gradient of an energy, and the robot's own inertia and Coriolis
    forces are left: at a reference at rest the energy of robot and spring never grows
    but by outside forces. Lambda, see TaskInertia, serves v_ref, a_ref and the posture
    alone: without them no position is singular. At an angle of pi the axis of the
    spring's rotation is that of log3, and its moment changes its sign.

    Inputs and outputs: those of CARTESIAN_CONTROL.

    Args:
        mass_matrix, gravity_force, coriolis_force: Slots.
        frame: Name of the link.
        reference: Axes of stiffness, v_ref, a_ref and f_ref, at the frame's origin:
            aligned with the base, or local, of the frame (stiffness: of the reference
            pose, the same where e is zero).
        singularity_threshold, characteristic_length: Of Lambda.

    Source: N. Hogan, Impedance Control, J. Dyn. Sys. Meas. Control 107 (1985); E.
        Fasse and P. Gosselin, Spatio-geometric impedance control of Gough-Stewart
        platforms, IEEE T-RA 15 (1999); B. Paden and R. Panja, Int. J. Control 47
        (1988), for the terms of a moving reference.
    """
    tool = Tool(model, q, qd, pose_ref, frame, reference)
    factors = joint_factors(model, mass_matrix(q))
    wrench = tool.spring(stiffness, energy_limit)
    wrench = wrench + tool.damper(stiffness, factors, ratio, damping, v_ref)
    if f_ref is not None:
        wrench = wrench + Vector(f_ref)
    tau = gravity_force(q) + tool.J.T @ wrench
    moving = v_ref is not None or a_ref is not None
    rest = posture_force(model, q, qd, q_rest, rest_stiffness, rest_damping)
    if not moving and rest is None:
        return tau
    inertia = TaskInertia(tool.J, factors, singularity_threshold, characteristic_length)
    if rest is not None:
        tau = tau + inertia.idle(rest)
    if not moving:
        return tau
    a = Vector.zeros(6) if a_ref is None else Vector(a_ref)
    if v_ref is None:
        return tau + inertia.joint_force(a)
    qd_r = inertia.joint_motion(v_ref)
    # A form that is bilinear in two velocities, from its squares at these two.
    mean, half = (qd + qd_r) * 0.5, (qd - qd_r) * 0.5
    turning = bias(model, tool, q, mean, frame) - bias(model, tool, q, half, frame)
    tau = tau + inertia.joint_force(a - turning)
    return tau + coriolis_force(q, mean) - coriolis_force(q, half)


def operational_space(
    model,
    q,
    qd,
    pose_ref,
    stiffness,
    v_ref,
    a_ref,
    f_ref,
    ratio,
    damping,
    energy_limit,
    q_rest,
    rest_stiffness,
    rest_damping,
    mass_matrix,
    gravity_force,
    coriolis_force,
    frame,
    reference,
    singularity_threshold,
    characteristic_length,
):
    """Return the joint forces under which a tool moves like a mass on a spring.

        tau = g + c(q, qd) + J.T (Lambda (a_ref - dJ/dt qd) + F) + N.T tau_0
        F = dlog(e).T K e + D (v_ref - v) + f_ref,   N.T = 1 - J.T Lambda J H^-1
        tau_0 = rest_stiffness (q_rest (-) q) - rest_damping qd
        then  Lambda (a - a_ref) = F + outside wrench,   e = log(T^-1 T_ref)

    The tool has its own inertia Lambda, without Coriolis forces, and idle motions of a
    redundant robot do not move it. Where a singular value of J falls below the
    threshold, Lambda stays finite in that direction, see TaskInertia.

    Inputs and outputs: those of CARTESIAN_CONTROL.

    Args:
        mass_matrix, gravity_force, coriolis_force: Slots.
        frame: Name of the link.
        reference: Axes of stiffness, v_ref, a_ref and f_ref, at the frame's origin:
            aligned with the base, or local, of the frame (stiffness: of the reference
            pose, the same where e is zero).
        singularity_threshold: Singular value of J, its angular rows times
            characteristic_length [m].
        characteristic_length: Length by which angles and lengths are compared [m].

    Source: O. Khatib, A unified approach for motion and force control of robot
        manipulators: the operational space formulation, IEEE J. Robotics and Automation
        3 (1987).
    """
    tool = Tool(model, q, qd, pose_ref, frame, reference)
    factors = joint_factors(model, mass_matrix(q))
    inertia = TaskInertia(tool.J, factors, singularity_threshold, characteristic_length)
    wrench = tool.spring(stiffness, energy_limit)
    wrench = wrench + tool.damper(stiffness, factors, ratio, damping, v_ref)
    if f_ref is not None:
        wrench = wrench + Vector(f_ref)
    a = -bias(model, tool, q, qd, frame)
    if a_ref is not None:
        a = a + Vector(a_ref)
    tau = tool.J.T @ (wrench + inertia.force(a))
    rest = posture_force(model, q, qd, q_rest, rest_stiffness, rest_damping)
    if rest is not None:
        tau = tau + inertia.idle(rest)
    return tau + gravity_force(q) + coriolis_force(q, qd)


def bias(model, tool, q, qd, frame):
    """Return dJ/dt qd of the frame in the axes of the tool, (6,).

    Its linear part is that of the frame's origin.
    """
    parts = split_q(model, q), split_v(model, qd)
    v, a, X = frame_motion(model, *parts, frame)
    return tool.in_axes(to_reference(X, "aligned") @ of_origin(v, a))


def posture_force(model, q, qd, q_rest, stiffness, damping):
    """Return stiffness (q_rest (-) q) - damping qd, (nv,); None without both.

    Raises:
        UnsupportedError: One of q_rest and stiffness is missing.
    """
    if (q_rest is None) != (stiffness is None):
        named, other = ("q_rest", "rest_stiffness")[:: 1 if stiffness is None else -1]
        raise UnsupportedError(f"inputs: {named} acts by {other}; valid: both, or none")
    if stiffness is None and damping is None:
        return None
    force = Vector.zeros(model.nv)
    if stiffness is not None:
        force = stiffness * Vector(model.difference(q, q_rest))
    return force if damping is None else force - damping * qd


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    common = {
        "options": {
            "frame": Required("the name of a link"),
            "reference": "aligned",
            "singularity_threshold": THRESHOLD,
            "characteristic_length": LENGTH,
        },
        "valid": {
            "frame": known_link,
            "reference": Name(("aligned", "local")),
            "singularity_threshold": Quantity(0.0, above=True),
            "characteristic_length": Quantity(0.0, above=True),
        },
        "slots": {
            "mass_matrix": MASS_MATRIX,
            "gravity_force": GRAVITY_FORCE,
            "coriolis_force": CORIOLIS_FORCE,
        },
        "fills": {
            "mass_matrix": "crba",
            "gravity_force": "gravity",
            "coriolis_force": "coriolis",
        },
        "by_joint": False,
    }
    return [
        TracedSolver(
            "cartesian_impedance",
            CARTESIAN_CONTROL,
            cartesian_impedance,
            default=True,
            **common,
        ),
        TracedSolver(
            "operational_space",
            CARTESIAN_CONTROL,
            operational_space,
            **common,
        ),
    ]
