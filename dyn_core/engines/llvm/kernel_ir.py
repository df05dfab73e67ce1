"""Kernels: the LLVM functions called from outside, for one state and for batches.

    scalar(in, out, s) -> status
        in, out: tables of pointers to the ports; s: scratch memory. The status is 0, or
        the number, from 1 on, of the first requirement that failed
    batch(in, strides, out, status, first, last, s) -> number of rows that failed
        rows first..last - 1 of C-order arrays, at least `width` of them. strides:
        bytes from row to row of each input, 0 for an input shared by all rows. status:
        one int64 for each row, from row 0 on; not written without requirements
    streamed(...) -> as batch, for results that are not in the cache: all blocks but the
        last are written past it if they begin at a multiple of a vector's size
    blocked(in, out, status, first, last, s) -> as batch
        blocks first..last - 1 of arrays (blocks, size, width)

Where the rows do not fill the last block of `batch`, it overlaps the block before: rows
do not depend on each other, so the same bits are written twice. Failed rows in the
overlap are counted twice; the number is 0 only if no row failed. Sizes of ports are
numbers of values of one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm.emit import ARGUMENTS, HOLDS, Emitter
from dyn_core.engines.llvm.function_ir import Ports
from dyn_core.engines.llvm.ir import constant, is_single, kind, lanes_like, real_size
from dyn_core.engines.llvm.rows_ir import (
    NONTEMPORAL,
    gather,
    gather_calls,
    group_of,
    scatter,
    scatter_calls,
    stream,
)

_NEAR = 16  # maximum gap of slots within one memset of zeros


@dataclass(frozen=True)
class KernelIR:
    """LLVM IR of one kernel, and the names of the functions to call, see the module.

    `scratch` is in bytes, 64-byte aligned; `steps` counts the operations of a row,
    those in a loop once.
    """

    ir: str
    entries: tuple[str, ...]
    scratch: int
    steps: int


def scalar_kernel(
    graph: Graph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    fused: bool,
    pack: int,
    vector: int,
    one: int = 1,
    zeroed: bool = True,
) -> KernelIR:
    """Return the kernel for one state, with the function `scalar`.

    At most `pack` sines and cosines are computed at once; `vector` are the entries of a
    row in one vector of a matrix product; `one` is 1 for float64, Lanes(1) for float32.
    `zeroed`: scratch memory starts as zeros; else the kernel sets what needs it.
    """
    emitter = Emitter(one, fused, pack, vector)
    calls = emitter.graph(graph, Ports("%in", inputs), Ports("%out", outputs))
    checked = bool(graph.requirements)
    if len(calls) == 1:  # small enough to be one function
        calls = emitter.last
        emitter.ir.clear()
    whole = kind("whole", one)
    lines = [
        "define i64 @scalar(ptr %in, ptr %out, ptr %s) nounwind {",
        *(() if zeroed else _zeros(emitter)),
        f"  store {whole} {HOLDS}, ptr %s",
        *calls,
    ]
    if checked:
        lines += [
            f"  %found = load {whole}, ptr %s",
            f"  %holds = icmp eq {whole} %found, {HOLDS}",
            f"  %number = select i1 %holds, {whole} 0, {whole} %found",
            *_widened("%status", "%number", one),
            "  ret i64 %status",
        ]
    else:
        lines += ["  ret i64 0"]
    ir = "\n".join([emitter.close(), *lines, "}", ""])
    return KernelIR(ir, ("scalar",), real_size(one) * emitter.top, emitter.steps)


def batch_kernel(
    graph: Graph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    fused: bool,
    width: int,
    zeroed: bool = True,
) -> KernelIR:
    """Return `batch`, `streamed` and `blocked`, kernels for at least `width` rows.

    `zeroed`: scratch memory starts as zeros; else they set the slots that need it.
    """
    emitter = Emitter(width, fused, 1)
    calls = emitter.graph(graph, Ports("%in", inputs), Ports("%out", outputs))
    lane = real_size(width) * width
    places = []  # byte offsets of the blocks of inputs and outputs in scratch memory
    end = emitter.top * lane
    for size in (*inputs, *outputs):
        places.append(end)
        end += -(-size // width) * width * lane  # padded: gather writes whole groups
    tables = end
    end += 8 * (len(inputs) + len(outputs))
    end = (end + 63) // 64 * 64
    rows = end
    end += max(outputs, default=0) * lane
    checked = bool(graph.requirements)
    set_zeros = [] if zeroed else _zeros(emitter)
    parts = [
        emitter.close(group_of(width)),
        _step_function(calls, width, checked),
        gather(width),
        scatter(width),
        stream(width),
        _batch(inputs, outputs, places, tables, width, set_zeros),
        _batch(inputs, outputs, places, tables, width, set_zeros, rows),
        _blocked(inputs, outputs, tables, width, set_zeros),
        NONTEMPORAL,
    ]
    scratch = (end + 63) // 64 * 64
    return KernelIR(
        "\n".join(parts), ("batch", "streamed", "blocked"), scratch, emitter.steps
    )


def _zeros(emitter: Emitter) -> list[str]:
    """Return instructions that set the slots in emitter.zeros to zero.

    Slots with fewer than 16 others between them are set together with these. If there
    are any instructions, emitter.tables declares memset.
    """
    runs: list[list[int]] = []
    for slot in sorted(emitter.zeros):
        if runs and slot - runs[-1][1] < _NEAR:
            runs[-1][1] = slot + 1
        else:
            runs.append([slot, slot + 1])
    size, lines = real_size(emitter.width) * emitter.width, []
    for k, (first, last) in enumerate(runs):
        lines += [
            f"  %zeros{k} = getelementptr i8, ptr %s, i64 {size * first}",
            f"  call void @llvm.memset.p0.i64(ptr %zeros{k}, i8 0,"
            f" i64 {size * (last - first)}, i1 false)",
        ]
    emitter.tables.sets |= bool(lines)
    return lines


def _widened(result: str, value: str, width: int) -> list[str]:
    """Return [the instruction] that widens unsigned whole numbers to 64 bits.

    For float64 it is a copy: they have 64 bits.
    """
    how = "zext" if is_single(width) else "bitcast"
    of, to = kind("whole", width), kind("whole", int(width))
    return [f"  {result} = {how} {of} {value} to {to}"]


def _step_function(calls: Sequence[str], width: int, checked: bool) -> str:
    """Return the LLVM function @block(in, out, s, status) of one block of rows.

    in, out: tables of addresses of the blocks; s: scratch memory; status: address of
    the status of the first row. It stores the status of each row, int64, 0 or the
    number of the first failed requirement, and returns the number of rows that failed.
    Without requirements no status is written, and 0 is returned.
    """
    real = kind("whole", width)
    align = real_size(width) * width
    holds = constant(HOLDS, "whole", width)
    lines = [f"define internal i64 @block({ARGUMENTS}, ptr %status) nounwind {{"]
    lines += [f"  store {real} {holds}, ptr %s, align {align}", *calls]
    if not checked:
        return "\n".join([*lines, "  ret i64 0", "}", ""])
    lanes = "i1" if width == 1 else f"<{width} x i1>"
    lines += [
        f"  %found = load {real}, ptr %s, align {align}",
        f"  %bad = icmp ne {real} %found, {holds}",
        f"  %zero = select {lanes} %bad, {real} %found, {real} zeroinitializer",
        *_widened("%states", "%zero", width),
        f"  store {kind('whole', int(width))} %states, ptr %status, align 8",
        f"  %bits = bitcast {lanes} %bad to i{width}",
        f"  %count = call i{width} @llvm.ctpop.i{width}(i{width} %bits)",
        f"  %wide = zext i{width} %count to i64",
        "  ret i64 %wide",
        "}",
        "",
    ]
    return "\n".join(lines)


def _batch(
    inputs: Sequence[int],
    outputs: Sequence[int],
    places: Sequence[int],
    tables: int,
    width: int,
    begin: Sequence[str],
    rows: int | None = None,
) -> str:
    """Return the function `batch` or `streamed` over rows, as LLVM IR; see the module.

    `places` are byte offsets of each port's block in the scratch memory, inputs first,
    `tables` is that of the tables of block addresses, inputs first, `rows` that of
    memory for the rows of a block, in `streamed`.
    """
    name = "batch" if rows is None else "streamed"
    real = kind("real", lanes_like(width, 1))
    lines = [
        f"define i64 @{name}(ptr %in, ptr %strides, ptr %out, ptr %status, i64 %first,"
        " i64 %last, ptr %s) nounwind {",
        f"  %tables = getelementptr i8, ptr %s, i64 {tables}",
        f"  %touts = getelementptr ptr, ptr %tables, i64 {len(inputs)}",
        f"  %final = sub i64 %last, {width}",
        f"  %rows = getelementptr i8, ptr %s, i64 {rows or 0}",
        *begin,
    ]
    for k, place in enumerate(places):
        lines += [
            f"  %b{k} = getelementptr i8, ptr %s, i64 {place}",
            f"  %t{k} = getelementptr ptr, ptr %tables, i64 {k}",
            f"  store ptr %b{k}, ptr %t{k}",
        ]
    lines += [
        "  br label %loop",
        "loop:",
        "  %at = phi i64 [%first, %0], [%following, %done]",
        "  %failed = phi i64 [0, %0], [%sum, %done]",
        "  %early = icmp slt i64 %at, %final",
        "  %row = select i1 %early, i64 %at, i64 %final",
        "  %begun = icmp ne i64 %at, %first",
    ]
    for k, size in enumerate(inputs):
        lines += [
            f"  %ps{k} = getelementptr i64, ptr %strides, i64 {k}",
            f"  %stride{k} = load i64, ptr %ps{k}",
            f"  %shared{k} = icmp eq i64 %stride{k}, 0",
            f"  %skip{k} = and i1 %shared{k}, %begun",
            f"  br i1 %skip{k}, label %have{k}, label %take{k}",
            f"take{k}:",
            f"  %pp{k} = getelementptr ptr, ptr %in, i64 {k}",
            f"  %base{k} = load ptr, ptr %pp{k}",
            f"  %far{k} = mul i64 %stride{k}, %row",
            f"  %from{k} = getelementptr i8, ptr %base{k}, i64 %far{k}",
            *gather_calls(width, f"g{k}", f"%from{k}", f"%stride{k}", size, f"%b{k}"),
            f"  br label %have{k}",
            f"have{k}:",
        ]
    lines += [
        "  %states = getelementptr i64, ptr %status, i64 %row",
        "  %bad = call i64 @block(ptr %tables, ptr %touts, ptr %s, ptr %states)",
        "  %sum = add i64 %failed, %bad",
    ]
    for k, size in enumerate(outputs):
        lines += [
            f"  %po{k} = getelementptr ptr, ptr %out, i64 {k}",
            f"  %ob{k} = load ptr, ptr %po{k}",
            f"  %of{k} = mul i64 %row, {size}",
            f"  %to{k} = getelementptr {real}, ptr %ob{k}, i64 %of{k}",
        ]
        block = f"%b{len(inputs) + k}"
        direct = scatter_calls(width, f"d{k}", block, size, f"%to{k}")
        if rows is None:
            lines += direct
            continue
        lines += [
            f"  %number{k} = ptrtoint ptr %to{k} to i64",
            f"  %odd{k} = and i64 %number{k}, {real_size(width) * width - 1}",
            f"  %even{k} = icmp eq i64 %odd{k}, 0",
            f"  %streams{k} = and i1 %early, %even{k}",
            f"  br i1 %streams{k}, label %past{k}, label %into{k}",
            f"past{k}:",
            *scatter_calls(width, f"s{k}", block, size, "%rows"),
            f"  call void @stream(ptr %rows, i64 {size}, ptr %to{k})",
            f"  br label %written{k}",
            f"into{k}:",
            *direct,
            f"  br label %written{k}",
            f"written{k}:",
        ]
    lines += [
        "  br label %done",
        "done:",
        f"  %following = add i64 %at, {width}",
        "  %more = icmp slt i64 %following, %last",
        "  br i1 %more, label %loop, label %end",
        "end:",
        *(() if rows is None else ("  fence seq_cst",)),
        "  ret i64 %sum",
        "}",
        "",
    ]
    return "\n".join(lines)


def _blocked(
    inputs: Sequence[int],
    outputs: Sequence[int],
    tables: int,
    width: int,
    begin: Sequence[str],
) -> str:
    """Return the function `blocked` over blocks, as LLVM IR; see the module.

    `tables` is the byte offset of the tables of block addresses in the scratch memory,
    inputs first; `begin` are instructions before the first block.
    """
    real = kind("real", lanes_like(width, 1))
    lines = [
        "define i64 @blocked(ptr %in, ptr %out, ptr %status, i64 %first, i64 %last,"
        " ptr %s) nounwind {",
        f"  %tables = getelementptr i8, ptr %s, i64 {tables}",
        f"  %touts = getelementptr ptr, ptr %tables, i64 {len(inputs)}",
        *begin,
        "  br label %blocks",
        "blocks:",
        "  %at = phi i64 [%first, %0], [%following, %blocks]",
        "  %failed = phi i64 [0, %0], [%sum, %blocks]",
    ]
    for k, size in enumerate((*inputs, *outputs)):
        table, j = ("%in", k) if k < len(inputs) else ("%out", k - len(inputs))
        lines += [
            f"  %p{k} = getelementptr ptr, ptr {table}, i64 {j}",
            f"  %base{k} = load ptr, ptr %p{k}",
            f"  %o{k} = mul i64 %at, {size * width}",
            f"  %a{k} = getelementptr {real}, ptr %base{k}, i64 %o{k}",
            f"  %t{k} = getelementptr ptr, ptr %tables, i64 {k}",
            f"  store ptr %a{k}, ptr %t{k}",
        ]
    lines += [
        f"  %row = mul i64 %at, {width}",
        "  %states = getelementptr i64, ptr %status, i64 %row",
        "  %bad = call i64 @block(ptr %tables, ptr %touts, ptr %s, ptr %states)",
        "  %sum = add i64 %failed, %bad",
        "  %following = add i64 %at, 1",
        "  %more = icmp slt i64 %following, %last",
        "  br i1 %more, label %blocks, label %end",
        "end:",
        "  ret i64 %sum",
        "}",
        "",
    ]
    return "\n".join(lines)
