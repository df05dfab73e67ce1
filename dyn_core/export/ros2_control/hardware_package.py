"""A package of ament_cmake: a simulated robot as hardware component of ros2_control."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.law_programs import weightless
from dyn_core.errors import SettingError
from dyn_core.export.ros2_control.ament_package import (
    COMMON,
    AmentPackage,
    urdf_with_hardware,
)
from dyn_core.export.ros2_control.parameters import cpp_numbers
from dyn_core.model import Model
from dyn_core.problems import STEP
from dyn_core.solving.build_options import BuildOptions, check_names
from dyn_core.solving.registry import solver_of
from dyn_core.validation import named_settings

SHORT = 1e-3  # default of max_step [s]
LONGEST = 0.1  # longest period that is simulated at once [s]
_FILES = {
    **COMMON, "README.md": "hardware_README.md", "src/hardware.cpp": "hardware.cpp"
}  # fmt: skip
_DEPENDS = ("hardware_interface", "pluginlib", "rclcpp", "rclcpp_lifecycle")


def hardware_package(
    stepper: str,
    model: Model,
    folder: str | os.PathLike[str],
    urdf: str,
    options: Mapping[str, Any],
) -> tuple[Path, ...]:
    """Write a package of ament_cmake whose hardware component simulates a robot.

    Returns the paths of its files; those of an earlier export are replaced if nobody
    changed them.

    Args:
        stepper: Name of a solver of STEP.
        model: Robot; joints of one coordinate each.
        folder: Folder of the package; its last part is the name of the package.
        urdf: Text of the robot's URDF.
        options: Options of the solver, except inputs and dtype, which the hardware
            component fixes; and max_step, the longest step in time, from 1e-6 to 0.1,
            by default 1e-3 [s].
    """
    package, rest = AmentPackage(folder, model), named_settings("options", options)
    step = rest.pop("max_step", SHORT)
    if not isinstance(step, (int, float)) or not 1e-6 <= step <= LONGEST:
        raise SettingError(
            f"max_step={step!r}; valid: from 1e-06 to {LONGEST:g} [s]", "max_step"
        )
    for name in ("inputs", "dtype"):  # of the arrays that hardware.cpp passes
        if name in rest:
            raise SettingError(f"{name}={rest[name]!r}; valid: leave it out", name)
    made = solver_of(stepper, STEP)
    valid = ["max_step", *(x.name for x in fields(BuildOptions))]
    valid += [x for part in ("slots", "options") for x in getattr(made, part, ())]
    check_names(f"{stepper}: unknown option", rest, valid)
    for robot, suffix in ((model, "step"), (weightless(model), "weightless")):
        # With friction and springs, as the exported laws compensate them.
        passive = dict.fromkeys(made.signature.passive or (), True)
        program = made.build(robot, **{"finite": True, **passive, **rest})
        package.add_kernel(program, suffix)
    about = f"simulation by {stepper}"
    values = package.values(about, "SystemInterface", _DEPENDS) | {
        "class": "SimulatedRobot",
        "source": "hardware",
        "folders": "urdf",
        "solver": stepper,
        "step": cpp_numbers([step]),
        "longest": cpp_numbers([LONGEST]),
        "start": cpp_numbers(model.start()),
        "lower": cpp_numbers(model.lower),
        "upper": cpp_numbers(model.upper),
        "effort": cpp_numbers(effort_limits(model, {})),
    }
    package.fill(_FILES, values)
    plugin = f"{package.name}/SimulatedRobot"
    simulated = urdf_with_hardware(urdf, model, plugin)
    package.contents["urdf/simulated.urdf"] = simulated.encode()
    return package.write()
