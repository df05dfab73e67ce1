"""Joints with one coordinate: revolute, continuous, prismatic, helical."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np

from dyn_core.errors import ModelError, SingularError
from dyn_core.model.description import JointSpec
from dyn_core.model.joints.base import Joint
from dyn_core.numbers.scalar import Scalar, cos, sin, sqrt
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform, Vector
from dyn_core.validation import finite_array

_ZERO = Vector((0.0, 0.0, 0.0))
Axis = tuple[Scalar, ...]


def unit(axis: Iterable[float]) -> Vector:
    """Return an axis scaled to unit length, a Vector (3,).

    Components that are 0 or ±1 up to rounding are set to these values. Raises
    ModelError unless it has three finite numbers that are not all 0.
    """
    axis = [float(x) for x in finite_array("axis", tuple(axis), 3)]
    power = math.frexp(max(map(abs, axis)))[1]  # squares neither overflow nor vanish
    x, y, z = (math.ldexp(x, -power) for x in axis)
    length = math.sqrt(x * x + y * y + z * z)
    if length == 0.0:
        raise ModelError(f"axis is ({x}, {y}, {z}); valid: a length above 0", "axis")
    return Vector((_snapped(x / length), _snapped(y / length), _snapped(z / length)))


def _snapped(x: float) -> float:
    """Return 0 or ±1 if a number is within 1e-15 of it, else the number."""
    if abs(x) < 1e-15:
        return 0.0
    return math.copysign(1.0, x) if abs(abs(x) - 1.0) < 1e-15 else x


def direction(values: Sequence[Scalar]) -> Axis:
    """Return an axis of floats or symbols scaled to unit length, a tuple of three.

    Components of floats that are 0 or ±1 up to rounding are set to these values. Zeros
    raise SingularError; floats that are not finite, or not three, a ModelError. With a
    symbol among them nothing is checked.
    """
    if all(isinstance(x, (int, float)) for x in values):
        if not any(values):
            raise SingularError("axis, whose length is 0")
        return tuple(unit(values))
    axis = Vector(values)
    return tuple(axis * (1.0 / sqrt(axis @ axis)))


def turned(a: Sequence[Any], s: Any, c: Any) -> Matrix:
    """Return the coordinate rotation E = R.T, R by Rodrigues' formula.

    a is the unit axis, s and c are sine and cosine of the angle; entries may be arrays.
    """
    x, y, z = a
    turn = ((0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0))
    return Matrix(
        [
            a[i] * a[j] + (float(i == j) - a[i] * a[j]) * c + turn[i][j] * s
            for j in range(3)
        ]
        for i in range(3)
    )


class _OneAxis(Joint):
    """A joint with one unit axis, the same in the frames before and after it.

    The given direction is normalised.
    """

    entries: ClassVar[tuple[str, ...]] = ("axis",)
    nq = nv = 1

    def __init__(self, axis: Iterable[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis: Axis = tuple(unit(axis))

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Return the joint with this axis (3,), which is normalised; a pitch is 0."""
        return cls(axis)

    def geometry(self, what: str) -> list[Scalar]:
        """Return the unit axis (3 numbers); an empty list for other `what`."""
        return list(self.axis) if what == "axis" else []

    def _with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return a copy with another axis, normalised; symbols are not checked."""
        joint = copy(self)
        joint.axis = direction(values)
        return joint

    def neutral(self) -> tuple[float, ...]:
        """Return zero, at which X is the identity."""
        return (0.0,)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a coordinate in [-pi, pi]; limits are ignored [rad]."""
        return (float(rng.uniform(-math.pi, math.pi)),)


class Revolute(_OneAxis):
    """Rotation by q [rad] about an axis.

    Raises ModelError unless the axis has three finite numbers, not all zero.

    Source: TAZZ-4.1; KIM-2.4.
    """

    kind = "revolute"

    def X(self, q: Vector) -> Transform:
        """Return the rotation by q about the axis: E = R.T, R by Rodrigues' formula."""
        return Transform(turned(self.axis, sin(q[0]), cos(q[0])), _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace (a; 0), with unit axis a."""
        return MotionSubspace([Motion(self.axis, _ZERO)])


class Continuous(Revolute):
    """Rotation by q [rad] about an axis without limits; q is not wrapped."""

    kind = "continuous"


class Prismatic(_OneAxis):
    """Translation by q [m] along an axis.

    Raises ModelError unless the axis has three finite numbers, not all zero.

    Source: TAZZ-4.2; KIM-2.4.
    """

    kind = "prismatic"

    def X(self, q: Vector) -> Transform:
        """Return the shift of the origin by q along the axis."""
        return Transform(Matrix.identity(3), Vector(a * q[0] for a in self.axis))

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace (0; a), with unit axis a."""
        return MotionSubspace([Motion(_ZERO, self.axis)])

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a coordinate in [-1, 1]; limits are ignored [m]."""
        return (float(rng.uniform(-1.0, 1.0)),)


class Helical(_OneAxis):
    """Screw joint: rotation by q [rad] about an axis, and pitch q [m] along it.

        S = (a; h a)

    with pitch h [m/rad], which is not checked. Raises ModelError unless the axis has
    three finite numbers, not all zero.

    Source: KIM-2.4.
    """

    kind = "helical"
    entries: ClassVar[tuple[str, ...]] = ("axis", "pitch")

    def __init__(
        self, axis: Iterable[float] = (0.0, 0.0, 1.0), pitch: float = 0.0
    ) -> None:
        super().__init__(axis)
        self.pitch: Scalar = pitch

    @classmethod
    def specified(cls, spec: JointSpec, factors: Sequence[Joint]) -> Joint:
        """Return the joint with the axis and pitch [m/rad] of `spec`.

        `factors` are ignored. Raises ModelError unless the axis has three finite
        numbers, not all zero.
        """
        return cls(spec.axis, spec.pitch)

    def geometry(self, what: str) -> list[Scalar]:
        """Return the unit axis (3) or the pitch (1 number); [] for other `what`."""
        return [self.pitch] if what == "pitch" else super().geometry(what)

    def _with_geometry(self, what: str, values: Sequence[Scalar]) -> Joint:
        """Return a copy with another axis, normalised, or another pitch [m/rad]."""
        if what == "axis":
            return super()._with_geometry(what, values)
        joint = copy(self)
        joint.pitch = values[0]
        return joint

    def X(self, q: Vector) -> Transform:
        """Return the rotation by q about the axis, and the shift along it."""
        E = turned(self.axis, sin(q[0]), cos(q[0]))
        return Transform(E, Vector(a * (self.pitch * q[0]) for a in self.axis))

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace (a; h a), with unit axis a and pitch h."""
        along = Vector(a * self.pitch for a in self.axis)
        return MotionSubspace([Motion(self.axis, along)])
