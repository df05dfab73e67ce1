"""Pictures and films of scenes without a browser; equal runs give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.recordings.progress import RowProgress
from dyn_core.validation import writing
from dyn_core.validation.file_names import check_file_name
from dyn_core.view import colors, solids
from dyn_core.view.painter import Drawn, Painter, simplified
from dyn_core.view.replay import Replay, arrow_ends
from dyn_core.view.scene import Camera, VisualScene

COARSE = 0.004  # cell size of simplified surfaces, relative to the scene
DETAILED = 2000  # maximum triangles of a part that is not simplified
COLORS = 128  # colours of a GIF
MOST_PICTURES = 2000
FPS = 20.0  # frames per second of a film
MOST_FPS = 50.0  # of a GIF


class Picture3D:
    """A renderer of the states of a scene; `width` and `height` are in pixels.

    `camera` None: a view of the whole scene in its initial state.
    """

    def __init__(
        self,
        scene: VisualScene,
        camera: Camera | None = None,
        width: int = 640,
        height: int = 480,
    ) -> None:
        self.scene = scene
        self.camera = camera or scene.camera(scene.poses(scene.start())[None])
        self._painter = Painter(self.camera, width, height)
        cell = COARSE * self.camera.size
        self._surfaces = [
            (part, simplified(part.triangles, cell))
            if len(part.triangles.faces) > DETAILED
            else (part, part.triangles)
            for part in scene.parts()
        ]

    def draw(
        self,
        state: np.ndarray,
        shares: np.ndarray | None = None,
        forces: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the picture of a state, (height, width, 3) uint8, RGB.

        `shares` are joint forces relative to their maxima, (nv,), None: colours of the
        parts. `forces` (k, 2, 3) are pairs of a point [m] and the force [N] at it.
        """
        poses = self.scene.poses(state)
        shown = colors_of_bodies(self.scene, shares)
        surfaces = [
            Drawn(surface.moved(poses[part.body]), shown.get(part.body, part.color))
            for part, surface in self._surfaces
        ]
        for start, end in arrow_ends(self.scene, self.camera.size, forces):
            arrow = solids.arrow(start, end, 0.006 * self.camera.size)
            surfaces.append(Drawn(arrow, colors.FORCE))
        return self._painter.paint(surfaces)


def colors_of_bodies(
    scene: VisualScene, shares: np.ndarray | None
) -> dict[int, colors.Color]:
    """Return the colour of each body with a joint, by its joint force, by body index.

    `shares` are joint forces relative to their maxima, (nv,); None: no colours. Of a
    joint with several coordinates the largest absolute value counts. NaN is ignored: a
    body with NaN only is left out.
    """
    largest: dict[int, float] = {}
    for body, share in zip(scene.joint_bodies, () if shares is None else shares,
                           strict=False):  # fmt: skip
        if abs(share) >= abs(largest.get(body, 0.0)):
            largest[body] = float(share)
    return {body: colors.torque_color(share) for body, share in largest.items()}


def frame_times(duration: float, fps: float, speed: float) -> np.ndarray:
    """Return the times of a run's frames, 0, speed / fps, ... up to `duration` [s]."""
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0):
            raise SettingError(f"{name} {value}; valid: finite and > 0", name)
    count = int(np.floor(duration * fps / speed + 1e-9)) + 1  # despite rounding
    if count > MOST_PICTURES:
        raise SettingError(
            f"a film of {count} pictures; valid: up to {MOST_PICTURES}: a lower fps or"
            " a higher speed",
            "fps",
        )
    return np.arange(count) * speed / fps


def pictures(
    replay: Replay,
    times: np.ndarray,
    torque_colors: bool = False,
    width: int = 640,
    height: int = 480,
) -> Iterator[np.ndarray]:
    """Yield the pictures (height, width, 3) uint8 of a run at some times [s].

    The camera sees the scene at up to 40 of these times, and does not move. Before and
    after the run its first and last state are drawn.
    """
    states = np.array([replay.state(float(t)) for t in times])
    chosen = states[np.unique(np.linspace(0, len(states) - 1, 40).astype(int))]
    camera = replay.scene.camera(replay.scene.poses(chosen))
    picture = Picture3D(replay.scene, camera, width, height)
    for t, state in zip(times, states, strict=True):
        shares = replay.shares(float(t)) if torque_colors else None
        yield picture.draw(state, shares, replay.arrows(float(t)))


def write_film(
    replay: Replay,
    path: str | Path,
    fps: float = FPS,
    speed: float = 1.0,
    torque_colors: bool = False,
) -> int:
    """Write a run as an animated GIF; return the number of pictures.

    The GIF repeats without end. After two seconds a line on standard error, if that is
    a terminal, shows the progress.

    Args:
        replay: Run.
        path: File that ends with .gif or .GIF; an existing file is replaced.
        fps: Frames per second, at most 50; larger values are reduced to it. The time
            of a frame is rounded to ms; a GIF itself has steps of 10 ms.
        speed: Speed of the film relative to real time.
        torque_colors: Whether bodies have the colours of their joint forces; no effect
            if these are not known.

    Raises:
        SettingError: The path has another ending, its folder does not exist, it is a
            folder or cannot be written; fps or speed is not valid; or there would be
            more than 2000 pictures.
        UnsupportedError: Pillow is not installed.
    """
    check_film(path)
    times = frame_times(replay.duration, min(fps, MOST_FPS), speed)
    image = pillow()
    frames, bar = [], RowProgress(len(times), True, "pictures")
    for picture in pictures(replay, times, torque_colors):
        frames.append(image.fromarray(picture))
        bar.show(len(frames))
    bar.end()
    palette = frames[len(frames) // 2].quantize(COLORS, dither=image.Dither.NONE)
    flat = [x.quantize(palette=palette, dither=image.Dither.NONE) for x in frames]
    with writing(path, "film"):
        flat[0].save(
            path,
            save_all=True,
            append_images=flat[1:],
            duration=round(1000 / min(fps, MOST_FPS)),
            loop=0,
            optimize=False,
        )
    return len(frames)


def write_picture(scene: VisualScene, path: str | Path, state: np.ndarray) -> None:
    """Write the picture of a state as PNG, 640 x 480; an existing file is replaced."""
    file = Path(path)
    if file.suffix.lower() != ".png":
        message = f"picture '{path}'; valid: a file that ends with .png"
        raise SettingError(message, "picture")
    picture = pillow().fromarray(Picture3D(scene).draw(state))
    with writing(file, "picture"):
        picture.save(file, optimize=True)


def check_film(path: str | Path) -> None:
    """Check the path of a film, and Pillow, before time is spent on it."""
    check_file_name(path, [".gif", ".GIF"], "film", "film")
    pillow()


def pillow() -> Any:
    """Return the module Image of Pillow; UnsupportedError says how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError(
            f"films need Pillow ({error}): pip install 'dyn_ros[view]'"
        ) from error
    return Image
