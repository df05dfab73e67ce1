"""Models, runs, planar systems and environments -> VisualScene or Replay."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.model import Model
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.geometry import ChainState
from dyn_core.planar.objects.objects import PlanarObject
from dyn_core.recordings import Recording
from dyn_core.tasks import RobotTask, Task
from dyn_core.validation import known_keywords
from dyn_core.view import replay
from dyn_core.view.browser.notebook import NotebookView
from dyn_core.view.planar_scene import ChainScene, ObjectScene, task_scene
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VisualScene

Shown = Any  # Model, ChainModel, PlanarObject, Task, RobotTask, or an environment


@known_keywords
def show(what: Shown, states: Any = None, t: Any = None) -> NotebookView:
    """Return a view of a robot or a run, for a notebook or an HTML file.

        dyn_core.view.show(model)
        dyn_core.view.show(task, states, t)

    Args:
        what: A Model, ChainModel, PlanarObject, task, or an environment of a task.
        states: States of a run, one in each row: q of a robot or object, positions x, y
            of a chain's joints (rows, n, 2), flat states of a task; or, if `what` is a
            Model, a Recording of it.
        t: Times of the rows, (rows,) [s]; None: steps of a task's interval.

    Raises:
        UnsupportedError: viser is not installed, or `what` is of another type.
        ShapeError: The states do not fit, or `t` is missing.
        SettingError: There are no rows, or times are not finite or decrease.
    """
    if states is None:
        return NotebookView(scene_of(what))
    run = run_of(what, states, t)
    return NotebookView(run.scene, run)


def scene_of(what: Shown) -> VisualScene:
    """Return the scene of a robot, a planar system, a task or an environment.

    A planar task is shown in its random initial state of seed 0. Raises
    UnsupportedError for other types.
    """
    what = _task_of(what)
    if isinstance(what, Model):
        return RobotScene(what)
    if isinstance(what, RobotTask):
        return RobotScene(what.model)
    if isinstance(what, ChainModel):
        return ChainScene(what)
    if isinstance(what, PlanarObject):
        return ObjectScene(what)
    if isinstance(what, Task):
        return task_scene(what, what.start(np.random.default_rng(0), 1)[0])[0]
    raise UnsupportedError(
        f"a {type(what).__name__} is not shown; valid: a Model, a ChainModel, a"
        " PlanarObject, a task, an environment of one"
    )


def run_of(what: Shown, states: Any, t: Any = None) -> Replay:
    """Return the replay of states of a system; arguments and errors as in `show`."""
    what = _task_of(what)
    if isinstance(states, Recording):
        return replay.of_recording(what, states)
    rows = np.asarray(states, float)
    if rows.ndim < 2 or not len(rows):
        raise ShapeError("states", "a row for each time", f"shape {rows.shape}")
    if t is None:
        interval = getattr(what, "interval", None)
        if interval is None:
            raise ShapeError("t", f"{len(rows)} times", "None")
        t = interval * np.arange(len(rows))
    times = np.asarray(t, float)
    if isinstance(what, RobotTask):
        return replay.of_arrays(what.model, times, what.rows(rows).q)
    if isinstance(what, Model):
        return replay.of_arrays(what, times, rows)
    if isinstance(what, ChainModel):
        still = ChainState(rows[0].reshape(-1, 2), np.zeros((what.n, 2)))
        points = rows.reshape(len(rows), -1)
        return replay.of_points(ChainScene(what, still), times, points)
    if isinstance(what, PlanarObject):
        scene = ObjectScene(what)
        points = np.array([scene.state(row) for row in rows])
        return replay.of_points(scene, times, points)
    if isinstance(what, Task):
        scene_of_task, places = task_scene(what, rows[0])
        points = np.array([places(row) for row in rows])
        return replay.of_points(scene_of_task, times, points)
    raise UnsupportedError(f"states of a {type(what).__name__} are not shown")


def _task_of(what: Shown) -> Any:
    """Return the task of an environment; other values unchanged."""
    bare = getattr(what, "unwrapped", what)
    return getattr(bare, "task", what)
