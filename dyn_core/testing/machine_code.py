"""Machine code of a Program in memory: its location, and a change of one bit."""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dyn_core.engines.llvm import compiler
from dyn_core.errors import UnsupportedError


@dataclass(frozen=True)
class Span:
    """Machine code, or its constants, in memory: name, address and size in bytes."""

    name: str
    address: int
    size: int


def missing() -> str:
    """Return why bits cannot be flipped on this machine; empty if they can."""
    here = sys.platform, platform.machine()
    if here != ("linux", "x86_64"):
        return f"machine code is found in memory on linux x86_64 alone, not on {here}"
    return compiler.missing()


def code_spans(program: Any) -> tuple[Span, ...]:
    """Return the memory of the code and constants of a native Program.

    Raises UnsupportedError if the memory differs from the compiled kernel.
    """
    entry = program.kernels()[0].addresses["scalar"]
    # Compile to an ELF object again: its relocations locate the constants.
    code = compiler.compile_ir(program.kernel_ir("scalar").ir)
    parts = _sections(code)
    symbols = _symbols(code, parts)
    text, start = next((i, x) for name, i, x in symbols if name == "scalar")
    base = entry - start
    there, addresses = bytearray(parts[text].data(code)), {text: base}
    now = ctypes.string_at(base, len(there))
    for offset, symbol, addend in _references(code, parts, text):
        # The relocated value is S + A - P: symbol address, addend, address of this
        # field.
        (distance,) = struct.unpack_from("<i", now, offset)
        there[offset : offset + 4] = now[offset : offset + 4]
        _, part, value = symbols[symbol]
        if part:  # else a function of the C library
            addresses[part] = base + offset + distance - addend - value
    spans = [Span(parts[k].name, x, parts[k].size) for k, x in addresses.items()]
    sound = [ctypes.string_at(span.address, span.size) for span in spans]
    if sound != [bytes(there), *(parts[k].data(code) for k in [*addresses][1:])]:
        raise UnsupportedError("the code in memory is not that of the kernel")
    return tuple(spans)


def address_of(spans: Sequence[Span], byte: int) -> int:
    """Return the address of a byte counted through all spans, or raise IndexError."""
    for span in spans:
        if byte < span.size:
            return span.address + byte
        byte -= span.size
    raise IndexError(byte)


def flip(address: int, bit: int) -> None:
    """Flip one bit (0..7) of a byte in memory that is code, or read-only.

    The page stays writable. Raises OSError if it cannot be made so.
    """
    page = address & -mmap.PAGESIZE
    every = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(page, mmap.PAGESIZE, every):
        raise OSError(ctypes.get_errno(), "code cannot be made writable")
    ctypes.c_uint8.from_address(address).value ^= 1 << bit


@dataclass(frozen=True)
class _Section:
    """A section of an ELF object: type, location, and the sections it refers to.

    Attributes:
        name: Its name.
        kind: ELF section type.
        offset, size: Location of its bytes in the file.
        link, target: Indices of related sections (sh_link, sh_info).
    """

    name: str
    kind: int
    offset: int
    size: int
    link: int
    target: int

    def data(self, code: bytes) -> bytes:
        """Return its bytes in `code`, the bytes of the ELF object."""
        return code[self.offset : self.offset + self.size]


def _sections(code: bytes) -> list[_Section]:
    """Return the sections of a 64-bit ELF object."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    entry, count, names = struct.unpack_from("<HHH", code, 0x3A)
    heads = [
        struct.unpack_from("<IIQQQQII", code, table + k * entry) for k in range(count)
    ]
    start = heads[names][4]
    return [
        _Section(_string(code, start + name), kind, offset, size, link, target)
        for name, kind, _, _, offset, size, link, target, *_ in heads
    ]


def _symbols(code: bytes, parts: Sequence[_Section]) -> list[tuple[str, int, int]]:
    """Return name, section and offset of each symbol of an ELF object."""
    (table,) = (part for part in parts if part.kind == 2)  # SHT_SYMTAB
    rows = struct.iter_unpack("<IBBHQQ", table.data(code))
    names = parts[table.link].offset
    return [(_string(code, names + row[0]), row[3], row[4]) for row in rows]


def _references(
    code: bytes, parts: Sequence[_Section], text: int
) -> list[tuple[int, int, int]]:
    """Return the relocations of a section: offset, symbol index and addend."""
    rows = [
        row
        for part in parts
        if part.kind == 4 and part.target == text  # SHT_RELA
        for row in struct.iter_unpack("<QQq", part.data(code))
    ]
    return [(place, info >> 32, addend) for place, info, addend in rows]


def _string(code: bytes, start: int) -> str:
    """Return the name that begins at byte `start`."""
    return code[start : code.index(b"\0", start)].decode()
