"""The command `dyn bench`."""

from __future__ import annotations

import argparse
import gc
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import (
    batches,
    cases,
    compile_worker,
    compiling,
    knots,
    loading_times,
    measure,
    plans,
    reaching,
    result_memory,
)
from bench.beside import measure_beside, notes
from bench.contact import contact_soak, contact_tables
from bench.measure import BLOCKED, MANY, ROWS, Beside, Figures
from bench.peers import PEERS, Peer, find, missing
from bench.planar import env_tables, planar_tables
from bench.printed_tables import Table, markdown, plain, print_tables, progress
from dyn_core.errors import DynError, SettingError, UnsupportedError
from dyn_core.model.sources.arguments import add_search, named_values
from dyn_core.solving.registry import solver

ALGORITHMS = tuple(cases.INPUTS)
ALL_PEERS = ",".join(PEERS)
_OF_SOLVERS = ("lock", "peers", "solvers", "chains")
_OTHERS = ("memory", "steps")  # tables
_ALL_OTHERS = ("contact", "batches", "compile", "loading", "ik", *_OTHERS)
CHAINS = (10, 30, 100, 300, 1000)
Show = Callable[[Table], list[str]]
LEGEND = f"""\
ns/call: one state from Python, out given, {cases.STATES} states in turn; M/s: million
states a second, of a batch of {ROWS} rows on one core, of blocks of {BLOCKED} rows on
one core, of {MANY} rows on all cores (fewer where results of so many take more than
{measure.RESULTS >> 30} GiB); cold, load: both kernels compiled anew, found on
disk; KiB: machine code and scratch memory; % peak: additions and multiplications, of
what the core's multiply-adds could do. Peers: ns of a call; how much faster a call is
here; and a row of the batch than the best of the peer's call and batch. Values of the
first states are compared with ours before. '!': it differs, or see the remark; '-': no
figure; the reasons, and the cells where a peer is faster, stand below."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn bench`."""
    parser.add_argument(
        "--robot", action="append", metavar="URDF",
        help="path, name or package:// address; ':floating' behind it frees its root"
        " (default: panda, go2, g1 of example-robot-data, else shipped ones)",
    )  # fmt: skip
    add_search(parser)
    parser.add_argument(
        "--lock", metavar="JOINTS",
        help="joints of --robot to fix at zero, by commas",
    )  # fmt: skip
    parser.add_argument("--peers", help=f"by commas (default: {ALL_PEERS})")
    parser.add_argument("--solvers", help="by commas (default: all that have a case)")
    parser.add_argument("--chains", action="store_true", help="growth to 1000 joints")
    parser.add_argument(
        "--contact",
        action="store_true",
        help="runs with contacts and their solvers instead, of scenes of its own",
    )
    parser.add_argument(
        "--soak", type=float, metavar="STEPS",
        help="steps of quadrupeds in batches, beside --contact, such as 1e8; status 1"
        " if one was not finite",
    )  # fmt: skip
    parser.add_argument(
        "--kernel",
        action="store_true",
        help="steps by contact_euler, which is one kernel, beside --soak",
    )
    parser.add_argument(
        "--loading",
        action="store_true",
        help="loading of robots instead, also of chains and trees of 5000 links",
    )
    parser.add_argument(
        "--ik", action="store_true", help="inverse kinematics instead, beside peers"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile times and code of ten robots, or --robot, by solvers, instead",
    )
    parser.add_argument(
        "--full", action="store_true", help="every solver, beside --compile"
    )
    parser.add_argument(
        "--limit", type=float, metavar="S",
        help=f"longest of a solver, beside --compile (default: {compiling.LIMIT:.0f})",
    )  # fmt: skip
    parser.add_argument(
        "--keep", metavar="FILE",
        help="cells of --compile are written there; those in it are not measured again",
    )  # fmt: skip
    parser.add_argument(
        "--steps",
        action="store_true",
        help="linearised steps of a trajectory instead, beside Crocoddyl",
    )
    parser.add_argument(
        "--mpc",
        action="store_true",
        help="plans of optimal control instead",
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="results that are kept, large batches on all cores, and float32 instead",
    )
    parser.add_argument(
        "--batches",
        action="store_true",
        help="batches of any size instead: processes, files, chunks, resuming",
    )
    parser.add_argument(
        "--count", type=float, metavar="STATES",
        help="that are made and reduced, beside --batches (default: 1e9); a hundredth"
        " of them go through zarr",
    )  # fmt: skip
    parser.add_argument(
        "--planar",
        action="store_true",
        help="steps of planar systems instead, beside their peers",
    )
    parser.add_argument(
        "--envs",
        action="store_true",
        help="environments of robots instead, beside gymnasium's of MuJoCo",
    )
    parser.add_argument("--markdown", action="store_true", help="tables for a document")
    parser.set_defaults(run=run)


def _refuse_what_changes_nothing(arguments: argparse.Namespace) -> None:
    """Refuse arguments that the tables asked for do not depend on."""
    if arguments.lock and not arguments.robot:
        raise SettingError("--lock needs --robot: its joints are fixed", "lock")
    search = ("package_path", "xacro_argument")
    for name in search:
        if getattr(arguments, name) and not arguments.robot:
            option = f"--{name.replace('_', '-')}"
            raise SettingError(f"{option} needs --robot: it is read with it", option)
    for name in ("full", "limit", "keep"):
        if getattr(arguments, name) and not arguments.compile:
            raise SettingError(f"--{name} needs --compile", name)
    if arguments.kernel and arguments.soak is None:
        raise SettingError("--kernel needs --soak", "kernel")
    if arguments.count is not None and not arguments.batches:
        raise SettingError("--count needs --batches", "count")
    if arguments.count is not None and not 1 <= arguments.count < math.inf:
        message = f"--count is {arguments.count}; valid: a number of states from 1"
        raise SettingError(message, "count")
    if arguments.soak is not None and not arguments.contact:
        raise SettingError("--soak needs --contact", "soak")
    if arguments.soak is not None and not 1 <= arguments.soak < math.inf:
        message = f"--soak is {arguments.soak}; valid: a number of steps from 1"
        raise SettingError(message, "soak")
    for table, names, valid in (
        (
            "contact",
            ("loading", "ik", *_OTHERS, "robot", *_OF_SOLVERS),
            "--soak, --kernel, --markdown",
        ),
        (
            "batches",
            ("contact", "compile", "loading", "ik", *_OTHERS, "robot", *_OF_SOLVERS),
            "--count, --markdown",
        ),
        ("ik", ("loading", *_OTHERS, *_OF_SOLVERS[1:]), "--robot, --lock, --markdown"),
        ("loading", (*_OTHERS, *_OF_SOLVERS), "--robot, --markdown"),
        (
            "memory",
            ("steps", "peers", "chains"),
            "--robot, --lock, --solvers, --markdown",
        ),
        (
            "compile",
            ("contact", "loading", "ik", *_OTHERS, "lock", "peers", "chains", *search),
            "--robot, --solvers, --full, --limit, --keep, --markdown",
        ),
        ("steps", ("peers", "solvers", "chains"), "--robot, --lock, --markdown"),
        ("planar", ("envs", *_ALL_OTHERS, "robot", *_OF_SOLVERS), "--markdown"),
        ("mpc", ("planar", "envs", *_ALL_OTHERS, "robot", *_OF_SOLVERS), "--markdown"),
        ("envs", (*_ALL_OTHERS, "robot", *_OF_SOLVERS), "--markdown"),
    ):
        for name in names if getattr(arguments, table) else ():
            if getattr(arguments, name) not in (None, False, []):
                message = f"--{name} changes nothing beside --{table}; valid: {valid}"
                raise SettingError(message, name)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    _refuse_what_changes_nothing(arguments)
    show = markdown if arguments.markdown else plain
    if arguments.loading:
        print_tables(
            loading_times.LEGEND,
            loading_times.tables(_robots(arguments), progress),
            show,
        )
        return 0
    measure.require_native()
    if arguments.planar or arguments.envs:
        print(measure.machine())
        world = env_tables if arguments.envs else planar_tables
        print_tables(world.LEGEND, world.tables(progress), show)
        return 0
    if arguments.mpc:
        print(measure.machine())
        print_tables(plans.LEGEND, plans.tables(progress), show)
        return 0
    if arguments.batches:
        print(measure.machine())
        count = batches.COUNT if arguments.count is None else int(arguments.count)
        print_tables(batches.LEGEND, batches.tables(count, progress), show)
        return 0
    if arguments.compile:
        return _compile(arguments, show)
    if arguments.soak is not None:
        count, kernel = int(arguments.soak), arguments.kernel
        return contact_soak.run(count, progress, show, kernel)
    if arguments.contact:
        print(measure.machine())
        print_tables(contact_tables.LEGEND, contact_tables.tables(progress), show)
        return 0
    if arguments.ik:
        print(measure.machine())
        robots = _robots(arguments) if arguments.robot else cases.usual()[:1]
        print_tables(reaching.LEGEND, reaching.tables(robots, progress), show)
        return 0
    if arguments.steps:
        print(measure.machine())
        print_tables(knots.LEGEND, knots.tables(_robots(arguments), progress), show)
        return 0
    usual = result_memory.SOLVERS if arguments.memory else ALGORITHMS
    chosen = usual if arguments.solvers is None else arguments.solvers.split(",")
    for name in chosen:
        if name not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise UnsupportedError(f"no benchmark of '{name}'; known: {known}")
    if arguments.memory:
        print(measure.machine())
        measured = result_memory.tables(_robots(arguments), chosen, progress)
        print_tables(result_memory.LEGEND, measured, show)
        return 0
    peers = find(ALL_PEERS if arguments.peers is None else arguments.peers)
    robots = _robots(arguments)
    for robot in robots:
        _ = robot.model  # a bad file is refused before anything is measured
    progress("measuring the machine")
    top = measure.peak()
    wrong = ", ".join(f"{k} {v:.2f}" for k, v in measure.errors().items())
    there = [peer for peer in peers if not missing(peer)]
    print(f"{measure.machine()};", ", ".join(peer.version() for peer in there))
    print(LEGEND)
    print(f"multiply-adds: {top / 1e9:.1f} GFLOP/s per core; errors [ulp]: {wrong}")
    for robot in robots:
        print(f"\n{robot.title}\n", flush=True)
        rows, lacks = _measured(robot, chosen, peers)
        names = [peer.name for peer in peers]
        for line in show(_cells(rows, names, top, merged=arguments.markdown)):
            print(line, flush=True)
        for line in (*lacks, *notes(rows, names)):
            print(f"\n{line}", flush=True)
    if arguments.chains:
        print("\nchains: call and build by the number of joints\n")
        head = ["joints", "solver", "us/call", "ns/joint", "build s", "KiB/joint"]
        lines = [
            [f"{n}", name, f"{call * 1e6:.2f}", f"{call / n * 1e9:.1f}", f"{cold:.2f}",
             f"{size / n / 1024:.2f}"]
            for n, name, call, cold, size in measure.growth(CHAINS)
        ]  # fmt: skip
        for line in show([head, *lines]):
            print(line)
    return 0


def _compile(arguments: argparse.Namespace, show: Show) -> int:
    """Print compile times and code."""
    limit = compiling.LIMIT if arguments.limit is None else arguments.limit
    if not 0 < limit < math.inf:
        raise SettingError(f"--limit is {limit}; valid: a number over 0 [s]", "limit")
    names = compiling.every_solver() if arguments.full else list(compiling.USUAL)
    if arguments.solvers is not None:
        names = arguments.solvers.split(",")
        for name in names:
            solver(name)  # an unknown one is refused before anything is measured
    robots = arguments.robot or compiling.ROBOTS
    for robot in arguments.robot or ():
        compile_worker.system(robot)  # so is a bad robot
    print(measure.machine())
    kept = Path(arguments.keep) if arguments.keep else None
    measured = compiling.tables(robots, names, limit, progress, kept)
    print_tables(compiling.LEGEND, measured, show)
    return 0


def _robots(arguments: argparse.Namespace) -> list[cases.Robot]:
    """Return the robots that are asked for, or the usual ones."""
    lock = tuple(filter(None, (arguments.lock or "").split(",")))
    pairs = named_values(arguments.xacro_argument, "--xacro-argument")
    return [
        cases.named(path, bool(floating), lock, arguments.package_path, pairs)
        for path, floating, _ in (
            x.partition(":floating") for x in arguments.robot or ()
        )
    ] or cases.usual()


def _measured(
    robot: cases.Robot, chosen: Sequence[str], kinds: Sequence[type[Peer]]
) -> tuple[list[Figures], list[str]]:
    """Measure each solver, and right after it each peer; say what cannot be."""
    peers: dict[str, Peer] = {}
    refused: dict[str, str] = {}
    for kind in kinds:
        progress(f"{robot.name}: preparing {kind.name}")
        reason = missing(kind)
        try:
            if not reason:
                peers[kind.name] = kind(robot, ROWS)
        except Exception as error:  # a peer's own trouble ends no measurement
            reason = f"cannot do {robot.name}: {error}"
        if reason:
            refused[kind.name] = reason
            progress(f"{kind.name}: {reason}")
    rows, lacks = [], []
    for name in chosen:
        progress(f"{robot.name}: {name}")
        gc.collect()
        try:
            figures = measure.measure(robot, name)
        except DynError as error:  # such as a tip that cannot move in six directions
            lacks.append(f"{name}: no figure: {error}.")
            continue
        for other, reason in refused.items():
            figures.peers[other] = Beside(reason=reason)
        for other, peer in peers.items():
            figures.peers[other] = measure_beside(peer, figures)
        rows.append(figures)
    return rows, lacks


def _cells(
    rows: Sequence[Figures], peers: Sequence[str], top: float, merged: bool
) -> list[list[str]]:
    """Return a table: this library's figures, then each peer's with the ratios.

    Args:
        rows, peers: What was measured, beside whom.
        top: The core's multiply-adds, times two [1/s].
        merged: Whether a peer has one column instead of three.
    """
    head = ["solver", "ns/call", "M/s core", "blocks", "M/s all", "cold s", "load ms",
            "KiB", "% peak"]  # fmt: skip
    for peer in peers:
        titles = [f"{peer} ns", "call", "batch"]
        head += [", ".join(titles)] if merged else titles
    table = [head]
    for row in rows:
        line = [
            row.algorithm, f"{row.call * 1e9:.0f}", f"{row.core / 1e6:.2f}",
            f"{row.blocks / 1e6:.2f}",
            f"{row.all / 1e6:.2f}", f"{row.cold:.2f}", f"{row.load * 1e3:.1f}",
            f"{row.size / 1024:.0f}", f"{100 * row.flops * row.core / top:.0f}",
        ]  # fmt: skip
        for peer in peers:
            beside = _beside(row, row.peers[peer])
            line += [", ".join(filter(None, beside))] if merged else beside
        table.append(line)
    return table


def _beside(row: Figures, peer: Beside) -> list[str]:
    """Return a peer's time of a call, and how much faster a call and a batch are."""
    ratios = peer.ratios(row)
    if peer.call is None or ratios is None:
        return ["-", "", ""]
    mark = "!" if peer.reason else ""
    return [f"{peer.call * 1e9:.0f}{mark}", *(f"{x:.1f}x" for x in ratios)]
