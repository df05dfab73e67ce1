"""Vector of the parameters that joint forces are linear in: names, values, robot.

It has ten inertial parameters a body, as RigidInertia.parameters, bodies in order
(links fixed together are one body); then the damping of every joint coordinate, the dry
friction of every one, and the rotor inertia of every one, followers included. Damping
and friction, and rotor inertias, are left out unless asked for; n is the number of
parameters that are there. Solvers of REGRESSOR use the same order. Dry friction is the
mean of both directions; its asymmetry is not a parameter and stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, SettingError
from dyn_core.model.checks.inertias import with_inertia_scales
from dyn_core.model.checks.pseudo_inertia import is_consistent
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.description import Description
from dyn_core.model.model import Model
from dyn_core.spatial import RigidInertia, Vector
from dyn_core.validation import known_keywords, shaped_array

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

ROUNDING = 1e-12  # up to which a negative joint parameter is one of 0
INERTIAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
FRICTION = ("damping", "friction")
ROTORS = ("armature",)


def check_switch(name: str, value: object) -> None:
    """Refuse a value that is no boolean: the string "no" would be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise SettingError(f"{name} is {value!r}; valid: True, False", name)


@dataclass(frozen=True)
class Layout:
    """Names, kinds and order of the linear parameters of one robot.

    Attributes:
        model: Robot.
        groups: Joint parameters that are included, such as damping, in order.
    """

    model: Model
    groups: tuple[str, ...]

    @classmethod
    def of(
        cls, model: Model, friction: bool, rotors: bool, who: str = "Layout.of"
    ) -> Layout:
        """Return the layout of a robot.

        Args:
            model: Robot.
            friction: Whether damping and dry friction are included.
            rotors: Whether rotor inertias (armature) are included.
            who: Name of the function that needs the robot, for the message.

        Raises:
            UnsupportedError: `model` is not a robot.
            SettingError: A flag is not a boolean.
        """
        check_robot(model, who)
        for name, value in (("friction", friction), ("rotors", rotors)):
            check_switch(name, value)
        return cls(model, FRICTION * bool(friction) + ROTORS * bool(rotors))

    @property
    def inertial(self) -> int:
        """Number of inertial parameters; joint parameters come after them."""
        return 10 * self.model.nb

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order: first JOINT:m, JOINT:mcx, ... (INERTIAL) of each body.

        Then for each group JOINT.group, or JOINT.group[k] for a joint of several
        coordinates. Bodies are in order, followers included.
        """
        model = self.model
        names = [f"{model.names[i]}:{x}" for i in model.bodies for x in INERTIAL]
        for group in self.groups:
            for i in model.bodies:
                n = model.joint[i].nv
                ends = [""] if n == 1 else [f"[{k}]" for k in range(n)]
                names += [f"{model.names[i]}.{group}{end}" for end in ends]
        return tuple(names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each parameter, in the order of `names`.

        It is mass, moment, inertia, damping, friction or armature.
        """
        ten = ("mass", *["moment"] * 3, *["inertia"] * 6)
        coordinates = sum(self.model.joint[i].nv for i in self.model.bodies)
        joints = [group for group in self.groups for _ in range(coordinates)]
        return (*ten * self.model.nb, *joints)

    @property
    def values(self) -> np.ndarray:
        """The robot's present values in SI units, in the order of `names`, (n,)."""
        model = self.model
        numbers = [x for i in model.bodies for x in model.I[i].parameters]
        for group in self.groups:
            numbers += [x for i in model.bodies for x in getattr(model, group)[i]]
        return np.array(numbers, float)

    def checked(self, name: str, values: ArrayLike) -> np.ndarray:
        """Return `values` as an array of floats, (n,), one for each of `names`.

        An array of floats is returned itself.

        Raises ShapeError, with `name` for the argument, if they are not numeric or have
        another shape. Values may be infinite or NaN.
        """
        return shaped_array(name, values, (len(self.kinds),))

    def of_joints(self, values: np.ndarray) -> Iterator[tuple[str, list[Vector]]]:
        """Yield the name of each joint group, and its values as a list by body.

        Each entry is a Vector of the values of the body's joint, one for each of its
        coordinates; entry 0, of the base, is empty.

        Args:
            values: Values of all parameters, in the order of `names`, (n,); not
                checked.
        """
        first = self.inertial
        for group in self.groups:
            rows = [Vector(())]
            for i in self.model.bodies:
                n = self.model.joint[i].nv
                rows.append(Vector(values[first : first + n].tolist()))
                first += n
            yield group, rows


@known_keywords
def parameter_names(
    model: Model, friction: bool = False, rotors: bool = False
) -> tuple[str, ...]:
    """Return the names of the parameters that joint forces are linear in, in order.

    First come JOINT:m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz of the body that a
    joint carries, about the body's origin, body by body. Then come JOINT.damping of
    all joints, JOINT.friction of all joints, and JOINT.armature of all joints. A joint
    of several coordinates has a name for each, such as JOINT.damping[0].

    Args:
        model: Robot.
        friction: Whether damping and dry friction of the joints are included.
        rotors: Whether rotor inertias (armature) are included.

    Raises:
        UnsupportedError: `model` is not a robot.
        SettingError: A flag is not a boolean, or a keyword is unknown.
    """
    return Layout.of(model, friction, rotors, "parameter_names").names


@known_keywords
def parameters_of(
    model: Model, friction: bool = False, rotors: bool = False
) -> np.ndarray:
    """Return a robot's parameter values pi, with tau = Y pi, (n,).

    They are in the order of `parameter_names`, in SI units.

    Args:
        model: Robot.
        friction: Whether damping and dry friction of the joints are included.
        rotors: Whether rotor inertias (armature) are included.

    Raises:
        UnsupportedError: `model` is not a robot.
        SettingError: A flag is not a boolean, or a keyword is unknown.
    """
    return Layout.of(model, friction, rotors, "parameters_of").values


@known_keywords
def with_linear_parameters(
    model: Model, values: ArrayLike, friction: bool = False, rotors: bool = False
) -> Model:
    """Return the robot with other values of `parameter_names`.

    Each coordinate of a joint gets its own values; the description has their mean. A
    change of a body's inertia is added to the link that its joint carries. If this
    link alone would then be unphysical, it gets the inertia of the whole body, and the
    other links fixed to the body get none.

    Args:
        model: Robot.
        values: Values in the order of `parameter_names`, (n,).
        friction: Whether damping and dry friction of the joints are included.
        rotors: Whether rotor inertias (armature) are included.

    Raises:
        ShapeError: Wrong number of values, or not numeric.
        ModelError: A value is not finite, a joint parameter is below -1e-12 (one from
            there to 0 counts as 0), friction is below a joint's friction_asymmetry, a
            changed body is unphysical or has no link, or changes of the robot would be
            lost (Model.rebuilt).
        UnsupportedError: `model` is not a robot.
        SettingError: A flag is not a boolean, or a keyword is unknown.
    """
    layout = Layout.of(model, friction, rotors, "with_linear_parameters")
    numbers = layout.checked("values", values).copy()
    names = layout.names
    if not np.isfinite(numbers).all():
        bad = names[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise ModelError(f"{bad} is not finite", bad)
    of_joints = numbers[layout.inertial :]
    of_joints[(of_joints < 0) & (of_joints >= -ROUNDING)] = 0.0
    for name, x in zip(names[layout.inertial :], of_joints, strict=True):
        if x < 0:
            raise ModelError(f"{name} is {x:.6g}; it must be >= 0", name)
    links: dict[str, RigidInertia] = {}
    for i in model.bodies:
        ten = numbers[10 * (i - 1) : 10 * i]
        if not np.array_equal(ten, model.I[i].parameters):
            links.update(_links_of(model, i, ten))
    joints = dict(layout.of_joints(numbers))
    description = _described(model, links, joints)
    made = model.rebuilt(description=description)
    changes: dict[str, Any] = {group: tuple(rows) for group, rows in joints.items()}
    made = replace(made, **changes)
    made = with_inertia_scales(made)
    return (
        made
        if made.joint_names == model.joint_names
        else made.reorder(model.joint_names)
    )


def _links_of(model: Model, i: int, ten: np.ndarray) -> dict[str, RigidInertia]:
    """Return the changed inertias of links, by name, that give body i ten parameters.

    These are m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about its origin; ModelError if
    no mass distribution has them. The link that the body's joint carries takes the
    whole change. If no mass distribution has its inertia then, it gets all of the
    body's, and other links of the body get zero. Results are about the link's origin.
    """
    carrier, name = model.child_links[i], model.names[i]
    # The slack admits masses on a plane or line, where J is only semidefinite.
    if not is_consistent(ten, slack=1e-9):
        raise ModelError(
            f"the body that joint '{name}' carries has no physical sense: mass"
            f" {ten[0]:.6g} kg, pseudo-inertia not positive; identify with"
            " consistent=True gives what has",
            name,
        )
    if carrier not in model.frames:
        raise ModelError(f"joint '{name}' carries no link that could change", name)
    frame = model.frames[carrier]
    back = frame.X.inverse
    others = [k for k, f in model.frames.items() if f.body == i and k != carrier]
    old = np.array(model.I[i].parameters, float)
    change = back.T @ RigidInertia.of_parameters((ten - old).tolist()) @ back
    changed = frame.inertia + change
    if is_consistent(np.array(changed.parameters, float), slack=1e-9):
        return {carrier: changed}
    whole = back.T @ RigidInertia.of_parameters(ten.tolist()) @ back
    return {carrier: whole, **{k: RigidInertia.zero() for k in others}}


def _described(
    model: Model,
    links: dict[str, RigidInertia],
    joints: dict[str, list[Vector]],
) -> Description:
    """Return the model's description with changed link inertias and joint parameters.

    `joints` has for each group such as damping a list by body (entry 0 is empty). A
    joint gets the mean over its coordinates, as a JointSpec has one number for all of
    them; fixed and locked joints keep their values.
    """
    old = model.build.description
    number = {name: i for i, name in enumerate(model.names) if i}

    def mean(rows: Sequence[Vector], name: str, before: float) -> float:
        """Return a joint's mean; `before` if it is fixed or has no coordinates."""
        x = list(rows[number[name]]) if name in number else []
        return float(np.mean(x)) if x else before

    specs = []
    for joint in old.joints:
        changes: dict[str, Any] = {
            group: mean(rows, joint.name, getattr(joint, group))
            for group, rows in joints.items()
        }
        specs.append(replace(joint, **changes))
    new = [
        replace(link, inertia=links.get(link.name, link.inertia)) for link in old.links
    ]
    return replace(old, links=tuple(new), joints=tuple(specs))
