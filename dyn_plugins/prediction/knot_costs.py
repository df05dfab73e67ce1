"""Costs at one knot of a plan, and their derivatives, each as one kernel."""

from dyn_core.authoring import Matrix, TracedSolver, Vector, hookimpl, maximum, minimum
from dyn_core.errors import UnsupportedError
from dyn_core.prediction import cost as costs_of_plans
from dyn_core.problems import KNOT_COST, KNOT_COST_DERIVATIVES, KNOT_POLICY, STEP
from dyn_core.validation import shown
from dyn_plugins.derivatives._chains import are_zero
from dyn_plugins.prediction._residuals import residual_and_slopes, residual_of

# The costs without a choice: on every robot, and of each input.
DEFAULT = (costs_of_plans.posture(), costs_of_plans.velocity(), costs_of_plans.effort())


def knot_cost(model, q, qd, tau, settings, costs):
    """Return the value of the costs at one knot.

        value = sum of weight residual² / 2

    Inputs and outputs: those of KNOT_COST.

    Args:
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: J. Nocedal, S. Wright, Numerical Optimization, section 10.1.
    """
    value = 0.0
    for cost, weights, target in _parts(model, settings, costs):
        residual = residual_of(model, cost, q, qd, tau, target)
        for w, r in zip(weights, residual, strict=True):
            value = value + w * r * r * 0.5
    return value


def knot_cost_derivatives(model, q, qd, tau, settings, costs):
    """Return the value of the costs at one knot and its derivatives.

        gradient = J.T W r,   Hessian = J.T W J

    The Hessian is by Gauss-Newton, without the second derivatives of residuals.

    Inputs and outputs: those of KNOT_COST_DERIVATIVES.

    Args:
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: J. Nocedal, S. Wright, Numerical Optimization, section 10.3.
    """
    n, value = 3 * model.nv, 0.0
    gradient, hessian = [0.0] * n, [[0.0] * n for _ in range(n)]
    for cost, weights, target in _parts(model, settings, costs):
        residual, J = residual_and_slopes(model, cost, q, qd, tau, target)
        for w, r, row in zip(weights, residual, J.rows, strict=True):
            value = value + w * r * r * 0.5
            filled = [k for k, x in enumerate(row) if not are_zero([x])]
            for k in filled:
                weighted = w * row[k]
                gradient[k] = gradient[k] + weighted * r
                for j in filled:
                    if j <= k:
                        hessian[k][j] = hessian[k][j] + weighted * row[j]
                        hessian[j][k] = hessian[k][j]
    split = 2 * model.nv
    return (
        value,
        Vector(gradient[:split]),
        Vector(gradient[split:]),
        Matrix(row[:split] for row in hessian[:split]),
        Matrix(row[:split] for row in hessian[split:]),
        Matrix(row[split:] for row in hessian[split:]),
    )


def knot_policy(
    model, q, qd, q_plan, qd_plan, tau_plan, k, K, lower, upper, gap, length,
    settings, dt, step, costs,
):  # fmt: skip
    """Return the step of a plan under its feedback, and the costs at its knot.

        tau = tau_plan + length k + K dx,   dx = (q (-) q_plan, qd - qd_plan)
        x_next = step(x, tau) (+) (length - 1) gap

    Without the input K it is the step of tau_plan within its bounds: no feedback, no
    gap.

    Inputs and outputs: those of KNOT_POLICY.

    Args:
        step: Solver of STEP.
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: C. Mastalli et al., A feasibility-driven approach to control-limited DDP,
    Autonomous Robots 46 (2022).
    """
    wanted = tau_plan
    if K is not None:
        dx = Vector([*model.difference(q_plan, q), *(qd - qd_plan)])
        wanted = tau_plan + k * length + K @ dx
    tau = Vector(
        minimum(maximum(x, low), high)
        for x, low, high in zip(wanted, lower, upper, strict=True)
    )
    q_next, qd_next = step(q, qd, tau, dt)
    if K is not None:
        back = Vector(gap) * (length - 1.0)
        q_next = model.integrate(q_next, Vector(back[: model.nv]))
        qd_next = qd_next + Vector(back[model.nv :])
    return q_next, qd_next, tau, knot_cost(model, q, qd, tau, settings, costs)


def _parts(model, settings, costs):
    """Yield (cost, weights, target) with the numbers of each cost in the settings.

    settings: For each cost its weights, then its target, one after the other.
    """
    numbers, start = list(settings), 0
    for cost in costs:
        size, target = cost.size(model), cost.target_size(model)
        middle, end = start + size, start + size + target
        yield cost, numbers[start:middle], numbers[middle:end]
        start = end


def _sizes(model, options):
    sizes = [c.size(model) + c.target_size(model) for c in options["costs"]]
    return {"ns": sum(sizes), "nx": 2 * model.nv}


def _known_costs(model, costs):
    """Raise UnsupportedError unless all entries are Costs; model is ignored."""
    for cost in costs:
        if not isinstance(cost, costs_of_plans.Cost):
            raise UnsupportedError(
                f"costs: {shown(cost)}; valid: Costs, as dyn.cost.effort() makes them"
            )


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    shared = {
        "options": {"costs": DEFAULT},
        "valid": {"costs": _known_costs},
        "sizes": _sizes,
        "by_joint": False,
    }
    return [
        TracedSolver("knot_cost", KNOT_COST, knot_cost, **shared),
        TracedSolver(
            "knot_cost_derivatives",
            KNOT_COST_DERIVATIVES,
            knot_cost_derivatives,
            **shared,
        ),
        TracedSolver(
            "knot_policy",
            KNOT_POLICY,
            knot_policy,
            slots={"step": STEP},
            fills={"step": "semi_implicit_euler"},
            **shared,
        ),
    ]
