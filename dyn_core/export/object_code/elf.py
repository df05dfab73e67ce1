"""ELF object files: sections, symbols and attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HARD_FLOAT = bytes([28, 1])  # Tag_ABI_VFP_args: AAPCS with floating-point registers
_UNDEFINED, _LOCAL = 0, 0


class ElfSection(NamedTuple):
    """One section of an object.

    Attributes:
        name: Its name.
        kind: Type: 1 for program data, 2 for symbols, 8 for memory without content.
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
    """Return the sections of an object, in the order of the file.

    Args:
        data: Content of a little-endian ELF file, of 32 or 64 bits; not checked.
    """
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
    """Yield (name, whether defined here, whether global) of each symbol with a name.

    Args:
        data: Content of a little-endian ELF file; not checked.
    """
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
    so they are the same in both conventions. Raises StopIteration if the object has no
    section .ARM.attributes.

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
