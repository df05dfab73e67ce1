"""Limits of position and velocity of a plan as an augmented Lagrangian.

N is the number of knots; rows of nx = 2 nv entries have positions, then velocities.
"""

from __future__ import annotations

from copy import copy as copy_of
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    compiled,
    in_lanes,
    machine_code,
)
from dyn_core.numbers.scalar import maximum, minimum, where
from dyn_core.prediction.problem import LIMIT_TOLERANCE, ControlProblem
from dyn_core.prediction.result import PlanStart

FARTHEST = 1e141  # a trial that diverged has a huge value, not one that overflows


class PlanLimits(NamedTuple):
    """Numbers of a Penalty, for limit_terms.

    Attributes:
        low, high: Limits of each state, (N + 1, nx).
        multipliers: (N + 1, nx, 2), for the lower and the upper limit.
        rho: Weight of squared violations, (1,).
        place: Index in q of each coordinate of qd, (nv,); 0 for joints with
            quaternions, which have no limits of position.
    """

    low: FloatArray2
    high: FloatArray2
    multipliers: FloatArray3
    rho: FloatArray
    place: IntArray


@machine_code
def limit_terms(
    limits: PlanLimits, q: FloatArray2, qd: FloatArray2, gradient: FloatArray2,
    curved: FloatArray2, to: FloatArray,
) -> int:  # fmt: skip
    """Compute value (1,), gradient and diagonal of the Hessian of a Penalty; return 0.

        value = sum of (max(0, lambda + rho g)² - lambda²) / (2 rho)

    lambda are the multipliers, g the excesses over the limits, at most 1e141
    (FARTHEST). The value is written to `to`, the others, (N + 1, nx), to `gradient` and
    `curved`, except for row 0: the first state does not count.
    """
    nv, rho, total = len(limits.place), limits.rho[0], 0.0
    for k in range(1, len(q)):
        for i in range(nv):
            gradient[k, i], gradient[k, nv + i] = q[k, limits.place[i]], qd[k, i]
        for i in range(2 * nv):
            x = gradient[k, i]
            below = minimum(FARTHEST, limits.low[k, i] - x)
            above = minimum(FARTHEST, x - limits.high[k, i])
            first, second = limits.multipliers[k, i, 0], limits.multipliers[k, i, 1]
            a = maximum(first + rho * below, 0.0)
            b = maximum(second + rho * above, 0.0)
            total += a * a - first * first + (b * b - second * second)
            gradient[k, i] = b - a
            curved[k, i] = where(a > 0.0, rho, 0.0) + where(b > 0.0, rho, 0.0)
    to[0] = total / (2.0 * rho)
    return 0


@machine_code
def limit_values(
    limits: PlanLimits, q: FloatArray3, qd: FloatArray3, slopes: FloatArray3,
    to: FloatArray, values: FloatArray,
) -> None:  # fmt: skip
    """Compute the `values` (n,) of a Penalty for n plans, see limit_terms.

    q and qd are (n, N + 1, .); `slopes` and `to` are work, (2, N + 1, nx) and (1,).
    """
    for s in range(len(values)):
        limit_terms(limits, q[s], qd[s], slopes[0], slopes[1], to)
        values[s] = to[0]


class Penalty:
    """Limits of position and velocity as an augmented Lagrangian.

        sum of (max(0, lambda + rho g)² - lambda²) / (2 rho),   g <= 0

    g of a state is (nx, 2): lower and upper limit of the positions, then of the
    velocities. The first state is given: its limits are not counted. A limit beyond
    which the first state is, by more than LIMIT_TOLERANCE (1e-4), begins there, and
    comes back in equal steps until the end.

    Attributes:
        rho: Weight of squared violations.
        multipliers: lambda of each state, (N + 1, nx, 2).
        active: Whether there is a limit.
        low, high: Limits of each state, (N + 1, nx), nx = 2 nv.
        changes: Number of updates.
    """

    START, FACTOR, MOST = 10.0, 10.0, 1e9

    def __init__(self, problem: ControlProblem, start: PlanStart | None = None) -> None:
        """Read the limits of a problem.

        Args:
            problem: Problem.
            start: First state; its `penalty`, if there is one of as many states, gives
                rho and a copy of the multipliers as a first guess, but no limits; else
                rho is 10 (START), and the multipliers are zero. None: the first state
                is within the limits.
        """
        bounds, nv = problem.bounds, problem.model.nv
        earlier = None if start is None else start.penalty
        self._place = np.maximum(bounds.place, 0)
        low = np.concatenate([bounds.q_lower, -bounds.qd])
        high = np.concatenate([bounds.q_upper, bounds.qd])
        self.low, self.high = (np.tile(x, (problem.knots + 1, 1)) for x in (low, high))
        if start is not None:
            x = np.concatenate([start.q[self._place], start.qd])
            beyond = np.array([low - x, x - high])
            # Within the tolerance they stay: those of plan after plan would add up.
            beyond[~(beyond > LIMIT_TOLERANCE)] = 0.0
            if beyond.any():
                share = np.linspace(1.0, 0.0, problem.knots + 1)[:, None]
                self.low -= share * beyond[0]
                self.high += share * beyond[1]
        self.active = bool(np.isfinite([low, high]).any())
        self.rho = self.START
        self.multipliers = np.zeros((problem.knots + 1, 2 * nv, 2))
        self.previous, self.changes = np.inf, 0
        if earlier is not None and earlier.multipliers.shape == self.multipliers.shape:
            self.rho, self.previous = earlier.rho, earlier.previous
            self.multipliers = earlier.multipliers.copy()

    def excess(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return by how much states exceed their limits, (..., N + 1, nx, 2).

        Positions come before velocities, the lower limit before the upper one. Negative
        inside, also at the first state; -inf where there is no limit. q is (..., N + 1,
        nq), qd (..., N + 1, nv).
        """
        x = np.concatenate([q[..., self._place], qd], -1)
        return np.stack([self.low - x, x - self.high], -1)

    def terms(
        self, q: np.ndarray, qd: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return value, gradient and diagonal of the Hessian.

        The last two are (N + 1, nx) each, zero for the first state.

        Args:
            q, qd: States of one plan, (N + 1, nq) and (N + 1, nv).
        """
        to, gradient, curved = np.zeros(1), *np.zeros((2, *self.low.shape))
        states = (np.array(x, float, order="C") for x in (q, qd))
        compiled(limit_terms)(self.limits(), *states, gradient, curved, to)
        return float(to[0]), gradient, curved

    def values(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the values of n plans, (n,).

        Their states are q (n, N + 1, nq) and qd (n, N + 1, nv).
        """
        values, slopes = np.zeros(len(q)), np.zeros((2, *self.low.shape))
        states = (np.array(x, float, order="C") for x in (q, qd))
        compiled(limit_values)(self.limits(), *states, slopes, np.zeros(1), values)
        return values

    def limits(self) -> PlanLimits:
        """Return low, high, multipliers, rho and place, as they are now.

        `rho` is a new array, the others are no copies.
        """
        rho = np.array([self.rho])
        return PlanLimits(self.low, self.high, self.multipliers, rho, self._place)

    def violation(self, q: np.ndarray, qd: np.ndarray) -> float:
        """Return the largest violation of a limit after the first state; 0: none.

        q and qd are the states of one plan, (N + 1, nq) and (N + 1, nv). It is 0 if
        there are no limits at all; else NaN if a velocity, or a position of a joint
        without a quaternion, is NaN.
        """
        if not self.active:
            return 0.0
        return float(self.excess(q, qd)[1:].max(initial=0.0))

    def error(self, q: np.ndarray, qd: np.ndarray) -> float:
        """Return the largest violation, or distance to a limit with a multiplier.

        A distance counts up to lambda / rho. 0: none, NaN as in `violation`. q and qd
        are the states of one plan, (N + 1, nq) and (N + 1, nv); the first one does not
        count.
        """
        if not self.active:
            return 0.0
        behind = np.maximum(self.excess(q, qd), -self.multipliers / self.rho)[1:]
        return float(np.abs(behind).max(initial=0.0))

    def worst(self, problem: ControlProblem, q: np.ndarray, qd: np.ndarray) -> str:
        """Return as text which limit is violated most, by how much and at which state.

        Empty within LIMIT_TOLERANCE (1e-4) and for NaN. q and qd are the states of one
        plan.
        """
        if not self.violation(q, qd) > LIMIT_TOLERANCE:
            return ""
        excess = self.excess(q, qd)
        k, i, side = np.unravel_index(excess.argmax(), excess.shape)
        nv, end = problem.model.nv, ("lower", "upper")[side]
        what = f"{end} limit of position" if i < nv else "limit of velocity"
        joint = problem.coordinate(int(i) % nv)
        return f"{what} of joint '{joint}' by {excess[k, i, side]:.3g} at state {k}"

    def moved_on(self, steps: int) -> Penalty:
        """Return a copy for a plan that begins some steps later, with the first rho.

        Multipliers are moved along; they are zero for the first state and the `steps`
        last ones. `low`, `high` and `changes` stay. `steps` is 0 to N, which is not
        checked. A weight that rose where the robot was, for lack of iterations or
        beyond its limits, would make all later plans stiff.
        """
        later = copy_of(self)
        later.rho, later.previous = self.START, np.inf
        later.multipliers = np.zeros_like(self.multipliers)
        later.multipliers[: len(self.multipliers) - steps] = self.multipliers[steps:]
        later.multipliers[0] = 0.0
        return later

    def update(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Set multipliers by the states of one plan, then rho, both in place.

            lambda <- max(0, lambda + rho g),   0 for the first state

        q is (N + 1, nq), qd (N + 1, nv); g is their `excess`. rho is then multiplied by
        10 (FACTOR), at most to 1e9 (MOST), unless `error` is at most a quarter of that
        at the last update, or there was none.
        """
        now, excess = self.error(q, qd), self.excess(q, qd)
        self.multipliers = np.maximum(self.multipliers + self.rho * excess, 0.0)
        self.multipliers[0] = 0.0
        if now > 0.25 * self.previous:
            self.rho = min(self.rho * self.FACTOR, self.MOST)
        self.previous = now
        self.changes += 1


class LimitTerms:
    """The limits of one problem: value and slopes of its plan, values of its trials.

    `of_plan` computes value, (1,), and gradient and curved, (N + 1, nx) each.
    """

    def __init__(self, penalty: Penalty, plan: Any, tried: Any) -> None:
        """Bind limit_terms to memory.

        Args:
            penalty: Penalty of the problem; its numbers are not read yet: call `read`
                before `of_plan()` or `of_trials()`.
            plan: PlanPath of the plan.
            tried: PlanPath of the trials, with the lanes on the last axis.
        """
        first, lanes = penalty.limits(), tried.q.shape[2]
        self._read: Any = None  # penalty that was read
        self._changes = -1  # its changes at that time
        self._numbers = PlanLimits(*(x.copy() for x in first))
        self._all = in_lanes(self._numbers, lanes, {})
        shape = first.low.shape
        self.value, self.gradient, self.curved = np.zeros(1), *np.zeros((2, *shape))
        to = self.gradient, self.curved, self.value
        self.of_plan = compiled(limit_terms).bind(self._numbers, *plan[:2], *to)
        self._values = np.zeros((1, lanes))
        rest = np.zeros((*shape, lanes)), np.zeros((*shape, lanes)), self._values
        if lanes > 1:
            tied = compiled(limit_terms, lanes=lanes).tied
            self._of_tried: Any = tied(self._all, *tried[:2], *rest)
        else:
            single = [x[..., 0] for x in (*tried[:2], *rest)]
            self._of_tried = compiled(limit_terms).bind(self._numbers, *single)

    def read(self, penalty: Penalty) -> None:
        """Copy the numbers of a penalty, unless they are here already.

        They are if it was the last one read, without an `update` since.
        """
        if self._read is not penalty or self._changes != penalty.changes:
            for mine, several, new in zip(
                self._numbers, self._all, penalty.limits(), strict=True
            ):
                mine[...] = new
                several[...] = new[..., None] if several.ndim > new.ndim else new
            self._read, self._changes = penalty, penalty.changes

    def of_trials(self) -> np.ndarray:
        """Return the values of the trials, (lanes,); the next call overwrites them."""
        self._of_tried()
        return self._values[0]


class LimitLanes:
    """The limits of several problems, one in each lane, with their own numbers.

    value, gradient and curved are as those of LimitTerms, with the lanes last.
    """

    def __init__(self, penalty: Penalty, plan: Any, tried: Any) -> None:
        """Bind limit_terms to memory in lanes.

        Args:
            penalty: Penalty of one of the problems, for the shapes; call `read` for
                each lane before `of_plans()` or `of_trials()`.
            plan, tried: PlanPath of the plans and of the trials, with the lanes on the
                last axis.
        """
        lanes, shape = plan.q.shape[2], (*penalty.low.shape, plan.q.shape[2])
        self._all = in_lanes(penalty.limits(), lanes, {})
        self._read: list[Any] = [None] * lanes
        self.value, self.values = np.zeros((2, 1, lanes))
        self.gradient, self.curved = np.zeros((2, *shape))
        unused = np.zeros(shape), np.zeros(shape)
        tied = compiled(limit_terms, lanes=lanes).tied
        to = self.gradient, self.curved, self.value
        self.of_plans = tied(self._all, *plan[:2], *to)
        self.of_trials = tied(self._all, *tried[:2], *unused, self.values)

    def read(self, lane: int, penalty: Penalty) -> None:
        """Copy the numbers of a penalty to its lane, as LimitTerms.read does."""
        read = self._read[lane]
        if read is None or read[0] is not penalty or read[1] != penalty.changes:
            for several, new in zip(self._all, penalty.limits(), strict=True):
                if several.ndim > new.ndim:
                    several[..., lane] = new
            self._read[lane] = penalty, penalty.changes
