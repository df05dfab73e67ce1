"""Motion of all bodies, and the forces transmitted by the joints.

Another value of an option raises UnsupportedError when the Program is built.
"""

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Transform,
    cross,
    cross3,
    hookimpl,
)
from dyn_core.problems import BODY_MOTION, JOINT_REACTIONS
from dyn_core.validation import Name

ACCELERATION = {"acceleration": Name(("spatial", "classical"))}
GRAVITY = {"gravity": Name(("true", "offset"))}
REACTIONS = {
    **GRAVITY,
    "part": Name(("whole", "active", "constraint")),
    "coordinates": Name(("body", "socket", "link", "world")),
}


def outward(model, q, qd, qdd, a_base):
    """Return X from the parent, S, velocity and spatial acceleration of all bodies.

    Arguments and the four lists are by body, body coordinates. a_base: Of the base;
    minus gravity adds the weight to the forces.
    """
    X, S, v, a = [None], [None], [Motion.zero()], [a_base]
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        vJ, cJ = joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        v.append(X[i] @ v[p] + vJ)
        a.append(X[i] @ a[p] + S[i] @ qdd[i] + cJ + cross(v[i], vJ))
    return X, S, v, a


def body_motion(model, q, qd, qdd, acceleration, gravity):
    """Return velocity and acceleration of every body but the base, [angular; linear].

        v_i = X v_p + vJ,   a_i = X a_p + S qdd + cJ + v_i x vJ
        classical: the linear part is r'' = a_lin + w x v_lin

    Results are in body coordinates.

    Inputs and outputs: those of BODY_MOTION; q, qd and qdd by body, the base first.

    Args:
        acceleration: spatial; or classical, the acceleration of the body frame's
            origin.
        gravity: true: physical accelerations; offset: minus gravity, as in algorithms
            that model gravity as an acceleration of the base.

    Source: RBD5-3.3, RBD5-3.5; SV-6.1, SV-6.3.
    """
    base = Motion.zero() if gravity == "true" else -model.a_grav
    _, _, v, a = outward(model, q, qd, qdd, base)
    if acceleration == "classical":
        a = [
            Motion(x.ang, x.lin + cross3(y.ang, y.lin))
            for x, y in zip(a, v, strict=True)
        ]
    return v[1:], a[1:]


def joint_reactions(model, q, qd, qdd, f_ext, coordinates, part, gravity):
    """Return the force that each joint transmits, and the net force on each body.

        f_i = f_net_i - f_ext_i + sum_children X.T f   (f_net of gravity="offset")
        S_i.T f_i = tau_i - armature qdd_i
        active part: S (S.T S)^-1 S.T f_i;  constraint part: the rest, S.T f_c = 0

    f_i acts on body i, from its parent; both results are [moment; force] of each body
    but the base. The active part is the smallest force, in components at the joint,
    that does the work of S_i.T f_i; for a revolute joint a couple on the axis, for a
    prismatic one a force. f supports the weight, whatever `gravity` is; f_net is always
    in body coordinates.

    Inputs and outputs: those of JOINT_REACTIONS; q, qd, qdd and f_ext by body, the base
    first.

    Args:
        coordinates: Of f: body (axes and origin of the body), socket (the joint frame
            fixed in the parent), link (the child link's frame), world (base axes, about
            the base origin).
        part: Part of f: whole, active or constraint.
        gravity: true: f_net is the force that accelerates the body, weight included;
            offset: f_net supports the weight, as in algorithms with an accelerated
            base.

    Raises:
        SingularError: The columns of S of a joint are linearly dependent, such as at a
            pitch of pi/2 of a joint with roll, pitch and yaw; not for part="whole".
            Raised when the Program runs.

    Source: RBD5-3.3, RBD5-3.5; TAZZ-3.7.
    """
    X, S, v, a = outward(model, q, qd, qdd, -model.a_grav)
    f, net, X0, g = [Force.zero()], [], [Transform.identity()], [model.a_grav]
    for i in model.bodies:
        I, p = model.I[i], model.parent[i]
        X0.append(X[i] @ X0[p])
        g.append(X[i] @ g[p])
        with_weight = I @ a[i] + cross(v[i], I @ v[i])
        f.append(with_weight - f_ext[i])
        net.append(with_weight if gravity == "offset" else with_weight + I @ g[i])
    for i in reversed(model.bodies):
        f[model.parent[i]] = f[model.parent[i]] + X[i].T @ f[i]
    through, carried = [], model.child_links
    for i in model.bodies:
        x = _part(S[i], f[i], part, model.names[i])
        through.append(_seen(model, i, q, X0, x, coordinates, carried[i]))
    return through, net


def _part(S, f, part, name):
    """Return the whole force f, or its active or constraint part, body coordinates."""
    if part == "whole":
        return f
    active = Force.zero()
    if len(S):
        n = range(len(S))
        dots = Matrix([S[j].ang @ S[k].ang + S[j].lin @ S[k].lin for k in n] for j in n)
        items = [f"joint {name}"] * len(S)
        share = Factored(dots, [1e-12] * len(S), items).solve(S.T @ f)
        for s, x in zip(S, share, strict=True):
            active = active + Force(s.ang, s.lin) * x
    return active if part == "active" else f - active


def _seen(model, i, q, X0, f, coordinates, link):
    """Return a force f on body i, body coordinates, in the chosen coordinates."""
    if coordinates == "socket":
        return model.joint[i].X(q[i]).T @ f
    if coordinates == "link":
        return model.frames[link].X @ f
    if coordinates == "world":
        return X0[i].T @ f
    return f


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "body_motion",
            BODY_MOTION,
            body_motion,
            options={"acceleration": "spatial", "gravity": "true"},
            valid={**ACCELERATION, **GRAVITY},
        ),
        TracedSolver(
            "joint_reactions",
            JOINT_REACTIONS,
            joint_reactions,
            options={"coordinates": "body", "part": "whole", "gravity": "true"},
            valid=REACTIONS,
            default=True,
        ),
    ]
