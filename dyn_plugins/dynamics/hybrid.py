"""Hybrid dynamics: accelerations of some joints are given, forces of the others."""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    hookimpl,
    join_force,
    join_v,
    resistance,
    split_q,
    split_v,
    where,
)
from dyn_core.errors import UnsupportedError
from dyn_core.problems import HYBRID_DYNAMICS, HYBRID_DYNAMICS_MASKED
from dyn_core.validation import shown
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    transmitted_forces,
)
from dyn_plugins.dynamics.rnea import body_forces


def hybrid_from_mask(model, q, qd, prescribed, qdd, tau, f_ext):
    """Return joint forces and accelerations, one of the two given by coordinate.

        H qdd + C = tau

    C includes the external forces, and the friction and springs that act. qdd is given
    where `prescribed` (a condition by coordinate), else tau. Body forces are computed
    for the motion with the prescribed accelerations and zeros for the others. In the
    solve for the others, prescribed coordinates are rigid; if their inertia is
    singular, the Program raises SingularError. f_ext is by body with the base, body
    coordinates [N·m; N].

    Source: KIM-2.3 (Table 4), with the couplings of TAZZ-5.1 and TAZZ-5.3.
    """
    pairs = zip(prescribed, qdd, strict=True)
    qdd_u = Vector(where(rigid, x, 0.0) for rigid, x in pairs)
    friction = resistance(model, q, qd)
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd_u)
    X, S, p = body_forces(model, *motion, f_ext)
    joints, IA = articulated_joints(model, X, S, prescribed)
    push = tau - friction - rotor_forces(model, motion[2])
    free, a, pA = accelerations_from_forces(model, joints, push, p)
    qdd = qdd_u + join_v(model, free)
    forces = transmitted_forces(model, joints, IA, a, pA)
    forces = forces + rotor_forces(model, split_v(model, qdd)) + friction
    triples = zip(prescribed, forces, tau, strict=True)
    return Vector(where(rigid, x, y) for rigid, x, y in triples), qdd


def rotor_forces(model, qdd):
    """Return the joint forces, nv, that accelerate the rotors: armature times qdd.

    qdd is by body. Forces of followers, times the ratio, are added to their leaders'.
    """
    forces = [None, *(model.armature[i] * qdd[i] for i in model.bodies)]
    return join_force(model, forces)


def prescribed_coordinates(model, prescribed):
    """Return a list of booleans, nv: whether the acceleration is prescribed.

    Entries: joints, or pairs (joint, index of its coordinate); no followers, none
    twice.
    """
    prescribed = (prescribed,) if isinstance(prescribed, str) else prescribed
    chosen = [False] * model.nv
    for entry in prescribed:
        pair = isinstance(entry, (list, tuple)) and len(entry) == 2
        if not pair and not isinstance(entry, str):
            raise UnsupportedError(
                f"{shown(entry)} is no joint; valid: its name, or (name, number"
                " of its coordinate)"
            )
        name, k = entry if pair else (entry, None)
        place = model.v_slice(name)
        if name not in model.joint_names:
            raise UnsupportedError(
                f"joint '{name}' follows another; valid: {', '.join(model.joint_names)}"
            )
        coordinates = range(place.start, place.stop)
        if k is not None and k not in range(len(coordinates)):
            raise UnsupportedError(
                f"joint '{name}' has coordinates 0 to {len(coordinates) - 1}, not {k}"
            )
        for number in coordinates if k is None else [coordinates[k]]:
            if chosen[number]:
                raise UnsupportedError(f"joint '{name}' is prescribed twice")
            chosen[number] = True
    return chosen


def known_coordinates(model, entries):
    """Check entries of prescribed_coordinates, or None; no model: only their type."""
    if entries is None:
        return
    if not isinstance(entries, (str, list, tuple)):
        raise UnsupportedError(
            f"{shown(entries)} is no list of joints; valid: a list, None"
        )
    if model is not None:
        prescribed_coordinates(model, entries)


def in_order(model, entries):
    """Refuse joints or coordinates that are not in the order of the coordinates.

    Inputs or outputs have that order: a list in another one would mislead. A set has no
    order and passes, and so does None, or any entries without a model.
    """
    if model is None or entries is None or isinstance(entries, str):
        return
    prescribed_coordinates(model, entries)
    listed = [] if isinstance(entries, (set, frozenset)) else [*entries]

    def place(entry):
        name, k = (entry, 0) if isinstance(entry, str) else entry
        return model.v_slice(name).start + k

    ordered = sorted(listed, key=place)
    if listed != ordered:
        listed, ordered = (", ".join(map(str, side)) for side in (listed, ordered))
        raise UnsupportedError(
            f"{listed}; valid: in the order of the coordinates: {ordered}"
        )


def known_in_order(model, entries):
    """Check `entries` as known_coordinates and in_order do; it raises their errors."""
    known_coordinates(model, entries)
    in_order(model, entries)


def hybrid(model, q, qd, qdd_u, tau_v, f_ext, prescribed):
    """Return the forces of some joints and the accelerations of the others: O(n).

        tau_u = H_uu qdd_u + H_uv qdd_v + C_u,   H_vv qdd_v = tau_v - C_v - H_vu qdd_u

    A singular inertia of the others raises SingularError when the Program runs.

    Inputs and outputs: those of HYBRID_DYNAMICS; f_ext by body, the base first. u are
    the prescribed coordinates, v the others, both in the order of qd.

    Args:
        prescribed: Names of joints whose acceleration is given, or pairs (joint, k) of
            one of its coordinates. The value "mask" is handled by Hybrid.build.

    Raises:
        ModelError: In a build, for an unknown, fixed or locked joint in `prescribed`.
        UnsupportedError: In a build, for a follower, a missing coordinate, one named
            twice, or another order than that of qd; see prescribed_coordinates.

    Source: KIM-2.3 (Table 4).
    """
    mask = prescribed_coordinates(model, prescribed)
    qdd, tau = spread(mask, qdd_u, tau_v)
    tau, qdd = hybrid_from_mask(model, q, qd, mask, qdd, tau, f_ext)
    return part_where(mask, True, tau), part_where(mask, False, qdd)


def spread(mask, u, v):
    """Return values u of prescribed and v of other coordinates as two Vectors nv.

    Args:
        mask: By coordinate, whether it is prescribed; Python booleans.
        u, v: Values in the order of the coordinates; the gaps become 0.0. Further
            values are ignored, too few raise RuntimeError.
    """
    u, v = iter(u), iter(v)
    first = Vector(next(u) if rigid else 0.0 for rigid in mask)
    return first, Vector(0.0 if rigid else next(v) for rigid in mask)


def part_where(mask, wanted, values):
    """Return a Vector of the values of the coordinates whose mask equals `wanted`."""
    return Vector(x for rigid, x in zip(mask, values, strict=True) if rigid == wanted)


def hybrid_mask(model, q, qd, mask, qdd, tau, f_ext):
    """Return forces and accelerations by a mask that may change with every call.

        mask_k = 1: qdd_k is given;   mask_k = 0: tau_k is given;   H qdd + C = tau

    An entry above 0.5 counts as 1. The results are tau and qdd, nv each; the given
    values are among them, unchanged. A singular inertia of coordinates with mask 0
    raises SingularError when the Program runs.

    Inputs and outputs: those of HYBRID_DYNAMICS_MASKED; f_ext by body, the base first.

    Source: KIM-2.3 (Table 4).
    """
    prescribed = [m > 0.5 for m in mask]
    return hybrid_from_mask(model, q, qd, prescribed, qdd, tau, f_ext)


def _sizes(model, options):
    nu = sum(prescribed_coordinates(model, options["prescribed"]))
    return {"nu": nu, "nf": model.nv - nu}


class Hybrid(TracedSolver):
    """Hybrid dynamics with a fixed set of prescribed joints, or a mask as an input."""

    def build(self, model, **choices):
        """Return a Program; prescribed="mask" builds the solver hybrid_mask instead.

        choices: The options of TracedSolver.build and `prescribed`; with "mask" the
        others are passed on to hybrid_mask. Raises UnsupportedError or ModelError for
        an invalid `prescribed`, and the errors of TracedSolver.build.
        """
        if choices.get("prescribed") == "mask":
            rest = {k: v for k, v in choices.items() if k != "prescribed"}
            return MASK.bound(self.origin, self.lookup).build(model, **rest)
        return super().build(model, **choices)


MASK = TracedSolver(
    "hybrid_mask", HYBRID_DYNAMICS_MASKED, hybrid_mask, by_joint=False, default=True
)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        Hybrid(
            "hybrid",
            HYBRID_DYNAMICS,
            hybrid,
            options={"prescribed": ()},
            valid={"prescribed": in_order},
            sizes=_sizes,
            by_joint=False,
            regrouped=True,
            default=True,
        ),
        MASK,
    ]
