"""The command `dyn view`, except ROS topics; ros_nodes defines its arguments."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from dyn_core.envs import IDS
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.sources.arguments import load_robot
from dyn_core.plots.pages import check_page
from dyn_core.recordings.files import is_recording
from dyn_core.signals import ENDING, noted_signals
from dyn_core.view import film, runs
from dyn_core.view.browser.notebook import NotebookView
from dyn_core.view.browser.viewer import Viewer
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VisualScene


def view(arguments: argparse.Namespace) -> int:
    """Show the named object in a browser, or write it as a film or an HTML page.

    Without --film and --html it is served until Ctrl-C. With both, both are written. A
    film of an object without a run shows all its sliders moving.

    Args:
        arguments: Arguments of `dyn view`, checked by `check`.

    Returns:
        0, the exit status.

    Raises:
        SettingError, ModelError, ShapeError: The object cannot be read, or a file
            cannot be written.
        UnsupportedError: A library that is needed is not installed.
    """
    scene, run = named(arguments)
    if not (arguments.film or arguments.html):
        return serve(arguments, scene, run)
    if arguments.film:
        moving = runs.sweep(scene) if run is None else run
        fps, speed = arguments.fps or film.FPS, arguments.speed or 1.0
        options = arguments.film, fps, speed, arguments.torque_colors
        count = film.write_film(moving, *options)
        print(f"film: {arguments.film}, {count} pictures")
    if arguments.html:
        NotebookView(scene, run).save(arguments.html)
        print(f"page: {arguments.html}")
    _print_notes(scene)
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Check that the arguments are valid and have an effect in combination.

    Args:
        arguments: Arguments of `dyn view`.

    Raises:
        SettingError: An argument is not valid or has no effect; says where it has one.
        UnsupportedError: A film was requested, and Pillow is not installed.
    """
    is_run, live = is_recording(arguments.what), arguments.live
    moves = is_run or arguments.film is not None or arguments.what in IDS
    for option, goes, where in (
        ("network", live, "--live"),
        ("joint_states", live or is_run, "--live or a bag"),
        ("robot", is_run and not live, "a recording"),
        ("fps", arguments.film is not None, "--film"),
        ("torque_colors", arguments.film is not None, "--film"),
        ("speed", moves, "a run or --film"),
        ("film", not live, "a robot or a run; valid with --live: none"),
        ("html", not live, "a robot or a run; valid with --live: none"),
    ):
        value = getattr(arguments, option)
        if value not in (None, False, "") and not goes:
            name = option.replace("_", "-")
            raise SettingError(f"--{name} goes with {where}", option)
    for option in ("fps", "speed"):
        value = getattr(arguments, option)
        if value is not None and not 0 < value < math.inf:
            raise SettingError(f"--{option} {value}; valid: finite and > 0", option)
    if arguments.film is not None:
        film.check_film(arguments.film)
    if arguments.html is not None:
        check_page(arguments.html, "html")


def named(arguments: argparse.Namespace) -> tuple[VisualScene, Replay | None]:
    """Return the scene that arguments.what names, and its run or None.

    Args:
        arguments: Arguments of `dyn view`; `what` is a recording, a planar chain, an
            environment or a robot, tried in this order.

    Raises SettingError, ModelError, ShapeError or UnsupportedError as in `view`.
    """
    name = arguments.what
    if is_recording(name):
        run = runs.read_run(name, robot_of_run(arguments), arguments.joint_states)
        return run.scene, run
    if runs.is_chain(name):
        return runs.chain_scene(name), None
    if name in IDS or name.startswith("dyn_ros/"):
        run = runs.episode(name)
        return run.scene, run
    written = arguments.film or arguments.html
    return RobotScene(load_robot(arguments, name), sketched=not written), None


def robot_of_run(arguments: argparse.Namespace) -> Model:
    """Return the robot of a recording, from --robot or the name in the file.

    The kind of root joint in the file is used, unless --root-joint is given.

    Args:
        arguments: Arguments of `dyn view`; `what` is the recording.

    Raises:
        SettingError, ShapeError: There is no such file, it cannot be read, or neither
            names a robot.
        ModelError: The robot cannot be loaded.
    """
    if not Path(arguments.what).exists():
        raise SettingError(f"{arguments.what}: no such file or folder", "what")
    robot, root_joint = runs.saved_robot(arguments.what)
    if not (arguments.robot or robot):
        raise SettingError(
            f"{arguments.what} does not say whose run it is; give --robot", "robot"
        )
    options: dict[str, Any] = {}
    if not arguments.root_joint and root_joint:
        options["root_joint"] = root_joint
    return load_robot(arguments, arguments.robot or robot, **options)


def serve(arguments: argparse.Namespace, scene: VisualScene, run: Replay | None) -> int:
    """Show a scene in a browser until SIGINT (Ctrl-C) or SIGTERM, and play its run.

    Args:
        arguments: host, port and speed of `dyn view`.
        scene: Scene.
        run: Run of the scene, or None.

    Returns:
        0, the exit status.

    Raises:
        UnsupportedError: viser is not installed, or its version is not supported.
        SettingError: The port is in use, or port or host are not valid.
    """
    with (
        noted_signals(*ENDING) as stop,
        Viewer(scene, run, arguments.host, arguments.port) as viewer,
    ):
        announce(viewer, scene)
        if run is not None:
            viewer.speed = arguments.speed or 1.0
            viewer.play(True)
        viewer.run(lambda: bool(stop))
    return 0


def announce(viewer: Viewer, scene: VisualScene) -> None:
    """Print the address, replace the sketch by the meshes, and print the notes.

    Returns when the meshes are read. The address goes to standard output, the scene's
    notes to standard error.
    """
    print(f"{scene.name}: {viewer.address}   (Ctrl-C ends)", flush=True)
    viewer.finish()
    _print_notes(scene)


def _print_notes(scene: VisualScene) -> None:
    for note in scene.notes:
        print(f"dyn view: warning: {note}", file=sys.stderr)
