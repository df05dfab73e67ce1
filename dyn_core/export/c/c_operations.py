"""C expressions with the operators of engines/llvm/ir.py, so that one code writes both.

A real is double or float, a whole number an unsigned integer of the same size, a
condition an int. Only operations defined by the C standard are used, so that all
compilers give the same results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dyn_core.engines.llvm.ir import rounded_constant


@dataclass(frozen=True)
class CNumbers:
    """The C names of one precision.

    Attributes:
        real, whole: Types.
        bits: Size of both types.
        end: Suffix of constants and names of the library's functions.
    """

    real: str
    whole: str
    bits: int
    end: str


DOUBLE = CNumbers("double", "uint64_t", 64, "")
SINGLE = CNumbers("float", "uint32_t", 32, "f")


def literal(x: Any, kind: str, numbers: CNumbers) -> str:
    """Return a constant in C; reals are hexadecimal or short integers, hence exact.

    Args:
        x: Value.
        kind: "real", "whole" or "truth".
        numbers: Precision.
    """
    if kind == "truth":
        return "1" if x else "0"
    if kind == "whole":
        return f"UINT{numbers.bits}_C({int(x) % 2**numbers.bits:#x})"
    x = rounded_constant(float(x), numbers is SINGLE)
    if x != x:
        return f"({numbers.real})NAN"
    if x in (float("inf"), -float("inf")):
        return f"({'-' if x < 0 else ''}({numbers.real})INFINITY)"
    digits = repr(x) if x == int(x) and abs(x) < 2**20 else x.hex()
    text = f"{digits}{numbers.end}"
    return f"({text})" if text.startswith("-") else text


class CInstructions:
    """The statements of one C function; the counterpart of Instructions with one lane.

    Args:
        prefix: Prefix of the names of functions.
        fused: Whether a multiply-add rounds once.
        numbers: Precision.

    Attributes:
        lines: Statements written so far.
    """

    width = 1

    def __init__(self, prefix: str, fused: bool, numbers: CNumbers = DOUBLE) -> None:
        self.prefix, self.fused, self.numbers = prefix, fused, numbers
        self.real, self.whole = numbers.real, numbers.whole
        self.lines: list[str] = []
        self.named = 0

    def type(self, kind: str) -> str:
        """Return the C type of a kind: real, whole or truth."""
        return {"real": self.real, "whole": self.whole, "truth": "int"}[kind]

    def new(self, expression: str, kind: str = "real") -> CValue:
        """Append a constant variable with the value of a C expression; return it.

        Args:
            expression: The expression.
            kind: "real", "whole" or "truth".
        """
        self.named += 1
        name = f"n{self.named}"
        self.lines.append(f"    const {self.type(kind)} {name} = {expression};")
        return CValue(self, kind, name)

    def call(self, name: str, kind: str, *arguments: CValue) -> CValue:
        """Append the call of a helper function of this source; return its value.

        Args:
            name: Name of the function without prefix.
            kind: Kind of its value: real, whole or truth.
            arguments: Its arguments.
        """
        values = ", ".join(x.name for x in arguments)
        return self.new(f"{self.prefix}_{name}({values})", kind)

    def lift(self, x: Any, kind: str = "real") -> CValue:
        """Return x itself if it is a CValue, else a constant of the kind."""
        if isinstance(x, CValue):
            return x
        return CValue(self, kind, literal(x, kind, self.numbers))

    def fma(self, x: Any, y: Any, z: Any) -> CValue:
        """Return x*y + z, rounded once if multiply-adds are fused."""
        x, y, z = self.lift(x), self.lift(y), self.lift(z)
        if not self.fused:
            return x * y + z
        return self.call(f"fma{self.numbers.end}", "real", x, y, z)

    def intrinsic(self, name: str, x: CValue) -> CValue:
        """Return the value of a function of a real number.

        Args:
            name: "fabs", a built-in of compilers, or "sqrt" or "floor" of this source.
            x: Argument.
        """
        whose = "" if name == "fabs" else f"{self.prefix}_"
        return self.new(f"{whose}{name}{self.numbers.end}({x.name})")

    def select(self, c: CValue, a: Any, b: Any) -> CValue:
        """Return a where the condition c holds, else b.

        Args:
            c: Condition.
            a, b: CValues of one kind, or Python numbers, which get that kind (two
                numbers:
                real).
        """
        like = a if isinstance(a, CValue) else b
        kind = like.kind if isinstance(like, CValue) else "real"
        a, b = self.lift(a, kind), self.lift(b, kind)
        return self.new(f"{c.name} ? {a.name} : {b.name}", kind)

    def horner(self, x: CValue, coefficients: tuple[float, ...]) -> CValue:
        """Return a polynomial of x; the first coefficient is the constant one."""
        result = self.lift(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    def word(self, table: str, byte: CValue) -> CValue:
        """Return 32 bits of the table of bytes of 2/pi as a whole number.

        Args:
            table: Ignored: a source has only one.
            byte: Index of the first byte, a whole number.
        """
        del table  # a source has only one table
        return self.call("word", "whole", byte)


class CValue:
    """An expression of C; Python's operators append the statement of their result.

    Args:
        instructions: Statements that results are appended to.
        kind: "real", "whole" or "truth".
        name: Text of the expression.
    """

    __slots__ = ("instructions", "kind", "name")

    def __init__(self, instructions: CInstructions, kind: str, name: str) -> None:
        self.instructions, self.kind, self.name = instructions, kind, name

    def _two(self, op: str, other: Any, swapped: bool = False) -> CValue:
        a, b = self, self.instructions.lift(other, self.kind)
        if swapped:
            a, b = b, a
        return self.instructions.new(f"{a.name} {op} {b.name}", self.kind)

    # fmt: off
    def __add__(self, y: Any) -> CValue: return self._two("+", y)
    def __radd__(self, y: Any) -> CValue: return self._two("+", y, True)
    def __sub__(self, y: Any) -> CValue: return self._two("-", y)
    def __rsub__(self, y: Any) -> CValue: return self._two("-", y, True)
    def __mul__(self, y: Any) -> CValue: return self._two("*", y)
    def __rmul__(self, y: Any) -> CValue: return self._two("*", y, True)
    def __truediv__(self, y: Any) -> CValue: return self._two("/", y)
    def __rtruediv__(self, y: Any) -> CValue: return self._two("/", y, True)
    def __and__(self, y: Any) -> CValue: return self._two("&", y)
    def __or__(self, y: Any) -> CValue: return self._two("|", y)
    def __xor__(self, y: Any) -> CValue: return self._two("^", y)
    def __lshift__(self, k: Any) -> CValue: return self._two("<<", k)
    # fmt: on

    def __rshift__(self, k: int) -> CValue:
        """Return a whole number shifted right by k bits, filled with its sign bit."""
        b = self.instructions
        down = b.lift(2 ** (b.numbers.bits - 1 - k), "whole")
        shifted = b.new(f"({self.name} >> {k})", self.kind)
        # sign extension: (x ^ s) - s for the bit s at the shifted sign's position
        return (shifted ^ down) - down

    def logical(self, k: int) -> CValue:
        """Return a whole number shifted right by k bits, filled with zeros."""
        return self.instructions.new(f"{self.name} >> {k}", self.kind)

    def __neg__(self) -> CValue:
        b = self.instructions
        return b.call(f"minus{b.numbers.end}", "real", self)

    def compare(self, how: str, other: Any) -> CValue:
        """Return a condition; whole numbers are compared as signed ones.

        Args:
            how: lt, le, gt or eq, all false for NaN, or ne, true for NaN.
            other: CValue, or a number of the kind of this value.
        """
        b = self.instructions
        a, other = self, b.lift(other, self.kind)
        if self.kind == "whole" and how not in ("eq", "ne"):
            sign = 2 ** (b.numbers.bits - 1)
            a, other = a ^ sign, other ^ sign
        op = {"lt": "<", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}[how]
        return b.new(f"{a.name} {op} {other.name}", "truth")

    def bits(self) -> CValue:
        """Return the bits of a real as a whole number, or the reverse."""
        b = self.instructions
        back = self.kind == "whole"
        name = ("real" if back else "bits") + b.numbers.end
        return b.call(name, "real" if back else "whole", self)
