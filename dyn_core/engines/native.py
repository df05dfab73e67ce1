"""LLVM: what machine this is, text to object code, object code to addresses."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from sys import stderr
from time import monotonic
from typing import Any

from dyn_core.engines.fingerprint import of_code
from dyn_core.engines.threads import Lock
from dyn_core.errors import CompileError

SWITCH = "DYN_NATIVE"  # environment: off forbids machine code
_PATIENCE = 1.0  # a build that takes longer tells so [s]
_WRITERS = tuple(
    f"dyn_core.engines.{name}"
    for name in ("chunk", "emit", "entry", "functions", "ir", "kernel", "lanes",
                 "loops", "lower", "native", "words")
)  # fmt: skip
_lock = Lock()


@dataclass(frozen=True)
class Machine:
    """What code is made for.

    Attributes:
        cpu, features: As LLVM names them.
        width: Lanes of a batch kernel.
        pack: Sines and cosines taken at once for a single state.
        fused: Whether multiply-add is an instruction.
        key: Digest of everything the code depends on besides its Graph.
    """

    cpu: str
    features: str
    width: int
    pack: int
    fused: bool
    key: str


@cache
def missing() -> str:
    """Give why there is no machine code here; empty where there is."""
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no", "false"):
        return f"{SWITCH} is off"
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:
        return f"llvmlite cannot be loaded ({error})"
    version = tuple(int(x) for x in llvmlite.__version__.split(".")[:2])
    if not (0, 45) <= version:
        return f"llvmlite {llvmlite.__version__} is older than 0.45"
    try:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple = llvm.get_process_triple()
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        return f"LLVM does not know this machine ({error})"
    if not triple.startswith(("x86_64", "aarch64", "arm64")) or "windows" in triple:
        return f"machine code is not made for {triple}"
    return ""


@cache
def warn_missing() -> None:
    """Say once that Programs run without machine code."""
    warnings.warn(
        f"Programs run on engine 'graph', some hundred times slower: {missing()}",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def machine() -> Machine:
    """Give the machine this process runs on."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    cpu, flat = llvm.get_host_cpu_name(), features.flatten()
    if llvm.get_process_triple().startswith("x86_64"):
        fused = bool(features.get("fma"))
        width = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    else:
        fused, width = True, 2
    digest = hashlib.sha256(of_code(_WRITERS).encode())
    what = (llvmlite.__version__, llvm.llvm_version_info, cpu, flat)
    digest.update(repr((*what, llvm.get_process_triple())).encode())
    return Machine(cpu, flat, width, 8, fused, digest.hexdigest())


def _target(level: int) -> Any:
    """Make a code generator at an optimisation level; loaded code owns one."""
    import llvmlite.binding as llvm

    host = machine()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=host.cpu,
        features=host.features,
        opt=level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def compile_text(text: str, inline: bool = False) -> bytes:
    """Give the object code of a module.

    Args:
        text: LLVM IR.
        inline: Whether LLVM's own passes run too; traced code has no use for them.

    Raises:
        CompileError: LLVM refuses the text.
    """
    import llvmlite.binding as llvm

    with _lock:
        target = _target(2 if inline else 1)
        try:
            module = llvm.parse_assembly(text)
        except RuntimeError as error:
            raise CompileError(f"LLVM refused a kernel: {error}") from error
        if inline:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            builder = llvm.create_pass_builder(target, options)
            builder.getModulePassManager().run(module, builder)
        return target.emit_object(module)


def assembly(text: str) -> str:
    """Give the machine instructions of a module, to be read."""
    import llvmlite.binding as llvm

    with _lock:
        return _target(1).emit_assembly(llvm.parse_assembly(text))


class Loaded:
    """Object code in memory; lives as long as this object."""

    def __init__(self, code: bytes) -> None:
        import llvmlite.binding as llvm

        with _lock:
            empty = llvm.parse_assembly("")
            self._engine = llvm.create_mcjit_compiler(empty, _target(1))
            try:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
            except RuntimeError as error:
                raise CompileError(f"object code cannot be loaded: {error}") from error

    def address(self, name: str) -> int:
        """Give the address of a function."""
        with _lock:
            found = self._engine.get_function_address(name)
        if not found:
            raise CompileError(f"object code has no function '{name}'")
        return found


@contextmanager
def progress(what: str, say: Callable[[str], Any] = stderr.write) -> Any:
    """Tell on the error stream how long something has taken, once it takes long."""
    begun, ended = monotonic(), threading.Event()
    told = False

    def tell() -> None:
        nonlocal told
        while not ended.wait(_PATIENCE):
            told = True
            say(f"\r{what} ... {monotonic() - begun:.0f} s")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if told:
            say(f"\r{what}: {monotonic() - begun:.1f} s\n")
