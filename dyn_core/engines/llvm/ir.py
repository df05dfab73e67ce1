"""LLVM instructions: values of one or several lanes with Python's operators."""

from __future__ import annotations

import struct
from math import copysign
from typing import Any

import numpy as np

_NAMES = {"real": "double", "whole": "i64", "truth": "i1"}
_SINGLE = {"real": "float", "whole": "i32", "truth": "i1"}
_LEAST = 2.0**-126  # smallest normal float32


class Lanes(int):
    """A number of float32 lanes; any other int is a number of float64 lanes."""


def is_single(width: int) -> bool:
    """Return whether lanes are float32: whether `width` is of type Lanes."""
    return isinstance(width, Lanes)


def lanes_like(width: int, count: int) -> int:
    """Return `count` lanes with the type of real numbers of `width`."""
    return Lanes(count) if is_single(width) else count


def real_size(width: int) -> int:
    """Return the size of a real or whole number in one lane [bytes]: 8, or 4."""
    return 4 if is_single(width) else 8


def suffix(width: int) -> str:
    """Return the suffix of LLVM's intrinsics: f64, v4f64, or f32, v4f32 for Lanes."""
    one = "f32" if is_single(width) else "f64"
    return one if width == 1 else f"v{width}{one}"


def kind(name: str, width: int) -> str:
    """Return the LLVM type of a kind with a number of lanes.

    Args:
        name: real, whole or truth.
        width: Lanes, of type Lanes for 32-bit numbers.
    """
    base = (_SINGLE if is_single(width) else _NAMES)[name]
    return base if width == 1 else f"<{width} x {base}>"


def rounded_constant(x: float, single: bool) -> float:
    """Return a constant as used in code; `single`: rounded to float32, not to zero.

    Tiny ones become the smallest normal number with sign, too large ones infinity.
    """
    if not single or x == 0.0 or x != x:
        return x
    if abs(x) < _LEAST:
        return copysign(_LEAST, x)
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def constant(x: Any, name: str, width: int) -> str:
    """Return an LLVM constant of a kind (real, whole, truth), the same in every lane.

    A real is a rounded_constant; a whole number is truncated.
    """
    one = lanes_like(width, 1)
    if name == "real":
        number = struct.pack("<d", rounded_constant(float(x), is_single(width)))
        literal = f"0x{struct.unpack('<Q', number)[0]:016X}"
    elif name == "truth":
        literal = "true" if x else "false"
    else:
        literal = str(int(x))
    return literal if width == 1 else f"splat ({kind(name, one)} {literal})"


class Instructions:
    """The instructions of one LLVM function.

    Methods that return a Value or a register append instructions to `lines`, unless the
    result is a constant or one of the arguments. Equal instructions are not merged.

    Attributes:
        width: Lanes of its values, of type Lanes for float32.
        fused: Whether a multiply-add is one instruction that rounds once.
        lines: Instructions written so far.
        named: Number of registers so far.
        real, whole, truth: LLVM types of the three kinds.
        suffix: Type suffix of LLVM's intrinsics.
    """

    def __init__(self, width: int, fused: bool) -> None:
        self.width, self.fused = width, fused
        self.lines: list[str] = []
        self.named = 0
        self.real = kind("real", width)
        self.whole = kind("whole", width)
        self.truth = kind("truth", width)
        self.suffix = suffix(width)

    def new(self, instruction: str) -> str:
        """Append an instruction, also if an equal one exists; return its register."""
        self.named += 1
        name = f"%n{self.named}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def value(self, kind_name: str, instruction: str) -> Value:
        """Append an instruction, also if an equal one exists; return a Value of it.

        Args:
            kind_name: Kind of the result: real, whole or truth.
            instruction: LLVM text right of the equals sign.
        """
        return Value(self, kind_name, self.new(instruction))

    def lift(self, x: Any, kind_name: str = "real") -> Value:
        """Return a Value unchanged, or the number x as a constant in all lanes.

        Args:
            x: Value, number or condition.
            kind_name: Kind of the constant: real, whole or truth.
        """
        if isinstance(x, Value):
            return x
        return Value(self, kind_name, constant(x, kind_name, self.width))

    def fma(self, x: Any, y: Any, z: Any) -> Value:
        """Return x*y + z of Values or numbers, rounded once if `fused`, else twice."""
        x, y, z = self.lift(x), self.lift(y), self.lift(z)
        if not self.fused:
            return x * y + z
        args = f"{self.real} {x.name}, {self.real} {y.name}, {self.real} {z.name}"
        return self.value("real", f"call {self.real} @llvm.fma.{self.suffix}({args})")

    def intrinsic(self, name: str, x: Value) -> Value:
        """Return the result of an LLVM intrinsic of one real argument, such as fabs."""
        call = f"call {self.real} @llvm.{name}.{self.suffix}({self.real} {x.name})"
        return self.value("real", call)

    def select(self, c: Value, a: Any, b: Any) -> Value:
        """Return a where c holds, else b, lane by lane.

        Args:
            c: Condition, of kind truth.
            a, b: Values or constants; a constant gets the kind of the other one (two
                constants: real).
        """
        like = a if isinstance(a, Value) else b
        name = like.kind if isinstance(like, Value) else "real"
        a, b = self.lift(a, name), self.lift(b, name)
        of = kind(name, self.width)
        instruction = f"select {self.truth} {c.name}, {of} {a.name}, {of} {b.name}"
        return self.value(name, instruction)

    def horner(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """Return the polynomial in x with these coefficients, constant term first.

        There must be at least one coefficient, else IndexError; for one alone, the
        result is a constant.
        """
        result = self.lift(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    def any(self, c: Value) -> str:
        """Return the register of an i1: whether c holds in any lane."""
        if self.width == 1:
            return c.name
        bits = self.new(f"bitcast {self.truth} {c.name} to i{self.width}")
        return self.new(f"icmp ne i{self.width} {bits}, 0")

    def word(self, table: str, byte: Value) -> Value:
        """Return 32 bits of a byte table as an unsigned whole number.

        One lane of float64 only; the bytes are in the machine's order.

        Args:
            table: Name of the table, with its "@".
            byte: Index of the first byte, a whole number.
        """
        place = self.new(f"getelementptr i8, ptr {table}, i64 {byte.name}")
        bits = self.new(f"load i32, ptr {place}, align 1")
        return self.value("whole", f"zext i32 {bits} to i64")

    def lane(self, x: Value, k: int) -> str:
        """Return the register of lane k, from 0, of the real Value x."""
        if self.width == 1:
            return x.name
        return self.new(f"extractelement {self.real} {x.name}, i32 {k}")


class Value:
    """An LLVM value with Python's operators; its `kind` is real, whole or truth.

    Operators and methods append an instruction to the function and return its result.
    """

    __slots__ = ("instructions", "kind", "name")

    def __init__(self, instructions: Instructions, kind_name: str, name: str) -> None:
        self.instructions, self.kind, self.name = instructions, kind_name, name

    def _two(self, op: str, other: Any, swapped: bool = False) -> Value:
        a, b = self, self.instructions.lift(other, self.kind)
        if swapped:
            a, b = b, a
        of = kind(self.kind, self.instructions.width)
        return self.instructions.value(self.kind, f"{op} {of} {a.name}, {b.name}")

    # fmt: off
    def __add__(self, y: Any) -> Value: return self._two(self._op("add"), y)
    def __radd__(self, y: Any) -> Value: return self._two(self._op("add"), y, True)
    def __sub__(self, y: Any) -> Value: return self._two(self._op("sub"), y)
    def __rsub__(self, y: Any) -> Value: return self._two(self._op("sub"), y, True)
    def __mul__(self, y: Any) -> Value: return self._two(self._op("mul"), y)
    def __rmul__(self, y: Any) -> Value: return self._two(self._op("mul"), y, True)
    def __truediv__(self, y: Any) -> Value: return self._two("fdiv", y)
    def __rtruediv__(self, y: Any) -> Value: return self._two("fdiv", y, True)
    def __and__(self, y: Any) -> Value: return self._two("and", y)
    def __or__(self, y: Any) -> Value: return self._two("or", y)
    def __xor__(self, y: Any) -> Value: return self._two("xor", y)
    def __lshift__(self, k: int) -> Value: return self._two("shl", k)
    def __rshift__(self, k: int) -> Value: return self._two("ashr", k)
    # fmt: on

    @property
    def type(self) -> str:
        """LLVM type of the value."""
        return kind(self.kind, self.instructions.width)

    def logical(self, k: int) -> Value:
        """Return a whole number shifted right by k bits, filled with zeros."""
        return self._two("lshr", k)

    def __neg__(self) -> Value:
        return self.instructions.value(
            "real", f"fneg {self.instructions.real} {self.name}"
        )

    def _op(self, name: str) -> str:
        return f"f{name}" if self.kind == "real" else name

    def compare(self, how: str, other: Any) -> Value:
        """Return a condition of two values of a kind; whole numbers are signed.

        `how`: lt, le, gt, ge, eq (false for NaN), ne (true); of conditions eq or ne.
        """
        other = self.instructions.lift(other, self.kind)
        if self.kind == "real":
            code = "fcmp " + ("une" if how == "ne" else f"o{how}")
        else:
            code = "icmp " + (how if how in ("eq", "ne") else f"s{how}")
        of = kind(self.kind, self.instructions.width)
        return self.instructions.value(
            "truth", f"{code} {of} {self.name}, {other.name}"
        )

    def bits(self) -> Value:
        """Return the bits of a real as a whole number, or a real from its bits."""
        to = "whole" if self.kind == "real" else "real"
        a, b = (
            kind(self.kind, self.instructions.width),
            kind(to, self.instructions.width),
        )
        return self.instructions.value(to, f"bitcast {a} {self.name} to {b}")
