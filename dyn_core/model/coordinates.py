"""Coordinates: splitting by joint, couplings, and motion on the configuration space.

A follower's coordinates are made from its leader's here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.scalar import Column, tanh
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Vector
from dyn_core.spatial.linear import Factored

if TYPE_CHECKING:
    from dyn_core.model.model import Model

NOTHING = Vector(())
PIVOT = 1e-13  # a pivot below this part of the inertia along its joint is zero
FRICTION_SPEED = 0.01  # v_s of dry friction: friction * tanh(qd / v_s) [rad/s | m/s]


def split_q(model: Model, q: Vector) -> list[Vector]:
    """Give each body its joint's position; followers from their leaders."""
    parts = [NOTHING]
    for i in model.bodies:
        _, ratio, offset = model.leader[i]
        own = q[model.q_slices[i]]
        parts.append(own if ratio is None else ratio @ own + offset)
    return parts


def split_v(model: Model, v: Vector) -> list[Vector]:
    """Give each body its joint's velocity or acceleration."""
    parts = [NOTHING]
    for i in model.bodies:
        ratio = model.leader[i].ratio
        own = v[model.v_slices[i]]
        parts.append(own if ratio is None else ratio @ own)
    return parts


def join_v(model: Model, parts: Sequence[Vector]) -> Vector:
    """Collect what each independent joint has, in coordinate order."""
    return Vector(x for i in model.independent for x in parts[i])


def join_force(model: Model, parts: Sequence[Vector]) -> Vector:
    """Collect joint forces; a follower adds ratio.T times its own to the leader."""
    sums = [NOTHING, *(parts[i] for i in model.bodies)]
    for i in model.bodies:
        lead, ratio, _ = model.leader[i]
        if ratio is not None:
            sums[lead] = sums[lead] + ratio.T @ sums[i]
    return join_v(model, sums)


def join_matrix(model: Model, blocks: dict[tuple[int, int], Matrix]) -> Matrix:
    """Collect a symmetric matrix from its blocks (i, j), j an ancestor of i or i."""
    H = [[0.0] * model.nv for _ in range(model.nv)]
    for (i, j), block in blocks.items():
        rows, columns = model.v_slices[i], model.v_slices[j]
        led = _contracted(model, i, j, block)
        for a, row in enumerate(range(rows.start, rows.stop)):
            for b, column in enumerate(range(columns.start, columns.stop)):
                x = led[a, b]
                H[row][column] = H[row][column] + x
                if i != j:
                    H[column][row] = H[column][row] + x
    return Matrix(H)


def join_slopes(model: Model, blocks: dict[tuple[int, int], Matrix]) -> Matrix:
    """Collect a matrix that is not symmetric from its blocks (i, j)."""
    M = [[0.0] * model.nv for _ in range(model.nv)]
    for (i, j), block in blocks.items():
        led = _contracted(model, i, j, block)
        for a, row in enumerate(range(*model.v_slices[i].indices(model.nv))):
            for b, column in enumerate(range(*model.v_slices[j].indices(model.nv))):
                M[row][column] = M[row][column] + led[a, b]
    return Matrix(M)


def _contracted(model: Model, i: int, j: int, block: Matrix) -> Matrix:
    """Give a block of bodies i and j by their leaders' coordinates."""
    left, right = model.leader[i].ratio, model.leader[j].ratio
    block = block if left is None else left.T @ block
    return block if right is None else block @ right


def on_one_path(model: Model) -> list[tuple[int, int]]:
    """Give the places (row, column) of H that the tree does not make zero, sorted.

    Two coordinates meet where a body that one moves carries a body that the other
    moves, or the other way round.
    """
    found = set()
    for i in model.bodies:
        j = i
        while j:
            rows = range(*model.v_slices[i].indices(model.nv))
            columns = range(*model.v_slices[j].indices(model.nv))
            found |= {(a, b) for a in rows for b in columns}
            found |= {(b, a) for a in rows for b in columns}
            j = model.parent[j]
    return sorted(found)


def pivot_floors(model: Model) -> tuple[tuple[float, ...], ...]:
    """Give the least regular pivots by body; a leader's carries its followers, too."""
    rows = [[PIVOT * x for x in row] for row in model.inertia_scale]
    for i in model.bodies:
        lead, ratio, _ = model.leader[i]
        if ratio is not None:
            for k, column in enumerate(zip(*ratio.rows, strict=True)):
                pairs = zip(column, model.inertia_scale[i], strict=True)
                rows[lead][k] += PIVOT * sum(r * r * x for r, x in pairs)
    return tuple(tuple(row) for row in rows)


def joint_factors(model: Model, H: Matrix) -> Factored:
    """Factor a joint-space inertia; a singular pivot names its joint."""
    floors, items = [0.0] * model.nv, [""] * model.nv
    for i in model.independent:
        at = model.v_slices[i]
        floors[at] = model.floors[i]
        items[at] = [f"joint {model.names[i]}"] * model.joint[i].nv
    return Factored(H, floors, items)


def join_columns(model: Model, parts: dict[int, MotionSubspace]) -> Matrix:
    """Collect a Jacobian (6, nv) from each joint's columns; absent ones are zero."""
    columns = [Motion.zero()] * model.nv
    for i, subspace in parts.items():
        ratio, at = model.leader[i].ratio, model.v_slices[i].start
        led = subspace if ratio is None else subspace @ ratio
        for k, column in enumerate(led):
            columns[at + k] = columns[at + k] + column
    return Matrix(zip(*columns, strict=True)) if columns else Matrix([[]] * 6)


def friction_force(model: Model, qd: Vector) -> Vector:
    """Joint force against damping and dry friction, (nv,).

        damping qd + friction tanh(qd / v_s)

    Source: design of this project; v_s is FRICTION_SPEED.
    """
    parts = [NOTHING]
    for i, v in zip(model.bodies, split_v(model, qd)[1:], strict=True):
        dry = Vector(
            f * tanh(x / FRICTION_SPEED)
            for f, x in zip(model.friction[i], v, strict=True)
        )
        parts.append(model.damping[i] * v + dry)
    return join_force(model, parts)


def friction_slopes(model: Model, qd: Vector) -> Matrix:
    """Derivative of friction_force by qd, nv x nv; diagonal but for matrix gears."""
    blocks = {}
    for i, v in zip(model.bodies, split_v(model, qd)[1:], strict=True):
        slopes = []
        for viscous, dry, x in zip(model.damping[i], model.friction[i], v, strict=True):
            t = tanh(x / FRICTION_SPEED)
            slopes.append(viscous + dry * ((1 - t * t) / FRICTION_SPEED))
        blocks[i, i] = Matrix.diagonal(slopes)
    return join_slopes(model, blocks)


def friction_slope(model: Model, qd: Vector) -> Vector:
    """Give the diagonal of friction_slopes."""
    slopes = friction_slopes(model, qd)
    return Vector(slopes[k, k] for k in range(model.nv))


def integrate(model: Model, q: Vector, dv: Vector) -> Vector:
    """Position after the displacement dv."""
    parts: list[Any] = []
    for i in model.independent:
        joint = model.joint[i]
        parts += joint.integrate(q[model.q_slices[i]], dv[model.v_slices[i]])
    return Vector(parts)


def start_axes(model: Model, qd: Vector, qdd: Vector) -> Vector:
    """Rate of the velocities in axes that stay as they are now (floating joints)."""
    parts: list[Any] = []
    for i in model.independent:
        at = model.v_slices[i]
        parts += model.joint[i].start_axes(qd[at], qdd[at])
    return Vector(parts)


def advance(model: Model, q: Vector, u: Vector, dt: Any) -> tuple[Vector, Vector]:
    """Position and velocity after dt at the velocity u in the axes of the start."""
    places: list[Any] = []
    rates: list[Any] = []
    for i in model.independent:
        parts = q[model.q_slices[i]], u[model.v_slices[i]]
        place, rate = model.joint[i].advance(*parts, dt)
        places += place
        rates += rate
    return Vector(places), Vector(rates)


def difference(model: Model, q0: Vector, q1: Vector) -> Vector:
    """Displacement that takes q0 to q1."""
    parts: list[Any] = []
    for i in model.independent:
        at = model.q_slices[i]
        parts += model.joint[i].difference(q0[at], q1[at])
    return Vector(parts)


def tangent_rate(model: Model, u: Vector, v: Vector) -> Vector:
    """Rate of the displacement u from a fixed start, moving at v."""
    parts: list[Any] = []
    for i in model.independent:
        at = model.v_slices[i]
        parts += model.joint[i].rate(u[at], v[at])
    return Vector(parts)


def position_rate(model: Model, q: Vector, v: Vector) -> Vector:
    """Rate of the position coordinates at the velocity v."""
    parts: list[Any] = []
    for i in model.independent:
        own = q[model.q_slices[i]], v[model.v_slices[i]]
        parts += model.joint[i].position_rate(*own)
    return Vector(parts)


def from_joints(
    model: Model, values: Mapping[str, float], what: str, tolerance: float | None
) -> np.ndarray:
    """Give independent coordinates of values by joint name, followers among them.

    Args:
        model: Robot.
        values: By name, for joints of one coordinate.
        what: position or velocity.
        tolerance: How far a follower may be from its rule; None to project: the
            nearest coordinates by least squares over all joints given.
    """
    size = model.nq if what == "position" else model.nv
    slices = model.q_slices if what == "position" else model.v_slices
    start = model.neutral() if what == "position" else np.zeros(size)
    found = start
    groups: dict[int, list[tuple[str, float, float]]] = {}
    for name, value in values.items():
        i = model.body_of_joint(name)
        lead, ratio, offset = model.leader[i]
        if model.joint[i].nv != 1:
            kind = model.joint[i].kind
            raise ModelError(f"joint '{name}' is {kind}: give its {what} in q", name)
        r = 1.0 if ratio is None else float(ratio[0, 0])
        o = 0.0 if ratio is None or what == "velocity" else float(offset[0])
        groups.setdefault(lead, []).append((name, r, float(value) - o))
    for lead, rows in groups.items():
        weight = sum(r * r for _, r, _ in rows)
        x = sum(r * y for _, r, y in rows) / weight if weight else 0.0
        own = [y for name, _, y in rows if name == model.names[lead]]
        x = own[0] if own and tolerance is not None else x
        for name, r, y in rows:
            if tolerance is not None and abs(r * x - y) > tolerance:
                raise ModelError(
                    f"joint '{name}' follows '{model.names[lead]}' and cannot have"
                    f" this {what}: it is {y - r * x:g} off its rule (allowed"
                    f" {tolerance:g}); leave it out, or project=True takes the nearest",
                    name,
                )
        found[slices[lead]] = x
    return found


def normalize(model: Model, q: Vector) -> Vector:
    """Position with unit quaternions."""
    parts: list[Any] = []
    for i in model.independent:
        parts += model.joint[i].normalize(q[model.q_slices[i]])
    return Vector(parts)


def call(
    model: Model, function: Callable[..., Vector], gives: str, **inputs: Any
) -> Any:
    """Call a function of Vectors with Vectors, or with arrays (n,) or (batch, n)."""
    if all(isinstance(x, Vector) for x in inputs.values()):
        return function(model, *inputs.values())
    arrays = [
        model.check_shape(name, x, model.nq if name.startswith("q") else model.nv)
        for name, x in inputs.items()
    ]
    columns = [
        Vector(Column(np.ascontiguousarray(x[..., k])) for k in range(x.shape[-1]))
        for x in arrays
    ]
    result = function(model, *columns)
    width = model.nq if gives == "q" else model.nv
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    out = np.empty((*batch, width), np.result_type(*arrays))
    for k, x in enumerate(result):
        out[..., k] = x.values if isinstance(x, Column) else x
    return out
