"""Rank tolerances of the rows of loops, below which a row counts as dependent.

Not a solver: the solvers of loops share it. The scale of a row is the norm that it
would have if the joints could move its frames in every direction. Its own norm is no
scale: it vanishes at a dead point.
"""

from dyn_core.authoring import Factored, Vector, where
from dyn_plugins.dynamics._articulated import (
    add_rows,
    delassus_matrix,
    joint_row,
    propagate_to_base,
)
from dyn_plugins.loops._loop_rows import Pushes, jacobian_of

RANK = 1e-10  # squared norm that counts as zero, relative to the scale of a row
TINY = 1e-290  # squared norms up to this are not divided by
WAY_OUT = (
    "where the rows depend on each other in every position, dependent='least_norm' of"
    " aba_loops, loop_forward_dynamics and projected steps, or kinds with fewer rows"
    " (axes, pin); at a dead point, a position beside it, or dead_point='least' of"
    " aba_loops and loop_forward_dynamics with dependent='least_norm'"
)


def dependence_items(rows, way_out=WAY_OUT):
    """Return the error's text for each row, in case it depends on later rows."""
    items = []
    for k, row in enumerate(rows):
        others = _named(rows[k + 1 :])
        cause = f" except as {others} {'moves' if len(rows) == k + 2 else 'move'}"
        cause = cause if others else ""
        items.append(
            f"{row.name}: no joint moves it here{cause}; valid: {way_out};"
            " dyn_core.simulation.loop_report lists dependent rows and dead points"
        )
    return items


def _named(rows, most=4):
    """Return the names of rows, separated by "; ", up to `most`, then "N more"."""
    names = [row.name for row in rows]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


def row_responses(model, joints, rows):
    """Return the responses of the joints to a unit of each row, and the rows' scales.

    A response is a dict as propagate_to_base returns it. A scale is the sum of squares
    that the responses would have if the row acted in all directions with the norm of
    its slopes; for couplings, their own sum of squares.
    """
    responses, slopes, known = [], [], {}
    for row in rows:
        if not row.slopes:
            parts = [joint_row(model, joints, i, y) for i, y in row.joint_forces]
            responses.append(add_rows(parts))
            slopes.append(total_square(responses[-1].values()))
            continue
        parts, whole = [], 0.0
        for group, length2 in _groups(row):
            key = id(row.units), group.start
            if key not in known:
                known[key] = [
                    add_rows(propagate_to_base(model, joints, i, f) for i, f in unit)
                    for unit in row.units[group]
                ]
            for y, unit in zip(row.slopes[group], known[key], strict=True):
                parts.append({k: u * y for k, u in unit.items()})
                whole = whole + length2 * total_square(unit.values())
        responses.append(add_rows(parts))
        slopes.append(whole)
    return responses, slopes


def gradient_slopes(model, q, rows, A):
    """Return a list of the scale of each row's squared norm; A is their Jacobian.

    It is the sum of squares that the row of A would have if it acted in all directions
    with the norm of its slopes; the squared norm itself for couplings.
    """
    slopes, known = [], {}
    for row, gradient in zip(rows, A.rows, strict=True):
        whole = 0.0 if row.slopes else total_square([Vector(gradient)])
        for group, length2 in _groups(row):
            key = id(row.units), group.start
            if key not in known:
                units = [Pushes(unit, []) for unit in row.units[group]]
                J = jacobian_of(model, q, units)
                known[key] = total_square(Vector(x) for x in J.rows)
            whole = whole + length2 * known[key]
        slopes.append(whole)
    return slopes


def _groups(row):
    """Yield pairs (slice of row.slopes, its sum of squares) of rotations, translations.

    Groups that are zero in every state are left out; a coupling has none.
    """
    for group in (slice(0, 3), slice(3, 6)):
        length2 = sum((x * x for x in row.slopes[group]), 0.0)
        if not (isinstance(length2, (int, float)) and length2 == 0):
            yield group, length2


def total_square(parts):
    """Return the sum of the squares of all entries of some Vectors; 0.0 for none."""
    return sum((u @ u for u in parts), 0.0)


def pivot_tolerances(diagonal, squares, slopes):
    """Return the pivots at or below which a row counts as dependent, a list by row.

        G_kk / |u_k|² * slope_k * 1e-10

    |u_k|² (`squares`) is of the row's response or gradient, slope_k its scale. 0.0 for
    a constant |u_k|² of 0.0; for one up to 1e-290 the first factor is 1.
    """
    tolerances = []
    for g, u2, slope in zip(diagonal, squares, slopes, strict=True):
        if isinstance(u2, float) and u2 == 0.0:
            tolerances.append(0.0)  # dependent in every state: refused when built
            continue
        large = u2 > TINY
        share = where(large, g / where(large, u2, 1.0), 1.0)
        tolerances.append(share * slope * RANK)
    return tolerances


def factored_delassus(model, joints, rows):
    """Return the factors of A H^-1 A.T, with a row and a column for each of `rows`.

    A dependent row raises SingularError, a text of dependence_items, in the Program.
    """
    responses, slopes = row_responses(model, joints, rows)
    G = delassus_matrix(joints, responses)
    squares = [total_square(response.values()) for response in responses]
    tolerances = pivot_tolerances([G[k, k] for k in range(len(rows))], squares, slopes)
    return Factored(G, tolerances, dependence_items(rows))
