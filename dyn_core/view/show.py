"""Models, runs, planar systems and environments -> VisualScene or Replay.

A DynWarning is issued for positions of a robot's run that look like degrees.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import ShapeError, UnsupportedError, one_line
from dyn_core.model import Model
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.states import ChainState
from dyn_core.planar.objects.objects import PlanarObject
from dyn_core.recordings import Recording
from dyn_core.recordings.bags import BAGS, TABLES
from dyn_core.tasks import RobotTask, Task
from dyn_core.validation import float_array, known_keywords, shaped_array
from dyn_core.view import replay
from dyn_core.view.browser.notebook import NotebookView
from dyn_core.view.planar_scene import ChainScene, ObjectScene, task_scene
from dyn_core.view.replay import Replay
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.scene import VisualScene

_SHOWN = (
    "a Model, as dyn.load returns it, a ChainModel, a PlanarObject, a task, an"
    " environment of one, a Recording"
)
Shown = Any  # Model, ChainModel, PlanarObject, Task, RobotTask, or an environment


@known_keywords
def show(what: Shown, states: Any = None, t: Any = None) -> NotebookView:
    """Return a view of a robot or a run, for a notebook or an HTML file.

        dyn_core.view.show(model)
        dyn_core.view.show(task, states, t)

    Args:
        what: A Model, ChainModel, PlanarObject, task, or an environment of a task; or a
            Recording of a robot, without states and t.
        states: States of a run, one in each row: q of a robot or object, positions x, y
            of a chain's n joints (rows, n, 2) or (rows, 2 n), flat states of a task;
            or, if `what` is a Model or a task of a robot, a Recording of the robot; or
            one state of a robot, object or task. None: the initial state is shown, and
            t is ignored; but if `what` is a Recording, the run.
        t: Times of the rows, (rows,) [s]; None, which only a task, a Recording or one
            state allows: steps of the task's interval, times of the Recording, or 0.

    Raises:
        UnsupportedError: viser is not installed, `what` is of another type, or a
            Recording is not of a robot, or is given as `what` with states or t.
        ModelError: A PlanarObject has no rods.
        ShapeError: The states do not fit or are not finite, there are none, `t` is
            missing or does not fit, or is given with a Recording as `states`.
        SettingError: Times are not finite or decrease, a Recording has no rows, or a
            keyword is unknown.
    """
    if isinstance(what, Recording) and states is None and t is None:
        what, states = what.model, what
    if states is None:
        return NotebookView(scene_of(what))
    run = run_of(what, states, t)
    return NotebookView(run.scene, run)


def scene_of(what: Shown) -> VisualScene:
    """Return the scene of a Model, ChainModel, PlanarObject, task or environment.

    A planar task is shown in its random initial state of seed 0; a robot's task as the
    robot alone, at the robot's own initial position.
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
    valid = _SHOWN
    if isinstance(what, str | os.PathLike):
        valid = f"the command dyn view {what}"
        if Path(what).suffix not in (*BAGS, *TABLES):
            valid = f"show(dyn.load({str(what)!r})), or {valid}"
    said = f"a {type(what).__name__} is not shown; valid: {valid}"
    raise UnsupportedError(one_line(said))


def run_of(what: Shown, states: Any, t: Any = None) -> Replay:
    """Return the replay of states of a system, one in each row.

    A state is q of a robot or object, positions x, y of a chain's n joints, (rows, n,
    2) or (rows, 2 n), or the flat state of a task; `states` may be one state of a
    robot, object or task, or a Recording of a robot. t: times of the rows, (rows,) [s];
    None: steps of the task's interval, times of the Recording, or 0 for one state.
    """
    what = _task_of(what)
    if isinstance(states, Recording):
        return _run_of_recording(what, states, t)
    row, kind = _state_shape(what), type(what).__name__
    rows = float_array("states", states, f"shape (rows, {', '.join(map(str, row))})")
    if not np.isfinite(rows).all():
        raise ShapeError("states", "finite numbers", "NaN or infinity")
    if rows.ndim == 1 and rows.shape == row:  # one state
        rows, t = rows[None], [0.0] if t is None else t
    if isinstance(what, ChainModel) and rows.ndim == 2:
        row = (2 * what.n,)
    if rows.shape[1:] != row or not len(rows):
        wanted = f"a row {row} for each time, of a {kind}"
        raise ShapeError("states", wanted, f"shape {rows.shape}")
    if t is None:
        interval = getattr(what, "interval", None)
        if interval is None:
            raise ShapeError("t", f"{len(rows)} times", "None")
        t = interval * np.arange(len(rows))
    times = shaped_array("t", t, (len(rows),))
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
    scene_of_task, places = task_scene(what, rows[0])
    points = np.array([places(row) for row in rows])
    return replay.of_points(scene_of_task, times, points)


def _state_shape(what: Any) -> tuple[int, ...]:
    """Return the shape of a state of a system, as an argument of `show`.

    (nq,) of a Model or PlanarObject, (n, 2) of a ChainModel of n joints, (ns,) of a
    task.
    """
    if isinstance(what, Model | PlanarObject):
        return (what.nq,)
    if isinstance(what, ChainModel):
        return (what.n, 2)
    if isinstance(what, RobotTask | Task):
        return (what.ns,)
    raise UnsupportedError(
        f"states of a {type(what).__name__} are not shown; valid: {_SHOWN}"
    )


def _run_of_recording(what: Any, run: Recording, t: Any) -> Replay:
    """Return the replay of a Recording of a robot, or of a robot's task."""
    model = what.model if isinstance(what, RobotTask) else what
    if not isinstance(model, Model):
        raise UnsupportedError(
            f"a Recording is no run of a {type(what).__name__}; valid: a Model or a"
            " task of a robot, or states and their times t"
        )
    if t is not None:
        raise ShapeError("t", "None, since a Recording has its times", "times")
    return replay.of_recording(model, run)


def _task_of(what: Shown) -> Any:
    """Return the task of an environment, wrapped or not; other values unchanged."""
    bare = getattr(what, "unwrapped", what)
    return getattr(bare, "task", what)
