"""Inertias: of a rigid body (10 parameters) and of an articulated body (21)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.spatial.linear import Factored
from dyn_core.spatial.symmetric import ORDER, Symmetric
from dyn_core.spatial.vectors import Force, Matrix, Motion, Vector, cross3, skew
from dyn_core.validation import float_array


class RigidInertia:
    """Inertia of a rigid body, about the origin and along the axes of one frame.

        I v = [Io w + h x v; m v - h x w]       h = m c,  Io = Ic + m c x c x.T

    `I @ v` is a Force for a Motion, a ForceSubspace for a MotionSubspace. Inertias in
    one frame can be added, also to an ArticulatedInertia.

    Attributes:
        m: Mass [kg].
        h: Mass times centre of mass, 3 [kg m].
        I: Rotational inertia about the frame's origin, Symmetric [kg m²].

    Source: GUIDE (23), (25); RBDA (2.63); SV-3.8, SV-3.9, SV-7.1, SV-7.2; KIM-1.6.
    """

    __slots__ = ("I", "h", "m")

    def __init__(self, m: Any, h: Vector, I: Symmetric) -> None:
        self.m, self.h, self.I = m, h, I

    @classmethod
    def of(cls, m: Any, c: Iterable[Any], Ic: Any) -> RigidInertia:
        """Return the inertia of a mass, centre of mass and inertia about it, unchecked.

        Only the sizes are checked: others raise ValueError or IndexError.

        Args:
            m: Mass [kg].
            c: Centre of mass, 3 [m].
            Ic: Inertia about c along the frame's axes [kg m²], a Matrix or three rows
                (only the upper triangle is used), or the six entries xx, xy, xz, yy,
                yz, zz.
        """
        c = Vector(c)
        entries = tuple(Ic.rows if isinstance(Ic, Matrix) else Ic)
        if len(entries) == 3:
            entries = tuple(entries[i][j] for i, j in ORDER)
        a = skew(c)
        steiner = Symmetric.of(a @ a * m)
        return cls(m, c * m, Symmetric(entries) - steiner)

    @classmethod
    def of_parameters(cls, ten: Iterable[Any]) -> RigidInertia:
        """Return the inertia of ten parameters, unchecked.

        They are m [kg], m c (3) [kg m], and Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the
        frame's origin [kg m²]. Raises ValueError for another number of parameters.
        """
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = ten
        return cls(m, Vector((hx, hy, hz)), Symmetric((xx, xy, xz, yy, yz, zz)))

    @classmethod
    def of_matrix(cls, M: Any) -> RigidInertia:
        """Return the inertia of a 6x6 matrix of floats, [angular; linear].

        Raises:
            ShapeError: It has no real numbers.
            ModelError: It is not 6x6, or has not the structure of a rigid-body inertia:
                an entry is NaN or infinite, or differs by more than 1e-9 times the
                largest entry (at least 1e-9) from that of the result. A negative mass
                is no error.
        """
        M = float_array("RigidInertia", M, "shape (6, 6)")
        if M.shape != (6, 6):
            raise ModelError(f"a RigidInertia needs a 6x6 matrix, got shape {M.shape}")
        scale = max(1.0, float(np.abs(M).max()))
        m, H = M[5, 5], M[:3, 3:]
        h = Vector((H[2, 1], H[0, 2], H[1, 0]))
        rigid = cls(m, h, Symmetric(float(M[i, j]) for i, j in ORDER))
        if not np.isfinite(scale) or not np.allclose(
            np.asarray(rigid), M, atol=1e-9 * scale, rtol=0
        ):
            raise ModelError(
                "this 6x6 matrix is not the inertia of a rigid body (10 numbers);"
                " use ArticulatedInertia for a general one"
            )
        return rigid

    @classmethod
    def zero(cls) -> RigidInertia:
        """Return the inertia of a body without mass."""
        return cls(0.0, Vector.zeros(3), Symmetric((0.0,) * 6))

    @property
    def c(self) -> Vector:
        """Centre of mass [m]; the origin if the mass is zero.

        The mass must be a float: a traced one raises TraceError, a column TypeError.
        """
        return self.h / self.m if self.m else Vector.zeros(3)

    @property
    def Ic(self) -> Matrix:
        """Inertia about the centre of mass, along the frame's axes, 3x3 [kg m²].

        It is about the origin if the mass is zero. The mass must be a float: a traced
        one raises TraceError, a column TypeError.
        """
        a = skew(self.c)
        return self.I.full() + a @ a * self.m

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The ten parameters m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin.

        In kg, kg m and kg m², as for of_parameters.
        """
        xx, xy, xz, yy, yz, zz = self.I.entries
        return (self.m, *self.h, xx, xy, yy, xz, yz, zz)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RigidInertia):
            return RigidInertia(self.m + other.m, self.h + other.h, self.I + other.I)
        if isinstance(other, ArticulatedInertia):
            return self.articulated() + other
        return NotImplemented

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Motion):
            w, v = other.ang, other.lin
            ang = self.I @ w + cross3(self.h, v)
            return Force(ang, v * self.m - cross3(self.h, w))
        if isinstance(other, MotionSubspace):
            return ForceSubspace(self @ column for column in other)
        return NotImplemented

    @property
    def second_moments(self) -> Symmetric:
        """Second moments of mass P = tr(I)/2 - I, integrals of r r.T dm [kg m²].

        They are about the frame's origin.
        """
        xx, xy, xz, yy, yz, zz = self.I.entries
        x, y, z = yy + zz - xx, zz + xx - yy, xx + yy - zz
        return Symmetric((x * 0.5, -xy, -xz, y * 0.5, -yz, z * 0.5))

    def force_of(self, a: Vector, U: Matrix) -> Force:
        """Return the force that causes a given motion of the body, about the origin.

            force = m a + U h,   moment = h x a + vee(U P - (U P).T)

        P = tr(I)/2 - I is the second moment of mass; the moment is the integral of r x
        (U r) dm. Gravity is not included.

        Args:
            a: Classical acceleration of the origin, 3 [m/s²].
            U: rotation_rates(w, alpha) of the body, 3x3 [1/s²].
        """
        rows = [Vector(row) for row in U.rows]
        P1, P2, P3 = (Vector(row) for row in self.second_moments.full().rows)
        turn = Vector(
            (
                rows[2] @ P2 - rows[1] @ P3,
                rows[0] @ P3 - rows[2] @ P1,
                rows[1] @ P1 - rows[0] @ P2,
            )
        )
        return Force(turn + cross3(self.h, a), a * self.m + U @ self.h)

    def articulated(self) -> ArticulatedInertia:
        """Return the same inertia as an ArticulatedInertia."""
        return ArticulatedInertia(
            self.I, skew(self.h), Symmetric.scaled_identity(self.m)
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.articulated(), dtype=dtype)

    def __repr__(self) -> str:
        return f"RigidInertia(m={self.m}, h={list(self.h)}, I={list(self.I.entries)})"


def _is_zero(x: Any) -> bool:
    """Return whether x is an int or float equal to zero; False for traced numbers."""
    return isinstance(x, (int, float)) and x == 0


def _axis(column: Motion) -> int | None:
    """Return the index 0..5 of the only component that is not a plain zero, or None."""
    used = [k for k, x in enumerate(column) if not _is_zero(x)]
    return used[0] if len(used) == 1 else None


class ArticulatedInertia:
    """Inertia of an articulated body: [[I, H], [H.T, M]], symmetric 6x6.

    `IA @ v` is a Force for a Motion, a ForceSubspace for a MotionSubspace. An
    ArticulatedInertia or a RigidInertia can be added, an ArticulatedInertia subtracted.

    Attributes:
        I, M: Symmetric 3x3 blocks [kg m²], [kg].
        H: 3x3 block [kg m].
    """

    __slots__ = ("H", "I", "M")

    def __init__(self, I: Symmetric, H: Matrix, M: Symmetric) -> None:
        self.I, self.H, self.M = I, H, M

    @classmethod
    def of_matrix(cls, matrix: Any) -> ArticulatedInertia:
        """Return the inertia of a 6x6 matrix of floats, [angular; linear].

        Its upper triangle is used.

        Raises:
            ShapeError: It has no real numbers.
            ModelError: It is not 6x6, not finite, or not symmetric within
                numpy.allclose.
        """
        matrix = float_array("ArticulatedInertia", matrix, "shape (6, 6)")
        finite = matrix.shape == (6, 6) and np.isfinite(matrix).all()
        if not finite or not np.allclose(matrix, matrix.T):
            raise ModelError(
                "an ArticulatedInertia needs a symmetric 6x6 matrix of finite numbers"
            )
        blocks = matrix[:3, :3], matrix[:3, 3:], matrix[3:, 3:]
        I, H, M = (Matrix(block.tolist()) for block in blocks)
        return cls(Symmetric.of(I), H, Symmetric.of(M))

    def __add__(self, other: Any) -> ArticulatedInertia:
        if isinstance(other, RigidInertia):
            other = other.articulated()
        if not isinstance(other, ArticulatedInertia):
            return NotImplemented
        return ArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)

    def __sub__(self, other: Any) -> ArticulatedInertia:
        if not isinstance(other, ArticulatedInertia):
            return NotImplemented
        return ArticulatedInertia(self.I - other.I, self.H - other.H, self.M - other.M)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Motion):
            w, v = other.ang, other.lin
            return Force(self.I @ w + self.H @ v, self.H.T @ w + self.M @ v)
        if isinstance(other, MotionSubspace):
            return ForceSubspace(self @ column for column in other)
        return NotImplemented

    def reduced(
        self, U: ForceSubspace, D: Factored, S: MotionSubspace, armature: Any
    ) -> ArticulatedInertia:
        """Return the inertia across a joint, IA - U D^-1 U.T, for IA = self.

        With D = L.T d L it is computed as IA - V d^-1 V.T, V = U L^-1: squares, which
        keep the digits that the inverse of an ill-conditioned D loses. For each
        coordinate without armature whose column of S has only one nonzero component,
        the row and column of this component are set to exactly zero.

        Args:
            U: IA S, 6xn; for n = 0 self is returned unchanged.
            D: Factors of S.T U plus armature, n x n.
            S: Motion subspace, 6xn.
            armature: Rotor inertia of each coordinate, n.
        """
        if not len(U):
            return self
        V = U @ D.inverse_of_L()
        pairs = zip(V, D.over_D, strict=True)
        left = self - ForceSubspace(v * over for v, over in pairs) @ V.T
        # Without armature the result times S is zero: where a column of S is a
        # coordinate
        # axis, this row and column are exactly zero.
        free = [_axis(S[k]) for k, a in enumerate(armature) if _is_zero(a)]
        return left.without([k for k in free if k is not None])

    def without(self, axes: Iterable[int]) -> ArticulatedInertia:
        """Return the inertia with the rows and columns of some axes set to zero.

        axes: Indices 0..5 of [angular; linear]; other numbers have no effect.
        """
        gone = set(axes)

        def keep(x: Any, i: int, j: int) -> Any:
            """Return the entry x, or 0 if its row i or column j (0..5) is in `gone`."""
            return 0.0 if i in gone or j in gone else x

        I = Symmetric(
            keep(x, *place) for x, place in zip(self.I.entries, ORDER, strict=True)
        )
        M = Symmetric(
            keep(x, i + 3, j + 3)
            for x, (i, j) in zip(self.M.entries, ORDER, strict=True)
        )
        H = Matrix([keep(self.H[i, j], i, j + 3) for j in range(3)] for i in range(3))
        return ArticulatedInertia(I, H, M)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        pairs = zip(self.I.full().rows, self.H.rows, strict=True)
        top = [(*a, *b) for a, b in pairs]
        pairs = zip(self.H.T.rows, self.M.full().rows, strict=True)
        return np.array([*top, *[(*a, *b) for a, b in pairs]], dtype=dtype)


class _Subspace:
    """Columns of one space (motions or forces): a 6xn matrix, a sequence of columns.

    `+` needs a subspace of the same type and the same number of columns.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Iterable[Any]) -> None:
        self.columns = tuple(columns)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, index: int) -> Any:
        return self.columns[index]

    @property
    def T(self) -> _SubspaceTransposed:
        """Transpose, n x 6, a factor of vectors or subspaces of the dual space."""
        return _SubspaceTransposed(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        rows = [list(column) for column in self.columns]
        return np.array(rows, dtype=dtype).reshape(-1, 6).T

    def __add__(self, other: Any) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self.columns, other.columns, strict=True)
        return type(self)(a + b for a, b in pairs)

    def _combine(self, x: Iterable[Any], zero: Any) -> Any:
        """Return the sum of the columns times the numbers x; without columns `zero`."""
        fits = hasattr(x, "__iter__") and not isinstance(x, (Motion, Force))
        numbers, n, result = tuple(x) if fits else None, len(self.columns), None
        if numbers is None or len(numbers) != n:
            got = type(x).__name__ if numbers is None else f"{len(numbers)}"
            wanted = f"{n} number{'' if n == 1 else 's'}, one for each column"
            raise TypeError(f"S @ x takes {wanted}, got {got}; of a force: S.T @ f")
        for column, factor in zip(self.columns, numbers, strict=True):
            term = column * factor
            result = term if result is None else result + term
        return zero if result is None else result


class MotionSubspace(_Subspace):
    """Motion subspace S of a joint, 6xn; `S @ qd` is the velocity across the joint.

    `S @ M` is a MotionSubspace for a Matrix M with n rows. Raises TypeError for another
    number of rows or numbers, and for a Motion or Force, whose factor is `S.T`.
    """

    __slots__ = ()

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, Matrix):
            columns = zip(*x.rows, strict=True)
            return MotionSubspace(self._combine(c, Motion.zero()) for c in columns)
        return self._combine(x, Motion.zero())


class ForceSubspace(_Subspace):
    """Forces as columns of a 6xn matrix, such as U = IA S.

    `U @ x` is a Force for n numbers x, a ForceSubspace for a Matrix with n rows, and an
    ArticulatedInertia for the transpose V.T of n forces, where U V.T must be symmetric
    (not checked). Raises TypeError for another number of rows, numbers or forces, and
    for a Motion or Force.
    """

    __slots__ = ()

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Matrix):
            columns = zip(*other.rows, strict=True)
            return ForceSubspace(self._combine(c, Force.zero()) for c in columns)
        if isinstance(other, _SubspaceTransposed):
            return self._outer(other.columns)
        return self._combine(other, Force.zero())

    def _outer(self, others: _Subspace) -> ArticulatedInertia:
        """Return the 6x6 product of these columns with the transpose of `others`.

        The product must be symmetric, which is not checked; only the upper triangle is
        computed.
        """
        U, V = ([tuple(column) for column in x] for x in (self, others))

        def entry(i: int, j: int) -> Any:
            """Return entry (i, j) of the 6x6 product."""
            return Vector(u[i] for u in U) @ Vector(v[j] for v in V)

        I = Symmetric(entry(i, j) for i, j in ORDER)
        H = Matrix([entry(i, j + 3) for j in range(3)] for i in range(3))
        M = Symmetric(entry(i + 3, j + 3) for i, j in ORDER)
        return ArticulatedInertia(I, H, M)


class _SubspaceTransposed:
    """Transpose S.T or U.T of a subspace with n columns.

    `S.T @ f` is a Vector of n numbers for a vector f of the dual space; `S.T @ U` is a
    Matrix (n, k) for a subspace U of k columns of the dual space. The same space raises
    TypeError.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: _Subspace) -> None:
        self.columns = columns

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, _Subspace):
            if type(other) is type(self.columns):
                raise TypeError("S.T takes columns of the dual space")
            return Matrix([row @ column for column in other] for row in self.columns)
        return Vector(column @ other for column in self.columns)


def cross_matrix(v: Motion) -> np.ndarray:
    """Return the 6x6 matrix v x of floats; v x* is its negative transpose.

    Source: GUIDE (17); SV-5.3.
    """
    w, o = np.asarray(skew(v.ang), float), np.asarray(skew(v.lin), float)
    return np.block([[w, np.zeros((3, 3))], [o, w]])
