"""Programs as kernels for NVIDIA GPUs: PTX, which the driver loads without a toolkit.

    kernel = ptx(dyn.solver("aba").build(model, dtype="float32"), arch="sm_90")
    kernel.write("folder")                        aba.ptx and aba.h

The numbers are verified on the processor (host.py), the resources by the assembler
(ptxas.py). Nothing here was launched on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.engines.base import Program
from dyn_core.engines.llvm.ir import Lanes
from dyn_core.errors import UnsupportedError
from dyn_core.export.gpu import target
from dyn_core.export.gpu.header import GpuInterface, header
from dyn_core.export.gpu.kernel_ir import BLOCK, gpu_kernel
from dyn_core.export.interface import hash_of, identifier

LAYOUTS = ("entries", "states")
# Maximum operations of a one-function kernel, by bytes of a number; beyond, more
# is spilled than its parts would keep in memory (docs/gpu.md).
INLINE = {4: 6000, 8: 4000}


@dataclass(frozen=True)
class GpuKernel(GpuInterface):
    """A Program as PTX: one thread computes one state.

        entry(inputs ..., outputs ..., status, n)

    Each input and output is an address on the GPU. With layout "entries", entry k of
    state i has index k n + i; with "states", i size + k: C-order rows. A parameter
    input is read for each state, too.

    Attributes: as in GpuInterface, and
        ptx: The code; the driver translates it for any GPU from `arch` on.
        memory: Memory of a thread before registers are assigned [bytes].
        steps: Number of operations of a state; operations in a loop are counted once.
        whole: Whether the kernel is one function; if not, its functions exchange values
            in the thread's memory.
        ir: The LLVM IR that the code was generated from.
    """

    ptx: str = field(repr=False)
    memory: int
    steps: int
    whole: bool
    ir: str = field(repr=False)

    def header(self) -> str:
        """Return a C header: sizes of the ports, and a launch function (driver API)."""
        return header(self)

    def write(self, folder: str | Path) -> list[Path]:
        """Write ENTRY.ptx and ENTRY.h into a folder; return their paths, in this order.

        The folder is created if it is missing, and existing files are replaced.

        Raises:
            OSError: A file cannot be written.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        head = "".join(f"// {line}\n" for line in self.notice)
        files = {f"{self.entry}.ptx": head + self.ptx, f"{self.entry}.h": self.header()}
        for name, content in files.items():
            (place / name).write_text(content, encoding="utf-8")
        return [place / name for name in files]


def ptx(
    program: Program[Any],
    arch: str = "sm_80",
    layout: str = "entries",
    inline: bool | None = None,
) -> GpuKernel:
    """Return a Program as a kernel for GPUs; no GPU is needed.

    Args:
        program: Program of a traced solver; its dtype is the dtype of the kernel.
        arch: Minimum GPU architecture, such as sm_90; see target.ARCHITECTURES.
        layout: "entries" (equal entries of all states are adjacent: fast) or "states".
        inline: Whether the kernel is one function, whose values stay in registers;
            otherwise its functions exchange values in the thread's memory. None: one
            function up to INLINE operations.

    Raises:
        UnsupportedError: The Program has no Graph, calls others or checks for NaN; or
            architecture or layout are unknown; or this llvmlite has no GPU code
            generator.
        CompileError: LLVM rejects the kernel.
    """
    graph = getattr(program, "graph", None)
    name = f"{program.recipe.solver.name} for {program.model.name}"
    if graph is None or graph.calls_programs():
        raise UnsupportedError(
            f"{name} is no traced algorithm, but calls a library or machine code; valid"
            " for GPUs: Programs of a TracedSolver that call no others"
        )
    if layout not in LAYOUTS:
        raise UnsupportedError(f"no layout '{layout}'; valid: {', '.join(LAYOUTS)}")
    if program.finite:
        raise UnsupportedError(
            f"{name} checks for NaN and infinity, which no kernel for GPUs does; valid:"
            " a Program that was built without finite=True"
        )
    width = Lanes(1) if program.dtype == np.float32 else 1
    inputs = [port.size for port in program.inputs]
    outputs = [port.size for port in program.outputs]
    entry = identifier(program.recipe.solver.name)

    def written(inline: bool) -> Any:
        by_entries = layout == "entries"
        return gpu_kernel(entry, graph, inputs, outputs, width, by_entries, inline)

    whole = inline is not False
    made = written(whole)
    if inline is None and made.steps > INLINE[program.dtype.itemsize]:
        whole, made = False, written(False)
    ir = target.optimised(made.ir, arch)
    return GpuKernel(
        name=name,
        ptx=target.emit(ir, arch),
        entry=entry,
        arch=arch,
        dtype=program.dtype,
        layout=layout,
        inputs=program.inputs,
        outputs=program.outputs,
        checked=bool(graph.requirements),
        block=BLOCK,
        model_hash=hash_of(program.model),
        memory=made.memory,
        steps=made.steps,
        whole=whole,
        ir=ir,
    )
