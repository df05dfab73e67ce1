"""Programs that machine code calls: the address of a kernel, tables of its arrays."""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.machine_code.expressions import Expressions, TypedValue
from dyn_core.engines.machine_code.language import machine_code
from dyn_core.engines.machine_code.types import INT
from dyn_core.errors import ShapeError

_WORD = ctypes.c_int64
_FUNCTION = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD)


class KernelAddress(NamedTuple):
    """Machine code of a Program for one state, tied to arrays.

    Attributes:
        address: Of the function; 0: there is none.
        inputs, outputs: Addresses of the tables of addresses of its arrays.
        scratch: Address of memory for its work.
    """

    address: int
    inputs: int
    outputs: int
    scratch: int


NO_KERNEL = KernelAddress(0, 0, 0, 0)


class PythonKernel:
    """A Python function of three whole numbers, for machine code.

    It must not raise: nobody would hear of it.

    Attributes:
        kernel: Valid as long as this object is kept; see call_python.
    """

    def __init__(self, function: Callable[[int, int, int], int]) -> None:
        """Make the address."""
        self._function = _FUNCTION(function)
        address = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.kernel = KernelAddress(address, 0, 0, 0)


class TiedKernel:
    """A Program for one state, tied to the arrays that it reads and writes.

    Attributes:
        kernel: For machine code, valid as long as this object is kept. Where the
            Program is no machine code, it calls back into Python.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Compile the Program, if it is to be.

        Args:
            program: Its numbers are float64.
            inputs, outputs: An array of each Port's shape, contiguous and aligned,
                which stays where it is.

        Raises:
            ShapeError: An array does not fit.
        """
        _check(program.inputs, inputs)
        _check(program.outputs, outputs)
        program.prepare()
        self._kept: list[Any] = [program, *inputs, *outputs]
        made = program.kernels()[0] if hasattr(program, "kernels") else None
        if made is None:
            run = PythonKernel(_in_python(program, inputs, outputs))
            self._kept.append(run)
            self.kernel = run.kernel
            return
        memory = made.memory()
        tables = self._table(inputs), self._table(outputs)
        self._kept += [made, memory]
        self.kernel = KernelAddress(made.addresses["scalar"], *tables, memory[1])

    def _table(self, arrays: Sequence[np.ndarray]) -> int:
        """Return the address of a table of addresses."""
        table = (_WORD * max(1, len(arrays)))(*(x.ctypes.data for x in arrays))
        self._kept.append(table)
        return ctypes.addressof(table)


class TiedBatch:
    """A Program for many states, tied to the arrays that it reads and writes.

    A call costs a few microseconds, and checks nothing. It works on one thread.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Compile the Program, if it is to be.

        Args:
            program: Its numbers are float64.
            inputs: An array of each Port's shape, or of as many rows of it as
                `outputs` have, contiguous and aligned, which stays where it is.
            outputs: Arrays of rows; none of them shares memory with another.

        Raises:
            ShapeError: An array does not fit.
        """
        rows, one = len(outputs[0]), zip(program.inputs, inputs, strict=True)
        alone = [x if x.shape == port.shape else x[0] for port, x in one]
        _check(program.inputs, alone)
        _check(program.outputs, [x[0] for x in outputs])
        program.prepare(batch=True)
        self._program, self._arrays = program, (tuple(inputs), tuple(outputs))
        self._status = np.zeros(rows, np.int64)
        made: Any = program.kernels() if hasattr(program, "kernels") else ()
        self._call: Any = None
        if len(made) > 1 and rows % program.lanes == 0:
            batch, self._lanes = made[1], program.lanes
            self._memory = batch.memory()
            ports = zip(program.inputs, inputs, strict=True)
            steps = [0 if x.shape == p.shape else x[0].nbytes for p, x in ports]
            addresses: list[Any] = [[x.ctypes.data for x in inputs], steps]
            addresses.append([x.ctypes.data for x in outputs])
            self._tables = [(_WORD * max(1, len(x)))(*x) for x in addresses]
            self._call = batch.call["batch"]

    def __call__(self, rows: int) -> None:
        """Fill the outputs of the first rows; where a requirement fails, with NaN.

        Some rows behind them are computed, too.
        """
        if self._call is None:
            self._in_python(rows)
            return
        last = -(-rows // self._lanes) * self._lanes
        inputs, steps, outputs = self._tables
        status = self._status
        if self._call(
            inputs, steps, outputs, status.ctypes.data, 0, last, self._memory[1]
        ):
            for output in self._arrays[1]:
                output[status != 0] = np.nan
            status[:] = 0

    def _in_python(self, rows: int) -> None:
        inputs, outputs = self._arrays
        ports = zip(self._program.inputs, inputs, strict=True)
        values = [x if x.shape == port.shape else x[:rows] for port, x in ports]
        out = tuple(x[:rows] for x in outputs)
        self._program(*values, out=out if len(out) > 1 else out[0], status=True)


def _check(ports: Sequence[Any], arrays: Sequence[np.ndarray]) -> None:
    """Refuse arrays that are not those of ports."""
    for port, array in zip(ports, arrays, strict=True):
        lies = array.flags.c_contiguous and array.flags.aligned
        if array.shape != port.shape or array.dtype != np.float64 or not lies:
            wanted = f"a contiguous float64 array of shape {port.shape}"
            raise ShapeError(port.name, wanted, f"{array.dtype} {array.shape}")


def _in_python(
    program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., int]:
    """Return a function that calls a Program and returns 0, or 1 where that raised."""

    out = tuple(outputs) if len(outputs) > 1 else outputs[0]

    def run(*_tables: int) -> int:
        try:
            program(*inputs, out=out)
        except Exception:  # which the caller sees by the same call in Python
            return 1
        return 0

    return run


def call_kernel(address: int, inputs: int, outputs: int, scratch: int) -> int:
    """Run a kernel; return 0, or the number of a requirement that does not hold.

    In the subset: machine code calls the same function.
    """
    return int(_FUNCTION(address)(inputs, outputs, scratch))


def write_call(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `call_kernel` as LLVM IR."""
    addresses = [writer.number(inner, INT).name for inner in node.args]
    pointers = [writer.new(f"inttoptr i64 {word} to ptr") for word in addresses]
    function, *tables = pointers
    arguments = ", ".join(f"ptr {x}" for x in tables)
    return TypedValue(INT, (writer.new(f"call i64 {function}({arguments})"),))


@machine_code
def run_kernel(kernel: KernelAddress) -> int:
    """Run a kernel on its arrays; see call_kernel."""
    return call_kernel(kernel.address, kernel.inputs, kernel.outputs, kernel.scratch)


@machine_code
def call_python(kernel: KernelAddress, a: int, b: int, c: int) -> int:
    """Call the function of a PythonKernel; return its result."""
    return call_kernel(kernel.address, a, b, c)
