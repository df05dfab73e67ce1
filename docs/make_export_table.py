"""Writes the table of docs/export.md: solvers exported for every target, run, compared.

python docs/make_export_table.py          emulators: see .ci/full; missing ones leave -
"""

import re
import sys
import tempfile
from math import ceil
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "export"))

import emulate  # noqa: E402
import pytest  # noqa: E402

from dyn_core.export.test_vectors import test_vector  # noqa: E402

PAGE = ROOT / "docs" / "export.md"
START, END = "<!-- table -->\n", "<!-- end of the table -->\n"
COLUMNS = (
    ("x86-64-v3", "exact"), ("aarch64", "exact"), ("riscv64", "exact"),
    ("cortex-m7", "exact"), ("wasm32", "exact"), ("wasm32", "unfused"),
    ("x86-64-v2", "exact"), ("x86-64-v2", "unfused"),
)  # fmt: skip
_LINUX = {
    "aarch64": ("aarch64-linux-gnu-gcc", ["-static"], ["qemu-aarch64"]),
    "riscv64": ("riscv64-linux-gnu-gcc", ["-static"], ["qemu-riscv64"]),
}


def _said(result, program, target):
    """Return what the check program says, or its like where C does not run."""
    if target in _LINUX:
        compiler, flags, emulator = _LINUX[target]
        emulate.need(compiler, *emulator)
        return emulate.check_natively(result, compiler, flags, emulator)
    if target.startswith("cortex"):
        return emulate.check_on_cortex(result, target)
    if target != "wasm32":
        emulate.need("cc")
        return emulate.check_natively(result)
    module, vector, worst = emulate.WasmModule(result), test_vector(program), 0.0
    for numbers, wanted, status in zip(
        vector.inputs, vector.outputs, vector.status, strict=True
    ):
        got, state = module(numbers)
        assert state == status
        start = 0
        for port in program.outputs:
            a, b = (x[start : start + port.size] for x in (got, wanted))
            start += port.size
            if status == 0 and port.size:
                worst = max(worst, abs(a - b).max() / abs(b).max() * 2**52)
        if worst == 0.0:
            assert got.tobytes() == wanted.tobytes()
    return f"differ, by at most {ceil(worst)} ulp" if worst else "equal bits"


def _cell(program, target, multiply_add):
    """Return bytes of code and whether the bits are those of Python."""
    form = "shared" if target == "wasm32" else "object"
    with tempfile.TemporaryDirectory() as folder:
        result = emulate.made(
            program, folder, target=target, form=form, multiply_add=multiply_add
        )
        code = f"{result.code}"
        try:
            said = _said(result, program, target)
        except pytest.skip.Exception:
            return f"{code} (not run)", result, ""
        count = ""
        if target == "cortex-m7":
            count = f"{emulate.count_on_cortex(result, target)}"
    equal = said.startswith("equal bits")
    mark = "=" if equal else re.search(r"at most (\d+) ulp", said)[1] + " ulp"
    return f"{code} {mark}", result, count


def table():
    """Return the table."""
    heads = [f"{t}, unfused" if m == "unfused" else t for t, m in COLUMNS]
    lines = [
        "| solver, robot | " + " | ".join(heads) + " | scratch | M7 instructions |",
        "|---|" + "---|" * len(COLUMNS) + "---|---|",
    ]
    cases = [(f"{s}, {r}", emulate.build(s, r, **o)) for s, r, o in emulate.CASES]
    cases.append(("all other operations", emulate.every_operation()))
    for name, program in cases:
        cells, counts, scratch = [], "-", 0
        for target, multiply_add in COLUMNS:
            cell, result, count = _cell(program, target, multiply_add)
            cells.append(cell)
            counts = count or counts
            scratch = max(scratch, result.interface.scratch)
        lines.append(f"| {name} | {' | '.join(cells)} | {scratch} | {counts} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    PAGE.write_text(
        before + START + table() + END + rest.partition(END)[2], encoding="utf-8"
    )
