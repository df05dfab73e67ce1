"""Names of files to be written, and paths in folders that may not be searched."""

import errno
import io
import os
import re
from pathlib import Path

import pytest

import dyn_core as dyn
from dyn_core.export.folder import write_files
from dyn_core.identification.identified_files import check_file as check_table
from dyn_core.plots.pages import check_page
from dyn_core.recordings.files import check_output, is_recording, read_motion
from dyn_core.recordings.runs import named_robot, saved_robot
from dyn_core.validation.file_names import check_file_name
from dyn_core.view.command import is_chain


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a.pdf", "valid: a file that ends with .html, .htm"), ("a.HTML", "ends with"),
     ("gone/a.html", "there is no such folder"), ("there.html", "that is a folder")],
)  # fmt: skip
def test_a_name_that_cannot_be_written_is_refused(tmp_path, name, reason):
    """By ending, folder, and what has the name already; nothing is written."""
    (tmp_path / "there.html").mkdir()
    path = str(tmp_path / name)
    with pytest.raises(dyn.SettingError, match=re.escape(f"--out {path!r}; ")) as error:
        check_file_name(path, (".html", ".htm"), "out")
    assert reason in str(error.value)
    with pytest.raises(dyn.SettingError):
        check_page(path)
    with pytest.raises(dyn.SettingError):
        check_output(path)


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """A folder with a robot, which the system lets nobody search, not even root."""
    folder, look, opened = tmp_path / "closed", os.stat, io.open
    (folder / "bag").mkdir(parents=True)
    (folder / "robot.urdf").write_text(dyn.robots.path("two_link").read_text())

    def refused(function):
        def checked(path, *args, **kwargs):
            if not isinstance(path, int) and folder in Path(path).parents:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *args, **kwargs)

        return checked

    monkeypatch.setattr(os, "stat", refused(look))
    monkeypatch.setattr(io, "open", refused(opened))
    return folder


@pytest.mark.parametrize(
    "use",
    [
        lambda closed: check_file_name(closed / "a.html", (".html",), "out"),
        lambda closed: read_motion(closed / "run.npz"),
        lambda closed: read_motion(closed / "bag"),
        lambda closed: is_recording(str(closed / "bag")),
        lambda closed: is_chain(str(closed / "chain.yaml")),
        lambda closed: saved_robot(str(closed / "run.npz")),
        lambda closed: check_table(closed / "sub" / "table.csv", (".csv",)),
        lambda closed: write_files(closed / "out", {"a.c": b""}, "manifest.json"),
        lambda closed: dyn.load(closed / "robot.urdf"),
        lambda closed: dyn.load(str(closed / "robot.urdf")),
    ],
)
def test_a_closed_folder_is_named_in_the_words_of_the_system(closed, use):
    """Nothing in it is called missing, and no PermissionError passes through."""
    with pytest.raises(dyn.DynError, match=r"closed.*: Permission denied"):
        use(closed)


def test_a_run_of_a_robot_in_a_closed_folder_is_read(closed):
    """Its robot is unknown, as one that is gone."""
    assert named_robot({"source": str(closed / "robot.urdf")}) == ("", "")
