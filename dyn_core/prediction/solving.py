"""Base class of the solvers of OPTIMAL_CONTROL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.prediction.problem import ControlProblem
from dyn_core.prediction.result import REASONS, PlanResult, PlanStart
from dyn_core.problems import OPTIMAL_CONTROL
from dyn_core.solving.numpy_solver import ArraySolver

Planner = Callable[[PlanStart], PlanResult]
# Trials that diverge are a part of every search: their costs are infinite.
TRIALS: Any = {"over": "ignore", "invalid": "ignore"}


class PlanSolver(ArraySolver):
    """A Solver of OPTIMAL_CONTROL, which is given a ControlProblem.

    A subclass has `name`, `options` with their defaults, and `prepare`. `dyn.plan`
    accepts its name or an instance.
    """

    signature = OPTIMAL_CONTROL

    @abstractmethod
    def prepare(self, problem: ControlProblem, **options: Any) -> Planner:
        """Return a function that solves the problem from a start, for repeated calls.

        Args:
            problem: Robot, costs, time grid and limits.
            options: A value of each entry of `options`.

        Raises:
            UnsupportedError: An engine is unknown, or a Program does not support the
                robot.
            TraceError: A custom cost cannot be traced.
        """

    def solve(
        self, problem: ControlProblem, start: PlanStart, **options: Any
    ) -> PlanResult:
        """Return the plan from a start, by what `prepared` returns.

        Args:
            problem: Robot, costs, time grid and limits.
            start: Start, first guess, and settings of the costs.
            options: A value of each entry of `options`.

        Returns:
            The plan; its reason says how the search ended. Errors are those of
            `prepare`; the start is not checked.
        """
        with np.errstate(**TRIALS):
            return self.prepared(problem, **options)(start)

    def solve_all(
        self, problem: ControlProblem, starts: Sequence[PlanStart], **options: Any
    ) -> list[PlanResult]:
        """Return the plans from many starts with the same settings of the costs.

        What `prepared` returns may have a method `many`, which is called with all
        starts; else it is called for each.

        Args:
            problem: Robot, costs, time grid and limits.
            starts: For each plan start and first guess, which are not checked.
            options: A value of each entry of `options`.

        Errors of `prepare`, and of what it returned, pass through.
        """
        planner = self.prepared(problem, **options)
        many = getattr(planner, "many", None)
        with np.errstate(**TRIALS):
            return [planner(x) for x in starts] if many is None else many(starts)

    def prepared(self, problem: ControlProblem, **options: Any) -> Planner:
        """Return the result of `prepare`; it is the same object for equal options.

        It is stored in problem.planners at the first call, which raises the errors of
        `prepare`.

        Args:
            problem: Robot, costs, time grid and limits.
            options: A hashable value of each entry of `options`.
        """
        key = self, tuple(sorted(options.items()))
        if key not in problem.planners:
            problem.planners[key] = self.prepare(problem, **options)
        planner: Planner = problem.planners[key]
        return planner

    def outputs(self, model: Any, *inputs: Any, **options: Any) -> tuple[Any, ...]:
        """Return the outputs of OPTIMAL_CONTROL for one start, in its order.

        The targets are those of the costs. A search that fails raises nothing; errors
        of `prepare` pass through.

        Args:
            model: The ControlProblem.
            inputs: q (nq,), qd (nv,), q_guess (N + 1, nq), qd_guess (N + 1, nv) and
                tau_guess (N, nv), with N = model.knots.
            options: A value of each option.

        Returns:
            q (N + 1, nq), qd (N + 1, nv), tau (N, nv), gains (N, nv, 2 nv), the value,
            the residuals gap, stationarity and limit, (3,), then the number of
            iterations and the index of the reason in REASONS (0: converged), as floats.
        """
        start = PlanStart(*inputs, *model.settings({}))
        result = self.solve(model, start, **options)
        return (
            result.q,
            result.qd,
            result.tau,
            result.gains,
            result.value,
            np.array(result.residuals),
            float(result.iterations),
            float(REASONS.index(result.reason)),
        )
