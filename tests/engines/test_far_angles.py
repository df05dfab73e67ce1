"""Sines and cosines of angles of any size, by integer arithmetic: no library's are used."""

import ctypes
import math
import re
import struct

import numpy as np
import pytest

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.functions.float64_functions import (
    FUNCTIONS,
    declarations,
    definitions,
    far_angles,
    symbol,
)
from dyn_core.engines.llvm.ir import kind
from dyn_core.engines.llvm.kernel_ir import batch_kernel, scalar_kernel
from dyn_core.numbers import scalar
from dyn_core.testing.flat_programs import flat_program

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)

BITS = 1400  # of the fixed point that references have
ONE = 1 << BITS
ULP = {True: 1.0, False: 1.0}  # largest errors that the documentation states


def _pi():
    def arctan(inverse):
        term = total = (ONE << 32) // inverse
        for k in range(3, 2 * BITS, 2):
            term = -(term // (inverse * inverse))
            total += term // k
        return total

    return (48 * arctan(18) + 32 * arctan(57) - 20 * arctan(239)) >> 32  # Gauss


PI = _pi()


def _series(r, k):
    """Return the sine (k = 1) or cosine (k = 0) of a small fixed-point angle."""
    term = total = r if k else ONE
    while term:
        term = -((((term * r) >> BITS) * r) >> BITS) // ((k + 1) * (k + 2))
        k += 2
        total += term
        if -4 < term < 4:
            break
    return total


def reference(x):
    """Return sine and cosine of a double as whole numbers over 2**BITS."""
    numerator, denominator = x.as_integer_ratio()
    angle = numerator * ONE // denominator
    n = (2 * angle + PI // 2) // PI
    r = angle - n * PI // 2
    s, c = _series(r, 1), _series(r, 0)
    return [(s, c), (c, -s), (-s, -c), (-c, s)][n % 4]


def error(got, wanted):
    """Return the error of a double in ulp."""
    ulp = math.ulp(float(wanted / ONE) if wanted else 5e-324)
    numerator, denominator = float(got).as_integer_ratio()
    return abs(numerator * ONE // denominator - wanted) / ONE / ulp


def sincos(fused, width):
    """Return a function: arrays of `width` angles -> their sines and cosines."""
    of = kind("real", width)
    ir = "\n".join(
        [
            *declarations([width], True),
            *definitions([("sincos", width)], fused),
            "define void @run(ptr %x, ptr %s, ptr %c) nounwind {",
            f"  %v = load {of}, ptr %x, align 8",
            f"  %p = call {{{of}, {of}}} {symbol('sincos', width)}({of} %v)",
            f"  %a = extractvalue {{{of}, {of}}} %p, 0",
            f"  %b = extractvalue {{{of}, {of}}} %p, 1",
            f"  store {of} %a, ptr %s, align 8",
            f"  store {of} %b, ptr %c, align 8",
            "  ret void",
            "}",
        ]
    )
    code = compiler.Loaded(compiler.compile_ir(ir))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("run"))

    def run(x):
        x = np.ascontiguousarray(x, float)
        results = np.empty((2, len(x)))
        for k in range(0, len(x), width):
            call(*(a[k:].ctypes.data for a in (x, *results)))
        return results

    run.code = code
    return run


def angles(rng, count):
    """Return angles of all sizes, of both signs, and near multiples of pi/2."""
    sizes = np.exp(rng.uniform(math.log(1e5), math.log(1.7e308), count))
    n = [int(x) for x in 10.0 ** rng.uniform(5, 300, count // 4)]
    near = [float(k * PI // (2 * ONE)) for k in n]
    whole = 2.0 ** rng.integers(17, 1024, count // 4)
    special = [1e22, 6381956970095103.0 * 2.0**797, np.finfo(float).max, 1e12, 8e5]
    special += [math.nextafter(1e12, 2e12), math.nextafter(8e5, 1e6), 2.0**19]
    x = np.concatenate([sizes, near, whole, special])
    x = x * rng.choice([-1, 1], len(x))
    return np.concatenate([x, np.zeros(-len(x) % 16)])


def test_the_table_is_two_over_pi():
    """Its whole number divided by 2**_BITS is 2/pi, cut off."""
    bits = int.from_bytes(far_angles.table(), "little")
    assert bits * PI <= 2 * ONE << far_angles._BITS < (bits + 1) * PI
    assert struct.unpack("<I", far_angles.table()[141:145])[0] == 0xA2F9836E >> 1


@pytest.mark.parametrize("fused", [True, False])
def test_errors_up_to_the_largest_double(fused, request):
    """At most 1 ulp, with fused multiply-add and without, from 1e5 to 1.8e308."""
    if fused and not host_machine.machine().fused:
        pytest.skip("this machine has no fused multiply-add")
    rng = np.random.default_rng(18)
    x = angles(rng, 100_000 if request.config.option.full else 1500)
    got = sincos(fused, 4)(x)
    worst = max(
        max(error(s, a), error(c, b))
        for s, c, (a, b) in zip(*got, map(reference, x.tolist()), strict=True)
    )
    assert worst <= ULP[fused]


def test_errors_without_fused_multiply_add_up_to_far(full):
    """At most 1 ulp where no reduction by whole numbers is needed."""
    rng, many = np.random.default_rng(19), 4 if full else 1
    x = np.concatenate(
        [rng.uniform(-8e5, 8e5, 600 * many), rng.uniform(-1, 1, 300 * many)]
    )
    near = np.arange(1, 500_000, 251 if full else 1009) * (math.pi / 2)
    x = np.concatenate([x, near, -near, np.zeros(-2 * len(near) % 4)])
    x = x[: len(x) // 4 * 4]
    got = sincos(False, 4)(x)
    worst = max(
        max(error(s, a), error(c, b))
        for s, c, (a, b) in zip(*got, map(reference, x.tolist()), strict=True)
    )
    assert worst <= ULP[False]


@pytest.mark.parametrize("fused", [True, False])
def test_each_lane_has_the_bits_of_a_single_angle(fused):
    """Far lanes beside near ones change neither."""
    if fused and not host_machine.machine().fused:
        pytest.skip("this machine has no fused multiply-add")
    rng = np.random.default_rng(20)
    x = angles(rng, 1000)
    x[rng.random(len(x)) < 0.5] = rng.normal()
    x[::7], x[3::50], x[5::50], x[6::50] = rng.normal(), math.inf, math.nan, -0.0
    alone = sincos(fused, 1)(x).view(np.int64)
    for width in (2, 4, 8):
        assert (sincos(fused, width)(x).view(np.int64) == alone).all(), width


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("width", [1, 4])
def test_zeros_keep_their_sign_and_what_is_not_finite_is_nan(fused, width):
    """sin(-0) = -0; of infinity and NaN both are NaN."""
    if fused and not host_machine.machine().fused:
        pytest.skip("this machine has no fused multiply-add")
    run = sincos(fused, width)
    s, c = run([0.0, -0.0, 5e-324, -5e-324])
    assert np.signbit(s).tolist() == [False, True, False, True]
    assert s.tolist() == [0.0, -0.0, 5e-324, -5e-324]
    assert c.tolist() == [1.0] * 4
    assert np.isnan(run([math.inf, -math.inf, math.nan, -math.nan])).all()


def _functions():
    """Return an algorithm that uses every function."""
    names = [name for name in FUNCTIONS if name != "atan2"]

    def algorithm(x):
        results = [getattr(scalar, name)(x[0]) for name in (*names, "sin", "cos")]
        return [*results, scalar.atan2(x[0], x[1])]

    return algorithm, len(names) + 3


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("variant", ["scalar", "batch"])
def test_kernels_need_no_library(fused, variant):
    """Their IR declares nothing but intrinsics; the code has no undefined symbol."""
    algorithm, count = _functions()
    graph = flat_program(algorithm, 2, count, engine="graph").graph
    width = host_machine.machine().width
    if variant == "scalar":
        written = scalar_kernel(graph, (2,), (count,), fused, 8, width)
    else:
        written = batch_kernel(graph, (2,), (count,), fused, width)
    declared = re.findall(r"^declare .*?@([\w.]+)", written.ir, re.MULTILINE)
    assert declared
    assert all(name.startswith("llvm.") for name in declared)
    code = compiler.compile_ir(written.ir)
    for name in (b"\0sin\0", b"\0cos\0", b"\0__", b"\0fmod\0", b"\0mem"):
        assert name not in code


def _lines(assembly, name):
    """Return the instructions of a function."""
    body = assembly.partition(f"\n{name}:")[2].partition(".Lfunc_end")[0]
    return [x.split()[0] for x in body.splitlines() if re.match(r"\t[a-z]", x)]


def test_far_angles_cost_little_code():
    """150 bytes, 200 instructions once, a call; nothing where there are no sines."""
    assert len(far_angles.table()) == 150
    parts = definitions([("sincos", 1)], True)
    ir = "\n".join([*declarations([1], True), *parts]).replace("internal ", "")
    assert len(_lines(compiler.assembly(ir), "far_angles")) <= 220
    program = flat_program(lambda x: [x[0] * x[1]], 2, 1, engine="native")
    assert "two_over_pi" not in program.kernel_ir("scalar").ir
