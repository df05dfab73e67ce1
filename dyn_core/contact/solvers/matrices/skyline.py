"""Sparse symmetric matrices as envelopes: order, assembly, Cholesky factor, solution.

A row is stored from its first entry that is not zero up to the diagonal; the factor
stays within. Coordinates are numbered such that islands and branches stay apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dyn_core.contact.problem.rows import Rows
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code


class Skyline(NamedTuple):
    """A symmetric positive definite matrix, or its factor L, row by row.

    Attributes:
        used: Whether the matrix has an entry for a block, (blocks,): others couple
            nothing.
        number: Number of each coordinate in the order of elimination, (nv,); -1 where
            no used block touches it.
        local: The same for each entry of the supports, (supports,); the number of all
            numbered coordinates where there is none.
        first: First column of each row, (n,).
        begin: Where a row would have its column 0 in `values`, (n + 1,): entry (i, j)
            is values[begin[i] + j].
        queue, block_done, chain_start, chain: Work of the ordering, (nv,), (blocks,),
            (nv + 1,), (values of Y,).
        kept: What the order was made for: numbers of blocks and coordinates, what
            `order` returned, used blocks and all supports, (4 + 2 blocks + values of
            Y,).
        values: The entries.
        inverse: One over the diagonal of the factor, (n,).
    """

    used: IntArray
    number: IntArray
    local: IntArray
    first: IntArray
    begin: IntArray
    queue: IntArray
    block_done: IntArray
    chain_start: IntArray
    chain: IntArray
    kept: IntArray
    values: FloatArray
    inverse: FloatArray


@machine_code
def order(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> tuple[int, int]:
    """Number the coordinates that blocks touch, and lay out the envelope.

    Returns:
        Number of coordinates, and of the entries of the envelope.
    """
    for k in range(blocks):
        envelope.used[k] = 1
    return order_used(rows, blocks, nv, envelope)


@machine_code
def order_used(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> tuple[int, int]:
    """Number the coordinates that used blocks touch, and lay out the envelope.

    Breadth first over the blocks, from the smallest coordinate of each island, then
    reversed (Cuthill and McKee): in trees leaves before the base that they share, in
    stacks one end before the other.

    If supports and used blocks are those of the last call, its order is kept.

    Returns:
        Number of coordinates, and of the entries of the envelope.

    Source: E. Cuthill and J. McKee 1969; A. George 1971.
    """
    if _is_kept(rows, blocks, nv, envelope):
        return envelope.kept[2], envelope.kept[3]
    count = _number(rows, blocks, nv, envelope)
    entries = lay_out(count, envelope)
    _keep(rows, blocks, nv, envelope)
    envelope.kept[2] = count
    envelope.kept[3] = entries
    return count, entries


@machine_code
def _is_kept(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> bool:
    """Return whether the order was made for these supports and used blocks."""
    kept, place = envelope.kept, 4 + 2 * blocks
    if not (kept[0] == blocks and kept[1] == nv):
        return False
    for k in range(blocks):
        s, width = rows.support_start[k], rows.support_count[k]
        now = 2 * s + envelope.used[k]
        if not (kept[4 + 2 * k] == now and kept[5 + 2 * k] == width):
            return False
        for j in range(s, s + width):
            if not kept[place] == rows.support[j]:
                return False
            place += 1
    return True


@machine_code
def _keep(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> None:
    """Write down what the order is made for; of supports that are too many, nothing."""
    kept, place = envelope.kept, 4 + 2 * blocks
    kept[0] = blocks
    kept[1] = nv
    for k in range(blocks):
        s, width = rows.support_start[k], rows.support_count[k]
        if place + width > len(kept):
            kept[0] = -1
            return
        kept[4 + 2 * k] = 2 * s + envelope.used[k]
        kept[5 + 2 * k] = width
        for j in range(s, s + width):
            kept[place] = rows.support[j]
            place += 1


@machine_code
def _number(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> int:
    """Number the coordinates and set `first`; return how many there are."""
    start = envelope.chain_start
    for v in range(nv + 1):
        start[v] = 0
    for k in range(blocks):
        envelope.block_done[k] = 0
        if envelope.used[k] == 0:
            continue
        s = rows.support_start[k]
        for j in range(s, s + rows.support_count[k]):
            start[rows.support[j] + 1] += 1
    for v in range(nv):
        envelope.number[v] = -1
        envelope.queue[v] = start[v]
        start[v + 1] += start[v]
    for v in range(nv):
        envelope.queue[v] = start[v]
    for k in range(blocks):
        if envelope.used[k] == 0:
            continue
        s = rows.support_start[k]
        for j in range(s, s + rows.support_count[k]):
            v = rows.support[j]
            envelope.chain[envelope.queue[v]] = k
            envelope.queue[v] += 1
    count = _visit(rows, nv, envelope)
    for place in range(count):
        envelope.number[envelope.queue[place]] = count - 1 - place
        envelope.first[place] = place
    for k in range(blocks):
        s = rows.support_start[k]
        low = count
        for j in range(s, s + rows.support_count[k]):
            number = envelope.number[rows.support[j]]
            envelope.local[j] = number if number >= 0 else count
            low = min(low, number)
        if envelope.used[k] == 0:
            continue
        for j in range(s, s + rows.support_count[k]):
            number = envelope.local[j]
            envelope.first[number] = min(envelope.first[number], low)
    return count


@machine_code
def _visit(rows: Rows, nv: int, envelope: Skyline) -> int:
    """Fill the queue with the touched coordinates, breadth first; return how many."""
    count, done = 0, 0
    for v in range(nv):
        if (
            envelope.number[v] >= 0
            or envelope.chain_start[v] == envelope.chain_start[v + 1]
        ):
            continue
        envelope.number[v] = 0
        envelope.queue[count] = v
        count += 1
        while done < count:
            now = envelope.queue[done]
            done += 1
            for entry in range(
                envelope.chain_start[now], envelope.chain_start[now + 1]
            ):
                k = envelope.chain[entry]
                if envelope.block_done[k] == 0:
                    envelope.block_done[k] = 1
                    s = rows.support_start[k]
                    for j in range(s, s + rows.support_count[k]):
                        other = rows.support[j]
                        if envelope.number[other] < 0:
                            envelope.number[other] = 0
                            envelope.queue[count] = other
                            count += 1
    return count


@machine_code
def lay_out(count: int, envelope: Skyline) -> int:
    """Set begin from first; return the number of entries."""
    entries = 0
    for i in range(count):
        envelope.begin[i] = entries - envelope.first[i]
        entries += i + 1 - envelope.first[i]
    return entries


@machine_code
def dot(a: FloatArray, i: int, b: FloatArray, j: int, n: int) -> float:
    """Return the product of n entries of a from i on with those of b from j on.

    In four sums, so that one addition need not wait for the other.
    """
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    fours = n // 4
    for q in range(fours):
        e = 4 * q
        s0 += a[i + e] * b[j + e]
        s1 += a[i + e + 1] * b[j + e + 1]
        s2 += a[i + e + 2] * b[j + e + 2]
        s3 += a[i + e + 3] * b[j + e + 3]
    for e in range(4 * fours, n):
        s0 += a[i + e] * b[j + e]
    return (s0 + s1) + (s2 + s3)


@machine_code
def factorise(count: int, envelope: Skyline) -> bool:
    """Replace the matrix by its factor L, A = L L.T; return whether it is positive.

    Source: A. George and J. Liu 1981, chapter 4 (envelope methods).
    """
    values, first, begin = envelope.values, envelope.first, envelope.begin
    for i in range(count):
        row, left = begin[i], first[i]
        squares = 0.0
        for j in range(left, i):
            k = max(left, first[j])
            rest = values[row + j] - dot(values, row + k, values, begin[j] + k, j - k)
            rest *= envelope.inverse[j]
            values[row + j] = rest
            squares += rest * rest
        pivot = values[row + i] - squares
        if not pivot > 0.0:
            return False
        envelope.inverse[i] = 1.0 / math.sqrt(pivot)
    return True


@machine_code
def solve_factorised(count: int, envelope: Skyline, x: FloatArray) -> None:
    """Replace x by the solution of L L.T x = b."""
    values, first, begin = envelope.values, envelope.first, envelope.begin
    for i in range(count):
        j = first[i]
        rest = x[i] - dot(values, begin[i] + j, x, j, i - j)
        x[i] = rest * envelope.inverse[i]
    for place in range(count):
        i = count - 1 - place
        value = x[i] * envelope.inverse[i]
        x[i] = value
        for j in range(first[i], i):
            x[j] -= value * values[begin[i] + j]


@machine_code
def factorise_both(count: int, envelope: Skyline, upper: FloatArray) -> bool:
    """Replace a matrix that is not symmetric by its factors L and U; return success.

    The lower part and L stand in envelope.values, U column by column in `upper` in the
    same places; the diagonal of U is one over envelope.inverse.

    Returns:
        Whether all pivots are positive.
    """
    values, first, begin = envelope.values, envelope.first, envelope.begin
    for i in range(count):
        row, left = begin[i], first[i]
        pivot = values[row + i]
        for j in range(left, i):
            k = max(left, first[j])
            down = dot(values, row + k, upper, begin[j] + k, j - k)
            across = dot(upper, row + k, values, begin[j] + k, j - k)
            values[row + j] = (values[row + j] - down) * envelope.inverse[j]
            upper[row + j] -= across
        pivot -= dot(values, row + left, upper, row + left, i - left)
        if not abs(pivot) > 1e-8:
            return False
        envelope.inverse[i] = 1.0 / pivot
    return True


@machine_code
def solve_both(count: int, envelope: Skyline, upper: FloatArray, x: FloatArray) -> None:
    """Replace x by the solution of L U x = b."""
    values, first, begin = envelope.values, envelope.first, envelope.begin
    for i in range(count):
        j = first[i]
        x[i] -= dot(values, begin[i] + j, x, j, i - j)
    for place in range(count):
        i = count - 1 - place
        value = x[i] * envelope.inverse[i]
        x[i] = value
        for j in range(first[i], i):
            x[j] -= value * upper[begin[i] + j]
