"""sin, cos and similar functions of float32, as LLVM functions of one or several lanes.

Sines and cosines have polynomials of their own: at most 1 ulp of float32 on
[-1e4, 1e4]. Beyond, and without fused multiply-add, the float64 functions are rounded;
so are all other functions, which few algorithms use. A value has the same bits in every
lane and alone. A number of float32 lanes is of the type Lanes, of float64 lanes an int.

Source: the polynomials are from Cephes (S. L. Moshier, Methods and Programs for
Mathematical Functions, 1989), single precision; pi/2 in three parts after W. J. Cody
and W. Waite, Software Manual for the Elementary Functions, 1980.
"""

from __future__ import annotations

from typing import Any

from dyn_core.engines.llvm.ir import Instructions, Value, kind

FAR = 1e4  # angle beyond which the float64 functions are called [rad]
_ROUND = 12582912.0  # 1.5 * 2**23: adding it rounds to a whole number
# pi/2 as a sum: the first part is a float32 below pi/2.
_HALF_PI = (1.570796251296997, 7.549790126404332e-08, -1.7151245100058819e-15)
_SIN = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
_COS = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)


def sine_and_cosine(b: Any, x: Any) -> tuple[Any, Any]:
    """Return (sine, cosine) of x [rad], correct for |x| <= 1e4 with fused multiply-add.

    They are real Values; x is reduced to n pi/2 + r + low, |r| <= pi/4.
    """
    shifted = b.fma(x, 2 / 3.141592653589793, _ROUND)
    n, quadrant = shifted - _ROUND, shifted.bits()
    r0 = b.fma(-n, _HALF_PI[0], x)  # exact up to FAR
    p = n * _HALF_PI[1]
    r = r0 - p
    back = r0 - r  # r0 - p = r + rest, whichever is larger
    rest = (r0 - (r + back)) - (p - back)
    low = rest - b.fma(n, _HALF_PI[2], b.fma(n, _HALF_PI[1], -p))
    z = r * r
    s = r + b.fma(z * r, b.horner(z, _SIN), low)
    s = b.select(x.compare("eq", 0.0), x, s)  # zero keeps its sign
    half = z * 0.5
    w = 1.0 - half
    c = w + (((1.0 - w) - half) + b.fma(z * z, b.horner(z, _COS), -(r * low)))
    odd = (quadrant & 1).compare("ne", 0)
    sine = b.select(odd, c, s).bits() ^ ((quadrant & 2) << 30)
    cosine = b.select(odd, s, c).bits() ^ (((quadrant + 1) & 2) << 30)
    return sine.bits(), cosine.bits()


def definition(name: str, width: int, fused: bool) -> str:
    """Return the LLVM IR of a float32 function, "@NAME_WIDTHs".

    It calls the float64 function of that name and lanes; the module must contain it.
    """
    if name == "sincos":
        return _define_sincos(width, fused)
    b = Instructions(width, fused)
    names = ["%y", "%x"] if name == "atan2" else ["%x"]
    wide = kind("real", int(width))
    values = [b.new(f"fpext {b.real} {x} to {wide}") for x in names]
    arguments = ", ".join(f"{wide} {x}" for x in values)
    result = b.new(f"call {wide} @{name}_{width}({arguments})")
    result = b.new(f"fptrunc {wide} {result} to {b.real}")
    parameters = ", ".join(f"{b.real} {x}" for x in names)
    head = f"define internal {b.real} @{name}_{width}s({parameters}) {{"
    return "\n".join([head, *b.lines, f"  ret {b.real} {result}", "}", ""])


def _define_sincos(width: int, fused: bool) -> str:
    """Return the LLVM IR of float32 sincos, which returns {sine, cosine}.

    It uses polynomials up to FAR (1e4 rad), and the rounded float64 function beyond and
    without fused multiply-add.
    """
    b = Instructions(width, fused)
    wide = kind("real", int(width))
    pair, wide_pair = f"{{{b.real}, {b.real}}}", f"{{{wide}, {wide}}}"
    x = Value(b, "real", "%x")
    far = b.lift(True, "truth")
    results = [b.lift(0.0), b.lift(0.0)]
    if fused:
        results = list(sine_and_cosine(b, x))
        far = b.intrinsic("fabs", x).compare("gt", FAR)
        some = b.any(far)
        b.lines.append(f"  br i1 {some}, label %far, label %near")
        b.lines += ["near:", *_returned(b, pair, results), "far:"]
    extended = b.new(f"fpext {b.real} %x to {wide}")
    both = b.new(f"call {wide_pair} @sincos_{width}({wide} {extended})")
    for k in (0, 1):
        exact = b.new(f"extractvalue {wide_pair} {both}, {k}")
        rounded = b.new(f"fptrunc {wide} {exact} to {b.real}")
        results[k] = b.select(far, Value(b, "real", rounded), results[k])
    head = f"define internal {pair} @sincos_{width}s({b.real} %x) {{"
    return "\n".join([head, *b.lines, *_returned(b, pair, results), "}", ""])


def _returned(b: Instructions, pair: str, values: list[Value]) -> list[str]:
    """Return the instructions that return a pair of values, not appended to `b`."""
    b.named += 2
    one, two = f"%n{b.named - 1}", f"%n{b.named}"
    return [
        f"  {one} = insertvalue {pair} poison, {b.real} {values[0].name}, 0",
        f"  {two} = insertvalue {pair} {one}, {b.real} {values[1].name}, 1",
        f"  ret {pair} {two}",
    ]
