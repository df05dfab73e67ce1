"""A multiply-add that rounds once, for targets that have no instruction for it.

    x y + z,   rounded to nearest, ties to even

The product is split into two numbers exactly, the three numbers are added with rounding
errors preserved in the last bit (rounding to odd), and only the last addition rounds.
Products or terms so large or small that intermediate results would overflow or
underflow are scaled before; a subnormal result, which must round at its last bit, is
added to a number that moves this bit to the position where an addition rounds. One
function writes both LLVM IR and C: `b` is an Instructions or a CInstructions, to which
the expressions are appended; x, y, z, arguments and results are its values, float64
unless said otherwise.

Cost: 100 instructions of x86-64 (SSE2) and 156 of WebAssembly for ordinary numbers, 240
and 390 more if the product is below 2**-960, or a number above 2**990 or not finite.
Rounding down: 33 instructions.

Source: T. J. Dekker, A floating-point technique for extending the available precision
(1971); S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd, IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dyn_core.engines.llvm.ir import Instructions, Lanes, Value, is_single, kind, suffix

_SPLIT = 2.0**27 + 1
_SIGN = -(2**63)
_EXPONENT = 2047 << 52
_LEAST, _MOST = 2.0**-960, 2.0**990  # range without scaling
_APART = 120  # maximum difference of exponents: beyond it only signs matter
_TINY = -1300  # smaller exponents give zero anyway
_FMA = re.compile(r"@llvm\.fma\.(v(\d+))?f(32|64)\(")
_FLOOR = re.compile(r"@llvm\.floor\.(v(\d+))?f(32|64)\(")
_DECLARED = "declare [^\n]*@llvm\\.{}\\.[^\n]*\n"


def is_ordinary(b: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the condition, of the generated code, that x y + z needs no scaling.

    It holds if 2**-960 < |x y| < 2**990, and |x|, |y| and |z| are below 2**990. Here as
    in all functions of this file, `b`, Instructions or CInstructions, gets the
    expressions; numbers are values of b, float64.
    """
    product = b.intrinsic("fabs", x * y)
    result = product.compare("gt", _LEAST) & product.compare("lt", _MOST)
    for number in (x, y, z):
        result = result & b.intrinsic("fabs", number).compare("lt", _MOST)
    return result


def ordinary(b: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """Return two numbers whose rounded sum is fma(x, y, z), for ordinary numbers."""
    product, rest = _product(x, y)
    high, low = _sum(z, rest)
    total, less = _sum(product, high)
    return total, _odd_sum(b, low, less)


def scaled(b: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x y + z, rounded once, for any numbers, also zeros, infinities and NaN."""
    (x1, kx), (y1, ky), (z1, kz) = (_normal(b, number) for number in (x, y, z))
    z1 = b.select(z.compare("eq", 0.0), z, z1)
    power = kx + ky
    apart = _least(b, _largest(b, kz - power, -_APART), _APART)
    power = _largest(b, _largest(b, power, kz - _APART), _TINY)
    total, rest = ordinary(b, x1, y1, z1 * _power_of_two(apart))
    result = total + rest
    large = _times_power(result, power)
    # A number of the same sign, whose last bit is the least subnormal.
    shift = _power_of_two(_largest(b, -1022 - power, -1000))
    sign = result.bits() & _SIGN
    shift = (shift.bits() | sign).bits()
    high, low = _sum(shift, total)
    small = _times_power((high + _odd_sum(b, low, rest)) - shift, power)
    small = ((small.bits() & ~_SIGN) | sign).bits()
    is_small = b.intrinsic("fabs", large).compare("le", 2.0**-1022)
    result = b.select(is_small, small, large)
    result = b.select(_is_finite(z), result, z + z)
    plain = x.compare("eq", 0.0) | y.compare("eq", 0.0)
    for number in (x, y):
        result = b.select(_is_finite(number), result, x * y + z)
    return b.select(plain, x * y + z, result)


def odd_sum_of_products(b: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x y + z in float64, rounded to odd: rounding it to float32 is correct.

    x, y and z are float64 numbers that are exact in float32.
    """
    return _odd_sum(b, x * y, z)


def floor(b: Any, x: Any) -> Any:
    """Return the largest integer that is not above x; infinities, NaN and -0 remain.

    Args:
        b: Instructions or CInstructions of float64 or float32, which are extended.
        x: Value of b.
    """
    size = b.intrinsic("fabs", x)
    big, bits = (2.0**23, 31) if "float" in b.real else (2.0**52, 63)
    near = _with_sign((size + big) - big, x, bits)
    below = b.select(near.compare("gt", x), near - 1.0, near)
    return b.select(size.compare("lt", big), _with_sign(below, x, bits), x)


def _with_sign(size: Any, x: Any, bits: int) -> Any:
    """Return the magnitude `size`, >= 0, with the sign of x; `bits` is 63 or 31."""
    sign = -(2**bits)
    return ((size.bits() & ~sign) | (x.bits() & sign)).bits()


def _is_finite(x: Any) -> Any:
    return (x - x).compare("eq", 0.0)


def _split(x: Any) -> tuple[Any, Any]:
    c = x * _SPLIT
    high = c - (c - x)
    return high, x - high


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the product x y, rounded, and its rounding error, exact if is_ordinary."""
    product = x * y
    (a, b), (c, d) = _split(x), _split(y)
    return product, (((a * c - product) + a * d) + b * c) + b * d


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Return a rounded sum and its rounding error, exact unless the sum overflows."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _odd_sum(b: Any, x: Any, y: Any) -> Any:
    """Return a sum rounded to odd: if inexact, the neighbour with an odd last bit."""
    total, rest = _sum(x, y)
    bits = total.bits()
    inexact = b.intrinsic("fabs", rest).compare("gt", 0.0)
    inexact = inexact & (bits & 1).compare("eq", 0)
    step = ((bits ^ rest.bits()) >> 63) | 1
    return (bits + b.select(inexact, step, 0)).bits()


def _normal(b: Any, x: Any) -> tuple[Any, Any]:
    """Return the mantissa of a number, in [1, 2) with its sign, and its whole exponent.

    For zero, infinity and NaN they have no meaning.
    """
    tiny = b.intrinsic("fabs", x).compare("lt", 2.0**-1022)
    bits = b.select(tiny, x * 2.0**54, x).bits()
    bias = b.select(tiny, b.lift(1077, "whole"), 1023)
    exponent = ((bits >> 52) & 2047) - bias
    return ((bits & ~_EXPONENT) | (1023 << 52)).bits(), exponent


def _power_of_two(k: Any) -> Any:
    return ((k + 1023) << 52).bits()


def _times_power(x: Any, k: Any) -> Any:
    """Return x 2**k by two products with normal numbers, each rounded.

    k is a whole number, within about twice the range of exponents.
    """
    first = k >> 1
    return x * _power_of_two(first) * _power_of_two(k - first)


def _largest(b: Any, k: Any, other: Any) -> Any:
    return b.select(k.compare("gt", other), k, other)


def _least(b: Any, k: Any, other: Any) -> Any:
    return b.select(k.compare("lt", other), k, other)


def with_exact_fma(ir: str) -> str:
    """Return LLVM IR with @exact_fma_f64, @exact_fma_v4f64, ... in place of fma."""
    widths = _widths(_FMA, ir)
    if not widths:
        return ir
    ir = re.sub(_DECLARED.format("fma"), "", ir)
    ir = _FMA.sub(lambda match: f"@exact_fma_{suffix(_lanes(match))}(", ir)
    wide = {w for w in widths if not is_single(w)}
    parts = [_fma(w) for w in sorted({*wide, 1} if wide else ())]
    parts += [_scaled_ir()] if wide else []
    parts += [_fma_single(w) for w in widths if is_single(w)]
    return "\n".join([_with_declared(ir, "fabs", [*map(int, widths), 1]), *parts])


def with_own_floor(ir: str) -> str:
    """Return LLVM IR with @own_floor_f64, @own_floor_v4f64, ... in place of floor."""
    widths = _widths(_FLOOR, ir)
    if not widths:
        return ir
    ir = re.sub(_DECLARED.format("floor"), "", ir)
    ir = _FLOOR.sub(lambda match: f"@own_floor_{suffix(_lanes(match))}(", ir)
    parts = [_floor_ir(width) for width in widths]
    return "\n".join([_with_declared(ir, "fabs", widths), *parts])


def _widths(what: re.Pattern[str], ir: str) -> list[int]:
    """Return the numbers of lanes in calls of _FMA or _FLOOR; of float32 as Lanes."""
    lanes = [_lanes(match) for match in what.finditer(ir)]
    return list({suffix(width): width for width in lanes}.values())


def _lanes(match: re.Match[str]) -> int:
    count = int(match[2] or 1)
    return Lanes(count) if match[3] == "32" else count


def _with_declared(ir: str, name: str, widths: Sequence[int]) -> str:
    """Return a module that declares an LLVM intrinsic of one real, in all widths."""
    for width in widths:
        of = kind("real", width)
        line = f"declare {of} @llvm.{name}.{suffix(width)}({of})"
        if line not in ir:
            ir = f"{line}\n{ir}"
    return ir


def _arguments(of: str) -> str:
    return ", ".join(f"{of} %{x}" for x in "xyz")


def _fma(width: int) -> str:
    """Return the LLVM IR of a float64 multiply-add with `width` lanes.

    If a lane needs scaling, all are computed one by one by @exact_fma_f64.
    """
    b = Instructions(width, False)
    x, y, z = (Value(b, "real", f"%{name}") for name in "xyz")
    good = is_ordinary(b, x, y, z)
    bad = b.any(good ^ True)
    b.lines += [f"  br i1 {bad}, label %any, label %ordinary", "ordinary:"]
    high, low = ordinary(b, x, y, z)
    b.lines += [f"  ret {b.real} {(high + low).name}", "any:"]
    packed = "poison"
    for k in range(width):
        lanes = ", ".join(f"double {b.lane(v, k)}" for v in (x, y, z))
        name = "@exact_fma_f64" if width > 1 else "@exact_fma_scaled"
        one = b.new(f"call double {name}({lanes})")
        packed = (
            one
            if width == 1
            else b.new(f"insertelement {b.real} {packed}, double {one}, i32 {k}")
        )
    head = (
        f"define internal {b.real} @exact_fma_{b.suffix}({_arguments(b.real)})"
        " nounwind {"
    )
    return "\n".join([head, *b.lines, f"  ret {b.real} {packed}", "}", ""])


def _scaled_ir() -> str:
    b = Instructions(1, False)
    result = scaled(b, *(Value(b, "real", f"%{name}") for name in "xyz"))
    head = (
        f"define internal double @exact_fma_scaled({_arguments('double')}) nounwind {{"
    )
    return "\n".join([head, *b.lines, f"  ret double {result.name}", "}", ""])


def _fma_single(width: int) -> str:
    """Return the LLVM IR of a float32 multiply-add, in float64, rounded to odd."""
    b = Instructions(int(width), False)
    of = kind("real", width)
    wide = [b.value("real", f"fpext {of} %{name} to {b.real}") for name in "xyz"]
    result = odd_sum_of_products(b, *wide)
    rounded = b.new(f"fptrunc {b.real} {result.name} to {of}")
    name = f"@exact_fma_{suffix(width)}"
    head = f"define internal {of} {name}({_arguments(of)}) nounwind {{"
    return "\n".join([head, *b.lines, f"  ret {of} {rounded}", "}", ""])


def _floor_ir(width: int) -> str:
    b = Instructions(width, False)
    result = floor(b, Value(b, "real", "%x"))
    head = f"define internal {b.real} @own_floor_{b.suffix}({b.real} %x) nounwind {{"
    return "\n".join([head, *b.lines, f"  ret {b.real} {result.name}", "}", ""])
