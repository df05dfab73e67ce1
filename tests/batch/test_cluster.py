"""Batches over zarr and Dask arrays, on processes of this machine and on a scheduler."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.batch import cluster_runner, program_facts
from dyn_core.batch.cluster_runner import connected
from dyn_core.batch.storage import cluster_libraries
from dyn_core.batch.storage.row_sources import SentSource
from dyn_core.errors import BatchError

# They take most of a second to import: each test imports what it uses.
for package in ("zarr", "dask", "distributed"):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

ROWS, CHUNK = 20_000, 1000


@pytest.fixture(scope="module")
def rnea():
    return dyn.solver("rnea").build(dyn.load("arm7"))


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(3).normal(size=(3, ROWS, 7))


@pytest.fixture(scope="module")
def client(own_cache):
    """A cluster of two processes."""
    with connected("processes", 2) as client:
        yield client


def stored(folder, array, chunk=1500, **options):
    """Return a zarr array with the values of an array."""
    import zarr

    result = zarr.open_array(
        str(folder),
        mode="w",
        shape=array.shape,
        dtype=str(array.dtype),
        chunks=(chunk, *array.shape[1:]),
        **options,
    )
    result[:] = array
    return result


def test_zarr_arrays_in_and_out(rnea, states, tmp_path):
    import zarr

    arrays = [stored(tmp_path / f"{k}.zarr", x) for k, x in enumerate(states)]
    tau = rnea.map(*arrays, out=tmp_path / "tau.zarr")
    assert isinstance(tau, zarr.Array)
    assert (tau[:] == rnea(*states)).all()
    assert (rnea.map(*arrays) == rnea(*states)).all()


def test_float32_in_zarr_is_converted(rnea, states, tmp_path):
    narrow = [x.astype(np.float32) for x in states]
    arrays = [stored(tmp_path / f"{k}.zarr", x) for k, x in enumerate(narrow)]
    assert (rnea.map(*arrays) == rnea(*narrow)).all()


def test_several_outputs_are_a_group(states, tmp_path):
    import zarr

    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:5000, :2] for x in states]
    wanted = program(*arrays)
    program.map(*arrays, out=tmp_path / "all.zarr")
    group = zarr.open_group(str(tmp_path / "all.zarr"), mode="r")
    for name in wanted._fields:
        assert (group[name][:] == getattr(wanted, name)).all()


def test_arrays_of_zarr_are_filled_file_by_file(rnea, states, tmp_path):
    """Chunks are whole files, so that no two tasks write one."""
    out = stored(tmp_path / "tau.zarr", np.zeros((ROWS, 7)), chunk=700)
    assert rnea.map(*states, out=out) is out
    assert (out[:] == rnea(*states)).all()
    with pytest.raises(
        dyn.SettingError, match="chunk_rows is 1000; valid: a multiple of 700"
    ):
        rnea.map(*states, out=out, chunk_rows=1000)
    with pytest.raises(dyn.ShapeError, match="out tau"):
        rnea.map(*states, out=stored(tmp_path / "x.zarr", np.zeros((3, 7))))
    with pytest.raises(dyn.ShapeError, match="memory of its own"):
        q = stored(tmp_path / "q.zarr", states[0])
        rnea.map(q, *states[1:], out=q)


def test_dask_arrays_in(rnea, states):
    import dask.array as da

    arrays = [
        da.from_array(states[0], chunks=(1700, 7)),
        da.from_array(states[1], chunks=((ROWS - 5000, 5000), (3, 4))),
        da.from_array(states[2].astype(np.float32), chunks=(ROWS, 7)) * 2,
    ]
    wanted = rnea(*states[:2], states[2].astype(np.float32) * 2)
    assert (rnea.map(*arrays, chunk_rows=1300) == wanted).all()
    assert (rnea.map(*arrays) == wanted).all()
    unknown = arrays[0][arrays[0][:, 0] > 0]
    with pytest.raises(dyn.ShapeError, match="known numbers of rows"):
        rnea.map(unknown, *arrays[1:])


def mixed(states, folder):
    """Return the inputs as a memory map with an offset, a zarr and a Dask array."""
    import dask.array as da

    np.save(folder / "q.npy", np.vstack([np.zeros((5, 7)), states[0]]))
    q = np.load(folder / "q.npy", mmap_mode="r")[5:]
    return (
        q,
        stored(folder / "qd.zarr", states[1]),
        da.from_array(states[2], chunks=(1500, 7)),
    )


@pytest.mark.parametrize("out", [None, "tau.npy", "tau.zarr"])
def test_processes_give_equal_bits(rnea, states, tmp_path, client, out):
    target = None if out is None else tmp_path / out
    tau = rnea.map(
        *mixed(states, tmp_path), out=target, scheduler=client, chunk_rows=CHUNK
    )
    assert (tau[:] == rnea(*states)).all()
    assert os.path.exists(tmp_path / f"{out}.journal") == (out is not None)


def test_arrays_in_memory_are_sent(rnea, states, client):
    tau = rnea.map(*states[:2], states[2][0], scheduler=client, chunk_rows=CHUNK)
    assert (tau == rnea(*states[:2], states[2][0])).all()


def test_an_address_does_as_well(rnea, states, client):
    address = client.scheduler.address
    assert address.startswith("tcp://")
    tau = rnea.map(*states, scheduler=address, chunk_rows=5000)
    assert (tau == rnea(*states)).all()


def test_reductions_have_the_same_bits_on_processes(rnea, client):
    def made(first, last):
        rng = np.random.default_rng(first)
        return tuple(rng.normal(size=(3, last - first, 7)))

    ask = {"count": 30_000, "reduce": np.add, "chunk_rows": CHUNK}
    assert (rnea.map(made, scheduler=client, **ask) == rnea.map(made, **ask)).all()


def test_failed_rows_of_processes(client):
    model = dyn.load("quadruped")
    program = dyn.solver("gravity").build(model, finite=True)
    q = np.tile(model.neutral(), (5000, 1))
    q[[3, 4, 4500], 3:7] *= 2
    ask = {"scheduler": client, "chunk_rows": 512}
    value, failed = program.map(q, status=True, **ask)
    assert failed.rows.tolist() == [3, 4, 4500]
    assert np.array_equal(value, program(q, status=True)[0], equal_nan=True)
    with pytest.raises(dyn.QuaternionError, match="rows 3, 4|rows 4500"):
        program.map(q, **ask)


@pytest.mark.parametrize("reason", [OSError, dyn.UnsupportedError])
def test_workers_that_see_no_files_are_sent_their_rows(
    rnea, states, tmp_path, client, reason
):
    """As on a machine with other disks, or without zarr: the same bits, written here."""

    def blind(*_):
        raise reason("no such file here")

    def close_eyes():
        cluster_runner._task.cache_clear()
        cluster_runner.referred = cluster_runner.targets_of = blind

    def open_eyes():
        from dyn_core.batch.storage import result_targets, row_sources

        cluster_runner._task.cache_clear()
        cluster_runner.referred = row_sources.referred
        cluster_runner.targets_of = result_targets.targets_of

    client.run(close_eyes)
    try:
        tau = rnea.map(
            *mixed(states, tmp_path),
            out=tmp_path / "tau.npy",
            scheduler=client,
            chunk_rows=CHUNK,
        )
    finally:
        client.run(open_eyes)
    assert (tau == rnea(*states)).all()


@pytest.mark.parametrize("seen", ["empty.npy", "short.npy", "other.zarr"])
def test_rows_are_sent_where_a_worker_sees_another_file(rnea, states, tmp_path, seen):
    """An empty file, a short one, or a zarr array of another shape."""
    where = str(tmp_path / seen)
    if seen == "other.zarr":
        stored(where, np.zeros((ROWS, 3)))
        reference = "zarr", where
    else:
        Path(where).write_bytes(b"short" * (seen == "short.npy"))
        reference = "memmap", where, 128, "<f8", (ROWS, 7), (56, 8)
    facts = SimpleNamespace(
        program=rnea, rows=ROWS, values={}, references=[reference], contents=["x"]
    )
    assert isinstance(cluster_runner._source(facts, 0), SentSource)


def test_a_worker_that_is_killed_loses_nothing(rnea, states, tmp_path, client):
    """Its chunks are done by others, and each is in the journal once."""
    killed = []

    def progress(done, rows):
        if done >= 4 * CHUNK and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    out = tmp_path / "tau.npy"
    tau = rnea.map(
        *mixed(states, tmp_path),
        out=out,
        scheduler=client,
        chunk_rows=CHUNK,
        progress=progress,
    )
    assert killed
    assert (tau == rnea(*states)).all()
    chunks = [
        int(line.split(",")[0][1:])
        for line in (tmp_path / "tau.npy.journal").read_text().splitlines()[1:]
    ]
    assert sorted(chunks) == list(range(ROWS // CHUNK))


def test_a_run_of_threads_goes_on_with_processes(rnea, states, tmp_path, client):
    """A journal says nothing of what ran the chunks."""

    class Enough(Exception):
        pass

    def progress(done, rows):
        if done >= 5 * CHUNK:
            raise Enough

    arrays, out = mixed(states, tmp_path), tmp_path / "tau.zarr"
    with pytest.raises(Enough):
        rnea.map(*arrays, out=out, chunk_rows=CHUNK, progress=progress)
    tau = rnea.map(*arrays, out=out, scheduler=client)
    assert (tau[:] == rnea(*states)).all()


def test_control_c_ends_a_run_of_processes(rnea, client, interrupts):
    """Within a second where the cluster is there; the workers are free again."""
    sent = []

    def made(first, last):
        return tuple(np.zeros((3, last - first, 7)))

    def interrupt():
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def progress(done, rows):
        if not sent:
            sent.append(None)
            threading.Timer(0.05, interrupt).start()

    with pytest.raises(KeyboardInterrupt):
        how = {"scheduler": client, "progress": progress, "chunk_rows": 100_000}
        rnea.map(made, count=10**9, reduce=np.add, **how)
    assert time.monotonic() - sent[0] < 3.0  # 0.2 s where nothing else runs


def test_a_local_cluster_is_started_and_ended(rnea, states):
    """By its name alone; in a process whose main module can be imported."""
    tau = rnea.map(*states, scheduler="processes", workers=1)
    assert (tau == rnea(*states)).all()


def test_nobody_answers(rnea, states, monkeypatch):
    import distributed

    from dyn_core.batch import cluster_runner

    monkeypatch.setattr(cluster_runner, "ANSWER", 0.3)
    monkeypatch.setattr(cluster_runner, "WAIT", 0.3)
    with pytest.raises(BatchError, match="no scheduler answers as 'tcp://127.0.0.1:9'"):
        rnea.map(*states, scheduler="tcp://127.0.0.1:9")
    with distributed.LocalCluster(
        n_workers=0, dashboard_address="127.0.0.1:0"
    ) as empty:
        with pytest.raises(BatchError, match="no worker came within"):
            rnea.map(*states, scheduler=empty.scheduler_address)


def computes_otherwise(fact):
    """Let a worker say that one fact of what it computes with is another."""

    def facts(program):
        return {**program_facts.program_facts(program), fact: "another"}

    cluster_runner._task.cache_clear()
    cluster_runner.program_facts = facts if fact else program_facts.program_facts
    release = program_facts.release
    cluster_runner.release = (lambda: "another") if fact == "library" else release


@pytest.mark.parametrize("fact", program_facts.TITLES)
def test_a_worker_that_computes_otherwise_is_refused(rnea, states, client, fact):
    """The fact is named, with what it is there and here."""
    import cloudpickle

    these = sys.modules[__name__]  # workers cannot import them
    cloudpickle.register_pickle_by_value(these)
    client.run(computes_otherwise, fact)
    try:
        with pytest.raises(BatchError) as caught:
            rnea.map(*states, scheduler=client, chunk_rows=CHUNK)
    finally:
        client.run(computes_otherwise, "")
        cloudpickle.unregister_pickle_by_value(these)
    here = program_facts.program_facts(rnea)[fact]
    title = program_facts.TITLES[fact]
    assert f"{title}: another there, {here} here; valid: " in str(caught.value)
    assert (rnea.map(*states, scheduler=client) == rnea(*states)).all()


def refusal(program, states, **environment):
    """Return what is said to a worker with settings of its own."""
    import distributed

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        env=environment, silence_logs=50,
    ) as cluster, distributed.Client(cluster, set_as_default=False) as client:  # fmt: skip
        with pytest.raises(BatchError, match="would compute other bits") as caught:
            program.map(*states, scheduler=client, chunk_rows=CHUNK)
    return str(caught.value)


def test_a_worker_without_machine_code_is_refused(rnea, states):
    """NumPy rounds otherwise: no fused multiply-add, other sines."""
    if rnea.engine != "native":
        pytest.skip("there is no machine code here")
    said = refusal(rnea, states, DYN_NATIVE="off")
    assert f"arithmetic: NumPy {np.__version__}, functions" in said
    assert f"there, {program_facts.arithmetic('native')} here" in said


def test_workers_that_compute_by_numpy_are_taken_where_all_do(states, client):
    """Facts of NumPy are the same in every process here."""
    program = dyn.solver("rnea").build(dyn.load("arm7"), engine="graph")
    some = [x[:1000] for x in states]
    tau = program.map(*some, scheduler=client, chunk_rows=500)
    assert (tau == program(*some)).all()


@pytest.mark.full
def test_a_worker_of_another_checkout_is_refused(rnea, states, tmp_path):
    """Its release has the same number. Long: both packages are copied."""
    import distributed

    for package in program_facts.PACKAGES:
        source = Path(find_spec(package).origin).parent
        shutil.copytree(source, tmp_path / package)
    with open(tmp_path / "dyn_core/engines/llvm/emit.py", "a") as file:
        file.write("\nLATER = 1\n")
    module = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny"]
    with distributed.LocalCluster(
        n_workers=0, dashboard_address="127.0.0.1:0"
    ) as cluster:
        worker = subprocess.Popen(
            [*module, "--no-dashboard", cluster.scheduler_address],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with pytest.raises(BatchError, match="would compute other bits") as caught:
                rnea.map(*states, scheduler=cluster.scheduler_address)
        finally:
            worker.kill()
            worker.wait()
    facts = str(caught.value).split("release of dyn_ros: ")[1].split("; valid")[0]
    there, here = facts.removesuffix(" here").split(" there, ")
    assert there.split()[0] == here.split()[0] and there != here


URL = "memory://batches"


@pytest.fixture
def store():
    """The file system of fsspec in this process's memory, empty."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    files = fsspec.filesystem("memory")
    yield files
    files.rm("/batches", recursive=True) if files.exists("/batches") else None


def test_results_at_a_url_are_written_by_zarr(rnea, states, store, client):
    """By threads, and by processes, which send what only this one can write."""
    import zarr

    for name, ask in (("a", {}), ("b", {"scheduler": client})):
        url = f"{URL}/{name}.zarr"
        tau = rnea.map(*states, out=url, chunk_rows=CHUNK, **ask)
        assert (tau[:] == rnea(*states)).all()
        assert (zarr.open_array(url, mode="r")[:] == rnea(*states)).all()
    with pytest.raises(BatchError, match="a.zarr' exists and has no journal"):
        rnea.map(*states, out=f"{URL}/a.zarr")
    rnea.map(*states, out=f"{URL}/a.zarr", resume=False)


def test_a_url_of_an_input_is_refused_for_the_result(rnea, states, store):
    """A result there would remove the input before it is read."""
    import zarr

    q = zarr.create_array(f"{URL}/in.zarr/q", shape=states[0].shape, dtype="f8")
    q[:] = states[0]
    for name, how in (("in.zarr/q/t.zarr", "within"), ("in.zarr", "contains")):
        with pytest.raises(dyn.SettingError, match=f"{how} the file of the input q"):
            rnea.map(q, *states[1:], out=f"{URL}/{name}", resume=False)
    assert (q[:] == states[0]).all()


def test_inputs_that_do_not_fit_leave_the_result_at_a_url(rnea, states, store):
    """Those of a function, which is called before the result is replaced."""
    import zarr

    rnea.map(*states, out=f"{URL}/e.zarr")
    ask = {"out": f"{URL}/e.zarr", "count": ROWS, "resume": False}
    with pytest.raises(dyn.ShapeError):
        rnea.map(lambda first, last: np.zeros((3, last - first, 2)), **ask)
    kept = zarr.open_array(f"{URL}/e.zarr", mode="r")
    assert (kept[:] == rnea(*states)).all()


def test_several_outputs_at_a_url_are_a_group(states, store):
    import zarr

    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:2000, :2] for x in states]
    wanted = program(*arrays)
    program.map(*arrays, out=f"{URL}/all.zarr")
    group = zarr.open_group(f"{URL}/all.zarr", mode="r")
    for name in wanted._fields:
        assert (group[name][:] == getattr(wanted, name)).all()


@pytest.mark.parametrize("ask", [{}, {"scheduler": True}], ids=["threads", "processes"])
def test_a_journal_here_lets_a_url_go_on(rnea, states, store, client, tmp_path, ask):
    """Chunks that are in the store are not done again; those that were lost are."""
    ask = {"scheduler": client} if ask else ask
    ask |= {"out": f"{URL}/c.zarr", "journal": tmp_path / "c.journal"}
    seen = []
    rnea.map(*states, chunk_rows=CHUNK, **ask)
    rnea.map(*states, progress=lambda *x: seen.append(x), **ask)
    assert not seen
    lost = next(x for x in store.find("/batches/c.zarr") if not x.endswith(".json"))
    store.rm(lost)
    with pytest.warns(RuntimeWarning, match="these are computed again"):
        tau = rnea.map(*states, progress=lambda *x: seen.append(x), **ask)
    assert len(seen) == 1 and (tau[:] == rnea(*states)).all()


MISTAKES = {
    "npy": ({"out": "s3://bucket/tau.npy"}, "out is the URL 's3://bucket/tau.npy'; valid: a URL of zarr"),
    "folder": ({"out": "https://host/all"}, "out is the URL .*; valid: a URL of zarr, such as s3://"),
    "path": ({"out": Path("s3://bucket/x.zarr")}, "out is the URL 's3:/bucket/x.zarr'; valid"),
    "protocol": ({"out": "abc://x/y.zarr"}, "the URL 'abc://x/y.zarr' cannot be opened: Protocol"),
    "journal": ({"journal": "s3://b/x.journal", "reduce": np.add}, "journal is the URL"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
def test_urls_that_cannot_be_written_are_called_urls(rnea, states, kind):
    ask, message = MISTAKES[kind]
    with pytest.raises(dyn.DynError, match=message):
        rnea.map(*states, **ask)


def test_a_url_that_cannot_be_written_is_said(rnea, states, store, monkeypatch):
    """A store that refuses, as one of https:// does."""

    def refuse(self, *args, **options):
        raise NotImplementedError("read-only")

    monkeypatch.setattr(type(store), "pipe_file", refuse)
    with pytest.raises(
        BatchError, match=f"out: '{URL}/d.zarr' cannot be made: read-only"
    ):
        rnea.map(*states, out=f"{URL}/d.zarr")


@pytest.mark.parametrize("name", ["dask", "zarr"])
def test_what_is_missing_is_said(rnea, states, tmp_path, monkeypatch, name):
    """Without the extra, an error that says how to get it."""
    real = cluster_libraries.import_module

    def missing(module):
        if module.split(".")[0] in (name, "distributed"):
            raise ImportError(f"No module named '{module}'")
        return real(module)

    monkeypatch.setattr(cluster_libraries, "import_module", missing)
    ask = {"out": tmp_path / "x.zarr"} if name == "zarr" else {"scheduler": "processes"}
    with pytest.raises(dyn.UnsupportedError) as caught:
        rnea.map(*states, **ask)
    assert 'pip install "dyn_ros[cluster]"' in str(caught.value)


def _whole(file):
    """Whether a scheduler has written all of its file, which is empty at first."""
    return file.exists() and file.read_text().rstrip().endswith("}")


def test_a_scheduler_that_dies_is_said(rnea, states, tmp_path):
    """In a file, what was done is kept: the same call goes on elsewhere."""
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    where = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    process = subprocess.Popen(
        [*module, *where, "--scheduler-file", str(file)], **quiet
    )
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        "--no-nanny",
        "--no-dashboard",
    ]
    helper = subprocess.Popen(
        [*worker, "--scheduler-file", str(file), "--local-directory", str(tmp_path)],
        **quiet,
    )
    arrays, out = mixed(states, tmp_path)[:2], tmp_path / "tau.npy"

    def progress(done, rows):
        if done >= 3 * CHUNK:
            process.kill()

    try:
        deadline = time.monotonic() + 60
        while not _whole(file) and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with pytest.raises(BatchError, match="scheduler is lost; what is done is kept"):
            rnea.map(
                *arrays,
                states[2],
                out=out,
                scheduler=address,
                chunk_rows=CHUNK,
                progress=progress,
            )
    finally:
        for x in (process, helper):
            x.kill()
            x.wait()
    assert (rnea.map(*arrays, states[2], out=out) == rnea(*states)).all()
