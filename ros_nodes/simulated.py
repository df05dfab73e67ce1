"""What the simulator node moves: a robot or a planar chain, which look alike to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.simulation import Simulator
from ros_nodes._node import RobotNode
from ros_nodes.conversions import JointWriter, Placed, placed_joints, root_pose


class Simulated(ABC):
    """Something that moves by periods and has joints with names.

    The contract:

    1. `robot` has q, qd, tau, effort, paused, counters and program.engine; it takes
       command(t, tau), advance(t), reset() and stale(t). A failed step raises a
       DynError, keeps the last good state and pauses.
    2. `joints` are those that efforts are for, in order; `at` are their places in tau.
    3. `writer.write(q, qd, effort)` gives the fields of a JointState.

    Attributes:
        model: Its model, with a name.
        placeable: Whether `place` takes states.
    """

    model: Any
    robot: Any
    writer: Any
    joints: Sequence[str]
    at: np.ndarray
    placeable = False

    @abstractmethod
    def placed(self) -> list[Placed]:
        """Give what joint_states cannot say, for a MultiDOFJointState; may be empty."""

    @abstractmethod
    def concern(self, now: float) -> str | None:
        """Say what deserves a warning in /diagnostics, or None."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Give what /diagnostics says of it."""

    def publish(self, stamp: Any) -> None:  # noqa: B027
        """Publish what else there is, after each period; nothing by default."""

    def place(self, message: Any) -> None:
        """Take the state of a JointState message; DynError if it is unusable."""
        raise dyn.UnsupportedError("a robot's state is set by initial_positions")


class SimulatedRobot(Simulated):
    """A robot of the node's parameters."""

    def __init__(self, node: RobotNode, period: float) -> None:
        value = node.value
        model = self.model = node.load(root_joint=value("root_joint"))
        single = [n for n in model.joint_names if len(_at(model, n)) == 1]
        self.joints = value("joints") or single
        self.at = np.array([_at(model, n)[0] for n in self.joints], int)
        self.robot = self._robot(
            node,
            period=period,
            substeps=value("substeps"),
            command_timeout=value("command_timeout"),
            prescribed=_prescribed(model, value("prescribed.joints")),
            joint_friction=value("joint_friction"),
            joint_springs=value("joint_springs"),
            engine=value("engine") or None,
            q0=self._initial(value("initial_positions"), self._root(node)),
            qd0=self._rates(value("initial_velocities")),
        )
        self.writer = JointWriter(model)

    def _robot(self, node: RobotNode, **settings: Any) -> Any:
        """Make what moves."""
        return Simulator(
            self.model,
            step=node.value("step.plugin_name"),
            forward_dynamics=node.value("forward_dynamics.plugin_name"),
            limit_stops=node.value("limit_stops"),
            **settings,
        )

    def _root(self, node: RobotNode) -> np.ndarray | None:
        """Give the coordinates of the root at the start, or None where not given."""
        names = "initial_root_position", "initial_root_orientation"
        given = [name for name in names if node.value(name) != node.specs[name].default]
        if given and node.value("root_joint") != "floating":
            raise dyn.SettingError(
                f"{given[0]} is for a floating root: set root_joint to floating",
                given[0],
            )
        return root_pose(*(node.value(name) for name in names)) if given else None

    def _initial(
        self, given: Sequence[float], root: np.ndarray | None
    ) -> np.ndarray | None:
        """Give the start of root and listed joints, or None for the simulator's own."""
        model, listed = (
            self.model,
            check_initial("initial_positions", given, self.joints),
        )
        if not listed and root is None:
            return None
        q = model.neutral()
        if root is not None:
            q[model.q_slices[1]] = root
        if listed:
            for name, x in zip(self.joints, given, strict=True):
                q[model.q_slice(name)] = x
        else:
            for name in self.joints:
                at, v = model.q_slice(name), model.v_slice(name)
                q[at] = np.clip(q[at], model.lower[v], model.upper[v])
        return q

    def _rates(self, given: Sequence[float]) -> np.ndarray | None:
        """Give the velocities of the listed joints at the start, or None for rest."""
        if not check_initial("initial_velocities", given, self.joints):
            return None
        qd = np.zeros(self.model.nv)
        qd[self.at] = given
        return qd

    def placed(self) -> list[Placed]:
        """Give the joints with several coordinates."""
        return placed_joints(self.model, self.robot.q, self.robot.qd)

    def concern(self, now: float) -> str | None:
        """Say that no efforts come."""
        return "no effort command: effort is zero" if self.robot.stale(now) else None

    def values(self) -> dict[str, Any]:
        """Give the names of the solvers."""
        robot = self.robot
        return {"step": robot.step, "forward dynamics": robot.forward_dynamics}


def check_initial(name: str, given: Sequence[float], joints: Sequence[str]) -> bool:
    """Tell whether a start is given; one of the wrong size is refused."""
    if len(given) == len(joints):
        return True
    if list(given) == [0.0]:
        return False
    raise dyn.SettingError(
        f"{name} has {len(given)} numbers for {len(joints)} joints:"
        f" {', '.join(joints)}",
        name,
    )


def _at(model: dyn.Model, name: str) -> range:
    at = model.v_slice(name)
    return range(at.start, at.stop)


def _prescribed(model: dyn.Model, given: Sequence[str]) -> tuple[str, ...]:
    """Give the joints that follow accelerations; unknown ones are refused."""
    names = [name for name in given if name]
    for name in names:
        if name not in model.joint_names:
            raise dyn.SettingError(
                f"prescribed.joints: '{name}' must be one of"
                f" {', '.join(model.joint_names)}",
                "prescribed.joints",
            )
    return tuple(names)
