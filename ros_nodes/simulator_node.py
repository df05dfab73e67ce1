"""Node `simulator`: subscribes to effort commands, publishes joint states.

The simulated plant is a robot, a robot with contacts, or a planar chain.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

import dyn_core as dyn
from dyn_core.errors import one_line
from dyn_core.simulation.pacing import Pace
from ros_nodes.base.diagnostics import ERROR, OK, WARN
from ros_nodes.base.node import LATCHED, RobotNode
from ros_nodes.parameter_tables.simulator_parameters import SIMULATOR
from ros_nodes.running import realtime as realtime
from ros_nodes.running import runtime
from ros_nodes.simulator.plant_parameters import BuiltPlant, build_plant
from ros_nodes.simulator.plant_topics import NO_COMMAND, PlantTopics
from ros_nodes.simulator.scene_topics import SceneTopics
from ros_nodes.simulator.simulator_status import Notices, pace_values, pace_warnings

NO_CLOCK = (
    "use_sim_time is set and no /clock comes: stamps are zero; set publish_clock, or"
    " start the source of /clock"
)


class SimulatorNode(RobotNode):
    """Simulates a robot or a planar chain at a fixed rate.

    A step that fails pauses the simulation. After a DynError the plant is at its last
    good state; after any other exception its state is not restored.

    Attributes (set when configured, except robot, notices and recent_warnings):
        robot: The plant of dyn_core.simulation; None before the first configure.
        period: Duration of a cycle [s].
        steps: Number of simulated periods, monotonic across resets.
        pace: Schedule of the periods in steady time.
        fault: Reason, after ": ", if the last step failed; else empty.
        notices: Logs warnings when they begin and end.
        recent_warnings: Warnings of the last status, by kind.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.robot: Any = None  # the plant; None before configure
        super().__init__("simulator", SIMULATOR, **kwargs)
        log = self.get_logger()
        self.notices = Notices(log.warning, log.info)
        self.recent_warnings: dict[str, str] = {}  # warnings of the last status

    def build(self) -> None:
        """Build the plant, its topics, services and timer; count steps from 0."""
        self.period = 1.0 / self.value("update_rate")
        built = build_plant(self, self.period)
        self.robot = built.plant
        self.robot.counters = self.counters
        self._communicate(built)
        self.joints = list(self.topics.channels.joints)
        self.model = built.model
        # Nodes that follow /clock have no other time: no cycle is caught up or skipped.
        most = 0 if self.value("publish_clock") else self.value("max_catch_up")
        self.pace = Pace(self.period, most)
        self.fault = ""  # reason of the last failed step
        self.steps = 0  # simulated periods, monotonic across resets

    @property
    def elapsed(self) -> float:
        """Simulated time since configure, not set back by ~/reset [s]."""
        return self.steps * self.period

    def stamp(self) -> Any:
        """Return the time for a header; simulated if the node publishes /clock."""
        stamp = super().stamp()
        if self.configured and self.value_of_clock:
            stamp.sec, stamp.nanosec = divmod(round(self.elapsed * 1e9), 10**9)
        return stamp

    def ros_time(self) -> float:
        """Return the time of stamps [s]; simulated if the node publishes /clock."""
        if self.value_of_clock:
            return self.elapsed
        return float(self.get_clock().now().nanoseconds * 1e-9)

    def waits_for_robot(self) -> bool:
        """Return whether no chain, parameter or topic has provided a robot."""
        return not self.value("chain_file") and super().waits_for_robot()

    def _on_description(self, message: String) -> None:
        """Read a robot description from the topic; ignored if chain_file is set."""
        if not self.value("chain_file"):
            super()._on_description(message)

    def _communicate(self, built: BuiltPlant) -> None:
        """Create the communication of a plant, and the timer of the cycles."""
        keep = self.keep
        self.clock: Any = None
        if self.value("publish_clock"):
            self.clock = keep(self.create_publisher(Clock, "/clock", 1))
        self.topics = PlantTopics(self, built.plant, built.unlimited, self.ros_time)
        self.commands = self.topics.commands
        self._publish_description(built.description)
        if isinstance(built.model, dyn.Model):
            SceneTopics(self, built.plant, self.topics.channels)
        keep(self.create_service(Trigger, "~/reset", self._on_reset))
        keep(self.create_service(SetBool, "~/pause", self._on_pause))
        keep(self.create_service(Trigger, "~/step", self._on_step))
        keep(self.create_timer(self.period, self._cycle, clock=self.steady))

    def _publish_description(self, urdf: str) -> None:
        """Publish a URDF, latched, unless it is empty or this is not wanted."""
        if urdf and self.value("publish_description"):
            topic = self.create_publisher(String, "robot_description", LATCHED)
            self.keep(topic).publish(String(data=urdf))

    def activated(self) -> None:
        """Start the schedule of cycles anew, and restart the input of commands."""
        realtime.steady(self)
        self.pace.restart()
        self.commands.restart()

    def _cycle(self) -> None:
        """Advance by the periods that are due; publish the state, even if paused."""
        if not self.active:
            return
        now = time.monotonic()
        self.commands.check_gap(now)
        try:
            self._catch_up(now)
        except dyn.DynError as error:
            self.get_logger().error(
                f"step failed, paused at the last good state: {error}"
            )
            self.diagnose()
        self._publish()

    def _catch_up(self, now: float) -> None:
        """Advance by the due periods, at least one; stop after `period` seconds.

        Periods that are left then are due in the next cycle; those beyond max_catch_up
        (0 if the node publishes /clock) are lost. While paused, the schedule starts
        anew.
        """
        if self.robot.paused:
            self.pace.restart()
            return
        for k in range(self.pace.owed(now)):
            if k and time.monotonic() - now > self.period:
                break
            self._move(now)
            self.pace.moved()

    def _move(self, now: float) -> None:
        """Advance by one period, unless paused; DynError: it failed, and is paused."""
        if self.robot.paused:
            return
        try:
            self.robot.advance(self.elapsed, now)
        except Exception as error:  # the plant itself pauses on a DynError only
            self.robot.paused = self.robot.failed = True
            self.fault = f": {error}"
            if isinstance(error, dyn.DynError):
                raise
            self.fault = one_line(f": {type(error).__name__}: {error}")
            raise dyn.DynError(self.fault.removeprefix(": ")) from error
        self.steps, self.fault = self.steps + 1, ""

    def _publish(self) -> None:
        """Publish /clock, if publish_clock is set, and the state of the plant."""
        stamp = self.stamp()
        if self.value_of_clock:
            self.clock.publish(Clock(clock=stamp))
        self.topics.publish(stamp)

    @property
    def value_of_clock(self) -> bool:
        """Whether /clock is published; the node must have been configured once."""
        return self.clock is not None

    def _on_reset(self, _: Any, response: Any) -> Any:
        """Serve ~/reset: return to the initial state.

        Stamps continue; commands are forgotten, a payload stays. Only the pause after a
        failed step ends, not one of ~/pause or ~/step.
        """
        self.robot.reset()
        self.fault = ""
        state = "paused (~/pause)" if self.robot.paused else "running"
        response.success, response.message = True, f"back at the start, {state}"
        return response

    def _pause(self, paused: bool) -> None:
        """Pause if `paused`, else resume; ~/reset then does not end the pause."""
        self.robot.paused, self.robot.failed = paused, False

    def _on_pause(self, request: Any, response: Any) -> Any:
        """Serve ~/pause: pause if request.data, else resume."""
        self._pause(request.data)
        response.success = True
        response.message = "paused" if request.data else "running"
        return response

    def _on_step(self, _: Any, response: Any) -> Any:
        """Serve ~/step: advance by one period while paused; the pause goes on."""
        response.success = False
        if not (self.active and self.robot.paused):
            need = "pause first (~/pause)" if self.active else "activate first"
            response.message = f"no step: {need}"
            return response
        self.robot.paused = False
        try:
            self._move(time.monotonic())
        except dyn.DynError as error:
            response.message = f"step failed: {error}"
            return response
        finally:
            self._pause(True)
        response.success, response.message = True, f"moved by {self.period:g} s"
        if self.robot.braked:
            response.message += "; the brakes hold the robot until the first command"
        return response

    def warnings(self) -> dict[str, str]:
        """Return the present warnings of a configured node: a sentence by kind."""
        share = self.value("warning_share")
        plant = self.topics.warning(time.monotonic())
        sim_time = self.get_parameter("use_sim_time").value
        unset = sim_time and not self.get_clock().now().nanoseconds
        return {
            **({} if plant is None else {plant.partition(":")[0]: plant}),
            **self.commands.warnings(share),
            **pace_warnings(self.pace, self.value("warning_real_time_factor"), share),
            **({"no /clock": NO_CLOCK} if unset and not self.value_of_clock else {}),
        }

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics; set recent_warnings."""
        robot = self.robot
        warnings = self.recent_warnings = self.warnings()
        if robot.paused and self.fault:
            level = ERROR
            message = f"a step failed: paused at the last good state{self.fault}"
        elif robot.paused:
            level, message = WARN, "paused"
        else:
            level = WARN if warnings else OK
            message = "; ".join(warnings.values()) or "running"
        payload = getattr(getattr(robot, "carried", None), "payload", None)
        return (
            level,
            message,
            {
                **self.topics.channels.values(),
                "engine": robot.program.engine,
                "rate [Hz]": self.value("update_rate"),
                **pace_values(self.pace),
                "payload [kg]": 0.0 if payload is None else payload.mass,
                **self.commands.values(),
            },
        )

    def diagnose(self) -> None:
        """Publish diagnostics; if configured, log warnings that begin or end.

        A missing command is not logged before the first, nor once its sender has ended.
        """
        super().diagnose()
        if not self.configured:
            return
        warnings = dict(self.recent_warnings) if self.active else {}
        # Neither a controller that has not started nor one that has ended is a fault.
        if not (self.commands.count and any(self.commands.publishers().values())):
            warnings.pop(NO_COMMAND.partition(":")[0], None)
        self.notices.update(warnings)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or SIGHUP; return 0, or 1 after a failure.

    A failure is reported: see runtime.run.

    Args:
        args: ROS arguments; None: the arguments of the command line.
    """
    return runtime.run(SimulatorNode, args)


if __name__ == "__main__":
    sys.exit(main())
