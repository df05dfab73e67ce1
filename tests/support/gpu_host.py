"""A GPU kernel on this machine's processor, to verify its numbers without a GPU.

The module that is translated to PTX is compiled for the processor; only the thread
indices come from outside. Threads run one after the other.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

import numpy as np

from dyn_core.engines.llvm import compiler
from dyn_core.errors import ShapeError
from dyn_core.export.gpu.kernel import GpuKernel

_SPECIAL = ("tid", "ctaid", "ntid")
_REGISTER = re.compile(r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.x\(\)")


class HostKernel:
    """A GpuKernel compiled for the processor.

    Args:
        kernel: Kernel to be run.
        block: Number of threads of a block.

    Attributes:
        kernel, block: The arguments.

    Raises:
        CompileError: LLVM failed.
    """

    def __init__(self, kernel: GpuKernel, block: int = 32) -> None:
        self.kernel, self.block = kernel, block
        self._loaded = compiler.Loaded(compiler.compile_ir(_for_host(kernel.ir)))
        pointers = len(kernel.inputs) + len(kernel.outputs) + 1
        whole = ctypes.c_int32
        self._thread = ctypes.CFUNCTYPE(None, whole, whole, whole)(
            self._loaded.address("dyn_set_thread")
        )
        self._run = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * pointers, ctypes.c_int64
        )(self._loaded.address(kernel.entry))

    def __call__(self, *arrays: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return outputs (rows, *shape) and status (rows,) of inputs (rows, *shape).

        The arrays are converted to dtype and layout of the kernel, and outputs back to
        rows. The status (int32) is 0 for all rows of a kernel that is not `checked`.

        Args:
            arrays: Inputs in the order of kernel.inputs; the first sets `rows`.

        Returns:
            List of the outputs in the order of kernel.outputs, and the status.

        Raises:
            ShapeError: An input has another number of rows or entries.
            ValueError: The number of inputs differs.
            IndexError: There is no input.
        """
        kernel = self.kernel
        rows = len(arrays[0])
        inputs = [
            self._laid_out(port.name, array, rows, port.size)
            for port, array in zip(kernel.inputs, arrays, strict=True)
        ]
        outputs = [self._memory(rows, port.size) for port in kernel.outputs]
        status = np.zeros(rows, np.int32)
        addresses = [array.ctypes.data for array in (*inputs, *outputs, status)]
        for block in range(max(1, -(-rows // self.block))):  # at least one, as on a GPU
            for thread in range(self.block):
                self._thread(thread, block, self.block)
                self._run(*addresses, rows)
        return self._results(outputs, rows), status

    def _memory(self, rows: int, size: int) -> np.ndarray:
        """Return the memory of an output, filled with -77.25, which no kernel writes.

        Args:
            rows: Number of states.
            size: Entries of a state.

        Returns:
            Array (size, rows) in the layout "entries", (rows, size) in "states".
        """
        shape = (size, rows) if self.kernel.layout == "entries" else (rows, size)
        return np.full(shape, -77.25, self.kernel.dtype)

    def _laid_out(
        self, name: str, array: np.ndarray, rows: int, size: int
    ) -> np.ndarray:
        """Return an input in the layout and dtype of the kernel.

        Args:
            name: Name of the input, for messages.
            array: Input, (rows, ...).
            rows: Number of states.
            size: Entries of a state.

        Raises:
            ShapeError: The array has not `rows` rows of `size` entries.
        """
        if len(array) != rows or array.size != rows * size:
            raise ShapeError(name, f"{rows} rows of {size}", str(array.shape))
        flat = np.asarray(array, self.kernel.dtype).reshape(rows, size)
        if self.kernel.layout == "entries":
            flat = flat.T
        return np.ascontiguousarray(flat)

    def _results(self, outputs: Sequence[np.ndarray], rows: int) -> list[np.ndarray]:
        by_entries = self.kernel.layout == "entries"
        return [
            np.ascontiguousarray(array.T if by_entries else array).reshape(
                rows, *port.shape
            )
            for port, array in zip(self.kernel.outputs, outputs, strict=True)
        ]


def _for_host(ir: str) -> str:
    """Return the LLVM IR of a GPU kernel for any machine; address spaces remain.

    Its thread indices, which are global, are set by the function
    dyn_set_thread(tid, ctaid, ntid) before each call.
    """
    ir = re.sub(r"^target (triple|datalayout) = .*$", "", ir, flags=re.M)
    ir = re.sub(r"^declare .*@llvm\.nvvm\.read\.ptx\.sreg\..*$", "", ir, flags=re.M)
    ir = _REGISTER.sub(r"@dyn_\1()", ir).replace("define ptx_kernel", "define")
    lines = [ir]
    for name in _SPECIAL:
        lines += [
            f"@dyn_now_{name} = internal global i32 0",
            f"define internal i32 @dyn_{name}() {{",
            f"  %x = load i32, ptr @dyn_now_{name}",
            "  ret i32 %x",
            "}",
        ]
    lines.append("define void @dyn_set_thread(i32 %tid, i32 %ctaid, i32 %ntid) {")
    lines += [f"  store i32 %{name}, ptr @dyn_now_{name}" for name in _SPECIAL]
    return "\n".join([*lines, "  ret void", "}", ""])
