"""Jobs on files of any content: no time, memory or crash of theirs is the caller's."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import dyn_core as dyn
from dyn_core.model.mjcf import compiled
from dyn_core.model.sources import bounded_process, loading
from dyn_core.model.sources.bounded_process import JobError, run_job

JOB = """
import os, signal, time
count = 0
def prepare():
    pass
def run(request, data, ask):
    global count
    count += 1
    what = request.get("what")
    if what == "loop":
        while True:
            pass
    if what == "sleep":
        time.sleep(100)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "memory":
        bytearray(1 << 40)
    if what == "error":
        raise KeyError("x")
    facts = {"count": count, "folder": os.getcwd(), "variable": os.environ.get("JOB_TEST")}
    if what == "ask":
        facts["answers"] = [ask("a"), ask("b")]
    print("what a library prints")
    return facts, data[::-1]
"""

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the system has no fork"
)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job whose server ends with the test; a second of computing is the limit."""
    path = tmp_path / "job.py"
    path.write_text(textwrap.dedent(JOB))
    monkeypatch.setattr(bounded_process, "LIMIT", 1.0)
    yield path
    bounded_process._SERVERS.pop(path).end()


CAPPED = """
import resource
from dyn_core.model.sources.job_server import _bound
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
_bound(60.0, 1 << 40)
print(resource.getrlimit(resource.RLIMIT_AS)[0] == 1 << 40)
"""


def test_memory_is_bounded_where_time_is_by_less():
    """A hard limit of CPU time below the job's leaves the other limits in force."""
    command = [sys.executable, "-c", CAPPED]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"


@pytest.mark.parametrize("apart", [True, False])
def test_a_job_has_folder_environment_and_answers(job, monkeypatch, apart):
    """Those of the caller, at each job; bytes of any number come back."""
    data = bytes(range(256)) * 4000
    monkeypatch.setenv("JOB_TEST", "one")
    facts, result = run_job(job, {}, data, apart=apart)
    assert result == data[::-1]
    assert facts["variable"] == "one"
    monkeypatch.setenv("JOB_TEST", "two")
    monkeypatch.chdir(job.parent)
    facts, _ = run_job(job, {"what": "ask"}, ask=lambda x: {"is": x * 2}, apart=apart)
    assert facts["folder"] == str(job.parent)
    assert facts["variable"] == "two"
    assert facts["answers"] == [{"is": "aa"}, {"is": "bb"}]


def test_no_job_meets_what_an_earlier_one_left(job):
    """Each is the first of its process; one process serves them."""
    assert [run_job(job, {}).facts["count"] for _ in range(3)] == [1, 1, 1]
    server = bounded_process._SERVERS[job]
    process = server._process
    run_job(job, {})
    assert server._process is process


ENDS = {
    "loop": "was stopped after 1 s of computing",
    "sleep": "was stopped, since it did not end in time",
    "crash": "ended the process that read it by signal 11",
    "memory": "needs more than 16 GiB of memory",
    "error": "ended the process that read it",
}


@pytest.mark.parametrize("what", ENDS)
def test_a_job_that_does_not_end_is_an_error(job, what, capfd, monkeypatch):
    """In bounded time, in words; the next job runs."""
    monkeypatch.setattr(bounded_process, "CLOCK", 0.5 if what == "sleep" else 20.0)
    begin = time.monotonic()
    with pytest.raises(JobError, match=f"^{ENDS[what]}$"):
        run_job(job, {"what": what})
    assert time.monotonic() - begin < 20.0
    monkeypatch.setattr(bounded_process, "CLOCK", 20.0)  # half a second is for `sleep`
    assert run_job(job, {}).facts["count"] == 1
    assert "Traceback" not in capfd.readouterr().err


def test_an_answer_that_fails_is_the_callers(job):
    """An exception of the caller passes, and the next job runs."""

    def fail(question):
        raise LookupError(question)

    with pytest.raises(LookupError):
        run_job(job, {"what": "ask"}, ask=fail)
    assert run_job(job, {}).facts["count"] == 1


def test_a_server_that_ended_is_started_again(job):
    """After its idle time, or where somebody ended it."""
    run_job(job, {})
    process = bounded_process._SERVERS[job]._process
    process.kill()
    process.wait()
    assert run_job(job, {}).facts["count"] == 1


def test_a_forked_process_has_a_server_of_its_own(job):
    """The pipes of its parent stay with the parent."""
    run_job(job, {})
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if run_job(job, {}, b"ab").data == b"ba" else 1
            bounded_process._end_servers()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_job(job, {}, b"cd").data == b"dc"


def test_threads_take_turns(job):
    """Each gets the result of its own job."""
    results = {}

    def work(k):
        results[k] = [run_job(job, {}, f"{k} {i}".encode()).data for i in range(10)]

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {
        k: [f"{k} {i}".encode()[::-1] for i in range(10)] for k in range(4)
    }


def test_where_no_process_can_be_started_a_job_runs_here(job, monkeypatch):
    """As in an interpreter that is part of another program."""
    monkeypatch.setattr(bounded_process.sys, "executable", None)
    assert run_job(job, {}, b"ab").data == b"ba"
    assert bounded_process._SERVERS[job]._process is None


def _waiting_job(monkeypatch, module, tmp_path):
    """Let a job of the product never end."""
    path = tmp_path / "waits.py"
    path.write_text(
        "def prepare(): pass\ndef run(request, data, ask):\n    while True: pass\n"
    )
    monkeypatch.setattr(module, "_JOB", path)
    monkeypatch.setattr(bounded_process, "LIMIT", 1.0)


def test_an_mjcf_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    """MuJoCo hears no signal; its process is ended."""
    pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
    _waiting_job(monkeypatch, compiled, tmp_path)
    with pytest.raises(dyn.ModelError, match="by MuJoCo, which was stopped"):
        dyn.load("<mujoco><worldbody/></mujoco>")


def test_a_xacro_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    """Its expressions are a program, and some never end."""
    pytest.importorskip("xacro", reason="xacro is not installed")
    monkeypatch.setattr(bounded_process, "LIMIT", 1.0)
    path = tmp_path / "r.xacro"
    path.write_text('<robot name="r"><link name="${9**9**9}"/></robot>')
    with pytest.raises(
        dyn.ModelError,
        match=r"r\.xacro cannot be expanded by xacro, which was stopped",
    ):
        dyn.load(path)
    assert loading.uses_xacro(path.read_text())


BODY = '<body><joint/><geom size="1"/></body>'


def _nested(count, inside):
    return f'<replicate count="{count}">{inside}</replicate>'


BOUNDS = {
    "replicate": _nested(1_000_000, BODY),
    "nested": _nested(100, _nested(100, _nested(100, BODY))),
    "composite": f'<composite count="100 100 100">{BODY}</composite>',
    "many": BODY * 40_000,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_an_mjcf_has_bounds_before_mujoco_reads_it(monkeypatch, name):
    """Elements and their copies, depth, size: in words, in less than a second."""
    pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
    monkeypatch.setattr(compiled, "run_job", None)
    xml = f"<mujoco><worldbody>{BOUNDS[name]}</worldbody></mujoco>"
    begin = time.process_time()
    with pytest.raises(dyn.ModelError, match="more than 100000 elements, copies count"):
        dyn.load_mjcf(xml)
    assert time.process_time() - begin < 1.0
    deep = "<mujoco>" + "<body>" * 600
    with pytest.raises(dyn.ModelError, match="elements nest more than 500 deep"):
        dyn.load_mjcf(deep)
    monkeypatch.setattr(compiled, "SIZE", 20)
    with pytest.raises(dyn.ModelError, match="larger than 20 bytes"):
        dyn.load_mjcf(xml)


def test_replicates_within_the_bounds_are_read():
    """The bounds are far above what robots have; odd counts are MuJoCo's to refuse."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    if not hasattr(mujoco.MjSpec, "from_string"):
        pytest.skip("this mujoco is too old")
    model = dyn.load_mjcf(f"<mujoco><worldbody>{_nested(5, BODY)}</worldbody></mujoco>")
    assert model.nv == 5
    with pytest.raises(dyn.ModelError, match="cannot be read by MuJoCo"):
        dyn.load_mjcf(f"<mujoco><worldbody>{_nested('x', BODY)}</worldbody></mujoco>")


def test_installed_robots_are_read_in_this_process(monkeypatch):
    """Those of collections are trusted: no process is started for them."""
    from dyn_core.model.mjcf import load
    from dyn_core.model.reading import Choices
    from dyn_core.model.sources.origin import Origin

    pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
    choices, chosen = [], Choices(None, None, None, None, None, True, "warn", None)
    monkeypatch.setattr(
        load, "compile_mjcf", lambda _, trusted: choices.append(trusted)
    )
    for origin in (Origin("mjcf"), Origin("mjcf", "a.xml", "a", "robot_descriptions")):
        with pytest.raises(AttributeError):
            load.read_mjcf("", origin, chosen)
    assert choices == [False, True]
    assert Path(compiled.__file__).with_name("compile_job.py").is_file()
