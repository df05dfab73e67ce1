"""The example that learns: its search repeats, the pendulum and the pole stand."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def script(monkeypatch):
    """The example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("learn_swing_up")


def test_the_search_repeats(script):
    """The same seed finds the same weights, another one does not."""
    lesson, quiet = script.LESSONS[0], {"generations": 3, "log": lambda message: None}
    first, again, other = (script.train(lesson, seed=k, **quiet)[0] for k in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.full
def test_they_swing_up_on_fresh_starts(script, tmp_path, capsys):
    """Most new starts end upright; a plot is saved. With --full only: it takes 15 s."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    rates = script.main(tmp_path)
    assert list(rates) == ["pendulum", "cart_pole_swing_up"]
    assert min(rates.values()) > 0.6
    assert "new starts end upright" in capsys.readouterr().out
    assert (tmp_path / "learn_swing_up.png").stat().st_size > 10_000
