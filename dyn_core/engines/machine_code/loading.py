"""Functions of the subset as machine code: translated, compiled, cached, and called.

A function and all functions that it calls become one LLVM module, cached on disk.
`bind` creates a table once: addresses and dimensions of arrays, and numbers in records.
A call passes its address, and the other numbers as C arguments.
Where machine code is not available, the Python function is called.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.cached.fingerprint import of_code
from dyn_core.engines.llvm.threads import LONG_TASKS
from dyn_core.engines.machine_code.call_arguments import number, refuse_overlap, table
from dyn_core.engines.machine_code.kernels import KernelAddress
from dyn_core.engines.machine_code.lanes import declarations
from dyn_core.engines.machine_code.language import is_marked, python_of
from dyn_core.engines.machine_code.operation_ir import Operations
from dyn_core.engines.machine_code.statements import Place, StatementWriter
from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    FunctionType,
    NumberType,
    RecordType,
    TupleType,
    of_function,
    place_of,
    size,
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


@dataclass
class ModuleCode:
    """LLVM IR of a function and of all functions that it calls.

    Attributes:
        ir: The IR; its function `entry` takes a table of arguments, see _entry.
        places: Item k is (failure text, function, line) of status k + 1; empty unless
            checked.
    """

    ir: str
    places: list[Place]


def translate(
    function: Callable[..., Any], checked: bool = False, lanes: int = 0
) -> ModuleCode:
    """Return the LLVM IR of a function and of all functions that it calls.

    Args:
        function: Python function of the subset.
        checked: Whether indices and divisors are checked.
        lanes: Number of states computed at once; 0: one.

    Raises:
        TraceError: A construct or annotation is not in the subset, functions call each
            other recursively, or a source is not available (see source_of).
    """
    work = _ModuleWriter(checked, lanes)
    name, kind = work.callee(function)
    entry = _entry(name, kind, checked, lanes)
    code = [declarations(lanes), *work.definitions, entry]
    return ModuleCode("\n".join(code), work.places or [])


class _ModuleWriter:
    """Writes the functions of one module, each once, called ones first.

    Attributes:
        lanes: Number of lanes; 0: floats are scalars.
        definitions: LLVM definitions so far.
        places: Failures of the checked form so far, see ModuleCode; None: not checked.
        known: By Python function, LLVM name and signature.
        open: Functions being translated; each is called by the one before it.
    """

    def __init__(self, checked: bool, lanes: int) -> None:
        self.lanes = lanes
        self.definitions: list[str] = []
        self.places: list[Place] | None = [] if checked else None
        self.known: dict[Callable[..., Any], tuple[str, FunctionType]] = {}
        self.open: list[Callable[..., Any]] = []

    def callee(self, function: Callable[..., Any]) -> tuple[str, FunctionType]:
        """Return (LLVM name, signature) of a function, which is translated if new.

        Its code is added to `definitions`, after the code of the functions that it
        calls.

        Raises:
            TraceError: Recursion, a signature or construct that is not in the subset,
                or a source that is not available (see source_of).
        """
        if function in self.open:
            names = " -> ".join(f.__name__ for f in [*self.open, function])
            raise TraceError(
                f"{place_of(function)}: recursion ({names}) is not in the subset: "
                "nothing bounds its depth; valid: a loop, with an array as its stack"
            )
        if function not in self.known:
            self.open.append(function)
            kind = of_function(function)
            name = f"f{len(self.known) + len(self.open)}_{function.__name__}"
            code = StatementWriter(
                function, kind, self.callee, self.places, self.lanes
            ).define(name)
            self.open.pop()
            self.definitions.append(code)
            self.known[function] = name, kind
        return self.known[function]


def _entry(name: str, kind: FunctionType, checked: bool, lanes: int) -> str:
    """Return the LLVM definition of `entry`, the function that Python calls.

    Its parameters are, in order, the table of arrays and records; memory for a tuple of
    results; memory for the status if checked; with lanes the lane mask and an unused
    pointer; then the numbers. A tuple is written as 8-byte words and nothing is
    returned; another result is returned, a bool as one byte.

    Args:
        name: LLVM name of the translated function.
        kind: Its signature.
        checked: Whether indices and divisors are checked.
        lanes: Number of states computed at once; 0: one.
    """
    lines: list[str] = []
    several = isinstance(kind.result, TupleType) and bool(kind.result.items)
    reader = Operations(translate, checked, lanes)
    reader.lines = lines
    heads = ["ptr %results"] * several + reader.more_arguments()
    heads += ["ptr %nothing"] * bool(lanes)  # scratch of a kernel call, unused here
    arguments, place = reader.more_arguments(), 0
    for x, t in kind.parameters:
        if isinstance(t, NumberType):
            heads.append(f"{'i8' if t is BOOL else t.llvm} %n_{x}")
            value = f"%n_{x}"
            if t is BOOL:
                value = reader.new(f"icmp ne i8 {value}, 0")
            arguments.append(f"{t.llvm} {value}")
        else:
            names = reader.load_argument(t, "%table", place).names
            named = zip(reader.parts(t), names, strict=True)
            arguments += [f"{p} {n}" for p, n in named]
            place += size(t)
    llvm = reader.result_type(kind.result)
    call = f"call {llvm} @{name}({', '.join(arguments)})"
    returned = "void" if several else "i8" if llvm == "i1" else llvm
    if several:
        whole = reader.new(call)
        assert isinstance(kind.result, TupleType)
        for k, item in enumerate(kind.result.items):
            part = reader.new(f"extractvalue {llvm} {whole}, {k}")
            if item is BOOL:
                part = reader.new(f"zext i1 {part} to i64")
            to = reader.new(f"getelementptr i64, ptr %results, i64 {k}")
            reader.add(f"store {'i64' if item is BOOL else item.llvm} {part}, ptr {to}")
        reader.add("ret void")
    elif llvm == "void":
        reader.add(call)
        reader.add("ret void")
    else:
        register = reader.new(call)
        if llvm == "i1":
            register = reader.new(f"zext i1 {register} to i8")
        reader.add(f"ret {returned} {register}")
    table = ["ptr noalias nonnull readonly %table"]
    head = f"define {returned} @entry({', '.join([*table, *heads])})"
    return "\n".join([f"{head} #0 {{", *lines, "}", ""])


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

    TraceError if the signature is not in the subset. Arguments are as of `compiled`.
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
                module, code = self._code()
                loaded = compiler.Loaded(code)
                self._address, self._places = loaded.address("entry"), module.places
                self._loaded = loaded
        return self

    @property
    def loaded(self) -> bool:
        """Whether the machine code is there, so that a call waits for no compiler."""
        return self._loaded is not None

    def prepare_later(self) -> None:
        """Begin to compile in the background; return at once.

        The first use waits for the end; after a failure it compiles anew, and raises.
        """
        if self._loaded is None:
            LONG_TASKS.later(f"function {id(self)}", self.prepare, lambda job: None)

    def _code(self) -> tuple[ModuleCode, bytes]:
        """Return module and object code, from disk or compiled now and stored there.

        From disk, `ir` of the module is "". Else `fresh` becomes True.

        Raises:
            TraceError: The code is not in the subset, see `translate`.
            CompileError: LLVM failed.
            SettingError: DYN_CACHE_LIMIT is invalid, if it was compiled.
        """
        digest = hashlib.sha256(host_machine.machine().key.encode())
        digest.update(of_code(_WRITERS).encode())
        form = self._checked, self.lanes, contents(self.function)
        digest.update(repr(form).encode())
        key = f"function-{digest.hexdigest()}"
        entry = kernel_cache.load(key)
        if entry is not None:
            return ModuleCode("", entry[0]["places"]), entry[1]
        # The checked form runs a few times: optimising it would take longer. Level 2
        # takes a quarter more time than 1, and a plan is 2 % faster, contacts are not.
        passes = 0 if self._checked else 1
        with compiler.progress(f"compiling {self.name}, once for this machine"):
            module = translate(self.function, self._checked, self.lanes)
            code = compiler.compile_ir(module.ir, passes=passes)
        kernel_cache.store(key, {"places": module.places}, code)
        self.fresh = True
        return module, code

    def __call__(self, *arguments: Any) -> Any:
        """Return the result for all arguments, in the order of the function.

        Arrays are changed in place. Not valid with lanes.

        Raises:
            ShapeError: A wrong number of arguments; an argument of a wrong type, dtype,
                number of axes or layout; an int exceeds 64 bits; or int and float
                arrays share memory.
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
        does: ctypes raises ArgumentError for a wrong type and truncates ints to 64
        bits. In the checked form it raises IndexError and ZeroDivisionError. Where
        machine code is off, it calls the Python function and raises its errors; surplus
        numbers are ignored, and a missing one raises RuntimeError. Not valid with
        lanes.

        Args:
            arguments: All arguments that are not numbers, in order.

        Raises:
            ShapeError: The number of arguments is wrong; an argument has another type,
                dtype, number of axes or layout; an int in a record exceeds 64 bits; or
                int and float arrays share memory.
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
        """Pack arrays and records into a table of arguments.

        Args:
            arguments: All arguments that are not numbers, in order.

        Returns:
            The table as bytes: address and dimensions of each array, and the numbers in
            records; and the arrays, which must stay alive. Without arguments the bytes
            are b"0".

        Raises:
            ShapeError: The number of arguments is wrong; an argument has another type,
                dtype, number of axes or lanes, or layout; an int in a record exceeds 64
                bits; or int and float arrays share memory.
            OverflowError: An int in a record is too large for a float.
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

        This function must have lanes and not be checked.

        Args:
            arguments: All arrays and records, in order; float arrays have the lanes as
                last axis. They are referenced, not copied.

        Returns:
            A function without Python form: where machine code is off, the address in
            its `kernel` is 0.

        Raises:
            ShapeError: The number of arguments is wrong; an argument has another type,
                dtype, number of axes or lanes, or layout; an int in a record exceeds 64
                bits; or int and float arrays share memory.
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
        behind the address of the table, which no call changes. The checked form raises
        the failure, see _with_status.

        Args:
            memory: ctypes buffer with the table from _content: addresses and dimensions
                of the arrays, and the numbers in records.
            kept: Objects that live as long as the returned function.
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

        It raises ZeroDivisionError for a divisor, and IndexError for an index.

        Args:
            call: Call that takes the status buffer first, then the numbers.
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

        Args:
            arguments: All arguments that are not numbers, in order.
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

    Attributes:
        alive: One int64, (1,), with bit k for lane k: before a call set by the caller
            to the wanted lanes; after it the lanes with valid results.
        kernel: Address for machine code (run_kernel), valid while this object exists.
            It returns the result of the function. Where machine code is off, its
            address is 0.
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
    """Return a call that returns the results as a tuple; it takes the other arguments.

    Args:
        call: Machine code that takes memory for the results first.
        layout: Format of the results in that memory.
    """
    memory = ctypes.c_char * layout.size

    def several(*numbers: Any) -> Any:
        results = memory()
        call(results, *numbers)
        return layout.unpack(results)

    return several


def _address(memory: Any) -> int:
    return ctypes.addressof(memory)


def contents(function: Callable[..., Any]) -> list[Any]:
    """Return all data on which the machine code depends, as loaded in this process.

    The data are the code of the function and of all marked functions that it calls,
    their types and line numbers, and the constants of their modules, as nested lists
    and tuples of plain values. Other functions and classes are named only.

    Raises:
        TraceError: The signature of the function or a marked one is not in the subset.
    """
    entries: list[Any] = []
    order, numbers = [function], {function: 0}
    for current in order:
        code, signature = current.__code__, of_function(current)
        constants = [x for x in code.co_consts if not hasattr(x, "co_code")]
        lines = code.co_firstlineno, code.co_linetable
        entries.append((code.co_name, code.co_code, constants, code.co_names,
                        code.co_varnames, lines, _shape(signature)))  # fmt: skip
        for name, value in _reached(current):
            value = python_of(value)
            if is_marked(value):
                if value not in numbers:
                    numbers[value] = len(order)
                    order.append(value)
                entries.append((name, "function", numbers[value]))
            elif isinstance(value, int | float):
                entries.append((name, repr(value)))
            elif callable(value):
                entries.append((name, getattr(value, "__qualname__", "")))
    return entries


def _reached(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the globals that a function may use, without builtins.

    For modules and classes among them also their attributes, named "MODULE.NAME", whose
    names occur in the function, and likewise the attributes of these; each module or
    class is searched once.
    """
    names, code = function.__globals__, function.__code__
    waiting = [(name, names[name]) for name in code.co_names if name in names]
    seen = set()
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, ModuleType | type) and id(value) not in seen:
            seen.add(id(value))
            inside = [x for x in code.co_names if hasattr(value, x)]
            waiting += [(f"{name}.{x}", getattr(value, x)) for x in inside]


def _shape(kind: Any) -> Any:
    """Return a Type or FunctionType as text and lists, without Python's classes."""
    if isinstance(kind, RecordType):
        return [str(kind), [(name, _shape(inner)) for name, inner in kind.fields]]
    if hasattr(kind, "parameters"):
        inner = [(name, _shape(t)) for name, t in kind.parameters]
        return [inner, str(kind.result)]
    return str(kind)
