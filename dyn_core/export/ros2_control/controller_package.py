"""A package of ament_cmake: a controller of ros2_control with an exported cycle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dyn_core.control.law_programs import weightless
from dyn_core.engines import Program
from dyn_core.errors import SettingError
from dyn_core.export.cycle.controller_cycle import (
    CYCLES,
    control_cycle,
    cycle_settings,
    fault_names,
)
from dyn_core.export.cycle.cycle_steps import REQUESTS, STATUS
from dyn_core.export.ros2_control.ament_package import (
    AmentPackage,
    urdf_with_hardware,
)
from dyn_core.export.ros2_control.parameters import (
    cpp_number,
    cpp_numbers,
    fixed_values,
    gravity_row,
    live_fields,
    rows,
)
from dyn_core.model import Model
from dyn_core.validation import Field
from dyn_core.validation.quoting import c_string, yaml_text

LAWS = {name.removesuffix("_cycle"): name for name in CYCLES}
RATE = 1000.0  # default of update_rate [Hz]
_IMPEDANCE = LAWS["joint_impedance"]
# Input of a cycle: what the controller passes.
_INPUTS = {
    "kp": "gains->kp.data()", "stiffness": "gains->kp.data()",
    "kd": "gains->kd.data()", "damping": "gains->kd.data()",
    "t": "&time_", "fresh": "&is_fresh", "request": "&request",
}  # fmt: skip
_FILES = {
    **{x: x for x in ("CMakeLists.txt", "package.xml", "plugins.xml", "README.md")},
    "src/controller.cpp": "controller.cpp", "src/robot.hpp": "robot.hpp",
    "test/load_plugin.cpp": "load_plugin.cpp",
    "launch/mock_launch.py": "mock_launch",
    "config/controllers.yaml": "controllers.yaml",
}  # fmt: skip
_REFERENCE = """\
- References: chained, `dynamics_controller/<joint>/position`, `velocity` and
  `acceleration`, which a `joint_trajectory_controller` writes (see
  `config/controllers.yaml`); else the topic `~/reference`
  (`trajectory_msgs/msg/JointTrajectory` with one point). Without a reference the
  position is held, and `/diagnostics` says so."""
_CHAINED_TYPE = """\
    joint_trajectory_controller:
      type: joint_trajectory_controller/JointTrajectoryController
"""
_CHAINED = """\
joint_trajectory_controller:
  ros__parameters:
    joints: [{joints}]
    command_joints: [{chained}]
    command_interfaces: [position, velocity, acceleration]
    state_interfaces: [position, velocity]
"""


def controller_package(
    law: str,
    model: Model,
    folder: str | os.PathLike[str],
    urdf: str,
    options: Mapping[str, Any],
) -> tuple[Path, ...]:
    """Write a package of ament_cmake whose controller is an exported cycle.

    Args:
        law: One of LAWS, or the name of its cycle.
        model: Robot; joints of one coordinate each.
        folder: Folder of the package; its last part is the name of the package.
        urdf: URDF of the robot, for mock hardware.
        options: Attributes of Rules, Bounds and StateBounds, options of the cycle, and
            update_rate [Hz], the rate that the package is made for.

    Returns:
        Paths of the files that were written.

    Raises:
        UnsupportedError: The robot has a floating base.
        SettingError: A name or an option is not valid, or the folder has other files.
        ModelError: The robot is not a URDF.
    """
    package, rest = AmentPackage(folder, model), dict(options)
    cycle, rate = LAWS.get(law, law), _rate(rest.pop("update_rate", RATE))
    rules, bounds, states, rest = cycle_settings(rest)
    if rules.on_estop == "hold":
        raise SettingError("on_estop is hold; valid here: zero, ramp", "on_estop")
    settings = {"rules": rules, "bounds": bounds, "state_bounds": states, **rest}
    for robot, suffix in ((model, "cycle"), (weightless(model), "weightless")):
        program = control_cycle(cycle, robot, **settings)
        package.add_kernel(program, suffix)
    tracks = "q_ref" in {port.name for port in program.signature.inputs}
    live = live_fields(model, tracks)
    values = {
        **package.values(cycle.removesuffix("_cycle")),
        **_law_values(cycle, program, tracks),
        **_yaml(model, tracks, live),
        "gravity": gravity_row(),
        "gains": rows([(field, field.default) for field in live], fixed=False),
        "fixed": rows(fixed_values(model, rules, bounds, states, rest), fixed=True),
        "rate": cpp_number(rate),
        "hertz": str(int(rate)),
        "state_timeout": cpp_number(rules.state_timeout),
        "on_estop": str(REQUESTS.index(rules.on_estop)),
    }
    package.fill(_FILES, values)
    mock = urdf_with_hardware(urdf, model, "mock_components/GenericSystem")
    package.contents["urdf/mock.urdf"] = mock.encode()
    return package.write()


def _rate(value: Any) -> float:
    """Return update_rate; raise SettingError unless it is a whole number of hertz."""
    if not isinstance(value, (int, float)) or not 1 <= value <= 1e5 or value % 1:
        raise SettingError(
            f"update_rate={value!r}; valid: a whole number from 1 to 100000 [Hz]",
            "update_rate",
        )
    return float(value)


def _law_values(cycle: str, program: Program[Any], tracks: bool) -> dict[str, str]:
    """Return the texts of the templates that depend on the law.

    Args:
        cycle: Name of the cycle.
        program: Its Program.
        tracks: Whether it follows a reference.
    """
    model, stiff = program.recipe.model, cycle == _IMPEDANCE
    faults = fault_names(model)
    inputs = (port.name for port in program.signature.inputs)
    return {
        "law": cycle.removesuffix("_cycle"),
        "base": f"{'Chainable' if tracks else ''}ControllerInterface",
        "tracks": str(int(tracks)),
        "before_inertia": str(not stiff).lower(),
        "damping": cpp_numbers((1.0 if stiff else 0.0) * model.flat("damping")),
        "state_size": str(program.outputs[1].size),
        "status": ", ".join(map(c_string, STATUS)),
        "fault_count": str(len(faults)),
        "faults": ",\n    ".join(map(c_string, faults)),
        "inputs": ", ".join(_INPUTS.get(x, f"{x}_.data()") for x in inputs),
        "reference_text": _REFERENCE if tracks else "- It follows no reference.",
    }


def _yaml(model: Model, tracks: bool, live: Sequence[Field]) -> dict[str, str]:
    """Return the parts of controllers.yaml.

    Args:
        model: Robot.
        tracks: Whether the law follows a reference.
        live: Fields of the gains.
    """
    lines = []
    for name in model.joint_names:
        head = f"gains.{name}."
        gains = (
            (f.name.removeprefix(head), f) for f in live if f.name.startswith(head)
        )
        pairs = ", ".join(f"{key}: {field.default}" for key, field in gains)
        lines.append(f"      {yaml_text(name)}: {{{pairs}}}")
    texts = {"yaml_gains": "\n".join(lines), "chained_type": "", "chained": ""}
    if tracks:
        chained = (f"dynamics_controller/{name}" for name in model.joint_names)
        texts["chained_type"] = _CHAINED_TYPE
        texts["chained"] = _CHAINED.format(
            joints=", ".join(map(yaml_text, model.joint_names)),
            chained=", ".join(map(yaml_text, chained)),
        )
    return texts
