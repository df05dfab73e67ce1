"""Positions and velocities after a step, as arrays; floating bodies go straight."""

from __future__ import annotations

import numpy as np

from dyn_core.errors import NonFiniteError
from dyn_core.model import Model, coordinates
from dyn_core.spatial import Vector


def moved(model: Model, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """Give the position after a displacement, quaternions of unit length.

    Raises:
        NonFiniteError: It is not finite.
    """
    if _plain(model):
        return _finite(q + dv)
    place = coordinates.integrate(model, Vector(q.tolist()), Vector(dv.tolist()))
    return _finite(np.array(list(coordinates.normalize(model, place)), float))


def advanced(
    model: Model, q: np.ndarray, u: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Give position and velocity after h at the velocity u in the start's axes.

    Raises:
        NonFiniteError: The position is not finite.
    """
    if _plain(model):
        return _finite(q + h * u), u
    found = coordinates.advance(model, Vector(q.tolist()), Vector(u.tolist()), h)
    place, rate = (np.array(list(x), float) for x in found)
    return _finite(place), rate


def turning(model: Model, qd: np.ndarray) -> np.ndarray:
    """Give what axes that stay see more of an acceleration than body axes, (nv,).

    w x v of floating bodies, zero elsewhere
    """
    if _plain(model):
        return np.zeros(len(qd))
    none = Vector.zeros(len(qd))
    return np.array(
        list(coordinates.start_axes(model, Vector(qd.tolist()), none)), float
    )


def _plain(model: Model) -> bool:
    """Whether all joints have one coordinate."""
    return all(model.joint[i].nq == 1 for i in model.independent)


def _finite(q: np.ndarray) -> np.ndarray:
    if not np.isfinite(q).all():
        raise NonFiniteError("contacts: the position is not finite", "q")
    return q
