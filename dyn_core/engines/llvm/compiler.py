"""The compiler: LLVM IR to object code, loading of code."""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.threads import COMPILERS, count
from dyn_core.errors import CompileError
from dyn_core.sharing import Lock, forks_wait_for

_PATIENCE = 1.0  # time after which progress is reported [s]
_CONSTANTS = b"rodata", b"const", b"literal"  # substrings of section names
_BY_STEP = 1e-4  # compile time per step of a kernel, on a machine of 2024 [s]
# A compilation would not survive a fork or the end of the process: both wait for it.
# No `once` result is computed under this lock: machine() is called before.
_lock = Lock()
_loading = Lock()  # loads share LLVM's global context; compilations have their own
atexit.register(_lock.__enter__)
forks_wait_for(_lock)


def _target(host: host_machine.Machine, level: int) -> Any:
    """Return a new code generator of LLVM for an optimisation level, 1 or 2.

    Each loaded code needs one of its own, because it takes ownership.
    """
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=host.cpu,
        features=host.features,
        opt=level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def compile_ir(ir: str, passes: int = 0) -> bytes:
    """Return the object code of a module. host_machine.missing() must be "".

    `passes` is the level of LLVM's optimisation passes, 1 or 2, with its code generator
    at level 2; 0: no passes, and level 1, which is enough for traced code.
    """
    import llvmlite.binding as llvm

    host = host_machine.machine()
    with _lock.shared():
        target = _target(host, 2 if passes else 1)
        with llvm.create_context() as context:
            with _parsed(ir, context) as module:
                if passes:
                    _optimise(target, module, passes)
                return _object_code(target, module)


def compile_all(irs: Sequence[str], passes: int = 0) -> list[bytes]:
    """Return the object codes of modules, which are compiled in parallel."""
    codes = [b""] * len(irs)
    left = list(reversed(range(len(irs))))

    def compile_some() -> None:
        while left:
            try:
                k = left.pop()
            except IndexError:  # another thread took the last one
                return
            codes[k] = compile_ir(irs[k], passes)

    COMPILERS.run([compile_some] * min(count(), len(irs)), left.clear)
    return codes


def _free(name: str) -> Any:
    """Return a function of llvmlite's library without llvmlite's global lock.

    LLVM may run on several threads where each has its own context and target. Releases
    of llvmlite without such a lock, or with a hidden one, return their function
    unchanged.
    """
    from llvmlite.binding import ffi

    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def _optimise(target: Any, module: Any, level: int) -> None:
    """Run LLVM's optimisation passes of a level, 1 or 2, on a module, in place.

    Straight-line code is vectorised too. Their objects are released before the module.
    llvmlite's ModulePassManager.run would hold its global lock for the whole time.
    """
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.slp_vectorization = True  # sums written out side by side, as tiles are
    # LLVM's inlining (threshold 225) and unrolling cost 60 % more time, for no speed.
    options.inlining_threshold, options.loop_unrolling = 25, False
    builder = llvm.create_pass_builder(target, options)
    manager = builder.getModulePassManager()
    _free("LLVMPY_RunNewModulePassManager")(manager, module, builder)


def _parsed(ir: str, context: Any) -> Any:
    """Return the module of LLVM IR: llvmlite's parse_assembly without its lock.

    The caller closes the module. One thread at a time uses the LLVM context.
    """
    import llvmlite.binding as llvm
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        numbers = ctypes.c_char_p(ir.encode())
        made = _free("LLVMPY_ParseAssembly")(context, numbers, error)
        module = llvm.ModuleRef(made, context)
        if error:
            module.close()
            raise CompileError(f"LLVM refused a kernel: {error}")
    return module


def _object_code(target: Any, module: Any) -> bytes:
    """Return the object code of a module: llvmlite's emit_object without its lock."""
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        memory = _free("LLVMPY_TargetMachineEmitToMemory")(target, module, 1, error)
        if not memory:
            raise CompileError(f"LLVM cannot make machine code of a kernel: {error}")
    try:
        start, size = (
            getattr(ffi.lib, f"LLVMPY_GetBuffer{what}")(memory)
            for what in ("Start", "Size")
        )
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def code_size(code: bytes) -> int:
    """Return the number of bytes of instructions and constants in object code."""
    import llvmlite.binding as llvm

    loaded = 0
    with _lock.shared():
        for section in llvm.ObjectFileRef.from_data(code).sections():
            name = bytes(section.name() or b"")
            if section.is_text() or any(part in name for part in _CONSTANTS):
                loaded += section.size()
    return loaded


def assembly(ir: str) -> str:
    """Return the assembly text of the code of compile_ir(ir), for reading."""
    import llvmlite.binding as llvm

    host = host_machine.machine()
    with _lock:
        return _target(host, 1).emit_assembly(llvm.parse_assembly(ir))


class Loaded:
    """Object codes in memory; their functions are valid while this object exists.

    Together they must contain every function that they call, but those of the process.
    """

    def __init__(self, *codes: bytes) -> None:
        import llvmlite.binding as llvm

        host = host_machine.machine()
        with _loading, _lock.shared():  # beside compilations
            empty = llvm.parse_assembly("")
            self._engine = llvm.create_mcjit_compiler(empty, _target(host, 1))
            try:
                for code in codes:
                    self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
            except RuntimeError as error:
                raise CompileError(f"object code cannot be loaded: {error}") from error

    def address(self, name: str) -> int:
        """Return the address of a function, valid while this object exists."""
        with _loading, _lock.shared():
            address = self._engine.get_function_address(name)
        if not address:
            raise CompileError(f"object code has no function '{name}'")
        return address


def _terminal() -> Callable[[str], object] | None:
    """Return the function that writes to the terminal; None if stderr is not one."""
    stream = sys.stderr
    return stream.write if stream is not None and stream.isatty() else None


@contextmanager
def progress(
    what: str, report: Callable[[str], object] | None = None
) -> Iterator[Callable[[int], None]]:
    """Report the elapsed time of a block of code each second, and its total at the end.

    Nothing is reported for a block of less than a second, if no thread can be started,
    or if `report` is None and stderr is no terminal. It yields a function of the number
    of steps of a kernel; after its call the report includes an estimate of the total
    time. A text begins with a carriage return; the last one ends with a newline.
    """
    write = _terminal() if report is None else report
    if write is None:
        yield lambda steps: None
        return
    start, ended = monotonic(), threading.Event()
    reported, expected = False, ""

    def watch() -> None:
        nonlocal reported
        while not ended.wait(_PATIENCE):
            reported = True
            write(f"\r{what} ... {monotonic() - start:.0f}{expected} s")

    def expect(steps: int) -> None:
        nonlocal expected
        expected = f" of about {monotonic() - start + steps * _BY_STEP:.0f}"

    thread = threading.Thread(target=watch, daemon=True)
    with suppress(RuntimeError):  # no more threads here: then nothing is reported
        thread.start()
    try:
        yield expect
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()
        if reported:
            write(f"\r{what}: {monotonic() - start:.1f} s{' ' * 12}\n")
