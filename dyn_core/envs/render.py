"""Pictures of tasks without a window, and videos of episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.tasks.task import Task

try:
    from matplotlib import animation
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as error:
    raise UnsupportedError(
        "pictures need matplotlib, which is not installed: pip install 'dyn_ros[plot]'"
    ) from error

WIDTH, HEIGHT, DPI = 600, 400, 100  # pixels, pixels per inch
INK, EARTH, JOINT = "#26547c", "#8d99ae", "#ef476f"


class Picture:
    """A drawing of a task's states: rods, joints, cart, track or ground.

    Args:
        task: Task.

    Source: WAW-15.5.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._axes.axhline(0.0, color=EARTH, linewidth=1, zorder=0)
        (self._rods,) = self._axes.plot([], [], color=INK, linewidth=5,
                                        solid_capstyle="round")  # fmt: skip
        (self._joints,) = self._axes.plot([], [], "o", color=JOINT, markersize=6)
        self._marks = self._axes.vlines(
            np.arange(-50.0, 51.0), -0.03, 0.03, color=EARTH, linewidth=1, zorder=0
        )
        (self._cart,) = self._axes.plot(
            [], [], "s", color=EARTH, markersize=22, zorder=1
        )

    def place(self, state: np.ndarray) -> None:
        """Place all shapes by a state."""
        points = self.task.points(state)
        self._rods.set_data(*points.T)
        self._joints.set_data(*points.T)
        if self.task.cart:
            self._cart.set_data(*points[:1].T)
        x0, x1, y0, y1 = self.task.view(points)
        scale = max((x1 - x0) / WIDTH, (y1 - y0) / HEIGHT) / 2  # metres by half pixel
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        self._axes.set_xlim(x - WIDTH * scale, x + WIDTH * scale)
        self._axes.set_ylim(y - HEIGHT * scale, y + HEIGHT * scale)

    def draw(self, state: np.ndarray) -> np.ndarray:
        """Return the picture of a state, (400, 600, 3) uint8."""
        self.place(state)
        self.canvas.draw()
        return np.array(self.canvas.buffer_rgba(), np.uint8)[..., :3].copy()


def record(
    env: Any,
    policy: Callable[[np.ndarray], Any],
    path: str | Path,
    seed: int | None = None,
    steps: int | None = None,
    fps: float = 25.0,
) -> float:
    """Write a video of one episode; no window is opened. Give the sum of its rewards.

    Args:
        env: PlanarEnv, or what wraps one.
        policy: Gives the action for an observation.
        path: File; .gif works with what the extra `plot` brings, .mp4 needs ffmpeg.
        seed: Of the reset.
        steps: Most steps; None: to the end of the episode.
        fps: Pictures per second; time runs as it does in the task, as near as whole
            steps allow.

    Raises:
        SettingError: A file of another kind, or fps that makes no sense.
        UnsupportedError: ffmpeg is not there.

    Source: WAW-15.5.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise SettingError(f"fps must be finite and > 0, got {fps}", "fps")
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise SettingError(f"steps is {steps!r}; valid: 1 or more, or None", "steps")
    bare = env.unwrapped
    every = max(1, round(1.0 / (fps * bare.task.interval)))
    writer = _writer(Path(path), 1.0 / (every * bare.task.interval))
    picture, total, count = Picture(bare.task), 0.0, 0
    seen, _ = env.reset(seed=seed)
    with writer.saving(picture.figure, str(path), DPI):
        over = False
        while not over and (steps is None or count < steps):
            if count % every == 0:
                picture.place(bare.get_state())
                writer.grab_frame()
            seen, reward, terminated, truncated, _ = env.step(policy(seen))
            total, count, over = (
                total + float(reward),
                count + 1,
                terminated or truncated,
            )
        picture.place(bare.get_state())
        writer.grab_frame()
    return total


def _writer(path: Path, fps: float) -> Any:
    """Return what writes a file of this kind."""
    kind = path.suffix.lower()
    if kind == ".gif":
        return animation.PillowWriter(fps=fps)  # type: ignore[arg-type]
    if kind != ".mp4":
        raise SettingError(
            f"'{path}': no videos of this kind; valid: .gif, .mp4", "path"
        )
    if not animation.FFMpegWriter.isAvailable():
        raise UnsupportedError(f"'{path}': .mp4 needs ffmpeg on the PATH; valid: .gif")
    return animation.FFMpegWriter(fps=fps)  # type: ignore[arg-type]
