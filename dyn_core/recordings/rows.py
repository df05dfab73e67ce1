"""Dynamics of a recorded motion: all rows in batched calls of one Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError, unknown_name
from dyn_core.model import Model
from dyn_core.problems import FORWARD_DYNAMICS, INVERSE_DYNAMICS, Signature
from dyn_core.recordings.motion import MotionRecord, refuse_not_finite
from dyn_core.recordings.progress import RowProgress
from dyn_core.recordings.slopes import with_slopes
from dyn_core.solving.registry import solver, solvers
from dyn_core.solving.solver import Solver

CHUNK = 50_000  # maximum number of rows in one call


def inverse_dynamics(
    model: Model,
    record: MotionRecord,
    solver_name: str | Solver = "auto",
    cutoff: float | None = None,
    joint_friction: bool = True,
    engine: str | None = None,
    progress: bool = False,
) -> MotionRecord:
    """Return the motion with the joint forces that cause it; joint springs act.

    Joint forces that the motion has are replaced; `record` is unchanged. The result has
    only the robot's columns, in its order, and the velocities and accelerations used.

    Args:
        model: Robot.
        record: Motion; missing velocities and accelerations are estimated
            (dyn_core.recordings.slopes), with a note.
        solver_name: Solver of INVERSE_DYNAMICS, by name or as object; "auto": the
            default one, rnea, or rnea_loops for a robot with loops.
        cutoff: Cut-off frequency of the low-pass filter before an estimation [Hz];
            None: no filter.
        joint_friction: Whether damping and dry friction act.
        engine: Engine of the Program; None: the default.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: The motion lacks a column of the robot, times do not increase,
            there
            is no row, velocities or accelerations cannot be estimated, or the cut-off
            frequency is out of range or has no effect.
        ShapeError: The columns are numbered, and not as many as the robot's.
        NonFiniteError: A number or a result is not finite; says the row.
        UnsupportedError: The solver is of another kind, or does not support this robot.
        SolverNotFound: No solver has this name.
    """
    motion = with_slopes(model, record.of(model).checked(["q"]), cutoff)
    program = _program(INVERSE_DYNAMICS, model, solver_name, joint_friction, engine)
    return _completed(program, model, motion, ("qdd", "tau"), progress)


def forward_dynamics(
    model: Model,
    record: MotionRecord,
    solver_name: str | Solver = "auto",
    joint_friction: bool = True,
    engine: str | None = None,
    progress: bool = False,
) -> MotionRecord:
    """Return the motion with the accelerations that its joint forces cause.

    Joint springs act. Accelerations that the motion has are replaced; `record` is
    unchanged. The result has only the robot's columns, in its order.

    Args:
        model: Robot.
        record: Motion with velocities `qd` and joint forces `tau`.
        solver_name: Solver of FORWARD_DYNAMICS, by name or as object; "auto": the
            default one, aba, or aba_loops for a robot with loops.
        joint_friction: Whether damping and dry friction act.
        engine: Engine of the Program; None: the default.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: A column is missing, times do not increase, or there is no row.
        ShapeError: The columns are numbered, and not as many as the robot's.
        NonFiniteError: A number or a result is not finite; says the row.
        UnsupportedError: The solver is of another kind, or does not support this robot.
        SolverNotFound: No solver has this name.
    """
    motion = record.of(model).checked(["q", "qd", "tau"])
    program = _program(FORWARD_DYNAMICS, model, solver_name, joint_friction, engine)
    return _completed(program, model, motion, ("tau", "qdd"), progress)


def _completed(
    program: Any,
    model: Model,
    motion: MotionRecord,
    kinds: tuple[str, str],
    progress: bool,
) -> MotionRecord:
    """Return the motion with one kind of column computed by a Program.

    Args:
        program: Program of q, qd and the known kind.
        model: Robot.
        motion: Motion with qd and the known kind; not changed.
        kinds: Known and computed kind, such as ("qdd", "tau").
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: A column is missing, or there is no row.
        NonFiniteError: A result is not finite; names row and column.
    """
    known, wanted = kinds
    columns = [motion.q, motion.column("qd"), motion.column(known)]
    result = _by_chunks(program, model, motion.t, columns, progress)
    refuse_not_finite(wanted, result, motion.names(wanted))
    changed: dict[str, Any] = {wanted: result}
    return replace(motion, **changed)


def _program(
    problem: Signature,
    model: Model,
    name: str | Solver,
    friction: bool,
    engine: str | None,
) -> Any:
    """Return a Program of a solver, with joint springs.

    Its last input is the time if the robot has driven joints.

    Args:
        problem: Required Signature.
        model: Robot.
        name: Solver, its name, or "auto".
        friction: Whether joint friction acts.
        engine: Engine of the Program; None: the default.

    Raises:
        SolverNotFound: No solver has this name.
        UnsupportedError: The solver has another Signature, or does not support the
            robot or
            the engine.
    """
    chosen = solver(name, problem)
    if chosen.signature.name != problem.name:
        known = solvers(problem)
        what = f"solver of {problem.name}"
        raise UnsupportedError(unknown_name(what, chosen.name, known))
    return chosen.build(
        model,
        joint_friction=friction,
        joint_springs=True,
        inputs=["time"] if model.driven else [],
        engine=engine,
    )


def _by_chunks(
    program: Any,
    model: Model,
    t: np.ndarray,
    columns: Sequence[np.ndarray],
    progress: bool,
) -> np.ndarray:
    """Return the result of a Program for all rows, (rows, nv), CHUNK rows a call.

    Args:
        program: Program of the columns, and of t if the model has driven joints; it has
            one result.
        model: Robot.
        t: Times, (rows,) [s].
        columns: Inputs, (rows, ...) each.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: There is no row.
    """
    if not len(t):
        raise SettingError("the motion has no row", "t")
    more = [t] if model.driven else []
    result = np.empty((len(t), model.nv))
    bar = RowProgress(len(t), progress)
    for start in range(0, len(t), CHUNK):
        rows = slice(start, start + CHUNK)
        result[rows] = program(*(x[rows] for x in (*columns, *more)))
        bar.show(min(start + CHUNK, len(t)))
    bar.end()
    return result
