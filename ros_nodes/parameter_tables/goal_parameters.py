"""Parameters of goals: the constraints of joint_trajectory_controller; without ROS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dyn_core.control.reference.goal_tolerances import (
    STOPPED_VELOCITY,
    Tolerances,
    checked_timeout,
)
from dyn_core.validation import Field, Quantity, Switch

GOALS = (
    Field("allow_partial_joints_goal", Switch(),
        "whether a trajectory may lack joints; they keep their position",
        "", False, structure=False),
    Field("action_monitor_rate", Quantity(0.1, 1000.0),
        "rate of the feedback of ~/follow_joint_trajectory", "Hz", 20.0),
    Field("constraints.goal_time", Quantity(0.0, 1e5),
        "longest time from the end of a trajectory until its goal is reached; 0: any",
        "s", 0.0, structure=False),
    Field("constraints.stopped_velocity_tolerance", Quantity(0.0, 1e3),
        "largest velocity error of a joint at the goal; 0: not checked",
        "rad/s, m/s", STOPPED_VELOCITY, structure=False),
    Field("cmd_timeout", Quantity(0.0, 1e5),
        "time after the end of the last trajectory from which on its command is stale:"
        " the robot then holds where it is; more than constraints.goal_time; 0: never",
        "s", 0.0, structure=False),
)  # fmt: skip


def constraint_fields(joints: Sequence[str]) -> tuple[Field, ...]:
    """Return the Fields constraints.JOINT.trajectory and .goal, joint after joint.

    Both are position errors [rad | m]; the default 0 means not checked.
    """
    rows = (
        ("trajectory", "largest error on the path of a goal; 0: not checked"),
        ("goal", "largest error at the end of a goal; 0: not checked"),
    )
    kind = Quantity(0.0, 1e3)
    return tuple(
        Field(f"constraints.{j}.{key}", kind, doc, "rad, m", 0.0, structure=False)
        for j in joints
        for key, doc in rows
    )


def tolerances(
    joints: Sequence[str],
    value: Callable[[str], Any],
    changed: Mapping[str, Any] | None = None,
) -> Tolerances:
    """Return the goal tolerances that the parameters constraints.* set; 0: not checked.

    `changed` values, which are being set, replace those of `value`.
    """
    new = changed or {}

    def read(name: str) -> float:
        name = f"constraints.{name}"
        return float(new[name] if name in new else value(name))

    return Tolerances.of(
        joints,
        {joint: read(f"{joint}.trajectory") for joint in joints},
        {joint: read(f"{joint}.goal") for joint in joints},
        read("goal_time"),
        read("stopped_velocity_tolerance"),
    )


def command_timeout(value: Callable[[str], Any]) -> float:
    """Return the parameter cmd_timeout [s]; 0: commands are never stale.

    Args:
        value: Returns the value of a parameter by name.

    Raises:
        SettingError: It is neither 0 nor more than constraints.goal_time.
    """
    return checked_timeout(value("cmd_timeout"), value("constraints.goal_time"))
