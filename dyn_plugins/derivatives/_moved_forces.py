"""External forces as numbers with derivatives, fixed to body, base or point.

Not a solver: derivatives by forward mode share it.
"""

from dyn_core.authoring import Force, Transform, cross3, split_q, with_slopes
from dyn_plugins.derivatives._fixed_forces import points_by_body
from dyn_plugins.derivatives._seeds import moved_model, moved_position


def moved_forces(model, q, dq, f_ext, df_ext, changed, f_ext_fixed, f_ext_points):
    """Return external forces with their derivatives, without the one on the base.

    Args:
        model: Robot.
        q, dq: Joint positions and their displacement, nq and nv.
        f_ext, df_ext: By body, entry 0 for the base: force and its change, body
            coordinates [N·m; N].
        changed: Numbers with derivatives by parameter path; {}: none.
        f_ext_fixed: Frame in which the forces are constant as bodies move: body, base
            (about its origin) or point (base axes, acting at a point of the body).
        f_ext_points: {link: this point in the link's frame [m]}, or None: the bodies'
            origins; read only for point.

    Returns:
        List of Forces on bodies 1 to nb, body coordinates; their numbers carry the
        derivatives.

    Raises:
        UnsupportedError: A point has not 3 numbers, or a body has two.
        ModelError: A link of f_ext_points, or a path of `changed`, is unknown; not
            checked if f_ext_fixed is body.
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
