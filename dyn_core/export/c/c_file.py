"""The C source file of an export: the kernel, a loop over rows, the interface table."""

from __future__ import annotations

from dyn_core.engines.native_program import NativeProgram
from dyn_core.export.c.c_source import write_c
from dyn_core.export.c.interface_table import table_c
from dyn_core.export.interface import ALIGNMENT, Interface
from dyn_core.export.object_code.stack_bound import stack_of_c

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

    Args:
        program: Program that is exported.
        interface: Its interface.
        batch: Whether there is a function for rows; it computes them one by one.
        exact: Whether multiply-adds round once.

    Raises:
        UnsupportedError: The Program calls others.
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
