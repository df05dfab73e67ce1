"""Programs as kernels for NVIDIA GPUs: PTX, which the driver loads without a toolkit.

    kernel = ptx(dyn.solver("aba").build(model, dtype="float32"), arch="sm_90")
    kernel.write("folder")                        aba.ptx and aba.h

The numbers are verified on the processor, the resources by NVIDIA's assembler (see
docs/gpu.md). Nothing here was launched on a GPU.
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
from dyn_core.export.gpu.kernel_ir import BLOCK, gpu_kernel
from dyn_core.export.interface import hash_of, identifier, notice
from dyn_core.problems import Port
from dyn_core.validation.file_names import check_folder, writing
from dyn_core.validation.quoting import c_comment

LAYOUTS = ("entries", "states")
# Maximum operations of a one-function kernel, by bytes of a number; beyond, more
# is spilled than its parts would keep in memory (docs/gpu.md).
INLINE = {4: 6000, 8: 4000}


_REALS = {"float64": "double", "float32": "float"}


@dataclass(frozen=True)
class GpuInterface:
    """The interface of a GPU kernel for callers.

    Attributes:
        name: Name of solver and robot.
        arch: Minimum GPU architecture, such as sm_90.
        layout: "entries" or "states".
        checked: Whether the kernel writes a status (int32, one for each state): 0, or
            the number of the failed condition, with NaN in that state's outputs. If
            not, its address is never read.
        block: Maximum number of threads of a block.
        model_hash: Hash of the robot; empty for other systems.
    """

    name: str
    entry: str
    arch: str
    dtype: np.dtype[Any]
    layout: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    checked: bool
    block: int
    model_hash: str

    @property
    def notice(self) -> tuple[str, ...]:
        """Lines at the head of files, without comment marks: licence, model hash."""
        return notice(self.model_hash)


def header(kernel: GpuInterface) -> str:
    """Return the C header of a kernel: sizes of the ports, and a launch function.

    PREFIX_launch(function, stream, inputs ..., outputs ..., status, n), with the
    kernel's name as PREFIX, starts the kernel by CUDA's driver API for n states, and
    returns the driver's CUresult. For n <= 0 it does nothing and returns CUDA_SUCCESS.
    The sizes are macros PREFIX_PORT, and PREFIX_BLOCK is the size of a block, in
    capitals.
    """
    name, real = kernel.entry, _REALS[kernel.dtype.name]
    upper = name.upper()
    ports = [*_ports(kernel.inputs, "const "), *_ports(kernel.outputs, "")]
    parameters = "".join(
        f"    CUdeviceptr {identifier(port.name)},"
        f" {c_comment(f'{what}{real}: {_meaning(port)}')}\n"
        for port, what in ports
    )
    names = [identifier(port.name) for port, _ in ports]
    addresses = ", ".join(f"&{name}" for name in names)
    sizes = "".join(
        f"#define {upper}_{port_name.upper()} {port.size}\n"
        for port_name, (port, _) in zip(names, ports, strict=True)
    )
    where = "k * n + i" if kernel.layout == "entries" else "i * size + k"
    status = "status is not used, and may be 0."
    if kernel.checked:
        status = (
            "status: int32_t, one a state: 0, or the number of the requirement that\n"
            "failed; the outputs of such a state are NaN."
        )
    about = c_comment(
        "\n".join(
            [
                *kernel.notice,
                "",
                f"{kernel.name}, {kernel.dtype.name}, for {kernel.arch} and later.",
                "",
                f"Entry k of state i of a port lies at [{where}]. {status}",
                "Not measured: no GPU has run this kernel.",
            ]
        )
    )
    return f"""{about}
#ifndef {upper}_H
#define {upper}_H
#include <cuda.h>

{sizes}#define {upper}_BLOCK {kernel.block} /* threads of a block, at most */

/* Start the kernel for n states; function: cuModuleGetFunction(.., "{name}"). */
static inline CUresult {name}_launch(
    CUfunction function, CUstream stream,
{parameters}    CUdeviceptr status,
    long long n)
{{
    void *arguments[] = {{{addresses}, &status, &n}};
    if (n <= 0)
        return CUDA_SUCCESS;
    return cuLaunchKernel(
        function, (unsigned)((n + {upper}_BLOCK - 1) / {upper}_BLOCK), 1, 1,
        {upper}_BLOCK, 1, 1, 0, stream, arguments, 0);
}}
#endif
"""


def _ports(ports: tuple[Port, ...], what: str) -> list[tuple[Port, str]]:
    return [(port, what) for port in ports]


def _meaning(port: Port) -> str:
    """Return shape, meaning and unit of a port as text; shape 1 for a number."""
    shape = " x ".join(str(size) for size in port.shape) or "1"
    unit = f" [{port.unit}]" if port.unit else ""
    return f"{shape}, {port.meaning}{unit}"


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
            SettingError: The folder is a file, or a file cannot be written.
        """
        place = Path(folder)
        check_folder(place)
        head = "".join(f"// {line}\n" for line in self.notice)
        files = {f"{self.entry}.ptx": head + self.ptx, f"{self.entry}.h": self.header()}
        with writing(place, "folder"):
            place.mkdir(parents=True, exist_ok=True)
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
        arch: Minimum GPU architecture: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or
            sm_120.
        layout: "entries" (equal entries of all states are adjacent: fast) or "states".
        inline: Whether the kernel is one function, whose values stay in registers;
            otherwise its functions exchange values in the thread's memory. None: one
            function up to 6000 operations of float32, or 4000 of float64.

    Raises:
        UnsupportedError: The Program has no Graph, calls others or is built with
            finite=True; or architecture or layout are unknown; or this llvmlite has no
            GPU code generator.
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
