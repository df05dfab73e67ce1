"""ROS: the fields of geometry_msgs in their order, as flat arrays; x y z w.

Twists and accelerations are of the frame's origin, in the axes that the header (or
child_frame_id) names; ours are in the body's axes. A Pose is equal to ours. Accel is
read as the classical acceleration of the origin; gravity is not added or removed.

Arrays of another size are a ShapeError. Nothing else is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.spatial.conventions.common import (
    classical_from_spatial,
    inertia_of_parts,
    inertia_parts,
    joined,
    sized,
    spatial_from_classical,
    swap_blocks,
    symmetric_entries,
    symmetric_of,
)

_ORDER = ("xx", "xy", "xz", "yy", "yz", "zz")


def ros_pose(q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return position (..., 3) and orientation (x, y, z, w), (..., 4), of our pose.

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world. If it is
    an array, both are views of it.
    """
    q = sized(q, 7, "q")
    return q[..., :3], q[..., 3:]


def from_ros_pose(position: Any, orientation: Any) -> np.ndarray:
    """Return our pose of position (..., 3) and orientation (x, y, z, w), (..., 4).

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world. Batches
    broadcast. Another size of either argument is a ShapeError.
    """
    return joined(sized(position, 3, "position"), sized(orientation, 4, "orientation"))


def ros_twist(v: Any) -> np.ndarray:
    """Return Twist's linear, angular, (..., 6), of our velocity [angular; linear]."""
    return swap_blocks(v)


def from_ros_twist(v: Any) -> np.ndarray:
    """Return our velocity [angular; linear], (..., 6), of Twist's linear, angular."""
    return swap_blocks(v)


def ros_accel(a: Any, v: Any) -> np.ndarray:
    """Return Accel's linear (classical) and angular, (..., 6).

    Args:
        a, v: Our spatial acceleration and velocity [angular; linear], (..., 6).
    """
    return swap_blocks(classical_from_spatial(a, v))


def from_ros_accel(a: Any, v: Any) -> np.ndarray:
    """Return our spatial acceleration [angular; linear], (..., 6).

    Args:
        a: Accel's linear (classical) and angular, (..., 6).
        v: Twist's linear and angular, (..., 6).
    """
    return spatial_from_classical(swap_blocks(a), swap_blocks(v))


def ros_wrench(f: Any) -> np.ndarray:
    """Return Wrench's force and torque, (..., 6), of our force [moment; force]."""
    return swap_blocks(f)


def from_ros_wrench(f: Any) -> np.ndarray:
    """Return our force [moment; force], (..., 6), of Wrench's force and torque."""
    return swap_blocks(f)


def ros_inertia(I: Any) -> np.ndarray:
    """Return the fields of Inertia, (..., 10), of our 6x6 inertias (..., 6, 6).

    m [kg], com (3) [m], ixx, ixy, ixz, iyy, iyz, izz about the com [kg·m²]. Where m is
    zero, the com is zero and the moments are about the origin.
    """
    m, c, Ic = inertia_parts(I)
    return np.concatenate([m[..., None], c, symmetric_entries(Ic, _ORDER)], axis=-1)


def from_ros_inertia(ten: Any) -> np.ndarray:
    """Return our 6x6 inertias (..., 6, 6) of the fields of Inertia, (..., 10).

    m [kg], com (3) [m], ixx, ixy, ixz, iyy, iyz, izz about the com [kg·m²].
    """
    ten = sized(ten, 10, "ten", dtype=float)
    Ic = symmetric_of(ten[..., 4:], _ORDER)
    return inertia_of_parts(ten[..., 0], ten[..., 1:4], Ic)
