"""Joints composed of joints in series: planar, ball_rpy, universal and others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from typing import ClassVar

import numpy as np

from dyn_core.errors import ModelError, SingularError
from dyn_core.model.description import JointSpec
from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.one_axis import Prismatic, Revolute, direction, unit
from dyn_core.numbers.scalar import Scalar, logical_not, require
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector, cross

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class Product(Joint):
    """Joints in series without bodies in between, as one joint.

        X = X_n ... X_1,   S_k = X_n ... X_(k+1) S_k(q_k)
        c_k = X_k c_(k-1) + cJ_k + (X_k v_(k-1)) x vJ_k,   cJ = c_n

    Args:
        factors: Joints from the base to the body, each with nq = nv.
        places: Index in q of each coordinate of the factors in turn; None: the same
            order.

    Raises:
        ModelError: No factor, a factor with a quaternion, or `places` is no
            permutation.

    Source: KIM-2.4.
    """

    kind = "product"
    entries: ClassVar[tuple[str, ...]] = ("factors",)

    def __init__(
        self, factors: Iterable[Joint], places: Iterable[int] | None = None
    ) -> None:
        self.factors = tuple(factors)
        if not self.factors:
            raise ModelError("a product needs at least one factor")
        for factor in self.factors:
            if factor.nq != factor.nv:
                raise ModelError(
                    f"a {factor.kind} joint cannot be a factor of a product; valid:"
                    " joints whose positions are numbers, one for each velocity"
                )
        self.nq = self.nv = sum(factor.nv for factor in self.factors)
        every = range(self.nv)
        self.places = tuple(every if places is None else places)
        if sorted(self.places) != list(every):
            raise ModelError(
                f"places of a product needs each of 0..{self.nv - 1} once, got"
                f" {self.places}"
            )

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the product of these factors; `spec` is ignored.

        Raises ModelError if there is no factor, or one has a quaternion.
        """
        return cls(factors)

    @property
    def series(self) -> tuple[int, ...] | None:
        """Order from the base in which the coordinates act: indices in q.

        None if the coordinates of a factor act together.
        """
        orders = [factor.series for factor in self.factors]
        series: list[int] = []
        for order, places in zip(orders, self._factor_places(), strict=True):
            if order is None:
                return None
            series += [places[k] for k in order]
        return tuple(series)

    def _factor_places(self) -> list[tuple[int, ...]]:
        """Return the indices in q of each factor, from the base to the body."""
        ends = np.cumsum([0, *(factor.nv for factor in self.factors)]).tolist()
        return [self.places[a:b] for a, b in zip(ends, ends[1:], strict=False)]

    def _split(self, *values: Vector) -> list[tuple[Joint, list[Vector]]]:
        """Return each factor with its parts of Vectors like q, from base to body."""
        return [
            (factor, [Vector(x[k] for k in places) for x in values])
            for factor, places in zip(self.factors, self._factor_places(), strict=True)
        ]

    def X(self, q: Vector) -> Transform:
        """Return the product of the transforms of the factors, X_n ... X_1."""
        X = Transform.identity()
        for factor, (q_k,) in self._split(q):
            X = factor.X(q_k) @ X
        return X

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace, columns in the order of q, in body axes."""
        columns: list[Motion] = []
        for factor, (q_k,) in self._split(q):
            X = factor.X(q_k)
            columns = [*(X @ column for column in columns), *factor.S(q_k)]
        return MotionSubspace(columns[self.places.index(k)] for k in range(self.nv))

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the bias: the acceleration at constant qd, in body axes, by recursion.

        It is computed from factor to factor; q and qd are in the order of the product's
        coordinates.
        """
        v, c = Motion.zero(), Motion.zero()
        for factor, (q_k, qd_k) in self._split(q, qd):
            X, vJ = factor.X(q_k), factor.vJ(q_k, qd_k)
            v_p = X @ v
            c = X @ c + factor.cJ(q_k, qd_k) + cross(v_p, vJ)
            v = v_p + vJ
        return c

    def _in_order(self, parts: Iterable[Sequence[float]]) -> tuple[float, ...]:
        """Return the numbers of all factors in the order of q, as `parts` has them."""
        flat = [x for part in parts for x in part]
        return tuple(flat[self.places.index(k)] for k in range(self.nq))

    def neutral(self) -> tuple[float, ...]:
        """Return the neutral coordinates of the factors in the order of q."""
        return self._in_order(factor.neutral() for factor in self.factors)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return random coordinates of each factor in the order of q."""
        return self._in_order(factor.random(rng) for factor in self.factors)


def plane_axes(normal: Iterable[float]) -> tuple[Vector, Vector]:
    """Return two axes of the plane with a unit normal n, (3,) each.

    They are x and y rotated by the smallest rotation from z to n; x and -y for n = -z.
    """
    n = np.array(tuple(normal))
    if n[2] < -1 + 1e-12:
        return Vector((1.0, 0.0, 0.0)), Vector((0.0, -1.0, 0.0))
    u = np.array([-n[1], n[0], 0.0])  # z x n
    W = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    R = np.eye(3) + W + W @ W / (1 + n[2])
    ex, ey = (unit(R[:, k]) for k in range(2))
    return ex, ey


class _OfAxis(Product):
    """A product of factors, from the base to the body, that one axis determines.

    The given axis is normalised.
    """

    entries: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: Iterable[float], factors: Iterable[Joint]) -> None:
        super().__init__(factors)
        self.axis: Sequence[Scalar] = tuple(unit(axis))

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint with the axis of `spec`; `factors` are ignored."""
        return cls.about(spec.axis)

    def geometry(self, what: str) -> list[Scalar]:
        """Return the unit axis (3 numbers); an empty list for other `what`."""
        return list(self.axis) if what == "axis" else []

    def _with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return a copy of the joint with another axis, which is normalised."""
        joint = copy(self)
        joint.axis = direction(values)
        joint.factors = joint._about(joint.axis)
        return joint

    @abstractmethod
    def _about(self, axis: Sequence[Scalar]) -> tuple[Joint, ...]:
        """Return the factors for a unit axis, from the base to the body."""


class Planar(_OfAxis):
    """Motion in a plane: q = (x, y, angle) [m, m, rad], qd = dq/dt.

    x and y are measured along fixed axes of the plane (plane_axes); the axis of the
    joint is the normal. Raises ModelError unless the axis has three finite numbers, not
    all zero.

    Source: KIM-2.4, there in the order (angle, x, y).
    """

    kind = "planar"
    nq = nv = 3

    def __init__(self, axis: Iterable[float] = _Z) -> None:
        normal = tuple(unit(axis))
        ex, ey = plane_axes(normal)
        super().__init__(normal, (Prismatic(ex), Prismatic(ey), Revolute(normal)))

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Return the joint with this normal (3,), which is normalised."""
        return cls(axis)

    def _about(self, axis: Sequence[Scalar]) -> tuple[Joint, ...]:
        """Return slides along the axes of the plane, and a rotation about its normal.

        The unit normal `axis` is not checked. SingularError for -z, where the axes (see
        `plane_axes`) jump; with traced numbers the Program raises it.
        """
        x, y, z = axis
        item = "axis of a planar joint: at -z the axes of the plane jump"
        require(logical_not(z <= 1e-12 - 1.0), SingularError, item)
        tilt = 1.0 / (1.0 + z)
        ex = (1.0 - x * x * tilt, -x * y * tilt, -x)
        ey = (-x * y * tilt, 1.0 - y * y * tilt, -y)
        kinds = (Prismatic, ex), (Prismatic, ey), (Revolute, axis)
        return tuple(kind().with_geometry("axis", along) for kind, along in kinds)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a position within 1 m in x and y, and an angle in [-pi, pi]."""
        x, y = rng.uniform(-1, 1, 2)
        return (float(x), float(y), float(rng.uniform(-math.pi, math.pi)))


class Cylindrical(_OfAxis):
    """Rotation about and translation along one axis: q = (angle [rad], slide [m]).

    Raises ModelError unless the axis has three finite numbers, not all zero.

    Source: KIM-2.4.
    """

    kind = "cylindrical"
    nq = nv = 2

    def __init__(self, axis: Iterable[float] = _Z) -> None:
        axis = tuple(axis)
        super().__init__(axis, (Revolute(axis), Prismatic(axis)))

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Return the joint with this axis (3,), which is normalised."""
        return cls(axis)

    def _about(self, axis: Sequence[Scalar]) -> tuple[Joint, ...]:
        """Return a rotation about and a slide along the unit axis, two joints."""
        return tuple(
            kind().with_geometry("axis", axis) for kind in (Revolute, Prismatic)
        )


class Universal(Product):
    """Two rotations about crossing axes: R = R_a(q1) R_b(q2); by default x and y.

        S = [(cos q2, 0, sin q2; 0), (0, 1, 0; 0)]   for the axes x and y

    Source: KIM-2.4.
    """

    kind = "universal"
    entries: ClassVar[tuple[str, ...]] = ("axes",)
    nq = nv = 2

    def __init__(
        self, first: Iterable[float] = _X, second: Iterable[float] = _Y
    ) -> None:
        super().__init__((Revolute(first), Revolute(second)))

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint with the two axes of `spec`; `factors` are ignored.

        Raises ModelError unless each axis has three finite numbers, not all zero.
        Whether they are parallel is not checked, nor that there are two: missing axes
        are x and y, more than two raise TypeError.
        """
        return cls(*spec.axes)

    def geometry(self, what: str) -> list[Scalar]:
        """Return both unit axes (6 numbers) if `what` is "axes"; else []."""
        if what != "axes":
            return []
        return [x for factor in self.factors for x in factor.geometry("axis")]

    def _with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return a copy with two other axes (six numbers), each normalised."""
        joint, both = copy(self), (values[:3], values[3:])
        joint.factors = tuple(Revolute().with_geometry("axis", x) for x in both)
        return joint


def _away_from_singular(rng: np.random.Generator) -> tuple[float, float, float]:
    """Return three random angles [rad], the second at least 0.2 from ±pi/2."""
    x, z = rng.uniform(-math.pi, math.pi, 2)
    y = rng.uniform(0.2 - math.pi / 2, math.pi / 2 - 0.2)
    return float(x), float(y), float(z)


class BallRPY(Product):
    """Rotation by three angles: q = (x, y, z), R = Rz(z) Ry(y) Rx(x), qd = dq/dt.

    Joint forces are conjugate to the rates of the angles, not to the angular velocity.
    At cos y = 0 two of the axes coincide and the joint is singular; a spherical joint
    is never singular.

    Source: TAZZ-4.3; KIM-2.4, there in the order (z, y, x).
    """

    kind = "ball_rpy"
    entries: ClassVar[tuple[str, ...]] = ()
    nq = nv = 3

    def __init__(self) -> None:
        super().__init__([Revolute(axis) for axis in (_Z, _Y, _X)], (2, 1, 0))

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint, which is always the same; both arguments are ignored."""
        return cls()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return random angles, the second at least 0.2 rad from a singularity."""
        return _away_from_singular(rng)


class FreeRPY(Product):
    """Free motion: q = (x, y, z, roll, pitch, yaw) [m, rad], qd = dq/dt.

        p = (x, y, z),   R = Rz(yaw) Ry(pitch) Rx(roll)

    Singular at cos pitch = 0; a floating joint is never singular.

    Source: KIM-2.4 (free joint in coordinates).
    """

    kind = "free_rpy"
    unactuated = True
    entries: ClassVar[tuple[str, ...]] = ()
    nq = nv = 6

    def __init__(self) -> None:
        shifts = [Prismatic(axis) for axis in (_X, _Y, _Z)]
        turns = [Revolute(axis) for axis in (_Z, _Y, _X)]
        super().__init__([*shifts, *turns], (0, 1, 2, 5, 4, 3))

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint, which is always the same; both arguments are ignored."""
        return cls()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a position within 1 m in x, y, z, then three random angles [m, rad].

        The pitch is at least 0.2 rad from a singularity.
        """
        x, y, z = (float(value) for value in rng.uniform(-1, 1, 3))
        return (x, y, z, *_away_from_singular(rng))
