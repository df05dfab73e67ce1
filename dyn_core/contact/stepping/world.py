"""World of a robot: half-spaces, and the settings of its contact simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.problem.solving import contact_solver
from dyn_core.errors import ModelError
from dyn_core.model.shapes import Material
from dyn_core.validation import finite_number, known_keys

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
    """Half-spaces, and the solver and stepper for contacts and constraints.

    Attributes:
        half_spaces: Floors, walls, slopes.
        margin: Largest gap of a contact that takes part in a step [m].
        packages: Folders of package:// addresses of meshes, by name.
        solver, solver_options: A solver of CONTACT_SOLVE by name, and its options.
        stepper: One of CHOICES["stepper"] (time_stepping.py, events.py).
        stabilisation: Correction of position errors. baumgarte: a part erp in each step
            through the velocities; none; erp_cfm: soft rows, springs of `stiffness`
            [N/m] with `damping` [N·s/m]; split_impulse: a part erp in each step without
            a change of velocity.
        erp: Part of position errors corrected in each step, 0..1.
        stiffness, damping: Of erp_cfm.
        restitution: newton: sigma+ = -e sigma-; poisson: impulses of the release are e
            times those of the compression.
        impacts: simultaneous, or sequential: one contact after the other.
        restitution_threshold: Speed of approach below which nothing bounces [m/s].
        contacts, limits: Whether contacts of shapes and joint limits act.
        friction: Whether dry friction of joints is a constraint; if not, it is a smooth
            function of the speed.
        limit_restitution: Coefficient of restitution of all joint limits, 0..1.
        gears: (joint a, joint b, ratio, offset): ratio q_a - q_b = offset.
        max_impacts: Number of impacts in one step of event_driven after which
            restitution is off for the rest of the step.

    Raises:
        ModelError: A setting is unknown or out of range; the message lists the valid
            ones.
        SolverNotFound: No solver has this name; names the nearest.
        SignatureError: The solver is of another kind.

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
    restitution_threshold: float = 0.05
    contacts: bool = True
    limits: bool = True
    friction: bool = True
    limit_restitution: float = 0.0
    gears: tuple[tuple[str, str, float, float], ...] = ()
    max_impacts: int = 50

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "half_spaces", tuple(self.half_spaces))
        set_field(self, "gears", tuple(tuple(gear) for gear in self.gears))
        if self.solver != type(self).solver:  # the default needs no look-up
            contact_solver(self.solver)
        for key, valid in CHOICES.items():
            if getattr(self, key) not in valid:
                _refuse(key, getattr(self, key), ", ".join(valid))
        for key in _SWITCHES:
            if not isinstance(getattr(self, key), bool):
                _refuse(key, getattr(self, key), "true or false")
        for key, maximum in (
            ("margin", math.inf),
            ("erp", 1.0),
            ("restitution_threshold", math.inf),
            ("stiffness", math.inf),
            ("damping", math.inf),
            ("limit_restitution", 1.0),
        ):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                _refuse(key, value, "a number")
            if not (0 <= value <= maximum and math.isfinite(value)):
                _refuse(key, value, "0 or more" if maximum > 1 else "0 to 1")
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
        """Return a World from itself, a mapping of its fields (as in YAML), or None."""
        if data is None:
            return cls()
        if isinstance(data, World):
            return data
        known_keys("world", data, tuple(f.name for f in fields(cls)))
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
    """Raise a ModelError that names the setting and its valid values."""
    raise ModelError(f"world: {key} is {value!r}; valid: {valid}", key)


def _listed(key: str, values: Mapping[str, Any], make: Any) -> tuple[Any, ...]:
    """Return each entry of a list, converted."""
    entries = values[key] or ()
    if not isinstance(entries, (list, tuple)):
        _refuse(key, entries, "a list")
    return tuple(make(f"world: {key} {k}", x) for k, x in enumerate(entries, 1))


def _half_space(where: str, entry: Any) -> HalfSpace:
    """Return the half-space of a mapping; a HalfSpace unchanged."""
    if isinstance(entry, HalfSpace):
        return entry
    known_keys(where, entry, tuple(f.name for f in fields(HalfSpace)))
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
        values[key] = tuple(finite_number(f"{where}: {key}", x) for x in numbers)
    return HalfSpace(**values)


def _material(where: str, entry: Mapping[str, Any]) -> Material:
    """Return the material of a mapping."""
    known_keys(where, entry, tuple(f.name for f in fields(Material)))
    values = {
        key: finite_number(f"{where}: {key}", value) for key, value in entry.items()
    }
    for key, value in values.items():
        maximum = 1.0 if key == "restitution" else math.inf
        if not 0 <= value <= maximum:
            valid = "0 to 1" if key == "restitution" else "0 or more"
            raise ModelError(f"{where}: {key} is {value}; valid: {valid}", key)
    return Material(**values)


def _gear(where: str, entry: Any) -> tuple[str, str, float, float]:
    """Return the gear of a mapping or of a list of four values."""
    if isinstance(entry, (list, tuple)) and len(entry) == 4:
        return (str(entry[0]), str(entry[1]), float(entry[2]), float(entry[3]))
    known_keys(where, entry, _GEAR)
    names = entry.get("joints")
    if not isinstance(names, (list, tuple)) or len(names) != 2:
        raise ModelError(f"{where}: joints is {names!r}; valid: two names of joints")
    usual = {"ratio": 1.0, "offset": 0.0}
    ratio, offset = (
        finite_number(f"{where}: {key}", entry.get(key, usual[key])) for key in usual
    )
    return str(names[0]), str(names[1]), ratio, offset
