"""Launch descriptions of the graphs; they need the ROS package `launch`."""

from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from dyn_core.errors import SettingError
from launch import LaunchDescription
from ros_nodes.graphs import (
    COMMON,
    GRAPHS,
    PACKAGE,
    NodeEntry,
    absolute,
    start_parameters,
)
from ros_nodes.parameter_tables.parameter_files import read_parameters
from ros_nodes.running.runtime import LIFELINE


def launch_description(name: str) -> LaunchDescription:
    """Return the launch description of a graph, by its key in GRAPHS.

    Launch arguments are `params`, the arguments of the graph, and COMMON.
    """
    graph = GRAPHS[name]
    arguments = {
        "params": (str(graph.params_file), "parameter file"),
        **graph.arguments,
        **COMMON,
    }

    def start(context: Any) -> list[Node]:
        """Return one launch action per process, for the values of the arguments."""
        chosen = {key: LaunchConfiguration(key).perform(context) for key in arguments}
        names = [entry.executable for entry in graph.nodes]
        read_parameters(chosen["params"], names, absolute(chosen["namespace"]))
        entries = graph.entries(_switch(chosen.get("supervise", "")) or False)
        return [_node(entry, chosen) for entry in entries]

    declared = [
        DeclareLaunchArgument(key, default_value=default, description=description)
        for key, (default, description) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def _node(entry: NodeEntry, chosen: dict[str, str]) -> Node:
    """Return the launch action of one process; the node is named as its executable.

    DYN_ROS_LIFELINE is set, so that the process ends with its launch. An empty value of
    `chosen` sets no parameter, so that the parameter file decides.
    """
    switches = _switch(chosen["use_sim_time"]), _switch(chosen["autostart"])
    values = start_parameters(entry, *switches)
    if entry.robot and chosen["robot"]:
        values[entry.robot] = chosen["robot"]
    return Node(
        package=PACKAGE,
        executable=entry.executable,
        name=entry.executable,
        namespace=chosen["namespace"],
        parameters=[x for x in (dict(entry.defaults), chosen["params"], values) if x],
        remappings=list(entry.remappings),
        additional_env={LIFELINE: "1"},  # launch holds the other end of its input
        output="screen",
    )


def _switch(value: str) -> bool | None:
    """Return the bool of the text true or false, in any case; None if empty."""
    known = {"": None, "true": True, "false": False}
    if value.lower() not in known:
        raise SettingError(f"launch argument '{value}'; valid: true, false, or empty")
    return known[value.lower()]
