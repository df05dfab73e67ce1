"""Columns as Motions, and how many operations functions of them take."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dyn_core import count
from dyn_core.authoring import Motion

SIZES = (1, 2, 3, 6, 10)
Columns = Sequence[Iterable[Any]]
Rates = Sequence[Any]
Ways = Mapping[str, tuple[Callable[..., list[Motion]], int]]  # function, rates it takes


def operations(ways: Ways, way: str, n: int) -> tuple[int, int]:
    """Count multiplications and additions of one of the ways for n bodies.

    Source: RBD5-2.2, RBD5-2.3.
    """
    function, rates = ways[way]

    def algorithm(numbers: Sequence[Any]) -> list[Motion]:
        s = [numbers[6 * k : 6 * k + 6] for k in range(n)]
        rest = numbers[6 * n :]
        return function(s, *(rest[n * k : n * (k + 1)] for k in range(rates)))

    draw = random.Random(n)
    result = count(algorithm, [draw.uniform(-1, 1) for _ in range((6 + rates) * n)])
    return result["mul"], result["add"]


def table(ways: Ways, sizes: Sequence[int] = SIZES) -> list[str]:
    """Return the operations of all ways for some numbers of bodies, as lines."""
    rows = [["n", *(f"{way} mul, add" for way in ways)]]
    for n in sizes:
        cells = ("{}, {}".format(*operations(ways, way, n)) for way in ways)
        rows.append([str(n), *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]


def axes(s: Columns, *rates: Rates) -> list[Motion]:
    """Return columns as Motions; their number is that of the rates."""
    for x in rates:
        if len(x) != len(s):
            raise ValueError(f"{len(s)} axes and {len(x)} rates do not match")
    return [Motion.of(column) for column in s]


def total(terms: Iterable[Motion]) -> Motion:
    """Return the sum of one or more terms."""
    first, *others = terms
    for term in others:
        first = first + term
    return first
