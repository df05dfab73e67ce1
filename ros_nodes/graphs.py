"""Graphs of nodes as data, for launch files, `dyn up` and tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ros_nodes.params import FOLDER

PACKAGE = "dyn_ros"
EFFORTS = "effort_controller/commands"


@dataclass(frozen=True)
class NodeEntry:
    """One process of a graph.

    Attributes:
        executable: Name for `ros2 run`.
        module: Python module of the node.
        remappings: Pairs (from, to).
        robot: Parameter that is set by the argument `robot`.
    """

    executable: str
    module: str
    remappings: tuple[tuple[str, str], ...] = ()
    robot: str = "robot_description_file"


@dataclass(frozen=True)
class NodeGraph:
    """Nodes that run together.

    Attributes:
        description: Purpose of the graph.
        nodes: Processes.
        params: Parameter file in ros_nodes/params.
        arguments: Launch arguments with default and description.
    """

    description: str
    nodes: tuple[NodeEntry, ...]
    params: str
    arguments: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def params_file(self) -> Path:
        """Path of the parameter file."""
        return FOLDER / self.params


SIMULATOR = NodeEntry("simulator", "ros_nodes.simulator_node")
CHAIN = NodeEntry("simulator", "ros_nodes.simulator_node", robot="chain_file")
COMPUTED_TORQUE = NodeEntry(
    "computed_torque", "ros_nodes.computed_torque_node", (("~/commands", EFFORTS),)
)
_ROBOT = {"robot": ("", "path of a URDF; empty: that of the parameter file")}
_CHAIN = {"robot": ("", "YAML of a chain; empty: that of the parameter file")}

GRAPHS: dict[str, NodeGraph] = {
    "simulator": NodeGraph(
        "simulate a robot driven by effort commands",
        (SIMULATOR,),
        "simulator.yaml",
        _ROBOT,
    ),
    "chain": NodeGraph(
        "simulate a planar chain with impacts and limits",
        (CHAIN,),
        "chain.yaml",
        _CHAIN,
    ),
    "contact": NodeGraph(
        "simulate a quadruped that lands on a floor and stands on springs",
        (SIMULATOR,),
        "contact.yaml",
        _ROBOT,
    ),
    "computed_torque": NodeGraph(
        "control a robot by its joint states and effort commands",
        (COMPUTED_TORQUE,),
        "computed_torque.yaml",
        _ROBOT,
    ),
    "demo": NodeGraph(
        "a simulated arm under a computed-torque controller",
        (SIMULATOR, COMPUTED_TORQUE),
        "demo.yaml",
        _ROBOT,
    ),
}


def ros_arguments(entry: NodeEntry, params: str, robot: str = "") -> list[str]:
    """Return the --ros-args of one process."""
    arguments = ["--ros-args", "--params-file", params]
    for source, target in entry.remappings:
        arguments += ["-r", f"{source}:={target}"]
    if robot:
        arguments += ["-p", f"{entry.robot}:={robot}"]
    return arguments
