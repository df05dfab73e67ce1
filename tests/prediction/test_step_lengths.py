"""Trials of step lengths: their motions, their values, and the choice among them."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cost
from dyn_core.prediction import ControlProblem, Penalty
from dyn_core.prediction.descent import DECREASE, HALF, LENGTHS, Descent, Search
from dyn_core.prediction.result import PlanStart
from dyn_core.prediction.rollouts import PlanPath
from dyn_core.prediction.shooting import Iteration

N, DT = 5, 0.02


def random_iteration(name, seed=7):
    """Return an Iteration with a random plan, feedback and gaps, and its problem."""
    model, rng = dyn.load(name), np.random.default_rng(seed)
    goal = model.random(rng)
    costs = [cost.posture(goal, when="always"), cost.velocity(), cost.effort(0.1)]
    problem = ControlProblem(model, costs, N * DT, N)
    state, nv = Iteration(problem), model.nv
    q = np.array([model.random(rng) for _ in range(N + 1)])
    path = PlanPath(q, rng.normal(size=(N + 1, nv)), rng.normal(size=(N, nv)))
    state.load(PlanStart(q[0], path.qd[0], *path, *problem.settings({})), path)
    state.expand(Penalty(problem))
    state.sweep.k[...] = rng.normal(size=(N, nv))
    state.sweep.K[...] = 0.1 * rng.normal(size=(N, nv, 2 * nv))
    return state, problem


def motion(state, problem, length):
    """Return the motion of a step length and its value, by Programs of one state."""
    model, plan, work = problem.model, state.plan, state.sweep
    step = dyn.solver("semi_implicit_euler").build(model)
    running, ending = (
        dyn.solver("knot_cost").build(model, costs=costs)
        for costs in (problem.running, problem.ending)
    )
    settings = problem.settings({})
    q, qd, value = plan.q[0], plan.qd[0], 0.0
    states, forces = [q], []
    for i in range(N):
        dx = [*model.difference(plan.q[i], q), *(qd - plan.qd[i])]
        tau = plan.tau[i] + length * work.k[i] + work.K[i] @ dx
        tau = np.clip(tau, problem.bounds.tau_lower, problem.bounds.tau_upper)
        value += running(q, qd, tau, settings[0][i])
        back = (length - 1.0) * state.model.gap[i + 1]
        q, qd = step(q, qd, tau, DT)
        q, qd = model.integrate(q, back[: model.nv]), qd + back[model.nv :]
        states.append(q)
        forces.append(tau)
    value += ending(q, qd, np.zeros(model.nv), settings[1])
    return np.array(states), np.array(forces), value


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["two_link", "quadruped"])
def test_each_lane_is_the_motion_of_its_step_length(name):
    state, problem = random_iteration(name)
    penalty, plan = Penalty(problem), [x.copy() for x in state.plan]
    for first in range(0, len(LENGTHS), state.lanes):
        lengths = LENGTHS[first : first + state.lanes]
        values = state.attempt(penalty, lengths)
        assert len(values) == len(lengths)
        for i, length in enumerate(lengths):
            q, tau, value = motion(state, problem, length)
            state.accept(i)
            np.testing.assert_allclose(state.plan.q, q, 0, 1e-9)
            np.testing.assert_allclose(state.plan.tau, tau, 1e-9, 1e-9)
            value += penalty.terms(state.plan.q, state.plan.qd)[0]
            assert values[i] == pytest.approx(value, rel=1e-9)
            for mine, before in zip(state.plan, plan, strict=True):
                mine[...] = before


def swung_up():
    """Return a search whose full steps are often poor, and its start."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    costs = [
        cost.posture([np.pi / 2, 0.0], 100.0, "end"),
        cost.velocity(1.0, when="always"),
        cost.effort(0.01),
    ]
    limits = {model.joint_names[0]: 9.0, model.joint_names[1]: 9.0}
    plan = dyn.plan(model, costs, 1.0, 40, effort_limits=limits)
    return Descent(plan.problem), plan._start(
        [-np.pi / 2, 0.0], [0.0, 0.0], None, plan.problem.settings({})
    )


def test_the_longest_step_that_decreases_the_merit_is_taken(monkeypatch):
    descent, start = swung_up()
    choices = []
    line_search = Search._line_search

    def watched(self, penalty, value, share, slope, curvature):
        state, gap = self.state, self.state.gaps
        pieces = range(0, len(LENGTHS), state.lanes)
        parts = [LENGTHS[i : i + state.lanes] for i in pieces]
        changes = np.concatenate([state.attempt(penalty, x) for x in parts]) - value
        ratio = yield from line_search(self, penalty, value, share, slope, curvature)
        if gap < 1e-12:  # the merit is the value
            share = np.where(LENGTHS > LENGTHS[-1], share, DECREASE)
            first = int((changes <= share * LENGTHS * slope).argmax())
            expected = LENGTHS[first] * (slope + LENGTHS[first] * curvature / 2)
            if ratio is not None and expected < -1e-6:
                assert ratio == pytest.approx(changes[first] / expected, rel=1e-6)
                choices.append(first)
        return ratio

    monkeypatch.setattr(Search, "_line_search", watched)
    assert descent(start).converged
    assert 0 in choices and max(choices) > 0


def test_half_of_the_slope_is_left_at_the_least_value_of_a_parabola():
    """So the step of an exact model is accepted, and none that leads far beyond it."""
    for best in np.geomspace(0.01, 1.0, 50):
        changes = LENGTHS * LENGTHS / (2 * best) - LENGTHS
        length = LENGTHS[(changes <= -HALF * LENGTHS).argmax()]
        assert 0.5 * best < length < 1.05 * best
    assert length == 1.0


def test_full_steps_that_overshoot_do_not_go_on_until_the_last_iteration():
    """A robot at its speed limits: two of these twenty plans ended in 500 iterations."""
    costs = [cost.posture([1.0, 0.5], 10.0, "end"), cost.effort(1e-3)]
    plan, rng = dyn.plan(dyn.load("two_link"), costs, 0.5, 10), np.random.default_rng(0)
    q = np.array([0.1, 0.2]) + rng.uniform(-0.1, 0.1, (20, 2))
    results = plan.solve(q, 4.0 - rng.uniform(0.0, 0.3, (20, 2)))
    assert sum(result.converged for result in results) >= 18
    assert max(x.residuals.stationarity for x in results if x.converged) < 1e-6


def test_a_plan_that_is_not_finite_has_no_finite_violation():
    model = dyn.load("two_link")
    penalty = Penalty(ControlProblem(model, [cost.effort()], 0.1, 2))
    q, qd = np.zeros((3, 2)), np.zeros((3, 2))
    assert penalty.violation(q, qd) == 0.0
    q[2, 0] = np.nan
    assert np.isnan(penalty.violation(q, qd))


@pytest.mark.parametrize(("beyond", "moved"), [(5e-5, 0.0), (5e-4, 5e-4)])
def test_a_limit_begins_at_a_start_beyond_it_by_more_than_the_tolerance(beyond, moved):
    model = dyn.load("arm7")
    problem = ControlProblem(model, [cost.effort()], 0.1, 2)
    for sign in (1.0, -1.0):
        q, qd, high = model.start(), np.zeros(7), problem.bounds.q_upper[1]
        q[1] = high + beyond if sign > 0 else problem.bounds.q_lower[1] - beyond
        settings = problem.settings({})
        start = PlanStart(q, qd, *[np.zeros((3, 7))] * 2, np.zeros((2, 7)), *settings)
        penalty, other = Penalty(problem, start), Penalty(problem)
        change = penalty.high - other.high if sign > 0 else other.low - penalty.low
        np.testing.assert_allclose(
            change[:, 1], moved * np.array([1, 0.5, 0]), atol=1e-12
        )
