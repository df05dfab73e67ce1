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

Joints are called by their names or by their numbers, 0..n-1. Values by joint (k_omega,
k_v) are one number for all, a list of n, or a mapping of some. Only lengths and masses
must be there.

Source: WAW-1.1, WAW-15.6.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dyn_core.errors import ModelError
from dyn_core.planar.chain.chain import KINDS, LINE, ChainModel, make_chain
from dyn_core.planar.chain.geometry import ChainState, from_angles
from dyn_core.validation import finite_number, finite_numbers, known_keys

KEYS = (
    "name", "joint_names", "lengths", "masses", "gravity", "base", "normal",
    "constraints", "active", "limits", "k_omega", "k_v", "link_masses", "link_coms",
    "link_inertias", "ground", "start", "dt", "window",
)  # fmt: skip
LINKS = ("link_masses", "link_coms", "link_inertias")
START = ("x0", "v0", "theta", "theta_dot")
GROUND = ("z0", "z", "joints", "mode")
BASES = ("fixed", "free", "line")


@dataclass(frozen=True)
class ChainFile:
    """Content of a chain file.

    Attributes:
        chain: Planar chain.
        start: State at the start, x and v (n, 2) [m], [m/s].
        dt: Step [s], None where the file gives none.
        window: Time in which drift decays [s], None where the file gives none.
    """

    chain: ChainModel
    start: ChainState
    dt: float | None = None
    window: float | None = None


def load_chain(source: Any) -> ChainModel:
    """Return the planar chain of a file.

    Args:
        source: Path, YAML text of more than one line, or mapping; see the module.

    Raises:
        ModelError: It is unusable; names file and key, and what would be valid.

    Source: WAW-1.1.
    """
    return load_chain_file(source).chain


def load_chain_file(source: Any) -> ChainFile:
    """Return the planar chain of a file, and how its simulation starts.

    Args:
        source: Path, YAML text of more than one line, or mapping; see the module.

    Raises:
        ModelError: It is unusable; names file and key, and what would be valid.

    Source: WAW-1.1, WAW-2.1.
    """
    data, where = _read(source)
    try:
        return _Reader(where, data).file()
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
) -> None:
    """Write a planar chain as a YAML file that load_chain reads.

    Args:
        chain: Planar chain.
        path: Of the file; one that is there is replaced.
        start: Where a simulation starts: x0, v0, theta, theta_dot.
        dt, window: Step and time in which drift decays [s].

    Source: WAW-1.1.
    """
    data = chain_data(chain)
    if start is not None:
        data["start"] = {k: [float(x) for x in row] for k, row in start.items()}
    data |= {k: x for k, x in {"dt": dt, "window": window}.items() if x is not None}
    load_chain_file(data)
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=88)
    Path(os.fspath(path)).write_text(text, encoding="utf-8")


def chain_data(chain: ChainModel) -> dict[str, Any]:
    """Return a planar chain as numbers, lists and mappings; zeros are left out.

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
    return {key: x for key, x in data.items() if x not in (None, {}) and x != []}


def _read(source: Any) -> tuple[Any, str]:
    """Return what a source holds, and what to call it."""
    if isinstance(source, Mapping):
        return source, "chain"
    if isinstance(source, str) and "\n" in source:
        text, where = source, "chain"
    else:
        where = os.fspath(source)
        try:
            text = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"cannot read the chain file {where}: {error}") from error
    try:
        return yaml.safe_load(text), where
    except yaml.YAMLError as error:
        raise ModelError(f"{where}: not YAML: {error}") from error


class _Reader:
    """One file: its keys, and the names of its joints."""

    def __init__(self, where: str, data: Any) -> None:
        known_keys(where, data, KEYS)
        for key in ("lengths", "masses"):
            if key not in data:
                raise ModelError(f"{where}: {key} is missing; needs a list", key)
        self.where, self.data = where, data
        self.lengths, self.masses = self.row("lengths"), self.row("masses")
        self.n = len(self.masses)
        if len(self.lengths) != self.n - 1:
            raise ModelError(
                f"{where}: lengths has {len(self.lengths)} links for {self.n} masses;"
                " valid: one less than masses",
                "lengths",
            )
        names = data.get("joint_names")
        if names is not None and (
            not isinstance(names, list) or not all(isinstance(x, str) for x in names)
        ):
            raise ModelError(
                f"{where}: joint_names needs a list of names, got {names!r}"
            )
        self.names = names or [f"joint{i}" for i in range(self.n)]

    def row(self, key: str, length: int | None = None) -> list[float]:
        """Return a list of finite numbers."""
        what, value = f"{self.where}: {key}", self.data[key]
        if not isinstance(value, (list, tuple)):
            raise ModelError(f"{what} needs a list of numbers, got {value!r}", key)
        if length is not None and len(value) != length:
            raise ModelError(f"{what} needs {length} numbers, got {len(value)}", key)
        return [finite_number(f"{what}[{i}]", x) for i, x in enumerate(value)]

    def joint(self, key: str, name: Any) -> int:
        """Return the number of a joint."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < self.n:
            return name
        valid = f"{', '.join(self.names)} or 0..{self.n - 1}"
        raise ModelError(
            f"{self.where}: {key}: no joint is called {name!r}; valid: {valid}", key
        )

    def of_joints(self, key: str) -> list[tuple[int, Any, str]]:
        """Return the entries of a mapping by joint: number, entry, what to call it."""
        entries = self.data.get(key)
        if entries is None:
            return []
        if not isinstance(entries, Mapping):
            raise ModelError(
                f"{self.where}: {key} needs a mapping by joint, got {entries!r}", key
            )
        by_joint = [
            (self.joint(key, name), entry, f"{self.where}: {key} of {name}")
            for name, entry in entries.items()
        ]
        numbers = [i for i, *_ in by_joint]
        for i in numbers:
            if numbers.count(i) > 1:
                name = self.names[i]
                raise ModelError(f"{self.where}: {key}: {name} is given twice", key)
        return by_joint

    def by_joint(self, key: str) -> list[float]:
        """Return a number for each joint; zero where none is given."""
        value = self.data.get(key)
        if isinstance(value, list):
            return self.row(key, self.n)
        if value is not None and not isinstance(value, Mapping):
            return [finite_number(f"{self.where}: {key}", value)] * self.n
        values = [0.0] * self.n
        for i, x, what in self.of_joints(key):
            values[i] = finite_number(what, x)
        return values

    def file(self) -> ChainFile:
        """Return all of it."""
        data, parts = self.data, {}
        for key in LINKS:
            if data.get(key) is not None:
                parts[key] = self.row(key, self.n - 1)
        lower, upper = self.limits()
        gravity = data.get("gravity", 9.81)
        chain = make_chain(
            self.lengths,
            self.masses,
            gravity=(
                self.row("gravity", 2)
                if isinstance(gravity, list)
                else finite_number(f"{self.where}: gravity", gravity)
            ),
            k_omega=self.by_joint("k_omega"),
            k_v=self.by_joint("k_v"),
            lower=lower,
            upper=upper,
            ground=self.ground(),
            constraints=self.constraints(),
            joint_names=self.names,
            name=data.get("name", "chain"),
            **parts,
        )
        times = {key: self.time(key) for key in ("dt", "window")}
        return ChainFile(chain, self.start(chain), **times)

    def time(self, key: str) -> float | None:
        """Return a time > 0, or None."""
        if self.data.get(key) is None:
            return None
        value = finite_number(f"{self.where}: {key}", self.data[key])
        if value <= 0:
            raise ModelError(f"{self.where}: {key} must be > 0, got {value}", key)
        return value

    def limits(self) -> tuple[dict[int, float], dict[int, float]]:
        """Return lower and upper limits by joint."""
        lower: dict[int, float] = {}
        upper: dict[int, float] = {}
        for i, pair, what in self.of_joints("limits"):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ModelError(f"{what} needs [lower, upper], got {pair!r}", "limits")
            for side, x in zip((lower, upper), pair, strict=True):
                if x is not None:
                    side[i] = finite_number(what, x)
        return lower, upper

    def constraints(self) -> dict[str, Any]:
        """Return the arguments of Constraints.of."""
        base = self.data.get("base", "free")
        if base not in BASES:
            raise ModelError(
                f"{self.where}: base {base!r}; valid: {', '.join(BASES)}", "base"
            )
        kind: dict[int, Any] = {0: base}
        s: dict[int, Any] = {}
        a_w: dict[int, Any] = {}
        if (base == "line") != ("normal" in self.data):
            raise ModelError(
                f"{self.where}: base line needs a normal, others have none; base is"
                f" {base}",
                "normal",
            )
        if base == "line":
            s[0] = self.row("normal", 2)
        for i, entry, what in self.of_joints("constraints"):
            known_keys(what, entry, ("kind", "s", "a_w"))
            if "kind" in entry:
                if i == 0 and "base" in self.data:
                    raise ModelError(f"{what}: base says its kind already", "base")
                if entry["kind"] not in KINDS:
                    valid = ", ".join(KINDS)
                    raise ModelError(f"{what}: kind {entry['kind']!r}; valid: {valid}")
                kind[i] = entry["kind"]
            for key, values in (("s", s), ("a_w", a_w)):
                if key in entry:
                    values[i] = finite_numbers(f"{what}: {key}", entry[key], 2)
        alpha = {i: finite_number(what, x) for i, x, what in self.of_joints("active")}
        active = sorted(alpha)
        return {"kind": kind, "s": s, "a_w": a_w, "active": active, "alpha_w": alpha}

    def ground(self) -> list[dict[str, Any]]:
        """Return the half-planes, their joints by number."""
        entries = self.data.get("ground") or []
        if not isinstance(entries, list):
            raise ModelError(f"{self.where}: ground needs a list of half-planes")
        planes = []
        for k, entry in enumerate(entries):
            what = f"{self.where}: ground[{k}]"
            known_keys(what, entry, GROUND)
            plane = dict(entry)
            for key in ("z0", "z"):
                if key in plane:
                    plane[key] = finite_numbers(f"{what}: {key}", plane[key], 2)
            if plane.get("joints") is not None:
                if not isinstance(plane["joints"], list):
                    raise ModelError(f"{what}: joints needs a list", "ground")
                plane["joints"] = [self.joint(what, x) for x in plane["joints"]]
            planes.append(plane)
        return planes

    def start(self, chain: ChainModel) -> ChainState:
        """Return the state at the start."""
        entry = self.data.get("start") or {}
        what = f"{self.where}: start"
        known_keys(what, entry, START)
        sizes = {"x0": 2, "v0": 2, "theta": self.n - 1, "theta_dot": self.n - 1}
        rows = [
            finite_numbers(f"{what}: {key}", entry[key], size)
            if key in entry
            else [0.0] * size
            for key, size in sizes.items()
        ]
        return from_angles(chain, *rows)
