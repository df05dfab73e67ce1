"""The result of a plan: motion, joint forces, feedback, and how the search ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import NearAttributes, NonFiniteError
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.prediction.cost import Cost
from dyn_core.sharing import cached_property
from dyn_core.solving.registry import solver
from dyn_core.validation import one_state

REASONS = (
    "converged",
    "max_iterations",
    "infeasible: limit",
    "diverged: cost",
    "stalled",
)
ROUNDING = 1e-9  # share of a step by which the time of a knot may be early
LONG = 0.1  # length of a step that may be why a search fails [s]
PARTS_BY_UNIT = {"rad": "orientation", "m": "position"}  # of a pose
CONVERGED, MAX_ITERATIONS, INFEASIBLE, DIVERGED, STALLED = range(len(REASONS))


class PlanStart(NamedTuple):
    """Start and first guess of a plan of N knots.

    Attributes:
        q, qd: State at the start, (nq,), (nv,).
        q_guess, qd_guess: States, (N + 1, nq) and (N + 1, nv).
        tau_guess: Joint forces, (N, nv) [N·m | N].
        running: Weights and targets of the costs at the knots, (N, n).
        ending: Weights and targets of the costs at the last state, (m,).
        penalty: Penalty of limits of the result that is the guess; None: a new one.
    """

    q: np.ndarray
    qd: np.ndarray
    q_guess: np.ndarray
    qd_guess: np.ndarray
    tau_guess: np.ndarray
    running: np.ndarray
    ending: np.ndarray
    penalty: Any = None


class PlanResiduals(NamedTuple):
    """How far a plan is from an exact optimum.

    Attributes:
        gap: Largest entry of the displacement from the end of a step to the next state.
        stationarity: Largest entry of the gradient by joint forces that bounds do not
            hold back [1/(N·m) | 1/N]; -1 where the solver does not compute it.
        limit: Largest violation of a limit of position or velocity.
    """

    gap: float
    stationarity: float
    limit: float


class PlanPoint(NamedTuple):
    """A plan at one time.

    `tau` are the joint forces from the knot before to the next one, (nv,) [N·m | N];
    `gains` is the feedback K of that knot, (nv, 2 nv).
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    gains: np.ndarray


class PlanGoal(NamedTuple):
    """A cost of the end, with the numbers of one call of Plan.solve.

    `weight` is that of each entry of the residual, (n,), `target` as of
    Cost.read_target.
    """

    cost: Cost
    weight: np.ndarray
    target: np.ndarray

    def units(self, model: Model) -> np.ndarray:
        """Return the unit of each entry of the residual, (n,): "rad" or "m"."""
        if self.cost.kind == "posture":
            return np.array(coordinates_of(model).velocity_units)
        if self.cost.kind == "pose" and self.cost.part != "position":
            return np.repeat(["rad", "m"], 3)[: len(self.weight)]
        return np.repeat("m", len(self.weight))


@dataclass(frozen=True, eq=False)
class PlanResult(NearAttributes):
    """A plan of N knots; for many starts `Plan.solve` returns a list of them.

    Attributes:
        model: Robot.
        dt: Length of a step [s].
        q: Positions, (N + 1, nq) [rad | m].
        qd: Velocities, (N + 1, nv) [rad/s | m/s].
        tau: Joint forces, (N, nv) [N·m | N], constant from knot to knot.
        gains: Feedback K, (N, nv, 2 nv): tau + K dx, dx = (dq, dqd) from the plan. The
            rows of joint forces at a bound are zero. If the costs leave joint forces
            undetermined, K is the feedback with slightly damped joint forces.
        value: Sum of the costs.
        residuals: Gap, stationarity and limit violation.
        iterations: Number of iterations.
        reason: converged, max_iterations, infeasible: limit, diverged: cost, or
            stalled.
        detail: Which limit is violated most, by how much and at which state; of a plan
            that did not converge also the stationarity and gaps that are left, or how
            the value fell, and that its steps are longer than 0.1 s (LONG).
        penalty: Penalty of the limits, for the next plan from this guess.
        goals: Costs of the end whose targets are places, which Plan.solve sets.
    """

    model: Model
    dt: float
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    gains: np.ndarray
    value: float
    residuals: PlanResiduals
    iterations: int
    reason: str
    detail: str = ""
    penalty: Any = None
    goals: tuple[PlanGoal, ...] = ()

    def __post_init__(self) -> None:
        if not self.converged and self.dt > LONG:
            long = f"steps are {self.dt:g} s long; valid: a shorter duration, in"
            text = f"{long} seconds, or more knots"
            if not self.detail.endswith(text):  # a copy has it already
                detail = f"{self.detail}; {text}" if self.detail else text
                object.__setattr__(self, "detail", detail)

    def __repr__(self) -> str:
        ended = f"{self.reason} after {self.iterations} iterations"
        detail = f", {self.detail}" if self.detail else ""
        for name, error in self.errors.items():
            left = ", ".join(f"{x:.3g} {unit}" for unit, x in error.items())
            detail += f"; '{name}' ends {left} from its target"
        return (
            f"<PlanResult of '{self.model.name}': {ended}{detail}; value"
            f" {self.value:.6g}, {len(self.tau)} knots of {self.dt:g} s>"
        )

    @cached_property
    def errors(self) -> dict[str, dict[str, float]]:
        """Distance of the last state from the targets of `goals`, by name and unit.

            result.errors["tool"]  # {"rad": 0.3, "m": 0.95}

        "rad" has the angle, "m" the distance: of a pose the angle of the rotation and
        the distance of the origins; of a posture the norm over the joints that turn,
        and over those that slide. Entries with the weight 0 do not count, and a unit
        without others is left out. Of several costs of one name the largest error
        counts. It is computed at the first access, by the `plain` engine, in
        milliseconds. Empty without goals, and where the value is not finite.
        """
        errors: dict[str, dict[str, float]] = {}
        for goal in self.goals if math.isfinite(self.value) else ():
            cost, units = goal.cost, goal.units(self.model)
            mine = errors.setdefault(cost.name, {})
            for unit in dict.fromkeys(units[goal.weight > 0].tolist()):
                counts = 2.0 * ((units == unit) & (goal.weight > 0))
                part = cost
                if cost.kind == "pose":  # the logarithm's shift is no distance
                    part = replace(cost, part=PARTS_BY_UNIT[unit])
                    counts = counts[units == unit]
                timed = {"inputs": ["time"]} if self.model.driven else {}
                program = solver("knot_cost").build(
                    self.model, costs=[part], engine="plain", **timed
                )
                still = np.zeros(self.model.nv)
                settings = np.concatenate([counts, goal.target])
                end = (self.dt * len(self.tau),) if timed else ()
                square = program(self.q[-1], self.qd[-1], still, settings, *end)
                mine[unit] = float(np.maximum(mine.get(unit, 0.0), np.sqrt(square)))
        return {name: error for name, error in errors.items() if error}

    @property
    def converged(self) -> bool:
        """Whether the plan is an optimum within the tolerance."""
        return self.reason == REASONS[CONVERGED]

    @property
    def times(self) -> np.ndarray:
        """Times of the states since the start of the plan, (N + 1,) [s]."""
        return self.dt * np.arange(len(self.q))

    def moved_on(self, steps: int = 1) -> PlanResult:
        """Return the plan without its first steps, as the guess of a later plan.

        It has as many knots: the last state, joint force and gain are repeated.
        `penalty` is that of Penalty.moved_on; all else stays, also `value`, `residuals`
        and `reason`.

        Args:
            steps: Number of steps, 0 to N, which is not checked.
        """
        states = np.minimum(np.arange(len(self.q)) + steps, len(self.q) - 1)
        knots = np.minimum(np.arange(len(self.tau)) + steps, len(self.tau) - 1)
        return replace(
            self, q=self.q[states], qd=self.qd[states], tau=self.tau[knots],
            gains=self.gains[knots],
            penalty=self.penalty and self.penalty.moved_on(steps),
        )  # fmt: skip

    def state(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the planned position (nq,) and velocity (nv,) at a time, see `point`.

        Raises:
            NonFiniteError: The time is NaN.
        """
        return self.point(time)[:2]

    def point(self, time: float) -> PlanPoint:
        """Return state, joint forces and gains of the plan at a time.

        Between knots the velocity is linear, and the position is that of
        Model.integrate by a share of Model.difference: linear for joints of one
        coordinate.

        Args:
            time: Time since the start of the plan [s]; before it the first state holds,
                after its end the last one.

        Raises:
            NonFiniteError: The time is NaN.
        """
        k, part = self._knot(time)
        q = self.q[k]
        if self._flat:
            q = q + part * (self.q[k + 1] - q)
        else:
            q = self.model.integrate(q, part * self.model.difference(q, self.q[k + 1]))
        qd = (1.0 - part) * self.qd[k] + part * self.qd[k + 1]
        return PlanPoint(q, qd, self.tau[k], self.gains[k])

    @cached_property
    def _flat(self) -> bool:
        """Whether each joint has one coordinate: positions are added by entry."""
        model = self.model
        return model.nq == model.nv and all(
            model.joint[i].nv == 1 and model.q_slices[i] == model.v_slices[i]
            for i in model.independent
        )

    def _knot(self, time: float) -> tuple[int, float]:
        """Return the knot at or before a time, and the share of its step that is over.

        The knot is 0 to N - 1; the share is 0 to 1, and 1 only at the end of the plan
        or later. `time` is since the plan's start [s].
        """
        if math.isnan(time):
            raise NonFiniteError("time is nan; valid: seconds from the plan's start")
        last = len(self.tau) - 1
        place = min(max(time / self.dt, 0.0), last + 1.0)
        # The time of a knot itself belongs to this knot, whatever the rounding.
        k = min(int(place + ROUNDING), last)
        return k, max(place - k, 0.0)

    def control(self, time: float, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """Return the joint forces of plan and feedback at a time, (nv,) [N·m | N].

            tau = tau_k + K_k dx,   dx = (q (-) q_plan(time), qd - qd_plan(time))

        Bounds are not applied.

        Args:
            time: Time since the start of the plan [s]; before it the first knot holds,
                after its end the last one.
            q, qd: Measured state, (nq,), (nv,). NaN leads to NaN: it is not tested.

        Raises:
            ShapeError: q or qd has another shape.
            NonFiniteError: The time is NaN.
        """
        q = one_state("q", q, self.model.nq)
        qd = one_state("qd", qd, self.model.nv)
        return self.feedback(self.point(time), q, qd)

    def feedback(self, point: PlanPoint, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return tau + K dx of a point of the plan, (nv,) [N·m | N], as in `control`.

        Args:
            point: Result of `point`.
            q, qd: Measured state, arrays of shape (nq,), (nv,), which is not checked.
        """
        moved = q - point.q if self._flat else self.model.difference(point.q, q)
        return point.tau + point.gains @ np.concatenate([moved, qd - point.qd])
