"""Rotations and poses: exponential, logarithm, quaternions (x, y, z, w), ball angles.

Near zero power series are selected by `where`, so that all functions can be traced.
Nothing is checked unless a function names an error.

Swing and twist are the angles that limit a ball joint.

R transforms components from the plug's axes to the socket's. The swing is the angle
between the two z axes; the twist is the angle of the remaining rotation after these are
aligned by the smallest rotation. Neither is an angle about the axis of the rotation
itself.

The names of the source are column first: R_zx is the x component of the plug's z axis,
R[0, 2].
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dyn_core.errors import SingularError
from dyn_core.numbers.scalar import (
    absolute,
    atan2,
    logical_not,
    require,
    sin,
    sqrt,
    where,
)
from dyn_core.numbers.taylor import Taylor
from dyn_core.spatial.transforms import Transform
from dyn_core.spatial.vectors import Matrix, Motion, Vector, cross3, cross_motion, skew

# Smallest 1 + cos(swing) at which the twist is computed. There rounding of the entries
# of R changes the twist by 1e-6 rad, and the swing is 1.4e-5 rad below pi.
_OPPOSITE = 1e-10
_ALIGNED = 1e-60  # sin² of the swing below which it has no direction

ITEM = "twist, where the swing is pi"


class SwingTwist(NamedTuple):
    """Swing and twist of a ball joint, or their rates.

    Attributes:
        swing: In [0, pi] [rad], or its rate [rad/s].
        twist: In [-pi, pi] [rad], or its rate [rad/s].
    """

    swing: Any
    twist: Any


def swing_angle(R: Matrix) -> Any:
    """Return the angle between the z axes of socket and plug.

        swing = atan2(hypot(R_zx, R_zy), R_zz),   R_zx = R[0, 2] (column first)

    At swing 0 and pi, where it is not differentiable, its derivative is set to zero.

    Args:
        R: Rotation, plug to socket, 3x3.

    Returns:
        Angle in [0, pi] [rad].

    Source: TAZZ-4.4.
    """
    s2 = R[0, 2] * R[0, 2] + R[1, 2] * R[1, 2]
    aligned = s2 < _ALIGNED
    sine = where(aligned, 0.0, sqrt(where(aligned, 1.0, s2)))
    return atan2(sine, R[2, 2])


def twist_angle(R: Matrix, item: str = ITEM) -> Any:
    """Return the angle about z of the rotation after the z axes are aligned.

        cos(twist) = (R_xx + R_yy)/(1 + R_zz),   sin(twist) = (R_xy - R_yx)/(1 + R_zz)

    R_xy is R[1, 0] (column first). The arc cosine in the source loses the sign; its
    formula has a misprint.

    Args:
        R: Rotation, plug to socket, 3x3.
        item: Name of the joint or angle in a SingularError.

    Returns:
        Angle in [-pi, pi] [rad].

    Raises:
        SingularError: The z axes are opposite: 1 + R_zz <= 1e-10.

    Source: TAZZ-4.6, errata E6.
    """
    _open(R, item)
    return atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])


def swing_twist(R: Matrix, item: str = ITEM) -> SwingTwist:
    """Return swing and twist [rad] of a rotation.

        R = Q.T Rz(twist),   Q of aligning_rotation

    Args:
        R: Rotation, plug to socket, 3x3.
        item: Name of the joint or angle in a SingularError.

    Returns:
        swing in [0, pi], twist in [-pi, pi] [rad].

    Raises:
        SingularError: The z axes are opposite: 1 + R_zz <= 1e-10.

    Source: TAZZ-4.4, TAZZ-4.6.
    """
    return SwingTwist(swing_angle(R), twist_angle(R, item))


def aligning_rotation(R: Matrix, item: str = ITEM) -> Matrix:
    """Return the smallest rotation Q from the plug's z axis to the socket's.

        Q R e_z = e_z,   Q R = Rz(twist)

    Args:
        R: Rotation, plug to socket, 3x3.
        item: Name of the joint or angle in a SingularError.

    Returns:
        Q, 3x3, in socket axes.

    Raises:
        SingularError: The z axes are opposite: 1 + R_zz <= 1e-10.

    Source: TAZZ-4.5, errata E5 (column-first names).
    """
    over = _open(R, item)
    x, y, z = R[0, 2], R[1, 2], R[2, 2]
    mixed = -(x * y * over)
    return Matrix(
        ((1.0 - x * x * over, mixed, -x), (mixed, 1.0 - y * y * over, -y), (x, y, z))
    )


def swing_twist_rows(R: Matrix, item: str = ITEM) -> Matrix:
    """Return the Jacobian of swing and twist over the relative angular velocity.

        swing: (z_s x z_p)/sin(swing),   twist: (z_s + z_p)/(1 + z_s . z_p)

    with z_s = e_z and z_p = R e_z. At swing zero the swing's row is undefined and set
    to zero: a limit on the swing acts there only if the limit itself is zero.

    Args:
        R: Rotation, plug to socket, 3x3.
        item: Name of the joint or angle in a SingularError.

    Returns:
        2x3, swing first, over angular velocities in socket axes; times the angular rows
        of J they are rows over qd.

    Raises:
        SingularError: The z axes are opposite: 1 + R_zz <= 1e-10.

    Source: TAZZ-4.7.
    """
    over = _open(R, item)
    x, y = R[0, 2], R[1, 2]
    s2 = x * x + y * y
    aligned = s2 < _ALIGNED
    sine = sqrt(where(aligned, 1.0, s2))
    swing = (where(aligned, 0.0, -y / sine), where(aligned, 0.0, x / sine), 0.0)
    return Matrix((swing, (x * over, y * over, 1.0)))


def swing_twist_rates(R: Matrix, w: Vector, item: str = ITEM) -> SwingTwist:
    """Return the rates of swing and twist.

        d swing/dt = w . (z_s x z_p)/sin(swing)
        d twist/dt = w . (z_s + z_p)/(1 + z_s . z_p)

    Args:
        R: Rotation, plug to socket, 3x3.
        w: Angular velocity of the plug relative to the socket, socket axes, 3 [rad/s].
        item: Name of the joint or angle in a SingularError.

    Returns:
        Rates of swing (zero where the swing is zero) and twist [rad/s].

    Raises:
        SingularError: The z axes are opposite: 1 + R_zz <= 1e-10.

    Source: TAZZ-4.7.
    """
    return SwingTwist(*(swing_twist_rows(R, item) @ w))


def _open(R: Matrix, item: str) -> Any:
    """Return 1/(1 + R_zz), NaN for NaN; R is from plug to socket.

    SingularError for opposite z axes, 1 + R_zz <= 1e-10; if R is traced, the Program
    raises it at a call.
    """
    opened = 1.0 + R[2, 2]
    require(logical_not(opened <= _OPPOSITE), SingularError, item)
    return 1.0 / opened


_SMALL = 0.25  # angle² [rad²] below which the series are exact to one or two bits


def _factorials(start: int) -> tuple[float, ...]:
    """Return the first eight coefficients of 1/start! - t²/(start + 2)! + t⁴/..."""
    return tuple((-1.0) ** k / math.factorial(start + 2 * k) for k in range(8))


def _slope(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Return the coefficients of the derivative by t² of a power series, one fewer."""
    return tuple(k * c for k, c in enumerate(coefficients))[1:]


_B, _D = _factorials(2), _factorials(3)  # (1 - cos t)/t², (t - sin t)/t³
# (1 - (t/2) cot(t/2))/t²
_E = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000)


def _power_series(coefficients: tuple[float, ...], t2: Any) -> Any:
    """Return c0 + c1 t² + c2 t⁴ + ... of coefficients (c0, c1, ...) and t2 = t²."""
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = result * t2 + c
    return result


def _sinc(t2: Any) -> Any:
    """Return sin t/t for t2 = t² >= 0 [rad²]; 1 at 0."""
    small = t2 < 1e-8
    t = sqrt(where(small, 1.0, t2))
    return where(small, 1 - t2 / 6, sin(t) / t)


def sinc_terms(t2: Any) -> tuple[Any, Any, Any]:
    """Return sin t/t, (1 - cos t)/t² and (t - sin t)/t³ for t2 = t² [rad²].

    They and their derivatives are continuous to a bit or two at the switch to series.

    Source: KIM-S1.
    """
    if isinstance(t2, Taylor) and t2.d2 is None:
        a, b, d = sinc_terms(t2.x)
        b1, d1 = _sinc_slopes(t2.x)
        pairs = (a, -d - t2.x * d1), (b, b1), (d, d1)
        a, b, d = (Taylor(x, slope * t2.d1, None, t2.rank) for x, slope in pairs)
        return a, b, d
    small = t2 < _SMALL
    safe = where(small, 1.0, t2)
    t, half = sqrt(safe), sqrt(safe) * 0.5
    sine, bow = sin(t) / t, sin(half) / half
    d = where(small, _power_series(_D, t2), (1 - sine) / safe)
    b = where(small, _power_series(_B, t2), bow * bow * 0.5)
    return where(small, 1 - t2 * d, sine), b, d


def _sinc_slopes(t2: Any) -> tuple[Any, Any]:
    """Return d/d(t²) of (1 - cos t)/t² and of (t - sin t)/t³ for t2 = t²."""
    small = t2 < _SMALL
    over = 1 / where(small, 1.0, t2)
    a, b, d = sinc_terms(t2)
    b1, d1 = (a * 0.5 - b) * over, (b - 3 * d) * over * 0.5
    near = _power_series(_slope(_B), t2), _power_series(_slope(_D), t2)
    return where(small, near[0], b1), where(small, near[1], d1)


def exp3(w: Vector) -> Matrix:
    """Return the rotation matrix of the rotation vector w [rad].

        exp[w] = 1 + sin t/t [w] + (1 - cos t)/t² [w]²,   t = |w|

    Source: KIM-S1.
    """
    a, b, _ = sinc_terms(w @ w)
    W = skew(w)
    return Matrix.identity(3) + W * a + W @ W * b


def dexp3(w: Vector) -> Matrix:
    """Return the left Jacobian of exp3 at the rotation vector w [rad], 3x3.

        dexp[w] = 1 + (1 - cos t)/t² [w] + (t - sin t)/t³ [w]²

    Its transpose dexp3(-w) is the body Jacobian: vee(R.T dR) = dexp3(-w) dw. The pose
    exp([w; v]) has its origin at dexp3(w) v.

    Source: KIM-S1.
    """
    _, b, d = sinc_terms(w @ w)
    W = skew(w)
    return Matrix.identity(3) + W * b + W @ W * d


def dexp3_rate(w: Vector, wd: Vector) -> Matrix:
    """Return the derivative of dexp3(w) in the direction wd, 3x3.

        b [wd] + d ([wd][w] + [w][wd]) + 2 w.wd (b' [w] + d' [w]²),   ' by t²

    with b = (1 - cos t)/t², d = (t - sin t)/t³.

    Source: KIM-S1.
    """
    t2, along = w @ w, (w @ wd) * 2
    _, b, d = sinc_terms(t2)
    b1, d1 = _sinc_slopes(t2)
    W, Wd = skew(w), skew(wd)
    turned = Wd * b + (Wd @ W + W @ Wd) * d
    return turned + W * (b1 * along) + W @ W * (d1 * along)


def dexp3_inverse(w: Vector) -> Matrix:
    """Return the inverse of the left Jacobian dexp3(w), |w| < 2 pi (not checked).

    Source: KIM-S1.
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
    """Return the rotation vector of a rotation matrix, of length at most pi [rad].

        log R = t/sin t vee(R - R.T)/2,   t = atan2(sin t, (tr R - 1)/2)
        log R = t n beyond 120 degrees,   (1 - cos t) n n.T = (R + R.T)/2 - cos t

    At exactly pi both signs of the axis are valid: in the one that is returned, the
    component with the largest absolute value is positive.

    Source: KIM-S1.
    """
    pairs = ((2, 1), (0, 2), (1, 0))
    s = Vector((R[i, j] - R[j, i]) * 0.5 for i, j in pairs)
    s2 = s @ s
    small = s2 < 1e-10
    sine = sqrt(where(small, 1.0, s2))
    cosine = (R[0, 0] + R[1, 1] + R[2, 2] - 1.0) * 0.5
    near = s * where(small, 1.0 + s2 / 6, atan2(sine, cosine) / sine)
    n = _half_turn_axis(R, cosine)
    along = n @ s
    far = n * atan2(absolute(along), cosine) * where(along < 0, -1.0, 1.0)
    return where(cosine < -0.5, far, near)


def chord3(R: Matrix) -> Vector:
    """Return the chord vector 2 sin(t/2) n of a rotation by the angle t about n.

        chord R = 2 sin(t/2) n = vee(R - R.T)/2 / cos(t/2),   log R = t n
        chord R = 2 sin(t/2) n beyond 120 degrees

    At exactly pi the component of n with the largest absolute value is positive. Near
    zero it is as accurate as log3, with fewer operations.

    Source: KIM-S1.
    """
    pairs = ((2, 1), (0, 2), (1, 0))
    s = Vector((R[i, j] - R[j, i]) * 0.5 for i, j in pairs)
    cosine = (R[0, 0] + R[1, 1] + R[2, 2] - 1.0) * 0.5
    far = cosine < -0.5
    near = s / sqrt(where(far, 1.0, (1.0 + cosine) * 0.5))
    n = _half_turn_axis(R, cosine)
    length = sqrt(where(far, 2.0 - 2.0 * cosine, 1.0))
    return where(far, n * (length * where(n @ s < 0, -1.0, 1.0)), near)


def _half_turn_axis(R: Matrix, cosine: Any) -> Vector:
    """Return the unit axis of a rotation from R + R.T, which does not give its sign.

    It is accurate for large angles only, and its component with the largest absolute
    value is then positive. It is finite for all angles, and zero for the identity.
    """
    N = (R + R.T) * 0.5 - Matrix.diagonal([cosine] * 3)
    columns = [Vector(row) for row in N.rows]
    best = where(N[1, 1] > N[0, 0], columns[1], columns[0])
    most = where(N[1, 1] > N[0, 0], N[1, 1], N[0, 0])
    best = where(N[2, 2] > most, columns[2], best)
    square = best @ best
    return best * (1 / sqrt(where(square > 0, square, 1.0)))


def exp_transform(u: Motion) -> Transform:
    """Return the Transform from a frame to the frame displaced by u, in its own axes.

        X = X(T) for the pose T = exp(u)

    u is a displacement [rad; m], a twist times a time.

    Source: KIM-S1; RBDA (2.24).
    """
    return Transform(exp3(u.ang).T, dexp3(u.ang) @ u.lin)


def log_transform(X: Transform) -> Motion:
    """Return the u [rad; m] with exp_transform(u) = X, of an angle up to pi.

    At exactly pi the component of u.ang with the largest absolute value is positive.

    Source: KIM-S1.
    """
    w = log3(X.E.T)
    return Motion(w, dexp3_inverse(w) @ X.r)


def dexp6(u: Motion) -> Matrix:
    """Return the left Jacobian of T = exp(u), 6x6 on [angular; linear].

        dexp(u) = [[dexp3(w), 0], [Q, dexp3(w)]],   Q = d dexp3(w) in direction v

    dexp6(-u) is the body Jacobian: vee(T^-1 dT) = dexp6(-u) du. For u = [w; v] in [rad;
    m].

    Source: KIM-S1.
    """
    J, Q = dexp3(u.ang), dexp3_rate(u.ang, u.lin)
    return _lower_triangular(J, Q)


def dexp6_inverse(u: Motion) -> Matrix:
    """Return the inverse of dexp6(u), 6x6; the angle must be below 2 pi (not checked).

        [[K, 0], [-K Q K, K]],   K = dexp3(w)^-1

    Source: KIM-S1.
    """
    K, Q = dexp3_inverse(u.ang), dexp3_rate(u.ang, u.lin)
    return _lower_triangular(K, -(K @ Q @ K))


def _lower_triangular(J: Matrix, Q: Matrix) -> Matrix:
    """Return the 6x6 matrix [[J, 0], [Q, J]]."""
    top = [(*row, 0.0, 0.0, 0.0) for row in J.rows]
    bottom = [(*q, *j) for q, j in zip(Q.rows, J.rows, strict=True)]
    return Matrix([*top, *bottom])


def tangent_rate(u: Motion, v: Motion) -> Motion:
    """Return du/dt in T = T0 exp(u) for a body velocity v; the error is of order |u|⁴.

        du/dt = v + (u x v)/2 + u x (u x v)/12

    u is a displacement [rad; m], v the velocity of the frame T in its own axes. Raises
    FrameMismatchError if they have different frame labels.

    Source: KIM-S1 (inverse of dexp_{-u}).
    """
    uv = cross_motion(u, v)
    return v + uv * 0.5 + cross_motion(u, uv) * (1 / 12)


def quat_matrix(q: Vector) -> Matrix:
    """Return the rotation matrix of a unit quaternion (x, y, z, w)."""
    x, y, z, w = q
    return Matrix(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
    )


def quat_product(p: Vector, q: Vector) -> Vector:
    """Return p q of quaternions (x, y, z, w): p, then, in the rotated axes, q."""
    a, b = p[:3], q[:3]
    vector = b * p[3] + a * q[3] + cross3(a, b)
    return Vector((*vector, p[3] * q[3] - a @ b))


def quat_conjugate(q: Vector) -> Vector:
    """Return the conjugate of a quaternion, the inverse rotation if it is unit."""
    x, y, z, w = q
    return Vector((-x, -y, -z, w))


def quat_exp(w: Vector) -> Vector:
    """Return the unit quaternion (x, y, z, cos(|w|/2)) of a rotation vector w [rad]."""
    t2 = (w @ w) * 0.25
    half = _sinc(t2 * 0.25)
    return Vector((*(w * (_sinc(t2) * 0.5)), 1 - t2 * half * half * 0.5))


def quat_log(q: Vector) -> Vector:
    """Return the rotation vector of a unit quaternion, of length at most pi [rad].

    q and -q have the same vector, except at an angle of exactly pi (w = 0), where it
    has the direction of (x, y, z). The length of q is not checked.
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
    """Return a quaternion scaled to unit length; zero floats: ZeroDivisionError."""
    return q * (1 / sqrt(q @ q))
