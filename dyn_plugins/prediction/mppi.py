"""Optimal control by sampling: model predictive path integral control."""

import numpy as np

from dyn_core.authoring import hookimpl
from dyn_core.prediction import (
    DIVERGED,
    MAX_ITERATIONS,
    REASONS,
    Penalty,
    PlanResiduals,
    PlanResult,
    PlanSamples,
    PlanSolver,
    Shooting,
)
from dyn_core.validation import Quantity, Whole

FORCE = 10.0  # standard deviation of a joint force without bounds, times `noise`


class MPPI(PlanSolver):
    """Plans by weighted means of random joint forces.

        tau <- sum_i w_i (tau + noise_i),   w_i = exp(-(J_i - min J) / lambda) / sum

    lambda is `temperature` times the mean of J - min J. The noise of a joint has the
    standard deviation `noise` times half of its range of joint forces, or times 10 N·m
    or N (FORCE) without finite bounds. It is drawn at `nodes` nodes and interpolated by
    straight lines; 0, or as many as knots or more: at each knot. Each of at most
    `max_iterations` iterations has `samples` plans, the mean among them; `seed` makes
    the noise the same in each call. No derivatives are needed; there is no feedback
    (gains are zero), and violated limits of position and velocity are costs. The result
    is the best mean.

    Source: G. Williams et al., Information theoretic MPC for model-based reinforcement
    learning, ICRA 2017.
    """

    name = "mppi"
    source = "G. Williams et al., Information theoretic MPC, ICRA 2017"
    options = {
        "samples": 1024,
        "max_iterations": 30,
        "temperature": 0.05,
        "noise": 0.2,
        "nodes": 0,
        "seed": 0,
    }
    valid = {
        "samples": Whole(2, 100_000),
        "max_iterations": Whole(1),
        "temperature": Quantity(0.0, above=True),
        "noise": Quantity(0.0, above=True),
        "nodes": Whole(0),
        "seed": Whole(0),
    }

    def prepare(self, problem, **options):
        """Return a function that plans: it maps a PlanStart to a PlanResult.

        Of the guesses only tau_guess is read. problem: ControlProblem. options: All of
        the class, by name; their values are not checked here.

        Raises UnsupportedError for an unknown engine or a robot that its Programs do
        not support, TraceError for a custom cost that cannot be traced.
        """
        shooting, penalty = Shooting(problem), Penalty(problem)
        penalty.rho = 1e4
        return lambda start: _plan(problem, shooting, penalty, start, **options)


def _plan(
    problem, shooting, penalty, start, samples, max_iterations, temperature, noise,
    nodes, seed,
):  # fmt: skip
    """Return the PlanResult of the best mean; its gains are zeros.

    The best has the least cost with the penalty; its value is the cost without. The
    reason is divergence if no mean had a finite cost. Planning ends early if the cost
    of all samples is not finite. The detail is the worst violated limit, and the value
    of the guess and before the last iteration. The guess of joint forces is clipped.
    """
    rng, bounds = np.random.default_rng(seed), problem.bounds
    half = (bounds.tau_upper - bounds.tau_lower) / 2
    scale = noise * np.where(np.isfinite(half), half, FORCE)
    mean = np.clip(start.tau_guess, bounds.tau_lower, bounds.tau_upper)
    best, path, history = np.inf, None, []  # values of the best, by iteration
    drawn, *places = _nodes(samples, *mean.shape, nodes)
    tried = shooting.motions(samples, samples if penalty.active else 1)
    sampled = shooting.sampler(start, PlanSamples(mean, drawn, *places, scale), tried)
    for count in range(max_iterations + 1):
        if count == max_iterations:  # of the last, the mean alone
            drawn, tried = drawn[:1].copy(), shooting.motions(1, 1)
            alone = PlanSamples(mean, drawn, *places, scale)
            sampled = shooting.sampler(start, alone, tried)
        else:
            rng.standard_normal(out=drawn)
        drawn[0] = 0.0  # the mean itself
        values = costs = sampled()
        if penalty.active:
            values = values + penalty.values(tried.q, tried.qd)
        values = np.where(np.isfinite(values), values, np.inf)
        if path is None or values[0] < best:
            best, value = values[0], float(costs[0])
            path = [x[0].copy() for x in (tried.q, tried.qd, tried.tau)]
        history.append(value)
        if count == max_iterations or not np.isfinite(values.min()):
            break
        above = values - values.min()
        spread = temperature * above[np.isfinite(above)].mean()
        weights = np.exp(-above / max(spread, 1e-300))
        mean[...] = np.tensordot(weights / weights.sum(), tried.tau, 1)
    q, qd, tau = path
    first, last = history[0], history[-2:][0]
    fell = f"value {first:.6g} at the guess, {last:.6g} before the last iteration"
    left = penalty.worst(problem, q, qd), fell
    return PlanResult(
        problem.model,
        problem.dt,
        q,
        qd,
        tau,
        np.zeros((*tau.shape, 2 * problem.model.nv)),
        value,
        PlanResiduals(0.0, -1.0, penalty.violation(q, qd)),
        count,
        REASONS[MAX_ITERATIONS if np.isfinite(best) else DIVERGED],
        "; ".join(filter(None, left)) if np.isfinite(best) else "",
    )


def _nodes(samples, knots, width, nodes):
    """Return an array for numbers at nodes, and how knots are interpolated from them.

    The array is (samples, nodes, width), not filled; 0 nodes: one for each knot. Three
    arrays by knot are the node before it, the one after it, and the share of the
    latter, 0 to 1 (straight lines).
    """
    if nodes == 0 or nodes >= knots:
        nodes, place = knots, np.arange(float(knots))
    else:
        place = np.linspace(0, nodes - 1, knots)
    k = np.minimum(place.astype(int), max(nodes - 2, 0))
    after = np.minimum(k + 1, nodes - 1)
    return np.empty((samples, nodes, width)), k, after, place - k


@hookimpl
def dyn_solvers():
    """Return a list of the one solver of this file, for the Registry."""
    return [MPPI()]
