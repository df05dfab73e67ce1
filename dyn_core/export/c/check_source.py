"""A C program that checks the test vector of an export, and the vector as a header."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dyn_core.export.interface import Interface
from dyn_core.export.test_vectors import TestVector, bits
from dyn_core.validation.quoting import c_comment

_MORE_ROWS = 3  # rows of a batch beyond two full vectors

_ABOUT = """
Runs the states of {}_test.h; prints what differs from Python.

Without an operating system: define DYN_PRINT(text), which shows a string."""
_CHECK = r"""
#include "@P@_test.h"

#ifndef DYN_PRINT
#include <stdio.h>
#define DYN_PRINT(text) fputs(text, stdout)
#endif

typedef union { @REAL@ number; @WHOLE@ bits; } value;

static value in_memory[@M@_TEST_IN], out_memory[@M@_TEST_OUT];
static unsigned char memory[@SCRATCH@ + 64];
static int64_t numbers, different, worst;

static void print_number(int64_t n) {
    char text[24], *p = text + 23;
    int minus = n < 0;
    *p = 0;
    do { *--p = (char)('0' + (minus ? -(n % 10) : n % 10)); n /= 10; } while (n);
    if (minus) *--p = '-';
    DYN_PRINT(p);
}

static @REAL@ size_of(@REAL@ x) { return x < 0 ? -x : x; }

/* Compare the outputs of a state, port by port: a difference counts in units of the
 * last place of the largest number of its port. */
static void compare(const value *got, int row) {
    static const int sizes[] = {@SIZES@};
    int port, k, start = 0;
    for (port = 0; port < @PORTS@; start += sizes[port++]) {
        @REAL@ largest = 0;
        for (k = start; k < start + sizes[port]; k++) {
            value wanted;
            wanted.bits = @P@_test_out[row][k];
            if (size_of(wanted.number) > largest) largest = size_of(wanted.number);
        }
        for (k = start; k < start + sizes[port]; k++) {
            value wanted;
            @REAL@ units;
            int64_t whole = INT64_MAX;
            wanted.bits = @P@_test_out[row][k];
            numbers++;
            if (got[k].bits == wanted.bits) continue;
            if (got[k].number != got[k].number && wanted.number != wanted.number)
                continue; /* NaN has many bits */
            different++;
            units = size_of(got[k].number - wanted.number) / (largest * (@REAL@)@EPS@);
            if (units < (@REAL@)1e9) { /* false for NaN */
                whole = (int32_t)units;
                whole += (@REAL@)(int32_t)whole < units;
            }
            if (whole > worst) worst = whole;
        }
    }
}

static int64_t wrong_status(int64_t got, int row) {
    if (got == @P@_test_status[row]) return 0;
    DYN_PRINT("state "); print_number(row);
    DYN_PRINT(": status "); print_number(got);
    DYN_PRINT(" in the place of "); print_number(@P@_test_status[row]);
    DYN_PRINT("\n");
    return 1;
}
/* Return 1, and say so, if a hash of the header is not that of the code. */
static int64_t other_code(const char *what, const char *header, const char *code) {
    int k = 0;
    while (header[k] && header[k] == code[k]) k++;
    if (header[k] == code[k]) return 0;
    DYN_PRINT("@P@.h is not the header of this code: ");
    DYN_PRINT(what); DYN_PRINT(" "); DYN_PRINT(header);
    DYN_PRINT(", of the code "); DYN_PRINT(code);
    DYN_PRINT("; export both again, or take both from one export\n");
    return 1;
}
@BATCH@
int main(void) {
    void *scratch = memory + (64 - (uintptr_t)memory % 64) % 64;
    const @REAL@ *in[@PORTS_IN@ + 1];
    @REAL@ *out[@PORTS@ + 1];
    int64_t wrong = 0;
    int row, k;
@TABLES@
    if (other_code("model hash", @M@_MODEL_HASH, @P@_interface.model_hash)
        | other_code("kernel hash", @M@_KERNEL_HASH, @P@_interface.kernel_hash))
        return 1;
    for (row = 0; row < @M@_TEST_ROWS; row++) {
        for (k = 0; k < @SCRATCH@ + 64; k++) memory[k] = 0xFF;
        for (k = 0; k < @M@_TEST_IN; k++) in_memory[k].bits = @P@_test_in[row][k];
        for (k = 0; k < @M@_TEST_OUT; k++) out_memory[k].bits = 0x5A;
        wrong += wrong_status(@P@(in, out, scratch), row);
        compare(out_memory, row);
    }
@RUN_BATCH@    if (different) {
        print_number(different); DYN_PRINT(" of "); print_number(numbers);
        DYN_PRINT(" numbers differ, by at most "); print_number(worst);
        DYN_PRINT(" ulp of the largest of their output\n");
    } else if (!wrong) {
        DYN_PRINT("equal bits: "); print_number(numbers); DYN_PRINT(" numbers\n");
    }
    return (different && @EXACT@) || wrong;
}
"""
_BATCH = r"""
#define ROWS @ROWS@
static value rows_in[ROWS * @M@_TEST_IN], rows_out[ROWS * @M@_TEST_OUT];
static unsigned char batch_memory[@M@_BATCH_SCRATCH + 64];
static int64_t status[ROWS];

/* The states again and again as rows of a batch, each port an array of its own. */
static int64_t run_batch(int rows) {
    static const int sizes_in[] = {@SIZES_IN@}, sizes[] = {@SIZES@};
    const @REAL@ *in[@PORTS_IN@ + 1];
    @REAL@ *out[@PORTS@ + 1];
    int64_t strides[@PORTS_IN@ + 1], wrong = 0, failed = 0, reported;
    int port, row, k, start = 0;
    for (port = 0; port < @PORTS_IN@; start += sizes_in[port++]) {
        value *array = rows_in + (size_t)ROWS * start;
        in[port] = &array->number;
        strides[port] = sizes_in[port] * (int64_t)sizeof(value);
        for (row = 0; row < rows; row++)
            for (k = 0; k < sizes_in[port]; k++)
                array[row * sizes_in[port] + k].bits =
                    @P@_test_in[row % @M@_TEST_ROWS][start + k];
    }
    for (port = 0, start = 0; port < @PORTS@; start += sizes[port++])
        out[port] = &rows_out[(size_t)ROWS * start].number;
    for (k = 0; k < ROWS; k++) status[k] = 0x5A;
    for (k = 0; k < @M@_BATCH_SCRATCH + 64; k++) batch_memory[k] = 0xFF;
    reported = @P@_batch(in, strides, out, status, 0, rows,
        batch_memory + (64 - (uintptr_t)batch_memory % 64) % 64);
    for (row = 0; row < rows; row++) {
        wrong += wrong_status(status[row], row % @M@_TEST_ROWS);
        failed += status[row] != 0;
        for (port = 0, start = 0; port < @PORTS@; start += sizes[port++])
            for (k = 0; k < sizes[port]; k++)
                out_memory[start + k] =
                    rows_out[(size_t)ROWS * start + row * sizes[port] + k];
        compare(out_memory, row % @M@_TEST_ROWS);
    }
    if (failed != reported) DYN_PRINT("the number of failed rows is wrong\n");
    return wrong + (failed != reported);
}
"""


def check_source(x: Interface, batch: bool, exact: bool) -> str:
    """Return the C code of the check program; it includes the header of vector_header.

    The program prints what differs from Python, or "equal bits"; any NaN equals any
    other. It returns 1 for a header of other code, by the hashes, a wrong status, also
    of a row (with `batch`), a wrong number of failed rows and, with `exact`, for a
    result with other bits, also of a failed state; else 0.
    """
    inputs, outputs = x.sizes
    tables = []
    for name, sizes in (("in", inputs), ("out", outputs)):
        start = 0
        for k, size in enumerate(sizes):
            tables.append(f"    {name}[{k}] = &{name}_memory[{start}].number;")
            start += size
    tables += [
        f"    (void){name};" for name, n in (("in", inputs), ("out", outputs)) if not n
    ]
    rows = 2 * x.lanes + _MORE_ROWS
    run = f"    wrong += run_batch(1);\n    wrong += run_batch({rows});\n"
    double = x.dtype == "float64"
    about = c_comment("\n".join(x.notice) + "\n" + _ABOUT.format(x.prefix))
    source = about + _CHECK.replace("@BATCH@\n", _BATCH if batch else "")
    for name, text in {
        "RUN_BATCH": run if batch else "",
        "P": x.prefix,
        "M": x.macro,
        "REAL": x.real,
        "WHOLE": "uint64_t" if double else "uint32_t",
        "SCRATCH": f"{x.macro}_SCRATCH",
        "SIZES": _listed(outputs),
        "SIZES_IN": _listed(inputs),
        "PORTS": str(len(outputs)),
        "PORTS_IN": str(len(inputs)),
        "TABLES": "\n".join(tables),
        "EPS": "2.220446049250313e-16" if double else "1.1920929e-7",
        "EXACT": str(int(exact)),
        "ROWS": str(rows),
    }.items():
        source = source.replace(f"@{name}@", text)
    return source


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) or "0"


def vector_header(x: Interface, vector: TestVector) -> str:
    """Return the C header PREFIX_test.h of a test vector.

    It has the arrays PREFIX_test_in and PREFIX_test_out, a row of bits for each state,
    PREFIX_test_status, and the macros PREFIX_TEST_ROWS, the number of states, and
    PREFIX_TEST_IN and PREFIX_TEST_OUT (in capitals), the lengths of a row, at least 1:
    all entries of all inputs, or outputs. It includes PREFIX.h.
    """
    kind = "uint64_t" if x.dtype == "float64" else "uint32_t"
    rows = len(vector.status)
    what = f"States of {x.prefix}, and what Python returns for them: bits of {x.real}."
    lines = [
        c_comment("\n".join([*x.notice, "", what])),
        f"#ifndef {x.macro}_TEST_H",
        f"#define {x.macro}_TEST_H",
        f'#include "{x.prefix}.h"',
        f"#define {x.macro}_TEST_ROWS {rows}",
        f"#define {x.macro}_TEST_IN {max(1, vector.inputs.shape[1])}",
        f"#define {x.macro}_TEST_OUT {max(1, vector.outputs.shape[1])}",
    ]
    for name, values in (("in", vector.inputs), ("out", vector.outputs)):
        size = f"{x.macro}_TEST_{name.upper()}"
        head = f"static const {kind} {x.prefix}_test_{name}[{rows}][{size}] = {{"
        lines += [head, *(_row(row) for row in values), "};"]
    status = ", ".join(str(int(k)) for k in vector.status)
    lines += [
        f"static const int64_t {x.prefix}_test_status[{rows}] = {{{status}}};",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _row(values: np.ndarray) -> str:
    numbers = [f"0x{digits}u" for digits in bits(values)] or ["0"]
    if len(numbers[0]) > 12:
        numbers = [f"{number}ll" for number in numbers]
    lines = [", ".join(numbers[k : k + 4]) for k in range(0, len(numbers), 4)]
    return "  {" + ",\n   ".join(lines) + "},"
