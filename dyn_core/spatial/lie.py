"""Exponential and logarithm of rotations and poses; quaternions (x, y, z, w).

Series take over near zero, by `where`, so every function is a text.
"""

from __future__ import annotations

from typing import Any

from dyn_core.scalar import atan2, sin, sqrt, where
from dyn_core.spatial.transforms import Transform
from dyn_core.spatial.vectors import Matrix, Motion, Vector, cross3, cross_motion, skew

_SMALL = 0.25  # angle² below which the series are exact to the last bit or two

# Coefficients of powers of t²: (t - sin t)/t³ and (1 - (t/2) cot(t/2))/t².
_D = (1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800)
_E = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000)


def _power_series(coefficients: tuple[float, ...], t2: Any) -> Any:
    """Give c0 + c1 t² + c2 t⁴ + ... by Horner's rule."""
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = result * t2 + c
    return result


def _sinc(t2: Any) -> Any:
    """Give sin t/t of an angle by its square."""
    small = t2 < 1e-8
    t = sqrt(where(small, 1.0, t2))
    return where(small, 1 - t2 / 6, sin(t) / t)


def sinc_terms(t2: Any) -> tuple[Any, Any, Any]:
    """Give sin t/t, (1 - cos t)/t² and (t - sin t)/t³ of an angle by its square."""
    small = t2 < _SMALL
    safe = where(small, 1.0, t2)
    a, half = _sinc(t2), _sinc(t2 * 0.25)
    b = half * half * 0.5
    d = where(small, _power_series(_D, t2), (1 - a) / safe)
    return a, b, d


def exp3(w: Vector) -> Matrix:
    """Rotation by the vector w [rad].

        exp[w] = 1 + sin t/t [w] + (1 - cos t)/t² [w]²,   t = |w|

    Source: KIM, S1.
    """
    a, b, _ = sinc_terms(w @ w)
    W = skew(w)
    return Matrix.identity(3) + W * a + W @ W * b


def dexp3(w: Vector) -> Matrix:
    """Left Jacobian of the rotation: exp6(w, v) moves the origin by dexp3(w) v.

        dexp[w] = 1 + (1 - cos t)/t² [w] + (t - sin t)/t³ [w]²

    Source: KIM, S1.
    """
    _, b, d = sinc_terms(w @ w)
    W = skew(w)
    return Matrix.identity(3) + W * b + W @ W * d


def dexp3_inverse(w: Vector) -> Matrix:
    """Inverse of dexp3; the angle must stay below 2 pi.

    Source: KIM, S1.
    """
    t2 = w @ w
    a, b, _ = sinc_terms(t2)
    small = t2 < _SMALL
    safe = where(small, 1.0, t2)
    away = (1 - a / (2 * where(small, 1.0, b))) / safe
    e = where(small, _power_series(_E, t2), away)
    W = skew(w)
    return Matrix.identity(3) - W * 0.5 + W @ W * e


def log3(R: Matrix) -> Vector:
    """Rotation vector of a matrix, for angles well below pi [rad].

        log R = t/sin t vee(R - R.T)/2,   t = atan2(sin t, (tr R - 1)/2)

    Source: KIM, S1.
    """
    pairs = ((2, 1), (0, 2), (1, 0))
    s = Vector((R[i, j] - R[j, i]) * 0.5 for i, j in pairs)
    s2 = s @ s
    small = s2 < 1e-10
    sine = sqrt(where(small, 1.0, s2))
    cosine = (R[0, 0] + R[1, 1] + R[2, 2] - 1.0) * 0.5
    return s * where(small, 1.0 + s2 / 6, atan2(sine, cosine) / sine)


def exp_transform(u: Motion) -> Transform:
    """Transform to a frame that has moved by the displacement u, in its own axes.

        X = X(T) for T = exp(u)

    Source: KIM, S1; RBDA (2.24).
    """
    return Transform(exp3(u.ang).T, dexp3(u.ang) @ u.lin)


def log_transform(X: Transform) -> Motion:
    """Displacement that a transform is made by; undoes exp_transform below pi."""
    w = log3(X.E.T)
    return Motion(w, dexp3_inverse(w) @ X.r)


def tangent_rate(u: Motion, v: Motion) -> Motion:
    """Rate of u in T = T0 exp(u) for a body velocity v, to fourth order in u.

        du/dt = v + (u x v)/2 + u x (u x v)/12

    Source: KIM, S1 (inverse of dexp_{-u}).
    """
    uv = cross_motion(u, v)
    return v + uv * 0.5 + cross_motion(u, uv) * (1 / 12)


def quat_matrix(q: Vector) -> Matrix:
    """Rotation matrix of a unit quaternion (x, y, z, w)."""
    x, y, z, w = q
    return Matrix(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
    )


def quat_product(p: Vector, q: Vector) -> Vector:
    """Quaternion of the rotation p followed (in p's own axes) by q."""
    a, b = p[:3], q[:3]
    vector = b * p[3] + a * q[3] + cross3(a, b)
    return Vector((*vector, p[3] * q[3] - a @ b))


def quat_conjugate(q: Vector) -> Vector:
    """Quaternion of the opposite rotation."""
    x, y, z, w = q
    return Vector((-x, -y, -z, w))


def quat_exp(w: Vector) -> Vector:
    """Unit quaternion of the rotation by the vector w [rad]."""
    t2 = (w @ w) * 0.25
    half = _sinc(t2 * 0.25)
    return Vector((*(w * (_sinc(t2) * 0.5)), 1 - t2 * half * half * 0.5))


def quat_log(q: Vector) -> Vector:
    """Rotation vector of a unit quaternion, of length at most pi [rad].

    At exactly pi both signs are right; the one of the stored quaternion is given.
    """
    sign = where(q[3] < 0, -1.0, 1.0)
    v, w = q[:3] * sign, q[3] * sign
    s2 = v @ v
    small = s2 < 1e-6
    s = sqrt(where(small, 1.0, s2))
    r2 = s2 / where(small, w * w, 1.0)
    series = 2 / where(small, w, 1.0) * (1 - r2 / 3 * (1 - r2 * 0.6))
    return v * where(small, series, 2 * atan2(s, w) / s)


def normalized(q: Vector) -> Vector:
    """Quaternion scaled to length one."""
    return q * (1 / sqrt(q @ q))
