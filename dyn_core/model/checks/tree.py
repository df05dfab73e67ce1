"""Checks of a Tree: inertia along every joint, and loops that fit it."""

from __future__ import annotations

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.checks.description import check_unique
from dyn_core.model.coordinates.by_joint import split_q
from dyn_core.model.coordinates.configuration_space import neutral, random
from dyn_core.model.loops import Loop
from dyn_core.model.tree import Tree
from dyn_core.spatial import Matrix, Vector


def inertia_scales(tree: Tree) -> tuple[tuple[float, ...], ...]:
    """Return the largest inertia along each joint in a few positions [kg·m² | kg].

    A joint along which no body of its sub-tree has inertia is a ModelError.
    """
    rng = np.random.default_rng(0)
    states = [neutral(tree), *(random(tree, rng) for _ in range(2))]
    largest = [np.zeros(joint.nv) for joint in tree.joint]
    reach = [0.0] * (tree.nb + 1)
    for q in states:
        parts = split_q(tree, Vector(float(x) for x in q))
        composite = list(tree.I)
        for i in reversed(tree.bodies):
            X = tree.joint[i].X(parts[i]) @ tree.Xtree[i]
            S = tree.joint[i].S(parts[i])
            along = _diagonal(S.T @ (composite[i] @ S))
            largest[i] = np.maximum(largest[i], along)
            reach[i] = max(reach[i], composite[i].m, *composite[i].I.entries)
            p = tree.parent[i]
            composite[p] = composite[p] + X.T @ composite[i] @ X
    for i in tree.bodies:
        largest[i] = largest[i] + np.array(list(tree.armature[i]))
    for i in tree.independent:
        group = [k for k in tree.bodies if tree.leader[k].body == i]
        if max(largest[k].min() for k in group) <= 1e-12 * max(reach[i], 1e-12):
            raise ModelError(
                f"joint '{tree.names[i]}': nothing it carries has inertia along it;"
                " give a link below it mass, or the joint armature, or lock it",
                tree.names[i],
            )
    return tuple(tuple(float(x) for x in row) for row in largest)


def _diagonal(M: Matrix) -> np.ndarray:
    """Return the diagonal of a small matrix, which may be empty."""
    return np.array([M[k, k] for k in range(len(M.rows))], float)


def check_loops(tree: Tree) -> None:
    """Check that the links and joints of loops are there, and names differ."""
    constraints = tree.build.constraints
    check_unique("loop", [loop.name for loop in constraints])
    for loop in constraints:
        if isinstance(loop, Loop):
            for link in (loop.a, loop.b):
                if link is not None:
                    tree.frame(link)
            continue
        for joint in loop.joints:
            i = tree.body_of_joint(joint)
            if tree.joint[i].nv != 1:
                raise ModelError(
                    f"loop '{loop.name}': joint '{joint}' is {tree.joint[i].kind};"
                    " a coupling takes joints of one coordinate",
                    joint,
                )
