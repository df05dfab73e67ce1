"""Loops: constraints that close a tree, as functions of positions.

A Loop constrains a frame B on one link to a frame A on another (or on the base): its
function takes the pose of B in A, rotation R and position p, and is zero where the loop
is closed. A Coupling does the same with the positions of some joints. Both take
number-like values; Taylor numbers give the rows of their Jacobians and their rates.

Source: KIM-3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dyn_core.errors import ModelError, SingularError
from dyn_core.model.frames import PLACE, origin
from dyn_core.numbers.scalar import Scalar, atan2, logical_not, require, sqrt
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.spatial.lie import log3
from dyn_core.validation import REQUIRED, Field, ListOf, Name, Quantity, Table

PoseResidual = Callable[[Matrix, Vector], Sequence[Scalar]]  # of R and p
JointResidual = Callable[..., Sequence[Scalar]]  # of one position of each joint
FramePlacement = Mapping[str, Sequence[float]] | Transform | None


@dataclass(frozen=True)
class Loop:
    """A constraint between two links.

    Attributes:
        name: Of the loop.
        a, b: Links; None is the base.
        A, B: Transforms from each link's frame (the base's) to A and to B.
        function: Gives the residuals of R, p: m numbers [m | rad].
        rows: How many residuals there are.
        kind: As make_loop names it; empty for a function of the user.
    """

    name: str
    a: str | None
    b: str | None
    A: Transform
    B: Transform
    function: PoseResidual
    rows: int
    kind: str = ""


@dataclass(frozen=True)
class Coupling:
    """A constraint between the positions of joints of one coordinate.

    Attributes:
        name: Of the coupling.
        joints: Names, in the order of the function's arguments.
        function: Gives the residuals of the positions.
        rows: How many residuals there are.
    """

    name: str
    joints: tuple[str, ...]
    function: JointResidual
    rows: int


LoopConstraint = Loop | Coupling
_AXES = ("x", "y", "z", "rx", "ry", "rz")
_SMALL = 1e-9  # distances below this part of a rod's length have no direction


def row_names(loops: Sequence[LoopConstraint]) -> list[str]:
    """Return how errors and reports call the rows of loops."""
    return [f"loop {loop.name}, row {k}" for loop in loops for k in range(loop.rows)]


def _tilt(name: str, R: Matrix) -> tuple[Scalar, Scalar]:
    """Return the tilt of B's z axis about A's x and y: 2 tan(angle / 2), two parts.

    Zero where the axes agree, infinite where they are opposite: a hinge that is put in
    the wrong way round is not closed.
    """
    item = f"loop {name}: its axes are opposite, the hinge is flipped"
    require(logical_not(R[2, 2] <= _SMALL - 1.0), SingularError, item)
    scale = 2.0 / (1.0 + R[2, 2])
    return -R[1, 2] * scale, R[0, 2] * scale


# Residuals of each kind. They are functions of this module, so that robots can be
# copied to other processes and their machine code found again.


def _point(R: Matrix, p: Vector) -> list[Scalar]:
    return list(p)


def _pin(R: Matrix, p: Vector) -> list[Scalar]:
    return [p[0], p[1]]


def _planar_weld(R: Matrix, p: Vector) -> list[Scalar]:
    return [p[0], p[1], atan2(R[1, 0], R[0, 0])]


def _weld(R: Matrix, p: Vector) -> list[Scalar]:
    return [*p, *log3(R)]


def _revolute(name: str, R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a hinge about the frames' z."""
    return [*p, *_tilt(name, R)]


def _axes(names: Sequence[str], R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of some components of position and rotation vector in A."""
    six = (*p, *log3(R)) if any(n.startswith("r") for n in names) else (*p, 0, 0, 0)
    return [six[_AXES.index(name)] for name in names]


def _distance(name: str, length: float, R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a rod between the origins."""
    square, item = p @ p, f"loop {name}: its ends coincide, the rod has no direction"
    require(logical_not(square <= (_SMALL * length) ** 2), SingularError, item)
    return [sqrt(square) - length]


KINDS: dict[str, tuple[int, Callable[..., Sequence[Scalar]]]] = {
    "point": (3, _point),
    "pin": (2, _pin),
    "planar_weld": (3, _planar_weld),
    "revolute": (5, _revolute),
    "weld": (6, _weld),
}


FRAME = Table(*PLACE, make=lambda xyz, rpy: origin(xyz, rpy), made=Transform)
LOOP = Table(
    Field("name", Name(), "what errors and outputs call it; loop1, loop2, ..."),
    Field(
        "kind",
        Name((*KINDS, "axes", "distance")),
        "point (3 rows), pin (2, in the plane xy of a's frame), planar_weld (3),"
        " revolute (5, about z), weld (6), axes (those listed), distance (1)",
        default=REQUIRED,
    ),
    Field("a", Name(), "link with the first frame; the base where it is missing"),
    Field("b", Name(), "link with the second frame", default=REQUIRED),
    Field("at_a", FRAME, "first frame on its link"),
    Field("at_b", FRAME, "second frame on its link"),
    Field(
        "axes",
        ListOf(Name(_AXES), least=1),
        "of kind axes: components of position and rotation that are zero",
    ),
    Field(
        "length",
        Quantity(0.0, above=True),
        "of kind distance: between the origins",
        "m",
    ),
)


def make_loop(
    name: str,
    kind: str,
    b: str,
    a: str | None = None,
    at_b: FramePlacement = None,
    at_a: FramePlacement = None,
    axes: Sequence[str] = (),
    length: float | None = None,
) -> Loop:
    """Return a loop of a kind that has a name.

    Args:
        name: What errors and outputs call it.
        kind: One of KINDS, axes or distance; LOOP says what each of them is.
        b: Link with frame B.
        a: Link with frame A; None is the base.
        at_b, at_a: Frames on the links: {xyz, rpy}, or a Transform from the link.
        axes: For kind axes: x, y, z, rx, ry, rz, in A.
        length: For kind distance, between the origins [m].

    Source: KIM-3.0.
    """
    entry: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "a": a,
        "b": b,
        "at_a": at_a,
        "at_b": at_b,
    }
    entry |= {"axes": axes or None, "length": length}
    where = f"loop '{name}'"
    checked = LOOP.read(where, {k: x for k, x in entry.items() if x is not None})
    for needs, key in (("axes", "axes"), ("distance", "length")):
        if kind == needs and key not in checked:
            valid = LOOP.fields[key].value_kind.valid
            raise ModelError(f"{where}: {key} is missing; valid: {valid}", name)
        if kind != needs and key in checked:
            raise ModelError(
                f"{where}: {key} changes nothing of kind {kind}; valid: without it, or"
                f" kind {needs}",
                name,
            )
    function: PoseResidual
    A, B = (checked.get(key, Transform.identity()) for key in ("at_a", "at_b"))
    if kind == "axes":
        rows, function = len(checked["axes"]), partial(_axes, tuple(checked["axes"]))
    elif kind == "distance":
        rows, function = 1, partial(_distance, name, checked["length"])
    else:
        rows, function = KINDS[kind]
        function = partial(function, name) if kind == "revolute" else function
    return Loop(name, a, b, A, B, function, rows, kind)


def user_loop(
    name: str,
    function: PoseResidual,
    b: str,
    a: str | None = None,
    at_b: FramePlacement = None,
    at_a: FramePlacement = None,
) -> Loop:
    """Return a loop of a function of the pose of B in A: (R, p) -> residuals."""
    rows = len(list(function(Matrix.identity(3), Vector((0.1, 0.2, 0.3)))))
    A, B = (
        FRAME.read(f"loop '{name}': {key}", {} if frame is None else frame)
        for key, frame in (("at_a", at_a), ("at_b", at_b))
    )
    return Loop(name, a, b, A, B, function, rows)


def coupling(name: str, joints: Sequence[str], function: JointResidual) -> Coupling:
    """Return a coupling of a function of joint positions: (q_a, ...) -> residuals.

    Source: KIM-3.0 (joint coupling); TAZZ-5.2 (gears between any joints).
    """
    rows = len(list(function(*[0.1 * (k + 1) for k in range(len(joints))])))
    return Coupling(name, tuple(joints), function, rows)
