"""Shapes of random sizes and their poses, for tests of contact geometry."""

import numpy as np
from scipy.spatial.transform import Rotation

from dyn_core.contact.collision.manifolds import ShapePose
from dyn_core.model.shapes import Box, Capsule, Cylinder, Sphere
from dyn_core.spatial import Transform

HERE = Transform.identity()
UP = np.array((0.0, 0.0, 1.0))
KINDS = ("sphere", "capsule", "box")
FAR = 100.0


def shape_of(kind, rng):
    """Return a shape of random sizes."""
    if kind == "sphere":
        return Sphere(HERE, rng.uniform(0.1, 0.6))
    if kind == "box":
        return Box(HERE, tuple(rng.uniform(0.2, 2.0, 3)))
    made = Capsule if kind == "capsule" else Cylinder
    return made(HERE, rng.uniform(0.1, 0.6), rng.uniform(0.2, 2.0))


def random_pose(rng, size=1.5):
    """Return a random pose within `size` of the origin [m]."""
    R = Rotation.random(random_state=rng).as_matrix()
    return ShapePose(R, rng.uniform(-size, size, 3))


def pose_at(*xyz, R=None):
    """Return the pose at a place, not turned unless R is given."""
    return ShapePose(np.eye(3) if R is None else R, np.array(xyz, float))
