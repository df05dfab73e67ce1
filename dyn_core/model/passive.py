"""Joint forces that the state determines: springs and what a user's function gives.

Damping and dry friction are in coordinates.py. A function for Model.with_forces takes
(model, q, qd), Vectors of independent coordinates, and gives the joint force that the
robot exerts on itself, nv numbers made of the functions of dyn_core.scalar: a spring
gives -k (q - rest). It acts where springs do: build(model, joint_springs=True).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dyn_core.errors import ModelError
from dyn_core.jets import Jet, jet
from dyn_core.model.coordinates import (
    friction_force,
    friction_slopes,
    integrate,
    join_force,
    join_slopes,
    split_q,
)
from dyn_core.spatial import Matrix, Vector

if TYPE_CHECKING:
    from dyn_core.model.model import Model

NOTHING = Vector(())


def resistance(
    model: Model, q: Vector, qd: Vector, friction: bool = True, springs: bool = True
) -> Vector:
    """Joint force that passive joint forces take, (nv,).

        damping qd + friction tanh(qd / v_s) + stiffness (q - rest) - sum of forces

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        friction: Whether damping and dry friction act.
        springs: Whether springs and the user's forces act.

    Source: KIM-S2.
    """
    total = friction_force(model, qd) if friction else Vector.zeros(model.nv)
    if springs:
        total = total + spring_force(model, q)
        for function in model.forces:
            total = total - _given(model, function, q, qd)
    return total


def without_springs(model: Model) -> Model:
    """Give the same robot with neither springs nor forces of the user."""
    slack = tuple(k * 0.0 for k in model.stiffness)
    return replace(model, stiffness=slack, forces=())


def spring_force(model: Model, q: Vector) -> Vector:
    """Joint force that stretches the springs, (nv,): stiffness (q - rest).

    Source: KIM-S2.
    """
    parts = [NOTHING]
    for i, at in zip(model.bodies, split_q(model, q)[1:], strict=True):
        k = model.stiffness[i]
        parts.append(k * (at - model.rest[i]) if len(at) == len(k) else k * 0.0)
    return join_force(model, parts)


def stiffness_matrix(model: Model, q: Vector, qd: Vector) -> Matrix:
    """Derivative of the resistance by a displacement of q, nv x nv.

    Source: KIM-S2 (derivative hooks); the user's functions by Jets.
    """
    blocks = {(i, i): Matrix.diagonal(model.stiffness[i]) for i in model.bodies}
    at = Vector(Jet(x) for x in q)
    still = Vector(Jet(x) for x in qd)
    return _less_slopes(
        model,
        join_slopes(model, blocks),
        lambda f, u: _given(model, f, integrate(model, at, u), still),
    )


def damping_matrix(
    model: Model, q: Vector, qd: Vector, friction: bool = True, springs: bool = True
) -> Matrix:
    """Derivative of the resistance by qd, nv x nv.

    Source: KIM-S2 (derivative hooks); the user's functions by Jets.
    """
    zero = Matrix.zeros(model.nv, model.nv)
    slopes = friction_slopes(model, qd) if friction else zero
    if not springs:
        return slopes
    at = Vector(Jet(x) for x in q)
    return _less_slopes(model, slopes, lambda f, u: _given(model, f, at, u + qd))


def _less_slopes(
    model: Model, slopes: Matrix, along: Callable[[Any, Vector], Vector]
) -> Matrix:
    """Take from slopes those of the user's functions along each direction."""
    for function in model.forces:
        columns = []
        for k in range(model.nv):
            u = Vector(Jet(0.0, float(j == k)) for j in range(model.nv))
            columns.append([jet(x).d1 for x in along(function, u)])
        slopes = slopes - Matrix(columns).T if columns else slopes
    return slopes


def _given(model: Model, function: Callable[..., Any], q: Vector, qd: Vector) -> Vector:
    """Ask a user's function, and refuse what is not nv numbers."""
    given = function(model, q, qd)
    try:
        force = Vector(given)
    except TypeError:
        force = None
    if force is None or len(force) != model.nv:
        name = getattr(function, "__name__", repr(function))
        raise ModelError(
            f"the force function '{name}' gave {given!r}; it must give {model.nv}"
            " numbers, one for each velocity coordinate"
        )
    return force
