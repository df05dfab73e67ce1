"""Inverse dynamics without recursion: the equation of motion written out, O(n^4).

A baseline for the cost of recursive algorithms, and a third independent result.
"""

from dyn_core.authoring import Force, TracedSolver, Transform, Vector, cross, hookimpl
from dyn_core.problems import INVERSE_DYNAMICS

ONE_AXIS = ("revolute", "continuous", "prismatic")


def unsupported_chain(model):
    """Return why the closed form does not support a robot, as text, or None.

    Supported: unbranched, of revolute, continuous and prismatic joints, also followers.

    Source: RBD5-2.4 (an unbranched chain of joints of one freedom).
    """
    for i in model.bodies:
        kind = model.joint[i].kind
        if kind not in ONE_AXIS:
            return (
                f"joint '{model.names[i]}' is {kind}; valid: chains of joints of one"
                f" freedom ({', '.join(ONE_AXIS)})"
            )
        if model.parent[i] != i - 1:
            return (
                f"joint '{model.names[i]}' starts a branch; valid: unbranched chains,"
                " each joint on the body before it"
            )
    return None


def common_frame(model, q):
    """Return X from the base, axes s and inertias I of a chain in base coordinates.

        s_i = X_i^-1 S_i,   I_i = X_i.T I X_i

    By body; s_0 and I_0 are None. Inertias have all 6x6 entries (articulated), as in
    the original methods. That the robot is such a chain is not checked.

    Source: RBD5-2.4.
    """
    X, s, I = [Transform.identity()], [None], [None]
    for i in model.bodies:
        joint = model.joint[i]
        X.append(joint.X(q[i]) @ model.Xtree[i] @ X[model.parent[i]])
        s.append(X[i].inverse @ joint.S(q[i])[0])
        I.append((X[i].T @ model.I[i] @ X[i]).articulated())
    return X, s, I


def inertia_entry(s, I, i, j):
    """Return H_ij = sum_l s_i . I_l s_j over l >= max(i, j) [kg·m² | kg].

    s, I: From common_frame; i, j from 1. Rotors (armature) are not included.

    Source: RBDA (5.6); RBD5-2.4.
    """
    return _sum(s[i] @ (I[l] @ s[j]) for l in range(max(i, j), len(s)))


def coriolis_entry(s, I, i, j, k):
    """Return C_ijk of the double sum over qd_j qd_k [kg·m² | kg·m | kg].

        C_ijk = sum_l s_i . ([k < j] I_l (s_k x s_j) + s_k x* I_l s_j)

    over l >= max(i, j, k). Only the double sum has a physical meaning: other formulas
    may split it between C_ijk and C_ikj differently. Indices count from 1.

    Source: RBDA (5.6); RBD5-2.4.
    """
    bodies = range(max(i, j, k), len(s))
    terms = [s[i] @ cross(s[k], I[l] @ s[j]) for l in bodies]
    if k < j:
        turned = cross(s[k], s[j])
        terms += [s[i] @ (I[l] @ turned) for l in bodies]
    return _sum(terms)


def gravity_entry(s, I, a_grav, i):
    """Return g_i = -sum_l s_i . I_l a_grav over l >= i [N·m | N].

    a_grav is in base axes.

    Source: RBDA (5.6); RBD5-2.4.
    """
    return -_sum(s[i] @ (I[l] @ a_grav) for l in range(i, len(s)))


def _sum(terms):
    """Return the sum of one or more terms."""
    first, *others = terms
    for term in others:
        first = first + term
    return first


def closed_form(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion: every term of the equation of motion.

        tau_i = sum_j H_ij qdd_j + sum_j sum_k C_ijk qd_j qd_k + g_i - push_i

    push_i is the joint force of the external forces on body i and the bodies after it;
    armature_i qdd_i is added. Forces of followers are not added to their leaders'.
    Robots other than unbranched chains of revolute, continuous and prismatic joints
    raise UnsupportedError when the Program is built.

    Inputs and outputs: those of INVERSE_DYNAMICS; q, qd, qdd, f_ext and tau by body,
    the base first; entry 0 of tau is None.

    Source: RBDA (5.6), its qdd_i read as qdd_j; RBD5-2.4. The cost grows with the
    fourth power of the number of joints (tests/test_cost.py); for use take `rnea`.
    """
    X, s, I = common_frame(model, q)
    rate = [None, *(x[0] for x in qd[1:])]
    push, tau = [Force.zero()] * (len(s) + 1), [None] * len(s)
    for i in reversed(model.bodies):
        push[i] = X[i].T @ f_ext[i] + push[i + 1]
        total = gravity_entry(s, I, model.a_grav, i) - s[i] @ push[i]
        for j in model.bodies:
            total = total + inertia_entry(s, I, i, j) * qdd[j][0]
            for k in model.bodies:
                total = total + coriolis_entry(s, I, i, j, k) * rate[j] * rate[k]
        tau[i] = Vector([total + model.armature[i][0] * qdd[i][0]])
    return tau


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "closed_form",
            INVERSE_DYNAMICS,
            closed_form,
            supports=unsupported_chain,
            reference=True,
        )
    ]
