"""The `dyn` commands of this package; listing them imports no other module."""

from __future__ import annotations

from typing import Any

from dyn_core.solving.hookspecs import hookimpl

_ROS, _RUNS, _ROBOTS = "ROS 2", "runs and recordings", "robots"
_TOOLS, _STARTS = "ros_nodes.tools.commands", "ros_nodes.start_commands"
_RUN, _NODE = "run.npz", "/computed_torque"
# Group, name, sentence, arguments of an example, module of the function add_NAME.
COMMANDS = (
    (_ROBOTS, "view", "see a robot or a run in a browser", "arm7",
     "ros_nodes.live_view.view_command"),
    (_RUNS, "plot", "draw a recording", f"{_RUN} -o run.png", _TOOLS),
    (_RUNS, "evaluate", "a model's torques against measured ones",
     f"{_RUN} --robot two_link", _TOOLS),
    (_RUNS, "feed-forward", "fill in the efforts of a trajectory by inverse dynamics",
     "trajectory.yaml --robot my_robot.urdf -o filled.yaml", _STARTS),
    (_ROS, "demo", "run an arm that tracks a trajectory", "--duration 2",
     "ros_nodes.demo.demo_command"),
    (_ROS, "up", "start the nodes of a graph", "demo --robot arm7", _STARTS),
    (_ROS, "move", "lead the joints, or the tool, of a controlled robot",
     "--joints joint2=0.4 --duration 3", _TOOLS),
    (_ROS, "param", "parameters of running nodes", f"get {_NODE} mode", _TOOLS),
    (_ROS, "lifecycle", "states of running nodes", f"get {_NODE}", _TOOLS),
    (_ROS, "call", "call a service of a running node", "/guard/reset", _TOOLS),
    (_ROS, "echo", "print the messages of a topic", "/joint_states --once", _TOOLS),
    (_ROS, "diagnostics", "what running nodes say of themselves", _NODE, _TOOLS),
    (_ROS, "record", "record topics in a bag", "-o bag --duration 10", _TOOLS),
    (_ROS, "check-node", "what the nodes do about faults", "--only nan-position",
     _TOOLS),
)  # fmt: skip


@hookimpl
def dyn_commands(subparsers: Any) -> None:
    """Add the commands of COMMANDS to `subparsers`, those of the command `dyn`.

    Their add_parser takes group, example and module (of the function add_NAME), too.
    """
    for group, name, sentence, example, module in COMMANDS:
        subparsers.add_parser(
            name, help=sentence, group=group, example=example, module=module
        )
