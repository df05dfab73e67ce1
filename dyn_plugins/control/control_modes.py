"""Modes of the controller: computed torque, impedances, gravity compensation."""

from dyn_core.authoring import ControlMode, hookimpl
from dyn_core.problems import (
    CARTESIAN_CONTROL,
    GRAVITY_CONTROL,
    IMPEDANCE_CONTROL,
    TRACKING_CONTROL,
)


@hookimpl
def dyn_control_modes():
    """Return the list of modes computed_torque, impedance, gravity and cartesian."""
    from dyn_core.control import CartesianLaw  # needed by controllers alone

    return [
        ControlMode(
            "computed_torque",
            TRACKING_CONTROL,
            "computed_torque",
            "follows trajectories by inverse dynamics",
            tracks=True,
            exportable=True,
        ),
        ControlMode(
            "impedance",
            IMPEDANCE_CONTROL,
            "joint_impedance",
            "springs and dampers between the joints and a trajectory",
            stiff=True,
            exportable=True,
        ),
        ControlMode(
            "gravity",
            GRAVITY_CONTROL,
            "gravity_compensation",
            "gravity compensation alone",
            gains=("d",),
            follows=False,
            holds=False,
            status="gravity compensation",
            exportable=True,
        ),
        ControlMode(
            "cartesian",
            CARTESIAN_CONTROL,
            "cartesian_impedance",
            "springs and dampers between the tool and its targets",
            slot="cartesian_control",
            law=CartesianLaw,
            gains=("d",),
            follows=False,
            status="holding the tool",
            parameters=CartesianLaw.fields,
            topics=CartesianLaw.topics,
            exportable=True,
        ),
    ]
