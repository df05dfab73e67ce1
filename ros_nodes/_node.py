"""Base class of the nodes: parameters, robot description, life cycle, diagnostics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

import dyn_core as dyn
from dyn_core import robots
from dyn_core.validation import Field
from ros_nodes._parameter_node import ParameterNode, is_array
from ros_nodes._runtime import age
from ros_nodes.parameters import check_joint_names, lock_fields
from ros_nodes.params import FOLDER

OK, WARN, ERROR, STALE = (bytes([level]) for level in range(4))
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
QUIET = 1.0  # shortest time between two equal log messages [s]


class RobotNode(ParameterNode):
    """A lifecycle node with a robot; subclasses implement `build` and `status`.

    Attributes:
        model: The robot in use; None in state unconfigured.
        counters: Number of refused messages, by reason.
        failure: Reason of the last failed configuration, or None.
        ready_after: Age of the process at its first activation [s].
    """

    def __init__(self, name: str, specs: Sequence[Field], **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        # Replaced before an executor uses the service.
        self._serve_transition = self._service_change_state.callback
        self._service_change_state.callback = self._on_change_state
        self.model: Any = None  # a Model once configured
        self.active = False
        self.counters: Counter[str] = Counter()
        self.failure: str | None = None
        self.ready_after: float | None = None
        self._urdf = ""
        self._last_logged: dict[str, float] = {}
        self._level = OK
        self._resources: list[Any] = []
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        # Added before the first declaration, so that start-up values are checked, too.
        self.add_on_set_parameters_callback(self._on_set)
        try:
            self.declare(specs)
            self._declare_options()
        except Exception:
            self.destroy_node()  # not left to the garbage collector
            raise
        self.create_subscription(
            String, "robot_description", self._on_description, LATCHED
        )

    # ---- parameters

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Accept a set of parameters, or refuse it with a reason."""
        for parameter in parameters:
            spec = self.specs.get(parameter.name)
            if spec is None or parameter.type_ == Parameter.Type.NOT_SET:
                continue
            if (
                spec.structure
                and self.model is not None
                and self.has_parameter(spec.name)
            ):
                reason = (
                    f"{spec.name} is structure: clean up first, then set and configure"
                )
                return SetParametersResult(successful=False, reason=reason)
            value = parameter.value
            try:
                spec.read(spec.name, list(value) if is_array(value) else value)
            except dyn.ModelError as error:
                return SetParametersResult(successful=False, reason=str(error))
        try:
            self.changed({p.name: p.value for p in parameters})
        except dyn.DynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def changed(self, values: dict[str, Any]) -> None:
        """Apply live parameters; a DynError refuses them."""

    # ---- robot

    def _on_description(self, message: String) -> None:
        """Accept a robot from the topic; refuse an invalid one and keep the old one."""
        if self.value("robot_description") or self.value("robot_description_file"):
            return
        try:
            dyn.load_urdf(message.data, check=self.value("model_check"))
        except dyn.DynError as error:
            self.refuse("robot_description refused", str(error))
            return
        self._urdf = message.data
        unconfigured = self._state_machine.current_state[1] == "unconfigured"
        if unconfigured and self.value("autostart"):
            self.start()
        elif self.model is not None:
            self.get_logger().info(
                "new robot_description kept; it is used at the next configure"
            )

    def waits_for_robot(self) -> bool:
        """Return whether no robot is set, so that the topic has to provide one."""
        from_parameters = self.value("robot_description") or self.value(
            "robot_description_file"
        )
        return not from_parameters and not self._urdf

    def load(self, **choices: Any) -> dyn.Model:
        """Return the robot of the parameters, with joints in their order."""
        extras = self.value("model_extras") or None
        shipped = FOLDER / f"{extras}.dyn.yaml"
        extras = str(shipped) if shipped.is_file() else extras
        source: Any = self.value("robot_description") or self._urdf
        if not source:
            source = self.value("robot_description_file")
            source = robots.path(source) if source in robots.names() else source
        if not source:
            raise dyn.SettingError(
                "no robot: set robot_description or robot_description_file, or publish"
                " the topic robot_description"
            )
        model = dyn.load_urdf(
            source,
            extras=extras,
            check=self.value("model_check"),
            root=self.value("root") or None,
            tip=self.value("tip") or None,
            gravity=tuple(self.value("gravity")),
            **choices,
        )
        for warning in model.warnings:
            self.get_logger().warning(warning)
        for used in model.build.description.sources:
            self.get_logger().info(f"robot read from {used}")
        return self._select(model)

    def _select(self, model: dyn.Model) -> dyn.Model:
        """Return the model with unlisted joints locked and the listed ones in order."""
        listed = list(self.value("joints"))
        if not listed:
            return model
        single = [n for n in model.joint_names if len(_range(model.v_slice(n))) == 1]
        for name in listed:
            if name not in single or listed.count(name) > 1:
                known = ", ".join(single)
                raise dyn.SettingError(
                    f"joints: '{name}' must be one of {known}, once", "joints"
                )
        unlisted = [name for name in single if name not in listed]
        if unlisted and self.value("unlisted_joints") == "refuse":
            raise dyn.SettingError(
                f"joints leaves out {', '.join(unlisted)}; list them, or set"
                " unlisted_joints to lock (at lock.<joint>)",
                "joints",
            )
        if unlisted:
            self.declare(lock_fields(unlisted))
            lock = {name: self.value(f"lock.{name}") for name in unlisted}
            described = ", ".join(f"{n} at {x:g}" for n, x in lock.items())
            self.get_logger().warning(f"locked: {described}")
            model = model.lock(lock)
        others = [name for name in model.joint_names if name not in listed]
        return model.reorder([*others, *listed])

    # ---- life cycle

    def _on_change_state(self, request: Any, response: Any) -> Any:
        """Serve a request of a transition; an invalid one is refused with a reason.

        rclpy up to Jazzy raises instead, which would end the node of a moving robot.
        """
        requested, machine = request.transition, self._state_machine
        valid = {number: label for number, label, *_ in machine.available_transitions}
        if requested.label in valid.values() or (
            not requested.label and requested.id in valid
        ):
            return self._serve_transition(request, response)
        choices = ", ".join(f"{number} ({label})" for number, label in valid.items())
        self.refuse(
            "transition refused",
            f"transition {requested.label or requested.id} does not fit the state"
            f" {machine.current_state[1]}; valid: {choices or 'none'}",
        )
        response.success = False
        return response

    def start(self) -> bool:
        """Configure and activate; return False if that failed.

        A node without a robot waits for the topic robot_description, and returns True.
        """
        if self.waits_for_robot():
            self.get_logger().info("waiting for a robot on the topic robot_description")
            return True
        if self.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            return False
        return self.trigger_activate() == TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Build everything; on an error log the reason and stay unconfigured."""
        started = time.monotonic()
        try:
            self._check_names()
            self.build()
            check_joint_names(self._undeclared(), self.specs)
        except (dyn.DynError, ParameterException) as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.get_logger().error(f"cannot configure: {self.failure}")
            self._destroy()
            return TransitionCallbackReturn.FAILURE
        self.failure = None
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.keep(self.diagnostics)
        period = self.value("diagnostic_updater.period")
        self.every(period, self.diagnose)
        seconds = time.monotonic() - started
        self.get_logger().info(f"configured in {seconds:.3f} s")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Activate the node."""
        self.active = True
        self.activated()
        self.ready_after = self.ready_after or age()
        after = f" {self.ready_after:.2f} s after the start" if self.ready_after else ""
        self.get_logger().info(f"active{after}")
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Send the final command."""
        self.send_final_command()
        self.active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Undo configure."""
        self._destroy()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Send the final command and undo configure."""
        self.send_final_command()
        self._destroy()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Send the final command and return to unconfigured."""
        self.send_final_command()
        self._destroy()
        return TransitionCallbackReturn.SUCCESS

    def keep(self, resource: Any) -> Any:
        """Register a publisher, subscription, timer or service for clean-up."""
        self._resources.append(resource)
        return resource

    def every(self, period: float, callback: Callable[[], None]) -> None:
        """Call a function at a period [s], until clean-up.

        The timer uses the steady clock: silence must be detected also while /clock
        stands still or after the system time is set back.
        """
        self.keep(self.create_timer(period, callback, clock=self._steady))

    def _destroy(self) -> None:
        """Destroy all resources of configure."""
        self.active = False
        for resource in reversed(self._resources):
            for kind in ("publisher", "subscription", "timer", "service"):
                if resource in getattr(self, f"{kind}s"):
                    getattr(self, f"destroy_{kind}")(resource)
                    break
        self._resources = []
        self.model = None

    def build(self) -> None:
        """Build the robot, its Programs and the communication."""
        raise NotImplementedError

    def activated(self) -> None:
        """Hook for subclasses: called on activation."""

    def send_final_command(self) -> None:
        """Publish the last command of the node."""

    def wait_for_delivery(self) -> None:
        """Wait, for a bounded time, until the last command has arrived."""

    # ---- log and diagnostics

    def refuse(self, kind: str, message: str) -> None:
        """Count a refusal, and log the reason at most once per second."""
        self.counters[kind] += 1
        now = time.monotonic()
        if now - self._last_logged.get(message, -QUIET) >= QUIET:
            if len(self._last_logged) > 100:
                self._last_logged.clear()
            self._last_logged[message] = now
            self.get_logger().warning(f"{kind}: {message}")

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics."""
        raise NotImplementedError

    def diagnose(self) -> None:
        """Publish diagnostics."""
        level, message, values = self.status()
        self._level = level
        status = DiagnosticStatus(level=level, message=message)
        status.name = f"{self.get_name()}: {type(self).__name__}"
        status.hardware_id = self.model.name if self.model else "none"
        if self.ready_after is not None:
            values["active after [s]"] = f"{self.ready_after:.2f}"
        values = {**values, **{f"refused: {k}": n for k, n in self.counters.items()}}
        status.values = [KeyValue(key=k, value=str(v)) for k, v in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self.diagnostics.publish(array)

    def diagnose_change(self) -> None:
        """Publish diagnostics at once if the level has changed."""
        if self.status()[0] != self._level:
            self.diagnose()


def _range(columns: slice) -> range:
    return range(columns.start, columns.stop)
