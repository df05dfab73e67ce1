"""The payload of a node's robot: live parameters and a service."""

from __future__ import annotations

from typing import Any, Protocol

from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from dyn_core.model.payload import Payload
from ros_nodes.base.node import RobotNode
from ros_nodes.parameter_tables.payload_parameters import payload_of

ATTACHED = "payload.attached"


class Carrier(Protocol):
    """What carries a payload: a simulated robot, or a controller."""

    def attach(self, payload: Payload | None) -> None:
        """Carry a payload from now on; None: nothing."""


def serve_payload(node: RobotNode, carrier: Carrier) -> None:
    """Attach the payload of a node's parameters, now and after each change."""
    service = PayloadService(node, carrier)
    service.change({})
    node.live["payload"] = service
    if node.value("payload.link"):
        node.keep(node.create_service(SetBool, "~/attach_payload", service.on_attach))


class PayloadService:
    """Attaches the payload of a node's parameters when they change.

    The service ~/attach_payload (SetBool) attaches it, or removes it; its numbers are
    parameters, as no service of std_srvs has numbers.
    """

    def __init__(self, node: RobotNode, carrier: Carrier) -> None:
        self.node, self.carrier = node, carrier

    def check(self, values: dict[str, Any]) -> Payload | None:
        """Return the payload with parameters that are being set.

        Raises:
            SettingError: There is no such payload, or the efforts cannot carry it.
        """
        value = self.node.value
        made = payload_of(lambda name: values[name] if name in values else value(name))
        check = getattr(self.carrier, "check_payload", None)  # of a controller
        if check is not None:
            check(made)
        return made

    def change(self, values: dict[str, Any]) -> None:
        """Carry the payload with parameters that are set, if they are of it.

        Raises:
            SettingError: There is no such payload; the present one stays.
        """
        if not values or any(name.startswith("payload.") for name in values):
            self.carrier.attach(self.check(values))

    def on_attach(self, request: Any, response: Any) -> Any:
        """Attach or remove the payload, by the parameter payload.attached."""
        wish = Parameter(ATTACHED, value=bool(request.data))
        result = self.node.set_parameters([wish])[0]
        response.success, mass = result.successful, self.node.value("payload.mass")
        link = self.node.value("payload.link")
        done = f"{link} carries {mass:g} kg" if request.data else f"{link} is empty"
        response.message = done if result.successful else result.reason
        return response
