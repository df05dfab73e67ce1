"""The subset of Python as machine code: records, calls, bounds, cache, threads."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import types
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest

from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.engines.llvm.threads import LONG_TASKS
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    IntArray2,
    compiled,
    loading,
    machine_code,
    translation,
)
from dyn_core.errors import CompileError, ShapeError

needs_llvm = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
LIMIT = 4


class Frames(NamedTuple):
    """Positions and turns of some bodies."""

    position: FloatArray2
    turn: FloatArray3


class Scene(NamedTuple):
    """A record in a record, arrays of both kinds, numbers of each."""

    frames: Frames
    pair: IntArray2
    kind: IntArray
    margin: float
    count: int
    on: bool


def _scene(seed=0, **changes):
    rng = np.random.default_rng(seed)
    frames = Frames(rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3)))
    pair = np.array([[0, 1], [2, 3], [3, 0]])
    return Scene(frames, pair, np.zeros(3, int), 0.25, 3, True)._replace(**changes)


@machine_code
def _difference(a: FloatArray, b: FloatArray, out: FloatArray) -> float:
    """Store a - b; return its length."""
    total = 0.0
    for i in range(len(out)):
        out[i] = a[i] - b[i]
        total += out[i] * out[i]
    return math.sqrt(total)


@machine_code
def _nearest(scene: Scene, out: FloatArray2, skipped: int) -> tuple[int, float, bool]:
    """Rows of records, calls, loops that end early."""
    best, least = -1, math.inf
    rows, axes = out.shape
    for k in range(scene.count):
        if k == skipped:
            continue
        a, b = scene.pair[k, 0], scene.pair[k, 1]
        row = out[k]
        distance = _difference(scene.frames.position[a], scene.frames.position[b], row)
        turn = scene.frames.turn[b]
        distance -= scene.margin + abs(turn[0, axes - 1]) * turn[1][2]
        scene.kind[k] += 1 if distance < 0.0 else 2
        if distance < least and scene.on:
            best, least = k, distance
    while True:
        rows -= 1
        if rows < 0 or out[rows, 0] == 0.0:
            break
    return best, least, rows < LIMIT


@needs_llvm
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("on", [False, True])
def test_records_rows_and_calls(checked, on):
    """What Python returns and stores, machine code does."""
    form = compiled(_nearest, checked=checked)
    assert form.native
    for skipped in range(-1, 3):
        scenes = _scene(on=on), _scene(on=on)
        outs = np.zeros((3, 3)), np.zeros((3, 3))
        wanted = _nearest(scenes[0], outs[0], skipped)
        result = form(scenes[1], outs[1], skipped)
        assert result == wanted
        assert [type(x) for x in result] == [int, float, bool]
        np.testing.assert_array_equal(outs[0], outs[1])
        np.testing.assert_array_equal(scenes[0].kind, scenes[1].kind)


@machine_code
def _several(x: FloatArray, n: int, by: float, on: bool) -> bool:
    for i in range(n):
        x[i] += by
    return on and n > 1


def test_what_is_bound_is_used_where_it_lies(monkeypatch):
    """A bound call takes the numbers; it keeps its arrays, and sees their changes."""
    call = compiled(_several).bind(x := np.zeros(3))
    assert call(2, 0.5, True) is True
    np.testing.assert_array_equal(x, [0.5, 0.5, 0.0])
    x[:] = 7.0
    assert call(1, 1, True) is False
    np.testing.assert_array_equal(x, [8.0, 7.0, 7.0])
    bound = compiled(_difference).bind(np.ones(4), np.zeros(4), np.empty(4))
    assert bound() == 2.0  # nobody else has the arrays


ARRAY = "contiguous, writeable"


@pytest.mark.parametrize(("arguments", "message"), [
    ((np.zeros(3, np.float32), 1, 1.0, True), f"{ARRAY}, got float32 of shape"),
    ((np.zeros((3, 1)), 1, 1.0, True), r"FloatArray: a float64 array of 1 axes, .*\(3, 1\)"),
    ((np.zeros(6)[::2], 1, 1.0, True), f"{ARRAY}, got one with strides"),
    (([1.0], 1, 1.0, True), f"{ARRAY}, got list"),
    ((np.zeros(3), 1.5, 1.0, True), "n: wanted int, got float"),
    ((np.zeros(3), True, 1.0, True), "n: wanted int, got bool"),
    ((np.zeros(3), 2**63, 1.0, True), "n: wanted an int of 64 bits"),
    ((np.zeros(3), 1, "1", True), "by: wanted float, got str"),
    ((np.zeros(3), 1, 1.0, 1), "on: wanted bool, got int"),
    ((np.zeros(3), 1, 1.0), r"wanted 4 arguments \(x, n, by, on\), got 3"),
])  # fmt: skip
def test_wrong_arguments_are_refused_in_words(arguments, message):
    """Type, dtype, axes, layout and number of arguments."""
    with pytest.raises(ShapeError, match=message):
        compiled(_several)(*arguments)


def test_wrong_records_are_refused_in_words():
    """A field is named with its record; whole and real numbers lie apart."""
    form = compiled(_nearest)
    with pytest.raises(
        ShapeError, match=r"_nearest: scene: wanted a Scene, got Frames"
    ):
        form.bind(_scene().frames, np.zeros((3, 3)))
    with pytest.raises(
        ShapeError, match=r"scene\.pair: wanted IntArray2: a int64 array"
    ):
        form.bind(_scene(pair=np.zeros((3, 2))), np.zeros((3, 3)))
    locked = np.zeros((3, 3))
    locked.flags.writeable = False
    with pytest.raises(ShapeError, match="out: .*got one with read-only memory"):
        form.bind(_scene(), locked)
    memory = np.zeros(9)
    with pytest.raises(ShapeError, match="whole and real numbers apart"):
        form.bind(_scene(kind=memory[6:].view(np.int64)), memory.reshape(3, 3))
    with pytest.raises(ShapeError, match=r"wanted 2 arrays and records \(scene, out\)"):
        form.bind(_scene())


@machine_code
def _taken(x: FloatArray, index: int) -> float:
    if index > 90:
        return 1.0
    return x[index]


@machine_code
def _outside(x: FloatArray2, index: int, by: int) -> float:
    total = 0.0
    for i in range(3):
        total += _taken(x[i // by], index)
        x[0, 0] += 1.0
    return total


@needs_llvm
def test_the_checked_form_names_function_and_line():
    """An index out of bounds and a division by zero end the call at once."""
    form, x = compiled(_outside, checked=True), np.zeros((3, 2))
    line = _taken.__code__.co_firstlineno + 4
    for index in (2, -1, 90):
        message = (
            rf"test_machine_code\.py: _taken, line {line}: x\[index\]: index {index}"
        )
        with pytest.raises(IndexError, match=message + "; valid: 0 to 1"):
            form(x, index, 1)
    with pytest.raises(ZeroDivisionError, match="_outside, line .* division by zero"):
        form(x, 1, 0)
    assert x[0, 0] == 0.0
    assert form(x, 99, 1) == 3.0
    with pytest.raises(IndexError, match=r"_outside, line .*: index -1; valid: 0 to 2"):
        form(x, 0, -1)
    with pytest.raises(IndexError, match="index 0; valid: none, the array is empty"):
        form(np.zeros((0, 2)), 0, 1)


@needs_llvm
def test_machine_code_is_found_again(tmp_path, monkeypatch):
    """What is on disk serves as long as nothing that it depends on is another."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kept"))
    first = loading.CompiledFunction(_nearest, False).prepare()
    again = loading.CompiledFunction(_nearest, False).prepare()
    assert (first.fresh, again.fresh) == (True, False)
    outs = np.zeros((3, 3)), np.zeros((3, 3))
    assert first(_scene(), outs[0], -1) == again(_scene(), outs[1], -1)
    assert loading.CompiledFunction(_nearest, True).prepare().fresh
    monkeypatch.setitem(globals(), "LIMIT", -5)
    other = loading.CompiledFunction(_nearest, False).prepare()
    assert other.fresh
    assert first(_scene(), outs[0], -1)[2] != other(_scene(), outs[1], -1)[2]


@machine_code
def _also_nearest(scene: Scene, out: FloatArray2, n: int) -> tuple[int, float, bool]:
    k, distance, valid = _nearest(scene, out, n)
    return k + 1, distance, valid


@needs_llvm
@pytest.mark.parametrize("large", [0, 2500, 10**6])
def test_large_functions_are_modules_that_their_callers_share(
    large, tmp_path, monkeypatch
):
    """Each is compiled once, and the bits are those of one module and of Python."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(translation, "_LARGE", large)
    made = []
    compile_ir = compiler.compile_ir
    monkeypatch.setattr(
        compiler, "compile_ir", lambda *args: made.append(args) or compile_ir(*args)
    )
    outs = [np.zeros((3, 3)) for _ in range(3)]
    wanted = _nearest(_scene(), outs[0], -1)
    assert loading.CompiledFunction(_nearest, False)(_scene(), outs[1], -1) == wanted
    before = len(made)
    other = loading.CompiledFunction(_also_nearest, False)(_scene(), outs[2], -1)
    assert other == (wanted[0] + 1, *wanted[1:])
    assert [x.tobytes() for x in outs[1:]] == [outs[0].tobytes()] * 2
    apart = {0: 2, 2500: 1, 10**6: 0}[large]
    assert (before, len(made) - before) == (1 + apart, 2 if large == 0 else 1)


def _twice(x: FloatArray, n: int) -> float:
    return x[n] * 2.0


@needs_llvm
def test_a_long_compilation_says_what_it_compiles(tmp_path, monkeypatch):
    """The first contacts of a machine wait some seconds: a terminal says for what."""
    said = []
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setattr(compiler, "_PATIENCE", 0.001)
    monkeypatch.setattr(compiler, "_terminal", lambda: said.append)
    assert loading.CompiledFunction(_nearest, False).prepare().fresh
    assert said[0].startswith("\rcompiling _nearest, once for this machine ... 0")


def test_all_that_decides_the_code_is_in_the_key(monkeypatch):
    """The code of what is called, its types, constants, and the function itself."""
    contents = [
        repr(translation.contents(f)) for f in (_nearest, _difference, _several)
    ]
    assert len(set(contents)) == 3
    assert contents[0] == repr(translation.contents(_nearest))
    monkeypatch.setitem(globals(), "_difference", machine_code(_twice))
    assert repr(translation.contents(_nearest)) != contents[0]
    monkeypatch.undo()
    monkeypatch.setitem(_several.__annotations__, "by", "int")
    assert repr(translation.contents(_several)) != contents[2]


def test_modules_that_refer_to_each_other_are_searched_once(monkeypatch):
    """The search ends, and finds what is in both."""
    one, two = types.ModuleType("one"), types.ModuleType("two")
    one.two, two.one, two.LIMIT = two, one, 3

    def uses():
        return one.two.one.LIMIT

    monkeypatch.setitem(globals(), "one", one)
    monkeypatch.setitem(globals(), "two", two)
    names = [name for name, _ in islice(translation._reached(uses), 20)]
    assert len(names) < 20
    assert any(name.endswith("two.LIMIT") for name in names)


@machine_code
def _long(x: FloatArray, sweeps: int) -> float:
    total = 0.0
    for _ in range(sweeps):
        for i in range(len(x)):
            total = total * 0.5 + x[i]
    return total


@needs_llvm
def test_threads_run_at_the_same_time():
    """The interpreter's lock is free while machine code runs, and results stay apart."""
    form, rng = compiled(_long), np.random.default_rng(1)
    arrays = [rng.normal(size=50) for _ in range(4)]
    wanted = [_long(x, 3) for x in arrays]
    assert [form(x, 3) for x in arrays] == wanted
    ended = []

    def run(k):
        results = {form(arrays[k], 3) for _ in range(200)}
        ended.append((k, results == {wanted[k]}))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [(k, True) for k in range(4)]
    kept = 4  # FUNCFLAG_PYTHONAPI: the lock would be kept
    assert not form.bind(arrays[0]).func._flags_ & kept


@needs_llvm
def test_code_is_loaded_while_other_code_is_compiled():
    """Who needs code that is there does not wait for a long compilation."""
    code = compiler.compile_ir("define i64 @one() { ret i64 1 }")
    compiling, leave, addresses = threading.Event(), threading.Event(), []

    def compile_for_long():
        with compiler._lock.shared():  # as compile_ir has it
            compiling.set()
            leave.wait(60)

    def load():
        addresses.append(compiler.Loaded(code).address("one"))

    threads = [threading.Thread(target=each) for each in (compile_for_long, load)]
    threads[0].start()
    assert compiling.wait(60)
    threads[1].start()
    threads[1].join(20)
    beside = list(addresses)
    leave.set()
    for thread in threads:
        thread.join()
    assert beside and beside[0]


@needs_llvm
def test_what_is_prepared_later_is_compiled_in_the_background():
    """The first use finds it; after a failure it compiles anew, and raises."""
    form, ended = loading.CompiledFunction(_long, False), threading.Event()
    made, where = form._codes, []

    def code():
        where.append(threading.current_thread() is threading.main_thread())
        return made()

    form._codes = code
    form.prepare_later()
    LONG_TASKS.later("behind", lambda: None, lambda job: ended.set())
    assert ended.wait(60) and where == [False]
    assert form(np.ones(3), 1) == _long(np.ones(3), 1)
    assert where == [False]

    form, ended = loading.CompiledFunction(_long, False), threading.Event()

    def fails():
        where.append(threading.current_thread() is threading.main_thread())
        raise CompileError("no code")

    form._codes = fails
    form.prepare_later()
    LONG_TASKS.later("behind", lambda: None, lambda job: ended.set())
    assert ended.wait(60)
    with pytest.raises(CompileError, match="no code"):
        form(np.ones(3), 1)
    assert where == [False, False, True]


@needs_llvm
def test_two_first_uses_load_it_once():
    """Code that is loaded anew takes the address away that the other thread calls."""
    form, both = loading.CompiledFunction(_long, False), threading.Barrier(2)
    made, loads = form._codes, []

    def code():
        loads.append(threading.get_ident())
        try:
            both.wait(timeout=0.3)
        except threading.BrokenBarrierError:
            pass  # the other thread waits for this one, as it should
        return made()

    form._codes = code
    threads = [threading.Thread(target=form.prepare) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert form(np.ones(3), 1) == _long(np.ones(3), 1)


SCRIPT = """
import numpy as np
from dyn_core.engines.machine_code import FloatArray, compiled, machine_code

@machine_code
def scaled(by: float, x: FloatArray, n: int) -> float:
    x[n] *= by
    return x[n]

form, x = compiled(scaled), np.arange(3.0)
bound = form.bind(x)
print(form.native, form.prepare().fresh, form(2.0, x, 1), bound(3.0, 2), x.tolist())
try:
    form.bind([1.0])
except ValueError as error:
    print(error)
"""


_fast_difference = compiled(_difference)


@machine_code
def _through(a: FloatArray, b: FloatArray, out: FloatArray) -> float:
    return _fast_difference(a, b, out) + 1.0


def test_a_compiled_function_may_be_called_by_others():
    """As Python it calls machine code; compiled, both are one."""
    a, b, out = np.arange(3.0), np.ones(3), np.zeros(3)
    assert _through(a, b, out) == compiled(_through)(a, b, out) == math.sqrt(2.0) + 1.0
    assert compiled(_fast_difference) is _fast_difference


@pytest.mark.parametrize("native", ["off", "on"])
def test_where_machine_code_is_off_python_serves(native, tmp_path):
    """The same calls, the same checks; on, a second process finds what is kept."""
    if native == "on" and host_machine.missing():
        pytest.skip(host_machine.missing())
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    variables = {
        **os.environ,
        "DYN_NATIVE": native,
        "DYN_CACHE_DIR": str(tmp_path / "c"),
    }
    command = [sys.executable, str(path)]
    for fresh in (native == "on", False):
        result = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=True
        )
        first, second = result.stdout.splitlines()
        assert first == f"{native == 'on'} {fresh} 2.0 6.0 [0.0, 2.0, 6.0]"
        assert second.startswith("scaled: x: wanted FloatArray: a float64 array")
