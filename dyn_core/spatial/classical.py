"""Kinematics by classical accelerations: poses, velocities and accelerations of frames.

Motions here are [angular; linear]. The linear part of an acceleration is the
acceleration of the origin (r'' in the frame's axes), not the spatial one; `conventions`
converts between both, and to tazz's order. The motion of a frame b relative to a frame
a is in a's axes: V_ab = (w_ab; dr_ab/dt), A_ab = (dw_ab/dt; d²r_ab/dt²). All functions
can be traced, except for the checks of a Pose.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import NonFiniteError, ShapeError
from dyn_core.spatial.transforms import Transform
from dyn_core.spatial.vectors import Matrix, Motion, Vector, cross3
from dyn_core.validation import shown

_ORTHONORMAL = 1e-8  # allowed maximum row sum of |R.T R - 1|


class Pose:
    """Pose of a frame b in a frame a: x_a = r + R x_b.

        (r_a, R_a) * (r_ab, R_ab) = (r_a + R_a r_ab, R_a R_ab)

    Attributes:
        r: Origin of b in a's axes, 3 [m].
        R: Rotation, b's components to a's, 3x3.

    Raises:
        ShapeError: Not three numbers and three rows of three.
        NonFiniteError: A number is NaN or infinite.
        ValueError: R is no rotation: a row of |R.T R - 1| sums to more than 1e-8, or
            det R < 0.

    The last two are checked only if all twelve numbers are known; a pose with a traced
    number is not checked.

    Source: TAZZ-1.1; KIM-1.1.
    """

    __slots__ = ("R", "r")

    def __init__(self, r: Iterable[Any], R: Any, normalize: bool = False) -> None:
        """Create a pose from position and rotation; errors are as in the class.

        Args:
            r: Origin of b in a's axes, 3 [m].
            R: Rotation, 3x3, a Matrix, array or rows.
            normalize: Whether to replace R by the nearest rotation. Nothing is replaced
                if r or R has a traced number, or if det R <= 0.
        """
        numbers: list[Any] = []
        with suppress(TypeError):  # not iterable
            self.r, self.R = Vector(r), Matrix(R.rows if isinstance(R, Matrix) else R)
            numbers = [*self.r, *(x for row in self.R.rows for x in row)]
        sizes = len(numbers) == 12 and (len(self.r), *map(len, self.R.rows))
        if sizes != (3, 3, 3, 3) or any(hasattr(x, "__len__") for x in numbers):
            raise ShapeError("pose", "r (3) and R (3, 3)", f"{shown(r)}, {shown(R)}")
        if all(isinstance(x, (int, float, np.number)) for x in numbers):
            self.r = Vector(float(x) for x in self.r)
            self.R = Matrix(_rotation(numbers, normalize))

    @classmethod
    def of(cls, r: Vector, R: Matrix) -> Pose:
        """Return a pose of r (3) and R (3, 3), which are neither checked nor copied."""
        new = cls.__new__(cls)
        new.r, new.R = r, R
        return new

    @classmethod
    def of_transform(cls, X: Transform) -> Pose:
        """Return the pose of b in a from the Transform from a to b, unchecked."""
        R, r = X.pose
        return cls.of(r, R)

    @classmethod
    def identity(cls) -> Pose:
        """Return the pose of a frame in itself."""
        return cls.of(Vector.zeros(3), Matrix.identity(3))

    def __mul__(self, other: Pose) -> Pose:
        if not isinstance(other, Pose):
            return NotImplemented
        return Pose.of(self.r + self.R @ other.r, self.R @ other.R)

    def inverse(self) -> Pose:
        """Return the pose of a in b: (-R.T r, R.T)."""
        back = self.R.T
        return Pose.of(-(back @ self.r), back)

    @property
    def transform(self) -> Transform:
        """Transform X from a to b, for motions; X.T transforms forces from b to a.

            X(P * Q) = X(Q) X(P),   X(P)^-1 = X(P^-1)

        Source: TAZZ-1.3.
        """
        return Transform(self.R.T, self.r)

    @property
    def turn(self) -> Transform:
        """Transform X(R, 0) from a's axes to b's, about the same reference point."""
        return Transform(self.R.T, Vector.zeros(3))

    def __repr__(self) -> str:
        return f"Pose({self.r!r}, {self.R!r})"


def _rotation(numbers: list[Any], normalize: bool) -> list[list[float]]:
    """Return the three rows of the checked R of a pose: r (3), then R row by row (9).

    `normalize` replaces R by the nearest rotation first, if det R > 0. ValueError if a
    row of |R.T R - 1| sums to more than 1e-8 or det R < 0.
    """
    values = np.array(numbers, float)
    if not np.isfinite(values).all():
        raise NonFiniteError(f"a pose holds a number that is not finite: {values}")
    R = values[3:].reshape(3, 3)
    if normalize and np.linalg.det(R) > 0:
        U, _, Vt = np.linalg.svd(R)
        R = U @ Vt
    off = float(np.abs(R.T @ R - np.eye(3)).sum(axis=1).max())
    if off > _ORTHONORMAL or np.linalg.det(R) < 0:
        raise ValueError(
            f"not a rotation: R.T R is {off:.1e} from 1, det R = {np.linalg.det(R):.3g}"
        )
    return R.tolist()


def coriolis_term(w_a: Vector, r_ab: Vector, v_ab: Vector, w_ab: Vector) -> Motion:
    """Return the velocity-dependent part of the classical acceleration of b.

        C_ab = (w_a x w_ab;  (w_a . r_ab) w_a - |w_a|² r_ab + 2 w_a x v_ab)

    In a's axes, at b's origin: centripetal and Coriolis acceleration.

    Args:
        w_a: Angular velocity of a, 3 [rad/s], a's axes.
        r_ab: Origin of b in a, 3 [m], a's axes.
        v_ab: Rate of r_ab, 3 [m/s].
        w_ab: Angular velocity of b relative to a, 3 [rad/s], a's axes.

    Returns:
        C_ab, a Motion [rad/s²; m/s²].

    Source: TAZZ-1.6.
    """
    centre = w_a * (w_a @ r_ab) - r_ab * (w_a @ w_a)
    return Motion(cross3(w_a, w_ab), centre + cross3(w_a, v_ab) * 2.0)


def propagate_velocity(
    pose_ab: Pose, V_a: Motion, V_ab: Motion, frame: str = "local", R_a: Any = None
) -> Motion:
    """Return the velocity of frame b from the velocity of frame a.

        local:     V_b = X(R_ab, r_ab) V_a + X(R_ab, 0) V_ab
        inertial:  w_b = w_a + R_a w_ab,  v_b = v_a + w_a x (R_a r_ab) + R_a v_ab

    Args:
        pose_ab: Pose of b in a.
        V_a: Velocity of a [rad/s; m/s], in a's axes or in inertial ones.
        V_ab: Velocity of b relative to a, in a's axes in both cases.
        frame: "local": V_a is in a's axes, the result in b's. "inertial": both are in
            inertial axes.
        R_a: Rotation of a, a Matrix (3, 3) from a's components to inertial ones:
            required for inertial axes, else None.

    Returns:
        Velocity of b [rad/s; m/s].

    Raises:
        ValueError: Unknown frame; R_a missing for "inertial" or given for "local".

    Source: TAZZ-1.2, TAZZ-1.4.
    """
    if not _inertial(frame, R_a):
        return pose_ab.transform @ V_a + pose_ab.turn @ V_ab
    lin = V_a.lin + cross3(V_a.ang, R_a @ pose_ab.r) + R_a @ V_ab.lin
    return Motion(V_a.ang + R_a @ V_ab.ang, lin)


def propagate_acceleration(
    pose_ab: Pose,
    V_a: Motion,
    A_a: Motion,
    V_ab: Motion,
    A_ab: Motion,
    frame: str = "local",
    R_a: Any = None,
) -> Motion:
    """Return the classical acceleration of frame b from the motion of frame a.

        local:     A_b = X(R_ab, r_ab) A_a + X(R_ab, 0) (C_ab + A_ab)
        inertial:  alpha_b = alpha_a + w_a x (R_a w_ab) + R_a alpha_ab
                   a_b = a_a + alpha_a x (R_a r_ab) + (w_a . R_a r_ab) w_a
                         - |w_a|² R_a r_ab + 2 w_a x (R_a v_ab) + R_a a_ab

    C_ab is of `coriolis_term`; alpha and a are the parts of A, w and v those of V.

    Args:
        pose_ab: Pose of b in a.
        V_a: Velocity of a [rad/s; m/s], in a's axes or in inertial ones.
        A_a: Classical acceleration of a [rad/s²; m/s²], in the axes of V_a.
        V_ab, A_ab: Velocity and acceleration of b relative to a, in a's axes in both
            cases.
        frame: "local": V_a and A_a are in a's axes, the result in b's. "inertial": all
            three are in inertial axes.
        R_a: Rotation of a, a Matrix (3, 3) from a's components to inertial ones:
            required for inertial axes, else None.

    Returns:
        Classical acceleration of b [rad/s²; m/s²].

    Raises:
        ValueError: Unknown frame; R_a missing for "inertial" or given for "local".

    Source: TAZZ-1.5, TAZZ-1.6, errata E1 (angular velocities, not their rates).
    """
    if not _inertial(frame, R_a):
        C_ab = coriolis_term(V_a.ang, pose_ab.r, V_ab.lin, V_ab.ang)
        return pose_ab.transform @ A_a + pose_ab.turn @ (C_ab + A_ab)
    r, v_ab, w_ab = R_a @ pose_ab.r, R_a @ V_ab.lin, R_a @ V_ab.ang
    C = coriolis_term(V_a.ang, r, v_ab, w_ab)
    lin = A_a.lin + cross3(A_a.ang, r) + C.lin + R_a @ A_ab.lin
    return Motion(A_a.ang + C.ang + R_a @ A_ab.ang, lin)


def _inertial(frame: str, R_a: Any) -> bool:
    """Return True for frame "inertial", with R_a, False for "local", without R_a."""
    if frame not in ("local", "inertial"):
        raise ValueError(f"frame '{frame}': wanted local or inertial")
    if (frame == "inertial") != (R_a is not None):
        raise ValueError("R_a belongs to frame='inertial', and only to it")
    return frame == "inertial"


class PairTransforms(NamedTuple):
    """Transforms of a joint with four frames: parent, socket, plug, child.

    Attributes:
        X_cp: Parent to child.
        X_cj_rot: For motions across the joint, from socket axes to the child. It does
            not include the joint's translation, as these motions are taken at the
            plug's origin.
    """

    X_cp: Transform
    X_cj_rot: Transform


def pair_transforms(socket: Pose, joint: Pose, plug: Pose) -> PairTransforms:
    """Return the transforms of a joint from a parent p to a child c.

        X_cp = X(cj')^-1 X(jj') X(pj),   X_cj_rot = X(cj')^-1 X(R_jj', 0)

    The socket frame j is fixed in the parent, the plug frame j' in the child.

    Args:
        socket: Pose of j in the parent.
        joint: Pose of j' in j.
        plug: Pose of j' in the child.

    Returns:
        X_cp from the parent to the child, and X_cj_rot from socket axes to the child,
        for motions across the joint, which are taken at the plug's origin.

    Source: TAZZ-2.3.
    """
    back = plug.inverse().transform
    X_cp = back @ joint.transform @ socket.transform
    return PairTransforms(X_cp, back @ joint.turn)


def pair_velocity(
    socket: Pose, joint: Pose, plug: Pose, V_p: Motion, V_jj: Motion
) -> Motion:
    """Return the velocity of a child across a joint with four frames.

        V_c = X_cp V_p + X_cj_rot V_jj',   V_jj' = J qd

    Args:
        socket, joint, plug: Poses of the socket frame in the parent, of the plug frame
            in the socket frame, and of the plug frame in the child.
        V_p: Velocity of the parent, its axes [rad/s; m/s].
        V_jj: Velocity across the joint, socket axes, at the plug's origin [rad/s; m/s].

    Returns:
        Velocity of the child, its axes [rad/s; m/s].

    Source: TAZZ-2.3.
    """
    X_cp, X_cj_rot = pair_transforms(socket, joint, plug)
    return X_cp @ V_p + X_cj_rot @ V_jj


def velocity_product(
    w_p: Vector,
    socket: Pose,
    joint: Pose,
    v_jj: Vector,
    w_jj: Vector,
    plug: Pose,
    w_c: Vector,
    Jdot_qd: Motion,
) -> Motion:
    """Return the velocity-dependent part of the classical acceleration of a child.

        A_c = X_cp A_p + C_pc + X_cj_rot J qdd
        C_pc = X(cj')^-1 [X(jj') X(R_pj, 0) C_pj + X(R_jj', 0) C_jj'
                          - X(R_cj', 0) C_cj'] + X_cj_rot Jdot qd

    C_pj, C_jj' and C_cj' are of `coriolis_term`.

    Args:
        w_p, w_c: Angular velocities of parent and child, own axes, 3 [rad/s].
        socket, joint, plug: Poses of the socket frame in the parent, of the plug frame
            in the socket frame, and of the plug frame in the child.
        v_jj, w_jj: Linear and angular velocity across the joint, J qd, socket axes, at
            the plug's origin, 3 [m/s], 3 [rad/s].
        Jdot_qd: Rate of J times qd, socket axes, [rad/s²; m/s²].

    Returns:
        C_pc, a Motion in the child's axes [rad/s²; m/s²].

    Source: TAZZ-2.5.
    """
    zero = Vector.zeros(3)
    C_pj = coriolis_term(w_p, socket.r, zero, zero)
    C_jj = coriolis_term(socket.R.T @ w_p, joint.r, v_jj, w_jj)
    C_cj = coriolis_term(w_c, plug.r, zero, zero)
    at_plug = joint.transform @ (socket.turn @ C_pj) + joint.turn @ (C_jj + Jdot_qd)
    return plug.inverse().transform @ (at_plug - plug.turn @ C_cj)
