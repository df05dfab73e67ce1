"""Doors of recordings, meshes, xacros and configurations of plugins."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.contact.collision.hulls import Hull, Hulls
from dyn_core.contact.world import World
from dyn_core.errors import DynError, ModelError
from dyn_core.model import Model, load_urdf
from dyn_core.model.shapes import Mesh
from dyn_core.model.sources.loading import load
from dyn_core.planar.chain.files import load_chain
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.recordings import MotionRecord, read_motion
from dyn_core.reports.write import write_report
from dyn_core.sharing import once
from dyn_core.solving.registry import solver
from dyn_core.validation import read_yaml, shown
from dyn_core.view.robot_parts import RobotParts
from fuzz.fuzz_file import FuzzFile

_MESHED = """<robot name="r"><link name="base"/><link name="arm">
<visual><geometry><mesh filename="{0}"/></geometry></visual>
<collision><geometry><mesh filename="{0}"/></geometry></collision>
<inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint>
</robot>
"""


@contextmanager
def _written(file: FuzzFile) -> Iterator[Path]:
    """Write a file into a folder of its own, and remove both."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{file.suffix}"
        path.write_bytes(file.content)
        yield path


@once
def _two_link() -> Model:
    return load_urdf(robots.path("two_link"))


def read_recording(file: FuzzFile, mode: str) -> MotionRecord:
    """Return the motion of a file; columns of a robot fail in words, too."""
    with _written(file) as path:
        with suppress(DynError):
            read_motion(path, _two_link())
        return read_motion(path)


def examine_recording(motion: MotionRecord, file: FuzzFile) -> list[str]:
    """Use a motion, and write a report on some; return what is wrong."""
    faults = []
    for kind in ("q", "qd", "tau"):
        if len(motion.names(kind)) != len(motion.units(kind)):
            faults.append(f"there are not as many units as names of {kind}")
    with suppress(DynError):
        motion.checked(["q"])
    with suppress(DynError):
        motion.of(_two_link())
    if file.deep and file.number % 3 == 0 and len(motion.t):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of matplotlib, for numbers of any size
            with suppress(DynError), redirect_stdout(io.StringIO()):
                write_report([motion], ["run"], f"{folder}/report.html")
    return faults


def read_mesh_of_link(file: FuzzFile, mode: str) -> tuple[Hull, RobotParts]:
    """Return the hull of a robot's mesh, and what the viewer shows of it."""
    with _written(file) as path:
        robot = path.with_name("robot.urdf")
        robot.write_text(_MESHED.format(path.name), encoding="utf-8")
        model = load_urdf(robot)
        parts = RobotParts(model)
        parts.visual()
        parts.collision()
        (mesh,) = (x.shape for x in model.shapes if isinstance(x.shape, Mesh))
        return Hulls(model.source, {})(mesh, "arm"), parts


def examine_mesh(read: tuple[Hull, RobotParts], file: FuzzFile) -> list[str]:
    """Check the hull of a mesh; return what is wrong."""
    points = read[0].points
    good = len(points) >= 4 and np.isfinite(points).all()
    return [] if good else ["the hull has fewer than 4 corners, or infinite ones"]


def read_xacro(file: FuzzFile, mode: str) -> Model:
    """Return the robot of a xacro."""
    with _written(file) as path:
        return load(path, check=mode, sidecar=False)


def read_options(file: FuzzFile, mode: str) -> Any:
    """Return the Program, or the World, of a configuration."""
    data = file.content
    if isinstance(data, bytes):
        text = data.decode("utf-8", "surrogateescape")
        data = read_yaml(text + "\n", "configuration", "configuration")[0]
    options = data.get("options", {}) if isinstance(data, Mapping) else None
    if not isinstance(options, Mapping) or not all(isinstance(x, str) for x in options):
        raise ModelError(f"no configuration: {shown(data)}")
    chosen = solver(data.get("solver"))
    if chosen.signature is CONTACT_SOLVE:
        return World.of({"solver": chosen.name, "solver_options": dict(options)})
    system: Any = _two_link()
    if chosen.refusal(system) is not None:
        system = _chain()
    return chosen.build(system, **{"engine": "plain", **options})


@once
def _chain() -> Any:
    return load_chain(robots.chain_path("double_pendulum"))


def examine_program(program: Any, file: FuzzFile) -> None:
    """Show a Program, and call some at zero."""
    repr(program)
    if file.number % 3 == 0:
        arguments = [np.zeros(port.shape) for port in program.inputs]
        with suppress(DynError), np.errstate(all="ignore"):
            program(*arguments)
