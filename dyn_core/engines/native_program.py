"""The engine `native`: a traced algorithm as machine code, for states and batches.

Most calls are served by the entry, machine code that reads the arguments of a call, and
never reach this file. The entry therefore has its own form of three rules (overlap of
`out`, finite numbers, few rows), which python_to_llvm.py lists and explains.

A kernel is the machine code of a Graph, for one state (variant scalar) or for many
(batch). The interpreter stands in for a large kernel while it is compiled; its results
have the same bits. Lanes are the states that one instruction computes; data may also be
stored in blocks (blocks, size, lanes).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any
from weakref import ref

import numpy as np

from dyn_core.engines.base import Function
from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.graph_program import GraphProgram
from dyn_core.engines.llvm import host_machine, interpreter, kernel
from dyn_core.engines.llvm.blocks import DEAF, STEP, Blocks
from dyn_core.engines.llvm.cached import trace_cache
from dyn_core.engines.llvm.cached.kernel_key import kernel_key
from dyn_core.engines.llvm.cached.trace_cache import GraphFacts
from dyn_core.engines.llvm.call import (
    entry,
    entry_code,
    result_memory,
    result_memory_code,
)
from dyn_core.engines.llvm.kernel import Kernel, Variant, offsets, pointers
from dyn_core.engines.llvm.kernel_ir import KernelIR
from dyn_core.engines.llvm.threads import WORKERS, count
from dyn_core.engines.results import result_type
from dyn_core.errors import ShapeError, UnsupportedError, warn
from dyn_core.problems import Port
from dyn_core.sharing import Lock

# Graphs up to this number of nodes are compiled at once: that takes a third of a
# second.
AT_ONCE = 4000
_HOLD = 50e-6  # longest call that does not release the GIL [s]
_FAST = 5e-6  # estimated time of a call below which it is not measured [s]
_SPREAD = 400e-6  # estimated time above which several threads are faster [s]
_STATES = 16384  # maximum rows of an entry call with requirements: status buffer
_ADOPTING = Lock()


class QuickTier:
    """Runs one Program by the interpreter while its kernels are compiled.

    `variant` starts the compilation in the background. A finished kernel goes to the
    Program, referenced weakly; if compilation fails, there is a warning, and the
    interpreter stays.
    """

    def __init__(self, program: Any, facts: GraphFacts, sizes: kernel.Sizes) -> None:
        self._program, self._facts, self._sizes = ref(program), facts, sizes
        self._made: interpreter.Interpreter | None = None
        self._started: set[tuple[str, int]] = set()
        self._lock = Lock()

    def variant(self, name: str) -> Variant | None:
        """Return the interpreter's form of a kernel that is compiled in the background.

        The first call passes that form to the Program's `adopt` and starts the
        compiler; the finished kernel follows. None, without any effect, if the kernel
        is in memory or on disk, if it is small enough to be compiled at once
        (4000 nodes), or if the Program is gone or has dtype float32.
        """
        with self._lock:
            return self._variant(name)

    def _variant(self, name: str) -> Variant | None:
        """Start the compiler; return the interpreter's form. The caller holds the lock.

        None: at most 4000 nodes, float32, a kernel at hand, or the Program is gone.
        """
        made, started = self._made, (name, os.getpid())  # threads do not survive a fork
        if made is not None and started in self._started:
            return made.variants[name]
        program = self._program()
        if program is None or program.dtype != np.float64:
            return None
        if kernel.at_hand(name, self._facts.kernel) is not None:
            return None
        if graph_size(program.graph) <= AT_ONCE:
            return None
        if made is None:
            made = self._made = interpreter.Interpreter(program.graph, self._sizes)
        program.adopt(name, made.variants[name])
        if started not in self._started:
            self._started.add(started)
            then = partial(self._deliver, name)
            graph, sizes, lanes = program.graph, self._sizes, program.lanes
            kernel.later(name, self._facts.kernel, graph, sizes, lanes, then)
        return made.variants[name]

    def _deliver(self, name: str, job: Any) -> None:
        """Pass the finished kernel to the Program, or warn that compilation failed.

        After a failure the interpreter stays. A kernel for a Program that no longer
        exists is not passed on.
        """
        program = self._program()
        if job.error is not None:
            warn(f"a kernel could not be made, a slower form serves on: {job.error}")
        elif program is not None:
            program.adopt(name, job.result)
            with self._lock:
                self._started.discard((name, os.getpid()))
                if not self._started:
                    self._made = None


def graph_size(graph: Graph) -> int:
    """Return the number of nodes, a loop's body and condition included once."""
    inside = [node.data for node in graph.nodes if node.op == "loop"]
    inner = sum(graph_size(x.body) + graph_size(x.cond) for x in inside)
    return len(graph.nodes) + inner


class BlockCalls:
    """Methods of a NativeProgram for data in blocks (blocks, size, lanes)."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    lanes: int
    dtype: np.dtype

    def _kernel(self, variant: str, wait: bool | None = None) -> Variant:
        raise NotImplementedError

    def to_blocks(self, array: Any, name: str) -> np.ndarray:
        """Return a batch of a Port as C-contiguous blocks: (blocks, size, lanes).

        Entry [b, k, j] is flat entry k of row b * lanes + j, in the Program's dtype.
        The result may share the memory of `array`, of whose shape only the size counts.
        ShapeError: the number of rows is not a multiple of `lanes`.
        """
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.asarray(array, self.dtype).reshape(-1, port.size)
        if len(rows) % self.lanes:
            wanted = f"a multiple of {self.lanes} rows"
            raise ShapeError(name, wanted, f"{len(rows)}")
        blocks = rows.reshape(-1, self.lanes, port.size)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1))

    def from_blocks(self, blocks: np.ndarray, name: str) -> np.ndarray:
        """Return the batch (blocks * lanes, ...) of a Port, as given to `to_blocks`.

        The result may share `blocks`, (blocks, size, lanes), which is not checked.
        """
        port = {p.name: p for p in (*self.inputs, *self.outputs)}[name]
        rows = np.ascontiguousarray(blocks.transpose(0, 2, 1))
        return rows.reshape(-1, *port.shape)

    def run_blocks(self, *inputs: np.ndarray, out: Sequence[np.ndarray]) -> int:
        """Run on data in blocks, on the calling thread; return how many rows failed.

        Outputs of rows that failed a requirement are not valid. The first call waits
        for the compiler. Numbers are not checked for NaN and infinity, also not with
        finite=True. Inputs are as of `to_blocks`; arrays of `out` are overwritten, and
        none overlaps another array. ShapeError: wrong number, shape, dtype or layout.
        """
        arrays = (*inputs, *out)
        ports = (*self.inputs, *self.outputs)
        if len(inputs) != len(self.inputs) or len(out) != len(self.outputs):
            raise ShapeError("arrays", f"{len(ports)}", f"{len(arrays)}")
        blocks, addresses = len(arrays[0]), []
        for port, array in zip(ports, arrays, strict=True):
            wanted, flags = (blocks, port.size, self.lanes), array.flags
            good = array.dtype == self.dtype and flags.c_contiguous and flags.aligned
            if array.shape != wanted or not good:
                shown = f"a C-order {self.dtype} array of shape {wanted}"
                raise ShapeError(port.name, shown, f"{array.dtype} {array.shape}")
            addresses.append(array.__array_interface__["data"][0])
        ends = [a + array.nbytes for a, array in zip(addresses, arrays, strict=True)]
        for k in range(len(inputs), len(addresses)):
            if any(addresses[k] < ends[j] and addresses[j] < ends[k] for j in range(k)):
                raise ShapeError(ports[k].name, "memory of its own", "shared memory")
        made = self._kernel("batch", wait=True)
        if blocks == 0:
            return 0
        tables = pointers(addresses[: len(inputs)]), pointers(addresses[len(inputs) :])
        state = np.zeros(blocks * self.lanes, np.int64)
        status_address = state.__array_interface__["data"][0]
        failed = 0
        for a, b, memory in Blocks(made, 1, blocks)():
            failed += made.call["blocked"](*tables, status_address, a, b, memory)
        return failed


class NativeProgram(BlockCalls, GraphProgram):
    """A Graph as machine code, compiled at first use and cached on disk.

    Args:
        function: Algorithm as a function of the flat inputs that returns the flat
            outputs.
        facts: Properties of its Graph; the Graph itself is traced only if needed.
        parts: Keyword arguments of GraphProgram.

    Attributes:
        facts: Properties of the Graph.
        lanes: States that one instruction computes in a batch.
    """

    engine = "native"

    def __new__(cls, *args: Any, **parts: Any) -> NativeProgram:
        """Return an object whose calls are served by compiled code (the entry).

        It is of a subclass made by entry.fast_type. Where entry.mode() is "python", and
        for subclasses of this class, it is an ordinary object, whose calls run in
        Python.

        Raises:
            SettingError: The environment variable DYN_ENTRY has an invalid value.
        """
        how = entry.mode()
        if how == "python" or cls is not NativeProgram:
            return super().__new__(cls)
        return super().__new__(entry.fast_type(NativeProgram, how)[0])

    def __init__(self, function: Function, facts: GraphFacts, **parts: Any) -> None:
        super().__init__(function, **parts)
        self.facts = facts
        self.lanes = kernel.lanes(self.dtype)
        self._kernels: dict[str, Kernel] = {}
        self._sizes = flat_sizes(self.inputs, self.outputs)
        self._quick = QuickTier(self, facts, self._sizes)
        self._connect()

    def prepare(self, batch: bool = False) -> None:
        """Compile or load the scalar kernel, with `batch` both, and wait for the end.

        Raises CompileError (LLVM), SettingError (DYN_THREADS, DYN_CACHE_LIMIT).
        """
        self._kernel("scalar", wait=True)
        if batch:
            self._kernel("batch", wait=True)

    def batch_kernel(self) -> Kernel:
        """Return the batch kernel, compiled now if needed; errors as of `prepare`."""
        return self._kernels.get("batch") or self._full("batch")

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the Kernels in use so far, the scalar one first: none, one or both.

        An interpreter that stands in for a kernel is not included.
        """
        made = self._kernels
        return tuple(made[name] for name in kernel.VARIANTS if name in made)

    def kernel_ir(self, variant: str) -> KernelIR:
        """Return the LLVM IR of variant scalar or batch; ValueError if impossible."""
        return kernel.write(self.graph, self._sizes, variant, self.lanes)

    def _kernel(self, variant: str, wait: bool | None = None) -> Variant:
        """Return a kernel, or the interpreter while the kernel is being compiled.

        `wait`: whether to wait for the compiler, as always with float32 or at most 4000
        nodes; None: the Program's build option.
        """
        made: Variant | None = self._kernels.get(variant)
        if made is None and not (self.wait if wait is None else wait):
            made = self._quick.variant(variant)
        return self._full(variant) if made is None else made

    def _full(self, variant: str) -> Kernel:
        """Return the kernel of a variant (scalar or batch), compiled now if needed.

        It comes from the memory of the process, which Programs share, else from disk.
        `adopt` gets it in any case, and keeps a Kernel that this Program already has.
        """
        what = f"{self.recipe.solver.name} for {self.model.name}"
        key, sizes = self.facts.kernel, self._sizes
        made = kernel.get(variant, key, lambda: self.graph, sizes, self.lanes, what)
        self.adopt(variant, made)
        return made

    def adopt(self, variant: str, made: Variant) -> None:
        """Use a Kernel for the calls from now on; an interpreter, for the entry's only.

        A Kernel replaces an interpreter. Nothing changes if the Program has a Kernel of
        this variant already.

        Args:
            variant: scalar or batch.
            made: Kernel, or the interpreter in its place.
        """
        with _ADOPTING:
            if variant not in self._kernels:
                if isinstance(made, Kernel):
                    self._kernels[variant] = made
                self._offer(variant, made)

    def _connect(self) -> None:
        """Create the Descriptor, from which the entry serves calls of this object.

        With more Ports or axes than the entry supports, it passes every call to Python.
        """
        how = entry.mode()
        if type(self) is NativeProgram or how == "python":
            return
        ports = max(len(self.inputs), len(self.outputs))
        axes = max((len(p.shape) for p in (*self.inputs, *self.outputs)), default=0)
        table = entry.Descriptor()
        single = self.dtype == np.float32
        for name, value in entry.constants(single).items():
            table[name] = value
        table["slow"] = id(NativeProgram.__call__)
        table["n_in"] = len(self.inputs)
        table["n_out"] = len(self.outputs)
        if ports > entry_code.MAX_PORTS or axes > entry_code.MAX_AXES:
            table["n_in"] = -1  # every call is left to Python
        else:
            table.ports("inputs", [port.shape for port in self.inputs])
            table.ports("outputs", [port.shape for port in self.outputs])
        names = tuple(port.name for port in self.outputs)
        of_results = result_type(names)
        table.kept.append(of_results)
        table["result_type"] = id(of_results)
        table["finite"] = self.finite
        table["width"] = table["max_rows"] = self.lanes
        self._table = table
        entry.connect(self, entry.fast_type(NativeProgram, how)[1], table, how, single)

    def _offer(self, variant: str, made: Variant) -> None:
        """Enter machine code in the Descriptor, if any, so that the entry serves calls.

        The scalar variant is entered only if a call takes less than 50 us and
        `_returns_arrays` holds, else removed: calls by Python release the GIL. Python
        serves batches of more than max_rows, set here.
        """
        table = getattr(self, "_table", None)
        if table is None:
            return
        checked = self.facts.checked
        table[variant] = 0  # calls during the update are served by Python
        if variant == "batch":
            seconds = (made.steps + 50) * STEP["batch"]
            max_rows = max(int(DEAF / seconds / made.rounds), 8 * self.lanes)
            if count(self.threads) > 1:
                max_rows = min(max_rows, int(_SPREAD / seconds))
            if checked:
                max_rows = min(max_rows, _STATES)
            table.scratch("batch_scratch", made)
            table.buffer("status", 8 * (_STATES if checked else self.lanes))
            table["max_rows"], table["hold_rows"] = max_rows, int(_HOLD / seconds)
            batch = made.addresses["batch"]
            table["streamed"] = made.addresses.get("streamed", batch)
            table["batch"] = batch
        elif self._seconds(made) < _HOLD and self._returns_arrays():
            careful = checked or self.finite
            table["careful"] = careful
            if careful:
                sizes = self._sizes[1]
                address = table.buffer("temporary", 8 * (len(sizes) + sum(sizes)))
                pointers = (ctypes.c_int64 * len(sizes)).from_address(address)
                address += 8 * len(sizes)
                for k, size in enumerate(sizes):
                    pointers[k] = address
                    address += self.dtype.itemsize * size
            table.scratch("scratch", made)
            table["scalar"] = made.addresses["scalar"]

    def _seconds(self, made: Variant) -> float:
        """Return the time of a scalar variant, estimated from its steps [s].

        For a Kernel between 5 and 50 us the shortest of three calls with zeros
        counts if it is longer: large results take the time of memory.
        """
        seconds = made.steps * STEP["scalar"]
        if not _FAST <= seconds < _HOLD or not isinstance(made, Kernel):
            return seconds
        numbers, measured = np.zeros(sum(self._sizes[0]), self.dtype), []
        for _ in range(3):
            start = perf_counter()
            self._run_single(made, numbers)
            measured.append(perf_counter() - start)
        return max(seconds, min(measured))

    def _returns_arrays(self) -> bool:
        """Return whether the entry can return one state: no output () in float32."""
        arrays = all(port.shape for port in self.outputs)
        return arrays or self.dtype == np.float64

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Return (flat outputs, status) of one state for its flat inputs.

        Outputs are NaN where the status is not 0. Inputs are neither counted (with too
        few, other memory is read) nor checked for NaN. Errors are those of `prepare`.
        """
        results, state = self._single_flat(np.array(numbers, self.dtype))
        return results.tolist(), state

    def _single(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        flat = [array.ravel() for array in arrays]
        together = np.concatenate(flat) if flat else np.zeros(0, self.dtype)
        values, state = self._single_flat(together)
        return self._split(values), state

    def _single_flat(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Return (flat outputs, status) of one state; NaN outputs if it failed.

        The inputs are contiguous, of self.dtype.
        """
        return self._run_single(self._kernel("scalar"), numbers)

    def _run_single(self, made: Variant, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Return (flat outputs, status) of one state by `made`; NaN if it failed.

        The inputs are contiguous, of the Program's dtype, and not checked for NaN.
        """
        item = self.dtype.itemsize
        values = np.empty(sum(self._sizes[1]), self.dtype)
        tables = [
            pointers([array.ctypes.data + start for start in offsets(sizes, item)])
            for array, sizes in zip((numbers, values), self._sizes, strict=True)
        ]
        memory = made.memory()
        state = made.call["scalar"](*tables, memory[1])
        made.give_back(memory)
        if state:
            values[:] = np.nan
        return values, state

    def _batch(
        self, arrays: Sequence[np.ndarray], rows: int, targets: Any
    ) -> tuple[list[np.ndarray], np.ndarray]:
        made = self._kernel("scalar" if rows < self.lanes else "batch")
        plain = [np.ascontiguousarray(array) for array in arrays]
        plain = [a if a.flags.aligned else a.copy() for a in plain]
        results = [
            result_memory.empty((rows, *port.shape), self.dtype)
            if target is None
            else target
            for port, target in zip(
                self.outputs, self._direct(plain, targets), strict=True
            )
        ]
        item = self.dtype.itemsize
        strides = [
            item * port.size if array.ndim > len(port.shape) else 0
            for port, array in zip(self.inputs, arrays, strict=True)
        ]
        state = np.zeros(rows, np.int64)
        run = self._one_by_one if rows < self.lanes else self._slices
        if run(made, plain, strides, results, state):
            for result in results:
                result[state != 0] = np.nan
        return results, state

    def _one_by_one(
        self,
        made: Variant,
        arrays: Sequence[np.ndarray],
        strides: Sequence[int],
        results: Sequence[np.ndarray],
        state: np.ndarray,
    ) -> int:
        """Run fewer rows than lanes with the scalar kernel; results have the same bits.

        Inputs are contiguous; strides are bytes from row to row, 0 for a shared one.
        `results` and `state`, the status of each row, are written. The number of failed
        rows is returned; their results are not valid.
        """
        memory, scalar = made.memory(), made.call["scalar"]
        inputs = [array.ctypes.data for array in arrays]
        outputs = [array.ctypes.data for array in results]
        sizes = [self.dtype.itemsize * port.size for port in self.outputs]
        for row in range(len(state)):
            state[row] = scalar(
                pointers([x + row * by for x, by in zip(inputs, strides, strict=True)]),
                pointers([x + row * by for x, by in zip(outputs, sizes, strict=True)]),
                memory[1],
            )
        made.give_back(memory)
        return int(np.count_nonzero(state))

    def _direct(self, arrays: Sequence[np.ndarray], targets: Any) -> list[Any]:
        """Return for each output its target if results can be written there, else None.

        None: the target is not contiguous and aligned, overlaps an input or another
        target before it, or finite=True; the caller then copies the results into it.
        """
        if targets is None:
            return [None] * len(self.outputs)
        busy = list(arrays)
        direct: list[Any] = []
        for target in targets:
            flags = target.flags
            whole = flags.c_contiguous and flags.aligned and not self.finite
            free = whole and not any(np.may_share_memory(target, x) for x in busy)
            direct.append(target if free else None)
            busy.append(target)
        return direct

    def _slices(
        self,
        made: Variant,
        arrays: Sequence[np.ndarray],
        strides: Sequence[int],
        results: Sequence[np.ndarray],
        state: np.ndarray,
    ) -> int:
        """Run all rows, at least `lanes`, on several threads where that is faster.

        Arguments are as in `_one_by_one`, with `state` int64 zeros before. The number
        of failed rows is returned; those in two overlapping blocks count twice.
        """
        rows = len(state)
        inputs = pointers([array.ctypes.data for array in arrays])
        outputs = pointers([array.ctypes.data for array in results])
        steps, status = pointers(strides), state.ctypes.data
        work = rows * made.steps * STEP["batch"]
        threads = min(count(self.threads), rows // self.lanes)
        if work < _SPREAD:
            threads = 1
        kernel = made.call["batch"]
        if _far(results):
            kernel = made.call.get("streamed", kernel)
        blocks, failed = Blocks(made, self.lanes, rows, threads), [0] * threads

        def run(k: int) -> None:
            for a, b, memory in blocks():
                failed[k] += kernel(inputs, steps, outputs, status, a, b, memory)

        if threads == 1:
            run(0)
        else:
            WORKERS.run([partial(run, k) for k in range(threads)], blocks.stop)
        return sum(failed)


def _far(results: Sequence[np.ndarray]) -> bool:
    """Return whether results are probably not in the processor's cache.

    They are more than 16 MiB, or a result since the last call of this function was
    allocated in memory long unused (see result_memory.took_cold).
    """
    cold = result_memory.took_cold()
    return cold or sum(x.nbytes for x in results) > result_memory_code.FAR


def build(function: Function, **parts: Any) -> GraphProgram:
    """Return a NativeProgram; a GraphProgram where the Graph calls Programs.

    Args:
        function: Algorithm as a function of the flat inputs that returns the flat
            outputs.
        parts: Keyword arguments of Program, at least `inputs` and `outputs`.

    Raises:
        UnsupportedError: Machine code is not available on this machine, or dtype is
            float32 and the Graph calls Programs.
        TraceError: The algorithm cannot be traced.
        SettingError: DYN_NATIVE, DYN_THREADS, DYN_CACHE_LIMIT or DYN_ENTRY is invalid.
        CompileError: LLVM cannot compile the code that serves calls.
    """
    reason = host_machine.missing()
    if reason:
        raise UnsupportedError(f"engine native cannot be had: {reason}")
    sizes = flat_sizes(parts["inputs"], parts["outputs"])
    dtype = parts.get("dtype", "float64")
    name = trace_cache.key(function, f"{host_machine.machine().key} {dtype}")
    facts, graph = trace_cache.load(name), None
    if facts is None:
        graph = trace(function, sum(sizes[0]))
        facts = graph_facts(graph, sizes, kernel.lanes(np.dtype(dtype)))
        trace_cache.store(name, facts)
    if facts.calls and dtype != "float64":
        raise UnsupportedError(
            f"dtype={dtype!r} is for machine code alone, and a NumpySolver is called"
            " here; valid: 'float64', or other solvers in the slots"
        )
    if facts.calls:
        return GraphProgram(function, graph=graph, **parts)
    return NativeProgram(function, facts, graph=graph, **parts)


def flat_sizes(inputs: Sequence[Port], outputs: Sequence[Port]) -> kernel.Sizes:
    """Return (sizes of the inputs, sizes of the outputs): numbers of entries."""
    return tuple(p.size for p in inputs), tuple(p.size for p in outputs)


def graph_facts(graph: Graph, sizes: kernel.Sizes, width: int) -> GraphFacts:
    """Return GraphFacts; key and digest are empty where the Graph calls Programs."""
    if graph.calls_programs():
        return GraphFacts("", bool(graph.requirements), calls=True, graph="")
    digest = graph.digest()
    key = kernel_key(digest, sizes, width)
    return GraphFacts(key, bool(graph.requirements), False, digest.hex())
