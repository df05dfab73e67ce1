"""C headers of GPU kernels, for CUDA's driver API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.export.interface import identifier, notice
from dyn_core.problems import Port
from dyn_core.validation.quoting import c_comment

_REALS = {"float64": "double", "float32": "float"}


@dataclass(frozen=True)
class GpuInterface:
    """The interface of a GPU kernel for callers.

    Attributes:
        name: Name of solver and robot.
        entry: Name of the kernel.
        arch: Minimum GPU architecture, such as sm_90.
        dtype: Type of inputs and outputs: float64 or float32.
        layout: "entries" or "states".
        inputs, outputs: Ports, in the order of the arguments.
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
        """Lines at the head of each file: licence and model hash."""
        return notice(self.model_hash)


def header(kernel: GpuInterface) -> str:
    """Return the C header of a kernel: sizes of the ports, and a launch function.

    PREFIX_launch, with the kernel's name as PREFIX, starts the kernel by CUDA's driver
    API for n states; it does nothing for n <= 0.
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
