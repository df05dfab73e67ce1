"""The engine `native`: a traced text as machine code, for one state and for batches."""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dyn_core.engines import cache, entry, native
from dyn_core.engines.base import _result_type
from dyn_core.engines.lanes import Code, lane_code, scalar_code
from dyn_core.engines.threads import WORKERS, count
from dyn_core.engines.traced import GraphProgram
from dyn_core.errors import ShapeError, UnsupportedError

_HOLD = 100e-6  # work that keeps the GIL at most [s]
_SPREAD = 400e-6  # work from which several threads pay [s]
_STATES = 16384  # most rows with requirements that the entry takes at a time
_STEP = {"scalar": 0.15e-9, "lanes": 0.07e-9}  # rough time of an operation, per row [s]
_known: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_P, _I = ctypes.c_void_p, ctypes.c_int64
_TYPES = {
    "scalar": ctypes.CFUNCTYPE(_I, _P, _P, _P),
    "lanes": ctypes.CFUNCTYPE(_I, _P, _P, _P, _P, _I, _I, _P),
    "blocked": ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _I, _P),
}


class Kernel:
    """Machine code of one Graph in one flavour, in memory.

    Attributes:
        addresses: Of its functions.
        call: Its functions, called without the GIL.
        scratch: Bytes of scratch memory a call needs.
        steps: Operations a row takes.
        size: Bytes of object code.
        seconds: What it took to get it, compiled or loaded.
    """

    def __init__(self, code: bytes, note: dict[str, Any]) -> None:
        self._loaded = native.Loaded(code)
        self.scratch, self.steps = note["scratch"], note["steps"]
        self.size = len(code)
        names = note["entries"]
        self.addresses = {name: self._loaded.address(name) for name in names}
        self.call = {name: _TYPES[name](a) for name, a in self.addresses.items()}
        self._free: list[Any] = []

    def memory(self) -> tuple[Any, int]:
        """Give scratch memory for one thread, to be given back, and its address."""
        try:
            return self._free.pop()
        except IndexError:
            memory = np.zeros(self.scratch + 64, np.uint8)
            address = memory.ctypes.data
            return memory, address + -address % 64

    def give_back(self, memory: tuple[Any, int]) -> None:
        """Take scratch memory back."""
        self._free.append(memory)


class NativeProgram(GraphProgram):
    """A Graph as machine code; compiled when first used, kept on disk.

    Attributes:
        lanes: States one instruction works on in a batch.
    """

    engine = "native"

    def __new__(cls, *args: Any, **parts: Any) -> NativeProgram:
        """Make an object whose calls go straight to the kernels, where that can be."""
        how = entry.mode()
        if how == "python" or cls is not NativeProgram:
            return super().__new__(cls)
        return super().__new__(entry.fast_type(cls, how)[0])

    def __init__(
        self, text: Callable[[Sequence[Any]], Sequence[Any]], **parts: Any
    ) -> None:
        super().__init__(text, **parts)
        self.lanes = native.machine().width
        self._lock = threading.RLock()
        self._kernels: dict[str, Kernel] = {}
        self._underway: set[str] = set()
        self._sizes = (
            tuple(port.size for port in self.inputs),
            tuple(port.size for port in self.outputs),
        )
        self._connect()

    @cached_property
    def checked(self) -> bool:
        """Whether the text requires something."""
        return bool(self.graph.requirements)

    def prepare(self, batch: bool = False) -> None:
        """Compile or load now what a first call would; with batch also for batches."""
        self._kernel("scalar", wait=True)
        if batch:
            self._kernel("lanes", wait=True)

    def code(self, flavour: str) -> Code:
        """Give the LLVM text of a kernel: flavour is scalar or lanes."""
        host = native.machine()
        if flavour == "scalar":
            return scalar_code(self.graph, *self._sizes, host.fused, host.pack)
        return lane_code(self.graph, *self._sizes, host.fused, host.width)

    @cached_property
    def _graph_key(self) -> str:
        """Digest of the Graph, its ports, and what the code depends on."""
        digest = hashlib.sha256(self.graph.digest())
        digest.update(repr(self._sizes).encode())
        digest.update(native.machine().key.encode())
        return digest.hexdigest()

    def _kernel(self, flavour: str, wait: bool | None = None) -> Kernel | None:
        """Give a kernel; None while it is being made and calls do not wait."""
        found = self._kernels.get(flavour)
        if found is not None:
            return found
        if self.wait if wait is None else wait:
            with self._lock:
                if flavour not in self._kernels:
                    self._kernels[flavour] = self._make(flavour)
                    self._offer(flavour)
                return self._kernels[flavour]
        with self._lock:
            if flavour not in self._underway:
                self._underway.add(flavour)
                job = threading.Thread(
                    target=self._kernel, args=(flavour, True), daemon=True
                )
                job.start()
        return None

    def _make(self, flavour: str) -> Kernel:
        """Load a kernel from the cache, or compile it."""
        key = f"{flavour}-{self._graph_key}"
        kernel = _known.get(key)
        if kernel is not None:
            return kernel
        found = cache.load(key)
        if found is None:
            what = f"compiling {self.recipe.solver.name} for {self.model.name}"
            with native.progress(f"{what} ({len(self.graph.nodes)} operations)"):
                written = self.code(flavour)
                code = native.compile_text(written.text)
            note = {
                "entries": written.entries,
                "scratch": written.scratch,
                "steps": written.steps,
            }
            cache.store(key, note, code)
        else:
            note, code = found
        kernel = _known[key] = Kernel(code, note)
        return kernel

    def _connect(self) -> None:
        """Let calls of this object go to the entry."""
        how = entry.mode()
        if type(self) is NativeProgram or how == "python":
            return
        most = max(len(self.inputs), len(self.outputs))
        dims = max((len(p.shape) for p in (*self.inputs, *self.outputs)), default=0)
        table = entry.Descriptor()
        for name, value in entry.constants().items():
            table[name] = value
        table["slow"] = id(NativeProgram.__call__)
        table["n_in"] = len(self.inputs)
        table["n_out"] = len(self.outputs)
        if most > entry.MOST or dims > 4:
            table["n_in"] = -1  # every call is left to Python
        else:
            table.ports("inputs", [port.shape for port in self.inputs])
            table.ports("outputs", [port.shape for port in self.outputs])
        names = tuple(port.name for port in self.outputs)
        table["result_type"] = id(_result_type(names))
        table["finite"] = self.finite
        table["width"] = self.lanes
        self._table = table
        entry.connect(self, entry.fast_type(NativeProgram, how)[1], table, how)

    def _offer(self, flavour: str) -> None:
        """Tell the entry of a kernel that is ready."""
        table = getattr(self, "_table", None)
        if table is None:
            return
        kernel = self._kernels[flavour]
        if flavour == "lanes":
            row = (kernel.steps + 50) * _STEP["lanes"]
            most = int(_SPREAD / row) if count(self.threads) > 1 else 2**62
            if self.checked:
                most = min(most, _STATES)
            table.buffer("lane_scratch", kernel.scratch)
            table.buffer("status", 8 * _STATES if self.checked else 8 * self.lanes)
            table["max_rows"], table["hold_rows"] = most, int(_HOLD / row)
            table["lanes"] = kernel.addresses["lanes"]
        elif kernel.steps * _STEP["scalar"] < _HOLD:
            careful = self.checked or self.finite
            table["careful"] = careful
            if careful:
                sizes = self._sizes[1]
                at = table.buffer("temporary", 8 * (len(sizes) + sum(sizes)))
                pointers = (ctypes.c_int64 * len(sizes)).from_address(at)
                at += 8 * len(sizes)
                for k, size in enumerate(sizes):
                    pointers[k] = at
                    at += 8 * size
            table.buffer("scratch", kernel.scratch)
            table["scalar"] = kernel.addresses["scalar"]

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Run on floats."""
        results, state = self._single_flat(np.array(numbers, float))
        return results.tolist(), state

    def _single(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        flat = [array.ravel() for array in arrays]
        together = np.concatenate(flat) if flat else np.zeros(0)
        values, state = self._single_flat(together)
        return self._split(values), state

    def _single_flat(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Run one state: flat inputs to flat outputs."""
        kernel = self._kernel("scalar")
        if kernel is None:
            flat, state = self._floats(numbers.tolist())
            values = np.array(flat, float)
        else:
            values = np.empty(sum(self._sizes[1]))
            tables = [
                _pointers(array.ctypes.data, sizes)
                for array, sizes in zip((numbers, values), self._sizes, strict=True)
            ]
            memory = kernel.memory()
            state = kernel.call["scalar"](*tables, memory[1])
            kernel.give_back(memory)
        if state:
            values[:] = np.nan
        return values, state

    def _batch(
        self, arrays: Sequence[np.ndarray], rows: int, targets: Any
    ) -> tuple[list[np.ndarray], np.ndarray]:
        if rows < self.lanes:
            return self._few(arrays, rows)
        kernel = self._kernel("lanes")
        if kernel is None:
            return super()._batch(arrays, rows, targets)
        plain = [np.ascontiguousarray(array) for array in arrays]
        plain = [a if _aligned(a) else a.copy() for a in plain]
        results = [
            np.empty((rows, *port.shape)) if target is None else target
            for port, target in zip(
                self.outputs, self._direct(plain, targets), strict=True
            )
        ]
        strides = [
            8 * port.size if array.ndim > len(port.shape) else 0
            for port, array in zip(self.inputs, plain, strict=True)
        ]
        state = np.zeros(rows, np.int64)
        failed = self._slices(kernel, plain, strides, results, state)
        if failed:
            for result in results:
                result[state != 0] = np.nan
        return results, state

    def _few(
        self, arrays: Sequence[np.ndarray], rows: int
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Run fewer rows than there are lanes, one by one: the bits are the same."""
        values = np.empty((rows, sum(self._sizes[1])))
        state = np.zeros(rows, np.int64)
        for row in range(rows):
            one = [
                array[row] if array.ndim > len(port.shape) else array
                for port, array in zip(self.inputs, arrays, strict=True)
            ]
            flat = [x.ravel() for x in one]
            values[row], state[row] = self._single_flat(np.concatenate(flat))
        return self._split(values), state

    def _direct(self, arrays: Sequence[np.ndarray], targets: Any) -> list[Any]:
        """Give the targets that results can be written to at once, None for others."""
        if targets is None:
            return [None] * len(self.outputs)
        busy = list(arrays)
        direct: list[Any] = []
        for target in targets:
            whole = target.flags.c_contiguous and _aligned(target) and not self.finite
            free = whole and not any(np.may_share_memory(target, x) for x in busy)
            direct.append(target if free else None)
            busy.append(target)
        return direct

    def _slices(
        self,
        kernel: Kernel,
        arrays: Sequence[np.ndarray],
        strides: Sequence[int],
        results: Sequence[np.ndarray],
        state: np.ndarray,
    ) -> int:
        """Run all rows, on several threads where it pays; give how many failed."""
        rows = len(state)
        inputs = (_P * len(arrays))(*[array.ctypes.data for array in arrays])
        outputs = (_P * len(results))(*[array.ctypes.data for array in results])
        steps = (_I * len(strides))(*strides)
        work = rows * kernel.steps * _STEP["lanes"]
        threads = min(count(self.threads), rows // self.lanes)
        if work < _SPREAD:
            threads = 1
        failed = [0] * threads

        def run(k: int, first: int, last: int) -> None:
            memory = kernel.memory()
            failed[k] = kernel.call["lanes"](
                inputs, steps, outputs, state.ctypes.data, first, last, memory[1]
            )
            kernel.give_back(memory)

        if threads == 1:
            run(0, 0, rows)
            return failed[0]
        share = rows // threads // self.lanes * self.lanes
        starts = [k * share for k in range(threads)]
        ends = [*starts[1:], rows]
        tasks = [
            lambda k=k, a=a, b=b: run(k, a, b)
            for k, (a, b) in enumerate(zip(starts, ends, strict=True))
        ]
        WORKERS.run(tasks)
        return sum(failed)

    def to_blocks(self, array: Any, name: str) -> np.ndarray:
        """Give a batch of an input or output as blocks: (blocks, size, lanes).

        Args:
            array: Batch of a Port, its number of rows a multiple of `lanes`.
            name: The Port.
        """
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.asarray(array, float).reshape(-1, port.size)
        if len(rows) % self.lanes:
            wanted = f"a multiple of {self.lanes} rows"
            raise ShapeError(name, wanted, f"{len(rows)}")
        blocks = rows.reshape(-1, self.lanes, port.size)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1))

    def from_blocks(self, blocks: np.ndarray, name: str) -> np.ndarray:
        """Give the batch (rows, ...) that lies in blocks."""
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.ascontiguousarray(blocks.transpose(0, 2, 1))
        return rows.reshape(-1, *port.shape)

    def run_blocks(self, *inputs: np.ndarray, out: Sequence[np.ndarray]) -> int:
        """Run on data kept in blocks, without transposing; on this thread.

        Args:
            inputs: One C-order array (blocks, size, lanes) for each input Port.
            out: The same for each output Port.

        Returns:
            How many rows failed a requirement; their outputs are not to be used.

        Raises:
            ShapeError: An array does not fit.
        """
        arrays = (*inputs, *out)
        ports = (*self.inputs, *self.outputs)
        if len(inputs) != len(self.inputs) or len(out) != len(self.outputs):
            raise ShapeError("arrays", f"{len(ports)}", f"{len(arrays)}")
        blocks = len(arrays[0])
        for k, (port, array) in enumerate(zip(ports, arrays, strict=True)):
            wanted = (blocks, port.size, self.lanes)
            good = array.dtype == np.float64 and array.flags.c_contiguous
            if array.shape != wanted or not good or not _aligned(array):
                shown = f"a C-order float64 array of shape {wanted}"
                raise ShapeError(port.name, shown, f"{array.dtype} {array.shape}")
            if k >= len(inputs) and any(
                np.may_share_memory(array, x) for x in arrays[:k]
            ):
                raise ShapeError(port.name, "memory of its own", "shared memory")
        kernel = self._kernel("lanes", wait=True)
        assert kernel is not None
        if blocks == 0:
            return 0
        tables = [
            (_P * len(group))(*[a.ctypes.data for a in group]) for group in (inputs, out)
        ]
        state = np.zeros(blocks * self.lanes, np.int64)
        memory = kernel.memory()
        failed = kernel.call["blocked"](
            *tables, state.ctypes.data, 0, blocks, memory[1]
        )
        kernel.give_back(memory)
        return failed


def _pointers(base: int, sizes: Sequence[int]) -> Any:
    """Give a table of pointers to ports that lie one behind the other."""
    at, found = base, []
    for size in sizes:
        found.append(at)
        at += 8 * size
    return (_P * len(sizes))(*found)


def _aligned(array: np.ndarray) -> bool:
    return array.flags.aligned


def build(text: Callable[[Sequence[Any]], Sequence[Any]], **parts: Any) -> GraphProgram:
    """Give a Program as machine code; as Python code where the Graph calls Programs.

    Raises:
        UnsupportedError: There is no machine code on this machine.
    """
    reason = native.missing()
    if reason:
        raise UnsupportedError(f"engine native cannot be had: {reason}")
    program = NativeProgram(text, **parts)
    if any(node.op == "call" for node in program.graph.nodes):
        return GraphProgram(text, **parts)
    return program
