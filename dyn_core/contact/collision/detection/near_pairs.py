"""Pairs of shapes that may touch, by boxes along the axes of the world about them.

Up to MANY (1500) pairs are tested one by one. More are found by a sweep along the axis
on which the shapes spread most; the result has the order of the table in both cases.
Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

Source: C. Ericson, Real-Time Collision Detection, 2005, 7.5 (sort and sweep).
"""

from __future__ import annotations

from dyn_core.contact.collision.detection.detection_arrays import (
    PLANE,
    Pairs,
    Shapes,
    Work,
)
from dyn_core.engines.machine_code import any_lane, machine_code

LARGER = 1.000000001  # factor of boxes about shapes, above rounding errors
MANY = 1500  # number of pairs above which a sweep is faster


@machine_code
def may_touch_plane(
    shapes: Shapes, work: Work, a: int, plane: int, margin: float
) -> bool:
    """Return whether the box about shape `a` is within the margin of a half-space.

    With lanes: whether it is in any of them. place_shapes must have set the boxes.
    """
    above, reach = 0.0, margin
    for i in range(3):
        n = shapes.size[plane, i]
        above += n * (work.middle[a, i] - shapes.place[plane, 9 + i])
        reach += abs(n) * work.half[a, i]
    return any_lane(above <= reach)


@machine_code
def may_touch(work: Work, a: int, b: int, margin: float) -> bool:
    """Return whether the gap of the boxes about shapes a and b is at most the margin.

    The gap is the largest along an axis. With lanes: whether it is so in any of them.
    """
    middle, half = work.middle, work.half
    x = abs(middle[a, 0] - middle[b, 0]) - half[a, 0] - half[b, 0]
    y = abs(middle[a, 1] - middle[b, 1]) - half[a, 1] - half[b, 1]
    z = abs(middle[a, 2] - middle[b, 2]) - half[a, 2] - half[b, 2]
    # One branch, which is nearly always the same.
    return any_lane(max(max(x, y), z) <= margin)


@machine_code
def near_pairs(shapes: Shapes, pairs: Pairs, margin: float, work: Work) -> int:
    """Write the pairs whose boxes are near to work.near, in order; return their number.

    With more than MANY pairs of the robot's shapes, `sweep` overwrites its arrays.
    """
    count, pair = 0, 0
    while pair < len(pairs.first) and shapes.kind[pairs.second[pair]] >= PLANE:
        a, b = pairs.first[pair], pairs.second[pair]
        if shapes.kind[b] == PLANE:
            if may_touch_plane(shapes, work, a, b, margin):
                work.near[count] = pair
                count += 1
        elif may_touch(work, a, b, margin):
            work.near[count] = pair
            count += 1
        pair += 1
    if len(pairs.first) - pair > MANY:
        return sweep(shapes, pairs, margin, work, count)
    while pair < len(pairs.first):
        if may_touch(work, pairs.first[pair], pairs.second[pair], margin):
            work.near[count] = pair
            count += 1
        pair += 1
    return count


@machine_code
def widest_axis(shapes: Shapes, work: Work) -> int:
    """Return the axis, 0 to 2, along which work.middle of the shapes varies most.

    Half-spaces and height fields do not count.
    """
    axis, best = 0, -1.0
    for i in range(3):
        number, total, squares = 0.0, 0.0, 0.0
        for k in range(len(shapes.kind)):
            if shapes.kind[k] < PLANE:
                x = work.middle[k, i] - work.middle[0, i]
                number += 1.0
                total += x
                squares += x * x
        if squares - total * total / max(number, 1.0) > best:
            axis, best = i, squares - total * total / max(number, 1.0)
    return axis


@machine_code
def sweep(shapes: Shapes, pairs: Pairs, margin: float, work: Work, count: int) -> int:
    """Add the pairs of the robot's shapes whose boxes are near; return the new number.

    work.near, with `count` pairs before, is extended in the order of the table, which
    needs pairs.number. order is sorted; key, number and candidate are overwritten.
    """
    # `order` is nearly sorted from the previous call: insertion sort is fast. The pairs
    # of each first shape are counted and stored side by side, so that the final sort
    # moves few of them.
    axis, order, key, near = widest_axis(shapes, work), work.order, work.key, work.near
    shapes_to_sort = 0
    for k in range(len(shapes.kind)):
        key[k] = work.middle[k, axis] - work.half[k, axis]
        work.number[k] = 0
    for m in range(len(order)):
        k = order[m]
        if shapes.kind[k] < PLANE:
            # Half-spaces and height fields are left out, the rest moves up.
            place = shapes_to_sort
            order[m] = order[place]
            while place > 0 and key[order[place - 1]] > key[k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
            shapes_to_sort += 1
    candidates = 0
    for m in range(shapes_to_sort):
        one = order[m]
        limit = work.middle[one, axis] + work.half[one, axis] + margin
        other = m + 1
        while other < shapes_to_sort and key[order[other]] <= limit:
            two = order[other]
            other += 1
            if may_touch(work, one, two, margin):
                pair = pairs.number[min(one, two), max(one, two)]
                if pair >= 0:
                    work.candidate[candidates] = pair
                    work.number[min(one, two)] += 1
                    candidates += 1
    start = count
    for k in range(len(shapes.kind)):
        start += work.number[k]
        work.number[k] = start - work.number[k]
    for m in range(candidates):
        pair = work.candidate[m]
        a = pairs.first[pair]
        near[work.number[a]] = pair
        work.number[a] += 1
    for m in range(count + 1, count + candidates):
        pair = near[m]
        place = m
        while place > count and near[place - 1] > pair:
            near[place] = near[place - 1]
            place -= 1
        near[place] = pair
    return count + candidates
