"""The `dyn` commands of this package; importing them needs no ROS."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from dyn_core import robots
from dyn_core.authoring import hookimpl
from dyn_core.errors import SettingError, unknown_name
from dyn_core.model.sources.arguments import ROBOT, add_search, robot_settings
from dyn_core.model.sources.locate import locate
from ros_nodes import feed_forward_command
from ros_nodes.demo import demo_command as demo
from ros_nodes.graphs import COMMON, GRAPHS, SUPERVISE, absolute, start_arguments
from ros_nodes.live_view import view_command
from ros_nodes.parameter_tables.parameter_files import read_parameters
from ros_nodes.processes import Processes, ros_fault
from ros_nodes.running.runtime import note_signals
from ros_nodes.tools import commands as tools


@hookimpl
def dyn_commands(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands `up`, `demo`, `feed-forward`, the ROS tools and `view`."""
    up = subparsers.add_parser("up", help="start the nodes of a graph")
    up.add_argument("graph", choices=sorted(GRAPHS), help="nodes that belong together")
    up.add_argument("--params", help="parameter file; default: the shipped one")
    up.add_argument(
        "--robot",
        default="",
        help=f"{ROBOT}; of the graph chain: its YAML file, or a shipped chain",
    )
    add_search(up)
    for name, (_, description) in {**COMMON, **SUPERVISE}.items():
        option = f"--{name.replace('_', '-')}"
        if name == "namespace":
            up.add_argument(option, default="", help=description)
        else:
            act = argparse.BooleanOptionalAction
            up.add_argument(option, action=act, default=None, help=description)
    up.set_defaults(run=_up)
    demo.add_arguments(
        subparsers.add_parser("demo", help="run an arm that tracks a trajectory")
    )
    feed_forward_command.add(subparsers)
    tools.add(subparsers)
    view_command.add(subparsers)


def _up(arguments: argparse.Namespace) -> int:
    """Run `dyn up`: start the nodes of a graph, wait for a signal, end them.

    Returns:
        Exit status: 0 after a signal if all processes ended with 0; 1 if ROS is
            missing, a process ended by itself, or one ended with another status.

    Raises:
        SettingError: An option does not apply to the graph.
        DynError: The robot, the parameter file or the namespace is not valid.
    """
    fault = ros_fault()
    if fault is not None:
        print(f"dyn up: {fault}", file=sys.stderr)
        return 1
    graph = GRAPHS[arguments.graph]
    entries = graph.entries(bool(arguments.supervise))
    params = arguments.params or str(graph.params_file)
    executables = [entry.executable for entry in graph.nodes]
    read_parameters(params, executables, absolute(arguments.namespace))
    robot, settings = arguments.robot, _settings(arguments)
    if arguments.graph == "chain":
        robot = _chain(robot) if robot else ""
        if settings:
            what = "--package-path and --xacro-argument change nothing for a chain"
            raise SettingError(f"{what}; valid: --robot alone", "robot")
    elif arguments.graph == "guard" and (robot or settings):
        raise SettingError("a guard has no robot; valid: none", "robot")
    elif robot:
        place = locate(robot, arguments.package_path)
        robot = place.name or str(place.file or robot)
    stop = note_signals()
    options = arguments.namespace, arguments.use_sim_time, arguments.autostart
    more = {
        entry.executable: [
            *(settings if entry.robot else ()),
            *start_arguments(entry, *options),
        ]
        for entry in entries
    }
    with Processes(entries, params, os.environ, robot, more) as processes:
        status = processes.wait(stop)
        failed = [code for code in processes.end() if code != 0]
    return status or int(bool(failed))


def _chain(name: str) -> str:
    """Return the absolute path of a chain's YAML file, or the name of a shipped chain.

    Raises:
        SettingError: There is no such file or shipped chain.
    """
    if name.endswith((".yaml", ".yml")):
        path = os.path.abspath(name)
        if not Path(path).is_file():
            raise SettingError(f"no file {path}", "robot")
        return path
    if name not in robots.chains():
        raise SettingError(unknown_name("robot", name, robots.chains()), "robot")
    return name


def _settings(arguments: argparse.Namespace) -> list[str]:
    """Return the ROS arguments (-p NAME:=JSON) that set how a node reads its robot.

    The list is empty if no such option was given.
    """
    lists = robot_settings(arguments)
    return [x for k, v in lists.items() for x in ("-p", f"{k}:={json.dumps(v)}")]
