"""Products of 6-D quantities, by their structure and as dense matrices."""

from __future__ import annotations

from typing import Any

from dyn_core.authoring import Matrix, Motion, RigidInertia, Transform, Vector


def _matrix(x: list[Any], n: int) -> Matrix:
    return Matrix(x[n * i : n * i + n] for i in range(len(x) // n))


def _transform(x: list[Any]) -> Transform:
    return Transform(_matrix(x[:9], 3), Vector(x[9:12]))


def _moved_inertia(x: list[Any]) -> tuple[Any, ...]:
    X = _transform(x)
    return (X.T @ RigidInertia.of_parameters(x[12:]) @ X).parameters


def _moved_matrix(x: list[Any]) -> list[Any]:
    X = _matrix(x[:36], 6)
    return [y for row in (X.T @ _matrix(x[36:], 6) @ X).rows for y in row]


# name, structured: function, inputs, outputs; dense: the same
PRODUCTS: tuple[tuple[str, Any, Any], ...] = (
    (
        "X m",
        (lambda x: list(_transform(x) @ Motion.of(x[12:])), 18, 6),
        (lambda x: _matrix(x[:36], 6) @ Vector(x[36:]), 42, 6),
    ),
    (
        "I v",
        (lambda x: list(RigidInertia.of_parameters(x[:10]) @ Motion.of(x[10:])), 16, 6),
        (lambda x: _matrix(x[:36], 6) @ Vector(x[36:]), 42, 6),
    ),
    ("X.T I X", (_moved_inertia, 22, 10), (_moved_matrix, 72, 36)),
)
