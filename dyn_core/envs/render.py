"""Pictures of planar tasks without a window. Needs the extra `plot`."""

from __future__ import annotations

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.tasks.task import Task

try:
    from matplotlib import animation as animation
    from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvasAgg
    from matplotlib.figure import Figure as Figure
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

    Attributes:
        task: The task.
        figure: matplotlib figure of 600 x 400 pixels.

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
        """Move all shapes to the positions of a state, (ns,)."""
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
