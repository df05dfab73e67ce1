"""`dyn evaluate` and `dyn plot`: recordings compared with a model, and as pictures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dyn_core.errors import DynError, SettingError
from dyn_core.identification import (
    Evaluation,
    evaluate,
    with_table,
    write_sidecar,
    write_table,
)
from dyn_core.model import Model
from dyn_core.plots import check_plot, save
from dyn_core.plots.figures import COLOURS, GREY, Curve, Panel, draw
from dyn_core.plots.motions import thinned
from dyn_core.plots.pages import check_page
from dyn_core.recordings import read_motion
from dyn_core.recordings.runs import robot_of_run
from dyn_core.reports import write_identification_report
from dyn_core.validation.file_names import check_apart, file_kind

TABLE = ".parameters.csv"  # suffix of a file of parameters
PICTURE = ".parameters.png"  # suffix of a plot of parameters
FRICTION = ".friction.png"  # suffix of a plot of joint friction over speed
ACCOUNT = ("only", "robust", "delay", "folds")  # print the whole result
OPTIONS = (*ACCOUNT, "friction", "urdf", "report")  # need --identify


def evaluation_figure(evaluation: Evaluation) -> Any:
    """Return a matplotlib figure with one panel per joint, over time [s].

    Each has the measured and the computed joint force and their residual [N·m | N].
    """
    motion, model = evaluation.motion, evaluation.model
    rows = thinned(len(motion.t))
    panels = []
    for j, name in enumerate(evaluation.names):
        unit = "N" if model.joint_kind(name) == "prismatic" else "N·m"
        curves = [
            Curve(motion.t[rows], y[rows, j], label, style, colour)
            for label, y, style, colour in (
                ("measured", motion.tau, "-", COLOURS[0]),
                ("model", evaluation.tau, "--", COLOURS[1]),
                ("residual", evaluation.residual, "-", GREY),
            )
        ]
        panels.append(Panel(f"{name} [{unit}]", curves))
    return draw(panels, f"{model.name}: joint forces")


def plot(arguments: argparse.Namespace) -> int:
    """Draw a recording into a file; return the exit status 0.

    Args:
        arguments: Parsed arguments of `dyn plot`.

    Raises:
        DynError: The recording cannot be read, or the picture not written.
    """
    check_plot(arguments.output)
    topics = arguments.joint_states, arguments.commands
    read_motion(arguments.recording, None, *topics).plot(arguments.output)
    return 0


def _robot(arguments: argparse.Namespace) -> Model:
    """Return the robot of `dyn evaluate`, with joints locked and parameters applied."""
    model = robot_of_run(arguments, arguments.recording)
    return with_table(model, arguments.parameters) if arguments.parameters else model


def evaluate_recording(arguments: argparse.Namespace) -> int:
    """Run `dyn evaluate`: print measured against computed joint forces; return 0.

    With --identify the robot is then identified; --plot draws the last evaluation.
    """
    if arguments.plot:
        check_plot(arguments.plot)
    if arguments.report:
        check_page(arguments.report)
    folder = Path(f"{arguments.identify}{TABLE}").parent
    if file_kind(folder, "identify") != "folder":
        raise SettingError(
            f"--identify {arguments.identify}: no such folder", "identify"
        )
    idle = [x for x in OPTIONS if getattr(arguments, x)]
    if arguments.friction_speed is not None:
        idle.append("friction-speed")
    if idle and not arguments.identify:
        raise SettingError(
            f"--{idle[0]} changes nothing without --identify NAME", idle[0]
        )
    model = _robot(arguments)
    if name := arguments.identify:
        read = model.source.file, model.source.sidecar, arguments.parameters
        for ending in (TABLE, ".dyn.yaml", *([".urdf"] if arguments.urdf else [])):
            check_apart(f"{name}{ending}", (*read, arguments.recording), "identify")
    topics = arguments.joint_states, arguments.commands
    record = read_motion(arguments.recording, model, *topics)
    friction = not arguments.no_joint_friction
    result = evaluate(model, record, arguments.cutoff, friction)
    print("\n".join(result.lines()))
    if arguments.identify:
        result = _identified(result, arguments)
    if arguments.plot:
        save(evaluation_figure(result), arguments.plot)
    return 0


def _identified(result: Evaluation, arguments: argparse.Namespace) -> Evaluation:
    """Identify the robot, write and print the result; return its evaluation.

    NAME.parameters.csv (of --identify NAME) is written, then the robot, and what --plot
    and --report ask for. The evaluation is without the identified delay. If no physical
    robot has the parameters, the table and the first picture have been written.
    """
    name, recording = arguments.identify, arguments.recording
    names = ("only", "friction", "friction_speed")
    options = {name: getattr(arguments, name) for name in names}
    identified = result.identify(
        delay=arguments.delay,
        robust=arguments.robust,
        folds=arguments.folds,
        **{key: value for key, value in options.items() if value is not None},
    )
    table, sidecar = f"{name}{TABLE}", f"{name}.dyn.yaml"
    write_table(table, identified)
    print(
        f"\nidentified {identified.rank} combinations of {len(identified.names)}"
        f" parameters; the motion shows no more (dyn excite designs one that does)\n"
        f"parameters: {table}"
    )
    if any(getattr(arguments, option) for option in ACCOUNT):
        print("\n".join(identified.lines()))
    if arguments.plot:
        save(identified.plot(), f"{name}{PICTURE}")
    if identified.model is None:
        raise DynError(f"no robot can have them: {identified.reason}")
    if arguments.plot:
        save(identified.plot_friction(), f"{name}{FRICTION}")
    if arguments.urdf:
        print(f"robot: {', '.join(map(str, identified.save(f'{name}.urdf')))}\n")
    else:
        write_sidecar(sidecar, identified.model, Path(recording).name)
        print(f"friction and rotors: {sidecar}\n")
    late = result.without_delay(identified.delay)
    after = late.of(identified.model)
    print("\n".join(after.lines()))
    if arguments.report:
        write_identification_report(identified, arguments.report, late, after)
    return after
