"""Declared parameters: type, default, range, description, and when they may change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

STRUCTURE = "structure: writable in state unconfigured only"


@dataclass(frozen=True)
class Spec:
    """One parameter.

    Attributes:
        name: Nested names with dots.
        default: Its type is the parameter's type; an empty list is a list of strings.
        text: Description.
        low, high: Range of a number.
        choices: Valid strings.
        structure: Whether it may change in state unconfigured only.
    """

    name: str
    default: Any
    text: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    structure: bool = False

    def descriptor(self) -> ParameterDescriptor:
        """Give the descriptor that ROS shows and enforces."""
        text = self.text + (f" ({STRUCTURE})" if self.structure else "")
        described = ParameterDescriptor(name=self.name, description=text)
        if self.choices:
            described.additional_constraints = f"one of {', '.join(self.choices)}"
        if self.low is not None and isinstance(self.default, float):
            high = float(self.high if self.high is not None else 1e12)
            described.floating_point_range = [
                FloatingPointRange(from_value=float(self.low), to_value=high, step=0.0)
            ]
        elif self.low is not None:
            high = int(self.high if self.high is not None else 1 << 40)
            described.integer_range = [
                IntegerRange(from_value=int(self.low), to_value=high, step=1)
            ]
        return described

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with a value, or None."""
        if self.choices and value not in self.choices:
            return f"{self.name}: '{value}' is not one of {', '.join(self.choices)}"
        numbers = (
            value if isinstance(value, (list, tuple)) or _is_array(value) else [value]
        )
        for x in numbers:
            if isinstance(x, float) and not math.isfinite(x):
                return f"{self.name}: {x} is not finite"
            if self.low is not None and x < self.low:
                return f"{self.name}: {x} is below {self.low}"
            if self.high is not None and x > self.high:
                return f"{self.name}: {x} is above {self.high}"
        return None

    def kind(self) -> Parameter.Type:
        """Give the ROS type of the default."""
        if isinstance(self.default, list):
            if self.default and isinstance(self.default[0], float):
                return Parameter.Type.DOUBLE_ARRAY
            return Parameter.Type.STRING_ARRAY
        return Parameter.Type.from_parameter_value(self.default)


def _is_array(value: Any) -> bool:
    return hasattr(value, "typecode")


def robot_specs() -> tuple[Spec, ...]:
    """Parameters of every node that has a robot."""
    return (
        Spec("autostart", True, "configure and activate by itself", structure=True),
        Spec(
            "robot_description",
            "",
            "URDF text; empty: file, or the topic robot_description",
            structure=True,
        ),
        Spec(
            "robot_description_file",
            "",
            "path of a URDF, or the name of a shipped robot",
            structure=True,
        ),
        Spec(
            "model_extras",
            "",
            "path of the sidecar .dyn.yaml, or quadruped_stand; empty: beside the file",
            structure=True,
        ),
        Spec(
            "model_check",
            "warn",
            "what implausible inertias are",
            choices=("error", "warn"),
            structure=True,
        ),
        Spec(
            "joints",
            [],
            "controlled joints and their order; empty: all of the model",
            structure=True,
        ),
        Spec(
            "unlisted_joints",
            "refuse",
            "what happens to joints that `joints` leaves out:"
            " lock them at lock.<joint> (default 0), or refuse",
            choices=("refuse", "lock"),
            structure=True,
        ),
        Spec("root", "", "link the chain starts at; empty: the root", structure=True),
        Spec(
            "tip", "", "link the chain ends at; empty: the whole tree", structure=True
        ),
        Spec(
            "gravity",
            [0.0, 0.0, -9.81],
            "gravity in the root frame [m/s²]",
            structure=True,
        ),
        Spec(
            "engine", "", "engine of the Programs; empty: the default", structure=True
        ),
        Spec(
            "diagnostic_updater.period",
            1.0,
            "period of /diagnostics [s]",
            low=0.05,
            high=60.0,
            structure=True,
        ),
    )


def simulator_specs() -> tuple[Spec, ...]:
    """Parameters of the simulator."""
    return (
        *robot_specs(),
        Spec(
            "chain_file",
            "",
            "planar chain instead of a robot: path of its YAML, or a shipped chain",
            structure=True,
        ),
        Spec(
            "root_joint",
            "fixed",
            "how the root link is held",
            choices=("fixed", "floating"),
            structure=True,
        ),
        Spec(
            "step.plugin_name", "semi_implicit_euler", "solver of STEP", structure=True
        ),
        Spec(
            "forward_dynamics.plugin_name",
            "aba",
            "solver of FORWARD_DYNAMICS",
            structure=True,
        ),
        Spec(
            "update_rate",
            500,
            "cycles in a second [Hz]",
            low=1,
            high=10000,
            structure=True,
        ),
        Spec(
            "substeps",
            1,
            "integration steps in a cycle",
            low=1,
            high=1000,
            structure=True,
        ),
        Spec(
            "initial_positions",
            [0.0],
            "start of the listed joints [rad | m]; one 0.0: neutral within the limits,"
            " or what a chain's file says",
            structure=True,
        ),
        Spec(
            "initial_velocities",
            [0.0],
            "their velocities [rad/s | m/s]; one 0.0: rest, or a chain's file",
            structure=True,
        ),
        Spec(
            "prescribed.joints",
            [],
            "joints that follow ~/accelerations (Float64MultiArray, [rad/s² | m/s²],"
            " order of the model) instead of efforts",
            structure=True,
        ),
        Spec("joint_friction", True, "damping and dry friction act", structure=True),
        Spec("joint_springs", True, "springs in the joints act", structure=True),
        Spec(
            "limit_stops",
            True,
            "spring-damper stops at position limits",
            structure=True,
        ),
        Spec(
            "command_timeout",
            0.1,
            "age at which an effort command becomes zero [s]",
            low=1e-4,
            high=10.0,
            structure=True,
        ),
        Spec(
            "publish_clock", False, "publish simulated time on /clock", structure=True
        ),
        Spec(
            "frame_id", "base_link", "header.frame_id of joint_states", structure=True
        ),
    )


def controller_specs() -> tuple[Spec, ...]:
    """Parameters of the computed-torque controller."""
    return (
        *robot_specs(),
        Spec(
            "inverse_dynamics.plugin_name",
            "rnea",
            "solver of INVERSE_DYNAMICS",
            structure=True,
        ),
        Spec(
            "mode",
            "computed_torque",
            "computed_torque, or gravity for pure gravity compensation",
            choices=("computed_torque", "gravity"),
            structure=True,
        ),
        Spec(
            "state_timeout",
            0.1,
            "age of the last good joint state that counts as stale [s]",
            low=1e-3,
            high=10.0,
            structure=True,
        ),
        Spec(
            "max_jump",
            0.5,
            "change of position between two states that counts as a"
            " new start [rad | m]",
            low=1e-3,
            high=100.0,
            structure=True,
        ),
        Spec(
            "good_samples",
            3,
            "good states in a row before torque flows again",
            low=1,
            high=1000,
            structure=True,
        ),
        Spec(
            "on_stale",
            "zero",
            "torque while the state is stale: zero, or damped weight"
            " for stale_time (arms without brakes)",
            choices=("zero", "gravity_damping"),
            structure=True,
        ),
        Spec(
            "stale_time",
            2.0,
            "bound on gravity_damping [s]",
            low=1e-3,
            high=60.0,
            structure=True,
        ),
        Spec(
            "differentiate_velocity",
            False,
            "make missing velocities from positions",
            structure=True,
        ),
        Spec(
            "velocity_filter_time",
            0.01,
            "time constant of that [s]",
            low=1e-4,
            high=1.0,
            structure=True,
        ),
        Spec(
            "interpolation_method",
            "splines",
            "between trajectory points",
            choices=("splines", "none"),
        ),
        Spec(
            "allow_nonzero_velocity_at_trajectory_end",
            False,
            "whether the last point may have a velocity",
        ),
        Spec(
            "publish_rate",
            50.0,
            "rate of ~/reference and ~/error [Hz]",
            low=0.1,
            high=1000.0,
            structure=True,
        ),
    )


def gain_specs(joints: Sequence[str]) -> tuple[Spec, ...]:
    """Gains of each joint; live."""
    specs = []
    for joint in joints:
        specs += [
            Spec(
                f"gains.{joint}.p",
                100.0,
                "position gain before the inertia, 1/s², not N·m/rad",
                low=0.0,
            ),
            Spec(
                f"gains.{joint}.d",
                20.0,
                "velocity gain before the inertia, 1/s, not N·m·s/rad",
                low=0.0,
            ),
        ]
    return tuple(specs)


def joint_specs(joints: Sequence[str], kinds: Sequence[str]) -> tuple[Spec, ...]:
    """Effort limits and wrapping of each joint."""
    specs = []
    for joint, kind in zip(joints, kinds, strict=True):
        specs += [
            Spec(
                f"effort_limits.{joint}",
                0.0,
                "effort limit [N·m | N]; 0: the model's",
                low=0.0,
                structure=True,
            ),
            Spec(
                f"gains.{joint}.angle_wraparound",
                kind == "continuous",
                "wrap the position error to [-pi, pi)",
                structure=True,
            ),
        ]
    return tuple(specs)


def lock_specs(joints: Sequence[str]) -> tuple[Spec, ...]:
    """Positions of locked joints."""
    return tuple(
        Spec(
            f"lock.{joint}",
            0.0,
            "position at which the joint is locked [rad | m]",
            structure=True,
        )
        for joint in joints
    )
