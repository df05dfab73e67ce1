"""Joint coordinates along paths from the base, and the tree split into chains."""

from typing import NamedTuple

from dyn_core.authoring import Matrix


class Coordinate(NamedTuple):
    """A coordinate of a body's joint: its number among those of all bodies.

    Attributes:
        k: Index within the joint.
        rank: Depth: rises along a path from the base; equal for coordinates of a joint
            that act together.
        in_series: Whether the joint's coordinates act one after another.
    """

    number: int
    body: int
    k: int
    rank: int
    in_series: bool


def paths_of(model):
    """Return, by body, a tuple of the Coordinates from the base to its joint's."""
    paths, number = [()], 0
    for i in model.bodies:
        above, joint = paths[model.parent[i]], model.joint[i]
        rank = above[-1].rank + 1 if above else 0
        in_series = joint.series is not None
        order = joint.series if in_series else range(joint.nv)
        steps = range(joint.nv) if in_series else [0] * joint.nv
        members = [
            Coordinate(number + k, i, k, rank + step, in_series)
            for k, step in zip(order, steps, strict=True)
        ]
        number += joint.nv
        paths.append((*above, *members))
    return paths


def chains_of(model):
    """Return the bodies, each in one of a list of chains of bodies, parents first.

    A chain continues to the child whose longest path outward has the most coordinates,
    the first of equals; others, and all children of the base, begin new chains.
    """
    longest, heir = [0] * (model.nb + 1), [0] * (model.nb + 1)
    for i in reversed(model.bodies):
        p, length = model.parent[i], longest[i] + model.joint[i].nv
        if length >= longest[p]:
            longest[p], heir[p] = length, i
    chains = {}
    for i in model.bodies:
        p = model.parent[i]
        chains[i] = chains[p] if p and heir[p] == i else []
        chains[i].append(i)
    return list({id(chain): chain for chain in chains.values()}.values())


def stacked(*parts):
    """Return a Matrix whose row n is vector n of each list, joined end to end."""
    rows = zip(*parts, strict=True)
    return Matrix([x for vector in row for x in vector] for row in rows)


def are_zero(numbers):
    """Return whether all numbers are the untraced float 0.0; True for none."""
    return all(isinstance(x, float) and x == 0.0 for x in numbers)
