"""Machine code in lanes: what stays alive has the bits of single states."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm.host_machine import missing
from dyn_core.engines.machine_code import (
    FloatArray,
    IntArray,
    KernelAddress,
    TiedBatch,
    any_lane,
    compiled,
    decided_by,
    in_lanes,
    machine_code,
    run_kernel,
)
from dyn_core.errors import ShapeError
from dyn_core.numbers.scalar import maximum, where

native = pytest.mark.skipif(bool(missing()), reason=f"no machine code: {missing()}")
LANES = (4, 8)
ALL = 2**8 - 1


@machine_code
def run(kernel: KernelAddress) -> int:
    """Run a function in lanes."""
    return run_kernel(kernel)


@machine_code
def root(x: FloatArray, out: FloatArray, counts: IntArray) -> int:
    """Find roots by Newton steps, with a choice of each kind on the way."""
    a, b = abs(x[0]), 1.0 if x[1] > 0.0 else x[1]
    out[0] = max(a, b, 0.5) + (a / b if b > a else b)
    out[1] = where(a < b, math.sqrt(a), maximum(a, 2.0 * b))
    y = 0.5 * (1.0 + a)
    while abs(y * y - a) > 1e-9 * (1.0 + a):
        y = 0.5 * (y + a / y)
        counts[0] += 1
    out[2] = y
    counts[1] = math.floor(4.0 * x[1])
    if x[2] > 0.5 and not (a < 0.1 or b != b):
        out[3] = y - b
        return 1
    out[3] = math.copysign(y, x[2])
    return 0


@machine_code
def wait(x: FloatArray, out: FloatArray) -> int:
    """Halve numbers until they are small; those that are small wait."""
    more = where(x[0] > 1.0, 1.0, 0.0)
    out[0], out[1] = x[0], 0.0
    turns = 0
    while any_lane(more > 0.0):
        out[0] = where(more > 0.0, 0.5 * out[0], out[0])
        out[1] += more
        if decided_by(x[1] > 0.0, more > 0.0):
            turns += 1
        more = where(out[0] > 1.0, more, 0.0)
    return 0 * turns


def states(rows, seed=0):
    """Return random numbers, some of them special."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    x[rng.uniform(size=x.shape) < 0.05] = math.nan
    x[:, 1] = np.nan_to_num(x[:, 1])  # it becomes a whole number
    return x


def alone(function, x, outputs, counts=None):
    """Return outputs and results of single states."""
    ends, results = np.zeros((len(x), outputs)), []
    for row, end in zip(x, ends, strict=True):
        more = () if counts is None else (np.zeros(2, np.int64),)
        results.append((compiled(function)(row.copy(), end, *more), *map(tuple, more)))
    return ends, results


def together(function, x, outputs, lanes, wanted=ALL, counts=False):
    """Return outputs, which lanes are alive, the result and the ints of a pack."""
    arrays = [np.ascontiguousarray(x.T), np.zeros((outputs, lanes))]
    if counts:
        arrays.append(np.zeros(2, np.int64))
    tied = compiled(function, lanes=lanes).tied(*arrays)
    tied.alive[0] = wanted % 2**lanes
    result = compiled(run)(tied.kernel)
    alive = [lane for lane in range(lanes) if int(tied.alive[0]) >> lane & 1]
    return arrays[1].T, alive, (result, *(tuple(a) for a in arrays[2:]))


@native
@pytest.mark.parametrize("lanes", LANES)
def test_lanes_that_are_alive_have_the_bits_of_single_states(lanes):
    """Numbers, results and whole numbers; and at least one is alive."""
    survivors = 0
    for seed in range(60):
        x = states(lanes, seed)
        if seed % 2:  # nearly alike
            x = x[0] + 1e-3 * np.random.default_rng(seed).normal(size=x.shape)
        ends, results = alone(root, x, 4, True)
        values, alive, result = together(root, x, 4, lanes, counts=True)
        assert alive
        survivors += len(alive)
        for lane in alive:
            np.testing.assert_array_equal(values[lane], ends[lane])
            assert results[lane] == result
    assert survivors > 60 * lanes / 2


@native
def test_most_lanes_decide_and_only_wanted_ones():
    """Three of four go on; those that are not wanted have no say."""
    x = np.array([[4.0, 1.0, 1.0]] * 3 + [[4.0, 1.0, 0.0]])
    assert together(root, x, 4, 4, counts=True)[1] == [0, 1, 2]
    assert together(root, x, 4, 4, 0b1001, True)[1] == [0]
    assert together(root, x, 4, 4, 0b1000, True)[1] == [3]


@native
@pytest.mark.parametrize("lanes", LANES)
def test_lanes_wait_for_others_without_being_given_up(lanes):
    """Each ends after its own number of turns, with its own bits."""
    x = np.array([[1.7**k, 1.0 if k % 3 else -1.0, 0.0] for k in range(lanes)])
    x[:, 1] = np.where(x[:, 0] > 1.0, 1.0, -1.0)
    ends, _ = alone(wait, x, 2)
    values, alive, _ = together(wait, x, 2, lanes)
    assert alive == list(range(lanes)) and len(set(ends[:, 1])) > 2
    np.testing.assert_array_equal(values, ends)


@native
def test_arrays_without_lanes_are_refused():
    """The error says how many are wanted."""
    with pytest.raises(ShapeError, match="behind them 4 lanes"):
        compiled(wait, lanes=4).tied(np.zeros(3), np.zeros((2, 4)))
    with pytest.raises(ShapeError, match="4 lanes"):
        compiled(wait, lanes=4).tied(np.zeros((3, 8)), np.zeros((2, 4)))


def test_records_in_lanes_share_what_they_shared():
    """Floats have lanes behind them, whole numbers are copied."""
    a, k = np.arange(3.0), np.arange(2)
    tied = KernelAddress(1, 2, 3, 4)
    known = {}
    wide, same, whole, numbers = (in_lanes(x, 4, known) for x in (a, a, k, tied))
    assert wide is same and wide.shape == (3, 4) and wide.ctypes.data % 64 == 0
    np.testing.assert_array_equal(wide, np.repeat(a[:, None], 4, 1))
    assert whole is not k and whole.tolist() == [0, 1] and numbers == tied


@pytest.mark.parametrize("engine", ("native", "graph"))
def test_tied_batches_are_those_of_the_program(engine):
    """For any number of rows, with an input that all rows share."""
    model, rows = dyn.load("arm7"), 24
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, rows, model.nv))
    rnea = dyn.solver("rnea").build(model, engine=engine)
    shared, tau = qdd[0].copy(), np.zeros((rows, model.nv))
    call = TiedBatch(rnea, (q, qd, shared), (tau,))
    for n in (24, 5, 17):
        tau[:] = 0.0
        q += 0.1
        call(n)
        np.testing.assert_array_equal(tau[:n], rnea(q[:n], qd[:n], shared))
    with pytest.raises(ShapeError, match="qd"):
        TiedBatch(rnea, (q, qd[:, :3].copy(), shared), (tau,))
    wide, narrow = np.zeros((rows, 9)), np.zeros((rows, model.nv), np.float32)
    for wrong in (qd[:5], qd[::2], wide[:, :7], narrow):
        with pytest.raises(ShapeError, match=r"qd: wanted .*\(24, 7\)"):
            TiedBatch(rnea, (q, wrong, shared), (tau,))
    with pytest.raises(ShapeError, match="tau"):
        TiedBatch(rnea, (q, qd, shared), (wide[:, :7],))
