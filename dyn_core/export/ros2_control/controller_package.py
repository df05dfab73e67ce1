"""A package of ament_cmake: a controller of ros2_control with an exported cycle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.control.carrying import Carrying
from dyn_core.control.controller_fields import GRAVITY_FIELD
from dyn_core.control.joint_limits import effort_limits
from dyn_core.control.law_programs import build_weight, weightless
from dyn_core.control.modes.cartesian_law import AXES, UNBOUNDED
from dyn_core.control.modes.tool_sampling import sampling_program
from dyn_core.control.modes.tool_targets import LARGEST
from dyn_core.engines import Program
from dyn_core.errors import SettingError
from dyn_core.export.cycle.controller_cycle import (
    CYCLES,
    check_options,
    control_cycle,
    cycle_row,
    cycle_settings,
    fault_names,
)
from dyn_core.export.cycle.cycle_steps import KINDS, STATUS
from dyn_core.export.cycle.tool_steps import ANSWERS
from dyn_core.export.ros2_control.ament_package import (
    COMMON,
    AmentPackage,
    urdf_with_hardware,
)
from dyn_core.export.ros2_control.parameters import (
    cpp_number,
    cpp_numbers,
    fixed_values,
    live_values,
    row,
    rows,
)
from dyn_core.model import Model
from dyn_core.problems import CARTESIAN_CONTROL
from dyn_core.solving.registry import solver
from dyn_core.validation import Field, Whole, named_settings
from dyn_core.validation.quoting import c_string, yaml_text

LAWS = {name.removesuffix("_cycle"): name for name in CYCLES}
TOOL = "cartesian"  # a mode of several laws: an option names the one
RATE, RATES = 1000, Whole(1, 100_000)  # update_rate [Hz]: default, range
_IMPEDANCE = LAWS["joint_impedance"]
# Input of a cycle: what the controller passes.
_INPUTS = {
    "kp": "live->kp.data()", "stiffness": "live->kp.data()",
    "kd": "live->kd.data()", "damping": "live->kd.data()",
    "t": "&time_", "fresh": "&is_fresh", "request": "&request",
    "stops": "live->stops.data()",
}  # fmt: skip
_TOOL_INPUTS = {
    **{f"target_{name}": f"tool_.targets[{k}]"
       for k, name in enumerate(("pose", "twist", "wrench", "stiffness"))},
    **{name: f"tool_.{name}.data()" for name in ("frames", "news")},
    **{name: f"live->tool.{name}.data()" for name in ("stiffness", "ratio",
       "energy_limit", "rest_stiffness", "rest_damping", "target_limits")},
}  # fmt: skip
_FILES = {
    **COMMON, "README.md": "README.md",
    "src/controller.cpp": "controller.cpp", "src/robot.hpp": "robot.hpp",
    "launch/mock_launch.py": "mock_launch",
    "config/controllers.yaml": "controllers.yaml",
}  # fmt: skip
_DEPENDS = (
    "controller_interface", "diagnostic_msgs", "hardware_interface", "pluginlib",
    "rclcpp_lifecycle", "realtime_tools", "std_srvs", "trajectory_msgs",
)  # fmt: skip
_TOOL_DEPENDS = ("geometry_msgs", "std_msgs")
_RUNS = (
    "controller_manager", "joint_state_broadcaster", "joint_trajectory_controller",
    "launch_ros", "robot_state_publisher",
)  # fmt: skip
_REFERENCE = """\
- References: chained, `dynamics_controller/<joint>/position`, `velocity` and
  `acceleration`, which a `joint_trajectory_controller` writes (see
  `config/controllers.yaml`); else the topic `~/reference`
  (`trajectory_msgs/msg/JointTrajectory` with one point). Without a reference the
  position is held, and `/diagnostics` says so."""
_TARGETS = """\
- Targets of the tool: the topics `~/target_pose` (`geometry_msgs/msg/PoseStamped`),
  `~/target_twist` (`TwistStamped`), `~/target_wrench` and `~/target_stiffness`
  (`WrenchStamped`), as in mode cartesian of the node. The pose at the activation is
  held until then; log and `/diagnostics` say why a target is refused."""
_NO_REFERENCE = "- It follows no reference."
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

    Returns the paths of its files; those of an earlier export are replaced if nobody
    changed them.

    Args:
        law: computed_torque, joint_impedance, gravity_compensation, cartesian_impedance
            or operational_space (LAWS), any of these with _cycle behind it, or
            cartesian (TOOL).
        model: Robot; joints of one coordinate each.
        folder: Folder of the package; its last part is the name of the package.
        urdf: Text of the robot's URDF, for mock hardware.
        options: Attributes of Rules, Bounds and StateBounds, options of the cycle
            except inputs, and update_rate, the rate that the package is made for, whole
            from 1 to 100000, by default 1000 [Hz], and payload_link, the link whose
            payload can change while the controller runs. Of cartesian also
            cartesian_control, the law, by default cartesian_impedance.
    """
    package, rest = AmentPackage(folder, model), named_settings("options", options)
    if law == TOOL:
        law = rest.pop("cartesian_control", "cartesian_impedance")
        valid = [
            x for x, cycle in LAWS.items() if CYCLES[cycle][1] is CARTESIAN_CONTROL
        ]
        if law not in valid:
            message = f"cartesian_control={law!r}; valid: {', '.join(valid)}"
            raise SettingError(message, "cartesian_control")
    cycle, rate = LAWS.get(str(law), law), rest.pop("update_rate", RATE)
    if not RATES.takes(rate):
        message = f"update_rate={rate!r}; valid: {RATES.valid} [Hz]"
        raise SettingError(message, "update_rate")
    if "inputs" in rest:
        raise SettingError("inputs; valid here: payload_link=LINK", "inputs")
    link = rest.pop("payload_link", "")
    inputs = ["stops", f"{link}.payload"] if link else ["stops"]
    rules, bounds, states, rest = cycle_settings(rest)
    for rule in ("on_estop", "on_collision"):
        if getattr(rules, rule) == "hold":
            raise SettingError(f"{rule} is hold; valid here: zero, ramp", rule)
    tool = cycle_row(cycle)[1] is CARTESIAN_CONTROL
    tracks = "q_ref" in {port.name for port in cycle_row(cycle)[2].inputs}
    live = live_values(model, tracks, rules, link, tool)
    _check_options(cycle, rest, [*(field for field, _ in live), GRAVITY_FIELD])
    settings = {"rules": rules, "bounds": bounds, "state_bounds": states, **rest}
    for robot, suffix in ((model, "cycle"), (weightless(model), "weightless")):
        program = control_cycle(cycle, robot, inputs=inputs, **settings)
        package.add_kernel(program, suffix)
    fixed = fixed_values(model, rules, bounds, states, rest, link)
    limit = effort_limits(model, rest.get("limits") or {})
    base = f"{'Chainable' if tracks else ''}ControllerInterface"
    values = {
        **_payload_values(package, limit, link),
        **(_tool_values(package, rest) if tool else {"tool": "0"}),
        "stiff": str(int(_add_sampling(package, cycle))),
        **package.values(
            cycle.removesuffix("_cycle"),
            base,
            (*_DEPENDS, *_TOOL_DEPENDS * tool),
            _RUNS,
        ),
        **_law_values(cycle, program, tracks, tool),
        **_yaml(model, tracks, live),
        "class": "Controller",
        "source": "controller",
        "folders": "config launch urdf",
        "gravity": row(GRAVITY_FIELD, GRAVITY_FIELD.default),
        "live": rows(live),
        "fixed": rows(fixed),
        "rate": cpp_number(rate),
        "hertz": str(rate),
        "state_timeout": cpp_number(rules.state_timeout),
        "blend_time": cpp_number(rules.blend_time),
    }
    package.fill({**_FILES, **({"src/tool.hpp": "tool.hpp"} if tool else {})}, values)
    mock = urdf_with_hardware(urdf, model, "mock_components/GenericSystem")
    package.contents["urdf/mock.urdf"] = mock.encode()
    return package.write()


def _check_options(
    cycle: str, options: Mapping[str, Any], live: Sequence[Field]
) -> None:
    """Refuse options that are unknown, or parameters set in the configuration."""
    for field in live:
        if field.name in options:
            later = "" if field.structure else ", or while the controller runs"
            raise SettingError(
                f"{field.name} is no option of a package; valid: set it in"
                f" config/controllers.yaml{later}",
                field.name,
            )
    check_options(cycle, options, ("update_rate", "payload_link"))


def _payload_values(
    package: AmentPackage, limit: np.ndarray, link: str
) -> dict[str, str]:
    """Return the template values `loads`, `limits`, `position_count` and `positions`.

    With a link, `loads` is "1", the kernel that weighs its payload is added to the
    package, and the positions are the random ones of Carrying, none for a robot with
    loops. Without one (empty), `loads` is "0" and they are one row of zeros.
    """
    positions, model = np.zeros((1, package.model.nq)), package.model
    if link:
        package.add_kernel(build_weight(model, None, [f"{link}.payload"]), "weight")
        positions = Carrying(model, limit).positions
    return {
        "loads": str(int(bool(link))),
        "limits": cpp_numbers(limit),
        "position_count": str(len(positions)),
        "positions": cpp_numbers(positions.ravel()),
    }


def _add_sampling(package: AmentPackage, cycle: str) -> bool:
    """Add the kernel of the rates of joint dampers; return whether there is one.

    It is for joint_impedance_cycle alone, whose gains are stiffness and damping, of a
    robot without loops: the rates of a tool without springs, with d as joint damping.
    """
    model = package.model
    if cycle != _IMPEDANCE or model.loops:
        return False
    link = next(x for x in model.frame_names if model.frame(x).body)
    package.add_kernel(sampling_program(model, link, AXES[0]), "sampling")
    return True


def _tool_values(package: AmentPackage, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the template values about a tool; add the kernels of poses and rates.

    The option cartesian.frame, the tool's link, is required; cartesian.reference,
    aligned or local axes, is aligned by default.
    """
    model, link = package.model, options["cartesian.frame"]
    axes, links = options.get("cartesian.reference", AXES[0]), model.frame_names
    package.add_kernel(solver("forward_kinematics").build(model), "links")
    package.add_kernel(sampling_program(model, link, axes), "sampling")
    return {
        "tool": "1",
        "tool_index": str(links.index(link)),
        "links": ", ".join(map(c_string, links)),
        "link_names": c_string(", ".join(links)),
        "answers": ",\n    ".join(map(c_string, ANSWERS)),
        "aligned": str(axes == AXES[0]).lower(),
        "unbounded": cpp_number(UNBOUNDED),
        "largest": cpp_number(LARGEST),
    }


def _law_values(
    cycle: str, program: Program[Any], tracks: bool, tool: bool
) -> dict[str, str]:
    """Return the template values that depend on the law, texts by name.

    before_inertia: whether gains act before the inertia; damping: of the joints, zeros
    for other laws than joint_impedance.
    """
    model, stiff = program.recipe.model, cycle == _IMPEDANCE
    faults = fault_names(model)
    names = {port.name: f"{port.name}_.data()" for port in program.inputs}
    names |= {x: "payload_.data()" for x in names if x.endswith(".payload")} | _INPUTS
    names |= _TOOL_INPUTS if tool else {}
    reference = _REFERENCE if tracks else _TARGETS if tool else _NO_REFERENCE
    outputs = ("tau_", "next_", "report_", "tool_.answers")
    return {
        "law": cycle.removesuffix("_cycle"),
        "tracks": str(int(tracks)),
        "before_inertia": str(not stiff).lower(),
        "damping": cpp_numbers((1.0 if stiff else 0.0) * model.flat("damping")),
        "state_size": str(program.outputs[1].size),
        "status": ", ".join(map(c_string, STATUS)),
        "fault_count": str(len(faults)),
        "faults": ",\n    ".join(map(c_string, faults)),
        "kinds": ", ".join(map(c_string, KINDS)),
        "inputs": ", ".join(names[port.name] for port in program.inputs),
        "outputs": ", ".join(f"{x}.data()" for x in outputs[: len(program.outputs)]),
        "start": cpp_numbers(model.start()),
        "reference_text": reference,
    }


def _yaml(
    model: Model, tracks: bool, live: Sequence[tuple[Field, Any]]
) -> dict[str, str]:
    """Return the parts of controllers.yaml: yaml_gains, chained_type and chained.

    The last two, on a controller that gives the reference, are empty unless `tracks`.
    """
    lines = []
    for name in model.joint_names:
        head = f"gains.{name}."
        gains = [(f.name, value) for f, value in live if f.name.startswith(head)]
        pairs = ", ".join(f"{key.removeprefix(head)}: {x}" for key, x in gains)
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
