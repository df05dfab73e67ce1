"""Derivatives of contact points and normals by body motion, by central differences.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.all_pairs import (
    contacts_of_pair,
    place_shapes,
)
from dyn_core.contact.collision.detection.detection_arrays import (
    FEATURES,
    Contacts,
    Pairs,
    Shapes,
    Work,
    allocate_contacts,
)
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    machine_code,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
STEP = 1e-5  # displacement of the differences [m | rad]
SINE, COSINE = math.sin(STEP), math.cos(STEP)


class SlopeRoom(NamedTuple):
    """Memory for contacts at displaced poses: `ahead` of the state and `behind` it.

    `frame` is that of the displaced shape at the state, (12,).
    """

    ahead: Contacts
    behind: Contacts
    frame: FloatArray


def allocate_slopes(capacity: int) -> SlopeRoom:
    """Return memory for pairs of up to `capacity` contacts; more are ignored."""
    ahead, behind = (allocate_contacts(capacity) for _ in range(2))
    return SlopeRoom(ahead, behind, np.zeros(12))


@machine_code
def contact_slopes(
    shapes: Shapes,
    pairs: Pairs,
    poses: FloatArray2,
    margin: float,
    contacts: Contacts,
    touching: int,
    wanted: IntArray,
    room: SlopeRoom,
    work: Work,
    slopes: FloatArray3,
) -> int:
    """Compute the derivatives of contacts by the motion of their first body.

        (dp, dn) = sum_j h_j slopes[c, j],   h the motion of body_a, [angular; linear]

    h is of the point at the world's origin, in world axes; the second body does not
    move. `slopes`, (capacity, 6, 6), is written where `wanted` is not 0. A feature that
    exists on one side of a difference only has a one-sided derivative; one that exists
    on neither side has a derivative of 0 by that motion (rotations: about the pair's
    first contact point). `margin` is the maximum gap of a displaced contact; `touching`
    is within the capacity. Returns the number of one-sided or unknown differences.
    """
    place_shapes(shapes, poses, work)
    first, lost = 0, 0
    while first < touching:
        last, some = first, False
        while last < touching and contacts.pair[last] == contacts.pair[first]:
            some = some or wanted[last] != 0
            last += 1
        if some:
            lost += _slopes_of_pair(
                shapes, pairs, margin, contacts, first, last, wanted, room, work, slopes
            )
        first = last
    return lost


@machine_code
def _slopes_of_pair(
    shapes: Shapes,
    pairs: Pairs,
    margin: float,
    contacts: Contacts,
    first: int,
    last: int,
    wanted: IntArray,
    room: SlopeRoom,
    work: Work,
    slopes: FloatArray3,
) -> int:
    """Compute the derivatives of the contacts of one pair, rows `first` to `last` - 1.

    `slopes` is written where `wanted` is not 0, (capacity, 6, 6): by contact; by
    component of the motion of body_a, [angular; linear], of its point at the world's
    origin, world axes; and by component of point, then normal. `margin` is the maximum
    gap of a displaced contact [m]. work.frames has the frames of all shapes and is
    restored at the end; the rest of `work` is overwritten. Returns how many of the six
    differences of each wanted contact, in all, are one-sided or unknown.
    """
    pair, frame = contacts.pair[first], room.frame
    a, b = pairs.first[pair], pairs.second[pair]
    pivot, F = contacts.point[first], work.frames[a]
    swapped = shapes.kind[a] > shapes.kind[b]
    one, two = b if swapped else a, a if swapped else b
    turn, lost = -1.0 if swapped else 1.0, 0
    for i in range(12):
        frame[i] = F[i]
    for j in range(6):
        _displace(frame, j, 1.0, pivot, F)
        ahead = contacts_of_pair(shapes, one, two, margin, room.ahead, 0, work)
        _displace(frame, j, -1.0, pivot, F)
        behind = contacts_of_pair(shapes, one, two, margin, room.behind, 0, work)
        for c in range(first, last):
            if wanted[c] == 0:
                continue
            feature = contacts.id[c] - FEATURES * pair
            m = _find(room.ahead, ahead, feature)
            n = _find(room.behind, behind, feature)
            both = m >= 0 and n >= 0
            lost += 0 if both else 1
            step = 2.0 * STEP if both else STEP
            for i in range(3):
                more, less = contacts.point[c, i], contacts.point[c, i]
                right, left = turn * contacts.normal[c, i], turn * contacts.normal[c, i]
                if m >= 0:
                    more, right = room.ahead.point[m, i], room.ahead.normal[m, i]
                if n >= 0:
                    less, left = room.behind.point[n, i], room.behind.normal[n, i]
                slopes[c, j, i] = (more - less) / step
                slopes[c, j, 3 + i] = turn * (right - left) / step
    for i in range(12):
        F[i] = frame[i]
    for c in range(first, last):
        if wanted[c] != 0:
            _about_origin(pivot, slopes[c])
    return lost


@machine_code
def _find(contacts: Contacts, count: int, feature: int) -> int:
    """Return the row of the contact with a feature, within the capacity, or -1."""
    for m in range(min(count, len(contacts.id))):
        if contacts.id[m] == feature:
            return m
    return -1


@machine_code
def _displace(
    frame: FloatArray, j: int, sign: float, pivot: FloatArray, F: FloatArray
) -> None:
    """Write to F, not `frame` itself, a frame that is displaced by 1e-5 m or rad.

    Motion j is 0 to 2: a rotation about a world axis through the pivot (world, [m]); or
    3 to 5: a translation along a world axis.
    """
    for i in range(12):
        F[i] = frame[i]
    if j >= 3:
        F[6 + j] += sign * STEP
        return
    k, m, sine = (j + 1) % 3, (j + 2) % 3, sign * SINE
    for i in range(3):
        y, z = frame[3 * k + i], frame[3 * m + i]
        F[3 * k + i] = COSINE * y - sine * z
        F[3 * m + i] = sine * y + COSINE * z
    y, z = frame[9 + k] - pivot[k], frame[9 + m] - pivot[m]
    F[9 + k] = pivot[k] + COSINE * y - sine * z
    F[9 + m] = pivot[m] + sine * y + COSINE * z


@machine_code
def _about_origin(pivot: FloatArray, slopes: FloatArray2) -> None:
    """Convert derivatives by rotations about the pivot to rotations about the origin.

    A rotation e about the world's origin is a rotation about the pivot, and the
    translation e x pivot. Rows of `slopes` are rotations, which are changed, then
    translations; columns are point, then normal.
    """
    for i in range(6):
        x, y, z = slopes[3, i], slopes[4, i], slopes[5, i]
        slopes[0, i] += pivot[1] * z - pivot[2] * y
        slopes[1, i] += pivot[2] * x - pivot[0] * z
        slopes[2, i] += pivot[0] * y - pivot[1] * x
