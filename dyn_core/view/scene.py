"""VisualScene: what is shown of a robot or a planar system, as numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dyn_core.view.colors import Color
from dyn_core.view.solids import Triangles

VISUAL, COLLISION, INERTIA = ROLES = ("visual", "collision", "inertia")


@dataclass(frozen=True, eq=False)
class Part:
    """A coloured surface that moves with a body.

    Attributes:
        name: Unique in the scene.
        body: Number of the body; 0 stands still.
        triangles: Surface in the frame of the body [m].
        color: Red, green, blue, 0..255.
        opacity: 0..1.
        flat: Whether each triangle is even, rather than part of a round surface.
    """

    name: str
    body: int
    triangles: Triangles
    color: Color
    opacity: float = 1.0
    flat: bool = False


class Slider(NamedTuple):
    """A number that a person moves.

    Attributes:
        name: Label.
        low, high: Its range.
        start: Where it begins.
        unit: m or rad.
    """

    name: str
    low: float
    high: float
    start: float
    unit: str


class Camera(NamedTuple):
    """Where a scene is looked at from, z upwards.

    Attributes:
        place, target: Points, (3,) [m].
        size: Length of what is shown, of its diagonal [m].
        floor: Height of the ground [m].
    """

    place: np.ndarray
    target: np.ndarray
    size: float
    floor: float


class VisualScene(ABC):
    """A system of bodies with parts; a state is a flat array that `poses` takes.

    Attributes:
        name: What is shown.
        bodies: Names of the bodies; 0 stands still.
        sliders: Numbers that a person moves.
        joints: Names of the joints with a force, by entry of tau.
        joint_bodies: By entry of tau: the body that shows it.
        effort_limit: Largest force by entry of tau; 0 where none is known [N·m | N].
        notes: What is odd about the picture, in sentences; grows as parts are made.
        sketch: What stands for the visuals until they are made; empty where they are
            there at once.
        toward: Direction of the camera as seen from what is shown, 3.
    """

    joints: Sequence[str] = ()
    joint_bodies: Sequence[int] = ()
    toward: Sequence[float] = (1.0, -0.75, 0.45)

    def __init__(self, name: str, bodies: Sequence[str]) -> None:
        self.name, self.bodies = name, tuple(bodies)
        self.sliders: tuple[Slider, ...] = ()
        self.effort_limit = np.zeros(0)
        self.notes: list[str] = []
        self.sketch: tuple[Part, ...] = ()
        self._parts: dict[str, tuple[Part, ...]] = {}

    def parts(self, role: str = VISUAL) -> tuple[Part, ...]:
        """Return the surfaces of a role, made at the first call."""
        if role not in self._parts:
            self._parts[role] = tuple(self._make(role))
        return self._parts[role]

    @abstractmethod
    def _make(self, role: str) -> Sequence[Part]:
        """Return the surfaces of a role."""

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return the state to begin with, (n,)."""

    @abstractmethod
    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return the state of the sliders' values, (n,).

        Args:
            values: By slider.
            moved: The slider that was moved last, which closed loops follow.

        Raises:
            InfeasibleError: Loops cannot be closed there.
        """

    @abstractmethod
    def values(self, state: np.ndarray) -> np.ndarray:
        """Return where the sliders stand in a state; they are moved there."""

    @abstractmethod
    def poses(self, states: np.ndarray) -> np.ndarray:
        """Return the pose of each body in the world, (..., bodies, 4, 4).

        Args:
            states: (..., n).
        """

    @abstractmethod
    def between(self, a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
        """Return the state at a share of the way from a to b."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return a state drawn within the ranges of the sliders."""
        return self.state([rng.uniform(x.low, x.high) for x in self.sliders])

    def mass_centre(self, poses: np.ndarray) -> np.ndarray | None:
        """Return the centre of mass in the world, (3,) [m]; None where unknown."""
        return None

    def camera(
        self, several: np.ndarray, parts: Sequence[Part] | None = None
    ) -> Camera:
        """Return a view of parts, the visuals by default.

        Args:
            several: Poses, (n, bodies, 4, 4).
            parts: What is to be seen; None: all visual parts.
        """
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for part in self.parts() if parts is None else parts:
            if self.is_ground(part):
                continue
            corners = np.unique(
                [
                    part.triangles.vertices.min(axis=0, initial=np.inf),
                    part.triangles.vertices.max(axis=0, initial=-np.inf),
                ],
                axis=0,
            )
            ends = np.array(np.meshgrid(*corners.T)).reshape(3, -1).T
            poses = several[:, part.body]
            points = np.einsum("nij,kj->nki", poses[:, :3, :3], ends)
            points = (points + poses[:, None, :3, 3]).reshape(-1, 3)
            low = np.minimum(low, points.min(axis=0))
            high = np.maximum(high, points.max(axis=0))
        if not np.isfinite([low, high]).all():
            low, high = np.full(3, -0.5), np.full(3, 0.5)
        size = max(float(np.linalg.norm(high - low)), 1e-3)
        target, toward = (low + high) / 2, np.asarray(self.toward, float)
        place = target + 1.6 * size * toward / np.linalg.norm(toward)
        return Camera(place, target, size, self._floor(float(low[2]), size))

    def is_ground(self, part: Part) -> bool:
        """Return whether a part is not to be looked at, but stood on."""
        return False

    def _floor(self, lowest: float, size: float) -> float:
        """Return the height of the grid under what is shown [m]."""
        return 0.0 if lowest > -0.02 * size else lowest


def still(count: int) -> np.ndarray:
    """Return poses that leave bodies where they are, (count, 4, 4)."""
    return np.tile(np.eye(4), (count, 1, 1))
