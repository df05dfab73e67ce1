"""All contacts of a robot and its world at given poses, in one function.

near_pairs.py chooses the pairs that may touch; each of them is passed to the function
for its kinds. Written in the subset of Python that is compiled
(dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.box_pairs import box_or_capsule_box
from dyn_core.contact.collision.detection.convex import convex_convex
from dyn_core.contact.collision.detection.deep_hulls import retain_few
from dyn_core.contact.collision.detection.detection_arrays import (
    BOX,
    CAPSULE,
    CYLINDER,
    FEATURES,
    HEIGHTS,
    PLANE,
    SPHERE,
    Contacts,
    Pairs,
    Shapes,
    Work,
    compose,
    relate,
)
from dyn_core.contact.collision.detection.distance import closest_points
from dyn_core.contact.collision.detection.height_field_contacts import with_heights
from dyn_core.contact.collision.detection.near_pairs import LARGER, near_pairs
from dyn_core.contact.collision.detection.planes import with_plane
from dyn_core.contact.collision.detection.rounded import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)
from dyn_core.engines.machine_code import FloatArray2, IntArray, machine_code


@machine_code
def place_shapes(shapes: Shapes, poses: FloatArray2, work: Work) -> None:
    """Write to `work` the frame of each shape in the world, and the box about it [m].

    `poses` are the frames of the bodies in the world, body 0 first, (nb + 1, 12). A box
    is that about the shape's own box (shapes.bounds) and radius, not always the
    tightest, enlarged by the factor 1 + 1e-9; the half lengths of a half-space are 0.
    """
    for k in range(len(shapes.kind)):
        F = work.frames[k]
        compose(poses[shapes.body[k]], shapes.place[k], F)
        x, y, z = shapes.bounds[k, 0], shapes.bounds[k, 1], shapes.bounds[k, 2]
        u, v, w = shapes.bounds[k, 3], shapes.bounds[k, 4], shapes.bounds[k, 5]
        for i in range(3):
            r = 3 * i
            work.middle[k, i] = F[r] * x + F[r + 1] * y + F[r + 2] * z + F[9 + i]
            half = abs(F[r]) * u + abs(F[r + 1]) * v + abs(F[r + 2]) * w
            # Larger by more than the rounding of a touching pair.
            work.half[k, i] = (half + shapes.size[k, 3]) * LARGER
        if shapes.kind[k] == PLANE:
            for i in range(3):
                work.half[k, i] = 0.0


@machine_code
def contacts_of_pair(
    shapes: Shapes,
    a: int,
    b: int,
    margin: float,
    contacts: Contacts,
    count: int,
    work: Work,
) -> int:
    """Add the contacts of two shapes up to the gap `margin`; return the new number.

    The kind of a is not larger than the kind of b; normals point from b to a. The
    feature is the id; pair, body_a, body_b, turn and time are not written. Contacts
    beyond the capacity are counted, not written. work.frames has the frames of both
    shapes, the rest is overwritten.
    """
    one, two = shapes.kind[a], shapes.kind[b]
    size, A, B = shapes.size, work.frames[a], work.frames[b]
    if two == PLANE or two == HEIGHTS:
        few = retain_few(shapes, a, A, b, B, margin, work)
        if two == PLANE:
            return with_plane(contacts, count, shapes, a, A, b, margin, few, work)
        return with_heights(contacts, count, shapes, a, A, b, B, work, margin, few)
    if one == SPHERE and two == CYLINDER:
        relate(A, B, work.relative[0])
        return sphere_cylinder(
            contacts, count, size[a, 3], B, size[b], work.relative[0], margin
        )
    if two > BOX:
        return convex_convex(contacts, count, shapes, a, A, b, B, work, margin)
    if two == BOX:
        if one == SPHERE:
            relate(A, B, work.relative[0])
            return sphere_box(
                contacts, count, A, size[a, 3], B, size[b], work.relative[0], margin
            )
        return box_or_capsule_box(
            contacts, count, work, A, size[a], B, size[b], one == BOX, margin
        )
    if two == CAPSULE:
        if one == SPHERE:
            return sphere_capsule(
                contacts, count, A, size[a, 3], B, size[b, 2], size[b, 3], margin
            )
        return capsule_capsule(
            contacts,
            count,
            A,
            size[a, 2],
            size[a, 3],
            B,
            size[b, 2],
            size[b, 3],
            margin,
        )
    return sphere_sphere(contacts, count, A, size[a, 3], B, size[b, 3], margin)


@machine_code
def add_pair(
    shapes: Shapes,
    pairs: Pairs,
    pair: int,
    margin: float,
    contacts: Contacts,
    count: int,
    work: Work,
) -> int:
    """Add the contacts of a pair with ids and bodies; return the new number.

    All fields but `time` are written: the id is 2^40 pair + feature, `turn` is 0,
    normals point from the second shape to the first. Contacts beyond the capacity are
    counted, not written. work.frames has both frames, the rest is overwritten.
    """
    a, b = pairs.first[pair], pairs.second[pair]
    before = count
    swapped = shapes.kind[a] > shapes.kind[b]
    if swapped:
        count = contacts_of_pair(shapes, b, a, margin, contacts, count, work)
    else:
        count = contacts_of_pair(shapes, a, b, margin, contacts, count, work)
    for row in range(before, min(count, len(contacts.id))):
        contacts.id[row] += FEATURES * pair
        contacts.pair[row] = pair
        contacts.body_a[row] = shapes.body[a]
        contacts.body_b[row] = shapes.body[b]
        contacts.turn[row] = 0
        if swapped:
            for i in range(3):
                contacts.normal[row, i] = -contacts.normal[row, i]
    return count


@machine_code
def find_contacts(
    shapes: Shapes,
    pairs: Pairs,
    poses: FloatArray2,
    margin: float,
    contacts: Contacts,
    work: Work,
) -> int:
    """Find all contacts whose gap is at most `margin` [m]; return their number.

        gap = n . (x_a - x_b),   point = (x_a + x_b) / 2

    The normal n points from shape b, the pair's second, to shape a. `poses` are the
    frames of the bodies in the world, body 0 first, (nb + 1, 12). Contacts are sorted
    by pair. A number above the capacity is returned with a minus sign.

    Source: LCP-2.
    """
    place_shapes(shapes, poses, work)
    count = 0
    for m in range(near_pairs(shapes, pairs, margin, work)):
        count = add_pair(shapes, pairs, work.near[m], margin, contacts, count, work)
    if count > len(contacts.id):
        return -count
    return count


@machine_code
def separations(
    shapes: Shapes,
    first: IntArray,
    second: IntArray,
    poses: FloatArray2,
    results: FloatArray2,
    work: Work,
) -> int:
    """Compute the signed distances of pairs of convex shapes; return their number.

        distance = n . (x_a - x_b),   negative in an overlap

    Half-spaces and height fields are not among the shapes. Rows of `results` become the
    distance [m], the unit normal n from b to a, and the closest (in an overlap:
    deepest) points x_a and x_b, in the world, (pairs, 10). `poses` are those of
    find_contacts.
    """
    place_shapes(shapes, poses, work)
    for m in range(len(first)):
        a, b = first[m], second[m]
        B, row = work.frames[b], results[m]
        r_a, r_b = shapes.size[a, 3], shapes.size[b, 3]
        relate(work.frames[a], B, work.relative[0])
        d, nx, ny, nz, x, y, z = closest_points(shapes, a, b, work, math.inf)
        row[0] = d - r_a - r_b
        for i in range(3):
            r = 3 * i
            n = B[r] * nx + B[r + 1] * ny + B[r + 2] * nz
            core = B[r] * x + B[r + 1] * y + B[r + 2] * z + B[9 + i]
            row[1 + i] = n
            row[4 + i] = core - n * r_a
            row[7 + i] = core - n * (d - r_b)
    return len(first)
