"""A planar chain of a YAML file for the simulator node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core import robots
from dyn_core.planar.files import ChainFile, load_chain_file
from dyn_core.planar.robot import ChainRobot
from ros_nodes._node import RobotNode
from ros_nodes.conversions import AngleWriter, JointReader, Placed, placed_points
from ros_nodes.simulated import Simulated, check_initial

RECENT = 1.0  # simulated seconds in which trouble deserves a warning
DT = 1e-3  # quantum where the file gives none [s]
# What only robots have; a chain's own file says the like.
ROBOT_ONLY = (
    "robot_description", "robot_description_file", "model_extras", "joints", "root",
    "tip", "gravity", "root_joint", "step.plugin_name", "forward_dynamics.plugin_name",
    "substeps", "prescribed.joints", "joint_friction", "joint_springs", "limit_stops",
    "contact.enabled", "initial_root_position", "initial_root_orientation",
)  # fmt: skip
KINDS = {
    "hit": "hits", "release": "releases", "shuffle": "shuffling",
    "clatter": "clattering", "halving": "halvings", "cap": "caps of events",
    "dropped": "dropped",
}  # fmt: skip


class SimulatedChain(Simulated):
    """A planar chain of the node's parameters, with impacts and limits."""

    robot: ChainRobot
    placeable = True

    def __init__(self, node: RobotNode, period: float) -> None:
        value = node.value
        self._check(node)
        file = self._read(value("chain_file"))
        chain = self.model = file.chain
        node.get_logger().info(f"chain '{chain.name}' read from {value('chain_file')}")
        self.joints = chain.joint_names[:-1]
        self.at = np.arange(len(self.joints))
        self.robot = ChainRobot(
            chain,
            period=period,
            dt=file.dt or DT,
            window=file.window,
            start=file.start,
            q0=self._initial("initial_positions", value("initial_positions")),
            qd0=self._initial("initial_velocities", value("initial_velocities")),
            command_timeout=value("command_timeout"),
            engine=value("engine") or None,
        )
        self.writer = AngleWriter(chain)
        self.reader = JointReader(self.joints)

    @staticmethod
    def _check(node: RobotNode) -> None:
        """Refuse a robot beside the chain, and what only robots have."""
        for name in ROBOT_ONLY:
            if node.value(name) == node.specs[name].default:
                continue
            if name.startswith("robot_description"):
                words = f"chain_file and {name} are both set: set one of them"
            else:
                words = f"{name} is for robots: with chain_file leave it as it is"
            raise dyn.SettingError(words, name)

    @staticmethod
    def _read(source: str) -> ChainFile:
        """Read a shipped chain, or a file."""
        shipped = robots.chains()
        if source in shipped:
            return load_chain_file(robots.chain_path(source))
        if not Path(source).is_file():
            raise dyn.SettingError(
                f"chain_file: no file {source!r}; shipped chains: {', '.join(shipped)}",
                "chain_file",
            )
        return load_chain_file(Path(source))

    def _initial(self, name: str, given: Sequence[float]) -> list[float] | None:
        """Give a start of the angles, or None for the file's."""
        if list(given) == [0.0] or not check_initial(name, given, self.joints):
            return None
        return list(given)

    def placed(self) -> list[Placed]:
        """Give all joints in the plane, the base and the last included."""
        return placed_points(self.model, self.robot.state)

    def place(self, message: Any) -> None:
        """Take angles and rates of a JointState, while paused.

        Raises:
            DynError: It runs, or the state is unusable.
        """
        if not self.robot.paused:
            raise dyn.SettingError("pause first (~/pause)", "state")
        self.robot.place(*self.reader.read(message))

    def concern(self, now: float) -> str | None:
        """Say what was dropped or latched lately, or that commands stopped."""
        robot = self.robot
        if robot.dropped:
            return f"cannot be met: {', '.join(robot.dropped)}"
        trouble = robot.trouble_since(robot.t - RECENT)
        if trouble:
            last = trouble[-1]
            return f"{KINDS[last.kind]}: {last.words} at {last.time:.3f} s"
        if robot.counters["command stale"] and robot.stale(now):
            return "no effort command: effort is zero"
        return None

    def values(self) -> dict[str, Any]:
        """Give what happened, what holds, and what was given up."""
        robot = self.robot
        events = robot.simulator.events
        last = events[-1] if events else None
        return {
            "simulated time [s]": f"{robot.t:.3f}",
            "quantum [s]": f"{robot.simulator.dt:g}",
            **{words: robot.happened[kind] for kind, words in KINDS.items()},
            "energy lost [J]": f"{robot.lost:.6g}",
            "energy [J]": f"{sum(robot.energy):.6g}",
            "holds": ", ".join(robot.holds) or "nothing",
            "dropped now": ", ".join(robot.dropped) or "nothing",
            "last event": (
                f"{last.kind}: {last.words} at {last.time:.3f} s" if last else "none"
            ),
        }
