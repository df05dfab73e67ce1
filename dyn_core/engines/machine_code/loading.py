"""Functions of the subset as machine code: translated, compiled, cached, and called.

A function and all functions that it calls are cached on disk as one entry. Each large
one among them is a module of LLVM of its own: modules are compiled side by side, and
once for all functions that call them. `bind` creates a table once: addresses and
dimensions of arrays, and numbers in records. A call passes its address, and the other
numbers as C arguments. Where machine code is not available, the Python function is
called.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.cached.fingerprint import of_code
from dyn_core.engines.llvm.threads import LONG_TASKS
from dyn_core.engines.machine_code.call_arguments import number, refuse_overlap, table
from dyn_core.engines.machine_code.kernels import KernelAddress
from dyn_core.engines.machine_code.language import is_marked, python_of
from dyn_core.engines.machine_code.statements import Place
from dyn_core.engines.machine_code.translation import contents, translate
from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    NumberType,
    TupleType,
    of_function,
)
from dyn_core.errors import ShapeError, TraceError
from dyn_core.sharing import Lock, once

_WRITERS = ("dyn_core.engines.machine_code",)  # packages that determine the code
_C_TYPES: dict[NumberType, Any] = {
    INT: ctypes.c_int64,
    FLOAT: ctypes.c_double,
    BOOL: ctypes.c_bool,
}
_STATUS = ctypes.c_int64 * 3


def compiled(
    function: Callable[..., Any], checked: bool = False, lanes: int = 0
) -> CompiledFunction:
    """Return a function of the subset as machine code, with the same bits.

    Nothing is compiled yet: that happens at the first use, with all functions that it
    calls, or the code is loaded from disk. Equal arguments return the same object.
    Where machine code is off, the Python function is called.

    Args:
        function: Function marked by `machine_code`.
        checked: Whether each index and divisor is checked in machine code, for tests:
            IndexError and ZeroDivisionError name function and line.
        lanes: Number of states computed at once, see lanes.py; 0: one. With lanes the
            function is called by `tied` only, and must take only arrays and records and
            return an int, which is not checked.

    Raises:
        TraceError: The function is not marked, or its signature is not in the subset.
            Other constructs outside of the subset are refused at the first use.
            Messages name file, line and valid alternatives.
    """
    if not is_marked(function):
        name = getattr(function, "__qualname__", repr(function))
        raise TraceError(f"{name} is not marked; valid: @machine_code before `def`")
    return _compiled(python_of(function), checked, lanes)


@once
def _compiled(
    function: Callable[..., Any], checked: bool, lanes: int
) -> CompiledFunction:
    """Return the CompiledFunction, one for each combination of arguments.

    `checked`: indices and divisors are checked; `lanes`: states at once, 0: one.
    """
    return CompiledFunction(function, checked, lanes)


class CompiledFunction:
    """A function of the subset as machine code.

    It is called like the function, with positional arguments, and then converts its
    arguments each time; the result of `bind` does not. The GIL is released while it
    runs. Division by zero and roots of negative numbers give inf and nan. Where machine
    code is off, the Python function runs.

    Attributes:
        function, name: Python function and its qualified name.
        signature: Types of arguments and result.
        lanes: Number of states computed at once; 0: one. Else only `tied` is valid.
        fresh: Whether this process compiled it; False if it was cached on disk, or not
            yet compiled.

    Raises TraceError if the signature is not in the subset, see of_function.
    """

    def __init__(
        self, function: Callable[..., Any], checked: bool, lanes: int = 0
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = function.__qualname__
        self.function, self.signature = function, of_function(function)
        self._names = [name for name, _ in self.signature.parameters]
        self._bound = [
            (name, kind)
            for name, kind in self.signature.parameters
            if not isinstance(kind, NumberType)
        ]
        self._checked, self.lanes, self.fresh = checked, lanes, False
        self._loaded: compiler.Loaded | None = None
        self._address = 0
        self._places: list[Place] = []
        self._lock = Lock()

    @property
    def native(self) -> bool:
        """Whether machine code runs; False: the Python function runs instead.

        Raises:
            SettingError: DYN_NATIVE, DYN_THREADS or DYN_CACHE_LIMIT has an invalid
                value.
        """
        return not host_machine.missing()

    def prepare(self) -> CompiledFunction:
        """Compile now instead of at the first use; return this object.

        Nothing happens if it is compiled already, or where machine code is off.

        Raises:
            TraceError: The code is not in the subset, see `translate`.
            CompileError: LLVM failed.
            SettingError: An environment variable is invalid, see `native`.
        """
        with self._lock:  # code that another thread runs must not be loaded anew
            if self.native and self._loaded is None:
                self._places, codes = self._codes()
                loaded = compiler.Loaded(*codes)
                self._address = loaded.address("entry")
                self._loaded = loaded
        return self

    @property
    def loaded(self) -> bool:
        """Whether the machine code is loaded, so that a call waits for no compiler.

        Code on disk is not; nothing is loaded here. False where machine code is off.
        """
        return self._loaded is not None

    def prepare_later(self) -> None:
        """Begin to compile in the background; return at once.

        Where no thread can be started, it is compiled here. Nothing is raised.

        The first use waits for the end; after a failure it compiles anew, and raises.
        """
        if self._loaded is None:
            LONG_TASKS.later(f"function {id(self)}", self.prepare, lambda job: None)

    def _codes(self) -> tuple[list[Place], list[bytes]]:
        """Return places of failures and object codes, callers first.

        They are loaded from disk, or compiled now and stored there; then `fresh`
        becomes True.
        """
        key = _key((self._checked, self.lanes, contents(self.function)))
        entry = kernel_cache.load(key)
        if entry is not None:
            ends = list(accumulate(entry[0]["sizes"], initial=0))
            return entry[0]["places"], [entry[1][a:b] for a, b in pairwise(ends)]
        with compiler.progress(f"compiling {self.name}, once for this machine"):
            irs, places = translate(self.function, self._checked, self.lanes)
            # The checked form runs a few times: optimising it would take longer. Level
            # 2 takes a quarter more time than 1, and a plan is 2 % faster, contacts are
            # not.
            codes = _compile(irs, passes=0 if self._checked else 1)
        note = {"places": places, "sizes": list(map(len, codes))}
        kernel_cache.store(key, note, b"".join(codes))
        self.fresh = True
        return places, codes

    def __call__(self, *arguments: Any) -> Any:
        """Return the result for all arguments, in the order of the function.

        Arrays are changed in place. Not valid with lanes.

        Raises:
            ShapeError: A wrong number of arguments; an argument of a wrong type, dtype,
                number of axes or layout; a read-only array; an int exceeds 64 bits; or
                int and float arrays share memory.
            OverflowError: An int is too large for a float.
            SettingError: An environment variable is invalid, see `native`.
            TraceError, CompileError: At the first use: a construct is not in the
                subset, or LLVM failed.
            IndexError, ZeroDivisionError: In the checked form. Where machine code is
                off, also any other error of the Python function.
        """
        if len(arguments) != len(self._names):
            wanted = f"{len(self._names)} arguments ({', '.join(self._names)})"
            raise ShapeError(self.name, wanted, str(len(arguments)))
        numbers, others = [], []
        for (name, kind), value in zip(
            self.signature.parameters, arguments, strict=True
        ):
            if isinstance(kind, NumberType):
                numbers.append(number(kind, value, name))
            else:
                others.append(value)
        return self.bind(*others)(*numbers)

    def bind(self, *arguments: Any) -> Callable[..., Any]:
        """Return a function of the numbers alone, bound to these arrays and records.

        The arrays are referenced, not copied: their numbers may change between calls;
        their sizes and the fields of records may not. The returned function takes all
        numbers as positional arguments, in order. It does not check them as __call__
        does: ctypes raises ArgumentError for a wrong type, TypeError for a missing
        number, and truncates ints to 64 bits. In the checked form it raises IndexError
        and ZeroDivisionError. Where machine code is off, it calls the Python function
        and raises its errors; surplus numbers are ignored, and a missing one raises
        RuntimeError. Not valid with lanes.

        Args:
            arguments: All arguments that are not numbers, in order.

        Raises:
            ShapeError: The number of arguments is wrong; an argument has another type,
                dtype, number of axes or layout; an array is read-only; an int in a
                record exceeds 64 bits; or int and float arrays share memory.
            OverflowError: An int in a record is too large for a float.
            SettingError: An environment variable is invalid, see `native`.
            TraceError, CompileError: At the first use: a construct is not in the
                subset, or LLVM failed.
        """
        content, arrays = self._content(arguments)
        if not self.native:
            return self._in_python(arguments)
        self.prepare()
        memory = ctypes.create_string_buffer(content)
        return self._connect(memory, (arguments, arrays))

    def _content(self, arguments: tuple[Any, ...]) -> tuple[bytes, list[Any]]:
        """Pack arrays and records into a table; return it and the arrays to keep alive.

        The table has address and dimensions of each array, and the numbers in records;
        without arguments it is b"0". Arguments are all but the numbers, in order.
        """
        if len(arguments) != len(self._bound):
            names = ", ".join(name for name, _ in self._bound)
            wanted = f"{len(self._bound)} arrays and records ({names})"
            raise ShapeError(self.name, wanted, str(len(arguments)))
        content, arrays = [], []
        for (name, kind), value in zip(self._bound, arguments, strict=True):
            for part, array in table(kind, value, f"{self.name}: {name}", self.lanes):
                content.append(part)
                arrays += array
        refuse_overlap(arrays, self.name)
        return b"".join(content) or b"0", arrays

    def tied(self, *arguments: Any) -> TiedFunction:
        """Return the function with lanes, bound to arrays and records, as a kernel.

        This function must have lanes and not be checked, which is not tested.

        Args:
            arguments: All arrays and records, in order; float arrays have the lanes as
                last axis. They are referenced, not copied.

        Returns:
            A function without Python form: where machine code is off, the address in
            its `kernel` is 0.

        Raises:
            ShapeError: The number of arguments is wrong; an argument has another type,
                dtype, number of axes or lanes, or layout; an array is read-only; an int
                in a record exceeds 64 bits; or int and float arrays share memory.
            OverflowError: An int in a record is too large for a float.
            SettingError: An environment variable is invalid, see `native`.
            TraceError, CompileError: At the first use: a construct is not in the
                subset, or LLVM failed.
        """
        content, arrays = self._content(arguments)
        self.prepare()
        return TiedFunction(self, self._address, content, arrays)

    def _connect(self, memory: Any, kept: Any) -> Callable[..., Any]:
        """Return a function of the numbers that calls the machine code.

        It takes the arguments that are numbers, in order, and returns a number, a tuple
        or None. The machine code must be loaded. The numbers are passed as C arguments,
        behind the address of the table (`memory`), which no call changes. `kept` lives
        as long as the function. The checked form raises the failure, see _with_status.
        """
        kinds = [kind for _, kind in self.signature.parameters]
        numbers = [_C_TYPES[kind] for kind in kinds if isinstance(kind, NumberType)]
        result, several = self.signature.result, None
        restype: Any = None
        if isinstance(result, NumberType):
            restype = _C_TYPES[result]
        elif isinstance(result, TupleType) and result.items:
            several = struct.Struct("=" + "".join(item.letter for item in result.items))
        pointers = [ctypes.c_void_p] * (1 + bool(several) + self._checked)
        make = ctypes.CFUNCTYPE(restype, *pointers, *numbers)
        call: Any = partial(make(self._address), ctypes.c_void_p(_address(memory)))
        call.kept = (memory, kept, self)
        if several is not None:
            call = _with_results(call, several)
        return self._with_status(call) if self._checked else call

    def _with_status(self, call: Callable[..., Any]) -> Any:
        """Return a call of the checked form that raises the failure it reports.

        `call` takes the status buffer first, then the numbers.
        """

        def checked(*numbers: Any) -> Any:
            status = _STATUS()
            result = call(status, *numbers)
            if status[0]:
                what, name, line = self._places[status[0] - 1]
                where = f"{self.function.__code__.co_filename}: {name}, line {line}"
                if "division" in what:
                    raise ZeroDivisionError(f"{where}: {what}")
                valid = (
                    f"0 to {status[2] - 1}" if status[2] else "none, the array is empty"
                )
                raise IndexError(f"{where}: {what} {status[1]}; valid: {valid}")
            return result

        return checked

    def _in_python(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return a function of the numbers that calls the Python function.

        It takes the arguments that are numbers, in order; the others are fixed. Numbers
        are neither converted nor counted: surplus ones are ignored, and RuntimeError is
        raised if one is missing.
        """

        def call(*numbers: Any) -> Any:
            others, rest = iter(arguments), iter(numbers)
            kinds = (kind for _, kind in self.signature.parameters)
            return self.function(
                *(next(rest if isinstance(k, NumberType) else others) for k in kinds)
            )

        return call


class TiedFunction:
    """A function with lanes, bound to arrays.

    `alive` is one int64, (1,), with bit k for lane k: before a call set by the caller
    to the wanted lanes; after it the lanes with valid results. `kernel` is an address
    for run_kernel, valid while this object exists, 0 where machine code is off.
    """

    def __init__(
        self, function: Any, address: int, content: bytes, arrays: list[Any]
    ) -> None:
        memory, self.alive = ctypes.create_string_buffer(content), np.zeros(1, np.int64)
        self._kept = function, memory, arrays
        self.kernel = KernelAddress(
            address, _address(memory), self.alive.ctypes.data, 0
        )
        self._wanted = 2**function.lanes - 1
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
        self._call = partial(kind(address), *self.kernel[1:])

    def __call__(self) -> int:
        """Run the function in all lanes; return its result.

        `alive` is set to all lanes before, and says afterwards which lanes have valid
        results. Must not be called where machine code is off: there the process ends.
        """
        self.alive[0] = self._wanted
        return int(self._call())


def _with_results(call: Any, layout: struct.Struct) -> Callable[..., Any]:
    """Return a call of the other arguments that returns the results as a tuple.

    `call` takes memory for the results first, whose format is `layout`.
    """
    memory = ctypes.c_char * layout.size

    def several(*numbers: Any) -> Any:
        results = memory()
        call(results, *numbers)
        return layout.unpack(results)

    return several


def _address(memory: Any) -> int:
    return ctypes.addressof(memory)


def _key(content: Any) -> str:
    """Return the key of machine code for this machine that follows from plain data."""
    digest = hashlib.sha256(host_machine.machine().key.encode())
    digest.update(of_code(_WRITERS).encode())
    digest.update(repr(content).encode())
    return f"function-{digest.hexdigest()}"


def _compile(irs: list[str], passes: int) -> list[bytes]:
    """Return object codes of modules, in their order; those on disk are from there.

    The others are compiled in parallel, and stored on disk, except the first. Level 0
    has no optimisation passes.
    """
    keys = [_key((passes, ir)) for ir in irs]
    stored = [None, *map(kernel_cache.load, keys[1:])]
    codes = [b"" if entry is None else entry[1] for entry in stored]
    new = [k for k, code in enumerate(codes) if not code]
    new.sort(key=lambda k: -len(irs[k]))  # the longest first: the threads end together
    made = compiler.compile_all([irs[k] for k in new], passes)
    for k, code in zip(new, made, strict=True):
        codes[k] = code
        if k:
            kernel_cache.store(keys[k], {}, code)
    return codes
