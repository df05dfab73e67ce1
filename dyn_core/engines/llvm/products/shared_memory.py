"""Arrays of products that are not used at the same time share memory.

In lanes an entry needs eight times the memory of one state, and data beyond the second
cache of a core costs a kernel more time than its operations.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Any

from dyn_core.engines.llvm.products.product_arrays import (
    Array,
    ProductArrays,
    ProductPlaces,
)

Chunks = Sequence[Sequence[Any]]  # steps of each function, see lower.py


def share_memory(arrays: ProductArrays, chunks: Chunks) -> None:
    """Move arrays into memory of arrays that are no longer read, in place.

    Changes places, results, stores, leaves, zeros and end of `arrays`, not `allotted`.
    Arrays with zeros keep their memory to themselves, because zeros are never written.
    """
    starts = [first for first, _ in arrays.allotted]
    if not starts:
        return
    spans = _spans(arrays, chunks, starts)
    moved = _moved(arrays, starts, spans)

    def there(slot: int) -> int:
        return slot + moved[bisect_right(starts, slot) - 1]

    def placed(array: Array) -> Array:
        return array if array.output else array._replace(first=there(array.first))

    for k, (a, b, c, result) in arrays.places.items():
        c = None if c is None else placed(c)
        arrays.places[k] = ProductPlaces(placed(a), placed(b), c, placed(result))
    arrays.results = {k: placed(array) for k, array in arrays.results.items()}
    arrays.stores = {x: [there(k) for k in slots] for x, slots in arrays.stores.items()}
    arrays.leaves = [(x, there(k)) for x, k in arrays.leaves]
    arrays.zeros = [there(k) for k in arrays.zeros]
    arrays.end = max(
        first + size + move
        for (first, size), move in zip(arrays.allotted, moved, strict=True)
    )


def _spans(
    arrays: ProductArrays, chunks: Chunks, starts: list[int]
) -> list[tuple[int, int]]:
    """Return (first chunk, last chunk) that accesses each array.

    -1 is before the first chunk, when constants and inputs are stored; len(chunks) is
    behind the last. An array with zeros has (-1, len(chunks)), one without access
    (len(chunks), -1). `starts` are the first slots of the arrays, ascending.
    """
    last_chunk = len(chunks)
    first, last = [last_chunk] * len(starts), [-1] * len(starts)

    def touch(slot: int, time: int) -> None:
        k = bisect_right(starts, slot) - 1
        if k >= 0:
            first[k], last[k] = min(first[k], time), max(last[k], time)

    for time, slot in _touched(arrays, chunks):
        touch(slot, time)
    for _, slot in arrays.leaves:
        touch(slot, -1)
    for slot in arrays.zeros:
        touch(slot, -1)
        touch(slot, last_chunk)
    return list(zip(first, last, strict=True))


def _touched(arrays: ProductArrays, chunks: Chunks) -> Iterator[tuple[int, int]]:
    """Yield (index of a chunk, slot): at least one slot of each array a chunk accesses.

    For an array of a product it is the first slot. Outputs, and the stores before the
    first chunk, are left out; pairs may repeat.
    """
    for time, chunk in enumerate(chunks):
        for step in chunk:
            for x in step.operands:
                if arrays.holds(x) and not arrays.spot(x).output:
                    yield time, arrays.spot(x).number
            for x in step.results:
                if x is not None:
                    yield from ((time, slot) for slot in arrays.stores.get(x, ()))
            if step.op == "product":
                for array in arrays.places[step.data[2]]:
                    if array is not None and not array.output:
                        yield time, array.first


def _moved(
    arrays: ProductArrays, starts: list[int], spans: list[tuple[int, int]]
) -> list[int]:
    """Return the shift of each array [slots], into the smallest free memory that fits.

    If none fits, an array is moved behind all others placed so far. `spans` are those
    of _spans, `starts` the first slots of the arrays, ascending.
    """
    order = sorted(range(len(starts)), key=lambda k: spans[k])
    busy: list[tuple[int, int, int]] = []  # last chunk, first slot, size
    free: list[tuple[int, int]] = []  # size, first slot
    moved, end = [0] * len(starts), starts[0]
    for k in order:
        (begin, last), (first, size) = spans[k], arrays.allotted[k]
        count = bisect_left(busy, (begin, 0, 0))
        for _, slot, room in busy[:count]:
            insort(free, (room, slot))
        del busy[:count]
        fitting = bisect_left(free, (size, 0))
        if fitting < len(free):
            room, slot = free.pop(fitting)
            if room > size:
                insort(free, (room - size, slot + size))
        else:
            slot, end = end, end + size
        insort(busy, (last, slot, size))
        moved[k] = slot - first
    return moved
