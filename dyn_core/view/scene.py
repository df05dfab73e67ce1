"""VisualScene: the numerical description of a picture of a robot or planar system."""

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
        name: Name, unique in the scene.
        body: Index of the body; body 0 is fixed.
        triangles: Surface in the frame of the body [m].
        color: Red, green, blue, 0..255.
        opacity: 0..1.
        flat: Whether triangles are drawn as flat faces, not as parts of a smooth
            surface.
    """

    name: str
    body: int
    triangles: Triangles
    color: Color
    opacity: float = 1.0
    flat: bool = False


class Slider(NamedTuple):
    """A coordinate that a person can change, from low to high, in m or rad (`unit`)."""

    name: str
    low: float
    high: float
    start: float
    unit: str


class Camera(NamedTuple):
    """A camera with z upwards: place, target (3,), scene's size, floor's height [m]."""

    place: np.ndarray
    target: np.ndarray
    size: float
    floor: float


class VisualScene(ABC):
    """A system of bodies with surfaces; a state is a flat array of n numbers.

    Attributes:
        bodies: Names of the bodies; body 0 is fixed.
        joints, joint_bodies: For each entry of tau, the name of the joint and the index
            of the body that shows it.
        effort_limit: Limit of each entry of tau; 0 if unknown [N·m | N].
        notes: Sentences about defects of the picture; more come as parts are made.
        sketch: Surfaces shown until the visuals are made; may be empty.
        toward: Direction from the scene to the camera, 3, not normalised.
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
        """Return the surfaces of a role, made on first use and then stored."""
        if role not in self._parts:
            self._parts[role] = tuple(self._make(role))
        return self._parts[role]

    @abstractmethod
    def _make(self, role: str) -> Sequence[Part]:
        """Return new surfaces of a role: "visual", "collision" or "inertia"."""

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return the initial state, (n,), as `poses` takes it."""

    @abstractmethod
    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return the state, (n,), of the values of `sliders` [m | rad], in their order.

        Slider `moved` keeps its value as loops close; InfeasibleError: they cannot.
        """

    @abstractmethod
    def values(self, state: np.ndarray) -> np.ndarray:
        """Return the value of each slider, in the order of `sliders` [m | rad]."""

    @abstractmethod
    def poses(self, states: np.ndarray) -> np.ndarray:
        """Return the poses in the world, (..., bodies, 4, 4), of states (..., n)."""

    @abstractmethod
    def between(self, a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
        """Return the state at `share`, 0..1, of the path from state a to b, (n,)."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return the `state` of values drawn uniformly from the sliders' ranges, (n,).

        Closed loops may change the values; InfeasibleError: they cannot be closed.
        """
        return self.state([rng.uniform(x.low, x.high) for x in self.sliders])

    def mass_centre(self, poses: np.ndarray) -> np.ndarray | None:
        """Return the centre of mass in the world, (3,) [m]; None, as here: unknown."""
        return None

    def camera(
        self, several: np.ndarray, parts: Sequence[Part] | None = None
    ) -> Camera:
        """Return a camera that sees the parts in all poses, (count, bodies, 4, 4).

        It stands 1.6 diagonals from the centre of the parts, in the direction `toward`.
        It sees a cube of 1 m about the origin if there are no parts to be seen, or if
        one of their corners or poses is NaN or infinite. `parts` None: all visual ones,
        made if they are not yet. Ground and parts without corners are ignored.
        """
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for part in self.parts() if parts is None else parts:
            points = part.triangles.vertices
            if self.is_ground(part) or not len(points):
                continue
            corners = np.unique([points.min(axis=0), points.max(axis=0)], axis=0)
            ends = np.array(np.meshgrid(*corners.T)).reshape(3, -1).T
            poses = several[:, part.body]
            points = np.einsum("nij,kj->nki", poses[:, :3, :3], ends)
            points = (points + poses[:, None, :3, 3]).reshape(-1, 3)
            low = np.minimum(low, points.min(axis=0))
            high = np.maximum(high, points.max(axis=0))
        if not np.isfinite([low, high]).all():
            low, high = np.full(3, -0.5), np.full(3, 0.5)
        size = max(float(np.linalg.norm(high - low)), 1e-3)  # a point has no size
        target, toward = (low + high) / 2, np.asarray(self.toward, float)
        place = target + 1.6 * size * toward / np.linalg.norm(toward)
        return Camera(place, target, size, self._floor(float(low[2]), size))

    def is_ground(self, part: Part) -> bool:
        """Return whether a part is ground, which the camera ignores; here False."""
        return False

    def _floor(self, lowest: float, size: float) -> float:
        """Return the height of the grid [m]: `lowest` if at most -0.02 size, else 0."""
        return 0.0 if lowest > -0.02 * size else lowest


def still(count: int) -> np.ndarray:
    """Return identity poses, (count, 4, 4)."""
    return np.tile(np.eye(4), (count, 1, 1))
