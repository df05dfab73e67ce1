"""Swing and twist of a relative rotation: the angles that limit a ball joint.

R transforms components from the plug's axes to the socket's. The swing is the angle
between the two z axes; the twist is the angle of the remaining rotation after these are
aligned by the smallest rotation. Neither is an angle about the axis of the rotation
itself.

The names of the source are column first: R_zx is the x component of the plug's z axis,
R[0, 2]. All functions can be traced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dyn_core.errors import SingularError
from dyn_core.numbers.scalar import atan2, logical_not, require, sqrt, where
from dyn_core.spatial.vectors import Matrix, Vector

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

        swing = atan2(hypot(R_zx, R_zy), R_zz)

    At swing zero, where it is not differentiable, its derivative is set to zero.

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

    The arc cosine in the source loses the sign; its formula has a misprint.

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
        2x3, over angular velocities in socket axes; times the angular rows of J they
            are rows over qd.

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
    """Return 1/(1 + R_zz); SingularError for opposite z axes, NaN for NaN."""
    opened = 1.0 + R[2, 2]
    require(logical_not(opened <= _OPPOSITE), SingularError, item)
    return 1.0 / opened
