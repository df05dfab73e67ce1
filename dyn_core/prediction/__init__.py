"""Predictive and linear optimal control: joint forces of least cost, and feedback.

linear.py has the regulators and estimators of linear systems. Of plans, cost.py has the
costs, problem.py the problem as data, planning.py the entry for users, solving.py the
base class of solvers, result.py their results; descent.py, shooting.py, riccati.py and
limits.py are the iterations of box_fddp and ilqr, plan_lanes.py those of several starts
at once.
"""

from dyn_core.prediction import cost
from dyn_core.prediction.cost import Cost
from dyn_core.prediction.descent import Descent
from dyn_core.prediction.limits import Penalty
from dyn_core.prediction.linear import Estimator, Linear, Regulator, kalman, lqr
from dyn_core.prediction.planning import Plan, plan
from dyn_core.prediction.predictive_law import PredictiveLaw
from dyn_core.prediction.problem import ControlProblem
from dyn_core.prediction.result import (
    DIVERGED,
    MAX_ITERATIONS,
    REASONS,
    PlanResiduals,
    PlanResult,
    PlanStart,
)
from dyn_core.prediction.rollouts import PlanSamples, Shooting
from dyn_core.prediction.solving import PlanSolver

__all__ = [
    "DIVERGED",
    "MAX_ITERATIONS",
    "REASONS",
    "ControlProblem",
    "Cost",
    "Descent",
    "Estimator",
    "Linear",
    "Penalty",
    "Plan",
    "PlanResiduals",
    "PlanResult",
    "PlanSamples",
    "PlanSolver",
    "PlanStart",
    "PredictiveLaw",
    "Regulator",
    "Shooting",
    "cost",
    "kalman",
    "lqr",
    "plan",
]
