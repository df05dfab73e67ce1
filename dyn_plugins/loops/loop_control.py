"""Control laws of robots with loops: errors of independent coordinates, any motors."""

from dyn_core.authoring import (
    Factored,
    Matrix,
    TracedSolver,
    Vector,
    hookimpl,
    resistance,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import GRAVITY_CONTROL, TRACKING_CONTROL
from dyn_plugins.control.control_laws import position_error, turning_joints
from dyn_plugins.dynamics.hybrid import known_coordinates
from dyn_plugins.loops._independent import independent_coordinates, independent_motion
from dyn_plugins.loops._rank import RANK
from dyn_plugins.loops.loop_independent import joint_forces
from dyn_plugins.loops.loops import motor_coordinates


def loop_computed_torque(
    model, q, qd, q_ref, qd_ref, qdd_ref, kp, kd, independent, active, wrap
):
    """Return motor forces that make errors of independent coordinates die out.

        ydd = ydd_ref + kd (yd_ref - yd) + kp (y_ref - y),   qdd = G ydd + g
        G_a.T tau_a = G.T (H qdd + C),   tau_a of least norm, zero elsewhere

    then  e'' + kd e' + kp e = 0  for e = y_ref - y. Motors may be other joints than the
    independent ones, and more of them. References and gains of the other joints are not
    read. Joint friction is compensated at qd_ref. Fewer motors than freedoms are an
    UnsupportedError when the solver is built; a state in which the motors cannot move
    y, or the other joints do not follow from y, is a SingularError.

    Inputs and outputs: those of TRACKING_CONTROL.

    Args:
        independent: Names of joints, or pairs (joint, index of its coordinate), with as
            many coordinates as degrees of freedom; None: the joints with motors and a
            floating base.
        active: Names of the joints with motors; None: model.active_joints.
        wrap: Names of joints whose error is wrapped to [-pi, pi).

    Source: KIM-3.1 (56)-(66), KIM-3.3 (70)-(80).
    """
    motion = independent_motion(model, q, qd, independent)
    e = position_error(model, q, q_ref, wrap)
    wanted = qdd_ref + kd * (qd_ref - qd) + kp * e
    qdd = motion.accelerations(Vector(wanted[k] for k in motion.y))
    friction = resistance(model, q, qd_ref)
    smooth = joint_forces(model, q, qd, qdd, None) - resistance(model, q, qd)
    tau = _by_motors(model, motion, smooth + friction, active)
    return tau - friction  # the adapter adds it again, for all joints


def loop_gravity_compensation(model, q, qd, kd, independent, active):
    """Return motor forces that carry the weight of a robot with loops and damp it.

        G_a.T tau_a = g_y - H_y kd yd,   tau_a of least norm, zero elsewhere

    Errors are the same as in loop_computed_torque.

    Inputs and outputs: those of GRAVITY_CONTROL.

    Args:
        independent: Names of the joints, or coordinates, of y; None: a default; see
            loop_computed_torque.
        active: Names of the joints with motors; None: model.active_joints.

    Source: KIM-3.1 (56)-(66); RBD5-3.6 (gravity compensation).
    """
    still = Vector.zeros(model.nv)
    motion = independent_motion(model, q, still, independent)
    qdd = motion.accelerations(Vector(-(kd[k] * qd[k]) for k in motion.y))
    forces = joint_forces(model, q, still, qdd, None)
    return _by_motors(model, motion, forces, active)


def _by_motors(model, motion, forces, active):
    """Return motor forces with the effect of given joint forces along y, nv.

    They have the least norm, and are zero for coordinates without a motor. If the
    motors cannot produce the effect in this state, the Program raises SingularError.

    Args:
        model: Robot.
        motion: IndependentMotion.
        forces: Joint forces, nv.
        active: Names of the joints with motors; None: model.active_joints.
    """
    mask = motor_coordinates(model, active)
    motors = [k for k, motor in enumerate(mask) if motor]
    if motors == motion.y:
        shares = motion.along(forces)
    else:
        G_a, n = Matrix([list(motion.G.rows[k]) for k in motors]), range(len(motion.y))
        square, whole = G_a.T @ G_a, motion.G.T @ motion.G
        names = [
            f"coordinate {k} is independent and no motor moves it here; valid: other"
            " active joints"
            for k in motion.y
        ]
        tolerances = [RANK * whole[j, j] for j in n]
        shares = G_a @ Factored(square, tolerances, names).solve(motion.along(forces))
    tau = [0.0] * model.nv
    for k, x in zip(motors, shares, strict=True):
        tau[k] = x
    return Vector(tau)


def _sizes(model, options):
    """Return no sizes, {}; raise UnsupportedError for fewer motors than freedoms.

    Errors of independent_coordinates and motor_coordinates pass through.
    """
    y = independent_coordinates(model, options["independent"])
    motors = sum(motor_coordinates(model, options["active"]))
    if motors < len(y):
        raise UnsupportedError(
            f"{motors} motors for {len(y)} freedoms; valid: as many coordinates of"
            " `active` joints as there are freedoms, or more"
        )
    return {}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    options = {"independent": None, "active": None}
    valid = {"independent": known_coordinates, "active": known_coordinates}
    table = {"sizes": _sizes, "by_joint": False}
    return [
        TracedSolver(
            "loop_computed_torque",
            TRACKING_CONTROL,
            loop_computed_torque,
            options={**options, "wrap": ()},
            valid={**valid, "wrap": turning_joints},
            **table,
        ),
        TracedSolver(
            "loop_gravity_compensation",
            GRAVITY_CONTROL,
            loop_gravity_compensation,
            options=options,
            valid=valid,
            **table,
        ),
    ]
