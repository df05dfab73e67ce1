"""The command `dyn excite`: an exciting motion for the identification of a robot."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from dyn_core.identification.excitation import Excitation, excite
from dyn_core.identification.excitation.result import check_file
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.sources.arguments import add_robot, load_robot, named_numbers
from dyn_core.plots import check_plot, save
from dyn_core.recordings import MotionRecord, write_motion
from dyn_core.recordings.files import check_output

PLACE = "JOINT=VALUE"


def add_excite(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn excite`, and its function as `run`."""
    add_robot(parser)
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="trajectory that is written: .json"
    )
    parser.add_argument(
        "--motion", metavar="FILE",
        help="its rows, for `dyn sim --reference`: .npz, .csv, .mcap",
    )  # fmt: skip
    parser.add_argument("--plot", metavar="FILE", help="picture of the motion")
    _add_motion(parser)
    _add_limits(parser)
    parser.add_argument(
        "--starts", type=int, default=4, metavar="N",
        help="random motions, of 100, that are optimised (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, help="of random motions (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def _add_motion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--duration", type=float, default=10.0, metavar="S",
        help="of the motion [s] (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--harmonics", type=int, default=8, metavar="N",
        help="of the Fourier series (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--period", type=float, default=0.01, metavar="S",
        help="between points of the trajectory [s] (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--friction", action="store_true", help="show damping and dry friction, too"
    )
    parser.add_argument(
        "--rotors", action="store_true", help="show the inertia of rotors, too"
    )
    parser.add_argument(
        "--signal", type=float, default=0.3, metavar="WEIGHT",
        help="of large rows against a small condition number (default: %(default)s)",
    )  # fmt: skip
    for name, what in (
        ("start", "position at start and end (default: chosen, too)"),
        ("lock", "a joint that does not move, and where it stands"),
    ):
        parser.add_argument(
            f"--{name}", nargs="+", metavar=PLACE, default=None,
            help=f"{what} [rad | m]",
        )  # fmt: skip


def _add_limits(parser: argparse.ArgumentParser) -> None:
    for name, share in (("position", 0.95), ("velocity", 0.8), ("effort", 0.8)):
        what = "ranges, about their middles" if name == "position" else "the limits"
        parser.add_argument(
            f"--{name}-scale", type=float, default=share, metavar="PART",
            help=f"part of {what} that is used (default: %(default)s)",
        )  # fmt: skip
    for name, unit in (
        ("velocity", "rad/s | m/s"),
        ("acceleration", "rad/s² | m/s²"),
        ("effort", "N·m | N"),
    ):
        parser.add_argument(
            f"--{name}-limits", nargs="+", metavar=PLACE, default=None,
            help=f"largest {name} of joints [{unit}]",
        )  # fmt: skip
    parser.add_argument(
        "--clearance", type=float, default=0.02, metavar="M",
        help="least distance of links: of capsules around their shapes, or where these"
        " overlap of hulls or meshes [m] (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--no-collision", action="store_true", help="leave distances of links out"
    )


def run(arguments: argparse.Namespace) -> int:
    """Design a motion, print its properties, write the files that are asked for.

    Returns:
        1 if limits are violated, and then writes the plot but no motion; else 0.

    Raises:
        SettingError, ModelError, UnsupportedError: An argument, a file or the robot is
            not valid, or excite cannot be used for the robot.
    """
    if arguments.out is not None:
        check_file(arguments.out)
    if arguments.motion is not None:
        check_output(arguments.motion, "motion")
    if arguments.plot is not None:
        check_plot(arguments.plot)
    model = load_robot(arguments)
    result = excite(
        model,
        duration=arguments.duration,
        harmonics=arguments.harmonics,
        friction=arguments.friction,
        rotors=arguments.rotors,
        signal=arguments.signal,
        start=_start(model, arguments.start),
        position_scale=arguments.position_scale,
        velocity_scale=arguments.velocity_scale,
        effort_scale=arguments.effort_scale,
        velocity_limits=named_numbers("velocity-limits", arguments.velocity_limits),
        acceleration_limits=named_numbers(
            "acceleration-limits", arguments.acceleration_limits
        ),
        effort_limits=named_numbers("effort-limits", arguments.effort_limits),
        clearance=None if arguments.no_collision else arguments.clearance,
        starts=arguments.starts,
        seed=arguments.seed,
        period=arguments.period,
        progress=_show if sys.stderr.isatty() else None,
    )
    print("\n".join(lines_of(result)))
    if arguments.plot is not None:
        title = f"{model.name}: condition number {result.condition:.3g}"
        save(result.plot(title), arguments.plot)
    if result.broken:
        print(
            f"dyn: {len(result.broken)} limits are not kept; valid: smaller scales, a"
            " longer duration, another start or seed",
            file=sys.stderr,
        )
        return 1
    if arguments.out is not None:
        result.write(arguments.out)
        print(f"written: {arguments.out}")
    if arguments.motion is not None:
        rows = result.t, result.q, result.qd, result.qdd, result.tau
        write_motion(MotionRecord(coordinates_of(model), *rows), arguments.motion)
        print(f"written: {arguments.motion}")
    return 0


def _show(done: int, count: int, condition: float) -> None:
    """Print the progress to stderr, over the line before; the last motion ends it.

    The caller checks that stderr is a terminal.
    """
    end = "\n" if done == count else ""
    message = f"\r{done} of {count} optimised, condition number {condition:.4g}"
    print(message, end=end, file=sys.stderr, flush=True)


def _start(model: Model, typed: Sequence[str] | None) -> np.ndarray | None:
    """Return the position (nq,) typed as JOINT=VALUE [rad | m]; None for None.

    Joints that are not typed are neutral; a typed follower sets its leader.
    """
    return None if typed is None else model.position(named_numbers("start", typed))


def lines_of(result: Excitation) -> list[str]:
    """Return lines about a motion, from its condition number to its violated limits.

    Positions are in rad | m, shares of range, velocity and effort limits in %,
    distances of links in m. The line of a violated limit begins with "not kept".
    """
    series, limits = result.series, result.limits
    lines = [
        f"{series.duration:g} s, {series.harmonics} harmonics, {len(result.t)} points:"
        f" condition number {result.condition:.4g} of {result.base.rank} base"
        f" parameters (best of random motions: {result.random_condition:.4g})"
    ]
    width = max(map(len, (*result.names, "joint")))
    lines.append(
        f"{'joint':{width}}  {'start':>8}  {'from':>8}  {'to':>8}  of range"
        "  of velocity  of effort"
    )
    for j, name in enumerate(result.names):
        q = result.q[:, j]
        speed = np.abs(result.qd[:, j]).max() / limits.velocity[j]
        effort = np.abs(result.tau[:, j]).max() / limits.effort[j]
        part = (q.max() - q.min()) / (2 * limits.half[j])
        lines.append(
            f"{name:{width}}  {q[0]:8.3f}  {q.min():8.3f}  {q.max():8.3f}"
            f"  {part:8.0%}  {speed:11.0%}  {effort:9.0%}"
        )
    if result.costly is not None:
        name, rank = result.costly.name, result.costly.rank
        start = result.q[0, result.names.index(name)]
        lines.append(
            f"{name} costs most: locked (--lock {name}={start:.3g}), {rank} base"
            " parameters remain, and the best of random motions has condition number"
            f" {result.costly.random_condition:.4g}"
        )
    lines += _distances(result)
    return lines + [f"not kept: {broken}" for broken in result.broken]


def _distances(result: Excitation) -> list[str]:
    """Return lines: number and least distance [m] of pairs, then one per near pair.

    A near pair's line says by which shapes it was checked, or that it was not, since
    they touch at the start. If all pairs are near ones, the first line is left out.
    Without any pair the only line is that nothing is known of self-collision.
    """
    if not result.pairs and not result.near:
        return ["no pairs of collision shapes: nothing is known of self-collision"]
    lines = []
    if result.pairs:
        lines.append(
            f"{result.pairs} pairs of links stay {result.distance:.3f} m apart"
        )
    for (a, b), by, start, _ in result.near:
        if by == "nothing":
            lines.append(f"not checked, they touch at the start: {a} and {b}")
        else:
            lines.append(
                f"their capsules overlap, checked by {by} ({start:.3f} m apart at the"
                f" start): {a} and {b}"
            )
    return lines
