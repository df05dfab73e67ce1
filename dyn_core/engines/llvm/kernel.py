"""Kernels: machine code of one Graph in one variant, loaded, compiled and cached.

While LLVM compiles, other threads cannot load code and the process can neither fork nor
end, since its threads would continue with an LLVM that no longer exists. So a kernel of
many functions is compiled in pieces, a few functions at a time, on at most as many
threads as a batch has.

Sizes of ports are numbers of values: a tuple of those of the inputs, and one of those
of the outputs.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.ir import Lanes, lanes_like
from dyn_core.engines.llvm.kernel_ir import KernelIR, batch_kernel, scalar_kernel
from dyn_core.engines.llvm.rows_ir import NONTEMPORAL
from dyn_core.engines.llvm.threads import LONG_TASKS
from dyn_core.sharing import Lock

PIECE = 4000  # approximate lines of a piece: a tenth of a second of compilation
_FUNCTION = re.compile(r"^define .*?^}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@[\w.]+")
VARIANTS = ("scalar", "batch")
_P, _I = ctypes.c_void_p, ctypes.c_int64
_TYPES = {
    "scalar": ctypes.CFUNCTYPE(_I, _P, _P, _P),
    "batch": ctypes.CFUNCTYPE(_I, _P, _P, _P, _P, _I, _I, _P),
    "streamed": ctypes.CFUNCTYPE(_I, _P, _P, _P, _P, _I, _I, _P),
    "blocked": ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _I, _P),
}
Sizes = tuple[tuple[int, ...], tuple[int, ...]]
_known: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
_LOADING = Lock()


def compile_pieces(ir: str) -> list[bytes]:
    """Return the object codes of a module, in the order in which they must be loaded.

    Pieces (`split`) are compiled in parallel. In `ir` callers follow what they call.
    """
    return compiler.compile_all(split(ir))


def split(ir: str) -> list[str]:
    """Return the pieces of a module as LLVM IR, each a module in the order of loading.

    A piece has whole functions, and ends when it has 4000 lines or more. Callers are in
    the same piece as the functions that they call, or in an earlier one. A call into
    another piece then refers to a symbol that is unknown when it is loaded: the loader
    inserts a jump with unlimited range. Internal functions become hidden symbols. The
    result is [ir], unchanged, if all functions fit into one piece.

    Args:
        ir: LLVM IR in which called functions come before their callers.
    """
    functions = _FUNCTION.findall(ir)
    groups: list[list[str]] = []
    lines = PIECE
    for function in reversed(functions):  # written callees first
        if lines >= PIECE:
            groups.append([])
            lines = 0
        groups[-1].append(function.replace("define internal", "define hidden", 1))
        lines += function.count("\n") + 1
    if len(groups) < 2:
        return [ir]
    head = ir[: ir.index("define ")]
    declared = {_name(line): line for line in head.splitlines() if line}
    for function in functions:
        first = function.partition("\n")[0].removesuffix(" {").removesuffix(" nounwind")
        declared[_name(first)] = re.sub("^define( internal)?", "declare hidden", first)
    return [_module(group, declared) for group in groups]


def _module(functions: list[str], declared: dict[str, str]) -> str:
    """Return a module of functions, with declarations of what they refer to.

    What they define themselves is not declared. The metadata NONTEMPORAL is added if
    they use it.
    """
    body = "\n".join(functions)
    here = {_name(function) for function in functions}
    called = {name for name in _NAME.findall(body) if name in declared} - here
    notes = [NONTEMPORAL] if "!nontemporal !0" in body else []
    return "\n".join([*(declared[name] for name in sorted(called)), body, *notes])


def _name(definition: str) -> str:
    """Return the name, with "@", of a function's definition or declaration, or ""."""
    match = _NAME.search(definition)
    return match.group() if match else ""


class Variant:
    """Callable form of a Graph for one state or for rows, see kernel_ir.py.

    `call` has the functions as ctypes, which release the GIL. `scratch` is in bytes.
    `steps` are a row's operations, those in loops once, run `rounds` times at most.
    """

    def __init__(
        self, addresses: dict[str, int], scratch: int, steps: int, rounds: int
    ) -> None:
        self.addresses = addresses
        self.scratch, self.steps, self.rounds = scratch, steps, rounds
        self.call = {name: _TYPES[name](a) for name, a in addresses.items()}
        self._free: list[tuple[Any, int]] = []

    def fill(self, memory: np.ndarray, address: int) -> None:
        """Initialise new scratch memory, which is zero; this class does nothing.

        `memory` has at least 64 bytes before `address`, that of its first byte.
        """

    def memory(self) -> tuple[Any, int]:
        """Return (owner, address) of scratch memory for one thread, 64-byte aligned.

        It has old content, or zeros after `fill`; it is valid while the owner exists.
        """
        try:
            return self._free.pop()
        except IndexError:
            memory = np.zeros(self.scratch + 128, np.uint8)
            address = memory.ctypes.data + 64
            address += -address % 64
            self.fill(memory, address)
            return memory, address

    def give_back(self, memory: tuple[Any, int]) -> None:
        """Hand scratch memory of `memory` back, for later calls; the caller is done."""
        self._free.append(memory)


class Kernel(Variant):
    """Machine code of one Graph.

    Args:
        codes: Object codes in the order of loading.
        note: Dict of "entries" (names of its functions), "scratch", "steps" and
            "rounds", the latter three as in a Variant.

    Attributes:
        size: Bytes of machine code and its constants.
        seconds: Time of compilation or loading [s], set by the caller.
        compiled: Whether this process compiled it, set by the caller; False if it was
            cached on disk.

    Raises CompileError if a code cannot be loaded.
    """

    def __init__(self, codes: Sequence[bytes], note: dict[str, Any]) -> None:
        self._loaded = compiler.Loaded(*codes)
        addresses = {name: self._loaded.address(name) for name in note["entries"]}
        super().__init__(addresses, note["scratch"], note["steps"], note["rounds"])
        self.size = sum(map(compiler.code_size, codes))
        self.seconds, self.compiled = 0.0, False


def lanes(dtype: np.dtype) -> int:
    """Return the lanes of a batch, as many as fit a vector here; Lanes for float32."""
    width = host_machine.machine().width
    return Lanes(2 * width) if dtype == np.float32 else width


def write(graph: Graph, sizes: Sizes, variant: str, width: int) -> KernelIR:
    """Return the LLVM IR of a kernel.

    Args:
        graph: Graph without calls of Programs.
        sizes: Sizes of the input and output ports.
        variant: scalar or batch.
        width: Lanes of a batch, from `lanes`; their type is that of the numbers in both
            variants.

    Raises:
        ValueError: An operation has no machine form.
    """
    host = host_machine.machine()
    if variant == "scalar":
        one = lanes_like(width, 1)
        return scalar_kernel(graph, *sizes, host.fused, host.pack, host.width, one)
    return batch_kernel(graph, *sizes, host.fused, width)


def get(
    variant: str,
    name: str,
    graph: Callable[[], Graph],
    sizes: Sizes,
    width: int,
    what: str,
) -> Kernel:
    """Return a kernel from memory or disk; else compile it and store it in both.

    A damaged one on disk counts as none.

    Args:
        variant: scalar or batch.
        name: Key of the kernel, from kernel_key.
        graph: Returns the Graph; called only to compile.
        sizes: Sizes of the input and output ports.
        width: Lanes of a batch, from `lanes`; their type is that of the numbers in both
            variants.
        what: Solver and robot, for the progress report.

    Raises:
        CompileError: LLVM failed, or the code on disk cannot be loaded.
        SettingError: DYN_THREADS or DYN_CACHE_LIMIT is invalid, if it is compiled.
        ValueError: An operation has no machine form. Errors of `graph` pass through.
    """
    kernel = at_hand(variant, name)
    if kernel is None:
        with compiler.progress(f"compiling {what}") as expect:
            task = partial(_make, variant, name, graph(), sizes, width, expect)
            kernel = LONG_TASKS.result(f"{variant}-{name}", task)
    return kernel


def later(
    variant: str,
    name: str,
    graph: Graph,
    sizes: Sizes,
    width: int,
    then: Callable[[Any], None],
) -> None:
    """Make a kernel in the background, and store it in memory and on disk.

    Where no thread can be started, it is made here. One that is in memory or on disk by
    then is not compiled again. `then` is called after the end with the job, on the
    thread that made the kernel: its `result` is the kernel if its `error` is None.
    """
    task = partial(_make, variant, name, graph, sizes, width)
    LONG_TASKS.later(f"{variant}-{name}", task, then)


def at_hand(variant: str, name: str) -> Kernel | None:
    """Return a kernel from memory or disk; None if there is none, or a damaged one.

    One from disk stays in memory while anything refers to it. CompileError: not loaded.
    """
    full = f"{variant}-{name}"
    with _LOADING:
        kernel = _known.get(full)
        return _from_disk(full) if kernel is None else kernel


def _from_disk(full: str) -> Kernel | None:
    """Return a kernel, VARIANT-KEY, from disk, stored in memory too, or None.

    A damaged one counts as none. Its attribute `seconds` is the time of loading. The
    caller holds _LOADING.
    """
    start = perf_counter()
    entry = kernel_cache.load(full)
    if entry is None:
        return None
    note, together = entry
    ends = list(accumulate(note["pieces"]))
    codes = [together[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    kernel = _known[full] = Kernel(codes, note)
    kernel.seconds = perf_counter() - start
    return kernel


def _make(
    variant: str,
    name: str,
    graph: Graph,
    sizes: Sizes,
    width: int,
    expect: Callable[[int], None] = lambda steps: None,
) -> Kernel:
    """Return a kernel, compiled unless another thread has made it meanwhile.

    It is stored in memory and on disk. `expect` is called with the number of steps
    before compilation, if it is compiled.
    """
    full, start = f"{variant}-{name}", perf_counter()
    ready = at_hand(variant, name)  # another thread may have ended meanwhile
    if ready is not None:
        return ready
    written = write(graph, sizes, variant, width)
    expect(written.steps)
    codes = compile_pieces(written.ir)
    note = {
        "entries": written.entries,
        "scratch": written.scratch,
        "steps": written.steps,
        "rounds": most_rounds(graph),
        "pieces": [len(code) for code in codes],
    }
    kernel_cache.store(full, note, b"".join(codes))
    kernel = _known[full] = Kernel(codes, note)
    kernel.seconds, kernel.compiled = perf_counter() - start, True
    return kernel


def most_rounds(graph: Graph) -> int:
    """Return the most executions of an operation in nested loops; 1 without loops."""
    loops = [node.data for node in graph.nodes if node.op == "loop"]
    return max((x.max * most_rounds(x.body) for x in loops), default=1)


def forget() -> None:
    """Remove all kernels from memory; Programs that have theirs continue to use it."""
    _known.clear()


def pointers(addresses: Sequence[int]) -> Any:
    """Return a ctypes table of addresses."""
    return (_P * len(addresses))(*addresses)


def offsets(sizes: Sequence[int], item: int) -> list[int]:
    """Return the offset of each port [bytes], for ports without gaps in memory.

    Args:
        sizes: Numbers of values of the ports.
        item: Bytes of a value.
    """
    end, starts = 0, []
    for size in sizes:
        starts.append(end)
        end += item * size
    return starts
