"""The commands `dyn id` and `dyn fd`: inverse and forward dynamics of a file's rows.

Arguments of both are those of add_robot and add_lock, motion, --out, --plot, --solver,
--option, --no-joint-friction, --engine and --joint-states.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from dyn_core.engines import ENGINES
from dyn_core.errors import NonFiniteError, UnsupportedError, unknown_name
from dyn_core.model.sources.arguments import (
    add_lock,
    add_options,
    add_robot,
    load_robot,
    read_options,
)
from dyn_core.plots import check_plot
from dyn_core.problems import FORWARD_DYNAMICS, INVERSE_DYNAMICS, Signature
from dyn_core.recordings import (
    MotionRecord,
    forward_dynamics,
    inverse_dynamics,
    read_motion,
    write_motion,
)
from dyn_core.recordings.files import check_output
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import Solver

FILE = "NPZ, CSV or bag (MCAP, SQLite, folder)"


def add_id(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands and --cutoff; `run` becomes run_inverse."""
    _add_common(parser, f"{FILE} with positions; velocities and accelerations that it"
                " has not are estimated", "inverse_dynamics")  # fmt: skip
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ",
        help="filter of what is estimated, forward and backward (default: none)",
    )  # fmt: skip
    parser.set_defaults(run=run_inverse)


def add_fd(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands; `run` becomes run_forward."""
    what = f"{FILE} with positions, velocities and joint forces"
    _add_common(parser, what, "forward_dynamics")
    parser.set_defaults(run=run_forward)


def _add_common(parser: argparse.ArgumentParser, what: str, problem: str) -> None:
    """Add the arguments of both commands; the help of --solver names the `problem`."""
    add_robot(parser)
    add_lock(parser)
    parser.add_argument("motion", help=what)
    parser.add_argument(
        "-o", "--out", metavar="FILE",
        help="what is written, all columns: .npz, .csv or .mcap",
    )  # fmt: skip
    parser.add_argument("--plot", metavar="FILE", help="picture of all columns")
    parser.add_argument(
        "--solver", metavar="NAME", default="auto",
        help=f"solver of {problem} (default: auto, also for robots with loops)",
    )  # fmt: skip
    add_options(parser, "option of the solver, such as dependent=least_norm")
    parser.add_argument(
        "--no-joint-friction", action="store_true",
        help="leave out damping and dry friction of the joints",
    )  # fmt: skip
    parser.add_argument("--engine", help=f"one of {', '.join(ENGINES)}")
    parser.add_argument(
        "--joint-states", default="", metavar="TOPIC", help="of a bag that has several"
    )


def run_inverse(arguments: argparse.Namespace) -> int:
    """Compute the joint forces of a motion, print a table, write files; return 0.

    Velocities and accelerations that the motion lacks are estimated.
    """
    check_arguments(arguments)
    model = load_robot(arguments)
    motion = read_motion(arguments.motion, model, arguments.joint_states)
    chosen = _solver(arguments, INVERSE_DYNAMICS)
    with _rows_of(arguments.motion):
        result = inverse_dynamics(
            model, motion, chosen, arguments.cutoff, not arguments.no_joint_friction,
            arguments.engine, progress=True,
        )  # fmt: skip
    return _finish(arguments, result, "tau", model.name)


def run_forward(arguments: argparse.Namespace) -> int:
    """Compute the accelerations of states, print a table, write files; return 0."""
    check_arguments(arguments)
    model = load_robot(arguments)
    states = read_motion(arguments.motion, model, arguments.joint_states)
    chosen = _solver(arguments, FORWARD_DYNAMICS)
    with _rows_of(arguments.motion):
        result = forward_dynamics(
            model, states, chosen, not arguments.no_joint_friction, arguments.engine,
            progress=True,
        )  # fmt: skip
    return _finish(arguments, result, "qdd", model.name)


@contextmanager
def _rows_of(file: str) -> Iterator[None]:
    """Context manager that puts the name of a file before a NonFiniteError's words."""
    try:
        yield
    except NonFiniteError as error:
        message = f"{file}: {error}"
        raise NonFiniteError(message, error.name, error.rows) from error


def _solver(arguments: argparse.Namespace, problem: Signature) -> Solver:
    """Return the solver that --solver and --option choose.

    `problem` decides about "auto" alone: a named solver of another kind is returned as
    well.
    """
    chosen = solver(arguments.solver, problem)
    return chosen.with_options(**read_options(arguments, chosen))


def check_arguments(arguments: argparse.Namespace) -> None:
    """Check the output files and the engine, before time is spent on computing."""
    if arguments.out is not None:
        check_output(arguments.out)
    if arguments.plot is not None:
        check_plot(arguments.plot)
    if arguments.engine is not None and arguments.engine not in ENGINES:
        raise UnsupportedError(unknown_name("engine", arguments.engine, ENGINES))


def _finish(
    arguments: argparse.Namespace, result: MotionRecord, kind: str, title: str
) -> int:
    """Print a table and the notes of the result, and write the files; return 0.

    `kind` is the computed column, "tau" or "qdd".
    """
    print("\n".join(summary(result, kind)))
    for note in result.notes:
        print(f"note: {note}")
    if arguments.out is not None:
        write_motion(result, arguments.out, progress=True)
        print(f"written: {arguments.out}")
    if arguments.plot is not None:
        result.plot(arguments.plot, title)
    return 0


def summary(record: MotionRecord, kind: str) -> list[str]:
    """Return a table of an array by coordinate: root mean square, maximum, its time.

    Its lines are the number of rows and range of times, a header, and one for each
    coordinate [SI]; the maximum is of absolute values.

    Args:
        record: Motion with at least one row.
        kind: Name of the array, such as "tau" or "qdd".

    Raises:
        SettingError: The motion has no such array.
    """
    names, units, array = record.names(kind), record.units(kind), record.column(kind)
    width = max(map(len, (*names, "joint")), default=5)
    lines = [
        f"{len(record.t)} rows, {record.t[0]:g} to {record.t[-1]:g} s",
        f"{'joint':{width}}  {kind} [unit]  {'rms':>10}  {'largest':>10}  at t [s]",
    ]
    for name, unit, column in zip(names, units, array.T, strict=True):
        worst = int(abs(column).argmax())
        rms = float((column @ column / len(column)) ** 0.5)
        lines.append(
            f"{name:{width}}  {unit:>{len(kind) + 7}}  {rms:10.4g}"
            f"  {abs(column[worst]):10.4g}  {record.t[worst]:8.4g}"
        )
    return lines
