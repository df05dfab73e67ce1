"""Calls into machine code: arrays of any kind, out, errors, memory."""

import pickle
import re
import sys

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.call import entry, entry_code, python_to_llvm

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


def _inputs(*lead, seed=0):
    return list(np.random.default_rng(seed).normal(size=(3, *lead, 7)))


def test_the_struct_is_as_expected_here():
    """This NumPy is read directly; a NumPy that lies otherwise would be noticed."""
    assert entry.arrays_lie_as_expected()
    assert entry.mode() == "struct"


def test_another_struct_is_noticed(monkeypatch):
    """Where a field lies elsewhere, the buffer protocol is used."""
    for field in ("DATA", "ND", "DIMS", "KIND", "FLAGS"):
        entry.arrays_lie_as_expected.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(entry_code, field, getattr(entry_code, field) + 16)
            assert entry.mode() == "buffer", field
    entry.arrays_lie_as_expected.cache_clear()


def test_what_the_entry_calls_is_checked():
    """The names in its IR are those that are looked for before it is used."""
    ir = python_to_llvm.translate(entry_code, "entry", array="array_buffer", PLACE=0)
    declared = re.findall(r"declare i64 @(\w+)", ir)
    assert sorted(declared) == sorted(entry._CALLED)


def test_all_ways_in_give_the_same_bits(build, arm):
    """One state and a batch, new arrays and given ones."""
    program = build("rnea", arm)
    graph = dyn.solver("rnea").build(arm, engine="graph")
    for lead in ((), (1,), (5,), (8,), (50,)):
        inputs = _inputs(*lead)
        wanted = program.__call__(*[x.tolist() for x in inputs])
        np.testing.assert_allclose(wanted, graph(*inputs), rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(program(*inputs), wanted)
        out = np.full((*lead, 7), np.nan)
        assert program(*inputs, out=out) is out
        np.testing.assert_array_equal(out, wanted)


def test_several_outputs_are_named(build, arm):
    """Tuples of arrays are taken as out and given with names."""
    program = build("semi_implicit_euler", arm)
    for lead in ((), (20,)):
        inputs = [*_inputs(*lead), 1e-3]
        wanted = program(*inputs)
        assert wanted._fields == ("q_next", "qd_next")
        out = (np.zeros((*lead, 7)), np.zeros((*lead, 7)))
        assert program(*inputs, out=out) is out
        for a, b in zip(out, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        assert pickle.loads(pickle.dumps(wanted)).q_next.shape == (*lead, 7)


def test_numbers_come_as_floats(build, arm):
    """Outputs of no axes are Python floats for one state, arrays for a batch."""
    program = build("energy", arm)
    q, qd, _ = _inputs()
    one = program(q, qd)
    assert type(one.kinetic) is float and type(one.potential) is float
    many = program(np.stack([q] * 9), np.stack([qd] * 9))
    np.testing.assert_array_equal(many.kinetic, [one.kinetic] * 9)


def test_every_kind_of_number_is_served(build, arm):
    """A port of no axes takes floats, ints, NumPy's scalars and arrays of none."""
    program = build("semi_implicit_euler", arm)
    inputs = _inputs()
    wanted = program(*inputs, 0.125)
    kinds = (np.float64, np.float32, np.array, np.float16, lambda x: np.array(x, "f4"))
    for kind in kinds:
        for got, right in zip(program(*inputs, kind(0.125)), wanted, strict=True):
            np.testing.assert_array_equal(got, right)
    for got, right in zip(program(*inputs, 1), program(*inputs, 1.0), strict=True):
        np.testing.assert_array_equal(got, right)


def test_every_kind_of_array_is_served(build, arm):
    """Strided, reversed, Fortran, byte-swapped, unaligned, read-only, subclasses."""
    program = build("rnea", arm)
    for lead in ((), (20,)):
        q, qd, qdd = _inputs(*lead)
        wanted = program(q, qd, qdd)
        apart = np.zeros((*lead, 14))
        apart[..., ::2] = q
        locked = q.copy()
        locked.flags.writeable = False
        raw = np.zeros(q.nbytes + 1, np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(q.shape)
        unaligned[...] = q
        backward = np.ascontiguousarray(q[..., ::-1])
        for kind in (
            apart[..., ::2], backward[..., ::-1], np.asfortranarray(q), locked, unaligned,
            q.astype(">f8"), q.view(np.recarray), np.ma.array(q), q.tolist(),
            q.astype(np.longdouble),
        ):  # fmt: skip
            np.testing.assert_array_equal(program(kind, qd, qdd), wanted)


def test_what_does_not_fit_is_refused(build, arm):
    """Each wrong argument gets words, and nothing is written."""
    program = build("rnea", arm)
    q, qd, qdd = _inputs()
    Q, Qd, Qdd = _inputs(20)
    out = np.full(7, 3.0)
    locked = np.zeros(7)
    locked.flags.writeable = False
    wrong = [
        ((q[:6], qd, qdd), {}, "q: wanted shape"),
        ((0.5, qd, qdd), {}, "q: wanted shape"),
        ((q, np.float64(0.5), qdd), {}, "qd: wanted shape"),
        ((Q, Qd[:19], Qdd), {}, "qd: wanted a batch of 20"),
        (
            (q, qd),
            {},
            r"qdd: wanted an array, as in program\(q, qd, qdd\), got nothing",
        ),
        ((q, qd, qdd, q), {}, "arguments: wanted 3"),
        ((q.astype(object), qd, None), {}, "wanted numbers"),
        ((q, qd, qdd), {"out": np.zeros(6)}, "out tau: wanted .*shape \\(7,\\)"),
        ((Q, Qd, Qdd), {"out": np.zeros(7)}, "out tau: wanted .*shape \\(20, 7\\)"),
        ((q, qd, qdd), {"out": locked}, "read-only"),
        ((q, qd, qdd), {"out": [0.0] * 7}, "out tau: .* got list"),
        ((q, qd, qdd), {"out": np.zeros(7, np.float32)}, "float32"),
        ((q, qd, qdd), {"into": out}, "into: wanted one of"),
        ((q[:6], qd, qdd), {"out": out}, "q: wanted shape"),
    ]
    for args, named, message in wrong:
        with pytest.raises(dyn.ShapeError, match=message):
            program(*args, **named)
    np.testing.assert_array_equal(out, np.full(7, 3.0))


def test_out_may_share_memory_with_inputs(build, arm):
    """Overlapping memory gives the same bits as separate memory."""
    program = build("rnea", arm)
    for lead in ((), (50,)):
        inputs = _inputs(*lead)
        wanted = program(*inputs)
        for k in range(3):
            arrays = [x.copy() for x in inputs]
            program(*arrays, out=arrays[k])
            np.testing.assert_array_equal(arrays[k], wanted)
        wide = np.zeros((*lead, 21))
        strided = wide[..., ::3]
        program(*inputs, out=strided)
        np.testing.assert_array_equal(strided, wanted)
    rows = np.zeros((51, 7))
    rows[:50] = inputs[0]
    program(rows[:50], *inputs[1:], out=rows[1:])
    np.testing.assert_array_equal(rows[1:], wanted)


def test_requirements_raise_with_rows(build, arm):
    """A state that cannot be solved raises, in a batch with its rows; out is kept."""
    program = build("aba", arm, inputs=["armature"])
    q, qd, tau = _inputs()
    out = np.full(7, 3.0)
    with pytest.raises(dyn.SingularError):
        program(q, qd, tau, np.full(7, -9.0), out=out)
    np.testing.assert_array_equal(out, np.full(7, 3.0))
    Q, Qd, Tau = _inputs(20)
    armature = np.ones((20, 7))
    armature[[3, 17]] = -9.0
    with pytest.raises(dyn.SingularError) as caught:
        program(Q, Qd, Tau, armature)
    assert caught.value.rows == (3, 17)
    outputs, status = program(Q, Qd, Tau, armature, status=True)
    assert np.flatnonzero(status).tolist() == [3, 17]
    assert np.isnan(outputs[[3, 17]]).all() and np.isfinite(outputs[status == 0]).all()


def test_finite_refuses_nan_on_both_sides(build, arm):
    """finite=True checks inputs and results, for a state and in a batch."""
    program = build("rnea", arm, finite=True)
    for lead in ((), (20,)):
        q, qd, qdd = _inputs(*lead)
        out = np.full((*lead, 7), 3.0)
        np.testing.assert_array_equal(program(q, qd, qdd, out=out.copy()),
                                      program(q, qd, qdd))  # fmt: skip
        bad = qd.copy()
        bad[..., 2] = np.nan
        with pytest.raises(dyn.NonFiniteError, match="input qd is not finite"):
            program(q, bad, qdd, out=out)
        huge = np.full_like(qd, 1e200)
        with pytest.raises(dyn.NonFiniteError, match="result tau is not finite"):
            program(q, huge, qdd, out=out)
        np.testing.assert_array_equal(out, np.full((*lead, 7), 3.0))


def test_a_million_calls_leave_reference_counts(build, arm, full):
    """Neither arguments nor results nor the Program gain or lose references.

    A million with --full.
    """
    program = build("gravity", arm)
    fast = build.mode == "struct"
    calls = (1_000_000 if fast else 50_000) if full else (100_000 if fast else 20_000)
    q = np.zeros(7)
    out, name, result = np.zeros(7), "out", None
    watched = [q, out, name, program, np.ndarray, None, program.__class__]
    if build.mode != "python":  # there np.empty of NumPy 2.4 itself counts dtypes up
        watched.append(q.dtype)
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(calls // 2):
        program(q, out=out)
        result = program(q)
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    assert sys.getrefcount(result) <= 2 + (sys.version_info < (3, 14))


def test_a_call_with_out_allocates_nothing(build, arm):
    """Python's allocator and NumPy's see no new block in calls with out."""
    import tracemalloc

    if build.mode == "python":
        pytest.skip("the way through Python makes arrays")
    program = build("aba", arm)
    inputs, out = _inputs(), np.zeros(7)
    program(*inputs, out=out)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(100):
            program(*inputs, out=out)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 200 and peak - before < 400
