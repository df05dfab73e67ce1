"""Derivatives of dynamics by the external forces on the bodies."""

from dyn_core.authoring import (
    Factored,
    Matrix,
    MotionSubspace,
    TracedSolver,
    Transform,
    Vector,
    hookimpl,
    join_columns,
    split_q,
)
from dyn_core.problems import FD_FORCE_JACOBIAN, ID_FORCE_JACOBIAN, MASS_MATRIX_INVERSE
from dyn_core.validation import Name
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of
from dyn_plugins.loops._rank import RANK, dependence_items, gradient_slopes


def id_force_jacobian(model, q, coordinates):
    """Return the derivative of the joint forces by the external forces.

        dtau = sum_i dtau_df_ext[:, i] df_ext_i,   dtau_df_ext[:, i] = -J_i.T

    The result is nv x nb x 6, body 1 first, by [moment; force].

    Inputs and outputs: those of ID_FORCE_JACOBIAN.

    Args:
        coordinates: Coordinates of the forces: body (each body's own), or base (about
            the base's origin); others raise UnsupportedError when the Program is built.

    Source: KIM-4.5 (external force), from RBDA, section 5.3.
    """
    return _by_coordinate(-M.T for M in _jacobians(model, q, coordinates))


def fd_force_jacobian(model, q, mass_matrix_inverse, coordinates):
    """Return the derivative of the accelerations by the external forces.

        dqdd = sum_i dqdd_df_ext[:, i] df_ext_i,   dqdd_df_ext[:, i] = H^-1 J_i.T

    The result is nv x nb x 6, body 1 first, by [moment; force]. A singular H raises
    SingularError when the Program runs.

    Inputs and outputs: those of FD_FORCE_JACOBIAN.

    Args:
        mass_matrix_inverse: Solver of MASS_MATRIX_INVERSE.
        coordinates: Coordinates of the forces: body (each body's own), or base (about
            the base's origin); others raise UnsupportedError when the Program is built.

    Source: KIM-4.5, KIM-4.6 (dqdd/dx = -H^-1 dID/dx).
    """
    Hinv = mass_matrix_inverse(q)
    return _by_coordinate(Hinv @ M.T for M in _jacobians(model, q, coordinates))


def fd_force_jacobian_loops(model, q, mass_matrix_inverse, coordinates):
    """Return the derivative of a closed robot's accelerations by the external forces.

        dqdd_df_ext[:, i] = P J_i.T,   P = H^-1 - H^-1 A.T G^-1 A H^-1,   G = A H^-1 A.T

    The result is nv x nb x 6, body 1 first, by [moment; force]. A has the rows of the
    loops. Linearly dependent rows and a singular H raise SingularError when the Program
    runs; without loops the result is that of fd_force_jacobian.

    Inputs and outputs: those of FD_FORCE_JACOBIAN.

    Args:
        mass_matrix_inverse: Solver of MASS_MATRIX_INVERSE, for the open tree.
        coordinates: Coordinates of the forces: body (each body's own), or base (about
            the base's origin); others raise UnsupportedError when the Program is built.

    Source: KIM-3.2 (67)-(69), differentiated.
    """
    P, still = mass_matrix_inverse(q), Vector.zeros(model.nv)
    rows = rows_of(model, q, still, still)
    if rows:
        A = jacobian_of(model, q, rows)
        W = A @ P
        G = W @ A.T
        slopes = gradient_slopes(model, q, rows, W)
        floors = [RANK * slope for slope in slopes]
        factors = Factored(G, floors, dependence_items(rows))
        P = P - W.T @ Matrix(factors.solve(w) for w in W.T.rows).T
    return _by_coordinate(P @ M.T for M in _jacobians(model, q, coordinates))


def _jacobians(model, q, coordinates):
    """Yield each body's Jacobian, a Matrix 6 x nv, [angular; linear], bodies in order.

    coordinates: "base": about the base's origin; else body coordinates.
    """
    parts, X, columns = split_q(model, q), [Transform.identity()], [{}]
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        X_p = joint.X(parts[i]) @ model.Xtree[i]
        X.append(X_p @ X[p])
        S = joint.S(parts[i])
        if coordinates == "base":
            S = MotionSubspace(X[i].inverse @ column for column in S)
            columns.append({**columns[p], i: S})
        else:
            moved = {
                j: MotionSubspace(X_p @ column for column in subspace)
                for j, subspace in columns[p].items()
            }
            columns.append({**moved, i: S})
        yield join_columns(model, columns[i])


def _by_coordinate(blocks):
    """Return a list [nv][nb] of rows of six numbers, from nb Matrices nv x 6."""
    return list(zip(*(M.rows for M in blocks), strict=True))


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    common = {
        "options": {"coordinates": "body"},
        "valid": {"coordinates": Name(("body", "base"))},
        "by_joint": False,
        "default": True,
    }
    inverse = {
        "slots": {"mass_matrix_inverse": MASS_MATRIX_INVERSE},
        "fills": {"mass_matrix_inverse": "mass_matrix_inverse"},
        **common,
    }
    return [
        TracedSolver(
            "id_force_jacobian", ID_FORCE_JACOBIAN, id_force_jacobian, **common
        ),
        TracedSolver(
            "fd_force_jacobian", FD_FORCE_JACOBIAN, fd_force_jacobian, **inverse
        ),
        TracedSolver(
            "fd_force_jacobian_loops",
            FD_FORCE_JACOBIAN,
            fd_force_jacobian_loops,
            closes_loops=True,
            **inverse,
        ),
    ]
