"""A Program as portable C99, for compilers without a code generator in LLVM.

The function follows the rules of interface.py and, if multiply-adds are fused, has the
bits of Python: the Graph is divided and ordered as for machine code
(engines/llvm/lower.py), and sin, cos and similar functions are written by the same
code. A fused multiply-add of the compiler is used if there is one; else functions of
the source round once as well.

Requirements: IEEE 754 doubles that are not held in larger registers, and the scratch
memory of the caller (CSource.scratch): no heap, no static memory that is written. GCC
and Clang for x86-64, ARM, AArch64 and RISC-V call no C library if a square root is an
instruction; elsewhere sqrt of <math.h> is called. Each function of the source has about
400 operations at most, so that it compiles quickly and needs little stack.
"""

from __future__ import annotations

from typing import NamedTuple

from dyn_core.engines.native_program import NativeProgram
from dyn_core.engines.status import NOT_FINITE_INPUT, NOT_FINITE_RESULT
from dyn_core.errors import UnsupportedError
from dyn_core.export.c.c_graph import CGraphs, PortEntries
from dyn_core.export.c.c_operations import DOUBLE, SINGLE, CFunctions
from dyn_core.export.c.interface_table import table_c
from dyn_core.export.interface import ALIGNMENT, Interface
from dyn_core.export.object_code.stack_bound import stack_of_c
from dyn_core.validation.quoting import c_comment

_ABOUT = """\
{notice}

{prefix}: solver {solver} for robot '{robot}', portable C99. {prefix}.h says how it is
called, and how much memory it needs. Changes belong into the algorithm that it comes
from, and the numbers of the robot into its file."""
_HEAD = """
#include <float.h>
#include <math.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) \\
    || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__) \\
    || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) \\
    || defined(_M_FP_FAST)
#error "compile without -ffast-math (/fp:fast): results would be others, or wrong"
#endif
/* 16 is 0 where _Float16 has instructions of its own. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "compile with numbers of 64 bits in registers (-msse2 -mfpmath=sse)"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
/* GCC 12 forms multiply-add-subtracts of neighbours even without contraction. */
#pragma GCC optimize ("fp-contract=off", "no-tree-slp-vectorize")
/* Loops stay loops: no call of memcpy or memset. */
#pragma GCC optimize ("no-tree-loop-distribute-patterns")
#elif defined(_MSC_VER)
#pragma fp_contract (off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
"""
_PRODUCT = """static void P_product(const REAL *a, int64_t a_row, int64_t a_column,
    const REAL *b, int64_t b_row, int64_t b_column, const REAL *c, int64_t c_row,
    REAL *to, int64_t to_row, int64_t to_column, int64_t rows, int64_t inner,
    int64_t columns, int negative)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const REAL *x = a + i * a_row, *y = b + j * b_column;
            int64_t k = 0;
            REAL sum;
            if (c) {
                sum = c[i * c_row + j];
            } else {
                sum = x[0] * y[0];
                if (negative) sum = MINUS(sum);
                k = 1;
            }
            for (; k < inner; k++) {
                const REAL p = x[k * a_column], q = y[k * b_row];
                const REAL factor = negative ? MINUS(p) : p;
                sum = SUM;
            }
            to[i * to_row + j * to_column] = sum;
        }
    }
}
"""
_NOT_FINITE = """static int P_not_finite(const REAL *x, int64_t n)
{
    int some = 0;
    for (int64_t k = 0; k < n; k++) some |= !(x[k] - x[k] == 0);
    return some;
}
"""


class CSource(NamedTuple):
    """C source (`text`) of a Program, and the scratch memory of a call [bytes]."""

    text: str
    scratch: int


def write_c(
    program: NativeProgram, interface: Interface, exact: bool = True
) -> CSource:
    """Return a Program for one state as C99, with the scratch memory of a call [bytes].

    With `exact`, multiply-adds round once, for the bits of Python. Otherwise they round
    twice: faster on processors without such an instruction.
    """
    if program.graph.calls_programs():
        raise UnsupportedError(
            f"{interface.solver} calls a Program that is not traced: no C source can be"
            " written; valid: solvers in its slots whose algorithm can be traced"
        )
    numbers = DOUBLE if interface.dtype == "float64" else SINGLE
    prefix, real = interface.prefix, numbers.real
    graphs = CGraphs(prefix, exact, numbers)
    inputs, outputs = interface.sizes
    calls = graphs.graph(
        program.graph, PortEntries("in", inputs), PortEntries("out", outputs)
    )
    body = [*graphs.begin(), *calls]
    scratch = max(graphs.top, 1) * numbers.bits // 8
    minus = f"{prefix}_minus{numbers.end}"
    fma = f"{prefix}_fma{numbers.end}(factor, q, sum)" if exact else "factor * q + sum"
    parts = [*graphs.functions, _entry(interface, body)]
    text = "\n".join(parts)
    for name, more in (("product", _PRODUCT), ("not_finite", _NOT_FINITE)):
        if f"{prefix}_{name}(" in text:
            more = more.replace("REAL", real).replace("SUM", fma)
            more = more.replace("MINUS", minus)
            parts.insert(0, more.replace("P_", f"{prefix}_"))
    text = "\n".join(parts)
    about = _ABOUT.format(
        notice="\n".join(interface.notice), prefix=prefix, solver=interface.solver,
        robot=interface.robot,
    )  # fmt: skip
    head = c_comment(about) + _HEAD
    functions = CFunctions(prefix, exact).definitions(text)
    return CSource("\n".join([head, functions, text]), scratch)


def _entry(interface: Interface, body: list[str]) -> str:
    """Return the C code of the exported function, which runs the statements `body`.

    If the interface says so, it then checks for NaN and infinity: inputs set the status
    -1 whatever it was, results -2 where it is 0. All outputs become NaN if the status
    is not 0.
    """
    real, prefix = interface.real, interface.prefix
    arguments = f"const {real} *const *in, {real} *const *out, void *scratch"
    lines = [
        # A C++ compiler takes a file .c as C++; the header says the same linkage.
        '#ifdef __cplusplus\nextern "C"\n#endif',
        f"int64_t {prefix}({arguments});",
        "",
        f"int64_t {prefix}({arguments})",
        "{",
        f"    {real} *s = ({real} *)scratch;",
        "    int64_t failed = 0, *status = &failed;",
        "    (void)in; (void)out; (void)s;",
        *body,
    ]
    if interface.finite:
        for code, table, ports, also in (
            (NOT_FINITE_INPUT, "in", interface.inputs, ""),
            (NOT_FINITE_RESULT, "out", interface.outputs, "*status == 0 && "),
        ):
            lines += [
                f"    if ({also}{prefix}_not_finite({table}[{k}], {port.size}))"
                f" *status = {code};"
                for k, port in enumerate(ports)
                if port.size
            ]
    lines.append("    if (*status != 0) {")
    lines += [
        f"        for (int64_t k = 0; k < {port.size}; k++) out[{n}][k] = ({real})NAN;"
        for n, port in enumerate(interface.outputs)
        if port.size
    ]
    return "\n".join([*lines, "    }", "    return *status;", "}", ""])


_BATCH = """\
int64_t {prefix}_batch(const {real} *const *in, const int64_t *strides,
    {real} *const *out, int64_t *status, int64_t first, int64_t last, void *scratch)
{{
    static const int64_t sizes[] = {{{sizes}}};
    const {real} *row_in[{inputs} + 1];
    {real} *row_out[{outputs} + 1];
    int64_t row, k, failed = 0;
    for (row = first; row < last; row++) {{
        for (k = 0; k < {inputs}; k++)
            row_in[k] = (const {real} *)((const char *)in[k] + strides[k] * row);
        for (k = 0; k < {outputs}; k++) row_out[k] = out[k] + sizes[k] * row;
        status[row] = {prefix}(row_in, row_out, scratch);
        failed += status[row] != 0;
    }}
    return failed;
}}
"""


def c_file(
    program: NativeProgram, interface: Interface, batch: bool, exact: bool
) -> tuple[str, Interface]:
    """Return the C source of a Program, and its interface with the memory it needs.

    The source includes PREFIX.h, the header of the interface.
    """
    written = write_c(program, interface, exact)
    scratch = -(-written.scratch // ALIGNMENT) * ALIGNMENT
    inputs, outputs = interface.sizes
    parts = [written.text, f'#include "{interface.prefix}.h"\n']
    if batch:
        parts.append(
            _BATCH.format(
                prefix=interface.prefix,
                real=interface.real,
                sizes=", ".join(map(str, outputs)) or "0",
                inputs=len(inputs),
                outputs=len(outputs),
            )
        )
    entries = [interface.prefix, *([f"{interface.prefix}_batch"] if batch else [])]
    stack = stack_of_c("\n".join(parts), entries)
    rows = (scratch, 1) if batch else (0, 0)
    interface = interface.with_memory(scratch, stack, *rows)
    return "\n".join([*parts, table_c(interface, batch)]), interface
