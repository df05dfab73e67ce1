"""Node `guard`: watches a controller's efforts from a process of its own.

It is no certified safety part: see docs/safety.md.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool, Float64MultiArray, MultiArrayDimension
from std_srvs.srv import Trigger

import dyn_core as dyn
from dyn_core.control.safety.guard_link import BEAT
from dyn_core.control.safety.supervision import Supervisor
from ros_nodes.base.node import LATCHED
from ros_nodes.base.parameter_node import TableNode
from ros_nodes.base.qos import wait_until_acknowledged, warn_of_idle
from ros_nodes.graphs import EFFORTS, GUARD
from ros_nodes.messages.guard_messages import BEATS, TOPIC, beat_message
from ros_nodes.parameter_tables.guard_parameters import GUARD_FIELDS
from ros_nodes.running import runtime

REPORT = 0.05  # longest delay of a log message [s]


class GuardNode(TableNode):
    """Sends zero effort if a controller falls silent while its last effort is not 0.

    The rules of the supervision are those of Supervisor in dyn_core.control.safety. The
    node watches efforts as Float64MultiArray, which computed_torque sends; efforts that
    another controller sends as JointState are not watched, and the log says so. Its own
    zero efforts have the guard's name as label of their layout: the guard, and nodes
    that count publishers, can distinguish them from efforts of the controller.

    Beats are status messages, sent every 0.05 s, by which controllers see that the
    guard runs, and whether it has stopped the robot; `latch` publishes them.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.supervisor = Supervisor()
        self.stopped: Any = None  # publisher of ~/stopped, for operators
        self.latch: Any = None  # publisher of the beats, for controllers
        super().__init__(GUARD.executable, GUARD_FIELDS, **kwargs)
        try:
            self._check_names()
        except dyn.SettingError:
            super().destroy_node()  # not left to the garbage collector
            raise
        self.zero = Float64MultiArray()
        self._reported: str | None = None
        self._announced: bool | None = None
        self._diagnosed = -float("inf")
        self._changed = threading.Condition(threading.RLock())
        self._ended = False
        self._next_beat: float | None = 0.0  # time of the next beat [s]; None: no more
        self._fault: Exception | None = None
        self._communicate()
        warn_of_idle(self)
        self._announce()
        self._watcher = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._watcher.start()
        self.get_logger().info(
            f"watching {self.efforts.topic_name} (Float64MultiArray); efforts that are"
            " sent as JointState are not watched"
        )

    def _communicate(self) -> None:
        """Create the topics, the services ~/reset and ~/estop, and the timer."""
        latest = QoSProfile(depth=1)
        self.efforts = self.create_publisher(Float64MultiArray, EFFORTS, latest)
        self.stopped = self.create_publisher(Bool, "~/stopped", LATCHED)
        self.latch = self.create_publisher(DiagnosticStatus, f"~/{TOPIC}", BEATS)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # Deep: the guard's own zeros must not replace efforts of the controller.
        self.create_subscription(Float64MultiArray, EFFORTS, self._on_effort, 10)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/estop", self._on_estop)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(REPORT, self._report, clock=steady)

    def changed(self, values: dict[str, Any]) -> None:
        """Set the supervisor's timeout to a new effort_timeout."""
        if "effort_timeout" in values:
            self.supervisor.timeout = values["effort_timeout"]

    # ---- supervision

    def _on_effort(self, message: Float64MultiArray) -> None:
        """Process an effort of the controller; answer with zero while stopped.

        A zero or empty effort is not answered; one that is not finite stops the robot.
        The watching thread is woken if it waits without an end.
        """
        if any(row.label == GUARD.executable for row in message.layout.dim):
            return
        with self._changed:
            waits, before = self.supervisor.wait(0.0) is None, self.supervisor.stopped
            if self.supervisor.hear(time.monotonic(), message.data):
                self._send_zero()
            if before != self.supervisor.stopped:
                self._announce()
            if waits:
                self._changed.notify()

    def _watch(self) -> None:
        """Stop the robot on silence, send zero effort while it is stopped, send beats.

        It runs in a thread of its own, so that neither services nor logs delay it.
        `_report` raises its exception again, which ends the node.
        """
        try:
            with self._changed:
                while not self._ended:
                    if self.supervisor.check(time.monotonic()):
                        self._send_zero()
                        self._announce()
                    self._beat()
                    self._changed.wait(self._pause())
        except Exception as error:
            self._fault = error

    def _send_zero(self) -> None:
        """Publish zero for each joint of the last effort; nothing before the first."""
        n = self.supervisor.size
        if n == 0:
            return
        if len(self.zero.data) != n:
            row = MultiArrayDimension(label=GUARD.executable, size=n, stride=n)
            self.zero.layout.dim = [row]
            self.zero.data = [0.0] * n
        self.efforts.publish(self.zero)

    def _beat(self) -> None:
        """Publish a beat if one is due, but none after the last beat."""
        now = time.monotonic()
        if self._next_beat is not None and now >= self._next_beat:
            self._next_beat = now + BEAT
            self.latch.publish(beat_message(self.supervisor.beat()))

    def _pause(self) -> float | None:
        """Return the time until a check or beat is due, >= 0 [s]; None: neither is."""
        now = time.monotonic()
        check, beat = self.supervisor.wait(now), self._next_beat
        if beat is None or check == 0.0:
            return check
        return min(max(0.0, beat - now), BEAT if check is None else check)

    def _announce(self) -> None:
        """Publish ~/stopped, and a beat, if the robot has been stopped or released."""
        stopped = self.supervisor.stopped is not None
        if stopped == self._announced:
            return
        self._announced = stopped
        self.stopped.publish(Bool(data=stopped))
        if self._next_beat is not None:
            self._next_beat = 0.0
            self._beat()

    def _stop(self, reason: str) -> None:
        """Stop the robot with zero effort, and announce it; a first reason remains."""
        with self._changed:
            self.supervisor.stop(reason)
            self._send_zero()
            self._announce()
            self._changed.notify()

    def _on_estop(self, _: Any, response: Any) -> Any:
        """Serve ~/estop: stop until a reset; return `response`, success True."""
        self._stop("~/estop was called")
        response.success, response.message = True, "stopped: effort is zero"
        return response

    def _on_reset(self, _: Any, response: Any) -> Any:
        """Serve ~/reset: end a stop, unless the controller still sends effort."""
        with self._changed:
            try:
                self.supervisor.reset(time.monotonic())
            except dyn.SettingError as error:
                response.success, response.message = False, str(error)
                return response
            self._announce()
        response.success, response.message = True, "the controller may drive"
        return response

    # ---- end

    def wind_down(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Do nothing: a guard cannot bring a robot to rest."""

    def send_final_command(self) -> None:
        """Send the last beat; before it, stop a robot that would move on unsupervised.

        The robot is stopped, with zero effort, if the controller's last effort was not
        zero or a stop is in force. The last beat is sent whatever fails before it.
        """
        try:
            if self.supervisor.stands or self.supervisor.stopped is not None:
                self._stop("the guard ends while torque stands")
                self._report()
        finally:
            with self._changed:
                self._next_beat = None
                self.latch.publish(beat_message(self.supervisor.beat(ends=True)))

    def wait_for_delivery(self) -> None:
        """Wait up to 1 s until reliable subscribers have the last beat and effort."""
        wait_until_acknowledged(self, (self.latch, self.efforts))

    def destroy_node(self) -> None:
        """End the watching thread, waiting up to 1 s for it; then destroy the node."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._watcher.join(1.0)
        super().destroy_node()

    # ---- log and diagnostics

    def _report(self) -> None:
        """Log a new stop or reset; publish diagnostics then and once per period."""
        if self._fault is not None:
            raise self._fault
        reason, now = self.supervisor.stopped, time.monotonic()
        if reason != self._reported:
            self._reported = reason
            if reason is None:
                self.get_logger().info("reset: the controller may drive")
            else:
                self.get_logger().error(f"stopped until ~/reset is called: {reason}")
        elif now - self._diagnosed < self.value("diagnostic_updater.period"):
            return
        self._diagnosed = now
        self._diagnose()

    def status(self) -> tuple[bytes, str]:
        """Return level and message: ERROR in a stop, STALE before efforts, or OK."""
        supervisor = self.supervisor
        if supervisor.stopped is not None:
            return DiagnosticStatus.ERROR, f"stopped: {supervisor.stopped}"
        if not supervisor.size:
            return DiagnosticStatus.STALE, "no effort yet"
        doing = "torque stands" if supervisor.stands else "effort is zero"
        return DiagnosticStatus.OK, f"watching: {doing}"

    def _diagnose(self) -> None:
        """Publish the status, the effort timeout and the counters on /diagnostics."""
        level, message = self.status()
        status = DiagnosticStatus(level=level, message=message, hardware_id="none")
        name = self.get_fully_qualified_name().removeprefix("/")
        status.name = f"{name}: {type(self).__name__}"
        values = {"effort timeout [s]": self.supervisor.timeout}
        values |= self.supervisor.counters
        status.values = [KeyValue(key=k, value=str(v)) for k, v in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self.diagnostics.publish(array)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or SIGHUP; return 0, or 1 after a failure.

    A failure is reported: see runtime.run.

    Args:
        args: ROS arguments; None: the arguments of the command line.
    """
    return runtime.run(GuardNode, args)


if __name__ == "__main__":
    sys.exit(main())
