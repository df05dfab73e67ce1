"""Names of the features in the ids of contacts."""

from __future__ import annotations

from collections.abc import Hashable

from dyn_core.contact.collision.detection import (
    box_faces,
    convex,
    height_field_contacts,
    rounded,
    tops,
)
from dyn_core.contact.collision.detection.detection_arrays import (
    BOX,
    CAPSULE,
    CYLINDER,
    HEIGHTS,
    PLANE,
    SPHERE,
)
from dyn_core.contact.collision.detection.polygons import CUT


def feature_name(kind_a: int, kind_b: int, feature: int) -> Hashable:
    """Return a feature's name: the point, or the corners, ends and edges that touch.

    Args:
        kind_a, kind_b: Kinds of both shapes (detection_arrays.py), in any order. In
            names, "a" is the shape of the smaller kind, or the first of the pair.
        feature: Number of the feature in the pair: the id of a contact modulo 2^40.

    Returns:
        On a half-space: the index of the candidate point. Two spheres, or a sphere with
            a capsule, box or cylinder: `feature`. On a height field: (point, 1 +
            triangle), or (point, 0) for an edge or corner of the field; of the side of
            a capsule or cylinder (number of the shape's points, edge); or ("top",
            corner). Two capsules: "closest" or ("a" or "b", end). A box with a
            box or capsule: ("a" or "b", corner), ("end", end), or ("edges", edge of a,
            edge of b), of parallel edges with an end behind. A cylinder or hull with
            another shape: "closest", ("line", end), ("a" or "b", vertex) or ("edges",
            vertex of a, vertex of b).
    """
    low, high = min(kind_a, kind_b), max(kind_a, kind_b)
    if high == PLANE or (high <= CYLINDER and low == SPHERE):
        return feature
    if high == HEIGHTS and feature >= tops.FIRST:
        return "top", feature - tops.FIRST
    if high == HEIGHTS:
        return divmod(feature, height_field_contacts.TRIANGLES)
    if high == CAPSULE:
        if feature == rounded.CLOSEST:
            return "closest"
        return "ab"[(feature - 1) // 2], (feature - 1) % 2
    if high == BOX:
        return _of_boxes(feature)
    return _of_convex_shapes(feature)


def _of_boxes(feature: int) -> Hashable:
    """Return the name of a feature of a box with a box or a capsule.

    It is ("a" or "b", corner), ("end", end), or ("edges", edge of a, edge of b), with
    the end of the common length as a fourth entry for parallel edges. Corners are 0 to
    7, edges 8 direction + corner, up to 23, ends 0 or 1.
    """
    if feature < box_faces.END:
        return "ab"[feature // 8], feature % 8
    if feature < box_faces.EDGES:
        return "end", feature - box_faces.END
    feature -= box_faces.EDGES
    if feature < box_faces.PAIRS:
        return "edges", *divmod(feature, 24)
    pair, end = divmod(feature - box_faces.PAIRS, 2)
    return "edges", *divmod(pair, 24), end


def _of_convex_shapes(feature: int) -> Hashable:
    """Return the name of a feature of a cylinder or hull with another shape.

    It is "closest", ("line", end), ("a" or "b", vertex), or ("edges", i, j) where the
    side of a from its vertex i crosses the side of b from its vertex j.
    """
    if feature == convex.CLOSEST:
        return "closest"
    if feature < convex.VERTEX:
        return "line", feature - convex.LINE
    number, kind = divmod(feature - convex.VERTEX, 4)
    if kind < 2:
        return "ab"[kind], number
    return "edges", *divmod(number, CUT)
