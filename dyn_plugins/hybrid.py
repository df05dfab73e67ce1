"""Hybrid dynamics: some accelerations are given, the other joints' forces are."""

from dyn_core import (
    HYBRID_DYNAMICS,
    HYBRID_DYNAMICS_MASKED,
    TextSolver,
    UnsupportedError,
    Vector,
    hookimpl,
    join_force,
    join_v,
    resistance,
    split_q,
    split_v,
    with_parameters,
)
from dyn_core.scalar import where
from dyn_plugins.aba import articulated, respond
from dyn_plugins.rnea import body_forces


def mixed(model, q, qd, held, qdd, tau, f_ext, rotors=None):
    """Give joint forces and accelerations where each coordinate has one of them given.

    Body forces are taken about the motion whose given accelerations are there and whose
    others are zero; towards what is left to find, coordinates with a given acceleration
    are rigid.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        held: By coordinate: condition that qdd is given, else tau is.
        qdd: Joint accelerations, nv, used where held [rad/s² | m/s²].
        tau: Joint forces, nv, used elsewhere [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].
        rotors: More armature by coordinate, where tau is given [kg·m² | kg]; a step
            puts the slopes of stiff joint forces here.

    Returns:
        tau and qdd, nv each.

    Source: KIM-2.3 (Table 4), with the couplings of TAZZ-5.1 and TAZZ-5.3.
    """
    if rotors is not None:
        armature = Vector(x for i in model.independent for x in model.armature[i])
        model = with_parameters(model, {"armature": armature + rotors})
    given = Vector(where(h, a, 0.0) for h, a in zip(held, qdd, strict=True))
    friction = resistance(model, q, qd)
    parts = split_q(model, q), split_v(model, qd), split_v(model, given)
    X, S, p = body_forces(model, *parts, f_ext)
    felt, IA = articulated(model, X, S, held)
    push = tau - friction - add_rotors(model, parts[2])
    found, a, p = respond(model, felt, push, p)
    moved = given + join_v(model, found)
    forces = [None, *(IA[i] @ a[i] + p[i] for i in model.bodies)]
    result = [None] * model.nv
    for here in felt:
        for k, x in zip(here.hinge.at, here.along(forces), strict=True):
            result[k] = x
    taken = Vector(result) + add_rotors(model, split_v(model, moved)) + friction
    pairs = zip(held, taken, tau, strict=True)
    return Vector(where(h, x, y) for h, x, y in pairs), moved


def add_rotors(model, qdd):
    """Give what the rotors take of given joint accelerations, nv."""
    forces = [None, *(model.armature[i] * qdd[i] for i in model.bodies)]
    return join_force(model, forces)


def prescribed_coordinates(model, prescribed):
    """Give by coordinate whether its acceleration is given.

    Args:
        model: Robot.
        prescribed: Names of joints, or pairs (joint, number of its coordinate).
    """
    held = [False] * model.nv
    for entry in prescribed:
        name, k = (entry, None) if isinstance(entry, str) else entry
        at = model.v_slice(name)
        if name not in model.joint_names:
            raise UnsupportedError(
                f"hybrid: joint '{name}' follows another; valid:"
                f" {', '.join(model.joint_names)}"
            )
        spots = range(at.start, at.stop)
        if k is not None and k not in range(len(spots)):
            raise UnsupportedError(
                f"hybrid: joint '{name}' has coordinates 0 to {len(spots) - 1}, not {k}"
            )
        for spot in spots if k is None else [spots[k]]:
            if held[spot]:
                raise UnsupportedError(f"hybrid: joint '{name}' is prescribed twice")
            held[spot] = True
    return held


def hybrid(model, q, qd, qdd_u, tau_v, f_ext, prescribed):
    """Give the forces of some joints and the accelerations of the others: O(n).

        tau_u = H_uu qdd_u + H_uv qdd_v + C_u,   H_vv qdd_v = tau_v - C_v - H_vu qdd_u

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u: Given accelerations, in the order of the coordinates [rad/s² | m/s²].
        tau_v: Given forces of the other coordinates [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].
        prescribed: Names of joints whose acceleration is given, or pairs (joint, k) of
            one of its coordinates; or "mask": see hybrid_mask.

    Returns:
        tau_u of the prescribed coordinates, qdd_v of the others.

    Source: KIM-2.3 (Table 4).
    """
    held = prescribed_coordinates(model, prescribed)
    u, v = iter(qdd_u), iter(tau_v)
    qdd = Vector(next(u) if h else 0.0 for h in held)
    tau = Vector(0.0 if h else next(v) for h in held)
    tau, qdd = mixed(model, q, qd, held, qdd, tau, f_ext)
    taken = Vector(x for h, x in zip(held, tau, strict=True) if h)
    return taken, Vector(x for h, x in zip(held, qdd, strict=True) if not h)


def hybrid_mask(model, q, qd, mask, qdd, tau, f_ext):
    """Give forces or accelerations by a mask that may change with every call.

        mask_k = 1: qdd_k is given, tau_k found;   mask_k = 0: tau_k given, qdd_k found

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        mask: 1 or 0 by coordinate, nv.
        qdd: Accelerations, nv, read where the mask is 1 [rad/s² | m/s²].
        tau: Joint forces, nv, read where it is 0 [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        All tau and all qdd, nv each.

    Source: KIM-2.3 (Table 4).
    """
    return mixed(model, q, qd, [m > 0.5 for m in mask], qdd, tau, f_ext)


def _sizes(model, options):
    held = prescribed_coordinates(model, options["prescribed"])
    return {"nu": sum(held), "nf": len(held) - sum(held)}


class Hybrid(TextSolver):
    """Hybrid dynamics of fixed joints, or by a mask that is an input."""

    def build(self, model, **choices):
        """Give a Program; prescribed="mask" gives that of hybrid_mask."""
        if choices.get("prescribed") == "mask":
            rest = {k: v for k, v in choices.items() if k != "prescribed"}
            return MASK.bound(self.origin, self.lookup).build(model, **rest)
        return super().build(model, **choices)


MASK = TextSolver("hybrid_mask", HYBRID_DYNAMICS_MASKED, hybrid_mask, by_joint=False)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        Hybrid(
            "hybrid",
            HYBRID_DYNAMICS,
            hybrid,
            options={"prescribed": ()},
            sizes=_sizes,
            by_joint=False,
            regrouped=True,
        ),
        MASK,
    ]
