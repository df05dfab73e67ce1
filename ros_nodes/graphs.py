"""Graphs of nodes as data, for launch files, `dyn up` and tests."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dyn_core.errors import SettingError
from ros_nodes.params import FOLDER

PACKAGE = "dyn_ros"
EFFORTS = "effort_controller/commands"


@dataclass(frozen=True)
class NodeEntry:
    """One process of a graph.

    Attributes:
        executable: Name of the executable for `ros2 run`; also the node's name.
        remappings: Pairs (from, to) of names.
        robot: Parameter that the launch argument `robot` sets; empty: the node has
            neither a robot nor a life cycle.
        clock: Parameter that the launch argument `use_sim_time` sets; a simulator
            publishes the time that the other nodes follow.
        parameters: Pairs (name, value) that the graph sets.
        defaults: Pairs (name, value) that hold where the parameter file has none.
    """

    executable: str
    module: str
    remappings: tuple[tuple[str, str], ...] = ()
    robot: str = "robot_description_file"
    clock: str = "use_sim_time"
    parameters: tuple[tuple[str, Any], ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class NodeGraph:
    """Nodes that run together.

    `params` is the name of the parameter file in ros_nodes/params; `arguments` are
    launch arguments besides COMMON: default and description by name.
    """

    description: str
    nodes: tuple[NodeEntry, ...]
    params: str
    arguments: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def params_file(self) -> Path:
        """Absolute path of the parameter file."""
        return FOLDER / self.params

    def entries(self, supervise: bool = False) -> tuple[NodeEntry, ...]:
        """Return the processes of the graph in the order of their start.

        With supervise the guard comes first, and the controller has require_guard.
        """
        if not supervise:
            return self.nodes
        if COMPUTED_TORQUE not in self.nodes:
            valid = [k for k, graph in GRAPHS.items() if "supervise" in graph.arguments]
            raise SettingError(
                "supervise: no controller in this graph; valid: the graphs"
                f" {', '.join(valid)}",
                "supervise",
            )
        guarded = replace(COMPUTED_TORQUE, parameters=(("require_guard", True),))
        return (GUARD, *(guarded if x is COMPUTED_TORQUE else x for x in self.nodes))


_SIMULATOR = "ros_nodes.simulator_node"
SIMULATOR = NodeEntry("simulator", _SIMULATOR, clock="publish_clock")
CHAIN = NodeEntry("simulator", _SIMULATOR, robot="chain_file", clock="publish_clock")
COMPUTED_TORQUE = NodeEntry(
    "computed_torque", "ros_nodes.computed_torque_node", (("~/commands", EFFORTS),)
)
FEED_FORWARD = NodeEntry("feed_forward", "ros_nodes.feed_forward_node")
GUARD = NodeEntry("guard", "ros_nodes.guard_node", robot="")
_ROBOT = {
    "robot": (
        "",
        "path of a URDF, xacro or MJCF, or the name of a robot, as dyn.load takes them;"
        " empty: that of the parameter file",
    )
}
_CHAIN = {"robot": ("", "YAML of a chain; empty: that of the parameter file")}
COMMON = {
    "namespace": ("", "namespace of the nodes and of their topics"),
    "use_sim_time": ("", "true: simulators publish /clock, the others follow it"),
    "autostart": ("", "false: the nodes wait for lifecycle transitions"),
}
SUPERVISE = {"supervise": ("false", "true: the node guard watches the controller")}

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
        _ROBOT | SUPERVISE,
    ),
    "feed_forward": NodeGraph(
        "fill in the efforts of trajectories by inverse dynamics",
        (FEED_FORWARD,),
        "feed_forward.yaml",
        _ROBOT,
    ),
    "demo": NodeGraph(
        "a simulated arm under a computed-torque controller",
        (replace(SIMULATOR, defaults=(("brakes", True),)), COMPUTED_TORQUE),
        "demo.yaml",
        _ROBOT | SUPERVISE,
    ),
    "guard": NodeGraph(
        "watch a controller's efforts, and send zero where it is silent",
        (GUARD,),
        "guard.yaml",
    ),
}


def ros_arguments(entry: NodeEntry, params: str, robot: str = "") -> list[str]:
    """Return the arguments of one process from --ros-args on.

    They set, in this order, the defaults of the graph, the parameter file, the
    remappings and the robot, if there is one; a later value of a parameter overrides an
    earlier one. Those of start_arguments may follow.
    """
    # The parameter file comes behind the defaults: of two values the last one holds.
    arguments = ["--ros-args"]
    for name, value in entry.defaults:
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    arguments += ["--params-file", params]
    for source, target in entry.remappings:
        arguments += ["-r", f"{source}:={target}"]
    if robot and entry.robot:
        arguments += ["-p", f"{entry.robot}:={robot}"]
    return arguments


def start_parameters(
    entry: NodeEntry, use_sim_time: bool | None = None, autostart: bool | None = None
) -> dict[str, Any]:
    """Return the parameters that the graph and the start options set, by name.

    use_sim_time is the value of the parameter `entry.clock`. None sets nothing.
    """
    values: dict[str, Any] = dict(entry.parameters)
    if use_sim_time is not None:
        values[entry.clock] = use_sim_time
    if autostart is not None and entry.robot:
        values["autostart"] = autostart
    return values


def start_arguments(
    entry: NodeEntry,
    namespace: str = "",
    use_sim_time: bool | None = None,
    autostart: bool | None = None,
) -> list[str]:
    """Return the arguments (-r, -p) of the start options, to follow ros_arguments."""
    name = absolute(namespace)
    arguments = ["-r", f"__ns:={name}"] if name else []
    values = start_parameters(entry, use_sim_time, autostart)
    for name, value in values.items():
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    return arguments


def absolute(namespace: str) -> str:
    """Return a namespace with a leading slash; "" for an empty one or "/".

    Raises:
        SettingError: A part of the namespace is empty, begins with a digit, or has
            other characters than ASCII letters, digits and _.
    """
    name = namespace.removeprefix("/")
    if name and not re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name, re.ASCII):
        raise SettingError(
            f"namespace '{namespace}'; valid: letters, digits and _, parts separated by"
            " /, such as /robot1",
            "namespace",
        )
    return f"/{name}" if name else ""
