"""Assembled derivatives: of hybrid dynamics, and of dynamics by parameters."""

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Vector,
    hookimpl,
    join_v,
    split_q,
    split_v,
)
from dyn_core.model import parameter_paths
from dyn_core.problems import (
    FD_PARAMETER_JACOBIAN,
    HD_DERIVATIVES,
    HYBRID_DYNAMICS_MASKED,
    ID_DERIVATIVES,
    PARAMETER_JACOBIAN,
)
from dyn_plugins.derivatives._fixed_forces import (
    OPTIONS,
    VALID,
    FixedForces,
    with_fixed_forces,
)
from dyn_plugins.derivatives._seeds import Direction, checked_paths, seeds
from dyn_plugins.derivatives.directional_derivatives import inverse_along
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
)
from dyn_plugins.dynamics.hybrid import in_order, prescribed_coordinates, spread
from dyn_plugins.dynamics.rnea import body_forces


def hd_derivatives(
    model, q, qd, qdd_u, tau_v, f_ext, hybrid_dynamics, derivatives,
    prescribed, **fixed,
):  # fmt: skip
    """Return tau_u, qdd_v and their derivatives, by inverse dynamics.

        dqdd_v/dx = -H_vv^-1 Z_v,   dtau_u/dx = Z_u - H_uv H_vv^-1 Z_v
        dqdd_v/dtau_v = H_vv^-1,   dtau_u/dtau_v = H_uv H_vv^-1 = -(dqdd_v/dqdd_u).T
        dtau_u/dqdd_u = H_uu - H_uv H_vv^-1 H_vu

    with Z = dID/dx for x = q and x = qd, at the hybrid motion. A singular H_vv raises
    SingularError with the joint's name when the Program runs; an invalid point or entry
    of `prescribed` raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of HD_DERIVATIVES; f_ext by body, the base first. After
    tau_u and qdd_v come the derivatives of tau_u by q, qd, qdd_u and tau_v, then of
    qdd_v by the same. u are the prescribed coordinates, v the others, both in the order
    of qd.

    Args:
        hybrid_dynamics: Solver of HYBRID_DYNAMICS_MASKED.
        derivatives: Solver of ID_DERIVATIVES.
        prescribed: Names of joints whose acceleration is given, or pairs (joint, index
            of its coordinate); see hybrid.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.6 (consistency identities).
    """
    mask = prescribed_coordinates(model, prescribed)
    qdd, push = spread(mask, qdd_u, tau_v)
    flags = Vector(float(flag) for flag in mask)
    tau, qdd = hybrid_dynamics(q, qd, flags, qdd, push, f_ext[1:])
    dq, dqd, H = derivatives(q, qd, qdd, f_ext[1:])
    dq = with_fixed_forces(model, dq, q, f_ext, **fixed)
    u, v = (
        [k for k, flag in enumerate(mask) if flag == side] for side in (True, False)
    )
    every = range(model.nv)
    factors = _factors(model, _part(H, v, v), v)
    H_uv, inverse = _part(H, u, v), factors.inverse()
    across = [factors.solve(row) for row in H_uv.rows]  # H_uv H_vv^-1, by rows
    force_u, move_u = [], []
    for Z in (dq, dqd, _part(H, every, u)):
        columns = list(zip(*_part(Z, v, range(_width(Z))).rows, strict=True))
        moved = [-factors.solve(c) for c in columns] if v else []
        move_u.append(_of_columns(moved, len(v), _width(Z)))
        rows = [
            Vector(Z.rows[k]) - _through(row, Z, v)
            for k, row in zip(u, across, strict=True)
        ]
        force_u.append(Matrix(rows))
    move_u[2] = -Matrix(across).T if across and v else _of_columns([], len(v), len(u))
    taken = Vector(tau[k] for k in u), Vector(qdd[k] for k in v)
    return (*taken, *force_u, Matrix(across), *move_u, inverse)


def _part(M, rows, columns):
    """Return the Matrix of M's entries in the given rows and columns, indices."""
    return Matrix([M[i, j] for j in columns] for i in rows)


def _width(M):
    return len(M.rows[0]) if M.rows else 0


def _of_columns(columns, height, width):
    """Return the Matrix of columns; zeros (height, width) if it has no entries."""
    return Matrix(columns).T if columns and height else Matrix.zeros(height, width)


def _through(row, Z, v):
    """Return `row`, of H_uv H_vv^-1, times the rows of Z with the indices v."""
    result = Vector.zeros(_width(Z))
    for x, k in zip(row, v, strict=True):
        result = result + Vector(Z.rows[k]) * x
    return result


def _factors(model, H, indices):
    """Return the Factored block of the joint-space inertia at `indices` in qd.

    A singular pivot raises SingularError and names its joint when the Program runs.
    """
    pivot_tolerances, items = {}, {}
    for i in model.independent:
        spots = range(model.v_slices[i].start, model.v_slices[i].stop)
        for k, floor in zip(spots, model.pivot_tolerances[i], strict=True):
            pivot_tolerances[k], items[k] = floor, f"joint {model.names[i]}"
    return Factored(
        H, [pivot_tolerances[k] for k in indices], [items[k] for k in indices]
    )


def parameter_jacobian(model, q, qd, qdd, f_ext, paths, **fixed):
    """Return the joint forces and their derivative by parameters of the Model.

        dtau = dtau_dp dp,   dp the changes of the paths' numbers, path after path

    One sweep of inverse dynamics' derivative for each number; terms that do not depend
    on it are zero and cost nothing. An invalid path or point raises UnsupportedError or
    ModelError when the Program is built.

    Inputs and outputs: those of PARAMETER_JACOBIAN; f_ext by body, the base first.

    Args:
        paths: Parameter paths (model/parameter_paths).
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move (a joint's origin moves the bodies behind it), and points of action;
            see id_directional.

    Source: KIM-4.6 (lists of parameters), each column by KIM-4.2 with the zeros of
    KIM-4.5.
    """
    seed = seeds(model, q, qd, _still(model, f_ext))
    tau, _ = inverse_along(model, seed, qdd, Vector.zeros(model.nv))
    columns = _columns(model, q, qd, qdd, f_ext, paths, fixed)
    return tau + seed.taken, _stacked(model, columns)


def fd_parameter_jacobian(model, q, qd, tau, f_ext, paths, **fixed):
    """Return the accelerations and their derivative by parameters of the Model.

        dqdd_dp = -H^-1 dtau_dp   at qdd = FD(q, qd, tau)

    A singular joint inertia raises SingularError when the Program runs; an invalid path
    or point raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of FD_PARAMETER_JACOBIAN; f_ext by body, the base first.

    Args:
        paths: Parameter paths (model/parameter_paths).
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move (a joint's origin moves the bodies behind it), and points of action;
            see id_directional.

    Source: KIM-4.6.
    """
    seed = seeds(model, q, qd, _still(model, f_ext))
    still, free = Vector.zeros(model.nv), [Force.zero()] * len(f_ext)
    motion = split_q(model, q), split_v(model, qd), split_v(model, still)
    _, _, p = body_forces(model, *motion, f_ext)
    joints, _ = articulated_joints(model, seed.X, seed.S)
    push = tau - seed.taken
    qdd = join_v(model, accelerations_from_forces(model, joints, push, p).qdd)
    columns = [
        join_v(model, accelerations_from_forces(model, joints, -column, free).qdd)
        for column in _columns(model, q, qd, qdd, f_ext, paths, fixed)
    ]
    return qdd, _stacked(model, columns)


def _still(model, f_ext, **change):
    """Return the Direction without motion and without changes of forces."""
    still, same = Vector.zeros(model.nv), [Force.zero()] * len(f_ext)
    return Direction(still, still, f_ext, same, **change)


def _columns(model, q, qd, qdd, f_ext, paths, fixed):
    """Return a list of dtau, nv, for each number of the paths, at constant motion.

    f_ext: By body, entry 0 for the base, body coordinates; fixed: f_ext_fixed and
    f_ext_points.
    """
    columns, still = [], Vector.zeros(model.nv)
    for path in paths:
        for unit in Matrix.identity(parameter_paths.size(model, path)).rows:
            change = {"dp": Vector(unit), "parameter": path, **fixed}
            along = _still(model, f_ext, **change)
            seed = seeds(model, q, qd, along)
            _, taken = inverse_along(model, seed, qdd, still)
            columns.append(taken + seed.dtaken)
    return columns


def _stacked(model, columns):
    """Return the Matrix nv x n of n columns; nv x 0 for none."""
    return Matrix(zip(*columns, strict=True)) if columns else Matrix([[]] * model.nv)


def _hybrid_sizes(model, options):
    mask = prescribed_coordinates(model, options["prescribed"])
    return {"nu": sum(mask), "nf": len(mask) - sum(mask)}


def _path_sizes(model, options):
    return {"np": sum(parameter_paths.size(model, path) for path in options["paths"])}


class ByParameters(FixedForces):
    """Solver of derivatives by the option `paths`, a list of parameter paths."""

    def build(self, model, **choices):
        """Return a Program; without paths, the derivative has no columns.

        choices: Options of FixedForces.build, and paths. Raises UnsupportedError for a
        path without a derivative or `paths` that are a string or not iterable,
        ModelError for an unknown path, and the errors of FixedForces.build.
        """
        closed = self.closes_loops or self.signature.name.startswith("loop")
        paths = checked_paths(self.name, model, choices, closed)
        return super().build(model, **{**choices, "paths": paths})


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rows = (
        (PARAMETER_JACOBIAN, parameter_jacobian),
        (FD_PARAMETER_JACOBIAN, fd_parameter_jacobian),
    )
    by_parameters = [
        ByParameters(
            algorithm.__name__,
            kind,
            algorithm,
            options={"paths": (), **OPTIONS},
            valid=VALID,
            sizes=_path_sizes,
            by_joint=False,
            default=True,
        )
        for kind, algorithm in rows
    ]
    slots = {
        "hybrid_dynamics": HYBRID_DYNAMICS_MASKED,
        "derivatives": ID_DERIVATIVES,
    }
    hybrid = FixedForces(
        "hd_derivatives",
        HD_DERIVATIVES,
        hd_derivatives,
        slots=slots,
        fills={"hybrid_dynamics": "hybrid_mask", "derivatives": "id_derivatives"},
        options={"prescribed": (), **OPTIONS},
        valid={"prescribed": in_order, **VALID},
        sizes=_hybrid_sizes,
        by_joint=False,
    )
    return [hybrid, *by_parameters]
