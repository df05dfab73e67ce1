"""sin, cos and similar functions as LLVM functions of one or several lanes.

Largest errors on samples, against 80-bit references [ulp], with fused multiply-add:

    sin, cos    0.8 up to the largest double, without fused multiply-add too
    exp, log    1.0          atan2   1.0          asin, acos   1.0          tanh   1.3

No function of a library is called. Special values follow C99 Annex F. Each lane has
the bits of a single value. A number of float32 lanes is of the type Lanes, a subclass
of int; any other int is a number of float64 lanes.

Source: the polynomials are from fdlibm (K. C. Ng, Sun Microsystems, 1993), for tanh
from S. L. Moshier, Methods and Programs for Mathematical Functions, 1989; pi/2 in three
parts after W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyn_core.engines.llvm.functions import far_angles, float32_functions
from dyn_core.engines.llvm.ir import Instructions, Value, is_single, kind, suffix

# Angles beyond which far_angles.py is used, with and without fused multiply-add [rad].
FAR = {True: 1e12, False: 8e5}
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
# In parts of 33 bits: products with whole numbers below 2**20 are exact.
_HALF_PI_33 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21,
               8.4784276603689e-32)  # fmt: skip
_SIGN = -(2**63)
_INF = float("inf")
_NAN = float("nan")

_SIN = (8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08,
        1.58969099521155010221e-10)  # fmt: skip
_SIN_1 = -1.66666666666666324348e-01
_COS = (4.16666666666666019037e-02, -1.38888888888741095749e-03,
        2.48015872894767294178e-05, -2.75573143513906633035e-07,
        2.08757232129817482790e-09, -1.13596475577881948265e-11)  # fmt: skip
_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_EXP = (1.66666666666666019037e-01, -2.77777777770155933842e-03,
        6.61375632143793436117e-05, -1.65339022054652515390e-06,
        4.13813679705723846039e-08)  # fmt: skip
_LOG = (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
        2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
        1.479819860511658591e-01)  # fmt: skip
_TANH_P = (-1.61468768441708447952e3, -9.92877231001918586564e1,
           -9.64399179425052238628e-1)  # fmt: skip
_TANH_Q = (4.84406305325125486048e3, 2.23548839060100448583e3,
           1.12811678491632931402e2, 1.0)  # fmt: skip
_ATAN = (3.33333333333329318027e-01, -1.99999999998764832476e-01,
         1.42857142725034663711e-01, -1.11111104054623557880e-01,
         9.09088713343650656196e-02, -7.69187620504482999495e-02,
         6.66107313738753120669e-02, -5.83357013379057348645e-02,
         4.97687799461593236017e-02, -3.65315727442169155270e-02,
         1.62858201153657823623e-02)  # fmt: skip
# Upper bound of the tangent, angle that is subtracted (in two parts), its tangent p/q.
_ATAN_STEPS = (
    (7 / 16, 0.0, 0.0, 0.0, 1.0),
    (11 / 16, 4.63647609000806093515e-01, 2.26987774529616870924e-17, 1.0, 2.0),
    (19 / 16, 7.85398163397448278999e-01, 3.06161699786838301793e-17, 1.0, 1.0),
    (39 / 16, 9.82793723247329054082e-01, 1.39033110312309984516e-17, 1.5, 1.0),
    (_INF, 1.57079632679489655800, 6.12323399573676603587e-17, 1.0, 0.0),
)
_ASIN_P = (1.66666666666666657415e-01, -3.25565818622400915405e-01,
           2.01212532134862925881e-01, -4.00555345006794114027e-02,
           7.91534994289814532176e-04, 3.47933107596021167570e-05)  # fmt: skip
_ASIN_Q = (1.0, -2.40339491173441421878e00, 2.02094576023350569471e00,
           -6.88283971605453293030e-01, 7.70381505559019352791e-02)  # fmt: skip


def reduced(b: Any, x: Any) -> tuple[Any, Any, Any]:
    """Write the reduction of angles up to FAR in magnitude [rad]; return r, low and n.

        x = n pi/2 + r + low,   |r| <= pi/4

    FAR is 1e12 rad with fused multiply-add, else 8e5 rad. r and low are real Values. n
    is a whole Value of which only the last two bits, the quarter turn, are valid.
    """
    shifted = b.fma(x, 2 / 3.141592653589793, _ROUND)
    n, quadrant = shifted - _ROUND, shifted.bits()
    if not b.fused:
        r, low = _near_by_parts(x, n)
        return r, low, quadrant
    r0 = b.fma(-n, _HALF_PI[0], x)  # exact below 2**51 quarter turns
    p = n * _HALF_PI[1]
    r, rest = _difference(r0, p)
    low = rest - b.fma(n, _HALF_PI[2], b.fma(n, _HALF_PI[1], -p))
    return r, low, quadrant


def _near_by_parts(x: Any, n: Any) -> tuple[Any, Any]:
    """Return x - n pi/2 as two reals, the rounded value and its remainder.

    For angles x up to 8e5 rad, without fused multiply-add; products are exact.
    """
    r0 = x - n * _HALF_PI_33[0]
    r1, rest1 = _difference(r0, n * _HALF_PI_33[1])
    r, rest = _difference(r1, n * _HALF_PI_33[2] - rest1)
    return r, rest - n * _HALF_PI_33[3]


def _difference(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a - b as rounded difference and error: their sum is exact."""
    r = a - b
    back = a - r
    return r, (a - (r + back)) - (b - back)


def sine_and_cosine(b: Any, r: Any, low: Any, quadrant: Any) -> tuple[Any, Any]:
    """Return (sine, cosine), real Values, of an angle reduced to r, low and n."""
    z = r * r
    v = z * r
    s = b.horner(z, _SIN)
    s = r - b.fma(-v, _SIN_1, b.fma(z, b.fma(-v, s, low * 0.5), -low))
    half = z * 0.5
    w = 1.0 - half
    c = b.fma(z * z, b.horner(z, _COS), -(r * low))
    c = w + (((1.0 - w) - half) + c)
    odd = (quadrant & 1).compare("ne", 0)
    sine = b.select(odd, c, s).bits() ^ ((quadrant & 2) << 62)
    cosine = b.select(odd, s, c).bits() ^ (((quadrant + 1) & 2) << 62)
    return sine.bits(), cosine.bits()


def _power_of_two(k: Value) -> Value:
    """Return 2**k as a real for a whole k from -1022 to 1023."""
    return ((k + 1023) << 52).bits()


def _exp(b: Instructions, x: Value) -> Value:
    bounded = b.select(x.compare("gt", 800.0), 800.0, x)
    bounded = b.select(bounded.compare("lt", -800.0), -800.0, bounded)
    shifted = b.fma(bounded, 1.44269504088896338700, _ROUND)
    k, whole = shifted - _ROUND, shifted.bits()
    whole = whole - _round_bits()
    high, low = b.fma(-k, _LN2[0], bounded), k * _LN2[1]
    r = high - low
    t = r * r
    c = r - t * b.horner(t, _EXP)
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    first = whole >> 1
    return y * _power_of_two(first) * _power_of_two(whole - first)


def _round_bits() -> int:
    """Return the bits of _ROUND, the rounding constant, as a whole number."""
    return 0x4338 << 48


def _log(b: Instructions, x: Value) -> Value:
    tiny = x.compare("lt", 2.0**-1022)
    scaled = b.select(tiny, x * 2.0**54, x)
    # Take the exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)).
    bits = scaled.bits() + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    k = ((bits >> 52) + (_round_bits() - 1023)).bits() - _ROUND  # as a real number
    k = k - b.select(tiny, 54.0, 0.0)
    f = ((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).bits() - 1.0
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    R = z * b.horner(z, _LOG)
    result = k * _LN2[0] - ((half - b.fma(s, half + R, k * _LN2[1])) - f)
    result = b.select(x.compare("eq", _INF), _INF, result)
    result = b.select(x.compare("eq", 0.0), -_INF, result)
    result = b.select(x.compare("lt", 0.0), _NAN, result)
    return b.select(x.compare("ne", x), x, result)


def _tanh(b: Instructions, x: Value) -> Value:
    size = b.intrinsic("fabs", x)
    z = x * x
    near = b.fma(size * z, b.horner(z, _TANH_P) / b.horner(z, _TANH_Q), size)
    far = 1.0 - 2.0 / (_exp(b, size + size) + 1.0)
    result = b.select(size.compare("lt", 0.625), near, far)
    result = (result.bits() | (x.bits() & _SIGN)).bits()
    return b.select(x.compare("ne", x), x, result)


def _atan2(b: Instructions, y: Value, x: Value) -> Value:
    a, c = b.intrinsic("fabs", y), b.intrinsic("fabs", x)
    both = a.compare("eq", _INF) & c.compare("eq", _INF)
    a, c = b.select(both, 1.0, a), b.select(both, 1.0, c)
    large = b.select(a.compare("gt", c), a, c)
    scale = b.select(large.compare("gt", 2.0**1000), 2.0**-4, 1.0)
    scale = b.select(large.compare("lt", 2.0**-500), 2.0**600, scale)
    a, c = a * scale, c * scale
    over, under, high, low = -c, a, b.lift(0.0), b.lift(0.0)
    angle: Any
    for bound, angle, rest, p, q in reversed(_ATAN_STEPS):
        # tan(u - angle) = (q a - p c) / (q c + p a) for tan(u) = a/c
        if bound == _INF:
            high, low = b.lift(angle), b.lift(rest)
            continue
        here = a.compare("le", c * bound)
        over = b.select(here, b.fma(c, -p, a * q) if p else a, over)
        under = b.select(here, b.fma(a, p, c * q) if p else c, under)
        high, low = b.select(here, angle, high), b.select(here, rest, low)
    origin = a.compare("eq", 0.0) & c.compare("eq", 0.0)
    t = b.select(origin, 0.0, over / under)
    z = t * t
    angle = high - ((t * (z * b.horner(z, _ATAN)) - low) - t)
    behind = x.bits().compare("lt", 0)
    opposite = 2 * _HALF_PI[0] - (angle - 2 * _HALF_PI[1])
    angle = b.select(behind, opposite, angle)
    return (angle.bits() | (y.bits() & _SIGN)).bits()


def _asin_parts(b: Instructions, x: Value) -> tuple[Value, Value, Value, Value]:
    """Return the condition |x| < 1/2, R, s, and the error of s, for asin and acos.

    R approximates asin(u)/u - 1 for u = x if |x| < 1/2, else for u = s. s is the
    rounded root of (1 - |x|)/2, and its error sqrt((1 - |x|)/2) - s; both are used only
    for |x| >= 1/2.
    """
    size = b.intrinsic("fabs", x)
    near = size.compare("lt", 0.5)
    t = b.select(near, x * x, (1.0 - size) * 0.5)
    R = t * b.horner(t, _ASIN_P) / b.horner(t, _ASIN_Q)
    s = b.intrinsic("sqrt", t)
    rest = b.select(s.compare("eq", 0.0), 0.0, b.fma(-s, s, t) / (s + s))
    return near, R, s, rest


def _asin(b: Instructions, x: Value) -> Value:
    near, R, s, rest = _asin_parts(b, x)
    # pi/2 - 2 asin(s), the root in two parts
    p = b.fma(s + s, R, 2.0 * rest) - _HALF_PI[1]
    far = _HALF_PI[0] / 2 - (p - (_HALF_PI[0] / 2 - (s + s)))
    far = (far.bits() | (x.bits() & _SIGN)).bits()
    return b.select(near, b.fma(x, R, x), far)


def _acos(b: Instructions, x: Value) -> Value:
    near, R, s, rest = _asin_parts(b, x)
    middle = _HALF_PI[0] - (x - (_HALF_PI[1] - x * R))
    twice = 2.0 * (s + b.fma(s, R, rest))
    behind = 2 * _HALF_PI[0] - (twice - 2 * _HALF_PI[1])
    far = b.select(x.compare("lt", 0.0), behind, twice)
    return b.select(near, middle, far)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": _exp,
    "log": _log,
    "tanh": _tanh,
    "atan2": _atan2,
    "asin": _asin,
    "acos": _acos,
}


def declarations(widths: Sequence[int], sines: bool) -> list[str]:
    """Return the declarations of intrinsics, with `sines` the table of far angles too.

    Float32 lanes get those of as many float64 lanes too, `sines` those of one lane.
    """
    lines = [far_angles.declaration()] if sines else []
    # Float32 functions may call float64 functions: declare both.
    for width in (*widths, *map(int, widths), *([1] if sines else [])):
        lines += _declarations(width).splitlines()
    return list(dict.fromkeys(lines))


def symbol(name: str, width: int) -> str:
    """Return the name of a function in LLVM IR: "@NAME_WIDTH", and "s" for float32."""
    return f"@{name}_{width}" + ("s" if is_single(width) else "")


def definitions(names: Sequence[tuple[str, int]], fused: bool) -> list[str]:
    """Return the LLVM IR of functions, different (name, lanes), and of their callees.

    Included are the float64 functions of float32 ones, and far angles for "sincos".
    """
    sines = any(name == "sincos" for name, _ in names)
    lines = [far_angles.definition(FAR[fused])] if sines else []
    for name, width in names:
        if is_single(width):
            lines.append(float32_functions.definition(name, width, fused))
        lines.append(definition(name, int(width), fused))
    return lines


def definition(name: str, width: int, fused: bool) -> str:
    """Return the LLVM IR of "@NAME_WIDTH", a float64 function: sincos, or of FUNCTIONS.

    sincos returns {sine, cosine} and calls far_angles.FUNCTION; atan2 takes (y, x).
    """
    if name == "sincos":
        return _define_sincos(width, fused)
    b = Instructions(width, fused)
    names = ["%y", "%x"] if name == "atan2" else ["%x"]
    result = FUNCTIONS[name](b, *(Value(b, "real", x) for x in names))
    arguments = ", ".join(f"{b.real} {x}" for x in names)
    head = f"define internal {b.real} @{name}_{width}({arguments}) {{"
    return "\n".join([head, *b.lines, f"  ret {b.real} {result.name}", "}", ""])


def _define_sincos(width: int, fused: bool) -> str:
    """Return the LLVM IR of sincos, which returns {sine, cosine}.

    Angles beyond FAR, see `reduced`, are reduced separately, lane by lane.
    """
    b = Instructions(width, fused)
    pair = f"{{{b.real}, {b.real}}}"
    x = Value(b, "real", "%x")
    near = reduced(b, x)
    some = b.any(b.intrinsic("fabs", x).compare("gt", FAR[fused]))
    b.lines += [f"  br i1 {some}, label %far, label %all", "far:"]
    far = _far(b, (x, *near))
    b.lines += ["  br label %all", "all:"]
    chosen = [
        b.value(old.kind, f"phi {old.type} [{old.name}, %0], [{new.name}, %far]")
        for old, new in zip(near, far, strict=True)
    ]
    results = sine_and_cosine(b, *chosen)
    one = b.new(f"insertvalue {pair} poison, {b.real} {results[0].name}, 0")
    two = b.new(f"insertvalue {pair} {one}, {b.real} {results[1].name}, 1")
    head = f"define internal {pair} @sincos_{width}({b.real} %x) {{"
    return "\n".join([head, *b.lines, f"  ret {pair} {two}", "}", ""])


def _far(b: Instructions, values: Sequence[Value]) -> list[Value]:
    """Return r, low and n of angles, recomputed for angles beyond FAR.

    `values` are angles, then r, low and n from `reduced`. far_angles.FUNCTION computes
    them, through memory on the stack.
    """
    memory = b.new(f"alloca [{len(values) * b.width} x i64], align 8")
    places = [
        b.new(f"getelementptr double, ptr {memory}, i64 {k * b.width}")
        for k in range(len(values))
    ]
    for value, place in zip(values, places, strict=True):
        b.lines.append(f"  store {value.type} {value.name}, ptr {place}, align 8")
    b.lines.append(f"  call void {far_angles.FUNCTION}(ptr {memory}, i64 {b.width})")
    return [
        b.value(old.kind, f"load {old.type}, ptr {place}, align 8")
        for old, place in list(zip(values, places, strict=True))[1:]
    ]


def _declarations(width: int) -> str:
    """Return the declarations of the intrinsics for one number of lanes."""
    real = kind("real", width)
    end = suffix(width)
    lines = [
        f"declare {real} @llvm.{name}.{end}({real})"
        for name in ("fabs", "sqrt", "floor")
    ]
    lines.append(f"declare {real} @llvm.fma.{end}({real}, {real}, {real})")
    if width > 1:
        mask = f"<{width} x i1>"
        lines += [
            f"declare {real} @llvm.masked.load.{end}.p0(ptr, i32, {mask}, {real})",
            f"declare void @llvm.masked.store.{end}.p0({real}, ptr, i32, {mask})",
            f"declare i{width} @llvm.ctpop.i{width}(i{width})",
        ]
    return "\n".join(lines)
