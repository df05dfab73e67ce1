"""Allocator of large results, called by NumPy when an array is created or freed.

Compiled, never run as Python: python_to_llvm.py explains the language, and
result_memory.py the purpose. A slab is memory of the system that begins at a multiple
of SLAB (16 MiB), with a header, and contains blocks of one size: there are eight sizes
between a power of two and the next. Blocks above LARGEST (2 MiB) have a slab of their
own. At most LIMIT (128 MiB) of unused slabs are kept. NumPy calls these functions with
the GIL.

`table` is the address of the allocator's table, `slab` that of a slab's header.
"""

from dyn_core.engines.llvm.call.python_to_llvm import copy, load, store

# The table: bytes allocated so far and unused bytes, the flag COLD, and for each size
# the first slab with a free block.
CLOCK, IDLE, COLD, SLABS = 0, 8, 16, 64
SIZES = 8 * 32
TABLE = SLABS + 8 * SIZES

# Words of a slab's header (FIRST: offset of the first block), and of a block's header.
BLOCK, LENGTH, FREE, FRESH, LIVE, NEXT, PREVIOUS, SIZE, FIRST = (
    8 * k for k in range(9)
)
STAMP, FOLLOWING, HEAD = 0, 8, 64

LARGE = 0x10000  # minimum size of a result in this memory [bytes]
SMALLEST, STEP = 0x10000, 0x2000
SLAB, LARGEST, PAGE = 0x1000000, 0x200000, 0x200000
LIMIT = 0x8000000  # maximum unused memory [bytes]
MOST = 0x800000000000  # maximum size of a result: the address space [bytes]
FAR = 0x1000000  # bytes of later results after which memory is not in the cache
READ_WRITE, OWN_MEMORY, HUGE = 3, 0x4022, 14  # Linux constants PROT_, MAP_, MADV_


def has_room(slab):
    """Return 1 if the slab at this address has a free block, else 0."""
    if load(slab + FREE) != 0:
        return 1
    if load(slab + FRESH) + load(slab + BLOCK) <= slab + load(slab + LENGTH):
        return 1
    return 0


def link(table, slab):
    """Insert a slab at the head of the list of its size; return 0."""
    head = table + SLABS + 8 * load(slab + SIZE)
    following = load(head)
    store(slab + NEXT, following)
    store(slab + PREVIOUS, 0)
    if following != 0:
        store(following + PREVIOUS, slab)
    store(head, slab)
    return 0


def unlink(table, slab):
    """Remove a slab from the list of its size; return 0."""
    following, previous = load(slab + NEXT), load(slab + PREVIOUS)
    if following != 0:
        store(following + PREVIOUS, previous)
    if previous != 0:
        store(previous + NEXT, following)
    else:
        store(table + SLABS + 8 * load(slab + SIZE), following)
    return 0


def trim(table):
    """Release all unused slabs to the system; return 0."""
    k = 0
    while k < SIZES:
        slab = load(table + SLABS + 8 * k)
        while slab != 0:
            following = load(slab + NEXT)
            if load(slab + LIVE) == 0:
                unlink(table, slab)
                munmap(slab, load(slab + LENGTH))
            slab = following
        k += 1
    store(table + IDLE, 0)
    return 0


def open_slab(table, size, block):
    """Return a new slab from the system, linked into the table; 0 without memory.

    It is SLAB bytes long, or for a block above LARGEST as long as this block needs.
    Unused slabs are released first if, with this slab, they would exceed LIMIT. `size`
    is the index of the block size, `block` the size [bytes].
    """
    length = SLAB
    if block > LARGEST:
        length = (FIRST + block + PAGE - 1) & -PAGE
    if load(table + IDLE) + length > LIMIT:
        trim(table)
    memory = mmap(0, length + SLAB, READ_WRITE, OWN_MEMORY, -1, 0)
    if memory == -1:
        return 0
    slab = (memory + SLAB - 1) & -SLAB
    if slab != memory:
        munmap(memory, slab - memory)
    if slab != memory + SLAB:
        munmap(slab + length, memory + SLAB - slab)
    madvise(slab, length, HUGE)
    store(slab + BLOCK, block)
    store(slab + LENGTH, length)
    store(slab + FRESH, slab + FIRST)
    store(slab + SIZE, size)
    link(table, slab)
    return slab


def take(table, n):
    """Return the address of n bytes; 0 without memory, or if n exceeds MOST (128 TiB).

    It replaces malloc. The address is a multiple of 64. The memory is not initialised.
    COLD in the table is set to 1 if it was used before, but so long ago (16 MiB of
    later results) that it is probably not in the processor's cache; else COLD is left
    as it is.
    """
    if n > MOST:  # larger ones would overflow below, and more than SIZES be needed
        return 0
    block, step, size = SMALLEST, STEP, 0
    while block + block < n + HEAD:
        block, step, size = block + block, step + step, size + 8
    while block < n + HEAD:
        block, size = block + step, size + 1
    slab = load(table + SLABS + 8 * size)
    if slab == 0:
        slab = open_slab(table, size, block)
        if slab == 0:
            return 0
    elif load(slab + LIVE) == 0:
        store(table + IDLE, load(table + IDLE) + slab - load(slab + FRESH))
    now = load(table + CLOCK) + block
    store(table + CLOCK, now)
    memory = load(slab + FREE)
    if memory != 0:
        store(slab + FREE, load(memory + FOLLOWING))
        if now - load(memory + STAMP) > FAR:
            store(table + COLD, 1)
    else:
        memory = load(slab + FRESH)
        store(slab + FRESH, memory + block)
    store(memory + STAMP, now)
    store(slab + LIVE, load(slab + LIVE) + 1)
    if has_room(slab) == 0:
        unlink(table, slab)
    return memory + HEAD


def give(table, address, n):
    """Free memory at an address of `take`, or 0; return 0. It replaces free.

    A slab without used blocks is kept, or released to the system if unused slabs would
    exceed LIMIT; each block above LARGEST is in one of its own. No lock is used.
    """
    if address == 0:
        return 0
    memory = address - HEAD
    slab = memory & -SLAB
    if has_room(slab) == 0:
        link(table, slab)
    store(memory + FOLLOWING, load(slab + FREE))
    store(slab + FREE, memory)
    live = load(slab + LIVE) - 1
    store(slab + LIVE, live)
    if live == 0:
        idle = load(table + IDLE) + load(slab + FRESH) - slab
        if idle > LIMIT:
            unlink(table, slab)
            munmap(slab, load(slab + LENGTH))
        else:
            store(table + IDLE, idle)
    return 0


def take_zeroed(table, count, n):
    """Return the address of count * n zero bytes from `take`; 0 without memory.

    It replaces calloc. An overflow is not checked: NumPy refuses such arrays.
    """
    memory = take(table, count * n)
    if memory != 0:
        memset(memory, 0, count * n)
    return memory


def resize(table, address, n):
    """Return the address of n bytes with the old content; 0 without memory.

    It replaces realloc. The old memory is returned where it is large enough; else it is
    freed if there is new memory, and remains valid if not. For address 0 it is `take`.
    """
    if address == 0:
        return take(table, n)
    had = load(((address - HEAD) & -SLAB) + BLOCK) - HEAD
    if n <= had:
        return address
    memory = take(table, n)
    if memory != 0:
        copy(memory, address, had)
        give(table, address, had)
    return memory
