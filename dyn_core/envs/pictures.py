"""Line drawings of tasks without a window, and videos. Needs the extra `plot`.

They take milliseconds, where the shaded pictures of dyn_core.view take a tenth of a
second, and show links that have no shapes. A state has task.ns numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model.shapes import Box, PlacedShape
from dyn_core.plots.figures import DPI, blank_figure, film_writer, pixels
from dyn_core.solving.solver import check_function
from dyn_core.tasks import RobotTask, Task
from dyn_core.validation import Whole, shown


def record(
    env: Any,
    policy: Callable[[np.ndarray], Any],
    path: str | Path,
    seed: int | None = None,
    steps: int | None = None,
    fps: float = 25.0,
) -> float:
    """Write a video of one episode and return the sum of its rewards.

    The environment is reset first. There is a picture before every k-th step and one at
    the end. In an environment with divergence "terminate", a motion that diverges ends
    the episode, and the last picture is of the last valid state.

    Args:
        env: TaskEnv, or a wrapper of one.
        policy: Function from an observation to an action.
        path: File, .gif or .mp4; an existing one is replaced.
        seed: Seed of the reset; None: random numbers continue.
        steps: Maximum number of steps; None: to the end of the episode.
        fps: Wanted pictures per second; the actual rate is 1 / (k task.interval), in
            real time, with k = 1 / (fps task.interval) rounded, at least 1.

    Raises:
        SettingError: `env` is a vector of environments, the file is of another kind,
            policy is no function, or fps or steps is invalid.
        FileNotFoundError: The folder of the file does not exist.
        UnsupportedError: matplotlib is not installed, or .mp4 is wanted, and ffmpeg is
            not.
        NonFiniteError: The motion diverged in an environment with divergence "raise".
            Other errors of the environment, such as of an invalid action, and of the
            policy pass through.

    Source: WAW-15.5.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise SettingError(f"fps must be finite and > 0, got {fps}", "fps")
    valid = "a function of the observation, as lambda seen: model.predict(seen)[0]"
    check_function("policy", policy, valid)
    if steps is not None and not Whole(1).takes(steps):
        raise SettingError(f"steps is {steps!r}; valid: 1 or more, or None", "steps")
    bare = env.unwrapped
    if not hasattr(bare, "task") or hasattr(bare, "num_envs"):
        valid = "one environment, such as gymnasium.make(...) or TaskEnv"
        raise SettingError(f"env is {shown(env)}; valid: {valid}", "env")
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


WIDTH, HEIGHT = 600, 400  # pixels
INK, EARTH, JOINT = "#26547c", "#8d99ae", "#ef476f"


class TaskPicture(ABC):
    """A drawing, 600 x 400 pixels, `flat` or in 3D: base of Picture, RobotPicture."""

    def __init__(self, flat: bool) -> None:
        self.figure, self._axes = blank_figure(WIDTH, HEIGHT, flat)

    @abstractmethod
    def place(self, state: np.ndarray) -> None:
        """Move all shapes of the figure to a state, (ns,), without drawing it."""

    def draw(self, state: np.ndarray) -> np.ndarray:
        """Draw a state, (ns,); return a new RGB array (400, 600, 3) uint8."""
        self.place(state)
        return pixels(self.figure)


def picture_of(task: Task | RobotTask) -> TaskPicture:
    """Return a new Picture, or RobotPicture; UnsupportedError without matplotlib."""
    return RobotPicture(task) if isinstance(task, RobotTask) else Picture(task)


class Picture(TaskPicture):
    """A drawing of a planar task's states: rods, joints, cart, track or ground.

    Args:
        task: Task of a planar system.

    Attributes:
        task: The task.
        figure: matplotlib figure of 600 x 400 pixels.

    Raises:
        UnsupportedError: matplotlib is not installed.

    Source: WAW-15.5.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        super().__init__(flat=True)
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
        """Move the shapes and view of the figure to a state, (ns,); draw nothing."""
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


class RobotPicture(TaskPicture):
    """A drawing of a robot: lines from link to link, edges of boxes, the floor.

    Lines join the origins of the task's links with their nearest ancestors among them;
    dots mark the origins. Of the shapes only boxes on the task's links are drawn.

    Args:
        task: Task of a robot.

    Attributes:
        task: The task.
        figure: matplotlib figure of 600 x 400 pixels.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """

    def __init__(self, task: RobotTask) -> None:
        self.task = task
        super().__init__(flat=False)
        self._bones = bones(task)
        self._boxes = [
            shape
            for shape in task.model.shapes
            if isinstance(shape.shape, Box) and shape.link in task.links
        ]
        self._lines = [self._line(color=INK, linewidth=4) for _ in self._bones]
        self._dots = self._line(color=JOINT, marker="o", linestyle="", markersize=4)
        self._edges = [self._line(color=JOINT, linewidth=1.5) for _ in self._boxes]
        self._grid = [self._line(color=EARTH, linewidth=0.6) for _ in range(18)]

    def _line(self, **look: Any) -> Any:
        """Return a new matplotlib line of the figure, without points."""
        return self._axes.plot([], [], [], **look)[0]

    def place(self, state: np.ndarray) -> None:
        """Move all lines and the view of the figure to a state, (ns,); draw nothing."""
        rows = self.task.rows(np.asarray(state, float)[None])
        places = rows.poses[0, :, :3, 3]
        for line, (parent, child) in zip(self._lines, self._bones, strict=True):
            line.set_data_3d(*places[[parent, child]].T)
        self._dots.set_data_3d(*places.T)
        for line, shape in zip(self._edges, self._boxes, strict=True):
            pose = rows.poses[0, self.task.links.index(shape.link)]
            line.set_data_3d(*box_edges(shape, pose, self.task).T)
        self._look(places)

    def _look(self, places: np.ndarray) -> None:
        """Center and scale the view to show points [m]; draw the floor at z = 0."""
        if not len(places):
            places = np.zeros((1, 3))
        middle = (places.min(axis=0) + places.max(axis=0)) / 2
        half = max(0.4, 0.6 * float(np.ptp(places, axis=0).max()))
        limits = zip("xyz", middle, strict=True)
        for axis, x in limits:
            getattr(self._axes, f"set_{axis}lim")(x - half, x + half)
        step = half / 2
        corner = np.floor(middle[:2] / step) * step
        ticks = np.arange(-4, 5) * step
        for k, t in enumerate(ticks):
            ends, level = np.array([-4, 4]) * step, np.zeros(2)
            self._grid[2 * k].set_data_3d(
                corner[0] + ends, np.full(2, corner[1] + t), level
            )
            self._grid[2 * k + 1].set_data_3d(
                np.full(2, corner[0] + t), corner[1] + ends, level
            )


def bones(task: RobotTask) -> list[tuple[int, int]]:
    """Return the pairs (ancestor, link) to join by a line, as indices in task.links.

    The ancestor is the first link of task.links on the same body, else on the nearest
    body towards the base that has one; only links before it in task.links count.
    """
    model = task.model
    first: dict[int, int] = {}
    pairs = []
    for k, link in enumerate(task.links):
        body = model.body_of(link)
        other = body if body in first else (model.parent[body] if body else 0)
        while other and other not in first:
            other = model.parent[other]
        if other in first:
            pairs.append((first[other], k))
        first.setdefault(body, k)
    return pairs


def box_edges(shape: PlacedShape, pose: np.ndarray, task: RobotTask) -> np.ndarray:
    """Return a polyline along all edges of a box in the world, (16, 3) [m]."""
    assert isinstance(shape.shape, Box)
    half = np.array(shape.shape.size) / 2
    walk = "--- +-- ++- -+- --- --+ +-+ +-- +-+ +++ ++- +++ -++ -+- -++ --+".split()
    corners = np.array([[1.0 if s == "+" else -1.0 for s in w] for w in walk]) * half
    E, r = (np.array(x, float) for x in (shape.X.E.rows, list(shape.X.r)))
    in_body = corners @ E + r
    frame = task.model.frame(shape.link).X
    F, p = (np.array(x, float) for x in (frame.E.rows, list(frame.r)))
    in_link = (in_body - p) @ F.T
    placed: np.ndarray = in_link @ pose[:3, :3].T + pose[:3, 3]
    return placed
