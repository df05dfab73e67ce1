"""C expressions with the operators of engines/llvm/ir.py, so that one code writes both.

A real is double or float, a whole number an unsigned integer of the same size, a
condition an int. Only operations defined by the C standard are used, so that all
compilers give the same results.

The generators of the LLVM functions (float64_functions.py) write sin, cos and similar
functions in C, too; functions that C99 does not have are written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dyn_core.engines.llvm.functions import (
    far_angles,
    float32_functions,
    float64_functions,
)
from dyn_core.engines.llvm.ir import rounded_constant
from dyn_core.export.object_code import fused


@dataclass(frozen=True)
class CNumbers:
    """C types of `bits` bits; `end` is the suffix of constants and functions."""

    real: str
    whole: str
    bits: int
    end: str


DOUBLE = CNumbers("double", "uint64_t", 64, "")
SINGLE = CNumbers("float", "uint32_t", 32, "f")


def literal(x: Any, kind: str, numbers: CNumbers) -> str:
    """Return a constant in C; reals are hexadecimal or short integers, hence exact.

    A real is rounded to the precision before, NaN and infinities become macros; a whole
    number is taken modulo 2**bits, as an unsigned one. `kind`: real, whole or truth.
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
    """The statements of one C function; counterpart of Instructions with one lane.

    `fused`: a multiply-add rounds once.
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
        """Append a constant with the value of a C expression, real, whole or truth."""
        self.named += 1
        name = f"n{self.named}"
        self.lines.append(f"    const {self.type(kind)} {name} = {expression};")
        return CValue(self, kind, name)

    def call(self, name: str, kind: str, *arguments: CValue) -> CValue:
        """Append the call of a helper, `name` without prefix; return its value."""
        values = ", ".join(x.name for x in arguments)
        return self.new(f"{self.prefix}_{name}({values})", kind)

    def lift(self, x: Any, kind: str = "real") -> CValue:
        """Return x itself if it is a CValue, else a constant of the kind."""
        if isinstance(x, CValue):
            return x
        return CValue(self, kind, literal(x, kind, self.numbers))

    def fma(self, x: Any, y: Any, z: Any) -> CValue:
        """Return x*y + z of CValues or numbers, rounded once if `fused`, else twice."""
        x, y, z = self.lift(x), self.lift(y), self.lift(z)
        if not self.fused:
            return x * y + z
        return self.call(f"fma{self.numbers.end}", "real", x, y, z)

    def intrinsic(self, name: str, x: CValue) -> CValue:
        """Return fabs, built into compilers, or this source's sqrt or floor of x."""
        whose = "" if name == "fabs" else f"{self.prefix}_"
        return self.new(f"{whose}{name}{self.numbers.end}({x.name})")

    def select(self, c: CValue, a: Any, b: Any) -> CValue:
        """Return a where c holds, else b; numbers get the other's kind, or real."""
        like = a if isinstance(a, CValue) else b
        kind = like.kind if isinstance(like, CValue) else "real"
        a, b = self.lift(a, kind), self.lift(b, kind)
        return self.new(f"{c.name} ? {a.name} : {b.name}", kind)

    def horner(self, x: CValue, coefficients: tuple[float, ...]) -> CValue:
        """Return a polynomial of x; one or more coefficients, in ascending powers."""
        result = self.lift(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    def word(self, table: str, byte: CValue) -> CValue:
        """Return four bytes of the table of 2/pi, the first, at `byte`, lowest."""
        del table  # a source has only one table
        return self.call("word", "whole", byte)


class CValue:
    """A C expression; Python's operators append the statement of their result."""

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
        """Return a whole number shifted right by k bits, filled with its sign bit.

        k is at least 0 and less than the number of bits.
        """
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
        """Return lt, le, gt, eq or ne (true for NaN); whole numbers count as signed."""
        b = self.instructions
        a, other = self, b.lift(other, self.kind)
        if self.kind == "whole" and how not in ("eq", "ne"):
            sign = 2 ** (b.numbers.bits - 1)
            a, other = a ^ sign, other ^ sign
        op = {"lt": "<", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}[how]
        return b.new(f"{a.name} {op} {other.name}", "truth")

    def bits(self) -> CValue:
        """Return the bits of a real as a whole number, or the real with these bits."""
        b = self.instructions
        back = self.kind == "whole"
        name = ("real" if back else "bits") + b.numbers.end
        return b.call(name, "real" if back else "whole", self)


# Without optimisation GCC calls the C library's fma instead of the instruction.
_HARDWARE = """(!defined(__GNUC__) || defined(__OPTIMIZE__)) \\
    && (defined(FP_FAST_FMA{0}) || defined(__FMA__) || defined(__AVX512F__) \\
    || defined(__aarch64__) || (defined(__riscv_flen) && __riscv_flen >= {1}) \\
    || (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & {2})))"""
_BITS = """static {whole} P_bits{end}({real} x)
{{
    union {{ {real} real; {whole} bits; }} both;
    both.real = x;
    return both.bits;
}}

static {real} P_real{end}({whole} x)
{{
    union {{ {real} real; {whole} bits; }} both;
    both.bits = x;
    return both.real;
}}
"""
# GCC 12 fuses -(x y + z) into one instruction, whose zeros have another sign.
_MINUS = """#if defined(__GNUC__) && !defined(__clang__)
static {real} P_minus{end}({real} x)
{{
    return P_real{end}(P_bits{end}(x) ^ {sign});
}}
#else
#define P_minus{end}(x) (-(x))
#endif
"""
# The function of the C library may set errno, so compilers call it.
_SQRT = """#if defined(__GNUC__) && defined(__AVX__)
#define P_SQRT_ASM(y, x) __asm__("vsqrts{x86} %1, %1, %0" : "=x"(y) : "x"(x))
#elif defined(__GNUC__) && defined(__SSE2_MATH__)
#define P_SQRT_ASM(y, x) __asm__("sqrts{x86} %1, %0" : "=x"(y) : "x"(x))
#elif defined(__GNUC__) && defined(__aarch64__)
#define P_SQRT_ASM(y, x) __asm__("fsqrt %{a64}0, %{a64}1" : "=w"(y) : "w"(x))
#elif defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & {arm})
#define P_SQRT_ASM(y, x) __asm__("vsqrt.f{bits} {vfp}" : "={reg}"(y) : "{reg}"(x))
#elif defined(__GNUC__) && defined(__riscv_flen) && __riscv_flen >= {bits}
#define P_SQRT_ASM(y, x) __asm__("fsqrt.{riscv} %0, %1" : "=f"(y) : "f"(x))
#endif
static {real} P_sqrt{end}({real} x)
{{
#ifdef P_SQRT_ASM
    {real} y;
    P_SQRT_ASM(y, x);
    return y;
#undef P_SQRT_ASM
#else
    return sqrt{end}(x);
#endif
}}
"""
_FLOOR = """static {real} P_floor{end}({real} x)
{{
    const {real} size = fabs{end}(x);
    {real} whole;
    if (!(size < {large})) return x; /* whole, infinite or NaN */
    whole = (size + {large}) - {large};
    if (x < 0) whole = P_minus{end}(whole);
    if (whole == x) return x;
    return whole > x ? whole - 1 : whole;
}}
"""
_WORD = """static const unsigned char P_two_over_pi[{}] = {{
{}
}};

static uint64_t P_word(uint64_t byte)
{{
    const unsigned char *from = P_two_over_pi + byte;
    return from[0] | (uint64_t)from[1] << 8 | (uint64_t)from[2] << 16
        | (uint64_t)from[3] << 24;
}}
"""
_COLUMNS = 13  # bytes of a table in each line


class CFunctions:
    """A writer of the helper functions that a source calls, named with a prefix.

    `is_fused`: a multiply-add rounds once.
    """

    def __init__(self, prefix: str, is_fused: bool) -> None:
        self.prefix, self.fused = prefix, is_fused

    def definitions(self, source: str) -> str:
        """Return the helpers a source calls, directly or not, each before its uses."""
        parts = self._parts()
        wanted: dict[str, None] = {}
        front = [source]
        while front:
            called = set(re.findall(rf"\b{self.prefix}_(\w+)", front.pop()))
            for name, (names, text) in parts.items():
                if name not in wanted and called & set(names):
                    wanted[name] = None
                    front.append(text)
        return "\n".join(text for name, (_, text) in parts.items() if name in wanted)

    def _parts(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """Return all helpers by name, each before the helpers that use it.

        A value has its functions' names without prefix, and its C code with prefix.
        """
        parts = {
            "bits": (("bits", "real"), self._named(_bits(DOUBLE))),
            "bitsf": (("bitsf", "realf"), self._named(_bits(SINGLE))),
            "minus": (("minus",), self._named(_minus(DOUBLE))),
            "minusf": (("minusf",), self._named(_minus(SINGLE))),
            "floor": (("floor",), self._named(_floor(DOUBLE))),
            "floorf": (("floorf",), self._named(_floor(SINGLE))),
            "sqrt": (("sqrt",), self._named(_sqrt(DOUBLE))),
            "sqrtf": (("sqrtf",), self._named(_sqrt(SINGLE))),
            "fma": (("fma",), self._fma()),
            "fmaf": (("fmaf",), self._fma_single()),
            "word": (("word",), self._named(_table())),
            "far": (("far",), self._far()),
            "sincos": (("sincos",), self._sincos()),
            "sincosf": (("sincosf",), self._sincos_single()),
        }
        for name in float64_functions.FUNCTIONS:
            parts[name] = (name,), self._function(name)
        for name in float64_functions.FUNCTIONS:
            parts[f"{name}f"] = (f"{name}f",), self._function_single(name)
        return parts

    def _named(self, text: str) -> str:
        return re.sub(r"\bP_", f"{self.prefix}_", text)

    def _code(self, numbers: CNumbers = DOUBLE, is_fused: bool = True) -> CInstructions:
        return CInstructions(self.prefix, self.fused and is_fused, numbers)

    def _text(self, head: str, lines: Iterable[str]) -> str:
        return self._named("\n".join([f"static {head}", "{", *lines, "}", ""]))

    def _function(self, name: str) -> str:
        """Return the C code of a function of FUNCTIONS, of x or, for atan2, (y, x)."""
        b = self._code()
        names = ["y", "x"] if name == "atan2" else ["x"]
        result = float64_functions.FUNCTIONS[name](
            b, *(CValue(b, "real", x) for x in names)
        )
        arguments = ", ".join(f"double {x}" for x in names)
        lines = [*b.lines, f"    return {result.name};"]
        return self._text(f"double P_{name}({arguments})", lines)

    def _function_single(self, name: str) -> str:
        names = ["y", "x"] if name == "atan2" else ["x"]
        arguments = ", ".join(f"float {x}" for x in names)
        values = ", ".join(f"(double){x}" for x in names)
        lines = [f"    return (float)P_{name}({values});"]
        return self._text(f"float P_{name}f({arguments})", lines)

    def _far(self) -> str:
        """Return the C code of PREFIX_far(x, *r, *low, *n): reduction of a large angle.

        The results, for |x| >= 2**19, are stored at the pointers; n is a uint64_t, the
        others are doubles: x = n pi/2 + r + low modulo 2 pi, |r| <= pi/4.
        """
        b = self._code(is_fused=False)
        r, low, n = far_angles.reduced(b, CValue(b, "real", "x"))
        results = ("r", r), ("low", low), ("n", n)
        lines = [*b.lines, *(f"    *{name} = {x.name};" for name, x in results)]
        head = "void P_far(double x, double *r, double *low, uint64_t *n)"
        return self._text(head, lines)

    def _sincos(self) -> str:
        b = self._code()
        near = float64_functions.reduced(b, CValue(b, "real", "x"))
        bound = literal(float64_functions.FAR[self.fused], "real", DOUBLE)
        r, low, n = (x.name for x in near)
        b.lines += [
            f"    double r = {r}, low = {low};",
            f"    uint64_t n = {n};",
            f"    if (fabs(x) > {bound}) P_far(x, &r, &low, &n);",
        ]
        kinds = ("real", "r"), ("real", "low"), ("whole", "n")
        sine, cosine = float64_functions.sine_and_cosine(
            b, *(CValue(b, *pair) for pair in kinds)
        )
        b.lines += [f"    *sine = {sine.name};", f"    *cosine = {cosine.name};"]
        head = "void P_sincos(double x, double *sine, double *cosine)"
        return self._text(head, b.lines)

    def _sincos_single(self) -> str:
        b = self._code(SINGLE)
        wide = [
            "    double s, c;",
            "    P_sincos((double)x, &s, &c);",
            "    *sine = (float)s;",
            "    *cosine = (float)c;",
        ]
        lines = wide
        if self.fused:
            sine, cosine = float32_functions.sine_and_cosine(b, CValue(b, "real", "x"))
            bound = literal(float32_functions.FAR, "real", SINGLE)
            lines = [
                *b.lines,
                f"    *sine = {sine.name};",
                f"    *cosine = {cosine.name};",
                f"    if (!(fabsf(x) > {bound})) return;",
                *wide,
            ]
        head = "void P_sincosf(float x, float *sine, float *cosine)"
        return self._text(head, lines)

    def _fma(self) -> str:
        """Return C code of PREFIX_fma of doubles: an instruction or from fused.py."""
        b, head = (
            self._code(is_fused=False),
            "double P_{}(double x, double y, double z)",
        )
        result = fused.scaled(b, *_xyz(b))
        scaled = self._text(
            head.format("fma_scaled"), [*b.lines, f"    return {result.name};"]
        )
        b = self._code(is_fused=False)
        good = fused.is_ordinary(b, *_xyz(b))
        b.lines.append(f"    if (!{good.name}) return P_fma_scaled(x, y, z);")
        high, low = fused.ordinary(b, *_xyz(b))
        b.lines.append(f"    return {high.name} + {low.name};")
        written = self._text(head.format("fma"), b.lines)
        return self._chosen("", 64, 8, [scaled, written])

    def _fma_single(self) -> str:
        b = self._code(is_fused=False)
        wide = (CValue(b, "real", f"(double){x}") for x in "xyz")
        result = fused.odd_sum_of_products(b, *wide)
        lines = [*b.lines, f"    return (float){result.name};"]
        head = "float P_fmaf(float x, float y, float z)"
        return self._chosen("f", 32, 4, [self._text(head, lines)])

    def _chosen(self, end: str, bits: int, arm: int, definitions: Sequence[str]) -> str:
        """Return C code of the multiply-add: the instruction, or `definitions`.

        The preprocessor chooses: a macro calls fma or fmaf (`end`) of the C library
        where compilers make it an instruction: `bits` is the minimum register size on
        RISC-V, `arm` the bit of __ARM_FP.
        """
        macro = "FP_FAST_FMA" + end.upper()
        test = _HARDWARE.format(end.upper(), bits, arm)
        return "\n".join(
            [
                f"#if {test}",
                f"#define {self.prefix}_fma{end}(x, y, z) fma{end}(x, y, z)",
                f"#else /* not {macro}: rounded once by these functions */",
                *definitions,
                "#endif",
                "",
            ]
        )


def _xyz(b: CInstructions) -> list[CValue]:
    return [CValue(b, "real", name) for name in "xyz"]


def _bits(numbers: CNumbers) -> str:
    return _BITS.format(real=numbers.real, whole=numbers.whole, end=numbers.end)


def _minus(numbers: CNumbers) -> str:
    sign = literal(2 ** (numbers.bits - 1), "whole", numbers)
    return _MINUS.format(real=numbers.real, end=numbers.end, sign=sign)


def _sqrt(numbers: CNumbers) -> str:
    """Return C code of the square root, instruction or <math.h>; P_ is the prefix."""
    double = numbers is DOUBLE
    return _SQRT.format(
        real=numbers.real,
        end=numbers.end,
        bits=numbers.bits,
        x86="d" if double else "s",
        a64="d" if double else "s",
        arm=8 if double else 4,
        vfp="%P0, %P1" if double else "%0, %1",
        reg="w" if double else "t",
        riscv="d" if double else "s",
    )


def _floor(numbers: CNumbers) -> str:
    """Return the C code of a function that rounds down to an integer; P_ is the prefix.

    From 2**52 (float: 2**23) on all numbers are integers and returned as they are.
    """
    large = literal(2.0 ** (52 if numbers is DOUBLE else 23), "real", numbers)
    return _FLOOR.format(real=numbers.real, end=numbers.end, large=large)


def _table() -> str:
    numbers = [f"{x:#04x}" for x in far_angles.table()]
    rows = [numbers[k : k + _COLUMNS] for k in range(0, len(numbers), _COLUMNS)]
    lines = ",\n".join(f"    {', '.join(row)}" for row in rows)
    return _WORD.format(len(numbers), lines)
