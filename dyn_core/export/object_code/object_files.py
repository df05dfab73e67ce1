"""Object files: the kernels of a Program as machine code for a target.

The sections, symbols and attributes of ELF objects are read here, of WebAssembly in
wasm.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dyn_core.engines.llvm import compiler
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import CompileError, UnsupportedError
from dyn_core.export.c.interface_table import table_ir
from dyn_core.export.interface import Interface
from dyn_core.export.object_code import wasm
from dyn_core.export.object_code.entry_ir import batch_scratch, entry_ir
from dyn_core.export.object_code.export_kernels import Kernels, kernels
from dyn_core.export.object_code.stack_bound import stack_of_ir
from dyn_core.export.targets import Target
from dyn_core.sharing import once

_INNER = ("scalar", "batch")  # functions that only the entry calls
_GENERATES = 1  # optimisation level of LLVM's code generator


@dataclass(frozen=True)
class ObjectFile:
    """Machine code of a Program for a target.

    Attributes:
        interface: Interface with the memory that this code needs.
        code: Size of the instructions [bytes].
        constants: Size of numbers and of the interface table [bytes].
        undefined: Symbols that other objects must define.
        steps: Operations of one state.
    """

    data: bytes
    interface: Interface
    code: int
    constants: int
    undefined: tuple[str, ...]
    steps: int


def compile_object(
    program: NativeProgram,
    interface: Interface,
    target: Target,
    batch: bool = False,
    exact: bool = True,
) -> ObjectFile:
    """Return a Program as an object file; its interface also has the memory.

    With `exact`, multiply-adds round once also if the target has no instruction for
    them. A dtype that the target lacks in hardware is refused.
    """
    if interface.dtype not in target.dtypes:
        raise UnsupportedError(
            f"target {target.name} has no {interface.dtype} in hardware; valid:"
            f" build(..., dtype={target.dtypes[0]!r}), --dtype {target.dtypes[0]}"
        )
    written = kernels(program, target, target.fused or exact, batch)
    rows = batch_scratch(interface, written) if batch else 0
    lanes = max(written.lanes, 1) if batch else 0
    interface = interface.with_memory(written.scratch, 0, rows, lanes)
    entries = entry_ir(interface, written, batch)
    functions = [interface.prefix, *([f"{interface.prefix}_batch"] if batch else [])]
    stack = stack_of_ir([entries, written.scalar, written.batch], functions)
    interface = replace(interface, stack=stack)
    data = _compiled(interface, entries, written, target, batch)
    if target.is_arm:
        data = with_hard_float(data)
    code, constants, undefined = _contents(data)
    return ObjectFile(data, interface, code, constants, undefined, written.steps)


def _compiled(
    interface: Interface, entries: str, written: Kernels, target: Target, batch: bool
) -> bytes:
    """Return the modules of an export as one object file."""
    import llvmlite.binding as llvm

    _initialize()
    section = "" if target.is_wasm else f".rodata.{interface.prefix}_interface"
    if target.relocation == "pic" and section:
        section = f".data.rel.ro.{interface.prefix}_interface"
    modules = [
        entries,
        table_ir(interface, batch, section),
        written.scalar,
        *([written.batch] if written.lanes else []),
    ]
    try:
        with compiler._lock:
            machine = _machine(target)
            layout = str(machine.target_data)
            whole = None
            for ir in modules:
                ir = (
                    f'target datalayout = "{layout}"\n'
                    f'target triple = "{target.triple}"\n{ir}'
                )
                module = llvm.parse_assembly(ir)
                if whole is None:
                    whole = module
                else:
                    whole.link_in(module)
            assert whole is not None
            for function in whole.functions:
                if function.name in _INNER:
                    function.linkage = "internal"
            whole.verify()
            with whole:
                return bytes(machine.emit_object(whole))
    except RuntimeError as error:
        raise CompileError(
            f"LLVM cannot make code of {interface.solver} for {target.name}: {error}"
        ) from error


@once
def _initialize() -> None:
    """Initialize all targets of LLVM, once in a process."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(target: Target) -> Any:
    """Return LLVM's code generator for a target; RuntimeError if LLVM lacks it."""
    import llvmlite.binding as llvm

    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=_GENERATES,
        reloc=target.relocation,
        codemodel="default",
        abiname=target.abi,
    )
    machine.set_asm_verbosity(False)
    return machine


def _contents(data: bytes) -> tuple[int, int, tuple[str, ...]]:
    """Return size of code and of constants [bytes], and undefined symbols of an object.

    Constants of ELF are all loaded sections without code, and its symbols are sorted.
    Other formats than ELF and WebAssembly: (size of the file, 0, ()).
    """
    if data[:4] == b"\0asm":
        return wasm.sizes(data)
    if data[:4] != b"\x7fELF":  # Mach-O or COFF: sizes are not analysed
        return len(data), 0, ()
    loaded = [s for s in sections(data) if s.flags & 2]
    code = sum(s.size for s in loaded if s.flags & 4)
    constants = sum(s.size for s in loaded if not s.flags & 4)
    missing = [name for name, defined, _ in symbols(data) if not defined]
    return code, constants, tuple(sorted(missing))


_HARD_FLOAT = bytes([28, 1])  # Tag_ABI_VFP_args: AAPCS with floating-point registers
_UNDEFINED, _LOCAL = 0, 0


class ElfSection(NamedTuple):
    """One section of an object.

    Attributes:
        kind: 1 for program data, 2 for symbols, 8 for memory without content.
        flags: 2 if it is loaded into memory, 4 if it is code.
        offset, size: Position and size of its content in the file [bytes].
        header: Position of its header in the file [bytes].
        link: Index of the section with its strings.
    """

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    header: int
    link: int


def sections(data: bytes) -> list[ElfSection]:
    """Return the sections of a little-endian ELF object (unchecked), 32 or 64 bits."""
    wide = data[4] == 2
    start = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)[0]
    step, count, names = struct.unpack_from("<HHH", data, 58 if wide else 46)
    rows = []
    for k in range(count):
        header = start + k * step
        layout = "<IIQQQQI" if wide else "<IIIIIII"
        name, kind, flags, _, offset, size, link = struct.unpack_from(
            layout, data, header
        )
        rows.append((name, kind, flags, offset, size, header, link))
    strings = rows[names][3]
    return [ElfSection(_text(data, strings + name), *rest) for name, *rest in rows]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(0, start)].decode()


def symbols(data: bytes) -> Iterator[tuple[str, bool, bool]]:
    """Yield (name, whether defined here, whether global) of each named symbol."""
    wide, every = data[4] == 2, sections(data)
    for section in every:
        if section.kind != 2:
            continue
        step = 24 if wide else 16
        for start in range(section.offset, section.offset + section.size, step):
            if wide:
                name, info, _, place = struct.unpack_from("<IBBH", data, start)
            else:
                name, _, _, info, _, place = struct.unpack_from("<IIIBBH", data, start)
            text = _text(data, every[section.link].offset + name)
            if text:
                yield text, place != _UNDEFINED, info >> 4 != _LOCAL


def with_hard_float(data: bytes) -> bytes:
    """Return an object for 32-bit ARM, with the attribute of the hard-float convention.

    Linkers refuse to combine objects of different conventions. LLVM leaves the
    attribute out; the exported functions have pointers and integers as arguments only,
    so they are the same in both conventions.

    Source: ELF for the Arm Architecture and Addenda to the ABI for the Arm Architecture
    (Arm Ltd., 2023), build attributes.
    """
    section = next(s for s in sections(data) if s.name == ".ARM.attributes")
    content = data[section.offset : section.offset + section.size]
    vendor = content.index(b"aeabi\0") + 6
    length, file_length = (
        struct.unpack_from("<I", content, k)[0] for k in (1, vendor + 1)
    )
    content = (
        content[:1]
        + struct.pack("<I", length + 2)
        + content[5 : vendor + 1]
        + struct.pack("<I", file_length + 2)
        + content[vendor + 5 :]
        + _HARD_FLOAT
    )
    changed = bytearray(data + bytes(-len(data) % 4) + content)
    place = len(changed) - len(content)
    struct.pack_into("<II", changed, section.header + 16, place, len(content))
    return bytes(changed)
