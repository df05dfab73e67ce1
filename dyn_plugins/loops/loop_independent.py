"""Dynamics of robots with loops in their independent coordinates y.

H_y ydd + C_y = G.T tau,   qd = G yd,   qdd = G ydd + g
"""

from dyn_core.authoring import (
    Force,
    Matrix,
    TracedSolver,
    Vector,
    hookimpl,
    join_force,
    join_matrix,
    resistance,
    split_q,
    split_v,
)
from dyn_core.problems import (
    INDEPENDENT_BIAS,
    INDEPENDENT_GRAVITY,
    INDEPENDENT_INERTIA,
)
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.hybrid import known_coordinates
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.loops._independent import independent_coordinates, independent_motion


def loop_independent_inertia(model, q, independent):
    """Return the inertia matrix of a robot with loops in independent coordinates.

        H_y = G.T H G,   kinetic energy = yd.T H_y yd / 2

    If the other coordinates do not follow from y in a state, it is a SingularError.

    Inputs and outputs: those of INDEPENDENT_INERTIA.

    Args:
        independent: Names of joints, or pairs (joint, index of its coordinate), with as
            many coordinates as degrees of freedom, else an UnsupportedError when built;
            None: the joints with motors and a floating base. The order of y is the
            order of the nv coordinates, not of this list.

    Source: KIM-3.0 (54), (55) solved for the other coordinates.
    """
    motion = independent_motion(model, q, Vector.zeros(model.nv), independent)
    H = join_matrix(model, crba(model, split_q(model, q)))
    columns = [Vector(column) for column in zip(*motion.G.rows, strict=True)]
    pushed = [H @ column for column in columns]
    n = range(len(columns))
    entries = [[columns[max(i, j)] @ pushed[min(i, j)] for j in n] for i in n]
    return Matrix(entries), motion.G


def loop_independent_bias(model, q, qd, f_ext, independent):
    """Return the bias force of a robot with loops in independent coordinates.

        C_y = G.T (C + H g - sum_i J_i.T f_ext_i)

    Joint friction and springs are included if they act.

    Inputs and outputs: those of INDEPENDENT_BIAS.

    Args:
        independent: As in loop_independent_inertia.

    Source: KIM-3.0 (54), (55) solved for the other coordinates.
    """
    motion = independent_motion(model, q, qd, independent)
    return motion.along(joint_forces(model, q, qd, motion.g, f_ext))


def loop_independent_gravity(model, q, independent):
    """Return the forces along independent coordinates that hold a robot still.

        g_y = G.T gravity(q)

    It is the derivative of the potential energy by y. Springs are included if they act.

    Inputs and outputs: those of INDEPENDENT_GRAVITY.

    Args:
        independent: As in loop_independent_inertia.

    Source: KIM-3.0 (54), (55) solved for the other coordinates.
    """
    still = Vector.zeros(model.nv)
    motion = independent_motion(model, q, still, independent)
    return motion.along(joint_forces(model, q, still, still, None))


def joint_forces(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion of the open tree, nv [N·m | N].

    Args:
        model: Robot, with the joint friction and springs that act.
        q, qd, qdd: Position, nq, velocity and acceleration, nv.
        f_ext: Force on each body with the base, body coordinates [N·m; N]; None: zero.
    """
    forces = [Force.zero()] * (model.nb + 1) if f_ext is None else f_ext
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    return join_force(model, rnea(model, *motion, forces)) + resistance(model, q, qd)


def _sizes(model, options):
    """Return the sizes of the Ports: {"ny": number of independent coordinates}.

    Raises UnsupportedError as independent_coordinates.
    """
    return {"ny": len(independent_coordinates(model, options["independent"]))}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    table = {"options": {"independent": None}, "sizes": _sizes, "by_joint": False}
    table["valid"] = {"independent": known_coordinates}
    return [
        TracedSolver(algorithm.__name__, signature, algorithm, **table)
        for signature, algorithm in (
            (INDEPENDENT_INERTIA, loop_independent_inertia),
            (INDEPENDENT_BIAS, loop_independent_bias),
            (INDEPENDENT_GRAVITY, loop_independent_gravity),
        )
    ]
