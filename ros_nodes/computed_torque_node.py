"""Node `computed_torque`: follows trajectories and publishes effort commands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.controller_fields import effort_fields, gain_fields, wrap_fields
from dyn_core.control.joint_limits import raised_limits
from dyn_core.control.joint_values import wrapped_joints
from dyn_core.control.safety.guard_link import GuardLink
from dyn_core.control.safety.health import Health
from dyn_core.errors import one_line
from ros_nodes.base.diagnostics import ERROR
from ros_nodes.base.node import RobotNode
from ros_nodes.base.parameter_node import plain
from ros_nodes.base.qos import publisher, subscription, wait_until_acknowledged
from ros_nodes.controller.activation import Activation
from ros_nodes.controller.controller_report import Report
from ros_nodes.controller.controller_settings import (
    controller_settings,
    gains,
    without_effect,
)
from ros_nodes.controller.external_wrench_topics import ExternalWrenchTopics
from ros_nodes.controller.guard_topics import GuardLatch
from ros_nodes.controller.mode_topics import ModeTopics
from ros_nodes.controller.model_topics import ModelTopics
from ros_nodes.controller.motion_topics import MotionTopics
from ros_nodes.controller.payload_changes import serve_payload
from ros_nodes.controller.payload_estimation import PayloadWatch
from ros_nodes.controller.state_input import StateInput, spread_of
from ros_nodes.controller.trajectory_action import TrajectoryGoals
from ros_nodes.controller.trajectory_input import TrajectoryInput
from ros_nodes.parameter_tables.controller_parameters import (
    CONTROLLER,
    collision_fields,
    mode_fields,
)
from ros_nodes.parameter_tables.goal_parameters import command_timeout
from ros_nodes.running import realtime as realtime
from ros_nodes.running import runtime
from ros_nodes.running.hanging_callbacks import Hang
from ros_nodes.running.watchdog import Watchdog, period_of

LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Deep enough that a part from one publisher does not replace a part from another.
PARTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LOOK = 0.1  # period of the checks for conditions [s]
POLL = 5e-4  # period of polling for a state while winding down [s]
FAULT = "the control callback"


class ComputedTorqueNode(RobotNode):
    """Computed-torque control of a robot, see dyn_core.control.controller.

    Three threads: the executor computes and publishes; the watchdog reacts to silence
    through the gate of the controller; the worker converts messages.

    Further features of the node are functions in `extensions`, called with the node at
    the end of each configure. An extension may use `controller.observers` (called with
    each state and its effort; a returned sentence stops the robot),
    `controller.listeners` (called with the outcome of each trajectory),
    `trajectories.prepare` and `.follow`, `keep` for resources made with rclpy, `every`
    and `every_idle` for periodic jobs, `conditions` and `further_values` for
    /diagnostics, and `after_answers`, called with messages once their effort has been
    published. An exception in an observer or listener stops the robot; an exception in
    the others is logged and ends nothing.

    Attributes:
        controller: A Controller; None in state unconfigured.
        extensions: Called with the node when it is configured.
        conditions: Called with time.monotonic() [s]; each returns a list of Condition
            for /diagnostics.
        further_values: Called without arguments; each returns values for /diagnostics
            by name.
        after_answers: Called with each joint state and the effort computed for it,
            (nv,) [N·m | N], or None if there is none.

    Args:
        kwargs: Further arguments of rclpy's node.

    Raises:
        ModelError: A parameter given at start-up is not valid or of the wrong type.
        SettingError: It fits the Field, but not the ROS type, such as an empty list.
        ParameterException: rclpy refuses a parameter.
    """

    extensions: ClassVar[list[Callable[[Any], object]]] = [
        GuardLatch,
        TrajectoryGoals,
        PayloadWatch,
        ModeTopics,
        ModelTopics,
        ExternalWrenchTopics,
    ]

    def __init__(self, **kwargs: Any) -> None:
        self.controller: Any = None  # a Controller; None before configure
        self.goals: Any = None  # its TrajectoryGoals
        self.action_server: Any = None
        self.watchdog: Watchdog | None = None
        self.stopped_inactive = False  # ~/estop was called since the deactivation
        self.guard_link = GuardLink()  # a stop of a guard outlasts a clean-up
        self.guard_stop: Any = None  # a GuardStop; None before configure
        table = (*CONTROLLER, *mode_fields())
        super().__init__("computed_torque", table, **kwargs)
        self.activation = Activation(self, self._guard_refusal)
        # They outlive a configuration, so that an emergency stop is always answered.
        self.switches = [
            self.create_service(Trigger, "~/estop", self._on_estop),
            self.create_service(SetBool, "~/enable", self._on_enable),
        ]

    # ---- life cycle

    def build(self) -> None:
        """Build the robot, the controller and the communication; call the extensions.

        Parameters by joint are declared. Parameters without effect, raised limits and
        notes of the control law are logged as warnings. An emergency stop called while
        the node was inactive is applied to the new controller.

        Raises:
            DynError, ParameterException: The robot or a parameter is not valid.
            Exception: Any exception of an extension is passed on.
        """
        model = self.load(root_joint="fixed")
        names = model.joint_names
        self.declare(gain_fields(names))
        self.declare(wrap_fields(names, wrapped_joints(model, None)))
        self.declare((*effort_fields(names), *collision_fields(names)))
        settings = controller_settings(self.value, names, self.solver)
        idle = without_effect(self.value, names)
        if idle:
            self.get_logger().warning(f"without effect here: {', '.join(idle)}")
        self.controller = Controller(model, **settings)
        for sentence in raised_limits(model, self.controller.limit):
            self.get_logger().warning(one_line(sentence))
        self.health = Health(self.controller, self.value("large_error"))
        self.controller.samples.clock = self._simulated_time
        law = self.controller.control_law
        for sentence in (*self.controller.untested, *law.notes):
            self.get_logger().warning(one_line(sentence))
        self.states = StateInput(names, spread_of(self))
        self.reader = self.states.reader
        self.command = Float64MultiArray()
        self.conditions: list[Callable[[float], Any]] = []
        self.further_values: list[Callable[[], dict[str, Any]]] = []
        self.after_answers: list[Callable[[JointState, Any], object]] = []
        self.report = Report(self)
        self._communicate()
        self.get_logger().info(
            one_line(
                f"efforts on {self.efforts.topic_name}: {', '.join(names)}, in this"
                " order, which the driver must have, too"
            )
        )
        serve_payload(self, self.controller)
        for extend in self.extensions:
            extend(self)
        self.session.at_close(self._forget)  # closed before the resources made above
        if self.stopped_inactive:
            self.controller.estop(time.monotonic(), "~/estop")
        self.model = model

    def _forget(self) -> None:
        """Stop the watchdog thread, which publishes, and set `controller` to None."""
        self._end_watchdog()
        self.controller = None

    def _end_watchdog(self) -> None:
        """Stop the watchdog thread, if there is one; wait up to 1 s for its end."""
        if self.watchdog is not None:
            self.watchdog.stop()

    def _communicate(self) -> None:
        """Create the topics of the control loop; have conditions checked."""
        keep, listen = self.keep, self.create_subscription
        latest = QoSProfile(depth=1)
        self.efforts = publisher(self, Float64MultiArray, "~/commands", latest)
        heard = PARTS if self.states.merger else LATEST
        self.states_in = subscription(
            self, JointState, "joint_states", self._on_event, heard
        )
        self.trajectories = TrajectoryInput(self)
        poses = "multi_dof_joint_states"
        self.poses_in = keep(listen(MultiDOFJointState, poses, self._on_poses, LATEST))
        self.every_idle(LOOK, self._look)
        self.motion_topics = MotionTopics(self)

    def _guard_refusal(self, t: float) -> str | None:
        """Return why the guard forbids an activation at `t` [s, monotonic], or None."""
        return self.guard_link.refusal(t) if self.guard_link.required else None

    def _on_change_state(self, request: Any, response: Any) -> Any:
        """Serve a change_state request; PENDING while it has to wait for the guard."""
        return self.activation.serve(request, response, super()._on_change_state)

    def activate(self) -> bool:
        """Activate the node, or start to wait for the guard; return False on failure.

        If the wait starts, True is returned at once, and the node is still inactive.
        """
        return self.activation.wait(self.trigger_activate) or super().activate()

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Activate the node; log and return FAILURE if a required guard forbids it.

        A refusal is also published on /diagnostics. An exception of `activated` is
        logged, and ERROR is returned.
        """
        refusal = self.activation.refused(time.monotonic())
        if refusal is not None:
            self.get_logger().error(f"cannot activate: {refusal}")
            self.diagnose()
            return TransitionCallbackReturn.FAILURE
        return super().on_activate(state)

    def activated(self) -> None:
        """Restart the controller, enable torque, and start the watchdog thread.

        Stops and references are cleared; the robot holds its position once the first
        valid states have come. An emergency stop called while the node was inactive is
        not cleared: it is in force in this activation, and the next one ends it. Memory
        lock, CPUs and priorities are set as the parameters say.
        """
        if not self.stopped_inactive:
            self.controller.reset_stop()
        self.stopped_inactive = False
        self.controller.begin()
        self.states.restart()
        self.controller.enabled = True
        self.guard_stop.begin(time.monotonic())
        timeout = self.value("state_timeout")
        period, log = period_of(timeout), self.get_logger()
        self.hang = Hang(self.callbacks, timeout, period, self._say_hang, log.info)
        self.watchdog = Watchdog(period, self._watch, log.error)
        self.watchdog.start()
        realtime.steady(self, self.watchdog.native_id or 0)

    def wind_down(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Stop as parameter on_shutdown says; wait until the effort is zero.

        The wait takes at most stop_time. There is no stop and no wait if the node is
        inactive, if on_shutdown is "zero", if no state has come, or if torque is
        disabled. During the wait, joint states and the services ~/estop and ~/enable
        are served here, since the executor has stopped or has called this function. An
        activation that waits for the guard is ended as failed.

        Args:
            interrupted: Polled during the wait; True ends the wait at once.
        """
        controller = self.controller
        self.activation.end()
        if not self.active:
            return
        rules = controller.rules
        moved = controller.seen is not None and controller.enabled
        if rules.on_shutdown == "zero" or not moved:
            return
        controller.shut_down(time.monotonic())
        until, wait = time.monotonic() + rules.stop_time, threading.Event()
        while time.monotonic() < until and controller.stopped.kind != "zero":
            if interrupted():
                return
            self.callbacks.count += 1  # the watchdog must see no hang here
            for service in self.switches:
                answer_waiting(service)
            with self.states_in.handle:
                taken = self.states_in.handle.take_message(JointState, False)
            if taken is None:
                wait.wait(POLL)
            else:
                self._on_state(taken[0])

    def send_final_command(self) -> None:
        """Stop the watchdog, send zero effort, discard pending ones, abort all goals.

        If the node is not configured, only the watchdog is stopped.
        """
        self._end_watchdog()
        if self.configured:
            self.send_zero()
            self.goals.end_all("the controller was deactivated")

    def send_zero(self) -> None:
        """Publish zero effort and close the gate, which discards pending efforts.

        The node must be configured.
        """
        zero = self.controller.final_torque()
        self.controller.safety.gate.close(lambda: self._send(zero))

    def wait_for_delivery(self) -> None:
        """Wait up to 1 s until reliable subscribers have the zero effort.

        A missing acknowledgement is logged. Does nothing if the node is not configured.
        """
        if self.configured:
            wait_until_acknowledged(self, (self.efforts,))

    # ---- parameters

    def check_change(self, values: dict[str, Any]) -> None:
        """Check gains, timeouts and the mode's parameters, with the unchanged ones.

        An unconfigured node accepts all values here.

        Raises:
            SettingError: An integral gain lacks its clamp, cmd_timeout is not valid for
                constraints.goal_time, a gain is not valid for the period of the states,
                or a parameter of the mode is not valid.
        """
        if not self.configured:
            return

        def value(name: str) -> Any:
            return values.get(name, self.value(name))

        for joint in self.controller.model.joint_names:
            name, clamp = f"gains.{joint}.i", f"gains.{joint}.i_clamp"
            if value(name) > 0 and not value(clamp) > 0:
                raise dyn.SettingError(f"{name} needs {clamp} > 0", name)
        command_timeout(value)
        if any(name.startswith("gains.") for name in values):
            joints = self.controller.model.joint_names
            self.controller.check_gains(**gains(value, joints))
        of_mode = self._of_mode(values)
        if of_mode:
            self.controller.check_parameters(of_mode)

    def changed(self, values: dict[str, Any]) -> None:
        """Apply changed gains, large_error and parameters of the mode, if configured.

        Gains that have become invalid for the period of the states since the check are
        not applied, and a refusal is logged.
        """
        if not self.configured:
            return

        def value(name: str) -> Any:
            return values.get(name, self.value(name))

        if any(name.startswith("gains.") for name in values):
            joints = self.controller.model.joint_names
            try:
                self.controller.set_gains(**gains(value, joints))
            except dyn.SettingError as error:  # the period has changed since the check
                self.refuse("gains not applied", str(error))
        of_mode = self._of_mode(values)
        if of_mode:
            self.controller.set_parameters(of_mode)
        self.health.large_error = value("large_error")

    def _of_mode(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the entries that are parameters of the controller's mode, plain."""
        names = self.controller.parameters
        return {name: plain(x) for name, x in values.items() if name in names}

    # ---- states and silence

    @property
    def simulated(self) -> bool:
        """Whether the node's clock follows simulated time."""
        clock: Any = self.get_clock()
        return bool(clock.ros_time_is_active)

    def _simulated_time(self) -> float | None:
        """Return the simulated time [s]; None if time is not simulated."""
        return self.reference_time(0.0) if self.simulated else None

    def reference_time(self, t: float) -> float:
        """Return the time of trajectories [s]: simulated time if active, else `t`.

        Args:
            t: Steady time, time.monotonic() [s]; it does not jump when the system time
                is set.
        """
        return self.get_clock().now().nanoseconds * 1e-9 if self.simulated else t

    def _on_event(self, message: JointState) -> None:
        """Answer a joint state; skip it if answers would starve other callbacks."""
        started = time.monotonic()
        if not self.states.rests(started):
            self._on_state(message)
            self.states.answered(started, time.monotonic())

    def _on_state(self, message: JointState) -> None:
        """Compute and publish the effort for a joint state; do nothing while inactive.

        An invalid state is refused and counted; any other exception stops the robot
        with zero effort until the next activation. What follows an answer, even one
        without an effort, is left out after a refusal or an exception.
        """
        if not self.session.active:
            return
        started = time.monotonic()
        try:
            state = self.states.read(started, message)
            if state is None:  # other joints, or an incomplete state
                return
            message, q, qd, stamp, t = state
            clock = self.get_clock().now().nanoseconds * 1e-9
            now = clock if self.simulated else started
            tau = self.controller.update(t, q, qd, stamp, now, clock or None)
            self._answer(t, tau)
        except dyn.DynError as error:
            self.report.refused(started, str(error))
            self.refuse("joint state refused", str(error))
            return
        except Exception as error:  # a failure of the control law stops the robot
            self._stop_failed(started, error)
            return
        self.report.answered(started, time.monotonic())
        for see in self.after_answers:
            self.callbacks.attempt(see, message, tau)
        if self.worker.ready:
            self.worker.deliver()
        self.session.idle.after_answer()

    def _answer(self, started: float, tau: np.ndarray | None) -> None:
        """Publish an effort, unless its state, received at `started`, is too old now.

        A state older than state_timeout means that the process was suspended, which a
        guard may have noticed. The gate discards an effort computed before a stop.
        """
        safety, rules = self.controller.safety, self.controller.rules
        if tau is not None and time.monotonic() - started <= rules.state_timeout:
            safety.gate.send(safety.ticket, self._send, tau)

    def _stop_failed(self, t: float, error: Exception) -> None:
        """Log an exception, and stop with zero effort until the next activation."""
        reason = self.callbacks.failed(FAULT, error)
        self.controller.safety.stop(t, "violation", "zero", reason)
        self.send_zero()

    def _send(self, tau: np.ndarray) -> None:
        """Publish a checked effort, (nv,) [N·m | N]; the lock of the gate is held."""
        self.command.data = tau.tolist()
        self.efforts.publish(self.command)

    def _watch(self, t: float) -> None:
        """Look for silence of the states, then for a hang; called by the watchdog.

        In silence the effort of on_stale is published; a hang is only reported.
        """
        if self.active:
            self.controller.guard(t, self._send)
            self.hang.look(t)

    def _say_hang(self, sentence: str) -> None:
        """Log and publish an ERROR on /diagnostics; called by the watchdog's thread."""
        rule = self.controller.rules.on_stale
        sentence = f"{sentence}; on_stale ({rule}) is in force"
        self.get_logger().error(sentence)
        self.publish_status(ERROR, sentence, {})

    def _on_poses(self, message: MultiDOFJointState) -> None:
        """Record up to three joints that this node does not control, for a warning."""
        if message.joint_names:
            self.report.see_others(time.monotonic(), message.joint_names[:3])

    def _look(self) -> None:
        """Log conditions that begin or end; diagnose if the level has changed."""
        if self.active:
            level = self.report.log_changes(time.monotonic())
            self.diagnose_change(level)

    # ---- services and diagnostics

    def _on_enable(self, request: Any, response: Any) -> Any:
        """Serve ~/enable: enable or disable torque.

        Enabling is refused during a stop, which only a new activation ends; it drops
        the trajectories of a disabled controller. Disabling is accepted during a stop,
        too, and lasts until the next enabling or activation.
        """
        response.success = False
        if not self.configured:
            response.message = "not configured: no effort is sent"
            return response
        if request.data and self.controller.stopped is not None:
            response.message = self.controller.idle
            return response
        if request.data and not self.controller.enabled:
            self.controller.reset("dropped: disabled")
        self.controller.enabled = request.data
        response.success = True
        response.message = "enabled" if request.data else "disabled: effort is zero"
        return response

    def _on_estop(self, _: Any, response: Any) -> Any:
        """Serve ~/estop: stop as parameter on_estop says, until the next activation.

        A stop in force that is as strong or stronger remains. If the node is inactive
        or unconfigured, the stop applies in the next activation and ends with the one
        after it.
        """
        controller, self.stopped_inactive = self.controller, not self.active
        response.success = True
        if self.configured:
            controller.estop(time.monotonic(), "~/estop")
            kind = controller.stopped.kind
            if kind == "zero":
                self.send_zero()
        else:
            kind = self.value("on_estop")
        said = {"zero": "effort is zero", "ramp": "braking, then zero"}
        message = said.get(kind, "holding the position")
        if not self.active:
            message = f"the next activation begins with the stop '{kind}'"
        response.message = f"stopped: {message}"
        return response

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics of a configured node.

        They are those of Report.status.
        """
        return self.report.status(time.monotonic())


def answer_waiting(service: Any) -> None:
    """Serve one queued request of a service without an executor, if there is one."""
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    if header is not None:
        answer = service.callback(request, service.srv_type.Response())
        service.send_response(answer, header)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or SIGHUP; return 0, or 1 after a failure.

    A failure is reported: see runtime.run.

    Args:
        args: ROS arguments; None: the arguments of the command line.
    """
    return runtime.run(ComputedTorqueNode, args)


if __name__ == "__main__":
    sys.exit(main())
