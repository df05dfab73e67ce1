"""Machine code of the subset has the bits of Python: random programs, random data."""

from __future__ import annotations

import importlib.util
import math
import sys

import numpy as np
import pytest

from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import FloatArray, IntArray, compiled, machine_code

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e308, 1.0, -1.5)
HEAD = """
from __future__ import annotations
import math
from typing import NamedTuple
from dyn_core.engines.machine_code import FloatArray, FloatArray2, IntArray, machine_code
SCALE = 0.7
STRIDE = -3
class Data(NamedTuple):
    x: FloatArray
    m: FloatArray2
    n: IntArray
    gain: float
    count: int
    on: bool
"""
SIGNATURE = "(d: Data, x: FloatArray, a: float, k: int) -> tuple[float, int, bool]:"


class Writer:
    """Writes a random program whose Python form raises nothing.

    Programs of odd seeds divide whole numbers by zero.
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.zeros, self.count = seed % 2, 0
        self.functions = []

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def real(self, depth=3):
        if depth == 0:
            return self.pick("f0", "f1", "f2", "a", "d.gain", "SCALE", "0.1", "-0.0",
                             "math.inf", "1e-300", "2.5", "x[i0 % len(x)]")  # fmt: skip
        e, g, w = self.real(depth - 1), self.real(depth - 1), self.whole(depth - 1)
        row = f"d.m[({w}) % d.m.shape[0]]"
        forms = [
            f"({e} + {g})", f"({e} - {g})", f"({e} * {g})", f"({e} * {g} + {e})",
            f"(x[{w} % len(x)] / {e})", f"min({e}, {g})", f"max({e}, {g}, f0)",
            f"abs({e})", f"math.sqrt(abs({e}))", f"(-{e})", f"float({w})",
            f"({e} if {self.truth(depth - 1)} else {g})", f"({e} * ({w}))",
            f"math.copysign({e}, f0 if f0 == f0 else 1.0)", f"(2 - {e})",
            f"{row}[{self.whole(depth - 1)} % 3]", f"d.m[{w} % len(d.m), 2]",
        ]  # fmt: skip
        forms += [f"{name}({row}, {e}, {w})" for name in self.functions]
        return self.pick(*forms)

    def whole(self, depth=2):
        if depth == 0:
            return self.pick("i0", "i1", "i2", "k", "d.count", "STRIDE", "7", "-2", "0")
        e, g, r = self.whole(depth - 1), self.whole(depth - 1), self.real(depth - 1)
        index = f"d.n[{e} % len(d.n)]"
        by = g if self.zeros else f"({g} if {g} != 0 else 3)"
        return self.pick(
            f"({e} + {g})", f"({e} - {g})", f"({e} * {g} % 10007)", f"(-{e})",
            f"({index} // {by})", f"({index} % {by})", f"({e} // -5)", f"({e} % -7)",
            f"(int({r}) if abs({r}) < 1e6 else 3)", f"abs({e})", f"min({e}, {g})",
            f"(math.floor({r}) if abs({r}) < 1e6 else 3)", "len(x)",
            f"(math.ceil({r}) if abs({r}) < 1e6 else 3)", f"int({self.truth(depth - 1)})",
            f"({e} if {self.truth(depth - 1)} else {g})",
        )  # fmt: skip

    def truth(self, depth=2):
        if depth == 0:
            return self.pick("b0", "d.on", "(f0 < f1)", "(i0 != i1)", "(f1 == f2)")
        compare = self.pick("<", "<=", ">", ">=", "==", "!=")
        e, g = self.truth(depth - 1), self.truth(depth - 1)
        return self.pick(
            f"({self.real(depth - 1)} {compare} {self.real(depth - 1)})",
            f"({self.whole(depth - 1)} {compare} {self.whole(depth - 1)})",
            f"({self.real(depth - 1)} < {self.real(depth - 1)} <= {self.real(0)})",
            f"({e} and {g})", f"({e} or {g})", f"(not {e})", f"math.isnan({self.real(1)})",
            f"math.isfinite({self.real(1)})", f"({self.whole(1)} > f1)",
            f"(i0 >= 0 and i0 < len(x) and x[i0] > {self.real(0)})",
        )  # fmt: skip

    def statements(self, indent, depth):
        lines = []
        for _ in range(self.rng.integers(2, 5)):
            lines += self.statement(depth)
        return [" " * indent + line for line in lines]

    def statement(self, depth):
        choice = self.rng.integers(12 if depth else 7)
        if choice == 0:
            return [f"{self.pick('f0', 'f1', 'f2')} = {self.real()}"]
        if choice == 1:
            return [f"{self.pick('i0', 'i1', 'i2')} = {self.whole()} % 1009"]
        if choice == 2:
            return [f"b0 = {self.truth()}"]
        if choice == 3:
            return [
                f"f{self.rng.integers(3)} {self.pick('+=', '-=', '*=')} {self.real(2)}"
            ]
        if choice == 4:
            place = self.pick("x[i1 % len(x)]", "d.m[i2 % 4, i0 % 3]")
            return [f"{place} {self.pick('=', '+=', '*=', '/=')} {self.real(2)}"]
        if choice == 5:
            return [
                f"d.n[i0 % len(d.n)] {self.pick('=', '+=', '-=')} {self.whole()} % 99"
            ]
        if choice == 6:
            return [
                f"f0, f1, i0 = {self.real(2)}, {self.real(1)}, {self.whole(1)} % 50"
            ]
        body = self.statements(4, depth - 1)
        if choice in (7, 8):
            more = self.statements(4, depth - 1)
            return [f"if {self.truth()}:", *body, "else:", *more]
        ends = [f"    if {self.truth(1)}:", f"        {self.pick('break', 'continue')}"]
        body += [*ends, *self.statements(4, 0)]
        self.count += 1
        if choice == 9:
            name = f"w{self.count}"
            head = f"while {name} < 3 and {self.truth(1)}:"
            return [f"{name} = 0", head, f"    {name} += 1", *body]
        bound = self.pick("5", "len(x)", "1, 9, 2", "4, -1, -1", "k % 4")
        return [
            f"for r{self.count} in range({bound}):",
            f"    i0 = r{self.count}",
            *body,
        ]

    def program(self):
        """Return a module of two small functions and one that calls them."""
        lines = [HEAD]
        for name in ("sum_of", "choose"):
            self.rng.integers(2)
            lines += ["@machine_code", f"def {name}(x: FloatArray, a: float, k: int) -> float:",
                      "    f0, f1, f2, i0, i1, i2 = a, 1.5, 0.0, k % 100, 2, 3",
                      "    b0 = f0 < x[0]", "    for j in range(len(x)):",
                      f"        f0 {self.pick('+=', '-=')} x[j] * a",
                      f"        if x[j] > {self.pick('f1', 'a')}:",
                      f"            {self.pick('break', 'return x[j]', 'f0 = abs(f0)')}",
                      f"    return f0 if {self.pick('b0', 'i0 > 7', 'not b0')} else f1"]  # fmt: skip
            self.functions.append(name)
        lines += ["@machine_code", f"def program{SIGNATURE}",
                  "    f0, f1, f2, i0, i1, i2 = a, 0.5, x[1], k, 1, len(d.n)",
                  "    b0 = d.on"]  # fmt: skip
        for _ in range(4):
            lines += self.statements(4, 2)
        return "\n".join([*lines, f"    return {self.real()}, i0 + i1 + i2, b0"]) + "\n"


@pytest.fixture
def module_of(tmp_path, monkeypatch):
    """Return a function that imports a source."""

    def load(name, source):
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def _data(module, rng):
    x, m = rng.normal(0, 2, 6), rng.normal(0, 1, (4, 3))
    for array in (x, m.reshape(-1)):
        array[rng.integers(len(array), size=2)] = rng.choice(SPECIAL, 2)
    n = rng.integers(-9, 9, 5)
    record = module.Data(
        x, m, n, float(rng.choice(SPECIAL)), int(rng.integers(-5, 5)), True
    )
    return record, rng.normal(0, 1, 7), float(rng.normal()), int(rng.integers(-20, 20))


def _bits(*values):
    """Return numbers of all kinds with their bits; every nan the same."""
    kinds = []
    for value in values:
        array = np.atleast_1d(np.asarray(value)).copy()
        if array.dtype == float:
            array[np.isnan(array)] = np.nan
        kinds.append((array.dtype.kind, array.tobytes()))
    return kinds


def _run(function, module, seed):
    record, x, a, k = _data(module, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        results = function(record, x, a, k)
    return _bits(*results, x, record.x, record.m, record.n)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(16))
def test_random_programs_have_the_bits_of_python(seed, module_of):
    """Both forms, on data with zeros of both signs, infinities and nan."""
    module = module_of(f"random_program_{seed}", Writer(seed).program())
    native = compiled(module.program)
    checked = compiled(module.program, checked=True)
    forms = [native] if seed % 2 else [native, checked]  # which refuses zeros
    for data in range(25):
        wanted = _run(module.program, module, data)
        for form in forms:
            assert _run(form, module, data) == wanted, data


def test_the_programs_reach_every_statement_and_many_values():
    """The law above would notice: its programs loop, branch, and store."""
    source = "\n".join(Writer(seed).program() for seed in range(16))
    for piece in ("while ", "for r", "else:", "break", "continue", "x[i1 % len(x)] ",
                  "math.floor", "math.ceil", " // -5", "% -7", "min(", "sum_of("):  # fmt: skip
        assert piece in source, piece


@machine_code
def _sums(x: FloatArray, y: FloatArray, n: IntArray, out: FloatArray) -> float:
    total = 0.0
    for i in range(len(x)):
        out[i] = x[i] * y[i] + 0.1
        n[i] = n[i] * 3 + 1
        total += x[i] * y[i]
    return total


def test_loops_of_every_length_keep_the_order_of_operations():
    """Vector instructions change no bit: no multiply-add, no other order of a sum."""
    rng = np.random.default_rng(3)
    for length in (*range(20), 64, 257):
        x, y, n = rng.normal(size=length), rng.normal(size=length), np.arange(length)
        outs = [(n.copy(), np.zeros(length)) for _ in range(2)]
        totals = [
            f(x, y, *out) for f, out in zip((_sums, compiled(_sums)), outs, strict=True)
        ]
        assert _bits(totals[0], *outs[0]) == _bits(totals[1], *outs[1]), length


def test_what_overlaps_is_read_and_written_in_order():
    """Two arguments may be one array, or parts of one."""
    memory = [np.arange(40.0) / 7 for _ in range(2)]
    for function, array in zip((_sums, compiled(_sums)), memory, strict=True):
        function(array[:30], array[1:31], np.arange(30), array[3:33])
    assert memory[0].tobytes() == memory[1].tobytes()


@machine_code
def _divided(a: IntArray, b: IntArray, quotient: IntArray, rest: IntArray) -> None:
    for i in range(len(a)):
        quotient[i] = a[i] // b[i]
        rest[i] = a[i] % b[i]


def test_whole_numbers_are_divided_as_numpy_does():
    """By zero, too, and the smallest number by -1: nothing ends the process."""
    some = np.array([-(2**63), 2**63 - 1, -7, -1, 0, 1, 2, 7])
    a, b = (x.ravel() for x in np.meshgrid(some, some))
    results = [(np.zeros_like(a), np.zeros_like(a)) for _ in range(2)]
    with np.errstate(all="ignore"):
        _divided(a, b, *results[0])
    compiled(_divided)(a, b, *results[1])
    np.testing.assert_array_equal(results[0], results[1])
