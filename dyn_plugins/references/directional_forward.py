"""Derivatives along a direction by forward mode: the algorithms on Taylor numbers.

No derivative of a joint or body is written here: the algorithms of inverse, forward and
hybrid dynamics run unchanged, through the adapter, on numbers that carry a derivative.
"""

from dyn_core.authoring import Vector, hookimpl, slope_of, value_of, with_slopes
from dyn_core.problems import (
    FD_DIRECTIONAL,
    FORWARD_DYNAMICS,
    HD_DIRECTIONAL,
    HYBRID_DYNAMICS_MASKED,
    ID_DIRECTIONAL,
    INVERSE_DYNAMICS,
)
from dyn_plugins.derivatives._moved_forces import moved_forces
from dyn_plugins.derivatives._seeds import moved_position, parameter_along
from dyn_plugins.derivatives.directional_derivatives import directional
from dyn_plugins.dynamics.hybrid import part_where, prescribed_coordinates, spread


def id_directional_forward_mode(
    model, q, qd, qdd, dq, dqd, dqdd, f_ext, df_ext, dp,
    inverse_dynamics, parameter, **fixed,
):  # fmt: skip
    """Return joint forces and their derivative: inverse dynamics on Taylor numbers.

        ID(x + eps dx) = tau + eps dtau

    An invalid parameter or point raises UnsupportedError or ModelError when the Program
    is built.

    Inputs and outputs: those of ID_DIRECTIONAL; f_ext and df_ext by body, the base
    first.

    Args:
        inverse_dynamics: Solver of INVERSE_DYNAMICS.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.2 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_along(model, parameter, dp)
    f = moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    state = moved_position(model, q, dq), with_slopes(qd, dqd), with_slopes(qdd, dqdd)
    tau = inverse_dynamics(*state, f, **changed)
    return value_of(tau), slope_of(tau)


def fd_directional_forward_mode(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp,
    forward_dynamics, parameter, **fixed,
):  # fmt: skip
    """Return accelerations and their derivative: forward dynamics on Taylor numbers.

        FD(x + eps dx) = qdd + eps dqdd

    A singular joint inertia raises SingularError when the Program runs; an invalid
    parameter or point raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of FD_DIRECTIONAL; f_ext and df_ext by body, the base
    first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.3 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_along(model, parameter, dp)
    f = moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    state = moved_position(model, q, dq), with_slopes(qd, dqd), with_slopes(tau, dtau)
    qdd = forward_dynamics(*state, f, **changed)
    return value_of(qdd), slope_of(qdd)


def hd_directional_forward_mode(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    hybrid_dynamics, prescribed, parameter, **fixed,
):  # fmt: skip
    """Return the results of hybrid dynamics and their derivative: on Taylor numbers.

        HD(x + eps dx) = (tau_u, qdd_v) + eps (dtau_u, dqdd_v)

    A singular inertia of the joints without given accelerations raises SingularError
    when the Program runs; an invalid parameter, point or entry of `prescribed` raises
    UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of HD_DIRECTIONAL, so the result is tau_u, qdd_v, dtau_u,
    dqdd_v; u are the prescribed coordinates, v the others, both in the order of qd;
    f_ext and df_ext by body, the base first.

    Args:
        hybrid_dynamics: Solver of HYBRID_DYNAMICS_MASKED.
        prescribed: Names of joints whose acceleration is given, or pairs (joint, index
            of its coordinate); see hybrid.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.4 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_along(model, parameter, dp)
    f = moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    rigid = prescribed_coordinates(model, prescribed)
    values, changes = spread(rigid, qdd_u, tau_v), spread(rigid, dqdd_u, dtau_v)
    qdd, tau = (with_slopes(x, dx) for x, dx in zip(values, changes, strict=True))
    mask = Vector(float(x) for x in rigid)
    q, qd = moved_position(model, q, dq), with_slopes(qd, dqd)
    tau, qdd = hybrid_dynamics(q, qd, mask, qdd, tau, f, **changed)
    tau, qdd = part_where(rigid, True, tau), part_where(rigid, False, qdd)
    return value_of(tau), value_of(qdd), slope_of(tau), slope_of(qdd)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rows = (
        (ID_DIRECTIONAL, id_directional_forward_mode, INVERSE_DYNAMICS, "rnea"),
        (FD_DIRECTIONAL, fd_directional_forward_mode, FORWARD_DYNAMICS, "aba"),
        (HD_DIRECTIONAL, hd_directional_forward_mode, HYBRID_DYNAMICS_MASKED,
         "hybrid_mask"),
    )  # fmt: skip
    slot = {
        INVERSE_DYNAMICS: "inverse_dynamics",
        FORWARD_DYNAMICS: "forward_dynamics",
        HYBRID_DYNAMICS_MASKED: "hybrid_dynamics",
    }
    return [
        directional(
            algorithm.__name__,
            kind,
            algorithm,
            slots={slot[of]: of},
            fills={slot[of]: name},
            reference=True,
        )
        for kind, algorithm, of, name in rows
    ]
