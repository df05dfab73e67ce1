"""Programs of a function of a list of numbers, and their errors in last places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.problems import Port, Signature
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Vector
from dyn_core.testing.models import chain

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
TINY = 5e-324  # smallest positive number


def flat_program(
    algorithm: Callable[[list[Any]], Sequence[Any]],
    width: int,
    outputs: int,
    **choices: Any,
) -> Any:
    """Return a Program of a function of a list of numbers.

    It takes an array of `width` numbers and returns one of `outputs` numbers. If the
    function returns another number of them, the build raises ShapeError, with the
    engines plain and graph each call.

    Args:
        algorithm: Function of a list of `width` numbers that returns `outputs` numbers.
        width, outputs: Numbers of inputs and outputs.
        choices: Options of build, such as engine.
    """
    ports = (Port("x", (width,)),), (Port("y", (outputs,)),)

    def of_vectors(model: Any, x: Vector) -> Vector:
        return Vector(algorithm(list(x)))

    solver = TracedSolver("flat", Signature("flat", *ports), of_vectors, by_joint=False)
    return solver.build(chain(1), **choices)


def ulps(values: np.ndarray, expected: Any) -> np.ndarray:
    """Return absolute errors, in the shape of `values`, in last places of `expected`.

    A last place is that of `expected` rounded to float64; `expected` may be more
    precise. 0 where both are equal or NaN, NaN where one alone is NaN.
    """
    rounded = np.asarray(expected).astype(float)
    with np.errstate(all="ignore"):
        same = (values == expected) | (np.isnan(values) & np.isnan(rounded))
        space = np.maximum(np.spacing(np.abs(rounded)), TINY)
        return np.where(same, 0.0, np.abs(values - expected) / space)
