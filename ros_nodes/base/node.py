"""Base class of the nodes: parameters, robot description, life cycle, diagnostics.

The robot is read from parameters or a topic; its joints are selected and ordered.
"""

from __future__ import annotations

import gc
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

import dyn_core as dyn
from dyn_core.errors import cut, one_line
from dyn_core.model.checks.findings import Hint
from dyn_core.model.sources.arguments import READING, load_with
from dyn_core.validation import Field
from ros_nodes.base.diagnostics import ERROR, OK, WARN, namesake_of, status_message
from ros_nodes.base.idle import IdleWork
from ros_nodes.base.parameter_node import ParameterNode
from ros_nodes.base.qos import warn_of_idle
from ros_nodes.base.session import Session
from ros_nodes.base.transitions import change_state, misfit, reported, serve_transitions
from ros_nodes.base.worker import Worker
from ros_nodes.parameters import check_joint_names, lock_fields
from ros_nodes.running.runtime import age

LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
WAITING = (
    "waiting for a robot on the topic robot_description; valid, too:"
    " robot_description_file, or --robot of dyn up"
)
QUIET = 1.0  # shortest time between two messages equal apart from decimals [s]
# Not whole numbers: another joint2 or transition 2 is another message.
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)|inf|nan)\b"
)
DELIVERY = 0.05  # period at which results of the worker are delivered [s]


def load_robot(node: ParameterNode, urdf: str, **choices: Any) -> dyn.Model:
    """Return the robot of a node's parameters, with its joints in the listed order.

    Joints with several coordinates come first; with empty `joints` the order of the
    model stays. The warnings of the robot are logged, and where it comes from. If
    unlisted joints are locked, lock.JOINT is declared for each. `urdf`, of the topic
    robot_description, is used if the parameter robot_description is empty, in place of
    robot_description_file. `choices` goes to dyn.load.
    """
    described = node.value("robot_description") or urdf
    file = node.value("robot_description_file")
    source = StringIO(described) if described else file
    if not source:
        raise dyn.SettingError(
            "no robot: set robot_description or robot_description_file, or publish"
            " the topic robot_description"
        )
    model = read_robot(
        node,
        source,
        extras=node.value("model_extras") or None,
        check=node.value("model_check"),
        root=node.value("root") or None,
        tip=node.value("tip") or None,
        gravity=tuple(node.value("gravity")),
        **choices,
    )
    for warning in model.warnings:
        log = node.get_logger()
        (log.info if isinstance(warning, Hint) else log.warning)(one_line(warning))
    for line in model.source.describe():
        node.get_logger().info(one_line(f"robot: {line}"))
    return _select(node, model)


def read_robot(
    node: ParameterNode, source: str | StringIO, **choices: Any
) -> dyn.Model:
    """Return the robot of a description, or of a name or file that dyn.load looks up.

    Python's ModelWarning is suppressed: `load` logs each of `model.warnings`.
    """
    settings = {name: node.value(name) for name in READING}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dyn.errors.ModelWarning)
        return load_with(settings, source, **choices)


def _select(node: ParameterNode, model: dyn.Model) -> dyn.Model:
    """Return the model with the joints of parameter `joints` last, in the listed order.

    Joints with several coordinates precede them. Other unlisted joints are locked at
    the parameters lock.JOINT, which are declared here; a warning in the log lists them.
    """
    listed = list(node.value("joints"))
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
    if unlisted and node.value("unlisted_joints") == "refuse":
        raise dyn.SettingError(
            f"joints leaves out {', '.join(unlisted)}; list them, or set"
            " unlisted_joints to lock (at lock.<joint>)",
            "joints",
        )
    if unlisted:
        node.declare(lock_fields(unlisted))
        lock = {name: node.value(f"lock.{name}") for name in unlisted}
        described = ", ".join(f"{n} at {x:g}" for n, x in lock.items())
        node.get_logger().warning(one_line(f"locked: {described}"))
        model = model.lock(lock)
    others = [name for name in model.joint_names if name not in listed]
    return model.reorder([*others, *listed])


def _range(columns: slice) -> range:
    """Return the indices of a slice that has a start and a stop, and step 1."""
    return range(columns.start, columns.stop)


class RobotNode(ParameterNode):
    """A lifecycle node with a robot; subclasses implement `build` and `status`.

    Attributes:
        model: The robot in use; None in state unconfigured.
        session: Resources of the last configuration; closed in state unconfigured.
        counters: Number of refusals, by the argument `kind` of `refuse`.
        failure: Error message of the last failed transition; None after a configuration
            that succeeded.
        namesake: Sentence on another node of the same full name, as of the last
            `diagnose`; or empty.
        worker: Thread for work that would delay the executor.
        steady: Steady clock; all timers of the node use it.
        ready_after: Age of the process at its first activation [s]; None if unknown.
    """

    def __init__(self, name: str, specs: Sequence[Field], **kwargs: Any) -> None:
        self.session = Session(self, is_open=False)
        kwargs["enable_communication_interface"] = False
        super().__init__(name, specs, **kwargs)
        serve_transitions(self, self._on_change_state)
        self.counters: Counter[str] = Counter()
        self.failure: str | None = None
        self.namesake = ""
        self.ready_after: float | None = None
        self._urdf = ""
        self._last_logged: dict[str, float] = {}
        self._level = OK
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.worker = Worker(self.callbacks.attempt)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._diagnosing = self.create_timer(
            self.value("diagnostic_updater.period"),
            self.callbacks.message(lambda: self.idle.due(self.diagnose)),
            clock=self.steady,
        )
        describe = self.callbacks.message(self._on_description)
        self.create_subscription(String, "robot_description", describe, LATCHED)

    @property
    def configured(self) -> bool:
        """Whether the node has a complete configuration.

        False before and during `build`, and after a failed configure, an error, a
        clean-up or a shutdown; a refused activation changes nothing.
        """
        return self.session.complete

    @property
    def active(self) -> bool:
        """Whether the node is active.

        True from just before `activated` until just after the `send_final_command` of a
        deactivation; in a shutdown and after an error, until the session is closed.
        """
        return self.session.active

    @property
    def idle(self) -> IdleWork:
        """Queue of jobs for after an answer; configure makes a new, empty one."""
        return self.session.idle

    # ---- robot

    def _on_description(self, message: String) -> None:
        """Read a robot from the topic robot_description; refuse an invalid one.

        The message is ignored if a parameter sets the robot. While the node is
        configured, the worker reads it, and the new robot is only used at the next
        configure.
        """
        if self.value("robot_description") or self.value("robot_description_file"):
            return
        check, text = self.value("model_check"), message.data

        def make() -> dyn.Model:
            return read_robot(self, StringIO(text), check=check)

        if self.configured:
            self.worker.submit("robot", make, lambda made: self._on_robot(text, made))
            return
        try:
            make()
        except dyn.DynError as error:
            self._on_robot(text, error)
        else:
            self._on_robot(text, None)

    def _on_robot(self, text: str, made: Any) -> None:
        """Store a URDF; if `made` is a DynError, refuse it and keep the last one."""
        if isinstance(made, dyn.DynError):
            self.refuse("robot_description refused", str(made))
            return
        self._urdf = text
        unconfigured = self._state_machine.current_state[1] == "unconfigured"
        if unconfigured and self.value("autostart"):
            self.start()
        elif self.configured:
            self.get_logger().info(
                "new robot_description kept; it is used at the next configure"
            )

    def waits_for_robot(self) -> bool:
        """Return whether neither a parameter nor the topic has provided a robot."""
        from_parameters = self.value("robot_description") or self.value(
            "robot_description_file"
        )
        return not from_parameters and not self._urdf

    def load(self, **choices: Any) -> dyn.Model:
        """Return the robot of the parameters, by load_robot with `choices`."""
        return load_robot(self, self._urdf, **choices)

    # ---- life cycle

    def _on_change_state(self, request: Any, response: Any) -> Any:
        """Serve a change_state request; refuse an invalid one and log the reason."""
        # rclpy up to Jazzy raises here instead, which would end the node of a moving
        # robot.
        reason = misfit(request.transition, self._state_machine)
        if reason is None:
            return change_state(self, request, response)
        self.refuse("transition refused", reason)
        response.success = False
        return response

    def start(self) -> bool:
        """Configure and activate the unconfigured node; return False if either fails.

        Without a robot, the node stays unconfigured and True is returned; with
        autostart, a robot on the topic robot_description starts the node later. After a
        failure it is unconfigured, or inactive if its activation was refused.
        """
        if self.waits_for_robot():
            self.get_logger().info(WAITING)
            return True
        if self.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            return False
        return self.activate()

    def activate(self) -> bool:
        """Activate the inactive node; return False on failure.

        A subclass may return True and activate later.
        """
        return self.trigger_activate() == TransitionCallbackReturn.SUCCESS

    def autostart(self) -> bool:
        """Start the node if parameter autostart is true; return False if that fails.

        True also without a robot or if it is false; the node then stays unconfigured.
        """
        if self.value("autostart"):
            return self.start()
        self.get_logger().info(
            "autostart is false: waiting for the transitions configure and activate"
        )
        return True

    @reported
    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Build the node; on a DynError or an invalid parameter, return FAILURE.

        The previous session is closed first, and earlier failures of callbacks are
        forgotten. After a failure the reason is logged, stored in `failure` and
        published on /diagnostics, and the node stays unconfigured. Any other exception
        is logged and stored, and ERROR is returned; rclpy then calls on_error.
        """
        started = time.monotonic()
        self.session.close()
        self.session = Session(self)
        self.callbacks.forget()
        self._diagnosing.timer_period_ns = round(
            1e9 * self.value("diagnostic_updater.period")
        )
        self._diagnosing.reset()
        try:
            self._check_names()
            self.build()
            check_joint_names(self._undeclared(), self.specs)
            warn_of_idle(self)
        except (dyn.DynError, ParameterException) as error:
            self.failure = cut(f"{type(error).__name__}: {error}")
            self.get_logger().error(f"cannot configure: {self.failure}")
            self._drop()
            self.callbacks.attempt(self.diagnose)
            return TransitionCallbackReturn.FAILURE
        self.failure, self.session.complete = None, True
        self.every(DELIVERY, self.worker.deliver)
        _settle_memory()
        seconds = time.monotonic() - started
        self.get_logger().info(f"configured in {seconds:.3f} s")
        return TransitionCallbackReturn.SUCCESS

    @reported
    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Call the hook `activated`, then let rclpy activate the node.

        The age of the process is logged the first time; ERROR after an exception.
        """
        self.session.active = True
        self.activated()
        after = ""
        if self.ready_after is None:
            self.ready_after = age()
            if self.ready_after is not None:
                after = f" {self.ready_after:.2f} s after the start"
        self.get_logger().info(f"active{after}")
        return super().on_activate(state)

    @reported
    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Wind down, send the final command, deactivate; ERROR after an exception."""
        self.wind_down()
        self.send_final_command()
        self.session.active = False
        return super().on_deactivate(state)

    @reported
    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Wait for the last command, then release all; ERROR after an exception."""
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    @reported
    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Wind down, send the final command, drop all; ERROR after an exception."""
        self.wind_down()
        self.send_final_command()
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Send the final command, drop the configuration and return SUCCESS."""
        self.send_final_command()
        self._drop()
        return TransitionCallbackReturn.SUCCESS

    def keep(self, resource: Any) -> Any:
        """Return a resource after Session.keep: guarded, destroyed at clean-up."""
        return self.session.keep(resource)

    def every(self, period: float, callback: Callable[[], None]) -> None:
        """Call a function periodically, in steady time, until clean-up.

        The first call is after one period [s]; missed calls are skipped.
        """
        self.session.periodic.add(period, callback)

    def every_idle(self, period: float, job: Callable[[], None]) -> None:
        """Queue a job each period [s] until clean-up, see IdleWork.due."""
        idle = self.session.idle
        self.every(period, lambda: idle.due(job))

    def _drop(self) -> None:
        """Release the configuration, after a bounded wait; undo _settle_memory."""
        self.wait_for_delivery()
        self.session.close()
        self.live, self.model = {}, None
        gc.unfreeze()

    def destroy_node(self) -> None:
        """Close the session, stop the worker (at most 1 s) and destroy the node.

        No command is sent. `model` and `live` stay as they are.
        """
        self.session.close()
        self.worker.stop()
        super().destroy_node()
        self._state_machine: Any = None  # its reference keeps the node in the ROS graph

    def build(self) -> None:
        """Build the robot, its Programs and the communication, and set `model`.

        Subclasses implement it. A DynError or ParameterException makes configure fail.
        """
        raise NotImplementedError

    def activated(self) -> None:
        """Handle an activation, when `active` is already True; a hook."""

    def wind_down(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Bring the robot to rest before the final command, within a bounded time.

        Hook for subclasses. interrupted: Polled while waiting; True ends the wait.
        """

    def send_final_command(self) -> None:
        """Publish the last command of the node; a hook.

        It is called in any state, repeatedly, and by LastResort in another thread.
        """

    def wait_for_delivery(self) -> None:
        """Wait until the last command has arrived, for a bounded time; a hook."""

    # ---- log and diagnostics

    def refuse(self, kind: str, message: str) -> None:
        """Count a refusal and log it as a warning.

        Messages that are equal apart from numbers such as 0.1, 2e-3 and nan, even of
        another kind, are logged at most once per second; whole numbers, and digits of
        names such as joint2, tell messages apart. Once more than 100 different ones are
        known, the next that is logged makes all forgotten: they may be logged again.
        `kind` is the key in `counters`, and begins the log message.
        """
        self.counters[kind] += 1
        message = one_line(message)
        key, now = NUMBER.sub("#", message), time.monotonic()
        if now - self._last_logged.get(key, -QUIET) >= QUIET:
            # Messages may quote what was received, such as names: bound the memory.
            if len(self._last_logged) > 100:
                self._last_logged.clear()
            self._last_logged[key] = now
            self.get_logger().warning(f"{kind}: {message}")

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, sentence and values by name of a configured node; abstract."""
        raise NotImplementedError

    def _without_robot(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics while unconfigured."""
        if self.failure is not None:
            return ERROR, f"cannot configure: {self.failure}", {}
        if self.waits_for_robot():
            return WARN, WAITING, {}
        return OK, "unconfigured", {}

    def diagnose(self) -> None:
        """Look for a namesake and publish the status on /diagnostics, in any state."""
        self.callbacks.attempt(self._look_for_namesake)
        status = self.status if self.configured else self._without_robot
        self.publish_status(*status())

    def _look_for_namesake(self) -> None:
        """Set `namesake`; log a warning when it begins, and info when it has ended."""
        before, self.namesake = self.namesake, namesake_of(self)
        if self.namesake and not before:
            self.get_logger().warning(self.namesake)
        elif before and not self.namesake:
            self.get_logger().info(f"no longer: {before.partition('; valid: ')[0]}")

    def publish_status(
        self, level: bytes, message: str, values: dict[str, Any]
    ) -> None:
        """Publish a status on /diagnostics; may be called in any thread.

        `diagnose_change` compares with this level. OK is published as WARN if the robot
        has warnings that are no hints, a callback has failed, or there is a `namesake`.
        """
        self._level = level
        status = status_message(self, level, message, values)
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.stamp()
        self.diagnostics.publish(array)

    def stamp(self) -> Any:
        """Return the current time of the node's clock as a message for a header."""
        return self.get_clock().now().to_msg()

    def diagnose_change(self, level: bytes) -> None:
        """Publish the present status if `level` is not the last one (at first OK)."""
        if level != self._level:
            self.diagnose()


def _settle_memory() -> None:
    """Collect garbage, freeze the rest: a later collection exceeds a control cycle."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
