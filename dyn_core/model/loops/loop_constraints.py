"""Loop constraints: residual functions of positions that are zero for a closed loop.

A Loop constrains a frame B on one link to a frame A on another (or on the base): its
residual is a function of the pose of B in A, rotation R and position p. The residual of
a Coupling is a function of the positions of some joints. Both accept number-like
values; with Taylor numbers they return Jacobians and their rates. A SingularError is
raised at once for plain numbers, by the running Program for traced ones.

Rolling without slip of a ball or a disc on a plane:

The plane is xy of frame A. A ball has its centre at B's origin; a thin disc has its
centre there and its axis along z of frame B. The lowest point of a disc is

    c = r (n_z n - z) / s,   s = sqrt(1 - n_z^2),   n: the disc's axis in A

relative to its centre; for a ball c = -r z. The height p_z + c_z is zero, a position
row. The body does not slip at the contact point: along a direction e of the plane its
velocity there is zero,

    e . (v + w x c) = (c x e) . w + e . v = 0

a velocity row, which no position violates.

Source: KIM-3.0 (non-holonomic rows: A(q) without f); the disc by elementary geometry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dyn_core.errors import ModelError, SingularError
from dyn_core.model.frames import PLACE, origin, roll_pitch_yaw
from dyn_core.numbers.scalar import Scalar, atan2, logical_not, require, sqrt
from dyn_core.spatial import Matrix, Transform, Vector, cross3
from dyn_core.spatial.lie import log3
from dyn_core.validation import (
    REQUIRED,
    Field,
    ListOf,
    Name,
    Quantity,
    Table,
    known_keywords,
    shown,
)

Rows = tuple[Callable[..., list[Scalar]], Callable[..., list[list[Scalar]]], int]
_FLAT = 1e-12  # s^2 below which a disc lies flat and has no lowest point
_X, _Y, _Z = (Vector(float(i == j) for j in range(3)) for i in range(3))


def _ball(radius: Scalar, item: str, R: Matrix) -> tuple[Vector, Vector, Vector]:
    """Return a ball's contact point relative to its centre, and x and y of A, all in A.

    `item` and R are ignored: the arguments are the same as of `_disc`.
    """
    return _Z * -radius, _X, _Y


def _disc(radius: Scalar, item: str, R: Matrix) -> tuple[Vector, Vector, Vector]:
    """Return a disc's lowest point relative to its centre, and two directions, in A.

    These are unit vectors in the plane, along the rolling direction and across. R
    rotates B, whose z is the disc's axis, in A. SingularError if the disc lies flat.
    """
    n = Vector(R[k, 2] for k in range(3))
    square = n[0] * n[0] + n[1] * n[1]
    require(logical_not(square <= _FLAT), SingularError, item)
    s = sqrt(square)
    c = (n * n[2] - _Z) * (radius / s)
    along, across = Vector((n[1], -n[0], 0.0)), Vector((n[0], n[1], 0.0))
    return c, along * (1.0 / s), across * (1.0 / s)


ROLLING = {"rolling_ball": _ball, "rolling_disc": _disc}


def _height(
    radius: Scalar, kind: str, names: Sequence[str], name: str, R: Matrix, p: Vector
) -> list[Scalar]:
    """Return the lowest point's height above the plane [m], [] without z in `names`."""
    if "z" not in names:
        return []
    c, _, _ = ROLLING[kind](radius, _item(name), R)
    return [p[2] + c[2]]


def _directions(
    radius: Scalar, kind: str, names: Sequence[str], name: str, R: Matrix, p: Vector
) -> list[list[Scalar]]:
    """Return the velocity rows of the contact point, first x, then y, if in `names`.

    For a disc x is the rolling direction and y the direction across. A row has six
    factors: three of the angular velocity of B relative to A, three of the linear
    velocity of B's origin, in the axes of A.
    """
    c, x, y = ROLLING[kind](radius, _item(name), R)
    ways = [e for key, e in (("x", x), ("y", y)) if key in names]
    return [[*cross3(c, e), *e] for e in ways]


def _item(name: str) -> str:
    """Return the text of a SingularError for a disc that lies flat."""
    return f"loop {name}: the disc lies flat, no point of it is the lowest"


def rolling_rows(kind: str, radius: Scalar, names: Sequence[str], name: str) -> Rows:
    """Return residual function, velocity row function, and number of velocity rows.

    Both are functions of (R, p), the pose of B in A; they raise SingularError if a disc
    lies flat. Of `names` z is the height, the residual [m]; x and y are the velocities.
    """
    rest = radius, kind, tuple(names), name
    count = sum(key in names for key in ("x", "y"))
    return partial(_height, *rest), partial(_directions, *rest), count


PoseResidual = Callable[[Matrix, Vector], Sequence[Scalar]]  # of R and p
PoseDirections = Callable[[Matrix, Vector], Sequence[Sequence[Scalar]]]  # rows of six
JointResidual = Callable[..., Sequence[Scalar]]  # of one position of each joint
FramePlacement = Mapping[str, Sequence[float]] | Transform | None


@dataclass(frozen=True)
class Loop:
    """A constraint between two links.

    Attributes:
        name: Name of the loop.
        a, b: Names of the links; a None is the base.
        A, B: Transforms from each link's frame (the base's) to A and to B.
        function: (R, p) -> residuals [m | rad].
        rows: Number of rows: residuals, then velocity rows.
        kind: Kind as in make_loop; empty for a user's function.
        directions: (R, p) -> velocity rows, six numbers each, or None. The product of a
            row with the velocity of B relative to A is zero: angular part, then the
            linear velocity of B's origin, in the axes of A.
        velocity_rows: Number of velocity rows.
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
        """Name and value of the loop's length or radius [m].

        ("", None) if it has none.
        """
        name = MEASURES.get(self.kind, "")
        return name, self.function.args[0] if name else None  # type: ignore[attr-defined]

    def place(self, what: str) -> list[Scalar]:
        """Return x, y, z [m] and roll, pitch, yaw [rad] of a frame of the loop.

        They are relative to the link: of frame A in link a for `what` = "at_a", of
        frame B in link b for "at_b".
        """
        X = self.A if what == "at_a" else self.B
        return [*X.r, *roll_pitch_yaw(X.E.T)]

    def with_numbers(self, what: str, values: Sequence[Scalar]) -> Loop:
        """Return the loop with another at_a, at_b, length or radius.

        Args:
            what: at_a, at_b, length or radius. The loop's kind must have a length or
                radius; this is not checked: for others the call, or the result's
                function, raises AttributeError or TypeError.
            values: x y z roll pitch yaw, or one length [m, rad]; numbers or symbols,
                whose count is not checked.
        """
        if what in ("at_a", "at_b"):
            X = origin(values[:3], values[3:])
            return replace(self, A=X) if what == "at_a" else replace(self, B=X)

        def measured(function: Any) -> Any:
            """Return a partial function with its first argument replaced."""
            return partial(function.func, values[0], *function.args[1:])

        more = None if self.directions is None else measured(self.directions)
        return replace(self, function=measured(self.function), directions=more)


@dataclass(frozen=True)
class Coupling:
    """A constraint between the positions of joints with one coordinate.

    Attributes:
        name: Name of the coupling.
        joints: Names of the joints, in the order of the function's arguments.
        function: Positions of the joints -> residuals.
        rows: Number of residuals.
    """

    name: str
    joints: tuple[str, ...]
    function: JointResidual
    rows: int
    velocity_rows = 0


LoopConstraint = Loop | Coupling
_AXES = ("x", "y", "z", "rx", "ry", "rz")
_SMALL = 1e-9  # a rod shorter than this fraction of its length has no direction


def row_names(loops: Sequence[LoopConstraint]) -> list[str]:
    """Return the names of all rows, "loop NAME, row K", K from 0 in each loop."""
    return [f"loop {loop.name}, row {k}" for loop in loops for k in range(loop.rows)]


def velocity_rows(loops: Sequence[LoopConstraint]) -> list[bool]:
    """Return for each row of the loops whether it constrains velocities only."""
    flags: list[bool] = []
    for loop in loops:
        flags += [False] * (loop.rows - loop.velocity_rows) + [
            True
        ] * loop.velocity_rows
    return flags


def _tilt(name: str, R: Matrix) -> tuple[Scalar, Scalar]:
    """Return the tilt of B's z axis about A's x and y axes.

    It is a vector of length 2 tan(angle / 2), with the angle between both z axes.
    SingularError for a flipped hinge: opposite axes.
    """
    item = f"loop {name}: its axes are opposite, the hinge is flipped"
    require(logical_not(R[2, 2] <= _SMALL - 1.0), SingularError, item)
    scale = 2.0 / (1.0 + R[2, 2])
    return -R[1, 2] * scale, R[0, 2] * scale


# Residuals of each kind. They are functions of this module, so that robots can be
# copied to other processes and their machine code found again.


def _point(R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a point, three numbers: the position of B in A [m]."""
    return list(p)


def _pin(R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a pin, two numbers: x and y of B in A [m]."""
    return [p[0], p[1]]


def _planar_weld(R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a planar weld: x, y [m], angle about z [rad] of B in A."""
    return [p[0], p[1], atan2(R[1, 0], R[0, 0])]


def _weld(R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a weld: position [m], rotation vector [rad] of B in A."""
    return [*p, *log3(R)]


def _revolute(name: str, R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual of a hinge about the z axes of both frames.

    It is the position of B in A [m], three numbers, and the tilt of B's z axis, two.
    """
    return [*p, *_tilt(name, R)]


def _axes(names: Sequence[str], R: Matrix, p: Vector) -> list[Scalar]:
    """Return those of x, y, z [m], rx, ry, rz [rad] of B in A that `names` lists."""
    six = (*p, *log3(R)) if any(n.startswith("r") for n in names) else (*p, 0, 0, 0)
    return [six[_AXES.index(name)] for name in names]


def _distance(length: Scalar, name: str, R: Matrix, p: Vector) -> list[Scalar]:
    """Return the residual |p| - length [m] of a rod between the origins of A and B.

    SingularError if |p| is at most 1e-9 of the length. R is not used: all residual
    functions have R and p.
    """
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
    Field("kind", Name((*KINDS, "axes", *MEASURES)),
        "point (3 rows), pin (2, in the plane xy of a's frame), planar_weld (3),"
        " revolute (5, about z), weld (6), axes (those listed), distance (1),"
        " rolling_ball and rolling_disc (3: about b's origin, and about z of b's"
        " frame, without slip on the plane xy of a's frame)", default=REQUIRED),
    Field("a", Name(), "link with the first frame; the base where it is missing"),
    Field("b", Name(), "link with the second frame", default=REQUIRED),
    Field("at_a", FRAME, "first frame on its link"),
    Field("at_b", FRAME, "second frame on its link"),
    Field("axes", ListOf(Name(_AXES), least=1),
        "of kind axes: components of position and rotation that are zero; of kinds"
        " that roll: z keeps to the plane, x and y do not slip (of a disc: along its"
        " way, and across); all three unless given"),
    Field("length", Quantity(0.0, above=True),
        "of kind distance: between the origins", "m"),
    Field("radius", Quantity(0.0, above=True), "of kinds that roll", "m"),
)  # fmt: skip


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
    """Return a loop of a named kind.

    Args:
        name: Name of the loop, for errors and outputs.
        kind: point, pin, planar_weld, revolute, weld, axes, distance, rolling_ball or
            rolling_disc; LOOP describes them.
        b: Link with frame B.
        a: Link with frame A; None is the base.
        at_b, at_a: Frames on the links: {xyz, rpy}, or a Transform from the link; None:
            the frame of the link.
        axes: For kind axes: components x, y, z, rx, ry, rz that are zero, in A, in the
            order of the rows. For kinds that roll: those of the rows z, x, y (in this
            order) to constrain; all if empty.
        length: For kind distance: distance of the origins [m].
        radius: For kinds that roll [m].

    Raises:
        ModelError: Unknown kind, invalid value, an argument that the kind needs is
            missing, or an argument that it does not use is present.
        SettingError: Unknown keyword. Names of links are checked by Model.with_loops.

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
        return Loop(name, a, b, A, B, height, len(names), kind, directions, count)
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
    """Raise ModelError if axes, length or radius is needed but absent, or not used.

    Also if an axis is named twice, or a kind that rolls, for which axes may be absent,
    has a rotation among them. Other keys are not looked at.
    """
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
    axes = checked.get("axes", ())
    if len(set(axes)) < len(axes):
        raise ModelError(f"{where}: axes are {', '.join(axes)}; valid: each once", name)
    turns = [x for x in axes if x.startswith("r")]
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
    """Return a loop with a user's residual function of the pose of B in A.

    Both functions are called once with a sample pose, to count their rows; their errors
    pass through.

    Args:
        name: Name of the loop, for errors and outputs.
        function: (R, p) -> residuals; an empty list if all rows are velocity rows.
        b: Link with frame B.
        a: Link with frame A; None is the base.
        at_b, at_a: Frames on the links: {xyz, rpy}, or a Transform from the link; None:
            the frame of the link.
        directions: (R, p) -> velocity rows: factors of the angular (3) and the linear
            velocity (3) of B's origin relative to A, in the axes of A; None: none.

    Raises:
        ModelError: A velocity row has not six numbers, a frame is not valid, or an
            argument for a function cannot be called.
        SettingError: Unknown keyword. Names of links are checked by Model.with_loops.
    """
    # An arbitrary pose: only the number of rows is read from the results.
    _check_functions(f"loop '{name}'", function, directions or function)
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
    """Return a coupling with a residual function of joint positions.

    The function is called once with sample positions, to count its residuals; its
    errors pass through.

    Args:
        name: Name of the coupling, for errors and outputs.
        joints: Names of joints with one coordinate.
        function: (q_a, ...) -> residuals, of the positions in the order of `joints`.

    Raises:
        ModelError: `joints` is no list of names, or `function` no function.
        SettingError: Unknown keyword. Joint names are checked by Model.with_loops.

    Source: KIM-3.0 (joint coupling); TAZZ-5.2 (gears between any joints).
    """
    _check_functions(f"coupling '{name}'", function)
    names = ListOf(Name()).read(f"coupling '{name}': joints", joints)
    rows = len(list(function(*[0.1 * (k + 1) for k in range(len(names))])))
    return Coupling(name, tuple(names), function, rows)


def _check_functions(where: str, *functions: Any) -> None:
    """Raise ModelError for the first argument that is not callable."""
    for function in functions:
        if not callable(function):
            message = f"{where}: {shown(function)} is no function of residuals"
            raise ModelError(message, where)
