"""Validators of options that several solvers share; not a solver.

Each `known_*` function is called as (model, value) and raises if the value is invalid.
A model of None means that there is no robot yet: names of links are not checked then.
"""

from dyn_core.errors import UnsupportedError
from dyn_core.validation import (
    ByName,
    Either,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Whole,
    numbers,
    shown,
)

NAME = Either((Nothing(), Name()))
NUMBER = Either((Nothing(), Quantity(0.0)))
DAMPING = {"damping": Quantity(0.0)}
ITERATION = {"max_iterations": Whole(), "tolerance": Quantity(0.0)}
PENALTY = {**ITERATION, "rho": Quantity(0.0, above=True)}
REMAINING = {"remaining": Quantity(0.0, 1.0)}
CORRECTION = {
    "erp": Quantity(0.0, 1.0),
    "push_out_speed": Quantity(0.0),
    "restitution_threshold": Quantity(0.0),
}
NUMBERED = Either((Nothing(), Whole()))
WINDOW = {"window": Either((Nothing(), Quantity(0.0, above=True)))}
POINTS = Either((Nothing(), ByName(ListOf(Quantity()), "link")))
_PINOCCHIO = {"LOCAL": "local", "WORLD": "world", "LOCAL_WORLD_ALIGNED": "aligned"}


def known_link(model, name):
    """Raise ModelError if the robot has no link of this name; None: no check."""
    if model is not None:
        model.frame(name)


def known_links(model, names):
    """Check a list or tuple of links, or None; without a robot any names pass."""
    if names is not None and not isinstance(names, (list, tuple)):
        raise UnsupportedError(
            f"{shown(names)} is no list of links; valid: a list, such as"
            " [tool0], or None"
        )
    for name in names or ():
        known_link(model, name)


def known_pairs(model, rows):
    """Check rows (link or None, other link or None); without a robot any names pass."""
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != 2:
            raise UnsupportedError(
                f"row {shown(row)}; valid: (link, other link or None)"
            )
        known_links(model, [name for name in row if name is not None])


def known_points(model, points):
    """Check points (link, (x, y, z)), finite; without a robot any names pass."""
    for entry in points:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise UnsupportedError(f"point {shown(entry)}; valid: (link, (x, y, z))")
        known_link(model, entry[0])
        numbers(3).read("point", entry[1])


def known_reference(model, name):
    """Refuse all but "local", "world" and "aligned"; Pinocchio's names get a hint."""
    if name in _PINOCCHIO.values():
        return
    theirs = str(getattr(name, "name", name)).upper()  # of a text, or its enumeration
    if theirs in _PINOCCHIO:
        raise UnsupportedError(f"Pinocchio's {theirs} is {_PINOCCHIO[theirs]!r} here")
    raise UnsupportedError(f"{shown(name)}; valid: {', '.join(_PINOCCHIO.values())}")


OF_FRAME = {"frame": known_link, "reference": known_reference}
