"""Coordinates by joint name: q and qd from a mapping, followers included."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.checks.robots import in_degrees, many_turns, too_fast
from dyn_core.model.coordinates.configuration_space import neutral
from dyn_core.validation import ByName, Quantity


def _refuse_several(tree: Tree, name: str, what: str) -> None:
    """Raise ModelError if a moving joint does not have exactly one coordinate."""
    if name in tree.names and tree.joint[i := tree.body_of_joint(name)].nv != 1:
        array, slices = ("q", "q") if what == "position" else ("qd", "v")
        raise ModelError(
            f"joint '{name}' is {tree.joint[i].kind}: set its {what} in the array that"
            f" this returns, {array}[model.{slices}_slice('{name}')]",
            name,
        )


def coordinates_by_name(
    tree: Tree, values: Mapping[str, float], what: str, tolerance: float | None
) -> np.ndarray:
    """Return q (nq,) or qd (nv,), as `what` says, from values by joint name.

    Other joints are neutral, or have zero velocity. Values that look like degrees are a
    ModelWarning. `tolerance` is the allowed difference of a follower from its rule, in
    units of `values`; the leader gets its own value if that is given. None: any
    difference. With None, or without that value, the leader gets the least-squares
    solution over it and its followers in `values`.
    """
    size = tree.nq if what == "position" else tree.nv
    slices = tree.q_slices if what == "position" else tree.v_slices
    result = neutral(tree) if what == "position" else np.zeros(size)
    groups: dict[int, list[tuple[str, float, float]]] = {}
    for name in values if isinstance(values, Mapping) else ():
        _refuse_several(tree, name, what)
    for name, value in ByName(Quantity(), "joint").read(what, values).items():
        i = tree.body_of_joint(name)
        lead, ratio, offset = tree.leader[i]
        _refuse_several(tree, tree.names[lead], what)
        r = 1.0 if ratio is None else float(ratio[0, 0])
        o = 0.0 if ratio is None or what == "velocity" else float(offset[0])
        groups.setdefault(lead, []).append((name, r, value - o))
    for lead, rows in groups.items():
        weight = sum(r * r for _, r, _ in rows)
        x = sum(r * y for _, r, y in rows) / weight if weight else 0.0
        of_leader = [y for name, _, y in rows if name == tree.names[lead]]
        x = of_leader[0] if of_leader and tolerance is not None else x
        for name, r, y in rows:
            if tolerance is not None and abs(r * x - y) > tolerance:
                raise ModelError(
                    f"joint '{name}' follows '{tree.names[lead]}' and cannot have"
                    f" this {what}: it is {y - r * x:g} off its rule (allowed"
                    f" {tolerance:g}); leave it out, or project=True takes the nearest",
                    name,
                )
        result[slices[lead]] = x
    _ask_for_degrees(tree, what, result)
    return result


def _ask_for_degrees(tree: Tree, what: str, values: np.ndarray) -> None:
    """Issue a ModelWarning if a position, or a velocity, looks like degrees."""
    if what == "velocity":
        doubts = [too_fast(tree, what, values, what)]
    else:
        doubts = [in_degrees(tree, what, values[None])]
        doubts.append(many_turns(tree, what, values, what))
    warn_of(tree.name, [doubt for doubt in doubts if doubt])
