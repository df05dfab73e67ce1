"""What the files of this walk share: numbers, random quantities, fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.authoring import Force, Motion, Transform


def array(x: Any) -> np.ndarray:
    """Return the numbers of a motion, force, vector or matrix."""
    return np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)


def apart(x: Any, y: Any) -> float:
    """Return the largest difference of two quantities."""
    return float(np.abs(array(x) - array(y)).max())


def random_motion(rng: np.random.Generator) -> Motion:
    """Return six random numbers as a motion."""
    return Motion.of(rng.normal(size=6).tolist())


def random_force(rng: np.random.Generator) -> Force:
    """Return six random numbers as a force."""
    return Force.of(rng.normal(size=6).tolist())


def transform_of(T: np.ndarray) -> Transform:
    """Return the transform into the frame whose pose is T, 4x4."""
    return Transform.of_pose(T[:3, :3].tolist(), T[:3, 3].tolist())


def velocity_at(v: Motion, x: np.ndarray) -> np.ndarray:
    """Return the velocity of the particles of a body at points x, (..., 3) [m/s].

    It needs no reference point: v fixes the whole field, whatever the origin.

    Source: GUIDE, section 4; SV-2.3, SV-11.2.
    """
    return array(v.lin) + np.cross(array(v.ang), x)


def moment_at(f: Force, x: np.ndarray) -> np.ndarray:
    """Return the moment of a force about points x, (..., 3) [N·m].

    Source: GUIDE, section 4; SV-2.3.
    """
    return array(f.ang) - np.cross(x, array(f.lin))
