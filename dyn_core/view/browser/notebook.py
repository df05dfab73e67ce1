"""A view as one HTML page that needs no server: for notebooks and reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.plots.pages import SUFFIXES, write_page
from dyn_core.validation.file_names import check_file_name
from dyn_core.validation.quoting import html_text
from dyn_core.view.browser.server import HOST, start_server, stop_server, viser_module
from dyn_core.view.browser.stage import Stage
from dyn_core.view.film import (
    MOST_PICTURES,
    frame_times,
    write_film,
    write_picture,
)
from dyn_core.view.replay import Replay
from dyn_core.view.scene import VisualScene

FPS = 25.0


class NotebookView:
    """A scene, or a run of it, that a notebook displays; its page is made on first use.

    The page plays `replay` in a loop; None: a still picture. `height` is in pixels.
    """

    def __init__(
        self, scene: VisualScene, replay: Replay | None = None, height: int = 480
    ) -> None:
        viser_module()
        self.scene, self.replay, self.height = scene, replay, height
        self._page = ""

    def __repr__(self) -> str:
        run = "" if self.replay is None else f", {self.replay.duration:g} s"
        endings = "save('FILE.html'), .gif or .png keeps it"
        return f"<view of '{self.scene.name}'{run}; {endings}>"

    def _repr_html_(self) -> str:
        """Return an iframe with the page as HTML, for display in a notebook."""
        page = html_text(self.page())
        return (
            f'<iframe srcdoc="{page}" width="100%" height="{self.height}"'
            ' style="border:1px solid #ddd"></iframe>'
        )

    def page(self) -> str:
        """Return the HTML page, made once, which a browser shows without a server."""
        if not self._page:
            self._page = _page(self.scene, self.replay)
        return self._page

    def save(self, path: str | Path) -> None:
        """Write the view to a file, .html or .htm (a page), .gif (a film) or .png.

        An existing file is replaced. A .png shows the first state.
        """
        check_file_name(path, (*SUFFIXES, ".gif", ".png"), "view", "view")
        if Path(path).suffix == ".gif":
            if self.replay is None:
                text = "a robot that stands is no film; valid: show(model, q, t)"
                raise SettingError(text, "view")
            write_film(self.replay, path)
        elif Path(path).suffix == ".png":
            first = (
                self.scene.start() if self.replay is None else self.replay.state(0.0)
            )
            write_picture(self.scene, path, first)
        else:
            write_page(path, self.page())


# At each repeat viser's player fades out until an environment map is read.
_IN_SIGHT = "<style>canvas { opacity: 1 !important }</style>"


def _page(scene: VisualScene, replay: Replay | None) -> str:
    """Return the HTML page, recorded from a temporary server on this machine.

    Runs of 80 s or more are refused (MOST_PICTURES at FPS per second).
    """
    server = start_server(HOST, 0, scene.name)
    try:
        camera, times = None, np.zeros(1)
        if replay is not None:
            if replay.duration >= MOST_PICTURES / FPS:
                raise SettingError(
                    f"a run of {replay.duration:g} s; a page shows less than"
                    f" {MOST_PICTURES / FPS:g} s; valid: some of its rows, such as"
                    " states[:k] and t[:k]",
                    "states",
                )
            times = frame_times(replay.duration, FPS, 1.0)
            chosen = np.array(
                [replay.state(float(t)) for t in times[:: len(times) // 40 + 1]]
            )
            camera = scene.camera(scene.poses(chosen))
        stage = Stage(server, scene, camera)
        recorder = server.get_scene_serializer()
        for t in times:
            if replay is not None:
                time = float(t)
                stage.place(replay.poses(time), None, replay.arrows(time))
                recorder.insert_sleep(1.0 / FPS)
        return str(recorder.as_html()).replace("</head>", f"{_IN_SIGHT}</head>", 1)
    finally:
        stop_server(server)
