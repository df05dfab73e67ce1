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


def _function(count: int) -> Any:
    """Return the type of a C function of `count` int64 that returns an int64."""
    return ctypes.CFUNCTYPE(_WORD, *[_WORD] * count)


class KernelAddress(NamedTuple):
    """Address of a function, and the three numbers that run_kernel calls it with.

    It stands for a Program bound to arrays (TiedKernel), a function with lanes bound to
    arrays (TiedFunction) or a Python function (PythonKernel).

    Attributes:
        address: Address of the function; 0: none, which must not be called.
        inputs, outputs: For a Program as machine code addresses of tables with the
            addresses of its arrays; for a TiedFunction addresses of its table of
            arguments and of `alive`; else 0.
        scratch: Address of a Program's scratch memory; else 0.
    """

    address: int
    inputs: int
    outputs: int
    scratch: int


NO_KERNEL = KernelAddress(0, 0, 0, 0)


class BlockKernel(NamedTuple):
    """Address of a Program for one block of states in lanes, for run_block.

    Its fields are those of a KernelAddress, and the address of the status.
    """

    address: int
    inputs: int
    outputs: int
    status: int
    scratch: int


class PythonKernel:
    """A Python function of three ints that machine code can call.

    Exceptions in it do not reach the caller: the function must not raise.

    Attributes:
        kernel: KernelAddress, valid while this object exists; see call_python.
    """

    def __init__(self, function: Callable[..., int], count: int = 3) -> None:
        """Create the callback.

        Args:
            function: Takes `count` ints and returns an int.
            count: Number of ints.
        """
        self._function = _function(count)(function)
        address = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.kernel = KernelAddress(address, 0, 0, 0)


class TiedKernel:
    """A Program for one state, bound to the arrays that it reads and writes.

    Attributes:
        kernel: KernelAddress for run_kernel, valid while this object exists. Where the
            Program is not machine code, it is a callback into Python.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Bind a Program, which is compiled if its engine does so.

        Args:
            program: Program of dtype float64.
            inputs, outputs: For each Port an array of its shape, C-contiguous and
                aligned, kept alive by this object; its memory must not move. Outputs
                must be writeable, which is not checked.

        Raises:
            ShapeError: The Program has another dtype, or an array another shape, dtype
                or memory layout.
            ValueError: The number of arrays differs from the number of Ports.
            AttributeError: An entry is no array, such as a list.
            IndexError: There is no output, and the Program is not machine code.
            CompileError: LLVM failed. Other errors of Program.prepare pass through.
        """
        _check(program, inputs, outputs)
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
        """Return the address of a table, kept here, of the arrays' addresses."""
        table = (_WORD * max(1, len(arrays)))(*(x.ctypes.data for x in arrays))
        self._kept.append(table)
        return ctypes.addressof(table)


class TiedBlock:
    """A Program for as many states as it has lanes, bound to its arrays.

    Attributes:
        inputs, outputs: For each Port its numbers in lanes, (size, lanes), or the
            arrays of several blocks, (blocks, size, lanes).
        status: 0 for each lane, or another number where a requirement failed, (lanes,)
            or (blocks, lanes).
        kernel: BlockKernel for run_block and run_blocks, valid while this object
            exists. Where the Program is not machine code, it is a callback into Python
            for one block.
    """

    def __init__(
        self,
        program: Any,
        inputs: Sequence[np.ndarray] | None = None,
        outputs: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Bind a Program to arrays; compile it if its engine does.

        A Program without `lanes` gets one lane. Its dtype must be float64, which is not
        checked.

        Args:
            program: Program.
            inputs, outputs: For each Port a float64 array (blocks, ..., lanes), C-order
                and aligned, with as many numbers in each lane as the Port has; the
                dtype is not checked. If either is None, both are new arrays of zeros
                for one block. Only machine code takes arrays, which is not checked.

        Raises:
            ShapeError: An array has another size or memory layout.
            ValueError: The number of arrays differs from the number of Ports.
            IndexError: Arrays are given, but none for an output, or of no blocks.
            AttributeError: An entry is no array, such as a list.
            CompileError: LLVM failed. SettingError: As NativeProgram.prepare.
        """
        lanes = getattr(program, "lanes", 1)
        self.status = np.zeros(lanes, np.int64)
        self.inputs, self.outputs = (
            [np.zeros((port.size, lanes)) for port in ports]
            for ports in (program.inputs, program.outputs)
        )
        if inputs is not None and outputs is not None:
            blocks = len(outputs[0])
            self.status = np.zeros((blocks, lanes), np.int64)
            for ports, arrays in (program.inputs, inputs), (program.outputs, outputs):
                for port, array in zip(ports, arrays, strict=True):
                    wanted = blocks, port.size * lanes
                    flags, shape = array.flags, (len(array), array[0].size)
                    if shape != wanted or not (flags.c_contiguous and flags.aligned):
                        raise ShapeError(port.name, f"{wanted}, C-order", f"{shape}")
            self.inputs, self.outputs = list(inputs), list(outputs)
        if not hasattr(program, "batch_kernel"):
            self._kept: Any = PythonKernel(self._in_python(program), 6)
            self.kernel = BlockKernel(self._kept.kernel.address, 0, 0, 0, 0)
            return
        made = program.batch_kernel()
        memory = made.memory()
        tables = [
            (_WORD * max(1, len(arrays)))(*(x.ctypes.data for x in arrays))
            for arrays in (self.inputs, self.outputs)
        ]
        self._kept = program, made, memory, tables
        places = [*map(ctypes.addressof, tables), self.status.ctypes.data, memory[1]]
        self.kernel = BlockKernel(made.addresses["blocked"], *places)

    def _in_python(self, program: Any) -> Callable[..., int]:
        """Return a callback that runs the Program on `inputs` for all lanes.

        It writes `outputs` and `status`, ignores its arguments and returns 0. A failed
        requirement raises nothing; other exceptions are not caught.
        """

        def run(*_tables: int) -> int:
            pairs = zip(program.inputs, self.inputs, strict=True)
            rows = [x.T.reshape(-1, *port.shape) for port, x in pairs]
            results, self.status[:] = program(*rows, status=True)
            results = results if len(self.outputs) > 1 else (results,)
            for mine, result in zip(self.outputs, results, strict=True):
                mine[...] = result.reshape(len(result), -1).T
            return 0

        return run


class TiedBatch:
    """A Program for many states, bound to the arrays that it reads and writes.

    A call costs a few microseconds, checks nothing and runs on one thread.
    """

    def __init__(
        self, program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Bind a Program, which is compiled if its engine does so.

        Machine code is called only if the number of rows is a multiple of the Program's
        lanes; otherwise, and for other engines, each call runs the Program in Python.

        Args:
            program: Program of dtype float64.
            inputs: For each Port an array of its shape, used for all rows, or (rows,
                ...) with as many rows as `outputs`; C-contiguous and aligned, in
                memory that does not move.
            outputs: For each Port such an array (rows, ...) with at least one row; no
                two share memory, which is not checked. The first array determines the
                number of rows.

        Raises:
            ShapeError: An array has another shape, dtype or memory layout, or other
                rows than the first output, or the Program has another dtype.
            ValueError: The number of arrays differs from the number of Ports.
            IndexError: There is no output.
            AttributeError: An entry is no array, such as a list.
            CompileError: LLVM failed. Other errors of Program.prepare pass through.
        """
        rows = len(outputs[0])
        _check(program, inputs, outputs, rows)
        self._program, self._arrays = program, (tuple(inputs), tuple(outputs))
        self._status = np.zeros(rows, np.int64)
        self._call: Any = None
        if not hasattr(program, "batch_kernel") or rows % program.lanes:
            program.prepare(batch=True)
        else:
            batch, self._lanes = program.batch_kernel(), program.lanes
            self._memory = batch.memory()
            ports = zip(program.inputs, inputs, strict=True)
            steps = [0 if x.shape == p.shape else x[0].nbytes for p, x in ports]
            addresses: list[Any] = [[x.ctypes.data for x in inputs], steps]
            addresses.append([x.ctypes.data for x in outputs])
            self._tables = [(_WORD * max(1, len(x)))(*x) for x in addresses]
            self._call = batch.call["batch"]

    def __call__(self, rows: int) -> None:
        """Compute the outputs of the first `rows` rows, in place.

        All outputs of rows where a requirement fails are NaN; nothing is raised for
        them. Machine code also overwrites the following rows of the bound outputs, up
        to a multiple of the lanes.

        Args:
            rows: From 1 to the number of rows of the bound outputs; not checked: with
                another number, machine code writes to memory outside of them.
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


def _check(
    program: Any,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    rows: int | None = None,
) -> None:
    """Check that arrays are C-contiguous, aligned float64 arrays of the Ports' shapes.

    With `rows`, each output must have the shape (rows, *port.shape), and an input has
    this or the Port's. Whether outputs are writeable is not checked.
    """
    dtype = getattr(program, "dtype", np.dtype(float))
    if dtype != np.float64:
        raise ShapeError("program", "a Program of dtype float64", f"dtype {dtype}")
    pairs = [*zip(program.inputs, inputs, strict=True)]
    pairs += zip(program.outputs, outputs, strict=True)
    for k, (port, array) in enumerate(pairs):
        lies = array.flags.c_contiguous and array.flags.aligned
        shape = port.shape
        if rows is not None and (k >= len(inputs) or array.shape != shape):
            shape = (rows, *shape)
        if array.shape != shape or array.dtype != np.float64 or not lies:
            wanted = f"a contiguous float64 array of shape {shape}"
            raise ShapeError(port.name, wanted, f"{array.dtype} {array.shape}")


def _in_python(
    program: Any, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., int]:
    """Return a callback that runs a Program on bound arrays and writes the outputs.

    It ignores its arguments, and returns 0, or 1 if the Program raised an exception.
    """

    out = tuple(outputs) if len(outputs) > 1 else outputs[0]

    def run(*_tables: int) -> int:
        try:
            program(*inputs, out=out)
        except Exception:  # the caller repeats the call in Python to see the error
            return 1
        return 0

    return run


def call_kernel(address: int, *arguments: int) -> int:
    """Call the function at `address` with three or six ints; return its int.

    For the kernel of a Program (inputs, outputs, scratch) it is 0, or the number
    (from 1 on) of the first requirement that failed; for one of blocks (inputs,
    outputs, status, first block, end block, exclusive, scratch) the number of lanes
    that failed. A PythonKernel has any ints. A wrong address crashes the process.
    """
    return int(_function(len(arguments))(address)(*arguments))


def write_call(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write a call of `call_kernel`; return its value, an INT."""
    addresses = [writer.number(inner, INT).name for inner in node.args]
    pointers = [writer.new(f"inttoptr i64 {word} to ptr") for word in addresses]
    function, *tables = pointers
    arguments = ", ".join(f"ptr {x}" for x in tables)
    return TypedValue(INT, (writer.new(f"call i64 {function}({arguments})"),))


@machine_code
def run_kernel(kernel: KernelAddress) -> int:
    """Run a kernel on its bound arrays, and write its outputs in place.

    Args:
        kernel: Attribute `kernel` of a TiedKernel or TiedFunction that still exists;
            its address must not be 0.

    Returns:
        For a Program 0, or the number (from 1 on) of the first failed requirement; if
        the kernel calls Python, 1 if the Program raised an exception. The outputs are
        not valid if it is not 0. For a TiedFunction the result of the function.
    """
    return call_kernel(kernel.address, kernel.inputs, kernel.outputs, kernel.scratch)


@machine_code
def call_python(kernel: KernelAddress, a: int, b: int, c: int) -> int:
    """Return the result of a PythonKernel's function for the ints a, b and c.

    Args:
        kernel: Attribute `kernel` of a PythonKernel that still exists. Its function
            must not raise; no exception reaches the caller.
        a, b, c: Arguments of the function.
    """
    return call_kernel(kernel.address, a, b, c)


@machine_code
def run_block(kernel: BlockKernel) -> int:
    """Run a Program on one block of states in lanes, and write its outputs in place.

    Args:
        kernel: Attribute `kernel` of a TiedBlock that still exists.

    Returns:
        Number of lanes in which a requirement failed, as their `status` says; 0 if the
        kernel calls Python.
    """
    tables, status = kernel.inputs, kernel.status
    return call_kernel(
        kernel.address, tables, kernel.outputs, status, 0, 1, kernel.scratch
    )


@machine_code
def run_blocks(kernel: BlockKernel, blocks: int) -> int:
    """Run a Program on blocks one after another; one may read what another wrote.

    Args:
        kernel: Attribute `kernel` of a TiedBlock with arrays that still exists.
        blocks: Number of blocks, at most that of the arrays, which is not checked.

    Returns:
        Number of lanes in which a requirement failed, of all blocks together, as their
        `status` says.
    """
    failed = 0
    for i in range(blocks):
        failed += call_kernel(
            kernel.address, kernel.inputs, kernel.outputs, kernel.status, i, i + 1,
            kernel.scratch,
        )  # fmt: skip
    return failed
