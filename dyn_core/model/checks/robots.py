"""Checks of arguments: robots, gravity, and positions within their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.model.assembly.tree import Tree
from dyn_core.validation import shown

DEEP = 0.01  # excess of a limit that is warned of [m | rad]
HINGES = ("revolute", "continuous", "helical")  # their positions are angles
TURNED = 4 * math.pi  # a larger angle of a joint without limits is warned of [rad]
LARGE = 100.0  # gravity above which another unit is likely [m/s²]
FAST = 5.0  # ratio of a velocity to its limit that is warned of
RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def check_robot(model: Any, who: str) -> None:
    """Raise UnsupportedError, for the function `who`, if an argument is not a robot."""
    if not isinstance(model, Tree):
        text = "None" if model is None else shown(model)
        raise UnsupportedError(
            f"{who} is for a Model, not for {text}; valid: what dyn.load returns"
        )


def odd_gravity(g: Sequence[float]) -> str:
    """Return a question on gravity that is along +z or above LARGE [m/s²]; else ""."""
    value = f"gravity ({', '.join(f'{x:g}' for x in g)}) m/s²"
    if math.hypot(*g) > LARGE:
        return f"{value} is above that of any planet: is it meant in cm/s² or mm/s²?"
    if g[2] > 0 and not any(g[:2]):
        instead = f"for a robot on the floor: (0, 0, {-g[2]:g})"
        return f"{value} is along +z, as on a ceiling; {instead}"
    return ""


def beyond_limits(tree: Tree, name: str, q: np.ndarray, what: str) -> str:
    """Return words on the joint farthest beyond its position limits at q; else "".

    Only limits of independent joints of one coordinate count, and an excess above 0.01
    (DEEP); rad and m count alike, NaN does not. The words are "WHAT is beyond the
    limits of joint JOINT by EXCESS rad" (m if prismatic), after "is NAME in degrees? "
    if the joint turns and is beyond a full turn.
    """
    sentence, most = "", DEEP
    for i in tree.independent:
        if tree.joint[i].nv == 1:
            x, v = float(q[tree.q_slices[i].start]), tree.v_slices[i].start
            low, high = float(tree.lower[v]), float(tree.upper[v])
            slides = tree.joint[i].kind == "prismatic"
            if max(low - x, x - high) > most:
                most = max(low - x, x - high)
                sentence = excess(name, what, tree.names[i], x, most, slides)
    return sentence


def in_degrees(tree: Tree, name: str, rows: np.ndarray) -> str:
    """Return words on a joint whose positions look like degrees; else "".

    Of each joint the largest absolute position of the rows (rows, nq) counts; NaN
    counts as 0. The joint is the one farthest beyond its limits, by more than 0.01,
    among the hinges that are beyond a full turn. The words are "is NAME in degrees?
    NAME is beyond the limits of joint JOINT by EXCESS rad".
    """
    if not len(rows):
        return ""
    q = np.nan_to_num(rows)
    largest = np.take_along_axis(q, np.abs(q).argmax(axis=0)[None], axis=0)[0]
    slides = [i for i in tree.independent if tree.joint[i].kind == "prismatic"]
    largest[[tree.q_slices[i].start for i in slides]] = 0.0
    largest[np.abs(largest) <= 2 * math.pi] = np.nan  # is beyond no limit
    return beyond_limits(tree, name, largest, name)


def too_fast(tree: Tree, name: str, qd: np.ndarray, what: str) -> str:
    """Return words on the joint that is farthest beyond its velocity limit; else "".

    Farthest is the largest ratio of speed to limit. Only independent joints of one
    coordinate count, above 5 times (FAST) their limits; limits of 0 and NaN do not. The
    words are "WHAT has RATIO times the velocity limit of joint JOINT", after "is NAME
    in degrees per second? " unless it is prismatic.
    """
    sentence, most = "", FAST
    for i in tree.independent:
        v, slides = tree.v_slices[i].start, tree.joint[i].kind == "prismatic"
        limit = float(tree.velocity_limit[v])
        if tree.joint[i].nv == 1 and limit > 0 and abs(qd[v]) / limit > most:
            most = abs(float(qd[v])) / limit
            sentence = (
                f"{'' if slides else f'is {name} in degrees per second? '}{what} has"
                f" {most:.3g} times the velocity limit of joint {tree.names[i]}"
            )
    return sentence


def many_turns(tree: Tree, name: str, q: np.ndarray, what: str) -> str:
    """Return words on the joint without limits that is turned farthest at q; else "".

    Only independent joints whose one coordinate is an angle count, where they have no
    limit in the direction of the turn and |q| is above 4 pi (TURNED); NaN does not. The
    words are those of `turns`.
    """
    sentence, most = "", TURNED
    for i in tree.independent:
        if tree.joint[i].kind in HINGES:
            x, v = float(q[tree.q_slices[i].start]), tree.v_slices[i].start
            free = math.isinf((tree.upper if x > 0 else tree.lower)[v])
            if free and abs(x) > most:
                most, sentence = abs(x), turns(name, what, tree.names[i], x)
    return sentence


def turns(name: str, what: str, joint: str, x: float) -> str:
    """Return "WHAT of joint JOINT is X rad, X / 2 pi turns; is NAME in degrees?"."""
    return (
        f"{what} of joint {joint} is {x:.4g} rad, {x / (2 * math.pi):.3g} turns; is"
        f" {name} in degrees?"
    )


def excess(
    name: str, what: str, joint: str, x: float, beyond: float, slides: bool
) -> str:
    """Return "WHAT is beyond the limits of joint JOINT by BEYOND rad" (or m).

    "is NAME in degrees? " precedes it if the joint turns and |x| is above 2 pi.
    """
    turns = not slides and abs(x) > 2 * math.pi
    return (
        f"{f'is {name} in degrees? ' if turns else ''}{what} is beyond the limits of"
        f" joint {joint} by {beyond:.3g} {'m' if slides else 'rad'}"
    )
