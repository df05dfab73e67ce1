"""Responses of the bodies of a tree to forces, without H.

All solvers start from articulated joints. An increment of force on a body changes
accelerations (and, over an instant, velocities) linearly; increments of classical and
of spatial acceleration are equal.
"""

from dyn_core.authoring import (
    Force,
    Matrix,
    Required,
    TracedSolver,
    hookimpl,
    join_v,
)
from dyn_core.problems import CROSS_RESPONSE, RESPONSE, SELF_RESPONSES
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    joint_transforms,
    propagate_to_base,
)


def response(model, q, tau, f_ext):
    """Return the changes of acceleration that changes of force cause: two O(n) sweeps.

        dqdd = H^-1 (tau + sum_i J_i.T f_ext_i),   da_i = J_i dqdd

    tau and f_ext are the changes of force. The first result is dqdd, the second da,
    nb x 6 without the base, in body coordinates. A singular joint inertia raises
    SingularError when the Program runs.

    Inputs and outputs: those of RESPONSE; q, tau, f_ext and qdd by body, the base
    first.

    Source: TAZZ-6.1, TAZZ-6.4.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    push = [-f for f in f_ext]
    change = accelerations_from_forces(model, joints, join_v(model, tau), push)
    return change.qdd, change.a[1:]


def self_responses(model, q):
    """Return each body's acceleration for unit forces on it: inverse inertias, O(n).

        da_i = Omega_ii df_i,   Omega_ii = -Theta_i = J_i H^-1 J_i.T
        Omega_c = T Omega_p T.T + J_c D^-1 J_c.T,   T = X_cp - J_c D^-1 U.T

    The result is a list, nb, of the 6 x 6 Omega_ii over [angular; linear], in
    coordinates of body i. A singular joint inertia raises SingularError when the
    Program runs.

    Inputs and outputs: those of SELF_RESPONSES; q by body, the base first.

    Source: TAZZ-6.2, TAZZ-6.4.
    """
    X, S = joint_transforms(model, q)
    omega = [Matrix.zeros(6, 6)] * (model.nb + 1)
    for joint in articulated_joints(model, X, S)[0]:
        X_p, half, over_D = joint.X.matrix(), joint.D.inverse_of_L(), joint.D.over_D
        free = X_p @ omega[joint.parent] @ X_p.T
        for i in joint.bodies:
            if not over_D:
                T, share = joint.X_of[i].matrix(), Matrix.zeros(6, 6)
            else:
                J, U = _columns(joint.J[i] @ half), _columns(joint.U @ half)
                scaled = J @ Matrix.diagonal(over_D)
                T = joint.X_of[i].matrix() - scaled @ U.T
                share = scaled @ J.T
            omega[i] = _symmetric(T @ free @ T.T + share)
    return omega[1:]


def _columns(subspace):
    """Return a subspace, not empty, as a Matrix of 6 rows, its elements as columns."""
    return Matrix(zip(*subspace, strict=True))


def _symmetric(M):
    """Return square M with its lower triangle copied to the upper: symmetric."""
    n = range(M.shape[0])
    return Matrix([M[max(i, j), min(i, j)] for j in n] for i in n)


def cross_response(model, q, moved, pushed):
    """Return the acceleration of one frame for unit forces on another.

        da_moved = Omega df_pushed,   Omega = J_moved H^-1 J_pushed.T

    Omega is 6 x 6, of [angular; linear] by [moment; force], zeros if one of the links
    is fixed to the base. Acceleration and force are each in the coordinates of their
    link. A singular joint inertia raises SingularError when the Program runs.

    Inputs and outputs: those of CROSS_RESPONSE; q by body, the base first.

    Args:
        moved: Name of the link whose acceleration is returned.
        pushed: Name of the link that the force acts on. An unknown link raises
            ModelError, by the engine native when the Program is built, by plain and
            graph when it is called.

    Source: TAZZ-6.3, TAZZ-6.4: in clusters, siblings that share a coordinate
    contribute.
    """
    X, S = joint_transforms(model, q)
    joints, _ = articulated_joints(model, X, S)
    sides = []
    for name in (moved, pushed):
        frame = model.frame(name)
        unit = [Force.of(row) for row in Matrix.identity(6).rows]
        forces = [frame.X.T @ f for f in unit]
        sides.append([propagate_to_base(model, joints, frame.body, f) for f in forces])
    rows = []
    for left in sides[0]:
        rows.append([])
        for right in sides[1]:
            x = 0.0
            for k in sorted(left.keys() & right.keys()):
                x = x + left[k] @ joints[k].D.solve(right[k])
            rows[-1].append(x)
    return rows


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    pair = {
        "moved": Required("the name of a link"),
        "pushed": Required("the name of a link"),
    }
    return [
        TracedSolver("response", RESPONSE, response, regrouped=True),
        TracedSolver("self_responses", SELF_RESPONSES, self_responses, regrouped=True),
        TracedSolver(
            "cross_response",
            CROSS_RESPONSE,
            cross_response,
            options=pair,
            regrouped=True,
        ),
    ]
