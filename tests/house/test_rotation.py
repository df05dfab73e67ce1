"""Which tests run without --full."""

import itertools
from collections import Counter
from types import SimpleNamespace

import pytest


@pytest.fixture
def suite(request):
    """tests/conftest.py, which says how the suite is run."""
    plugins = request.config.pluginmanager.get_plugins()
    (known,) = (plugin for plugin in plugins if hasattr(plugin, "_not_drawn"))
    return known


@pytest.fixture
def not_drawn(suite):
    """The function that draws tests of the marker `one_of`."""
    return suite._not_drawn


def _items(name, share, *counts):
    """Return tests of one function: one for each combination of its parameters."""
    mark = SimpleNamespace(args=(share,))
    return [
        SimpleNamespace(
            nodeid=f"{name}[{'-'.join(map(str, values))}]",
            callspec=SimpleNamespace(indices=dict(zip("abc", values, strict=False))),
            get_closest_marker=lambda marker: mark if marker == "one_of" else None,
        )
        for values in itertools.product(*map(range, counts))
    ]


def test_one_of_two_runs_and_each_value_equally_often(not_drawn):
    """Of 16 tests 8 run: each value of 4 twice, each value of 2 four times."""
    items = _items("file::test", 2, 4, 2, 2)
    left = {item.nodeid for item in not_drawn(list(items))}
    runs = [item.callspec.indices for item in items if item.nodeid not in left]
    assert len(runs) == 8
    for name, often in (("a", 2), ("b", 4), ("c", 4)):
        assert set(Counter(run[name] for run in runs).values()) == {often}


def test_a_draw_is_the_same_in_each_run_and_another_for_each_test(not_drawn):
    """Its seed is the name of the test, whatever the order of the files."""
    drawn = {
        tuple(item.callspec.indices["a"] for item in not_drawn(_items(name, 3, 9)))
        for name in ("file::one", "file::one", "file::two")
    }
    assert len(drawn) == 2


@pytest.mark.parametrize(("count", "runs"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_at_least_one_runs(not_drawn, count, runs):
    """Halves are rounded up."""
    assert len(not_drawn(_items("file::test", 2, count))) == count - runs


def test_long_tests_take_turns_by_the_commit(suite, monkeypatch, tmp_path):
    """One of 1.25 s runs in two of five commits; of 8 that take 16 s two run."""
    table = tmp_path / "long.txt"
    table.write_text(
        "# head\nroom/test_a.py::test_one 1.25\nroom/test_a.py::test_many 16\n"
    )
    monkeypatch.setattr(suite, "LONG", table)
    path = suite.FOLDER / "room" / "test_a.py"
    names = ["test_one", "test_short", *(f"test_many[{k}]" for k in range(8))]
    items = [SimpleNamespace(path=path, nodeid=f"tests/x.py::{x}") for x in names]
    runs, many = 0, set()
    for commit in range(500):
        monkeypatch.setattr(suite, "_commit", lambda commit=commit: str(commit))
        left_out = [
            item.nodeid.partition("::")[2] for item in suite._not_in_turn(items)
        ]
        assert left_out == [
            x.nodeid.partition("::")[2] for x in suite._not_in_turn(items)
        ]
        assert "test_short" not in left_out
        runs += "test_one" not in left_out
        drawn = {x for x in names if "many" in x} - {*left_out}
        assert len(drawn) == 2
        many |= drawn
    assert 150 < runs < 250
    assert len(many) == 8


def test_new_times_replace_those_of_the_same_tests_alone(suite, monkeypatch, tmp_path):
    """A part that is measured keeps the others; tests of safety are never in turn."""
    table = tmp_path / "long.txt"
    table.write_text("# head\na/test_x.py::one 2.5\nb/test_y.py::two 9.0\n")
    monkeypatch.setattr(suite, "LONG", table)
    safe = "control/safety/test_z.py::safe"
    node = "nodes/test_z.py::node"
    new = {"b/test_y.py::two": 0.3, "c/test_v.py::new": 4.0, safe: 5.0, node: 6.0}
    suite._write_long(new)
    lines = table.read_text().splitlines()
    assert lines == [suite.LONG_HEAD, "a/test_x.py::one 2.5", "c/test_v.py::new 4.0"]


def test_long_tests_are_tests(suite):
    """A renamed test would run in each commit, unseen."""
    for line in suite.LONG.read_text("utf-8").splitlines()[1:]:
        file, _, function = line.split()[0].partition("::")
        name = function.rpartition("::")[2]
        assert not file.startswith(suite.ALWAYS)
        assert f"def {name}(" in (suite.FOLDER / file).read_text("utf-8"), line


def test_workers_hear_that_long_tests_take_turns(suite):
    """They know registered options alone: all long tests ran in them."""
    for turn in (True, False):
        option = SimpleNamespace(in_turn=turn)
        node = SimpleNamespace(workerinput={}, config=SimpleNamespace(option=option))
        suite.pytest_configure_node(node)
        assert node.workerinput == {"in_turn": turn}
