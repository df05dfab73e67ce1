"""Planar chains, objects and tasks as scenes: rods in the x-z plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.planar.chain.chain import FREE as CHAIN_FREE
from dyn_core.planar.chain.chain import LINE, ChainModel, HalfPlane
from dyn_core.planar.chain.states import ChainState, from_angles, to_angles
from dyn_core.planar.objects.objects import PlanarObject
from dyn_core.tasks.task import Task
from dyn_core.view import colors, solids
from dyn_core.view.scene import VISUAL, Part, Slider, VisualScene, still

TURN = 3.14
FREE = 2.0  # range of a coordinate without limits, +- lengths of the chain


class PlanarScene(VisualScene):
    """Rods between points; a state has the coordinates x, y of all points, (2 n,) [m].

    x and y of a state are x and z of the world. Body 0 is the ground, body k the rod
    from point k - 1 to point k, body n the first point, a cart if `cart` is true.
    `masses` are of the n points [kg], `lengths` (n - 1,) of the rods [m], `size` is
    their sum, at least 1e-3 m.
    """

    toward = (0.12, -1.0, 0.16)

    def __init__(
        self,
        name: str,
        start: np.ndarray,
        cart: bool = False,
        ground: Sequence[HalfPlane] = (),
        masses: Sequence[float] | None = None,
    ) -> None:
        points = np.asarray(start, float).reshape(-1, 2)
        self.lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        self.cart, self.ground = cart, tuple(ground)
        self.masses = None if masses is None else np.asarray(masses, float)
        self.count = len(points)
        self.size = max(float(self.lengths.sum()), 1e-3)  # one point has no size
        links = [f"link {k + 1}" for k in range(self.count - 1)]
        super().__init__(name, ["ground", *links, "first point"])
        self._start = points.ravel()

    def _make(self, role: str) -> Sequence[Part]:
        if role != VISUAL:
            return ()
        radius, parts = 0.015 * self.size, []
        for k, length in enumerate(self.lengths):
            rod = solids.rod(np.zeros(3), np.array([length, 0.0, 0.0]), radius)
            parts.append(Part(f"rod/{k}", k + 1, rod, colors.LINK))
            parts.append(Part(f"joint/{k}", k + 1, self._pin(), colors.JOINT))
        if len(self.lengths):
            end = np.eye(4)
            end[0, 3] = self.lengths[-1]
            tip = self._pin().moved(end)
            parts.append(Part("joint/end", len(self.lengths), tip, colors.JOINT))
        if self.cart:
            cart = solids.box(np.array([0.25, 0.12, 0.12]) * self.size)
            parts.append(Part("cart", self.count, cart, colors.GROUND))
            track = solids.box(np.array([6.0, 0.02, 0.02]) * self.size)
            parts.append(Part("ground/track", 0, track, colors.GROUND))
        for k, plane in enumerate(self.ground):
            if _level(plane) is None:
                slab = self._slab(plane)
                parts.append(Part(f"ground/{k}", 0, slab, colors.GROUND))
        return parts

    def _pin(self) -> solids.Triangles:
        """Return the cylinder of a joint, centred at the origin, its axis along y."""
        axis = np.array([0.0, 0.02 * self.size, 0.0])
        drum = solids.cylinder(0.024 * self.size, 0.04 * self.size)
        return drum.moved(solids.along(-axis, axis, 0.5))

    def _slab(self, plane: HalfPlane) -> solids.Triangles:
        """Return a slab in the world whose upper side is the edge of a half-plane.

        It is 6 `size` long, with z0 in the middle of the upper side.
        """
        across, thick = 6.0 * self.size, 0.04 * self.size
        nx, ny = (float(x) for x in plane.z)
        pose = np.eye(4)
        pose[:3, :3] = np.column_stack([(ny, 0.0, -nx), (0.0, 1.0, 0.0), (nx, 0.0, ny)])
        x, y = (float(v) for v in plane.z0)
        pose[:3, 3] = (x - nx * thick / 2, 0.0, y - ny * thick / 2)
        return solids.box((across, 0.6 * self.size, thick)).moved(pose)

    def is_ground(self, part: Part) -> bool:
        """Return whether a part is a cart's track, or a half-plane of the ground."""
        return part.name.startswith("ground/")

    def _floor(self, lowest: float, size: float) -> float:
        """Return the height of the highest level half-plane of the ground [m].

        Without level ground it is `lowest` - 0.02 `size`.
        """
        levels = [_level(plane) for plane in self.ground]
        flat = [level for level in levels if level is not None]
        return max(flat) if flat else lowest - 0.02 * size

    def start(self) -> np.ndarray:
        """Return a copy of the initial points, x and y of each in turn, (2 n,) [m]."""
        return self._start.copy()

    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return a copy of the initial state, since there are no sliders."""
        return self.start()

    def values(self, state: np.ndarray) -> np.ndarray:
        """Return an empty array: there are no sliders."""
        return np.zeros(0)

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Return the poses of ground, rods and first point, (..., n + 1, 4, 4).

        The origin of a rod is its first point, and its x axis points along the rod; its
        x and z axes are zero if its points coincide. Ground and first point have no
        rotation.
        """
        flat = np.asarray(states, float)
        points = flat.reshape(*flat.shape[:-1], -1, 2)
        shape = (*points.shape[:-2], self.count + 1, 4, 4)
        poses = np.broadcast_to(still(self.count + 1), shape).copy()
        steps = np.diff(points, axis=-2)
        long = np.linalg.norm(steps, axis=-1, keepdims=True)
        steps = steps / np.where(long > 0, long, 1.0)
        links = poses[..., 1 : self.count, :, :]
        links[..., 0, 0], links[..., 2, 0] = steps[..., 0], steps[..., 1]
        links[..., 0, 2], links[..., 2, 2] = -steps[..., 1], steps[..., 0]
        links[..., (0, 2), 3] = points[..., :-1, :]
        poses[..., self.count, (0, 2), 3] = points[..., 0, :]
        return poses

    def between(self, a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
        """Return the state at a share, 0..1, of the straight line from a to b."""
        return np.asarray(a + share * (np.asarray(b) - a))

    def mass_centre(self, poses: np.ndarray) -> np.ndarray | None:
        """Return the centre of the masses in the world, (3,) [m]; None if not known.

        It is None, too, for a single point or a sum of masses that is not positive.
        """
        if self.masses is None or not self.masses.sum() > 0 or self.count < 2:
            return None
        places = poses[1 : self.count, :3, 3]
        end = places[-1] + self.lengths[-1] * poses[self.count - 1, :3, 0]
        centre: np.ndarray = self.masses @ np.vstack([places, end]) / self.masses.sum()
        return centre


def _level(plane: HalfPlane) -> float | None:
    """Return the height [m] of a half-plane with its normal upwards, or None.

    The normal may be tilted by less than 1e-9 rad.
    """
    nx, ny = (float(x) for x in plane.z)
    # 1e-9: the normal is a unit vector, so this tilt is a rounding error
    return float(plane.z0[1]) if abs(nx) < 1e-9 and ny > 0 else None


class ChainScene(PlanarScene):
    """A planar chain, with sliders for what moves: joint 0, if it can, and the angles.

    Joint 0 has two sliders, x and y, if it is free, one along its line, and none if it
    is fixed. `start` None: joint 0 at the origin, and all angles zero.
    """

    def __init__(self, chain: ChainModel, start: ChainState | None = None) -> None:
        still_there = np.zeros(chain.n - 1)
        if start is None:
            start = from_angles(chain, (0.0, 0.0), (0.0, 0.0), still_there, still_there)
        cart = chain.constraints.kind[0] == LINE
        points = np.asarray(start.x, float)
        super().__init__(chain.name, points, cart, chain.ground, chain.masses)
        self.chain = chain
        self.lengths = np.array(chain.lengths, float)
        self.joints = tuple(chain.joint_names[: chain.n - 1])
        self.joint_bodies = tuple(range(1, chain.n))
        self.effort_limit = np.zeros(chain.n - 1)
        x0, _, theta, _ = to_angles(chain, ChainState(points, np.zeros_like(points)))
        kind, (sx, sy) = chain.constraints.kind[0], chain.constraints.s[0]
        ways = {CHAIN_FREE: np.eye(2), LINE: np.array([[sy, -sx]])}
        self._ways = ways.get(kind, np.zeros((0, 2)))
        self._fixed = x0 - self._ways.T @ (self._ways @ x0)
        reach, first = FREE * self.size, chain.joint_names[0]
        labels = "xy" if len(self._ways) == 2 else ["along its line"]
        self.sliders = (
            *(
                Slider(f"{first} {way}", x - reach, x + reach, x, "m")
                for way, x in zip(labels, (self._ways @ x0).tolist(), strict=False)
            ),
            *(self._angle(k, float(angle)) for k, angle in enumerate(theta)),
        )

    def _angle(self, k: int, start: float) -> Slider:
        """Return the slider of angle k, +-3.14 rad where a limit is not finite."""
        low, high = float(self.chain.lower[k]), float(self.chain.upper[k])
        low = low if np.isfinite(low) else -TURN
        high = high if np.isfinite(high) else TURN
        name = f"{self.chain.joint_names[k]} angle"
        return Slider(name, low, high, float(np.clip(start, low, high)), "rad")

    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return the positions of the joints, (2 n,) [m].

        `values` are of joint 0 [m], then the angles [rad]: of link 0 from the x axis,
        of each other link from the previous one.
        """
        count = len(self._ways)
        place, theta = np.split(np.asarray(values, float), [count])
        if len(place) != count:
            raise ShapeError("values", f"{len(self.sliders)} numbers", f"{len(place)}")
        rates = np.zeros(self.chain.n - 1)
        x0 = self._fixed + self._ways.T @ place
        return from_angles(self.chain, x0, (0.0, 0.0), theta, rates).x.ravel()

    def values(self, state: np.ndarray) -> np.ndarray:
        """Return the sliders' values at a state, in the order of the method `state`."""
        points = np.asarray(state, float).reshape(-1, 2)
        x0, _, theta, _ = to_angles(
            self.chain, ChainState(points, np.zeros_like(points))
        )
        return np.concatenate([self._ways @ x0, theta])


class ObjectScene(PlanarScene):
    """A planar object, with a slider for each coordinate; all start at 0.

    `values` returns the coordinates last passed to `state`, as a state of points does
    not determine them.
    """

    def __init__(self, system: PlanarObject) -> None:
        self.system, self.object_chain = system, system.to_chain()
        at_zero = np.zeros(system.nq)
        points = self.points(at_zero)
        rods = system.rods
        super().__init__(system.name, points, bool(rods and rods.cart))
        self._coordinates = at_zero
        self.sliders = tuple(
            Slider(name, *self._range(bounds, k), 0.0, self._unit(k))
            for k, (name, bounds) in enumerate(
                zip(system.coordinates, system.position_bounds, strict=True)
            )
        )

    def _unit(self, k: int) -> str:
        """Return the unit of coordinate k: m for the position of a cart, else rad."""
        return "m" if self.cart and k == 0 else "rad"

    def _range(self, bounds: tuple[float, float], k: int) -> tuple[float, float]:
        """Return lower and upper end of the bounds' overlap with a display range.

        The display range is +-3.14 rad, or +-2 lengths of the chain [m] for a cart.
        Without overlap the lower end exceeds the upper one.
        """
        reach = FREE * self.size if self._unit(k) == "m" else TURN
        low, high = bounds
        return max(low, -reach), min(high, reach)

    def points(self, q: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return x, y of joint 0 and of the end of each rod, by row [m], at q (nq,)."""
        numbers = [float(x) for x in q]
        x0, v0, theta, rates = self.system.chain_state(numbers, [0.0] * len(numbers))
        return from_angles(self.object_chain, x0, v0, theta, rates).x

    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return x, y of joint 0, then of the end of each rod in turn, flat [m].

        The coordinates are stored for `values`; an array of floats is not copied.
        """
        state = self.points(values).ravel()
        self._coordinates = np.asarray(values, float)
        return state

    def values(self, state: np.ndarray) -> np.ndarray:
        """Return the coordinates last passed to the method `state`, (nq,), no copy."""
        return self._coordinates


def task_scene(task: Task, state: Any) -> tuple[PlanarScene, Callable[..., np.ndarray]]:
    """Return the scene of a task, starting in `state`, and a function.

    The function returns the scene's state, x and y of each point in turn, of a state of
    the task (ns,).
    """
    ground = getattr(task.system, "ground", ())
    scene = PlanarScene(task.name, task.points(state), task.cart, ground)
    return scene, lambda row: np.asarray(task.points(row), float).ravel()
