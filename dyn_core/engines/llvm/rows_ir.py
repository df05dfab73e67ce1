"""LLVM functions that transpose rows of C-order arrays to blocks of lanes and back.

gather(from, stride, n, to)     `group` rows of n numbers -> n vectors
scatter(from, n, to)            n vectors -> `group` rows of n numbers
stream(from, n, to)             a copy of n vectors to memory, past the cache

A group is a part of the lanes of a vector, eight at most: robots may have fewer
coordinates than a vector of float32 has lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix

_GROUP = 8
NONTEMPORAL = "!0 = !{i32 1}"  # metadata at the end of a module with a stream


def group_of(width: int) -> int:
    """Return the number of rows that are transposed at once: the lanes, at most 8."""
    return lanes_like(width, min(width, _GROUP))


def gather_calls(
    width: int, tag: str, start: str, stride: str, n: int, to: str
) -> list[str]:
    """Return the calls of @gather that convert `width` rows to a block.

    `start`, `stride` [bytes] and `to` are registers. Zeros fill the last group.
    """
    group, lines = group_of(width), []
    for k in range(width // group):
        lines += [
            f"  %{tag}o{k} = mul i64 {stride}, {k * group}",
            f"  %{tag}f{k} = getelementptr i8, ptr {start}, i64 %{tag}o{k}",
            f"  %{tag}t{k} = getelementptr i8, ptr {to},"
            f" i64 {k * group * real_size(width)}",
            f"  call void @gather(ptr %{tag}f{k}, i64 {stride}, i64 {n},"
            f" ptr %{tag}t{k})",
        ]
    return lines


def scatter_calls(width: int, tag: str, start: str, n: int, to: str) -> list[str]:
    """Return the calls of @scatter that convert a block to `width` contiguous rows.

    `start` and `to` are registers. All columns of the block's last group are read.
    """
    group, size, lines = group_of(width), real_size(width), []
    for k in range(width // group):
        lines += [
            f"  %{tag}f{k} = getelementptr i8, ptr {start}, i64 {k * group * size}",
            f"  %{tag}t{k} = getelementptr i8, ptr {to}, i64 {k * group * n * size}",
            f"  call void @scatter(ptr %{tag}f{k}, i64 {n}, ptr %{tag}t{k})",
        ]
    return lines


def _transpose(rows: list[str], width: int, lines: list[str], tag: str) -> list[str]:
    """Write the transposition of `width` vectors by swaps of blocks of 1, 2, 4, ...

    `lines` is extended; `tag` is a prefix of registers. The registers of the transposed
    vectors are returned. `width` is a power of two.
    """
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
                of = kind("real", width)
                lines.append(
                    f"  {name} = shufflevector {of} {a}, {of} {b},"
                    f" <{width} x i32> <{chosen}>"
                )
                following[k] = name
        rows = following
        size *= 2
    return rows


def _over_columns(head: str, width: int, body: Callable[[str, str], list[str]]) -> str:
    """Return a function over groups of `width` columns; a partial group comes first.

    `head` has name and parameters, with %n: the number of columns. `body` returns the
    lines for a group, from a prefix of registers and the register of its first column.
    The prefix is `group` for a full group; for a partial one it is `few` where n is
    below half the width, else `most`, and %mask marks the existing columns.
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
    """Return instructions for pointers %TAGwK to the vectors of a group of columns.

    K counts the columns of the group from 0 on.
    """
    number, lines = kind("real", lanes_like(width, 1)), []
    for k in range(group_of(width)):
        lines += [
            f"  %{tag}c{k} = add i64 {first}, {k}",
            f"  %{tag}q{k} = mul i64 %{tag}c{k}, {width}",
            f"  %{tag}w{k} = getelementptr {number}, ptr {block}, i64 %{tag}q{k}",
        ]
    return lines


def gather(lanes: int) -> str:
    """Return the LLVM IR of `@gather(from, stride, n, to)`, rows -> block.

    It reads n numbers of each of group_of(lanes) rows, `stride` bytes apart, and writes
    n vectors of one column each, `lanes` numbers apart, and as many vectors of zeros as
    fill the last group. `to` must be aligned to the size of such a vector.
    """
    width, number = group_of(lanes), kind("real", lanes_like(lanes, 1))
    of, end, size = kind("real", width), f"{suffix(width)}.p0", real_size(width)

    def body(tag: str, first: str) -> list[str]:
        lines, rows = _vectors(tag, first, "%to", lanes), []
        for r in range(width):
            lines += [
                f"  %{tag}o{r} = mul i64 %stride, {r}",
                f"  %{tag}r{r} = getelementptr i8, ptr %from, i64 %{tag}o{r}",
                f"  %{tag}p{r} = getelementptr {number}, ptr %{tag}r{r}, i64 {first}",
                f"  %{tag}v{r} = load {of}, ptr %{tag}p{r}, align {size}"
                if tag == "group"
                else f"  %{tag}v{r} = call {of} @llvm.masked.load.{end}("
                f"ptr %{tag}p{r}, i32 {size}, <{width} x i1> %mask,"
                f" {of} zeroinitializer)",
            ]
            rows.append(f"%{tag}v{r}")
        for k, name in enumerate(_transpose(rows, width, lines, f"{tag}t")):
            lines.append(f"  store {of} {name}, ptr %{tag}w{k}, align {size * width}")
        return lines

    head = "@gather(ptr %from, i64 %stride, i64 %n, ptr noalias %to)"
    return _over_columns(head, width, body)


def scatter(lanes: int) -> str:
    """Return the LLVM IR of `@scatter(from, n, to)`, the reverse of @gather.

    It reads the n vectors, and those that fill the last group, aligned as those of
    @gather, and writes group_of(lanes) contiguous rows of n numbers. Masked stores are
    slow on many machines. A full vector at the partial end of a row extends into the
    next rows, which are written later; only the last row needs a mask, and every row
    where n is below half a group.

    Args:
        lanes: Lanes of the block, of type Lanes for float32.
    """
    width, number = group_of(lanes), kind("real", lanes_like(lanes, 1))
    of, end, size = kind("real", width), f"{suffix(width)}.p0", real_size(width)

    def body(tag: str, first: str) -> list[str]:
        lines, columns = _vectors(tag, first, "%from", lanes), []
        for k in range(width):
            load = f"load {of}, ptr %{tag}w{k}, align {size * width}"
            lines.append(f"  %{tag}v{k} = {load}")
            columns.append(f"%{tag}v{k}")
        for r, name in enumerate(_transpose(columns, width, lines, f"{tag}t")):
            lines += [
                f"  %{tag}o{r} = mul i64 %n, {r}",
                f"  %{tag}a{r} = add i64 %{tag}o{r}, {first}",
                f"  %{tag}p{r} = getelementptr {number}, ptr %to, i64 %{tag}a{r}",
                f"  call void @llvm.masked.store.{end}({of} {name},"
                f" ptr %{tag}p{r}, i32 {size}, <{width} x i1> %mask)"
                if tag == "few" or (tag == "most" and r == width - 1)
                else f"  store {of} {name}, ptr %{tag}p{r}, align {size}",
            ]
        return lines

    return _over_columns("@scatter(ptr noalias %from, i64 %n, ptr %to)", width, body)


def stream(width: int) -> str:
    """Return the LLVM IR of `@stream(from, n, to)`, a copy of n vectors past the cache.

    n must be at least 1. Source and target must be aligned to the size of a vector. No
    fence is written; the module needs the metadata NONTEMPORAL.
    """
    of, align = kind("real", width), real_size(width) * width
    lines = [
        "define internal void @stream(ptr noalias %from, i64 %n, ptr %to) nounwind {",
        "  br label %copy",
        "copy:",
        "  %k = phi i64 [0, %0], [%next, %copy]",
        f"  %source = getelementptr {of}, ptr %from, i64 %k",
        f"  %place = getelementptr {of}, ptr %to, i64 %k",
        f"  %x = load {of}, ptr %source, align {align}",
        f"  store {of} %x, ptr %place, align {align}, !nontemporal !0",
        "  %next = add i64 %k, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %copy, label %end",
        "end:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
