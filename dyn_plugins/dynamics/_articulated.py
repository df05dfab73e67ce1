"""Articulated bodies of robots with couplings and prescribed joints.

Not a solver: `aba` writes the book's page for independent joints; this module does the
same for clusters (mimic joints, gears) and for joints whose acceleration is prescribed.
It is split into functions so that responses, hybrid dynamics, loops and contacts can
reuse the inertias. An increment of force on a body changes accelerations (and, over an
instant, velocities) linearly.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.authoring import (
    ClusterJoint,
    Factored,
    Force,
    ForceSubspace,
    Matrix,
    Motion,
    Vector,
    cluster_joints,
    logical_or,
    total,
    where,
)


@dataclass(frozen=True)
class ArticulatedJoint(ClusterJoint):
    """The joint of a cluster, and the articulated inertia that moves along it.

    Attributes:
        U: Forces for unit accelerations of its coordinates, cluster's frame; zero for
            prescribed coordinates.
        D: Inertia along its coordinates with armature, factored; identity where
            prescribed.
        prescribed: By coordinate: condition that its acceleration is prescribed, so
            that it is rigid under forces; empty if none is.
    """

    U: ForceSubspace
    D: Factored
    prescribed: tuple = ()

    def select(self, values):
        """Return a Vector: the joint's entries of `values`, a list of nv numbers."""
        return Vector(values[k] for k in self.coordinates)

    def without_prescribed(self, values):
        """Return `values`, one per coordinate of the joint, zero where prescribed."""
        if not self.prescribed:
            return values
        pairs = zip(self.prescribed, values, strict=True)
        return Vector(where(rigid, 0.0, x) for rigid, x in pairs)

    def joint_force(self, forces):
        """Return the sum of J.T f of the joint's bodies; `forces` as in total_force."""
        return total(self.J[i].T @ forces[i] for i in self.bodies)

    def total_force(self, forces):
        """Return the sum of forces on the joint's bodies, in the cluster's frame.

        `forces` are by body index, each in coordinates of its body.
        """
        return total(self.X_of[i].T @ forces[i] for i in self.bodies)


class Accelerations(NamedTuple):
    """Response of articulated bodies to forces, without the acceleration of gravity.

    Lists by body, entry 0 for the base.

    Attributes:
        qdd: Accelerations of the body's joint, followers too; empty for the base
            [rad/s² | m/s²].
        a: Spatial acceleration caused by qdd, body coordinates; zero for the base
            [rad/s²; m/s²].
        pA: Articulated bias force, body coordinates [N·m; N]; for the base its own bias
            force only. In a cluster of several bodies it leaves out the cluster's other
            bodies.
    """

    qdd: list[Any]
    a: list[Any]
    pA: list[Any]


def joint_inertia(model, i, A):
    """Return a Factored, L.T D L = A plus the armature of joint i on its diagonal.

    SingularError in the Program: a pivot is at or below model.pivot_tolerances.
    """
    names = [f"joint {model.names[i]}"] * A.shape[0]
    A = A + Matrix.diagonal(model.armature[i])
    return Factored(A, model.pivot_tolerances[i], names)


def joint_transforms(model, q):
    """Return by body X from its parent and S in its coordinates; entries 0 are None."""
    X, S = [None], [None]
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        S.append(model.joint[i].S(q[i]))
    return X, S


def articulated_joints(model, X, S, prescribed=None):
    """Return the joints of articulated bodies: the inward sweep of inertias.

        IA_p += X.T (IA - U D^-1 U.T) X,   U = sum_c X_c.T IA_c J_c
        D = sum_c J_c.T IA_c J_c + armature

    The sums go over the bodies c of a cluster; J_c is the motion of body c for unit
    rates of the cluster's coordinates. A body without couplings has J = S. A pivot of D
    at or below its tolerance raises SingularError when the Program runs. `prescribed`
    is by coordinate, nv, or None.

    Returns an ArticulatedJoint for each cluster, parents first, and articulated
    inertias by body, that of the base its own only. The inertia of a body in a cluster
    of several bodies leaves out the cluster's other bodies.

    Source: RBDA, Table 7.1; TAZZ-3.2, TAZZ-3.5 for joints of their own, TAZZ-5.1 for
    gears in series, TAZZ-5.3 for shared coordinates.
    """
    IA = [I.articulated() for I in model.I]
    joints = []
    for joint in reversed(cluster_joints(model, X, S)):
        p, bodies, J, X_of = joint.parent, joint.bodies, joint.J, joint.X_of
        forces = {i: IA[i] @ J[i] for i in bodies}
        A = total(J[i].T @ forces[i] for i in bodies) + joint.armature
        U = total(X_of[i].T @ forces[i] for i in bodies)
        rigid = tuple(prescribed[k] for k in joint.coordinates) if prescribed else ()
        if rigid:
            A, U = _without_rows(A, U, rigid)
        D = Factored(A, joint.pivot_tolerances, joint.pivot_names)
        joints.append(ArticulatedJoint(**vars(joint), U=U, D=D, prescribed=rigid))
        if p:
            whole = total(X_of[i].T @ IA[i] @ X_of[i] for i in bodies)
            single = len(bodies) == 1 and not rigid
            S_single = J[bodies[0]] if single else ()
            armature = model.armature[bodies[0]] if single else ()
            Ia = whole.reduced(U, D, S_single, armature)
            IA[p] = IA[p] + joint.X.T @ Ia @ joint.X
    return joints[::-1], IA


def _without_rows(A, U, prescribed):
    """Return A as of the identity, and U as zero, at prescribed coordinates.

    The conditions `prescribed` may be traced.
    """
    n = range(len(prescribed))
    rigid = [[logical_or(prescribed[i], prescribed[j]) for j in n] for i in n]
    A = Matrix([where(rigid[i][j], float(i == j), A[i, j]) for j in n] for i in n)
    pairs = zip(prescribed, U, strict=True)
    return A, ForceSubspace(where(x, Force.zero(), column) for x, column in pairs)


def accelerations_from_forces(model, joints, tau, p):
    """Return the Accelerations, lists by body, under forces: two sweeps.

        u = tau - sum_c J_c.T p_c,   p_p += X.T (p + U D^-1 u)
        qdd = D^-1 (u - U.T a_p),    a_c = X_c a_p + J_c qdd

    The base is at rest; prescribed coordinates get the acceleration zero. p is, by
    body, the force needed for no acceleration, body coordinates [N·m; N]; not changed.

    Source: RBDA, Table 7.1; TAZZ-3.4, TAZZ-3.5, TAZZ-6.1.
    """
    pA, u = list(p), {}
    for k, joint in reversed(list(enumerate(joints))):
        u[k] = joint.without_prescribed(joint.select(tau) - joint.joint_force(pA))
        p = joint.parent
        if p:
            pa = joint.total_force(pA) + joint.U @ joint.D.solve(u[k])
            pA[p] = pA[p] + joint.X.T @ pa
    a, qdd = [Motion.zero()] * len(pA), [Vector(())] * len(pA)
    for k, joint in enumerate(joints):
        a_p = joint.X @ a[joint.parent]
        rates = joint.D.solve(u[k] - joint.U.T @ a_p)
        for i in joint.bodies:
            qdd[i] = joint.ratio[i] @ rates
            a[i] = joint.X_of[i] @ a_p + joint.J[i] @ rates
    return Accelerations(qdd, a, pA)


def transmitted_forces(model, joints, IA, a, pA):
    """Return the joint forces, nv, for given accelerations of the articulated bodies.

        tau = sum_c J_c.T (IA_c a_c + pA_c)

    The forces that accelerate rotors (armature) are not included. IA, a and the
    articulated bias forces pA are by body.

    Source: RBDA, Table 7.1; KIM-2.3.
    """
    forces = [None, *(IA[i] @ a[i] + pA[i] for i in model.bodies)]
    tau = [0.0] * model.nv
    for joint in joints:
        for k, x in zip(joint.coordinates, joint.joint_force(forces), strict=True):
            tau[k] = x
    return Vector(tau)


def propagate_to_base(model, joints, body, force):
    """Return the joint forces that a force on a body causes, from the body to the base.

        u = J.T f,   f_p = X.T (f - U D^-1 u)

    The result maps an index in `joints` to u of its coordinates, zero where prescribed.
    The force is in body coordinates.

    Source: TAZZ-6.3, TAZZ-6.4.
    """
    number = _number_of(joints)
    row, i = {}, body
    while i:
        k = number[i]
        joint = joints[k]
        row[k] = u = joint.without_prescribed(joint.J[i].T @ force)
        if joint.parent:
            push = joint.U @ joint.D.solve(u)
            force = joint.X.T @ (joint.X_of[i].T @ force - push)
        i = joint.parent
    return row


def joint_row(model, joints, i, size=1.0):
    """Return the joint forces that the force `size` on one joint causes, to the base.

    The result is as of propagate_to_base. A follower's force acts on its leader, times
    the ratio.
    """
    k = _number_of(joints)[i]
    joint = joints[k]
    u = joint.without_prescribed(Vector(joint.ratio[i].rows[0]) * size)
    p = joint.parent
    if not p:
        return {k: u}
    force = joint.X.T @ (-(joint.U @ joint.D.solve(u)))
    return {**propagate_to_base(model, joints, p, force), k: u}


def _number_of(joints):
    """Return a dict from each moving body to the index of its entry in `joints`."""
    return {i: k for k, joint in enumerate(joints) for i in joint.bodies}


def add_rows(parts):
    """Return the sum of results of propagate_to_base; missing keys count as zero."""
    row = {}
    for part in parts:
        for k, u in part.items():
            row[k] = row[k] + u if k in row else u
    return row


def delassus_matrix(joints, rows):
    """Return the Delassus matrix of rows, symmetric, one row and column for each.

        G_ab = J_a H^-1 J_b.T = sum over joints k of u_ka.T D_k^-1 u_kb

    Each of `rows` comes from propagate_to_base, joint_row or add_rows.

    Source: TAZZ-6.5.
    """
    halves = [{k: joints[k].D.halves(u) for k, u in row.items()} for row in rows]

    def entry(a, b):
        common = sorted(halves[a].keys() & halves[b].keys())
        x = 0.0
        for k in common:
            x = x + halves[a][k][0] @ halves[b][k][1]
        return x

    n = range(len(rows))
    low = [[entry(a, b) for b in range(a + 1)] for a in n]
    return Matrix([low[max(a, b)][min(a, b)] for b in n] for a in n)
