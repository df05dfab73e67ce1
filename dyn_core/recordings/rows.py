"""Dynamics of a recorded motion, and estimates of velocities and accelerations.

All rows are computed in batched calls of one Program. Velocities and accelerations
that are missing are derivatives of the quintic spline through the samples, which is
symmetric in time, evaluated at the times of the samples, which may be uneven: no delay.
The estimate is exact for polynomials of degree five, and amplifies noise. With a
cut-off frequency the samples are first filtered forward and backward by a Butterworth
low-pass filter of order four, on an even grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.errors import RowError, SettingError, warn
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.problems import FORWARD_DYNAMICS, INVERSE_DYNAMICS, Signature
from dyn_core.recordings.doubts import doubtful_times, doubtful_velocities
from dyn_core.recordings.motion import MotionRecord, motion_of, refuse_not_finite
from dyn_core.recordings.progress import RowProgress
from dyn_core.recordings.recording import Recording
from dyn_core.recordings.signals import checked_cutoff, low_pass, without_turns
from dyn_core.solving.registry import solver_of
from dyn_core.solving.solver import Solver

CHUNK = 50_000  # maximum number of rows in one call
DEGREE = 5  # degree of the splines


def inverse_dynamics(
    model: Model,
    record: MotionRecord | Recording,
    solver_name: str | Solver = "auto",
    cutoff: float | None = None,
    joint_friction: bool = True,
    engine: str | None = None,
    progress: bool = False,
) -> MotionRecord:
    """Return the motion with the joint forces that cause it; joint springs act.

    Joint forces that the motion has are replaced; `record` is unchanged. The result has
    only the robot's columns, in its order, and the velocities and accelerations used. A
    DynWarning names a joint whose velocity is not the slope of its position, and asks
    about times that look like ms.

    Args:
        model: Robot.
        record: Motion or Recording; missing velocities and accelerations are estimated
            (with_slopes), with a note.
        solver_name: Solver of INVERSE_DYNAMICS, by name or as object; "auto": the
            default one, rnea, or rnea_loops for a robot with loops.
        cutoff: Cut-off frequency of the low-pass filter before an estimation, above 0
            and at most 0.4 times the mean rate of the rows [Hz]; None: no filter.
        joint_friction: Whether damping and dry friction act.
        engine: Engine of the Program; None: the default.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: The motion lacks a column of the robot, times do not increase,
            there is no row, velocities or accelerations cannot be estimated, or the
            cut-off frequency is out of range or has no effect.
        ShapeError: The columns are numbered, and not as many as the robot's.
        NonFiniteError: A number or a result is not finite; says the row.
        RowError: The solver has no result for a row, such as SingularError at loops.
        SignatureError: The solver is of another kind.
        UnsupportedError: `model` is no robot or `record` no motion, the solver does not
            support this robot, or the engine is unknown.
        SolverNotFound: No solver has this name.
    """
    check_robot(model, "inverse_dynamics")
    record = motion_of(record, "inverse_dynamics")
    mine = record.of(model).checked(["q"])
    motion = with_slopes(model, mine, cutoff)
    for doubt in doubtful_velocities(model, mine):
        warn(f"inverse_dynamics: {doubt}")
    program = _program(INVERSE_DYNAMICS, model, solver_name, joint_friction, engine)
    return _completed(program, model, motion, ("qdd", "tau"), progress)


def forward_dynamics(
    model: Model,
    record: MotionRecord | Recording,
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
        record: Motion or Recording, with velocities `qd` and joint forces `tau`.
        solver_name: Solver of FORWARD_DYNAMICS, by name or as object; "auto": the
            default one, aba, or aba_loops for a robot with loops.
        joint_friction: Whether damping and dry friction act.
        engine: Engine of the Program; None: the default.
        progress: Whether to show progress on a terminal.

    Raises:
        SettingError: A column is missing, times do not increase, or there is no row.
        ShapeError: The columns are numbered, and not as many as the robot's.
        NonFiniteError: A number or a result is not finite; says the row.
        RowError: The solver has no result for a row, such as SingularError at loops.
        SignatureError: The solver is of another kind.
        UnsupportedError: `model` is no robot or `record` no motion, the solver does not
            support this robot, or the engine is unknown.
        SolverNotFound: No solver has this name.
    """
    check_robot(model, "forward_dynamics")
    record = motion_of(record, "forward_dynamics")
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

    The Program takes q, qd and the known kind, and last the time if the robot has
    driven joints. `kinds` are the known and the computed one, such as ("qdd", "tau").
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
    """
    return solver_of(name, problem).build(
        model, joint_friction=friction, joint_springs=True, engine=engine,
        inputs=["time"] if model.driven else [],
    )  # fmt: skip


def _by_chunks(
    program: Any,
    model: Model,
    t: np.ndarray,
    columns: Sequence[np.ndarray],
    progress: bool,
) -> np.ndarray:
    """Return the result of a Program for all rows, (rows, nv), CHUNK rows a call.

    Its inputs are the columns, (rows, ...) each, and t if the model has driven joints.
    """
    if not len(t):
        raise SettingError("the motion has no row", "t")
    more = [t] if model.driven else []
    result = np.empty((len(t), model.nv))
    bar = RowProgress(len(t), progress)
    for start in range(0, len(t), CHUNK):
        rows = slice(start, start + CHUNK)
        try:
            result[rows] = program(*(x[rows] for x in (*columns, *more)))
        except RowError as error:  # its rows count within the chunk
            at_fault = error.rows and [start + k for k in error.rows]
            raise error.of_rows(at_fault) from None
        bar.show(min(start + CHUNK, len(t)))
    bar.end()
    return result


def with_slopes(
    model: Model, record: MotionRecord, cutoff: float | None = None
) -> MotionRecord:
    """Return a motion with velocities and accelerations; given ones are unchanged.

    Accelerations are derivatives of given velocities, else second derivatives of the
    positions. Derivatives are those of a spline of degree 5 through the rows; with
    `cutoff`, through the rows after a low-pass filter without shift in time.
    Positions of continuous joints may jump by full turns. Estimation adds a note to the
    result; a note on velocities names accelerations, too, even if they were given. A
    motion with both is returned itself. A DynWarning asks about times that look like
    ms.

    Args:
        model: Robot whose coordinates the motion has, in its order.
        record: Motion; not changed. Its positions are read if it has no velocities.
        cutoff: Cut-off frequency of the low-pass filter, above 0 and at most 0.4 times
            the mean rate of the rows [Hz]; None: no filter.

    Raises:
        SettingError: There are fewer than six rows, times do not increase, a joint
            whose velocity is needed has several coordinates, or the cut-off frequency
            is out of range or, for a motion with both, has no effect.
        NonFiniteError: A number that is read is not finite; says the row.
    """
    known = [x for x in ("qd", "qdd") if getattr(record, x) is not None]
    record.checked(known if record.qd is not None else ["q", *known])
    if doubt := doubtful_times(model, record):
        warn(doubt)
    if record.qdd is not None and record.qd is not None:
        if cutoff is not None:
            raise SettingError(
                "cutoff changes nothing: the motion has velocities and accelerations",
                "cutoff",
            )
        return record
    if len(record.t) <= DEGREE:
        raise SettingError(
            f"{len(record.t)} rows are too few to estimate"
            f" {'accelerations' if record.qd is not None else 'velocities'}; valid:"
            f" {DEGREE + 1} or more",
            "t",
        )
    how = "no filter" if cutoff is None else f"filtered at {cutoff} Hz"
    method = f"derivatives of a spline of degree {DEGREE}, {how}, no shift in time"
    if record.qd is not None:
        qdd = _slope(record.t, record.qd, cutoff, 1)
        notes = (*record.notes, f"accelerations are estimated: {method}")
        return replace(record, qdd=qdd, notes=notes)
    q = _unwrapped(model, record.q)
    qd, qdd = (_slope(record.t, q, cutoff, order) for order in (1, 2))
    notes = (*record.notes, f"velocities and accelerations are estimated: {method}")
    return replace(
        record, qd=qd, qdd=qdd if record.qdd is None else record.qdd, notes=notes
    )


def _unwrapped(model: Model, q: np.ndarray) -> np.ndarray:
    """Return positions with one column for each velocity, (rows, nv).

    Jumps of continuous joints by full turns are removed; joints of several coordinates
    are refused.
    """
    columns = np.empty((len(q), model.nv))
    for name in model.joint_names:
        place, v = model.q_slice(name), model.v_slice(name)
        if place.stop - place.start != v.stop - v.start or v.stop - v.start != 1:
            raise SettingError(
                f"velocities of joint '{name}', which is {model.joint_kind(name)}, are"
                " not estimated from positions; valid: a motion with columns qd",
                name,
            )
        columns[:, v.start] = without_turns(model, name, q[:, place][:, 0])
    return columns


def _slope(
    t: np.ndarray, x: np.ndarray, cutoff: float | None, order: int
) -> np.ndarray:
    """Return the first or second derivative of the columns at times t, (rows, n).

    It is the derivative of a spline through the rows, at least six, or through the rows
    behind a low-pass filter, whose cut-off frequency [Hz] is at most 0.4 times the mean
    rate.
    """
    from scipy.interpolate import make_interp_spline  # not at `import dyn_core`

    spline = make_interp_spline(t, x, k=DEGREE, axis=0)
    if cutoff is not None:
        rate = (len(t) - 1) / (t[-1] - t[0])
        even = np.linspace(t[0], t[-1], len(t))
        y = low_pass(spline(even), rate, checked_cutoff(cutoff, rate))
        spline = make_interp_spline(even, y, k=DEGREE, axis=0)
    return np.asarray(spline(t, nu=order))
