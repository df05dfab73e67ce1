"""The command `dyn sim`: simulation with a law or recorded joint forces."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.commands.motions import check_arguments
from dyn_core.contact.world import FLOOR, World
from dyn_core.control.controller import Controller
from dyn_core.control.reference.trajectory import make_trajectory
from dyn_core.control.rules import Rules
from dyn_core.errors import ModelWarning, SettingError
from dyn_core.model import Model
from dyn_core.model.sources.arguments import (
    add_lock,
    add_options,
    add_robot,
    load_robot,
    read_options,
    start_of,
)
from dyn_core.plots.pages import check_page
from dyn_core.problems import FORWARD_DYNAMICS
from dyn_core.recordings import MotionRecord, read_motion, run_record, write_motion
from dyn_core.recordings.rows import with_slopes
from dyn_core.reports.sections import energy_sentence
from dyn_core.reports.write import write_report
from dyn_core.simulation import simulate
from dyn_core.simulation.simulator import forward_dynamics_of
from dyn_core.solving.registry import solver

LAWS = ("none", "gravity", "computed_torque")
GAINS = (400.0, 40.0)
UNLIMITED = 1e9  # limit of motors without one in the robot's file [N·m | N]


class Drive(NamedTuple):
    """A controller for `simulate`, with settings that suit it.

    Without a `controller` there is no force. `meaning` is its name in a report; `begin`
    starts a trajectory at a time [s]. q0 and qd0 are from the first row of its file,
    `duration` is that of the file plus one period [s], 0 without a file.
    """

    controller: Any
    meaning: str
    begin: Callable[[float], None] | None = None
    q0: np.ndarray | None = None
    qd0: np.ndarray | None = None
    duration: float = 0.0


def drive_of(model: Model, arguments: argparse.Namespace) -> Drive:
    """Return the Drive that options of `dyn sim` ask for; by default without forces."""
    law = arguments.controller
    if arguments.torques is not None and law != "none":
        raise SettingError(
            f"--torques and --controller {law} both give the joint forces; valid: one"
            " of them",
            "torques",
        )
    for option in ("reference", "gains"):
        if getattr(arguments, option) is not None and law != "computed_torque":
            raise SettingError(
                f"--{option} changes nothing with --controller {law}; valid:"
                " --controller computed_torque",
                option,
            )
    if arguments.torques is not None:
        motion = read_motion(arguments.torques, model).checked(["q", "tau"])
        return recorded_forces(motion, arguments.torques, arguments.period)
    kinds = {model.joint_kind(name) for name in model.joint_names}
    if law != "none" and "floating" in kinds:
        raise SettingError(
            f"--controller {law}: the robot floats, its motors do not carry it; valid:"
            " none, with springs in its joints (a quadruped: --extras"
            " quadruped_stand), or --root-joint fixed",
            "controller",
        )
    if law == "gravity":
        return Drive(_weight(model, arguments), "gravity compensation")
    if law == "computed_torque":
        return _computed_torque(model, arguments)
    return Drive(None, "no joint forces")


def recorded_forces(motion: MotionRecord, name: str, period: float) -> Drive:
    """Return a Drive that applies the joint forces of each row until the next one.

    The first row is at time 0; the forces of the first and last row continue before and
    after the motion. Each row is applied a thousandth of `period` [s] early. The Drive
    has q and qd of the first row (qd None if the motion has none), and the duration of
    the motion plus one period.
    """
    if not len(motion.t):
        raise SettingError(f"{name}: the motion has no row", "torques")
    # A row counts a thousandth of a period early: rounding must not delay it by one.
    times, tau = motion.t - motion.t[0] - 1e-3 * period, motion.column("tau")

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.asarray(tau[max(int(np.searchsorted(times, t, "right")) - 1, 0)])

    qd0 = None if motion.qd is None else motion.qd[0]
    whole = float(motion.t[-1] - motion.t[0]) + period
    if not np.isfinite(motion.q[0]).all() or (qd0 is not None and
                                              not np.isfinite(qd0).all()):  # fmt: skip
        raise SettingError(f"{name}: row 1 is no state to start from", "torques")
    meaning = f"joint forces of {name}"
    return Drive(law, meaning, None, motion.q[0], qd0, whole)


def _weight(model: Model, arguments: argparse.Namespace) -> Any:
    """Return the law (t, q, qd) -> tau that balances gravity and joint springs.

    It has no damping: qd has no effect.
    """
    program = solver("gravity_compensation").build(
        model,
        joint_springs=True,
        inputs=["time"] if model.driven else [],
        engine=arguments.engine,
    )
    still = np.zeros(model.nv)

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.asarray(program(q, qd, still, *((t,) if model.driven else ())))

    return law


def _computed_torque(model: Model, arguments: argparse.Namespace) -> Drive:
    """Return the Drive of a controller that follows a motion, or stays at the start.

    With a motion (--reference), the Drive has its first q and qd as initial state, and
    its duration plus one period; missing qd and qdd are estimated. Joints without an
    effort limit get UNLIMITED (1e9).
    """
    kp, kd = arguments.gains or GAINS
    meaning = f"computed torque, kp {kp:g} 1/s², kd {kd:g} 1/s"
    controller = Controller(
        model,
        kp,
        kd,
        engine=arguments.engine,
        effort_limits=dict.fromkeys(_without_limit(model), UNLIMITED),
        rules=Rules(good_samples=1),  # simulated states need no time to settle
    )
    if arguments.reference is None:
        return Drive(controller, f"{meaning}, at the start")
    motion = with_slopes(model, read_motion(arguments.reference, model))
    if not len(motion.t):
        raise SettingError(f"{arguments.reference}: the motion has no row", "reference")
    qd, qdd = motion.column("qd"), motion.column("qdd")
    trajectory = make_trajectory(
        model.joint_names, model.joint_names, motion.t - motion.t[0], motion.q, qd, qdd,
        lower=model.lower, upper=model.upper, moving_end=True,
    )  # fmt: skip
    return Drive(
        controller,
        f"{meaning}, along {arguments.reference}",
        lambda t: controller.follow(trajectory, t),
        motion.q[0],
        qd[0],
        float(motion.t[-1] - motion.t[0]) + arguments.period,
    )


def _without_limit(model: Model) -> list[str]:
    """Return those of model.joint_names without an effort limit (zero) in the file.

    Of a joint with several coordinates the first one counts.
    """
    return [x for x in model.joint_names if not model.effort_limit[model.v_slice(x)][0]]


STEP = "semi_implicit_euler"


def add_sim(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn sim`, and its function as `run`."""
    add_robot(parser)
    add_lock(parser)
    parser.add_argument(
        "--duration", type=float, metavar="S",
        help="[s] (default: that of the file that drives it, or 1)",
    )  # fmt: skip
    parser.add_argument(
        "--period", type=float, default=0.002, metavar="S",
        help="of rows and of the law [s] (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--substeps", type=int, default=1, help="steps in a period (default: 1)"
    )
    for name, what in (("q0", "positions"), ("qd0", "velocities")):
        parser.add_argument(
            f"--{name}", nargs="+", metavar="VALUE",
            help=f"{what} at the start: JOINT=VALUE (of joints of several coordinates"
            " JOINT.0=VALUE), others neutral or zero, or all in order",
        )  # fmt: skip
    _add_drive(parser)
    parser.add_argument(
        "--world", metavar="FILE",
        help=f"'{FLOOR}', or a YAML file with fields of a World, to touch",
    )  # fmt: skip
    parser.add_argument(
        "--step", metavar="NAME", help=f"solver of a step (default: {STEP})"
    )
    parser.add_argument(
        "--forward-dynamics", metavar="NAME",
        help="solver in the step (default: auto, also for robots with loops)",
    )  # fmt: skip
    add_options(parser, "option of the forward dynamics, such as dependent=least_norm")
    parser.add_argument(
        "--no-joint-friction", action="store_true",
        help="leave out damping and dry friction of the joints",
    )  # fmt: skip
    parser.add_argument("--engine", help="native, graph or plain")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="what is written: .npz, .csv or .mcap"
    )
    parser.add_argument("--plot", metavar="FILE", help="picture of the run")
    parser.add_argument("--report", metavar="FILE", help="report, one HTML file")
    parser.set_defaults(run=run)


def _add_drive(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--controller", choices=LAWS, default=LAWS[0],
        help="law of the joint forces (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--torques", metavar="FILE",
        help="joint forces of a motion (NPZ, CSV, bag), each until the next row",
    )  # fmt: skip
    parser.add_argument(
        "--reference", metavar="FILE",
        help="motion that computed_torque follows (default: it stays at the start)",
    )  # fmt: skip
    parser.add_argument(
        "--gains", nargs=2, type=float, metavar=("KP", "KD"),
        help="of computed_torque [1/s²], [1/s] (default: 400 40)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print a summary, write the files asked for; return 0.

    Raises:
        SettingError, ModelError, ShapeError, SolverNotFound, UnsupportedError: An
            argument, file or the robot is not valid.
        DynError: The simulation fails, or a solver or file does not suit the robot.
    """
    check_arguments(arguments)
    if arguments.report is not None:
        check_page(arguments.report)
    if not 0 < arguments.period < math.inf:
        raise SettingError(
            f"--period {arguments.period:g} s; valid: more than 0", "period"
        )
    model = load_robot(arguments)
    record = _simulated(model, arguments)
    print("\n".join(lines_of_run(record)))
    if arguments.out is not None:
        write_motion(record, arguments.out, progress=True)
        print(f"written: {arguments.out}")
    if arguments.plot is not None:
        replace(record, qdd=None).plot(arguments.plot, model.name)  # as Recording.plot
    if arguments.report is not None:
        write_report([record], [model.name], arguments.report)
    return 0


def _simulated(model: Model, arguments: argparse.Namespace) -> MotionRecord:
    """Run the simulation that the options specify and return its record.

    --q0, --qd0 and --duration come before the values of a file that drives the robot;
    without either it starts neutral and at rest, and the run takes 1 s. Options that
    have no effect in combination are refused.
    """
    drive = drive_of(model, arguments)
    q0 = start_of(model, "q0", arguments.q0)
    qd0 = start_of(model, "qd0", arguments.qd0)
    duration = arguments.duration
    if duration is None:
        duration = drive.duration or 1.0
    world = None if arguments.world is None else World.of(arguments.world)
    friction = not arguments.no_joint_friction
    settings: dict[str, Any] = {
        "period": arguments.period, "substeps": arguments.substeps,
        "q0": drive.q0 if q0 is None else q0, "qd0": drive.qd0 if qd0 is None else qd0,
        "joint_friction": friction, "engine": arguments.engine,
    }  # fmt: skip
    accelerations = None
    if world is None:
        settings["step"] = arguments.step or STEP
        chosen = arguments.forward_dynamics
        if arguments.option:
            chosen = solver(chosen or "auto", FORWARD_DYNAMICS)
            options = read_options(arguments, chosen)
            chosen = chosen.with_options(**options)
        settings["forward_dynamics"] = chosen
        accelerations = forward_dynamics_of(settings["step"], model, chosen)
    elif arguments.step or arguments.forward_dynamics or arguments.option:
        raise SettingError(
            "--step, --forward-dynamics and --option change nothing beside --world;"
            " valid: solver and stepper in its file",
            "world",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the record has them
        result = simulate(
            model, drive.controller, world=world, duration=duration, begin=drive.begin,
            **settings,
        )  # fmt: skip
    said = {
        "duration [s]": duration, "period [s]": arguments.period,
        "substeps": arguments.substeps, "law": drive.meaning,
        "joint friction": friction, "engine": arguments.engine or "default",
    }  # fmt: skip
    if world is None:
        said |= {
            "step": settings["step"],
            "forward dynamics": accelerations and accelerations.name,
        }
    else:
        said |= {"contact solver": str(world.solver), "stepper": world.stepper,
                 "stabilisation": world.stabilisation}  # fmt: skip
    return run_record(result, said, accelerations)


def lines_of_run(record: MotionRecord) -> list[str]:
    """Return lines about a run: rows, energy, wall times, contacts, counters, notes."""
    lines = [f"{record.facts['robot']}: {len(record.t)} rows"]
    series = record.series
    if len(record.t):
        lines[0] += f", {record.t[0]:g} to {record.t[-1]:g} s"
        lines.append(energy_sentence(record))
        times = 1e6 * series["cycle_time"]
        lines.append(
            f"wall time of a row: median {np.median(times):.3g} us, largest"
            f" {times.max():.3g} us"
        )
    if "contacts" in series:
        lines.append(
            f"contacts: at most {series['contacts'].max():.0f}, residual at most"
            f" {series['contact_residual'].max():.2g}, overlap at most"
            f" {max(0.0, -series['contact_gap'].min()):.2g} m"
        )
    lines += [f"{name}: {n}" for name, n in record.facts["counters"].items()]
    return lines + [f"warning: {note}" for note in record.notes]
