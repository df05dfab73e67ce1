"""Calls of Programs from machine code: kernel addresses and tables of arrays."""

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
    """Address of a Program's machine code for one state, with its bound arrays.

    Attributes:
        address: Address of the function; 0: none.
        inputs, outputs: Addresses of tables with the addresses of the arrays.
        scratch: Address of scratch memory.
    """

    address: int
    inputs: int
    outputs: int
    scratch: int


NO_KERNEL = KernelAddress(0, 0, 0, 0)


class PythonKernel:
    """A Python function of three ints that machine code can call.

    Exceptions in it are ignored: the function must not raise.

    Attributes:
        kernel: Valid while this object exists; see call_python.
    """

    def __init__(self, function: Callable[[int, int, int], int]) -> None:
        """Create the callback.

        Args:
            function: Takes three ints and returns an int.
        """
        self._function = _FUNCTION(function)
        address = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.kernel = KernelAddress(address, 0, 0, 0)


class TiedKernel:
    """A Program for one state, bound to the arrays that it reads and writes.

    Attributes:
        kernel: Address for machine code, valid while this object exists. Where the
            Program is not machine code, it is a callback into Python.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Bind a Program, which is compiled if its engine does so.

        Args:
            program: Program of dtype float64.
            inputs, outputs: An array of each Port's shape, contiguous and aligned; its
                memory must not move.

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
        """Return the address of a table with the addresses of the arrays.

        The table lives as long as this object.
        """
        table = (_WORD * max(1, len(arrays)))(*(x.ctypes.data for x in arrays))
        self._kept.append(table)
        return ctypes.addressof(table)


class TiedBatch:
    """A Program for many states, bound to the arrays that it reads and writes.

    A call costs a few microseconds, checks nothing and runs on one thread.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Bind a Program, which is compiled if its engine does so.

        Args:
            program: Program of dtype float64.
            inputs: For each Port an array of its shape, or with as many rows as
                `outputs`; contiguous and aligned, in memory that does not move.
            outputs: For each Port an array with rows; no two share memory.

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
        """Compute the outputs of the first `rows` rows.

        Rows where a requirement fails have NaN; nothing is raised. Rows behind them, up
        to a multiple of the lanes, are overwritten too.

        Args:
            rows: At most the number of rows of the bound outputs; not checked.
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
    """Raise ShapeError unless arrays are contiguous float64 of the Ports' shapes."""
    for port, array in zip(ports, arrays, strict=True):
        lies = array.flags.c_contiguous and array.flags.aligned
        if array.shape != port.shape or array.dtype != np.float64 or not lies:
            wanted = f"a contiguous float64 array of shape {port.shape}"
            raise ShapeError(port.name, wanted, f"{array.dtype} {array.shape}")


def _in_python(
    program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., int]:
    """Return a callback that calls a Program on bound arrays.

    It returns 0, or 1 if the Program raised, and ignores its arguments.

    Args:
        program: Program.
        inputs, outputs: An array for each Port.
    """

    out = tuple(outputs) if len(outputs) > 1 else outputs[0]

    def run(*_tables: int) -> int:
        try:
            program(*inputs, out=out)
        except Exception:  # the caller repeats the call in Python to see the error
            return 1
        return 0

    return run


def call_kernel(address: int, inputs: int, outputs: int, scratch: int) -> int:
    """Run a kernel; return 0, or the number of a requirement that does not hold.

    Machine code calls the function directly. All arguments are addresses, as in
    KernelAddress.
    """
    return int(_FUNCTION(address)(inputs, outputs, scratch))


def write_call(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write a call of `call_kernel`; return its value, an INT.

    Raises:
        TraceError: An argument is no int.
    """
    addresses = [writer.number(inner, INT).name for inner in node.args]
    pointers = [writer.new(f"inttoptr i64 {word} to ptr") for word in addresses]
    function, *tables = pointers
    arguments = ", ".join(f"ptr {x}" for x in tables)
    return TypedValue(INT, (writer.new(f"call i64 {function}({arguments})"),))


@machine_code
def run_kernel(kernel: KernelAddress) -> int:
    """Run a kernel on its bound arrays; return 0 or a failed requirement's number.

    1 if the kernel calls Python and the Program raised. The outputs are written in
    place.
    """
    return call_kernel(kernel.address, kernel.inputs, kernel.outputs, kernel.scratch)


@machine_code
def call_python(kernel: KernelAddress, a: int, b: int, c: int) -> int:
    """Return the result of a PythonKernel's function for the ints a, b and c.

    kernel: Attribute `kernel` of the PythonKernel, which must still exist.
    """
    return call_kernel(kernel.address, a, b, c)
