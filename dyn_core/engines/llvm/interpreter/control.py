"""Control of the interpreter; in the subset of python_to_llvm, never run as Python.

A record in memory describes the program for one number of lanes; its fields:

    OPS               addresses of the functions of operations.py, by opcode
    CODE              the table of 32-bit words that interpreter.py writes
    N_IN, INPUTS      number of input ports; size and first slot of each
    N_OUT, OUTPUTS    number of output ports; size and first slot of each
    WIDTH, LANES      lanes, and bytes of a slot: 8 for each lane
    STEP              entries of a row in one vector of a product
    VECTORS           vectors of a wide tile of a product
    CHECKED           whether there are requirements; if not, no status is written

The address of the record is stored 8 bytes before the scratch memory `s`, whose slot 0
is the status. An operation is called with the address behind its opcode and returns the
address of the next opcode.
"""

from __future__ import annotations

from dyn_core.engines.llvm.call.python_to_llvm import call, copy, load, load32, store
from dyn_core.engines.llvm.emit import HOLDS

FIELDS = (
    "OPS", "CODE", "N_IN", "INPUTS", "N_OUT", "OUTPUTS", "WIDTH", "LANES", "STEP",
    "VECTORS", "CHECKED",
)  # fmt: skip
(OPS, CODE, N_IN, INPUTS, N_OUT, OUTPUTS, WIDTH, LANES, STEP,
 VECTORS, CHECKED) = (8 * k for k in range(len(FIELDS)))  # fmt: skip
PORT = 16  # bytes that describe a port
GATHER, SCATTER, BEGIN, FINISH, STILL, TILES = (8 * k for k in range(6))  # in OPS
ROWS = 4  # rows of a high tile
HIGH = 2**31  # base of the two words of a maximum number of rounds


def run(code, s, p):
    """Run operations from address `code` to the end of their list; return 0.

    Failed requirements are recorded in the status, slot 0 of the scratch memory.

    Args:
        code: Address of the first opcode.
        s: Address of the scratch memory.
        p: Address of the record that describes the program; see the module.
    """
    while load32(code) >= 0:
        code = call(load(load(p + OPS) + 8 * load32(code)), code + 4, s, p)
    return 0


def loop(code, s, p):
    """Run a loop until all lanes have stopped, or for its maximum number of rounds.

    The words are explained in OperationTable.loop. The address behind them is returned.

    Args:
        code: Address of the words behind the opcode.
        s: Address of the scratch memory.
        p: Address of the record.
    """
    rounds = HIGH * load32(code) + load32(code + 4)
    still = code + load32(code + 8)
    body = code + load32(code + 12)
    while rounds > 0:
        rounds -= 1
        run(code + 20, s, p)
        if call(load(load(p + OPS) + STILL), still, s, p) == 0:
            rounds = 0
        else:
            run(body, s, p)
    return code + load32(code + 16)


def product(code, s, p):
    """Run a product of matrices in slots, tile by tile; return the address behind it.

    Words: kind (2 if the sign is changed, plus 1 if it is added to C), rows, inner,
    columns; first slots of A, B, C and the result; slots per row of A, of the others.

    Args:
        code: Address of the words behind the opcode.
        s: Address of the scratch memory.
        p: Address of the record.
    """
    width, lanes = load(p + WIDTH), load(p + LANES)
    a_row, row = load32(code + 32) * width, load32(code + 36) * width
    i = 0
    while i < load32(code + 4):
        high = 1
        tiles = load(p + OPS) + TILES + 32 * load32(code)
        if load32(code + 4) - i >= ROWS:
            high = ROWS
            tiles += 16
        j = 0
        while j < load32(code + 12):
            wide = load(p + STEP)
            tile = tiles
            if load32(code + 12) - j > wide * (load(p + VECTORS) - 1):
                wide = wide * load(p + VECTORS)
                tile += 8
            call(
                load(tile), s + lanes * load32(code + 16) + 8 * a_row * i,
                s + lanes * (load32(code + 20) + j),
                s + lanes * (load32(code + 24) + j) + 8 * row * i,
                s + lanes * (load32(code + 28) + j) + 8 * row * i,
                load32(code + 8), a_row, width, row, row, row,
            )  # fmt: skip
            j += wide
        i += high
    return code + 40


def scalar(inputs, outputs, s):
    """Run one state; return 0, or the number of the first requirement that failed.

    Interface `scalar`, see kernel_ir.py. All outputs are stored, after a failure too.
    """
    p = load(s - 8)
    k = 0
    while k < load(p + N_IN):
        port = load(p + INPUTS) + PORT * k
        copy(s + 8 * load(port + 8), load(inputs + 8 * k), 8 * load(port))
        k += 1
    store(s, HOLDS)
    run(load(p + CODE), s, p)
    k = 0
    while k < load(p + N_OUT):
        port = load(p + OUTPUTS) + PORT * k
        copy(load(outputs + 8 * k), s + 8 * load(port + 8), 8 * load(port))
        k += 1
    if load(s) == HOLDS:
        return 0
    return load(s)


def block(status, s, p):
    """Run the rows in the slots of the inputs; return the number of rows that failed.

    Without requirements it is 0, and no status is written.

    Args:
        status: Address for the status of each lane, an int64: 0, or the number of the
            first requirement that failed.
        s: Address of the scratch memory.
        p: Address of the record.
    """
    call(load(load(p + OPS) + BEGIN), s)
    run(load(p + CODE), s, p)
    if load(p + CHECKED) == 0:
        return 0
    return call(load(load(p + OPS) + FINISH), s, status)


def batch(inputs, strides, outputs, status, first, last, s):
    """Run at least WIDTH rows of C-order arrays; return the number of rows that failed.

    Interface of the kernel `batch`, see kernel_ir.py. Rows in the overlap of the last
    block are counted twice. Without requirements it is 0, and no status is written.
    """
    p = load(s - 8)
    failed = 0
    next = first
    while next < last:
        row = next
        if row > last - load(p + WIDTH):
            row = last - load(p + WIDTH)
        k = 0
        while k < load(p + N_IN):
            port = load(p + INPUTS) + PORT * k
            stride = load(strides + 8 * k)
            if stride != 0 or next == first:
                call(
                    load(load(p + OPS) + GATHER), load(inputs + 8 * k) + stride * row,
                    stride, load(port), s + load(p + LANES) * load(port + 8),
                )  # fmt: skip
            k += 1
        failed += block(status + 8 * row, s, p)
        k = 0
        while k < load(p + N_OUT):
            port = load(p + OUTPUTS) + PORT * k
            call(
                load(load(p + OPS) + SCATTER), s + load(p + LANES) * load(port + 8),
                load(port), load(outputs + 8 * k) + 8 * row * load(port),
            )  # fmt: skip
            k += 1
        next += load(p + WIDTH)
    return failed


def blocked(inputs, outputs, status, first, last, s):
    """Run blocks in lane order; return the number of rows that failed.

    Interface `blocked`, see kernel_ir.py. All WIDTH rows of a block are run and
    counted. Without requirements it is 0, and no status is written.
    """
    p = load(s - 8)
    failed = 0
    while first < last:
        k = 0
        while k < load(p + N_IN):
            port = load(p + INPUTS) + PORT * k
            size = load(p + LANES) * load(port)
            place = s + load(p + LANES) * load(port + 8)
            copy(place, load(inputs + 8 * k) + size * first, size)
            k += 1
        failed += block(status + 8 * first * load(p + WIDTH), s, p)
        k = 0
        while k < load(p + N_OUT):
            port = load(p + OUTPUTS) + PORT * k
            size = load(p + LANES) * load(port)
            place = s + load(p + LANES) * load(port + 8)
            copy(load(outputs + 8 * k) + size * first, place, size)
            k += 1
        first += 1
    return failed
