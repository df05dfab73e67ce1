"""Parameters of a payload, of both nodes; without ROS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.errors import SettingError
from dyn_core.model.payload import Payload
from dyn_core.validation import Field, Name, Quantity, Switch, numbers

PAYLOAD = (
    Field("payload.link", Name(), "link that may carry a payload; empty: none does", "",
          ""),
    Field("payload.attached", Switch(), "whether the payload is carried; the service"
          " ~/attach_payload sets it", "", True, structure=False),
    Field("payload.mass", Quantity(0.0), "mass of the payload", "kg", 0.0,
          structure=False),
    Field("payload.com", numbers(3), "its centre of mass in the frame of the link", "m",
          [0.0, 0.0, 0.0], structure=False),
    Field("payload.inertia", numbers(6), "its inertia about the centre of mass, axes of"
          " the link: xx xy xz yy yz zz; zeros: a point mass", "kg·m²", [0.0] * 6,
          structure=False),
)  # fmt: skip


def payload_of(value: Callable[[str], Any]) -> Payload | None:
    """Return the payload that the parameters describe; None if nothing is carried.

    Args:
        value: Returns a parameter's value.

    Raises:
        SettingError: There is no such body, or no link for it.
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
