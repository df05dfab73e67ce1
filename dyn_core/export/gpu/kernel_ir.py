"""Graph -> LLVM IR of a GPU kernel: one thread computes one state.

    kernel(inputs ..., outputs ..., status, n)

It has the functions of the engine `native` with one lane: the same order, the same
multiply-adds, the same polynomials. Their intermediate values are in memory of the
thread, which the hardware interleaves across threads.

Entry k of a port of state i has index k n + i in the layout by entries, and i size + k
in the layout by states. Functions get a table: the addresses of the ports at this
state, and n.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm.emit import HOLDS, Emitter
from dyn_core.engines.llvm.function_ir import FunctionCode, Place
from dyn_core.engines.llvm.functions import far_angles
from dyn_core.engines.llvm.ir import constant, kind, real_size
from dyn_core.engines.llvm.value_tables import MANY, ValueTables

LOCAL = "ptr addrspace(5)"  # a pointer to the memory of one thread
WRITTEN_OUT = 1000  # maximum multiplications of an unrolled product
BLOCK = 128  # maximum threads of a block
# Pointer arguments of functions refer to the memory of the thread, except for
# tables of constants.
_HEAD = re.compile(r"^(define internal void @[^(]*\()([^{]*)(\)[^{)]*) \{$", re.M)
_CALL = re.compile(r"^  call void @(?!llvm)[^(]*\(.*\)$", re.M)
_POINTER = re.compile(r"ptr( noalias)? %(?!table\b)(\w+)")
_THREAD = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
"""
_STATE = """  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = zext i32 %thread to i64
  %b = zext i32 %block to i64
  %bt = zext i32 %threads to i64
  %first = mul i64 %b, %bt
  %i = add i64 %first, %t
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %state, label %end
state:"""


GLOBAL = "ptr addrspace(1)"  # a pointer to the memory that all threads share


class StatePorts:
    """Flat inputs or outputs of one state; entries are not contiguous in general.

    Methods that return an address or a distance append the code that computes it.
    `by_entries`: equal entries of all states are adjacent; `places`: (port, index in
    the port) of each flat value.
    """

    def __init__(self, table: str, sizes: Sequence[int], by_entries: bool) -> None:
        self.table, self.by_entries = table, by_entries
        self.count = len(sizes)
        self.places = [(p, k) for p, size in enumerate(sizes) for k in range(size)]

    def base(self, code: FunctionCode, port: int) -> str:
        """Return the address in LLVM IR of a port's first entry at this state."""
        return self._entry(code, port, GLOBAL)

    def step(self, code: FunctionCode) -> str:
        """Return the step between entries of a state, "1" number or a name in IR."""
        return self._entry(code, self.count, "i64") if self.by_entries else "1"

    def _entry(self, code: FunctionCode, number: int, of: str) -> str:
        """Return the register of an entry of the table, loaded once in a function."""
        name = code.pointers.get((self.table, number))
        if name is None:
            place = code.new(f"getelementptr i64, ptr {self.table}, i64 {number}")
            name = code.pointers[self.table, number] = code.new(
                f"load {of}, ptr {place}"
            )
        return name

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return generic pointer and alignment [bytes] of flat value k, by new code."""
        port, index = self.places[k]
        pointer = self.base(code, port)
        if index:
            offset = str(index)
            if self.by_entries:
                offset = code.new(f"mul nsw i64 {self.step(code)}, {index}")
            pointer = code.new(
                f"getelementptr inbounds {code.real}, {GLOBAL} {pointer}, i64 {offset}"
            )
        generic = code.new(f"addrspacecast {GLOBAL} {pointer} to ptr")
        return generic, real_size(code.width)

    def joined(self, a: int, b: int) -> bool:
        """Return False: values a and b are never treated as contiguous."""
        return False

    def part(self, k: int) -> int:
        """Return the index of the port of flat value k."""
        return self.places[k][0]


class StateTables(ValueTables):
    """A writer of a kernel's tables; copies to StatePorts have a stride."""

    def copy(
        self,
        code: FunctionCode,
        start: Place,
        pairs: Sequence[tuple[int, int]],
        to: Place,
    ) -> None:
        """Append code that copies values; `pairs` are (index in start, index in to).

        To StatePorts it is one call for each port; for other memory see ValueTables.
        """
        if not isinstance(to, StatePorts):
            super().copy(code, start, pairs, to)
            return
        for port in sorted({to.part(y) for _, y in pairs}):
            some = [(x, to.places[y][1]) for x, y in pairs if to.part(y) == port]
            first = min(x for x, _ in some)
            source = start.address(code, first)[0]
            numbers = [(x - first, y) for x, y in some]
            self._spread(code, source, numbers, to, port)

    def zeros(
        self, code: FunctionCode, to: Place, numbers: Sequence[int], count: int
    ) -> bool:
        """Append code that sets values of these indices to zero; return whether it did.

        Nothing is appended for fewer than 2000 values or memory other than StatePorts.
        """
        if len(numbers) < MANY or not isinstance(to, StatePorts):
            return False
        zero = code.new(f"alloca {code.real}")
        code.lines.append(f"  store {code.real} 0.0, ptr {zero}")
        for port in sorted({to.part(k) for k in numbers}):
            some = [(0, to.places[k][1]) for k in numbers if to.part(k) == port]
            self._spread(code, zero, some, to, port)
        return True

    def _spread(
        self,
        code: FunctionCode,
        source: str,
        pairs: Sequence[tuple[int, int]],
        to: StatePorts,
        port: int,
    ) -> None:
        """Append a call that copies values to one port by pairs (source, in port)."""
        name = f"@spread{len(self.head)}_{self.width}"
        numbers = ", ".join(f"i32 {x}, i32 {y}" for x, y in pairs)
        self.head.append(
            f"{name} = private constant [{2 * len(pairs)} x i32] [{numbers}]"
        )
        arguments = (
            f"ptr {source}, {GLOBAL} {to.base(code, port)}, i64 {to.step(code)},"
            f" ptr {name}, i64 {len(pairs)}"
        )
        code.lines.append(f"  call void @spread({arguments})")

    def definitions(self) -> list[str]:
        """Return the lines of the copy functions; their tables are in `head`."""
        lines = super().definitions()
        if not any(line.startswith("@spread") for line in self.head):
            return lines
        of = kind("real", self.width)
        return [*lines, _SPREAD.replace("REAL", of)]


_SPREAD = f"""define internal void @spread(ptr %from, {GLOBAL} %to, i64 %step,
 ptr %table, i64 %n) nounwind {{
  br label %more
more:
  %k = phi i64 [0, %0], [%next, %more]
  %entry = shl i64 %k, 1
  %px = getelementptr i32, ptr %table, i64 %entry
  %py = getelementptr i32, ptr %px, i64 1
  %x = load i32, ptr %px
  %y = load i32, ptr %py
  %i = zext i32 %x to i64
  %j = zext i32 %y to i64
  %far = mul i64 %j, %step
  %source = getelementptr REAL, ptr %from, i64 %i
  %target = getelementptr REAL, {GLOBAL} %to, i64 %far
  %value = load REAL, ptr %source
  store REAL %value, {GLOBAL} %target
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %more, label %end
end:
  ret void
}}
"""


@dataclass(frozen=True)
class GpuIR:
    """LLVM IR of one kernel for GPUs; `steps` of a state count those in a loop once.

    `memory` of a thread [bytes]; with inlined functions most becomes registers.
    """

    ir: str
    memory: int
    steps: int


def gpu_kernel(
    name: str,
    graph: Graph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    width: int,
    by_entries: bool = True,
    inline: bool = True,
) -> GpuIR:
    """Return the kernel of a Graph (without calls of Programs) as LLVM IR.

    `inputs`, `outputs`: sizes of the ports; `width`: 1 or, for float32, Lanes(1).
    """
    emitter = Emitter(width, fused=True, pack=1)
    emitter.tables = StateTables(width)
    emitter.products.written_out = WRITTEN_OUT
    sources = StatePorts("%in", inputs, by_entries)
    targets = StatePorts("%out", outputs, by_entries)
    calls = emitter.graph(graph, sources, targets)
    functions = emitter.close()
    checked = bool(graph.requirements)
    ports = [f"{GLOBAL} noalias readonly %in{k}" for k in range(len(inputs))]
    ports += [f"{GLOBAL} noalias %out{k}" for k in range(len(outputs))]
    real, whole = kind("real", width), kind("whole", width)
    memory = emitter.top * real_size(width)
    lines = [
        f"define ptx_kernel void @{name}({', '.join(ports)},"
        f" {GLOBAL} noalias %status, i64 %n) nounwind {{",
        f"  %s = alloca [{emitter.top} x {real}], align 16",
        f"  %in = alloca [{len(inputs) + 1} x i64], align 16",
        f"  %out = alloca [{len(outputs) + 1} x i64], align 16",
        _STATE,
        *_table("in", inputs, real, by_entries),
        *_table("out", outputs, real, by_entries),
    ]
    if emitter.products.written:  # zero entries of matrices are never stored
        lines.append(
            f"  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 {memory}, i1 false)"
        )
    lines += [f"  store {whole} {HOLDS}, ptr %s", *calls]
    if checked:
        lines += _verdict(outputs, real, whole, by_entries)
    lines += ["  br label %end", "end:", "  ret void", "}", _annotations(name)]
    memset = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    if not emitter.products.written or memset in functions:
        memset = ""
    ir = _with_local_pointers("\n".join([memset + functions, *lines]), inline)
    return GpuIR(_THREAD + ir, memory, emitter.steps)


def _table(name: str, sizes: Sequence[int], real: str, by_entries: bool) -> list[str]:
    """Return lines that fill the table of some ports: addresses at this state, then n.

    They use %i, %n, the table %in or %out and the parameters %in0 or %out0 etc., and
    name the addresses (global) %in_base0 or %out_base0 etc.
    """
    lines = []
    for k, size in enumerate(sizes):
        far = "%i"
        if not by_entries:
            far = f"%{name}_far{k}"
            lines.append(f"  {far} = mul i64 %i, {size}")
        lines += [
            f"  %{name}_base{k} = getelementptr inbounds {real}, {GLOBAL} %{name}{k},"
            f" i64 {far}",
            f"  %{name}_entry{k} = getelementptr i64, ptr %{name}, i64 {k}",
            f"  store {GLOBAL} %{name}_base{k}, ptr %{name}_entry{k}",
        ]
    return [
        *lines,
        f"  %{name}_count = getelementptr i64, ptr %{name}, i64 {len(sizes)}",
        f"  store i64 %n, ptr %{name}_count",
    ]


def _verdict(
    outputs: Sequence[int], real: str, whole: str, by_entries: bool
) -> list[str]:
    """Return lines that write the status of a state, and NaN outputs if it failed.

    They read %s, where the kernel leaves the number of the first requirement that
    failed, or HOLDS, and use %status, %i, %n, and %out_base0 etc. of _table. They may
    jump to %end; the caller writes behind them a jump there, and that label. `whole` is
    the LLVM type of a number's bits.
    """
    nan = constant(float("nan"), "real", 1)
    how = "trunc i64 %number to i32" if whole == "i64" else "add i32 %number, 0"
    lines = [
        f"  %lowest = load {whole}, ptr %s",
        f"  %holds = icmp eq {whole} %lowest, {HOLDS}",
        f"  %number = select i1 %holds, {whole} 0, {whole} %lowest",
        f"  %number32 = {how}",
        f"  %mine = getelementptr inbounds i32, {GLOBAL} %status, i64 %i",
        f"  store i32 %number32, {GLOBAL} %mine",
        "  br i1 %holds, label %end, label %failed",
        "failed:",
    ]
    before = "failed"
    for k, size in enumerate(outputs):
        if not size:
            continue
        step = "%n" if by_entries else "1"
        lines += [
            f"  br label %nan{k}",
            f"nan{k}:",
            f"  %k{k} = phi i64 [0, %{before}], [%next{k}, %nan{k}]",
            f"  %far{k} = mul i64 %k{k}, {step}",
            f"  %to{k} = getelementptr {real}, {GLOBAL} %out_base{k}, i64 %far{k}",
            f"  store {real} {nan}, {GLOBAL} %to{k}",
            f"  %next{k} = add i64 %k{k}, 1",
            f"  %more{k} = icmp slt i64 %next{k}, {size}",
            f"  br i1 %more{k}, label %nan{k}, label %after{k}",
            f"after{k}:",
        ]
        before = f"after{k}"
    return lines


def _with_local_pointers(code: str, inline: bool) -> str:
    """Return functions and calls with pointers in the address space of a thread.

    Global pointers and %table (constants) remain; casts are added. If `inline`, all but
    the large-angle reduction are always inlined, else they never are.
    """
    count = itertools.count()

    def head(match: re.Match[str]) -> str:
        start, parameters, end = match.groups()
        names = [name for _, name in _POINTER.findall(parameters)]
        parameters = _POINTER.sub(rf"{LOCAL}\1 %\2_local", parameters)
        casts = [f"  %{x} = addrspacecast {LOCAL} %{x}_local to ptr" for x in names]
        inside = inline and far_angles.FUNCTION not in start
        how = "alwaysinline" if inside else "noinline"
        return "\n".join([f"{start}{parameters}{end} {how} {{", *casts])

    def call(match: re.Match[str]) -> str:
        casts = []

        def cast(pointer: re.Match[str]) -> str:
            number = next(count)
            name = f"%local{number}"
            casts.append(f"  {name} = addrspacecast ptr %{pointer[2]} to {LOCAL}\n")
            return f"{LOCAL} {name}"

        called = _POINTER.sub(cast, match[0])
        return "".join(casts) + called

    return _CALL.sub(call, _HEAD.sub(head, code))


def _annotations(name: str) -> str:
    """Return LLVM metadata: blocks of the kernel `name` have at most 128 threads."""
    return (
        "!nvvm.annotations = !{!0}\n"
        f'!0 = !{{ptr @{name}, !"maxntidx", i32 {BLOCK}}}\n'
    )
