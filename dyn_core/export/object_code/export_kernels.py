"""Kernels for export: LLVM IR without libm, heap or unwinding, for one target."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dyn_core.engines.llvm.ir import Lanes
from dyn_core.engines.llvm.kernel_ir import batch_kernel, scalar_kernel
from dyn_core.engines.native_program import NativeProgram
from dyn_core.export.object_code.fused import with_exact_fma, with_own_floor
from dyn_core.export.targets import Target

_FUNCTION = re.compile(r"^define .*?^}\n?", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"^(define [^\n]*\))(?: nounwind)? \{$", re.MULTILINE)
_NAME = re.compile(r"@[\w.]+")
_SET = re.compile(
    r"call void @llvm\.memset\.p0\.i64\("
    r"ptr(?: align \d+)? (%\w+), i8 0, i64 (\d+), i1 false\)"
)
_CLEAR = """
define internal void @clear(ptr %to, i64 %bytes) nounwind {
  br label %more
more:
  %k = phi i64 [0, %0], [%next, %more]
  %place = getelementptr i8, ptr %to, i64 %k
  store i32 0, ptr %place
  %next = add i64 %k, 4
  %again = icmp slt i64 %next, %bytes
  br i1 %again, label %more, label %end
end:
  ret void
}
"""


@dataclass(frozen=True)
class Kernels:
    """LLVM IR of the kernels of an export, as separate modules.

    Attributes:
        scalar: Module with the function @scalar (kernel_ir.py).
        batch: Module with the function @batch; empty if rows are computed one by one.
        scratch, batch_scratch: Scratch memory of these functions [bytes].
        lanes: Rows that @batch computes at once; 0 without it.
        steps: Operations of one state.
        checked: Whether the algorithm has conditions, so that a status is possible.
    """

    scalar: str
    batch: str
    scratch: int
    batch_scratch: int
    lanes: int
    steps: int
    checked: bool


def kernels(
    program: NativeProgram, target: Target, fused: bool, batch: bool
) -> Kernels:
    """Return the kernels of a Program for a target.

    Args:
        program: Program that is exported.
        target: Target of the code.
        fused: Whether a multiply-add rounds once. On a target without the instruction
            functions of fused.py emulate it.
        batch: Whether there is a function for rows; it has a kernel with lanes only if
            the target has vectors. Otherwise `batch` of the result is empty, and
            `lanes` and `batch_scratch` are 0.

    Raises:
        ValueError: An operation has no machine form.
    """
    graph, sizes = program.graph, program._sizes
    single = str(program.dtype) == "float32"
    one = Lanes(1) if single else 1
    vector = target.vector
    # Matrix products need vectors of at least two lanes.
    alone = scalar_kernel(
        graph, *sizes, fused, target.pack, max(vector, 2), one, zeroed=False
    )
    together, scratch, lanes = "", 0, 0
    if batch and vector > 1:
        lanes = Lanes(2 * vector) if single else vector
        written = batch_kernel(graph, *sizes, fused, lanes, zeroed=False)
        together = portable(written.ir, target, "@batch")
        scratch = written.scratch
    return Kernels(
        portable(alone.ir, target, "@scalar"),
        together,
        alone.scratch,
        scratch,
        int(lanes),
        alone.steps,
        bool(graph.requirements),
    )


def portable(ir: str, target: Target, *roots: str) -> str:
    """Return an LLVM IR module with its root functions and their callees, without libm.

    memset becomes a function of the module, as do multiply-add and floor where the
    target has no instruction for them. Its functions do not unwind, so that no target
    needs tables for that. Other calls of libm would remain; kernels have none. `roots`
    are names with @.
    """
    if not target.fused:
        ir = with_exact_fma(ir)
    elif "float64" not in target.dtypes:  # float32 code needs it for large angles
        ir = ir.replace("@llvm.fma.f32(", "@kept.fma.f32(")
        ir = with_exact_fma(ir).replace("@kept.fma.f32(", "@llvm.fma.f32(")
    if not target.floors:
        ir = with_own_floor(ir)
    calls_clear = _SET.search(ir) is not None
    ir = _SET.sub(r"call void @clear(ptr \1, i64 \2)", ir)
    if calls_clear:
        ir += _CLEAR
    ir = _reachable(ir, roots)
    return _HEAD.sub(r"\1 nounwind {", ir)


def _reachable(ir: str, roots: Iterable[str]) -> str:
    """Return a module without functions that its roots, named with @, do not call."""
    functions = {}
    for match in _FUNCTION.finditer(ir):
        head = _NAME.search(match.group())
        functions[head.group() if head else ""] = match.group()
    wanted: set[str] = set()
    front = list(roots)
    while front:
        name = front.pop()
        if name in functions and name not in wanted:
            wanted.add(name)
            front += _NAME.findall(functions[name])
    kept = _FUNCTION.sub(
        lambda match: match.group() if _defined(match.group()) in wanted else "", ir
    )
    used = set(_NAME.findall("".join(functions[name] for name in wanted)))
    lines = kept.splitlines()
    return "\n".join(x for x in lines if not _unused(x, used)) + "\n"


def _defined(function: str) -> str:
    match = _NAME.search(function)
    return match.group() if match else ""


def _unused(line: str, used: set[str]) -> bool:
    """Return whether a line declares a function that is not in `used`, names with @."""
    return line.startswith("declare ") and _defined(line) not in used
