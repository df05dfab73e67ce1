"""Integration of positions and velocities, as arrays.

The origins of floating bodies move along straight lines.
"""

from __future__ import annotations

import numpy as np

from dyn_core.errors import NonFiniteError
from dyn_core.model import Model, coordinates
from dyn_core.spatial import Vector


def moved(model: Model, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """Return the position after a displacement, with unit quaternions, (nq,).

    Args:
        model: Robot.
        q, dv: Position, (nq,), and displacement (velocity times time) along the axes of
            the velocity at q, (nv,).

    Raises:
        NonFiniteError: The position is not finite.
    """
    if _plain(model):
        return _finite(q + dv)
    position = coordinates.integrate(model, Vector(q.tolist()), Vector(dv.tolist()))
    return _finite(np.array(list(coordinates.normalize(model, position)), float))


def advanced(
    model: Model,
    q: np.ndarray,
    u: np.ndarray,
    h: float,
    way: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity after h at the constant velocity u.

    u is along the axes of the velocity at q; the result along those at the new
    position, which rotate with floating bodies. `way` moves the position instead of u.
    If all joints have one coordinate, the returned velocity is the array u itself.
    """
    if _plain(model):
        return _finite(q + h * (u if way is None else way)), u
    start, velocity = (Vector(x.tolist()) for x in (q, u))
    along = None if way is None else Vector(way.tolist())
    result = coordinates.advance(model, start, velocity, h, along)
    position, rate = (np.array(list(x), float) for x in result)
    return _finite(position), rate


def turning(model: Model, qd: np.ndarray) -> np.ndarray:
    """Return w x v of floating bodies, or 0: acceleration in fixed minus body axes."""
    if _plain(model):
        return np.zeros(len(qd))
    zeros = Vector.zeros(len(qd))
    return np.array(
        list(coordinates.rate_in_initial_axes(model, Vector(qd.tolist()), zeros)), float
    )


def gyroscopic_change(
    model: Model,
    H: np.ndarray,
    qd: np.ndarray,
    force: np.ndarray,
    h: float,
    remaining: float = 1.0,
) -> np.ndarray:
    """Return the change of velocity that averages the gyroscopic moments of a step.

    It is to be added to the velocity after an explicit step, (nv,) [rad/s | m/s], which
    uses the moments at its start. Only floating joints, and ball joints with a
    quaternion, at the base have one; other entries are zero. See
    coordinates.gyroscopic_change.

    Args:
        model: Robot.
        H: Joint-space inertia, (nv, nv).
        qd: Velocity before the step, (nv,).
        force: H times the acceleration without constraints, (nv,) [N·m | N].
        h: Step [s].
        remaining: Fraction of the step during which the body moves on from the position
            of qd.
    """
    if _plain(model):
        return np.zeros(len(qd))
    v, f = Vector(qd.tolist()), Vector(force.tolist())
    change = coordinates.gyroscopic_change(model, H, v, f, h, remaining)
    return np.array(list(change), float)


def _plain(model: Model) -> bool:
    """Return whether all joints have one coordinate: q + dv is the moved position.

    Joints without coordinates and followers do not count.
    """
    return all(model.joint[i].nq == 1 for i in model.independent)


def _finite(q: np.ndarray) -> np.ndarray:
    """Return a position; raise NonFiniteError if it is not finite."""
    if not np.isfinite(q).all():
        raise NonFiniteError("contacts: the position is not finite", "q")
    return q
