"""Passive joint forces: damping, dry friction, springs, functions of the user.

A function for Model.with_forces takes (model, q, qd), Vectors of independent
coordinates, and returns the joint force that the robot exerts on itself, nv numbers
computed with the functions of dyn_core.authoring: a spring returns -k (q - rest). It
acts together with springs: build(model, joint_springs=True). Its potential, a function
of (model, q), is only used to compute the energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from dyn_core.errors import ModelError
from dyn_core.model.assembly.build import ForceFunction
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.coordinates.configuration_space import integrate
from dyn_core.model.coordinates.joints_and_followers import (
    join_force,
    join_slopes,
    split_q,
    split_v,
)
from dyn_core.numbers.scalar import Scalar, exp, tanh
from dyn_core.numbers.taylor import COORDINATE, derivatives, variables
from dyn_core.spatial import Matrix, Vector

AnyTree = TypeVar("AnyTree", bound=Tree)
NOTHING = Vector(())


def resistance(
    tree: Tree, q: Vector, qd: Vector, friction: bool = True, springs: bool = True
) -> Vector:
    """Return the joint force that overcomes the passive joint forces, (nv,).

        friction_force + stiffness (q - rest) - sum of forces

    Args:
        tree: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        friction: Whether damping and dry friction act.
        springs: Whether springs, point springs and the user's forces act.

    Raises:
        ModelError: A user's function does not return nv numbers.
        SingularError: The ends of a point spring coincide (PointSprings).

    Source: KIM-S2.
    """
    total = friction_force(tree, qd) if friction else Vector.zeros(tree.nv)
    if springs:
        total = total + spring_force(tree, q)
        for function in tree.forces:
            total = total - _user_force(tree, function, q, qd)
    return total


def without_springs(tree: AnyTree) -> AnyTree:
    """Return the same robot without joint springs and functions in tree.forces.

    The functions are point springs and forces of the user.
    """
    slack = tuple(k * 0.0 for k in tree.stiffness)
    return replace(tree, stiffness=slack, forces=())


def with_potentials(tree: AnyTree) -> AnyTree:
    """Return the same robot without the user's forces that have no potential."""
    kept = tuple(f for f in tree.forces if getattr(f, "potential", None) is not None)
    return replace(tree, forces=kept)


def without_friction(tree: AnyTree) -> AnyTree:
    """Return the same robot with zero damping and dry friction.

    Its asymmetry and the Stribeck effect are zero, too; dampers of point springs stay.
    """
    zeros = tuple(x * 0.0 for x in tree.damping)
    return replace(without_dry_friction(tree), damping=zeros)


def without_dry_friction(tree: AnyTree) -> AnyTree:
    """Return the robot without dry friction and Stribeck effect; damping stays."""
    zeros = tuple(x * 0.0 for x in tree.friction)
    return replace(tree, friction=zeros, friction_asymmetry=zeros, stribeck=zeros)


def friction_force(tree: Tree, qd: Vector) -> Vector:
    """Return the joint force that overcomes damping and dry friction, (nv,) [N·m | N].

        damping qd + t (friction + friction_asymmetry t + stribeck e),
        t = tanh(qd / friction_speed),   e = exp(-(qd / stribeck_speed)²)

    Friction of followers acts on their leaders. Far from rest dry friction is friction
    + friction_asymmetry in positive direction, friction - friction_asymmetry in
    negative direction; near rest `stribeck` is added. It is smooth and dissipative: its
    power is never negative.

    Source: design of this project; e: B. Armstrong-Helouvry, P. Dupont and C. Canudas
    de Wit, Automatica 30 (1994).
    """
    forces = [NOTHING]
    for i, v in zip(tree.bodies, split_v(tree, qd)[1:], strict=True):
        t = friction_direction(tree, i, v)
        slow = [x / s for x, s in zip(v, tree.stribeck_speed[i], strict=True)]
        more = tree.stribeck[i] * Vector(exp(-(x * x)) for x in slow)
        dry = t * (tree.friction[i] + tree.friction_asymmetry[i] * t + more)
        forces.append(tree.damping[i] * v + dry)
    return join_force(tree, forces)


def friction_direction(tree: Tree, i: int, v: Vector) -> Vector:
    """Return tanh(v / friction_speed), the smooth sign of a joint's rates, Vector (n,).

    Args:
        tree: Robot.
        i: Number of the body that the joint carries.
        v: Rates of this joint's n coordinates [rad/s | m/s].
    """
    return Vector(tanh(x / s) for x, s in zip(v, tree.friction_speed[i], strict=True))


def friction_slopes(tree: Tree, qd: Vector) -> Matrix:
    """Return the matrix d friction_force / d qd, nv x nv, for qd (nv,) [rad/s | m/s].

    It is diagonal, except for followers whose ratio is a matrix; asymmetry and the
    Stribeck effect can make it negative.
    """
    blocks = {}
    for i, v in zip(tree.bodies, split_v(tree, qd)[1:], strict=True):
        slopes = []
        dry = zip(
            tree.friction[i], tree.friction_asymmetry[i], tree.friction_speed[i],
            tree.stribeck[i], tree.stribeck_speed[i], strict=True,
        )  # fmt: skip
        for viscous, numbers, x in zip(tree.damping[i], dry, v, strict=True):
            mean, more, width, extra, speed = numbers
            t, slow = tanh(x / width), x / speed
            rate, near = (1 - t * t) / width, extra * exp(-(slow * slow))
            slope = viscous + (mean + more * t * 2.0 + near) * rate
            slopes.append(slope - near * t * slow * 2.0 / speed)
        blocks[i, i] = Matrix.diagonal(slopes)
    return join_slopes(tree, blocks)


def friction_slope(tree: Tree, qd: Vector) -> Vector:
    """Return the diagonal of friction_slope_matrix as a Vector, nv.

    d friction_force / d qd without asymmetry and Stribeck effect, never negative
    [N·m·s/rad | N·s/m].
    """
    slopes = friction_slope_matrix(tree, qd)
    return Vector(slopes[k, k] for k in range(tree.nv))


def friction_slope_matrix(tree: Tree, qd: Vector) -> Matrix:
    """Return d friction_force / d qd without asymmetry and Stribeck effect, nv x nv.

    It is positive semidefinite, so that implicit steps may add it to the inertia.
    """
    return friction_slopes(with_equal_directions(tree), qd)


def with_equal_directions(tree: AnyTree) -> AnyTree:
    """Return the same robot with zero friction_asymmetry and stribeck."""
    zeros = tuple(x * 0.0 for x in tree.friction)
    return replace(tree, friction_asymmetry=zeros, stribeck=zeros)


def spring_force(tree: Tree, q: Vector) -> Vector:
    """Return the joint force that extends the springs, stiffness (q - rest), (nv,).

    Springs of followers act on their leaders. Joints with quaternions have no
    spring force. Point springs and forces of the user are not included.

    Source: KIM-S2.
    """
    forces = [NOTHING]
    for i, q_i in zip(tree.bodies, split_q(tree, q)[1:], strict=True):
        k = tree.stiffness[i]
        forces.append(k * (q_i - tree.rest[i]) if len(q_i) == len(k) else k * 0.0)
    return join_force(tree, forces)


def spring_energy(tree: Tree, q: Vector) -> Scalar:
    """Return the potential energy of springs and of the user's forces [J].

        sum of stiffness (q - rest)² / 2, and of the potentials of the user's forces

    Point springs are included; user's forces without a potential are not counted.

    Source: KIM-S2.
    """
    energy: Scalar = 0.0
    for i, q_i in zip(tree.bodies, split_q(tree, q)[1:], strict=True):
        k = tree.stiffness[i]
        if len(q_i) == len(k):
            stretch = q_i - tree.rest[i]
            energy = energy + (k * stretch) @ stretch * 0.5
    for force in tree.forces:
        potential = getattr(force, "potential", None)
        if potential is not None:
            energy = energy + potential(tree, q)
    return energy


def forces_without_potential(tree: Tree) -> tuple[str, ...]:
    """Return the names of the functions in tree.forces that have no potential.

    They are in the order of tree.forces; an object without a `__name__` has its repr.
    """
    bare = [f for f in tree.forces if getattr(f, "potential", None) is None]
    return tuple(getattr(f, "__name__", repr(f)) for f in bare)


def stiffness_matrix(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """Return the derivative of the `resistance` by a displacement of q, nv x nv.

    q and qd are the joint positions (nq) and velocities (nv). It has the springs, point
    springs and the user's forces; friction does not depend on q. Column k is the
    derivative by the displacement of velocity coordinate k, see `integrate`.

    Raises ModelError if a user's function does not return nv numbers, SingularError if
    the ends of a point spring coincide.

    Source: KIM-S2 (derivative hooks); the user's functions by Taylor numbers.
    """
    blocks = {(i, i): Matrix.diagonal(tree.stiffness[i]) for i in tree.bodies}
    return _without_slopes_of_user(
        tree,
        join_slopes(tree, blocks),
        lambda f, u: _user_force(tree, f, integrate(tree, q, u), qd),
    )


def damping_matrix(
    tree: Tree, q: Vector, qd: Vector, friction: bool, springs: bool
) -> Matrix:
    """Return the derivative of the `resistance` with respect to qd, nv x nv.

    Args:
        tree: Robot.
        q, qd: Joint positions, nq, and velocities, nv.
        friction: Whether damping and dry friction act.
        springs: Whether point springs and the user's forces act.

    Raises:
        ModelError: A user's function does not return nv numbers.
        SingularError: The ends of a point spring coincide (PointSprings).

    Source: KIM-S2 (derivative hooks); the user's functions by Taylor numbers.
    """
    zero = Matrix.zeros(tree.nv, tree.nv)
    slopes = friction_slopes(tree, qd) if friction else zero
    if not springs:
        return slopes
    return _without_slopes_of_user(
        tree, slopes, lambda f, u: _user_force(tree, f, q, u + qd)
    )


def _without_slopes_of_user(
    tree: Tree, slopes: Matrix, along: Callable[[ForceFunction, Vector], Vector]
) -> Matrix:
    """Return a matrix minus the derivatives of all functions in tree.forces, nv x nv.

    along(function, u) is the force after a small change u of q or of qd; derivatives
    are by u at u = 0.
    """
    for function in tree.forces:
        columns = []
        for k in range(tree.nv):
            u = Vector(variables([0.0] * tree.nv, k))
            columns.append([derivatives(x, COORDINATE)[1] for x in along(function, u)])
        slopes = slopes - Matrix(columns).T if columns else slopes
    return slopes


def _user_force(tree: Tree, function: ForceFunction, q: Vector, qd: Vector) -> Vector:
    """Return the force of a user's function at (q, qd), which must have nv entries."""
    result: Sequence[Scalar] = function(tree, q, qd)
    try:
        force = Vector(result)
    except TypeError:
        force = None
    if force is None or len(force) != tree.nv:
        name = getattr(function, "__name__", repr(function))
        raise ModelError(
            f"the force function '{name}' gave {result!r}; it must give {tree.nv}"
            " numbers, one for each velocity coordinate"
        )
    return force
