"""The same derivatives along a direction by forward mode: production texts on Duals.

Nothing here knows how joints or bodies change: the texts of inverse, forward and hybrid
dynamics run unchanged, through the border, on numbers that carry a derivative.
"""

from dyn_core import (
    FD_DIRECTIONAL,
    FORWARD_DYNAMICS,
    HD_DIRECTIONAL,
    HYBRID_DYNAMICS_MASKED,
    ID_DIRECTIONAL,
    INVERSE_DYNAMICS,
    Force,
    Transform,
    Vector,
    cross3,
    duals,
    hookimpl,
    slope_of,
    split_q,
    value_of,
)
from dyn_plugins._seeds import (
    moved_model,
    moved_position,
    parameter_duals,
    points_by_body,
)
from dyn_plugins.directional import directional, spread
from dyn_plugins.hybrid import prescribed_coordinates


def _moved_forces(model, q, dq, f_ext, df_ext, changed, f_ext_fixed, f_ext_points):
    """Give external forces as Duals, carried along by what they stay fixed to."""
    f = [Force.of(duals(x, dx)) for x, dx in zip(f_ext, df_ext, strict=True)]
    if f_ext_fixed == "body":
        return f[1:]
    place = points_by_body(model, f_ext_points)
    start = _from_base(model, q)
    end = _from_base(moved_model(model, changed), moved_position(model, q, dq))
    for i in model.bodies:
        if f_ext_fixed == "base":
            f[i] = f[i] + end[i] @ (start[i].T @ f_ext[i]) - f_ext[i]
            continue
        turn, couple = end[i].E @ start[i].E.T, f_ext[i].ang
        push = turn @ f_ext[i].lin
        couple = turn @ (couple - cross3(place[i], f_ext[i].lin))
        f[i] = f[i] + Force(cross3(place[i], push) + couple, push) - f_ext[i]
    return f[1:]


def _from_base(model, q):
    """Give the transform from the base to each body."""
    at, X = split_q(model, q), [Transform.identity()]
    for i in model.bodies:
        XJ = model.joint[i].X(at[i])
        X.append(XJ @ model.Xtree[i] @ X[model.parent[i]])
    return X


def id_directional_forward_mode(
    model, q, qd, qdd, dq, dqd, dqdd, f_ext, df_ext, dp,
    inverse_dynamics, parameter, **fixed,
):  # fmt: skip
    """Give joint forces and their derivative: inverse dynamics on Duals.

        ID(x + eps dx) = tau + eps dtau

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        dq, dqd, dqdd: Their changes, nv each.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        inverse_dynamics: Slot for ID.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        tau and dtau, nv each [N·m | N].

    Source: KIM-4.2 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_duals(model, parameter, dp)
    f = _moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    state = moved_position(model, q, dq), duals(qd, dqd), duals(qdd, dqdd)
    tau = inverse_dynamics(*state, f, **changed)
    return value_of(tau), slope_of(tau)


def fd_directional_forward_mode(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp,
    forward_dynamics, parameter, **fixed,
):  # fmt: skip
    """Give accelerations and their derivative: forward dynamics on Duals.

        FD(x + eps dx) = qdd + eps dqdd

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        dq, dqd, dtau: Their changes, nv each.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        forward_dynamics: Slot for FD.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        qdd and dqdd, nv each [rad/s² | m/s²].

    Source: KIM-4.3 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_duals(model, parameter, dp)
    f = _moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    state = moved_position(model, q, dq), duals(qd, dqd), duals(tau, dtau)
    qdd = forward_dynamics(*state, f, **changed)
    return value_of(qdd), slope_of(qdd)


def hd_directional_forward_mode(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    hybrid_dynamics, prescribed, parameter, **fixed,
):  # fmt: skip
    """Give the results of hybrid dynamics and their derivative: on Duals.

        HD(x + eps dx) = (tau_u, qdd_v) + eps (dtau_u, dqdd_v)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u, tau_v: Given accelerations, and forces of the other coordinates.
        dq, dqd, dqdd_u, dtau_v: Their changes.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        hybrid_dynamics: Slot for hybrid dynamics by a mask.
        prescribed: As in `hybrid`.
        parameter: Path of the parameter, or None.
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        tau_u, qdd_v, dtau_u and dqdd_v.

    Source: KIM-4.4 by forward mode, KIM-4.1 number by number.
    """
    changed = parameter_duals(model, parameter, dp)
    f = _moved_forces(model, q, dq, f_ext, df_ext, changed, **fixed)
    held = prescribed_coordinates(model, prescribed)
    given = zip(spread(held, qdd_u, tau_v), spread(held, dqdd_u, dtau_v), strict=True)
    qdd, tau = (duals(x, dx) for x, dx in given)
    mask = Vector(float(h) for h in held)
    q, qd = moved_position(model, q, dq), duals(qd, dqd)
    tau, qdd = hybrid_dynamics(q, qd, mask, qdd, tau, f, **changed)
    tau = Vector(x for h, x in zip(held, tau, strict=True) if h)
    qdd = Vector(x for h, x in zip(held, qdd, strict=True) if not h)
    return value_of(tau), value_of(qdd), slope_of(tau), slope_of(qdd)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
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
            text.__name__, kind, text, slots={slot[of]: of}, fills={slot[of]: name}
        )
        for kind, text, of, name in rows
    ]
