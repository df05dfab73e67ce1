"""What every joint kind supplies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.description import JointSpec
from dyn_core.numbers.scalar import Scalar
from dyn_core.numbers.taylor import COORDINATE, derivatives, variables
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform, Vector
from dyn_core.spatial.lie import tangent_rate


class Joint(ABC):
    """Motion that a joint allows, as functions of its coordinates.

    Everything takes number-like entries, so that it can be part of an algorithm. S is
    in the coordinates of the moving body. The contract:

    1. `X(q)` takes motions from the frame before the joint to the frame after it.
    2. `vJ = S(q) qd` is the velocity across the joint.
    3. `cJ` is the apparent derivative of S, times qd; zero where S is constant.
    4. A joint with a `series` is like one-coordinate joints of constant S behind each
       other; `series` is their order from the base. Any other is a GroupJoint, or its
       coordinates act together. But for a GroupJoint, qd = dq/dt.
    5. `integrate(q, dv)` moves q by the body displacement S dv; `difference` undoes it.
    6. `S_slopes` and `cJ_slopes` are derivatives by the coordinates, by Taylor
       numbers.

    Source: RBDA, section 4.4 and RBD5-3.4 (jcalc); KIM-2.4.
    """

    kind: ClassVar[str]
    entries: ClassVar[tuple[str, ...]] = ()  # of its geometry in a JointSpec
    unactuated: ClassVar[bool] = False  # no motor drives it unless a file says so
    nq: int
    nv: int

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Return a joint with this axis; kinds without an axis ignore it."""
        return cls()

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint of a specification, its factors made already."""
        return cls.about(spec.axis)

    def geometry(self, what: str) -> list[Scalar]:
        """Return numbers of its geometry: axis, axes or pitch; none if it has none."""
        return []

    def with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return the joint with other numbers of its geometry, symbols too.

        Directions are scaled to unit length.
        """
        raise ModelError(f"a joint of type {self.kind} has no {what}")

    @property
    def series(self) -> tuple[int, ...] | None:
        """Order from the base in which the coordinates act; None: they act together."""
        return tuple(range(self.nv))

    @abstractmethod
    def X(self, q: Vector) -> Transform:
        """Joint transform, from the predecessor's to the successor's frame."""

    @abstractmethod
    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace, 6 x nv, body coordinates."""

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Velocity across the joint: S qd."""
        return self.S(q) @ qd

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Bias of that velocity: (dS/dt in body coordinates) qd."""
        return Motion.zero()

    def S_slopes(self, q: Vector) -> list[MotionSubspace]:
        """Return the derivatives of S by each coordinate.

            dS_j/dq_k - dS_k/dq_j = S_j x S_k

        Source: KIM-2.4, by Taylor numbers.
        """
        return [_slope(self.S(moving)) for moving in _along_each(q)]

    def cJ_slopes(self, q: Vector, qd: Vector) -> MotionSubspace:
        """Return the derivatives of cJ by each coordinate, at constant qd.

        Source: KIM-2.4, by Taylor numbers.
        """
        columns = (_slope([self.cJ(moving, qd)])[0] for moving in _along_each(q))
        return MotionSubspace(columns)

    @abstractmethod
    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Coordinates drawn over the whole range of a joint without limits."""

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Coordinates after the displacement dv."""
        return q + dv

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Displacement that takes q0 to q1."""
        return q1 - q0

    def rate(self, u: Vector, qd: Vector) -> Vector:
        """Rate of the displacement u from a fixed start, moving at qd."""
        return qd

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Rate of the coordinates, dq/dt = Q(q) qd; qd itself but for quaternions."""
        return qd

    def velocity_of(self, q: Vector, rate: Vector) -> Vector:
        """Velocity at which the coordinates have a rate; undoes position_rate."""
        return rate

    def rate_in_initial_axes(self, qd: Vector, qdd: Vector) -> Vector:
        """Rate of the velocity in axes that stay as they are now."""
        return qdd

    def gyroscopic_change(
        self, H: Matrix, qd: Vector, force: Vector, dt: Scalar, remaining: float
    ) -> Vector:
        """Change of a step's velocity by the mean gyroscopic moment.

        See coordinates.gyroscopic_change, of whose H and force it takes the part of qd.
        """
        return Vector.zeros(self.nv)

    def advance(
        self, q: Vector, u: Vector, dt: Scalar, way: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """Coordinates after dt, and there the velocity u, in the start's axes so far.

        way: Velocity at which the coordinates move; None: u.
        """
        return self.normalize(self.integrate(q, (u if way is None else way) * dt)), u

    def normalize(self, q: Vector) -> Vector:
        """Coordinates with unit quaternions."""
        return q

    def quaternions(self, q: Vector) -> tuple[Vector, ...]:
        """Parts of the coordinates that must have unit length."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(sorted(self.__dict__.items()))))

    def __repr__(self) -> str:
        data = ", ".join(f"{k}={v}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({data})"


class GroupJoint(Joint):
    """A joint whose configurations form a group: qd is a body velocity, S constant."""

    @property
    def series(self) -> None:
        """No order: the coordinates act together."""
        return None

    def S_slopes(self, q: Vector) -> list[MotionSubspace]:
        """Nothing: S is constant."""
        return [MotionSubspace([Motion.zero()] * self.nv)] * self.nv

    def cJ_slopes(self, q: Vector, qd: Vector) -> MotionSubspace:
        """Nothing: S is constant."""
        return MotionSubspace([Motion.zero()] * self.nv)

    @abstractmethod
    def motion(self, u: Vector) -> Motion:
        """Return the displacement u as a Motion."""

    def rate(self, u: Vector, qd: Vector) -> Vector:
        """Rate of the displacement u from a fixed start, moving at qd."""
        six = tuple(tangent_rate(self.motion(u), self.motion(qd)))
        return Vector(six[: self.nv])


def _along_each(q: Vector) -> Iterator[Vector]:
    """Return the coordinates with each of them in turn as the variable."""
    for k in range(len(q)):
        yield Vector(variables(q, k))


def _slope(columns: Iterable[Motion]) -> MotionSubspace:
    """Return the derivatives of motions by the coordinate that is the variable."""
    return MotionSubspace(
        Motion.of([derivatives(x, COORDINATE)[1] for x in column]) for column in columns
    )
