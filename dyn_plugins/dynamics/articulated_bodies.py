"""Articulated bodies in classical accelerations: their inertias, forces and motion.

The acceleration of a body is the one of its origin, r'' in its own axes, and the wrench
on it is F = Ihat A + Zhat. The results equal those of spatial accelerations:

    Zhat = pA - Ihat k,   C_hat = c + k_c - X k_p,   k = (0; w x v)
"""

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    cross3,
    hookimpl,
    join_v,
)
from dyn_core.problems import ARTICULATED_BODIES
from dyn_core.spatial.classical import Pose, velocity_product
from dyn_plugins.dynamics._articulated import articulated_joints, joint_transforms


def gyroscopic(I, w):
    """Return the wrench that a body needs to rotate at w [rad/s] without acceleration.

        Z = (w x J_O w;  m w x (w x c)),   about the body's origin, body axes

    Source: TAZZ-3.1.
    """
    return Force(cross3(w, I.I @ w), cross3(w, cross3(w, I.h)))


def velocity_products(model, q, qd):
    """Return each body's velocity, and C_hat, the velocity terms of its acceleration.

        V_c = X_cp V_p + J qd,   A_c = X_cp A_p + C_hat + J qdd

    By body, body axes. The joint's socket is Xtree and its plug the body's own frame:
    links that are attached elsewhere are frames of the body.

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
    """Return the motion that joint forces cause, and each articulated body's force.

        F_i = Ihat_i A_i + Zhat_i,   S_i.T F_i = tau_i - armature_i qdd_i

    A singular joint inertia raises SingularError when the Program runs.

    Inputs and outputs: those of ARTICULATED_BODIES; q, qd, tau, f_ext and qdd by body,
    the base first.

    Returns:
        qdd; A, nb x 6, true classical accelerations, without an offset by gravity
        [rad/s²; m/s²]; F, nb x 6, the force that the parent exerts through the joint
        [N·m; N]; Ihat, nb x 6 x 6, and Zhat, nb x 6: inertia and bias force of the
        articulated body. All in body coordinates. In a cluster Ihat and Zhat leave out
        its other bodies, and F includes the forces of those further out.

    Source: TAZZ-3.2, TAZZ-3.3, TAZZ-3.4, TAZZ-3.5, TAZZ-3.6, TAZZ-3.7; with gears
    TAZZ-5.1, TAZZ-5.3.
    """
    X, S = joint_transforms(model, q)
    joints, inertia = articulated_joints(model, X, S)
    V, C = velocity_products(model, q, qd)
    Z, g = [Force.zero()], [model.a_grav]
    for i in model.bodies:
        g.append(X[i] @ g[model.parent[i]])
        weight = model.I[i] @ Motion(Vector.zeros(3), g[i].lin)
        Z.append(gyroscopic(model.I[i], V[i].ang) - f_ext[i] - weight)
    values, u, C_of = join_v(model, tau), {}, list(C)
    for k, joint in reversed(list(enumerate(joints))):
        p = joint.parent
        for i in joint.bodies:
            if model.parent[i] != p:
                C_of[i] = X[i] @ C_of[model.parent[i]] + C[i]
        still = {i: inertia[i] @ C_of[i] + Z[i] for i in joint.bodies}
        u[k] = joint.select(values) - joint.joint_force(still)
        if p:
            passed = joint.total_force(still) + joint.U @ joint.D.solve(u[k])
            Z[p] = Z[p] + joint.X.T @ passed
    A, qdd = [Motion.zero()] * len(Z), [Vector(())] * len(Z)
    for k, joint in enumerate(joints):
        A_p = joint.X @ A[joint.parent]
        rates = joint.D.solve(u[k] - joint.U.T @ A_p)
        for i in joint.bodies:
            qdd[i] = joint.ratio[i] @ rates
            A[i] = joint.X_of[i] @ A_p + C_of[i] + joint.J[i] @ rates
    F = _through_joints(model, X, inertia, joints, A, Z)
    matrices = [_full(I) for I in inertia[1:]]
    return qdd, A[1:], F[1:], matrices, Z[1:]


def _through_joints(model, X, inertia, joints, A, Z):
    """Return, by body, the force F that its parent exerts on it through the joint.

    In a cluster F includes the forces of the cluster's bodies further out. Entry 0, of
    the base, is zero. Arguments by body are in body coordinates.
    """
    F = [Force.zero()] + [inertia[i] @ A[i] + Z[i] for i in model.bodies]
    for joint in joints:
        for i in reversed(joint.bodies):
            if model.parent[i] != joint.parent:
                p = model.parent[i]
                F[p] = F[p] + X[i].T @ F[i]
    return F


def _full(I):
    """Return an articulated inertia I as a dense 6x6 Matrix over [angular; linear]."""
    top = [(*a, *b) for a, b in zip(I.I.full().rows, I.H.rows, strict=True)]
    low = [(*a, *b) for a, b in zip(I.H.T.rows, I.M.full().rows, strict=True)]
    return Matrix([*top, *low])


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("articulated_bodies", ARTICULATED_BODIES, articulated_bodies),
    ]
