"""Handlers for XLA's foreign function interface, compiled by LLVM."""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.bridges import ffi_code
from dyn_core.engines import Program
from dyn_core.engines.llvm import compiler
from dyn_core.engines.llvm.call import python_to_llvm
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import UnsupportedError

MAJOR = 0  # version of the interface; structures only grow at their ends
LEAST_MINOR, NEWEST_MINOR = 1, 3  # the newest version that was tested
_STACK = 32768  # maximum scratch memory on the stack of a thread [bytes]
_REALS = {"float64": 12, "float32": 11}  # XLA_FFI_DataType
_MESSAGES = {
    "BAD_FRAME": "the call frame of XLA is not as in its interface 0.1 to 0.3",
    "BAD_COUNT": "wrong number of inputs or results",
    "BAD_DTYPE": "an input has another dtype than the Program",
    "NO_MEMORY": "no memory for the scratch of a kernel",
}


def require_version(include: str | Path) -> int:
    """Return the minor version of XLA's interface that jaxlib was built with.

    Refused without the header in `include`, before 0.1, and from 1.0 on.
    """
    header = Path(include) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        lines = header.read_text(encoding="utf-8")
    except OSError as error:
        raise UnsupportedError(f"jaxlib has no header {header}") from error
    defined = re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", lines)
    version = {name: int(number) for name, number in defined}
    major, minor = version.get("MAJOR", -1), version.get("MINOR", -1)
    if major != MAJOR or minor < LEAST_MINOR:
        raise UnsupportedError(
            f"jaxlib has version {major}.{minor} of XLA's foreign function interface;"
            f" valid: {MAJOR}.{LEAST_MINOR} or later of {MAJOR}.x"
        )
    return minor


def target_name(program: Program[Any]) -> str:
    """Return a name that identifies the machine code of a Program and its ports.

    Programs with equal kernels, shapes, check for NaN and solver's name share it.
    """
    if not isinstance(program, NativeProgram):
        solver = program.recipe.solver.name
        raise UnsupportedError(
            f"{solver} runs on engine {program.engine}, and XLA calls machine code;"
            " valid: Programs of engine native, built from a TracedSolver"
        )
    shapes = [port.shape for port in (*program.inputs, *program.outputs)]
    facts = f"{program.facts.kernel} {shapes} {program.finite}"
    digest = hashlib.sha256(facts.encode()).hexdigest()
    return f"dyn_{program.recipe.solver.name}_{digest[:24]}"


def _scratch(name: str, size: int) -> dict[str, int]:
    """Return the constants NAME_SCRATCH, `size` [bytes], and NAME_LARGE of a kernel.

    LARGE is 1 if `size` is above 32768, too large for the stack, else 0.
    """
    return {f"{name}_SCRATCH": size, f"{name}_LARGE": int(size > _STACK)}


class CallHandler:
    """Machine code that XLA calls instead of a Program of engine native.

    It must live as long as XLA may call it. The kernels are compiled here; `minor` is
    from require_version. `pointer` is the handler's address, a ctypes.c_void_p.
    """

    def __init__(self, program: Any, minor: int) -> None:
        self.name = target_name(program)
        program.prepare(batch=True)
        kernels = dict(zip(("scalar", "batch"), program.kernels(), strict=True))
        self._kept: list[Any] = [program, *kernels.values()]
        nan_bytes = np.array(np.nan, program.dtype).tobytes()
        constants = {
            "VERSION": struct.unpack("<q", struct.pack("<ii", MAJOR, minor))[0],
            "SCALAR": kernels["scalar"].addresses["scalar"],
            "BATCH": kernels["batch"].addresses["batch"],
            "WIDTH": int(program.lanes),
            "CHECKED": int(program.facts.checked),
            "FINITE": int(program.finite),
            **_scratch("SCALAR", kernels["scalar"].scratch),
            **_scratch("BATCH", kernels["batch"].scratch),
            "ITEM": program.dtype.itemsize,
            "REAL": _REALS[program.dtype.name],
            "NAN": self._keep(ctypes.create_string_buffer(nan_bytes)),
            **self._ports("IN", program.inputs, program.dtype.itemsize),
            **self._ports("OUT", program.outputs, program.dtype.itemsize),
        }
        start = f"dyn_core, {program.recipe.solver.name}: "
        for key, message in _MESSAGES.items():
            line = ctypes.create_string_buffer((start + message).encode())
            constants[key] = self._keep(line)
        ir = python_to_llvm.translate(ffi_code, "handler", **constants)
        self._loaded = compiler.Loaded(compiler.compile_ir(ir, passes=2))
        self.pointer = ctypes.c_void_p(self._loaded.address("handler"))

    def _keep(self, memory: Any) -> int:
        """Keep a ctypes object alive as long as the handler; return its address."""
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _ports(self, name: str, ports: Any, item: int) -> dict[str, int]:
        """Return constants of ffi_code for the inputs ("IN") or the outputs ("OUT").

        They are N_NAME, the number of ports, and NAME_AXES and NAME_BYTES, the
        addresses of the numbers of axes and of the sizes [bytes] of one state (int64).
        """
        count = len(ports)
        axes = (ctypes.c_int64 * (count + 1))(*(len(port.shape) for port in ports))
        sizes = (ctypes.c_int64 * (count + 1))(*(item * port.size for port in ports))
        return {
            f"N_{name}": count,
            f"{name}_AXES": self._keep(axes),
            f"{name}_BYTES": self._keep(sizes),
        }
