"""Parameters of the estimation of a payload, and the payload of a node.

Without ROS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.errors import SettingError
from dyn_core.model.payload import Payload
from dyn_core.validation import Field, Name, Quantity, numbers

ESTIMATION = "payload_estimation"
TOPIC, SENSOR = f"{ESTIMATION}.wrench_topic", f"{ESTIMATION}.sensor_link"
PAYLOAD_ESTIMATION = (
    Field(f"{ESTIMATION}.plugin_name", Name(),
        "solver of PAYLOAD_ESTIMATION, such as payload_filter, that estimates what"
        " payload.link carries; empty: none", "", ""),
    Field(f"{ESTIMATION}.effort", Name(("measured", "sent")),
        "efforts that it goes by: those of joint_states, or those that the controller"
        " sends", "", "measured"),
    Field(TOPIC, Name(),
        "topic of a force-torque sensor, geometry_msgs/WrenchStamped, that has been"
        " tared without payload: its wrench takes the place of the efforts; empty:"
        " none", "", ""),
    Field(SENSOR, Name(),
        "link in whose frame this sensor measures; it carries payload.link", "", ""),
    Field(f"{ESTIMATION}.velocity_noise", numbers(),
        "standard deviation of velocities: one number, or one a joint",
        "rad/s, m/s", [1e-3]),
    Field(f"{ESTIMATION}.effort_noise", numbers(),
        "standard deviation of efforts, with what the robot's friction is other than"
        " the model's: one number, or one a joint; of a sensor's wrench: one number, or"
        " six, moment before force", "N·m, N", [0.2]),
    Field(f"{ESTIMATION}.effort_memory", Quantity(0.0, 10.0),
        "time in which errors of efforts forget themselves; 0: at once", "s", 0.0),
    Field(f"{ESTIMATION}.largest_mass", Quantity(1e-6, 1e6),
        "mass that is possible", "kg", 10.0),
    Field(f"{ESTIMATION}.reach", Quantity(1e-6, 1e3),
        "extent that is possible, around the origin of the link", "m", 0.3),
    Field(f"{ESTIMATION}.drift", Quantity(0.0, 1e3),
        "change of a payload in a second, as a share of what is possible; 0: none but"
        " when it is another one", "1/√s", 0.0),
    Field(f"{ESTIMATION}.period", Quantity(1e-3, 1.0),
        "time between two states that are compared", "s", 0.02),
)  # fmt: skip


def payload_of(value: Callable[[str], Any]) -> Payload | None:
    """Return the payload that the parameters describe, or None for no payload.

    There is none if its mass is zero or payload.attached is false.
    """
    payload = Payload(
        value("payload.mass"), value("payload.com"), value("payload.inertia")
    )
    if payload.mass and not value("payload.link"):
        raise SettingError(
            "payload.mass has no effect: set payload.link, the link that carries it",
            "payload.mass",
        )
    return payload if payload.mass and value("payload.attached") else None
