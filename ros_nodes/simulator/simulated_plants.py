"""Plants of the simulator node: one interface for robots and planar chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from io import StringIO
from types import MappingProxyType
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.model.sources.arguments import READING, urdf_with
from dyn_core.simulation.simulator import Simulator
from ros_nodes.base.node import RobotNode
from ros_nodes.conversions import JointMotion, JointWriter, multi_dof_joints, root_pose
from ros_nodes.parameters import effort_fields

NO_COMMAND = "no effort command: effort is zero"


class Simulated(ABC):
    """A simulated plant with named joints, advanced period by period.

    The contract:

    1. `robot` has q, qd, tau, effort, paused, counters and program.engine, and the
       methods command(t, tau), advance(t), reset() and stale(t). A failed step raises a
       DynError, retains the last good state and pauses.
    2. `joints` are the joints of effort commands, in order; `effort_indices` are their
       indices in tau.
    3. `writer.write(q, qd, effort)` returns the fields of a JointState.

    Attributes:
        model: Model with a name.
        accepts_state: Whether `place` is supported.
        carries_payload: Whether `robot` has a method `attach` for a Payload.
        description: URDF of the robot, if the node's parameters have one; else empty.
        unlimited: Names, by index in `joints`, of joints without an effort limit; their
            commands are refused.
    """

    model: Any
    robot: Any
    writer: Any
    joints: Sequence[str]
    effort_indices: np.ndarray
    accepts_state = carries_payload = False
    description = ""
    unlimited: Mapping[int, str] = MappingProxyType({})

    @abstractmethod
    def joint_motions(self) -> list[JointMotion]:
        """Return the joint motions for a MultiDOFJointState; may be empty."""

    @abstractmethod
    def warning(self, now: float) -> str | None:
        """Return a warning for /diagnostics, or None.

        Args:
            now: Time, monotonic [s].
        """

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the values for /diagnostics by name."""

    def publish(self, stamp: Any) -> None:  # noqa: B027
        """Publish further topics after each period; does nothing by default.

        Args:
            stamp: Time of the headers, a message.
        """

    def place(self, message: Any) -> None:
        """Set the state from a JointState message.

        Raises:
            DynError: The message is invalid, or states cannot be set (the default).
        """
        raise dyn.UnsupportedError("a robot's state is set by initial_positions")


class SimulatedRobot(Simulated):
    """A robot from the node's parameters.

    Args:
        node: The simulator node.
        period: Duration of a cycle [s].

    Raises:
        DynError: The robot cannot be read, or a parameter is not valid.
    """

    carries_payload = True

    def __init__(self, node: RobotNode, period: float) -> None:
        value = node.value
        root_joint = value("root_joint")
        declared = None if root_joint == "declared" else root_joint
        model = self.model = node.load(root_joint=declared)
        single = [n for n in model.joint_names if len(_columns(model, n)) == 1]
        self.joints = value("joints") or single
        self.effort_indices = np.array(
            [_columns(model, n)[0] for n in self.joints], int
        )
        self.robot = self._robot(
            node,
            period=period,
            substeps=value("substeps"),
            command_timeout=value("command_timeout"),
            prescribed=_prescribed_joints(model, value("prescribed.joints")),
            joint_friction=value("joint_friction"),
            joint_springs=value("joint_springs"),
            compensates_gravity=value("robot_compensates_gravity"),
            payload_link=value("payload.link"),
            engine=value("engine") or None,
            q0=self._initial(value("initial_positions"), self._root(node)),
            qd0=self._rates(value("initial_velocities")),
        )
        self.robot.braked = value("brakes")
        if self.robot.braked and self.robot.qd.any():
            raise dyn.SettingError(
                "brakes hold a robot that moves; valid: initial_velocities: [0.0]",
                "brakes",
            )
        self.writer = JointWriter(model)
        self.unlimited = self._limit_efforts(node)
        self.robot.compensated[self.effort_indices[list(self.unlimited)]] = False
        self.description = _urdf(node)

    def _limit_efforts(self, node: RobotNode) -> dict[int, str]:
        """Declare the parameters effort_limits.JOINT and set the limits of the plant.

        Returns:
            Names, by index in `joints`, of the joints without any effort limit.
        """
        node.declare(effort_fields(self.joints))
        lacking = {}
        for k, (name, column) in enumerate(
            zip(self.joints, self.effort_indices, strict=True)
        ):
            limit = node.value(f"effort_limits.{name}")
            if limit > 0:
                self.robot.effort_limit[column] = limit
            elif not self.model.effort_limit[column]:
                lacking[k] = name
        return lacking

    def _robot(self, node: RobotNode, **settings: Any) -> Any:
        """Return the plant, a Simulator.

        Args:
            node: The simulator node.
            settings: Arguments of Simulator.

        Raises:
            DynError: A solver or an option is not valid.
        """
        idle = idle_contacts(node)
        if idle:
            names = ", ".join(idle)
            node.get_logger().warning(f"contact.enabled is false; no effect: {names}")
        refuse_options(node, ("contact",), "contact.enabled is false")
        if "limit_stops" in node.options("step"):
            raise dyn.SettingError(
                "step.options.limit_stops: set the parameter limit_stops", "limit_stops"
            )
        return Simulator(
            self.model,
            step=node.solver("step"),
            forward_dynamics=_forward_dynamics(node, self.model),
            limit_stops=node.value("limit_stops"),
            **settings,
        )

    def _root(self, node: RobotNode) -> np.ndarray | None:
        """Return the initial coordinates of a floating root, (7,), or None if not set.

        Raises:
            SettingError: They are set, but the root is not floating.
            ShapeError: Their size is wrong.
        """
        names = "initial_root_position", "initial_root_orientation"
        changed = [
            name for name in names if node.value(name) != node.specs[name].default
        ]
        first = self.model.joint[1:2]  # the first joint, if there is one
        if changed and [joint.kind for joint in first] != ["floating"]:
            raise dyn.SettingError(
                f"{changed[0]} is for a floating root: set root_joint to floating",
                changed[0],
            )
        return root_pose(*(node.value(name) for name in names)) if changed else None

    def _initial(
        self, values: Sequence[float], root: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the initial position, (nq,), or None for the simulator's default.

        Args:
            values: Positions of `joints`, or a single 0.0 if not set: they are then
                neutral, within the limits.
            root: Coordinates of the floating root, (7,), or None if not set.

        Raises:
            SettingError: The number of values is wrong.
        """
        model, listed = (
            self.model,
            is_set("initial_positions", values, self.joints),
        )
        if not listed and root is None:
            return None
        q = model.neutral()
        if root is not None:
            q[model.q_slices[1]] = root
        if listed:
            for name, x in zip(self.joints, values, strict=True):
                q[model.q_slice(name)] = x
        else:
            for name in self.joints:
                columns, v = model.q_slice(name), model.v_slice(name)
                q[columns] = np.clip(q[columns], model.lower[v], model.upper[v])
        return q

    def _rates(self, values: Sequence[float]) -> np.ndarray | None:
        """Return the initial velocity, (nv,), or None for rest.

        Args:
            values: Velocities of `joints`, or a single 0.0 if not set.

        Raises:
            SettingError: The number of values is wrong.
        """
        if not is_set("initial_velocities", values, self.joints):
            return None
        qd = np.zeros(self.model.nv)
        qd[self.effort_indices] = values
        return qd

    def joint_motions(self) -> list[JointMotion]:
        """Return the motions of the joints with several coordinates."""
        return multi_dof_joints(self.model, self.robot.q, self.robot.qd)

    def warning(self, now: float) -> str | None:
        """Return a warning if the effort command is stale at `now` [s], or None."""
        return NO_COMMAND if self.robot.stale(now) else None

    def values(self) -> dict[str, Any]:
        """Return the names of the solvers for /diagnostics, by use."""
        robot = self.robot
        solvers = {"step": robot.step}
        if robot.forward_dynamics is not None:
            solvers["forward dynamics"] = robot.forward_dynamics
        return {key: getattr(x, "name", x) for key, x in solvers.items()}


def _urdf(node: RobotNode) -> str:
    """Return the URDF that the parameters set; empty for MJCF or a topic's robot."""
    urdf, file = node.value("robot_description"), node.value("robot_description_file")
    if not urdf and not file:
        return ""
    settings = {name: node.value(name) for name in READING}
    return urdf_with(settings, StringIO(urdf) if urdf else file)


def refuse_options(node: RobotNode, slots: Sequence[str], reason: str) -> None:
    """Check that no options are set for solver slots that are not used.

    Args:
        node: The simulator node.
        slots: Names of the unused slots.
        reason: Why they are not used, for the message.

    Raises:
        SettingError: An option is set.
    """
    for slot in slots:
        for option in node.options(slot):
            name = f"{slot}.options.{option}"
            raise dyn.SettingError(f"{name} has no effect: {reason}", name)


def idle_contacts(node: RobotNode) -> list[str]:
    """Return the names of contact parameters that differ from their default.

    contact.enabled and solver options are left out.
    """
    return [
        name
        for name, spec in node.specs.items()
        if name.startswith("contact.")
        and name != "contact.enabled"
        and ".options." not in name
        and node.value(name) != spec.default
    ]


def _forward_dynamics(node: RobotNode, model: dyn.Model) -> Any:
    """Return the forward dynamics solver; None: the Simulator chooses one.

    If only options are set, the default solver for the model gets them.

    Raises:
        DynError: The solver or an option is not valid.
    """
    if node.value("forward_dynamics.plugin_name"):
        return node.solver("forward_dynamics")
    options = node.options("forward_dynamics")
    name = "aba_loops" if model.loops else "aba"
    return dyn.solver(name).with_options(**options) if options else None


def is_set(name: str, values: Sequence[float], joints: Sequence[str]) -> bool:
    """Return whether initial values are set; a single 0.0 for several joints is not.

    Args:
        name: Name of the parameter, for the message.
        values: Its value.
        joints: Names of the joints.

    Raises:
        SettingError: The number of values differs from the number of joints.
    """
    if len(values) == len(joints):
        return True
    if list(values) == [0.0]:
        return False
    raise dyn.SettingError(
        f"{name} has {len(values)} numbers for {len(joints)} joints:"
        f" {', '.join(joints)}",
        name,
    )


def _columns(model: dyn.Model, name: str) -> range:
    """Return the velocity indices of a joint."""
    columns = model.v_slice(name)
    return range(columns.start, columns.stop)


def _prescribed_joints(model: dyn.Model, values: Sequence[str]) -> tuple[str, ...]:
    """Return the names of joints with prescribed accelerations, without empty ones.

    Raises:
        SettingError: A name is not a joint of the model.
    """
    names = [name for name in values if name]
    for name in names:
        if name not in model.joint_names:
            raise dyn.SettingError(
                f"prescribed.joints: '{name}' must be one of"
                f" {', '.join(model.joint_names)}",
                "prescribed.joints",
            )
    return tuple(names)
