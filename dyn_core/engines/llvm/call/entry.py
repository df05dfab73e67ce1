"""Calls from Python directly into kernels: a C-level callable, compiled by LLVM.

python_to_llvm.py explains its purpose and method. Program objects are instances of a
type whose vectorcall is `entry` of entry_code.py; the data for calls of one Program is
its Descriptor. There are two forms of one source: `struct` reads NumPy's array struct,
after a check of its layout; `buffer` uses the stable buffer protocol. DYN_ENTRY=python
calls Program.__call__ instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sysconfig
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.call import entry_code, python_to_llvm, result_memory
from dyn_core.engines.llvm.kernel import Variant
from dyn_core.errors import SettingError
from dyn_core.sharing import once

VARIABLE = "DYN_ENTRY"  # environment variable: struct, buffer or python
MODES = ("struct", "buffer", "python")
_CALLED = (
    "PyBuffer_Release", "PyErr_Clear", "PyEval_RestoreThread", "PyEval_SaveThread",
    "PyFloat_FromDouble", "PyObject_GetBuffer", "PyType_GenericAlloc", "Py_DecRef",
    "Py_IncRef",
)  # fmt: skip


class Descriptor:
    """Data of a Program for the entry: a table in memory, and the objects it refers to.

    `descriptor[name] = value` sets a field; its name may be in lower case. `table` has
    a word of 8 bytes for each of entry_code.FIELDS, zeros at first; `served` by field a
    list of (scratch memory in use, its machine code).
    """

    def __init__(self) -> None:
        self.table = (ctypes.c_int64 * len(entry_code.FIELDS))()
        self.kept: list[Any] = []
        self.served: dict[str, list[Any]] = {}

    def __setitem__(self, name: str, value: int) -> None:
        self.table[entry_code.FIELDS.index(name.upper())] = value

    def ports(self, name: str, shapes: Sequence[tuple[int, ...]]) -> None:
        """Set the field `name` to the address of a table of ports with these shapes.

        A port has six words of 8 bytes: number of axes, number of entries, and the
        shape, with zeros behind it. More than four axes, unchecked, shift the next one.
        """
        rows = []
        for shape in shapes:
            dims = [*shape, *[0] * (entry_code.MAX_AXES - len(shape))]
            rows += [len(shape), int(np.prod(shape)), *dims]
        table = (ctypes.c_int64 * len(rows))(*rows)
        self.kept.append(table)
        self[name] = ctypes.addressof(table)

    def buffer(self, name: str, size: int) -> int:
        """Set the field `name` to the address of new memory, and return the address.

        It is `size` bytes of zeros, 64-byte aligned, and lives as long as this object.
        """
        memory = np.zeros(size + 64, np.uint8)
        self.kept.append(memory)
        address = memory.ctypes.data
        address += -address % 64
        self[name] = address
        return address

    def scratch(self, name: str, made: Variant) -> None:
        """Set the field `name` to scratch memory of machine code; both are kept alive.

        Memory set before is no longer kept; while a batch is running in another thread,
        it is kept until a later call.
        """
        # A batch in another thread may use the old memory: then it is kept as well.
        busy = self.table[entry_code.FIELDS.index("BUSY")]
        before = self.served.get(name, []) if busy else []
        memory = made.memory()
        self.served[name] = [*before, (memory, made)]
        self[name] = memory[1]


def mode() -> str:
    """Return the form of the entry on this interpreter: struct, buffer or python.

    DYN_ENTRY asks for one, by default struct. It is python where the interpreter is not
    CPython with a GIL and 64 bits or lacks a function that the entry calls, and buffer
    where NumPy's struct is not as expected.

    Raises:
        SettingError: DYN_ENTRY has an invalid value.
    """
    asked = os.environ.get(VARIABLE) or "struct"
    if asked not in MODES:
        valid = ", ".join(MODES)
        raise SettingError(f"{VARIABLE} '{asked}'; valid: {valid}", VARIABLE)
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if platform.python_implementation() != "CPython" or free_threaded:
        return "python"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or asked == "python":
        return "python"
    if not all(hasattr(ctypes.pythonapi, name) for name in _CALLED):
        return "python"
    return "struct" if asked == "struct" and arrays_lie_as_expected() else "buffer"


@once
def arrays_lie_as_expected() -> bool:
    """Return whether NumPy's array struct has the layout `struct` reads; cached."""
    if np.ndarray.__basicsize__ < max(entry_code.FLAGS, entry_code.KIND) + 8:
        return False
    plain, locked = np.zeros((3, 5)), np.zeros((2, 3, 4))[:, ::2]
    locked.flags.writeable = False
    for array in (plain, locked, np.zeros(7), np.zeros(4, np.float32)):
        base = id(array)

        def read(place: int, what: Any, base: int = base) -> Any:
            return what.from_address(base + place).value

        if read(entry_code.DATA, ctypes.c_int64) != array.ctypes.data:
            return False
        if read(entry_code.ND, ctypes.c_int32) != array.ndim:
            return False
        dims = _safely_read(read(entry_code.DIMS, ctypes.c_int64), 8 * array.ndim)
        if dims != np.array(array.shape, np.int64).tobytes():
            return False
        if read(entry_code.KIND, ctypes.c_int64) != id(array.dtype):
            return False
        flags = read(entry_code.FLAGS, ctypes.c_int32)
        whole = flags & entry_code.WHOLE == entry_code.WHOLE
        if whole != array.flags.c_contiguous:
            return False
        if bool(flags & entry_code.WRITEABLE) != array.flags.writeable:
            return False
    return id(np.dtype(np.float64)) == id(np.zeros(1).dtype)


def _safely_read(address: int, size: int) -> bytes | None:
    """Return `size` bytes at an address, or None if it is invalid.

    The operating system copies the bytes through a pipe, and refuses invalid addresses.
    `size` must be at most what a pipe holds, or the call waits for ever.
    """
    there, here = os.pipe()
    try:
        os.write(here, (ctypes.c_char * size).from_address(address))
        return os.read(there, size)
    except (OSError, ValueError):
        return None
    finally:
        os.close(there)
        os.close(here)


@once
def _loaded(how: str, place: int, single: bool) -> compiler.Loaded:
    """Return the entry's machine code, compiled or from the cache.

    `how` is struct or buffer; `place` is the offset in a Program object of the
    Descriptor's address [bytes]; `single` says whether arrays are float32.
    """
    digest = hashlib.sha256(
        f"{how} {place} {single} {host_machine.machine().key}".encode()
    )
    key = f"entry-{digest.hexdigest()}"
    entry = kernel_cache.load(key)
    if entry is not None:
        return compiler.Loaded(entry[1])
    constants = entry_code.FOR_SINGLE if single else {}
    ir = python_to_llvm.translate(
        entry_code, "entry", array=f"array_{how}", PLACE=place, **constants
    )
    code = compiler.compile_ir(ir, passes=2)
    kernel_cache.store(key, {}, code)
    return compiler.Loaded(code)


@once
def fast_type(base: Any, how: str) -> tuple[type, int]:
    """Return a type whose calls go to the entry, and the offset of its fields [bytes].

    The two fields are 8 bytes each: the address of the entry, then of the Descriptor.
    `connect` sets them in an object, which must not be called before. Equal arguments
    give the same type. `how` is struct or buffer: each has a type of its own.
    """
    offset = base.__basicsize__

    class Member(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p), ("type", ctypes.c_int),
            ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int),
            ("doc", ctypes.c_char_p),
        ]  # fmt: skip

    class Slot(ctypes.Structure):
        _fields_ = [("slot", ctypes.c_int), ("value", ctypes.c_void_p)]

    class Spec(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int),
            ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(Slot)),
        ]  # fmt: skip

    members = (Member * 2)(Member(b"__vectorcalloffset__", 19, offset, 1, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = (Slot * 3)(
        Slot(72, ctypes.addressof(members)),  # Py_tp_members
        Slot(50, call),  # Py_tp_call
    )
    name = f"{base.__module__}.{base.__qualname__}".encode()
    flags = 1 << 18 | 1 << 11  # Py_TPFLAGS_DEFAULT, Py_TPFLAGS_HAVE_VECTORCALL
    spec = Spec(name, offset + 16, 0, flags, slots)
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    made = make(ctypes.addressof(spec), (base,))
    made.__doc__ = base.__dict__["__doc__"]  # of objects, too; see InstanceDoc
    _KEPT.append((members, slots, spec, name))
    return made, offset


_KEPT: list[Any] = []


def connect(
    program: Any, offset: int, descriptor: Descriptor, how: str, single: bool
) -> None:
    """Let calls of a Program object go to the entry, which is compiled if necessary.

    Args:
        program: Instance of a `fast_type`.
        offset: Offset of the type's fields [bytes].
        descriptor: Data of the Program, which must live as long as the object; keeps
            the machine code alive.
        how: struct or buffer.
        single: Whether arrays are float32.

    Raises:
        CompileError: LLVM failed.
        SettingError: DYN_CACHE_LIMIT is invalid.
    """
    base = id(program) + offset
    table = ctypes.addressof(descriptor.table)
    ctypes.c_int64.from_address(base + 8).value = table
    code = _loaded(how, offset + 8, single)
    descriptor.kept.append(code)
    ctypes.c_int64.from_address(base).value = code.address("entry")


def _vectorcall() -> Any:
    """Return CPython's function, of ctypes.pythonapi, that calls a Python function.

    It is PyObject_Vectorcall; before 3.11, where that is inline,
    _PyFunction_Vectorcall.
    """
    api = ctypes.pythonapi
    if hasattr(api, "PyObject_Vectorcall"):
        return api.PyObject_Vectorcall
    return api._PyFunction_Vectorcall


@once
def constants(single: bool = False) -> dict[str, int]:
    """Return the addresses of objects and functions that the entry uses, by field.

    An address is 0 where there is none. Equal arguments give the same dict. `single`:
    arrays are float32, and Python floats are left to Python.
    """
    owner = result_memory.memory()
    return {
        "call": int(ctypes.cast(_vectorcall(), ctypes.c_void_p).value or 0),
        "array_type": id(np.ndarray),
        "float_type": 0 if single else id(float),  # a number is converted by Python
        "number_type": 0 if single else id(np.float64),  # same memory layout as float
        "descr": id(np.dtype(np.float32 if single else np.float64)),
        "tuple_type": id(tuple),
        "out_name": id(_OUT),
        "new_array": int(result_memory.numpy_functions(94)[93] or 0),  # PyArray_New
        "memory": owner.table if owner else 0,
        "handler": owner.handler if owner else 0,
        "set_handler": owner.set_handler if owner else 0,
    }


_OUT = next(iter({"out": 0}))  # the interned string of the keyword
