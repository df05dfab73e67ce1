"""Robots of the package example-robot-data, which has data but no Python module."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dyn_core.errors import ModelError

TITLE = "example-robot-data"
_SHARE = "share/example-robot-data/robots"
# Names in the package's own loader that differ from the file names: folder/file.
_LOADER = {
    "anymal": "anymal_b_simple_description/anymal",
    "anymal_c": "anymal_c_simple_description/anymal",
    "anymal_kinova": "anymal_b_simple_description/anymal-kinova",
    "asr_twodof": "asr_twodof_description/TwoDofs",
    "b1_z1": "b1_description/b1-z1",
    "hector": "hector_description/quadrotor_base",
    "hyq": "hyq_description/hyq_no_sensors",
    "iris": "iris_description/iris_simple",
    "solo8": "solo_description/solo",
    "talos": "talos_data/talos_reduced",
    "talos_arm": "talos_data/talos_left_arm",
    "talos_box": "talos_data/talos_reduced_box",
    "talos_full": "talos_data/talos_full_v2",
    "talos_full_box": "talos_data/talos_full_v2_box",
    "ur3": "ur_description/ur3_robot",
    "ur3_limited": "ur_description/ur3_joint_limited_robot",
    "ur5": "ur_description/ur5_robot",
    "ur5_limited": "ur_description/ur5_joint_limited_robot",
    "ur10": "ur_description/ur10_robot",
    "ur10_limited": "ur_description/ur10_joint_limited_robot",
}


def home() -> Path | None:
    """Return the folder of example-robot-data's robots; None if not installed.

    Searched are cmeel wheels in sys.path, sys.prefix and AMENT_PREFIX_PATH, in this
    order.
    """
    wheels = [Path(place) / "cmeel.prefix" / _SHARE for place in sys.path]
    prefixes = [sys.prefix, *os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)]
    others = [Path(prefix) / _SHARE for prefix in prefixes if prefix]
    return next(filter(os.path.isdir, [*wheels, *others]), None)


def files() -> dict[str, list[Path]]:
    """Return the URDF files of example-robot-data by name of the robot.

    Names are file names without .urdf, and the names in the package's own loader, which
    have priority. A name with several files, which are sorted, is ambiguous. The dict
    is empty if the package is not installed.
    """
    folder = home()
    if folder is None:
        return {}
    by_file: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*/*.urdf"), *folder.glob("*/*/*.urdf")]):
        by_file.setdefault(path.stem, []).append(path)
    named = dict(by_file)
    for name, place in _LOADER.items():
        package, _, stem = place.partition("/")
        chosen = [path for path in by_file.get(stem, ()) if package in path.parts]
        if chosen:
            named[name] = chosen
    return named


def file(name: str) -> Path:
    """Return the file of a robot; KeyError for an unknown name.

    Raises:
        ModelError: Several files have this name.
    """
    paths = files()[name]
    if len(paths) > 1:
        listed = ", ".join(map(str, paths))
        raise ModelError(
            f"robot '{name}' of {TITLE} is ambiguous; valid: one of the paths {listed}",
            name,
        )
    return paths[0]


def package_paths() -> tuple[Path, ...]:
    """Return the folders in which packages of package:// addresses are searched.

    They are the folder share and its subfolder example-robot-data/robots. The tuple is
    empty if example-robot-data is not installed.
    """
    folder = home()
    return () if folder is None else (folder.parents[1], folder)
