"""The command `dyn bench --batches`, with few rows."""

import pytest
from bench import batches

from dyn_core.cli import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--count", "1e6"], "--count needs --batches"),
        (["--batches", "--count", "0"], "--count is 0.0; valid: a number of states"),
        (["--batches", "--robot", "arm7"], "--robot changes nothing beside --batches"),
        (["--batches", "--steps"], "--steps changes nothing beside --batches"),
    ],
)
def test_what_changes_nothing_is_refused(capsys, arguments, message):
    assert main(["bench", *arguments]) != 0
    assert message in capsys.readouterr().err


@pytest.mark.full  # two clusters are started
def test_it_prints_all_tables(capsys, monkeypatch):
    pytest.importorskip("distributed", reason="distributed is not installed")
    pytest.importorskip("zarr", reason="zarr is not installed")
    small = {"SPAN": 0.01, "REPEATS": 1, "SMALL_CHUNKS": 20, "MEMORY_ROWS": 10_000}
    for name, value in small.items():
        monkeypatch.setattr(batches, name, value)
    assert main(["bench", "--batches", "--count", "2e5", "--markdown"]) == 0
    said = capsys.readouterr().out
    lines = [line.split("|")[1:-1] for line in said.splitlines() if line[:1] == "|"]
    names = [line[0].strip() for line in lines]
    for name in ("fd_derivatives", "copy", "one thread", "one process", "2e+05"):
        assert name in names
    large = [line for line in lines if line[0].strip() in ("2e+03", "2e+05")]
    peaks = [float(line[6]) for line in large]
    assert len(peaks) == 3
    assert peaks[2] < 1.3 * peaks[1]  # a hundred times the states, as much memory
