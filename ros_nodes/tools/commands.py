"""Arguments of the commands for running nodes and recordings; they need no ROS."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, unknown_name
from dyn_core.identification import FRICTION_LAWS
from dyn_core.model.sources.arguments import (
    ROBOT,
    add_lock,
    add_search,
    named_numbers,
    typed_pose,
)
from dyn_core.spatial.conventions.common import quaternion
from ros_nodes.messages.trajectory_files import read_trajectories
from ros_nodes.processes import ros_fault

NAME = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)
_BOUNDS = {"speed": 0.1, "turn": 0.5}  # of `dyn move` [m/s], [rad/s]
STARTING = 20.0  # time in which nodes come up and configure [s]
TRANSITIONS = ("configure", "cleanup", "activate", "deactivate", "shutdown")
TOPIC = re.compile(r"[~/]?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn plot`; those parsed have its function as `run`."""
    _add_recording(parser)
    parser.add_argument(
        "-o", "--output", default="recording.png",
        help="picture, replaced if there is one (default: %(default)s)",
    )  # fmt: skip
    parser.set_defaults(run=_plot)


def _verbs(parser: argparse.ArgumentParser) -> Any:
    """Return new subparsers for the verbs of a command; a verb is required."""
    return parser.add_subparsers(
        title="verbs", metavar="VERB", dest="verb", required=True
    )


def _verb(verbs: Any, name: str, what: str, node: str = "") -> argparse.ArgumentParser:
    """Add a verb with the arguments node and --timeout; return its parser.

    `node` is the meaning of a missing node, for the help; empty: it is required.
    """
    parser = verbs.add_parser(name, help=what)
    described = "a running node, such as /simulator"
    if node:
        parser.add_argument("node", nargs="?", help=f"{described}; without: {node}")
    else:
        parser.add_argument("node", help=described)
    _add_timeout(parser, STARTING)
    return parser


def _add_timeout(parser: argparse.ArgumentParser, usual: float = 5.0) -> None:
    """Add the option --timeout to a parser, with a default [s]."""
    parser.add_argument(
        "--timeout", type=float, default=usual, metavar="S",
        help="longest wait for a node or an answer [s] (default: %(default)s)",
    )  # fmt: skip


def add_param(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn param`; those parsed have its function as `run`."""
    verbs = _verbs(parser)
    _verb(verbs, "list", "names of parameters", "of all nodes")
    verb = _verb(verbs, "get", "value of a parameter")
    verb.add_argument("name", help="a parameter")
    verb.add_argument("--hide-type", action="store_true", help="print the value alone")
    verb = _verb(verbs, "set", "give a parameter another value")
    verb.add_argument("name", help="a parameter")
    verb.add_argument("value", help="as YAML has it: 2.5, true, [a, b]")
    verb = _verb(verbs, "delete", "take back an option of a solver")
    verb.add_argument("name", help="SLOT.options.NAME")
    verb = _verb(verbs, "describe", "type, range and meaning of parameters")
    verb.add_argument("names", nargs="*", help="parameters; without: all")
    _verb(verbs, "dump", "all values as YAML, for --params-file")
    verb = _verb(verbs, "load", "give parameters the values of a file, all or none")
    verb.add_argument("file", help="parameter file, as of dump")
    parser.set_defaults(run=_param)


def add_lifecycle(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn lifecycle`; those parsed have its function as `run`."""
    verbs = _verbs(parser)
    verb = verbs.add_parser("nodes", help="nodes that have a life cycle")
    _add_timeout(verb, STARTING)
    verb.set_defaults(node=None)
    _verb(verbs, "get", "state of a node", "of all nodes")
    _verb(verbs, "list", "transitions that a node can take now")
    verb = _verb(verbs, "set", "take transitions, one after the other")
    verb.add_argument(
        "transition", nargs="+", help="configure, activate, ..., or its number"
    )
    parser.set_defaults(run=_lifecycle)


def add_call(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn call`; those parsed have its function as `run`."""
    parser.add_argument("service", help="its full name, such as /guard/reset")
    parser.add_argument("value", nargs="?", metavar="{true,false}", help="of a SetBool")
    _add_timeout(parser)
    parser.set_defaults(run=lambda arguments: _lifecycle(arguments, "call"))


def add_diagnostics(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn diagnostics`, and its function as `run`."""
    parser.add_argument("node", nargs="?", help="print all values of this node")
    _add_timeout(parser)
    parser.set_defaults(run=lambda arguments: _lifecycle(arguments, "diagnostics"))


def add_echo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn echo`; those parsed have its function as `run`."""
    parser.add_argument("topic", help="its name, such as /joint_states")
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--once", action="store_const", const=1, dest="count", help="one message"
    )
    end.add_argument(
        "--count", type=int, metavar="N", help="messages; default: until Ctrl-C"
    )
    _add_timeout(parser)
    parser.set_defaults(run=_echo)


def add_move(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn move`; those parsed have its function as `run`."""
    parser.add_argument(
        "node", nargs="?", default="/computed_torque",
        help="a node computed_torque (default: %(default)s)",
    )  # fmt: skip
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument(
        "--to", nargs=3, type=float, metavar=("X", "Y", "Z"),
        help="position of the tool in the root link [m], in mode cartesian or"
        " predictive",
    )  # fmt: skip
    goal.add_argument(
        "--joints", nargs="+", metavar="JOINT=POSITION",
        help="positions of joints [rad | m]; the others stay (mode predictive: of all)",
    )  # fmt: skip
    goal.add_argument(
        "--trajectory", metavar="FILE",
        help="a JointTrajectory, as dyn excite and dyn feed-forward write it (.json, or"
        " YAML)",
    )  # fmt: skip
    turn = parser.add_mutually_exclusive_group()
    turn.add_argument(
        "--quaternion", nargs=4, type=float, metavar=("X", "Y", "Z", "W"),
        help="its orientation; default: the present one",
    )  # fmt: skip
    turn.add_argument(
        "--rpy", nargs=3, type=float, metavar=("R", "P", "Y"),
        help="its orientation, roll, pitch and yaw as in a URDF [rad]",
    )  # fmt: skip
    turn.add_argument(
        "--position-only", action="store_true",
        help="its orientation is as it comes, for an arm of fewer than six joints",
    )  # fmt: skip
    for name, what in (("speed", "speed [m/s]"), ("turn", "[rad/s]")):
        parser.add_argument(
            f"--{name}", type=float, metavar="V",
            help=f"largest {what} of the tool on the way (default: {_BOUNDS[name]})",
        )  # fmt: skip
    parser.add_argument(
        "--duration", type=float, metavar="S",
        help="time until the joints are there, or at the first point of the trajectory,"
        " which then begins there [s]",
    )  # fmt: skip
    _add_timeout(parser)
    parser.set_defaults(run=_move)


def add_record(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn record`; those parsed have its function as `run`."""
    parser.add_argument(
        "--topics", nargs="+", metavar="TOPIC", help="default: all that are published"
    )
    parser.add_argument(
        "-o", "--output", required=True,
        help="a new folder (a bag of ROS 2), or a new file NAME.mcap; an existing one"
        " is refused",
    )  # fmt: skip
    parser.add_argument(
        "--duration", type=float, metavar="S", help="[s]; default: until Ctrl-C"
    )
    parser.add_argument(
        "--storage", choices=("mcap", "sqlite3"), default="mcap",
        help="of the messages (default: %(default)s)",
    )  # fmt: skip
    _add_timeout(parser)
    parser.set_defaults(run=_record)


def _add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the argument `recording`, and --joint-states and --commands, its topics."""
    parser.add_argument("recording", help="a bag (folder, .mcap, .db3), .npz or .csv")
    parser.add_argument(
        "--joint-states", default="", metavar="TOPIC", help="default: joint_states"
    )
    parser.add_argument(
        "--commands", default="", metavar="TOPIC", help="default: .../commands"
    )


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn evaluate`; those parsed have its function as `run`."""
    _add_recording(parser)
    parser.add_argument(
        "--robot", default="", help=f"{ROBOT}; default: the one that the file names"
    )
    parser.add_argument("--extras", help="sidecar YAML file of the robot")
    add_search(parser)
    add_lock(parser)
    parser.add_argument("--parameters", help="table of parameters of an --identify")
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="of the filter [Hz]")
    parser.add_argument(
        "--no-joint-friction", action="store_true", help="of the model's joints"
    )
    parser.add_argument("--plot", default="", metavar="FILE", help="picture of it")
    parser.add_argument(
        "--identify", default="", metavar="NAME",
        help="identify the robot from the recording; writes NAME.parameters.csv and"
        " NAME.dyn.yaml",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="WHAT", help="what is identified: inertia,"
        " payload, friction, rotors, springs, or parameter paths such as tool.payload;"
        " default: inertia, friction and rotors",
    )  # fmt: skip
    parser.add_argument(
        "--friction", metavar="LAW", choices=[*FRICTION_LAWS],
        help=f"law of joint friction that is identified: {', '.join(FRICTION_LAWS)}",
    )  # fmt: skip
    parser.add_argument(
        "--friction-speed", action=argparse.BooleanOptionalAction, default=None,
        help="identify the width v of dry friction, tanh(qd / v), or leave it as the"
        " robot has it; default: identify it with every law of dry friction",
    )  # fmt: skip
    parser.add_argument(
        "--robust", action="store_true", help="outliers count less (Huber)"
    )
    parser.add_argument(
        "--delay", action="store_true", help="identify how late joint forces are, too"
    )
    parser.add_argument(
        "--folds", type=int, default=0, metavar="N",
        help="cross-validation: fits without each of N blocks of time",
    )  # fmt: skip
    parser.add_argument(
        "--urdf", action="store_true",
        help="write NAME.urdf, a copy of the robot's file",
    )  # fmt: skip
    parser.add_argument(
        "--report", default="", metavar="FILE",
        help="page of what was identified, .html",
    )  # fmt: skip
    parser.set_defaults(run=_evaluate)


def add_check_node(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn check-node`; parsed ones have its function as `run`."""
    parser.add_argument("--robot", default="", help=ROBOT)
    add_search(parser)
    parser.add_argument("--params", help="parameter file of both nodes (see demo.yaml)")
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="default: all")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the joint (default: %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="print the faults")
    parser.set_defaults(run=_check)


def _live(command: str, arguments: argparse.Namespace) -> bool:
    """Refuse wrong arguments; return whether ROS is available, or print why not."""
    named = ("node", "/simulator"), ("service", "/guard/reset"), ("topic", "/clock")
    for what, valid in named:
        name = getattr(arguments, what, None)
        if name is not None and not NAME.fullmatch(name):
            raise SettingError(f"{what} {name!r}; valid: a name such as {valid}", what)
    for topic in getattr(arguments, "topics", None) or ():
        if not TOPIC.fullmatch(topic):
            raise SettingError(
                f"topic {topic!r}; valid: such as /joint_states", "topic"
            )
    for wanted in getattr(arguments, "transition", ()):
        if not (wanted.isdecimal() or wanted in TRANSITIONS):
            message = unknown_name("transition", wanted, TRANSITIONS)
            raise SettingError(message, "transition")
    for name in ("timeout", "duration"):
        seconds = getattr(arguments, name, None)
        if seconds is not None and not 0 < seconds < math.inf:
            raise SettingError(f"--{name} {seconds:g} s; valid: more than 0", name)
    fault = ros_fault()
    if fault is not None:
        print(f"dyn {command}: {fault}", file=sys.stderr)
    return fault is None


def _param(arguments: argparse.Namespace) -> int:
    """Run `dyn param`; return the exit status, 1 without ROS."""
    if not _live("param", arguments):
        return 1
    from ros_nodes.tools import param

    return param.run(arguments)


def _lifecycle(arguments: argparse.Namespace, command: str = "run") -> int:
    """Run `dyn lifecycle`, or another `command` of it; return the exit status."""
    if not _live("lifecycle" if command == "run" else command, arguments):
        return 1
    from ros_nodes.tools import lifecycle

    return getattr(lifecycle, command)(arguments)


def _move(arguments: argparse.Namespace) -> int:
    """Run `dyn move`; return the exit status: 0 if tool or joints arrive.

    `arguments` is changed: as in _check_tool with --to, else `joints` and `message`.
    """
    tool = arguments.to is not None
    turns = ("quaternion", "rpy", "position_only")
    for name in ("duration",) if tool else (*turns, *_BOUNDS):
        if getattr(arguments, name) not in (None, False):
            other = "--joints or --trajectory" if tool else "--to"
            raise SettingError(f"--{name.replace('_', '-')} goes with {other}", name)
    if tool:
        _check_tool(arguments)
    else:
        arguments.joints = named_numbers("joints", arguments.joints)
        arguments.message = None
        if arguments.trajectory is not None:
            arguments.message, *more = read_trajectories(arguments.trajectory)
            if more:
                what = f"{arguments.trajectory} has {1 + len(more)} trajectories"
                raise SettingError(f"{what}; valid: one", "trajectory")
        elif arguments.duration is None:
            needed = "--joints needs --duration, in seconds, such as --duration 3"
            raise SettingError(needed, "duration")
    if not _live("move", arguments):
        return 1
    from ros_nodes.moving import joint_move, move

    return (move if tool else joint_move).run(arguments)


def _check_tool(arguments: argparse.Namespace) -> None:
    """Set defaults and the quaternion of `dyn move --to`, and check its numbers."""
    from ros_nodes.moving.tool_path import ToolPath

    for name, bound in _BOUNDS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, bound)
    if arguments.rpy:
        arguments.quaternion = of_rpy(arguments.rpy)
    still = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    end = np.r_[arguments.to, arguments.quaternion or still[3:]]
    ToolPath(still, end, arguments.speed, arguments.turn)


def of_rpy(rpy: Sequence[float]) -> list[float]:
    """Return the quaternion x, y, z, w of roll, pitch and yaw as in a URDF [rad]."""
    R, _ = typed_pose((0.0, 0.0, 0.0), rpy)
    return [float(x) for x in quaternion(R)]


def _echo(arguments: argparse.Namespace) -> int:
    """Run `dyn echo`; return the exit status, 1 without ROS."""
    if arguments.count is not None and arguments.count < 1:
        raise SettingError(f"--count {arguments.count}; valid: 1 or more", "count")
    if not _live("echo", arguments):
        return 1
    from ros_nodes.tools import recorder

    return recorder.echo(arguments)


def _record(arguments: argparse.Namespace) -> int:
    """Run `dyn record`; return the exit status, 1 without ROS."""
    if arguments.output.endswith(".mcap") and arguments.storage != "mcap":
        raise SettingError(
            f"--output {arguments.output} is one file of MCAP, which --storage"
            f" {arguments.storage} does not write; valid: the name of a new folder",
            "output",
        )
    from dyn_core.recordings.bags import TABLES, rosbags

    suffix = Path(arguments.output).suffix
    if suffix in (*TABLES, ".db3", ".bag"):
        raise SettingError(
            f"--output {arguments.output}: a recording of topics is no {suffix} file;"
            " valid: NAME.mcap, or the name of a new folder (a bag)",
            "output",
        )
    rosbags()
    if not _live("record", arguments):
        return 1
    from ros_nodes.tools import recorder

    return recorder.run(arguments)


def _plot(arguments: argparse.Namespace) -> int:
    """Run `dyn plot`: write a picture of a recording; return the exit status 0."""
    from ros_nodes.tools import recordings

    return recordings.plot(arguments)


def _evaluate(arguments: argparse.Namespace) -> int:
    """Run `dyn evaluate`: print how a model fits a recording; return exit status 0."""
    from ros_nodes.tools import recordings

    return recordings.evaluate_recording(arguments)


def _check(arguments: argparse.Namespace) -> int:
    """Run or list faults; return 0 if all have passed or are only listed, else 1."""
    from ros_nodes.tools import fault_list

    chosen = fault_list.chosen(arguments.only)
    if arguments.seed < 0:
        raise SettingError(f"--seed {arguments.seed}; valid: 0 or more", "seed")
    if arguments.list:
        for fault in chosen:
            print(f"{fault.name:20} {fault.meaning}")
        return 0
    if not _live("check-node", arguments):
        return 1
    from ros_nodes.tools import check_node

    return check_node.run(arguments)
