"""Bodies between parallel axes as links of a planar chain.

A link whose centre of mass is off the line between its joints becomes two, with a joint
at the centre of mass whose angle is constant: exact, see PlanarBody.segments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model import Model

NEAR = 1e-9  # tolerance of zero: lengths [m], sines of angles, relative numbers


class Segment(NamedTuple):
    """A link of the chain.

    Attributes:
        name: Of the joint at its start.
        body: Index of the body that contains it.
        turns: Whether its start is a joint of the robot; else a bend with a fixed
            angle.
        vector: From its start to its end in the neutral position, in the plane [m].
        mass, com, inertia: Mass [kg], centre of mass from the start [m], inertia about
            it [kg·m²].
        tip: Point mass at its end [kg].
    """

    name: str
    body: int
    turns: bool
    vector: np.ndarray
    mass: float = 0.0
    com: float = 0.0
    inertia: float = 0.0
    tip: float = 0.0

    @property
    def angle(self) -> float:
        """Angle of the vector from x [rad]."""
        return math.atan2(self.vector[1], self.vector[0])


def refuse(name: str | None, why: str) -> NoReturn:
    """Raise ModelError: no planar chain, and why; `name`: faulty element or None."""
    raise ModelError(f"no planar chain: {why}", name)


def is_point(I: Any) -> bool:
    """Return whether an inertia is a point mass: no inertia about its centre of mass.

    The tolerance is relative to m |c|²; a body without mass is not a point mass.
    """
    if not I.m > 0:
        return False
    far = float(np.square(np.array(I.c, float)).sum())
    return bool(np.abs(np.array(I.Ic.rows, float)).max() <= 1e-12 * I.m * far)


class PlanarBody:
    """One body projected on the plane, in the neutral position, from its origin.

    Args:
        model: Robot.
        E: Axes x and y of the plane in body coordinates, (2, 3).
        n: Normal of the plane in body coordinates, 3.
        body: Index of the body.

    Attributes:
        last: Whether the body is the robot's last.
        places: Origins of the links fixed to the body, in the plane, by name [m].
        parts: Mass, centre of mass in the plane, inertia about it, and whether it is a
            point mass, of each of these links.
    """

    def __init__(self, model: Model, E: np.ndarray, n: np.ndarray, body: int) -> None:
        self.model, self.E, self.n, self.body = model, E, n, body
        self.last = body == model.nb
        self.places: dict[str, np.ndarray] = {}
        self.parts = []
        for name, frame in model.frames.items():
            if frame.body == body:
                R, p = (np.array(x, float) for x in (frame.X.pose[0].rows, frame.X.r))
                I = frame.inertia
                com = E @ (p + R @ np.array(I.c, float))
                about = n @ R @ np.array(I.Ic.rows, float) @ R.T @ n
                self.places[name] = E @ p
                self.parts.append((float(I.m), com, float(about), is_point(I)))

    def free_start(self, tip: str | None) -> np.ndarray:
        """Return the start of the link of a freely moving root, in the plane [m].

        The body's origin if its inertia and end allow it; else the centre of mass,
        where a point mass must be, or a point beside it.
        """
        mass, com, about = _summed(self.parts)
        end, _ = self.end(np.zeros(2), tip)
        for start in (np.zeros(2), com) if about else (com,):
            if np.linalg.norm(end - start) > NEAR:
                return start
        return end - np.array((math.sqrt(about / mass) if about > 0 else 1.0, 0.0))

    def end(self, start: np.ndarray, tip: str | None) -> tuple[np.ndarray, str]:
        """Return the end of the link in the plane [m], and its name.

        The next joint (with an empty name); for the last body the link `tip`, the
        farthest link from `start`, or a point derived from the centre of mass. Raises
        ModelError if `tip` is not a link of the body.
        """
        if not self.last:
            return self.E @ np.array(self.model.Xtree[self.body + 1].r, float), ""
        if tip is not None and tip not in self.places:
            valid = ", ".join(self.places)
            refuse(tip, f"no link '{tip}' is fixed to the last body; valid: {valid}")
        far = {k: np.linalg.norm(p - start) for k, p in self.places.items()}
        best = tip or max(far, key=lambda name: far[name])
        if tip or far[best] > NEAR:
            return self.places[best], best
        mass, com, about = _summed(self.parts)
        name = f"{self.model.names[self.body]}_end"
        if np.linalg.norm(com - start) > NEAR:
            return start + 2 * (com - start), name
        return start + np.array((math.sqrt(about / mass), 0.0)), name

    def segments(self, start: np.ndarray, tip: str | None) -> tuple[list[Segment], str]:
        """Return the Segments of this body, and the name of its end ("" for a joint).

        Two if its centre of mass is off the line from start to end: the joint between
        them, at the centre of mass, keeps its angle; each has half the mass, there, and
        half the inertia. Raises ModelError for a link without length.

        Args:
            start: Start of the link, in the plane [m].
            tip: Link at whose origin the last body's chain link ends; None: see `end`.

        Source: WAW-13.4 (a), with a bend.
        """
        name, (end, end_name) = self.model.names[self.body], self.end(start, tip)
        along = end - start
        L = float(np.linalg.norm(along))
        if L <= NEAR:
            after = end_name or self.model.names[self.body + 1]
            refuse(name, f"the link from joint '{name}' to '{after}' has no length")
        points = [p for p in self.parts if p[3] and np.linalg.norm(p[1] - end) <= NEAR]
        rest = [p for p in self.parts if not any(p is q for q in points)]
        tip_mass = float(sum(p[0] for p in points))
        mass, com, about = _summed(rest)
        to = com - start
        off = (along[0] * to[1] - along[1] * to[0]) / L
        if mass == 0 or abs(off) <= NEAR * max(L, float(np.linalg.norm(to))):
            centre = float(along @ to) / L if mass else 0.0
            one = Segment(name, self.body, True, along, mass, centre, about, tip_mass)
            return [one], end_name
        half, size, bend = (mass / 2, about / 2), float(np.hypot(*to)), f"{name}_bend"
        near = Segment(name, self.body, True, to, half[0], size, half[1])
        far = Segment(
            bend, self.body, False, end - com, half[0], 0.0, half[1], tip_mass
        )
        return [near, far], end_name


def _summed(parts: list[Any]) -> tuple[float, np.ndarray, float]:
    """Return mass, centre of mass, and inertia about it of parts (m, com, I, point).

    Zeros if the mass is not positive.
    """
    mass = float(sum(m for m, *_ in parts))
    if not mass > 0:
        return 0.0, np.zeros(2), 0.0
    com = sum((m * c for m, c, *_ in parts), np.zeros(2)) / mass
    about = sum(I + m * float((c - com) @ (c - com)) for m, c, I, _ in parts)
    size = max(mass * float(com @ com), 1e-300)
    return mass, com, 0.0 if about <= 1e-14 * size else float(about)
