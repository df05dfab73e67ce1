"""Base classes of joint kinds: the functions that each kind supplies."""

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

    All functions accept number-like entries, so that they can be part of an algorithm.
    S is in the coordinates of the moving body. The contract:

    1. `X(q)` transforms motions from the frame before the joint to the frame after it.
    2. `vJ = S(q) qd` is the velocity across the joint.
    3. `cJ` is the apparent derivative of S, times qd; zero where S is constant.
    4. A joint with a `series` is equivalent to joints of one coordinate and constant S
    in series; `series` is their order from the base. Any other joint is a GroupJoint,
    or its coordinates act together. Except for a GroupJoint, qd = dq/dt.
    5. `integrate(q, dv)` moves q by the body displacement S dv; `difference` inverts
    it.
    6. `S_slopes` and `cJ_slopes` are derivatives with respect to the coordinates, by
    Taylor numbers.

    Class attributes:
        kind: Name of the kind in files.
        entries: Fields of JointSpec that define its geometry.
        unactuated: Whether it has no motor unless a file says so.

    Attributes:
        nq, nv: Numbers of position and velocity coordinates.

    Source: RBDA, section 4.4 and RBD5-3.4 (jcalc); KIM-2.4.
    """

    kind: ClassVar[str]
    entries: ClassVar[tuple[str, ...]] = ()  # of its geometry in a JointSpec
    unactuated: ClassVar[bool] = False  # no motor drives it unless a file says so
    nq: int
    nv: int

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Return a joint with this axis (3,); kinds without an axis ignore it.

        Product, Custom and Driven joints, which need other arguments, raise TypeError.

        Kinds with an axis normalise it, and raise ModelError unless it has three finite
        numbers, not all zero.
        """
        return cls()

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint of a specification.

        Args:
            spec: Specification of this kind.
            factors: Joint objects of `spec.factors`; only products use them.

        Raises:
            ModelError: The numbers do not make such a joint.
        """
        return cls.about(spec.axis)

    def geometry(self, what: str) -> list[Scalar]:
        """Return numbers of the joint's geometry, in order.

        They are 3 for an axis, 6 for the axes of a universal joint, 1 for a pitch
        [m/rad]; none if the kind has no such geometry.

        Args:
            what: axis, axes or pitch.
        """
        return []

    def with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return the joint with another axis, axes or pitch; directions are normalised.

        Args:
            what: axis, axes or pitch.
            values: Numbers or symbols, as many as `geometry` returns.

        Raises:
            ModelError: The kind has no such numbers, `values` has another number of
                them, or a direction is not finite.
            SingularError: The length of a direction is zero, which is not checked for
                symbols, or the axis of a planar joint is -z.
        """
        count = len(self.geometry(what))
        if not count:
            raise ModelError(f"a joint of type {self.kind} has no {what}")
        if len(values) != count:
            message = f"{what} of a joint of type {self.kind}: {count} numbers wanted"
            raise ModelError(f"{message}, got {len(values)}")
        return self._with_geometry(what, values)

    def _with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return the joint with other numbers of its axis, axes or pitch.

        Kinds with a geometry implement it; `values` have the right count.
        """
        raise NotImplementedError

    @property
    def series(self) -> tuple[int, ...] | None:
        """Order from the base in which the coordinates act; None: they act together.

        Entry 0 is the index of the coordinate next to the base. Default: 0, ...,
        nv - 1; kinds whose coordinates act together override it with None.
        """
        return tuple(range(self.nv))

    @abstractmethod
    def X(self, q: Vector) -> Transform:
        """Return the transform from the frame before to the frame after the joint.

        `q` are the coordinates of the joint, nq.
        """

    @abstractmethod
    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace at q (nq), 6 x nv, in body coordinates."""

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the velocity across the joint, S(q) qd, in body coordinates."""
        return self.S(q) @ qd

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the bias of the velocity: (dS/dt in body coordinates) qd.

        dS/dt is the rate of S as q changes at velocity qd. Here it is zero; kinds whose
        S varies override it.
        """
        return Motion.zero()

    def S_slopes(self, q: Vector) -> list[MotionSubspace]:
        """Return the derivatives of S, a list of nv subspaces, one for each coordinate.

            dS_j/dq_k - dS_k/dq_j = S_j x S_k

        Entry k is dS/dq_k.

        Source: KIM-2.4, by Taylor numbers.
        """
        return [_slope(self.S(moving)) for moving in _along_each(q)]

    def cJ_slopes(self, q: Vector, qd: Vector) -> MotionSubspace:
        """Return the derivatives of cJ at constant qd; column k is dcJ/dq_k.

        Source: KIM-2.4, by Taylor numbers.
        """
        columns = (_slope([self.cJ(moving, qd)])[0] for moving in _along_each(q))
        return MotionSubspace(columns)

    @abstractmethod
    def neutral(self) -> tuple[float, ...]:
        """Return the coordinates (nq) at which X is the identity.

        For a custom joint, return its initial coordinates.
        """

    @abstractmethod
    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return random coordinates (nq) [rad | m]; limits are ignored.

        Angles are up to a half turn either way, away from singularities; lengths are
        mostly within 1 m. A custom joint draws within its span.
        """

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Return the coordinates (nq) after a displacement dv (nv) from q (nq).

        dv [rad | m] is in the axes of qd: body axes for joints with a quaternion, which
        keeps its length; else dv is added to q.
        """
        return q + dv

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Return the displacement dv (nv) with integrate(q0, dv) = q1 [rad | m].

        q0 and q1 are coordinates of the joint (nq); dv is in the axes of qd at q0.
        """
        return q1 - q0

    def rate(self, u: Vector, qd: Vector) -> Vector:
        """Return du/dt (nv) of a displacement u(t) from a fixed start [rad/s | m/s].

        It is qd itself for kinds without a quaternion.

        Args:
            u: Displacement from the start, nv [rad | m].
            qd: Velocity at the displaced position, nv [rad/s | m/s].
        """
        return qd

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Return dq/dt = Q(q) qd, (nq), for the velocity qd (nv) at q (nq).

        It is qd itself for kinds without a quaternion.
        """
        return qd

    def velocity_of(self, q: Vector, rate: Vector) -> Vector:
        """Return the velocity (nv) at which q (nq) changes at `rate` = dq/dt (nq).

        Its units are [rad/s | m/s]. Inverse of position_rate for unit quaternions,
        which is not checked; `rate` itself for kinds without a quaternion.
        """
        return rate

    def rate_in_initial_axes(self, qd: Vector, qdd: Vector) -> Vector:
        """Return the rate of the velocity in axes fixed at this instant, (nv,).

        It is qdd (nv) [rad/s² | m/s²], but if the velocity qd (nv) has a linear part v
        in body axes, this part gets v' + w x v.
        """
        return qdd

    def gyroscopic_change(
        self, H: Matrix, qd: Vector, force: Vector, dt: Scalar, remaining: float
    ) -> Vector:
        """Return the correction of a step's velocity to mean gyroscopic moments, nv.

        It is to be added to the velocity after an explicit step, so that the moments
        are at the mean velocity. Zero for kinds without free rotation.

        Args:
            H: Block of the joint-space inertia of this joint, nv x nv.
            qd: Velocity of the joint before the step, nv.
            force: Joint-space inertia of the robot times the acceleration without
                constraints, rows of this joint, nv [N·m | N].
            dt: Step [s].
            remaining: Fraction of the step that the body moves on from the position
                that belongs to qd; 1.0: that position is at the start of the step.
        """
        return Vector.zeros(self.nv)

    def advance(
        self, q: Vector, u: Vector, dt: Scalar, way: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """Return coordinates after dt, and u in the axes of the new position.

        Quaternions of the coordinates are normalised.

        Args:
            q: Coordinates at the start, nq.
            u: Velocity in the axes of the start, nv.
            dt: Step [s].
            way: Velocity that integrates the coordinates, in the axes of the start, nv;
                None: u.
        """
        return self.normalize(self.integrate(q, (u if way is None else way) * dt)), u

    def normalize(self, q: Vector) -> Vector:
        """Return the coordinates with quaternions scaled to unit length.

        Kinds without a quaternion return q itself. A zero quaternion is not checked:
        with floats it gives a ZeroDivisionError.
        """
        return q

    def quaternions(self, q: Vector) -> tuple[Vector, ...]:
        """Return the quaternions (x, y, z, w) among the coordinates q, or ().

        Each has 4 entries of q, unchanged.
        """
        return ()

    def has_lengths(self, q: np.ndarray) -> bool:
        """Return whether all quaternions in q (..., nq) can be normalised; NaN passes.

        One that cannot has a squared length that is infinite or below 2.2e-308.
        """
        # quaternions() of the indices 0, 1, ... returns the indices of each quaternion.
        places = [[int(k) for k in x] for x in self.quaternions(Vector(range(self.nq)))]
        with np.errstate(over="ignore"):
            squares = [np.square(q[..., x]).sum(axis=-1) for x in places]
        low = np.finfo(float).tiny
        return not any(((x < low) | np.isposinf(x)).any() for x in squares)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(sorted(self.__dict__.items()))))

    def __repr__(self) -> str:
        data = ", ".join(f"{k}={v}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({data})"


class GroupJoint(Joint):
    """A joint with configurations in a Lie group: qd is a body velocity, S constant."""

    @property
    def series(self) -> None:
        """None: the coordinates act together, in no order."""
        return None

    def S_slopes(self, q: Vector) -> list[MotionSubspace]:
        """Return nv zero subspaces: S is constant."""
        return [MotionSubspace([Motion.zero()] * self.nv)] * self.nv

    def cJ_slopes(self, q: Vector, qd: Vector) -> MotionSubspace:
        """Return nv zero columns: cJ is zero."""
        return MotionSubspace([Motion.zero()] * self.nv)

    @abstractmethod
    def motion(self, u: Vector) -> Motion:
        """Return the displacement u (nv), in body axes, as a Motion."""

    def rate(self, u: Vector, qd: Vector) -> Vector:
        """Return du/dt (nv) of a displacement u(t) from a fixed start.

        Accurate to fourth order in u (lie.tangent_rate).

        Args:
            u: Displacement from the start, nv [rad | m].
            qd: Velocity at the displaced position, nv [rad/s | m/s].
        """
        six = tuple(tangent_rate(self.motion(u), self.motion(qd)))
        return Vector(six[: self.nv])


def _along_each(q: Vector) -> Iterator[Vector]:
    """Yield q as Taylor numbers, each time with respect to another coordinate."""
    for k in range(len(q)):
        yield Vector(variables(q, k))


def _slope(columns: Iterable[Motion]) -> MotionSubspace:
    """Return the first derivatives of motions of Taylor numbers, one column for each.

    They are by the variable of rank COORDINATE, the one coordinate that varies.
    """
    return MotionSubspace(
        Motion.of([derivatives(x, COORDINATE)[1] for x in column]) for column in columns
    )
