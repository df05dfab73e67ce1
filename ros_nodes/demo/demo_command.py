"""`dyn demo`: a simulated arm follows a trajectory under computed torque.

Two processes communicate over ROS 2 topics on this machine only. Without rclpy the same
controller and simulator run in one process.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dyn_core as dyn
from dyn_core.control.controller import Controller
from dyn_core.control.modes.control_law import control_mode
from dyn_core.control.reference.trajectory import make_trajectory
from dyn_core.model.sources.arguments import (
    READING,
    ROBOT,
    add_search,
    load_with,
    robot_settings,
)
from dyn_core.plots import Curve, Panel, draw, save
from dyn_core.plots.figures import COLOURS, GREY, NO_PICTURES, can_draw
from dyn_core.simulation.simulator import simulate
from ros_nodes.demo.demo_plan import GAINS, Outcome, Waypoints, plan_waypoints
from ros_nodes.graphs import GRAPHS
from ros_nodes.parameter_tables.parameter_files import (
    check_joints,
    node_fields,
    read_parameters,
)
from ros_nodes.processes import ros_fault

SOLVERS = {
    "step": "semi_implicit_euler",
    "forward_dynamics": "auto",
    "inverse_dynamics": "auto",
}


# Parameters that the demo sets itself; parameters used in one process without ROS.
SET_HERE = (
    "joints", "initial_positions", "publish_rate", "diagnostic_updater.period",
    "root_joint",
)  # fmt: skip
USED = re.compile(
    r"robot_description_file|package_paths|xacro_arguments|update_rate|gains\..+\.[pd]"
    rf"|({'|'.join(SOLVERS)})\.(plugin_name|options\..+)"
)


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn demo`; those parsed have its function as `run`."""
    parser.add_argument(
        "--robot", help=f"{ROBOT} (default: that of the parameter file)"
    )
    add_search(parser)
    for option, use in (
        ("--forward-dynamics", "solver of the simulator"),
        ("--inverse-dynamics", "solver of the controller"),
        ("--step", "solver of the simulator's steps in time"),
    ):
        use = f"{use} (default: that of the parameter file)"
        parser.add_argument(option, default=None, metavar="NAME", help=use)
    parser.add_argument("--params", help="parameter file of the nodes (see demo.yaml)")
    parser.add_argument(
        "--duration", type=float, default=4.0, help="duration of the motion [s]"
    )
    parser.add_argument("--rate", type=int, default=None, help="cycle rate [Hz]")
    parser.add_argument(
        "--cpu", type=int, metavar="N",
        help="CPU of both nodes: what answers each other is faster on one than on two",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N",
        help="times that the motion is done, over ROS; a line each minute says how the"
        " nodes fare (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--plot", default="demo.png", help="file of the plot; '' for none"
    )
    parser.add_argument(
        "--one-process", action="store_true", help="run without ROS in one process"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo and print its results.

    A plot is written unless --plot is empty. Without ROS, or with --one-process,
    controller and simulator run in this process.

    Args:
        arguments: Parsed arguments of `dyn demo`.

    Returns:
        Exit status: 0 if each motion was followed to its end and all tracking errors
            are finite, else 1.

    Raises:
        DynError: An option, the parameter file or the robot is not valid, --repeat is
            above 1 without ROS, the run fails, or the plot cannot be written.
        OSError: ROS is there, but no /proc.
    """
    settings = _settings(arguments)
    robot = settings["robot"]
    model = load_with(settings["reading"], robot, root_joint="fixed")
    for node, values in settings["params"].items():
        check_joints(f"{arguments.params}: {node}", values, model)
    if not model.nv:
        raise dyn.ModelError(f"the robot '{model.name}' has no joint that can move")
    if not 0 < arguments.duration < np.inf:
        raise dyn.SettingError(
            f"--duration {arguments.duration:g} s; valid: more than 0", "duration"
        )
    if arguments.repeat < 1:
        raise dyn.SettingError(
            f"--repeat {arguments.repeat}; valid: 1 or more", "repeat"
        )
    settings |= {"repeat": arguments.repeat, "cpu": arguments.cpu}
    fault = None if arguments.one_process else ros_fault()
    if fault is not None:
        print(f"{fault}: running in one process without ROS", file=sys.stderr)
    waypoints = plan_waypoints(model, arguments.duration)
    alone = fault is not None or arguments.one_process
    if alone and arguments.repeat > 1:
        raise dyn.SettingError(
            "--repeat needs the nodes of ROS 2; leave it out", "repeat"
        )
    _warn_of_unused(settings["params"], alone)
    if alone:
        outcome = _in_one_process(model, waypoints, settings)
    else:
        from ros_nodes.demo import demo_ros

        outcome = demo_ros.run(model, waypoints, settings)
    report(outcome)
    if arguments.plot:
        _plot(outcome, Path(arguments.plot))
    return 0 if outcome.followed and np.isfinite(outcome.errors()).all() else 1


def _settings(arguments: argparse.Namespace) -> dict:
    """Return the settings of the parameter file and the command line by name.

    They are params: parameters by node; robot: source for dyn.load; reading: arguments
    for reading it; rate [Hz]; step, forward_dynamics, inverse_dynamics: a Solver.
    """
    path = arguments.params or GRAPHS["demo"].params_file
    nodes = read_parameters(path, [node.executable for node in GRAPHS["demo"].nodes])
    mode = nodes["computed_torque"].get("mode", "computed_torque")
    if not control_mode(mode).follows:
        raise dyn.SettingError(
            f"{path}: mode {mode} follows no trajectory; use `dyn up demo`, or mode"
            " computed_torque",
            "mode",
        )
    both = {**nodes["computed_torque"], **nodes["simulator"]}
    robot = arguments.robot
    if robot is None:
        robot = both.get("robot_description_file") or "arm7"
    settings = {"params": nodes, "robot": robot}
    settings["reading"] = {
        **{name: both[name] for name in READING if name in both},
        **robot_settings(arguments),
    }
    rate = both.get("update_rate", 500) if arguments.rate is None else arguments.rate
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or rate <= 0:
        raise dyn.SettingError(f"--rate {rate!r} Hz; valid: more than 0", "rate")
    settings["rate"] = rate
    for slot, default in SOLVERS.items():
        chosen = getattr(arguments, slot) or both.get(f"{slot}.plugin_name") or default
        head = f"{slot}.options."
        settings[slot] = dyn.solver(chosen, slot).with_options(
            **{k.removeprefix(head): x for k, x in both.items() if k.startswith(head)}
        )
    return settings


def _warn_of_unused(nodes: dict[str, dict[str, Any]], alone: bool) -> None:
    """Print to stderr the changed parameters of the file that the demo ignores.

    If `alone`, without ROS, it uses only those of USED, otherwise all but SET_HERE.
    """
    unused = []
    for node, values in nodes.items():
        for name, value in values.items():
            field = node_fields(node).get(name)
            changed = field is None or value != field.default
            used = bool(USED.fullmatch(name)) if alone else name not in SET_HERE
            if changed and not used:
                unused.append(f"{node}: {name}")
    if unused:
        print(f"dyn demo: not used: {', '.join(unused)}", file=sys.stderr)


def _in_one_process(model: dyn.Model, waypoints: Waypoints, settings: dict) -> Outcome:
    """Run controller and simulator in this process until 0.5 s after the motion."""
    control = settings["params"]["computed_torque"]
    kp, kd = (
        [control.get(f"gains.{name}.{key}", gain) for name in model.joint_names]
        for key, gain in zip(("p", "d"), GAINS, strict=True)
    )
    controller = Controller(
        model, kp, kd, inverse_dynamics=settings["inverse_dynamics"]
    )
    ended: list[str] = []
    controller.listeners.append(lambda _, outcome: ended.append(outcome))
    still = np.zeros_like(waypoints.positions)
    trajectory = make_trajectory(
        model.joint_names, model.joint_names, waypoints.times.tolist(),
        waypoints.positions, still, still, lower=model.lower, upper=model.upper,
    )  # fmt: skip
    started = time.monotonic()
    period = 1.0 / settings["rate"]
    record = simulate(
        model, controller, duration=waypoints.times[-1] + 0.5, period=period,
        begin=lambda t: controller.follow(trajectory, t), q0=waypoints.start,
        step=settings["step"], forward_dynamics=settings["forward_dynamics"],
    )  # fmt: skip
    seconds = time.monotonic() - started
    facts = {
        "run": "one process, no ROS",
        "loop": f"{len(record.t) / seconds:.0f} cycles/s,"
        f" {settings['rate']} Hz simulated",
        "solvers": ", ".join(
            settings[k].for_model(model).name
            for k in ("forward_dynamics", "step", "inverse_dynamics")
        ),
    }
    followed = ended == ["reached"]
    if not followed:
        reason = "; ".join(ended) or "it has not ended"
        facts["trajectories"] = f"0 of 1 followed to their end: {reason}"
    return Outcome(model.joint_names, record.t, record.q, record.q_ref, facts, followed)


def report(outcome: Outcome) -> None:
    """Print each joint's largest tracking error [rad | m], and the facts of the run.

    NaN samples are ignored; nan is printed for a joint without other samples. Raises
    ValueError if there is no sample at all.
    """
    print("largest tracking error [rad | m]")
    for name, error in zip(outcome.names, outcome.errors(), strict=True):
        print(f"  {name:<16} {error:.6f}")
    for key, value in outcome.facts.items():
        print(f"{key}: {value}")


def _plot(outcome: Outcome, path: Path) -> None:
    """Save a plot of positions and errors; without matplotlib only print a note."""
    if not can_draw():
        print(f"no plot: {NO_PICTURES}")
        return
    t, error = outcome.t, 1e3 * (outcome.q - outcome.q_ref)
    count = len(outcome.names)
    worst = np.argsort(-outcome.errors())[: len(COLOURS)]
    named = np.sort(worst).tolist()
    others = [k for k in range(count) if k not in named]
    # Joints may move alike: a curve that is covered is wider, and shows at the sides.
    looks = [*zip(named, COLOURS, range(len(named))[::-1], strict=False)]
    parts = [
        [Curve(t, values[:, k], "", "-", GREY, 0.5) for k in others]
        + [
            Curve(t, values[:, k], outcome.names[k], "-", colour, 1.0 + wider * place)
            for k, colour, place in looks
        ]
        for values, wider in ((outcome.q, 0.45), (error, 0.0))
    ]
    parts[0] += [Curve(t, outcome.q_ref[:, k], "", "--", "#555555", 0.6) for k in named]
    remark = f"named: {len(named)} largest errors of {count}, " if others else ""
    figure = draw(
        [
            Panel("position\n[rad | m]", parts[0], remark=f"{remark}dashed: reference"),
            Panel("error\n[mrad | mm]", parts[1]),
        ]
    )
    save(figure, str(path))
