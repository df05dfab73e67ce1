"""Questions to the reader, se(3), and what structure saves over dense matrices.

python examples/six_d_vectors/structure.py
"""

from __future__ import annotations

import textwrap
import timeit
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import (  # lies beside this file
    apart,
    array,
    picture_folder,
    tell,
    transform_of,
)

import dyn_core as dyn
from dyn_core.authoring import Matrix, Motion, RigidInertia, Transform, Vector
from dyn_core.spatial import conventions
from dyn_core.spatial.guide import se3
from dyn_core.testing.random_programs import flat_program


def reader_questions() -> str:
    """Return the answers to the three questions that the guide leaves to its reader.

    Source: GUIDE, sections 4, 6.4 and 6.6; SV-11.2, SV-6.4, SV-8.2.
    """
    answers = (
        """(a) Why is the term (ds/dt) qd of a joint's acceleration equal to v1 x v2?
        The axis s is fixed in body 2, so ds/dt = v2 x s. Then (v2 x s) qd =
        v2 x (v2 - v1) = -v2 x v1 = v1 x v2. Were s fixed in body 1, v1 x (v2 - v1)
        gives the same.""",
        """(b) How does f = I a + v x* I v follow from the rate of inertia? f is the
        rate of the momentum I v, so f = (dI/dt) v + I a, and (dI/dt) v =
        v x* I v - I (v x v), whose last term is zero.""",
        """(c) How can a velocity need no reference point? [w; v_O] are the coordinates
        of a field, or of a screw: a line, an angular and a linear magnitude. Another
        origin gives other numbers, v_O + w x r, but the same line, the same
        magnitudes, and the same velocity of each particle.""",
    )
    margin = {"initial_indent": "  ", "subsequent_indent": "  "}
    filled = (textwrap.fill(" ".join(x.split()), 78, **margin) for x in answers)
    return "\n".join(filled)


def relatives(rng: np.random.Generator) -> dict[str, float]:
    """Return how well motions as elements of se(3) agree with motions as six numbers.

    Source: GUIDE, section 8; SV-11.4.
    """
    x, y = rng.normal(size=(2, 6))
    T = se3.exp(x)
    Ad = conventions.adjoint(T[:3, :3], T[:3, 3])
    bracket = se3.hat(x) @ se3.hat(y) - se3.hat(y) @ se3.hat(x)
    moved = T @ se3.hat(y) @ np.linalg.inv(T)
    return {
        "ad: hat(x x y) = [hat x, hat y]": apart(se3.hat(se3.crm(x) @ y), bracket),
        "Ad: hat(Ad y) = T hat(y) T^-1": apart(se3.hat(Ad @ y), moved),
        "exp(log T) = T": apart(se3.exp(se3.log(T)), T),
        "Ad is the inverse of X": apart(Ad @ array(transform_of(T)), np.eye(6)),
    }


@dataclass(frozen=True)
class Cost:
    """What one product costs, by structure and as dense 6x6 matrices.

    Attributes:
        name: The product.
        times: Structured, dense [ns].
        multiplications: Structured, dense.
    """

    name: str
    times: tuple[float, float]
    multiplications: tuple[int, int]


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
_PRODUCTS: tuple[tuple[str, Any, Any], ...] = (
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


def timing_report(rows: int = 500, repeats: int = 100) -> list[Cost]:
    """Return what products cost by structure and by dense matrices, in the best engine.

    Args:
        rows: States in a batch.
        repeats: Batches in a measurement; the best of five counts.

    Source: GUIDE, introduction; SV-11.3.
    """
    rng, engine = np.random.default_rng(0), dyn.default_engine()
    costs = []
    for name, *ways in _PRODUCTS:
        times, products = [], []
        for function, width, outputs in ways:
            x = rng.normal(size=(rows, width))
            program = flat_program(function, width, outputs, engine=engine)
            runs = timeit.repeat(lambda p=program, x=x: p(x), number=repeats, repeat=5)
            times.append(min(runs) / repeats / rows * 1e9)
            plain = flat_program(function, width, outputs, engine="plain")
            products.append(dyn.count(plain, x[0])["mul"])
        costs.append(Cost(name, tuple(times), tuple(products)))
    return costs


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    tell("10. Questions to the reader")
    print(reader_questions())
    tell("11. Relatives", relatives(np.random.default_rng(0)))
    tell("12. What structure saves: structured and dense, time and multiplications")
    for cost in timing_report():
        (fast, slow), (few, many) = cost.times, cost.multiplications
        print(f"  {cost.name:8s} {fast:7.1f} ns {slow:7.1f} ns {few:5d} {many:5d}")


if __name__ == "__main__":
    main(picture_folder())
