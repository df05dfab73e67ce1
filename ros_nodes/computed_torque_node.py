"""The node `computed_torque`: follows trajectories, publishes effort commands."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from rclpy.duration import Duration
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.joint_limits import raised_limits
from dyn_core.control.safety.guard_link import GuardLink
from dyn_core.control.safety.health import Health
from dyn_core.errors import one_line
from ros_nodes.base.diagnostics import ERROR
from ros_nodes.base.node import RobotNode
from ros_nodes.base.qos import publisher, subscription
from ros_nodes.controller.activation import Activation
from ros_nodes.controller.controller_report import Report
from ros_nodes.controller.controller_settings import (
    controller_settings,
    gains,
    without_effect,
)
from ros_nodes.controller.guard_topics import GuardLatch
from ros_nodes.controller.motion_topics import MotionTopics
from ros_nodes.controller.payload_changes import serve_payload
from ros_nodes.controller.payload_estimation import PayloadWatch
from ros_nodes.controller.state_input import StateInput, spread_of
from ros_nodes.controller.trajectory_action import TrajectoryGoals
from ros_nodes.controller.trajectory_input import TrajectoryInput
from ros_nodes.parameter_tables.controller_parameters import (
    CONTROLLER,
    collision_fields,
    gain_fields,
    wrap_fields,
)
from ros_nodes.parameter_tables.goal_parameters import command_timeout
from ros_nodes.parameters import effort_fields
from ros_nodes.running import realtime as realtime
from ros_nodes.running import runtime
from ros_nodes.running.hanging_callbacks import Hang
from ros_nodes.running.watchdog import Watchdog, period_of

LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Deep enough that the part of one publisher does not replace that of another.
PARTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
DELIVERY = 0.2  # longest wait for the arrival of the last zero [s]
LOOK = 0.1  # period at which faults are looked for [s]
POLL = 5e-4  # wait between two looks for a state while winding down [s]
FAULT = "the control callback"


class ComputedTorqueNode(RobotNode):
    """Computed-torque control of a robot, see dyn_core.control.controller.

    Three threads: the executor's computes and publishes; the watchdog's alone answers
    silence, through the gate of the controller; the worker's converts messages.

    What else is to run in the node is a function in `extensions`: it is called with the
    node at the end of each configure. It may use `controller.observers` (each state
    with its effort; a sentence stops the robot), `controller.listeners` (what became of
    each trajectory), `trajectories.prepare` and `.follow`, `keep` for what it makes
    with rclpy, `every` and `every_idle` for what is to be done at a period,
    `conditions` and `further_values` for lines of /diagnostics, and `after_answers` for
    what sees messages when their effort is on its way. What observers and listeners
    raise stops the robot; what the others raise is logged and ends nothing.

    Attributes:
        controller: A Controller; None in state unconfigured.
        extensions: Called with the node when it is configured.
        conditions: Called with a time, each returns Conditions for /diagnostics.
        further_values: Each returns values for /diagnostics by name.
        after_answers: Called with each joint state and the effort that answers it,
            which may be None.
    """

    extensions: ClassVar[list[Callable[[Any], object]]] = [
        GuardLatch,
        TrajectoryGoals,
        PayloadWatch,
    ]

    def __init__(self, **kwargs: Any) -> None:
        self.controller: Any = None  # a Controller once configured
        self.goals: Any = None  # its TrajectoryGoals
        self.action_server: Any = None
        self.watchdog: Watchdog | None = None
        self.stopped_inactive = False  # ~/estop was called since the deactivation
        self.guard_link = GuardLink()  # a stop of a guard outlasts a clean-up
        self.guard_stop: Any = None  # a GuardStop once configured
        super().__init__("computed_torque", CONTROLLER, **kwargs)
        self.activation = Activation(self, self._guard_refusal)
        # They outlive a configuration, so that an emergency stop is always answered.
        self.switches = [
            self.create_service(Trigger, "~/estop", self._on_estop),
            self.create_service(SetBool, "~/enable", self._on_enable),
        ]

    # ---- life cycle

    def build(self) -> None:
        """Build the robot, the controller and the communication."""
        model = self.load(root_joint="fixed")
        names = model.joint_names
        self.declare(gain_fields(names))
        self.declare(wrap_fields(names, [model.joint_kind(n) for n in names]))
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
        for sentence in self.controller.untested:
            self.get_logger().warning(one_line(sentence))
        self.states = StateInput(names, spread_of(self))
        self.reader = self.states.reader
        self.command = Float64MultiArray()
        self.conditions: list[Callable[[float], Any]] = []
        self.further_values: list[Callable[[], dict[str, Any]]] = []
        self.after_answers: list[Callable[[JointState, Any], object]] = []
        self.report = Report(self)
        self._communicate()
        serve_payload(self, self.controller)
        for extend in self.extensions:
            extend(self)
        self.session.at_close(self._forget)  # before what was made above
        if self.stopped_inactive:
            self.controller.estop(time.monotonic(), "~/estop")
        self.model = model

    def _forget(self) -> None:
        """End what publishes in another thread, and the controller."""
        self._end_watchdog()
        self.controller = None

    def _end_watchdog(self) -> None:
        if self.watchdog is not None:
            self.watchdog.stop()

    def _communicate(self) -> None:
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
        """Return why a guard that is required forbids an activation, or None."""
        return self.guard_link.refusal(t) if self.guard_link.required else None

    def _on_change_state(self, request: Any, response: Any) -> Any:
        """Serve a request of a transition; an activation may wait for the guard."""
        return self.activation.serve(request, response, super()._on_change_state)

    def activate(self) -> bool:
        """Activate, or begin to wait for the guard; return False if that failed."""
        return self.activation.wait(self.trigger_activate) or super().activate()

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Activate the node, unless a guard that is required forbids it."""
        refusal = self.activation.refused(time.monotonic())
        if refusal is not None:
            self.get_logger().error(f"cannot activate: {refusal}")
            self.diagnose()
            return TransitionCallbackReturn.FAILURE
        return super().on_activate(state)

    def activated(self) -> None:
        """Hold the present position; stops, commands and references are cleared.

        A stop of the time in which the node was inactive stays, until the next time.
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
        """Stop as on_shutdown says, for stop_time; meanwhile states and stops act.

        They are taken here: the executor stands, or has called this function.
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
            self.callbacks.count += 1  # a sign of life
            for service in self.switches:
                answer_waiting(service)
            with self.states_in.handle:
                taken = self.states_in.handle.take_message(JointState, False)
            if taken is None:
                wait.wait(POLL)
            else:
                self._on_state(taken[0])

    def send_final_command(self) -> None:
        """Publish zero effort; whatever is still being computed is discarded."""
        self._end_watchdog()
        if self.configured:
            self.send_zero()
            self.goals.end_all("the controller was deactivated")

    def send_zero(self) -> None:
        """Publish zero effort; what is still being computed is discarded."""
        zero = self.controller.final_torque()
        self.controller.safety.gate.close(lambda: self._send(zero))

    def wait_for_delivery(self) -> None:
        """Wait until reliable subscribers have the zero, or for DELIVERY.

        What is in flight when its publisher is destroyed may be lost.
        """
        if self.configured:
            self.efforts.wait_for_all_acked(Duration(seconds=DELIVERY))

    # ---- parameters

    def check_change(self, values: dict[str, Any]) -> None:
        """Refuse gains and times that do not go together, or that cannot be sampled."""
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

    def changed(self, values: dict[str, Any]) -> None:
        """Apply changed gains and thresholds; not those of a robot yet to be built."""
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
        self.health.large_error = value("large_error")

    # ---- states and silence

    @property
    def simulated(self) -> bool:
        """Whether time is simulated."""
        clock: Any = self.get_clock()
        return bool(clock.ros_time_is_active)

    def _simulated_time(self) -> float | None:
        """Return the simulated time [s]; None where time is not simulated."""
        return self.reference_time(0.0) if self.simulated else None

    def reference_time(self, t: float) -> float:
        """Return the time of trajectories: simulated time, else the steady time t [s].

        The steady time does not jump where the system's time is set.
        """
        return self.get_clock().now().nanoseconds * 1e-9 if self.simulated else t

    def _on_event(self, message: JointState) -> None:
        """Answer a joint state, unless a slow answer leaves time to other callbacks."""
        started = time.monotonic()
        if not self.states.rests(started):
            self._on_state(message)
            self.states.answered(started, time.monotonic())

    def _on_state(self, message: JointState) -> None:
        """Publish the effort for a joint state."""
        if not self.session.active:
            return
        started = time.monotonic()
        try:
            state = self.states.read(started, message)
            if state is None:  # of other joints, or a part that waits for the others
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
        except Exception as error:  # what fails to control stops
            self._stop_failed(started, error)
            return
        self.report.answered(started, time.monotonic())
        for see in self.after_answers:
            self.callbacks.attempt(see, message, tau)
        if self.worker.ready:
            self.worker.deliver()
        self.session.idle.after_answer()

    def _answer(self, started: float, tau: np.ndarray | None) -> None:
        """Send an effort that is fresh: else the process stood; a guard may know."""
        safety, rules = self.controller.safety, self.controller.rules
        if tau is not None and time.monotonic() - started <= rules.state_timeout:
            safety.gate.send(safety.ticket, self._send, tau)

    def _stop_failed(self, t: float, error: Exception) -> None:
        """Stop with zero effort, until the next activation."""
        reason = self.callbacks.failed(FAULT, error)
        self.controller.safety.stop(t, "violation", "zero", reason)
        self.send_zero()

    def _send(self, tau: np.ndarray) -> None:
        """Publish a checked effort; called under the lock of the gate."""
        self.command.data = tau.tolist()
        self.efforts.publish(self.command)

    def _watch(self, t: float) -> None:
        """Answer silence, then say why; the watchdog's thread calls it."""
        if self.active:
            self.controller.guard(t, self._send)
            self.hang.look(t)

    def _say_hang(self, sentence: str) -> None:
        """Log and publish that the executor hangs: it cannot say it itself."""
        rule = self.controller.rules.on_stale
        sentence = f"{sentence}; on_stale ({rule}) is in force"
        self.get_logger().error(sentence)
        self.publish_status(ERROR, sentence, {})

    def _on_poses(self, message: MultiDOFJointState) -> None:
        """Note that the robot has joints that are not controlled: a root that moves."""
        if message.joint_names:
            self.report.see_others(time.monotonic(), message.joint_names[:3])

    def _look(self) -> None:
        """Log what starts and what ends; publish diagnostics if the level changed."""
        if self.active:
            level = self.report.log_changes(time.monotonic())
            self.diagnose_change(level)

    # ---- services and diagnostics

    def _on_enable(self, request: Any, response: Any) -> Any:
        """Enable or disable torque; after a stop only a new activation enables it."""
        response.success = False
        if not self.configured:
            response.message = "not configured: no effort is sent"
            return response
        stop = self.controller.stopped
        if request.data and stop is not None:
            response.message = (
                f"stopped by {stop.reason}: deactivate and activate to continue"
            )
            return response
        if request.data and not self.controller.enabled:
            self.controller.reset("dropped: disabled")
        self.controller.enabled = request.data
        response.success = True
        response.message = "enabled" if request.data else "disabled: effort is zero"
        return response

    def _on_estop(self, _: Any, response: Any) -> Any:
        """Stop as on_estop says, until the next activation."""
        controller, self.stopped_inactive = self.controller, not self.active
        response.success = True
        if not self.configured:
            response.message = "stopped: the next activation will send zero effort"
            return response
        controller.estop(time.monotonic(), "~/estop")
        kind = controller.stopped.kind
        if kind == "zero":
            self.send_zero()
        said = {"zero": "effort is zero", "ramp": "braking, then zero"}
        response.message = f"stopped: {said.get(kind, 'holding the position')}"
        return response

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics."""
        return self.report.status(time.monotonic())


def answer_waiting(service: Any) -> None:
    """Serve a request that waits for a service, if there is one; no executor does."""
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    if header is not None:
        answer = service.callback(request, service.srv_type.Response())
        service.send_response(answer, header)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return runtime.run(ComputedTorqueNode, args)


if __name__ == "__main__":
    sys.exit(main())
