"""Forward dynamics by classical accelerations: the articulated bodies of tazz.

A body's acceleration is that of its own origin, r'' in its own axes, and the wrench it
feels is F = Ihat A + Zhat. The same numbers as by spatial accelerations, another way:

    Zhat = pA - Ihat k,   C_hat = c + k_c - X k_p,   k = (0; w x v)
"""

from dyn_core import (
    ARTICULATED_BODIES,
    FORWARD_DYNAMICS,
    Force,
    Matrix,
    Motion,
    TextSolver,
    Vector,
    cross3,
    hookimpl,
    join_v,
)
from dyn_core.spatial.classical import Pose, velocity_product
from dyn_plugins.aba import articulated
from dyn_plugins.response import joints


def gyroscopic(I, w):
    """Give the wrench that rotation alone takes, about any origin.

        Z = (w x J_O w;  m w x (w x c))

    Args:
        I: RigidInertia of the body.
        w: Angular velocity, 3 [rad/s], body axes.

    Source: TAZZ-3.1.
    """
    return Force(cross3(w, I.I @ w), cross3(w, cross3(w, I.h)))


def velocity_products(model, q, qd):
    """Give each body's velocity, and C_hat: what velocities add to its acceleration.

        V_c = X_cp V_p + J qd,   A_c = X_cp A_p + C_hat + J qdd

    The joint's socket is Xtree and its plug the body's own frame: links that hang on
    their joint elsewhere are frames of the body.

    Args:
        model: Robot.
        q, qd: Joint positions and velocities, by joint.

    Returns:
        By body: velocity [rad/s; m/s], and C_hat [rad/s²; m/s²], body axes.

    Source: TAZZ-2.1, TAZZ-2.2, TAZZ-2.3, TAZZ-2.4, TAZZ-2.5.
    """
    V, C = [Motion.zero()], [Motion.zero()]
    plug = Pose.identity()
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        X_J = joint.X(q[i])
        socket, moved = Pose.of_transform(model.Xtree[i]), Pose.of_transform(X_J)
        vJ, cJ = joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        V.append(X_J @ model.Xtree[i] @ V[p] + vJ)
        # Socket axes: J qd turns with the plug, so its rate gains w_J x v_J.
        v_jj, w_jj = moved.R @ vJ.lin, moved.R @ vJ.ang
        rate = Motion(moved.R @ cJ.ang, moved.R @ (cJ.lin + cross3(vJ.ang, vJ.lin)))
        w_p, w_c = V[p].ang, V[i].ang
        C.append(velocity_product(w_p, socket, moved, v_jj, w_jj, plug, w_c, rate))
    return V, C


def articulated_bodies(model, q, qd, tau, f_ext):
    """Give the motion that joint forces cause, and what each articulated body feels.

        F_i = Ihat_i A_i + Zhat_i,   S_i.T F_i = tau_i - armature_i qdd_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        qdd, nv; A, nb x 6, classical accelerations [rad/s²; m/s²]; F, nb x 6, the force
        that the parent exerts through the joint [N·m; N]; Ihat, nb x 6 x 6, and Zhat,
        nb x 6: inertia and force without acceleration of the articulated body. All in
        body coordinates. In a cluster Ihat and Zhat leave out its other bodies.

    Source: TAZZ-3.2, TAZZ-3.3, TAZZ-3.4, TAZZ-3.5, TAZZ-3.6, TAZZ-3.7; with gears
    TAZZ-5.1, TAZZ-5.3.
    """
    X, S = joints(model, q)
    felt, inertia = articulated(model, X, S)
    V, C = velocity_products(model, q, qd)
    Z, g = [Force.zero()], [model.a_grav]
    for i in model.bodies:
        g.append(X[i] @ g[model.parent[i]])
        weight = model.I[i] @ Motion(Vector.zeros(3), g[i].lin)
        Z.append(gyroscopic(model.I[i], V[i].ang) - f_ext[i] - weight)
    values, u, C_of = join_v(model, tau), [None] * len(felt), list(C)
    for k in reversed(range(len(felt))):
        here, p = felt[k], felt[k].cluster.parent
        for i in here.cluster.bodies:
            if model.parent[i] != p:
                C_of[i] = X[i] @ C_of[model.parent[i]] + C[i]
        still = {i: inertia[i] @ C_of[i] + Z[i] for i in here.cluster.bodies}
        u[k] = here.coordinates(values) - here.along(still)
        if p:
            passed = here.gathered(still) + here.U @ here.D.solve(u[k])
            Z[p] = Z[p] + here.hinge.X.T @ passed
    A, qdd = [Motion.zero()] * len(Z), [Vector(())] * len(Z)
    for k, here in enumerate(felt):
        A_free = here.hinge.X @ A[here.cluster.parent]
        own = here.D.solve(u[k] - here.U.T @ A_free)
        parts = here.by_joint(own)
        for i in here.cluster.bodies:
            qdd[i] = parts[i]
            A[i] = here.hinge.X_of[i] @ A_free + C_of[i] + here.hinge.J[i] @ own
    F = _through_joints(model, X, inertia, felt, A, Z)
    matrices = [_full(I) for I in inertia[1:]]
    return qdd, A[1:], F[1:], matrices, Z[1:]


def _through_joints(model, X, inertia, felt, A, Z):
    """Give F of each joint; in a cluster a joint carries those behind it as well."""
    F = [Force.zero()] + [inertia[i] @ A[i] + Z[i] for i in model.bodies]
    for here in felt:
        for i in reversed(here.cluster.bodies):
            if model.parent[i] != here.cluster.parent:
                p = model.parent[i]
                F[p] = F[p] + X[i].T @ F[i]
    return F


def _full(I):
    """Give an articulated inertia as a 6x6 matrix."""
    top = [(*a, *b) for a, b in zip(I.I.full().rows, I.H.rows, strict=True)]
    low = [(*a, *b) for a, b in zip(I.H.T.rows, I.M.full().rows, strict=True)]
    return Matrix([*top, *low])


def aba_classical(model, q, qd, tau, f_ext):
    """Give the accelerations that joint forces cause, by classical accelerations.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Joint accelerations qdd, nv [rad/s² | m/s²].

    Source: TAZZ-3.6; see articulated_bodies. Gravity acts as a force here, not as an
    acceleration of the base.
    """
    return articulated_bodies(model, q, qd, tau, f_ext)[0]


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver("aba_classical", FORWARD_DYNAMICS, aba_classical),
        TextSolver("articulated_bodies", ARTICULATED_BODIES, articulated_bodies),
    ]
