"""Goals of the controller's node: ~/follow_joint_trajectory, and constraints.

The action exists if control_msgs is installed; the constraints also hold for
trajectories of the topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse
from rclpy.type_support import check_for_type_support
from rosidl_generator_py.import_type_support_impl import UnsupportedTypeSupport

from dyn_core.control import Trajectory
from dyn_core.control.reference.goal_requests import (
    GoalCode,
    TrajectoryRows,
    goal_trajectory,
)
from dyn_core.control.reference.goals import GoalOutcome, GoalTracker
from dyn_core.errors import GoalError
from ros_nodes.base.parameter_node import SERVICES
from ros_nodes.controller.goal_service import GoalService
from ros_nodes.parameter_tables.goal_parameters import (
    command_timeout,
    constraint_fields,
    tolerances,
)

NAME = "~/follow_joint_trajectory"
RESULTS = 0.02  # period at which results are sent [s]
VIOLATIONS = (GoalCode.PATH_TOLERANCE_VIOLATED, GoalCode.GOAL_TOLERANCE_VIOLATED)


class CycleActionServer(ActionServer):
    """An action server whose goals are advanced by control cycles, not by a coroutine.

    The executor would poll a task that waits for the end of a goal in each cycle.
    """

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Run `execute_callback`, which ends a goal, in the executor, unless None."""
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)

    def send_result(self, goal_handle: Any, result: Any) -> None:
        """Send the result of a goal; its handle is already in its final state."""
        self.notify_execute(goal_handle, lambda _: result)


def action_type() -> Any:
    """Return the type FollowJointTrajectory; None if control_msgs cannot be loaded."""
    try:
        from control_msgs.action import FollowJointTrajectory

        check_for_type_support(FollowJointTrajectory)
    except (ImportError, UnsupportedTypeSupport):  # its shared libraries may be missing
        return None
    return FollowJointTrajectory


def make_server(node: Any, action: Any) -> CycleActionServer:
    """Return a server of ~/follow_joint_trajectory, which passes goals to node.goals.

    Queues are deep: the client of a lost request would wait forever.
    """
    attempt = node.callbacks.attempt

    def accept(handle: Any) -> None:
        """Pass a goal's handle to the goal service of the present configuration."""
        attempt(node.goals.service.accept, handle)

    def cancel(handle: Any) -> CancelResponse:
        """Cancel the goal of a handle; REJECT if it is unknown, or canceling fails."""
        known = attempt(node.goals.service.cancel, handle)
        return CancelResponse.ACCEPT if known else CancelResponse.REJECT

    return CycleActionServer(
        node,
        action,
        NAME,
        lambda handle: None,
        handle_accepted_callback=accept,
        cancel_callback=cancel,
        goal_service_qos_profile=SERVICES,
        result_service_qos_profile=SERVICES,
        cancel_service_qos_profile=SERVICES,
    )


class TrajectoryGoals:
    """Goals of a ComputedTorqueNode, from topic and action; an extension of the node.

    The action server exists as long as the node, so that goals from before a clean-up
    get their results. The constructor declares the constraints, sets node.goals, and
    makes node.action_server if there is none yet and control_msgs can be loaded.
    """

    def __init__(self, node: Any) -> None:
        self.node, self.controller = node, node.controller
        self.joints = node.controller.model.joint_names
        node.declare(constraint_fields(self.joints))
        chosen = tolerances(self.joints, node.value)
        self.tracker = GoalTracker(self.controller, chosen)
        self.tracker.cmd_timeout = command_timeout(node.value)
        node.goals, action = self, action_type()
        if action is None:
            node.get_logger().info(
                f"no action {NAME}: control_msgs cannot be loaded; trajectories come by"
                " ~/joint_trajectory"
            )
        elif node.action_server is None:
            node.action_server = make_server(node, action)
        self.service = GoalService(
            self.tracker,
            action,
            wall=lambda: node.get_clock().now().nanoseconds * 1e-9,
            now=lambda: node.reference_time(time.monotonic()),
            settings=self._settings,
            finish=self._finish,
            prepare=self._prepare,
            refusal=lambda: (
                self.controller.refusal
                if node.active
                else "the controller is not active"
            ),
            log=self._log,
            counters=self.controller.counters,
        )
        self.controller.observers.append(self)
        node.session.at_close(lambda: self.end_all("the controller was cleaned up"))
        node.every(RESULTS, self._deliver)
        node.every(1.0 / node.value("action_monitor_rate"), self._report)

    # ---- the cycle

    def restart(self) -> None:
        """Do nothing: the tracker itself detects dropped trajectories."""

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Advance the goals by a cycle; an observer of the controller.

        The arguments are ignored; the time is controller.seen.
        """
        self.service.observe(self.controller.seen)
        return None

    def _deliver(self) -> None:
        """Advance the goals, send results of ended ones; while inactive, abort all."""
        self.tracker.cmd_timeout = self.node.value("cmd_timeout")
        if self.node.active:
            self.service.observe(time.monotonic())
            self.service.deliver()
        else:
            self.end_all("the controller is not active any more")

    def _report(self) -> None:
        """Publish feedback if the node is active and has goals."""
        if self.node.active and self.service.handles:
            self.service.report(self.node.get_clock().now().to_msg())

    def end_all(self, reason: str) -> None:
        """Abort every goal with a reason for the clients; send the results."""
        self.service.end_all(reason)

    # ---- trajectories

    def trajectory(self, wire: Any, **settings: Any) -> Trajectory:
        """Return the checked trajectory of a message of the topic; in any thread.

        With allow_partial_joints_goal, joints not in the message keep their positions.
        """
        if not self.node.value("allow_partial_joints_goal"):
            arrays, effort = wire.arrays, wire.efforts
            return self.controller.make_trajectory(*arrays, effort=effort, **settings)
        rows = TrajectoryRows(**wire.arrays._asdict(), effort=wire.efforts)
        wait = 0.0 if wire.stamp is None else wire.stamp - self.service.wall()
        return goal_trajectory(self.controller, rows, wait, True, **settings)

    def follow(self, trajectory: Trajectory, start: float) -> None:
        """Follow a trajectory of the topic, checked against the present constraints.

        `start` is its time zero, as node.reference_time [s]. A GoalError refuses it.
        """
        chosen = tolerances(self.joints, self.node.value)
        self.tracker.accept(trajectory, trajectory, start, chosen)

    def _settings(self) -> dict[str, Any]:
        """Return arguments of goal_trajectory; set the tracker's tolerances, too."""
        value = self.node.value
        self.tracker.tolerances = tolerances(self.joints, value)
        return {
            "partial": value("allow_partial_joints_goal"),
            "method": value("interpolation_method"),
            "moving_end": value("allow_nonzero_velocity_at_trajectory_end"),
        }

    def _prepare(self, compute: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Call `compute` in the worker, then `done` in the control thread.

        `done` gets a DynError if `compute` failed, the controller was stopped
        meanwhile, or a newer goal has come. It is not called once the node is cleaned
        up.
        """
        gate = self.controller.safety.gate
        ticket = gate.ticket()

        def take(made: Any) -> None:
            if ticket != gate.ticket():
                made = GoalError("the controller stopped while the goal was read")
            done(made)

        def superseded() -> None:
            done(GoalError("a newer goal came while this one was read"))

        self.node.session.submit("goal", compute, take, superseded)

    def _finish(self, handle: Any, result: Any) -> None:
        """Send the result of a goal."""
        if self.node.action_server is not None:
            self.node.action_server.send_result(handle, result)

    def _log(self, outcome: GoalOutcome, asked: bool) -> None:
        """Log the end of a goal, or, if no client asked, only a violated constraint."""
        log = self.node.get_logger()
        if outcome.state == "aborted" and (asked or outcome.code in VIOLATIONS):
            code = outcome.code.name
            log.warning(f"trajectory aborted ({code}): {outcome.sentence}")
        elif asked:
            log.info(f"goal {outcome.state}: {outcome.sentence}")
