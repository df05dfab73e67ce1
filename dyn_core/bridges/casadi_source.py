"""The C functions that casadi.external looks for, around an exported kernel.

For a function F: F itself, F_n_in, F_n_out, F_name_in, F_name_out, F_sparsity_in,
F_sparsity_out and F_work. All memory is CasADi's: the function may run in several
threads.

Source: CasADi's documentation, section 5.3 (how to write a C function by oneself).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dyn_core.engines.native_program import NativeProgram
from dyn_core.export.interface import ALIGNMENT

STATUS = "status"  # name of the result
INCLUDES = f"""\
#include <stdint.h>
#include <string.h>

typedef long long int whole;

static void *aligned(double *w) {{
    return (void *)(((uintptr_t)w + {ALIGNMENT - 1}) & ~(uintptr_t){ALIGNMENT - 1});
}}
"""


@dataclass(frozen=True)
class Input:
    """One input of a C function; unless `read`, CasADi sees a matrix of zeros."""

    name: str
    shape: tuple[int, int]
    read: bool = True

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.shape[0] * self.shape[1]

    @property
    def sparsity(self) -> tuple[int, ...]:
        """Sparsity in CasADi's format: dense, or all zero if the input is not read."""
        if self.read:
            return (*self.shape, 1)
        return (*self.shape, *[0] * (self.shape[1] + 1))


@dataclass(frozen=True)
class Result:
    """One output of a C function: entries of an output of a kernel.

    `output` is the index of the kernel's output; `places` are the indices of the stored
    entries in it, flat, in the order of the result, column by column; others are zero.
    `kept` are the indices of the same entries in the flat result, `rows` their rows,
    `starts` their number before each column and in all (compressed columns).
    """

    name: str
    shape: tuple[int, int]
    output: int
    places: tuple[int, ...]
    kept: tuple[int, ...]
    rows: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def sparsity(self) -> tuple[int, ...]:
        """Sparsity as integers in CasADi's format: dense, or compressed columns."""
        if len(self.rows) == self.shape[0] * self.shape[1]:
            return (*self.shape, 1)
        return (*self.shape, *self.starts, *self.rows)


@dataclass(frozen=True)
class CasadiFunction:
    """One C function around a kernel, which is named NAME_kernel.

    Inputs of the kernel that are not among `inputs` are constants, or zero. At a failed
    state, results are NaN and the function returns 0 if `marks`, else it returns 1.
    With `status` the status is one more result, the last.
    """

    name: str
    program: NativeProgram
    inputs: Sequence[Input]
    results: Sequence[Result]
    marks: bool = False
    status: bool = False


def source(
    function: CasadiFunction, fixed: Mapping[str, np.ndarray], scratch: int
) -> str:
    """Return the C code of the functions that CasADi looks for, without INCLUDES.

    Args:
        function: Function to be written.
        fixed: Values of inputs of the kernel that are constants, by name, flat
            (port.size,), row by row.
        scratch: Scratch memory of the kernel [bytes], taken from CasADi's work array.
    """
    name, inputs, results = function.name, function.inputs, function.results
    constants, body, numbers = _body(function, fixed)
    numbers += (ALIGNMENT + scratch) // 8 + 1
    names, patterns = [x.name for x in results], [x.sparsity for x in results]
    if function.status:
        names, patterns = [*names, STATUS], [*patterns, (1, 1, 1)]
    lines = [
        "",
        f"int64_t {name}_kernel(const void *const *, void *const *, void *);",
        *constants,
        f"int {name}(const double **arg, double **res, whole *iw, double *w, int mem)",
        "{",
        *body,
        "    (void)arg, (void)iw, (void)mem, (void)failed;\n    return 0;\n}",
        f"whole {name}_n_in(void) {{ return {len(inputs)}; }}",
        f"whole {name}_n_out(void) {{ return {len(names)}; }}",
        *_names(f"{name}_name_in", [x.name for x in inputs]),
        *_names(f"{name}_name_out", names),
        *_patterns(f"{name}_sparsity_in", [x.sparsity for x in inputs]),
        *_patterns(f"{name}_sparsity_out", patterns),
        f"int {name}_work(whole *n_arg, whole *n_res, whole *n_iw, whole *n_w) {{",
        f"    if (n_arg) *n_arg = {len(inputs)};",
        f"    if (n_res) *n_res = {len(names)};",
        "    if (n_iw) *n_iw = 0;",
        f"    if (n_w) *n_w = {numbers};",
        "    return 0;\n}",
    ]
    return "\n".join(lines) + "\n"


def _body(
    function: CasadiFunction, fixed: Mapping[str, np.ndarray]
) -> tuple[list[str], list[str], int]:
    """Return the C code of a function: constants, statements, and doubles of w in use.

    In the code, a null input is zero and a null output is not written. The work array w
    starts with zeros, followed by room for all outputs of the kernel, even if most are
    written to their results directly; the kernel's scratch memory is behind them.
    Without `marks`, a failed state returns 1 before any result that needs w is copied.
    """
    name, program = function.name, function.program
    order = {x.name: k for k, x in enumerate(function.inputs)}
    top = max([1, *(port.size for port in program.inputs)])
    constants: list[str] = []
    body = [
        f"    const void *in[{len(program.inputs)}];",
        f"    void *out[{len(program.outputs)}];",
        f"    memset(w, 0, {8 * top});",
    ]
    for k, port in enumerate(program.inputs):
        if port.name in fixed:
            values = ", ".join(float(x).hex() for x in fixed[port.name])
            constants.append(f"static const double {name}_{k}[] = {{{values}}};")
            body.append(f"    in[{k}] = {name}_{k};")
        elif port.name in order:
            place = order[port.name]
            body.append(f"    in[{k}] = arg[{place}] ? arg[{place}] : w;")
        else:
            body.append(f"    in[{k}] = w;")
    direct = {
        x.output: k
        for k, x in enumerate(function.results)
        if x.places == tuple(range(program.outputs[x.output].size))
    }
    for k, port in enumerate(program.outputs):
        where = f"w + {top}"
        if k in direct:
            where = f"res[{direct[k]}] ? res[{direct[k]}] : {where}"
        body.append(f"    out[{k}] = {where};")
        top += port.size
    body.append(f"    int64_t failed = {name}_kernel(in, out, aligned(w + {top}));")
    if not function.marks:
        body.append("    if (failed) return 1;")
    if function.status:
        last = len(function.results)
        body.append(f"    if (res[{last}]) res[{last}][0] = (double)failed;")
    for k, result in enumerate(function.results):
        if direct.get(result.output) == k or not result.places:
            continue
        places = ", ".join(map(str, result.places))
        constants.append(f"static const int {name}_places_{k}[] = {{{places}}};")
        body += [
            f"    if (res[{k}]) for (int i = 0; i < {len(result.places)}; ++i)",
            f"        res[{k}][i] ="
            f" ((double *)out[{result.output}])[{name}_places_{k}[i]];",
        ]
    return constants, body, top


def _names(name: str, names: Sequence[str]) -> list[str]:
    """Return the lines of a C function: a name by its index, 0 for any other index."""
    cases = [f'    case {k}: return "{x}";' for k, x in enumerate(names)]
    return _by_number(f"const char *{name}", cases)


def _patterns(name: str, patterns: Sequence[tuple[int, ...]]) -> list[str]:
    """Return the lines of a C function: a sparsity by its index, 0 for any other."""
    cases = []
    for k, pattern in enumerate(patterns):
        numbers = ", ".join(map(str, pattern))
        cases.append(
            f"    case {k}: {{ static const whole s[] = {{{numbers}}}; return s; }}"
        )
    return _by_number(f"const whole *{name}", cases)


def _by_number(head: str, cases: Sequence[str]) -> list[str]:
    end = "    default: return 0;\n    }\n}"
    return [f"{head}(whole i) {{\n    switch (i) {{", *cases, end]
