"""Names of files to be written."""

import re

import pytest

import dyn_core as dyn
from dyn_core.plots.pages import check_page
from dyn_core.recordings.files import check_output
from dyn_core.validation.file_names import check_file_name


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
