"""Singular values of a frame's Jacobian, and their product."""

from dyn_core.authoring import (
    Matrix,
    Required,
    TracedSolver,
    Vector,
    eigen_symmetric,
    hookimpl,
    maximum,
    minimum,
    sqrt,
    where,
)
from dyn_core.problems import MANIPULABILITY
from dyn_core.validation import Quantity
from dyn_plugins._options import known_link
from dyn_plugins.kinematics.kinematics import frame_and_jacobian

LENGTH = 0.1  # [m]
NOTHING = 1e-14  # of the largest square


def manipulability(model, q, frame, characteristic_length):
    """Return the singular values of a frame's Jacobian, and their product.

        S J = U diag(s) V.T,   S = diag(l, l, l, 1, 1, 1)
        manipulability = s_1 ... s_6 = sqrt(det(S J J.T S))

    There are six, in descending order; with fewer coordinates than six the last are
    zero. They do not depend on axes, only on the frame's origin and l. Values up to
    1e-7 of the largest one are rounding errors, and are returned as zero.

    Inputs and outputs: those of MANIPULABILITY.

    Args:
        frame: Name of the link; an unknown one raises ModelError when built.
        characteristic_length: l, by which angles and lengths are compared [m]; above 0,
            else UnsupportedError when built.

    Source: T. Yoshikawa, Manipulability of robotic mechanisms, Int. J. Robotics
        Research 4 (1985).
    """
    _, J = frame_and_jacobian(model, q, frame)
    length = characteristic_length
    rows = [
        Vector(x * (length if k < 3 else 1.0) for x in row)
        for k, row in enumerate(J.rows)
    ]
    squares, _ = eigen_symmetric(Matrix([[a @ b for b in rows] for a in rows]))
    squares = _descending(list(squares))
    least = NOTHING * squares[0]
    values = [where(x > least, sqrt(where(x > least, x, 1.0)), 0.0) for x in squares]
    product = 1.0
    for value in values:
        product = product * value
    return values, product


def _descending(values):
    """Sort the list `values` of numbers in descending order, in place; return it."""
    for last in range(len(values) - 1, 0, -1):
        for k in range(last):
            a, b = values[k], values[k + 1]
            values[k], values[k + 1] = maximum(a, b), minimum(a, b)
    return values


@hookimpl
def dyn_solvers():
    """Return a list of the one solver of this file, for the Registry."""
    return [
        TracedSolver(
            "manipulability",
            MANIPULABILITY,
            manipulability,
            options={
                "frame": Required("the name of a link"),
                "characteristic_length": LENGTH,
            },
            valid={
                "frame": known_link,
                "characteristic_length": Quantity(0.0, above=True),
            },
            by_joint=False,
            default=True,
        )
    ]
