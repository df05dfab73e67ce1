"""Payload of a node's robot: live parameters and the service ~/attach_payload."""

from __future__ import annotations

from typing import Any, Protocol

from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from dyn_core.model.payload import Payload
from ros_nodes.base.node import RobotNode
from ros_nodes.parameter_tables.payload_parameters import payload_of

ATTACHED = "payload.attached"


class Carrier(Protocol):
    """An object that carries a payload: a simulated robot, or a controller."""

    def attach(self, payload: Payload | None) -> None:
        """Carry a payload from now on; None: no payload. SettingError: refused."""


def serve_payload(node: RobotNode, carrier: Carrier) -> None:
    """Attach the payload of a node's parameters, now and after each change."""
    service = PayloadService(node, carrier)
    service.change({})
    node.live["payload"] = service
    if node.value("payload.link"):
        node.keep(node.create_service(SetBool, "~/attach_payload", service.on_attach))


class PayloadService:
    """Attaches the payload of a node's parameters whenever they change.

    The service ~/attach_payload (SetBool) attaches or removes it. Mass, centre of mass
    and inertia are parameters, since no service type of std_srvs has numbers.
    """

    def __init__(self, node: RobotNode, carrier: Carrier) -> None:
        self.node, self.carrier = node, carrier

    def check(self, values: dict[str, Any]) -> Payload | None:
        """Return the payload after a change of parameters, by name; attach nothing.

        None: payload.mass is 0 or payload.attached is false. SettingError: refused.
        """
        value = self.node.value
        made = payload_of(lambda name: values[name] if name in values else value(name))
        check = getattr(self.carrier, "check_payload", None)  # only a controller has it
        if check is not None:
            check(made)
        return made

    def change(self, values: dict[str, Any]) -> None:
        """Attach the payload that results from a change of parameters, by name.

        Nothing happens if none begins with "payload."; an empty mapping attaches that
        of the present parameters. After a SettingError the present one stays attached.
        """
        if not values or any(name.startswith("payload.") for name in values):
            self.carrier.attach(self.check(values))

    def on_attach(self, request: Any, response: Any) -> Any:
        """Serve ~/attach_payload: set the parameter payload.attached, or refuse."""
        wish = Parameter(ATTACHED, value=bool(request.data))
        result = self.node.set_parameters([wish])[0]
        response.success, mass = result.successful, self.node.value("payload.mass")
        link = self.node.value("payload.link")
        done = f"{link} carries {mass:g} kg" if request.data else f"{link} is empty"
        if request.data and not mass:
            done = "payload.mass is 0 kg: set it, in each node that carries the payload"
        response.message = done if result.successful else result.reason
        return response
