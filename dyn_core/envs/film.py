"""Videos of episodes; no window is opened. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.envs.pictures import picture_of
from dyn_core.envs.render import DPI, animation
from dyn_core.errors import SettingError, UnsupportedError


def record(
    env: Any,
    policy: Callable[[np.ndarray], Any],
    path: str | Path,
    seed: int | None = None,
    steps: int | None = None,
    fps: float = 25.0,
) -> float:
    """Write a video of one episode and return the sum of its rewards.

    It needs the extra `plot`; without it the import raises UnsupportedError.

    Args:
        env: TaskEnv, or a wrapper of one.
        policy: Function from an observation to an action.
        path: File, .gif or .mp4; an existing one is replaced.
        seed: Seed of the reset.
        steps: Maximum number of steps; None: to the end of the episode.
        fps: Wanted pictures per second; the actual rate shows the task in real time
            with a picture before every k-th step and one at the end.

    Raises:
        SettingError: The file is of another kind, or fps or steps is invalid.
        UnsupportedError: .mp4 is wanted, and ffmpeg is not installed.

    Source: WAW-15.5.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise SettingError(f"fps must be finite and > 0, got {fps}", "fps")
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise SettingError(f"steps is {steps!r}; valid: 1 or more, or None", "steps")
    bare = env.unwrapped
    every = max(1, round(1.0 / (fps * bare.task.interval)))
    writer = _writer(Path(path), 1.0 / (every * bare.task.interval))
    picture, total, count = picture_of(bare.task), 0.0, 0
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
    """Return the matplotlib writer for a .gif or .mp4 file; raise as `record` does."""
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
