"""Assembled derivatives: of hybrid dynamics, and of dynamics by parameters."""

from dyn_core import (
    FD_PARAMETER_JACOBIAN,
    HD_DERIVATIVES,
    HYBRID_DYNAMICS_MASKED,
    ID_DERIVATIVES,
    PARAMETER_JACOBIAN,
    Factored,
    Force,
    Matrix,
    TextSolver,
    UnsupportedError,
    Vector,
    hookimpl,
    join_v,
    split_q,
    split_v,
)
from dyn_core.model import parameters
from dyn_plugins._seeds import Direction, check_path, seeds
from dyn_plugins.aba import articulated, respond
from dyn_plugins.directional import inverse_along, spread
from dyn_plugins.hybrid import prescribed_coordinates
from dyn_plugins.rnea import body_forces


def hd_derivatives(
    model, q, qd, qdd_u, tau_v, f_ext, hybrid_dynamics, derivatives, prescribed
):
    """Give the derivatives of hybrid dynamics, from those of inverse dynamics.

        dqdd_v/dx = -H_vv^-1 Z_v,   dtau_u/dx = Z_u - H_uv H_vv^-1 Z_v
        dqdd_v/dtau_v = H_vv^-1,   dtau_u/dtau_v = H_uv H_vv^-1 = -(dqdd_v/dqdd_u).T
        dtau_u/dqdd_u = H_uu - H_uv H_vv^-1 H_vu

    with Z = dID/dx for x = q and x = qd, at the hybrid motion.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u, tau_v: Given accelerations, and forces of the other coordinates.
        f_ext: Force on each body, body coordinates [N·m; N], fixed to its body.
        hybrid_dynamics: Slot for hybrid dynamics by a mask.
        derivatives: Slot for the derivatives of inverse dynamics.
        prescribed: As in `hybrid`.

    Returns:
        tau_u and qdd_v; the derivatives of tau_u by q, qd, qdd_u and tau_v; those of
        qdd_v by the same.

    Source: KIM-4.6 (consistency identities).
    """
    held = prescribed_coordinates(model, prescribed)
    given, push = spread(held, qdd_u, tau_v)
    mask = Vector(float(h) for h in held)
    tau, qdd = hybrid_dynamics(q, qd, mask, given, push, f_ext[1:])
    dq, dqd, H = derivatives(q, qd, qdd, f_ext[1:])
    u, v = ([k for k, h in enumerate(held) if h == wanted] for wanted in (True, False))
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
    """Give some rows and columns of a matrix."""
    return Matrix([M[i, j] for j in columns] for i in rows)


def _width(M):
    return len(M.rows[0]) if M.rows else 0


def _of_columns(columns, height, width):
    """Give a matrix of columns, also where it has no entries."""
    return Matrix(columns).T if columns and height else Matrix.zeros(height, width)


def _through(row, Z, v):
    """Give a row of H_uv H_vv^-1 times the rows v of Z."""
    result = Vector.zeros(_width(Z))
    for x, k in zip(row, v, strict=True):
        result = result + Vector(Z.rows[k]) * x
    return result


def _factors(model, H, at):
    """Factor a part of the joint-space inertia; a singular pivot names its joint."""
    floors, items = {}, {}
    for i in model.independent:
        spots = range(model.v_slices[i].start, model.v_slices[i].stop)
        for k, floor in zip(spots, model.floors[i], strict=True):
            floors[k], items[k] = floor, f"joint {model.names[i]}"
    return Factored(H, [floors[k] for k in at], [items[k] for k in at])


def parameter_jacobian(model, q, qd, qdd, f_ext, paths):
    """Give the derivative of the joint forces by parameters of the Model.

        dtau = dtau_dp dp,   dp the changes of the paths' numbers, path after path

    One sweep of inverse dynamics' derivative for each number; what it cannot influence
    is zero and costs nothing.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        f_ext: Force on each body, body coordinates [N·m; N], fixed to its body.
        paths: Parameter paths (model/parameters.py).

    Returns:
        tau, nv, and dtau_dp, nv x the size of all paths.

    Source: KIM-4.6 (lists of parameters), each column by KIM-4.2 with the zeros of
    KIM-4.5.
    """
    at = seeds(model, q, qd, _still(model, f_ext))
    tau, _ = inverse_along(model, at, qdd, Vector.zeros(model.nv))
    return tau + at.taken, _stacked(model, _columns(model, q, qd, qdd, f_ext, paths))


def fd_parameter_jacobian(model, q, qd, tau, f_ext, paths):
    """Give the derivative of the accelerations by parameters of the Model.

        dqdd_dp = -H^-1 dtau_dp   at qdd = FD(q, qd, tau)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N], fixed to its body.
        paths: Parameter paths (model/parameters.py).

    Returns:
        qdd, nv, and dqdd_dp, nv x the size of all paths.

    Source: KIM-4.6.
    """
    at = seeds(model, q, qd, _still(model, f_ext))
    still, free = Vector.zeros(model.nv), [Force.zero()] * len(f_ext)
    motion = split_q(model, q), split_v(model, qd), split_v(model, still)
    _, _, p = body_forces(model, *motion, f_ext)
    felt, _ = articulated(model, at.X, at.S)
    qdd = join_v(model, respond(model, felt, tau - at.taken, p)[0])
    columns = [
        join_v(model, respond(model, felt, -column, free)[0])
        for column in _columns(model, q, qd, qdd, f_ext, paths)
    ]
    return qdd, _stacked(model, columns)


def _still(model, f_ext, **change):
    """Give the Direction in which only a parameter changes."""
    still, same = Vector.zeros(model.nv), [Force.zero()] * len(f_ext)
    return Direction(still, still, f_ext, same, **change)


def _columns(model, q, qd, qdd, f_ext, paths):
    """Give dtau by each number of the paths, at constant motion."""
    found, still = [], Vector.zeros(model.nv)
    for path in paths:
        for unit in Matrix.identity(parameters.size(model, path)).rows:
            along = _still(model, f_ext, dp=Vector(unit), parameter=path)
            at = seeds(model, q, qd, along)
            _, taken = inverse_along(model, at, qdd, still)
            found.append(taken + at.dtaken)
    return found


def _stacked(model, columns):
    """Give a matrix of columns, nv x n, also where there is none."""
    return Matrix(zip(*columns, strict=True)) if columns else Matrix([[]] * model.nv)


def _hybrid_sizes(model, options):
    held = prescribed_coordinates(model, options["prescribed"])
    return {"nu": sum(held), "nf": len(held) - sum(held)}


def _path_sizes(model, options):
    return {"np": sum(parameters.size(model, path) for path in options["paths"])}


class ByParameters(TextSolver):
    """A text of derivatives by a list of parameter paths."""

    def build(self, model, **choices):
        """Give a Program; a path without a derivative in it is refused."""
        paths, inputs = choices.get("paths", ()), choices.get("inputs", ())
        if isinstance(paths, str):
            raise UnsupportedError(
                f"{self.name}: paths is a list of parameter paths, got '{paths}';"
                f" valid: paths=['{paths}']"
            )
        inputs = (inputs,) if isinstance(inputs, str) else inputs
        rough = choices.get("joint_friction", False)
        for path in paths:
            check_path(self.name, model, path, rough, inputs)
        return super().build(model, **{**choices, "paths": tuple(paths)})


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    rows = (
        (PARAMETER_JACOBIAN, parameter_jacobian),
        (FD_PARAMETER_JACOBIAN, fd_parameter_jacobian),
    )
    by_parameters = [
        ByParameters(
            text.__name__,
            kind,
            text,
            options={"paths": ()},
            sizes=_path_sizes,
            by_joint=False,
        )
        for kind, text in rows
    ]
    slots = {
        "hybrid_dynamics": HYBRID_DYNAMICS_MASKED,
        "derivatives": ID_DERIVATIVES,
    }
    hybrid = TextSolver(
        "hd_derivatives",
        HD_DERIVATIVES,
        hd_derivatives,
        slots=slots,
        fills={"hybrid_dynamics": "hybrid_mask", "derivatives": "id_derivatives"},
        options={"prescribed": ()},
        sizes=_hybrid_sizes,
        by_joint=False,
    )
    return [hybrid, *by_parameters]
