"""The commands `dyn up` and `dyn demo`; importing them needs no ROS."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from dyn_core import robots
from dyn_core.authoring import hookimpl
from dyn_core.errors import SettingError, unknown_name
from ros_nodes import demo
from ros_nodes._runtime import note_signals
from ros_nodes.graphs import GRAPHS
from ros_nodes.parameter_files import read_parameters
from ros_nodes.processes import Processes, ros_fault


@hookimpl
def dyn_commands(subparsers: argparse._SubParsersAction) -> None:
    """Add `up` and `demo`."""
    up = subparsers.add_parser("up", help="start the nodes of a graph")
    up.add_argument("graph", choices=sorted(GRAPHS))
    up.add_argument("--params", help="parameter file; default: the shipped one")
    up.add_argument(
        "--robot",
        default="",
        help="path of a URDF (chain: of a YAML file), or the name of a shipped robot",
    )
    up.set_defaults(run=_up)
    demo.add_arguments(
        subparsers.add_parser("demo", help="run an arm that tracks a trajectory")
    )


def _up(arguments: argparse.Namespace) -> int:
    fault = ros_fault()
    if fault is not None:
        print(f"dyn up: {fault}", file=sys.stderr)
        return 1
    graph = GRAPHS[arguments.graph]
    params = arguments.params or str(graph.params_file)
    read_parameters(params)
    robot = arguments.robot
    if robot.endswith((".urdf", ".xml", ".yaml", ".yml")):
        robot = os.path.abspath(robot)
        if not Path(robot).is_file():
            raise SettingError(f"no file {robot}", "robot")
    elif robot:
        known = robots.chains() if arguments.graph == "chain" else robots.names()
        if robot not in known:
            raise SettingError(unknown_name("robot", robot, known), "robot")
    stop = note_signals()
    with Processes(graph.nodes, params, os.environ, robot) as processes:
        status = processes.wait(stop)
        failed = [code for code in processes.end() if code != 0]
    return status or int(bool(failed))
