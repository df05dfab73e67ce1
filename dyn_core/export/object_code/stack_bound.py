"""An upper bound for the stack of exported code, from its source text.

Each value of a function needs at most one stack slot, whatever the compiler does, and a
chain of calls needs at most the sum over its functions; compilers that inline functions
share their slots. There is no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

FRAME = 192  # bytes of a call: saved registers, return address, alignment
WORD = 8  # bytes of a number or an address
_C = re.compile(r"^[\w *]*\b(\w+)\(([^;{)]*)\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(
    r"^ +(?:const |static const )?(?:double|float|int|u?int\d+_t|union)\b(.*)$",
    re.MULTILINE,
)
_INNER = re.compile(r"\([^()]*\)|\{[^{}]*\}")
_IR = re.compile(r"^define [^@]*@([\w.]+)\([^\n]*\{\n(.*?)^\}", re.M | re.S)
_VALUE = re.compile(r"^ +%\S+ = (.*)$", re.MULTILINE)
_LANES = re.compile(r"<(\d+) x (?:double|i64|float|i32)>")
_ROOM = re.compile(r"alloca \[?(\d*)")


class StackFrame(NamedTuple):
    """A function: bytes of its stack frame, and names in its text, also of callees."""

    size: int
    calls: frozenset[str]


def stack_of_c(text: str, entries: Sequence[str]) -> int:
    """Return an upper bound of the stack of `entries` of a C source [bytes].

    Functions not defined there count as 0, of several definitions the largest.
    """
    frames: dict[str, StackFrame] = {}
    for name, arguments, body in _C.findall(text):
        size = FRAME + WORD * (2 * arguments.count(",") + sum(_declared(body)))
        calls = frozenset(re.findall(r"\b(\w+)\(", body))
        before = frames.get(name, StackFrame(0, frozenset()))  # of another #if
        frames[name] = StackFrame(max(size, before.size), calls | before.calls)
    return _deepest(frames, entries)


def _declared(body: str) -> Iterator[int]:
    """Yield the number of words of each declaration in a C function's body.

    A name counts 1, an array [N + 1] N + 1; last comes the number of `for (int`.
    """
    for line in _DECLARED.findall(body):
        clean, before = line, ""
        while clean != before:
            clean, before = _INNER.sub("", clean), clean
        yield clean.count(",") + 1 + sum(map(int, re.findall(r"\[(\d+) \+ 1\]", clean)))
    yield body.count("for (int")


def stack_of_ir(modules: Sequence[str], entries: Sequence[str]) -> int:
    """Return an upper bound of the stack of `entries` of the first module [bytes].

    The first one, of LLVM IR, calls @scalar and @batch of the others, which share no
    other function. A missing entry counts as 0.
    """
    first, *others = map(_frames, modules)
    for frames in others:
        for name in frames.keys() & {"scalar", "batch"}:
            first[name] = StackFrame(_deepest(frames, [name]), frozenset())
    return _deepest(first, entries)


def _frames(module: str) -> dict[str, StackFrame]:
    """Return the StackFrame of each function that a module of LLVM IR defines, by name.

    Its size is an upper bound: 192 bytes, and 8 per lane of a value or allocation.
    """
    return {
        name: StackFrame(FRAME + sum(_values(body)), frozenset(_called(body)))
        for name, body in _IR.findall(module)
    }


def _values(body: str) -> Iterator[int]:
    """Yield 8 bytes per lane for each value and allocation in the LLVM IR of a body."""
    for value in _VALUE.findall(body):
        lanes = max([1, *map(int, _LANES.findall(value))])
        count = _ROOM.match(value)
        yield WORD * lanes * (int(count[1] or 1) if count else 1)


def _called(body: str) -> list[str]:
    return re.findall(r"call [^@\n]*@([\w.]+)\(", body)


def _deepest(frames: Mapping[str, StackFrame], entries: Sequence[str]) -> int:
    """Return the largest sum of frame sizes along a chain of calls [bytes].

    A function counts once in a chain, even if it calls itself, and 0 if it is missing.
    """
    known: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in frames:
            return 0
        if name not in known:
            known[name] = 0  # ends a search in case of recursion
            below = max(map(depth, frames[name].calls), default=0)
            known[name] = frames[name].size + below
        return known[name]

    return max(map(depth, entries), default=0)
