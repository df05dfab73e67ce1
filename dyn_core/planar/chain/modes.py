"""Active unilateral constraints of a chain: ground, limits of angles; latches.

n is the number of joints of the chain.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core.planar.chain.chain import FREE, GUIDED, LINE, ChainModel

TAUT = 1e-8  # slack / length below which links between two points are taut


class Key(NamedTuple):
    """A unilateral constraint: (0, joint, sign): limit, (1, joint, plane): ground.

    Constraints are released in the order of their keys. `which` is 1 for the upper
    limit, -1 for the lower one, or the index of the half-plane.
    """

    rank: int  # limits 0, ground 1
    joint: int
    which: int  # sign of the limit, number of the half-plane

    @property
    def kind(self) -> str:
        """The kind: "limit" or "ground"."""
        return "ground" if self.rank else "limit"

    @property
    def label(self) -> str:
        """Description of the constraint for messages, with the number of the joint."""
        if self.rank:
            return f"joint {self.joint} on ground {self.which}"
        side = "upper" if self.which > 0 else "lower"
        return f"angle {self.joint} at its {side} limit"


class JointModes(NamedTuple):
    """Constraints by joint, n rows each.

    Arrays for a Program, or lists of numbers and symbols.

    Attributes:
        kind: 0 free, 1 on a line, 2 guided.
        s: Unit normals of the lines.
        a_w: Accelerations of guided joints; along s for joints on a line [m/s²].
        active: Whether the angle's acceleration is prescribed.
        alpha_w: These accelerations [rad/s²].
    """

    kind: Any
    s: Any
    a_w: Any
    active: Any
    alpha_w: Any


class Stretch(NamedTuple):
    """Links between two consecutive guided joints, `first` and `last`.

    The joints between them, free or on a line, are the inner joints. When the links are
    taut (`reach` [m]), the inner joints cannot move: every displacement off the
    straight line would lengthen the links, but only by its square, which no equation of
    accelerations contains. The forces are then unbounded. `shares` are the positions of
    the inner joints when taut, as fractions of the distance.
    """

    first: int
    last: int
    reach: float
    shares: np.ndarray

    @property
    def label(self) -> str:
        """Description of the links for messages."""
        ends = f"joints {self.first} and {self.last}"
        return f"links {self.first} to {self.last - 1} between {ends}"

    @property
    def inner(self) -> slice:
        """Slice of the joints between first and last."""
        return slice(self.first + 1, self.last)

    def slack(self, x: np.ndarray) -> float:
        """Return the reach minus the distance of the ends [m]; x: positions, (n, 2)."""
        way = x[self.last] - x[self.first]
        return self.reach - math.hypot(way[0], way[1])

    def between(self, values: np.ndarray) -> np.ndarray:
        """Return vectors at the inner joints, linear in the distance along the links.

        `values` are by joint, (n, 2); the result has a row for each inner joint.
        """
        first = values[self.first]
        return first + self.shares[:, None] * (values[self.last] - first)


def stretches_of(chain: ChainModel) -> tuple[Stretch, ...]:
    """Return a Stretch for each two consecutive guided joints with joints between."""
    guided = [i for i, kind in enumerate(chain.constraints.kind) if kind == GUIDED]
    stretches = []
    for first, last in zip(guided, guided[1:], strict=False):
        ways = np.cumsum(chain.lengths[first:last])
        if last - first > 1:
            stretches.append(
                Stretch(first, last, float(ways[-1]), ways[:-1] / ways[-1])
            )
    return tuple(stretches)


@dataclass
class Latch:
    """Limit on releases: a constraint released too often is held for a while.

    Attributes:
        max_releases: Maximum number of releases within a window.
        window: Time in which releases are counted [s].
        released: Times of the latest releases, by key.
        until: Time until which a constraint is held, by key.

    Source: WAW-12.9.
    """

    max_releases: int = 5
    window: float = 0.005
    released: dict[Any, deque[float]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    until: dict[Any, float] = field(default_factory=dict)

    def holds(self, key: Any, t: float) -> bool:
        """Return whether the constraint `key` is held beyond time t [s]."""
        return self.until.get(key, -np.inf) > t

    def release(self, key: Any, t: float) -> bool:
        """Record a release of the constraint `key` at time t [s] if it is allowed.

        It is not allowed while the constraint is held. One more than max_releases
        within the window is refused, too, and the constraint is then held until the
        oldest of these releases is one window ago.

        Returns:
            Whether the release is allowed. A refused one is not recorded.
        """
        if self.holds(key, t):
            return False
        times = self.released[key]
        while times and times[0] <= t - self.window:
            times.popleft()
        if len(times) >= self.max_releases:
            self.until[key] = times[0] + self.window
            return False
        times.append(t)
        return True

    def keep(self, key: Any, until: float) -> None:
        """Hold the constraint `key` until a time [s]; a later known end remains."""
        self.until[key] = max(until, self.until.get(key, -np.inf))


class UnilateralConstraints:
    """The unilateral constraints of a chain, and their active set.

    Attributes:
        chain: Planar chain.
        keys: All keys, sorted: finite limits of angles that are not active, and ground
            for joints that are not guided.
        stretches: Links between guided joints.
        on: Active keys; none at construction.
        anchors: By ground key: the joint's position on the edge when the key was last
            activated [m]; keys that are inactive again remain.
        start: Joint positions x, (n, 2) [m], and angles theta, n-1 [rad], at
            construction: the reference for lines and locked angles.

    Source: WAW-12.1, WAW-15.3.
    """

    def __init__(self, chain: ChainModel, x: np.ndarray, theta: np.ndarray) -> None:
        self.chain = chain
        constraints = chain.constraints
        self.keys: list[Key] = []
        for i in range(chain.n - 1):
            for sign, bound in ((1, chain.upper[i]), (-1, chain.lower[i])):
                if np.isfinite(bound) and not constraints.active[i]:
                    self.keys.append(Key(0, i, sign))
        for i in range(chain.n):
            for k, plane in enumerate(chain.ground):
                if plane.stops(i) and constraints.kind[i] != GUIDED:
                    self.keys.append(Key(1, i, k))
        self.keys.sort()
        self.stretches = stretches_of(chain)
        self.on: set[Key] = set()
        self.anchors: dict[Key, np.ndarray] = {}
        self.start = x.copy(), theta.copy()

    def named(self, key: Key) -> str:
        """Return a description of a constraint with the joint's name."""
        name = self.chain.joint_names[key.joint]
        if key.rank:
            return f"{name} on ground {key.which}"
        return f"{name} at its {'upper' if key.which > 0 else 'lower'} limit"

    def taut(self, x: np.ndarray) -> tuple[Stretch, ...]:
        """Return the stretches that are taut at joint positions x, (n, 2); () for none.

        Their slack is at most TAUT (1e-8) times their reach.
        """
        return tuple(
            part for part in self.stretches if part.slack(x) <= TAUT * part.reach
        )

    def add(self, key: Key, x: np.ndarray) -> None:
        """Activate a constraint.

        For a ground key, also an active one, the anchor becomes the joint's position,
        projected on the edge.

        Args:
            key: Constraint.
            x: Positions of the joints, (n, 2) [m].
        """
        self.on.add(key)
        if key.rank:
            z0, z = self.plane(key)
            place = x[key.joint]
            self.anchors[key] = place - z * (z @ (place - z0))

    def remove(self, key: Key) -> None:
        """Deactivate a constraint; an inactive one is ignored."""
        self.on.discard(key)

    def plane(self, key: Key) -> tuple[np.ndarray, np.ndarray]:
        """Return a point of the edge [m] and the normal of a ground key, 2 each."""
        plane = self.chain.ground[key.which]
        return np.array(plane.z0), np.array(plane.z)

    def gap(self, key: Key, x: np.ndarray, theta: np.ndarray) -> float:
        """Return the distance of a constraint to its bound [m | rad], < 0 beyond it.

        Args:
            key: Constraint.
            x: Positions of the joints, (n, 2) [m].
            theta: Unwrapped angles of the joints but the last, n-1 [rad]: of link 0
                from the x axis, of the others from the previous link.
        """
        if key.rank:
            z0, z = self.plane(key)
            return float(z @ (x[key.joint] - z0))
        bounds = self.chain.upper if key.which > 0 else self.chain.lower
        return float(key.which * (bounds[key.joint] - theta[key.joint]))

    def rate(self, key: Key, of_joints: np.ndarray, of_angles: np.ndarray) -> float:
        """Return the first or second time derivative of the gap.

        Args:
            key: Constraint.
            of_joints: Velocities of the joints for the first derivative, accelerations
                for the second, (n, 2).
            of_angles: Rates of the angles, or their second derivatives, by joint (n-1
                or n).
        """
        if key.rank:
            return float(self.plane(key)[1] @ of_joints[key.joint])
        return float(-key.which * of_angles[key.joint])

    def push(self, key: Key, support: np.ndarray, couples: np.ndarray) -> float:
        """Return the force or couple of a constraint; negative if it pulls.

        Positive values act into the free side. With impulses as arguments, the result
        is an impulse. If several half-planes are active at the joint of a ground key,
        the support is split along their normals (least squares), and the result is the
        part along this key's normal.

        Args:
            key: Constraint.
            support: Forces or impulses of the supports on the joints, (n, 2) [N | N·s].
            couples: Couples on the angles, or impulses of couples, by joint (n-1 or n)
                [N·m | N·m·s].
        """
        normals = [
            self.plane(k)[1]
            for k in self.on - {key}
            if key.rank and k.rank and k.joint == key.joint
        ]
        if normals:
            both = np.column_stack([self.plane(key)[1], *normals])
            return float(np.linalg.lstsq(both, support[key.joint], rcond=1e-9)[0][0])
        return self.rate(key, support, couples)

    def arrays(
        self,
        x: np.ndarray,
        v: np.ndarray,
        theta: np.ndarray,
        omega: np.ndarray,
        window: float,
    ) -> JointModes:
        """Return the constraints of all joints, arrays for a Program.

        They are kind, s, a_w, active and alpha_w, in this order, see JointModes.
        They have the chain's own constraints, changed by the active ones: a joint on
        ground is guided, or on a line if the half-plane's mode is slide, the joint is
        free and no other half-plane holds it; an angle at a limit is active; inner
        joints of taut links are guided.
        The accelerations correct errors:

            error'' = -error / window² - 2 error' / window

        Errors are not corrected if the window is infinite.

        Args:
            x, v: Positions and velocities of the joints, (n, 2) [m], [m/s].
            theta, omega: Unwrapped angles and their rates, n-1 [rad], [rad/s].
            window: Time constant with which errors decay [s].

        Source: WAW-12.10.
        """
        constraints, pd = self.chain.constraints, _Pull(window)
        modes = JointModes(
            np.array(constraints.kind),
            np.array(constraints.s),
            np.array(constraints.a_w),
            np.array(constraints.active, float),
            np.array(constraints.alpha_w),
        )
        if np.isfinite(window):
            self._own_drift(modes, pd, x, v, theta, omega)
        for key in self.on:
            i = key.joint
            if not key.rank:
                modes.active[i] = 1.0
                modes.alpha_w[i] = key.which * pd(
                    -self.gap(key, x, theta), key.which * omega[i]
                )
                continue
            slides = self.chain.ground[key.which].mode == "slide"
            on_line = slides and modes.kind[i] == FREE
            modes.kind[i] = LINE if on_line else GUIDED
            modes.s[i] = self.plane(key)[1]
            modes.a_w[i] = pd(x[i] - self.anchors[key], v[i])
        for part in self.taut(x):
            slide = v[part.inner] - part.between(v)
            modes.kind[part.inner] = GUIDED
            modes.a_w[part.inner] = part.between(modes.a_w) + pd(0.0, slide)
        return modes

    def _own_drift(
        self, modes: JointModes, pd: _Pull, x: Any, v: Any, theta: Any, omega: Any
    ) -> None:
        """Correct the drift of the chain's own constraints: change `modes` in place.

        The references of joints on lines and of locked angles (active, alpha_w = 0) are
        those at construction. x, v are (n, 2), theta and omega n-1.
        """
        x0, theta0 = self.start
        for i in range(self.chain.n):
            if modes.kind[i] == LINE:
                s = modes.s[i]
                modes.a_w[i] += s * pd(s @ (x[i] - x0[i]), s @ v[i])
            if modes.active[i] and modes.alpha_w[i] == 0.0:
                modes.alpha_w[i] = pd(theta[i] - theta0[i], omega[i])

    def snapshot(self) -> tuple[set[Key], dict[Key, np.ndarray]]:
        """Return copies of the active set and the anchors, for `restore`."""
        return set(self.on), dict(self.anchors)

    def restore(self, saved: tuple[set[Key], dict[Key, np.ndarray]]) -> None:
        """Replace the active set and the anchors by copies of `saved`, a snapshot."""
        self.on, self.anchors = set(saved[0]), dict(saved[1])

    @staticmethod
    def most_held(sets: Sequence[frozenset[Key]]) -> frozenset[Key]:
        """Return the largest of some sets of active constraints, at least one set.

        Of equally large sets, it is the one with the last keys in sorted order.

        Source: WAW-12.8.
        """
        return max(sets, key=lambda on: (len(on), sorted(on)))


@dataclass
class _Pull:
    """Acceleration that corrects an error, with a double pole at -1/window."""

    window: float

    def __call__(self, error: Any, rate: Any) -> Any:
        return -error / self.window**2 - 2.0 * rate / self.window
