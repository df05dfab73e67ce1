"""Kernels on disk: found again, bounded, safe; nothing stale is ever used."""

import copyreg
import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import compiler, host_machine, kernel
from dyn_core.engines.llvm.cached import fingerprint, kernel_cache, trace_cache
from dyn_core.testing.models import chain

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of this test alone, and no kernel left in memory."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    kernel.forget()
    yield tmp_path / "kernels"
    kernel.forget()


def _build(name="gravity", joints=3, **choices):
    program = dyn.solver(name).build(chain(joints), engine="native", **choices)
    program.prepare()
    return program


def _kinds(folder):
    return sorted(path.name.split("-")[0] for path in folder.iterdir())


def test_a_kernel_is_found_again(folder):
    """A second build neither traces nor compiles, and has the same bits."""
    first = _build()
    q = np.array([0.3, -0.4, 1.0])
    wanted = first(q)
    assert {"scalar", "trace"} <= set(_kinds(folder))
    assert first._kernels["scalar"].compiled
    del first
    second = _build()
    assert not second._kernels["scalar"].compiled
    assert "graph" not in vars(second)
    np.testing.assert_array_equal(second(q), wanted)


def test_two_processes_share_it(folder):
    """Two processes at once, then a third: it finds what they left, under any hash seed."""
    code = """
import numpy as np, dyn_core as dyn
from dyn_core.testing.models import chain
program = dyn.solver("rnea").build(chain(2), engine="native")
program.prepare(batch=True)
print(program._kernels["batch"].compiled, "graph" in vars(program), program(*np.ones((3, 2))))
"""

    def start(seed):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip

    both = [start(seed) for seed in (1, 2)]
    answers = [process.communicate(timeout=120)[0] for process in both]
    third = start(3).communicate(timeout=120)[0]
    assert third.startswith("False False [")
    assert len({answer.split("[")[1] for answer in (*answers, third)}) == 1
    assert not [name for name in os.listdir(folder) if name.endswith(".new")]


@pytest.mark.parametrize("harm", ["cut", "flipped", "empty", "foreign"])
def test_damaged_entries_are_made_again(folder, harm):
    """A broken file is noticed by its digest, and replaced."""
    q = np.array([0.3, -0.4, 1.0])
    wanted = _build()(q)
    for path in folder.iterdir():
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        damaged = {
            "cut": content[: len(content) // 2], "flipped": content, "empty": b"",
            "foreign": b"something else entirely" * 10,
        }[harm]  # fmt: skip
        path.write_bytes(damaged)
    kernel.forget()
    again = _build()
    assert again._kernels["scalar"].compiled
    np.testing.assert_array_equal(again(q), wanted)
    kernel.forget()
    assert not _build()._kernels["scalar"].compiled


@pytest.mark.parametrize("how", ["swapped", "copied"])
def test_an_entry_under_the_name_of_another_is_made_again(folder, how):
    """The entries of rnea and aba change places: each still gives its own numbers."""
    x = np.array([[0.3, -0.4, 1.0], [1.0, 0.5, -0.2], [0.1, 0.2, 0.3]])
    rows = np.stack([x, 2.0 * x], axis=1)
    wanted, files = {}, {}
    for name in ("rnea", "aba"):
        before = set(folder.iterdir()) if folder.exists() else set()
        program = _build(name)
        program.prepare(batch=True)
        wanted[name] = program(*x), program(*rows)
        made = set(folder.iterdir()) - before
        files[name] = {path.name.split("-")[0]: path for path in made}
    assert not np.allclose(wanted["rnea"][0], wanted["aba"][0])
    for kind in ("scalar", "batch", "trace"):
        first, second = files["rnea"][kind], files["aba"][kind]
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        if how == "swapped":
            second.write_bytes(content)
    del program
    kernel.forget()
    for name, (single, batch) in wanted.items():
        again = _build(name)
        again.prepare(batch=True)
        np.testing.assert_array_equal(again(*x), single)
        np.testing.assert_array_equal(again(*rows), batch)
        if name == "rnea" or how == "swapped":
            assert all(made.compiled for made in again.kernels())


def test_an_entry_of_any_kind_belongs_to_its_key(folder):
    """What is copied to another key is not there, and the copy is removed."""
    names = [f"{kind}-{'ab' * 32}" for kind in ("scalar", "batch", "trace", "entry")]
    for name in names:
        kernel_cache.store(name, {"of": name}, b"code")
    first = (folder / f"{names[0]}.obj").read_bytes()
    for name in names[1:]:
        (folder / f"{name}.obj").write_bytes(first)
        assert kernel_cache.load(name) is None
    assert kernel_cache.load(names[0]) == ({"of": names[0]}, b"code")
    assert _kinds(folder) == ["scalar"]


def test_the_folder_stays_below_its_bound(folder, monkeypatch):
    """The entries used longest ago go first."""
    monkeypatch.setenv("DYN_CACHE_LIMIT", "0.02")
    kernel_cache.store("old", {}, b"x" * 9000)
    kernel_cache.store("used", {}, b"x" * 9000)
    early = time.time() - 1000
    for name in ("old", "used"):
        os.utime(folder / f"{name}.obj", (early, early))
    assert kernel_cache.load("used") is not None  # counts as use
    kernel_cache.store("new", {}, b"x" * 9000)
    assert _kinds(folder) == ["new.obj", "used.obj"]


def test_folders_of_others_are_not_trusted(tmp_path, monkeypatch):
    """A folder that others may write is neither read nor written; one warning says so."""
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    monkeypatch.setenv("DYN_CACHE_DIR", str(open_folder))
    with pytest.warns(RuntimeWarning, match="others may read or write it; chmod 700"):
        kernel_cache.store("key", {}, b"code")
    assert kernel_cache.load("key") is None and not list(open_folder.iterdir())
    q = np.zeros(3)
    assert _build()(q).shape == (3,)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners here")
def test_files_and_folders_of_another_user_are_not_trusted(folder, monkeypatch):
    """Neither an entry nor a folder that belongs to somebody else is used."""
    kernel_cache.store("key", {"a": 1}, b"code")
    assert kernel_cache.load("key") == ({"a": 1}, b"code")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert kernel_cache.load("key") is None
    kernel_cache._usable.cache_clear()
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert kernel_cache.folder() is None
    kernel_cache._usable.cache_clear()


def test_a_file_in_the_way_only_warns(tmp_path, monkeypatch):
    """Without a usable folder Programs compile each time and say so once."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DYN_CACHE_DIR", str(blocked / "inside"))
    kernel.forget()
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept"):
        assert _build()(np.zeros(3)).shape == (3,)
    monkeypatch.setenv("DYN_CACHE_DIR", "off")
    kernel.forget()
    assert _build()._kernels["scalar"].compiled


@pytest.fixture
def homeless(monkeypatch, tmp_path):
    """No folder is named, there is no HOME, and the user has no entry."""
    pwd = pytest.importorskip("pwd", reason="no users here")

    def nobody(_):
        raise KeyError("no such user")

    for name in ("DYN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(pwd, "getpwnam", nobody)
    monkeypatch.chdir(tmp_path)
    kernel.forget()


@pytest.mark.parametrize("setting", ["", "DYN_CACHE_DIR=~nobody/kernels", "HOME=home"])
def test_without_a_home_nothing_is_kept(homeless, monkeypatch, tmp_path, setting):
    """As in a container with any user: one warning, and Programs work."""
    if setting:
        monkeypatch.setenv(*setting.split("="))
    kernel_cache._warn_off.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name in ("gravity", "rnea"):
            assert _build(name)._kernels["scalar"].compiled
    (warning,) = said
    assert "compiled kernels are not kept: " in str(warning.message)
    assert "DYN_CACHE_DIR names another folder" in str(warning.message)
    assert not list(tmp_path.iterdir())


def test_a_relative_cache_home_is_ignored(monkeypatch, tmp_path):
    """The rule of XDG: such a path is invalid; the default takes its place."""
    monkeypatch.delenv("DYN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert kernel_cache.folder() == tmp_path / "home" / ".cache" / "dyn_ros"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("fault", ["full", "folder", "interrupted"])
def test_a_store_that_fails_leaves_nothing(folder, monkeypatch, fault):
    """A full disk, or a folder at the entry's place: a warning, and no leftovers."""
    kernel_cache.store("first", {}, b"code")
    if fault == "folder":
        (folder / "key.obj" / "inside").mkdir(parents=True)
    else:
        error = KeyboardInterrupt() if fault == "interrupted" else OSError(28, "full")

        def fails(*_):
            raise error

        monkeypatch.setattr(os, "replace", fails)
    if fault == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            kernel_cache.store("key", {}, b"code")
    else:
        with pytest.warns(RuntimeWarning, match="kernels are not kept") as said:
            for _ in range(3):
                kernel_cache.store("key", {}, b"code")
        assert len(said) == 1
    assert not [path for path in folder.iterdir() if path.suffix == ".new"]


def test_a_damaged_entry_that_cannot_be_removed_is_not_used(folder, monkeypatch):
    """The folder became read-only: the kernel is made again."""
    kernel_cache.store("key", {}, b"code")
    (folder / "key.obj").write_bytes(b"damaged")

    def refused(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "unlink", refused)
    assert kernel_cache.load("key") is None


def test_what_an_ended_process_left_is_removed(folder):
    """A file that was being written an hour ago; one of another process stays."""
    kernel_cache.store("first", {}, b"code")
    for name, age in (("old.new", 4000.0), ("young.new", 10.0)):
        (folder / name).write_bytes(b"half an entr")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    (folder / "a folder.obj").mkdir()
    kernel_cache._since.clear()
    kernel_cache.store("second", {}, b"code")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["a folder.obj", "first.obj", "second.obj", "young.new"]
    kernel_cache.remove(folder, 0)  # another process may write young.new now
    assert sorted(os.listdir(folder)) == ["a folder.obj", "young.new"]


def test_a_folder_that_goes_away_costs_one_warning(folder):
    """Programs are built all the same."""
    kernel_cache.store("first", {}, b"code")
    shutil.rmtree(folder)
    with pytest.warns(RuntimeWarning, match="kernels are not kept") as said:
        for name in ("gravity", "rnea"):
            assert _build(name)._kernels["scalar"].compiled
    assert len(said) == 1


def test_where_warnings_are_errors_they_are_printed(homeless, capsys):
    """`python -W error` ends no build because nothing can be kept."""
    kernel_cache._warn_off.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("gravity", "rnea"):
            assert _build(name)._kernels["scalar"].compiled
    assert capsys.readouterr().err.count("warning: compiled kernels are not kept") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_not_waited_for(folder):
    """A pipe at the place of an entry is passed over, and replaced."""
    kernel_cache.store("key", {}, b"code")
    (folder / "key.obj").unlink()
    os.mkfifo(folder / "key.obj")
    entries = ["nothing yet"]
    reader = threading.Thread(
        target=lambda: entries.append(kernel_cache.load("key")), daemon=True
    )
    reader.start()
    reader.join(30)
    assert entries[-1] is None
    kernel_cache.store("key", {}, b"code")
    assert kernel_cache.load("key") == ({}, b"code")


def test_other_versions_and_machines_have_other_keys(folder, monkeypatch):
    """LLVM, its settings and the compiler's own code are part of the key."""
    import llvmlite

    def key():
        host_machine.machine.cache_clear()
        return host_machine.machine().key

    before = key()
    assert key() == before
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite, "__version__", "0.99.0")
        assert key() != before
    with monkeypatch.context() as patch:
        patch.setattr("dyn_core.engines.llvm.emit.Emitter.__doc__", "other")
        patch.setattr("dyn_core.engines.llvm.functions.float64_functions.FAR", 1e9)
        assert key() != before
    assert key() == before


def test_a_changed_function_changes_the_kernel(folder, monkeypatch):
    """A shipped algorithm changed in this process is traced again, and not stored as shipped."""
    q = np.array([0.3, -0.4, 1.0])
    wanted = _build()(q)
    before = fingerprint.of_traced_code(trace_cache._PACKAGES, ())
    solver = dyn.solver("gravity")

    with monkeypatch.context() as patch:
        from dyn_core.spatial.vectors import Motion

        real = Motion.__neg__
        patch.setattr(Motion, "__neg__", lambda self: real(self) * 2.0)
        assert fingerprint.of_traced_code(trace_cache._PACKAGES, ()) != before
        changed = solver.build(chain(3), engine="native")(q)
    assert not np.allclose(changed, wanted)
    assert fingerprint.of_traced_code(trace_cache._PACKAGES, ()) == before
    np.testing.assert_array_equal(_build()(q), wanted)


CHANGEABLE = """
import functools
import numpy as np

def close_over(factor):
    def scaled(x, power=2, *, offset=0.5):
        return factor * x ** power + offset
    return scaled

def twice(x):
    return 2 * x

class Kind:
    weight = 1.5
    def __init__(self):
        self.cached = None
    @property
    def doubled(self):
        return 2.0 * self.weight

scaled = close_over(3.0)
tripled = functools.partial(scaled, power=3)
STEP = 0.25
ZERO = 0.0
ONE = 1.0
LIMITS = (1.0, (2.0, 3.0))
RULES = {"one": lambda x: x, "two": twice}
NAMES = ["a", "b"]
SIGNS = np.array([1.0, -1.0])
CHOSEN = frozenset(("x", "y"))
"""

CHANGES = {
    "a constant": lambda m: setattr(m, "STEP", 0.5),
    "the sign of zero": lambda m: setattr(m, "ZERO", -0.0),
    "a number's type": lambda m: setattr(m, "ONE", 1),
    "code": lambda m: setattr(m.twice, "__code__", m.Kind.doubled.fget.__code__),
    "a function": lambda m: setattr(m, "twice", lambda x: x + x),
    "a default": lambda m: setattr(m.scaled, "__defaults__", (3,)),
    "a default by name": lambda m: m.scaled.__kwdefaults__.update(offset=1.0),
    "what is closed over": lambda m: setattr(
        m.scaled.__closure__[0], "cell_contents", 4.0
    ),
    "a method": lambda m: setattr(m.Kind, "__init__", lambda self: None),
    "a property": lambda m: setattr(m.Kind, "doubled", property(lambda self: 3.0)),
    "a constant of a class": lambda m: setattr(m.Kind, "weight", 2.5),
    "a class": lambda m: setattr(m, "Kind", type("Kind", (), {})),
    "a nested tuple": lambda m: setattr(m, "LIMITS", (1.0, (2.0, 4.0))),
    "an entry of a dict": lambda m: m.RULES.update(two=lambda x: x - x),
    "a new entry": lambda m: m.RULES.update(three=m.twice),
    "an entry of a list": lambda m: m.NAMES.__setitem__(0, "c"),
    "an array in place": lambda m: m.SIGNS.__setitem__(0, 2.0),
    "a set": lambda m: setattr(m, "CHOSEN", frozenset(("x", "z"))),
    "what is bound": lambda m: setattr(
        m, "tripled", functools.partial(m.scaled, power=4)
    ),
    "a new name": lambda m: setattr(m, "fresh", 1),
    "a name less": lambda m: delattr(m, "STEP"),
}  # fmt: skip


@pytest.fixture
def changeable(tmp_path, monkeypatch):
    """Write and load a module with all that a digest counts; return its digest too."""
    (tmp_path / "my_changeable.py").write_text(CHANGEABLE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("my_changeable")
    del sys.modules["my_changeable"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_of_loaded_code_changes_the_digest(changeable, change):
    """A digest that is kept between builds is given up with the first change."""
    before = fingerprint.of_code(("my_changeable",))
    assert fingerprint.of_code(("my_changeable",)) == before
    change(changeable)
    assert fingerprint.of_code(("my_changeable",)) != before


def test_a_reloaded_module_is_read_again(changeable, tmp_path):
    """Reloading the same source keeps the digest, reloading another changes it."""
    before = fingerprint.of_code(("my_changeable",))
    importlib.reload(changeable)
    assert fingerprint.of_code(("my_changeable",)) == before
    source = tmp_path / "my_changeable.py"
    source.write_text(CHANGEABLE.replace("3.0 * x", "4.0 * x").replace("0.25", "0.125"))
    importlib.invalidate_caches()
    importlib.reload(changeable)
    assert fingerprint.of_code(("my_changeable",)) != before


def test_a_digest_is_kept_while_nothing_changes(changeable, monkeypatch):
    """Builds do not read all code again; what Python notes itself does not count."""
    before = fingerprint.of_code(("my_changeable",))
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint.marshal, "dumps", None)
        assert fingerprint.of_code(("my_changeable",)) == before
    copyreg._slotnames(changeable.Kind)  # pickle leaves its notes in the class
    assert "__slotnames__" in vars(changeable.Kind)
    assert fingerprint.of_code(("my_changeable",)) == before


def test_an_edited_helper_changes_the_kernel(folder, tmp_path, monkeypatch):
    """A plugin's helper is edited on disk: the next process has another kernel."""
    (tmp_path / "my_helper.py").write_text("def factor():\n    return 2.0\n")
    (tmp_path / "my_algorithm.py").write_text(
        "import my_helper\n\n\n"
        "def algorithm(model, q, qd, qdd, f_ext):\n"
        "    return qdd * my_helper.factor()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def result():
        for name in ("my_helper", "my_algorithm"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        algorithm = importlib.import_module("my_algorithm").algorithm
        solver = dyn.authoring.TracedSolver(
            "mine", dyn.problems.INVERSE_DYNAMICS, algorithm, by_joint=False
        )
        return solver.build(chain(2), engine="native")(*np.ones((3, 2))).tolist()

    assert result() == [2.0, 2.0]
    (tmp_path / "my_helper.py").write_text("def factor():\n    return 3.25  # now\n")
    assert result() == [3.25, 3.25]


def test_another_robot_has_another_kernel(folder):
    """Each number of a Model counts, and each choice."""
    from dataclasses import replace

    model = chain(3)
    functions = [
        dyn.solver("rnea").build(robot, engine="native", **choices).function
        for robot, choices in (
            (model, {}),
            (replace(model, a_grav=model.a_grav * 1.0000001), {}),
            (model, {"joint_friction": True}),
            (model, {"inputs": ["gravity"]}),
            (model, {"inputs": ["f_ext"]}),
            (model, {"inputs": ["f_ext"], "f_ext_frame": "base"}),
        )
    ]
    names = [trace_cache.key(function, "machine") for function in functions]
    assert None not in names and len(set(names)) == len(names)
    assert trace_cache.key(functions[0], "another") not in names
    assert trace_cache.key(lambda numbers: numbers, "machine") is None


@pytest.mark.parametrize("named", [True, False])
def test_a_run_of_the_tests_keeps_the_folder_that_is_named(tmp_path, named):
    """With DYN_CACHE_DIR set a run of the tests uses it; else a folder of its own."""
    (tmp_path / "test_folder.py").write_text(
        "import os\n\n\ndef test_folder():\n    print('in', os.environ['DYN_CACHE_DIR'])\n"
    )
    root = Path(__file__).parents[2]
    outer = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment = {**outer, "DYN_CACHE_DIR": str(tmp_path / "mine")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of which none is needed
    if not named:
        del environment["DYN_CACHE_DIR"]
    run = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.conftest"]
    done = subprocess.run(
        [*run, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=root, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (f"in {tmp_path / 'mine'}\n" in done.stdout) == named
    assert re.search(r"in .*kernels\d*\n", done.stdout) or named


def test_long_builds_report_themselves(monkeypatch):
    """After a second of work, and not before, a line says what is being done."""
    reports, go_on = [], threading.Event()
    monkeypatch.setattr(compiler, "_PATIENCE", 0.01)

    line = re.compile(r"\rcompiling rnea for arm ... \d+ of about 5\d s")

    def report(message):
        reports.append(message)
        if line.fullmatch(message):  # the first may come before what is expected
            go_on.set()

    with compiler.progress("compiling rnea for arm", report) as expect:
        expect(500_000)
        assert go_on.wait(30)
    assert re.search(r"\d s +\n$", reports[-1])
    reports.clear()
    monkeypatch.setattr(compiler, "_PATIENCE", 60.0)
    with compiler.progress("compiling", report):
        pass
    assert not reports


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_shows_long_builds(monkeypatch, terminal):
    """In a log, where each report would be a line more, there is none."""
    said, go_on = [], threading.Event()

    class Stream:
        def isatty(self):
            return terminal

        def write(self, message):
            said.append(message)
            go_on.set()

    monkeypatch.setattr(compiler, "_PATIENCE", 0.01)
    monkeypatch.setattr("sys.stderr", Stream())
    with compiler.progress("compiling rnea for arm"):
        go_on.wait(30 if terminal else 0.05)
    assert bool(said) == terminal
