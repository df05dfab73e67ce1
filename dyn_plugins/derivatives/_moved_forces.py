"""External forces as numbers with derivatives, fixed to body, base or point.

Not a solver: derivatives by forward mode share it.
"""

from dyn_core.authoring import Force, Transform, cross3, split_q, with_slopes
from dyn_plugins.derivatives._fixed_forces import points_by_body
from dyn_plugins.derivatives._seeds import moved_model, moved_position


def moved_forces(model, q, dq, f_ext, df_ext, changed, f_ext_fixed, f_ext_points):
    """Return forces on bodies 1 to nb, body coordinates, which carry their derivatives.

    dq is a displacement (nv); f_ext and df_ext are by body with the base, `changed` are
    numbers with derivatives by parameter path. As bodies move, forces are constant in
    the frame f_ext_fixed: body, base (about its origin) or point (base axes, acting at
    the body's point of f_ext_points {link: point in the link's frame [m]}, or else its
    origin).
    """
    f = [Force.of(with_slopes(x, dx)) for x, dx in zip(f_ext, df_ext, strict=True)]
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
    """Return a list of transforms from the base to the base and to each body."""
    parts, X = split_q(model, q), [Transform.identity()]
    for i in model.bodies:
        XJ = model.joint[i].X(parts[i])
        X.append(XJ @ model.Xtree[i] @ X[model.parent[i]])
    return X
