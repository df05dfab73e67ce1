"""Sparse symmetric matrices as envelopes: order, factor and solution."""

import numpy as np
import pytest
from row_problems import dense, legs_on_a_base, stacked_boxes

from dyn_core.contact.solvers.matrices.skyline import (
    factorise,
    factorise_both,
    order,
    order_used,
    solve_both,
    solve_factorised,
)
from dyn_core.contact.solvers.solver_memory import allocate_solvers


def filled(rows, nv, A):
    """Return envelope and upper part of a matrix over the coordinates of rows."""
    work = allocate_solvers(rows, nv)
    envelope, upper = work.envelope, work.newton.upper
    count, entries = order(rows, len(rows.kind), nv, envelope)
    place = envelope.number[:nv]
    for i in range(nv):
        for j in range(nv):
            p, q = place[i], place[j]
            if envelope.first[p] <= q <= p:
                envelope.values[envelope.begin[p] + q] = A[i, j]
            elif q > p and envelope.first[q] <= p:
                upper[envelope.begin[q] + p] = A[i, j]
            else:
                assert A[i, j] == 0
    return count, entries, envelope, upper, place


@pytest.mark.parametrize(
    "make", (lambda: stacked_boxes([1.0] * 5), lambda: legs_on_a_base(1))
)
def test_factors_solve(make):
    """L L.T and L U solve as NumPy does, and stay within the envelope."""
    rows, nv = make()
    Y, rng = dense(rows, nv), np.random.default_rng(2)
    b = rng.normal(size=nv)
    A = np.eye(nv) + Y.T @ Y
    count, _, envelope, _, place = filled(rows, nv, A)
    x = np.zeros(count)
    x[place] = b
    assert factorise(count, envelope)
    solve_factorised(count, envelope, x)
    np.testing.assert_allclose(x[place], np.linalg.solve(A, b), rtol=1e-9)
    S = np.diag(rng.uniform(0.5, 2, size=len(rows.b)))
    for k in range(0, len(rows.b), 3):
        S[k + 1, k] = 0.7
    A = np.eye(nv) + Y.T @ S @ Y
    count, _, envelope, upper, place = filled(rows, nv, A)
    x = np.zeros(count)
    x[place] = b
    assert factorise_both(count, envelope, upper)
    solve_both(count, envelope, upper, x)
    np.testing.assert_allclose(x[place], np.linalg.solve(A, b), rtol=1e-9)


def test_branches_and_islands_stay_apart():
    """Legs meet at the base only, boxes with their neighbours only, in any order."""
    rows, nv = legs_on_a_base(1)
    count, entries, *_ = filled(rows, nv, np.eye(nv))
    assert count == 18
    assert entries == 4 * 6 + 6 * 12 + 21  # four legs, base across them, base
    rows, nv = stacked_boxes([1.0] * 8)
    _, straight, *_ = filled(rows, nv, np.eye(nv))
    shuffled = np.random.default_rng(0).permutation(8)
    support = 6 * shuffled[rows.support // 6] + rows.support % 6
    _, mixed, *_ = filled(rows._replace(support=support), nv, np.eye(nv))
    assert straight == 8 * 21 + 7 * 36
    assert mixed <= 2 * straight


def test_coordinates_that_nothing_touches_are_left_out():
    """They have no number."""
    rows, nv = legs_on_a_base(1)
    work = allocate_solvers(rows, nv + 5)
    shifted = rows._replace(support=rows.support + 5)
    count, _ = order(shifted, len(rows.kind), nv + 5, work.envelope)
    assert count == nv
    assert (work.envelope.number[:5] == -1).all()
    assert sorted(work.envelope.number[5 : nv + 5]) == list(range(nv))


def test_a_matrix_that_is_not_positive_has_no_factor():
    """factorise says so."""
    rows, nv = legs_on_a_base(1)
    count, _, envelope, _, _ = filled(rows, nv, -np.eye(nv))
    assert not factorise(count, envelope)


def test_an_order_is_kept_for_the_same_supports_only():
    """The same numbers come back; other supports are numbered anew."""
    rows, nv = legs_on_a_base(1)
    fresh = allocate_solvers(rows, nv).envelope
    kept = allocate_solvers(rows, nv).envelope
    mirrored = rows._replace(support=nv - 1 - rows.support)
    for now in (rows, rows, mirrored, rows._replace(support=rows.support.copy())):
        wanted = order(now, len(rows.kind), nv, fresh)
        fresh.kept[0] = -1
        assert order(now, len(rows.kind), nv, kept) == wanted
        np.testing.assert_array_equal(kept.local, fresh.local)
        np.testing.assert_array_equal(kept.begin, fresh.begin)
    kept.local[:] = 0
    order(rows, len(rows.kind), nv, kept)
    assert not kept.local.any()


def test_blocks_that_are_not_used_couple_nothing():
    """Without the contacts between two boxes these are islands; all have a place."""
    rows, nv = stacked_boxes([1.0] * 4)
    blocks, envelope = len(rows.kind), allocate_solvers(rows, nv).envelope
    count, whole = order(rows, blocks, nv, envelope)
    meet = {
        k: set(rows.support[s : s + n] // 6)
        for k, (s, n) in enumerate(
            zip(rows.support_start, rows.support_count, strict=True)
        )
    }
    apart = [k for k in meet if meet[k] == {1, 2}]
    assert len(apart) == 4
    envelope.used[apart] = 0
    now, entries = order_used(rows, blocks, nv, envelope)
    assert now == count == nv
    assert whole == 4 * 21 + 3 * 36
    assert entries == 4 * 21 + 2 * 36
    assert order_used(rows, blocks, nv, envelope) == (now, entries)
    above = [k for k in meet if max(meet[k]) == 3]
    envelope.used[above] = 0
    now, entries = order_used(rows, blocks, nv, envelope)
    assert (now, entries) == (12, 2 * 21 + 36)  # the upper two touch nothing
    assert (envelope.number[12:24] == -1).all()
    for k in above:
        start = rows.support_start[k]
        assert (envelope.local[start : start + rows.support_count[k]] == now).all()
    assert order(rows, blocks, nv, envelope) == (count, whole)
