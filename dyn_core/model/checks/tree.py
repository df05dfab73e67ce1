"""Checks of a Tree: its loops and point springs must refer to existing elements."""

from __future__ import annotations

from dyn_core.errors import ModelError
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.checks.description import check_unique
from dyn_core.model.loops.loop_constraints import Loop


def check_loops(tree: Tree) -> None:
    """Check the loop constraints: links, joints and names.

    Both frames on one link are refused (two links of one body pass), and couplings of a
    joint that is fixed, locked, or has not exactly one coordinate.
    """
    constraints = tree.build.constraints
    check_unique("loop", [loop.name for loop in constraints])
    for loop in constraints:
        if isinstance(loop, Loop):
            for link in (loop.a, loop.b):
                if link is not None:
                    tree.frame(link)
            if loop.a == loop.b:
                raise ModelError(
                    f"loop '{loop.name}': both frames are on '{loop.a}'; valid: two"
                    " links",
                    loop.name,
                )
            continue
        for joint in loop.joints:
            i = tree.body_of_joint(joint)
            if tree.joint[i].nv != 1:
                raise ModelError(
                    f"loop '{loop.name}': joint '{joint}' is {tree.joint[i].kind};"
                    " a coupling takes joints of one coordinate",
                    joint,
                )


def check_point_springs(tree: Tree) -> None:
    """Check links and names of the point springs of a tree's description."""
    springs = tree.build.description.point_springs
    check_unique("point spring", [spring.name for spring in springs])
    for spring in springs:
        for link in (spring.a, spring.b):
            if link is not None:
                tree.frame(link)
