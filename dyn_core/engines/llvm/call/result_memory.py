"""Memory of large results: huge pages, reused when the arrays in them are freed.

A page of 4 KiB costs up to 2 us when it is first written, more than the computation of
its content, and results that a caller stores are each written into new pages. Results
of at least LARGE bytes therefore use the memory of result_memory_code.py, by NumPy's
allocator interface (NEP 49): they own their data like any array, and may be resized.
Unused memory is reused for later results, up to 128 MiB, and returned to the system
above. A slab (16 MiB) exists as long as a result in it. A forked process has a copy of
all of it, as of any memory.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import sys
from typing import Any

import numpy as np

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.call import python_to_llvm, result_memory_code
from dyn_core.sharing import once

_FUNCTIONS = ("take", "take_zeroed", "resize", "give")  # malloc, calloc, realloc, free
_TRIM = "trim"
_SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's table of functions


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler with its allocator."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p), ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]  # fmt: skip


class ResultMemory:
    """The memory of large results, by the machine code of result_memory_code.py.

    `table` is the address of its counts, `handler` of the capsule for `set_handler`.
    """

    def __init__(self, functions: compiler.Loaded, set_handler: int) -> None:
        self._counts = (ctypes.c_int64 * (result_memory_code.TABLE // 8))()
        self.table, self.set_handler = ctypes.addressof(self._counts), set_handler
        addresses = [functions.address(name) for name in _FUNCTIONS]
        self._struct = _Handler(b"dyn results", 1, self.table, *addresses)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._name = b"mem_handler"
        self._capsule = capsule(ctypes.addressof(self._struct), self._name, None)
        self.handler = id(self._capsule)
        exchange = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
        self._exchange = exchange(set_handler)
        self._kept = functions
        self._trim = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
            functions.address(_TRIM)
        )

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return a new array in this memory, not initialised, as np.empty."""
        before = self._exchange(self._capsule)
        try:
            return np.empty(shape, dtype)
        finally:
            self._exchange(before)

    def took_cold(self) -> bool:
        """Return whether a result was allocated in memory not in the processor's cache.

        Only allocations since the last call count, and since the entry last began to
        create results.
        """
        place = result_memory_code.COLD // 8
        cold, self._counts[place] = bool(self._counts[place]), 0
        return cold

    def trim(self) -> None:
        """Release all unused slabs to the system; existing arrays are not affected."""
        self._trim(self.table)

    def count(self, field: int) -> int:
        """Return the 8-byte field of the table at a byte offset, such as IDLE."""
        return self._counts[field // 8]


@once
def memory() -> ResultMemory | None:
    """Return the memory of large results; None without Linux or machine code.

    It is created at the first call, and never released.

    Raises:
        CompileError: LLVM failed.
        SettingError: An environment variable is invalid, see host_machine.missing.
    """
    if sys.platform != "linux" or host_machine.missing():
        return None
    made = ResultMemory(_loaded(), numpy_functions(_SET_HANDLER + 1)[_SET_HANDLER])
    # Arrays may outlive all modules and call the handler when freed: it is kept for
    # ever.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made


def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Return a new array of a shape and dtype for a result, not initialised.

    One of at least LARGE bytes (64 KiB) is in result memory, where that is available.

    Raises:
        CompileError, SettingError: LLVM failed, or an environment variable is
            invalid; only at the first use of the memory.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    owner = memory() if size >= result_memory_code.LARGE else None
    return np.empty(shape, dtype) if owner is None else owner.empty(shape, dtype)


def trim() -> None:
    """Release all unused slabs of result memory to the system; nothing without it."""
    owner = memory()
    if owner is not None:
        owner.trim()


def took_cold() -> bool:
    """Return ResultMemory.took_cold(); False without result memory."""
    owner = memory()
    return owner is not None and owner.took_cold()


def numpy_functions(count: int) -> Any:
    """Return the first `count` addresses of NumPy's C API table, not a copy."""
    try:
        from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return (ctypes.c_void_p * count).from_address(pointer(umath._ARRAY_API, None))


def _loaded() -> compiler.Loaded:
    """Return the machine code, compiled or from the cache."""
    digest = hashlib.sha256(f"results {host_machine.machine().key}".encode())
    key = f"entry-{digest.hexdigest()}"
    entry = kernel_cache.load(key)
    if entry is not None:
        return compiler.Loaded(entry[1])
    ir = python_to_llvm.translate(result_memory_code, " ".join((*_FUNCTIONS, _TRIM)))
    code = compiler.compile_ir(ir, passes=2)
    kernel_cache.store(key, {}, code)
    return compiler.Loaded(code)
