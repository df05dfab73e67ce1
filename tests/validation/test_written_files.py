"""Files that cannot be written are refused in the words of the project."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.batch.journal import Journal
from dyn_core.errors import BatchError, SettingError
from dyn_core.export import export
from dyn_core.identification import identify, write_sidecar, write_table
from dyn_core.planar.chain.files import save_chain
from dyn_core.recordings import run_record, write_motion
from dyn_core.reports.write import write_page
from dyn_core.validation import writing
from dyn_core.view.film import write_film, write_picture
from dyn_core.view.replay import of_arrays


@pytest.fixture(scope="module")
def result():
    """Return what is identified of the arm with two joints."""
    model, rng = dyn.load("two_link"), np.random.default_rng(0)
    motion = rng.normal(size=(3, 60, 2))
    tau = dyn.solver("rnea").build(model)(*motion)
    return identify(model, *motion, tau, consistent=True)


def _writers(result):
    """Iterate over (name of the file, function that writes it)."""
    model = dyn.load("two_link")
    run = dyn.simulate(model, duration=0.01)
    replay = of_arrays(model, np.arange(2.0), np.zeros((2, 2)))
    yield "a.csv", lambda path: write_table(path, result)
    yield "a.csv", result.save
    yield "a.yaml", result.save
    yield "a.urdf", result.save
    yield "a.yaml", lambda path: write_sidecar(path, model, "a test")
    yield "a.yaml", lambda path: save_chain(dyn.make_chain([1.0], [1.0, 1.0]), path)
    yield "a.npz", lambda path: write_motion(run_record(run), path)
    yield "a.csv", lambda path: write_motion(run_record(run), path)
    yield "a.mcap", lambda path: write_motion(run_record(run), path)
    yield "a.html", lambda path: write_page(path, "a page")
    yield "a", lambda path: export(dyn.solver("rnea").build(model), path)
    yield "a.gif", lambda path: write_film(replay, path)
    yield "a.png", lambda path: write_picture(replay.scene, path, np.zeros(2))
    yield "a.png", result.plot
    yield "a.png", result.plot_friction
    yield "a.png", run.plot


def test_each_writer_says_why_it_cannot(result, tmp_path):
    """The path is a folder, or a file where a folder is needed: no plain OSError."""
    for name, write in _writers(result):
        path = tmp_path / name
        if name == "a":
            path.write_text("a file")
        else:
            path.mkdir()
        with pytest.raises(
            SettingError, match=r"a\b.*(cannot be written|valid:|folder)"
        ):
            write(path)
        if name == "a":
            path.unlink()
        else:
            path.rmdir()


def test_a_page_in_a_folder_that_does_not_exist(tmp_path):
    """It is refused before its folder is made."""
    with pytest.raises(SettingError, match="no_folder"):
        write_page(tmp_path / "no_folder" / "a.html", "a page")


def test_a_name_that_no_file_can_have():
    """It is a reason like those of the system, without a line of noise."""
    for name in ("a\0b", "a\ud800b"):
        with (
            pytest.raises(SettingError, match="no path has such characters"),
            writing(name),
        ):
            pytest.fail("it was opened")


@pytest.mark.parametrize("name", ["robot.csv", "robot.txt", "robot"])
def test_yaml_is_not_written_into_other_files(result, tmp_path, name):
    """A sidecar under the name of a table would be read as a table."""
    from dyn_core.identification.identified_files import write_robot

    for write in (
        lambda path: write_robot(path, result.model),
        lambda path: write_sidecar(path, result.model, "a test"),
    ):
        with pytest.raises(SettingError, match=r"ending with.*\.yaml$"):
            write(tmp_path / name)
    if name != "robot.csv":
        with pytest.raises(SettingError, match=r"ending with \.csv"):
            write_table(tmp_path / name, result)
    assert not list(tmp_path.iterdir())


def test_journals_that_cannot_be_written(tmp_path):
    """A folder in their place, and a full disk."""
    path = tmp_path / "a.journal"
    path.mkdir()
    for begin in (
        lambda: Journal(path, {}).begin(),
        lambda: Journal(path, {}).resume({}),
    ):
        with pytest.raises(
            BatchError, match=r"a\.journal' cannot be written: .*valid:"
        ):
            begin()
    path.rmdir()
    journal = Journal(path, {})
    journal.begin()
    journal.close()
    with open("/dev/full", "wb", buffering=0) as full:
        journal._file = full
        with pytest.raises(BatchError, match="No space left.*free space"):
            journal.add(0, (((), None, ())))
