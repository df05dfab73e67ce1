"""Selection of parameters to identify, by group, parameter path, or single number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, SettingError, ShapeError, unknown_name
from dyn_core.identification.fitting.consistent_fit import Bounds
from dyn_core.model import Model, parameter_paths
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.parameter_vector import FRICTION, INERTIAL, Layout
from dyn_core.validation import float_array, shaped_array, shown

# Joint parameters of each law of joint friction.
FRICTION_LAWS = {
    "viscous": ("damping",),
    "coulomb": FRICTION,
    "direction": (*FRICTION, "friction_asymmetry"),
    "stribeck": (*FRICTION, "stribeck", "stribeck_speed"),
    "full": (*FRICTION, "friction_asymmetry", "stribeck", "stribeck_speed"),
}
GROUPS = ("inertia", "payload", "friction", "rotors", "springs", "gears", "origins")
# Kinds that add to the joint forces: they may be identified together with all inertia.
BESIDE = ("damping", "friction", "friction_asymmetry", "friction_speed", "stribeck",
          "stribeck_speed", "armature", "stiffness", "rest", "rest_length")  # fmt: skip
_XYZ, _POSE = ("x", "y", "z"), ("x", "y", "z", "roll", "pitch", "yaw")
_PARTS = {
    "payload": INERTIAL, "com": _XYZ, "inertia": ("xx", "xy", "xz", "yy", "yz", "zz"),
    "origin": _POSE, "plug": _POSE, "axis": _XYZ, "gravity": _XYZ,
}  # fmt: skip
_UNITS = {
    "mass": "kg", "moment": "kg·m", "inertia": "kg·m²", "com": "m",
    "damping": "N·m·s/rad", "friction": "N·m", "friction_asymmetry": "N·m",
    "friction_speed": "rad/s", "stribeck": "N·m", "stribeck_speed": "rad/s",
    "armature": "kg·m²",
    "stiffness": "N·m/rad", "rest": "rad", "origin": "m", "plug": "m", "angle": "rad",
    "axis": "-", "gravity": "m/s²", "ratio": "-", "pitch": "m/rad", "delay": "s",
    "rest_length": "m",
}  # fmt: skip
_ALONG = {  # units of prismatic joints
    "damping": "N·s/m", "friction": "N", "friction_asymmetry": "N", "stribeck": "N",
    "friction_speed": "m/s", "stribeck_speed": "m/s", "armature": "kg",
    "stiffness": "N/m", "rest": "m",
}  # fmt: skip
# Typical sizes of parameters, used where the prior is zero.
_SIZES = {
    "mass": 1.0, "moment": 0.1, "inertia": 0.01, "com": 0.1, "stribeck_speed": 0.1,
    "friction_speed": 0.01, "armature": 0.1, "origin": 0.01, "plug": 0.01,
    "angle": 0.01, "axis": 0.01, "stiffness": 10.0, "delay": 0.01,
}  # fmt: skip
_NOT_NEGATIVE = ("damping", "friction", "stribeck", "armature", "stiffness", "mass",
                 "rest_length")  # fmt: skip
SPEEDS = {  # bounds of speed parameters that motion can determine [rad/s | m/s]
    "friction_speed": (1e-3, 0.5), "stribeck_speed": (0.02, 2.0),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Parameters to identify, n in all: of a layout, of parameter paths, and a delay.

    `chosen` are the indices of the sought among all numbers of the paths; unchecked.
    """

    model: Model
    layout: Layout | None
    paths: tuple[str, ...] = ()
    chosen: tuple[int, ...] = ()
    delay: bool = False

    @property
    def linear(self) -> int:
        """Number of parameters of the layout; they come first."""
        return len(self.layout.kinds) if self.layout else 0

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each parameter.

        First those of the layout, such as JOINT:m or JOINT.damping; then those of the
        paths, PATH, PATH:part or PATH[k]; last "delay".
        """
        every = [name for path in self.paths for name in number_names(self.model, path)]
        mine = self.layout.names if self.layout else ()
        return (*mine, *(every[k] for k in self.chosen), *("delay",) * self.delay)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each parameter, in the order of `names`.

        It is mass, moment (m c) or inertia for inertial parameters, also of a payload;
        angle for the angles of an origin or plug; else the end of the name's path, such
        as damping; and last "delay".
        """
        every = [kind for path in self.paths for kind in _kinds(self.model, path)]
        mine = self.layout.kinds if self.layout else ()
        return (*mine, *(every[k] for k in self.chosen), *("delay",) * self.delay)

    @property
    def values(self) -> np.ndarray:
        """Values of the robot in the order of `names`, (n,); 0 for the delay."""
        every = [float(x) for path in self.paths for x in self.model.parameter(path)]  # type: ignore[arg-type]
        mine = self.layout.values if self.layout else np.zeros(0)
        return np.concatenate(
            [mine, np.array(every, float)[list(self.chosen)], np.zeros(int(self.delay))]
        )

    @property
    def units(self) -> tuple[str, ...]:
        """SI unit of each parameter, linear for prismatic joints; "SI" if not known."""
        units = []
        for name, kind in zip(self.names, self.kinds, strict=True):
            joint = name.rpartition(".")[0].partition("[")[0]
            slides = (
                joint in self.model.names
                and self.model.joint[self.model.names.index(joint)].kind == "prismatic"
            )
            units.append((_ALONG if slides else {}).get(kind, _UNITS.get(kind, "SI")))
        return tuple(units)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Indices where groups of ten inertial parameters begin.

        These are bodies of the layout, then payloads whose ten parameters are sought.
        """
        first = range(0, self.layout.inertial if self.layout else 0, 10)
        payloads = [
            k
            for k, name in enumerate(self.names)
            if name.endswith(".payload:m")
            and self.names[k + 9 : k + 10] == (name[:-1] + "Izz",)
        ]
        return (*first, *payloads)

    @property
    def scale(self) -> np.ndarray:
        """Typical size of each parameter, (n,): largest of its kind, or a usual one."""
        return self.scale_of(self.values)

    def scale_of(self, prior: np.ndarray) -> np.ndarray:
        """Return the largest absolute value in a prior of each parameter's kind, (n,).

        Where it is 0: a typical size, or with a layout 1 (except for speeds and delay).
        """
        kinds = np.array(self.kinds)
        usual = {k: 1.0 if self.layout else _SIZES.get(k, 1.0) for k in self.kinds}
        usual |= {k: _SIZES[k] for k in ("delay", *SPEEDS)}
        largest = {
            k: float(np.abs(prior[kinds == k]).max()) or usual[k] for k in {*self.kinds}
        }
        return np.array([largest[k] for k in self.kinds])

    def path_values(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Return each path's numbers, those sought from all unknowns, `numbers`."""
        if not self.paths:
            return {}
        whole = [np.array(self.model.parameter(path), float) for path in self.paths]
        flat = np.concatenate([*whole, np.zeros(0)])
        first = self.linear
        flat[list(self.chosen)] = numbers[first : first + len(self.chosen)]
        ends = np.cumsum([len(x) for x in whole])
        return dict(zip(self.paths, np.split(flat, ends[:-1]), strict=True))

    def bounds(self, more: Mapping[str, Any] | None, consistent: bool) -> Bounds:
        """Return lower and upper bounds, (n,) each, infinite where there are none.

        Bounds of the user, `more`, are (least, largest) by name; else speed parameters
        have those of SPEEDS. The lower bound is 0 of damping, friction, stribeck,
        armature, stiffness, mass and rest_length, but of numbers of a layout only if
        `consistent`; then no bound may apply to a body's ten inertial parameters.
        """
        high = np.full(len(self.kinds), np.inf)
        low = -high
        for k, kind in enumerate(self.kinds):
            by_nature = consistent or k >= self.linear
            if by_nature and kind in _NOT_NEGATIVE:
                low[k] = 0.0
            low[k], high[k] = SPEEDS.get(kind, (low[k], high[k]))
        if more is not None and not isinstance(more, Mapping):
            message = f"bounds is {shown(more)}; valid: a mapping of names to intervals"
            raise SettingError(message, "bounds")
        for name, pair in (more or {}).items():
            places = self.places("bounds", name)
            if consistent and any(
                first <= k < first + 10 for first in self.blocks for k in places
            ):
                raise SettingError(
                    f"bounds of {name} and consistent=True do not go together: a whole"
                    " body is fitted; valid: bounds without it, or a prior with a"
                    " standard deviation",
                    name,
                )
            low[places], high[places] = _interval(name, pair)
        return low, high

    def places(self, what: str, name: str) -> list[int]:
        """Return the indices of a parameter, or of all sought parameters of a path."""
        names = self.names
        places = [k for k, x in enumerate(names) if name in (x, path_of(x))]
        if not places:
            message = unknown_name("number that is sought", name, names)
            raise SettingError(f"{what}: {message}", name)
        return places

    def checked_prior(self, prior: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return prior values and standard deviations, (n,) each.

        `prior` is an array (n,), not copied if it has floats; or a mapping from names
        of parameters, or paths, to values or a tuple (values, deviations). Values not
        given are the robot's, deviations infinite. NaN values pass.
        """
        deviations = np.full(len(self.kinds), np.inf)
        if prior is None:
            return self.values, deviations
        if not isinstance(prior, Mapping):
            return shaped_array("prior", prior, (len(self.kinds),)), deviations
        values = self.values
        for name, entry in prior.items():
            places = self.places("prior", name)
            pair = entry if isinstance(entry, tuple) else (entry, np.inf)
            if len(pair) != 2:
                valid = "a value, or (value, deviation)"
                message = f"prior of {name} is {entry!r}; valid: {valid}"
                raise SettingError(message, name)
            value, deviation = pair
            values[places] = _numbers(name, value, len(places))
            deviations[places] = _numbers(name, deviation, len(places))
            if not (deviations[places] > 0).all():
                raise SettingError(
                    f"prior of {name}: its standard deviation must be > 0", name
                )
        return values, deviations


def _numbers(name: str, values: ArrayLike, count: int) -> np.ndarray:
    """Return prior values or deviations as an array, () or (count,); NaN is valid."""
    array = float_array(f"prior of {name}", values, f"{count} numbers")
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise ShapeError(f"prior of {name}", f"{count} numbers", f"shape {array.shape}")
    return array


def _interval(name: str, pair: Any) -> tuple[float, float]:
    """Return an interval's ends (least, largest) as floats; they may be infinite."""
    try:
        low, high = (float(x) for x in float_array(name, pair, "2 numbers"))
    except (TypeError, ValueError):  # a ShapeError is a ValueError
        low, high = 1.0, 0.0
    if not low < high:
        raise SettingError(
            f"bounds of {name}: {pair!r}; valid: (least, largest), such as (0, 5)", name
        )
    return low, high


def number_names(model: Model, path: str) -> list[str]:
    """Return the names of a path's numbers, in the order of model.parameter(path).

    They are PATH for one number, else PATH:part for numbers with names, such as
    LINK.com:x, else PATH[k], k from 0. ModelError: The path is unknown.
    """
    size = len(model.parameter(path))
    parts = _PARTS.get(path.rpartition(".")[2])
    if parts and len(parts) == size:
        return [f"{path}:{part}" for part in parts]
    return [path] if size == 1 else [f"{path}[{k}]" for k in range(size)]


def path_of(name: str) -> str:
    """Return the path of a parameter: its name without the end `:part` or `[k]`."""
    return re.sub(r"(?<=\w)\[\d+\]$", "", name.partition(":")[0])


def _kinds(model: Model, path: str) -> list[str]:
    """Return the kind of each number of a path, in order; it need not be in _UNITS."""
    what, size = path.rpartition(".")[2], len(model.parameter(path))
    if what == "payload":
        return ["mass", *["moment"] * 3, *["inertia"] * 6]
    if what in ("origin", "plug"):
        return [*[what] * 3, *["angle"] * 3]
    return [what] * size


def select(
    model: Model,
    only: Any,
    friction: bool | str,
    rotors: bool,
    delay: bool,
    friction_speed: bool = False,
) -> Unknowns:
    """Return the parameters that a user wants to identify.

    Args:
        only: Group, parameter path, number of a path, or several of them; groups (but
            payload) of which the robot has nothing are passed over. None: all inertia,
            with friction and rotors.
        friction: Law, see law_numbers, for `only` None or with the group friction.
        rotors: Whether the inertia of rotors is sought, if `only` is None.
        friction_speed: Whether the width of the law's dry friction is sought.
    """
    check_robot(model, "identify")
    law = law_numbers(friction, friction_speed)
    asked = ["inertia"] if only is None else _asked(only)
    if "inertia" in asked:
        wanted = asked if only is not None else ["friction", *["rotors"] * bool(rotors)]
        linear = set(FRICTION) <= {*law} and not friction_speed
        linear = linear and "friction" in wanted
        layout = Layout.of(model, linear, "rotors" in wanted, "identify")
        rest = [x for x in wanted if x not in ("inertia", "rotors")]
        covered = layout.groups
    else:
        layout, rest, covered = None, asked, ()
    names = [x for entry in rest for x in _names_of(model, entry, law, covered)]
    paths = tuple(dict.fromkeys(path_of(name) for name in names))
    every = [name for path in paths for name in number_names(model, path)]
    for name in names:
        if name not in every and name not in paths:
            raise SettingError(
                f"only: {unknown_name('number', name, every)}",
                "only",
            )
    chosen = [k for k, x in enumerate(every) if {x, path_of(x)} & {*names}]
    foreign = [x for x in paths if x.rpartition(".")[2] not in BESIDE]
    if layout and foreign:
        raise SettingError(
            f"only: {foreign[0]} cannot be sought together with 'inertia', whose"
            " numbers cannot be told from it; valid: one of them",
            "only",
        )
    if not (layout or paths):
        raise SettingError(
            f"only is {only!r}: '{model.name}' has nothing of it to seek; valid:"
            " a group or a path that the robot has",
            "only",
        )
    return Unknowns(model, layout, paths, tuple(chosen), delay)


def _asked(only: Any) -> list[str]:
    """Return groups and paths as a list; whether the robot has them is not checked."""
    one = isinstance(only, str) or not isinstance(only, Iterable)
    asked = [only] if one else list(only)
    if not asked or not all(isinstance(x, str) for x in asked):
        raise SettingError(
            f"only is {only!r}; valid: {', '.join(GROUPS)}, a parameter path, or a list"
            " of these",
            "only",
        )
    return asked


def law_numbers(friction: bool | str, friction_speed: bool = False) -> tuple[str, ...]:
    """Return the names of a friction law's joint parameters, friction_speed last.

    viscous has damping, coulomb (or True) damping and friction. To these two, direction
    adds friction_asymmetry, stribeck adds stribeck and stribeck_speed, full adds all
    three; False has none. friction_speed is refused for a law without dry friction.
    """
    if isinstance(friction, (bool, np.bool_)):
        law = FRICTION_LAWS["coulomb"] if friction else ()
    elif isinstance(friction, str) and friction in FRICTION_LAWS:
        law = FRICTION_LAWS[friction]
    else:
        raise SettingError(
            f"friction is {friction!r}; valid: True, False, {', '.join(FRICTION_LAWS)}",
            "friction",
        )
    if friction_speed and "friction" not in law:
        dry = [k for k, numbers in FRICTION_LAWS.items() if "friction" in numbers]
        raise SettingError(
            f"friction_speed=True needs dry friction, and friction is {friction!r};"
            f" valid: {', '.join(dry)}",
            "friction_speed",
        )
    return (*law, *["friction_speed"] * friction_speed)


def _names_of(
    model: Model, entry: str, law: Sequence[str], covered: Iterable[str]
) -> list[str]:
    """Return the parameter paths of a group; of a path or number a list of it alone.

    Paths of several joints are in the order of parameters, then of joints. The group
    friction is without those `covered` by the layout.
    """
    joints = [n for n in model.joint_names if len(model.parameter(f"{n}.damping"))]
    if entry == "friction":
        return [f"{n}.{x}" for x in law if x not in covered for n in joints]
    if entry == "rotors":
        return [f"{n}.armature" for n in joints]
    if entry == "payload":
        return [f"{_tool(model)}.payload"]
    if entry == "springs":
        both = ("stiffness", "rest")
        single = [n for n in joints if len(model.parameter(f"{n}.rest")) == 1]
        return [f"{n}.{x}" for x in both for n in single] + _point_springs(model)
    if entry in ("gears", "origins"):
        end = ".ratio" if entry == "gears" else ".origin"
        moving = {f"{n}{end}" for n in model.names[1:]}
        return [x for x in parameter_paths.paths(model) if x in moving]
    path = path_of(entry)
    try:
        model.parameter(path)
    except ModelError as error:
        raise SettingError(
            f"only: {error}; groups: {', '.join(GROUPS)}", "only"
        ) from error
    if path in ("armature", "time"):
        raise SettingError(
            f"only: {path} belongs to the robot as a whole; valid: gravity, paths of"
            f" links, joints and springs, or a group: {', '.join(GROUPS)}",
            "only",
        )
    return [entry]


def _point_springs(model: Model) -> list[str]:
    """Return SPRING.rest_length of all springs between points, then their stiffness."""
    return [x for x in parameter_paths.paths(model) if x.endswith(".rest_length")] + [
        f"{x.rpartition('.')[0]}.stiffness"
        for x in parameter_paths.paths(model)
        if x.endswith(".rest_length")
    ]


def _tool(model: Model) -> str:
    """Return the name of the link that carries a payload: the only end of the robot.

    Fixed joints count, and joints that a sub-chain leaves out.
    """
    joints = model.build.description.joints
    parents = {joint.parent for joint in joints}
    moving = [link for link, frame in model.frames.items() if frame.body]
    ends = [link for link in moving if link not in parents]
    if len(ends) != 1:
        raise SettingError(
            f"only: '{model.name}' has {len(ends)} links that carry no other"
            f" ({', '.join(ends[:6])}); valid: only='LINK.payload'",
            "only",
        )
    return ends[0]
