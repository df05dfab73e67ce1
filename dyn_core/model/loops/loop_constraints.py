"""Loops: constraints that close a tree, as functions of positions.

A Loop constrains a frame B on one link to a frame A on another (or on the base): its
function takes the pose of B in A, rotation R and position p, and is zero where the loop
is closed. A Coupling does the same with the positions of some joints. Both take
number-like values; Taylor numbers give the rows of their Jacobians and their rates.

Source: KIM-3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dyn_core.errors import ModelError, SingularError
from dyn_core.model.frames import PLACE, origin, roll_pitch_yaw
from dyn_core.model.loops.rolling import ROLLING, rolling_rows
from dyn_core.numbers.scalar import Scalar, atan2, logical_not, require, sqrt
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.spatial.lie import log3
from dyn_core.validation import (
    REQUIRED,
    Field,
    ListOf,
    Name,
    Quantity,
    Table,
    known_keywords,
)

PoseResidual = Callable[[Matrix, Vector], Sequence[Scalar]]  # of R and p
PoseDirections = Callable[[Matrix, Vector], Sequence[Sequence[Scalar]]]  # rows of six
JointResidual = Callable[..., Sequence[Scalar]]  # of one position of each joint
FramePlacement = Mapping[str, Sequence[float]] | Transform | None


@dataclass(frozen=True)
class Loop:
    """A constraint between two links.

    Attributes:
        name: Of the loop.
        a, b: Links; None is the base.
        A, B: Transforms from each link's frame (the base's) to A and to B.
        function: Gives the residuals of R, p [m | rad].
        rows: How many rows there are: residuals, then rows in velocities.
        kind: As make_loop names it; empty for a function of the user.
        directions: Gives the rows in velocities of R, p: each is six numbers, whose
            product with the velocity of B against A is zero; angular part first,
            linear part that of B's origin, A's axes. None: there are none.
        velocity_rows: How many of the rows are rows in velocities.
    """

    name: str
    a: str | None
    b: str | None
    A: Transform
    B: Transform
    function: PoseResidual
    rows: int
    kind: str = ""
    directions: PoseDirections | None = None
    velocity_rows: int = 0

    @property
    def measure(self) -> tuple[str, Scalar | None]:
        """Its length or radius, by name; none for kinds without."""
        name = MEASURES.get(self.kind, "")
        return name, self.function.args[0] if name else None  # type: ignore[attr-defined]

    def place(self, what: str) -> list[Scalar]:
        """Return x y z roll pitch yaw of at_a or at_b [m, rad]."""
        X = self.A if what == "at_a" else self.B
        return [*X.r, *roll_pitch_yaw(X.E.T)]

    def with_numbers(self, what: str, values: Sequence[Scalar]) -> Loop:
        """Return the loop with another at_a, at_b, length or radius, symbols too."""
        if what in ("at_a", "at_b"):
            X = origin(values[:3], values[3:])
            return replace(self, A=X) if what == "at_a" else replace(self, B=X)

        def measured(function: Any) -> Any:
            return partial(function.func, values[0], *function.args[1:])

        more = None if self.directions is None else measured(self.directions)
        return replace(self, function=measured(self.function), directions=more)


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
    velocity_rows = 0


LoopConstraint = Loop | Coupling
_AXES = ("x", "y", "z", "rx", "ry", "rz")
_SMALL = 1e-9  # distances below this part of a rod's length have no direction


def row_names(loops: Sequence[LoopConstraint]) -> list[str]:
    """Return how errors and reports call the rows of loops."""
    return [f"loop {loop.name}, row {k}" for loop in loops for k in range(loop.rows)]


def velocity_rows(loops: Sequence[LoopConstraint]) -> list[bool]:
    """Return by row whether it is one in velocities, which no position can break."""
    flags: list[bool] = []
    for loop in loops:
        flags += [False] * (loop.rows - loop.velocity_rows) + [
            True
        ] * loop.velocity_rows
    return flags


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


def _distance(length: Scalar, name: str, R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a rod between the origins."""
    square, item = p @ p, f"loop {name}: its ends coincide, the rod has no direction"
    least = length * _SMALL
    require(logical_not(square <= least * least), SingularError, item)
    return [sqrt(square) - length]


KINDS: dict[str, tuple[int, Callable[..., Sequence[Scalar]]]] = {
    "point": (3, _point),
    "pin": (2, _pin),
    "planar_weld": (3, _planar_weld),
    "revolute": (5, _revolute),
    "weld": (6, _weld),
}


MEASURES = {"distance": "length", **dict.fromkeys(ROLLING, "radius")}
FRAME = Table(*PLACE, make=lambda xyz, rpy: origin(xyz, rpy), made=Transform)
LOOP = Table(
    Field("name", Name(), "what errors and outputs call it; loop1, loop2, ..."),
    Field(
        "kind",
        Name((*KINDS, "axes", *MEASURES)),
        "point (3 rows), pin (2, in the plane xy of a's frame), planar_weld (3),"
        " revolute (5, about z), weld (6), axes (those listed), distance (1),"
        " rolling_ball and rolling_disc (3: about b's origin, and about z of b's frame,"
        " without slip on the plane xy of a's frame)",
        default=REQUIRED,
    ),
    Field("a", Name(), "link with the first frame; the base where it is missing"),
    Field("b", Name(), "link with the second frame", default=REQUIRED),
    Field("at_a", FRAME, "first frame on its link"),
    Field("at_b", FRAME, "second frame on its link"),
    Field(
        "axes",
        ListOf(Name(_AXES), least=1),
        "of kind axes: components of position and rotation that are zero; of kinds"
        " that roll: z keeps to the plane, x and y do not slip (of a disc: along its"
        " way, and across); all three unless given",
    ),
    Field(
        "length",
        Quantity(0.0, above=True),
        "of kind distance: between the origins",
        "m",
    ),
    Field("radius", Quantity(0.0, above=True), "of kinds that roll", "m"),
)


@known_keywords
def make_loop(
    name: str,
    kind: str,
    b: str,
    a: str | None = None,
    at_b: FramePlacement = None,
    at_a: FramePlacement = None,
    axes: Sequence[str] = (),
    length: float | None = None,
    radius: float | None = None,
) -> Loop:
    """Return a loop of a kind that has a name.

    Args:
        name: What errors and outputs call it.
        kind: One of KINDS, axes, distance, rolling_ball or rolling_disc; LOOP says what
            each of them is.
        b: Link with frame B.
        a: Link with frame A; None is the base.
        at_b, at_a: Frames on the links: {xyz, rpy}, or a Transform from the link.
        axes: For kind axes: x, y, z, rx, ry, rz, in A; for kinds that roll: which of x,
            y, z, all unless given.
        length: For kind distance, between the origins [m].
        radius: For kinds that roll [m].

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
    entry |= {"axes": axes or None, "length": length, "radius": radius}
    where = f"loop '{name}'"
    checked = LOOP.read(where, {k: x for k, x in entry.items() if x is not None})
    _check_keys(where, name, kind, checked)
    A, B = (checked.get(key, Transform.identity()) for key in ("at_a", "at_b"))
    if kind in ROLLING:
        names = checked.get("axes", ("x", "y", "z"))
        height, directions, count = rolling_rows(kind, checked["radius"], names, name)
        rows = len(set(names))
        return Loop(name, a, b, A, B, height, rows, kind, directions, count)
    function: PoseResidual
    if kind == "axes":
        rows, function = len(checked["axes"]), partial(_axes, tuple(checked["axes"]))
    elif kind == "distance":
        rows, function = 1, partial(_distance, checked["length"], name)
    else:
        rows, function = KINDS[kind]
        function = partial(function, name) if kind == "revolute" else function
    return Loop(name, a, b, A, B, function, rows, kind)


def _check_keys(where: str, name: str, kind: str, checked: Mapping[str, Any]) -> None:
    """Refuse a loop with a key that its kind needs missing, or one it does not take."""
    measure = MEASURES.get(kind)
    needed = {"axes"} if kind == "axes" else {measure} if measure else set()
    taken = needed | ({"axes"} if kind in ROLLING else set())
    for key in ("axes", "length", "radius"):
        if key in needed and key not in checked:
            valid = LOOP.fields[key].value_kind.valid
            raise ModelError(f"{where}: {key} is missing; valid: {valid}", name)
        if key in checked and key not in taken:
            others = [k for k, x in {"axes": "axes", **MEASURES}.items() if x == key]
            raise ModelError(
                f"{where}: {key} changes nothing of kind {kind}; valid: without it, or"
                f" kind {' or '.join(others)}",
                name,
            )
    turns = [x for x in checked.get("axes", ()) if x.startswith("r")]
    if kind in ROLLING and turns:
        raise ModelError(f"{where}: axes has {turns[0]}; valid: x, y, z", name)


@known_keywords
def user_loop(
    name: str,
    function: PoseResidual,
    b: str,
    a: str | None = None,
    at_b: FramePlacement = None,
    at_a: FramePlacement = None,
    directions: PoseDirections | None = None,
) -> Loop:
    """Return a loop of a function of the pose of B in A: (R, p) -> residuals.

    Args:
        name: What errors and outputs call it.
        function: Of R and p; no residuals if all rows are in velocities.
        b: Link with frame B.
        a: Link with frame A; None is the base.
        at_b, at_a: Frames on the links: {xyz, rpy}, or a Transform from the link.
        directions: Of R and p: the rows in velocities, six numbers each, see Loop.
    """
    pose = Matrix.identity(3), Vector((0.1, 0.2, 0.3))
    moving = list(directions(*pose)) if directions is not None else []
    if any(len(row) != 6 for row in moving):
        wanted = "six numbers, three of the angular and three of the linear velocity"
        raise ModelError(f"loop '{name}': a row in velocities is {wanted}", name)
    rows = len(list(function(*pose))) + len(moving)
    A, B = (
        FRAME.read(f"loop '{name}': {key}", {} if frame is None else frame)
        for key, frame in (("at_a", at_a), ("at_b", at_b))
    )
    return Loop(name, a, b, A, B, function, rows, "", directions, len(moving))


@known_keywords
def coupling(name: str, joints: Sequence[str], function: JointResidual) -> Coupling:
    """Return a coupling of a function of joint positions: (q_a, ...) -> residuals.

    Source: KIM-3.0 (joint coupling); TAZZ-5.2 (gears between any joints).
    """
    rows = len(list(function(*[0.1 * (k + 1) for k in range(len(joints))])))
    return Coupling(name, tuple(joints), function, rows)
