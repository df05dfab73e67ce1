"""Columns, matrices, and spatial vectors: motions and forces as separate types.

Entries are any number-like values (floats, traced symbols, ...). Motions and forces
live in dual spaces: only meaningful operations are defined, all others raise a
TypeError. No operation changes its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add, mul, neg, sub, truediv
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dyn_core.errors import FrameMismatchError


class Vector:
    """A column of numbers: `+ - * /` act entry by entry, `@` is the inner product.

    `+ -` need a Vector of the same length or a sequence, `* /` such a Vector or a
    scalar. Other lengths and types raise TypeError.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[Any]) -> None:
        self.entries = tuple(entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entries)

    def __getitem__(self, index: Any) -> Any:
        entries = self.entries[index]
        return Vector(entries) if isinstance(index, slice) else entries

    def __repr__(self) -> str:
        return f"Vector({', '.join(map(str, self.entries))})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.entries, dtype=dtype)

    def _with(self, other: Any, op: Callable[[Any, Any], Any]) -> Vector:
        """Return op(entry, entry of `other`), entry by entry, for a Vector `other`.

        Anything else must be a scalar: op(entry, other).
        """
        if isinstance(other, Vector):
            a, b = self.entries, other.entries
            if len(a) != len(b):
                raise TypeError(f"lengths differ: {len(a)} and {len(b)}")
            return Vector(map(op, a, b))
        s = _scalar(other, self)
        return Vector([op(x, s) for x in self.entries])

    def __add__(self, other: Any) -> Vector:
        return self._with(_vector(other), add)

    def __sub__(self, other: Any) -> Vector:
        return self._with(_vector(other), sub)

    def __mul__(self, other: Any) -> Vector:
        return self._with(other, mul)

    def __rmul__(self, other: Any) -> Vector:
        return self._with(other, lambda a, b: b * a)

    def __truediv__(self, other: Any) -> Vector:
        return self._with(other, truediv)

    def __neg__(self) -> Vector:
        return Vector(map(neg, self.entries))

    def __matmul__(self, other: Vector) -> Any:
        if not isinstance(other, Vector):
            return NotImplemented
        return _inner(self.entries, other.entries)

    def _no_number(self, *_: Any) -> NoReturn:
        raise TypeError(
            "a Vector is a column, not a number; valid: one entry, as q[i][0] of a"
            " joint, with where(a > b, x, y), and sin, sqrt, ... of dyn_core.authoring;"
            " x * x of all entries"
        )

    __float__ = __abs__ = __pow__ = __lt__ = __le__ = __gt__ = __ge__ = _no_number

    def map_with(self, function: Callable[[Any, Any], Any], other: Vector) -> Vector:
        """Return the Vector of function(x, y), entry by entry: x of self, y of `other`.

        Raises TypeError if the lengths differ.
        """
        return self._with(other, function)

    @classmethod
    def zeros(cls, n: int) -> Vector:
        """Return a column of n zeros."""
        return cls([0.0] * n)


class Matrix:
    """A small dense matrix of number-like entries, stored as a tuple of rows.

    `+ -` need a Matrix of the same shape, `@` a Matrix or Vector of matching size
    (TypeError), `*` a scalar. Rows must have one length, which is not checked.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Iterable[Iterable[Any]]) -> None:
        self.rows = tuple(map(tuple, rows))

    def __getitem__(self, index: tuple[int, int]) -> Any:
        return self.rows[index[0]][index[1]]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype)

    def __repr__(self) -> str:
        return f"Matrix({[list(row) for row in self.rows]})"

    @property
    def T(self) -> Matrix:
        """The transpose."""
        return Matrix(zip(*self.rows, strict=True))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns; (0, 0) without rows."""
        return len(self.rows), len(self.rows[0]) if self.rows else 0

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vector):
            entries = other.entries
            return Vector([_inner(row, entries) for row in self.rows])
        if isinstance(other, Matrix):
            columns = tuple(zip(*other.rows, strict=True))
            return Matrix([[_inner(row, c) for c in columns] for row in self.rows])
        return NotImplemented

    def _with(self, other: Matrix, op: Callable[[Any, Any], Any]) -> Matrix:
        """Return the Matrix of op(x, y), entry by entry: x of self, y of `other`."""
        if not isinstance(other, Matrix) or other.shape != self.shape:
            raise TypeError(f"a Matrix {self.shape} needs its like, not {other!r}")
        pairs = zip(self.rows, other.rows, strict=True)
        return Matrix(map(op, a, b) for a, b in pairs)

    def __add__(self, other: Matrix) -> Matrix:
        return self._with(other, add)

    def __sub__(self, other: Matrix) -> Matrix:
        return self._with(other, sub)

    def __mul__(self, s: Any) -> Matrix:
        s = _scalar(s, self)
        return Matrix([[x * s for x in row] for row in self.rows])

    __rmul__ = __mul__

    def __neg__(self) -> Matrix:
        return Matrix([[-x for x in row] for row in self.rows])

    def map_with(self, function: Callable[[Any, Any], Any], other: Matrix) -> Matrix:
        """Return the Matrix of function(x, y), entry by entry: x of self, y of `other`.

        Raises TypeError if `other` is no Matrix of the same shape.
        """
        return self._with(other, function)

    @classmethod
    def zeros(cls, rows: int, columns: int) -> Matrix:
        """Return a matrix of zeros, (rows, columns)."""
        return cls([0.0] * columns for _ in range(rows))

    @classmethod
    def identity(cls, n: int) -> Matrix:
        """Return the n x n identity matrix."""
        return cls([float(i == j) for j in range(n)] for i in range(n))

    @classmethod
    def diagonal(cls, entries: Iterable[Any]) -> Matrix:
        """Return the n x n diagonal matrix of n entries; all others are 0.0."""
        d = tuple(entries)
        return cls(
            [x if i == j else 0.0 for j in range(len(d))] for i, x in enumerate(d)
        )


class Spatial:
    """Base class of motions and forces: two 3-vectors in one frame.

    `+ -` need another vector of the same type (TypeError) whose frame label is not
    different (FrameMismatchError); `*` needs a scalar.

    Attributes:
        ang: Angular part: rotation of a motion, moment of a force about the frame's
            origin.
        lin: Linear part: of a motion, that of the frame's origin; of a force, the
            force.
        frame: Label of the frame; None: frames are not checked.

    Raises:
        TypeError: A part does not have three numbers.
    """

    __slots__ = ("ang", "frame", "lin")

    def __init__(
        self, ang: Iterable[Any], lin: Iterable[Any], frame: Any = None
    ) -> None:
        self.ang, self.lin = _vector(ang), _vector(lin)
        self.frame = frame
        if len(self.ang.entries) != 3 or len(self.lin.entries) != 3:
            raise TypeError(f"{type(self).__name__} takes two columns of three numbers")

    @classmethod
    def of(cls, six: Iterable[Any], frame: Any = None) -> Any:
        """Return a vector of this type from six numbers, [angular; linear].

        `frame` is its frame label. Raises TypeError for another number of numbers.
        """
        six = tuple(six)
        return cls(six[:3], six[3:], frame)

    @classmethod
    def zero(cls) -> Any:
        """Return the zero vector of this type, without a frame label."""
        return cls((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    if not TYPE_CHECKING:  # type checkers would take every name for valid

        def __getattr__(self, name: str) -> Any:
            message = f"'{type(self).__name__}' object has no attribute '{name}'"
            if not name.startswith("_"):
                message += "; valid: ang, lin, frame; x @ y, cross(v, x) of"
                message += " dyn_core.authoring"
            raise AttributeError(message)

    def __iter__(self) -> Iterator[Any]:
        yield from self.ang
        yield from self.lin

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(tuple(self), dtype=dtype)

    def __repr__(self) -> str:
        label = "" if self.frame is None else f", frame={self.frame!r}"
        return f"{type(self).__name__}({list(self.ang)}, {list(self.lin)}{label})"

    def _same(self, other: Any) -> Any:
        """Return the frame label of this vector or of `other`; None if neither has one.

        Another type or frame is refused.
        """
        if type(other) is not type(self):
            raise TypeError(
                f"a {type(self).__name__} and a {type(other).__name__} are of different"
                " spaces and cannot be added"
            )
        return common_frame(self, other)

    def __add__(self, other: Any) -> Any:
        frame = self._same(other)
        return type(self)(self.ang + other.ang, self.lin + other.lin, frame)

    def __sub__(self, other: Any) -> Any:
        frame = self._same(other)
        return type(self)(self.ang - other.ang, self.lin - other.lin, frame)

    def __neg__(self) -> Any:
        return type(self)(-self.ang, -self.lin, self.frame)

    def __mul__(self, scale: Any) -> Any:
        scale = _scalar(scale, self)
        return type(self)(self.ang * scale, self.lin * scale, self.frame)

    __rmul__ = __mul__

    def map_with(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        """Return the vector of function(x, y) by component: x of self, y of `other`.

        It has the frame label of either. Raises TypeError for another type,
        FrameMismatchError for another frame.
        """
        frame = self._same(other)
        ang = self.ang.map_with(function, other.ang)
        return type(self)(ang, self.lin.map_with(function, other.lin), frame)


class Motion(Spatial):
    """Velocity or acceleration of a rigid body: [angular; linear] (M6).

    In [rad/s; m/s] or [rad/s²; m/s²]; accelerations are spatial unless said otherwise.
    """

    __slots__ = ()

    def __matmul__(self, force: Any) -> Any:
        """Return the scalar product with a Force: for a velocity, the power [W].

        Raises TypeError for other types, FrameMismatchError for another frame.
        """
        if not isinstance(force, Force):
            raise TypeError(f"Motion . {type(force).__name__}: needs a Force")
        common_frame(self, force)
        return self.ang @ force.ang + self.lin @ force.lin


class Force(Spatial):
    """Force on a rigid body: [moment; force] [N·m; N] (F6, dual of M6)."""

    __slots__ = ()

    def __matmul__(self, motion: Any) -> Any:
        """Return the scalar product with a Motion, equal in either order.

        Raises TypeError for other types, FrameMismatchError for another frame.
        """
        if not isinstance(motion, Motion):
            raise TypeError(f"Force . {type(motion).__name__}: needs a Motion")
        return motion @ self


def _inner(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return a[0]*b[0] + a[1]*b[1] + ..., in this order; 0.0 for empty columns."""
    if len(a) != len(b):
        raise TypeError(f"lengths differ: {len(a)} and {len(b)}")
    result: Any = None
    for x, y in zip(a, b):  # noqa: B905
        result = x * y if result is None else result + x * y
    return 0.0 if result is None else result


def _scalar(x: Any, other: Any) -> Any:
    """Return x, a factor of `other`; raise TypeError for what has several numbers.

    These are vectors, matrices, lists, tuples and texts. An array is returned, too: it
    is one number for each row of a batch.
    """
    if isinstance(x, (Vector, Spatial, Matrix, list, tuple, str)):
        names = f"a {type(other).__name__} and a {type(x).__name__}"
        raise TypeError(f"{names} do not combine")
    return x


def _vector(x: Any) -> Vector:
    """Return a sequence x as a Vector, its entries not checked; a Vector unchanged."""
    if isinstance(x, Vector):
        return x
    if isinstance(x, (Spatial, Matrix)):
        raise TypeError(f"a Vector and a {type(x).__name__} do not combine")
    if not hasattr(x, "__iter__"):
        raise TypeError("a Vector and a number do not add; valid: Vector([x]), x[0]")
    return Vector(x)


def total(terms: Iterable[Any]) -> Any:
    """Return the first term plus the other terms, in order; 0.0 if there are none.

    The sum does not begin with the number 0, so the terms can be spatial values.
    """
    terms = iter(terms)
    result = next(terms, 0.0)
    for term in terms:
        result = result + term
    return result


def common_frame(a: Spatial, b: Spatial) -> Any:
    """Return the frame label of a and b, or None; FrameMismatchError if they differ."""
    if a.frame is not None and b.frame is not None and a.frame != b.frame:
        raise FrameMismatchError(f"frames differ: {a.frame!r} and {b.frame!r}")
    return b.frame if a.frame is None else a.frame


def cross3(a: Vector, b: Vector) -> Vector:
    """Return the cross product a x b of two 3-vectors; ValueError for other lengths."""
    (a1, a2, a3), (b1, b2, b3) = a.entries, b.entries
    return Vector((a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1))


def skew(r: Iterable[Any]) -> Matrix:
    """Return the 3x3 matrix r x of a 3-vector, with (r x) b = r x b.

    Raises ValueError for another number of entries.

    Source: GUIDE (13); SV-4.4.
    """
    x, y, z = r
    return Matrix(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))


def rotation_rates(w: Vector, alpha: Vector) -> Matrix:
    """Return U = [alpha] + [w][w]: a point fixed at r accelerates by a + U r.

    Args:
        w: Angular velocity, 3 [rad/s].
        alpha: Angular acceleration, 3 [rad/s²].

    Returns:
        U, 3x3 [1/s²]; a is the classical acceleration of the origin.
    """
    (x, y, z), (ax, ay, az) = w, alpha
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return Matrix(
        (
            (-(yy + zz), xy - az, xz + ay),
            (xy + az, -(xx + zz), yz - ax),
            (xz - ay, yz + ax, -(xx + yy)),
        )
    )


def cross_motion(v: Motion, m: Motion) -> Motion:
    """Return v x m: the rate of a motion m fixed in a body that moves with v.

    The result has the frame label of v or m; None if neither has one.

    Raises TypeError for other types, FrameMismatchError for different frames.

    Source: GUIDE (17); RBDA (2.31); SV-1.1, SV-3.6, SV-5.3, SV-5.4; KIM-1.8.
    """
    if not (isinstance(v, Motion) and isinstance(m, Motion)):
        raise TypeError("v x m needs two Motions; a force takes cross_force")
    frame = common_frame(v, m)
    lin = cross3(v.ang, m.lin) + cross3(v.lin, m.ang)
    return Motion(cross3(v.ang, m.ang), lin, frame)


def cross_force(v: Motion, f: Force) -> Force:
    """Return v x* f: the rate of a force f fixed in a body that moves with v.

        (v x m) . f = -m . (v x* f)

    The result has the frame label of v or f; None if neither has one.

    Raises TypeError for other types, FrameMismatchError for different frames.

    Source: GUIDE (18); RBDA (2.32); SV-1.1, SV-3.6, SV-5.3, SV-5.4; KIM-1.8.
    """
    if not (isinstance(v, Motion) and isinstance(f, Force)):
        raise TypeError("v x* f needs a Motion and a Force")
    frame = common_frame(v, f)
    ang = cross3(v.ang, f.ang) + cross3(v.lin, f.lin)
    return Force(ang, cross3(v.ang, f.lin), frame)


def cross(v: Motion, other: Any) -> Any:
    """Return v x m for a Motion, v x* f for a Force; subspaces column by column.

    The result has the type of `other`; each Motion or Force has the frame label of v or
    its operand, None if neither has one. Raises TypeError for other types,
    FrameMismatchError for different frames.
    """
    if hasattr(other, "columns"):
        return type(other)(cross(v, column) for column in other)
    if isinstance(other, Force):
        return cross_force(v, other)
    return cross_motion(v, other)
