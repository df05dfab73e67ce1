"""What files are given to, and what must work with all that was read."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.contact.world import World
from dyn_core.errors import DynError
from dyn_core.model import Model, load_mjcf, load_urdf
from dyn_core.planar.chain.files import (
    ChainFile,
    chain_data,
    load_chain,
    load_chain_file,
)
from dyn_core.recordings import MotionRecord
from dyn_core.sharing import once
from dyn_core.simulation import ContactSimulator
from dyn_core.simulation.robot_overview import describe
from dyn_core.solving.registry import solver
from fuzz import file_doors
from fuzz.fuzz_file import FuzzFile

_COMMON = 1e12  # products of a few numbers below it are finite
_NO_NUMBER = re.compile(r"\b(nan|inf)\b")


class BrokenResult(Exception):
    """What was read does not do what it must."""


@dataclass(frozen=True)
class Door:
    """A way for files into the product.

    Attributes:
        modes: Ways of reading; a file that a later one takes, the first takes.
        read: Return what a file holds, in a mode.
        examine: Raise BrokenResult where what was read does not work.
        prepare: Called once before the files, whose time is limited: compiles machine
            code that all of them need.
    """

    modes: tuple[str, ...]
    read: Callable[[FuzzFile, str], Any]
    examine: Callable[[Any, FuzzFile], None]
    prepare: Callable[[], None] = lambda: None


def _from_file(file: FuzzFile, read: Callable[[Any], Any]) -> Any:
    """Return what is read of a file, given as it says."""
    content = file.content
    if not isinstance(content, bytes) or file.source == "bytes":
        return read(content)
    if file.source == "text":
        return read(content.decode("utf-8", "surrogateescape"))
    with tempfile.TemporaryDirectory() as folder:
        suffix = file.suffix or (".xml" if file.kind == "mjcf" else "")
        path = Path(folder) / f"file{suffix}"
        path.write_bytes(content)
        return read(path)


def _read_urdf(file: FuzzFile, mode: str) -> Model:
    def read(source: Any) -> Model:
        return load_urdf(source, check=mode, root_joint=file.root_joint, sidecar=False)

    return _from_file(file, read)


def _read_mjcf(file: FuzzFile, mode: str) -> Model:
    def read(source: Any) -> Model:
        return load_mjcf(source, check=mode, sidecar=False)

    return _from_file(file, read)


def _read_sidecar(file: FuzzFile, mode: str) -> Model:
    robot, root = robots.path(file.robot), file.root_joint

    def read(extras: Any) -> Model:
        return load_urdf(robot, extras=extras, check=mode, root_joint=root)

    return _from_file(file, read)


def _read_chain(file: FuzzFile, mode: str) -> ChainFile:
    return _from_file(file, load_chain_file)


def _read_world(file: FuzzFile, mode: str) -> World:
    return _from_file(file, World.of)


def _examine_model(model: Model, file: FuzzFile) -> None:
    """Ask for all that a Model offers, and compute with some."""
    _use_properties(model)
    closes = model if file.deep else model.without_loops()  # closing takes a second
    lines = describe(closes)
    for line in (*lines, repr(model)):
        if line.startswith(("at zero: mass", "  principal")):
            _demand(not _NO_NUMBER.search(line), f"dyn info says: {line}")
    columns: dict[str, Iterable[Any]] = {
        "inertias": [x for I in model.I for x in I.parameters],
        "placements": [x for X in model.Xtree for x in _numbers(X)],
        "effort_limit": model.effort_limit,
        "neutral()": model.neutral(),
        "random()": model.random(file.number),
    }
    for what in ("armature", "damping", "friction", "stiffness", "rest"):
        columns[what] = [x for part in getattr(model, what) for x in part]
    for what, values in columns.items():
        _demand(all(map(math.isfinite, values)), f"{what} are not finite")
    _demand((model.lower <= model.upper).all(), "lower limits are above upper ones")
    if file.deep:
        large = max(map(abs, (x for row in columns.values() for x in row)), default=0)
        _compute(model.without_loops(), file, "rnea", bool(large > _COMMON))


def _numbers(X: Any) -> tuple[Any, ...]:
    return (*X.r, *(x for row in X.E.rows for x in row))


def _compute(model: Any, file: FuzzFile, name: str, large: bool) -> None:
    """Call a solver in a random state: finite numbers, or a DynError where large."""
    rng = np.random.default_rng(file.number)
    program = solver(name).build(model, engine="graph", finite=large)
    q, qd, qdd = model.random(rng), *rng.normal(size=(2, model.nv))
    if not large and q.size and np.abs(q).max() > _COMMON:
        return
    try:
        tau = program(q, qd, qdd)
    except DynError:
        if large:
            return
        raise
    _demand(np.isfinite(tau).all(), f"{name} is not finite")


def _demand(holds: Any, sentence: str) -> None:
    if not holds:
        raise BrokenResult(sentence)


def _use_properties(value: Any) -> None:
    """Ask for every public property."""
    for name in dir(type(value)):
        if not name.startswith("_") and isinstance(
            getattr(type(value), name), property
        ):
            getattr(value, name)


def _examine_chain(read: ChainFile, file: FuzzFile) -> None:
    """Ask for all that a chain offers; written and read again it is the same."""
    chain = read.chain
    _use_properties(chain)
    _demand(repr(chain), "repr is empty")
    finite = np.isfinite(np.concatenate([np.ravel(x) for x in read.start])).all()
    _demand(finite, "the start is not finite")
    again = load_chain(chain_data(chain))
    for field in fields(chain):
        a, b = getattr(chain, field.name), getattr(again, field.name)
        _demand(repr(a) == repr(b), f"{field.name} changes when it is written and read")
    if file.deep and chain.n < 8:
        _accelerate(read)


def _accelerate(read: ChainFile) -> None:
    """Compute the accelerations at the start: finite numbers, or a DynError."""
    chain, n = read.chain, read.chain.n
    program = solver("chain_recursion").build(chain, engine="graph", finite=True)
    arguments = [np.zeros(port.shape) for port in program.inputs]
    arguments[:2] = [np.asarray(x, float).reshape(n, 2) for x in read.start]
    try:
        program(*arguments)
    except DynError:
        return


def _examine_world(world: World, file: FuzzFile) -> None:
    """Show it, and simulate a robot in it for a moment."""
    _demand(len(repr(world)) > 10, "repr is empty")
    _demand(World.of(world) is world, "World.of changes a World")
    if file.deep:
        try:
            robot = ContactSimulator(_robot(), world=world, engine="graph")
            for k in range(3):
                robot.advance(0.002 * k)
        except DynError:
            return
        _demand(np.isfinite(robot.q).all(), "the simulation is not finite")


def _compile_steps() -> None:
    """Compile the steps with contacts, which takes some seconds."""
    for options in ({}, {"solver": "interior_point"}, {"stepper": "event_driven"}):
        ContactSimulator(_robot(), World(**options), engine="graph").advance(0.0)


@once
def _robot() -> Model:
    """Return a robot that touches the floor of most worlds."""
    ball = {"type": "sphere", "radius": 0.1}
    extras = {"collisions": {"link2": [ball]}}
    return load_urdf(robots.path("two_link"), extras=extras)


def _examine_recording(motion: MotionRecord, file: FuzzFile) -> None:
    _demand_none(file_doors.examine_recording(motion, file))


def _examine_mesh(read: Any, file: FuzzFile) -> None:
    _demand_none(file_doors.examine_mesh(read, file))


def _examine_options(read: Any, file: FuzzFile) -> None:
    if isinstance(read, World):
        _examine_world(read, file)
    else:
        file_doors.examine_program(read, file)


def _demand_none(faults: list[str]) -> None:
    if faults:
        raise BrokenResult("; ".join(faults))


_CHECKS = ("warn", "error")
_RECORDING = Door(("",), file_doors.read_recording, _examine_recording)
DOORS = {
    "urdf": Door(_CHECKS, _read_urdf, _examine_model),
    "mjcf": Door(_CHECKS, _read_mjcf, _examine_model),
    "sidecar": Door(_CHECKS, _read_sidecar, _examine_model),
    "chain": Door(("",), _read_chain, _examine_chain),
    "world": Door(("",), _read_world, _examine_world, _compile_steps),
    "xacro": Door(_CHECKS, file_doors.read_xacro, _examine_model),
    "npz": _RECORDING,
    "csv": _RECORDING,
    "bag": _RECORDING,
    "mesh": Door(("",), file_doors.read_mesh_of_link, _examine_mesh),
    "options": Door(("",), file_doors.read_options, _examine_options, _compile_steps),
}
# What is read by a library, where that is installed.
_LIBRARIES = {
    "mjcf": ("mujoco",),
    "xacro": ("xacro",),
    "bag": ("rosbags",),
    "mesh": ("coal", "trimesh"),
}
KINDS = tuple(kind for kind in DOORS if all(map(find_spec, _LIBRARIES.get(kind, ()))))
