"""Derivatives of each joint, body and external force along a direction.

Joints and the Model run on Taylor numbers here, once; the recursions get values and
slopes.
"""

from dataclasses import dataclass
from typing import Any

from dyn_core.authoring import (
    Force,
    Motion,
    Vector,
    cross,
    cross3,
    has_slope,
    input_names,
    position_rate,
    resistance,
    slope_of,
    split_q,
    split_v,
    value_of,
    variation_of,
    with_slopes,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import parameter_paths
from dyn_core.validation import shown
from dyn_plugins.derivatives._fixed_forces import points_by_body


@dataclass(frozen=True)
class Seeds:
    """Values and slopes (derivatives along the direction) by body; entry 0 is unused.

    A slope has the name of its value with a d before it: dS, dvJ, dcJ, dI, darmature,
    df_ext, da_0, dtaken.

    Attributes:
        X: Transform from the parent; dX = -(dh x) X.
        dh: vee(T^-1 dT) of the body's pose in its parent, a Motion in body coordinates.
        S, vJ, cJ: Of its joint: motion subspace, velocity, bias acceleration.
        I, armature, f_ext: Inertia, rotor inertia, external force.
        a_0: Acceleration of the base that represents gravity; not by body.
        taken: Resisting joint forces of friction and springs, nv; not by body.
        moved: The Model whose parameter carries derivatives, also in its followers'
            rules; the Model itself without a parameter.

    Source: KIM-4.5.
    """

    X: list
    dh: list
    S: list
    dS: list
    vJ: list
    dvJ: list
    cJ: list
    dcJ: list
    I: tuple
    dI: list
    armature: tuple
    darmature: list
    f_ext: list
    df_ext: list
    a_0: Motion
    da_0: Motion
    taken: Vector
    dtaken: Vector
    moved: Any


@dataclass(frozen=True)
class Direction:
    """A direction of change, without the changes of accelerations and joint forces.

    Attributes:
        dq, dqd: Displacement in the tangent space and change of velocity, nv.
        f_ext, df_ext: By body with the base: external force and its own change, body
            coordinates [N·m; N].
        dp: Change of the numbers of `parameter`, a path or None.
        f_ext_fixed: body, base or point: see forces_along.
        f_ext_points: By link: point of action, in the link's frame [m]; else origins.
    """

    dq: Vector
    dqd: Vector
    f_ext: list
    df_ext: list
    dp: Vector | None = None
    parameter: str | None = None
    f_ext_fixed: str = "body"
    f_ext_points: dict | None = None


def parameter_along(model, parameter, dp):
    """Return {parameter: its numbers with derivatives dp}; {} if it is None."""
    if parameter is None:
        return {}
    rates = dp if hasattr(dp, "__iter__") else [dp]
    return {parameter: with_slopes(parameter_paths.numbers(model, parameter), rates)}


def moved_model(model, changed):
    """Return the Model with `changed`, numbers with derivatives by parameter path."""
    return parameter_paths.with_values(model, changed) if changed else model


def moved_position(model, q, dq):
    """Return q (nq) with its derivative along dq (nv): T -> T exp(eps S dq)."""
    return with_slopes(q, position_rate(model, q, dq))


def seeds(model, q, qd, along):
    """Return the Seeds of a derivative along a direction.

        dh = XJ h_tree + h_J + S dq
        dS, dvJ, dcJ: the joint on q + eps dq, qd + eps dqd

    The parameter moves the body by h_tree with the joint's origin, and by h_J with the
    joint itself, such as its axis, or with the follower's rule.

    Args:
        model: Robot.
        q, qd: Joint positions and velocities, nq and nv.
        along: The Direction.

    Raises:
        ModelError: The parameter path or a link of the direction is unknown, or a
            user's force function does not return nv numbers.
        ValueError: dp of the direction has another size than the parameter.
        UnsupportedError: A point of f_ext_points has not 3 numbers, or a body has two.

    Source: KIM-4.1, KIM-4.5.
    """
    moved = moved_model(model, parameter_along(model, along.parameter, along.dp))
    q_moved, qd_moved = moved_position(model, q, along.dq), with_slopes(qd, along.dqd)
    q_joint, q_moved_joint = split_q(model, q), split_q(moved, q_moved)
    rate_moved, turn = split_v(moved, qd_moved), split_v(model, along.dq)
    geared = split_q(moved, q)
    X, dh, S, vJ, cJ = [None], [None], [None], [None], [None]
    for i in model.bodies:
        joint = moved.joint[i]
        XJ = model.joint[i].X(q_joint[i])
        X.append(XJ @ model.Xtree[i])
        S.append(joint.S(q_moved_joint[i]))
        vJ.append(joint.vJ(q_moved_joint[i], rate_moved[i]))
        cJ.append(joint.cJ(q_moved_joint[i], rate_moved[i]))
        h = value_of(S[i]) @ turn[i]
        if moved.leader[i] is not model.leader[i]:
            h = h + value_of(S[i]) @ slope_of(geared[i])
        if moved.Xtree[i] is not model.Xtree[i]:
            h = h + XJ @ variation_of(moved.Xtree[i])
        if joint is not model.joint[i] and has_slope(joint.X(q_joint[i])):
            h = h + variation_of(joint.X(q_joint[i]))
        dh.append(h)
    taken = resistance(moved, q_moved, qd_moved)
    return Seeds(
        X,
        dh,
        *(side(part) for part in (S, vJ, cJ) for side in (_values, _slopes)),
        model.I,
        _slopes(moved.I),
        model.armature,
        _slopes(moved.armature),
        along.f_ext,
        forces_along(model, X, dh, along),
        -model.a_grav,
        slope_of(-moved.a_grav),
        value_of(taken),
        slope_of(taken),
        moved,
    )


def _values(parts):
    return [None, *map(value_of, parts[1:])]


def _slopes(parts):
    return [None, *map(slope_of, parts[1:])]


def forces_along(model, X, dh, along):
    """Return the changes of external forces in body coordinates as the bodies move.

        body:   df = df_ext                    constant in the body
        base:   df = df_ext - h x* f           constant in the base, about its origin
        point:  df = df_ext + (r x f' + n'; f'),   f' = -w x f,   n' = -w x (n - r x f)
                constant in the base's axes, acting at the body's point r

        h_i = X h_p + dh_i,   w its angular part; r is the body's origin unless given

    By body, entry 0 (base) zero; for "body" it is along.df_ext itself.

    Source: KIM-4.5.
    """
    if along.f_ext_fixed == "body":
        return along.df_ext
    points = points_by_body(model, along.f_ext_points)
    h, changes = [Motion.zero()], [Force.zero()]
    for i in model.bodies:
        h.append(X[i] @ h[model.parent[i]] + dh[i])
        f, w = along.f_ext[i], h[i].ang
        if along.f_ext_fixed == "base":
            changes.append(along.df_ext[i] - cross(h[i], f))
            continue
        push = -cross3(w, f.lin)
        couple = -cross3(w, f.ang - cross3(points[i], f.lin))
        change = Force(cross3(points[i], push) + couple, push)
        changes.append(along.df_ext[i] + change)
    return changes


def check_choices(name, model, choices):
    """Return a new dict of the options of a build; a parameter adds the input dp.

    "inputs" becomes a tuple. Refused: inputs that are no names, dp without a parameter,
    and what `check_path` refuses.
    """
    path = choices.get("parameter")
    inputs = input_names(name, choices.get("inputs", ()))
    if path is None and "dp" in inputs:
        raise UnsupportedError(
            f"{name}: dp is the change of a parameter; valid: parameter='LINK.mass'"
        )
    if path is None:
        return {**choices, "inputs": inputs}
    if not isinstance(path, str):
        raise UnsupportedError(
            f"{name}: parameter {shown(path)}; valid: a parameter path, or None"
        )
    check_path(name, model, path, acting_options(choices), inputs)
    more = () if "dp" in inputs else ("dp",)
    return {**choices, "inputs": (*inputs, *more)}


def acting_options(choices):
    """Return which of joint_friction and joint_springs the options turn on, a list."""
    return [x for x in ("joint_friction", "joint_springs") if choices.get(x, False)]


def checked_paths(name, model, choices, loops):
    """Return the option `paths` of a build as a tuple, checked by check_path."""
    paths, inputs = choices.get("paths", ()), choices.get("inputs", ())
    inputs = input_names(name, inputs)
    if isinstance(paths, str) or not hasattr(paths, "__iter__"):
        raise UnsupportedError(
            f"{name}: paths is a list of parameter paths, got {shown(paths)};"
            f" valid: paths=[{shown(paths)}]"
        )
    acting, paths = acting_options(choices), tuple(paths)
    for path in paths:
        check_path(name, model, path, acting, inputs, loops)
    return paths


def check_path(name, model, path, acting, inputs, loops=False):
    """Check that this build has a derivative by a parameter.

    Refused: one that acts only with an option that is off, belongs to a loop that is
    not closed, is the time of a robot without driven joints, or is an inertial
    parameter or origin of a link or joint of which a parameter is among the inputs.
    """
    parameter_paths.numbers(model, path)
    link, _, what = path.rpartition(".")
    option = parameter_paths.acting(model, path)
    if option and option not in acting:
        raise UnsupportedError(
            f"{name}: {path} acts only with {option}; valid: {option}=True"
        )
    if not loops and parameter_paths.kind_of(model, path).owner == "loop":
        raise UnsupportedError(
            f"{name}: {path} is of a loop, and this is for the open tree; valid:"
            " parameters of links and joints"
        )
    if path == "time" and not model.driven:
        raise UnsupportedError(
            f"{name}: no joint is driven, so nothing depends on the time; valid:"
            " parameters of links and joints"
        )
    clash = [x for x in inputs if link and x.rpartition(".")[0] == link]
    if clash and what in (*parameter_paths.LINK, "origin"):
        raise UnsupportedError(
            f"{name}: {clash[0]} is an input of what {path} belongs to;"
            " valid: a derivative by it, or another parameter of it as an input, not"
            " both"
        )


def sizes(model, options):
    """Return {"np": number of values of the parameter}; 0 without a parameter.

    Raises ModelError for an unknown path.

    Args:
        model: System with the parameter.
        options: Options of the solver; "parameter" is a path or None.
    """
    path = options["parameter"]
    return {"np": 0 if path is None else parameter_paths.size(model, path)}
