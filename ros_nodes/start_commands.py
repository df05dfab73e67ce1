"""The commands `dyn up` and `dyn feed-forward`; the latter also runs without ROS."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import dyn_core as dyn
from dyn_core import robots
from dyn_core.control.feed_forward import FeedForward
from dyn_core.errors import ModelWarning, SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.model.sources.arguments import (
    ROBOT,
    add_search,
    load_robot,
    load_with,
    named_numbers,
    robot_settings,
)
from dyn_core.model.sources.locate import locate
from dyn_core.signals import noted_signals
from dyn_core.validation.file_names import file_kind
from ros_nodes.graphs import (
    COMMON,
    GRAPHS,
    SIMULATOR,
    SUPERVISE,
    absolute,
    start_arguments,
)
from ros_nodes.messages.trajectory_files import (
    filled,
    message_rows,
    read_trajectories,
    written,
)
from ros_nodes.parameter_tables.parameter_files import check_joints, read_parameters
from ros_nodes.processes import Processes, ros_fault
from ros_nodes.running.runtime import SIGNALS

SAMPLES = 20  # positions at which the weight of the robot is examined


def add_feed_forward(parser: argparse.ArgumentParser) -> None:
    """Add arguments of `dyn feed-forward`; those parsed have its function as `run`."""
    parser.add_argument(
        "trajectory",
        help="a JointTrajectory as `ros2 topic echo` prints it, or .json",
    )
    parser.add_argument("--robot", required=True, help=ROBOT)
    add_search(parser)
    parser.add_argument("--extras", help="sidecar YAML file")
    parser.add_argument("-o", "--output", help="file to write (default: print YAML)")
    parser.add_argument(
        "--hold", action="append", default=[], metavar="JOINT=POSITION",
        help="position of a joint that the trajectory lacks",
    )  # fmt: skip
    parser.add_argument(
        "--period", type=float, default=0.0,
        help="add points on the same motion, at most so many seconds apart",
    )  # fmt: skip
    parser.add_argument(
        "--inverse-dynamics", default="auto", help="solver (default: auto)"
    )
    parser.add_argument(
        "--no-friction", action="store_true", help="leave out friction of joints"
    )
    parser.set_defaults(run=run_feed_forward)


def run_feed_forward(arguments: argparse.Namespace) -> int:
    """Run `dyn feed-forward`: compute the efforts of each trajectory in a file.

    The trajectories with efforts are written to --output, as JSON if its name ends with
    .json and else as YAML, or printed as YAML. Exceeded effort limits only warn.
    """
    if not 0 <= arguments.period < float("inf"):
        message = f"--period is {arguments.period}; valid: 0 or more seconds"
        raise SettingError(message, "--period")
    messages = read_trajectories(arguments.trajectory)
    model = load_robot(arguments, arguments.robot, root_joint="fixed")
    feed = FeedForward(
        model,
        named_numbers("hold", arguments.hold),
        arguments.inverse_dynamics,
        joint_friction=not arguments.no_friction,
    )
    made = [_with_effort(feed, x, arguments.period) for x in messages]
    out = arguments.output
    content = written(made, out is not None and out.endswith(".json"))
    if out is not None:
        Path(out).write_text(content, encoding="utf-8")
    else:
        sys.stdout.write(content)
    return 0


def _with_effort(feed: FeedForward, message: Any, period: float) -> dict[str, Any]:
    """Return a new message with efforts; print a warning for each exceeded limit.

    `period`: largest time between two points, added on the same motion [s]; 0: any.
    """
    names, times, *rows, _ = message_rows(message)
    made = feed.trajectory(names, times, *rows, period=period)
    assert made.effort is not None
    for line in feed.excess(made.effort, names):
        print(f"warning: {line}", file=sys.stderr)
    return filled(message, made)


def add_up(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn up`; those parsed have its function as `run`."""
    parser.add_argument(
        "graph", choices=sorted(GRAPHS), help="nodes that belong together"
    )
    parser.add_argument("--params", help="parameter file; default: the shipped one")
    parser.add_argument(
        "--robot", default="",
        help=f"{ROBOT}; of the graph chain: its YAML file, or a shipped chain",
    )  # fmt: skip
    add_search(parser)
    for name, (_, description) in {**COMMON, **SUPERVISE}.items():
        option = f"--{name.replace('_', '-')}"
        if name == "namespace":
            parser.add_argument(option, default="", help=description)
        else:
            act = argparse.BooleanOptionalAction
            parser.add_argument(option, action=act, default=None, help=description)
    parser.set_defaults(run=_up)


def _up(arguments: argparse.Namespace) -> int:
    """Run `dyn up`: start the nodes of a graph, wait for a signal, end them.

    The exit status is 0 after a signal if all processes ended with 0.
    """
    fault = ros_fault()
    if fault is not None:
        print(f"dyn up: {fault}", file=sys.stderr)
        return 1
    graph = GRAPHS[arguments.graph]
    entries = graph.entries(bool(arguments.supervise))
    params = arguments.params or str(graph.params_file)
    executables = [entry.executable for entry in graph.nodes]
    nodes = read_parameters(params, executables, absolute(arguments.namespace))
    robot, settings = arguments.robot, _settings(arguments)
    models: dict[str, Model] = {}
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
    for entry in graph.nodes if graph.nodes[0].robot == SIMULATOR.robot else ():
        values = nodes[entry.executable] | robot_settings(arguments)
        source = robot or values.get("robot_description_file")
        if source and not values.get("robot_description"):
            models[source] = _robot(source, values)
            check_joints(f"{params}: {entry.executable}", values, models[source])
    options = arguments.namespace, arguments.use_sim_time, arguments.autostart
    more = {
        entry.executable: [
            *(settings if entry.robot else ()),
            *start_arguments(entry, *options),
        ]
        for entry in entries
    }
    with (
        noted_signals(*SIGNALS) as stop,
        Processes(entries, params, os.environ, robot, more) as processes,
    ):
        for source, model in models.items():
            _warn_of_findings(source, model)
        status = processes.wait(stop)
        failed = [code for code in processes.end() if code != 0]
    return status or int(bool(failed))


def _robot(source: str, values: dict[str, Any]) -> Model:
    """Return the robot that a node will read, with a fixed root.

    Its choice of joints, root, tip and gravity is not applied.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the node logs it
        extras = values.get("model_extras") or None
        return load_with(values, source, extras=extras, root_joint="fixed")


def _warn_of_findings(source: str, model: Model) -> None:
    """Print a line to standard error if dyn doctor finds errors or warnings."""
    report = dyn.doctor(model, samples=SAMPLES, meshes=False)
    if titles := "; ".join(x.kind.title for x in (*report.errors, *report.warnings)):
        print(
            f"dyn up: warning: robot '{model.name}': {titles}: dyn doctor {source} says"
            " more",
            file=sys.stderr,
        )


def _chain(name: str) -> str:
    """Return the absolute path of a chain's file, or the name of a shipped chain."""
    if name.endswith((".yaml", ".yml")):
        path = os.path.abspath(name)
        if file_kind(path, "robot") != "file":
            raise SettingError(f"no file {path}", "robot")
        return path
    if name not in robots.chains():
        raise SettingError(unknown_name("robot", name, robots.chains()), "robot")
    return name


def _settings(arguments: argparse.Namespace) -> list[str]:
    """Return the ROS arguments for --package-path and --xacro-argument."""
    lists = robot_settings(arguments)
    return [x for k, v in lists.items() for x in ("-p", f"{k}:={json.dumps(v)}")]
