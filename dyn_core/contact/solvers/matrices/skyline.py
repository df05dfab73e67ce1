"""Sparse symmetric matrices as envelopes: ordering, factorisation, solution.

A row is stored from its first non-zero entry up to the diagonal; the factor has no
entries outside of this envelope. Coordinates are numbered such that islands and
branches do not couple.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dyn_core.contact.problem.rows import Rows
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code


class Skyline(NamedTuple):
    """A symmetric positive definite matrix, or its factor L, stored row by row.

    Attributes:
        used: 1 for each block that contributes to the matrix, else 0.
        number: Index of each coordinate in the order of elimination, (nv,); -1 if no
            used block touches it.
        local: The same index for each entry of the supports; for an entry without one,
            the number of all numbered coordinates.
        first: First stored column of each row.
        begin: Index in `values` of each row's column 0, stored or not, (n + 1,): entry
            (i, j) is values[begin[i] + j]. It can be negative.
        kept: Key of the cached order: numbers of blocks and coordinates, the result of
            `order`, used blocks and all supports. Its first entry is -1 if none is
            cached.
        inverse: One over the diagonal of the factor.
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
    """Mark all blocks as used, then number coordinates and return as order_used."""
    for k in range(blocks):
        envelope.used[k] = 1
    return order_used(rows, blocks, nv, envelope)


@machine_code
def order_used(rows: Rows, blocks: int, nv: int, envelope: Skyline) -> tuple[int, int]:
    """Number the coordinates that used blocks touch, and compute the envelope's layout.

    Breadth first over the blocks, from the smallest coordinate of each island, then
    reversed (Cuthill and McKee): in trees leaves before the base that they share, in
    stacks one end before the other. If supports and used blocks have not changed since
    the last call, the cached order is used. Returns the number of touched coordinates,
    and of entries of the envelope, which may exceed the length of envelope.values.

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
    """Return whether the cached order belongs to this problem.

    It does if the numbers of blocks and coordinates, the supports and the used blocks
    are equal.
    """
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
    """Store numbers, supports and used blocks in envelope.kept, the cached order's key.

    Supports too long for envelope.kept leave no order cached (kept[0] = -1). The result
    of `order_used`, kept[2] and kept[3], is stored by the caller.
    """
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
    """Set envelope.number, local and first; return the number of touched coordinates.

    Coordinates that no used block touches have number -1; in `local` their entries are
    the result. queue, block_done, chain_start and chain are overwritten.
    """
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
    """Fill envelope.queue with the touched coordinates, breadth first; return how many.

    chain[chain_start[v] : chain_start[v + 1]] are the used blocks that touch v. number
    is -1 and block_done 0 before; they become 0 where touched, and 1 for their blocks.
    """
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
    """Set envelope.begin from envelope.first; return the number of entries."""
    entries = 0
    for i in range(count):
        envelope.begin[i] = entries - envelope.first[i]
        entries += i + 1 - envelope.first[i]
    return entries


@machine_code
def dot(a: FloatArray, i: int, b: FloatArray, j: int, n: int) -> float:
    """Return the dot product of a[i : i + n] and b[j : j + n]; 0.0 for n = 0."""
    # Four sums, so that one addition need not wait for the other.
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
    """Replace the matrix A in envelope.values by its factor L, A = L L.T.

    The diagonal stays that of A; envelope.inverse becomes one over L's. Returns False
    at the first pivot that is not positive, with an incomplete factor.

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
    """Replace x, the right side b, by the solution of L L.T x = b."""
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
    """Replace a matrix that is not symmetric by its factors, A = L U, without pivoting.

    envelope.values below the diagonal become L, whose diagonal of ones is not stored;
    the diagonal stays that of A, and envelope.inverse becomes one over U's. `upper`,
    column by column with the same indices and without diagonal, becomes U. Returns
    False at the first pivot with |pivot| <= 1e-8 or NaN, with incomplete factors.
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
        if not abs(pivot) > 1e-8:  # of a matrix 1 + ..., whose scale is one
            return False
        envelope.inverse[i] = 1.0 / pivot
    return True


@machine_code
def solve_both(count: int, envelope: Skyline, upper: FloatArray, x: FloatArray) -> None:
    """Replace x, the right side b, by the solution of L U x = b."""
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
