"""This machine: whether it can have machine code, its vectors, its key in caches."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from dyn_core.engines.llvm.cached.fingerprint import of_code
from dyn_core.engines.llvm.cached.kernel_cache import limit as cache_limit
from dyn_core.engines.llvm.threads import count as count_threads
from dyn_core.errors import SettingError, unknown_name, warn
from dyn_core.sharing import once

SWITCH = "DYN_NATIVE"  # environment: off forbids machine code
VARIABLES = (  # all environment variables; other names DYN_... cause a warning
    SWITCH,
    "DYN_THREADS",
    "DYN_CACHE_DIR",
    "DYN_CACHE_LIMIT",
    "DYN_ENTRY",
)
_OFF = ("off", "0", "no", "false")
_ON = ("on", "1", "yes", "true", "")
# Modules that determine the code of kernels; a change of one makes other kernels. That
# none is left out is tested in tests/engines/test_digests.py.
_WRITERS = tuple(
    f"dyn_core.engines.llvm.{name}"
    for name in (
        "compiler",
        "host_machine",
        "emit",
        "cached.kernel_key",
        "call.entry",
        "call.entry_code",
        "functions.far_angles",
        "function_ir",
        "functions.float64_functions",
        "functions.float32_functions",
        "ir",
        "kernel",
        "kernel_ir",
        "lower",
        "products.product_arrays",
        "products.product_calls",
        "products.matrix_products",
        "call.python_to_llvm",
        "call.result_memory",
        "call.result_memory_code",
        "rows_ir",
        "products.shared_memory",
        "products.straight_products",
        "value_tables",
    )
)


@dataclass(frozen=True)
class Machine:
    """Properties of the machine that code is compiled for.

    Attributes:
        cpu, features: Names as in LLVM.
        width: Lanes of a batch kernel of float64.
        pack: Number of sines and cosines computed at once for a single state.
        fused: Whether multiply-add is one instruction.
        llvm: Version of LLVM.
        key: Hex digest of everything besides the Graph that determines the code.
    """

    cpu: str
    features: str
    width: int
    pack: int
    fused: bool
    llvm: str
    key: str


@once
def missing() -> str:
    """Return the reason why machine code is not available here; "" where it is.

    The first call decides for the process. It initialises LLVM, warns of unknown
    variables DYN_..., and refuses invalid ones with a SettingError.
    """
    _warn_of_unknown_variables()
    count_threads(), cache_limit()  # raise for invalid settings now, not at first use
    setting = os.environ.get(SWITCH, "")
    if setting.lower() in _OFF:
        return f"{SWITCH} is off"
    if setting.lower() not in _ON:
        message = f"{SWITCH} must be on or off, got '{setting}'"
        raise SettingError(message, SWITCH)
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


@once
def _warn_of_unknown_variables() -> None:
    """Warn, once in the process, of environment variables DYN_... that do not exist.

    Where warnings are errors, the messages are printed to stderr instead.
    """
    for name in sorted(os.environ):
        if name.startswith("DYN_") and name not in VARIABLES:
            warn(f"{unknown_name('environment variable', name, VARIABLES)}; ignored")


@once
def warn_missing() -> None:
    """Warn once in the process that Programs run without machine code, and why.

    Where warnings are errors, it is printed to stderr. missing() must not be empty.
    """
    warn(f"Programs run on engine 'graph', some hundred times slower: {missing()}")


@once
def machine() -> Machine:
    """Return the properties of this machine, found once; missing() must be empty."""
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
    digest.update(repr((llvmlite.__version__, llvm.llvm_version_info)).encode())
    digest.update(repr((cpu, flat, llvm.get_process_triple())).encode())
    release = ".".join(map(str, llvm.llvm_version_info))
    return Machine(cpu, flat, width, 8, fused, release, digest.hexdigest())
