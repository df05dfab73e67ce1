"""LLVM IR of the exported functions, which call the kernels: see interface.py."""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.engines.status import NOT_FINITE_INPUT, NOT_FINITE_RESULT
from dyn_core.export.interface import Interface
from dyn_core.export.object_code.export_kernels import Kernels

_REALS = {
    "float64": ("double", "i64", "9221120237041090560", "9218868437227405312", 8),
    "float32": ("float", "i32", "2143289344", "2139095040", 4),
}  # type, whole number, bits of NaN, bits of infinity, bytes


def entry_ir(interface: Interface, kernels: Kernels, batch: bool) -> str:
    """Return the LLVM IR of PREFIX and PREFIX_batch; kernels are only declared."""
    prefix, sizes = interface.prefix, interface.sizes
    settles = kernels.checked or interface.finite
    parts = ["declare i64 @scalar(ptr, ptr, ptr)"]
    if settles:
        parts += [_fill(interface.dtype), _settle(interface)]
    if interface.finite:
        parts.append(_not_finite(interface.dtype))
    ending = ["  ret i64 %status"]
    if settles:
        settle = "call i64 @dyn.settle(ptr %in, ptr %out, i64 %status)"
        ending = [f"  %settled = {settle}", "  ret i64 %settled"]
    lines = [
        f"define i64 @{prefix}(ptr %in, ptr %out, ptr %s) nounwind {{",
        "  %status = call i64 @scalar(ptr %in, ptr %out, ptr %s)",
        *ending,
        "}",
    ]
    parts.append("\n".join(lines))
    if batch:
        if kernels.lanes:
            parts.append("declare i64 @batch(ptr, ptr, ptr, ptr, i64, i64, ptr)")
        parts += [
            _row(*sizes, _REALS[interface.dtype][4]),
            _batch(interface, kernels, settles),
        ]
    return "\n\n".join(parts) + "\n"


def batch_scratch(interface: Interface, kernels: Kernels) -> int:
    """Return the scratch of PREFIX_batch [bytes]: that of the kernels, then _tables."""
    return max(kernels.batch_scratch, _tables(kernels) + 8 * len(interface.ports))


def _tables(kernels: Kernels) -> int:
    """Return where in PREFIX_batch's scratch each row's pointer tables are [bytes]."""
    return max(_whole(kernels.scratch), _whole(kernels.batch_scratch))


def _whole(size: int) -> int:
    return -(-size // 64) * 64


def _fill(dtype: str) -> str:
    """Return the LLVM IR of @dyn.fill(to, n), which sets n > 0 numbers to NaN."""
    real, whole, nan, _, _ = _REALS[dtype]
    return _loop(
        "define internal void @dyn.fill(ptr %to, i64 %n) nounwind {",
        [
            f"  %place = getelementptr {real}, ptr %to, i64 %k",
            f"  store {whole} {nan}, ptr %place",
        ],
        "",
        "  ret void",
    )


def _not_finite(dtype: str) -> str:
    """Return the LLVM IR of @dyn.not_finite(from, n): is one of n > 0 not finite?"""
    real, whole, _, infinity, _ = _REALS[dtype]
    return _loop(
        "define internal i1 @dyn.not_finite(ptr %from, i64 %n) nounwind {",
        [
            f"  %place = getelementptr {real}, ptr %from, i64 %k",
            f"  %bits = load {whole}, ptr %place",
            f"  %exponent = and {whole} %bits, {infinity}",
            f"  %this = icmp eq {whole} %exponent, {infinity}",
            "  %some = or i1 %before, %this",
        ],
        "  %before = phi i1 [false, %0], [%some, %more]",
        "  ret i1 %some",
    )


def _loop(head: str, body: Sequence[str], carried: str, end: str) -> str:
    """Return the LLVM IR of a function that runs its body for k = 0..n-1, n > 0.

    Its `head` has %n, its `body` uses %k; `carried` is carried from round to round.
    """
    return "\n".join(
        [
            head,
            "  br label %more",
            "more:",
            "  %k = phi i64 [0, %0], [%next, %more]",
            *([carried] if carried else []),
            *body,
            "  %next = add i64 %k, 1",
            "  %again = icmp slt i64 %next, %n",
            "  br i1 %again, label %more, label %end",
            "end:",
            end,
            "}",
        ]
    )


def _port(table: str, k: int, name: str) -> list[str]:
    """Return lines that load entry k of a pointer table, such as %in, into %NAMEk."""
    return [
        f"  %{name}_at{k} = getelementptr ptr, ptr {table}, i64 {k}",
        f"  %{name}{k} = load ptr, ptr %{name}_at{k}",
    ]


def _settle(interface: Interface) -> str:
    """Return the LLVM IR of @dyn.settle(in, out, status), which finishes a state.

    It checks for NaN and infinity, if the interface does: inputs replace any status,
    results only 0. It sets outputs to NaN if the status it returns is not 0.
    """
    lines = [
        "define internal i64 @dyn.settle(ptr %in, ptr %out, i64 %status) nounwind {",
    ]
    last = "%status"
    inputs = [(k, p.size) for k, p in enumerate(interface.inputs) if p.size]
    outputs = [(k, p.size) for k, p in enumerate(interface.outputs) if p.size]
    for k, _ in outputs:
        lines += _port("%out", k, "o")
    if interface.finite:
        for number, (name, table, ports, code) in enumerate(
            (
                ("i", "%in", inputs, NOT_FINITE_INPUT),
                ("r", "%out", outputs, NOT_FINITE_RESULT),
            )
        ):
            before = last
            bad = "false"
            for k, size in ports:
                lines += _port(table, k, name)
                lines += [
                    f"  %{name}_bad{k} = call i1 @dyn.not_finite(ptr %{name}{k},"
                    f" i64 {size})",
                    f"  %{name}_some{k} = or i1 {bad}, %{name}_bad{k}",
                ]
                bad = f"%{name}_some{k}"
            last = f"%after{number}"
            if code == NOT_FINITE_RESULT:  # earlier statuses take precedence
                lines += [
                    f"  %good = icmp eq i64 {before}, 0",
                    f"  %both = and i1 %good, {bad}",
                ]
                bad = "%both"
            lines.append(f"  {last} = select i1 {bad}, i64 {code}, i64 {before}")
    lines += [
        f"  %fails = icmp ne i64 {last}, 0",
        "  br i1 %fails, label %failed, label %end",
        "failed:",
        *(f"  call void @dyn.fill(ptr %o{k}, i64 {size})" for k, size in outputs),
        "  br label %end",
        "end:",
        f"  ret i64 {last}",
        "}",
    ]
    return "\n".join(lines)


def _row(inputs: Sequence[int], outputs: Sequence[int], item: int) -> str:
    """Return the LLVM IR of @dyn.row(in, strides, out, row, tables).

    It fills the pointer tables of one row of a batch: inputs, whose rows are `strides`
    bytes apart, then outputs, whose rows are adjacent. `item` is in bytes.
    """
    lines = [
        "define internal void @dyn.row(ptr %in, ptr %strides, ptr %out, i64 %row,"
        " ptr %tables) nounwind {"
    ]
    for k in range(len(inputs)):
        lines += [
            *_port("%in", k, "i"),
            f"  %step_at{k} = getelementptr i64, ptr %strides, i64 {k}",
            f"  %step{k} = load i64, ptr %step_at{k}",
            f"  %far{k} = mul i64 %step{k}, %row",
            f"  %from{k} = getelementptr i8, ptr %i{k}, i64 %far{k}",
            f"  %t{k} = getelementptr ptr, ptr %tables, i64 {k}",
            f"  store ptr %from{k}, ptr %t{k}",
        ]
    for k, size in enumerate(outputs):
        lines += [
            *_port("%out", k, "o"),
            f"  %behind{k} = mul i64 %row, {size * item}",
            f"  %to{k} = getelementptr i8, ptr %o{k}, i64 %behind{k}",
            f"  %u{k} = getelementptr ptr, ptr %tables, i64 {len(inputs) + k}",
            f"  store ptr %to{k}, ptr %u{k}",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def _batch(interface: Interface, kernels: Kernels, settles: bool) -> str:
    """Return the LLVM IR of PREFIX_batch, which returns how many rows failed.

    It uses the kernel with lanes if there is one and there are enough rows, else the
    scalar kernel for each row. With `settles`, that of _settle finishes each row.
    """
    n = len(interface.inputs)
    lines = [
        f"define i64 @{interface.prefix}_batch(ptr %in, ptr %strides, ptr %out,"
        " ptr %status, i64 %first, i64 %last, ptr %s) nounwind {",
        f"  %tables = getelementptr i8, ptr %s, i64 {_tables(kernels)}",
        f"  %results = getelementptr ptr, ptr %tables, i64 {n}",
        "  %rows = sub i64 %last, %first",
        "  %some = icmp sgt i64 %rows, 0",
        "  br i1 %some, label %begin, label %none",
        "none:",
        "  ret i64 0",
        "begin:",
        f"  %many = icmp sge i64 %rows, {kernels.lanes or 1}",
        f"  %lanes = and i1 %many, {'true' if kernels.lanes else 'false'}",
        "  br i1 %lanes, label %together, label %each",
        "together:",
    ]
    lines += _together(interface, kernels)
    known = "%old" if kernels.checked else "0"
    lines += [
        "each:",
        "  br label %more",
        "more:",
        "  %row = phi i64 [%first, %each], [%next, %done]",
        "  %failed = phi i64 [0, %each], [%sum, %done]",
        "  call void @dyn.row(ptr %in, ptr %strides, ptr %out, i64 %row, ptr %tables)",
        "  %place = getelementptr i64, ptr %status, i64 %row",
        "  br i1 %lanes, label %ready, label %alone",
        "ready:",
        "  %old = load i64, ptr %place",
        "  br label %settled",
        "alone:",
        "  %new = call i64 @scalar(ptr %tables, ptr %results, ptr %s)",
        "  br label %settled",
        "settled:",
        f"  %state = phi i64 [{known}, %ready], [%new, %alone]",
        "  %final = call i64 @dyn.settle(ptr %tables, ptr %results, i64 %state)"
        if settles
        else "  %final = add i64 %state, 0",
        "  store i64 %final, ptr %place",
        "  %is_bad = icmp ne i64 %final, 0",
        "  %one = zext i1 %is_bad to i64",
        "  %sum = add i64 %failed, %one",
        "  br label %done",
        "done:",
        "  %next = add i64 %row, 1",
        "  %again = icmp slt i64 %next, %last",
        "  br i1 %again, label %more, label %end",
        "end:",
        "  ret i64 %sum",
        "}",
    ]
    return "\n".join(lines)


def _together(interface: Interface, kernels: Kernels) -> list[str]:
    """Return lines that compute all rows with lanes and set their statuses.

    Then the function returns 0, or, if the interface checks for NaN or a condition has
    failed, jumps to the loop over single rows. Without lanes it only jumps.
    """
    if not kernels.lanes:
        return ["  br label %each"]
    call = (
        "  %bad = call i64 @batch(ptr %in, ptr %strides, ptr %out, ptr %status,"
        " i64 %first, i64 %last, ptr %s)"
    )
    if interface.finite:
        return [call, "  br label %each"]
    if kernels.checked:
        good = ["good:", "  ret i64 0"]
        return [
            call,
            "  %fails = icmp ne i64 %bad, 0",
            "  br i1 %fails, label %each, label %good",
            *good,
        ]
    return [
        call,
        "  br label %zeros",
        "zeros:",
        "  %z = phi i64 [%first, %together], [%after, %zeros]",
        "  %zero_at = getelementptr i64, ptr %status, i64 %z",
        "  store i64 0, ptr %zero_at",
        "  %after = add i64 %z, 1",
        "  %others = icmp slt i64 %after, %last",
        "  br i1 %others, label %zeros, label %good",
        "good:",
        "  ret i64 0",
    ]
