"""Design of motions that excite the base parameters of a robot within its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.identification.blas_threads import one_blas_thread
from dyn_core.identification.excitation.conditioning import (
    conditions_and_levels,
    weakest_joint,
)
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.kernels import motion_programs
from dyn_core.identification.excitation.limits import (
    KINDS,
    BrokenLimit,
    MotionLimits,
    motion_limits,
)
from dyn_core.identification.excitation.link_pairs import LinkPairs
from dyn_core.identification.excitation.optimiser import Optimum, optimised
from dyn_core.identification.excitation.problem import REACH, DesignProblem
from dyn_core.identification.excitation.result import (
    CostlyJoint,
    DenseCheck,
    Excitation,
)
from dyn_core.identification.regressor_rank import BaseParameters, base_parameters
from dyn_core.model import Model
from dyn_core.model.parameter_vector import Layout
from dyn_core.validation import Quantity, Whole, float_array, known_keywords

TRIALS = 100  # number of random motions, of which the best are optimised
SAMPLES = 25  # samples in a period of the highest harmonic
REVERSAL = 0.05  # width of dry friction's reversal, fraction of the largest speed
MARGIN = 3e-3  # relative margin of a limit, for the motion between samples
ROUNDS, STEPS = 8, 60  # outer rounds and inner steps of an optimisation
REPAIRS = 4  # maximum number of tightenings after a dense check finds a violation
MOST = 64  # maximum number of harmonics
POOR = 10.0  # condition number above which the most costly joint is searched for
MUCH = 3.0  # improvement of the condition number at which a joint is reported

Report = Callable[[int, int, float], None]


@known_keywords
def excite(
    model: Model,
    *,
    duration: float = 10.0,
    harmonics: int = 8,
    friction: bool = False,
    rotors: bool = False,
    signal: float = 0.3,
    start: Any = None,
    position_scale: float = 0.95,
    velocity_scale: float = 0.8,
    effort_scale: float = 0.8,
    velocity_limits: Mapping[str, float] | None = None,
    acceleration_limits: Mapping[str, float] | None = None,
    effort_limits: Mapping[str, float] | None = None,
    clearance: float | None = 0.02,
    packages: Mapping[str, Any] | None = None,
    starts: int = 4,
    seed: int = 0,
    period: float = 0.01,
    progress: Report | None = None,
    engine: str | None = None,
) -> Excitation:
    """Return a motion that excites the base parameters of a robot best.

        minimise log cond(Y diag(1 / |Y_k|)) - (signal / n) sum_k log |Y_k|

    Y are the rows of the base regressor at all samples, Y_k its n columns. The
    condition number measures how well parameters can be distinguished. It does not
    change when a column shrinks and its parameter drowns in noise; the second term, of
    the lengths, prevents that.

    Each joint follows a Fourier series that starts and ends at rest. The best of random
    motions are optimised by the gradient of Y, with limits as constraints; the result
    is checked again at 1 kHz, and its `broken` lists the limits that it violates.

    Args:
        model: Robot with joints of one coordinate each; lock the others.
        duration: Duration of the motion [s].
        harmonics: Number of harmonics of the series, from 2 on; the highest has
            harmonics / duration Hz.
        friction: Whether damping and dry friction are among the parameters.
        rotors: Whether the inertia of rotors is among the parameters.
        signal: Weight of the columns' lengths; 0: the condition number alone.
        start: Positions at start and end, (nv,); None: optimised, too [rad | m].
        position_scale: Fraction of the position ranges to use, about their middles.
        velocity_scale, effort_scale: Fractions of these limits to use.
        velocity_limits, acceleration_limits, effort_limits: Limits by joint name;
            velocity and effort limits replace the model's.
        clearance: Minimum distance of links that are no neighbours, by capsules around
            their collision shapes, or where these are too close at the start by convex
            hulls or meshes; None: distances are not considered [m].
        packages: Folders for package:// addresses of meshes, by package name.
        starts: Number of random motions that are optimised.
        seed: Seed of the random motions.
        period: Time between the points of the result [s].
        progress: Function called as progress(done, all, condition number so far).
        engine: Engine of the Programs; None: the default.

    Raises:
        SettingError: An option is invalid, a joint lacks a limit, or no parameter
            affects the joint forces.
        UnsupportedError: The robot has loops or driven joints, or a mesh needs the
            extra `collision`.
        ModelError: A mesh cannot be used; names the link.

    Source: J. Swevers et al., IEEE Transactions on Robotics and Automation 13 (1997);
    the criterion: M. Gautier and W. Khalil, Exciting trajectories for the
    identification of base inertial parameters of robots, IJRR 11 (1992).
    """
    _check_choices(locals())
    layout = Layout.of(model, friction, rotors)
    _check_joints(model)
    limits = motion_limits(
        model, position_scale, velocity_scale, effort_scale, velocity_limits,
        acceleration_limits, effort_limits,
    )  # fmt: skip
    first = None if start is None else _start(start, limits)
    base = base_parameters(model, friction=friction, rotors=rotors)
    if not base.rank:
        raise SettingError("no parameter affects the joint forces: nothing to show")
    with one_blas_thread():
        links = LinkPairs(
            model, limits.middle if first is None else first, clearance, packages,
            engine,
        )  # fmt: skip
        series = Fourier(float(duration), harmonics)
        problem = _problem(layout, base, series, limits, links, first, signal, engine)
        best, random = _best(problem, starts, seed, progress)
        check = DenseCheck(model, base, limits, links, period, engine)
        result = _repaired(problem, best, check, random)
        if result.condition > POOR:
            rows = check.rows(result.trajectory)
            costly = _costly_joint(problem, result, rows, layout, seed, engine)
            result = replace(result, costly=costly)
        return result


def _costly_joint(
    problem: DesignProblem,
    result: Excitation,
    rows: np.ndarray,
    layout: Layout,
    seed: int,
    engine: str | None,
) -> CostlyJoint | None:
    """Return the joint that increases the condition number most, or None.

    None if locking this joint does not improve the condition number of random motions
    by more than MUCH.

    Args:
        problem: Problem of the design.
        result: Result of the design.
        rows: Rows of its base regressor, (rows, columns).
        layout: Layout of the parameters.
        seed: Seed of the random motions.
        engine: Engine of the Programs.
    """
    model, limits = layout.model, problem.limits
    name = weakest_joint(model, result.base, rows)
    j = limits.names.index(name)
    rest = model.lock({name: float(result.start[j])})
    base = base_parameters(
        rest, friction="damping" in layout.groups, rotors="armature" in layout.groups
    )
    if not base.rank:
        return None
    others = limits.without(j)
    problem = _problem(
        Layout(rest, layout.groups), base, problem.series, others,
        LinkPairs(rest, others.middle, None), None, problem.signal, engine,
    )  # fmt: skip
    least = float(_random_motions(problem, seed)[1].min())
    much = least < result.random_condition / MUCH
    return CostlyJoint(name, base.rank, least) if much else None


def _check_choices(choices: Mapping[str, Any]) -> None:
    """Raise a SettingError if an option, by name, is out of range."""
    for name, kind in (
        ("duration", Quantity(0.0, 1e4, above=True)),
        ("harmonics", Whole(2, MOST)),
        ("clearance", Quantity(0.0)),
        ("signal", Quantity(0.0, 100.0)),
        ("starts", Whole(1, TRIALS)),
        ("seed", Whole(0)),
        ("period", Quantity(1e-4)),
    ):
        if name == "clearance" and choices[name] is None:
            continue
        try:
            kind.read(name, choices[name])
        except ValueError as error:
            raise SettingError(str(error), name) from error
    if choices["period"] > choices["duration"] / 10:
        raise SettingError(
            f"period is {choices['period']:g}; valid: at most duration / 10",
            "period",
        )


def _check_joints(model: Model) -> None:
    """Raise a SettingError unless all joints are revolute, continuous or prismatic."""
    for name in model.joint_names:
        if model.joint_kind(name) not in ("revolute", "continuous", "prismatic"):
            raise SettingError(
                f"joint '{name}' is {model.joint_kind(name)}; valid: joints of one"
                " coordinate; lock it",
                name,
            )


def _start(start: Any, limits: MotionLimits) -> np.ndarray:
    """Return the positions at the start as an array, (nv,).

    Raises:
        SettingError: The shape is wrong, or a position is outside its range.
    """
    n = len(limits.names)
    q = float_array("start", start, f"shape ({n},)")
    if q.shape != (n,):
        raise SettingError(f"start has shape {q.shape}; valid: ({n},)", "start")
    for name, x, low, high in zip(
        limits.names, q, limits.lower, limits.upper, strict=True
    ):
        if not low < x < high:
            raise SettingError(
                f"start: joint '{name}' at {x:.6g} is outside [{low:.6g}, {high:.6g}]"
                " (its range, less the margin)",
                "start",
            )
    return q


def _problem(
    layout: Layout,
    base: BaseParameters,
    series: Fourier,
    limits: MotionLimits,
    links: LinkPairs,
    start: np.ndarray | None,
    signal: float,
    engine: str | None,
) -> DesignProblem:
    """Return the optimisation problem of a robot.

    Args:
        layout: Robot, and layout of its parameters.
        base: Base parameters.
        series: Fourier series.
        limits: Limits of the motion.
        links: Pairs of links to keep apart.
        start: Positions at the start, (nv,); None: optimised, too.
        signal: Weight of the columns' lengths.
        engine: Engine of the Programs.
    """
    model = layout.model
    speeds = np.full(model.nb + 1, REVERSAL * float(limits.velocity.min()))
    dry = np.zeros(model.nv)
    for k, name in enumerate(model.joint_names):
        i = model.names.index(name)
        speeds[i] = REVERSAL * limits.velocity[k]
        dry[k] = float(model.friction[i][0]) + abs(
            float(model.friction_asymmetry[i][0])
        )
    programs = motion_programs(model, _columns(layout, base), speeds, engine)
    return DesignProblem(
        series, limits, programs, links, start, dry,
        SAMPLES * series.harmonics,
        {**dict.fromkeys(KINDS, MARGIN), "distance": 0.0}, signal,
    )  # fmt: skip


def _columns(layout: Layout, base: BaseParameters) -> list[int]:
    """Return the indices of base parameters among the columns of motion_rows."""
    every = Layout.of(layout.model, True, True).names
    return [every.index(layout.names[k]) for k in base.independent]


def _random_motions(
    problem: DesignProblem, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return variables, condition numbers and objectives of TRIALS random motions.

    The shapes are (TRIALS, count), (TRIALS,) and (TRIALS,).
    """
    rng = np.random.default_rng(seed)
    x = np.array([problem.random(rng) for _ in range(TRIALS)])
    motions = [problem.motion(each) for each in x]
    nv, N = problem.nv, problem.samples
    states = (np.concatenate(part) for part in zip(*motions, strict=True))
    results = np.asarray(problem.programs.rows(*states))
    rows = results[:, :-nv].reshape(TRIALS, N * nv, -1)
    conditions, levels = conditions_and_levels(rows)
    values = np.log(conditions) - problem.signal * levels
    return x, conditions, values


def _best(
    problem: DesignProblem, starts: int, seed: int, progress: Report | None
) -> tuple[Optimum, float]:
    """Return the best optimum, and the smallest condition number of random motions.

    Args:
        problem: Optimisation problem.
        starts: Number of random motions that are optimised.
        seed: Seed of the random motions.
        progress: Function called as progress(done, all, condition number), or None.
    """
    x, conditions, values = _random_motions(problem, seed)
    order = np.argsort(values, kind="stable")[:starts]
    least = float(conditions.min())
    best: Optimum | None = None
    for k, number in enumerate(order):
        optimum = optimised(problem, x[number], ROUNDS, STEPS)
        if best is None or _rank(optimum) < _rank(best):
            best = optimum
        if progress is not None:
            progress(k + 1, starts, best.condition)
    assert best is not None
    return best, least


def _rank(optimum: Optimum) -> tuple[float, float]:
    """Return the sort key of an optimum: violation of limits, then the objective."""
    return max(optimum.excess, 0.01), optimum.value


def _repaired(
    problem: DesignProblem, best: Optimum, check: DenseCheck, random: float
) -> Excitation:
    """Return the checked motion of an optimum, optimised again if limits are violated.

    Limits that are violated between samples are tightened first, up to REPAIRS times.

    Args:
        problem: Optimisation problem; its tightening is changed.
        best: Optimum.
        check: Check at 1 kHz.
        random: Smallest condition number of the random motions, for the result.
    """
    result = check.excitation(problem.series, problem.coefficients(best.x), random)
    for _ in range(REPAIRS):
        designed = [x for x in result.broken if x.kind in problem.tightening]
        if not designed:
            break
        for broken in designed:
            size = _size(broken, problem)
            less = 1.3 * abs(broken.value - broken.limit) / size + 1e-4
            change = less if broken.kind != "distance" else less * REACH
            before = problem.tightening[broken.kind]
            problem.tightening[broken.kind] = min(before + change, 0.5)
        best = optimised(problem, best.x, 3, STEPS, before=best)
        result = check.excitation(problem.series, problem.coefficients(best.x), random)
    return result


def _size(broken: BrokenLimit, problem: DesignProblem) -> float:
    """Return the unit by which a violation is scaled in the problem."""
    if broken.kind == "distance":
        return REACH
    k = problem.limits.names.index(broken.name)
    return float(problem.sizes[broken.kind][k])
