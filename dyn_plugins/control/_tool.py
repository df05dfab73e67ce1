"""Motion of a tool, and the wrenches of its springs and dampers.

Not a solver: the laws of the tool share it.
"""

from dyn_core.authoring import (
    Matrix,
    Motion,
    Transform,
    Vector,
    absolute,
    dexp6_inverse,
    log_transform,
    logical_and,
    logical_not,
    quat_matrix,
    require,
    sqrt,
    where,
)
from dyn_core.errors import QuaternionError, UnsupportedError
from dyn_plugins.kinematics.kinematics import frame_and_jacobian

UNIT = 2e-3  # largest error of a quaternion's squared length: 0.001 of its length
LEAST_MOBILITY = 1e-12  # an axis that moves less has no damping by ratio


class Tool:
    """Velocity and Jacobian of a frame, and its displacement to a reference pose.

    Args:
        model: Robot.
        q, qd: Joint positions and velocities, not split by joint.
        pose_ref: Reference position and quaternion, 7 numbers.
        frame: Name of the link.
        reference: Axes of velocities and wrenches, at the frame's origin: aligned with
            the base, or local, of the frame.

    Attributes:
        J: Jacobian of the frame in these axes, Matrix (6, nv).
        v: Velocity of the frame in these axes, (6,).
        e: Displacement log(T^-1 T_ref) from the frame to the reference, frame's axes,
            (6,).

    Raises:
        UnsupportedError: No joint moves the frame.
    """

    def __init__(self, model, q, qd, pose_ref, frame, reference):
        if not model.frame(frame).body:
            raise UnsupportedError(f"frame: no joint moves link '{frame}'")
        X, J = frame_and_jacobian(model, q, frame)
        self._R, self._aligned = X.E.T, reference == "aligned"
        self._R_ref, p_ref = _reference(pose_ref)
        target = Transform(self._R_ref.T, p_ref)
        self.e = Vector(log_transform(target @ X.inverse))
        self.J = J if self._aligned else Matrix(
            turned(X.E, column) for column in J.T.rows
        ).T  # fmt: skip
        self.v = self.J @ qd

    def in_axes(self, motion):
        """Return the six numbers of a motion in base axes in the axes of this tool."""
        return Vector(motion) if self._aligned else turned(self._R.T, motion)

    def spring(self, stiffness, energy_limit):
        """Return the wrench of the spring on the frame, (6,).

            wrench . v = -dV/dt,   V = e.T K e / 2
            V = E (2 s - 1) beyond the energy E,   s = sqrt(e.T K e / (2 E))

        Beyond E the wrench keeps the size that it has there, in the metric of K.

        Args:
            stiffness: K (6, 6). Its axes are those of the base, where e is turned with
                the reference, or those of the reference.
            energy_limit: E [J]; None: none.
        """
        if self._aligned:
            pull = turned(self._R_ref.T, stiffness @ turned(self._R_ref, self.e))
        else:
            pull = stiffness @ self.e
        if energy_limit is not None:
            energy = (pull @ self.e) * 0.5
            beyond = energy > energy_limit
            part = sqrt(energy_limit / where(beyond, energy, energy_limit))
            pull = pull * where(beyond, part, 1.0)
        wrench = dexp6_inverse(Motion.of(self.e)).T @ pull
        return turned(self._R, wrench) if self._aligned else wrench

    def damper(self, stiffness, factors, ratio, damping, v_ref):
        """Return the wrench of the dampers on the frame, (6,).

            wrench = D (v_ref - v),   D = damping + diag(2 ratio_i sqrt(K_ii m_i))
            m_i = 1 / (J H^-1 J.T)_ii,  the mass that a force along axis i alone moves

        Args:
            stiffness: K, Matrix (6, 6).
            factors: Factors of the joint-space inertia H.
            ratio: Damping ratio of each axis; None: 1 without `damping`, else 0.
            damping: Matrix (6, 6), or None for zero.
            v_ref: Reference velocity, (6,), or None for zero.
        """
        slip = -self.v if v_ref is None else Vector(v_ref) - self.v
        result = Vector.zeros(6) if damping is None else damping @ slip
        if ratio is None and damping is not None:
            return result
        designed = []
        for i, row in enumerate(self.J.rows):
            z, Dz = factors.halves(row)
            mobility, k = z @ Dz, stiffness[i, i]
            good = logical_and(mobility > LEAST_MOBILITY, k > 0.0)
            square = where(good, k, 0.0) / where(good, mobility, 1.0)
            c = 2.0 * sqrt(where(good, square, 1.0))
            share = where(good, c, 0.0) * slip[i]
            designed.append(share if ratio is None else ratio[i] * share)
        return result + Vector(designed)


def turned(R, six):
    """Return the six numbers of a spatial vector in axes turned by R (3, 3)."""
    first, second = Vector(list(six)[:3]), Vector(list(six)[3:])
    return Vector((*(R @ first), *(R @ second)))


def _reference(pose_ref):
    """Return the rotation matrix and position of a reference pose, 7 numbers.

    A quaternion whose length is not 1 within 0.001 raises QuaternionError when the
    Program runs; NaN passes.
    """
    quaternion = Vector(pose_ref[k] for k in range(3, 7))
    square = quaternion @ quaternion
    require(logical_not(absolute(square - 1.0) > UNIT), QuaternionError, "pose_ref")
    unit = quaternion * (1.0 / sqrt(where(square > 0.0, square, 1.0)))
    return quat_matrix(unit), Vector(pose_ref[k] for k in range(3))
