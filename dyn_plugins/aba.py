"""Forward dynamics by the articulated-body algorithm."""

from dataclasses import dataclass

from dyn_core import (
    FORWARD_DYNAMICS,
    Cluster,
    Factored,
    Force,
    ForceSubspace,
    Hinge,
    Matrix,
    Motion,
    TextSolver,
    Vector,
    hinges,
    hookimpl,
    join_v,
    total,
)
from dyn_core.scalar import logical_or, where
from dyn_plugins.rnea import body_forces


@dataclass
class Felt:
    """What is felt through the joints of a cluster.

    Attributes:
        cluster, hinge: The cluster, and its motion as that of one joint.
        U: Forces that unit accelerations of its coordinates take, cluster's frame.
        D: Inertia along its coordinates, factored.
        held: By coordinate: condition that it does not give way to forces.
    """

    cluster: Cluster
    hinge: Hinge
    U: ForceSubspace
    D: Factored
    held: tuple = ()

    def yielding(self, values):
        """Give zero for coordinates that are held."""
        if not self.held:
            return values
        pairs = zip(self.held, values, strict=True)
        return Vector(where(held, 0.0, x) for held, x in pairs)

    def along(self, forces):
        """Give the joint force of forces on the bodies of the cluster."""
        J = self.hinge.J
        return total(J[i].T @ forces[i] for i in self.cluster.bodies)

    def gathered(self, forces):
        """Give the sum of forces on its bodies, in the cluster's frame."""
        X_of = self.hinge.X_of
        return total(X_of[i].T @ forces[i] for i in self.cluster.bodies)

    def coordinates(self, values):
        """Give the cluster's own of what the coordinates of the robot have."""
        return Vector(values[k] for k in self.hinge.at)

    def by_joint(self, values):
        """Give each joint of the cluster its part: ratio times the coordinates'."""
        ratio = self.hinge.ratio
        return {i: ratio[i] @ values for i in self.cluster.bodies}


def articulated(model, X, S, held=None):
    """Give what is felt through each cluster: the inward sweep of inertias.

        IA_p += X.T (IA - U D^-1 U.T) X,   U = sum_c X_c.T IA_c J_c
        D = sum_c J_c.T IA_c J_c + armature

    The sums go over the bodies c of a cluster; J_c is what one does for each of the
    cluster's coordinates. A body without couplings has J = S.

    Args:
        model: Robot.
        X: By body: transform from its parent.
        S: By body: motion subspace of its joint.
        held: By coordinate: condition that its acceleration is given, so that it is
            rigid towards forces; None if all give way.

    Returns:
        A Felt for each cluster, parents first, and by body its articulated inertia;
        that of a body in a larger cluster leaves out the rest of the cluster.

    Source: RBDA, Table 7.1; TAZZ-3.2, TAZZ-3.5 for joints of their own, TAZZ-5.1 for
    gears in series, TAZZ-5.3 for shared coordinates.
    """
    IA = [I.articulated() for I in model.I]
    felt = []
    for cluster, hinge in reversed(hinges(model, X, S)):
        p, bodies, J, X_of = cluster.parent, cluster.bodies, hinge.J, hinge.X_of
        forces = {i: IA[i] @ J[i] for i in bodies}
        A = total(J[i].T @ forces[i] for i in bodies) + hinge.armature
        U = total(X_of[i].T @ forces[i] for i in bodies)
        fixed = () if held is None else tuple(held[k] for k in hinge.at)
        if fixed:
            A, U = _without(A, U, fixed)
        D = Factored(A, hinge.floors, hinge.items)
        felt.append(Felt(cluster, hinge, U, D, fixed))
        if p:
            whole = total(X_of[i].T @ IA[i] @ X_of[i] for i in bodies)
            plain = len(bodies) == 1 and not fixed
            alone = J[bodies[0]] if plain else ()
            armature = model.armature[bodies[0]] if plain else ()
            left = whole.reduced(U, D.inverse(), alone, armature)
            IA[p] = IA[p] + hinge.X.T @ left @ hinge.X
    return felt[::-1], IA


def _without(A, U, held):
    """Give A and U with the rows and columns of held coordinates those of 1 and 0."""
    n = range(len(held))
    rows = [[logical_or(held[i], held[j]) for j in n] for i in n]
    A = Matrix([where(rows[i][j], float(i == j), A[i, j]) for j in n] for i in n)
    pairs = zip(held, U, strict=True)
    return A, ForceSubspace(where(x, Force.zero(), column) for x, column in pairs)


def respond(model, felt, tau, p):
    """Give the accelerations of given inertias under forces: two sweeps.

        u = tau - sum_c J_c.T p_c,   p_p += X.T (p + U D^-1 u)
        qdd = D^-1 (u - U.T a_p),    a_c = X_c a_p + J_c qdd

    Args:
        model: Robot.
        felt: Of the function `articulated`.
        tau: Joint forces, nv [N·m | N].
        p: By body: force that it takes without acceleration [N·m; N].

    Returns:
        qdd by joint; the acceleration of each body beyond that of no qdd; and the force
        that each articulated body takes without acceleration.

    Source: RBDA, Table 7.1; TAZZ-3.4, TAZZ-3.5, TAZZ-6.1.
    """
    p, u = list(p), {}
    for k in reversed(range(len(felt))):
        here, at = felt[k], felt[k].cluster.parent
        u[k] = here.yielding(here.coordinates(tau) - here.along(p))
        if at:
            passed = here.gathered(p) + here.U @ here.D.solve(u[k])
            p[at] = p[at] + here.hinge.X.T @ passed
    a, qdd = [Motion.zero()] * len(p), [Vector(())] * len(p)
    for k, here in enumerate(felt):
        a_free = here.hinge.X @ a[here.cluster.parent]
        own = here.D.solve(u[k] - here.U.T @ a_free)
        parts = here.by_joint(own)
        for i in here.cluster.bodies:
            qdd[i] = parts[i]
            a[i] = here.hinge.X_of[i] @ a_free + here.hinge.J[i] @ own
    return qdd, a, p


def aba(model, q, qd, tau, f_ext):
    """Give the accelerations that joint forces cause: articulated bodies, O(n).

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Joint accelerations qdd, nv [rad/s² | m/s²].

    Source: RBDA, Table 7.1; KIM-2.2 (Table 3), taken about the motion with qdd = 0: its
    body forces are the bias, so no velocity product is carried along. Mimic joints and
    gears are eliminated by cluster (model/clusters.py); TAZZ-5.2. A pivot at or below
    model.floors is a SingularError.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    X, S, pA = body_forces(model, q, qd, still, f_ext)
    felt, _ = articulated(model, X, S)
    qdd, _, _ = respond(model, felt, join_v(model, tau), pA)
    return qdd


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("aba", FORWARD_DYNAMICS, aba, regrouped=True)]
