"""Bearing forces of a robot with loops: forces through its joints and its loops.

An inertia that is singular, also with the loops, raises SingularError when the Program
runs. Other values of coordinates, part and gravity raise UnsupportedError when it is
built.
"""

from dyn_core.authoring import Force, TracedSolver, Vector, hookimpl, split_q, split_v
from dyn_core.problems import JOINT_REACTIONS, LOOP_REACTIONS
from dyn_plugins.dynamics.hybrid import known_coordinates
from dyn_plugins.kinematics.body_motion import REACTIONS, joint_reactions
from dyn_plugins.loops.loop_drop_in import motor_sizes
from dyn_plugins.loops.loops import (
    constrained_hybrid,
    constraint_forces,
    motor_coordinates,
)

OPTIONS = {"coordinates": "body", "part": "whole", "gravity": "true"}


def loop_reactions(model, q, qd, tau, f_ext, coordinates, part, gravity):
    """Return the motion under joint forces, and the forces through joints and loops.

        f_i = f_net_i - f_ext_i - f_loops_i + sum_children X.T f
        f_loop = sum_rows lambda_k (slope of row k by the pose of B in A)

    The results are qdd, f, f_net, f_loop of each loop, and lambda, forces as [moment;
    force]. f_loop acts on link b, its opposite on link a, in the axes of frame A, with
    the moment about B's origin. The f_loop of a coupling is zero: its lambda acts along
    joints. Rows that depend on each other raise SingularError when the Program runs.

    Inputs and outputs: those of LOOP_REACTIONS; f_ext by body, the base first.

    Args:
        coordinates: Axes and reference point of f: body, socket, link or world.
        part: Part of f: whole, active or constraint.
        gravity: Whether f_net includes the weight: true or offset. All three, and a
            SingularError of `part`: see joint_reactions.

    Source: KIM-3.2 (67)-(69); RBD5-3.3.
    """
    no_joint, none = [False] * model.nv, Vector.zeros(model.nv)
    _, qdd, x, rows = constrained_hybrid(
        model, q, qd, no_joint, none, tau, f_ext, (0.0, 0.0)
    )
    options = coordinates, part, gravity
    f, net = _through_joints(model, q, qd, qdd, f_ext, rows, x, options)
    ties, number = [], 0
    for loop in model.loops:
        tie = Force.zero()
        for k in range(number, number + loop.rows):
            if rows[k].slopes:
                tie = tie + Force.of(rows[k].slopes) * x[k]
        ties.append(tie)
        number += loop.rows
    return qdd, f, net, ties, x


def _through_joints(model, q, qd, qdd, f_ext, rows, multipliers, options):
    """Return f and f_net of joint_reactions, with loop forces as forces on the bodies.

    options: Tuple of coordinates, part and gravity of joint_reactions.
    """
    forces, _ = constraint_forces(model, rows, multipliers)
    pushed = [f + g for f, g in zip(f_ext, forces, strict=True)]
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    return joint_reactions(model, *motion, pushed, *options)


def joint_reactions_loops(model, q, qd, qdd, f_ext, active, coordinates, part, gravity):
    """Return the forces through the joints of a robot with loops, driven by motors.

        f_i = f_net_i - f_ext_i - f_loops_i + sum_children X.T f

    The results are f and f_net, as in joint_reactions. The accelerations of passive
    joints follow from the loops and, with fewer motors than freedoms, from zero forces;
    their qdd is not read. More motors than freedoms are an UnsupportedError when the
    solver is built. Rows that depend on each other for the passive joints are a
    SingularError.

    Inputs and outputs: those of JOINT_REACTIONS; f_ext by body, the base first.

    Args:
        active: Names of the joints with motors; an unknown one raises ModelError when
            built. None: model.active_joints, without loops all joints.
        coordinates, part: Axes and reference point, and part of f; see joint_reactions.
        gravity: true: f_net includes the weight; offset: f_net supports it.

    Source: KIM-3.3 (70)-(80); RBD5-3.3.
    """
    mask, none = motor_coordinates(model, active), Vector.zeros(model.nv)
    _, qdd, x, rows = constrained_hybrid(
        model, q, qd, mask, qdd, none, f_ext, (0.0, 0.0)
    )
    options = coordinates, part, gravity
    return _through_joints(model, q, qd, qdd, f_ext, rows, x, options)


def _sizes(model, options):
    """Return the sizes of the Ports: {"m": rows of the loops, "nl": loops}."""
    return {"m": sum(loop.rows for loop in model.loops), "nl": len(model.loops)}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "loop_reactions",
            LOOP_REACTIONS,
            loop_reactions,
            options=OPTIONS,
            valid=REACTIONS,
            sizes=_sizes,
            by_joint=False,
        ),
        TracedSolver(
            "joint_reactions_loops",
            JOINT_REACTIONS,
            joint_reactions_loops,
            options={"active": None, **OPTIONS},
            valid={"active": known_coordinates, **REACTIONS},
            sizes=lambda model, options: motor_sizes(
                model, options, "joint_reactions_loops"
            ),
            by_joint=False,
            closes_loops=True,
            default=True,
        ),
    ]
