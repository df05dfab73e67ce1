"""Motions that show the base parameters of a robot best, and keep its limits."""

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

TRIALS = 100  # random motions, of which the best are optimised
SAMPLES = 25  # in a period of the highest harmonic
REVERSAL = 0.05  # part of the largest speed in which dry friction turns round
MARGIN = 3e-3  # part of a limit that is kept free for what lies between samples
ROUNDS, STEPS = 8, 60  # of an optimisation
REPAIRS = 4  # times that limits are tightened where a dense check sees one broken
MOST = 64  # harmonics
POOR = 10.0  # condition number from which the joint that costs most is looked for
MUCH = 3.0  # times that the condition number falls without a joint that is named

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
    """Return a motion that shows the base parameters of a robot best.

        minimise log cond(Y diag(1 / |Y_k|)) - (signal / n) sum_k log |Y_k|

    Y are the rows of the base regressor at all samples, Y_k its n columns. The
    condition number says how well parameters can be distinguished; it does not change
    when a column shrinks, which makes its parameter drown in noise. The lengths count
    for that.

    Each joint follows a Fourier series that starts and ends at rest. The best of random
    motions are optimised by the gradient of Y, with limits as constraints; what comes
    out is checked again at 1 kHz, and `broken` says what is not kept.

    Args:
        model: Robot with joints of one coordinate each; lock others.
        duration: Of the motion [s].
        harmonics: Of the series, from 2 on; the highest has harmonics / duration Hz.
        friction: Whether damping and dry friction are among the parameters.
        rotors: Whether the inertia of rotors is.
        signal: Weight of the columns' lengths; 0: the condition number alone.
        start: Positions at start and end, (nv,); None: chosen, too [rad | m].
        position_scale: Part of the ranges, about their middles.
        velocity_scale, effort_scale: Parts of these limits.
        velocity_limits, acceleration_limits, effort_limits: By joint; the first and the
            last replace those of the robot's file.
        clearance: Least distance of links that are no neighbours, by capsules about
            their collision shapes, or where these are too close at the start by convex
            hulls or meshes; None: distances are left out [m].
        packages: Folders of package:// addresses of meshes, by name.
        starts: Number of random motions that are optimised.
        seed: Of the random motions.
        period: Time between the points of the result [s].
        progress: Called as progress(done, all, condition number so far).
        engine: Of the Programs.

    Raises:
        SettingError: A choice makes no sense, or a joint lacks a limit.
        UnsupportedError: A robot with loops or driven joints, or a mesh that needs the
            extra `collision`.

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
        problem = _problem(
            model, layout, base, series, limits, links, first, signal, engine
        )
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
    """Return the joint that costs most of a condition number, if one does.

    Args:
        problem, result: The design.
        rows: Of its base regressor.
        layout: Of the parameters.
        seed, engine: As of the design.
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
        rest, Layout(rest, layout.groups), base, problem.series, others,
        LinkPairs(rest, others.middle, None), None, problem.signal, engine,
    )  # fmt: skip
    least = float(_random_motions(problem, seed)[1].min())
    much = least < result.random_condition / MUCH
    return CostlyJoint(name, base.rank, least) if much else None


def _check_choices(choices: Mapping[str, Any]) -> None:
    """Refuse choices that make no sense."""
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
    """Refuse joints that no series can move."""
    for name in model.joint_names:
        if model.joint_kind(name) not in ("revolute", "continuous", "prismatic"):
            raise SettingError(
                f"joint '{name}' is {model.joint_kind(name)}; valid: joints of one"
                " coordinate; lock it",
                name,
            )


def _start(start: Any, limits: MotionLimits) -> np.ndarray:
    """Return the positions at the start, checked."""
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
    model: Model,
    layout: Layout,
    base: BaseParameters,
    series: Fourier,
    limits: MotionLimits,
    links: LinkPairs,
    start: np.ndarray | None,
    signal: float,
    engine: str | None,
) -> DesignProblem:
    """Return the problem of a robot."""
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
    """Return the columns of base parameters as motion_rows counts them."""
    every = Layout.of(layout.model, True, True).names
    return [every.index(layout.names[k]) for k in base.independent]


def _random_motions(
    problem: DesignProblem, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return free numbers of random motions, condition numbers and objectives."""
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
    """Return the best optimum, and the least condition number of random motions."""
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
    """Return what orders optima: limits that are kept, then the objective."""
    return max(optimum.excess, 0.01), optimum.value


def _repaired(
    problem: DesignProblem, best: Optimum, check: DenseCheck, random: float
) -> Excitation:
    """Return the motion; limits that are broken between samples are tightened."""
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
    """Return the unit of a limit."""
    if broken.kind == "distance":
        return REACH
    k = problem.limits.names.index(broken.name)
    return float(problem.sizes[broken.kind][k])
