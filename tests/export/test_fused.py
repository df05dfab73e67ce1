"""The multiply-add of fused.py has the bits of the machine's, whatever the numbers."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.ir import Lanes, is_single, kind, suffix
from dyn_core.export.c.c_operations import CFunctions
from dyn_core.export.object_code.fused import with_exact_fma, with_own_floor

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
needs_fma = pytest.mark.skipif(
    not host_machine.missing() and not host_machine.machine().fused,
    reason="this machine has no fused multiply-add to compare with",
)


def run(width, exact):
    """Return a function x, y, z -> x y + z on arrays; exact: that of fused.py."""
    of, end = kind("real", width), suffix(width)
    load = [
        line
        for name in "xyz"
        for line in (
            f"  %p{name} = getelementptr {of}, ptr %{name}, i64 %k",
            f"  %v{name} = load {of}, ptr %p{name}, align 4",
        )
    ]
    ir = "\n".join(
        [
            f"declare {of} @llvm.fma.{end}({of}, {of}, {of})",
            "define void @run(ptr %x, ptr %y, ptr %z, ptr %r, i64 %n) nounwind {",
            "  br label %more",
            "more:",
            "  %k = phi i64 [0, %0], [%next, %more]",
            *load,
            f"  %f = call {of} @llvm.fma.{end}({of} %vx, {of} %vy, {of} %vz)",
            f"  %pr = getelementptr {of}, ptr %r, i64 %k",
            f"  store {of} %f, ptr %pr, align 4",
            "  %next = add i64 %k, 1",
            "  %again = icmp slt i64 %next, %n",
            "  br i1 %again, label %more, label %end",
            "end:",
            "  ret void",
            "}",
            "",
        ]
    )
    ir = with_exact_fma(ir) if exact else ir
    assert ("llvm.fma" in ir) != exact
    code = compiler.Loaded(compiler.compile_ir(ir))
    types = [ctypes.c_void_p] * 4 + [ctypes.c_int64]
    call = ctypes.CFUNCTYPE(None, *types)(code.address("run"))

    def multiply_add(*numbers):
        result = np.empty_like(numbers[0])
        places = [a.ctypes.data for a in (*numbers, result)]
        call(*places, len(result) // width)
        return result

    multiply_add.code = code
    return multiply_add


def adversarial(rng, count, single):
    """Return x, y, z whose sums cancel, tie, overflow, underflow, or are special."""
    real, whole, bits, bias = (
        (np.float32, np.uint32, 23, 127)
        if single
        else (np.float64, np.uint64, 52, 1023)
    )

    def numbers(low, high):
        exponent = rng.integers(low, high, count).astype(whole)
        mantissa = rng.integers(0, 2**bits, count).astype(whole)
        few = rng.integers(0, bits, count).astype(whole)
        sparse = rng.random(count)
        mantissa = np.where(sparse < 0.3, mantissa >> few << few, mantissa)
        mantissa = np.where(sparse > 0.9, whole(0), mantissa)
        mantissa = np.where(sparse > 0.97, whole(2**bits - 1), mantissa)
        sign = rng.integers(0, 2, count).astype(whole) << whole(8 * real().itemsize - 1)
        return (sign | (exponent << whole(bits)) | mantissa).view(real)

    top = 2 * bias + 1
    x, y, z = numbers(0, top + 1), numbers(0, top + 1), numbers(0, top + 1)
    way = rng.integers(0, 8, count)
    middle = numbers(bias - 60, bias + 60), numbers(bias - 60, bias + 60)
    x, y = (np.where(way < 5, a, b) for a, b in zip(middle, (x, y), strict=True))
    with np.errstate(all="ignore"):
        product = x * y
        shift = numbers(bias - 2 * bits - 4, bias + 2 * bits + 4)
        z = np.where(way == 1, -product, z)  # cancels but for the rest
        near = np.nextafter(-product, real(0))
        z = np.where(way == 2, near, z)
        z = np.where(way == 3, (product * shift).astype(real), z)
        # Products about the least numbers, and terms about their last bits.
        small = np.where(way == 5, numbers(0, 60), numbers(0, 4))
        low = way >= 5
        other = np.clip(rng.normal(size=count) * 2.0 ** rng.integers(-60, 60, count),
                        -1e18, 1e18).astype(real)  # fmt: skip
        x, z = np.where(low & (way < 7), other, x), np.where(low, small, z)
        y = np.where(low & (way < 7), small / np.where(x == 0, 1, x), y).astype(real)
        half = (rng.integers(-(2**20), 2**20, count) + real(0.5)).astype(real)
        half = np.where(rng.random(count) < 0.5, half, np.nextafter(half, real(0)))
        x = np.where(way == 6, half, x)  # a tie of subnormal numbers, or beside one
        y = np.where(way == 6, np.finfo(real).smallest_subnormal, y)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, np.finfo(real).max]
    special += [np.finfo(real).tiny, np.finfo(real).smallest_subnormal]
    some = np.array(special, real)
    for a in (x, y, z):
        chosen = rng.random(count) < 0.03
        a[chosen] = rng.choice(some, chosen.sum())
    return x, y, z


def same(a, b):
    """Return whether bits are equal; one NaN is as good as another."""
    whole = np.uint32 if a.dtype == np.float32 else np.uint64
    return (a.view(whole) == b.view(whole)) | (np.isnan(a) & np.isnan(b))


@needs_fma
@pytest.mark.parametrize("width", [1, 2, 4, Lanes(1), Lanes(4), Lanes(8)])
def test_bits_are_those_of_the_machine(width, request):
    """Adversarial bit patterns: subnormals, ties, cancellation, overflow, NaN."""
    rng = np.random.default_rng([3, width, is_single(width)])
    exact, machine = run(width, True), run(width, False)
    rounds = 100 if request.config.option.full else 1
    for _ in range(rounds):
        x, y, z = adversarial(rng, 120_000, is_single(width))
        got, wanted = exact(x, y, z), machine(x, y, z)
        bad = np.flatnonzero(~same(got, wanted))
        first = [(float(a[k]).hex() for a in (x, y, z, got, wanted)) for k in bad[:3]]
        assert not bad.size, (bad.size, [tuple(f) for f in first])


def test_both_precisions_in_one_module():
    """Lanes of float32 and as many of float64 each have their function."""
    kinds = [(kind("real", w), suffix(w)) for w in (1, Lanes(1), 4, Lanes(4))]
    ir = "".join(
        f"declare {of} @llvm.{name}.{end}({of}{f', {of}' * (2 * (name == 'fma'))})\n"
        for name in ("fma", "floor")
        for of, end in kinds
    )
    ir += "".join(
        f"define {of} @f_{end}({of} %x) nounwind {{\n"
        f"  %a = call {of} @llvm.fma.{end}({of} %x, {of} %x, {of} %x)\n"
        f"  %b = call {of} @llvm.floor.{end}({of} %a)\n  ret {of} %b\n}}\n"
        for of, end in kinds
    )
    ir = with_own_floor(with_exact_fma(ir))
    assert "llvm.fma" not in ir
    assert "llvm.floor" not in ir
    compiler.compile_ir(ir)


@needs_fma
def test_the_patterns_reach_every_case():
    """Subnormal results, exact cancellations, double roundings: some hundred of each."""
    rng = np.random.default_rng(1)
    x, y, z = adversarial(rng, 120_000, False)
    wanted = run(1, False)(x, y, z)
    with np.errstate(all="ignore"):
        product = x * y
        twice = product + z
    tiny = (np.abs(wanted) < 2.0**-1022) & (wanted != 0)
    finite = np.isfinite(wanted)
    assert tiny.sum() > 1000
    assert (np.isfinite(product) & ~same(twice, wanted) & tiny).sum() > 100
    assert (finite & ~same(twice, wanted)).sum() > 10_000
    assert (np.isinf(wanted) & np.isfinite(x) & np.isfinite(y)).sum() > 100


@pytest.mark.parametrize("width", [1, 4, Lanes(1), Lanes(8)])
def test_rounding_down_needs_no_instruction(width):
    """floor of fused.py equals NumPy's, with signs of zeros."""
    of, end = kind("real", width), suffix(width)
    ir = "\n".join(
        [
            f"declare {of} @llvm.floor.{end}({of})",
            "define void @run(ptr %x, ptr %r) nounwind {",
            f"  %v = load {of}, ptr %x, align 4",
            f"  %f = call {of} @llvm.floor.{end}({of} %v)",
            f"  store {of} %f, ptr %r, align 4",
            "  ret void",
            "}",
            "",
        ]
    )
    ir = with_own_floor(ir)
    assert "llvm.floor" not in ir
    code = compiler.Loaded(compiler.compile_ir(ir))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(code.address("run"))
    rng = np.random.default_rng(2)
    real = np.float32 if is_single(width) else np.float64
    x, _, _ = adversarial(rng, 4000, is_single(width))
    whole = rng.integers(-100, 100, 4000)
    with np.errstate(all="ignore"):
        x = np.concatenate(
            [x, whole, np.nextafter(whole, 1e9), rng.normal(size=4000),
             [0.0, -0.0, 0.5, -0.5, -1.0, 2.0**52, -(2.0**52) - 1, 1]]
        ).astype(real)  # fmt: skip
    got = np.empty_like(x)
    for k in range(0, len(x), int(width)):
        call(x[k:].ctypes.data, got[k:].ctypes.data)
    assert same(got, np.floor(x)).all()


@needs_fma
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("how", ["gcc", "clang"])
def test_bits_of_c_source_are_those_of_the_machine(how, level, tmp_path, request):
    """The same functions in C, by compilers that are not told of an instruction."""
    if shutil.which(how) is None:
        pytest.skip(f"no compiler '{how}' here")
    loops = [
        f"void run{end}(const {of} *x, const {of} *y, const {of} *z, {of} *r, int n)"
        f" {{ for (int k = 0; k < n; k++) r[k] = own_fma{end}(x[k], y[k], z[k]); }}"
        for end, of in (("", "double"), ("f", "float"))
    ]
    text = "\n".join(loops)
    head = "#include <math.h>\n#include <stdint.h>\n"
    functions = CFunctions("own", True).definitions(text)
    (tmp_path / "own.c").write_text(head + functions + text)
    command = [how, "-std=c99", level, "-shared", "-fPIC", "own.c", "-o", "own.so"]
    subprocess.run([*command, "-lm"], cwd=tmp_path, check=True)
    loaded = ctypes.CDLL(str(tmp_path / "own.so"))
    rng = np.random.default_rng(9)
    for _ in range(20 if request.config.option.full else 1):
        for call, width in ((loaded.run, 1), (loaded.runf, Lanes(1))):
            numbers = adversarial(rng, 100_000, is_single(width))
            got = np.empty_like(numbers[0])
            places = [ctypes.c_void_p(a.ctypes.data) for a in (*numbers, got)]
            call(*places, len(got))
            assert same(got, run(width, False)(*numbers)).all()


def _instructions(assembly, name):
    """Count the machine instructions of a function."""
    body = assembly.partition(f"\n{name}:")[2].partition(".Lfunc_end")[0]
    return len(re.findall(r"^\t[a-z]", body, re.MULTILINE))


def test_what_it_costs():
    """About 75 instructions for ordinary numbers, 280 for all others."""
    of = "double"
    ir = f"declare {of} @llvm.fma.f64({of}, {of}, {of})\n"
    ir += "define void @run(ptr %x) nounwind {\n  ret void\n}\n"
    ir = with_exact_fma(ir).replace("internal ", "")
    assembly = compiler.assembly(ir)
    ordinary = _instructions(assembly, "exact_fma_f64")
    rest = _instructions(assembly, "exact_fma_scaled")
    assert 40 < ordinary <= 80, ordinary
    assert 100 < rest <= 220, rest
