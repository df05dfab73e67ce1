"""Planar chains: point masses at joints, links between them, constraints of joints.

Joints are numbered 0..n-1, links 0..n-2; link i goes from joint i to joint i+1. The
plane is (x, y) with y upwards; angles turn from x to y. A link may have mass itself.
The angle of joint 0 is that of link 0 from the x axis, of another joint i that of link
i from link i-1; the last joint has none. Keys of mappings by joint are these numbers.

The checks of make_chain's arguments raise ModelError for invalid values, with the name
of the argument and the index.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, warn
from dyn_core.model.parameter_paths.values import entries_of
from dyn_core.problems.system import System
from dyn_core.validation import (
    Field,
    ListOf,
    Name,
    Table,
    Whole,
    finite_array,
    is_finite,
    known_keywords,
    known_name,
    label,
    numbers,
    shown,
)


def angle_limits(name: str, values: Any, n: int, none: float) -> tuple[float, ...]:
    """Return the limits of the joint angles, n floats [rad].

    `values` are n limits, or joint -> limit; `none` is the limit of other joints, -inf
    or inf. A finite limit of the last joint, which has no angle, is refused.
    """
    limits = []
    for i, value in enumerate(by_joint(name, values, n, none)):
        x = float(value) if isinstance(value, Real) else math.nan
        limits.append(x)
        if math.isnan(x):
            message = f"{name}[{i}] is {shown(value)}; valid: a number"
            raise ModelError(message, f"{name}[{i}]")
        if np.isfinite(x) and i == n - 1:
            raise ModelError(
                f"{name}[{i}]: the last joint has no angle", f"{name}[{i}]"
            )
    return tuple(limits)


def constraints_of(kind: Any, n: int, constraints: Any) -> Any:
    """Return the Constraints (class `kind`) of n joints; None: all joints are free.

    An instance is returned unchanged; a mapping has the arguments of `of`.
    """
    if isinstance(constraints, kind):
        return constraints
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ModelError(
            f"constraints is {constraints!r}; valid: Constraints, or a mapping",
            "constraints",
        )
    keys = list(inspect.signature(kind.of).parameters)[1:]
    for key in constraints or {}:
        known_name("constraints", "key", key, keys)
    return kind.of(n, **(constraints or {}))


def by_joint(name: str, values: Any, n: int, default: Any) -> list[Any]:
    """Return n values, from n values or joint -> value; others are `default`.

    The values themselves are not checked.
    """
    if values is None:
        return [default] * n
    if not isinstance(values, (Mapping, Sequence, np.ndarray)):
        valid = f"{n} values, or a mapping of joints to values"
        raise ModelError(f"{name} is {shown(values)}; valid: {valid}", name)
    if not isinstance(values, Mapping) and len(values) == 0:
        return [default] * n
    if isinstance(values, Mapping):
        filled = [default] * n
        for key, value in values.items():
            if not Whole(0, n - 1).takes(key):
                raise ModelError(
                    f"{name}: joint {key!r} is not one of 0..{n - 1}", name
                )
            filled[key] = value
        return filled
    if len(values) != n:
        raise ModelError(f"{name}: {n} values wanted, got {len(values)}", name)
    return list(values)


def pairs_by_joint(name: str, values: Any, n: int) -> list[tuple[float, float]]:
    """Return n finite_pairs, from n entries or joint -> entry; missing ones are 0."""
    return [
        finite_pair(f"{name}[{i}]", row)
        for i, row in enumerate(by_joint(name, values, n, (0.0, 0.0)))
    ]


def finite_pair(name: str, row: Any) -> tuple[float, float]:
    """Return two finite numbers as floats.

    One number alone stands for both; an empty list gives (0.0, 0.0).
    """
    x, y = finite_array(name, row, 2)
    return x, y


def joint_flags(values: Any, n: int) -> tuple[bool, ...]:
    """Return n booleans by joint, from n booleans or the indices that are true."""
    flags = list(values) if np.iterable(values) else [values, None]
    if len(flags) == n and all(isinstance(x, (bool, np.bool_)) for x in flags):
        return tuple(bool(x) for x in flags)
    for x in flags:
        whole = isinstance(x, (int, np.integer)) and not isinstance(x, bool)
        if not whole or not 0 <= x < n:
            raise ModelError(
                f"active is {shown(values)}; valid: {n} booleans, or indices of joints,"
                f" 0..{n - 1}",
                "active",
            )
    return tuple(i in flags for i in range(n))


FREE, LINE, GUIDED = 0.0, 1.0, 2.0  # kinds of joint constraints
KINDS = {"free": FREE, "line": LINE, "guided": GUIDED, "fixed": GUIDED}


@known_keywords
@dataclass(frozen=True)
class HalfPlane:
    """Ground: joints stay where z . (x - z0) >= 0; make_chain checks the attributes.

    Attributes:
        z0: A point of the edge, 2 [m].
        z: Unit normal into the free side, 2.
        joints: Indices of the joints that it stops; None for all.
        mode: stick (a joint in contact rests) or slide (it moves along the edge).

    Source: WAW-7.2, WAW-12.8.
    """

    z0: tuple[float, float] = (0.0, 0.0)
    z: tuple[float, float] = (0.0, 1.0)
    joints: tuple[int, ...] | None = None
    mode: str = "stick"

    def stops(self, joint: int) -> bool:
        """Return whether the half-plane stops a joint."""
        return self.joints is None or joint in self.joints


SHORTEST = 1e-100  # minimum length: the square of a shorter one underflows [m]
HALF_PLANE = Table(
    Field("z0", numbers(2), "a point of the edge", "m", (0.0, 0.0)),
    Field("z", numbers(2), "normal into the free side", "", (0.0, 1.0)),
    Field("joints", ListOf(Whole()), "joints that it stops; all where it is missing"),
    Field("mode", Name(("stick", "slide")),
        "what a joint does that touches", "", "stick"),
    make=HalfPlane,
)  # fmt: skip


@dataclass(frozen=True)
class Constraints:
    """Constraints of the joints of a chain of n joints; `of` checks them.

    Attributes:
        kind: By joint: FREE, LINE or GUIDED (0, 1, 2).
        a_w: Acceleration of guided joints, and along s of joints on a line, (n, 2)
            [m/s²].
        s: Unit normals of the lines, (n, 2).
        active: By joint: whether the acceleration of its angle is prescribed; for joint
            0 the absolute angle of link 0. The last joint has no angle.
        alpha_w: These accelerations, n [rad/s²].

    Source: WAW-1.1, WAW-9.4.
    """

    kind: tuple[float, ...]
    a_w: tuple[tuple[float, float], ...]
    s: tuple[tuple[float, float], ...]
    active: tuple[bool, ...]
    alpha_w: tuple[float, ...]

    @classmethod
    def of(
        cls,
        n: int,
        kind: Any = "free",
        a_w: Any = None,
        s: Any = None,
        active: Any = (),
        alpha_w: Any = None,
    ) -> Constraints:
        """Return checked constraints of n joints.

        Normals of joints on a line are normalized, with a DynWarning if one was not of
        length one; normals of other joints stay as they are.

        Args:
            n: Number of joints.
            kind: free, line, guided or fixed (the same as guided: a_w counts), or 0, 1,
                2: one for all, a sequence of n, or a mapping joint -> kind.
            a_w: (n, 2) or a mapping joint -> (2,); zero where not given. As in s, a
                single number for a joint stands for both numbers.
            s: (n, 2) or a mapping joint -> (2,); needed for joints on a line.
            active: Indices of active joints, or n booleans.
            alpha_w: n or a mapping joint -> number; zero where not given.

        Raises:
            ModelError: An invalid value, a line without a normal, an active last joint,
                or an active joint 0 that is free.
        """
        if isinstance(kind, (str, float, int)):
            kind = [kind] * n
        kinds = tuple(
            _kind(k, i) for i, k in enumerate(by_joint("kind", kind, n, "free"))
        )
        normals = pairs_by_joint("s", s, n)
        for i, (k, row) in enumerate(zip(kinds, normals, strict=True)):
            size = float(np.hypot(*row))
            if k != LINE:
                continue
            if size < 1e-12:
                raise ModelError(
                    f"s[{i}]: joint {i} is on a line and needs the line's normal, got"
                    f" {row}",
                    f"s[{i}]",
                )
            if abs(size - 1) > 1e-9:
                warn(f"s[{i}] has length {size:.6g}; it was normalised")
            normals[i] = _direction(row)
        on = joint_flags(active, n)
        if n and on[-1]:
            raise ModelError(f"active[{n - 1}]: the last joint has no angle", "active")
        if n and on[0] and kinds[0] == FREE:
            raise ModelError(
                "active[0]: joint 0 is free, nothing holds its angle; valid: a guided"
                " joint or one on a line",
                "active",
            )
        alpha = finite_array("alpha_w", by_joint("alpha_w", alpha_w, n, 0.0), n)
        return cls(
            kinds, tuple(pairs_by_joint("a_w", a_w, n)), tuple(normals), on, alpha
        )


@dataclass(frozen=True, eq=False)
class ChainModel(System):
    """A planar chain of n joints; make_chain checks it, the class itself does not.

    Attributes:
        lengths: Of the links, n-1 [m].
        masses: Of the joints, n [kg].
        gravity: 2 [m/s²].
        k_omega: Rolling resistance by joint, n [N·m·s].
        k_v: Quadratic drag by joint, n [kg/m].
        lower, upper: Limits of the joint angles, n [rad]; infinite without a limit.
        ground: Half-planes that stop joints.
        link_masses, link_coms, link_inertias: Of the links, n-1: mass [kg], distance of
            the centre of mass from the link's start [m], inertia about it [kg·m²]; zero
            for a massless link.
        constraints: Constraints of the joints unless inputs of a Program replace them.
        joint_names: Names of the joints, n, all different.
        name: Name of the chain.

    Source: WAW-1.1, WAW-13.4.
    """

    kind = "planar_chain"

    lengths: tuple[float, ...]
    masses: tuple[float, ...]
    gravity: tuple[float, ...] = (0.0, -9.81)
    k_omega: tuple[float, ...] = ()
    k_v: tuple[float, ...] = ()
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    ground: tuple[HalfPlane, ...] = ()
    link_masses: tuple[float, ...] = ()
    link_coms: tuple[float, ...] = ()
    link_inertias: tuple[float, ...] = ()
    constraints: Constraints = field(default_factory=lambda: Constraints.of(0))
    joint_names: tuple[str, ...] = ()
    name: str = "chain"

    def __repr__(self) -> str:
        return f"ChainModel({self.name!r}, n={self.n})"

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.masses)

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: n joints, l links."""
        return {"n": self.n, "l": self.n - 1}

    @property
    def shares(self) -> tuple[tuple[Any, Any, Any], ...]:
        """Coefficients (start, end, between) of the links' kinetic energy, n-1 [kg].

            T_i = (start |v_i|² + end |v_{i+1}|² + 2 between v_i . v_{i+1}) / 2
            start = m (1-c)² + I/L²,  end = m c² + I/L²,  between = m c (1-c) - I/L²

        m, I and L are the link's mass, inertia about its centre of mass and length, c
        is the distance of this centre from the link's start, divided by L; v_i is the
        velocity of joint i.

        Source: WAW-13.4.
        """
        rows = []
        for L, m, com, I in self._links():
            c = com / L
            rows.append(
                (
                    m * (1 - c) * (1 - c) + I / (L * L),
                    m * c * c + I / (L * L),
                    m * c * (1 - c) - I / (L * L),
                )
            )
        return tuple(rows)

    @property
    def weights(self) -> tuple[Any, ...]:
        """By joint: mass on which gravity acts, n [kg].

        It is the joint's point mass plus m (1 - com/L) of the link that starts there
        and m com/L of the link that ends there; m, com and L are a link's mass, centre
        of mass and length.
        """
        weights = list(self.masses)
        for i, (L, m, com, _) in enumerate(self._links()):
            weights[i] = weights[i] + m * (1 - com / L)
            weights[i + 1] = weights[i + 1] + m * com / L
        return tuple(weights)

    def _links(self) -> list[tuple[Any, Any, Any, Any]]:
        parts = self.lengths, self.link_masses, self.link_coms, self.link_inertias
        return list(zip(*parts, strict=True))

    def parameter(self, path: str) -> list[Any]:
        """Return the numbers of a parameter as a list.

        Raises ModelError unless `path` is lengths, masses, gravity, k_omega, k_v,
        link_masses, link_coms or link_inertias.
        """
        if not isinstance(path, str) or path not in UNITS:
            valid = ", ".join(UNITS)
            raise ModelError(f"no parameter path '{label(path)}'; valid: {valid}", path)
        return list(getattr(self, path))

    def unit(self, path: str) -> str:
        """Return the unit of a parameter by its path, such as masses.

        Parameters are lengths, masses, gravity, k_omega, k_v, link_masses, link_coms
        and link_inertias. Raises ModelError for another path.
        """
        self.parameter(path)
        return UNITS[path]

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> ChainModel:
        """Return the chain with parameters replaced by numbers or symbols.

        Whether they are physically meaningful is not checked.

        Args:
            values: All numbers of a parameter, by its name: lengths, masses, gravity,
                k_omega, k_v, link_masses, link_coms or link_inertias; a bare number
                where there is only one.

        Raises:
            ModelError: A name is unknown, or its values are not finite numbers or
                symbols, or not as many as `parameter` returns.
        """
        changes: Any = {
            path: entries_of(path, x, len(self.parameter(path)))
            for path, x in values.items()
        }
        return replace(self, **changes)

    def with_constraints(self, **parts: Any) -> ChainModel:
        """Return the chain with the constraints Constraints.of(n, **parts), checked.

        Constraints that are not among `parts` are reset to the defaults of that method.

        Raises:
            ModelError: A constraint is invalid, or a joint that becomes free or is on a
                line has no mass.
            TypeError: `parts` has a name that is no argument of Constraints.of.
        """
        return make_chain_like(self, constraints=Constraints.of(self.n, **parts))


UNITS = {
    "lengths": "m", "masses": "kg", "gravity": "m/s²", "k_omega": "N·m·s",
    "k_v": "kg/m", "link_masses": "kg", "link_coms": "m", "link_inertias": "kg·m²",
}  # fmt: skip


def make_chain(lengths: Any, masses: Any, **parts: Any) -> ChainModel:
    """Return a checked planar chain.

    Args:
        lengths: Lengths of the links, n-1 [m].
        masses: Point masses of the joints, n [kg].
        parts: The other attributes of ChainModel. k_omega, k_v and the numbers of links
            may be one bare number for all; an empty list means zeros, as for missing
            ones. gravity may be one number g, which means (0, -g); by default 9.81.
            lower and upper may be mappings from the index of a joint, 0..n-2, to its
            angle; an empty list means no limits.
            constraints may be a mapping of the arguments of Constraints.of; without
            them all joints are free. Half-planes of the list `ground` may be mappings.
            joint_names are joint0, joint1, ... if missing or empty.

    Raises:
        ModelError: An argument is invalid or unknown; names field and index.
    """
    lengths = finite_array("lengths", lengths)
    masses = finite_array("masses", masses)
    n = len(masses)
    if n < 1 or len(lengths) != n - 1:
        raise ModelError(
            f"lengths: {len(lengths)} links for {n} joints; valid: n joints, n-1 links",
            "lengths",
        )
    for key in parts:
        known_name("a chain", "attribute", key, [f.name for f in fields(ChainModel)])
    gravity = parts.pop("gravity", 9.81)
    gravity = finite_array("gravity", [gravity] if is_finite(gravity) else gravity)
    if len(gravity) == 1:
        gravity = (0.0, -gravity[0])
    constraints = parts.pop("constraints", None)
    constraints = constraints_of(Constraints, n, constraints)
    names = ListOf(Name()).read("joint_names", parts.pop("joint_names", ()))
    names = tuple(names) or tuple(f"joint{i}" for i in range(n))
    if len(names) != n or len(set(names)) != n:
        raise ModelError(f"joint_names: {n} different names wanted, got {shown(names)}")
    chain = ChainModel(
        lengths,
        masses,
        gravity=finite_array("gravity", gravity, 2),
        k_omega=finite_array("k_omega", parts.pop("k_omega", ()), n),
        k_v=finite_array("k_v", parts.pop("k_v", ()), n),
        lower=angle_limits("lower", parts.pop("lower", ()), n, -np.inf),
        upper=angle_limits("upper", parts.pop("upper", ()), n, np.inf),
        ground=tuple(
            _half_plane(g, k, n) for k, g in enumerate(_listed("ground", parts))
        ),
        link_masses=finite_array("link_masses", parts.pop("link_masses", ()), n - 1),
        link_coms=finite_array("link_coms", parts.pop("link_coms", ()), n - 1),
        link_inertias=finite_array(
            "link_inertias", parts.pop("link_inertias", ()), n - 1
        ),
        constraints=constraints,
        joint_names=names,
        name=str(parts.pop("name", "chain")),
    )
    _check(chain)
    return chain


def _listed(name: str, parts: dict[str, Any]) -> Sequence[Any]:
    """Remove a list or tuple from `parts` and return it; () if it is missing."""
    entries = parts.pop(name, ())
    if not isinstance(entries, (list, tuple)):
        raise ModelError(f"{name} is {shown(entries)}; valid: a list", name)
    return entries


def make_chain_like(chain: ChainModel, **changes: Any) -> ChainModel:
    """Return a checked chain with the attributes of another, some of them changed.

    `changes` are new values by name of the attribute, in any form that make_chain
    takes; ModelError if a name is unknown or a value is invalid. For another number of
    joints they must have everything that is by joint or by link.
    """
    parts = {f.name: getattr(chain, f.name) for f in fields(chain)} | changes
    return make_chain(parts.pop("lengths"), parts.pop("masses"), **parts)


def _check(chain: ChainModel) -> None:
    """Raise ModelError, with field and index, for a chain whose motion is undefined."""
    for i, length in enumerate(chain.lengths):
        if length <= 0:
            raise ModelError(f"lengths[{i}] must be > 0, got {length}", f"lengths[{i}]")
        if length < SHORTEST:
            what = f"lengths[{i}] must be at least {SHORTEST} m, got {length}"
            raise ModelError(what, f"lengths[{i}]")
    for name in ("k_omega", "k_v", "link_masses", "link_inertias"):
        for i, x in enumerate(getattr(chain, name)):
            if x < 0:
                raise ModelError(f"{name}[{i}] must be >= 0, got {x}", f"{name}[{i}]")
    if len(chain.constraints.kind) != chain.n:
        raise ModelError(
            f"constraints are for {len(chain.constraints.kind)} joints, not {chain.n}",
            "constraints",
        )
    borne = list(chain.masses)
    for i, (start, end, _) in enumerate(chain.shares):
        borne[i] += start
        borne[i + 1] += end
    for i, (kind, mass) in enumerate(zip(chain.constraints.kind, borne, strict=True)):
        if mass < 0 or (kind != GUIDED and mass <= 0):
            what = "guided" if kind == GUIDED else "free or on a line"
            least = ">= 0" if kind == GUIDED else "> 0"
            raise ModelError(
                f"masses[{i}] of a joint that is {what} must be {least}, got {mass}",
                f"masses[{i}]",
            )
    for i, (low, high) in enumerate(zip(chain.lower, chain.upper, strict=True)):
        if low > high:
            raise ModelError(
                f"lower[{i}] is above upper[{i}]: {low} > {high}", f"lower[{i}]"
            )


def _kind(value: Any, i: int) -> float:
    kind = KINDS.get(value, value) if isinstance(value, str) else value
    if kind not in (FREE, LINE, GUIDED):
        raise ModelError(
            f"kind[{i}] {value!r}; valid: {', '.join(KINDS)}", f"kind[{i}]"
        )
    return float(kind)


def _half_plane(plane: Any, k: int, n: int) -> HalfPlane:
    """Return a checked HalfPlane, also of a mapping, with a unit normal."""
    if isinstance(plane, HalfPlane):
        plane = {key: x for key, x in vars(plane).items() if x is not None}
    plane = HALF_PLANE.read(f"ground[{k}]", plane)
    if float(np.hypot(*plane.z)) < 1e-12:
        raise ModelError(f"ground[{k}].z has no direction: {plane.z}", f"ground[{k}].z")
    for i in plane.joints or ():
        if i >= n:
            raise ModelError(
                f"ground[{k}]: joints: {i} is not one of 0..{n - 1}", f"ground[{k}]"
            )
    return replace(plane, z=_direction(plane.z))


def _direction(row: Any) -> tuple[float, float]:
    """Return a vector, whose two numbers must not both be 0, scaled to length one."""
    x, y = row
    size = float(np.hypot(x, y))
    return (x, y) if abs(size - 1.0) <= 1e-15 else (x / size, y / size)
