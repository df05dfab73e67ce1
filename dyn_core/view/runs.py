"""What a user names -> VisualScene or Replay: robots, chains, files of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.envs import IDS, register
from dyn_core.errors import DynError, SettingError, unknown_name
from dyn_core.identification import JointRecord, read_record
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.planar.chain.files import load_chain_file
from dyn_core.recordings import MotionRecord, read_motion
from dyn_core.recordings.joint_record import FILES
from dyn_core.view import replay
from dyn_core.view.planar_scene import ChainScene
from dyn_core.view.replay import Arrows, Replay
from dyn_core.view.scene import VisualScene
from dyn_core.view.show import run_of

CHAINS = (".yaml", ".yml")
SWEEP = 1.5  # time in which a slider goes through its range [s]
LONGEST_SWEEP = 12.0  # of all sliders [s]
PER_SECOND = 25  # rows of a run that is made here


def is_run(name: str) -> bool:
    """Return whether a name is that of a recorded run: a file, or a folder of a bag."""
    path = Path(name)
    return path.suffix in (*FILES, ".mcap", ".db3", ".bag") or (
        path.is_dir() and (path / "metadata.yaml").is_file()
    )


def is_chain(name: str) -> bool:
    """Return whether a name is that of a planar chain: shipped, or a YAML file."""
    if name in robots.names() or Path(name).is_file():
        return Path(name).suffix in CHAINS
    return name in robots.chains() or Path(name).suffix in CHAINS


def chain_scene(name: str) -> VisualScene:
    """Return the scene of a planar chain, as it starts.

    Raises:
        ModelError: There is no such file, or it is unusable.
    """
    shipped = name in robots.chains() and not Path(name).is_file()
    content = load_chain_file(robots.chain_path(name) if shipped else name)
    return ChainScene(content.chain, content.start)


def episode(name: str, duration: float = 10.0, seed: int = 0) -> Replay:
    """Return an episode of an environment under random actions.

    Args:
        name: Id such as dyn_ros/Pendulum-v0.
        duration: Longest time that is shown [s].
        seed: Of the start and of the actions.

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
    """Return a run in which each slider goes through its range, one after another.

    Loops that cannot be closed somewhere stay where they were.
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
            try:
                state = scene.state(moved, k)
            except ArithmeticError:  # a loop that cannot be closed
                pass
            states.append(state)
    t = np.arange(len(states)) / PER_SECOND
    return Replay(scene, t, np.array(states))


def saved_robot(path: str) -> tuple[str, str]:
    """Return the robot that a file of a run names, and how its root is held.

    Both are empty where the file does not say.
    """
    if Path(path).suffix != ".npz" or not Path(path).is_file():
        return "", ""
    try:
        facts = read_motion(path).facts
    except DynError:
        return "", ""  # read_run says what is wrong with it
    source = str(facts.get("source", ""))
    named = bool(source) and Path(source).name == source  # shipped or installed
    known = named or Path(source).is_file()
    return (source, str(facts.get("root_joint") or "")) if known else ("", "")


def read_run(
    path: str,
    model: Model,
    read: Callable[[str], JointRecord] = read_record,
) -> Replay:
    """Return the replay of a file: of Recording.save, or of measured joints.

    Args:
        path: The file.
        model: Whose run it is.
        read: Reads measured joints, for files that are no NPZ of a run.

    Raises:
        SettingError: It cannot be read, or is of another robot.
        ShapeError: Arrays that do not fit the robot.
    """
    if Path(path).suffix == ".npz" and Path(path).is_file():
        record = read_motion(path)
        if record.coordinates.positions == coordinates_of(model).positions:
            forces = _forces(record) if record.contacts else None
            return replay.of_arrays(model, record.t, record.q, record.tau, forces)
    return replay.of_record(model, read(path))


def _forces(record: MotionRecord) -> Callable[[int], Arrows]:
    """Return what gives the contact forces of a row of a run."""
    rows = record.contacts["row"]
    pairs = np.stack([record.contacts["point"], record.contacts["force"]], axis=1)

    def forces(row: int) -> Arrows:
        low, high = np.searchsorted(rows, [row, row + 1])
        return np.asarray(pairs[low:high])

    return forces
