"""What options of several solvers may be; not a solver."""

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
NUMBERED = Either((Nothing(), Whole()))
WINDOW = {"window": Either((Nothing(), Quantity(0.0, above=True)))}
POINTS = Either((Nothing(), ByName(ListOf(Quantity()), "link")))
_PINOCCHIO = {"LOCAL": "local", "WORLD": "world", "LOCAL_WORLD_ALIGNED": "aligned"}


def known_link(model, name):
    """Refuse the name of a link that the robot does not have."""
    if model is not None:
        model.frame(name)


def known_links(model, names):
    """Refuse links that the robot does not have, and what is no list of them."""
    if names is not None and not isinstance(names, (list, tuple)):
        raise UnsupportedError(
            f"{shown(names)} is no list of links; valid: a list, or None"
        )
    for name in names or ():
        known_link(model, name)


def known_pairs(model, rows):
    """Refuse rows that are no pairs of a link and another, or None for the base."""
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != 2:
            raise UnsupportedError(
                f"row {shown(row)}; valid: (link, other link or None)"
            )
        known_links(model, [name for name in row if name is not None])


def known_points(model, points):
    """Refuse points that are no pairs of a link and three numbers."""
    for entry in points:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise UnsupportedError(f"point {shown(entry)}; valid: (link, (x, y, z))")
        known_link(model, entry[0])
        numbers(3).read("point", entry[1])


def known_reference(model, name):
    """Refuse what is no frame of reference; Pinocchio's names lead to ours."""
    if name in _PINOCCHIO.values():
        return
    theirs = name.upper() if isinstance(name, str) else ""
    if theirs in _PINOCCHIO:
        raise UnsupportedError(f"Pinocchio's {theirs} is {_PINOCCHIO[theirs]!r} here")
    raise UnsupportedError(f"{shown(name)}; valid: {', '.join(_PINOCCHIO.values())}")


OF_FRAME = {"frame": known_link, "reference": known_reference}
