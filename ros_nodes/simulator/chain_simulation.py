"""Planar chains from YAML files, for the simulator node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core import robots
from dyn_core.planar.chain.files import ChainFile, load_chain_file
from dyn_core.planar.chain.plant import ChainRobot
from ros_nodes.base.node import RobotNode
from ros_nodes.conversions import AngleWriter, JointMotion, JointReader, chain_joints
from ros_nodes.parameter_tables.payload_parameters import PAYLOAD
from ros_nodes.simulator.simulated_plants import (
    NO_COMMAND,
    Simulated,
    idle_contacts,
    is_set,
    refuse_options,
)

RECENT = 1.0  # duration of a warning in simulated time [s]
DT, SCHEME = 1e-3, "rk4"  # defaults: step [s], motion between events
# Parameters of robots only; for a chain, its file sets such values.
ROBOT_ONLY = (
    "robot_description", "robot_description_file", "package_paths", "xacro_arguments",
    "model_extras", "joints", "root", "tip", "gravity", "model_check",
    "unlisted_joints", "root_joint", "step.plugin_name", "forward_dynamics.plugin_name",
    "substeps", "prescribed.joints", "joint_friction", "joint_springs", "limit_stops",
    "contact.enabled", "initial_root_position", "initial_root_orientation",
    "robot_compensates_gravity", *(field.name for field in PAYLOAD),
)  # fmt: skip
KINDS = {
    "hit": "hits", "release": "releases", "mode_cycle": "mode cycles",
    "chatter": "chattering", "step_halved": "halved steps",
    "event_limit": "event limits",
    "dropped": "dropped", "taut": "taut links",
}  # fmt: skip


class SimulatedChain(Simulated):
    """A planar chain from the node's parameters, with impacts and limits.

    Args:
        node: The simulator node.
        period: Duration of a cycle [s].

    Raises:
        DynError: The file or a parameter is not valid, or a parameter is for robots
            only.
    """

    robot: ChainRobot
    accepts_state = True

    def __init__(self, node: RobotNode, period: float) -> None:
        value = node.value
        self._check(node)
        file = self._read(value("chain_file"))
        chain = self.model = file.chain
        node.get_logger().info(f"chain '{chain.name}' read from {value('chain_file')}")
        self.joints = chain.joint_names[:-1]
        self.effort_indices = np.arange(len(self.joints))
        self.robot = ChainRobot(
            chain,
            period=period,
            dt=file.dt or DT,
            window=file.window,
            scheme=file.scheme or SCHEME,
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
        """Raise a SettingError if a parameter is set that does not apply to a chain."""
        for name in ROBOT_ONLY:
            if node.value(name) == node.specs[name].default:
                continue
            if name.startswith("robot_description"):
                message = f"chain_file and {name} are both set: set one of them"
            else:
                message = f"{name} is for robots: with chain_file leave it as it is"
            raise dyn.SettingError(message, name)
        for name in idle_contacts(node):
            raise dyn.SettingError(f"{name} has no effect: a chain is simulated", name)
        slots = ("step", "forward_dynamics", "contact")
        refuse_options(node, slots, "a chain is simulated")

    @staticmethod
    def _read(source: str) -> ChainFile:
        """Return the content of a chain file; `source` is a shipped name or a path.

        Raises:
            SettingError: There is no such file.
            DynError: The file is not valid.
        """
        shipped = robots.chains()
        if source in shipped:
            return load_chain_file(robots.chain_path(source))
        if not Path(source).is_file():
            raise dyn.SettingError(
                f"chain_file: no file {source!r}; shipped chains: {', '.join(shipped)}",
                "chain_file",
            )
        return load_chain_file(Path(source))

    def _initial(self, name: str, values: Sequence[float]) -> list[float] | None:
        """Return initial angles or rates from a parameter.

        None if it is not set: the values of the chain file apply.

        Args:
            name: Name of the parameter.
            values: One number per joint, or a single 0.0 if it is not set.

        Raises:
            SettingError: The number of values is wrong.
        """
        if list(values) == [0.0] or not is_set(name, values, self.joints):
            return None
        return list(values)

    def joint_motions(self) -> list[JointMotion]:
        """Return the motion of all joints, including the base and the last point."""
        return chain_joints(self.model, self.robot.state)

    def place(self, message: Any) -> None:
        """Set angles and rates from a JointState, while paused.

        Raises:
            DynError: The simulation is not paused, or the state is invalid.
        """
        if not self.robot.paused:
            raise dyn.SettingError("pause first (~/pause)", "state")
        self.robot.place(*self.reader.read(message))

    def warning(self, now: float) -> str | None:
        """Return a warning on constraints, recent events or stale commands, or None.

        Only the first of these that applies is returned.

        Args:
            now: Time, monotonic [s].
        """
        robot = self.robot
        if unmet := robot.unmet:
            return f"cannot be met: {', '.join(unmet)}"
        trouble = robot.trouble_since(robot.t - RECENT)
        if trouble:
            last = trouble[-1]
            return f"{KINDS[last.kind]}: {last.message} at {last.time:.3f} s"
        if robot.counters["command stale"] and robot.stale(now):
            return NO_COMMAND
        return None

    def values(self) -> dict[str, Any]:
        """Return event counts, energies and constraints for /diagnostics."""
        robot = self.robot
        events = robot.simulator.events
        last = events[-1] if events else None
        return {
            "simulated time [s]": f"{robot.t:.3f}",
            "quantum [s]": f"{robot.simulator.dt:g}",
            **{label: robot.happened[kind] for kind, label in KINDS.items()},
            "energy lost [J]": f"{robot.lost:.6g}",
            "energy [J]": f"{sum(robot.energy):.6g}",
            "holds": ", ".join(robot.holds) or "nothing",
            "dropped now": ", ".join(robot.dropped) or "nothing",
            "last event": (
                f"{last.kind}: {last.message} at {last.time:.3f} s" if last else "none"
            ),
        }
