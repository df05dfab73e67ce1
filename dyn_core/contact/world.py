"""What a robot lives in: half-spaces, and how its contacts are held; checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dyn_core.contact.halfspaces import HalfSpace
from dyn_core.errors import ModelError
from dyn_core.model.entries import finite, only_keys
from dyn_core.model.shapes import Material

CHOICES: Mapping[str, tuple[str, ...]] = {
    "stepper": ("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven"),
    "stabilisation": ("baumgarte", "none", "erp_cfm", "split_impulse"),
    "restitution": ("newton", "poisson"),
    "impacts": ("simultaneous", "sequential"),
}
_SWITCHES = ("contacts", "limits", "friction")
_GEAR = ("joints", "ratio", "offset")


@dataclass(frozen=True)
class World:
    """Half-spaces, solver and stepper of a robot's contacts and constraints.

    Attributes:
        half_spaces: Floors, walls, slopes.
        margin: Largest gap of a contact that a step looks at [m].
        packages: Folders of package:// addresses of meshes, by name.
        solver, solver_options: A solver of CONTACT_SOLVE by name, and its options.
        stepper: One of CHOICES["stepper"] (steppers.py, events.py).
        stabilisation: How errors of position go away. baumgarte: a part erp of them in
            each step; none; erp_cfm: springs of `stiffness` [N/m] with `damping`
            [N·s/m], soft rows; split_impulse: a part erp by moves without velocity.
        erp: That part, 0..1.
        stiffness, damping: Of erp_cfm.
        restitution: newton: speeds, sigma+ = -e sigma-; poisson: impulses, those of the
            release are e times those of the compression.
        impacts: simultaneous, or sequential: one contact after the other.
        slow: Speed of approach below which nothing bounces [m/s].
        contacts, limits, friction: Whether shapes touch, joints have stops, dry
            friction of joints is a block (else a smooth function of the speed).
        limit_restitution: Of all joint limits, 0..1.
        gears: (joint a, joint b, ratio, offset): ratio q_a - q_b = offset.
        max_impacts: Most impacts that event_driven takes in a step; after them nothing
            bounces in it.

    Raises:
        ModelError: A setting is unknown or out of range; names the valid ones.

    Source: LCP-4, LCP-10, LCP-11, LCP-17, LCP-23.
    """

    half_spaces: tuple[HalfSpace, ...] = (HalfSpace(),)
    margin: float = 0.02
    packages: Mapping[str, Any] = field(default_factory=dict)
    solver: str = "admm"
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    stepper: str = "stewart_trinkle"
    stabilisation: str = "baumgarte"
    erp: float = 0.2
    stiffness: float = 1e5
    damping: float = 1e3
    restitution: str = "newton"
    impacts: str = "simultaneous"
    slow: float = 0.05
    contacts: bool = True
    limits: bool = True
    friction: bool = True
    limit_restitution: float = 0.0
    gears: tuple[tuple[str, str, float, float], ...] = ()
    max_impacts: int = 50

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "half_spaces", tuple(self.half_spaces))
        put(self, "gears", tuple(tuple(gear) for gear in self.gears))
        for key, valid in CHOICES.items():
            if getattr(self, key) not in valid:
                _refuse(key, getattr(self, key), ", ".join(valid))
        for key in _SWITCHES:
            if not isinstance(getattr(self, key), bool):
                _refuse(key, getattr(self, key), "true or false")
        for key, most in (
            ("margin", math.inf),
            ("erp", 1.0),
            ("slow", math.inf),
            ("stiffness", math.inf),
            ("damping", math.inf),
            ("limit_restitution", 1.0),
        ):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                _refuse(key, value, "a number")
            if not (0 <= value <= most and math.isfinite(value)):
                _refuse(key, value, "0 or more" if most > 1 else "0 to 1")
        if self.stiffness + self.damping <= 0:
            _refuse("stiffness", self.stiffness, "above zero, or a damping above zero")
        count = self.max_impacts
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            _refuse("max_impacts", count, "a whole number, 1 or more")
        for key, value in dict(self.solver_options).items():
            numbers = value if isinstance(value, (list, tuple)) else [value]
            if not all(isinstance(x, (bool, int, float)) for x in numbers):
                _refuse(f"solver_options.{key}", value, "a number, or a list of them")

    @classmethod
    def of(cls, data: Any) -> World:
        """Give a World from itself, a mapping of its fields (as in YAML), or None."""
        if data is None:
            return cls()
        if isinstance(data, World):
            return data
        only_keys("world", data, tuple(f.name for f in fields(cls)))
        values = dict(data)
        if "half_spaces" in values:
            values["half_spaces"] = _listed("half_spaces", values, _half_space)
        if "gears" in values:
            values["gears"] = _listed("gears", values, _gear)
        for key in ("packages", "solver_options"):
            if not isinstance(values.get(key) or {}, Mapping):
                _refuse(key, values[key], "a mapping")
        return cls(**values)


def _refuse(key: str, value: Any, valid: str) -> None:
    """Raise what says which setting is wrong."""
    raise ModelError(f"world: {key} is {value!r}; valid: {valid}", key)


def _listed(key: str, values: Mapping[str, Any], make: Any) -> tuple[Any, ...]:
    """Make each entry of a list."""
    entries = values[key] or ()
    if not isinstance(entries, (list, tuple)):
        _refuse(key, entries, "a list")
    return tuple(make(f"world: {key} {k}", x) for k, x in enumerate(entries, 1))


def _half_space(where: str, entry: Any) -> HalfSpace:
    """Give a half-space of a mapping, or itself."""
    if isinstance(entry, HalfSpace):
        return entry
    only_keys(where, entry, tuple(f.name for f in fields(HalfSpace)))
    values = dict(entry)
    material = values.get("material")
    if isinstance(material, Mapping):
        values["material"] = _material(f"{where}: material", material)
    elif material is not None and not isinstance(material, Material):
        raise ModelError(f"{where}: material is {material!r}; valid: a mapping")
    for key in ("point", "normal"):
        if key not in values:
            continue
        numbers = values[key]
        if not isinstance(numbers, (list, tuple)) or len(numbers) != 3:
            raise ModelError(f"{where}: {key} is {numbers!r}; valid: three numbers")
        values[key] = tuple(finite(f"{where}: {key}", x) for x in numbers)
    return HalfSpace(**values)


def _material(where: str, entry: Mapping[str, Any]) -> Material:
    """Give the material of a mapping."""
    only_keys(where, entry, tuple(f.name for f in fields(Material)))
    values = {key: finite(f"{where}: {key}", value) for key, value in entry.items()}
    for key, value in values.items():
        most = 1.0 if key == "restitution" else math.inf
        if not 0 <= value <= most:
            valid = "0 to 1" if key == "restitution" else "0 or more"
            raise ModelError(f"{where}: {key} is {value}; valid: {valid}", key)
    return Material(**values)


def _gear(where: str, entry: Any) -> tuple[str, str, float, float]:
    """Give a gear of a mapping, or of its four parts."""
    if isinstance(entry, (list, tuple)) and len(entry) == 4:
        return (str(entry[0]), str(entry[1]), float(entry[2]), float(entry[3]))
    only_keys(where, entry, _GEAR)
    names = entry.get("joints")
    if not isinstance(names, (list, tuple)) or len(names) != 2:
        raise ModelError(f"{where}: joints is {names!r}; valid: two names of joints")
    usual = {"ratio": 1.0, "offset": 0.0}
    ratio, offset = (
        finite(f"{where}: {key}", entry.get(key, usual[key])) for key in usual
    )
    return str(names[0]), str(names[1]), ratio, offset
