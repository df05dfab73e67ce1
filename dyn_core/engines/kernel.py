"""Kernels: the machine code of one Graph in one flavour, found, made and kept."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dyn_core.engines import cache, native
from dyn_core.engines.graph import Graph
from dyn_core.engines.lanes import Code, lane_code, scalar_code

FLAVOURS = ("scalar", "lanes")
_P, _I = ctypes.c_void_p, ctypes.c_int64
_TYPES = {
    "scalar": ctypes.CFUNCTYPE(_I, _P, _P, _P),
    "lanes": ctypes.CFUNCTYPE(_I, _P, _P, _P, _P, _I, _I, _P),
    "blocked": ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _I, _P),
}
Sizes = tuple[tuple[int, ...], tuple[int, ...]]


class Kernel:
    """Machine code in memory.

    Attributes:
        addresses: Of its functions.
        call: Its functions, called without the GIL.
        scratch: Bytes of scratch memory a call needs.
        steps: Operations a row takes.
        size: Bytes of object code.
        seconds: What it took to compile or load it.
        compiled: Whether it was compiled now, not found on disk.
    """

    def __init__(self, code: bytes, note: dict[str, Any]) -> None:
        self._loaded = native.Loaded(code)
        self.scratch, self.steps = note["scratch"], note["steps"]
        self.size, self.seconds, self.compiled = len(code), 0.0, False
        names = note["entries"]
        self.addresses = {name: self._loaded.address(name) for name in names}
        self.call = {name: _TYPES[name](a) for name, a in self.addresses.items()}
        self._free: list[tuple[Any, int]] = []

    def memory(self) -> tuple[Any, int]:
        """Take scratch memory for one thread: its owner and its address."""
        try:
            return self._free.pop()
        except IndexError:
            memory = np.zeros(self.scratch + 64, np.uint8)
            address = memory.ctypes.data
            return memory, address + -address % 64

    def give_back(self, memory: tuple[Any, int]) -> None:
        """Take scratch memory back."""
        self._free.append(memory)


_known: WeakValueDictionary[str, Kernel] = WeakValueDictionary()


def key(graph: Graph, sizes: Sizes) -> str:
    """Give the digest of a Graph, its ports, and all that the code depends on."""
    digest = hashlib.sha256(graph.digest())
    digest.update(repr(sizes).encode())
    digest.update(native.machine().key.encode())
    return digest.hexdigest()


def write(graph: Graph, sizes: Sizes, flavour: str) -> Code:
    """Give the LLVM text of a kernel: flavour is scalar or lanes."""
    host = native.machine()
    if flavour == "scalar":
        return scalar_code(graph, *sizes, host.fused, host.pack)
    return lane_code(graph, *sizes, host.fused, host.width)


def get(
    flavour: str, name: str, graph: Callable[[], Graph], sizes: Sizes, what: str
) -> Kernel:
    """Give a kernel: one in memory, from the disk, or compiled now.

    Args:
        flavour: scalar or lanes.
        name: Key of the Graph.
        graph: Gives the Graph, where it is needed.
        sizes: Sizes of the input and output ports.
        what: Words for people who wait.
    """
    full = f"{flavour}-{name}"
    kernel = _known.get(full)
    if kernel is not None:
        return kernel
    begun = perf_counter()
    found = cache.load(full)
    if found is None:
        with native.progress(f"compiling {what}"):
            written = write(graph(), sizes, flavour)
            code = native.compile_text(written.text)
        note = {
            "entries": written.entries,
            "scratch": written.scratch,
            "steps": written.steps,
        }
        cache.store(full, note, code)
    else:
        note, code = found
    kernel = _known[full] = Kernel(code, note)
    kernel.seconds, kernel.compiled = perf_counter() - begun, found is None
    return kernel


def forget() -> None:
    """Let the next builds find kernels on disk or make them."""
    _known.clear()


def pointers(addresses: Sequence[int]) -> Any:
    """Give a table of pointers."""
    return (_P * len(addresses))(*addresses)


def offsets(sizes: Sequence[int]) -> list[int]:
    """Give the bytes from the first of some ports to each, one behind the other."""
    at, found = 0, []
    for size in sizes:
        found.append(at)
        at += 8 * size
    return found
