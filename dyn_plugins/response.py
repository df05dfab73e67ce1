"""What forces do to the motion of a tree, without H: responses of bodies.

All start from the articulated inertias of `aba`. An increment of force on a body
changes accelerations (and, taken over an instant, velocities) linearly; increments of
classical and of spatial acceleration are the same. For rows of constraints the changes
that each row causes meet at the joints they have in common:

    J_k H^-1 J_l.T = sum over clusters g of u_gk.T D_g^-1 u_gl

where u_gk is the joint force at g of a unit force along row k, carried to the base.
"""

from dyn_core import (
    CROSS_RESPONSE,
    RESPONSE,
    SELF_RESPONSES,
    Force,
    Matrix,
    TextSolver,
    Vector,
    hookimpl,
    join_v,
)
from dyn_plugins.aba import articulated, respond


def joints(model, q):
    """Give each body's transform from its parent, and its joint's motion subspace."""
    X, S = [None], [None]
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        S.append(model.joint[i].S(q[i]))
    return X, S


def response(model, q, tau, f_ext):
    """Give the changes of acceleration that changes of force cause: two O(n) sweeps.

        dqdd = H^-1 (tau + sum_i J_i.T f_ext_i),   da_i = J_i dqdd

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        tau: Changes of joint forces, nv [N·m | N].
        f_ext: Change of force on each body, body coordinates [N·m; N].

    Returns:
        Changes of qdd, nv, and of each body's acceleration, nb x 6, body coordinates.

    Source: TAZZ-6.1, TAZZ-6.4.
    """
    X, S = joints(model, q)
    felt, _ = articulated(model, X, S)
    qdd, a, _ = respond(model, felt, join_v(model, tau), [-f for f in f_ext])
    return qdd, a[1:]


def self_responses(model, q):
    """Give each body's acceleration for unit forces on it: inverse inertias, O(n).

        da_i = Omega_ii df_i,   Omega_ii = -Theta_i = J_i H^-1 J_i.T
        Omega_c = T Omega_p T.T + J_c D^-1 J_c.T,   T = X_cp - J_c D^-1 U.T

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].

    Returns:
        Omega_ii of all bodies, nb x 6 x 6, body coordinates, [angular; linear].

    Source: TAZZ-6.2, TAZZ-6.4.
    """
    X, S = joints(model, q)
    omega = [Matrix.zeros(6, 6)] * (model.nb + 1)
    for felt in articulated(model, X, S)[0]:
        hinge, inverse = felt.hinge, felt.D.inverse()
        up = hinge.X.matrix()
        free = up @ omega[felt.cluster.parent] @ up.T
        for i in felt.cluster.bodies:
            if not inverse.rows:
                T, share = hinge.X_of[i].matrix(), Matrix.zeros(6, 6)
            else:
                J, U = _columns(hinge.J[i]), _columns(felt.U)
                T = hinge.X_of[i].matrix() - J @ inverse @ U.T
                share = J @ inverse @ J.T
            omega[i] = _evened(T @ free @ T.T + share)
    return omega[1:]


def _columns(subspace):
    """Give a subspace as a matrix of rows."""
    return Matrix(zip(*subspace, strict=True))


def _evened(M):
    """Give a symmetric matrix from one that is so up to rounding."""
    n = range(M.shape[0])
    return Matrix([M[max(i, j), min(i, j)] for j in n] for i in n)


def felt_above(model, felt, body, force):
    """Give what a unit row on a body is felt as at each cluster towards the base.

    Args:
        model: Robot.
        felt: Of `articulated`.
        body: Number of the body.
        force: Force on it, body coordinates.

    Returns:
        By number of the cluster: joint force u of its coordinates.
    """
    number = {i: k for k, here in enumerate(felt) for i in here.cluster.bodies}
    found, i = {}, body
    while i:
        k = number[i]
        here = felt[k]
        u = here.yielding(here.hinge.J[i].T @ force)
        found[k] = u
        if here.cluster.parent:
            push = here.U @ here.D.solve(u)
            force = here.hinge.X.T @ (here.hinge.X_of[i].T @ force - push)
        i = here.cluster.parent
    return found


def merged(parts):
    """Add up what several pushes of one row are felt as."""
    found = {}
    for part in parts:
        for k, u in part.items():
            found[k] = found[k] + u if k in found else u
    return found


def joint_row(model, felt, i, size=1.0):
    """Give what a joint force on the joint of body i is felt as towards the base."""
    number = {b: k for k, here in enumerate(felt) for b in here.cluster.bodies}
    k = number[i]
    here = felt[k]
    u = here.yielding(Vector(here.hinge.ratio[i].rows[0]) * size)
    p = here.cluster.parent
    if not p:
        return {k: u}
    force = here.hinge.X.T @ (-(here.U @ here.D.solve(u)))
    return {**felt_above(model, felt, p, force), k: u}


def meet(felt, rows):
    """Give the matrix of responses between rows, each a dict of u by cluster."""
    halves = [{k: felt[k].D.halves(u) for k, u in row.items()} for row in rows]

    def entry(a, b):
        common = sorted(halves[a].keys() & halves[b].keys())
        x = 0.0
        for k in common:
            x = x + halves[a][k][0] @ halves[b][k][1]
        return x

    n = range(len(rows))
    low = [[entry(a, b) for b in range(a + 1)] for a in n]
    return Matrix([low[max(a, b)][min(a, b)] for b in n] for a in n)


def cross_response(model, q, moved, pushed):
    """Give the acceleration of one frame for unit forces on another.

        da_moved = Omega df_pushed,   Omega = J_moved H^-1 J_pushed.T

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        moved: Name of the link whose acceleration is wanted.
        pushed: Name of the link that the force acts on.

    Returns:
        Omega, 6 x 6, each side in its link's coordinates, [angular; linear].

    Source: TAZZ-6.3, TAZZ-6.4: clusters add what siblings that share a coordinate do.
    """
    X, S = joints(model, q)
    felt, _ = articulated(model, X, S)
    sides = []
    for name in (moved, pushed):
        frame = model.frame(name)
        unit = [Force.of(row) for row in Matrix.identity(6).rows]
        forces = [frame.X.T @ f for f in unit]
        sides.append([felt_above(model, felt, frame.body, f) for f in forces])
    rows = []
    for left in sides[0]:
        rows.append([])
        for right in sides[1]:
            x = 0.0
            for k in sorted(left.keys() & right.keys()):
                x = x + left[k] @ felt[k].D.solve(right[k])
            rows[-1].append(x)
    return rows


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    pair = {"moved": "", "pushed": ""}
    return [
        TextSolver("response", RESPONSE, response, regrouped=True),
        TextSolver("self_responses", SELF_RESPONSES, self_responses, regrouped=True),
        TextSolver(
            "cross_response",
            CROSS_RESPONSE,
            cross_response,
            options=pair,
            regrouped=True,
        ),
    ]
