"""WebAssembly objects, and their conversion to stand-alone modules.

An object imports memory, stack pointer and table. A module has its own, with the
constants from address BASE (1024) on, then the stack. It exports `memory`, functions,
`__heap_base` (the first address that callers may use) and the address of the interface
table. No linker is needed, since there is only one object.

Source: WebAssembly Core Specification 2.0; Tool Conventions, Linking.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dyn_core.errors import CompileError

BASE = 1024  # address of the first constant, so that none is null
_STACK = 16384  # size of the stack [bytes]
_PAGE = 65536
_MAGIC = b"\0asm\1\0\0\0"
_TYPE, _IMPORT, _FUNCTION, _TABLE, _MEMORY, _GLOBAL, _EXPORT = range(1, 8)
_ELEMENT, _CODE, _DATA, _DATA_COUNT = 9, 10, 11, 12
_UNDEFINED, _LOCAL, _NAMED = 0x10, 0x02, 0x40
_ADDRESSES = (3, 4, 5)  # relocations of memory addresses; type 5 is no LEB
_WITH_ADDEND = (3, 4, 5, 8, 9)
_I32 = 0x7F


class WasmSymbol(NamedTuple):
    """A function (kind 0) or constant (kind 1) of an object.

    Attributes:
        name: Its name; empty for a function that is imported under the import's name.
        defined, shared: Whether the object defines it, and whether it is global.
        number: Index of the function, or of the data segment.
        offset: Offset in that segment [bytes]; 0 for a function.
    """

    name: str
    kind: int
    defined: bool
    shared: bool
    number: int
    offset: int


@dataclass
class _WasmReader:
    """A reader of bytes, integers (LEB128) and names; each method advances `place`."""

    data: bytes
    place: int = 0

    def byte(self) -> int:
        """Return the next byte; IndexError at the end of the data."""
        self.place += 1
        return self.data[self.place - 1]

    def number(self) -> int:
        """Return the unsigned LEB128 number at `place`."""
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return result

    def signed(self) -> int:
        """Return the signed LEB128 number at `place`."""
        start = self.place
        number = self.number()
        bits = 7 * (self.place - start)
        return number - (1 << bits) if number >> (bits - 1) else number

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes; at the end fewer, and `place` passes it."""
        self.place += count
        return self.data[self.place - count : self.place]

    def name(self) -> str:
        """Return the string at `place`, which follows its length."""
        return self.take(self.number()).decode()


def _number(value: int, width: int = 0) -> bytes:
    """Return the unsigned LEB128 of a number >= 0, of at least `width` bytes."""
    parts: list[int] = []
    while value > 127 or len(parts) + 1 < width:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _signed(value: int) -> bytes:
    """Return a number from 0 to 2**31 - 1 as a signed LEB128 of five bytes."""
    return _number(value, 5)


def _constant(value: int) -> bytes:
    return b"\x41" + _signed(value) + b"\x0b"


def _text(name: str) -> bytes:
    return _number(len(name.encode())) + name.encode()


def sections(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, name ("" unless custom) and content after it of each section."""
    reader = _WasmReader(data, len(_MAGIC))
    while reader.place < len(data):
        kind = reader.byte()
        content = reader.take(reader.number())
        name = ""
        if kind == 0:
            inner = _WasmReader(content)
            name = inner.name()
            content = content[inner.place :]
        yield kind, name, content


def symbols(data: bytes) -> list[WasmSymbol]:
    """Return functions and constants that an object defines or imports, in order."""
    content = next(x for _, name, x in sections(data) if name == "linking")
    reader, every = _WasmReader(content), list[WasmSymbol]()
    reader.number()  # version
    while reader.place < len(content):
        kind, size = reader.byte(), reader.number()
        end = reader.place + size
        if kind == 8:
            for _ in range(reader.number()):
                symbol = _symbol(reader)
                if symbol is not None:
                    every.append(symbol)
        reader.place = end
    return every


def _symbol(reader: _WasmReader) -> WasmSymbol | None:
    """Read the next symbol; return None if it is neither function nor constant."""
    kind, flags = reader.byte(), reader.number()
    defined, shared = not flags & _UNDEFINED, not flags & _LOCAL
    if kind == 1:
        name = reader.name()
        place = [reader.number() for _ in range(3)] if defined else [0, 0, 0]
        return WasmSymbol(name, kind, defined, shared, place[0], place[1])
    index, name = reader.number(), ""
    if kind != 3 and (defined or flags & _NAMED):
        name = reader.name()
    if kind != 0:
        return None
    return WasmSymbol(name, kind, defined, shared, index, 0)


def sizes(data: bytes) -> tuple[int, int, tuple[str, ...]]:
    """Return size of code and of constants [bytes], and names of undefined functions.

    Args:
        data: Content of an object file.
    """
    code = sum(len(x) for kind, _, x in sections(data) if kind == _CODE)
    constants = sum(len(x) for kind, _, x in sections(data) if kind == _DATA)
    return code, constants, _missing(data)


def _missing(data: bytes) -> tuple[str, ...]:
    """Return the names of the functions that an object imports, in order."""
    reader, names = _WasmReader(dict(_numbered(data)).get(_IMPORT, b"\0")), []
    for _ in range(reader.number()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == 0:
            reader.number()
            names.append(name)
        elif kind == 3:
            reader.take(2)
        else:
            reader.take(1 if kind == 1 else 0)
            if reader.number() & 1:
                reader.number()
            reader.number()
    return tuple(names)


def _numbered(data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((kind, content) for kind, _, content in sections(data) if kind)


def module(data: bytes) -> bytes:
    """Return the stand-alone module of an object; see the head of this file.

    It exports its memory, __heap_base, and the global functions and constants.
    """
    missing = _missing(data)
    if missing:
        raise CompileError(f"the module would import {', '.join(missing)}")
    parts = dict(_relocated(data))
    segments = list(_segments(parts.get(_DATA, b"\0")))
    end = max((start + len(content) for start, content in segments), default=0)
    top = -(-(BASE + end) // 16) * 16 + _STACK
    starts = [BASE + start for start, _ in segments]
    functions = [s for s in symbols(data) if s.kind == 0 and s.defined and s.shared]
    constants = [s for s in symbols(data) if s.kind == 1 and s.defined and s.shared]
    exports = [_text("memory") + b"\2\0", _text("__heap_base") + b"\3\1"]
    exports += [_text(s.name) + b"\0" + _number(s.number) for s in functions]
    globals_ = [bytes([_I32, 1]) + _constant(top), bytes([_I32, 0]) + _constant(top)]
    for symbol in constants:
        exports.append(_text(symbol.name) + b"\3" + _number(len(globals_)))
        address = starts[symbol.number] + symbol.offset
        globals_.append(bytes([_I32, 0]) + _constant(address))
    table = 1 + _elements(parts.get(_ELEMENT, b""))
    parts[_TABLE] = _vector([b"\x70\0" + _number(table)])
    parts[_MEMORY] = _vector([b"\0" + _number(-(-top // _PAGE))])
    parts[_GLOBAL], parts[_EXPORT] = _vector(globals_), _vector(exports)
    parts[_DATA] = _vector(
        [
            b"\0" + _constant(start) + _number(len(content)) + content
            for start, (_, content) in zip(starts, segments, strict=True)
        ]
    )
    order = (
        _TYPE, _FUNCTION, _TABLE, _MEMORY, _GLOBAL, _EXPORT, _ELEMENT, _DATA_COUNT,
        _CODE, _DATA,
    )  # fmt: skip
    return _MAGIC + b"".join(
        bytes([kind]) + _number(len(parts[kind])) + parts[kind]
        for kind in order
        if kind in parts
    )


def _vector(entries: list[bytes]) -> bytes:
    return _number(len(entries)) + b"".join(entries)


def _elements(content: bytes) -> int:
    """Return the number of functions in the table, without its null entry."""
    if not content:
        return 0
    reader = _WasmReader(content)
    reader.number(), reader.number()  # one segment, of the table
    reader.byte(), reader.signed(), reader.byte()
    return reader.number()


def _segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield start address and content of each data segment, of one memory."""
    reader = _WasmReader(content)
    for _ in range(reader.number()):
        reader.number(), reader.byte()
        start = reader.signed()
        reader.byte()
        yield start, reader.take(reader.number())


def _relocated(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each section, with BASE added to memory addresses.

    Start addresses of data segments stay as they are. Custom sections are left out.
    """
    every = list(sections(data))
    contents = {k: bytearray(content) for k, (_, _, content) in enumerate(every)}
    for _, name, content in every:
        if not name.startswith("reloc."):
            continue
        reader = _WasmReader(content)
        target = contents[reader.number()]
        for _ in range(reader.number()):
            kind, place = reader.byte(), reader.number()
            reader.number()
            if kind in _WITH_ADDEND:
                reader.signed()
            if kind == _ADDRESSES[-1]:
                value = int.from_bytes(target[place : place + 4], "little") + BASE
                target[place : place + 4] = value.to_bytes(4, "little")
            elif kind in _ADDRESSES:
                value = _WasmReader(bytes(target), place).number() + BASE
                target[place : place + 5] = _signed(value)
    for k, (kind, _, _) in enumerate(every):
        if kind:
            yield kind, bytes(contents[k])
