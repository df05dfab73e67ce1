"""Runs that are killed, interrupted or asked anew: no chunk lost, none done twice."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.batch.journal import DoneChunk, Journal, beside
from dyn_core.batch.map_rows import kept_interrupts
from dyn_core.batch.program_facts import code_digest
from dyn_core.errors import BatchError

ROWS, CHUNK = 20_000, 1000


@pytest.fixture(scope="module")
def rnea():
    return dyn.solver("rnea").build(dyn.load("arm7"))


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(11).normal(size=(3, ROWS, 7))


def lines(path):
    """Return the journal's lines behind its header."""
    text = path.read_text().splitlines()[1:]
    return [json.loads(line.rpartition(" ")[0]) for line in text]


CHILD = """
    import os, signal, sys
    import numpy as np
    import dyn_core as dyn

    folder, rows, chunk, die = sys.argv[1], *map(int, sys.argv[2:5])
    kind = sys.argv[5]
    rnea = dyn.solver("rnea").build(dyn.load("arm7"))
    states = [np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("q", "qd", "qdd")]

    def progress(done, all_rows):
        if done >= die:
            os.kill(os.getpid(), signal.SIGKILL)

    how = dict(chunk_rows=chunk, workers=2, progress=progress)
    if kind == "reduce":
        how.update(reduce=np.add, journal=f"{folder}/sum.journal")
        np.save(f"{folder}/sum.npy", rnea.map(*states, **how))
    else:
        rnea.map(*states, out=f"{folder}/tau.{kind}", **how)
"""


def child(folder, die, kind):
    """Run the call in a process that is killed when so many rows are done."""
    for name, x in zip(
        ("q", "qd", "qdd"),
        np.random.default_rng(11).normal(size=(3, ROWS, 7)),
        strict=True,
    ):
        np.save(folder / f"{name}.npy", x)
    code = textwrap.dedent(CHILD)
    args = [str(x) for x in (folder, ROWS, CHUNK, die, kind)]
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=200
    )
    return done.returncode, done.stderr


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_a_killed_run_goes_on_with_equal_bits(rnea, states, tmp_path, kind):
    """Killed twice at other places, then done here: each chunk is in the journal once."""
    if kind == "zarr":
        pytest.importorskip("zarr", reason="zarr is not installed")
    journal = tmp_path / f"tau.{kind}.journal"
    for die in (3 * CHUNK, 11 * CHUNK):
        code, said = child(tmp_path, die, kind)
        assert code == -signal.SIGKILL, said
        assert len(lines(journal)) == die // CHUNK
    before = lines(journal)
    rnea.map(*states, out=tmp_path / f"tau.{kind}", chunk_rows=CHUNK, workers=2)
    chunks = [line[0] for line in lines(journal)]
    assert sorted(chunks) == list(range(ROWS // CHUNK))  # none twice
    assert lines(journal)[: len(before)] == before
    out = tmp_path / f"tau.{kind}"
    if kind == "npy":
        tau = np.load(out)
    else:
        import zarr

        tau = zarr.open_array(str(out), mode="r")[:]
    assert (tau == rnea(*states)).all()


def test_a_killed_reduction_goes_on_with_equal_bits(rnea, states, tmp_path):
    """Its sums depend on their order, which is that of the rows."""
    code, said = child(tmp_path, 7 * CHUNK, "reduce")
    assert code == -signal.SIGKILL, said
    kept = lines(tmp_path / "sum.journal")
    assert len(kept) == 7
    code, said = child(tmp_path, 10**9, "reduce")
    assert code == 0, said
    assert sorted(x[0] for x in lines(tmp_path / "sum.journal")) == list(range(20))
    wanted = rnea.map(*states, reduce=np.add, chunk_rows=CHUNK, workers=1)
    assert (np.load(tmp_path / "sum.npy") == wanted).all()


def test_chunks_that_are_done_are_not_done_again(rnea, states, tmp_path):
    """Neither in a run that goes on, nor in one that is finished."""
    out, ask = tmp_path / "tau.npy", {"chunk_rows": CHUNK, "workers": 1}
    interrupted(rnea, states, out, 5, **ask)
    seen = []
    ask["progress"] = lambda *x: seen.append(x)
    result = rnea.map(*states, out=out, **ask)
    assert len(seen) == 15
    assert (result == rnea(*states)).all()
    again = rnea.map(*states, out=out, **ask)
    assert len(seen) == 15  # nothing is left to do
    assert (again == result).all()


def zeroed(out, start, size):
    """Write zeros into a file."""
    with open(out, "r+b") as file:
        file.seek(start)
        file.write(bytes(size))


def edited(out):
    """Change one number of a result."""
    tau = np.load(out, mmap_mode="r+")
    tau[3 * CHUNK + 17, 4] += 1e-12


DAMAGE = {
    "cut": lambda out: os.truncate(out, 1000),
    "cut in a row": lambda out: os.truncate(out, 128 + 56 * 4 * CHUNK + 9),
    "longer": lambda out: os.truncate(out, os.path.getsize(out) + 7),
    "zeroed": lambda out: zeroed(out, 128 + 56 * CHUNK, 56 * 2 * CHUNK),
    "edited": edited,
}


@pytest.mark.parametrize("chunks", [5, 20])
@pytest.mark.parametrize("kind", DAMAGE)
def test_results_that_were_changed_are_computed_again(
    rnea, states, tmp_path, kind, chunks
):
    """A file that was cut, zeroed or edited: the rows are named, and right afterwards.

    In a run that goes on and in one that is finished; other chunks are not done again.
    """
    out, ask = tmp_path / "tau.npy", {"chunk_rows": CHUNK, "workers": 1}
    if chunks < 20:
        interrupted(rnea, states, out, chunks, **ask)
    else:
        rnea.map(*states, out=out, **ask)
    DAMAGE[kind](out)
    seen = []
    with pytest.warns(RuntimeWarning) as caught:
        tau = rnea.map(*states, out=out, progress=lambda *x: seen.append(x), **ask)
    said = " ".join(str(x.message) for x in caught)
    assert (tau == rnea(*states)).all()
    assert os.path.getsize(out) == 128 + 56 * ROWS
    again = {"cut": chunks, "cut in a row": chunks - 4, "longer": 0, "zeroed": 2}
    assert len(seen) == 20 - chunks + again.get(kind, 1)
    if kind == "edited":
        assert "in rows 3000 to 3999; these are computed again" in said
    if kind in ("cut", "longer"):
        assert "bytes long, its journal says 1120128: it was changed" in said
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        rnea.map(*states, out=out, progress=lambda *x: pytest.fail("done again"), **ask)
    assert not issued


class Enough(Exception):
    pass


def interrupted(program, arrays, out, chunks, **options):
    """Begin a run and end it after some chunks."""
    done = []

    def progress(rows, _):
        done.append(rows)
        if len(done) == chunks:
            raise Enough

    with pytest.raises(Enough):
        program.map(*arrays, out=out, progress=progress, **options)
    assert len(lines(out.parent / (out.name + ".journal"))) == chunks


def test_half_a_line_is_dropped(rnea, states, tmp_path):
    """A process may be killed while it writes one."""
    out = tmp_path / "tau.npy"
    interrupted(rnea, states, out, 4, chunk_rows=CHUNK, workers=1)
    journal = tmp_path / "tau.npy.journal"
    whole = journal.read_bytes()
    half = b'[4, [[0, 5, "' + 2000 * b"x"  # longer than what is still to be written
    journal.write_bytes(whole + half)
    assert (rnea.map(*states, out=out) == rnea(*states)).all()
    assert journal.read_bytes().startswith(whole)
    assert sorted(x[0] for x in lines(journal)) == list(range(20))


def test_a_journal_of_another_run_is_refused_and_says_why(rnea, states, tmp_path):
    out, (q, qd, qdd) = tmp_path / "tau.npy", states
    interrupted(rnea, states, out, 4, chunk_rows=CHUNK, workers=1)
    heavier = dyn.load("arm7").with_values({"link4.mass": 3.0})
    other = q.copy()
    other[0] += 1.0
    for program, arrays, options, message in (
        (dyn.solver("rnea").build(heavier), states, {}, "robot: arm7"),
        (dyn.solver("rnea").build(rnea.model, joint_friction=True), states, {}, "Program"),
        (dyn.solver("rnea").build(rnea.model, engine="graph"), states, {}, "Program"),
        (rnea, (other, qd, qdd), {}, "content of the input q: differs"),
        (rnea, (q, qd.astype("f4"), qdd), {}, "dtype of the input qd: float64 there, float32"),
        (rnea, [x[:-1] for x in states], {}, "number of rows: 20000 there, 19999 here"),
        (rnea, states, {"chunk_rows": 500}, "rows of a chunk: 1000 there, 500 here"),
    ):  # fmt: skip
        with pytest.raises(BatchError) as caught:
            program.map(*arrays, out=out, **options)
        assert message in str(caught.value)
        assert "valid: the same call" in str(caught.value)
    assert len(lines(tmp_path / "tau.npy.journal")) == 4  # it is as it was
    assert (rnea.map(*states, out=out) == rnea(*states)).all()


def test_other_reductions_are_refused(rnea, states, tmp_path):
    journal = tmp_path / "x.journal"
    value = rnea.map(*states, reduce=np.maximum, journal=journal)
    assert (rnea.map(*states, reduce=np.maximum, journal=journal) == value).all()
    with pytest.raises(BatchError, match="reduction: .*maximum.* there, .*minimum"):
        rnea.map(*states, reduce=np.minimum, journal=journal)
    rnea.map(*states, reduce=lambda x: x.sum(), journal=journal, resume=False)
    with pytest.raises(BatchError, match="reduction"):
        rnea.map(*states, reduce=lambda x: x.max(), journal=journal)
    assert code_digest(lambda: (1.0, 2.0)) != code_digest(lambda: (1.0, 7.0))


def test_another_function_of_rows_is_refused(rnea, tmp_path):
    journal = tmp_path / "x.journal"
    ask = {"count": 5000, "reduce": np.add, "journal": journal}
    rnea.map(lambda a, b: tuple(np.ones((3, b - a, 7))), **ask)
    with pytest.raises(BatchError, match="content of the input function: differs"):
        rnea.map(lambda a, b: tuple(np.zeros((3, b - a, 7))), **ask)


def test_what_is_no_journal_of_ours_is_not_replaced(rnea, states, tmp_path):
    out = tmp_path / "tau.npy"
    np.save(out, states[0])
    with pytest.raises(
        BatchError, match="exists and has no journal; valid: resume=False"
    ):
        rnea.map(*states, out=out)
    assert (np.load(out) == states[0]).all()
    assert (rnea.map(*states, out=out, resume=False) == rnea(*states)).all()
    (tmp_path / "notes").write_text("mine\n")
    with pytest.raises(BatchError, match="is no journal of a batch"):
        rnea.map(*states, reduce=np.add, journal=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["tau.npy", "tau.zarr"])
def test_a_folder_with_other_files_is_never_removed(rnea, states, tmp_path, name):
    """Not even where a result is to be replaced."""
    if name == "tau.zarr":
        pytest.importorskip("zarr", reason="zarr is not installed")
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("precious")
    with pytest.raises(BatchError, match="is a folder with other files"):
        rnea.map(*states, out=tmp_path / name, resume=False)
    assert (tmp_path / name / "mine").read_text() == "precious"
    (tmp_path / name / "mine").unlink()
    result = rnea.map(*states, out=tmp_path / name, resume=False)
    assert (result[:] == rnea(*states)).all()


def test_a_result_that_is_gone_is_said(rnea, states, tmp_path):
    out = tmp_path / "tau.npy"
    interrupted(rnea, states, out, 4, chunk_rows=CHUNK, workers=1)
    out.unlink()
    with pytest.raises(BatchError, match="cannot be continued.*resume=False"):
        rnea.map(*states, out=out)
    np.save(out, np.zeros((3, 7)))
    with pytest.raises(BatchError, match=r"is float64 of shape \(3, 7\), not what"):
        rnea.map(*states, out=out)
    assert (rnea.map(*states, out=out, resume=False) == rnea(*states)).all()


def test_a_result_that_may_not_be_written_is_said(rnea, states, tmp_path, monkeypatch):
    """A stand-in of open refuses it, since the superuser may write any file."""
    out = tmp_path / "tau.npy"
    interrupted(rnea, states, out, 4, chunk_rows=CHUNK, workers=1)

    def refuse(name, mode="r", *rest, **options):
        if str(name) == str(out) and "+" in mode:
            raise PermissionError(13, "Permission denied")
        return usual(name, mode, *rest, **options)

    usual = open
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(BatchError, match="cannot be continued: .*Permission denied"):
        rnea.map(*states, out=out)


def test_one_run_writes_a_journal(rnea, states, tmp_path):
    """A second process is refused as long as the first goes on."""
    pytest.importorskip("fcntl", reason="there are no locks of files on this system")
    out, refused = tmp_path / "tau.npy", []

    def progress(done, rows):
        if not refused:
            with pytest.raises(BatchError, match="another process writes"):
                rnea.map(*states, out=out)
            refused.append(done)

    rnea.map(*states, out=out, chunk_rows=CHUNK, progress=progress)
    assert refused
    assert sorted(x[0] for x in lines(tmp_path / "tau.npy.journal")) == list(range(20))


def test_results_in_the_file_of_an_input_are_refused(rnea, states, tmp_path):
    np.save(tmp_path / "q.npy", states[0])
    q = np.load(tmp_path / "q.npy", mmap_mode="r")[::-1]
    with pytest.raises(dyn.SettingError, match="is the file of the input q"):
        rnea.map(q, *states[1:], out=tmp_path / "q.npy", resume=False)
    assert (np.load(tmp_path / "q.npy") == states[0]).all()


def test_inputs_within_a_result_are_not_removed(rnea, states, tmp_path):
    """A zarr array is a folder: a result at its group, or within it, is refused."""
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    group = zarr.open_group(tmp_path / "in.zarr", mode="w")
    group["q"] = states[0]
    for out, how in (("in.zarr", "contains"), ("in.zarr/q/out.zarr", "is within")):
        with pytest.raises(dyn.SettingError, match=f"{how} the file of the input q"):
            rnea.map(group["q"], *states[1:], out=tmp_path / out, resume=False)
        assert (group["q"][:] == states[0]).all()
    beside = rnea.map(group["q"], *states[1:], out=tmp_path / "in.zarr/tau.zarr")
    assert (beside[:] == rnea(*states)).all()


def test_a_journal_at_an_input_or_result_is_refused(rnea, states, tmp_path):
    np.save(tmp_path / "q.npy", states[0])
    q = np.load(tmp_path / "q.npy", mmap_mode="r")
    for name, what in (("q", "the file of the input q"), ("tau", "the result")):
        ask = {"out": tmp_path / "tau.npy", "journal": tmp_path / f"{name}.npy"}
        with pytest.raises(dyn.SettingError, match=f"journal: .* is {what}"):
            rnea.map(q, *states[1:], resume=False, **ask)
    assert (np.load(tmp_path / "q.npy") == states[0]).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"progress": "x"}, {"status": "x"}, {"resume": 0}, {"journal": 5},
        {"chunk_rows": 0}, {"workers": 0}, {"scheduler": "x"}, {"combine": np.add},
        {"reduce": np.add}, {"count": 2},
    ],
)  # fmt: skip
def test_a_wrong_argument_leaves_the_old_result(rnea, states, tmp_path, wrong):
    out = tmp_path / "tau.npy"
    rnea.map(*states, out=out)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    with pytest.raises(dyn.SettingError) as error:
        rnea.map(*states, **{"out": out, "resume": False, **wrong})
    assert error.value.setting in (*wrong, "out")
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


def test_several_outputs_are_files_of_a_folder(states, tmp_path):
    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:5000, :2] for x in states]
    wanted, result = program(*arrays), program.map(*arrays, out=tmp_path / "all")
    names = sorted(path.name for path in (tmp_path / "all").iterdir())
    assert names == sorted(f"{name}.npy" for name in wanted._fields)
    assert (tmp_path / "all.journal").exists()
    for name in wanted._fields:
        assert isinstance(getattr(result, name), np.memmap)
        assert (
            np.load(tmp_path / "all" / f"{name}.npy") == getattr(wanted, name)
        ).all()
    with pytest.raises(dyn.SettingError, match="several outputs .*valid: a folder"):
        program.map(*arrays, out=tmp_path / "x.npy")


def test_failed_rows_survive_a_kill(states, tmp_path):
    model = dyn.load("quadruped")
    program = dyn.solver("gravity").build(model, finite=True)
    q = np.tile(model.neutral(), (5000, 1))
    q[[3, 4, 4500], 3:7] *= 2
    ask = {"chunk_rows": 512, "workers": 1}
    interrupted(program, [q], tmp_path / "g.npy", 4, status=True, **ask)
    with pytest.raises(BatchError, match="rows failed before this run.*status=True"):
        program.map(q, out=tmp_path / "g.npy", **ask)
    _, failed = program.map(q, out=tmp_path / "g.npy", status=True, **ask)
    assert failed.rows.tolist() == [3, 4, 4500]


def test_what_is_done_before_rows_fail_is_kept(tmp_path):
    """With status=True the same call goes on."""
    model = dyn.load("quadruped")
    program = dyn.solver("gravity").build(model, finite=True)
    q = np.tile(model.neutral(), (5000, 1))
    q[4500, 3:7] *= 2
    ask = {"chunk_rows": 512, "workers": 1, "out": tmp_path / "g.npy"}
    with pytest.raises(dyn.QuaternionError, match="rows 4500"):
        program.map(q, **ask)
    kept = len(lines(tmp_path / "g.npy.journal"))
    assert kept >= 5
    seen = []
    ask["progress"] = lambda done, rows: seen.append(done)
    _, failed = program.map(q, status=True, **ask)
    assert len(seen) == 10 - kept
    assert failed.rows.tolist() == [4500]


def test_a_chunk_is_noted_once(tmp_path):
    journal = Journal(str(tmp_path / "x.journal"), {"rows": 3})
    journal.begin()
    journal.add(0, DoneChunk((), None, ()))
    with pytest.raises(BatchError, match="chunk 0 was done twice"):
        journal.add(0, DoneChunk((), None, ()))
    journal.close()
    assert beside("a.npy") == os.path.abspath("a.npy.journal")


@pytest.mark.parametrize("fault", ["full", "half"])
def test_a_chunk_that_could_not_be_noted_is_not_done(tmp_path, fault, monkeypatch):
    """A full disk: an error, or only the beginning of the line is written."""
    journal = Journal(str(tmp_path / "x.journal"), {"rows": 3})
    journal.begin()

    def write(line):
        if fault == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(line) // 2

    whole = journal._file
    monkeypatch.setattr(journal, "_file", SimpleNamespace(write=write))
    with pytest.raises(BatchError, match="cannot be written: .*space"):
        journal.add(0, DoneChunk((), None, ()))
    assert not journal.done
    monkeypatch.setattr(journal, "_file", whole)
    journal.close()


def test_control_c_ends_a_run_within_a_second(rnea, tmp_path, interrupts):
    """A billion rows; what was done is in the journal, and the same call goes on."""

    sent, slow, journal = [], [], tmp_path / "x.journal"

    def made(first, last):
        time.sleep(0.3 if slow else 0.0)  # a chunk takes longer than a second then
        return tuple(np.full((3, last - first, 7), first * 1e-9))

    def progress(done, rows):
        if done > 10**6 and not sent:
            sent.append(None)
            slow.append(True)
            threading.Timer(0.4, interrupt).start()

    def interrupt():
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    ask = {"count": 10**9, "chunk_rows": 10**5, "reduce": np.maximum}
    ask.update(journal=journal, workers=2)
    with pytest.raises(KeyboardInterrupt, match="done is kept; the same call goes on"):
        rnea.map(made, progress=progress, **ask)
    assert time.monotonic() - sent[0] < 1.0
    assert not [x for x in threading.enumerate() if x.name.startswith("dyn batch")]
    kept = len(lines(journal))
    assert kept > 1
    slow.clear()
    counts = []

    def once(done, rows):
        counts.append(done)
        raise Enough

    with pytest.raises(Enough):
        rnea.map(made, progress=once, **ask)
    assert counts[0] > kept * 10**5  # it began behind what was done


def test_no_interrupt_is_lost(rnea, interrupts):
    """Also where code of others catches it; afterwards Ctrl-C is what it was before."""
    usual, counts = signal.getsignal(signal.SIGINT), []

    def progress(done, rows):
        counts.append(done)
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)

    def made(first, last):
        return tuple(np.zeros((3, last - first, 7)))

    with pytest.raises(KeyboardInterrupt):
        rnea.map(made, count=10**6, chunk_rows=100, reduce=np.add, progress=progress)
    assert len(counts) == 1
    assert signal.getsignal(signal.SIGINT) is usual


def test_an_interrupt_after_the_last_chunk_is_not_lost(interrupts):
    """Such as in a finaliser, where Python ignores it, while files are closed."""
    usual = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
    assert signal.getsignal(signal.SIGINT) is usual
    with pytest.raises(ZeroDivisionError), kept_interrupts():
        1 / 0  # noqa: B018


def test_threads_end_wherever_an_interrupt_comes(rnea, interrupts):
    """Fifty times while chunks come and go; none waits for a lock that is lost."""
    rng = np.random.default_rng(0)

    def made(first, last):
        return tuple(np.zeros((3, last - first, 7)))

    for wait in rng.uniform(0.005, 0.03, 50):
        timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            rnea.map(made, count=10**8, chunk_rows=200, reduce=np.add, workers=2)
        timer.join()
    assert not [x for x in threading.enumerate() if x.name.startswith("dyn batch")]


def test_a_damaged_journal_is_said(rnea, states, tmp_path):
    """Whole lines that are none, in the middle."""
    out, journal = tmp_path / "tau.npy", tmp_path / "tau.npy.journal"
    interrupted(rnea, states, out, 3, chunk_rows=CHUNK, workers=1)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"[3, nonsense\n[4, [], null]\n")
    with pytest.raises(BatchError, match="damaged in line 5; valid: resume=False"):
        rnea.map(*states, out=out)
    journal.write_bytes(whole.replace(b"[1, [],", b"[7, [],"))
    with pytest.raises(BatchError, match="damaged in line 3; valid: resume=False"):
        rnea.map(*states, out=out)
    for header in (b'{"format": 1}\n', whole.replace(b": 1000,", b": 1001,")):
        journal.write_bytes(header)
        with pytest.raises(BatchError, match="is no journal of a batch"):
            rnea.map(*states, out=out)


def test_a_line_of_another_run_is_refused(rnea, states, tmp_path):
    """Even of the same call: its results lie in another file."""
    for name in ("a.npy", "b.npy"):
        interrupted(rnea, states, tmp_path / name, 2, chunk_rows=CHUNK, workers=1)
    a, b = (tmp_path / f"{name}.npy.journal" for name in "ab")
    a.write_bytes(a.read_bytes() + b.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(BatchError, match="damaged in line 4"):
        rnea.map(*states, out=tmp_path / "a.npy")


def test_a_run_that_goes_on_is_not_replaced(rnea, states, tmp_path):
    """Nor by resume=False."""
    pytest.importorskip("fcntl", reason="there are no locks of files on this system")
    out, refused = tmp_path / "tau.npy", []

    def progress(done, rows):
        if not refused:
            with pytest.raises(BatchError, match="another process writes"):
                rnea.map(*states, out=out, resume=False)
            refused.append(done)

    tau = rnea.map(*states, out=out, chunk_rows=CHUNK, progress=progress)
    assert refused and (tau == rnea(*states)).all()
    assert (np.load(out) == tau).all()
