"""A robot that touches things, for the simulator node: parameters, messages, words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from geometry_msgs.msg import Transform
from geometry_msgs.msg import Wrench as WrenchMessage
from rclpy.qos import QoSProfile
from sensor_msgs.msg import MultiDOFJointState

import dyn_core as dyn
from dyn_core.model.shapes import Material
from ros_nodes._node import RobotNode
from ros_nodes.conversions import Wrench, contact_wrenches, joint_wrenches
from ros_nodes.simulated import SimulatedRobot

UNSOLVED = "contact not converged"  # the counter
RECENT = 1.0  # seconds in which a problem that was not solved deserves a warning
WORLD_ONLY = tuple(
    f"contact.{key}" for key in ("ground", "mu", "restitution", "erp", "margin")
)
STEP_ONLY = "step.plugin_name", "forward_dynamics.plugin_name"


class SimulatedContacts(SimulatedRobot):
    """A robot of the node's parameters whose links touch a world and each other.

    Publishes while somebody subscribes, contact.publish_rate times a second:

    - ~/contact_wrenches: each contact that carried a force in the last period; the
      point and its frame (x: normal), the mean force on the first link, world axes.
    - ~/joint_reactions: the force through each joint on its child, in the frame of the
      child's link; not of robots with loops.
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
        deep = QoSProfile(depth=10)
        return node.keep(node.create_publisher(MultiDOFJointState, topic, deep))

    def _robot(self, node: RobotNode, **settings: Any) -> dyn.ContactSimulator:
        """Make what moves, and try a step: so all is compiled, and faults show."""
        for name in STEP_ONLY:
            if node.value(name) != node.specs[name].default:
                raise dyn.SettingError(
                    f"{name} is for robots without contact: with contact.enabled leave"
                    " it as it is; steps are contact.stepper",
                    name,
                )
        robot = dyn.ContactSimulator(self.model, make_world(node), **settings)
        robot.advance(0.0)
        robot.reset()
        robot.counters.clear()
        return robot

    def publish(self, stamp: Any) -> None:
        """Look at the last period; publish contacts and reactions where due."""
        now = time.monotonic()
        self._look(now)
        if now < self.due:
            return
        self.due = now + self.every
        if self.contacts.get_subscription_count():
            found = contact_wrenches(self.robot.reports, self.period)
            self.contacts.publish(_message(stamp, self.frame, found))
        wanted = self.reactions is not None and self.reactions.get_subscription_count()
        if wanted and self.robot.last is not None:
            try:
                forces = self.robot.reactions(at="link")
            except dyn.DynError as error:
                self.node.refuse("reactions", str(error))
                return
            found = joint_wrenches(self.model, forces)
            self.reactions.publish(_message(stamp, "", found))

    def _look(self, now: float) -> None:
        """Remember problems that were not solved since the last look."""
        count = self.robot.counters[UNSOLVED]
        if count > self.unsolved and self.robot.reports:
            told = [r for r in self.robot.reports if not r.converged]
            self.trouble = now, _words((told or self.robot.reports)[-1])
        self.unsolved = count

    def concern(self, now: float) -> str | None:
        """Say that a step was not solved lately, or that commands stopped."""
        if self.trouble is not None and now - self.trouble[0] < RECENT:
            return self.trouble[1]
        if self.robot.counters["command stale"] and self.robot.stale(now):
            return "no effort command: effort is zero"
        return None

    def values(self) -> dict[str, Any]:
        """Give solver, stepper, and what the last steps did."""
        robot, counters = self.robot, self.robot.counters
        told = {
            "contact solver": robot.world.solver,
            "contact stepper": robot.world.stepper,
            "contact not converged": counters[UNSOLVED],
            "contact not unique": counters["contact not unique"],
        }
        reports, last = robot.reports, robot.report
        if last is None:
            return told
        worst = [max(r) for r in zip(*(x.residuals for x in reports), strict=True)]
        shown = zip(last.residuals._fields, worst, strict=True)
        return {
            **told,
            "contacts now": len(contact_wrenches(reports, self.period)),
            "contact status": last.status,
            "contact iterations": max(x.iterations for x in reports),
            "contact residuals": ", ".join(f"{name} {x:.2g}" for name, x in shown),
            "contact energy change [J]": f"{sum(x.energy_change for x in reports):.6g}",
            "contact rank": f"{last.rank} of {last.m} rows",
        }


def make_world(node: RobotNode) -> dyn.World:
    """Give the World of the world file or of the parameters.

    Raises:
        DynError: The file is unusable, a parameter belongs into it, or a solver is
            unknown; lists the known ones.
    """
    value, path = node.value, node.value("contact.world_file")
    data = _read(path, node) if path else _simple(node)
    for name, key in (("plugin_name", "solver"), ("stepper", "stepper")):
        if value(f"contact.{name}"):
            data[key] = value(f"contact.{name}")
    if not value("limit_stops"):
        data["limits"] = False
    try:
        world = dyn.World.of(data)
    except dyn.ModelError as error:
        where = f"contact.world_file {path}: " if path else "contact: "
        raise dyn.SettingError(f"{where}{error}", "contact.world_file") from error
    known = dyn.solvers(dyn.CONTACT_SOLVE)
    if world.solver not in known:
        raise dyn.SettingError(
            f"contact.plugin_name: no contact solver is called '{world.solver}';"
            f" known: {', '.join(known)}",
            "contact.plugin_name",
        )
    return world


def _read(path: str, node: RobotNode) -> dict[str, Any]:
    """Read the world file; parameters that it says instead must be as they are."""
    for name in WORLD_ONLY:
        if node.value(name) != node.specs[name].default:
            words = f"{name} belongs into contact.world_file: leave it as it is"
            raise dyn.SettingError(words, name)
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise dyn.SettingError(
            f"contact.world_file: cannot read {path}: {error}", "contact.world_file"
        ) from error
    except yaml.YAMLError as error:
        raise dyn.SettingError(
            f"contact.world_file {path}: not YAML: {error}", "contact.world_file"
        ) from error
    if data is not None and not isinstance(data, dict):
        raise dyn.SettingError(
            f"contact.world_file {path}: needs a mapping", "contact.world_file"
        )
    return data or {}


def _simple(node: RobotNode) -> dict[str, Any]:
    """Give a World's fields of the flat parameters."""
    value = node.value
    mu, bounce = value("contact.mu"), value("contact.restitution")
    if mu < 0 and bounce:
        raise dyn.SettingError(
            "contact.restitution is of the floor's material: set contact.mu, too",
            "contact.restitution",
        )
    floor = dyn.HalfSpace(
        material=Material(mu=mu, restitution=bounce) if mu >= 0 else None
    )
    return {
        "half_spaces": [floor] if value("contact.ground") else [],
        "erp": value("contact.erp"),
        "margin": value("contact.margin"),
    }


def _words(report: Any) -> str:
    """Say what was not solved."""
    return (
        f"contact not solved: {report.solver}: {report.status} after"
        f" {report.iterations} iterations, residual {report.residuals.law:.2g}"
    )


def _message(stamp: Any, frame: str, wrenches: Sequence[Wrench]) -> MultiDOFJointState:
    """Make the message of forces somewhere."""
    message = MultiDOFJointState()
    message.header.stamp, message.header.frame_id = stamp, frame
    for one in wrenches:
        message.joint_names.append(one.name)
        place, wrench = Transform(), WrenchMessage()
        t, r = place.translation, place.rotation
        t.x, t.y, t.z = one.point.tolist()
        r.x, r.y, r.z, r.w = one.rotation.tolist()
        wrench.force.x, wrench.force.y, wrench.force.z = one.force.tolist()
        wrench.torque.x, wrench.torque.y, wrench.torque.z = one.torque.tolist()
        message.transforms.append(place)
        message.wrench.append(wrench)
    return message
