"""Names given by users -> VisualScene or Replay: robots, chains, files of runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.envs import IDS, register
from dyn_core.errors import RowError, SettingError, unknown_name
from dyn_core.model import Model
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.recordings import read_motion
from dyn_core.recordings.runs import named_robot
from dyn_core.view import replay
from dyn_core.view.planar_scene import ChainScene
from dyn_core.view.replay import Replay
from dyn_core.view.scene import VisualScene
from dyn_core.view.show import run_of

CHAINS = (".yaml", ".yml")
SWEEP = 1.5  # duration of the sweep of one slider [s]
LONGEST_SWEEP = 12.0  # maximum duration of all sweeps [s]
PER_SECOND = 25  # rows of a generated run per second


def is_chain(name: str) -> bool:
    """Return whether a name is a planar chain: a shipped chain, or a YAML file.

    A name that ends with .yaml or .yml is one, also if there is no such file. An
    existing file of another type and the name of a shipped robot are none.
    """
    if name in robots.names() or Path(name).is_file():
        return Path(name).suffix in CHAINS
    return name in robots.chains() or Path(name).suffix in CHAINS


def chain_scene(name: str) -> VisualScene:
    """Return the scene of a planar chain in its initial state.

    Args:
        name: Path of a YAML file, or name of a shipped chain; an existing file has
            priority.

    Raises:
        ModelError: There is no such file, or it is not valid.
    """
    shipped = name in robots.chains() and not Path(name).is_file()
    content = load_chain_file(robots.chain_path(name) if shipped else name)
    return ChainScene(content.chain, content.start)


def episode(name: str, duration: float = 10.0, seed: int = 0) -> Replay:
    """Return an episode of an environment under random actions.

    The first row is the initial state, and a row follows for each step of the task. The
    episode ends at the duration, or earlier when the environment terminates or
    truncates it.

    Args:
        name: Id such as dyn_ros/Pendulum-v0.
        duration: Maximum duration [s].
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
    while not over and len(states) * bare.task.interval < duration:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        states.append(np.array(bare.get_state()))
        over = terminated or truncated
    return run_of(bare.task, np.array(states))


def sweep(scene: VisualScene) -> Replay:
    """Return a run in which each slider moves through its range, one after another.

    A slider moves from its start to its upper end, its lower end and back, as a sine,
    in at most 1.5 s; the others rest at their start. Where a loop cannot be closed, is
    singular or not finite, the state does not change. Without sliders the run has one
    row, the initial state.
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


def saved_robot(path: str) -> tuple[str, str]:
    """Return (robot, kind of its root joint) that a file of a run names.

    Only NPZ files of runs name them. Both are empty if the file names no known robot;
    the kind is empty if the file does not name it.

    Args:
        path: File of the run.

    Raises:
        SettingError, ShapeError: It is an NPZ file that cannot be read.
    """
    if Path(path).suffix != ".npz" or not Path(path).is_file():
        return "", ""
    return named_robot(read_motion(path).facts)


def read_run(path: str, model: Model, joint_states: str = "") -> Replay:
    """Return the replay of a file of Recording.save, or of measured joints.

    Args:
        path: NPZ or CSV file, or file or folder of a bag.
        model: Robot of the run.
        joint_states: Topic of a bag; empty: joint_states, or the only JointState topic.

    Raises:
        SettingError: It cannot be read, or is of another robot; or a topic is given for
            an NPZ or CSV file.
        ShapeError: Its arrays do not fit the robot.
        UnsupportedError: The file is a bag, and rosbags is not installed.
    """
    return replay.of_motion(model, read_motion(path, joint_states=joint_states))
