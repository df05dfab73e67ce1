"""Recurrences against closed forms: the counts of the book's table, and equal values."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from dataflow import Dependence

EXAMPLES = Path(__file__).parents[2] / "examples"
PATH = EXAMPLES / "recurrences.py"


def _module(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


operations = _module("_operation_counts").operations
recurrences = _module("recurrences")

# RBD5-2.3: multiplications, additions of (5.2), (5.3), (5.2) + (5.4), (5.5).
TABLE = {
    1: ((6, 6), (6, 0), (30, 30), (6, 0)),
    2: ((12, 12), (18, 6), (60, 60), (48, 24)),
    3: ((18, 18), (36, 18), (90, 90), (156, 90)),
    6: ((36, 36), (126, 90), (180, 180), (1176, 720)),
    10: ((60, 60), (330, 270), (300, 300), (5280, 3240)),
}


def test_fibonacci():
    """First values, an exact large one, and what is refused."""
    assert [recurrences.fibonacci(n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]
    big = 280571172992510140037611932413038677189525
    assert recurrences.fibonacci(200) == big
    for bad in (-1, 2.5, 3.0, "3"):
        with pytest.raises(ValueError, match="whole number from 0 on"):
            recurrences.fibonacci(bad)


@pytest.mark.parametrize("n", TABLE)
def test_counts_of_the_table(n):
    """Literal counts of all four ways, and their formulas."""
    got = [operations(recurrences.WAYS, way, n) for way in recurrences.WAYS]
    assert got == list(TABLE[n])
    C = n * (n + 1) * (n - 1) // 6
    assert got == [
        (6 * n, 6 * n),
        (3 * n * (n + 1), 3 * n * (n - 1)),
        (30 * n, 30 * n),
        (3 * n * (n + 1) + 30 * C, 3 * n * (n - 1) + 18 * C),
    ]


def test_third_differences_of_the_closed_accelerations():
    """(5.5) is cubic: third differences 30 and 18, fourth none."""
    counts = np.array([operations(recurrences.WAYS, "(5.5)", n) for n in range(1, 9)])
    third = np.diff(counts, n=3, axis=0)
    assert (third == [30, 18]).all()
    for way in ("(5.2)", "(5.2)+(5.4)"):
        counts = np.array([operations(recurrences.WAYS, way, n) for n in range(1, 6)])
        assert (np.diff(counts, n=2, axis=0) == 0).all()


def _drawn(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 6)), *rng.normal(size=(2, n))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 10])
def test_both_ways_agree(n):
    """The recurrence and the sum give one answer; nothing for no bodies."""
    s, qd, qdd = _drawn(n)
    pairs = [
        (recurrences.velocities_recursive(s, qd), recurrences.velocities_closed(s, qd), 1e-14),
        (recurrences.accelerations_recursive(s, qd, qdd),
         recurrences.accelerations_closed(s, qd, qdd), 1e-13),
    ]  # fmt: skip
    for left, right, relative in pairs:
        assert len(left) == len(right) == n
        left, right = (
            np.array([list(x) for x in left]),
            np.array([list(x) for x in right]),
        )
        scale = max(1.0, np.abs(right).max(initial=0))
        np.testing.assert_allclose(left, right, rtol=0, atol=relative * scale)
    if n:
        v = np.array([list(x) for x in recurrences.velocities_recursive(s, qd)])
        np.testing.assert_allclose(
            v, np.cumsum(s * qd[:, None], axis=0), atol=1e-14 * n
        )


def test_lengths_must_agree():
    """More rates than axes are refused."""
    s, qd, qdd = _drawn(3)
    with pytest.raises(ValueError, match="3 axes and 2 rates"):
        recurrences.velocities_closed(s, qd[:2])
    with pytest.raises(ValueError, match="3 axes and 2 rates"):
        recurrences.accelerations_recursive(s, qd, qdd[:2])


class Noted(Dependence):
    """A Dependence that notes which inputs each operation joined."""

    __slots__ = ()
    log = Counter()

    def apply(self, op, *operands):
        """Note it."""
        result = super().apply(op, *operands)
        Noted.log[op, result.inputs] += 1
        return Noted(result.value, result.inputs, result.reads)


def _repeats(function, n):
    """Count how often each product s_j qd_j and each partial sum is formed."""
    s, qd, _ = _drawn(n)
    s = [[Noted.input("s", j, float(x)) for x in row] for j, row in enumerate(s, 1)]
    qd = [Noted.input("qd", j, float(x)) for j, x in enumerate(qd, 1)]
    Noted.log = Counter()
    function(s, qd)

    def times(op, last):
        joined = range(last, last + 1) if op == "mul" else range(1, last + 1)
        wanted = {(name, j) for name in ("s", "qd") for j in joined}
        return Noted.log[op, frozenset(wanted)] / 6

    products = [times("mul", j) for j in range(1, n + 1)]
    return products, [times("add", j) for j in range(2, n + 1)]


def test_the_recurrence_forms_each_product_once():
    """s_1 qd_1 is formed n times in the sum, s_1 qd_1 + s_2 qd_2 n - 1 times."""
    n = 6
    products, sums = _repeats(recurrences.velocities_closed, n)
    assert products == [n - j for j in range(n)]
    assert sums == [n - j for j in range(1, n)]
    products, sums = _repeats(recurrences.velocities_recursive, n)
    assert products == [1] * n
    assert sums == [1] * (n - 1)


def test_the_example_prints_the_table():
    """`python examples/recurrences.py` shows every count of the table."""
    done = subprocess.run([sys.executable, str(PATH)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for n, counts in TABLE.items():
        line = next(x for x in lines if x.split()[:1] == [str(n)])
        cells = [f"{mul}, {add}" for mul, add in counts]
        assert [x.strip() for x in line.split("   ") if x.strip()][1:] == cells
