"""Reduction of angles far from zero to the nearest multiple of pi/2.

    x = n pi/2 + r + low,   |r| <= pi/4

by the product of the angle's 53 bits and 192 bits of 2/pi, as whole numbers: bits of
2/pi that contribute full turns are omitted, and the truncated part is below 2**-126. No
double is closer to a multiple of pi/2 than 2**-61 quarter turns, so r has at least 64
correct bits. No fused multiply-add is needed.

Source: M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions,
ACM SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

from typing import Any

from dyn_core.engines.llvm.ir import Instructions, Value, constant
from dyn_core.sharing import once

TABLE = "@two_over_pi"
FUNCTION = "@far_angles"
_LAST = 968  # first bit of the window for the largest angles
_BITS = _LAST + 191  # bits of 2/pi in the table
_BYTES = 150  # bytes of the table; the window of an angle of 2**19 is inside
_LIMBS = 6  # words of 32 bits in a window
_LOW = 2**32 - 1
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_PARTS = (1.5707963109016418, 1.5893254712295857e-08)  # _HALF_PI[0]: 26 bits, rest
_SIGN = -(2**63)


@once
def table() -> bytes:
    """Return the first 1159 bits of 2/pi as a whole number of 150 bytes.

    The least significant byte comes first; the highest bits that are left over are 0.
    """
    guard = _BITS + 64

    def arctan(inverse: int) -> int:
        term = total = (1 << guard) // inverse
        k = 1
        while term:
            term //= -inverse * inverse
            k += 2
            total += term // k
        return total

    pi = 16 * arctan(5) - 4 * arctan(239)  # Machin
    return ((2 << (guard + _BITS)) // pi).to_bytes(_BYTES, "little")


def declaration() -> str:
    """Return the LLVM definition of the constant TABLE, the bytes of `table`."""
    numbers = ", ".join(f"i8 {x}" for x in table())
    return f"{TABLE} = private constant [{_BYTES} x i8] [{numbers}]"


def reduced(b: Any, x: Any) -> tuple[Any, Any, Any]:
    """Write the reduction of one angle with |x| >= 2**19 [rad]; return r, low and n.

        x = n pi/2 + r + low modulo 2 pi,   |r| <= pi/4

    r, low are real Values, n a whole one from -4 to 4; low is NaN if x is not finite.
    """
    bits = x.bits()
    size = bits & (2**63 - 1)
    exponent = (size >> 52) - 1076  # x = whole 2**(exponent + 1)
    whole = ((size & (2**52 - 1)) | 2**52) << (exponent & 7)
    high, low = _product(whole, _window(b, _LAST // 8 - (exponent >> 3)))
    # Of quarter turns: two bits before the point; the rest is rounded to nearest.
    upper, lower = (high << 2) | low.logical(62), low << 2
    behind, negative = upper >> 63, bits >> 63
    n = high.logical(62) - behind
    r, rest = _half_pi_times(*_sum(upper ^ behind, lower ^ behind))
    sign = (behind ^ bits) & _SIGN
    r, rest = (r.bits() ^ sign).bits(), (rest.bits() ^ sign).bits()
    return r, rest + (x - x), (n ^ negative) - negative


def _window(b: Any, first: Any) -> list[Any]:
    """Return six 32-bit words of the table, lowest word first, from byte `first` on."""
    return [b.word(TABLE, first + 4 * k) for k in range(_LIMBS)]


def _product(whole: Any, window: list[Any]) -> tuple[Any, Any]:
    """Return the upper 128 bits of whole * window mod 2**192, whole below 2**60.

    `window` has six words of 32 bits, lowest word first; the result two words of 64
    bits, upper word first.
    """
    low, high = whole & _LOW, whole.logical(32)
    total = low * window[0]
    first = []
    for word in window[1:]:
        total = low * word + total.logical(32)
        first.append(total & _LOW)
    total = high * window[0] + first[0]
    limbs = []
    for word, more in zip(window[1:], first[1:], strict=False):
        total = high * word + more + total.logical(32)
        limbs.append(total)
    a, b, c, d = limbs
    return (d << 32) | (c & _LOW), (b << 32) | (a & _LOW)


def _sum(upper: Any, lower: Any) -> tuple[Any, Any]:
    """Return a fixed-point number of 128 bits, 0 to below 1/2, as a sum of two reals.

    The binary point is before the first bit of `upper`. The rounded number comes before
    its remainder.
    """
    # Parts of 32 bits: conversions of 64 bits are library calls on small machines.
    parts = [
        ((word | (0x433 << 52)).bits() - 2.0**52) * 2.0**power
        for word, power in (
            (upper.logical(32), -32),
            (upper & _LOW, -64),
            (lower.logical(32), -96),
            (lower & _LOW, -128),
        )
    ]
    first = parts[0] + parts[1]
    tail = (parts[1] - (first - parts[0])) + (parts[2] + parts[3])
    total = first + tail
    return total, tail - (total - first)


def _half_pi_times(y: Any, rest: Any) -> tuple[Any, Any]:
    """Return pi/2 (y + rest), rest much smaller, as its rounded value and remainder."""
    y1 = (y.bits() & -(2**27)).bits()
    y2 = y - y1
    r = y * _HALF_PI[0]
    low = ((y1 * _PARTS[0] - r) + y1 * _PARTS[1]) + y2 * _PARTS[0]
    low = (low + y2 * _PARTS[1]) + (y * _HALF_PI[1] + rest * _HALF_PI[0])
    return r, low


def definition(far: float) -> str:
    """Return the LLVM IR of FUNCTION(ptr angles, i64 count), "@far_angles".

    The memory at `angles` contains `count` angles x, then as many values each of r, low
    (doubles, as x) and n (an i64), see `reduced`. They are written for magnitudes above
    `far` (at least 2**19 [rad]), infinity too, not NaN.
    """
    b = Instructions(1, False)
    r, low, n = reduced(b, Value(b, "real", "%x"))
    lines = [
        f"define internal void {FUNCTION}(ptr %p, i64 %n) nounwind {{",
        "  %n_2 = shl i64 %n, 1",
        "  %n_3 = add i64 %n_2, %n",
        "  %pr = getelementptr double, ptr %p, i64 %n",
        "  %pl = getelementptr double, ptr %p, i64 %n_2",
        "  %pn = getelementptr double, ptr %p, i64 %n_3",
        "  br label %lane",
        "lane:",
        "  %k = phi i64 [0, %0], [%next, %after]",
        "  %px = getelementptr double, ptr %p, i64 %k",
        "  %x = load double, ptr %px",
        "  %size = call double @llvm.fabs.f64(double %x)",
        f"  %is_far = fcmp ogt double %size, {constant(far, 'real', 1)}",
        "  br i1 %is_far, label %reduce, label %after",
        "reduce:",
        *b.lines,
    ]
    for name, value in (("r", r), ("l", low), ("n", n)):
        lines += [
            f"  %k{name} = getelementptr double, ptr %p{name}, i64 %k",
            f"  store {value.type} {value.name}, ptr %k{name}",
        ]
    lines += [
        "  br label %after",
        "after:",
        "  %next = add i64 %k, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %lane, label %end",
        "end:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
