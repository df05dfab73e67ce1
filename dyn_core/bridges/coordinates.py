"""Positions as plain vectors of nq numbers, where velocities have nv.

Derivatives of the library are along tangent displacements dq of nv numbers (see
docs/conventions.md). The bridges convert them to derivatives by the nq numbers of q, as
if quaternions were scaled to unit length first: a gradient is orthogonal to its
quaternion, and agrees with finite differences of any kind. For robots without
quaternions nq = nv, and nothing is converted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.spatial import Vector

_RATE, _VELOCITY = 0, 1  # indices into the result of _quadratic_maps


class PositionRates:
    """Conversions between rates of positions and velocities, for arrays of any library.

    Shapes, and the unit length of quaternions, are not checked. `plain`: no joint has a
    quaternion, and nothing is converted. `joints` has slices of positions and
    velocities of each joint with a quaternion, and tensors of its rates and velocities;
    see _quadratic_maps.
    """

    def __init__(self, model: Model) -> None:
        nq = model.nq
        self.nq, self.nv = nq, model.nv
        self.joints: list[tuple[slice, slice, np.ndarray, np.ndarray]] = []
        self._same = np.zeros((nq, nq))  # 1 between coordinates of one quaternion
        self._outside = np.ones(nq)
        for i in model.independent:
            joint, of_q, of_v = model.joint[i], model.q_slices[i], model.v_slices[i]
            places = np.arange(of_q.start, of_q.stop)
            parts = joint.quaternions(Vector(places.astype(float).tolist()))
            for part in parts:
                quaternion = [int(x) for x in part]
                self._same[np.ix_(quaternion, quaternion)] = 1.0
                self._outside[quaternion] = 0.0
            if parts:
                self.joints.append((of_q, of_v, *_quadratic_maps(joint)))
        self.plain = not self.joints

    @property
    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix A (nq, nq) and vector b (nq) of the scaling q / sqrt(A q² + b).

        A is 1 for two coordinates of one quaternion, b 1 outside quaternions; else 0.
        """
        return self._same, self._outside

    def normalized(self, xp: Any, q: Any) -> Any:
        """Return q (..., nq), or a copy with unit quaternions; a zero one gives NaN."""
        if self.plain:
            return q
        same, outside = _arrays(xp, q, self._same, self._outside)
        return q / xp.sqrt((q * q) @ same + outside)

    def velocity(self, xp: Any, q: Any, rate: Any) -> Any:
        """Return the velocity (..., nv) of a position rate (..., nq)."""
        return self._converted(xp, q, rate, _VELOCITY, False)

    def rate(self, xp: Any, q: Any, velocity: Any) -> Any:
        """Return the position rate (..., nq) of a velocity (..., nv)."""
        return self._converted(xp, q, velocity, _RATE, False)

    def adjoint_velocity(self, xp: Any, q: Any, gradient: Any) -> Any:
        """Apply the transpose of `velocity`: a gradient (..., nv) becomes (..., nq)."""
        return self._converted(xp, q, gradient, _VELOCITY, True)

    def adjoint_rate(self, xp: Any, q: Any, gradient: Any) -> Any:
        """Apply the transpose of `rate`: a gradient (..., nq) becomes (..., nv)."""
        return self._converted(xp, q, gradient, _RATE, True)

    def _converted(
        self, xp: Any, q: Any, values: Any, which: int, adjoint: bool
    ) -> Any:
        """Return values multiplied by a map of _quadratic_maps, or by its transpose.

        Values, (..., nq) or (..., nv), of joints without quaternions are unchanged. The
        map is _RATE, velocities to rates of q, or _VELOCITY, the reverse.
        """
        if self.plain:
            return values
        parts, last = [], 0
        how = "abcd,...a,...c,...d->...b" if adjoint else "abcd,...b,...c,...d->...a"
        for of_q, of_v, *maps in self.joints:
            here = of_q if (which == _VELOCITY) != adjoint else of_v
            ones = xp.ones_like(q[..., :1])
            q1 = xp.concatenate([q[..., of_q], ones], axis=-1)
            (tensor,) = _arrays(xp, q, maps[which])
            turned = xp.einsum(how, tensor, values[..., here], q1, q1)
            parts += [values[..., last : here.start], turned]
            last = here.stop
        return xp.concatenate([*parts, values[..., last:]], axis=-1)


@lru_cache(maxsize=64)
def coordinates(model: Model) -> PositionRates:
    """Return the PositionRates of a robot; cached."""
    return PositionRates(model)


def _arrays(xp: Any, like: Any, *constants: np.ndarray) -> list[Any]:
    """Return constants as arrays of the library xp, with the dtype of `like`."""
    return [xp.asarray(constant, dtype=like.dtype) for constant in constants]


def _quadratic_maps(joint: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the tensors of position_rate and of velocity_of of a joint, in this order.

    Both functions are linear in their second argument v and of degree 2 in q at most,
    so that tensors quadratic in x = (q, 1) are exact:

        result[a] = sum T[a, b, c, d] v[b] x[c] x[d]

    T is (nq, nv, nq + 1, nq + 1) for position_rate, with v the velocity, and (nv, nq,
    nq + 1, nq + 1) for velocity_of, with v the rate of q.
    """
    n = joint.nq
    rate = _tensor(joint.position_rate, n, joint.nv)
    return rate, _tensor(joint.velocity_of, n, n)


def _tensor(function: Any, n: int, inputs: int) -> np.ndarray:
    """Return the coefficients of a function (q, x), linear in x and quadratic in q.

    The shape is (size of the result, inputs, n + 1, n + 1); result[a] is the sum over
    b, c, d of T[a, b, c, d] x[b] y[c] y[d], with y = (q, 1).
    """

    def matrix(q: np.ndarray) -> np.ndarray:
        columns = np.eye(inputs).tolist()
        start = Vector(q.tolist())
        return np.array(
            [[float(x) for x in function(start, Vector(e))] for e in columns]
        )

    # A polynomial of degree 2 is determined by its values at 0, ±e_c and e_c + e_d.
    unit = np.eye(n)
    constant = matrix(np.zeros(n))
    up = [matrix(e) - constant for e in unit]
    down = [matrix(-e) - constant for e in unit]
    tensor = np.zeros((constant.shape[1], inputs, n + 1, n + 1))
    tensor[..., n, n] = constant.T
    for c in range(n):
        tensor[..., c, n] = (up[c] - down[c]).T / 2
        for d in range(n):
            both = matrix(unit[c] + unit[d]) - constant
            cross = both - up[c] - up[d] if c != d else up[c] + down[c]
            tensor[..., c, d] = cross.T / 2
    return tensor
