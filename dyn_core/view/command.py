"""The command `dyn view`, except ROS topics; ros_nodes defines its arguments."""

from __future__ import annotations

import argparse
import math
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.envs import IDS, register
from dyn_core.errors import RowError, SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.model.sources.arguments import load_robot, start_of
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.plots.pages import check_page
from dyn_core.recordings import read_motion
from dyn_core.recordings.files import is_recording
from dyn_core.recordings.runs import robot_of_run
from dyn_core.signals import ENDING, noted_signals
from dyn_core.validation.file_names import check_file_name, file_kind
from dyn_core.view import film, replay
from dyn_core.view.browser.notebook import NotebookView
from dyn_core.view.browser.viewer import Viewer
from dyn_core.view.planar_scene import ChainScene
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VisualScene
from dyn_core.view.show import run_of

CHAINS = (".yaml", ".yml")
NO_ROBOTS = (".npy", ".gif", ".png", ".html")  # else read as a URDF
SWEEP = 1.5  # duration of the sweep of one slider [s]
LONGEST_SWEEP = 12.0  # maximum duration of all sweeps [s]
PER_SECOND = 25  # rows of a generated run per second


def view(arguments: argparse.Namespace) -> int:
    """Show the named object in a browser, or write it as a film or an HTML page.

    Without --film, --html and --picture it is served until Ctrl-C or SIGTERM. With
    several, all are written, and a line for each is printed; the scene's notes go to
    standard error. A film of an object without a run shows all its sliders moving.

    Args:
        arguments: Arguments of `dyn view`, checked by `check`.

    Returns:
        0, the exit status.

    Raises:
        SettingError, ModelError, ShapeError: The object cannot be read, a file cannot
            be written, host or port cannot be used, or a film or page is too long.
        UnsupportedError: A library that is needed is not installed.
    """
    scene, run = named(arguments)
    if not _written(arguments):
        return serve(arguments, scene, run)
    if arguments.film:
        moving = sweep(scene) if run is None else run
        fps, speed = arguments.fps or film.FPS, arguments.speed or 1.0
        options = arguments.film, fps, speed, arguments.torque_colors
        count = film.write_film(moving, *options)
        meaning = f"; colours: {moving.share_meaning}" * arguments.torque_colors
        print(f"film: {arguments.film}, {count} pictures{meaning}")
    for what, path in (("page", arguments.html), ("picture", arguments.picture)):
        if path:
            NotebookView(scene, run).save(path)
            print(f"{what}: {path}")
    _print_notes(scene)
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Check that the arguments are valid and have an effect in combination.

    Args:
        arguments: Arguments of `dyn view`.

    Raises:
        SettingError: An argument is not valid or has no effect; says where it has one.
        UnsupportedError: A film or picture was requested, and Pillow is not installed.
    """
    is_run, live = is_recording(arguments.what), arguments.live
    moves = is_run or arguments.film is not None or arguments.what in IDS
    has_robot = not (live or is_chain(arguments.what) or arguments.what in IDS)
    for option, goes, where in (
        ("network", live, "--live"),
        ("joint_states", live or is_run, "--live or a bag"),
        ("robot", is_run and not live, "a recording"),
        ("lock", has_robot, "a robot or a recording"),
        ("fps", arguments.film is not None, "--film"),
        ("torque_colors", arguments.film is not None, "--film"),
        ("speed", moves, "a run or --film"),
        ("film", not live, "a robot or a run; valid with --live: none"),
        ("html", not live, "a robot or a run; valid with --live: none"),
        ("picture", not live, "a robot or a run; valid with --live: none"),
        (
            "q0",
            not (is_run or is_chain(arguments.what) or arguments.what in IDS),
            "a robot",
        ),
    ):
        value = getattr(arguments, option)
        if value not in (None, False, "") and not goes:
            name = option.replace("_", "-")
            raise SettingError(f"--{name} goes with {where}", option)
    for option in ("fps", "speed"):
        value = getattr(arguments, option)
        if value is not None and not 0 < value < math.inf:
            raise SettingError(f"--{option} {value}; valid: finite and > 0", option)
    if (arguments.fps or 0.0) > film.MOST_FPS:
        valid = f"up to {film.MOST_FPS:g}, which a GIF has at most"
        raise SettingError(f"--fps {arguments.fps:g}; valid: {valid}", "fps")
    if arguments.film is not None:
        film.check_film(arguments.film)
    if arguments.html is not None:
        check_page(arguments.html, "html")
    if arguments.picture is not None:
        check_file_name(arguments.picture, [".png"], "picture")
        film.pillow()


def _written(arguments: argparse.Namespace) -> bool:
    """Return whether files are written, and nothing is served."""
    return bool(arguments.film or arguments.html or arguments.picture)


def named(arguments: argparse.Namespace) -> tuple[VisualScene, Replay | None]:
    """Return the scene that arguments.what names, and its run; None if it has none.

    `what` is a recording, a planar chain, an environment (also if there is none) or a
    robot, tried in this order. An environment has a random episode. The scene of a
    robot begins as a sketch, unless a film, page or picture is to be written.
    """
    name = arguments.what
    if is_recording(name) or Path(name).suffix in NO_ROBOTS:
        run = read_run(name, robot_of_run(arguments, name), arguments.joint_states)
        return run.scene, run
    if is_chain(name):
        return chain_scene(name), None
    if name in IDS or name.startswith("dyn_ros/"):
        run = episode(name)
        return run.scene, run
    return robot_scene(arguments, sketched=not _written(arguments)), None


def robot_scene(arguments: argparse.Namespace, sketched: bool) -> RobotScene:
    """Return the scene of the robot arguments.what, in the posture of --q0.

    Args:
        arguments: Arguments of `dyn view`.
        sketched: Whether a sketch of rods replaces meshes until these are read.

    Raises:
        SettingError, ModelError: The robot or the posture is not valid.
    """
    model = load_robot(arguments, arguments.what)
    return RobotScene(model, sketched, start_of(model, "q0", arguments.q0))


def serve(arguments: argparse.Namespace, scene: VisualScene, run: Replay | None) -> int:
    """Show a scene in a browser until SIGINT or SIGTERM, and play its run; return 0."""
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
    """Print the address, replace the sketch by the meshes, and print the notes."""
    print(f"{scene.name}: {viewer.address}   (Ctrl-C ends)", flush=True)
    viewer.finish()
    _print_notes(scene)


def _print_notes(scene: VisualScene) -> None:
    for note in scene.notes:
        print(f"dyn view: warning: {note}", file=sys.stderr)


def is_chain(name: str) -> bool:
    """Return whether a name is a shipped chain, or a YAML file, also a missing one."""
    if name in robots.names() or file_kind(name) == "file":
        return Path(name).suffix in CHAINS
    return name in robots.chains() or Path(name).suffix in CHAINS


def chain_scene(name: str) -> VisualScene:
    """Return the scene of a planar chain: of an existing file, else a shipped one."""
    shipped = name in robots.chains() and file_kind(name) != "file"
    content = load_chain_file(robots.chain_path(name) if shipped else name)
    return ChainScene(content.chain, content.start)


def episode(name: str, duration: float = 10.0, seed: int = 0) -> Replay:
    """Return an episode of an environment under random actions.

    The first row is the initial state, and a row follows for each step of the task. The
    last row is the first one at or after the duration, or is where the environment
    terminates or truncates the episode.

    Args:
        name: Id such as dyn_ros/Pendulum-v0.
        duration: Time at which the episode ends, finite [s]; the first row always
            exists.
        seed: Seed of the start and of the actions.

    Raises:
        SettingError: There is no such environment.
        UnsupportedError: gymnasium is not installed.
    """
    if name not in IDS:
        raise SettingError(unknown_name("environment", name, IDS), "environment")
    register()
    import gymnasium

    env = gymnasium.make(name)
    bare: Any = env.unwrapped
    env.reset(seed=seed)
    env.action_space.seed(seed)
    states, over = [np.array(bare.get_state())], False
    steps = math.ceil(duration / bare.task.interval - 1e-9)  # 1e-9: rounding
    while not over and len(states) <= steps:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        states.append(np.array(bare.get_state()))
        over = terminated or truncated
    return run_of(bare.task, np.array(states))


def sweep(scene: VisualScene) -> Replay:
    """Return a run in which each slider moves through its range, one after another.

    A slider moves from its start to its upper end, its lower end and back, as a sine,
    in at most 1.5 s. Where a loop cannot be closed, the state does not change.
    """
    count = max(1, len(scene.sliders))
    rows = max(8, round(min(SWEEP, LONGEST_SWEEP / count) * PER_SECOND))
    phase = np.linspace(0.0, 2 * np.pi, rows, endpoint=False)
    state = scene.start()
    values, states = scene.values(state).tolist(), [state]
    for k, slider in enumerate(scene.sliders):
        for angle in phase:
            x, reach = slider.start, np.sin(angle)
            side = slider.high - x if reach > 0 else x - slider.low
            moved = [*values[:k], x + reach * side, *values[k + 1 :]]
            with suppress(RowError):  # a loop does not close, or has no residual
                state = scene.state(moved, k)
            states.append(state)
    t = np.arange(len(states)) / PER_SECOND
    return Replay(scene, t, np.array(states))


def read_run(path: str, model: Model, joint_states: str = "") -> Replay:
    """Return the replay of a file of Recording.save, or of measured joints.

    `path` is an NPZ or CSV file, or a bag with the topic `joint_states`; empty:
    joint_states, or the only JointState topic.
    """
    return replay.of_motion(model, read_motion(path, joint_states=joint_states))
