"""Design of motions that excite the base parameters of a robot within its limits.

An augmented Lagrangian method with L-BFGS as inner minimisation solves this problem:

    minimise log cond(Y diag(1 / |Y_k|)) - (signal / n) sum_k log |Y_k|
    so that |c| <= 1

c are positions, velocities, accelerations and joint forces in units of their limits,
and clearances of links over their distances. For a motion with N samples, all rows are
computed by one call of a Program, and the gradient by one call of its adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.identification.blas_threads import one_blas_thread
from dyn_core.identification.excitation.conditioning import (
    conditions_and_levels,
    level,
    spread,
    weakest_joint,
)
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.kernels import RowsAndPull, motion_programs
from dyn_core.identification.excitation.limits import (
    KINDS,
    BrokenLimit,
    MotionLimits,
    motion_limits,
)
from dyn_core.identification.excitation.link_pairs import LinkPairs
from dyn_core.identification.excitation.result import (
    CostlyJoint,
    DenseCheck,
    Excitation,
)
from dyn_core.identification.regressor_rank import BaseParameters, base_parameters
from dyn_core.model import Model
from dyn_core.model.parameter_vector import Layout
from dyn_core.validation import Quantity, Whole, float_array, known_keywords

REACH = (
    0.1  # a distance is one unit short of its clearance when it is this much less [m]
)


class MotionSamples(NamedTuple):
    """Position q, velocity qd and acceleration qdd of samples, (samples, nv) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


class DesignOutcome(NamedTuple):
    """Objective (by a smooth condition number) and limits for one choice of variables.

    `excess` is the scaled violation of each limit, negative where it is satisfied: for
    each of KINDS upper, then lower limits of all samples; last the distances.
    """

    value: float
    excess: np.ndarray
    condition: float


@dataclass(eq=False)
class DesignProblem:
    """Optimisation problem in variables of Fourier series, scaled to sizes near one.

    Attributes:
        programs: Rows of the base regressor with joint forces, and their adjoint.
        start: Given positions at the start, (nv,); None: variables.
        dry: Largest dry friction, by which the effort limits are reduced because the
            joint forces omit it, (nv,) [N·m | N].
        tightening: Margin of each kind of limit: relative, for distances in [m].
        signal: Weight of the mean logarithm of the columns' lengths.
        power: Exponent of the smooth measure of the condition number.
    """

    series: Fourier
    limits: MotionLimits
    programs: RowsAndPull
    links: LinkPairs
    start: np.ndarray | None
    dry: np.ndarray
    samples: int
    tightening: dict[str, float]
    signal: float = 0.0
    power: float = 8.0

    def __post_init__(self) -> None:
        t = np.arange(self.samples) / self.samples * self.series.duration
        self.matrices = self.series.matrices(t)
        self.nv = len(self.limits.names)
        # A variable of one makes a basis motion as fast as a third of the limit.
        scale = np.tile(self.limits.velocity / 3, (self.series.size, 1))
        scale[0] = self.limits.half
        self.scale = scale
        effort = self.limits.effort - self.dry
        self.sizes = {
            "position": self.limits.half,
            "velocity": self.limits.velocity,
            "acceleration": self.limits.acceleration,
            "effort": np.maximum(effort, 0.05 * self.limits.effort),
        }

    @property
    def count(self) -> int:
        """Number of variables in x; given positions at the start are none."""
        return (self.series.size - (self.start is not None)) * self.nv

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Return `series`' variables, (series.size, nv), for x; row 0 is the start."""
        if self.start is None:
            full = x.reshape(self.series.size, self.nv) * self.scale
            full[0] += self.limits.middle
            return full
        rest = x.reshape(-1, self.nv) * self.scale[1:]
        return np.vstack([self.start, rest])

    def motion(self, x: np.ndarray) -> MotionSamples:
        """Return q, qd and qdd, (samples, nv) each, for the scaled x, (count,)."""
        c = self.coefficients(x)
        return MotionSamples(*(matrix @ c for matrix in self.matrices))

    def ratios(self, motion: MotionSamples, tau: np.ndarray) -> list[np.ndarray]:
        """Return [position, velocity, acceleration, effort], divided by their limits.

        Each is (samples, nv), beyond -1..1 where the limit, without tightening, is
        violated. Positions are from the middle; efforts by max(limit - dry, limit/20).
        """
        q, qd, qdd = motion
        values = ((q - self.limits.middle), qd, qdd, tau)
        return [
            value / self.sizes[kind] for kind, value in zip(KINDS, values, strict=True)
        ]

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return random variables of a motion within the joint limits, (count,).

        Each joint uses 95 % of the tightest of its limits of position, velocity and
        acceleration, at the samples; effort limits and distances are not considered.
        """
        x = rng.normal(size=(self.series.size, self.nv))
        x[0] = rng.uniform(-0.5, 0.5, self.nv)
        if self.start is not None:
            x = x[1:]
        motion = self.motion(x.ravel())
        first = motion.q[0]
        room = np.minimum(first - self.limits.lower, self.limits.upper - first)
        away = np.abs(motion.q - first).max(axis=0)
        # Scaled to the nearer end of the range, so that both ends are respected.
        share = np.minimum(
            room / np.maximum(away, 1e-12),
            self.limits.velocity / np.maximum(np.abs(motion.qd).max(axis=0), 1e-12),
        )
        peak = np.abs(motion.qdd).max(axis=0)
        share = np.minimum(share, self.limits.acceleration / np.maximum(peak, 1e-12))
        x[-(self.series.size - 1) :] *= 0.95 * np.maximum(share, 0.0)
        return np.asarray(x.ravel())

    def outcome(self, x: np.ndarray) -> DesignOutcome:
        """Return objective, scaled violations and condition number of x, (count,)."""
        value, _, excess, condition = self._evaluated(x, None, 0.0)
        return DesignOutcome(value, excess, condition)

    def lagrangian(
        self, x: np.ndarray, multipliers: np.ndarray, weight: float
    ) -> tuple[float, np.ndarray]:
        """Return the augmented Lagrangian and its gradient, (count,).

            value + sum (max(0, l + w e)² - l²) / (2 w)

        l is the multiplier of each limit, e its DesignOutcome.excess, w > 0 the weight.
        """
        value, gradient, _, _ = self._evaluated(x, multipliers, weight)
        return value, gradient

    def _evaluated(
        self, x: np.ndarray, multipliers: np.ndarray | None, weight: float
    ) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return value, gradient (count,), violations and condition number.

        Without multipliers, the value is the objective and the gradient empty.
        Violations are as in DesignOutcome.excess.
        """
        motion = self.motion(x)
        results = np.asarray(self.programs.rows(*motion))
        N, nv = self.samples, self.nv
        rows, tau = results[:, :-nv].reshape(N * nv, -1), results[:, -nv:]
        measured = spread(rows, self.power)
        height, rise = level(rows)
        slope = measured.slope - self.signal * rise
        ratios = self.ratios(motion, tau)
        excess = [
            np.concatenate([r, -r]) - (1 - self.tightening[kind])
            for kind, r in zip(KINDS, ratios, strict=True)
        ]
        apart = self.links.distances(motion.q) if len(self.links) else None
        if apart is not None:
            wanted = self.links.limits + self.tightening["distance"]
            excess.append((wanted - apart.values) / REACH)
        flat = np.concatenate([e.ravel() for e in excess])
        value = measured.value - self.signal * height
        if multipliers is None:
            return value, np.zeros(0), flat, measured.condition
        push = np.maximum(0.0, multipliers + weight * flat)
        value += float(push @ push - multipliers @ multipliers) / (2 * weight)
        parts, used = [], 0
        for kind in KINDS:
            both = push[used : used + 2 * N * nv].reshape(2, N, nv)
            parts.append((both[0] - both[1]) / self.sizes[kind])
            used += 2 * N * nv
        by_rows = slope.reshape(N, -1)
        pulled = np.asarray(self.programs.pull(*motion, np.hstack([by_rows, parts[3]])))
        slopes = [pulled[:, k * nv : (k + 1) * nv] + parts[k] for k in range(3)]
        if apart is not None:
            weights = -push[used:].reshape(apart.values.shape) / REACH
            slopes[0] = slopes[0] + self.links.gradient(motion.q, apart, weights)
        gradient = sum(
            matrix.T @ slope
            for matrix, slope in zip(self.matrices, slopes, strict=True)
        )
        gradient = gradient * self.scale
        if self.start is not None:
            gradient = gradient[1:]
        return value, gradient.ravel(), flat, measured.condition


GROWTH = 3.0  # factor on the penalty weight if the violation has not decreased enough
BETTER = 0.5  # ratio to the previous violation that is enough
KEPT = 1e-3  # scaled violation of a limit that is tolerated


class Optimum(NamedTuple):
    """Result: objective `value` without limits, largest scaled violation `excess`."""

    x: np.ndarray
    multipliers: np.ndarray
    weight: float
    value: float
    condition: float
    excess: float


def optimised(
    problem: DesignProblem,
    x: np.ndarray,
    rounds: int,
    steps: int,
    before: Optimum | None = None,
) -> Optimum:
    """Minimise the objective of a problem within its limits; return the last iterate.

    The result may still violate limits, see Optimum.excess. After each round

        l <- max(0, l + w e)

    with multipliers l, penalty weight w (those of `before`, if given) and violations e.

    Source: J. Nocedal and S. Wright, Numerical Optimization, 2006, algorithm 17.4, for
    inequalities (17.65); L-BFGS: algorithm 7.5.
    """
    from scipy.optimize import minimize  # not at `import dyn_core`

    first = problem.outcome(x)
    multipliers = np.zeros(len(first.excess)) if before is None else before.multipliers
    weight = 1.0 if before is None else before.weight
    last, value, condition = np.inf, first.value, first.condition
    for _ in range(rounds):
        result = minimize(
            problem.lagrangian, x, args=(multipliers, weight), jac=True,
            method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20},
        )  # fmt: skip
        x = result.x
        value, excess, condition = problem.outcome(x)
        largest = float(excess.max())
        multipliers = np.maximum(0.0, multipliers + weight * excess)
        if largest > KEPT and largest > BETTER * last:
            weight *= GROWTH
        last = largest
    return Optimum(x, multipliers, weight, value, condition, last)


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
        harmonics: Number of harmonics of the series, 2 to 64; the highest has
            harmonics / duration Hz.
        friction: Whether damping and dry friction are among the parameters.
        rotors: Whether the inertia of rotors is among the parameters.
        signal: Weight of the columns' lengths; 0: the condition number alone.
        start: Positions at start and end, (nv,); None: optimised, too [rad | m].
        position_scale: Used fraction of the position ranges, at their middles, up to 1;
            a turning joint without a limit has a range of one turn.
        velocity_scale, effort_scale: Used fractions of limits, given ones too, up to 1.
        velocity_limits, acceleration_limits, effort_limits: Limits by joint name, SI;
            they replace the model's; without an acceleration limit a joint has none.
        clearance: Minimum distance of links that are no neighbours, by capsules around
            their collision shapes, or where these are too close at the start by convex
            hulls or meshes; None: distances are not considered [m].
        packages: Folders for package:// addresses of meshes, by package name.
        starts: Number of random motions that are optimised, 1 to 100.
        seed: Seed of the random motions.
        period: Time between the result's points, from 1e-4 to duration / 10 [s].
        progress: Function called as progress(done, all, condition number so far).
        engine: Engine of the Programs; None: the default.

    Raises:
        SettingError: An option is invalid, no parameter affects the joint forces, or a
            limit of velocity or effort, or of a sliding joint's position, is missing.
        UnsupportedError: `model` is no robot, has loops or driven joints, a mesh needs
            the extra `collision`, or the engine is unknown.
        ModelError: A mesh cannot be used; names the link.
        ShapeError: `start` has entries that are no numbers.

    Source: J. Swevers et al., IEEE Transactions on Robotics and Automation 13 (1997);
    the criterion: M. Gautier and W. Khalil, Exciting trajectories for the
    identification of base inertial parameters of robots, IJRR 11 (1992).
    """
    _check_choices(locals())
    layout = Layout.of(model, friction, rotors, "excite")
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
    """Return the weakest joint, if locking it much improves the random motions.

    `rows` are those of the result's base regressor. None, too, if the robot without the
    joint has no base parameters.
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
    """Raise a SettingError if an option of `excite` is out of range."""
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
            f"period is {choices['period']:g} s and duration {choices['duration']:g} s;"
            " valid: a duration of 10 periods or more",
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
    """Return the positions at the start, (nv,), refused outside `limits`."""
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

    `start` (nv,) is optimised, too, if None; `signal` weighs the columns' lengths.
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
    """Return the index, in motion_rows, of the column of each base parameter.

    motion_rows counts damping, dry friction and rotors even if the layout lacks them.
    """
    every = Layout.of(layout.model, True, True).names
    return [every.index(layout.names[k]) for k in base.independent]


def _random_motions(
    problem: DesignProblem, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return variables, condition numbers and objectives of 100 random motions.

    The objective is log of the condition number, which is limited to about 1e7, minus
    problem.signal times the mean logarithm of the columns' lengths.
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

    `starts` random motions are optimised. The best optimum may still violate limits.
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
    """Return a sort key: violation, all up to 0.01 being equal, then objective."""
    return max(optimum.excess, 0.01), optimum.value


def _repaired(
    problem: DesignProblem, best: Optimum, check: DenseCheck, random: float
) -> Excitation:
    """Return the checked motion of an optimum, optimised again if limits are violated.

    The violated kinds of limits are tightened in `problem`; distances of meshes are
    only checked. The result is the last motion, even if it violates limits. `random` is
    the smallest condition number of the random motions.
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
    """Return the size that scales a violation, of any kind except a mesh distance."""
    if broken.kind == "distance":
        return REACH
    k = problem.limits.names.index(broken.name)
    return float(problem.sizes[broken.kind][k])
