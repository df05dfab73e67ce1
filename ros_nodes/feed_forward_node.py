"""Node `feed_forward`: adds efforts to trajectories and publishes them again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import dyn_core as dyn
from dyn_core.control.feed_forward import FeedForward
from dyn_core.control.reference.trajectory import Trajectory
from ros_nodes.base.diagnostics import OK, WARN
from ros_nodes.base.node import RobotNode
from ros_nodes.messages.goal_messages import trajectory_rows
from ros_nodes.messages.trajectory_files import instant
from ros_nodes.parameter_tables.feed_forward_parameters import FEED_FORWARD
from ros_nodes.running import runtime


class FeedForwardNode(RobotNode):
    """Publishes each trajectory again with efforts, see dyn_core.control.feed_forward.

    `passed` counts the trajectories published since configure; `excess` has sentences
    on exceeded effort limits of the last one.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.feed: Any = None  # a FeedForward; None before configure
        super().__init__("feed_forward", FEED_FORWARD, **kwargs)

    def build(self) -> None:
        """Build the robot, its compiled inverse dynamics and the communication."""
        model = self.load(root_joint="fixed")
        self.feed = FeedForward(
            model,
            inverse_dynamics=self.solver("inverse_dynamics"),
            engine=self.value("engine") or None,
            joint_friction=self.value("joint_friction"),
        )
        self.feed.program.prepare()
        self.passed = 0
        self.excess: list[str] = []
        self.output = self.keep(
            self.create_publisher(JointTrajectory, "~/joint_trajectory_out", 10)
        )
        self.keep(
            self.create_subscription(
                JointTrajectory, "~/joint_trajectory_in", self._on_trajectory, 10
            )
        )
        self.model = model

    def _on_trajectory(self, message: JointTrajectory) -> None:
        """Publish a trajectory with efforts, or refuse it and log the reason.

        An exceeded effort limit is only logged. The points of the message are replaced.
        """
        if not self.active:
            self.refuse("trajectory refused", "the node is not active")
            return
        try:
            names, times, *rows, _ = trajectory_rows(message)
            period = self.value("point_period")
            made = self.feed.trajectory(names, times, *rows, period=period)
        except dyn.DynError as error:
            self.refuse("trajectory refused", str(error))
            return
        self.excess = self.feed.excess(made.effort, names)
        for line in self.excess:
            self.refuse("effort limit exceeded", line)
        message.points = message_points(made)
        self.output.publish(message)
        self.passed += 1
        self.diagnose_change(self.status()[0])

    def status(self) -> tuple[bytes, str, dict[str, Any]]:
        """Return level, message and values for /diagnostics of a configured node."""
        values = {
            "inverse dynamics": self.feed.program.recipe.solver.name,
            "engine": self.feed.program.engine,
            "trajectories": self.passed,
        }
        if self.excess:
            return WARN, f"last trajectory: {self.excess[0]}", values
        return OK, "filling in efforts" if self.active else "inactive", values


def message_points(trajectory: Trajectory) -> list[JointTrajectoryPoint]:
    """Return the points of a trajectory as messages; what it lacks stays empty."""
    points = []
    rows = {"positions": trajectory.q, "velocities": trajectory.qd}
    rows |= {"accelerations": trajectory.qdd, "effort": trajectory.effort}
    for k, t in enumerate(trajectory.times.tolist()):
        fields = {n: x[k].tolist() for n, x in rows.items() if x is not None}
        point = JointTrajectoryPoint(**fields)
        point.time_from_start.sec, point.time_from_start.nanosec = instant(t)
        points.append(point)
    return points


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or SIGHUP; return 0, or 1 after a failure.

    A failure is reported: see runtime.run.

    Args:
        args: ROS arguments; None: the arguments of the command line.
    """
    return runtime.run(FeedForwardNode, args)


if __name__ == "__main__":
    sys.exit(main())
