"""Declared parameters: name, default, range, description, and when they may change."""

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
        name: Name, with dots for nesting.
        default: Default; it sets the type, an empty list that of a list of strings.
        description: One sentence for `ros2 param describe`.
        low, high: Range of a number.
        choices: Valid strings.
        structure: Whether it can be changed only in state unconfigured.
    """

    name: str
    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    structure: bool = False

    def descriptor(self) -> ParameterDescriptor:
        """Return the descriptor for ROS: description, range, constraints."""
        description = self.description + (f" ({STRUCTURE})" if self.structure else "")
        described = ParameterDescriptor(name=self.name, description=description)
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
        """Return what is wrong with a value, or None."""
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
        """Return the ROS type of the default."""
        if isinstance(self.default, list):
            if self.default and isinstance(self.default[0], float):
                return Parameter.Type.DOUBLE_ARRAY
            return Parameter.Type.STRING_ARRAY
        return Parameter.Type.from_parameter_value(self.default)


def _is_array(value: Any) -> bool:
    return hasattr(value, "typecode")


def robot_specs() -> tuple[Spec, ...]:
    """Return the parameters of every node with a robot."""
    return (
        *_description_specs(),
        *_selection_specs(),
    )


def _description_specs() -> tuple[Spec, ...]:
    """Return the parameters of the life cycle and of the robot's description."""
    return (
        Spec("autostart", True, "configure and activate at startup", structure=True),
        Spec(
            "robot_description",
            "",
            "URDF as a string; empty: the file, or the topic robot_description",
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
            "whether implausible inertias are an error or a warning",
            choices=("error", "warn"),
            structure=True,
        ),
    )


def _selection_specs() -> tuple[Spec, ...]:
    """Return the parameters that select joints, links and engine of the model."""
    return (
        Spec(
            "joints",
            [],
            "controlled joints and their order; empty: all of the model",
            structure=True,
        ),
        Spec(
            "unlisted_joints",
            "refuse",
            "joints that are not in `joints`: lock them at lock.<joint> (default 0), or"
            " refuse the model",
            choices=("refuse", "lock"),
            structure=True,
        ),
        Spec("root", "", "first link of the chain; empty: the root", structure=True),
        Spec(
            "tip", "", "last link of the chain; empty: the whole tree", structure=True
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


def lock_specs(joints: Sequence[str]) -> tuple[Spec, ...]:
    """Return the positions of locked joints."""
    return tuple(
        Spec(
            f"lock.{joint}",
            0.0,
            "position at which the joint is locked [rad | m]",
            structure=True,
        )
        for joint in joints
    )
