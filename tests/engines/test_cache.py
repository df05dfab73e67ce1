"""Kernels on disk: found again, bounded, safe; nothing stale is ever used."""

import importlib
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import cache, fingerprint, kernel, native, recall
from dyn_core.testing.models import chain

pytestmark = pytest.mark.skipif(bool(native.missing()), reason=native.missing())


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
    assert {"scalar", "text"} <= set(_kinds(folder))
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
program = dyn.solver("aba").build(chain(4), engine="native")
program.prepare(batch=True)
print(program._kernels["lanes"].compiled, "graph" in vars(program), program(*np.ones((3, 4))))
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


def test_the_folder_stays_below_its_bound(folder, monkeypatch):
    """The entries used longest ago go first."""
    monkeypatch.setenv("DYN_CACHE_LIMIT", "0.02")
    cache.store("old", {}, b"x" * 9000)
    cache.store("used", {}, b"x" * 9000)
    early = time.time() - 1000
    for name in ("old", "used"):
        os.utime(folder / f"{name}.obj", (early, early))
    assert cache.load("used") is not None  # counts as use
    cache.store("new", {}, b"x" * 9000)
    assert _kinds(folder) == ["new.obj", "used.obj"]


def test_folders_of_others_are_not_trusted(tmp_path, monkeypatch):
    """A folder that others may write is neither read nor written; one warning says so."""
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    monkeypatch.setenv("DYN_CACHE_DIR", str(open_folder))
    with pytest.warns(RuntimeWarning, match="others may read or write it; chmod 700"):
        cache.store("key", {}, b"code")
    assert cache.load("key") is None and not list(open_folder.iterdir())
    q = np.zeros(3)
    assert _build()(q).shape == (3,)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners here")
def test_files_and_folders_of_another_user_are_not_trusted(folder, monkeypatch):
    """Neither an entry nor a folder that belongs to somebody else is used."""
    cache.store("key", {"a": 1}, b"code")
    assert cache.load("key") == ({"a": 1}, b"code")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.load("key") is None
    cache._usable.cache_clear()
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.folder() is None
    cache._usable.cache_clear()


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


def test_other_versions_and_machines_have_other_keys(folder, monkeypatch):
    """LLVM, its settings and the compiler's own code are part of the key."""
    import llvmlite

    def key():
        native.machine.cache_clear()
        return native.machine().key

    before = key()
    assert key() == before
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite, "__version__", "0.99.0")
        assert key() != before
    with monkeypatch.context() as patch:
        patch.setattr("dyn_core.engines.emit.Emitter.__doc__", "other")
        patch.setattr("dyn_core.engines.functions.FAR", 1e9)
        assert key() != before
    assert key() == before


def test_a_changed_function_changes_the_kernel(folder, monkeypatch):
    """A shipped text changed in this process is neither recalled nor noted as shipped."""
    q = np.array([0.3, -0.4, 1.0])
    wanted = _build()(q)
    before = fingerprint.of_code(recall._TRACED)
    solver = dyn.solver("gravity")

    with monkeypatch.context() as patch:
        from dyn_core.spatial.vectors import Motion

        real = Motion.__neg__
        patch.setattr(Motion, "__neg__", lambda self: real(self) * 2.0)
        assert fingerprint.of_code(recall._TRACED) != before
        changed = solver.build(chain(3), engine="native")(q)
    assert not np.allclose(changed, wanted)
    assert fingerprint.of_code(recall._TRACED) == before
    np.testing.assert_array_equal(_build()(q), wanted)


def test_an_edited_helper_changes_the_kernel(folder, tmp_path, monkeypatch):
    """A plugin's helper is edited on disk: the next process has another kernel."""
    (tmp_path / "my_helper.py").write_text("def factor():\n    return 2.0\n")
    (tmp_path / "my_text.py").write_text(
        "import my_helper\n\n\n"
        "def text(model, q, qd, qdd, f_ext):\n"
        "    return qdd * my_helper.factor()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def result():
        for name in ("my_helper", "my_text"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        text = importlib.import_module("my_text").text
        solver = dyn.TextSolver("mine", dyn.INVERSE_DYNAMICS, text, by_joint=False)
        return solver.build(chain(2), engine="native")(*np.ones((3, 2))).tolist()

    assert result() == [2.0, 2.0]
    (tmp_path / "my_helper.py").write_text("def factor():\n    return 3.25  # now\n")
    assert result() == [3.25, 3.25]


def test_another_robot_has_another_kernel(folder):
    """Each number of a Model counts, and each choice."""
    from dataclasses import replace

    model = chain(3)
    texts = [
        dyn.solver("rnea").build(robot, engine="native", **choices).text
        for robot, choices in (
            (model, {}),
            (replace(model, a_grav=model.a_grav * 1.0000001), {}),
            (model, {"joint_friction": True}),
            (model, {"inputs": ["gravity"]}),
            (model, {"inputs": ["f_ext"]}),
            (model, {"inputs": ["f_ext"], "f_ext_frame": "base"}),
        )
    ]
    names = [recall.key(text, "machine") for text in texts]
    assert None not in names and len(set(names)) == len(names)
    assert recall.key(texts[0], "another") not in names
    assert recall.key(lambda numbers: numbers, "machine") is None


def test_long_builds_tell_so(monkeypatch):
    """After a second of work, and not before, a line tells what is being done."""
    said, go_on = [], threading.Event()
    monkeypatch.setattr(native, "_PATIENCE", 0.01)

    def say(text):
        said.append(text)
        go_on.set()

    with native.progress("compiling rnea for arm", say):
        assert go_on.wait(30)
    assert said[0].startswith("\rcompiling rnea for arm ... ")
    assert said[-1].endswith(" s\n")
    said.clear()
    monkeypatch.setattr(native, "_PATIENCE", 60.0)
    with native.progress("compiling", say):
        pass
    assert not said
