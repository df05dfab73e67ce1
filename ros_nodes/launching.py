"""Launch descriptions of the graphs; they need the package `launch` of ROS."""

from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from ros_nodes.graphs import GRAPHS, PACKAGE


def launch_description(name: str) -> LaunchDescription:
    """Return the launch description of a graph, with its arguments and `params`."""
    graph = GRAPHS[name]
    arguments = {
        "params": (str(graph.params_file), "parameter file"),
        **graph.arguments,
    }

    def start(context: Any) -> list[Node]:
        params = LaunchConfiguration("params").perform(context)
        robot = LaunchConfiguration("robot").perform(context)
        return [
            Node(
                package=PACKAGE,
                executable=entry.executable,
                name=entry.executable,
                parameters=[params, *([{entry.robot: robot}] if robot else [])],
                remappings=list(entry.remappings),
                output="screen",
            )
            for entry in graph.nodes
        ]

    declared = [
        DeclareLaunchArgument(key, default_value=default, description=description)
        for key, (default, description) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
