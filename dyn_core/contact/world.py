"""World of a robot: half-spaces, height fields, and settings of its contacts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.contact.collision.halfspaces import HALF_SPACE, HalfSpace
from dyn_core.contact.collision.height_field import HEIGHT_FIELD, HeightField
from dyn_core.contact.collision.pairs import ContactPairs, body_poses
from dyn_core.contact.collision.shape_tables import frame_rows
from dyn_core.contact.problem.solving import check_options
from dyn_core.contact.rows.contact_biases import PUSH_OUT_SPEED
from dyn_core.errors import InfeasibleError, ModelError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.registry import solver_of
from dyn_core.solving.solver import Solver
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    Kind,
    ListOf,
    Name,
    Quantity,
    Switch,
    Table,
    Whole,
    is_finite,
    known_keywords,
    one_state,
    read_yaml,
    refuse,
    shown,
)

FAR = 1e6  # margin with which all of a robot has contacts [m]
FLOOR = "floor"  # name of the default world
# Settings that have an effect only if another setting has one of some values.
_NEEDS = (
    ("erp", "stabilisation", ("baumgarte", "split_impulse")),
    ("push_out_speed", "stabilisation", ("baumgarte", "split_impulse")),
    ("stiffness", "stabilisation", ("erp_cfm",)),
    ("damping", "stabilisation", ("erp_cfm",)),
    ("max_impacts", "stepper", ("event_driven",)),
)


@known_keywords
@dataclass(frozen=True)
class World:
    """Half-spaces, and the solver and stepper for contacts and constraints.

    WORLD describes each attribute; docs/reference/world.md prints it, with units and
    ranges.

    Raises:
        SettingError: There is no such keyword; names the nearest, then all.
        ModelError: A setting is out of range, or has no effect beside another; two
            half-spaces have the same name; stiffness and damping are both 0. The
            message lists valid values.
        SolverNotFound: No solver has this name; names the nearest.
        SignatureError: The solver solves another kind of problem.
        UnsupportedError: An option of the solver is unknown or invalid.

    Source: LCP-4, LCP-10, LCP-11, LCP-17, LCP-23.
    """

    half_spaces: tuple[HalfSpace, ...] = (HalfSpace(),)
    margin: float = 0.02
    packages: Mapping[str, Any] = field(default_factory=dict)
    solver: str | Solver = "coulomb_newton"
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    stepper: str = "stewart_trinkle"
    stabilisation: str = "split_impulse"
    erp: float = 0.2
    push_out_speed: float = PUSH_OUT_SPEED
    stiffness: float = 1e5
    damping: float = 1e3
    restitution: str = "newton"
    impacts: str = "simultaneous"
    restitution_threshold: float = 0.05
    contacts: bool = True
    limits: bool = True
    joint_friction: bool = True
    limit_restitution: float = 0.0
    gears: tuple[tuple[str, str, float, float], ...] = ()
    max_impacts: int = 50
    height_fields: tuple[HeightField, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if is_finite(self.restitution):
            raise ModelError(
                f"world: restitution is {self.restitution}; valid: newton, poisson; a"
                " coefficient is that of a material, half_spaces=[{'material':"
                f" {{'restitution': {self.restitution}}}}}]",
                "restitution",
            )
        if isinstance(self.half_spaces, str):
            refuse(
                "world: half_spaces",
                self.half_spaces,
                "dyn.World() for the floor z = 0, dyn.World.of(FILE), or a list",
            )
        for key, entry in WORLD.fields.items():
            value = entry.read(f"world: {key}", getattr(self, key))
            object.__setattr__(self, key, value)
        names = [half_space.name for half_space in self.half_spaces]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(
                f"world: two half_spaces are called '{twice[0]}'; valid: a name each",
                "half_spaces",
            )
        for key, other, values in _NEEDS:
            changed = getattr(self, key) != WORLD.fields[key].default
            if changed and getattr(self, other) not in values:
                raise ModelError(
                    f"world: {key} changes nothing with the {other}"
                    f" {getattr(self, other)}; valid: {' or '.join(values)}",
                    key,
                )
        if self.solver != type(self).solver:  # the default needs no look-up
            solver_of(self.solver, CONTACT_SOLVE)
        if self.solver_options:
            check_options(solver_of(self.solver, CONTACT_SOLVE), self.solver_options)
        if self.stiffness + self.damping <= 0:
            raise ModelError(
                "world: stiffness and damping are 0; valid: one of them above 0",
                "stiffness",
            )

    @classmethod
    def of(cls, data: Any) -> World:
        """Return a World from a World, a mapping, YAML or the name of a floor.

        Args:
            data: A World, which is returned itself; a mapping of its fields, or a YAML
                file or YAML text of more than one line with such a mapping; "floor" or
                None: a floor at z = 0 and all defaults.

        Raises:
            ModelError: `data` has another type; a file cannot be read; a field is
                invalid. Other errors of World pass through.
        """
        if data is None or (isinstance(data, str) and data == FLOOR):
            return cls()
        if isinstance(data, (str, os.PathLike)):
            try:
                data = read_yaml(data, "world file", "world")[0]
            except ModelError as error:
                raise ModelError(
                    f"{error}; valid for a world: '{FLOOR}', a YAML file or a mapping"
                    " with fields of a World",
                    "world",
                ) from error
        if not isinstance(data, (cls, Mapping)):
            valid = "a mapping with fields of a World, a World, a YAML file or 'floor'"
            raise ModelError(f"world is {shown(data)}; valid: {valid}", "world")
        world: World = WORLD.read("world", data)
        return world

    def on_ground(self, model: Model, q: Any = None) -> np.ndarray:
        """Return a position in which a robot touches the ground without overlap, (nq,).

        Each floating joint of the base moves along z until the lowest shape that it
        carries has a gap of zero to half-spaces and height fields; the rest of q stays.
        Vertical walls and ceilings do not count. What has no shape, or is beside all
        ground, stays where it is.

        Args:
            model: Robot.
            q: Position, (nq,); None: model.start().

        Raises:
            UnsupportedError: `model` is not a Model, its base carries no floating
                joint, a mesh needs the extra `collision`, or the kind of a shape has no
                contacts.
            ModelError: A mesh or a name in `groups` is invalid, or a surface has the
                name of a link.
            InfeasibleError: The gap is not zero after 50 moves, as on a height field.
            ShapeError: q has the wrong shape.
        """
        check_robot(model, "on_ground")
        q = (model.start() if q is None else one_state("q", q, model.nq)).copy()
        # A group of all links: only contacts with the ground are computed.
        groups = {**self.groups, "links": list({x.link for x in model.shapes})}
        ground: Any = (*self.half_spaces, *self.height_fields)
        pairs = ContactPairs(model, ground, FAR, self.packages, groups)
        root = np.zeros(model.nb + 1, int)
        for i in model.bodies:
            root[i] = root[model.parent[i]] or i
        free = [i for i in {*root[1:].tolist()} if model.joint[i].kind == "floating"]
        if not free:
            reason = f"on_ground: '{model.name}' is fixed to the world"
            raise UnsupportedError(f"{reason}; valid: root_joint='floating'")
        for _ in range(50):
            rows, n = pairs.contact_arrays(frame_rows(*body_poses(model, q)))
            up, largest = rows.normal[:n, 2], 0.0
            for i in free:
                on = (up > 1e-6) & (root[rows.body_a[:n]] == i)
                if on.any():
                    rise = float((-rows.gap[:n][on] / up[on]).max())
                    q[model.q_slices[i].start + 2] += rise
                    largest = max(largest, abs(rise))
            if largest < 1e-9:
                return q
        raise InfeasibleError(f"world: '{model.name}' finds no place on the ground")


class _Gear(Table):
    """A gear: ratio q_a - q_b = offset; the list is joint a, joint b, ratio, offset."""

    def takes(self, value: Any) -> bool:
        """Return whether a value is a mapping, or a list or tuple of four entries."""
        return super().takes(value) or (
            isinstance(value, (list, tuple)) and len(value) == 4
        )

    def convert(self, where: str, value: Any) -> Any:
        """Return a gear as (joint a, joint b, ratio, offset).

        Of a mapping `joints` is [a, b]; ratio is 1 and offset 0 if they are missing.
        Whether the robot has the joints is not checked.
        """
        if isinstance(value, (list, tuple)):
            a, b, ratio, offset = value
            value = {"joints": [a, b], "ratio": ratio, "offset": offset}
        return super().convert(where, value)


def option_kind() -> Kind:
    """Return the kind of a solver's option; its method `read` checks a value.

    Valid are a switch, an integer (beyond ±10^9 it becomes a float), a finite number, a
    text, or a list of these, which becomes a tuple; else ModelError.
    """
    one = Either((Switch(), Whole(-(10**9), 10**9), Quantity(), Name()))
    return Either((*one.kinds, ListOf(one)))


_COEFFICIENT = Quantity(0.0, 1.0)
WORLD = Table(
    Field(
        "half_spaces",
        ListOf(HALF_SPACE),
        "floors, walls, slopes; missing: the floor z = 0",
    ),
    Field(
        "height_fields",
        ListOf(HEIGHT_FIELD),
        "ground whose height is given over a grid",
    ),
    Field(
        "groups",
        ByName(ListOf(Name()), "group"),
        "links and surfaces of the world that do not touch one another: a list of names"
        " for each group",
    ),
    Field(
        "margin",
        Quantity(0.0),
        "largest gap of a contact that takes part in a step",
        "m",
        0.02,
    ),
    Field(
        "packages",
        ByName(Name(also=(os.PathLike,), what="a path"), "package"),
        "folders of package:// addresses of meshes",
    ),
    Field(
        "solver",
        Name(also=(Solver,)),
        "solver of CONTACT_SOLVE",
        "",
        "coulomb_newton",
    ),
    Field("solver_options", ByName(option_kind(), "option"), "options of the solver"),
    Field(
        "stepper",
        Name(("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven")),
        "time stepping with a fixed step, or from impact to impact",
        "",
        "stewart_trinkle",
    ),
    Field(
        "stabilisation",
        Name(("split_impulse", "baumgarte", "none", "erp_cfm")),
        "correction of position errors. split_impulse: a part erp in each step without"
        " a change of velocity, so that no overlap becomes energy; baumgarte: the same"
        " through the velocities; erp_cfm: soft rows, springs of `stiffness` with"
        " `damping`; an impact with restitution is rigid in each of them",
        "",
        "split_impulse",
    ),
    Field(
        "erp", _COEFFICIENT, "part of position errors corrected in each step", "", 0.2
    ),
    Field(
        "push_out_speed",
        Quantity(0.0),
        "largest speed at which an overlap is corrected",
        "m/s, rad/s",
        PUSH_OUT_SPEED,
    ),
    Field("stiffness", Quantity(0.0), "of erp_cfm", "N/m", 1e5),
    Field("damping", Quantity(0.0), "of erp_cfm", "N·s/m", 1e3),
    Field(
        "restitution",
        Name(("newton", "poisson")),
        "newton: speed after = -e speed before; poisson: impulses of the release are e"
        " times those of the compression",
        "",
        "newton",
    ),
    Field(
        "impacts",
        Name(("simultaneous", "sequential")),
        "sequential: one contact after the other",
        "",
        "simultaneous",
    ),
    Field(
        "restitution_threshold",
        Quantity(0.0),
        "speed of approach below which nothing bounces",
        "m/s",
        0.05,
    ),
    Field("contacts", Switch(), "whether contacts of shapes act", "", True),
    Field("limits", Switch(), "whether joint limits act", "", True),
    Field(
        "joint_friction",
        Switch(),
        "whether dry friction of joints is a constraint; if not, it is a smooth"
        " function of the speed",
        "",
        True,
    ),
    Field("limit_restitution", _COEFFICIENT, "of all joint limits", "", 0.0),
    Field(
        "gears",
        ListOf(
            _Gear(
                Field("joints", ListOf(Name(), 2), "two joints a and b", "", REQUIRED),
                Field("ratio", Quantity(), "ratio q_a - q_b = offset", "", 1.0),
                Field("offset", Quantity(), "see ratio", "rad, m", 0.0),
                make=lambda joints, ratio, offset: (*joints, ratio, offset),
            )
        ),
        "gears as constraints, each a mapping or [a, b, ratio, offset]",
    ),
    Field(
        "max_impacts",
        Whole(1),
        "impacts in a step of event_driven after which restitution is off in it",
        "",
        50,
    ),
    make=World,
)
