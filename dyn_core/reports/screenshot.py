"""Pictures of HTML files by a headless browser."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.plots.figures import new_figure
from dyn_core.validation.file_names import check_file_name, file_kind

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
TALLEST = 30_000  # maximum height of a page [pixels]
_SECONDS = 120  # timeout of the browser [s]
_VIEWER = "__VISER_EMBED_CONFIG__"  # is in pages of the viewer, in no others
_MARGIN = 24  # margin below the content [pixels]


def screenshot(html: str | Path, picture: str | Path, width: int = 1100) -> None:
    """Write a picture of a whole HTML page; an existing file is replaced.

    The page is rendered up to a height of 30 000 pixels and cropped below its content.
    It is for reports and pages of `dyn doctor`: a page of the viewer fills any window,
    and its picture would be empty.

    Args:
        html: File of the page.
        picture: File that ends with .png.
        width: Width of the window [pixels].

    Raises:
        UnsupportedError: No program chromium, chromium-browser, google-chrome, chrome
            or msedge is on the PATH, or matplotlib is not installed.
        SettingError: The page does not exist, is one of the viewer or blank, the path
            of the picture is not valid, or the browser fails or takes more than 120 s.
        OSError: The page cannot be read, or the picture not be written.
    """
    page, output = Path(html).resolve(), Path(picture)
    if file_kind(page, "html") != "file":
        raise SettingError(f"{html}: no such file", "html")
    if _VIEWER in page.read_text(encoding="utf-8", errors="replace"):
        raise SettingError(
            f"{html}: a page of the viewer fills any window, and its picture would be"
            " empty; valid: a page of dyn report or dyn doctor; dyn view --film draws"
            " a robot or a run without a browser",
            "html",
        )
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UnsupportedError(
            "a picture of a page needs a browser; valid: Chromium or Chrome, as one of"
            f" {', '.join(BROWSERS)}"
        )
    check_file_name(output, [".png"], "screenshot")
    new_figure()  # raises without matplotlib, which crops the picture
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "page.png"
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", f"--window-size={width},{TALLEST}",
            f"--screenshot={taken}", page.as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SettingError(f"{browser}: {error}", "screenshot") from error
        if not taken.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise SettingError(f"{browser}: no picture; {' '.join(last)}", "screenshot")
        if not _crop(taken, output):
            raise SettingError(f"{browser}: the page {html} is blank", "screenshot")


def _crop(taken: Path, output: Path) -> bool:
    """Write a picture without the rows of background at its end, but for a margin.

    Its colour is that of the last pixel. Return whether there is anything else; only
    then the picture is written.
    """
    from matplotlib import image

    pixels = image.imread(taken)
    marked = np.flatnonzero((pixels != pixels[-1, -1]).any(axis=(1, 2)))
    if len(marked):
        image.imsave(output, pixels[: int(marked[-1]) + _MARGIN])
    return len(marked) > 0
