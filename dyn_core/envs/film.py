"""Videos of episodes; no window is opened. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.envs.pictures import picture_of
from dyn_core.errors import SettingError
from dyn_core.plots.figures import DPI, film_writer


def record(
    env: Any,
    policy: Callable[[np.ndarray], Any],
    path: str | Path,
    seed: int | None = None,
    steps: int | None = None,
    fps: float = 25.0,
) -> float:
    """Write a video of one episode and return the sum of its rewards.

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
        UnsupportedError: matplotlib is not installed, or .mp4 is wanted, and ffmpeg is
            not.

    Source: WAW-15.5.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise SettingError(f"fps must be finite and > 0, got {fps}", "fps")
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise SettingError(f"steps is {steps!r}; valid: 1 or more, or None", "steps")
    bare = env.unwrapped
    every = max(1, round(1.0 / (fps * bare.task.interval)))
    writer = film_writer(path, 1.0 / (every * bare.task.interval))
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
