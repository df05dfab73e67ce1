"""Recurrence against closed form: velocities and accelerations of a chain.

Axes s are columns of six, all in one frame, and move with their bodies; qd and qdd are
joint rates [rad/s | m/s] and their rates. Entries may be any kind of numbers, so that
operations can be counted: `python examples/recurrences.py` prints the counts.
"""

from __future__ import annotations

from _operation_counts import Columns, Rates, Ways, axes, table, total

from dyn_core.authoring import Motion, cross


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


def velocities_recursive(s: Columns, qd: Rates) -> list[Motion]:
    """Return the velocity of each body of a chain from the body before it: O(n).

        v_i = v_(i-1) + s_i qd_i,   v_0 = 0

    Source: RBDA (5.2); RBD5-2.2.
    """
    s = axes(s, qd)
    v = [Motion.zero()]
    for axis, rate in zip(s, qd, strict=True):
        v.append(v[-1] + axis * rate)
    return v[1:]


def velocities_closed(s: Columns, qd: Rates) -> list[Motion]:
    """Return the velocity of each body of a chain by itself: O(n²).

        v_i = sum_j s_j qd_j,   j <= i

    Source: RBDA (5.3); RBD5-2.2.
    """
    s = axes(s, qd)
    return [total(s[j] * qd[j] for j in range(i + 1)) for i in range(len(s))]


def accelerations_recursive(s: Columns, qd: Rates, qdd: Rates) -> list[Motion]:
    """Return the acceleration of each body of a chain from the body before it: O(n).

        a_i = a_(i-1) + s_i qdd_i + v_i x s_i qd_i,   a_0 = 0

    Velocities come along, and s_i qd_i is formed once.

    Source: RBDA (5.2), (5.4); RBD5-2.3.
    """
    s = axes(s, qd, qdd)
    v, a = Motion.zero(), [Motion.zero()]
    for axis, rate, gain in zip(s, qd, qdd, strict=True):
        vJ = axis * rate
        v = v + vJ
        a.append(a[-1] + axis * gain + cross(v, vJ))
    return a[1:]


def accelerations_closed(s: Columns, qd: Rates, qdd: Rates) -> list[Motion]:
    """Return the acceleration of each body of a chain by itself: O(n³).

        a_i = sum_j s_j qdd_j + sum_j sum_k (s_k qd_k) x (s_j qd_j),   k < j <= i

    Source: RBDA (5.5); RBD5-2.3.
    """
    s = axes(s, qd, qdd)
    result = []
    for i in range(len(s)):
        terms = [s[j] * qdd[j] for j in range(i + 1)]
        for j in range(i + 1):
            terms += [cross(s[k] * qd[k], s[j] * qd[j]) for k in range(j)]
        result.append(total(terms))
    return result


WAYS: Ways = {
    "(5.2)": (velocities_recursive, 1),
    "(5.3)": (velocities_closed, 1),
    "(5.2)+(5.4)": (accelerations_recursive, 2),
    "(5.5)": (accelerations_closed, 2),
}


if __name__ == "__main__":
    print("Fibonacci:", *(fibonacci(n) for n in range(8)), "...")
    print("\n".join(table(WAYS)))
