"""Journals and results that were damaged: refused in words, or computed again rightly."""

import shutil
import warnings
from collections import Counter

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import DynError

ROWS, CHUNK, STOP = 240, 16, 9
KINDS = "npy", "folder", "zarr", "group", "reduction"


class Enough(Exception):
    pass


class Batch:
    """A batch of one kind of result, in a folder, half done and done.

    Attributes:
        wanted: The right results, in a list.
    """

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        several = kind in ("folder", "group")
        name = "fd_derivatives" if several else "rnea"
        self.program = dyn.solver(name).build(dyn.load("two_link"))
        self.states = np.random.default_rng(5).normal(size=(3, ROWS, 2))
        if kind == "reduction":
            self.wanted = [self.run(folder / "x", journal=None)]
        else:
            results = self.program(*self.states)
            self.wanted = list(results) if several else [results]
        for stage, stop in (("half", STOP), ("done", ROWS)):
            (folder / stage).mkdir()
            try:
                self.run(folder / stage, stop=stop)
            except Enough:
                continue

    def run(self, folder, stop=ROWS, **ask):
        """Begin the batch, or go on, until so many chunks are done."""
        counts = []

        def progress(done, rows):
            counts.append(done)
            if len(counts) == stop:
                raise Enough

        if self.kind == "reduction":
            ask = {"reduce": np.add, "journal": folder / "out.journal"} | ask
        else:
            ending = {"npy": ".npy", "folder": ""}.get(self.kind, ".zarr")
            ask = {"out": folder / f"out{ending}"} | ask
        ask |= {"chunk_rows": CHUNK, "workers": 1, "progress": progress}
        return self.program.map(*self.states, **ask)

    def right(self, result):
        """Check results, as returned and as they lie in files."""
        results = result if isinstance(result, tuple) else (result,)
        both = zip(results, self.wanted, strict=True)
        return all(np.array_equal(x[...], y) for x, y in both)


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """One batch of each kind, that no test changes."""
    pytest.importorskip("zarr", reason="zarr is not installed")
    return {x: Batch(x, tmp_path_factory.mktemp(x)) for x in KINDS}


def span(rng, data):
    """Return the ends of some bytes, few or many."""
    first = int(rng.integers(0, len(data) + 1))
    return first, min(len(data), first + int(2 ** rng.uniform(0, 9)))


def flipped(rng, data):
    at_byte, bit = int(rng.integers(0, max(len(data), 1))), 1 << int(rng.integers(0, 8))
    changed = bytearray(data or b"x")
    changed[at_byte] ^= bit
    return bytes(changed)


def without(rng, data):
    a, b = span(rng, data)
    return data[:a] + data[b:]


def zeroed(rng, data):
    a, b = span(rng, data)
    return data[:a] + bytes(b - a) + data[b:]


def inserted(rng, data):
    a, b = span(rng, data)
    return data[:a] + rng.bytes(b - a) + data[a:]


def repeated(rng, data):
    a, b = span(rng, data)
    return data[:b] + data[a:b] + data[b:]


def moved(rng, data):
    a, b = span(rng, data)
    place = int(rng.integers(0, len(data) + 1 - (b - a)))
    rest = data[:a] + data[b:]
    return rest[:place] + data[a:b] + rest[place:]


def cut(rng, data):
    return data[: int(rng.integers(0, len(data) + 1))]


def counted(rng, data):
    """Return the bytes with a digit that is another."""
    digits = [k for k, x in enumerate(data) if 48 <= x < 58]
    if not digits:
        return data + b"1"
    k = int(rng.choice(digits))
    return data[:k] + b"%d" % rng.integers(0, 10) + data[k + 1 :]


def lines_shuffled(rng, data):
    lines = data.splitlines(keepends=True)
    chosen = rng.integers(0, len(lines), size=len(lines)) if lines else []
    return b"".join(
        lines[k] for k in (chosen if rng.random() < 0.5 else sorted(chosen))
    )


def lines_exchanged(rng, data):
    """Return the bytes with parts of two lines exchanged."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 3:
        return data[::-1]
    a, b = (int(k) for k in rng.choice(len(lines), 2, replace=False))
    k = int(rng.integers(0, min(len(lines[a]), len(lines[b]))))
    lines[a], lines[b] = lines[a][:k] + lines[b][k:], lines[b][:k] + lines[a][k:]
    return b"".join(lines)


def other_ends(rng, data):
    return data.replace(b"\n", (b"\r\n", b"\r", b"", b"\n\n", b"\0")[rng.integers(5)])


WAYS = (
    flipped, without, zeroed, inserted, repeated, moved, cut, counted, lines_shuffled,
    lines_exchanged, other_ends,
)  # fmt: skip


def damaged(rng, batch, folder):
    """Damage the journal, or a file of the results; return what was done."""
    files = sorted(x for x in folder.rglob("*") if x.is_file())
    journal = next(x for x in files if x.name.endswith("journal"))
    chosen = journal if rng.random() < 0.6 else files[rng.integers(len(files))]
    which = "journal" if chosen == journal else "results"
    way = rng.random()
    if way < 0.02:
        chosen.unlink()
        return which, "removed"
    if way < 0.04:
        chosen.unlink()
        chosen.mkdir()
        return which, "a folder"
    if way < 0.10 and which == "journal":  # lines of another batch of the same kind
        other = (batch.folder / "done" / chosen.name).read_bytes()
        lines = chosen.read_bytes().splitlines(keepends=True)
        chosen.write_bytes(b"".join(lines[:4]) + b"".join(other.splitlines(True)[4:]))
        return which, "spliced"
    change = WAYS[rng.integers(len(WAYS))]
    chosen.write_bytes(change(rng, chosen.read_bytes()))
    return which, change.__name__


def campaign(batches, folder, count, seed):
    """Damage and resume; return the outcomes, and what went wrong."""
    outcomes, wrong = Counter(), []
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        batch = batches[KINDS[case % len(KINDS)]]
        stage = ("half", "done")[int(rng.integers(2))]
        place = folder / str(case)
        shutil.copytree(batch.folder / stage, place)
        name = case, batch.kind, stage, *damaged(rng, batch, place)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                right = batch.right(batch.run(place))
                again = right and batch.right(batch.run(place))
            outcomes[name[3], "right"] += 1
            if not (right and again):
                wrong.append((*name, "wrong numbers"))
        except DynError as error:
            outcomes[name[3], "refused"] += 1
            if "valid: " not in str(error):
                wrong.append((*name, f"says nothing of what is valid: {error}"))
        except Exception as error:
            wrong.append((*name, f"{type(error).__name__}: {error}"))
        shutil.rmtree(place)
    return outcomes, wrong


def test_damaged_journals_and_results(batches, tmp_path, full):
    """Bytes changed, lost, added, moved, in journals and files of five kinds of result.

    None gives a wrong number, none ends in an error that is not ours. Many with --full.
    """
    outcomes, wrong = campaign(batches, tmp_path, 4000 if full else 40, seed=28)
    assert not wrong, wrong[:5]
    assert all(outcomes[x] > 3 for x in (("journal", "refused"), ("results", "right")))
