"""Blocks of rows: their support, the rows of Y, warm start, and bias of gaps."""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.rows.contact_biases import anitescu_potra, stewart_trinkle
from dyn_core.contact.rows.contact_rows import is_chain
from dyn_core.contact.rows.step_tables import (
    STEWART_TRINKLE,
    BlockFacts,
    Earlier,
    Rule,
    StepMemory,
)
from dyn_core.contact.rows.structure import Structure
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


@machine_code
def takes_part(rule: Rule, gap: float) -> bool:
    """Return whether a gap gets rows: by Stewart-Trinkle always, else up to TOUCH."""
    part, _, _ = gap_rule(rule, gap, 0.0, 0.0, 0.0)
    return part


@machine_code
def gap_rule(
    rule: Rule, gap: float, free: float, approach: float, restitution: float
) -> tuple[bool, float, float]:
    """Return whether a gap takes part, its bias, and the bias of restitution alone.

    `free` and `approach` are velocities of the gap after a step without constraints,
    and before the step. The last bias is below 0 if the gap bounces, else 0; biases
    [m/s | rad/s] have no meaning if the gap takes no part.
    """
    threshold, erp, push = rule.threshold, rule.erp, rule.push
    if rule.scheme == STEWART_TRINKLE:
        return stewart_trinkle(
            gap, free, approach, rule.dt, restitution, threshold, erp, push
        )
    return anitescu_potra(
        gap, free, approach, rule.dt, restitution, threshold, erp, push
    )


@machine_code
def begin(rows: Rows, blocks: BlockFacts, block: int, row: int, count: int) -> None:
    """Start a block behind the previous one, which must be complete.

    Sets start, count, support_start and y_start of the block; clears its b, compliance,
    mu, bias and rebound, and makes its bounds infinite. Nothing else of it is set.
    Whether it fits in the arrays is not checked.
    """
    rows.start[block], rows.count[block] = row, count
    support, y = 0, 0
    if block > 0:
        n = rows.support_count[block - 1]
        support = rows.support_start[block - 1] + n
        y = rows.y_start[block - 1] + rows.count[block - 1] * n
    rows.support_start[block], rows.y_start[block] = support, y
    blocks.rebound[block] = 0.0
    for i in range(3):
        rows.mu[block, i] = 0.0
    for r in range(row, row + count):
        rows.lo[r], rows.hi[r] = -math.inf, math.inf
        rows.compliance[r], rows.b[r], blocks.bias[r] = 0.0, 0.0, 0.0


@machine_code
def union(
    a: IntArray,
    a0: int,
    a1: int,
    b: IntArray,
    b0: int,
    b1: int,
    to: IntArray,
    start: int,
) -> int:
    """Write the union of ascending a[a0:a1] and b[b0:b1] to `to`; return its length.

    It begins at `start`, is ascending without repeats, and must not lie over the lists.
    """
    i, j, n = a0, b0, start
    while i < a1 or j < b1:
        if j >= b1 or (i < a1 and a[i] < b[j]):
            to[n] = a[i]
            i += 1
        elif i >= a1 or b[j] < a[i]:
            to[n] = b[j]
            j += 1
        else:
            to[n] = a[i]
            i += 1
            j += 1
        n += 1
    return n - start


@machine_code
def add_place(
    tables: Structure, place: int, rows: Rows, block: int, n: int, work: StepMemory
) -> int:
    """Add a place and its ancestors to a support of n entries; return the new size.

    It stays ascending, with each place once; support_count is not set.
    """
    start = rows.support_start[block]
    first, last = tables.above_start[place], tables.above_start[place + 1]
    for e in range(first, last):
        work.union[e - first] = tables.above[e]
    count = last - first
    work.union[count] = place
    if n == 0:
        for i in range(count + 1):
            rows.support[start + i] = work.union[i]
        return count + 1
    second = count + 1  # the present support, behind the new places
    for i in range(n):
        work.union[second + i] = rows.support[start + i]
    return union(
        work.union, 0, second, work.union, second, second + n, rows.support, start
    )


@machine_code
def locate(rows: Rows, block: int, n: int, work: StepMemory) -> None:
    """Write the index of each place in a block's support, of size n, to work.where."""
    for i in range(n):
        work.where[rows.support[rows.support_start[block] + i]] = i


@machine_code
def finish(
    tables: Structure,
    factor: FloatArray,
    rows: Rows,
    blocks: BlockFacts,
    block: int,
    work: StepMemory,
) -> None:
    """Fill b and y of a block from its rows work.J along its support, by Y L = J.

    b becomes the velocity of the rows after a free step, without bias; approach that of
    the first row before the step. `factor` is packed L, (entries,): inverse of its
    diagonal by place, then the entries of Structure.above. `locate` comes before; J may
    be overwritten.
    """
    nv, n = len(tables.coordinate), rows.support_count[block]
    first, row = rows.support_start[block], rows.start[block]
    now = 0.0
    for i in range(n):
        now += work.J[0, i] * work.qd[rows.support[first + i]]
    blocks.approach[block] = now
    for r in range(rows.count[block]):
        free = 0.0
        for i in range(n):
            free += work.J[r, i] * work.free[rows.support[first + i]]
        rows.b[row + r] = free
    count, y = rows.count[block], rows.y_start[block]
    if count == 1 and is_chain(tables, rows.support[first + n - 1], n):
        for i in range(n - 1, -1, -1):
            value = work.J[0, i]
            for j in range(i + 1, n):
                entry = nv + tables.above_start[rows.support[first + j]] + i
                value -= rows.y[y + j] * factor[entry]
            rows.y[y + i] = value * factor[rows.support[first + i]]
        return
    for i in range(n - 1, -1, -1):
        k = rows.support[first + i]
        for r in range(count):
            value = work.J[r, i] * factor[k]
            rows.y[y + r * n + i] = value
            for e in range(tables.above_start[k], tables.above_start[k + 1]):
                work.J[r, work.where[tables.above[e]]] -= value * factor[nv + e]


@machine_code
def close(rule: Rule, rows: Rows, blocks: BlockFacts, block: int) -> None:
    """Add the bias of a gap that may close, by the rule of the scheme.

    If the block bounces, its compliance is zero, and `rebound` becomes the smallest
    velocity of the gap after the step, e times the speed of approach. Otherwise it has
    the compliance of the rule, and `rebound` is zero.

    Args:
        rule: Scheme and its settings.
        rows, blocks, block: Block after `finish` or contact_rows, with its gap and
            restitution; b, compliance, bias and rebound of its first row are changed.

    Source: LCP-4, LCP-10, LCP-11.
    """
    row, gap, approach = rows.start[block], blocks.gap[block], blocks.approach[block]
    _, bias, bounced = gap_rule(
        rule, gap, rows.b[row], approach, blocks.restitution[block]
    )
    blocks.rebound[block] = max(0.0, -bounced)
    rows.compliance[row] = 0.0 if bounced < 0.0 else rule.compliance
    add_bias(rows, blocks, row, bias)


@machine_code
def add_bias(rows: Rows, blocks: BlockFacts, row: int, bias: float) -> None:
    """Add a velocity `bias` to b and to the recorded bias of a row [m/s | rad/s]."""
    rows.b[row] += bias
    blocks.bias[row] += bias


@machine_code
def warm_start(
    earlier: Earlier, n: int, key: int, last: int, rows: Rows, block: int
) -> int:
    """Set a block's impulses to those of the previous step, or zero; return `last`.

    Constraints come in the same order in all steps: the search for `key`
    (BlockFacts.id) begins at index `last`, and goes on from the first entry behind the
    end. `last` becomes the index behind the entry that is found, or stays if there is
    none with as many rows.
    """
    for r in range(rows.start[block], rows.start[block] + rows.count[block]):
        rows.impulse[r] = 0.0
    known = earlier.known[n]
    for turn in range(known):
        k = last + turn
        if k >= known:
            k -= known
        if earlier.id[n, k] == key and earlier.height[n, k] == rows.count[block]:
            for r in range(rows.count[block]):
                value = earlier.impulse[n, earlier.start[n, k] + r]
                rows.impulse[rows.start[block] + r] = value
            return k + 1
    return last


@machine_code
def respond(
    tables: Structure, factor: FloatArray, rows: Rows, used: int, work: StepMemory
) -> None:
    """Write z = Y.T impulse and the change of velocity L^-1 z to `work`, by place.

    Source: LCP-1.
    """
    nv = len(tables.coordinate)
    for k in range(nv):
        work.z[k] = 0.0
    for block in range(used):
        n, first = rows.support_count[block], rows.support_start[block]
        for r in range(rows.count[block]):
            impulse = rows.impulse[rows.start[block] + r]
            start = rows.y_start[block] + r * n
            for i in range(n):
                work.z[rows.support[first + i]] += rows.y[start + i] * impulse
    for k in range(nv):
        x = work.z[k]
        for e in range(tables.above_start[k], tables.above_start[k + 1]):
            x -= factor[nv + e] * work.change[tables.above[e]]
        work.change[k] = x * factor[k]


@machine_code
def along(rows: Rows, block: int, r: int, z: FloatArray) -> float:
    """Return the entry of Y z of row r of a block.

    Args:
        rows, block, r: Rows, index of the block, and of the row in it.
        z: Vector in the order of elimination, (nv,).
    """
    n, first = rows.support_count[block], rows.support_start[block]
    start, total = rows.y_start[block] + r * n, 0.0
    for i in range(n):
        total += rows.y[start + i] * z[rows.support[first + i]]
    return total


@machine_code
def remember(
    rows: Rows, blocks: BlockFacts, used: int, earlier: Earlier, n: int
) -> None:
    """Copy impulses, ids and rows of blocks to `earlier`, for the next warm start."""
    for block in range(used):
        earlier.id[n, block] = blocks.id[block]
        earlier.start[n, block] = rows.start[block]
        earlier.height[n, block] = rows.count[block]
        for r in range(rows.start[block], rows.start[block] + rows.count[block]):
            earlier.impulse[n, r] = rows.impulse[r]
    earlier.known[n] = used


@machine_code
def copy_impulses(earlier: Earlier, to: Earlier) -> None:
    """Copy the impulses of state 0 to state 0 of `to`, which must be large enough."""
    known = earlier.known[0]
    to.known[0] = known
    for k in range(known):
        start, height = earlier.start[0, k], earlier.height[0, k]
        to.id[0, k], to.start[0, k], to.height[0, k] = earlier.id[0, k], start, height
        for r in range(start, start + height):
            to.impulse[0, r] = earlier.impulse[0, r]
