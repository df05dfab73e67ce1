"""Exports for other machines have the bits of Python: in emulators of Debian."""

import pytest
from emulate import (
    CASES,
    WasmModule,
    build,
    check_natively,
    check_on_cortex,
    count_on_cortex,
    every_operation,
    made,
    need,
)

from dyn_core.engines.llvm import host_machine
from dyn_core.export.test_vectors import test_vector

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)
PROGRAMS = [(f"{s}-{r}", lambda s=s, r=r, o=o: build(s, r, **o)) for s, r, o in CASES]
PROGRAMS.append(("every_operation", every_operation))
each = pytest.mark.parametrize(
    "program", [x for _, x in PROGRAMS], ids=[name for name, _ in PROGRAMS]
)


@pytest.mark.one_of(4)
@each
def test_aarch64(tmp_path, program):
    """64-bit ARM with Linux, one state and rows."""
    need("aarch64-linux-gnu-gcc", "qemu-aarch64")
    result = made(program(), tmp_path, target="aarch64", variant="batch")
    emulated = check_natively(
        result, "aarch64-linux-gnu-gcc", ["-static"], ["qemu-aarch64"]
    )
    assert emulated.startswith("equal bits")


@pytest.mark.one_of(4)
@each
def test_riscv64(tmp_path, program):
    """64-bit RISC-V with Linux."""
    need("riscv64-linux-gnu-gcc", "qemu-riscv64")
    result = made(program(), tmp_path, target="riscv64", variant="batch")
    emulated = check_natively(
        result, "riscv64-linux-gnu-gcc", ["-static"], ["qemu-riscv64"]
    )
    assert emulated.startswith("equal bits")


@pytest.mark.one_of(4)
@each
def test_cortex_m7(tmp_path, program):
    """No operating system, no C library, floating-point registers in the convention."""
    result = made(program(), tmp_path, target="cortex-m7", variant="batch")
    assert result.undefined == ()
    assert check_on_cortex(result, "cortex-m7").startswith("equal bits")


@pytest.mark.parametrize("solver", ["rnea", "aba"])
def test_cortex_m4(tmp_path, solver):
    """float32 on a processor without float64."""
    program = build(solver, "every_joint", dtype="float32")
    result = made(program, tmp_path, target="cortex-m4f")
    assert check_on_cortex(result, "cortex-m4f").startswith("equal bits")


def test_instructions_on_a_cortex_m7(tmp_path):
    """Inverse dynamics of seven joints takes less than 2000 instructions."""
    result = made(build("rnea", "arm7"), tmp_path, target="cortex-m7")
    assert 1000 < count_on_cortex(result, "cortex-m7") < 2000


@pytest.mark.one_of(4)
@each
@pytest.mark.parametrize("multiply_add", ["exact", "unfused"])
def test_wasm(tmp_path, program, multiply_add):
    """A module without imports: the bits of Python, or nearly so without fused ones."""
    need_wasm()
    program = program()
    result = made(
        program, tmp_path, target="wasm32", form="shared", multiply_add=multiply_add
    )
    module, vector = WasmModule(result), test_vector(program)
    for numbers, wanted, status in zip(
        vector.inputs, vector.outputs, vector.status, strict=True
    ):
        got, state = module(numbers)
        assert state == status
        if multiply_add == "exact":
            assert got.tobytes() == wanted.tobytes()
        elif abs(numbers).max() < 1e3 and not status:
            assert abs(got - wanted).max() <= 1e-9 * abs(wanted).max()


def need_wasm():
    """Skip where there is no runtime of WebAssembly."""
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
