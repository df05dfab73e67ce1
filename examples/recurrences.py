"""Recurrence against closed form: velocities and accelerations of a chain.

Columns may hold any number-like entries, so that operations can be counted.
`python examples/recurrences.py` prints the counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dyn_core import count
from dyn_core.authoring import Motion, cross

SIZES = (1, 2, 3, 6, 10)


def fibonacci(n: int) -> int:
    """Return F_n of F_i = F_(i-1) + F_(i-2), F_0 = 0, F_1 = 1, exactly.

    Source: RBDA, section 5.2; RBD5-2.1.
    """
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"n must be a whole number from 0 on, got {n!r}")
    before, here = 1, 0
    for _ in range(n):
        before, here = here, before + here
    return here


def velocities_recursive(s: Sequence[Iterable[Any]], qd: Sequence[Any]) -> list[Motion]:
    """Return the velocity of each body of a chain from the body before it: O(n).

        v_i = v_(i-1) + s_i qd_i,   v_0 = 0

    Args:
        s: Axes of the joints as columns of six, all in one frame.
        qd: Joint velocities [rad/s | m/s].

    Source: RBDA (5.2); RBD5-2.2.
    """
    s = _axes(s, qd)
    v = [Motion.zero()]
    for axis, rate in zip(s, qd, strict=True):
        v.append(v[-1] + axis * rate)
    return v[1:]


def velocities_closed(s: Sequence[Iterable[Any]], qd: Sequence[Any]) -> list[Motion]:
    """Return the velocity of each body of a chain by itself: O(n²).

        v_i = sum_j s_j qd_j,   j <= i

    Args:
        s: Axes of the joints as columns of six, all in one frame.
        qd: Joint velocities [rad/s | m/s].

    Source: RBDA (5.3); RBD5-2.2.
    """
    s = _axes(s, qd)
    return [_sum(s[j] * qd[j] for j in range(i + 1)) for i in range(len(s))]


def accelerations_recursive(
    s: Sequence[Iterable[Any]], qd: Sequence[Any], qdd: Sequence[Any]
) -> list[Motion]:
    """Return the acceleration of each body of a chain from the body before it: O(n).

        a_i = a_(i-1) + s_i qdd_i + v_i x s_i qd_i,   a_0 = 0

    Velocities come along, and s_i qd_i is formed once. The axes move with their bodies.

    Args:
        s: Axes of the joints as columns of six, all in one frame.
        qd: Joint velocities [rad/s | m/s].
        qdd: Joint accelerations [rad/s² | m/s²].

    Source: RBDA (5.2), (5.4); RBD5-2.3.
    """
    s = _axes(s, qd, qdd)
    v, a = Motion.zero(), [Motion.zero()]
    for axis, rate, gain in zip(s, qd, qdd, strict=True):
        vJ = axis * rate
        v = v + vJ
        a.append(a[-1] + axis * gain + cross(v, vJ))
    return a[1:]


def accelerations_closed(
    s: Sequence[Iterable[Any]], qd: Sequence[Any], qdd: Sequence[Any]
) -> list[Motion]:
    """Return the acceleration of each body of a chain by itself: O(n³).

        a_i = sum_j s_j qdd_j + sum_j sum_k (s_k qd_k) x (s_j qd_j),   k < j <= i

    Args:
        s: Axes of the joints as columns of six, all in one frame.
        qd: Joint velocities [rad/s | m/s].
        qdd: Joint accelerations [rad/s² | m/s²].

    Source: RBDA (5.5); RBD5-2.3.
    """
    s = _axes(s, qd, qdd)
    result = []
    for i in range(len(s)):
        terms = [s[j] * qdd[j] for j in range(i + 1)]
        for j in range(i + 1):
            terms += [cross(s[k] * qd[k], s[j] * qd[j]) for k in range(j)]
        result.append(_sum(terms))
    return result


WAYS: dict[str, tuple[Callable[..., list[Motion]], int]] = {
    "(5.2)": (velocities_recursive, 1),
    "(5.3)": (velocities_closed, 1),
    "(5.2)+(5.4)": (accelerations_recursive, 2),
    "(5.5)": (accelerations_closed, 2),
}


def operations(way: str, n: int) -> tuple[int, int]:
    """Count multiplications and additions of one of WAYS for n bodies.

    Source: RBD5-2.2, RBD5-2.3.
    """
    function, rates = WAYS[way]

    def algorithm(numbers: Sequence[Any]) -> list[Motion]:
        s = [numbers[6 * k : 6 * k + 6] for k in range(n)]
        rest = numbers[6 * n :]
        return function(s, *(rest[n * k : n * (k + 1)] for k in range(rates)))

    draw = random.Random(n)
    result = count(algorithm, [draw.uniform(-1, 1) for _ in range((6 + rates) * n)])
    return result["mul"], result["add"]


def table(sizes: Sequence[int] = SIZES) -> list[str]:
    """Return the operations of all WAYS for some numbers of bodies, as lines."""
    rows = [["n", *(f"{way} mul, add" for way in WAYS)]]
    for n in sizes:
        cells = ("{}, {}".format(*operations(way, n)) for way in WAYS)
        rows.append([str(n), *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]


def _axes(s: Sequence[Iterable[Any]], *rates: Sequence[Any]) -> list[Motion]:
    """Return columns as Motions; their number is that of the rates."""
    for x in rates:
        if len(x) != len(s):
            raise ValueError(f"{len(s)} axes and {len(x)} rates do not match")
    return [Motion.of(column) for column in s]


def _sum(terms: Iterable[Motion]) -> Motion:
    """Return the sum of one or more terms."""
    first, *others = terms
    for term in others:
        first = first + term
    return first


if __name__ == "__main__":
    print("Fibonacci:", *(fibonacci(n) for n in range(8)), "...")
    print("\n".join(table()))
