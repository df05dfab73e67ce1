"""Configuration space: positions, displacements and velocities of a robot.

Where joint coordinates include a quaternion, q lies on a manifold: q + dv and q1 - q0
are replaced by `integrate` and `difference`. Vectors q have nq entries, displacements
and velocities nv.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from dyn_core.errors import NonFiniteError, QuaternionError
from dyn_core.model.assembly.tree import Tree
from dyn_core.numbers.scalar import Column, Scalar, logical_and, require
from dyn_core.spatial import Matrix, Vector
from dyn_core.validation import state_array

UNIT_TOLERANCE = 1e-3  # allowed difference of a quaternion's length from 1
VectorFunction = Callable[..., Vector]  # of a Tree and Vectors


def neutral(tree: Tree) -> np.ndarray:
    """Return the neutral position (nq,): zeros, and identity quaternions.

    A custom joint is at its `neutral` coordinates.
    """
    q = np.zeros(tree.nq)
    for i in tree.independent:
        q[tree.q_slices[i]] = tree.joint[i].neutral()
    return q


def start(tree: Tree) -> np.ndarray:
    """Return the neutral position moved into the limits, (nq,).

    Joints with quaternions stay neutral.
    """
    q = neutral(tree)
    for i in tree.independent:
        if tree.joint[i].nq == tree.joint[i].nv:
            part, v = tree.q_slices[i], tree.v_slices[i]
            q[part] = np.clip(q[part], tree.lower[v], tree.upper[v])
    return q


def random(tree: Tree, rng: np.random.Generator) -> np.ndarray:
    """Return a random position (nq,), drawn by the generator `rng`.

    A joint of one coordinate is uniform within its limits if both are finite. All other
    joints ignore limits: they draw angles up to a half turn either way, away from
    singularities, and lengths within 1 m of zero; custom joints draw within their
    `span` of `neutral`. Loops are not closed.
    """
    q = np.zeros(tree.nq)
    lower, upper = tree.lower.tolist(), tree.upper.tolist()
    for i in tree.independent:
        position = tree.joint[i].random(rng)
        if tree.joint[i].nv == 1:
            low, high = (limits[tree.v_slices[i].start] for limits in (lower, upper))
            if math.isfinite(low) and math.isfinite(high):
                position = (rng.uniform(low, high),)
        q[tree.q_slices[i]] = position
    return q


def integrate(tree: Tree, q: Vector, dv: Vector) -> Vector:
    """Return the position (nq) that the displacement dv (nv) leads to from q (nq).

    dv [rad | m] is added to q, but for a joint with a quaternion it is the displacement
    in body axes, [angular; linear], as an exponential; the quaternion keeps its length.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        joint = tree.joint[i]
        values += joint.integrate(q[tree.q_slices[i]], dv[tree.v_slices[i]])
    return Vector(values)


def rate_in_initial_axes(tree: Tree, qd: Vector, qdd: Vector) -> Vector:
    """Return the rate of the velocities in axes fixed at this instant, (nv,).

    It differs from qdd for joints whose velocity is in body axes and has a linear part,
    such as floating ones: v' + w x v.

    Args:
        tree: Robot.
        qd, qdd: Velocity and acceleration in body axes, nv.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        v = tree.v_slices[i]
        values += tree.joint[i].rate_in_initial_axes(qd[v], qdd[v])
    return Vector(values)


def gyroscopic_change(
    tree: Tree, H: Any, qd: Vector, force: Vector, dt: Scalar, remaining: float = 1.0
) -> Vector:
    """Return the correction of a step's velocity to mean gyroscopic moments, nv.

    It is to be added to the velocity after an explicit step [rad/s | m/s]. Such a step
    uses the moments at its start, which speed up a body that spins freely; the
    correction replaces them by the moments at the mean velocity. All bodies carried by
    a floating or ball joint at the base are treated as one rigid body; other joints get
    zero.

    Args:
        tree: Robot.
        H: Joint-space inertia, read as H[a, b].
        qd: Joint velocities before the step, nv [rad/s | m/s].
        force: H times the acceleration without constraints, nv [N·m | N].
        dt: Step [s].
        remaining: Fraction of the step in which the body moves on from the position
            that belongs to qd; 1.0: that position is at the start of the step.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        joint, v = tree.joint[i], tree.v_slices[i]
        change = Vector.zeros(joint.nv)
        if tree.parent[i] == 0:
            rows = range(v.start, v.stop)
            block = Matrix([H[a, b] for b in rows] for a in rows)
            change = joint.gyroscopic_change(block, qd[v], force[v], dt, remaining)
        values += change
    return Vector(values)


def advance(
    tree: Tree, q: Vector, u: Vector, dt: Scalar, way: Vector | None = None
) -> tuple[Vector, Vector]:
    """Return position and velocity after dt, moving at velocity u in the initial axes.

    Args:
        tree: Robot.
        q: Position at the start, nq.
        u: Velocity in the axes of the start, nv.
        dt: Step [s].
        way: Velocity that integrates the position, such as u with a correction; None:
            u.

    Returns:
        Position (nq) with unit quaternions, and u in the axes of the new position (nv).
    """
    positions: list[Scalar] = []
    velocities: list[Scalar] = []
    for i in tree.independent:
        joint, columns, rows = tree.joint[i], tree.q_slices[i], tree.v_slices[i]
        part = None if way is None else way[rows]
        position, velocity = joint.advance(q[columns], u[rows], dt, part)
        positions += position
        velocities += velocity
    return Vector(positions), Vector(velocities)


def difference(tree: Tree, q0: Vector, q1: Vector) -> Vector:
    """Return the displacement dv (nv) with integrate(q0, dv) = q1.

    q0 and q1 are positions (nq); dv is in the tangent space at q0 [rad | m]. Rotations
    of a quaternion are at most pi; other angles are subtracted, not wrapped.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        columns = tree.q_slices[i]
        values += tree.joint[i].difference(q0[columns], q1[columns])
    return Vector(values)


def tangent_rate(tree: Tree, u: Vector, v: Vector) -> Vector:
    """Return du/dt (nv) of a displacement u(t) from a fixed position.

    For joints with quaternions it is accurate to fourth order in u.

    Args:
        tree: Robot.
        u: Displacement, nv.
        v: Joint velocity at the displaced position, nv.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        columns = tree.v_slices[i]
        values += tree.joint[i].rate(u[columns], v[columns])
    return Vector(values)


def position_rate(tree: Tree, q: Vector, v: Vector) -> Vector:
    """Return the rate dq/dt (nq,) of the coordinates at q (nq,) and velocity v (nv,).

    It is v except for joints with quaternions.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        position, velocity = q[tree.q_slices[i]], v[tree.v_slices[i]]
        values += tree.joint[i].position_rate(position, velocity)
    return Vector(values)


def velocity_of(tree: Tree, q: Vector, rate: Vector) -> Vector:
    """Return the velocity (nv,) at which the position q (nq,) changes at `rate`.

    It is the inverse of position_rate where quaternions have unit length, which is not
    checked; components of `rate` = dq/dt (nq,) that no velocity produces are ignored.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        columns = tree.q_slices[i]
        values += tree.joint[i].velocity_of(q[columns], rate[columns])
    return Vector(values)


def normalize(tree: Tree, q: Vector) -> Vector:
    """Return the position (nq) with its quaternions scaled to unit length.

    Zero quaternions are not checked here: with floats they give a ZeroDivisionError.
    """
    values: list[Scalar] = []
    for i in tree.independent:
        values += tree.joint[i].normalize(q[tree.q_slices[i]])
    return Vector(values)


def refuse_zero_quaternions(tree: Tree, q: np.ndarray) -> None:
    """Refuse quaternions in q of length < 1.5e-154 or > 1.3e154; NaN passes."""
    for i in tree.independent:
        if not tree.joint[i].has_lengths(q[..., tree.q_slices[i]]):
            raise NonFiniteError(
                f"q: the quaternion of joint {tree.names[i]} is zero or beyond 1e154"
                " and has no direction; valid: any other",
                "q",
            )


def quaternion_joints(tree: Tree) -> tuple[str, ...]:
    """Return the names of independent joints with a quaternion, in the order of q."""
    numbers = ((i, Vector([0.0] * tree.joint[i].nq)) for i in tree.independent)
    return tuple(tree.names[i] for i, q in numbers if tree.joint[i].quaternions(q))


def scaled_quaternions(tree: Tree, q: np.ndarray) -> dict[str, float]:
    """Return by joint the lengths of quaternions in q (nq,) not 1 within 1e-3."""
    lengths = {
        tree.names[i]: float(np.sqrt(part @ part))
        for i in tree.independent
        for part in tree.joint[i].quaternions(Vector(q[tree.q_slices[i]].tolist()))
    }
    return {k: x for k, x in lengths.items() if abs(x - 1) > UNIT_TOLERANCE}


def require_unit_quaternions(tree: Tree, q: Vector) -> None:
    """Require that the quaternions in q (nq) have unit length within 1e-3.

    QuaternionError: One does not or has NaN; with traced numbers the Program raises it.
    """
    low, high = (1 - UNIT_TOLERANCE) ** 2, (1 + UNIT_TOLERANCE) ** 2
    for i in tree.independent:
        for part in tree.joint[i].quaternions(q[tree.q_slices[i]]):
            square = part @ part
            good = logical_and(square >= low, square <= high)
            require(good, QuaternionError, f"joint {tree.names[i]}")


@overload
def on_arrays(
    tree: Tree, function: VectorFunction, kind: str, **inputs: Vector
) -> Vector:
    """Return the Vector that `function` returns for the robot and Vectors."""


@overload
def on_arrays(
    tree: Tree, function: VectorFunction, kind: str, **inputs: np.ndarray
) -> np.ndarray:
    """Call a function of Vectors with arrays (n,) or (batch, n); return an array."""


def on_arrays(
    tree: Tree, function: VectorFunction, kind: str, **inputs: Vector | np.ndarray
) -> Vector | np.ndarray:
    """Call a function of Vectors with Vectors, or with arrays (n,) or (batch, n).

    It returns nq numbers if `kind` is q, nv if it is v. Inputs whose names begin with q
    have nq numbers, the name qd and all others nv. The result is a Vector if all inputs
    are, else an array; batches are broadcast, and a division by zero gives inf or NaN.
    """
    vectors = [x for x in inputs.values() if isinstance(x, Vector)]
    if len(vectors) == len(inputs):
        return function(tree, *vectors)
    arrays = [
        state_array(
            name, x, tree.nq if name.startswith("q") and name != "qd" else tree.nv
        )
        for name, x in inputs.items()
    ]
    if all(x.ndim == 1 and x.dtype == float for x in arrays):
        try:  # quicker; columns below, if a branch not selected divides by zero
            return np.array(
                [*function(tree, *(Vector(x.tolist()) for x in arrays))], float
            )
        except (ArithmeticError, ValueError):
            pass
    columns = [
        Vector(Column(np.ascontiguousarray(x[..., k])) for k in range(x.shape[-1]))
        for x in arrays
    ]
    with np.errstate(all="ignore"):
        values = function(tree, *columns)
    width = tree.nq if kind == "q" else tree.nv
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    result = np.empty((*batch, width), np.result_type(*arrays))
    for k, x in enumerate(values):
        result[..., k] = x.values if isinstance(x, Column) else x
    return result
