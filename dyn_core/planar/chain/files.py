"""Planar chains as YAML files.

name: walker
joint_names: [hip, knee, foot]      # n; else joint0, joint1, ...
lengths: [0.5, 0.4]                 # of the links, n-1 [m]
masses: [1.0, 0.7, 0.5]             # of the joints, n [kg]
gravity: [0.0, -9.81]               # or one number, downwards [m/s²]
base: fixed                         # joint 0: fixed, free, or line, which needs
                                    # normal: [0.0, 1.0]
constraints:                        # of any joints: guided, line, free
  foot: {kind: line, s: [0.0, 1.0], a_w: [0.0, 0.0]}              # [m/s²]
active: {knee: 0.0}                 # prescribed accelerations of angles [rad/s²]
limits: {knee: [-2.0, 0.1]}         # of angles; null where none [rad]
k_omega: {knee: 0.1}                # rolling resistance [N·m·s]
k_v: 0.02                           # drag by speed squared [kg/m]
link_masses: [0.0, 0.3]             # links with mass of their own, n-1 [kg],
link_coms: [0.0, 0.2]               # distance of their centres from the start [m],
link_inertias: [0.0, 0.01]          # inertia about them [kg·m²]
ground:                             # half-planes that stop joints
  - {z0: [0.0, 0.0], z: [0.0, 1.0], joints: [foot], mode: stick}    # or slide
start:                              # for simulators; zero where not given
  {x0: [0.0, 1.0], v0: [0.0, 0.0], theta: [-1.2, 0.3], theta_dot: [0.0, 0.0]}
dt: 0.001                           # step of a simulator [s]
window: 0.005                       # time in which drift decays [s]
scheme: rk4                         # motion between events: rk4, semi_implicit, quantum

Joints are referred to by name or by index, 0..n-1. Values by joint (k_omega,
k_v) are one number for all, a list of n, or a mapping of some. Only lengths and masses
must be there. The first angle is that of link 0 from the x axis, others are from the
previous link.

Source: WAW-1.1, WAW-15.6.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyn_core.errors import ModelError
from dyn_core.planar.chain.chain import HALF_PLANE, KINDS, LINE, ChainModel, make_chain
from dyn_core.planar.chain.schemes import SCHEMES
from dyn_core.planar.chain.states import ChainState, from_angles
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Table,
    Whole,
    dump_yaml,
    finite_array,
    label,
    numbers,
    read_yaml,
    writing,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

LINKS = ("link_masses", "link_coms", "link_inertias")
JOINT = Either((Name(), Whole()))
_POSITIVE, _LIMIT = Quantity(0.0, above=True), Either((Quantity(), Nothing()))
_BY_JOINT = Either(
    (Quantity(0.0), ListOf(Quantity(0.0)), ByName(Quantity(0.0), "joint"))
)
CONSTRAINT = Table(
    Field("kind", Name(tuple(KINDS)),
        "what the joint may do; free where it is missing"),
    Field("s", numbers(2), "normal of the line"),
    Field("a_w", numbers(2), "acceleration, of a line's joint along s", "m/s²"),
)  # fmt: skip
START = Table(
    Field("x0", numbers(2), "position of joint 0", "m"),
    Field("v0", numbers(2), "its velocity", "m/s"),
    Field("theta", numbers(), "angles, one for each link", "rad"),
    Field("theta_dot", numbers(), "their rates", "rad/s"),
)
GROUND = Table(
    *(field for field in HALF_PLANE.fields.values() if field.name != "joints"),
    Field("joints", ListOf(JOINT), "joints that it stops; all where it is missing"),
)
CHAIN = Table(
    Field("name", Name(), "of the chain", "", "chain"),
    Field("joint_names", ListOf(Name()), "joint0, joint1, ... where it is missing"),
    Field("lengths", ListOf(_POSITIVE),
        "of the links, one less than masses", "m", REQUIRED),
    Field("masses", numbers(), "of the joints", "kg", REQUIRED),
    Field("gravity", Either((Quantity(), numbers(2))),
        "one number: downwards", "m/s²", 9.81),
    Field("base", Name(("fixed", "free", "line")),
        "what joint 0 may do; free where it is missing"),
    Field("normal", numbers(2), "of the line of joint 0, for base: line"),
    Field("constraints", ByName(CONSTRAINT, "joint"), "what joints may do"),
    Field("active", ByName(Quantity(), "joint"),
        "prescribed accelerations of angles", "rad/s²"),
    Field("limits", ByName(ListOf(_LIMIT, 2), "joint"),
        "of angles: lower, upper", "rad"),
    Field("k_omega", _BY_JOINT, "rolling resistance", "N·m·s"),
    Field("k_v", _BY_JOINT, "drag by speed squared", "kg/m"),
    Field("link_masses", ListOf(Quantity(0.0)),
        "of links with mass of their own", "kg"),
    Field("link_coms", numbers(), "distance of their centres from the start", "m"),
    Field("link_inertias", ListOf(Quantity(0.0)),
        "inertia about their centres", "kg·m²"),
    Field("ground", ListOf(GROUND), "half-planes that stop joints"),
    Field("start", START, "of a simulation; zero where it is missing"),
    Field("dt", _POSITIVE, "step of a simulator", "s"),
    Field("window", _POSITIVE, "time in which drift decays", "s"),
    Field("scheme", Name(tuple(SCHEMES)), "motion of a simulator between events"),
)  # fmt: skip


@dataclass(frozen=True)
class ChainFile:
    """Content of a chain file; settings that are not in the file are None.

    `start` is x and v, (n, 2) [m], [m/s]; `dt` the step [s], `window` the time constant
    with which drift decays [s], `scheme` the integration scheme between events.
    """

    chain: ChainModel
    start: ChainState
    dt: float | None = None
    window: float | None = None
    scheme: str | None = None


def load_chain(source: Any) -> ChainModel:
    """Return the planar chain of a file.

    Its start, dt, window and scheme are checked, but not returned: see load_chain_file.

    Args:
        source: Path, YAML text of more than one line, or mapping; see the module.

    Raises:
        ModelError: It is invalid; names file and key, and valid values.

    Source: WAW-1.1.
    """
    return load_chain_file(source).chain


def load_chain_file(source: Any) -> ChainFile:
    """Return the planar chain of a file, with its initial state and settings.

    `source` is a path, YAML text of more than one line, or a mapping; see the module.
    Missing entries of the start (x0, theta) are zero.

    Source: WAW-1.1, WAW-2.1.
    """
    data, where = read_yaml(source, "chain file", "chain")
    try:
        return _Reader(where, CHAIN.read(where, data)).file()
    except ModelError as error:
        if str(error).startswith(where):
            raise
        raise ModelError(f"{where}: {error}", error.element) from error


def save_chain(
    chain: ChainModel,
    path: Any,
    start: Mapping[str, Any] | None = None,
    dt: float | None = None,
    window: float | None = None,
    scheme: str | None = None,
) -> None:
    """Write a planar chain as a YAML file that load_chain reads.

    `start` is by name: x0, v0 (2), theta, theta_dot (n-1), as in from_angles; a missing
    entry is zero. `dt` and `window` are the step, and the time constant with which
    drift decays [s]. What is None is not written; an existing file is replaced.

    Source: WAW-1.1.
    """
    data = chain_data(chain)
    if start is not None:
        rows = start.items() if isinstance(start, Mapping) else ()
        plain = {k: list(finite_array(f"start: {k}", row)) for k, row in rows}
        data["start"] = plain or start
    settings = {"dt": dt, "window": window, "scheme": scheme}
    data |= {key: x for key, x in settings.items() if x is not None}
    load_chain_file(data)
    text = dump_yaml(data, allow_unicode=True, width=88)
    with writing(path):
        Path(os.fspath(path)).write_text(text, encoding="utf-8")


def chain_data(chain: ChainModel) -> dict[str, Any]:
    """Return the mapping of a chain file, without start and settings of a simulation.

    Joints are referred to by name. Entries without content are left out unless a file
    needs them. alpha_w of joints that are not active is lost.

    Source: WAW-1.1.
    """
    constraints, names = chain.constraints, chain.joint_names
    kind_names = {kind: name for name, kind in KINDS.items()}
    data: dict[str, Any] = {"name": chain.name, "joint_names": list(names)}
    for key in ("lengths", "masses", "gravity"):
        data[key] = list(getattr(chain, key))
    data["base"] = kind_names[constraints.kind[0]]
    if constraints.kind[0] == LINE:
        data["normal"] = list(constraints.s[0])
    inner = {}
    for i, name in enumerate(names):
        entry: dict[str, Any] = {}
        if i and constraints.kind[i]:
            entry["kind"] = kind_names[constraints.kind[i]]
        if any(constraints.s[i]) and (i or constraints.kind[i] != LINE):
            entry["s"] = list(constraints.s[i])
        if any(constraints.a_w[i]):
            entry["a_w"] = list(constraints.a_w[i])
        if entry:
            inner[name] = entry
    data["constraints"] = inner
    pairs = zip(names, constraints.active, constraints.alpha_w, strict=True)
    data["active"] = {name: alpha for name, on, alpha in pairs if on}
    ends = zip(names, chain.lower, chain.upper, strict=True)
    data["limits"] = {
        name: [x if math.isfinite(x) else None for x in pair]
        for name, *pair in ends
        if any(map(math.isfinite, pair))
    }
    for key in ("k_omega", "k_v", *LINKS):
        data[key] = list(getattr(chain, key)) if any(getattr(chain, key)) else None
    data["ground"] = [
        {"z0": list(g.z0), "z": list(g.z), "mode": g.mode}
        | ({} if g.joints is None else {"joints": [names[i] for i in g.joints]})
        for g in chain.ground
    ]
    needed = [key for key, field in CHAIN.fields.items() if field.default is REQUIRED]
    return {
        key: x for key, x in data.items() if key in needed or x not in (None, {}, [])
    }


class _Reader:
    """Reader of one checked file; `where` is its name, for errors."""

    def __init__(self, where: str, data: Mapping[str, Any]) -> None:
        self.where, self.data, self.n = where, data, len(data["masses"])
        self.names = data.get("joint_names") or [f"joint{i}" for i in range(self.n)]

    def joint(self, where: str, name: str | int) -> int:
        """Return the index of a joint by name or index; `where` is for the message."""
        if name in self.names:
            return self.names.index(name)
        if Whole(0, self.n - 1).takes(name):
            return int(name)
        valid = f"{', '.join(self.names)} or 0..{self.n - 1}"
        raise ModelError(
            f"{where}: no joint is called {label(name)!r}; valid: {valid}", label(name)
        )

    def by_joint(self, key: str) -> dict[int, Any]:
        """Return the entries of the file's mapping `key` by joint index; {} without."""
        where, entries = f"{self.where}: {key}", {}
        for name, entry in self.data.get(key, {}).items():
            i = self.joint(where, name)
            if i in entries:
                raise ModelError(f"{where}: {self.names[i]} is given twice", key)
            entries[i] = entry
        return entries

    def file(self) -> ChainFile:
        """Return the ChainFile; only errors that this class finds name the file.

        load_chain_file adds it to others, such as of make_chain.
        """
        data, parts = self.data, {}
        for key in LINKS:
            if key in data:
                parts[key] = data[key]
        for key in ("k_omega", "k_v"):
            parts[key] = data.get(key, ())
            if isinstance(parts[key], Mapping):
                values = self.by_joint(key)
                parts[key] = [values.get(i, 0.0) for i in range(self.n)]
        ends = self.by_joint("limits").items()
        chain = make_chain(
            data["lengths"],
            data["masses"],
            gravity=data["gravity"],
            lower={i: pair[0] for i, pair in ends if pair[0] is not None},
            upper={i: pair[1] for i, pair in ends if pair[1] is not None},
            ground=self.ground(),
            constraints=self.constraints(),
            joint_names=self.names,
            name=data["name"],
            **parts,
        )
        settings = {key: data.get(key) for key in ("dt", "window", "scheme")}
        return ChainFile(chain, self.start(chain), **settings)

    def constraints(self) -> dict[str, Any]:
        """Return the arguments of Constraints.of, by name, from the file's entries."""
        base, normal = self.data.get("base", "free"), self.data.get("normal")
        if (base == "line") != (normal is not None):
            raise ModelError(
                f"{self.where}: base line needs a normal, others have none; base is"
                f" {base}",
                "normal",
            )
        parts: dict[str, dict[int, Any]] = {"kind": {0: base}, "s": {}, "a_w": {}}
        if normal is not None:
            parts["s"][0] = normal
        for i, entry in self.by_joint("constraints").items():
            if i == 0 and "kind" in entry and "base" in self.data:
                raise ModelError(
                    f"{self.where}: constraints: {self.names[0]}: base says its kind"
                    " already; valid: one of them",
                    "base",
                )
            for key, value in entry.items():
                parts[key][i] = value
        alpha = self.by_joint("active")
        return {**parts, "active": sorted(alpha), "alpha_w": alpha}

    def ground(self) -> list[dict[str, Any]]:
        """Return the half-planes as mappings, with joint indices instead of names."""
        planes = [dict(plane) for plane in self.data.get("ground", ())]
        for k, plane in enumerate(planes):
            if "joints" in plane:
                where = f"{self.where}: ground[{k}]: joints"
                plane["joints"] = [self.joint(where, x) for x in plane["joints"]]
        return planes

    def start(self, chain: ChainModel) -> ChainState:
        """Return the initial state; missing entries of `start` are zero."""
        entry = self.data.get("start", {})
        sizes = {"x0": 2, "v0": 2, "theta": self.n - 1, "theta_dot": self.n - 1}
        for key, size in sizes.items():
            if len(entry.get(key, [0.0] * size)) != size:
                raise ModelError(
                    f"{self.where}: start: {key} has {len(entry[key])} numbers; valid:"
                    f" {size}, one for each link",
                    key,
                )
        return from_angles(chain, *(entry.get(k, [0.0] * n) for k, n in sizes.items()))
