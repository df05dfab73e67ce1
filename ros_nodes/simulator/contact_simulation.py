"""Robots with contacts for the simulator node: world, topics and diagnostics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from geometry_msgs.msg import Transform
from geometry_msgs.msg import Wrench as WrenchMessage
from rclpy.qos import QoSProfile
from sensor_msgs.msg import MultiDOFJointState

import dyn_core as dyn
from dyn_core.model.shapes import Material
from dyn_core.validation import read_yaml
from ros_nodes.base.node import RobotNode
from ros_nodes.conversions import Wrench, contact_wrenches, joint_wrenches
from ros_nodes.simulator.simulated_plants import (
    NO_COMMAND,
    SimulatedRobot,
    refuse_options,
)

UNSOLVED = "contact not converged"  # name of the counter
RECENT = 1.0  # duration of a warning after an unsolved problem [s]
WORLD_ONLY = tuple(
    f"contact.{key}" for key in ("ground", "mu", "restitution", "erp", "margin")
)
STEP_ONLY = "step.plugin_name", "forward_dynamics.plugin_name"


class SimulatedContacts(SimulatedRobot):
    """A robot from the node's parameters, with contacts of its links.

    Topics, published at contact.publish_rate while there are subscribers:

    - ~/contact_wrenches: each contact with a force in the last period: its point and
      frame (x: normal), and the mean force on the first link in world axes.
    - ~/joint_reactions: the force through each joint on its child, in the frame of the
      child's link; not for robots with loops.

    Attributes:
        node: The simulator node.
        period: Duration of a cycle [s].
        frame: header.frame_id of ~/contact_wrenches.
        every: Period of the topics [s].
        due: Time of the next message, monotonic [s].
        trouble: Time [s] and description of the last unsolved problem, or None.
        unsolved: Number of unsolved problems so far.
        contacts, reactions: Publishers; reactions is None for robots with loops.

    Args:
        node: The simulator node.
        period: Duration of a cycle [s].

    Raises:
        DynError: The robot, the world or a parameter is not valid, or the trial step
            fails.
    """

    robot: dyn.ContactSimulator

    def __init__(self, node: RobotNode, period: float) -> None:
        super().__init__(node, period)
        self.node, self.period = node, period
        self.frame = node.value("contact.frame_id")
        self.every = 1.0 / node.value("contact.publish_rate")
        self.due = 0.0
        self.trouble: tuple[float, str] | None = None
        self.unsolved = node.counters[UNSOLVED]
        self.contacts = self._publisher(node, "~/contact_wrenches")
        self.reactions: Any = None
        if not self.model.loops:
            self.reactions = self._publisher(node, "~/joint_reactions")

    @staticmethod
    def _publisher(node: RobotNode, topic: str) -> Any:
        """Return a publisher of MultiDOFJointState that is destroyed at clean-up."""
        deep = QoSProfile(depth=10)
        return node.keep(node.create_publisher(MultiDOFJointState, topic, deep))

    def _robot(self, node: RobotNode, **settings: Any) -> dyn.ContactSimulator:
        """Return the plant in its initial state, after a trial step.

        The trial step compiles and checks everything; then state and counters are
        reset.

        Args:
            node: The simulator node.
            settings: Arguments of ContactSimulator.

        Raises:
            SettingError: A parameter of robots without contact is set.
            DynError: The world is not valid, or the trial step fails.
        """
        for name in STEP_ONLY:
            if node.value(name) != node.specs[name].default:
                raise dyn.SettingError(
                    f"{name} is for robots without contact: with contact.enabled leave"
                    " it as it is; steps are contact.stepper",
                    name,
                )
        refuse_options(node, ("step", "forward_dynamics"), "contact.enabled is true")
        robot = dyn.ContactSimulator(self.model, make_world(node), **settings)
        robot.advance(0.0)
        if robot.report is not None:
            _ = robot.program, robot.report.energy_change  # read by diagnostics
        robot.reset()
        robot.counters.clear()
        return robot

    def publish(self, stamp: Any) -> None:
        """Check the last period; publish contacts and reactions at their rate.

        Nothing is published on a topic without subscribers. Reactions that cannot be
        computed are refused, see RobotNode.refuse.

        Args:
            stamp: Time of the headers, a message.
        """
        now = time.monotonic()
        self._check_solved(now)
        if now < self.due:
            return
        self.due = now + self.every
        if self.contacts.get_subscription_count():
            wrenches = contact_wrenches(self.robot.reports, self.period)
            self.contacts.publish(_message(stamp, self.frame, wrenches))
        subscribed = (
            self.reactions is not None and self.reactions.get_subscription_count()
        )
        if subscribed and self.robot.last is not None:
            try:
                forces = self.robot.reactions(coordinates="link")
            except dyn.DynError as error:
                self.node.refuse("reactions", str(error))
                return
            wrenches = joint_wrenches(self.model, forces)
            self.reactions.publish(_message(stamp, "", wrenches))

    def _check_solved(self, now: float) -> None:
        """Store time and description of a problem not solved in the last period.

        Args:
            now: Time, monotonic [s].
        """
        count = self.robot.counters[UNSOLVED]
        if count > self.unsolved and self.robot.reports:
            unsolved_reports = [r for r in self.robot.reports if not r.converged]
            self.trouble = now, _describe((unsolved_reports or self.robot.reports)[-1])
        self.unsolved = count

    def warning(self, now: float) -> str | None:
        """Return a warning on a recently unsolved step or stale commands, or None.

        Args:
            now: Time, monotonic [s].
        """
        if self.trouble is not None and now - self.trouble[0] < RECENT:
            return self.trouble[1]
        if self.robot.counters["command stale"] and self.robot.stale(now):
            return NO_COMMAND
        return None

    def values(self) -> dict[str, Any]:
        """Return solver, stepper and results of the last steps, for /diagnostics."""
        robot, counters = self.robot, self.robot.counters
        settings = {
            "contact solver": robot.world.solver,
            "contact stepper": robot.world.stepper,
            "contact not converged": counters[UNSOLVED],
            "contact not unique": counters["contact not unique"],
            "contacts wedged": counters["contacts wedged"],
        }
        reports, last = robot.reports, robot.report
        if last is None:
            return settings
        worst = [max(r) for r in zip(*(x.residuals for x in reports), strict=True)]
        shown = zip(last.residuals._fields, worst, strict=True)
        return {
            **settings,
            "contacts now": len(contact_wrenches(reports, self.period)),
            "contact status": last.status,
            "contact iterations": max(x.iterations for x in reports),
            "contact residuals": ", ".join(f"{name} {x:.2g}" for name, x in shown),
            "contact energy change [J]": f"{sum(x.energy_change for x in reports):.6g}",
            "contact rank": f"{last.rank} of {last.m} rows",
        }


def make_world(node: RobotNode) -> dyn.World:
    """Return the World of the world file or of the parameters.

    Parameters for solver, stepper and solver options that are set precede the file; a
    false limit_stops switches its limits off.

    Raises:
        SettingError: The file is invalid, a parameter contradicts it, or the solver is
            unknown; the message lists the valid ones.
    """
    value, path = node.value, node.value("contact.world_file")
    where = f"contact.world_file {path}" if path else "contact"
    try:
        world = dyn.World.of(_read(path, node) if path else _simple(node))
        options = {**world.solver_options, **node.options("contact")}
        limits = world.limits and value("limit_stops")
        changes: dict[str, Any] = {"solver_options": options, "limits": limits}
        for name, key in (("plugin_name", "solver"), ("stepper", "stepper")):
            if value(f"contact.{name}"):
                where = f"contact.{name}"
                changes[key] = value(where)
        world = replace(world, **changes)
    except dyn.SettingError:
        raise
    except dyn.DynError as error:
        raise dyn.SettingError(f"{where}: {error}", where.split()[0]) from error
    return world


def _read(path: str, node: RobotNode) -> Any:
    """Return the content of the world file.

    Raises:
        SettingError: A parameter that the file replaces is set.
        DynError: The file cannot be read.
    """
    for name in WORLD_ONLY:
        if node.value(name) != node.specs[name].default:
            message = f"{name} belongs in contact.world_file: leave its default"
            raise dyn.SettingError(message, name)
    return read_yaml(path, "world file", "world")[0]


def _simple(node: RobotNode) -> dict[str, Any]:
    """Return the fields of a World from the node's parameters.

    Raises:
        SettingError: contact.restitution or contact.mu is set, but has no effect.
    """
    value = node.value
    mu, restitution = value("contact.mu"), value("contact.restitution")
    if mu < 0 and restitution:
        raise dyn.SettingError(
            "contact.restitution needs the floor's material: set contact.mu, too",
            "contact.restitution",
        )
    if not value("contact.ground") and mu >= 0:
        raise dyn.SettingError(
            "contact.mu is of the floor: set contact.ground, too", "contact.mu"
        )
    floor = dyn.HalfSpace(
        material=Material(mu=mu, restitution=restitution) if mu >= 0 else None
    )
    return {
        "half_spaces": [floor] if value("contact.ground") else [],
        "erp": value("contact.erp"),
        "margin": value("contact.margin"),
    }


def _describe(report: Any) -> str:
    """Return a description of an unsolved contact problem from its StepReport."""
    return (
        f"contact not solved: {report.solver}: {report.status} after"
        f" {report.iterations} iterations, residual {report.residuals.law:.2g}"
    )


def _message(stamp: Any, frame: str, wrenches: Sequence[Wrench]) -> MultiDOFJointState:
    """Return wrenches as a MultiDOFJointState: names, transforms and wrenches.

    Args:
        stamp: Time of the header, a message.
        frame: header.frame_id.
        wrenches: The wrenches.
    """
    message = MultiDOFJointState()
    message.header.stamp, message.header.frame_id = stamp, frame
    for wrench_data in wrenches:
        message.joint_names.append(wrench_data.name)
        place, wrench = Transform(), WrenchMessage()
        t, r = place.translation, place.rotation
        t.x, t.y, t.z = wrench_data.point.tolist()
        r.x, r.y, r.z, r.w = wrench_data.rotation.tolist()
        wrench.force.x, wrench.force.y, wrench.force.z = wrench_data.force.tolist()
        wrench.torque.x, wrench.torque.y, wrench.torque.z = wrench_data.torque.tolist()
        message.transforms.append(place)
        message.wrench.append(wrench)
    return message
