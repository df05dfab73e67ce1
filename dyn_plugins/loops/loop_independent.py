"""Dynamics and control of robots with loops in their independent coordinates y.

    H_y ydd + C_y = G.T tau,   qd = G yd,   qdd = G ydd + g

The control laws make errors of y die out, by any motors that can move y.
"""

from typing import Any, NamedTuple

from dyn_core.authoring import (
    Factored,
    Matrix,
    TracedSolver,
    Vector,
    hookimpl,
    join_matrix,
    resistance,
    split_q,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    GRAVITY_CONTROL,
    INDEPENDENT_BIAS,
    INDEPENDENT_GRAVITY,
    INDEPENDENT_INERTIA,
    TRACKING_CONTROL,
)
from dyn_plugins.control.control_laws import position_error, turning_joints
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.hybrid import (
    known_coordinates,
    known_in_order,
    prescribed_coordinates,
)
from dyn_plugins.loops._loop_rows import jacobian_of, open_forces, rows_of
from dyn_plugins.loops._rank import RANK, dependence_items, gradient_slopes
from dyn_plugins.loops.loops import motor_coordinates

WAY_OUT = "other independent joints"


class IndependentMotion(NamedTuple):
    """Motion qd = G yd, qdd = G ydd + g by independent coordinates y, ascending."""

    y: list[Any]
    G: Matrix
    g: Vector

    def accelerations(self, ydd):
        """Return qdd = G ydd + g, nv, for accelerations ydd, ny."""
        return self.G @ ydd + self.g

    def along(self, tau):
        """Return the generalised forces along y, G.T tau, ny, of joint forces, nv."""
        return self.G.T @ tau


def independent_coordinates(model, independent):
    """Return the indices of the independent coordinates among the nv, ascending.

    None: The joints with motors and floating and free_rpy joints; without loops all
    joints. Refused: more or fewer than degrees of freedom (nv minus the rows of loops),
    and entries that prescribed_coordinates refuses.
    """
    freedoms = model.nv - sum(loop.rows for loop in model.loops)
    chosen = independent
    if chosen is None:
        free = [model.names[i] for i in model.independent if model.joint[i].unactuated]
        chosen = sorted({*model.active_joints, *free}, key=model.joint_names.index)
        chosen = chosen if model.loops else model.joint_names
    mask = prescribed_coordinates(model, chosen)
    if sum(mask) != freedoms:
        raise UnsupportedError(
            f"independent={list(chosen)}: {sum(mask)} coordinates for {freedoms}"
            f" freedoms (nv {model.nv}, {model.nv - freedoms} rows of loops); valid: as"
            f" many coordinates of {', '.join(model.joint_names)} as freedoms"
        )
    return [k for k, chosen in enumerate(mask) if chosen]


def independent_motion(model, q, qd, independent):
    """Return the IndependentMotion of a state; see independent_coordinates.

        A qdd + bias = 0:  qdd_v = -A_v^-1 (A_y ydd + bias)

    Without loops, y is all coordinates, G the identity and g zero. If the other
    coordinates do not follow from y (A_v without full rank), the Program raises
    SingularError, which names the row.

    Source: KIM-3.3 (70)-(80), all of y prescribed.
    """
    y = independent_coordinates(model, independent)
    others = [k for k in range(model.nv) if k not in y]
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    G, g = [None] * model.nv, [0.0] * model.nv
    for j, k in enumerate(y):
        G[k] = [float(i == j) for i in range(len(y))]
    if rows:
        A = jacobian_of(model, q, rows)
        A_v = Matrix([row[k] for k in others] for row in A.rows)
        tolerances = [RANK * slope for slope in gradient_slopes(model, q, rows, A)]
        square = Factored(A_v @ A_v.T, tolerances, dependence_items(rows, WAY_OUT))
        columns = [A_v.T @ square.solve([-row[k] for row in A.rows]) for k in y]
        rest = A_v.T @ square.solve([-row.acceleration for row in rows])
        for j, k in enumerate(others):
            G[k], g[k] = [column[j] for column in columns], rest[j]
    return IndependentMotion(y, Matrix(G), Vector(g))


def loop_independent_inertia(model, q, independent):
    """Return H_y, the inertia of a robot with loops in independent coordinates, and G.

        H_y = G.T H G,   qd = G yd,   kinetic energy = yd.T H_y yd / 2

    The second and third hold without joints driven by time. If the other coordinates do
    not follow from y in a state, the Program raises SingularError.

    Inputs and outputs: those of INDEPENDENT_INERTIA.

    Args:
        independent: Names of joints, or pairs (joint, index of its coordinate), with as
            many coordinates as degrees of freedom, else an UnsupportedError when built
            (ModelError for an unknown joint); None: the joints with motors and floating
            and free_rpy joints, without loops all joints. Another order than that of
            the nv coordinates, which y has, is an UnsupportedError, too.

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

    Joint friction and springs are included if they act. If the other coordinates do not
    follow from y in a state, the Program raises SingularError; a user's force function
    that does not return nv numbers raises ModelError.

    Inputs and outputs: those of INDEPENDENT_BIAS; f_ext by body, the base first.

    Args:
        independent: Joints or coordinates of y, None for a default, as in
            loop_independent_inertia; an invalid choice raises UnsupportedError or
            ModelError when built.

    Source: KIM-3.0 (54), (55) solved for the other coordinates.
    """
    motion = independent_motion(model, q, qd, independent)
    return motion.along(open_forces(model, q, qd, motion.g, f_ext))


def loop_independent_gravity(model, q, independent):
    """Return the forces along independent coordinates that hold a robot still.

        g_y = G.T gravity(q)

    It is the derivative of the potential energy by y. Both hold without joints driven
    by time, whose motion is included. Springs are included if they act.
    If the other coordinates do not follow from y in a state, the Program raises
    SingularError; a user's force function that does not return nv numbers raises
    ModelError.

    Inputs and outputs: those of INDEPENDENT_GRAVITY.

    Args:
        independent: Joints or coordinates of y, None for a default, as in
            loop_independent_inertia; an invalid choice raises UnsupportedError or
            ModelError when built.

    Source: KIM-3.0 (54), (55) solved for the other coordinates.
    """
    still = Vector.zeros(model.nv)
    motion = independent_motion(model, q, still, independent)
    return motion.along(open_forces(model, q, still, still, None))


def _independent_sizes(model, options):
    """Return the sizes of the Ports: {"ny": number of independent coordinates}."""
    return {"ny": len(independent_coordinates(model, options["independent"]))}


def loop_computed_torque(
    model, q, qd, q_ref, qd_ref, qdd_ref, kp, kd, independent, active, wrap
):
    """Return motor forces that make errors of independent coordinates die out.

        ydd = ydd_ref + kd (yd_ref - yd) + kp (y_ref - y),   qdd = G ydd + g
        G_a.T tau_a = G.T (H qdd + C),   tau_a of least norm, zero elsewhere

    then  e'' + kd e' + kp e = 0  for e = y_ref - y. Motors may be other joints than the
    independent ones, and more of them. References and gains of the other joints have no
    effect. Motors compensate joint friction at qd_ref; the result is less by it at all
    joints, since the adapter adds it there again. Fewer motors than freedoms are an
    UnsupportedError when the solver is built, and an invalid entry of `independent`,
    `active` or `wrap` an UnsupportedError or ModelError; a state in which the motors
    cannot move y, or the other joints do not follow from y, is a SingularError.

    Inputs and outputs: those of TRACKING_CONTROL; kp [1/s²] and kd [1/s], nv each.

    Args:
        independent: Names of joints, or pairs (joint, index of its coordinate), with as
            many coordinates as degrees of freedom; None: the joints with motors and
            floating and free_rpy joints, without loops all joints.
        active: Names of the joints with motors, or pairs (joint, index of its
            coordinate); None: model.active_joints, without loops all joints.
        wrap: Names of joints (model.endless_joints) whose error is wrapped to
            [-pi, pi).

    Source: KIM-3.1 (56)-(66), KIM-3.3 (70)-(80).
    """
    motion = independent_motion(model, q, qd, independent)
    e = position_error(model, q, q_ref, wrap)
    wanted = qdd_ref + kd * (qd_ref - qd) + kp * e
    qdd = motion.accelerations(Vector(wanted[k] for k in motion.y))
    friction = resistance(model, q, qd_ref)
    smooth = open_forces(model, q, qd, qdd, None) - resistance(model, q, qd)
    tau = _by_motors(model, motion, smooth + friction, active)
    return tau - friction  # the adapter adds it again, for all joints


def loop_gravity_compensation(model, q, qd, kd, independent, active):
    """Return motor forces that carry the weight of a robot with loops and damp it.

        G_a.T tau_a = g_y - H_y kd yd,   tau_a of least norm, zero elsewhere

    Springs are balanced too if they act; the option joint_friction is an
    UnsupportedError when the solver is built. Fewer motors than freedoms are an
    UnsupportedError when the solver is built, and an invalid entry of `independent` or
    `active` an UnsupportedError or ModelError; a state in which the motors cannot move
    y, or the other joints do not follow from y, is a SingularError.

    Inputs and outputs: those of GRAVITY_CONTROL; kd [1/s] has nv numbers, of which
    those of y are read.

    Args:
        independent: Names of the joints, or coordinates, of y; None: a default; see
            loop_computed_torque.
        active: Names of the joints with motors, or pairs (joint, index of its
            coordinate); None: model.active_joints, without loops all joints.

    Source: KIM-3.1 (56)-(66); RBD5-3.6 (gravity compensation).
    """
    still = Vector.zeros(model.nv)
    motion = independent_motion(model, q, still, independent)
    qdd = motion.accelerations(Vector(-(kd[k] * qd[k]) for k in motion.y))
    forces = open_forces(model, q, still, qdd, None)
    return _by_motors(model, motion, forces, active)


def _by_motors(model, motion, forces, active):
    """Return motor forces with the effect of given joint forces along y, nv.

    They have the least norm, and are zero for coordinates without a motor. If the
    motors cannot produce the effect in this state, the Program raises SingularError.
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


def _motor_sizes(model, options):
    """Return no sizes, {}; raise UnsupportedError for fewer motors than freedoms."""
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
    """Return a list of the solvers of this file, for the Registry."""
    dynamics = {
        "options": {"independent": None},
        "sizes": _independent_sizes,
        "valid": {"independent": known_in_order},
        "by_joint": False,
    }
    options = {"independent": None, "active": None}
    valid = {"independent": known_coordinates, "active": known_coordinates}
    table = {"sizes": _motor_sizes, "by_joint": False}
    return [
        *(
            TracedSolver(algorithm.__name__, signature, algorithm, **dynamics)
            for signature, algorithm in (
                (INDEPENDENT_INERTIA, loop_independent_inertia),
                (INDEPENDENT_BIAS, loop_independent_bias),
                (INDEPENDENT_GRAVITY, loop_independent_gravity),
            )
        ),
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
