"""Kernels: the functions that are called from outside, for one state and for batches.

    scalar(in, out, s) -> status
        in, out: tables of pointers to the ports; s: scratch memory
    batch(in, strides, out, status, first, last, s) -> number of rows that failed
        rows first..last of C-order arrays; at least `width` of them. strides: bytes
        from row to row of each input, 0 where all rows share it
    blocked(in, out, status, first, last, s) -> as batch
        blocks first..last of arrays (blocks, size, width)

The last block of `batch` overlaps the one before it where the rows do not fill it: rows
do not depend on each other, so the same bits are written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm.emit import ARGUMENTS, HOLDS, Emitter
from dyn_core.engines.llvm.function_ir import Ports
from dyn_core.engines.llvm.ir import constant, kind


@dataclass(frozen=True)
class KernelIR:
    """LLVM IR of one kernel.

    Attributes:
        ir: The module.
        entries: Names of the functions to call.
        scratch: Bytes of scratch memory a call needs, 64-byte aligned.
        steps: Number of operations.
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
) -> KernelIR:
    """Write the kernel for one state; inputs, outputs: sizes of the ports."""
    emitter = Emitter(1, fused, pack, vector)
    calls = emitter.graph(graph, Ports("%in", inputs), Ports("%out", outputs))
    checked = bool(graph.requirements)
    if len(calls) == 1:  # small enough to be one function
        calls = emitter.last
        emitter.ir.clear()
    lines = [
        "define i64 @scalar(ptr %in, ptr %out, ptr %s) nounwind {",
        f"  store i64 {HOLDS}, ptr %s",
        *calls,
    ]
    if checked:
        lines += [
            "  %found = load i64, ptr %s",
            f"  %holds = icmp eq i64 %found, {HOLDS}",
            "  %status = select i1 %holds, i64 0, i64 %found",
            "  ret i64 %status",
        ]
    else:
        lines += ["  ret i64 0"]
    ir = "\n".join([emitter.close(), *lines, "}", ""])
    return KernelIR(ir, ("scalar",), 8 * emitter.top, emitter.steps)


def batch_kernel(
    graph: Graph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    fused: bool,
    width: int,
) -> KernelIR:
    """Write the kernels for batches of at least `width` rows, and for blocks."""
    emitter = Emitter(width, fused, 1)
    calls = emitter.graph(graph, Ports("%in", inputs), Ports("%out", outputs))
    lane = 8 * width
    places = []  # of the blocked copies of inputs and outputs, then of their tables
    end = emitter.top * lane
    for size in (*inputs, *outputs):
        places.append(end)
        end += -(-size // width) * width * lane  # whole groups: see gather
    tables = end
    end += 8 * (len(inputs) + len(outputs))
    checked = bool(graph.requirements)
    parts = [
        emitter.close(),
        _step_function(calls, width, checked),
        gather(width),
        scatter(width),
        _batch(inputs, outputs, places, tables, width),
        _blocked(inputs, outputs, tables, width),
    ]
    scratch = (end + 63) // 64 * 64
    return KernelIR("\n".join(parts), ("batch", "blocked"), scratch, emitter.steps)


def _step_function(calls: Sequence[str], width: int, checked: bool) -> str:
    """Write the function of one block: the status of its rows, how many failed."""
    real = kind("whole", width)
    align = 8 * width
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
        f"  store {real} %zero, ptr %status, align 8",
        f"  %bits = bitcast {lanes} %bad to i{width}",
        f"  %count = call i{width} @llvm.ctpop.i{width}(i{width} %bits)",
        f"  %wide = zext i{width} %count to i64",
        "  ret i64 %wide",
        "}",
        "",
    ]
    return "\n".join(lines)


def _transpose(rows: list[str], width: int, lines: list[str], tag: str) -> list[str]:
    """Write the transposition of `width` vectors: swap blocks of 1, 2, 4, ..."""
    size = 1
    while size < width:
        following = list(rows)
        for i in range(width):
            if i & size:
                continue
            a, b = rows[i], rows[i + size]
            low = [j if not j & size else width + j - size for j in range(width)]
            high = [j + size if not j & size else width + j for j in range(width)]
            for k, mask in ((i, low), (i + size, high)):
                name = f"%{tag}{size}_{k}"
                chosen = ", ".join(f"i32 {j}" for j in mask)
                of = f"<{width} x double>"
                lines.append(
                    f"  {name} = shufflevector {of} {a}, {of} {b},"
                    f" <{width} x i32> <{chosen}>"
                )
                following[k] = name
        rows = following
        size *= 2
    return rows


def _over_columns(head: str, width: int, body: Callable[[str, str], list[str]]) -> str:
    """Write a function over groups of `width` columns; an odd rest comes first.

    Args:
        head: Name and arguments, %n among them: the number of columns.
        width: Lanes.
        body: Gives the lines for a group, from a prefix of names and the name of its
            first column. The prefix is `group` for a whole one, `few` where n is below
            half the lanes, else `most`; then %mask tells which columns exist.
    """
    counting = ", ".join(f"i64 {k}" for k in range(width))
    lines = [
        f"define internal void {head} nounwind {{",
        f"  %rest = and i64 %n, {width - 1}",
        "  %whole = sub i64 %n, %rest",
        "  %is_odd = icmp ne i64 %rest, 0",
        "  br i1 %is_odd, label %odd, label %even",
        "odd:",
        f"  %one = insertelement <{width} x i64> poison, i64 %rest, i32 0",
        f"  %all = shufflevector <{width} x i64> %one, <{width} x i64> poison,"
        f" <{width} x i32> zeroinitializer",
        f"  %mask = icmp sgt <{width} x i64> %all, <{counting}>",
        f"  %is_few = icmp slt i64 %n, {width // 2}",
        "  br i1 %is_few, label %few, label %most",
        "few:",
        *body("few", "%whole"),
        "  br label %even",
        "most:",
        *body("most", "%whole"),
        "  br label %even",
        "even:",
        "  %some = icmp sgt i64 %whole, 0",
        "  br i1 %some, label %group, label %end",
        "group:",
        "  %c = phi i64 [0, %even], [%next, %group]",
        *body("group", "%c"),
        f"  %next = add i64 %c, {width}",
        "  %more = icmp slt i64 %next, %whole",
        "  br i1 %more, label %group, label %end",
        "end:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _vectors(tag: str, first: str, block: str, width: int) -> list[str]:
    """Write pointers %TAGwK to the vectors of a block that belong to a group."""
    lines = []
    for k in range(width):
        lines += [
            f"  %{tag}c{k} = add i64 {first}, {k}",
            f"  %{tag}q{k} = mul i64 %{tag}c{k}, {width}",
            f"  %{tag}w{k} = getelementptr double, ptr {block}, i64 %{tag}q{k}",
        ]
    return lines


def gather(width: int) -> str:
    """Write rows -> block: `to` gets n vectors, and more up to a whole group."""
    of, suffix = f"<{width} x double>", f"v{width}f64.p0"

    def body(tag: str, first: str) -> list[str]:
        lines, rows = _vectors(tag, first, "%to", width), []
        for r in range(width):
            lines += [
                f"  %{tag}o{r} = mul i64 %stride, {r}",
                f"  %{tag}r{r} = getelementptr i8, ptr %from, i64 %{tag}o{r}",
                f"  %{tag}p{r} = getelementptr double, ptr %{tag}r{r}, i64 {first}",
                f"  %{tag}v{r} = load {of}, ptr %{tag}p{r}, align 8"
                if tag == "group"
                else f"  %{tag}v{r} = call {of} @llvm.masked.load.{suffix}("
                f"ptr %{tag}p{r}, i32 8, <{width} x i1> %mask, {of} zeroinitializer)",
            ]
            rows.append(f"%{tag}v{r}")
        for k, name in enumerate(_transpose(rows, width, lines, f"{tag}t")):
            lines.append(f"  store {of} {name}, ptr %{tag}w{k}, align {8 * width}")
        return lines

    head = "@gather(ptr %from, i64 %stride, i64 %n, ptr noalias %to)"
    return _over_columns(head, width, body)


def scatter(width: int) -> str:
    """Write block -> rows: n vectors at `from` become `width` rows of n numbers.

    Masked stores are slow on many machines. A whole vector at the odd end of a row
    reaches into the next rows, which are written later; only the last row needs a mask,
    and where n is small every row.
    """
    of, suffix = f"<{width} x double>", f"v{width}f64.p0"

    def body(tag: str, first: str) -> list[str]:
        lines, columns = _vectors(tag, first, "%from", width), []
        for k in range(width):
            lines.append(f"  %{tag}v{k} = load {of}, ptr %{tag}w{k}, align {8 * width}")
            columns.append(f"%{tag}v{k}")
        for r, name in enumerate(_transpose(columns, width, lines, f"{tag}t")):
            lines += [
                f"  %{tag}o{r} = mul i64 %n, {r}",
                f"  %{tag}a{r} = add i64 %{tag}o{r}, {first}",
                f"  %{tag}p{r} = getelementptr double, ptr %to, i64 %{tag}a{r}",
                f"  call void @llvm.masked.store.{suffix}({of} {name},"
                f" ptr %{tag}p{r}, i32 8, <{width} x i1> %mask)"
                if tag == "few" or (tag == "most" and r == width - 1)
                else f"  store {of} {name}, ptr %{tag}p{r}, align 8",
            ]
        return lines

    return _over_columns("@scatter(ptr noalias %from, i64 %n, ptr %to)", width, body)


def _batch(
    inputs: Sequence[int],
    outputs: Sequence[int],
    places: Sequence[int],
    tables: int,
    width: int,
) -> str:
    """Write the driver over rows of C-order arrays."""
    lines = [
        "define i64 @batch(ptr %in, ptr %strides, ptr %out, ptr %status, i64 %first,"
        " i64 %last, ptr %s) nounwind {",
        f"  %tables = getelementptr i8, ptr %s, i64 {tables}",
        f"  %touts = getelementptr ptr, ptr %tables, i64 {len(inputs)}",
        f"  %final = sub i64 %last, {width}",
    ]
    for k, place in enumerate(places):
        lines += [
            f"  %b{k} = getelementptr i8, ptr %s, i64 {place}",
            f"  %t{k} = getelementptr ptr, ptr %tables, i64 {k}",
            f"  store ptr %b{k}, ptr %t{k}",
        ]
    lines += [
        "  br label %rows",
        "rows:",
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
            f"  call void @gather(ptr %from{k}, i64 %stride{k}, i64 {size}, ptr %b{k})",
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
            f"  %to{k} = getelementptr double, ptr %ob{k}, i64 %of{k}",
            f"  call void @scatter(ptr %b{len(inputs) + k}, i64 {size}, ptr %to{k})",
        ]
    lines += [
        "  br label %done",
        "done:",
        f"  %following = add i64 %at, {width}",
        "  %more = icmp slt i64 %following, %last",
        "  br i1 %more, label %rows, label %end",
        "end:",
        "  ret i64 %sum",
        "}",
        "",
    ]
    return "\n".join(lines)


def _blocked(
    inputs: Sequence[int], outputs: Sequence[int], tables: int, width: int
) -> str:
    """Write the driver over blocks that already lie as lanes."""
    lines = [
        "define i64 @blocked(ptr %in, ptr %out, ptr %status, i64 %first, i64 %last,"
        " ptr %s) nounwind {",
        f"  %tables = getelementptr i8, ptr %s, i64 {tables}",
        f"  %touts = getelementptr ptr, ptr %tables, i64 {len(inputs)}",
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
            f"  %a{k} = getelementptr double, ptr %base{k}, i64 %o{k}",
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
