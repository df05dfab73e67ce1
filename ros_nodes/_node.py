"""What the nodes share: parameters, the robot, diagnostics, autostart."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

import dyn_core as dyn
from dyn_core import robots
from ros_nodes._runtime import age
from ros_nodes.parameters import Spec, lock_specs
from ros_nodes.params import FOLDER

OK, WARN, ERROR, STALE = (bytes([level]) for level in range(4))
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
QUIET = 1.0  # seconds between two log lines of one kind


class RobotNode(LifecycleNode):
    """A lifecycle node with a robot; a leaf writes `build`, `release` and `status`.

    Attributes:
        model: The robot in use; None in state unconfigured.
        counters: Messages that were refused, by reason.
        failure: Why the last configuration failed, or None.
        ready_after: Age of the process when it first was active [s].
    """

    def __init__(self, name: str, specs: Sequence[Spec], **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.specs: dict[str, Spec] = {}
        self.model: Any = None  # a Model once configured
        self.active = False
        self.counters: Counter[str] = Counter()
        self.failure: str | None = None
        self.ready_after: float | None = None
        self._described = ""
        self._said: dict[str, float] = {}
        self._level = OK
        self._parts: list[Any] = []
        # Before the first declaration, so that start-up values are checked, too.
        self.add_on_set_parameters_callback(self._on_set)
        try:
            self.declare(specs)
        except Exception:
            self.destroy_node()  # here, not in the garbage collector at any time
            raise
        self.create_subscription(
            String, "robot_description", self._on_description, LATCHED
        )

    # ---- parameters

    def declare(self, specs: Sequence[Spec]) -> None:
        """Declare parameters; known ones are left as they are."""
        for spec in specs:
            self.specs[spec.name] = spec
            if self.has_parameter(spec.name):
                continue
            if spec.default == []:
                self.declare_parameter(spec.name, spec.kind(), spec.descriptor())
            else:
                self.declare_parameter(spec.name, spec.default, spec.descriptor())

    def value(self, name: str) -> Any:
        """Give a parameter's value; an unset list is empty, arrays are lists."""
        parameter = self.get_parameter_or(name)
        if parameter.type_ == Parameter.Type.NOT_SET:
            return list(self.specs[name].default)
        value = parameter.value
        return list(value) if hasattr(value, "typecode") else value

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Accept all of a set of parameters, or refuse in words."""
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
            fault = spec.fault(parameter.value)
            if fault is not None:
                return SetParametersResult(successful=False, reason=fault)
        try:
            self.changed({p.name: p.value for p in parameters})
        except dyn.DynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def changed(self, values: dict[str, Any]) -> None:
        """Apply live parameters; a DynError refuses them."""

    # ---- the robot

    def _on_description(self, message: String) -> None:
        """Take a robot from the topic; a bad one is refused and the old one kept."""
        if self.value("robot_description") or self.value("robot_description_file"):
            return
        try:
            dyn.load_urdf(message.data, check=self.value("model_check"))
        except dyn.DynError as error:
            self.refuse("robot_description refused", str(error))
            return
        self._described = message.data
        if self.model is None and self.value("autostart"):
            self.start()
        elif self.model is not None:
            self.get_logger().info(
                "new robot_description kept; it is used at the next configure"
            )

    def waits_for_robot(self) -> bool:
        """Whether there is no robot yet and the topic may still bring one."""
        given = self.value("robot_description") or self.value("robot_description_file")
        return not given and not self._described

    def load(self, **choices: Any) -> dyn.Model:
        """Give the robot that the parameters ask for, in their order."""
        extras = self.value("model_extras") or None
        shipped = FOLDER / f"{extras}.dyn.yaml"
        extras = str(shipped) if shipped.is_file() else extras
        source: Any = self.value("robot_description") or self._described
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
        """Lock or refuse joints that `joints` leaves out; bring the rest in order."""
        wanted = list(self.value("joints"))
        if not wanted:
            return model
        single = [n for n in model.joint_names if len(_range(model.v_slice(n))) == 1]
        for name in wanted:
            if name not in single or wanted.count(name) > 1:
                known = ", ".join(single)
                raise dyn.SettingError(
                    f"joints: '{name}' must be one of {known}, once", "joints"
                )
        left = [name for name in single if name not in wanted]
        if left and self.value("unlisted_joints") == "refuse":
            raise dyn.SettingError(
                f"joints leaves out {', '.join(left)}; list them, or set"
                " unlisted_joints to lock (at lock.<joint>)",
                "joints",
            )
        if left:
            self.declare(lock_specs(left))
            lock = {name: self.value(f"lock.{name}") for name in left}
            shown = ", ".join(f"{n} at {x:g}" for n, x in lock.items())
            self.get_logger().warning(f"locked: {shown}")
            model = model.lock(lock)
        others = [name for name in model.joint_names if name not in wanted]
        return model.reorder([*others, *wanted])

    # ---- life

    def start(self) -> bool:
        """Configure and activate; whether it worked, or waits for its robot."""
        if self.waits_for_robot():
            self.get_logger().info("waiting for a robot on the topic robot_description")
            return True
        if self.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            return False
        return self.trigger_activate() == TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Build everything; on an error say why and stay unconfigured."""
        begun = time.monotonic()
        try:
            self.build()
        except (dyn.DynError, ParameterException) as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.get_logger().error(f"cannot configure: {self.failure}")
            self._drop()
            return TransitionCallbackReturn.FAILURE
        self.failure = None
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.keep(self.diagnostics)
        period = self.value("diagnostic_updater.period")
        self.keep(self.create_timer(period, self.diagnose))
        took = time.monotonic() - begun
        self.get_logger().info(f"configured in {took:.3f} s")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Let the robot move."""
        self.active = True
        self.activated()
        self.ready_after = self.ready_after or age()
        after = f" {self.ready_after:.2f} s after the start" if self.ready_after else ""
        self.get_logger().info(f"active{after}")
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Leave the robot with its last words."""
        self.last_words()
        self.active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Undo configure."""
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Leave the robot with its last words and undo configure."""
        self.last_words()
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Leave the robot with its last words; back to unconfigured."""
        self.last_words()
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    def keep(self, part: Any) -> Any:
        """Remember a publisher, subscription, timer or service for clean-up."""
        self._parts.append(part)
        return part

    def _drop(self) -> None:
        """Destroy what configure made."""
        self.active = False
        for part in reversed(self._parts):
            for kind in ("publisher", "subscription", "timer", "service"):
                if part in getattr(self, f"{kind}s"):
                    getattr(self, f"destroy_{kind}")(part)
                    break
        self._parts = []
        self.model = None

    def build(self) -> None:
        """Build the robot, its Programs and the communication."""
        raise NotImplementedError

    def activated(self) -> None:
        """Begin."""

    def last_words(self) -> None:
        """Publish what the robot shall be left with."""

    # ---- what is said

    def refuse(self, kind: str, words: str) -> None:
        """Count a refusal, and say why unless just that was just said."""
        self.counters[kind] += 1
        now = time.monotonic()
        if now - self._said.get(words, -QUIET) >= QUIET:
            if len(self._said) > 100:
                self._said.clear()
            self._said[words] = now
            self.get_logger().warning(f"{kind}: {words}")

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Give level, message and values for /diagnostics."""
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
        """Publish diagnostics at once where the level is another one."""
        if self.status()[0] != self._level:
            self.diagnose()


def _range(at: slice) -> range:
    return range(at.start, at.stop)
