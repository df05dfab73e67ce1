"""`dyn view`: a robot, a run or live joint states in a browser, or as a film."""

from __future__ import annotations

import argparse
import sys

from dyn_core.model.sources.arguments import ROBOT, add_lock, add_reading
from ros_nodes.processes import ros_fault

HOST, PORT = "127.0.0.1", 8080


def add_view(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn view`; those parsed have its function as `run`."""
    parser.add_argument(
        "what",
        help=f"{ROBOT}; or a planar chain (YAML file, name); an environment such as"
        " dyn_ros/Pendulum-v0; or a recording (.npz, .csv, .mcap, bag)",
    )
    parser.add_argument("--robot", default="", help=f"of a recording: {ROBOT}")
    add_reading(parser)
    add_lock(parser)
    parser.add_argument(
        "--q0", nargs="+", metavar="Q",
        help="of a robot: posture at the start, as of dyn sim: JOINT=VALUE for some"
        " joints, or all numbers [rad, m]",
    )  # fmt: skip
    parser.add_argument(
        "--live", action="store_true", help="follow the joint states of running nodes"
    )
    parser.add_argument(
        "--network", action="store_true",
        help="with --live: of other machines, too, as the environment says",
    )  # fmt: skip
    parser.add_argument(
        "--joint-states", default="", metavar="TOPIC", help="default: joint_states"
    )
    parser.add_argument(
        "--host", default=HOST,
        help="address to listen on (default: %(default)s, this machine alone)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=PORT,
        help="port; 0: any that is free (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--film", metavar="FILE.gif",
        help="write a film instead, without a browser; a robot moves joint by joint",
    )  # fmt: skip
    parser.add_argument(
        "--html", metavar="FILE.html",
        help="write one page instead that needs no server",
    )  # fmt: skip
    parser.add_argument(
        "--picture", metavar="FILE.png",
        help="write a picture of the start instead, without a browser",
    )  # fmt: skip
    parser.add_argument(
        "--fps", type=float,
        help="pictures per second of a film, up to 50 (default: 20)",
    )  # fmt: skip
    parser.add_argument(
        "--speed", type=float,
        help="of a replay or a film; 0.5: half as fast (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--torque-colors", action="store_true",
        help="of a film: colours of the bodies by their joints' forces",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run `dyn view`; return 0, or 1 if --live lacks ROS or joint states.

    Args:
        arguments: Parsed arguments of `dyn view`.

    Raises:
        DynError: An argument is not valid, the object cannot be read, or a library is
            not installed.
    """
    from dyn_core.view import command

    command.check(arguments)
    if arguments.live:
        fault = ros_fault()
        if fault is not None:
            print(f"dyn view --live: {fault}", file=sys.stderr)
            return 1
        from ros_nodes.live_view import view_live

        return view_live.run(arguments)
    return command.view(arguments)
