"""Contacts of two shapes without a robot: all points where they touch or nearly touch.

A contact point lies midway between the two surfaces, the normal points from the second
shape to the first, and the gap is negative in an overlap. pairs.py has the contacts of
a whole robot.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.all_pairs import find_contacts
from dyn_core.contact.collision.detection.detection_arrays import (
    allocate_contacts,
    allocate_work,
)
from dyn_core.contact.collision.features import feature_name
from dyn_core.contact.collision.shape_tables import ShapeTable, frame_rows, pair_table
from dyn_core.engines.machine_code import compiled
from dyn_core.model.material import Material
from dyn_core.model.shapes import Shape

_IN_PLACE = np.array((1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0, 0, 0, 0))


class ShapePose(NamedTuple):
    """Pose of a shape: x_world = R x_shape + p, R (3, 3) and p (3,) [m]."""

    R: np.ndarray
    p: np.ndarray


class ContactPoint(NamedTuple):
    """One point of a contact manifold, midway between the surfaces, in the world [m].

    The unit normal points from the second shape to the first; `gap` is along it [m],
    negative in an overlap; for `feature` see feature_name.
    """

    feature: Hashable
    point: np.ndarray
    normal: np.ndarray
    gap: float


def manifold(
    a: Shape,
    pose_a: ShapePose,
    b: Shape,
    pose_b: ShapePose,
    margin: float = 0.0,
    hulls: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
) -> list[ContactPoint]:
    """Return contacts of two shapes up to a gap `margin` [m], in a fixed order.

        gap = n . (x_a - x_b),   point = (x_a + x_b) / 2

    Normals n point from b to a. Distances of separated shapes are exact. For an overlap
    with a box the depth is the smallest over the faces, unless a pair of edges is more
    than 5 % less deep: a face has the more stable manifold. With a cylinder or a hull
    it is the smallest of all. `hulls` has the vertices of a mesh's hull in its frame,
    (count, 3) [m], None for other shapes; a mesh without a hull counts as a point at
    its origin.

    Source: LCP-2.
    """
    table = ShapeTable()
    for body, (shape, hull) in enumerate(zip((a, b), hulls, strict=True), 1):
        table.add_shape(shape, body, _IN_PLACE, hull)
    shapes, pairs = table.shapes(), pair_table({(0, 1): Material()})
    poses = np.concatenate(
        [
            _IN_PLACE[None],
            frame_rows([pose_a.R, pose_b.R], [pose_a.p, pose_b.p]),
        ]
    )
    arrays = allocate_contacts(256)
    find = compiled(find_contacts)
    number = find(shapes, pairs, poses, margin, arrays, allocate_work(2, 1))
    kinds = shapes.kind
    return [
        ContactPoint(
            feature_name(kinds[0], kinds[1], int(arrays.id[m])),
            arrays.point[m].copy(),
            arrays.normal[m].copy(),
            float(arrays.gap[m]),
        )
        for m in range(number)
    ]
