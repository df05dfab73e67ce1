"""Derivatives of the dynamics of robots with loops, by implicit differentiation.

    H qdd + C - A.T lambda = tau,   A qdd + dA/dt qd + 2 alpha A qd + beta² f = 0

Z and W are the derivatives of both equations by the state or by parameters, at constant
qdd and lambda; the matrix of dqdd and dlambda is the matrix of the dynamics.
The derivatives of forward dynamics also have the signatures of step slots. In forward
and hybrid dynamics a singular inertia raises SingularError when the Program runs.

f_ext_fixed is body, base (a wrench about the base's origin) or point (in the base's
axes, at a point of the body), None: as f_ext_frame says; f_ext_points are these points
by link, in its frame [m], or None: the bodies' origins.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Vector,
    hookimpl,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import parameter_paths
from dyn_core.problems import (
    FD_DERIVATIVES,
    FD_PARAMETER_JACOBIAN,
    LOOP_FD_DERIVATIVES,
    LOOP_HD_DERIVATIVES,
    LOOP_ID_DERIVATIVES,
)
from dyn_plugins._options import NUMBER
from dyn_plugins.derivatives._fixed_forces import OPTIONS, VALID, FixedForces
from dyn_plugins.derivatives.jacobians import ByParameters
from dyn_plugins.dynamics.hybrid import (
    in_order,
    known_in_order,
    part_where,
    prescribed_coordinates,
    spread,
)
from dyn_plugins.loop_derivatives._implicit import (
    Change,
    HybridInputs,
    gradient_changes,
    moving,
    parameter_changes,
    solved_motion,
    state_changes,
    unit_forces,
)
from dyn_plugins.loops._least import DEPENDENT
from dyn_plugins.loops._loop_rows import jacobian_of, open_forces, rows_of
from dyn_plugins.loops._rank import RANK, dependence_items, gradient_slopes
from dyn_plugins.loops.loop_drop_in import DRIFT
from dyn_plugins.loops.loops import (
    LEAST_INVERSE,
    inverse_sizes,
    motor_coordinates,
    reason_not_square,
    require_closed,
)


def _answers(saddle, changes):
    """Return for each Change in `changes` the derivatives of qdd and lambda.

    A list of pairs of lists, which have a Vector for each variable of the Change.
    """
    columns = [
        (-Z, -W) for change in changes for Z, W in zip(change.Z, change.W, strict=True)
    ]
    answers, first, parts = saddle.answers(columns), 0, []
    for change in changes:
        part = answers[first : first + len(change.Z)]
        first += len(change.Z)
        parts.append(([x for x, _ in part], [y for _, y in part]))
    return parts


def _turn(model, motion, saddle, paths, answers):
    """Add the change of dependent rows to derivatives of multipliers, in place.

    answers: Two results of `_answers`, by q and by the parameters.
    """
    w = saddle.loops.velocity_of(motion.multipliers)
    columns = gradient_changes(model, motion, w, paths)
    for (_, dlambda), change in zip(answers, columns, strict=True):
        turned = saddle.turned(change)
        dlambda[:] = [x + y for x, y in zip(dlambda, turned, strict=True)]


def _stacked(columns, height):
    """Return the matrix of columns of length `height`; there may be no columns."""
    return Matrix([column[i] for column in columns] for i in range(height))


def loop_fd_derivatives(
    model, q, qd, tau, f_ext, alpha, beta, tolerance, paths, **fixed
):
    """Return forward dynamics of a robot with loops, and its derivatives.

        H dqdd - A.T dlambda = dtau - Z dx,   A dqdd = -W dx

    dq is a displacement in the tangent space, and need not keep the loops closed: they
    are the derivatives of loop_forward_dynamics in every state. The results are qdd,
    lambda, the derivatives of qdd by q, qd, tau and p, and the same of lambda. An
    invalid path or point raises UnsupportedError or ModelError when built.

    Inputs and outputs: those of LOOP_FD_DERIVATIVES; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s]; 0: none.
        tolerance: Relative tolerance of the rank: the results of loop_forward_dynamics
            with dependent="least_norm" are then differentiated; dependent rows must be
            dependent in every state nearby, and a dead point is a SingularError. None:
            a row that depends on others is a SingularError.
        paths: Parameter paths p (model/parameter_paths.py).
        fixed: f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see the module.

    Source: KIM-3.2 (67)-(69), KIM-4.6, differentiated implicitly as J. Carpentier, R.
    Budhiraja and N. Mansard, Proximal and sparse resolution of constrained dynamic
    equations, 2021, do for forward dynamics.
    """
    mask, none = [False] * model.nv, Vector.zeros(model.nv)
    inputs = HybridInputs(q, qd, mask, none, tau, f_ext, (alpha, beta))
    motion, saddle = solved_motion(model, inputs, tolerance)
    by_q, by_qd, _ = state_changes(model, motion, fixed)
    by_p = parameter_changes(model, motion, paths, fixed)
    m = len(saddle.B)
    moved, pulled = [], []
    answers = _answers(saddle, (by_q, by_qd, by_p))
    if tolerance is not None:
        _turn(model, motion, saddle, paths, answers[::2])
    for dqdd, dlambda in answers:
        moved.append(_stacked(dqdd, model.nv))
        pulled.append(_stacked(dlambda, m))
    moved.insert(2, saddle.P)
    pulled.insert(2, Matrix(-row for row in saddle.B))
    return motion.qdd, motion.multipliers, *moved, *pulled


def loop_hd_derivatives(
    model, q, qd, qdd_u, tau_v, f_ext, prescribed, alpha, beta, tolerance, paths,
    **fixed,
):  # fmt: skip
    """Return hybrid dynamics of a robot with loops, and its derivatives.

        H_vv dqdd_v - A_v.T dlambda = dtau_v - Z_v dx,   A_v dqdd_v = -W dx
        dtau_u = Z_u dx + H_uv dqdd_v - A_u.T dlambda

    The results are tau_u, qdd_v and lambda, then the derivatives of tau_u by q, qd,
    qdd_u, tau_v and p, the same of qdd_v, and of lambda. u are the prescribed
    coordinates, v the others, both in the order of qd. An invalid path, point or entry
    of `prescribed` raises UnsupportedError or ModelError when built.

    Inputs and outputs: those of LOOP_HD_DERIVATIVES; f_ext by body, the base first.

    Args:
        prescribed: Names of joints with given accelerations, or pairs (joint, index of
            its coordinate).
        alpha, beta: Baumgarte's rates [1/s]; 0: none.
        paths: Parameter paths p (model/parameter_paths.py).
        fixed: f_ext_fixed and f_ext_points; see the module.
        tolerance: Relative tolerance of the rank: the results of loop_hybrid_dynamics
            with dependent="least_norm" and the objective force are then differentiated;
            dependent rows must be dependent in every state nearby, and a dead point is
            a SingularError. None: a dependent row is a SingularError.

    Source: KIM-3.3 (70)-(80), KIM-4.6, differentiated implicitly.
    """
    mask = prescribed_coordinates(model, prescribed)
    u, v = (
        [k for k, flag in enumerate(mask) if flag == side] for side in (True, False)
    )
    qdd, push = spread(mask, qdd_u, tau_v)
    inputs = HybridInputs(q, qd, mask, qdd, push, f_ext, (alpha, beta))
    motion, saddle = solved_motion(model, inputs, tolerance)
    by_q, by_qd, by_qdd = state_changes(model, motion, fixed)
    by_p = parameter_changes(model, motion, paths, fixed)
    m, n = len(saddle.B), range(model.nv)
    by_u = Change([by_qdd.Z[k] for k in u], [by_qdd.W[k] for k in u])
    H, A = by_qdd.Z, by_qdd.W  # their columns
    tau = _joint_forces(model, motion)
    results = [[], [], []]
    changes = by_q, by_qd, by_u, unit_forces(model, m, v), by_p
    answers = _answers(saddle, changes)
    if tolerance is not None:
        _turn(model, motion, saddle, paths, answers[::4])
    for change, (dqdd, dlambda) in zip(changes, answers, strict=True):
        forces = []
        for Z, x, y in zip(change.Z, dqdd, dlambda, strict=True):
            force = {k: Z[k] - A[k] @ y for k in u}
            forces.append([force[k] + Vector(H[j][k] for j in n) @ x for k in u])
        results[0].append(_stacked(forces, len(u)))
        results[1].append(_stacked([[x[k] for k in v] for x in dqdd], len(v)))
        results[2].append(_stacked(dlambda, m))
    return (
        part_where(mask, True, tau),
        part_where(mask, False, motion.qdd),
        motion.multipliers,
        *(matrix for kind in results for matrix in kind),
    )


def _joint_forces(model, motion):
    """Return the joint forces H qdd + C - A.T lambda, nv, of a ClosedMotion.

    C includes gravity, external forces, friction, springs and forces of the user.
    """
    q, qd, qdd, f_ext = motion.q, motion.qd, motion.qdd, motion.f_ext
    rows = rows_of(model, q, qd, qdd)
    tau = open_forces(model, q, qd, qdd, f_ext)
    for row, x in zip(
        jacobian_of(model, q, rows).rows, motion.multipliers, strict=True
    ):
        tau = tau - Vector(row) * x
    return tau


def loop_id_derivatives(
    model, q, qd, qdd, tau_p, f_ext, active, residual, paths, **fixed
):
    """Return inverse dynamics of a robot with loops, and its derivatives.

        A_p.T dlambda = Z_p dx - dtau_p,   dtau_a = Z_a dx - A_a.T dlambda

    q, qd and qdd count as independent variables. The results are tau_a and lambda, then
    the derivatives of tau_a by q, qd, qdd, tau_p and p, and the same of lambda. tau_a
    and tau_p are in the order of qd, whatever the order of `active`. A_p without full
    rank is a SingularError. An invalid path, point or entry of `active` raises
    UnsupportedError or ModelError when built.

    Inputs and outputs: those of LOOP_ID_DERIVATIVES; f_ext by body, the base first.

    Args:
        active: Names of the joints with motors; None: model.active_joints, without
            loops all joints. Another number of passive coordinates than rows is an
            UnsupportedError when built.
        residual: Largest residual of a row and of its derivatives [m | rad, and per s,
            s²], else an InfeasibleError; None: not checked.
        paths: Parameter paths p (model/parameter_paths.py).
        fixed: f_ext_fixed and f_ext_points; see the module.

    Source: KIM-3.1 (56)-(62), KIM-4.6, differentiated implicitly.
    """
    motors = motor_coordinates(model, active)
    a, p = ([k for k, x in enumerate(motors) if x == side] for side in (True, False))
    rows, n = rows_of(model, q, qd, qdd), range(model.nv)
    require_closed(rows, residual)
    A = jacobian_of(model, q, rows)
    whole = open_forces(model, q, qd, qdd, f_ext)
    A_p = Matrix([row[k] for k in p] for row in A.rows)
    floors = [RANK * slope for slope in gradient_slopes(model, q, rows, A)]
    names = dependence_items(rows, LEAST_INVERSE)
    factors = Factored(A_p @ A_p.T, floors, names)

    def divided(force):
        """Return tau_a, list, and lambda, m, for the open tree's `force`, nv."""
        x = factors.solve(A_p @ Vector(force[k] for k in p)) if rows else Vector(())
        taken = [Vector(row[k] for row in A.rows) @ x for k in a]
        return [force[k] - y for k, y in zip(a, taken, strict=True)], x

    def balance(force):
        """Return the joint forces `force`, nv, minus tau_p of passive joints."""
        passive = dict(zip(p, tau_p, strict=True))
        return Vector(force[k] - passive.get(k, 0.0) for k in n)

    tau_a, x = divided(balance(whole))
    motion = moving(model, q, qd, qdd, x, f_ext)
    changes = state_changes(model, motion, fixed)
    changes.append(unit_forces(model, len(rows), p))
    changes.append(parameter_changes(model, motion, paths, fixed))
    forces, multipliers = [], []
    for change in changes:
        answers = [divided(Z) for Z in change.Z]
        forces.append(_stacked([x for x, _ in answers], len(a)))
        multipliers.append(_stacked([y for _, y in answers], len(rows)))
    return Vector(tau_a), x, *forces, *multipliers


def _path_sizes(model, options):
    """Return {"m": rows of the loops, "k": numbers of the parameter paths}."""
    rows = sum(loop.rows for loop in model.loops)
    paths = options["paths"]
    return {"m": rows, "k": sum(parameter_paths.size(model, path) for path in paths)}


def _hybrid_sizes(model, options):
    """Return the sizes of the Ports: nu prescribed, nf others, and _path_sizes."""
    nu = sum(prescribed_coordinates(model, options["prescribed"]))
    return {"nu": nu, "nf": model.nv - nu, **_path_sizes(model, options)}


def _inverse_sizes(model, options):
    """Return the sizes of the Ports: na active, np passive, and _path_sizes.

    UnsupportedError unless rows and passive coordinates are as many.
    """
    reason = reason_not_square(model, options["active"])
    if reason is not None:
        raise UnsupportedError(f"loop_id_derivatives: {reason}")
    return {**inverse_sizes(model, options), **_path_sizes(model, options)}


def fd_derivatives_loops(model, q, qd, tau, f_ext, alpha, beta, **fixed):
    """Return the derivatives of aba_loops.

        d qdd = dqdd_dq dq + dqdd_dqd dqd + Hinv dtau

    The results are qdd, dqdd_dq, dqdd_dqd and Hinv. Hinv is the acceleration per joint
    force with closed loops, H^-1 - H^-1 A.T G^-1 A H^-1, with G = A H^-1 A.T; without
    loops the inverse of H.
    Rows of loops that depend on each other are a SingularError; an invalid point raises
    UnsupportedError or ModelError when built.

    Inputs and outputs: those of FD_DERIVATIVES; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: none.
        fixed: f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see the module.

    Source: as loop_fd_derivatives.
    """
    results = loop_fd_derivatives(
        model, q, qd, tau, f_ext, alpha, beta, None, paths=(), **fixed
    )
    return results[0], *results[2:5]


def fd_parameter_jacobian_loops(model, q, qd, tau, f_ext, alpha, beta, paths, **fixed):
    """Return the derivative of aba_loops by parameters of the Model.

        qdd(p + dp) = qdd + dqdd_dp dp

    The results are qdd and dqdd_dp. Rows of loops that depend on each other are a
    SingularError; an invalid path or point raises UnsupportedError or ModelError when
    built.

    Inputs and outputs: those of FD_PARAMETER_JACOBIAN; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: none.
        paths: Parameter paths (model/parameter_paths.py).
        fixed: f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see the module.

    Source: as loop_fd_derivatives.
    """
    results = loop_fd_derivatives(
        model, q, qd, tau, f_ext, alpha, beta, None, paths=paths, **fixed
    )
    return results[0], results[5]


def _parameter_sizes(model, options):
    """Return the sizes of the Ports: {"np": numbers of the parameter paths}."""
    return {"np": sum(parameter_paths.size(model, path) for path in options["paths"])}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rates = {"alpha": 0.0, "beta": 0.0}
    slot_options = {"alpha": DRIFT, "beta": DRIFT, **OPTIONS}
    valid = {**DEPENDENT, "tolerance": NUMBER, **VALID}
    slot = {"valid": valid, "by_joint": False, "closes_loops": True, "default": True}
    return [
        FixedForces(
            "fd_derivatives_loops",
            FD_DERIVATIVES,
            fd_derivatives_loops,
            options=slot_options,
            **slot,
        ),
        ByParameters(
            "fd_parameter_jacobian_loops",
            FD_PARAMETER_JACOBIAN,
            fd_parameter_jacobian_loops,
            options={"paths": (), **slot_options},
            sizes=_parameter_sizes,
            **slot,
        ),
        ByParameters(
            "loop_fd_derivatives",
            LOOP_FD_DERIVATIVES,
            loop_fd_derivatives,
            options={**rates, "tolerance": None, "paths": (), **OPTIONS},
            valid=valid,
            sizes=_path_sizes,
            by_joint=False,
        ),
        ByParameters(
            "loop_hd_derivatives",
            LOOP_HD_DERIVATIVES,
            loop_hd_derivatives,
            options={
                "prescribed": (),
                **rates,
                "tolerance": None,
                "paths": (),
                **OPTIONS,
            },
            valid={**valid, "prescribed": in_order},
            sizes=_hybrid_sizes,
            by_joint=False,
        ),
        ByParameters(
            "loop_id_derivatives",
            LOOP_ID_DERIVATIVES,
            loop_id_derivatives,
            options={"active": None, "residual": 1e-6, "paths": (), **OPTIONS},
            valid={"active": known_in_order, "residual": NUMBER, **VALID},
            sizes=_inverse_sizes,
            by_joint=False,
        ),
    ]
