"""Which tests run without --full."""

import itertools
from collections import Counter
from types import SimpleNamespace

import pytest


@pytest.fixture
def not_drawn(request):
    """The function of tests/conftest.py that draws tests of the marker `one_of`."""
    (known,) = (
        plugin._not_drawn
        for plugin in request.config.pluginmanager.get_plugins()
        if hasattr(plugin, "_not_drawn")
    )
    return known


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
