"""Order of the coordinates: slices of each joint in q, and in qd and tau."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.assembly.tree import LIMITS, Tree
from dyn_core.model.frames import Lead
from dyn_core.model.joints import Joint
from dyn_core.validation import ListOf, Name

AnyTree = TypeVar("AnyTree", bound=Tree)
Slices = tuple[slice, ...]


def coordinate_slices(
    joint: Sequence[Joint], leader: Sequence[Lead], order: Iterable[int]
) -> tuple[Slices, Slices]:
    """Return two tuples by body: slices of its joint's coordinates in q, and in qd.

    A follower has those of its leader; other bodies not in `order` have empty ones.
    """
    nq = nv = 0
    q, v = [slice(0, 0)] * len(joint), [slice(0, 0)] * len(joint)
    for i in order:
        q[i] = slice(nq, nq + joint[i].nq)
        v[i] = slice(nv, nv + joint[i].nv)
        nq, nv = q[i].stop, v[i].stop
    return tuple(q[lead.body] for lead in leader), tuple(
        v[lead.body] for lead in leader
    )


def reordered(tree: AnyTree, names: Sequence[str]) -> AnyTree:
    """Return the robot with coordinates (not bodies) in the order of `names`."""
    names = ListOf(Name()).read("reorder: names", names)
    if sorted(names) != sorted(tree.joint_names):
        wanted = ", ".join(tree.joint_names)
        missing = ", ".join(x for x in tree.joint_names if x not in names) or "none"
        counts = Counter(names) - Counter(tree.joint_names)
        more = ", ".join(counts) or "none"
        raise ModelError(
            f"reorder needs each of {wanted} once; missing: {missing}; too many: {more}"
        )
    bodies = [tree.body_of_joint(name) for name in names]
    q_slices, v_slices = coordinate_slices(tree.joint, tree.leader, bodies)
    old = [k for i in bodies for k in range(tree.nv)[tree.v_slices[i]]]
    limits = {x: getattr(tree, x)[np.array(old, int)] for x in LIMITS}
    for column in limits.values():
        column.setflags(write=False)  # as of an assembled Tree
    return replace(tree, q_slices=q_slices, v_slices=v_slices, **limits)
